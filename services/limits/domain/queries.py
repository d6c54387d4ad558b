"""What may be asked of limits: what is in force, and what they would say to bets."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from sabot.limits.v1 import events_pb2 as limits
from sabot.limits.v1 import limits_service_pb2 as service
from sabot.rules.v1.rule_set_pb2 import GAME_BLACKJACK
from sabot.table.v1 import bet_pb2 as bets
from sabot.table.v1 import spec_pb2 as specs
from services.games.blackjack_bets import FURTHER_STAKES
from services.games.registry import NotExpanded, announced, on_layout
from services.limits.domain.accounts import bettor_of
from services.limits.domain.exposure import outcomes_of
from services.limits.domain.judging import judged
from services.limits.domain.state import Book, BookStanding, LimitsState, Place, TableLimits


class Unbookable(Enum):
    """Why the table would book none of the bets of a request."""

    NOT_OFFERED = 1
    NOT_ON_LAYOUT = 2
    NOT_WHOLE_CHIPS = 3


def check(
    state: LimitsState,
    partner: str,
    account_id: str,
    table_id: str,
    wagers: Sequence[bets.Bet],
    now_us: int = 0,
) -> list[limits.Violation] | Unbookable | None:
    """What bets of an account would break if they were placed now: the dry run (CheckBets). The
    exposure of the round is left out: it is made of
    others' stakes, and whoever asked often enough would know them (rule VIS-1).

    Positions may be told in any order of their numbers. Empty: the bets would be approved. None: no
    such open table.
    """
    table = state.tables.get(table_id)
    if table is None:
        return None
    book = _book_at(state, table_id)
    booked = _booked(table if book is None else book.limits, wagers)
    if isinstance(booked, Unbookable):
        return booked
    if book is None or book.standing is not BookStanding.OPEN:
        return [limits.Violation(limit=limits.LIMIT_BOOK_CLOSED)]
    owner = (partner, account_id)
    holding = book.holdings.get(owner)
    bettor = bettor_of(state, owner, table_id, book.limits.currency_code, now_us)
    return judged(book, holding, booked, bettor, with_exposure=False)


def wrong_bet(state: LimitsState, table_id: str, wagers: Sequence[bets.Bet]) -> bets.Bet | None:
    """The first bet that a table would not book; None: there is none."""
    table = state.tables.get(table_id)
    book = _book_at(state, table_id)
    found = table if book is None else book.limits
    if found is None:
        return None
    return next((one for one in wagers if isinstance(_booked(found, [one]), Unbookable)), None)


def with_room(
    state: LimitsState,
    table_id: str,
    wagers: Sequence[bets.Bet],
    violations: Sequence[limits.Violation],
) -> list[limits.Violation]:
    """What `check` found, with the room that is left."""
    table = state.tables.get(table_id)
    book = _book_at(state, table_id)
    found = table if book is None else book.limits
    booked = None if found is None else _booked(found, wagers)
    if not isinstance(booked, list):
        return list(violations)
    told: list[limits.Violation] = []
    for violation in violations:
        one = limits.Violation()
        one.CopyFrom(violation)
        of_place = one.limit == limits.LIMIT_ABOVE_MAXIMUM
        if not one.HasField("room_minor") and (
            of_place or one.limit == limits.LIMIT_ACCOUNT_MAXIMUM
        ):
            place = (one.bet, one.position)
            asked = sum(
                bet.stake_minor
                for bet in booked
                if not of_place or (bet.bet, bet.position) == place
            )
            one.room_minor = max(one.allowed_minor - one.would_be_minor + asked, 0)
        told.append(one)
    return told


def limits_at(state: LimitsState, table_id: str) -> service.GetLimitsResponse | None:
    """The limits in force at a table, and what the running round still takes; that one may go by
    older limits. A double, a split and insurance have none of their own (rule BJ-6). Without a
    position. None: no such open table.
    """
    table = state.tables.get(table_id)
    if table is None:
        return None
    found = service.GetLimitsResponse(
        limits=[
            specs.BetLimit(
                bet=bet,
                min_minor=limit.min_minor,
                max_minor=limit.max_minor,
                step_minor=limit.step_minor,
            )
            for bet, limit in table.limits.items()
            if table.rule_set.game != GAME_BLACKJACK or bet not in FURTHER_STAKES
        ],
        restrictions=specs.Restrictions(
            max_difference_minor=table.max_difference_minor,
            max_numbers=table.max_numbers,
            max_account_minor=table.max_account_minor,
            max_exposure_minor=table.max_exposure_minor,
        ),
    )
    for round_id, book in state.books.items():
        if book.table_id == table_id:
            found.round.CopyFrom(_round_limits(round_id, book))
    return found


def exposure_at(state: LimitsState, table_id: str) -> service.GetExposureResponse | None:
    """What is held in the running round of a table, and the most that it can come to. Without a
    position. None: no such open table.

    It is counted anew from the bets, so it is told too where the table has no limit of it."""
    if table_id not in state.tables:
        return None
    told = service.GetExposureResponse()
    for round_id, book in state.books.items():
        if book.table_id == table_id:
            told.CopyFrom(_exposure(round_id, book))
    return told


def _exposure(round_id: str, book: Book) -> service.GetExposureResponse:
    counted = outcomes_of(book.limits.rule_set)
    winnings = [0] * counted.count
    places: dict[Place, list[int]] = {}
    for holding in book.holdings.values():
        for held in holding.bets.values():
            places.setdefault(held.place, []).append(held.stake_minor)
            for outcome, minor in counted.winnings(*held.place, held.stake_minor):
                winnings[outcome] += minor
    return service.GetExposureResponse(
        round_id=round_id,
        accounts=len(book.holdings),
        stakes_minor=sum(sum(stakes) for stakes in places.values()),
        exposure_minor=max(winnings, default=0),
        max_exposure_minor=book.limits.max_exposure_minor,
        places=[
            service.StakesOnPlace(
                bet=place[0], place=place[1], bets=len(stakes), stakes_minor=sum(stakes)
            )
            for place, stakes in sorted(places.items())
        ],
    )


def _book_at(state: LimitsState, table_id: str) -> Book | None:
    """The round that runs at a table: there is one at most."""
    for book in state.books.values():
        if book.table_id == table_id:
            return book
    return None


def _round_limits(round_id: str, book: Book) -> service.RoundLimits:
    """VIS-5."""
    return service.RoundLimits(
        round_id=round_id,
        round_in_shoe=book.round_in_shoe,
        open=book.standing is BookStanding.OPEN,
        bets=[
            service.RoundBet(
                bet=bet,
                open=bet not in book.closed and bet not in book.shut,
                rounds_left=max(last - book.round_in_shoe + 1, 0),
            )
            for bet, last in book.limits.until_round.items()
        ],
    )


def _booked(table: TableLimits, wagers: Sequence[bets.Bet]) -> list[bets.Bet] | Unbookable:
    """The bets as the table would book them, announced ones by their parts; else why it would not,
    by the first that is wrong."""
    found: list[bets.Bet] = []
    for wager in wagers:
        parts = announced(table.rule_set, wager.bet, wager.position, wager.stake_minor)
        if parts is NotExpanded.NOT_ON_LAYOUT:
            return Unbookable.NOT_ON_LAYOUT
        if parts is NotExpanded.NOT_WHOLE_CHIPS:
            return Unbookable.NOT_WHOLE_CHIPS
        if isinstance(parts, NotExpanded):
            if wager.bet not in table.limits:
                return Unbookable.NOT_OFFERED
            position = on_layout(table.rule_set, wager.bet, wager.position)
            if position is None:
                return Unbookable.NOT_ON_LAYOUT
            found.append(bets.Bet(bet=wager.bet, position=position, stake_minor=wager.stake_minor))
        elif any(part.bet not in table.limits for part in parts):
            return Unbookable.NOT_OFFERED
        else:
            found.extend(
                bets.Bet(bet=part.bet, position=part.position, stake_minor=part.stake_minor)
                for part in parts
            )
    return found
