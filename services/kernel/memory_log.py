"""A cell's log in memory: deterministic, seeded, and faulty on demand.

`MemoryStore` is the server, `MemoryLog` a client's connection to it; any number of clients share a
store. Only the event loop's own clock and primitives are used, so that under a loop with virtual
time a run is repeated exactly from its seed. Faults are drawn from the client's generator as
`Faults` says; what no chance should decide (a cut-off, a lost tail, a hole) is a method, a full log
the store's `bytes_max`. Every fault is counted where it happens, in `MemoryStore.injected`.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass

from services.kernel.fence import fence_headers, header_bytes
from services.kernel.log import (
    MAX_PAYLOAD_BYTES,
    AppendRefused,
    AppendUnknown,
    FenceLost,
    LogFull,
    LogInfo,
    LogMessage,
    LogUnavailable,
)

RECORD_BYTES = 34
"""What the store adds to an entry, roughly as JetStream counts it; only `bytes_used` shows it."""

FAULT_KINDS = (
    "lost_reply",
    "ghost",
    "ghost_landed",
    "lost",
    "busy",
    "reply_delay",
    "delivery_delay",
    "duplicate",
    "cut_off",
    "lost_tail",
    "hole",
    "full",
)
"""Every kind counted in `MemoryStore.injected`. `ghost_landed` are the ghosts that were stored; the
others' fence no longer fitted, or the log was full. `busy` is another append being stored just
then."""


@dataclass(frozen=True, slots=True)
class Faults:
    """How often each fault strikes (0 to 1, per call unless it says otherwise) and how hard."""

    lost_reply: float = 0.0
    """An append is stored and its acknowledgement lost."""
    ghost: float = 0.0
    """An append is unknown, and is stored only after the caller has been told so."""
    ghost_delay_s: float = 0.5
    """The longest time between telling the caller and the ghost's landing, seconds."""
    lost: float = 0.0
    """An append never reaches the store."""
    busy: float = 0.0
    """A fenced append is refused as if another one were being stored."""
    reply_delay: float = 0.0
    """An answer takes up to `reply_delay_s` longer."""
    reply_delay_s: float = 0.05
    delivery_delay: float = 0.0
    """A batch reaches a reader up to `delivery_delay_s` later, per batch."""
    delivery_delay_s: float = 0.05
    duplicate: float = 0.0
    """A batch is preceded by entries the reader has already had, per batch; it must drop them."""
    cut_off: float = 0.0
    """The client is cut off for up to `cut_off_s`."""
    cut_off_s: float = 1.0
    latency_s: float = 0.0005
    """What every call costs without any fault, seconds each way."""


NO_FAULTS = Faults()


