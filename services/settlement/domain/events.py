"""What settlement folds and what it answers, as closed unions."""

from __future__ import annotations

from typing import get_args

from google.protobuf.message import Message

from sabot.settlement.v1 import events_pb2 as settlement
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet

Folded = (
    table.TableOpened
    | table.RoundOpened
    | table.ResultAccepted
    | table.RoundVoided
    | table.RoundClosed
    | wallet.StakeReserved
    | wallet.StakeReturned
)
"""Other services' answers; settlement takes no input of its own."""

Own = settlement.BetsSettled | settlement.RoundSettled
"""The answers of settlement. Read back, `BetsSettled` is decided where a step is unfinished."""

FOLDS: frozenset[type[Message]] = frozenset(get_args(Folded))
ANSWERS: frozenset[type[Message]] = frozenset(get_args(Own))
