"""The log, as the console reads it: with credentials that can append nothing."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from copy import deepcopy
from pathlib import Path

from services.cli.inspect_state import PositionUnknown
from services.cli.log_source import NoLog
from services.cli.playthrough import Playthrough, playthrough, playthrough_from
from services.console.history import History, RoundNote
from services.console.kept_file import entry_digest, forget, load, save
from services.console.seeking import Found, Seeking
from services.events import event_types
from services.kernel import telemetry
from services.kernel.accepted import read_accepted
from services.kernel.event import Event
from services.kernel.log import Log, LogMessage, LogUnavailable
from services.kernel.reader import LogBroken, LogReader
from services.kernel.recovery import entries_until
from services.kernel.telemetry_names import CONSOLE_FOLLOWS

AGAIN_S = 1.0
"""Before the log is looked for again when it could not be read."""

SAVE_EVERY = 50_000
"""Entries between two savings of what is kept: a part of a second's work each, for some
seconds' reading at the next start."""

WORTH_SAVING = 1_000
"""Entries; fewer are read in no time."""
LOOK_EVERY_S = 0.5
"""How often it is looked whether there is something to save."""

SEEK_S = 20.0
"""A search that takes longer is given up: others wait for it."""

KEPT_ROUNDS = 16
"""Rounds kept as they were read: a scrubber asks for the same one again and again."""

Connect = Callable[[], AbstractAsyncContextManager[Log]]


APART = 1_000
"""Entries between two that are not read together: what lies between is read for nothing."""


def near(sequences: Sequence[int]) -> list[tuple[int, int]]:
    """From which to which entry to read for some, in order, that may stand far apart."""
    found: list[tuple[int, int]] = []
    for one in sequences:
        if found and one - found[-1][1] <= APART:
            found[-1] = (found[-1][0], one)
        else:
            found.append((one, one))
    return found


