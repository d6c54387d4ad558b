"""How many calls a partner's wallet gets at once, and when it is left alone: each partner by
itself, so that one that is slow or dead hurts only its own accounts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

DEFAULT_CONCURRENCY = 64
"""Calls at once where the profile says nothing: at 20 ms a call 3,000 a second."""
URGENT_SHARE = 4
"""All but a quarter of the calls are for debits, which have two seconds; what is due to the partner
has time, but is never starved."""
FAILURES = 5
"""So many calls in a row without a usable answer: the wallet is left alone for a moment."""
OPEN_S = (0.25, 5.0)
"""For how long, at first and at most; it doubles each time that the one call of a trial fails."""


class Breaker:
    """Whether a wallet is called. `clock`: monotonic seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failures = 0
        self._open_s = OPEN_S[0]
        self._opens_until: float | None = None
        self._trial = False

    @property
    def is_open(self) -> bool:
        """Whether calls are held back."""
        return self._opens_until is not None

    async def admitted(self) -> bool:
        """Wait until a call may be made; whether it is the one that tries."""
        while self._opens_until is not None:
            wait_s = self._opens_until - self._clock()
            if wait_s <= 0 and not self._trial:
                self._trial = True
                return True
            await asyncio.sleep(max(wait_s, OPEN_S[0] / 4))
        return False

    def answered(self) -> None:
        """The wallet answers."""
        self._failures = 0
        self._trial = False
        self._opens_until = None
        self._open_s = OPEN_S[0]

    def failed(self, trying: bool) -> None:
        """There was no usable answer."""
        self._failures += 1
        if trying:
            self._trial = False
            self._open_s = min(2 * self._open_s, OPEN_S[1])
        if trying or (self._failures >= FAILURES and self._opens_until is None):
            self._opens_until = self._clock() + self._open_s

    def given_up(self, trying: bool) -> None:
        """A call that was admitted was not made."""
        if trying:
            self._trial = False


class Lanes:
    """The calls to one partner's wallet."""

    def __init__(self, concurrency: int, clock: Callable[[], float]) -> None:
        self.concurrency = concurrency
        self.breaker = Breaker(clock)
        due = max(1, concurrency // URGENT_SHARE)
        self._due = asyncio.Semaphore(due)
        self._urgent = asyncio.Semaphore(max(1, concurrency - due))

    @asynccontextmanager
    async def place(self, *, urgent: bool) -> AsyncIterator[bool]:
        """A place for one call; whether it is the breaker's trial."""
        async with self._urgent if urgent else self._due:
            trying = await self.breaker.admitted()
            try:
                yield trying
            finally:
                self.breaker.given_up(trying)
