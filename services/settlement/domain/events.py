"""What settlement folds and what it answers, as closed unions."""

from __future__ import annotations

from typing import get_args

from google.protobuf.message import Message

from sabot.log.v1 import events_pb2 as log
from sabot.settlement.v1 import correction_events_pb2 as corrections
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.table.v1 import correction_events_pb2 as table_corrections
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet

Folded = (
    table.TableOpened
    | table.RoundOpened
    | table.ResultAccepted
    | table.RoundVoided
    | table.RoundClosed
    | table.VoidRound
    | table.OrderRejected
    | log.RequestRepeated
    | wallet.StakeReserved
    | wallet.StakeReturned
    | table_corrections.CorrectionApproved
    | table_corrections.ResultCorrected
    | table_corrections.CorrectionClosed
    | corrections.RecallFacts
    | corrections.EndRecall
)
"""Other services' answers, orders to void, and the facts of closed rounds that a correction brings
back."""

Own = (
    settlement.BetsSettled
    | settlement.RoundSettled
    | corrections.FactsTaken
    | corrections.FactsRecalled
    | corrections.CorrectionRejected
    | corrections.BetsCorrected
    | corrections.RoundCorrected
    | log.InputIgnored
)
"""The answers of settlement. Read back, `BetsSettled` and `BetsCorrected` are decided where a step
is unfinished."""

FOLDS: frozenset[type[Message]] = frozenset(get_args(Folded))
ANSWERS: frozenset[type[Message]] = frozenset(get_args(Own))
