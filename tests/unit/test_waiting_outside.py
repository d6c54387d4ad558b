"""A caller whose request waits for something outside of the cell hears of its end all the same, and
is no ground to refuse others meanwhile."""

from __future__ import annotations

import asyncio

from google.protobuf.message import Message

from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1 import entry_pb2
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from sabot.wallet.v1 import seamless_events_pb2 as seamless
from services.kernel.edge import Outcome
from services.kernel.event import Event, Position
from services.kernel.outcomes import Outcomes, Submitted
from services.kernel.reader import ReadEntry

APPROVED_AT = entry_pb2.Position(segment=1, sequence=3)
UNTIL: frozenset[type[Message]] = frozenset((wallet.StakeReserved, wallet.StakeDeclined))


def entry(sequence: int, body: Message, cause: int | None, service: str) -> ReadEntry:
    event = Event(
        Position(1, sequence, 0),
        service,
        cause is None,
        body,
        None if cause is None else Position(1, cause, 0),
        "north",
        "partner:north",
        sequence,
        1,
    )
    return ReadEntry(
        sequence=sequence,
        service=service,
        is_input=cause is None,
        writer="w",
        counter=sequence,
        copy=False,
        head=b"",
        events=[event],
        protos=[],
    )


class Cell:
    """What one process hears of a log."""

    def __init__(self) -> None:
        self.outcomes = Outcomes(lambda _kind, _facts: None, {})
        self.future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

    def input(self, sequence: int, body: Message, service: str, now: float) -> None:
        token = Submitted(self.future if service == "table" else None, UNTIL)
        self.outcomes.entered(entry(sequence, body, None, service), [token], now)

    def answer(self, sequence: int, body: Message, cause: int, service: str) -> None:
        self.outcomes.answered(entry(sequence, body, cause, service))


async def waiting() -> Cell:
    """A bet whose partner has been asked for the stake."""
    cell = Cell()
    cell.input(1, table.PlaceBets(), "table", 10.0)
    cell.answer(2, table.BetsPlaced(), 1, "table")
    cell.answer(3, limits.BetsApproved(), 2, "limits")
    assert cell.outcomes.oldest_since() == 10.0
    ordered = seamless.DebitOrdered(transaction_id="t", waiting_since=APPROVED_AT)
    cell.answer(4, ordered, 3, "wallet")
    return cell


async def test_a_caller_hears_what_ends_the_wait_whatever_its_cause_is() -> None:
    cell = await waiting()
    assert cell.outcomes.oldest_since() is None
    assert cell.outcomes.awaited()  # noqa: PGH005 - its own, no mock's
    cell.input(5, seamless.RecordReply(transaction_id="t"), "wallet", 90.0)
    cell.answer(6, wallet.StakeReserved(waiting_since=APPROVED_AT), 5, "wallet")
    outcome = cell.future.result()
    assert outcome.event.position == Position(1, 6, 0)
    assert outcome.input_position == Position(1, 1, 0)
    assert not cell.outcomes.awaited()
    assert cell.outcomes.oldest_since() is None


async def test_another_wait_ends_without_it() -> None:
    cell = await waiting()
    other = entry_pb2.Position(segment=1, sequence=77)
    cell.answer(6, wallet.StakeReserved(waiting_since=other), 5, "wallet")
    assert not cell.future.done()
    cell.answer(7, wallet.StakeDeclined(waiting_since=APPROVED_AT), 6, "wallet")
    assert isinstance(cell.future.result().event.body, wallet.StakeDeclined)


async def test_a_caller_that_waits_for_the_outside_is_forsaken_with_the_others() -> None:
    cell = await waiting()
    cell.outcomes.forsake(RuntimeError("the end"))
    assert isinstance(cell.future.exception(), RuntimeError)
