"""The books of a log: its wallet's journal, folded anew into a database that is thrown away."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from services.audit.ledger_check import LedgerCheck
from services.events import event_types
from services.kernel.event import Event, Position
from services.kernel.log import Log
from services.kernel.offered_snapshots import events_of
from services.kernel.projections import END_OF_ENTRY, SEGMENT, Projector
from services.wallet.books import AsOf, Books, as_of
from services.wallet.ledger_queries import SqlLedgerQueries
from services.wallet.projection import WalletProjection

LOOK_EVERY_S = 0.1


class LedgerRefused(Exception):
    """The books cannot answer that; the message says why."""


@dataclass(slots=True)
class LogBooks:
    """The books of a log as far as it goes."""

    books: Books
    at: AsOf
    check: LedgerCheck = field(default_factory=LedgerCheck)
    """What was found wrong with entries on the way."""


@asynccontextmanager
async def books_of(
    log: Log,
    accepted: Mapping[int, bytes] | None = None,
    progress: Callable[[int, int, int], None] | None = None,
) -> AsyncIterator[LogBooks]:
    """Fold a log into a journal, and look at every entry. Raises LogBroken, LogUnavailable."""
    last = (await log.info(wait_s=5.0)).last_sequence
    check = LedgerCheck()
    read = events_of(log, event_types(), accepted)
    over_us = 0

    async def looked_at(after: int) -> AsyncIterator[tuple[int, bytes, list[Event]]]:
        nonlocal over_us
        async for sequence, head, events in read(after):
            check.feed(sequence, head, events)
            if events:
                over_us = events[-1].time_us
            yield sequence, head, events

    with tempfile.TemporaryDirectory(prefix="sabot-ledger-") as folder:
        url = f"sqlite+aiosqlite:///{Path(folder) / 'ledger.sqlite3'}"
        projector = Projector(WalletProjection(), url, looked_at)
        try:
            await projector.start()
            wanted = Position(SEGMENT, last, END_OF_ENTRY)
            while not await projector.reached(wanted, LOOK_EVERY_S):
                if projector.error is not None:
                    raise projector.error
                if progress is not None:
                    progress(projector.position.sequence, last, projector.events)
                await asyncio.sleep(0)
            books = Books(SqlLedgerQueries(projector))
            yield LogBooks(books, as_of(projector.position, over_us), check)
        finally:
            await projector.close()
