"""What shoes fold and what they answer, as closed unions."""

from __future__ import annotations

from typing import get_args

from google.protobuf.message import Message

from sabot.log.v1 import events_pb2 as log
from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import events_pb2 as tables
from sabot.table.v1 import floor_events_pb2 as orders
from sabot.wallet.v1 import events_pb2 as wallet

Folded = (
    rules.DrawCalled
    | shoes.OpenCards
    | tables.RoundOpened
    | tables.RoundClosed
    | tables.RoundVoided
    | tables.TableOpened
    | tables.TableClosed
    | shoes.SealShoe
    | shoes.RevealShoe
    | rules.HoleCalled
    | rules.SpinCalled
    | rules.RollCalled
    | shoes.CheckHole
    | shoes.RecordSpin
    | shoes.RecordDice
    | floor.LoadShoe
    | floor.RecordCard
    | floor.RecordFaceDown
    | floor.RecordPeek
    | floor.RecordBurn
    | floor.RecordCutCard
    | floor.DeclareNoSpin
    | floor.RecordRemaining
    | floor.RegisterConsumable
    | floor.MoveConsumable
    | tables.BettingClosed
    | wallet.StakesSealed
    | rules.RoundResolved
    | rules.DrawRecalled
    | orders.CardCorrectionOrdered
    | orders.OutcomeCorrectionOrdered
)
Answered = (
    shoes.ShoeOpened
    | shoes.CardsBurned
    | shoes.CardsDealt
    | shoes.HoleChecked
    | shoes.CutCardReached
    | shoes.ShoeRanOut
    | shoes.ShoeClosed
    | shoes.ShoeRevealed
    | shoes.WheelSpun
    | shoes.SpinInvalidated
    | shoes.DiceRolled
    | floor.FirstCardShown
    | floor.OutcomeHeld
    | floor.FloorFaultFound
    | floor.ShoeCensus
    | floor.ConsumableRegistered
    | floor.ConsumableMoved
    | floor.CardCorrected
    | floor.OutcomeCorrected
    | floor.FloorRejected
    | log.RequestRepeated
    | log.InputIgnored
)
FOLDS: frozenset[type[Message]] = frozenset(get_args(Folded))
ANSWERS: frozenset[type[Message]] = frozenset(get_args(Answered))
