"""The memory log's faults: each strikes as described, is counted, and repeats from its seed."""

from __future__ import annotations

import asyncio
import random
import selectors
from collections.abc import Coroutine
from typing import TypeVar

import pytest

from services.kernel.log import AppendUnknown, FenceLost, LogFull, LogUnavailable
from services.kernel.memory_log import FAULT_KINDS, Faults, MemoryLog, MemoryStore

T = TypeVar("T")
OUT = "sabot.c.alpha.out"
IN = "sabot.c.alpha.in"


class _Skipping(selectors.SelectSelector):
    """Waits for nothing: time jumps to where the next thing happens."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("everything waits, and nothing will happen")
        self.now += max(0.0, timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose time is not the world's."""

    def __init__(self) -> None:
        self._skipping = _Skipping()
        super().__init__(self._skipping)

    def time(self) -> float:
        return self._skipping.now


def run(main: Coroutine[None, None, T]) -> T:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


def now() -> float:
    return asyncio.get_running_loop().time()


def make(faults: Faults, seed: int = 1, *, bytes_max: int = -1) -> tuple[MemoryStore, MemoryLog]:
    store = MemoryStore("c", lambda: int(now() * 1e6), bytes_max=bytes_max)
    return store, MemoryLog(store, faults, random.Random(seed))


def payloads(store: MemoryStore) -> list[bytes]:
    return [entry.payload for entry in store.entries()]


def test_a_lost_reply_is_unknown_after_the_whole_wait_and_stored() -> None:
    async def main() -> None:
        store, log = make(Faults(lost_reply=1.0))
        with pytest.raises(AppendUnknown):
            await log.append(OUT, b"x", expected=0, wait_s=2.0)
        assert now() == pytest.approx(2.0)
        assert payloads(store) == [b"x"]
        assert store.injected["lost_reply"] == 1

    run(main())


def test_a_lost_append_is_unknown_and_never_stored() -> None:
    async def main() -> None:
        store, log = make(Faults(lost=1.0))
        with pytest.raises(AppendUnknown):
            await log.append(OUT, b"x", expected=0, wait_s=2.0)
        await asyncio.sleep(100)
        assert payloads(store) == []
        assert store.injected["lost"] == 1

    run(main())


def test_a_ghost_is_not_there_when_one_looks_and_lands_later() -> None:
    async def main() -> None:
        store, log = make(Faults(ghost=1.0, ghost_delay_s=1.0))
        with pytest.raises(AppendUnknown):
            await log.append(IN, b"ghost", expected=None, wait_s=0.5)
        assert (await log.info(wait_s=1.0)).last_sequence == 0
        await asyncio.sleep(1.0)
        assert payloads(store) == [b"ghost"]
        assert (store.injected["ghost"], store.injected["ghost_landed"]) == (1, 1)

    run(main())


def test_a_ghost_whose_fence_no_longer_fits_is_dropped_as_it_lands() -> None:
    async def main() -> None:
        store, log = make(Faults(ghost=1.0))
        with pytest.raises(AppendUnknown):
            await log.append(OUT, b"ghost", expected=0, wait_s=0.5)
        log.faults = Faults()
        assert await log.append(OUT, b"resent", expected=0, wait_s=0.5) == 1
        await asyncio.sleep(1.0)
        assert payloads(store) == [b"resent"]
        assert (store.injected["ghost"], store.injected["ghost_landed"]) == (1, 0)

    run(main())


def test_busy_is_a_lost_fence_without_a_sequence() -> None:
    async def main() -> None:
        store, log = make(Faults(busy=1.0))
        with pytest.raises(FenceLost) as lost:
            await log.append(OUT, b"x", expected=0, wait_s=1.0)
        assert lost.value.last_sequence is None
        assert payloads(store) == []
        assert await log.append(IN, b"unfenced", expected=None, wait_s=1.0) == 1
        assert store.injected["busy"] == 1

    run(main())


def test_a_delayed_reply_comes_late_or_too_late() -> None:
    async def main() -> None:
        store, log = make(Faults(reply_delay=1.0, reply_delay_s=1.0))
        outcomes = []
        for _ in range(40):
            begun = now()
            try:
                await log.append(IN, b"x", expected=None, wait_s=0.5)
            except AppendUnknown:
                assert now() - begun == pytest.approx(0.5)
                outcomes.append("unknown")
            else:
                assert now() - begun <= 0.5
                outcomes.append("known")
        assert set(outcomes) == {"unknown", "known"}
        assert store.last_sequence == 40
        assert store.injected["reply_delay"] == 40

    run(main())


def test_a_cut_off_client_gets_no_answers_and_its_reader_goes_on_afterwards() -> None:
    async def main() -> None:
        store, log = make(Faults())
        other = MemoryLog(store)
        batches = log.read(0)
        await other.append(IN, b"1", expected=None, wait_s=1.0)
        assert [entry.payload for entry in await anext(batches)] == [b"1"]
        log.cut_off(10.0)
        await other.append(IN, b"2", expected=None, wait_s=1.0)
        with pytest.raises(LogUnavailable):
            await log.info(wait_s=1.0)
        with pytest.raises(AppendUnknown):
            await log.append(IN, b"3", expected=None, wait_s=1.0)
        assert [entry.payload for entry in await anext(batches)] == [b"2"]
        assert now() >= 10.0
        await batches.aclose()
        assert payloads(store) == [b"1", b"2"]
        assert store.injected["cut_off"] == 1

    run(main())


