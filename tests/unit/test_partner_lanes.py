"""A partner's lanes and breaker: how many calls at once, and when a wallet is left alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from services.simulator.virtual_time import run_virtual
from services.wallet.partner_lanes import FAILURES, OPEN_S, Breaker, Lanes


def now() -> float:
    return asyncio.get_running_loop().time()


def played(story: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await story()

    run_virtual(main())


def opened(breaker: Breaker) -> bool:
    return breaker.is_open


async def failing(breaker: Breaker, times: int = FAILURES) -> None:
    for _ in range(times):
        breaker.failed(await breaker.admitted())


def test_a_wallet_that_fails_again_and_again_is_left_alone_for_a_moment() -> None:
    async def story() -> None:
        breaker = Breaker(now)
        await failing(breaker, FAILURES - 1)
        assert not opened(breaker)
        breaker.answered()
        await failing(breaker, FAILURES)
        assert opened(breaker)
        began = now()
        assert await breaker.admitted(), "the one that tries"
        assert now() - began >= OPEN_S[0]
        breaker.answered()
        assert not opened(breaker)
        assert not await breaker.admitted()

    played(story)


def test_only_one_call_tries_and_each_failed_trial_doubles_the_pause() -> None:
    async def story() -> None:
        breaker = Breaker(now)
        await failing(breaker)
        waiting = [asyncio.create_task(breaker.admitted()) for _ in range(3)]
        await asyncio.sleep(1.0)
        assert sum(task.done() for task in waiting) == 1
        breaker.failed(trying=True)
        began = now()
        await asyncio.sleep(2 * OPEN_S[0] + 0.2)
        assert sum(task.done() for task in waiting) == 2
        breaker.failed(trying=True)
        for _ in range(10):
            await asyncio.sleep(OPEN_S[1] + 1)
            breaker.failed(trying=True)
        assert now() - began > 10 * OPEN_S[1]
        breaker.answered()
        assert await asyncio.gather(*waiting)

    played(story)


def test_a_trial_that_is_not_made_lets_another_one_try() -> None:
    async def story() -> None:
        lanes = Lanes(4, now)
        await failing(lanes.breaker)
        async with lanes.place(urgent=True) as trying:
            assert trying
        async with lanes.place(urgent=False) as trying:
            assert trying, "the first one was admitted and not called"

    played(story)


def test_what_is_due_never_takes_the_places_of_stakes() -> None:
    async def story() -> None:
        lanes = Lanes(8, now)
        running = {True: 0, False: 0}
        most = dict(running)

        async def call(urgent: bool) -> None:
            async with lanes.place(urgent=urgent):
                running[urgent] += 1
                most[urgent] = max(most[urgent], running[urgent])
                await asyncio.sleep(1.0)
                running[urgent] -= 1

        calls = [call(False) for _ in range(20)] + [call(True) for _ in range(20)]
        await asyncio.gather(*calls)
        assert most == {True: 6, False: 2}
        assert (await _alone()) == {True, False}

    async def _alone() -> set[bool]:
        """At a wallet that takes one call at a time both kinds are called all the same."""
        lanes = Lanes(1, now)
        called: set[bool] = set()
        for urgent in (True, False):
            async with lanes.place(urgent=urgent):
                called.add(urgent)
        return called

    played(story)
