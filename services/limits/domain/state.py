"""What limits keep: what is in force at each table, and what accounts have on in open rounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

from google.protobuf.message import Message

from sabot.rules.v1 import rule_set_pb2 as rule_sets
from sabot.table.v1 import spec_pb2 as specs
from services.games.registry import covered
from services.kernel.requests import RequestIds
from services.limits.domain.exposure import outcomes_of
from services.limits.domain.protection import AccountRecord
from services.limits.domain.scopes import ScopeId, Settings

MAX_NUMBERS = 34
"""Of 37 numbers, 92 %: what bets may cover where a table says nothing else (rule LIM-3, D7)."""

Place = tuple[str, str]
"""A kind of bet and its position on the layout, which is empty where the kind has one place."""
Owner = tuple[str, str]
"""(partner, account)."""


@dataclass(slots=True)
class StakeLimits:
    """What may be staked on each place of a kind of bet, per account and round (LIM-4, MON-4);
    minor units."""

    min_minor: int
    max_minor: int
    step_minor: int


@dataclass(slots=True)
class TableLimits:
    """What is in force at an open table."""

    revision: int
    rule_set: rule_sets.RuleSet
    """Whose forbidden combinations, layout and pays apply."""
    limits: dict[str, StakeLimits]
    """By bet id in the order of its specification."""
    until_round: dict[str, int] = field(default_factory=dict[str, int])
    """By bet id: the last round of a shoe in which it is offered, where there is one (BAC-40)."""
    max_difference_minor: int = 0
    """Baccarat: Player and Banker may both be held up to this difference (LIM-2); 0: they may
    not."""
    max_numbers: int = 0
    """Roulette: how many numbers an account's bets may cover (LIM-3); 0: another game."""
    max_account_minor: int = 0
    """All stakes of an account in a round (LIM-4); 0: as many as it likes."""
    max_exposure_minor: int = 0
    """All winnings that the house may have to pay in a round (LIM-4); 0: no such limit."""
    currency_code: str = ""


class BetStanding(IntEnum):
    """How far along a held bet is."""

    APPROVED = 1
    """Counts against maxima and combinations, but covers nothing: the wallet may decline it yet."""
    RESERVED = 2
    """On: counts, and covers raises, side bets and what remains after a withdrawal."""
    LEAVING = 3
    """Its withdrawal is approved: covers nothing more, and counts until the stake went back."""


@dataclass(slots=True)
class HeldBet:
    """One approved bet."""

    place: Place
    stake_minor: int
    request_id: str
    standing: BetStanding
    at_us: int = 0
    """When it was approved, in log time."""


@dataclass(slots=True)
class Holding:
    """What an account has on in a round. All but the bets follows from them and is kept for
    speed."""

    bets: dict[str, HeldBet] = field(default_factory=dict[str, HeldBet])
    """By bet id."""
    counted_minor: dict[Place, int] = field(default_factory=dict[Place, int])
    """By place: all held stakes. Never an entry of zero."""
    cover_minor: dict[Place, int] = field(default_factory=dict[Place, int])
    """By place: reserved stakes that stay. Never an entry of zero."""
    total_minor: int = 0
    """All held stakes together."""
    numbers: int = 0
    """Roulette: the numbers that held bets cover, bit by bit."""
    paid: bool = False
    """Whether its bets are settled and paid: nothing of it is at stake any more."""


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
    holdings: dict[Owner, Holding] = field(default_factory=dict[Owner, Holding])
    round_in_shoe: int = 0
    """0 where the game has no shoe."""
    closed: dict[str, int] = field(default_factory=dict[str, int])
    """The bets that are not offered in this round (LIM-5), by id: the last round of a shoe in which
    each is."""
    shut: list[str] = field(default_factory=list[str])
    """The bets that the table's control of its risk has closed for this round."""
    insurance_closed: bool = False
    """No more insurance is approved: the marker of that stage is out."""
    winnings_minor: list[int] = field(default_factory=list[int])
    """By outcome of `outcomes_of`: what all held bets would win. Empty where nothing limits it."""


@dataclass(slots=True)
class PendingDeposit:
    """A deposit that counts already, though the wallet may decline it yet."""

    account_id: str
    amount_minor: int
    at_us: int


@dataclass(slots=True)
class LimitsState:
    """The whole of it. A round leaves at `RoundClosed`, a table at `TableClosed`."""

    tables: dict[str, TableLimits] = field(default_factory=dict[str, TableLimits])
    books: dict[str, Book] = field(default_factory=dict[str, Book])
    """By round id."""
    accounts: dict[Owner, AccountRecord] = field(default_factory=dict[Owner, AccountRecord])
    """Every account that was ever opened."""
    scopes: dict[ScopeId, Settings] = field(default_factory=dict[ScopeId, Settings])
    """Whoever has set a limit beside a table's rules."""
    deposits: dict[tuple[str, str], PendingDeposit] = field(
        default_factory=dict[tuple[str, str], PendingDeposit]
    )
    """By (partner, request id): approved, and not paid in yet."""
    requests: RequestIds = field(default_factory=RequestIds)
    """Of orders to limits; the scope is the partner, or who acts for the house."""
    outcomes: dict[tuple[str, str], Message] = field(default_factory=dict[tuple[str, str], Message])
    """By scope and request id: what was answered to each of those ids."""