def test_a_lost_tail_is_named_to_readers_and_writers() -> None:
    async def main() -> None:
        store, log = make(Faults())
        batches = log.read(0)
        for number in range(1, 6):
            await log.append(OUT, b"%d" % number, expected=number - 1, wait_s=1.0)
            await anext(batches)
        store.cut_back(3)
        with pytest.raises(FenceLost) as lost:
            await log.append(OUT, b"6", expected=5, wait_s=1.0)
        assert lost.value.last_sequence == 3
        with pytest.raises(LogUnavailable, match="ends at sequence 3, 5 was read"):
            await anext(batches)
        other = MemoryLog(store).read(3)
        assert await log.append(OUT, b"other 4", expected=3, wait_s=1.0) == 4
        assert [entry.payload for entry in await anext(other)] == [b"other 4"]
        await other.aclose()
        assert store.injected["lost_tail"] == 1

    run(main())


def test_a_tail_that_was_lost_and_replaced_is_noticed() -> None:
    async def main() -> None:
        store, log = make(Faults())
        for number in range(1, 4):
            await log.append(IN, b"%d" % number, expected=None, wait_s=1.0)
        batches = log.read(0)
        assert len(await anext(batches)) == 3
        store.cut_back(2)
        for number in range(3, 6):
            store.store(IN, b"other %d" % number, None)
        with pytest.raises(LogUnavailable, match="sequence 3 is another entry"):
            await anext(batches)

    run(main())


def test_a_hole_stops_the_reader_at_its_sequence() -> None:
    async def main() -> None:
        store, log = make(Faults())
        for number in range(1, 6):
            store.store(IN, b"%d" % number, None)
        store.punch(3)
        batches = log.read(0)
        assert [entry.sequence for entry in await anext(batches)] == [1, 2]
        with pytest.raises(LogUnavailable, match="sequence 3 is missing"):
            await anext(batches)
        assert store.injected["hole"] == 1

    run(main())


def test_a_full_log_refuses_until_it_is_given_more_room() -> None:
    async def main() -> None:
        store, log = make(Faults(), bytes_max=100)
        await log.append(IN, b"x" * 40, expected=None, wait_s=1.0)
        with pytest.raises(LogFull):
            await log.append(IN, b"x" * 40, expected=None, wait_s=1.0)
        assert store.injected["full"] == 1
        store.bytes_max = 1000
        assert await log.append(IN, b"x" * 40, expected=None, wait_s=1.0) == 2

    run(main())


def test_faults_need_a_seed() -> None:
    store = MemoryStore("c", lambda: 0)
    with pytest.raises(ValueError, match="seeded"):
        MemoryLog(store, Faults(lost=0.5))


EVERYTHING = Faults(
    lost_reply=0.1,
    ghost=0.1,
    lost=0.1,
    busy=0.1,
    reply_delay=0.3,
    delivery_delay=0.3,
    duplicate=0.3,
    cut_off=0.05,
)


async def _campaign(seed: int) -> tuple[MemoryStore, list[bytes], float]:
    """Three writers that resend until they know, and a reader, all under every fault."""
    rng = random.Random(seed)
    store = MemoryStore("c", lambda: int(now() * 1e6))

    async def write(name: str) -> None:
        log = MemoryLog(store, EVERYTHING, random.Random(rng.random()))
        subject = f"sabot.c.{name}.out"
        last = 0
        for number in range(30):
            payload = f"{name} {number}".encode()
            while True:
                try:
                    last = await log.append(subject, payload, expected=last, wait_s=0.2)
                    break
                except AppendUnknown:
                    continue
                except FenceLost as lost:
                    if lost.last_sequence is not None:
                        last = lost.last_sequence
                        break

    read: list[bytes] = []

    async def fold() -> None:
        async for batch in MemoryLog(store, EVERYTHING, random.Random(rng.random())).read(0):
            assert batch[0].sequence == len(read) + 1
            read.extend(entry.payload for entry in batch)
            if len(read) == 90:
                return

    await asyncio.gather(*(write(name) for name in ("alpha", "beta", "gamma")), fold())
    return store, read, now()


def test_under_every_fault_everything_stands_once_in_order_and_a_seed_repeats_the_run() -> None:
    injected = dict.fromkeys(FAULT_KINDS, 0)
    for seed in range(10):
        store, read, ended = run(_campaign(seed))
        assert read == payloads(store)
        for name in ("alpha", "beta", "gamma"):
            own = [payload for payload in read if payload.startswith(name.encode())]
            assert own == [f"{name} {number}".encode() for number in range(30)]
        for kind, count in store.injected.items():
            injected[kind] += count
        again, read_again, ended_again = run(_campaign(seed))
        assert (read_again, ended_again) == (read, ended)
        assert again.injected == store.injected
    struck = {kind for kind, count in injected.items() if count > 0}
    assert struck == set(FAULT_KINDS) - {"lost_tail", "hole", "full"}
