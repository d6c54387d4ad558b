"""Looks at every journal entry as it comes: its legs must sum to zero in each currency. The first
that does not is named, so that nobody has to search for where the books broke."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from services.kernel.event import Event, Position
from services.kernel.projections import ReadEvents
from services.wallet.domain.postings import MOVES, Posting, postings


class Unbalanced(NamedTuple):
    """A journal entry whose legs do not sum to zero."""

    position: Position
    event_type: str
    legs: tuple[Posting, ...]

    @property
    def told(self) -> list[str]:
        """The legs as people read them, minor units."""
        return [f"{leg.ledger_account} {leg.minor:+}" for leg in self.legs]


def unbalanced(event: Event) -> Unbalanced | None:
    """What is wrong with an event's journal entry; None where it is balanced or moves no money."""
    if event.is_input or type(event.body) not in MOVES:
        return None
    legs = postings(event.body, event.partner)
    if not any(sums_of(legs).values()):
        return None
    return Unbalanced(event.position, str(event.body.DESCRIPTOR.full_name), legs)


def sums_of(legs: Sequence[Posting]) -> dict[str, int]:
    """By currency, what legs come to."""
    sums: dict[str, int] = {}
    for leg in legs:
        sums[leg.currency_code] = sums.get(leg.currency_code, 0) + leg.minor
    return sums


class LedgerCheck:
    """See the module; a `services.kernel.host.CaughtUp`. What stands before a snapshot was looked
    at before that was taken, and its sums are looked at with the state."""

    def __init__(self) -> None:
        self.entries = 0
        """Journal entries looked at."""
        self.found = 0
        """How many of them were bad."""
        self.first: Unbalanced | None = None

    async def catch_up(self, read: ReadEvents) -> None:
        """Nothing is remembered over a start."""

    def close(self) -> None:
        """There is nothing to let go of."""

    def feed(self, sequence: int, head: bytes, events: list[Event]) -> None:
        """The next entry of the log."""
        del sequence, head
        for event in events:
            if type(event.body) not in MOVES:
                continue
            self.entries += 1
            bad = unbalanced(event)
            if bad is not None:
                self.found += 1
                self.first = self.first or bad
