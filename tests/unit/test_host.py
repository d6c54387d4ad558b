"""What a host does around its process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from services.kernel import host
from services.kernel.preflight import Preflight
from services.kernel.strength import Strength
from tests.unit.projecting import WAIT_S

UNKNOWN = "no server of the log tells how it is configured"
BEHIND = "the replica on n2 is behind"


class Alarms(list[tuple[str, dict[str, Any]]]):
    """Remembers alarms."""

    def __call__(self, kind: str, facts: Any) -> None:
        self.append((kind, facts))

    @property
    def kinds(self) -> list[str]:
        return [kind for kind, _ in self]


def strength(alarms: Alarms, *found: Preflight | Exception) -> Strength:
    """Finds one after the other."""
    answers: Iterator[Preflight | Exception] = iter(found)

    async def ask() -> Preflight:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return Strength(ask, alarms)


def weak(*problems: str) -> Preflight:
    return Preflight(problems, ())


def warned(*warnings: str) -> Preflight:
    return Preflight((), warnings)


# ---- how strong the log is -----------------------------------------------------------------------


async def test_a_log_that_was_weak_for_a_moment_is_looked_at_again_soon() -> None:
    process: Any = SimpleNamespace(weak=[UNKNOWN])
    strong_again = asyncio.Event()

    async def ask() -> Preflight:
        strong_again.set()
        return weak()

    keeping = asyncio.create_task(host._keep_preflight(process, Strength(ask, Alarms())))
    try:
        async with asyncio.timeout(host.PREFLIGHT_EVERY_S):
            await strong_again.wait()
            await asyncio.sleep(0)
        assert process.weak == []
    finally:
        keeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await keeping


@pytest.mark.parametrize("error", [ValueError("no JSON"), OSError("refused"), KeyError("config")])
async def test_a_preflight_that_cannot_tell_is_a_weak_log(error: Exception) -> None:
    alarms = Alarms()
    looking = strength(alarms, weak(), error, error, weak())
    assert await looking.look() == []
    (problem,) = await looking.look()
    assert problem.startswith(f"preflight failed: {type(error).__name__}")
    assert await looking.look() == [problem]
    assert alarms == [("log_weak", {"found": [problem]})]
    assert await looking.look() == []


async def test_what_preflight_finds_counts_at_once_and_is_an_alarm_when_it_stands() -> None:
    """A server that is started again is away for a moment: no bets meanwhile, and no alarm."""
    alarms = Alarms()
    looking = strength(alarms, weak("a"), weak(), weak("a"), weak("a"), weak("a", "b"), weak("b"))
    assert await looking.look() == ["a"]
    assert await looking.look() == []
    assert await looking.look() == ["a"]
    assert alarms == []
    assert await looking.look() == ["a"]
    assert alarms == [("log_weak", {"found": ["a"]})]
    assert await looking.look() == ["a", "b"]
    assert len(alarms) == 1
    assert await looking.look() == ["b"]
    assert alarms[1:] == [("log_weak", {"found": ["b"]})]


async def test_a_warning_that_stands_is_an_alarm_once_and_keeps_nobody_from_betting() -> None:
    alarms = Alarms()
    both = warned(BEHIND, UNKNOWN)
    looking = strength(alarms, warned(BEHIND), warned(BEHIND), both, both, warned(), warned(BEHIND))
    assert await looking.look() == []
    assert alarms == [], "a replica may be behind for a moment"
    assert await looking.look() == []
    assert alarms == [("log_strained", {"found": [BEHIND]})]
    await looking.look()
    assert len(alarms) == 1
    await looking.look()
    assert alarms[1:] == [("log_strained", {"found": [UNKNOWN]})]
    await looking.look()
    await looking.look()
    assert len(alarms) == 2


# ---- background work -----------------------------------------------------------------------------


async def test_background_work_that_fails_is_told_and_begun_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(host, "BACKGROUND_AGAIN_S", 0.0)
    alarms, begun = Alarms(), 0
    well = asyncio.Event()

    async def work(_process: Any) -> None:
        nonlocal begun
        begun += 1
        if begun == 2:
            return  # work that ends is no failure, but nobody meant it to end either
        if begun < 4:
            raise OSError(f"disk {begun}")
        well.set()
        await asyncio.Event().wait()

    running = asyncio.create_task(host._run(work, SimpleNamespace(), alarms))  # type: ignore[arg-type]  # it is only handed on
    try:
        async with asyncio.timeout(WAIT_S):
            await well.wait()
        assert alarms == [
            ("background_failed", {"why": "OSError: disk 1"}),
            ("background_failed", {"why": "OSError: disk 3"}),
        ]
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


async def test_a_measure_that_fails_is_told_and_tried_again_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(host, "BACKGROUND_AGAIN_S", 0.0)
    monkeypatch.setattr(host, "MEASURE_EVERY_S", 0.0)
    alarms, tried, others = Alarms(), 0, 0
    well = asyncio.Event()

    def broken(_now: float) -> None:
        nonlocal tried
        tried += 1
        if tried < 3:
            raise KeyError("tie")

    def other(_now: float) -> None:
        nonlocal others
        others += 1
        if others == 3:
            well.set()

    running = asyncio.create_task(host._keep_measuring([broken, other], alarms))
    try:
        async with asyncio.timeout(WAIT_S):
            await well.wait()
        assert tried == 3
        assert alarms == [("background_failed", {"why": "KeyError: 'tie'"})] * 2
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
