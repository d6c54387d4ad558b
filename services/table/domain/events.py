"""What the table folds and what it answers, as closed unions."""

from __future__ import annotations

from typing import get_args

from google.protobuf.message import Message

from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1 import events_pb2 as log
from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import floor_events_pb2 as orders
from sabot.table.v1 import risk_events_pb2 as risk
from sabot.table.v1 import switch_events_pb2 as switches
from sabot.wallet.v1 import events_pb2 as wallet
from services.table.domain import paid_rounds

Order = (
    table.OpenTable
    | table.CloseTable
    | table.OpenRound
    | table.CloseBetting
    | table.SuspendRound
    | table.ResumeRound
    | table.VoidRound
    | orders.CorrectCard
    | orders.CorrectOutcome
    | paid_rounds.Order
    | switches.SetSwitch
)
"""Operators' inputs; timers send two of them."""

RoundOrder = (
    table.SuspendRound
    | table.ResumeRound
    | table.VoidRound
    | orders.CorrectCard
    | orders.CorrectOutcome
)
"""Orders about a round that only operators give."""

PartnerRequest = table.PlaceBets | table.WithdrawBets | table.Act
"""Partners' inputs."""

Foreign = (
    limits.BetsRefused
    | limits.WithdrawalApproved
    | limits.WithdrawalRefused
    | wallet.StakeReserved
    | wallet.StakeDeclined
    | wallet.RoundPaid
    | wallet.RoundReturned
    | shoe.ShoeOpened
    | shoe.CardsBurned
    | shoe.CardsDealt
    | shoe.CutCardReached
    | shoe.ShoeRanOut
    | shoe.ShoeClosed
    | floor.FirstCardShown
    | floor.FloorFaultFound
    | floor.CardCorrected
    | floor.OutcomeCorrected
    | floor.FloorRejected
    | rules.InsuranceOffered
    | rules.ActionCalled
    | rules.RoundResolved
    | paid_rounds.Told
    | rules.DrawRecalled
    | rules.HandsCorrected
    | rules.PlayContradicted
    | log.InputFailed
    | log.RetryInput
)
"""Other services' answers, and an operator's retries, about which the kernel decides."""

Own = (
    table.BetsPlaced
    | table.BetsRejected
    | table.BetsWithdrawn
    | table.WithdrawalRejected
    | orders.WithdrawalNoted
    | orders.CardCorrectionOrdered
    | orders.OutcomeCorrectionOrdered
    | orders.SuspensionEscalated
    | table.ActionTaken
    | table.ActionRejected
    | table.InsuranceClosed
    | table.OrderRejected
    | table.TableOpened
    | table.TableClosed
    | table.RoundOpened
    | table.BettingClosed
    | table.RoundSuspended
    | table.RoundResumed
    | table.ResultAccepted
    | table.RoundVoided
    | table.RoundClosed
    | risk.BetsClosed
    | paid_rounds.Own
    | switches.SwitchSet
    | log.RequestRepeated
    | log.InputIgnored
)
"""The table's answers."""

Folded = (
    PartnerRequest
    | table.TimeOutTurn
    | orders.EscalateSuspension
    | risk.CloseBets
    | Order
    | Foreign
)

FOLDS: frozenset[type[Message]] = frozenset(get_args(Folded))
ANSWERS: frozenset[type[Message]] = frozenset(get_args(Own))
