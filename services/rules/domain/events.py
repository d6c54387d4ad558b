"""What rules folds and what it answers, as closed unions."""

from __future__ import annotations

from typing import get_args

from google.protobuf.message import Message

from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet

Folded = (
    table.TableOpened
    | table.RoundOpened
    | table.RoundSuspended
    | table.RoundResumed
    | table.RoundVoided
    | table.RoundClosed
    | table.ActionTaken
    | wallet.StakesSealed
    | wallet.StakeReserved
    | wallet.StakeReturned
    | shoe.CardsDealt
    | shoe.HoleChecked
    | shoe.WheelSpun
    | shoe.SpinInvalidated
    | shoe.DiceRolled
    | floor.CardCorrected
    | floor.OutcomeCorrected
)
"""Other services' answers; rules takes no input of its own."""

Own = (
    rules.DrawCalled
    | rules.HoleCalled
    | rules.SpinCalled
    | rules.RollCalled
    | rules.InsuranceOffered
    | rules.ActionCalled
    | rules.SideBetDecided
    | rules.RoundResolved
    | rules.DrawRecalled
    | rules.HandsCorrected
    | rules.PlayContradicted
)
"""The answers of rules."""

FOLDS: frozenset[type[Message]] = frozenset(get_args(Folded))
ANSWERS: frozenset[type[Message]] = frozenset(get_args(Own))