class Archive:
    """See the module."""

    def __init__(self, cell: str, data: Path, connect: Connect) -> None:
        """`data`: the folder with the fleet's snapshots, where there is one."""
        self.cell = cell
        self.data = data
        self.types = event_types()
        self.history = History(cell, self.types, self.accepted())
        self._file = data / "console" / "history"
        self._saved = 0
        """Behind which entry what is kept was saved."""
        self._from_file = False
        self._begun = False
        self.reached = False
        """Whether it has been read to where its end was when this process began."""
        self.trouble = ""
        """Why the log cannot be followed now; empty: it can."""
        self._connect = connect
        self._stack = AsyncExitStack()
        self._log: Log | None = None
        self._opening = asyncio.Lock()
        self._seeking = asyncio.Lock()
        self._read: OrderedDict[str, tuple[int, Playthrough]] = OrderedDict()

    def accepted(self) -> Mapping[int, bytes]:
        """Entries that an operator lets pass (see LogReader)."""
        return read_accepted(self.data).entries

    async def log(self) -> Log:
        """The log. Raises NoLog, LogUnavailable."""
        async with self._opening:
            if self._log is None:
                try:
                    self._log = await self._stack.enter_async_context(self._connect())
                except OSError as error:
                    raise LogUnavailable(str(error)) from error
            return self._log

    async def last_sequence(self) -> int:
        """The log's last entry. Raises NoLog, LogUnavailable."""
        return (await (await self.log()).info(wait_s=3.0)).last_sequence

    # ---- rounds --------------------------------------------------------------------------------

    async def playthrough(self, round_id: str) -> Playthrough:
        """A round with all its events, read from as near before it as there is a mark.
        Raises RoundUnknown, LogBroken, LogUnavailable, NoLog."""
        note = self.history.rounds.get(round_id)
        kept = self._read.get(round_id)
        if kept is not None and note is not None and note.last == kept[0]:
            self._read.move_to_end(round_id)
            return kept[1]
        found = await self._playthrough(round_id, note)
        if note is not None and note.last and self.history.rounds.get(round_id) is note:
            self._read[round_id] = (note.last, found)
            while len(self._read) > KEPT_ROUNDS:
                self._read.popitem(last=False)
        return found

    async def _playthrough(self, round_id: str, note: RoundNote | None) -> Playthrough:
        log = await self.log()
        accepted = self.accepted()
        until = note.last if note is not None else 0
        mark = self.history.mark_of(round_id)
        if mark is None:
            return await playthrough(log, round_id, accepted, until=until)
        until = until or await self.last_sequence()
        reader = LogReader(self.cell, self.types, deepcopy(mark.reader), accepted)
        events: list[Event] = []
        async for entries in entries_until(log, reader, until):
            events += (event for entry in entries for event in entry.events)
            await asyncio.sleep(0)
        return playthrough_from(events, round_id, mark.ledger, self.history.opened_at(mark))

    async def entry(self, sequence: int) -> LogMessage:
        """One entry as it is stored. Raises PositionUnknown, LogUnavailable, NoLog."""
        last = await self.last_sequence()
        if not 0 < sequence <= last:
            raise PositionUnknown(f"the log has entries 1 to {last}, and no entry {sequence}")
        messages = (await self.log()).read(sequence - 1)
        try:
            async for batch in messages:
                return batch[0]
        finally:
            await messages.aclose()  # type: ignore[attr-defined]  # an async generator, by its contract
        raise LogUnavailable("the log ended before its end")

    async def entries(self, sequences: Collection[int]) -> dict[int, LogMessage]:
        """Some entries; those that stand near one another are read together. Raises LogUnavailable,
        NoLog."""
        log = await self.log()
        found: dict[int, LogMessage] = {}
        for first, last in near(sorted(sequences)):
            messages = log.read(first - 1)
            try:
                async for batch in messages:
                    found |= {one.sequence: one for one in batch if one.sequence in sequences}
                    if batch[-1].sequence >= last:
                        break
            finally:
                await messages.aclose()  # type: ignore[attr-defined]  # an async generator, by its contract
        if len(found) < len(set(sequences)):
            raise LogUnavailable("the log ended before its end")
        return found

    async def find(self, text: str, kinds: Sequence[str], enough: int, after: int = 0) -> Found:
        """The newest events that concern an id; one search at a time. `after`: an entry behind
        which they all stand. Raises TimeoutError, LogUnavailable, NoLog."""
        async with asyncio.timeout(SEEK_S), self._seeking:
            log = await self.log()
            seeking = Seeking(log, self.types, self.history, self.data, enough)
            return await seeking.find(text, kinds, after)

    # ---- following -----------------------------------------------------------------------------

    async def follow(self) -> None:
        """Follow the log until cancelled. A log that is broken is said to be so, and left."""
        logger = telemetry.logger()
        while True:
            try:
                log = await self.log()
                if not self._begun:
                    await self._begin()
                    self._begun = True
                elif not await self._is_of_this_log():
                    self._start_anew()
                self.trouble = ""
                await self._follow(log)
            except (LogUnavailable, NoLog) as error:
                self.trouble = str(error)
                await self._let_go()
                await asyncio.sleep(AGAIN_S)
            except LogBroken as error:
                if self._saved and self._from_file:
                    # What was kept may be of another log: begin anew, and see.
                    self._start_anew()
                    continue
                self.trouble = str(error)
                logger.error(  # noqa: TRY400 - it says where and why
                    CONSOLE_FOLLOWS, problem=str(error)
                )
                return

    async def _begin(self) -> None:
        """Take over what an earlier process kept, if it is of this log."""
        found = await asyncio.to_thread(load, self._file, self.cell)
        if found is None:
            return
        kept, entry = found
        sequence = kept.reader.sequence
        try:
            same = entry_digest(await self.entry(sequence)) == entry
        except PositionUnknown:
            same = False
        if not same:
            forget(self._file)
            return
        self.history = History(self.cell, self.types, self.accepted(), kept)
        self._saved, self._from_file = sequence, True

    async def _is_of_this_log(self) -> bool:
        """Whether the log still has what was read last: while it was away it may have been restored
        from a copy, and be shorter or another."""
        last = self.history.last
        if last is None:
            return self.history.sequence <= await self.last_sequence()
        try:
            return entry_digest(await self.entry(last.sequence)) == entry_digest(last)
        except PositionUnknown:
            return False

    def _start_anew(self) -> None:
        """Forget all that was read: who acts in a round is not known before it is read again."""
        forget(self._file)
        self.reached = False
        self._read.clear()
        self.history = History(self.cell, self.types, self.accepted())
        self._saved, self._from_file = 0, False

    async def _follow(self, log: Log) -> None:
        """Read on, and keep it now and then: first once the log's end is reached."""
        history = self.history
        last = (await log.info(wait_s=3.0)).last_sequence
        following = asyncio.ensure_future(history.follow(log))
        try:
            while not following.done():
                await asyncio.wait([following], timeout=LOOK_EVERY_S)
                self.reached = self.reached or history.sequence >= last
                new = history.sequence - self._saved
                at_end = self._saved < last <= history.sequence
                if new >= SAVE_EVERY or (at_end and new >= WORTH_SAVING):
                    self.save()
            following.result()
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    def save(self) -> None:
        """Keep what is known for the next start. Where that fails, only that start is longer."""
        history = self.history
        if history.last is None:
            return
        try:
            save(self._file, self.cell, history.kept, history.last)
        except OSError as error:
            telemetry.logger().warning(CONSOLE_FOLLOWS, problem=f"not saved: {error}")
        self._saved = history.sequence

    async def _let_go(self) -> None:
        async with self._opening:
            self._log = None
            stack, self._stack = self._stack, AsyncExitStack()
        await stack.aclose()

    async def close(self) -> None:
        """Let go of the log."""
        if self._begun and self.history.sequence - self._saved >= WORTH_SAVING:
            self.save()
        await self._let_go()
