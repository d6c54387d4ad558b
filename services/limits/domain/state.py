"""What limits keep: what is in force at each table, and what accounts have on in open rounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum


@dataclass(slots=True)
class StakeLimits:
    """What may be staked on one kind of bet, per account and round (LIM-4, MON-4); minor units."""

    min_minor: int
    max_minor: int
    step_minor: int


@dataclass(slots=True)
class TableLimits:
    """The limits in force at an open table, by bet id in the order of its specification."""

    revision: int
    game: int
    """Which game's forbidden combinations apply, a `sabot.rules.v1.Game`."""
    limits: dict[str, StakeLimits]


class BetStanding(IntEnum):
    """How far along a held bet is."""

    APPROVED = 1
    """Counts against maxima and combinations, but covers nothing: the wallet may decline it yet."""
    RESERVED = 2
    """On: counts, and covers raises and what remains after a withdrawal."""
    LEAVING = 3
    """Its withdrawal is approved: covers nothing more, and counts until the stake went back."""


@dataclass(slots=True)
class HeldBet:
    """One approved bet."""

    bet: str
    stake_minor: int
    request_id: str
    standing: BetStanding


@dataclass(slots=True)
class Holding:
    """What an account has on in a round. The totals follow from the bets and are kept for speed."""

    bets: dict[str, HeldBet] = field(default_factory=dict[str, HeldBet])
    """By bet id."""
    counted_minor: dict[str, int] = field(default_factory=dict[str, int])
    """By kind of bet: all held stakes. Never an entry of zero."""
    cover_minor: dict[str, int] = field(default_factory=dict[str, int])
    """By kind of bet: reserved stakes that stay. Never an entry of zero."""


class BookStanding(IntEnum):
    """Whether a round takes bets."""

    OPEN = 1
    CLOSED = 2
    VOIDED = 3


@dataclass(slots=True)
class Book:
    """A round. It keeps the limits in force when it opened, whatever the table's become."""

    table_id: str
    limits: TableLimits
    standing: BookStanding = BookStanding.OPEN
    holdings: dict[tuple[str, str], Holding] = field(default_factory=dict[tuple[str, str], Holding])
    """By (partner, account)."""


@dataclass(slots=True)
class LimitsState:
    """The whole of it. A round leaves at `RoundClosed`, a table at `TableClosed`."""

    tables: dict[str, TableLimits] = field(default_factory=dict[str, TableLimits])
    books: dict[str, Book] = field(default_factory=dict[str, Book])
    """By round id."""


def hold(book: Book, owner: tuple[str, str], bet_id: str, held: HeldBet) -> None:
    """Take a bet into an account's holding."""
    holding = book.holdings.get(owner)
    if holding is None:
        holding = book.holdings[owner] = Holding()
    if bet_id not in holding.bets:
        holding.bets[bet_id] = held
        _add(holding.counted_minor, held.bet, held.stake_minor)


def cover(holding: Holding, bet_id: str) -> None:
    """A bet's stake is reserved. One that is leaving keeps leaving."""
    held = holding.bets.get(bet_id)
    if held is not None and held.standing is BetStanding.APPROVED:
        held.standing = BetStanding.RESERVED
        _add(holding.cover_minor, held.bet, held.stake_minor)


def leave(holding: Holding, bet_id: str) -> None:
    """A bet's withdrawal is approved: from here on it covers nothing."""
    held = holding.bets.get(bet_id)
    if held is None:
        return
    if held.standing is BetStanding.RESERVED:
        _add(holding.cover_minor, held.bet, -held.stake_minor)
    held.standing = BetStanding.LEAVING


def release(book: Book, owner: tuple[str, str], bet_id: str) -> None:
    """A bet is off: declined, or its stake went back."""
    holding = book.holdings.get(owner)
    if holding is None:
        return
    held = holding.bets.pop(bet_id, None)
    if held is None:
        return
    _add(holding.counted_minor, held.bet, -held.stake_minor)
    if held.standing is BetStanding.RESERVED:
        _add(holding.cover_minor, held.bet, -held.stake_minor)
    if not holding.bets:
        del book.holdings[owner]


def _add(totals: dict[str, int], bet: str, minor: int) -> None:
    total = totals.get(bet, 0) + minor
    if total:
        totals[bet] = total
    else:
        totals.pop(bet, None)