class MemoryStore:
    """The server of a cell's log in memory."""

    def __init__(
        self, cell: str, server_time_us: Callable[[], int], *, bytes_max: int = -1
    ) -> None:
        """`server_time_us` is the server's clock (microseconds since 1970 UTC); `bytes_max` the
        log's limit, -1 for none.
        """
        self.cell = cell
        self.server_time_us = server_time_us
        self.bytes_max = bytes_max
        self.bytes_used = 0
        self.injected: Counter[str] = Counter(dict.fromkeys(FAULT_KINDS, 0))
        self._entries: list[LogMessage | None] = []
        self._last_of_subject: dict[str, int] = {}
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def last_sequence(self) -> int:
        """The last entry's sequence, 0 when the log is empty."""
        return len(self._entries)

    def at(self, sequence: int) -> LogMessage | None:
        """The entry at a sequence that is at most `last_sequence`; None where there is a hole."""
        return self._entries[sequence - 1]

    def entries(self) -> list[LogMessage]:
        """Everything stored, in order, without holes."""
        return [entry for entry in self._entries if entry is not None]

    def store(self, subject: str, payload: bytes, expected: int | None) -> int:
        """Store an entry at once; its sequence. Raises FenceLost and LogFull."""
        last = self._last_of_subject.get(subject, 0)
        if expected is not None and expected != last:
            raise FenceLost(last)
        headers = fence_headers(expected)
        size = _stored_bytes(subject, headers, payload)
        if 0 <= self.bytes_max < self.bytes_used + size:
            self.injected["full"] += 1
            raise LogFull(f"the log holds {self.bytes_used} of at most {self.bytes_max} bytes")
        sequence = len(self._entries) + 1
        self._entries.append(LogMessage(sequence, subject, headers, payload))
        self._last_of_subject[subject] = sequence
        self.bytes_used += size
        self._wake()
        return sequence

    def cut_back(self, last_sequence: int) -> None:
        """Lose the tail behind a sequence, as a server did that restarted on a damaged store."""
        if last_sequence >= len(self._entries):
            return
        self.injected["lost_tail"] += 1
        del self._entries[last_sequence:]
        self._last_of_subject.clear()
        self.bytes_used = 0
        for entry in self.entries():
            self._last_of_subject[entry.subject] = entry.sequence
            self.bytes_used += _stored_bytes(entry.subject, entry.headers, entry.payload)
        self._wake()

    def punch(self, sequence: int) -> None:
        """Make a hole: the entry is gone though later ones stand."""
        self.injected["hole"] += 1
        self._entries[sequence - 1] = None
        self._wake()

    async def changed(self) -> None:
        """Wait for the next change of what is stored."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        await future

    def wake(self) -> None:
        """Let every reader look again."""
        self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)


class MemoryLog:
    """A client of a `MemoryStore`; it is a `Log`. It must be used inside one running event loop."""

    def __init__(
        self, store: MemoryStore, faults: Faults = NO_FAULTS, rng: random.Random | None = None
    ) -> None:
        """`rng` decides where faults strike; it may be left out only where there are none."""
        if rng is None:
            if faults != NO_FAULTS:
                raise ValueError("faults need a seeded generator")
            rng = random.Random(0)  # noqa: S311 -- never drawn from
        self.store = store
        self.faults = faults
        self._rng = rng
        self._cut_off_until = 0.0
        self._closed = False

    @property
    def cell(self) -> str:
        """The cell's name."""
        return self.store.cell

    def cut_off(self, seconds: float) -> None:
        """Keep this client from reaching the server for a while, from now on."""
        self.store.injected["cut_off"] += 1
        until = asyncio.get_running_loop().time() + seconds
        self._cut_off_until = max(self._cut_off_until, until)

    async def append(
        self, subject: str, payload: bytes, *, expected: int | None, wait_s: float
    ) -> int:
        """See `Log.append`."""
        size = len(payload) + header_bytes(fence_headers(expected))
        if size > MAX_PAYLOAD_BYTES:
            raise AppendRefused(f"an entry of {size} bytes is above {MAX_PAYLOAD_BYTES}")
        faults, injected = self.faults, self.store.injected
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_s
        await asyncio.sleep(min(faults.latency_s, wait_s))
        if self._closed:
            raise AppendUnknown("this client of the log was closed")
        self._maybe_cut_off()
        if self._is_cut_off():
            await self._unknown(deadline)
        if self._strikes(faults.lost):
            injected["lost"] += 1
            await self._unknown(deadline)
        if self._strikes(faults.ghost):
            injected["ghost"] += 1
            landing = deadline + self._rng.uniform(0.0, faults.ghost_delay_s)
            loop.call_at(landing, self._land, subject, payload, expected)
            await self._unknown(deadline)
        if expected is not None and self._strikes(faults.busy):
            injected["busy"] += 1
            await self._answer_delay(deadline)
            raise FenceLost(None)
        outcome: int | FenceLost | LogFull
        try:
            outcome = self.store.store(subject, payload, expected)
        except (FenceLost, LogFull) as refusal:
            outcome = refusal
        if self._strikes(faults.lost_reply):
            injected["lost_reply"] += 1
            await self._unknown(deadline)
        await self._answer_delay(deadline)
        if not isinstance(outcome, int):
            raise outcome
        return outcome

    async def read(self, after: int) -> AsyncGenerator[Sequence[LogMessage], None]:
        """See `Log.read`."""
        last = after
        seen: LogMessage | None = None
        while True:
            while self._is_cut_off():  # noqa: ASYNC110 -- it ends at a time, on no event
                await asyncio.sleep(self._cut_off_until - asyncio.get_running_loop().time())
            self._check_open()
            self._check_same(last, seen)
            if self.store.last_sequence <= last:
                await self.store.changed()
                continue
            await asyncio.sleep(self.faults.latency_s)
            if self._strikes(self.faults.delivery_delay):
                self.store.injected["delivery_delay"] += 1
                await asyncio.sleep(self._rng.uniform(0.0, self.faults.delivery_delay_s))
            self._maybe_cut_off()
            if self._is_cut_off():
                continue
            self._check_open()
            self._check_same(last, seen)
            batch = self._new_of(self._arriving(last), last)
            if batch:
                seen = batch[-1]
                last = seen.sequence
                yield batch

    async def info(self, *, wait_s: float) -> LogInfo:
        """See `Log.info`."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_s
        await asyncio.sleep(min(self.faults.latency_s, wait_s))
        self._check_open()
        self._maybe_cut_off()
        if self._is_cut_off():
            await asyncio.sleep(max(0.0, deadline - loop.time()))
            raise LogUnavailable("the log's server does not answer")
        answer = LogInfo(
            first_sequence=1,
            last_sequence=self.store.last_sequence,
            server_time_us=self.store.server_time_us(),
            bytes_used=self.store.bytes_used,
            bytes_max=self.store.bytes_max,
        )
        if not await self._answer_in_time(deadline):
            raise LogUnavailable("the log's server does not answer")
        return answer

    async def close(self) -> None:
        """See `Log.close`. Readers raise LogUnavailable."""
        self._closed = True
        self.store.wake()

    def _strikes(self, probability: float) -> bool:
        return probability > 0.0 and self._rng.random() < probability

    def _maybe_cut_off(self) -> None:
        if self._strikes(self.faults.cut_off):
            self.cut_off(self._rng.uniform(0.0, self.faults.cut_off_s))

    def _is_cut_off(self) -> bool:
        return asyncio.get_running_loop().time() < self._cut_off_until

    def _check_open(self) -> None:
        if self._closed:
            raise LogUnavailable("this client of the log was closed")

    async def _unknown(self, deadline: float) -> None:
        await asyncio.sleep(max(0.0, deadline - asyncio.get_running_loop().time()))
        raise AppendUnknown("no answer from the log's server in time")

    async def _answer_in_time(self, deadline: float) -> bool:
        delay = self.faults.latency_s
        if self._strikes(self.faults.reply_delay):
            self.store.injected["reply_delay"] += 1
            delay += self._rng.uniform(0.0, self.faults.reply_delay_s)
        left = max(0.0, deadline - asyncio.get_running_loop().time())
        await asyncio.sleep(min(delay, left))
        return delay <= left

    async def _answer_delay(self, deadline: float) -> None:
        if not await self._answer_in_time(deadline):
            raise AppendUnknown("no answer from the log's server in time")

    def _land(self, subject: str, payload: bytes, expected: int | None) -> None:
        try:
            self.store.store(subject, payload, expected)
        except (FenceLost, LogFull):
            return
        self.store.injected["ghost_landed"] += 1

    def _arriving(self, last: int) -> list[LogMessage | None]:
        """What the network brings, sometimes with entries from before `last` again in front."""
        start = last
        if last > 0 and self._strikes(self.faults.duplicate):
            self.store.injected["duplicate"] += 1
            start = max(0, last - self._rng.randint(1, 3))
        sequences = range(start + 1, self.store.last_sequence + 1)
        return [self.store.at(sequence) for sequence in sequences]

    def _new_of(self, arrived: Sequence[LogMessage | None], last: int) -> list[LogMessage]:
        """The unbroken run behind `last`. Raises LogUnavailable where it does not begin there."""
        batch: list[LogMessage] = []
        for entry in arrived:
            if entry is None or entry.sequence <= last:
                continue
            if entry.sequence != last + 1:
                break
            batch.append(entry)
            last = entry.sequence
        if not batch and self.store.last_sequence > last:
            raise LogUnavailable(f"sequence {last + 1} is missing from the log: a hole")
        return batch

    def _check_same(self, last: int, seen: LogMessage | None) -> None:
        """What was read must still stand. Raises LogUnavailable where the log was rolled back."""
        if last > self.store.last_sequence:
            raise LogUnavailable(
                f"the log ends at sequence {self.store.last_sequence}, {last} was read: rolled back"
            )
        if seen is not None and self.store.at(last) not in (None, seen):
            raise LogUnavailable(f"sequence {last} is another entry than was read: rolled back")


def _stored_bytes(subject: str, headers: Mapping[str, str], payload: bytes) -> int:
    return RECORD_BYTES + len(subject) + header_bytes(headers) + len(payload)