def in_force(spec: specs.TableSpec, revision: int) -> TableLimits:
    """What a table's specification puts in force, with the defaults filled in."""
    game, asked = spec.rule_set.game, spec.restrictions
    is_baccarat = game == rule_sets.GAME_BACCARAT
    is_roulette = game == rule_sets.GAME_ROULETTE
    return TableLimits(
        revision=revision,
        rule_set=spec.rule_set,
        limits={
            limit.bet: StakeLimits(limit.min_minor, limit.max_minor, limit.step_minor)
            for limit in spec.limits
        },
        until_round={
            offer.bet: offer.until_round for offer in spec.rule_set.bets if offer.until_round
        },
        max_difference_minor=asked.max_difference_minor if is_baccarat else 0,
        max_numbers=(asked.max_numbers or MAX_NUMBERS) if is_roulette else 0,
        max_account_minor=asked.max_account_minor,
        max_exposure_minor=asked.max_exposure_minor,
        currency_code=spec.currency_code,
    )


def opened(table_id: str, limits: TableLimits, round_in_shoe: int) -> Book:
    """The book of a round that opens under these limits."""
    return Book(
        table_id,
        limits,
        round_in_shoe=round_in_shoe,
        closed={bet: last for bet, last in limits.until_round.items() if round_in_shoe > last},
        winnings_minor=(
            [0] * outcomes_of(limits.rule_set).count if limits.max_exposure_minor else []
        ),
    )


def hold(book: Book, owner: Owner, bet_id: str, held: HeldBet) -> bool:
    """Take a bet into an account's holding. Whether it is new there."""
    holding = book.holdings.get(owner)
    if holding is None:
        holding = book.holdings[owner] = Holding()
    if bet_id in holding.bets:
        return False
    holding.bets[bet_id] = held
    _add(holding.counted_minor, held.place, held.stake_minor)
    holding.total_minor += held.stake_minor
    if book.limits.max_numbers:
        holding.numbers |= numbers_of(book.limits, held.place)
    _expose(book, held, 1)
    return True


def cover(holding: Holding, bet_id: str) -> None:
    """A bet's stake is reserved. One that is leaving keeps leaving."""
    held = holding.bets.get(bet_id)
    if held is not None and held.standing is BetStanding.APPROVED:
        held.standing = BetStanding.RESERVED
        _add(holding.cover_minor, held.place, held.stake_minor)


def leave(holding: Holding, bet_id: str) -> None:
    """A bet's withdrawal is approved: from here on it covers nothing."""
    held = holding.bets.get(bet_id)
    if held is None:
        return
    if held.standing is BetStanding.RESERVED:
        _add(holding.cover_minor, held.place, -held.stake_minor)
    held.standing = BetStanding.LEAVING


def release(book: Book, owner: Owner, bet_id: str) -> HeldBet | None:
    """A bet is off: declined, or its stake went back. The bet; None: it was off before."""
    holding = book.holdings.get(owner)
    if holding is None:
        return None
    held = holding.bets.pop(bet_id, None)
    if held is None:
        return None
    _add(holding.counted_minor, held.place, -held.stake_minor)
    holding.total_minor -= held.stake_minor
    if held.standing is BetStanding.RESERVED:
        _add(holding.cover_minor, held.place, -held.stake_minor)
    _expose(book, held, -1)
    if not holding.bets:
        del book.holdings[owner]
    elif book.limits.max_numbers and held.place not in holding.counted_minor:
        holding.numbers = 0
        for place in holding.counted_minor:
            holding.numbers |= numbers_of(book.limits, place)
    return held


def numbers_of(limits: TableLimits, place: Place) -> int:
    """The numbers that a bet covers, bit by bit (LIM-3)."""
    numbers = 0
    for number in covered(limits.rule_set, *place):
        numbers |= 1 << number
    return numbers


def _add(totals: dict[Place, int], place: Place, minor: int) -> None:
    total = totals.get(place, 0) + minor
    if total:
        totals[place] = total
    else:
        totals.pop(place, None)


def _expose(book: Book, held: HeldBet, times: int) -> None:
    """Add to what the house may have to pay, or take from it."""
    totals = book.winnings_minor
    if totals:
        for outcome, minor in outcomes_of(book.limits.rule_set).winnings(
            *held.place, held.stake_minor
        ):
            totals[outcome] += times * minor
