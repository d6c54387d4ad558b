"""Whether bets keep the limits, and what would remain after a withdrawal.

Every violation is found. First come those that keep the account away altogether: excluded, cooling
off, not of age. Then they come place by place (a kind of bet and its position, as first named
in the request), and at each place in the order of `Limit`: below the minimum, above the maximum,
off the step, against an opposite side, closed by the round of the shoe, closed for this round,
without a main bet. Then come those
that the bets break together, in the same order: difference, coverage, the account's maximum,
exposure, and what protects the account: stakes, losses, time at play, each by its windows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sabot.limits.v1 import events_pb2 as limits
from sabot.rules.v1 import rule_set_pb2 as rule_sets
from sabot.table.v1 import bet_pb2 as bets
from services.games.blackjack_bets import FURTHER_STAKES, SIDE_BETS
from services.games.roulette import NUMBERS
from services.limits.domain.exposure import outcomes_of
from services.limits.domain.protection import AccountRecord, kept_away, over_windows
from services.limits.domain.scopes import ROUND, Scoped, Strictest, What, of_bet, strictest, whose
from services.limits.domain.state import (
    BetStanding,
    Book,
    Holding,
    Place,
    StakeLimits,
    TableLimits,
    numbers_of,
)

PLAYER = ("player",)
BANKER = ("banker", "banker_no_commission")
"""Both ways of betting on Banker are Banker (rule BAC-41)."""

OPPOSITE_SIDES: Mapping[int, Mapping[str, tuple[str, ...]]] = {
    rule_sets.GAME_BACCARAT: {"player": BANKER, "banker": PLAYER, "banker_no_commission": PLAYER},
    rule_sets.GAME_SICBO: {
        "big": ("small",),
        "small": ("big",),
        "odd": ("even",),
        "even": ("odd",),
    },
    rule_sets.GAME_DRAGON_TIGER: {"dragon": ("tiger",), "tiger": ("dragon",)},
    rule_sets.GAME_FOOTBALL_STUDIO: {"home": ("away",), "away": ("home",)},
}
"""LIM-1: by game and bet, the bets that an account may not hold beside it in one round. (Where a
table of baccarat has a greatest difference, LIM-2 holds instead.)"""

MAIN = "main"
NEEDS_MAIN = frozenset({*SIDE_BETS, *FURTHER_STAKES})
"""Blackjack: what stands on a main bet of the same account at the same seat (rule BJ-11)."""

NO_SIDES: Mapping[str, tuple[str, ...]] = {}
NOTHING: Mapping[Place, int] = {}
NOT_OFFERED = StakeLimits(min_minor=1, max_minor=0, step_minor=1)
"""The limits of a bet that the table does not offer: nothing fits them."""


@dataclass(frozen=True, slots=True)
class Bettor:
    """Who bets, where more than a table's rules may limit it."""

    record: AccountRecord
    scoped: Sequence[Scoped]
    """What concerns it here beside the table's rules, the widest scope first."""
    currency_code: str
    now_us: int

    def on_bet(self, game: int, bet: str) -> Strictest | None:
        """The strictest limit on a place of a bet."""
        if not self.scoped:
            return None
        return strictest(self.scoped, of_bet(game, bet, self.currency_code), self.now_us)

    def in_round(self) -> Strictest | None:
        """The strictest limit on all stakes in a round."""
        return strictest(self.scoped, (What(ROUND, self.currency_code),), self.now_us)


def judged(
    book: Book,
    holding: Holding | None,
    wagers: Sequence[bets.Bet],
    bettor: Bettor | None = None,
    *,
    with_exposure: bool = True,
) -> list[limits.Violation]:
    """What a request would break, judged as a whole. `bettor`: where there may be more to say of
    the account than the table's rules.

    Maxima and combinations (LIM-1 to LIM-4) count every stake from its approval on. Minimum, step
    and what a side bet or the other side stands on are judged by what is certain, the reserved
    stakes and this request: a raise may be smaller than the minimum only on top of a stake that can
    no longer be declined.
    """
    table = book.limits
    sides = _sides(table)
    needing = _needing(table)
    counted: Mapping[Place, int] = NOTHING if holding is None else holding.counted_minor
    covered: Mapping[Place, int] = NOTHING if holding is None else holding.cover_minor
    added: dict[Place, int] = {}
    smallest: dict[Place, int] = {}
    for wager in wagers:
        place, stake = (wager.bet, wager.position), wager.stake_minor
        added[place] = added.get(place, 0) + stake
        if stake < 1:
            smallest[place] = min(stake, smallest.get(place, stake))
    violations: list[limits.Violation] = []
    if bettor is not None:
        violations += kept_away(bettor.record, bettor.scoped, bettor.now_us)
    for place, extra in added.items():
        bet = place[0]
        limit = table.limits.get(bet, NOT_OFFERED)
        certain = covered.get(place, 0) + extra
        total = counted.get(place, 0) + extra
        if place in smallest:
            # MON-2: a stake that is none cannot be made good by another one beside it.
            violations.append(_below(place, limit, smallest[place]))
        elif certain < limit.min_minor:
            violations.append(_below(place, limit, certain))
        stricter = None if bettor is None else bettor.on_bet(table.rule_set.game, bet)
        if stricter is not None and stricter.maximum < limit.max_minor:
            if total > stricter.maximum:
                violations.append(_above_scope(place, stricter, total, extra))
        elif total > limit.max_minor:
            violations.append(_above(place, limit, total))
        if certain % limit.step_minor:
            violations.append(_off_step(place, limit, certain))
        violations.extend(
            limits.Violation(
                limit=limits.LIMIT_OPPOSITE_SIDES, bet=bet, would_be_minor=total, against=other
            )
            for other in sides.get(bet, ())
            if (other, "") in added or (other, "") in counted
        )
        if bet in book.closed:
            violations.append(_closed(book, bet))
        if bet in book.shut:
            violations.append(_shut(place))
        if bet in needing:
            main = (MAIN, place[1])
            if main not in added and main not in covered:
                violations.append(_without_main(place, total))
    violations += _together(book, holding, added, bettor)
    if with_exposure and table.max_exposure_minor:
        violations += _exposure(book, wagers)
    if bettor is not None and bettor.scoped:
        # A stake that is none is refused for that, and makes no room for another one.
        extra = sum(minor for minor in added.values() if minor > 0)
        violations += over_windows(bettor.record, bettor.scoped, extra, bettor.now_us)
    return violations


def judged_extra(
    book: Book, holding: Holding | None, wager: bets.Bet, bettor: Bettor | None = None
) -> list[limits.Violation]:
    """What the further stake of an action would break: insurance may be closed for the round, each
    needs its main bet (BJ-11) and counts towards the account's maximum and what protects it. Stake
    limits do not hold for it (BJ-6), and its exposure was reserved with the main bet (LIM-4)."""
    place = (wager.bet, wager.position)
    violations: list[limits.Violation] = []
    if bettor is not None:
        violations += kept_away(bettor.record, bettor.scoped, bettor.now_us)
    if wager.bet in book.shut:
        violations.append(_shut(place))
    if holding is None or (MAIN, wager.position) not in holding.cover_minor:
        violations.append(_without_main(place, wager.stake_minor))
    violations += _account_maximum(book.limits, holding, wager.stake_minor, bettor)
    if bettor is not None:
        violations += over_windows(bettor.record, bettor.scoped, wager.stake_minor, bettor.now_us)
    return violations


def judged_rest(
    book: Book, holding: Holding, leaving: Mapping[str, object]
) -> list[limits.Violation]:
    """What would be broken by what remains when the bets `leaving` (by bet id) go (LIM-8).

    Nothing left at a place is fine. What is left must keep minimum and step, and side bets their
    main bet, whatever the wallet still declines: the reserved rest by itself, or, where nothing is
    reserved, each pending request by itself. (While something stays reserved it covers the pending
    raises.)
    """
    touched: dict[Place, None] = {}
    certain: dict[Place, int] = {}
    pending: dict[Place, dict[str, int]] = {}
    for bet_id, held in holding.bets.items():
        if held.standing is BetStanding.LEAVING:
            continue
        if bet_id in leaving:
            touched[held.place] = None
        elif held.standing is BetStanding.RESERVED:
            certain[held.place] = certain.get(held.place, 0) + held.stake_minor
        else:
            requests = pending.setdefault(held.place, {})
            requests[held.request_id] = requests.get(held.request_id, 0) + held.stake_minor
    violations: list[limits.Violation] = []
    for place in touched:
        limit = book.limits.limits.get(place[0], NOT_OFFERED)
        rest = certain.get(place, 0)
        waiting = list(pending.get(place, {}).values())
        alone = [rest] if rest else waiting
        below = [minor for minor in alone if minor < limit.min_minor]
        if below:
            violations.append(_below(place, limit, min(below)))
        off = [minor for minor in (rest, *waiting) if minor % limit.step_minor]
        if off:
            violations.append(_off_step(place, limit, min(off)))
        if place[0] == MAIN and _needing(book.limits):
            violations += _deserted(place[1], certain, pending)
    if any(place[0] in PLAYER or place[0] in BANKER for place in touched):
        counted = dict(certain)
        for place, requests in pending.items():
            counted[place] = counted.get(place, 0) + sum(requests.values())
        violations += _difference(book.limits, counted, certain)
    return violations


def _sides(table: TableLimits) -> Mapping[str, tuple[str, ...]]:
    if table.max_difference_minor:
        return NO_SIDES
    return OPPOSITE_SIDES.get(table.rule_set.game, NO_SIDES)


def _needing(table: TableLimits) -> frozenset[str]:
    is_blackjack = table.rule_set.game == rule_sets.GAME_BLACKJACK
    return NEEDS_MAIN if is_blackjack else frozenset()


def _deserted(
    position: str, certain: Mapping[Place, int], pending: Mapping[Place, Mapping[str, int]]
) -> list[limits.Violation]:
    """The side bets at a seat that would not be sure of their main bet (BJ-11)."""
    main = (MAIN, position)
    if main in certain:
        return []
    together = pending.get(main, {})
    violations: list[limits.Violation] = []
    for bet in SIDE_BETS:
        place = (bet, position)
        waiting = pending.get(place, {})
        if place in certain or any(request not in together for request in waiting):
            left = certain.get(place, 0) + sum(waiting.values())
            violations.append(_without_main(place, left))
    return violations


# ---- what bets break together ------------------------------------------------------------------


def _together(
    book: Book,
    holding: Holding | None,
    added: Mapping[Place, int],
    bettor: Bettor | None,
) -> list[limits.Violation]:
    """Difference, coverage, the account's maximum: where they are limited."""
    table = book.limits
    violations: list[limits.Violation] = []
    if table.max_difference_minor and any(bet in PLAYER or bet in BANKER for bet, _ in added):
        counted, covered = dict(added), dict(added)
        if holding is not None:
            _add_all(counted, holding.counted_minor)
            _add_all(covered, holding.cover_minor)
        violations += _difference(table, counted, covered)
    if table.max_numbers:
        violations += _coverage(table, holding, added)
    if table.max_account_minor or bettor is not None:
        violations += _account_maximum(table, holding, sum(added.values()), bettor)
    return violations


def _difference(
    table: TableLimits, counted: Mapping[Place, int], covered: Mapping[Place, int]
) -> list[limits.Violation]:
    """LIM-2: each side with all that counts, against what the other one is sure of."""
    if not table.max_difference_minor:
        return []
    player = _on(counted, PLAYER) - _on(covered, BANKER)
    banker = _on(counted, BANKER) - _on(covered, PLAYER)
    heavier, lighter = ("player", "banker") if player >= banker else ("banker", "player")
    difference = max(player, banker)
    if difference <= table.max_difference_minor:
        return []
    return [
        limits.Violation(
            limit=limits.LIMIT_DIFFERENCE,
            bet=heavier,
            allowed_minor=table.max_difference_minor,
            would_be_minor=difference,
            against=lighter,
        )
    ]


def _on(totals: Mapping[Place, int], side: Sequence[str]) -> int:
    return sum(totals.get((bet, ""), 0) for bet in side)


def _add_all(totals: dict[Place, int], more: Mapping[Place, int]) -> None:
    for place, minor in more.items():
        totals[place] = totals.get(place, 0) + minor


def _coverage(
    table: TableLimits, holding: Holding | None, added: Mapping[Place, int]
) -> list[limits.Violation]:
    """LIM-3: a union, so it matters neither how often a number is bet on nor with how much."""
    numbers = 0 if holding is None else holding.numbers
    for place in added:
        if place[0] in table.limits:
            numbers |= numbers_of(table, place)
    count = numbers.bit_count()
    if count <= table.max_numbers:
        return []
    return [
        limits.Violation(
            limit=limits.LIMIT_COVERAGE,
            allowed_count=table.max_numbers,
            would_be_count=count,
            of_count=len(NUMBERS),
        )
    ]


def _account_maximum(
    table: TableLimits, holding: Holding | None, extra_minor: int, bettor: Bettor | None
) -> list[limits.Violation]:
    """LIM-4, LIM-6."""
    total = extra_minor + (0 if holding is None else holding.total_minor)
    stricter = None if bettor is None else bettor.in_round()
    if stricter is not None and not 0 < table.max_account_minor <= stricter.maximum:
        if total <= stricter.maximum:
            return []
        told = limits.Violation(
            limit=limits.LIMIT_ACCOUNT_MAXIMUM,
            allowed_minor=stricter.maximum,
            would_be_minor=total,
            room_minor=max(stricter.maximum - total + extra_minor, 0),
        )
        return [whose(told, stricter.scope)]
    if not table.max_account_minor or total <= table.max_account_minor:
        return []
    return [
        limits.Violation(
            limit=limits.LIMIT_ACCOUNT_MAXIMUM,
            allowed_minor=table.max_account_minor,
            would_be_minor=total,
        )
    ]


def _exposure(book: Book, wagers: Sequence[bets.Bet]) -> list[limits.Violation]:
    """LIM-4: what the request might add to the winnings of an outcome, and the room that is left
    there; of the outcomes the one that it would be most over. No total of the table is told: that
    is other accounts' stakes (rule VIS-1). A stake that is none wins nothing; it is refused for
    that."""
    table = book.limits
    held = book.winnings_minor
    totals = list(held)
    winnings = outcomes_of(table.rule_set).winnings
    for wager in wagers:
        if wager.stake_minor > 0 and wager.bet in table.limits:
            for outcome, minor in winnings(wager.bet, wager.position, wager.stake_minor):
                totals[outcome] += minor
    most = max(totals, default=0)
    if most <= table.max_exposure_minor:
        return []
    worst = totals.index(most)
    return [
        limits.Violation(
            limit=limits.LIMIT_EXPOSURE,
            allowed_minor=table.max_exposure_minor - held[worst],
            would_be_minor=most - held[worst],
        )
    ]


# ---- violations at a place ---------------------------------------------------------------------


def _below(place: Place, limit: StakeLimits, minor: int) -> limits.Violation:
    return limits.Violation(
        limit=limits.LIMIT_BELOW_MINIMUM,
        bet=place[0],
        position=place[1],
        allowed_minor=limit.min_minor,
        would_be_minor=minor,
    )


def _above(place: Place, limit: StakeLimits, minor: int) -> limits.Violation:
    return limits.Violation(
        limit=limits.LIMIT_ABOVE_MAXIMUM,
        bet=place[0],
        position=place[1],
        allowed_minor=limit.max_minor,
        would_be_minor=minor,
    )


def _above_scope(
    place: Place, stricter: Strictest, minor: int, extra_minor: int
) -> limits.Violation:
    """LIM-6."""
    told = limits.Violation(
        limit=limits.LIMIT_ABOVE_MAXIMUM,
        bet=place[0],
        position=place[1],
        allowed_minor=stricter.maximum,
        would_be_minor=minor,
        room_minor=max(stricter.maximum - minor + extra_minor, 0),
    )
    return whose(told, stricter.scope)


def _off_step(place: Place, limit: StakeLimits, minor: int) -> limits.Violation:
    return limits.Violation(
        limit=limits.LIMIT_STAKE_STEP,
        bet=place[0],
        position=place[1],
        allowed_minor=limit.step_minor,
        would_be_minor=minor,
    )


def _closed(book: Book, bet: str) -> limits.Violation:
    """LIM-5."""
    return limits.Violation(
        limit=limits.LIMIT_SIDE_BET_CLOSED,
        bet=bet,
        allowed_count=book.closed[bet],
        would_be_count=book.round_in_shoe,
    )


def _shut(place: Place) -> limits.Violation:
    """By the table's control of its risk; what it returned is not for partners (VIS-4)."""
    return limits.Violation(limit=limits.LIMIT_BET_CLOSED, bet=place[0], position=place[1])


def _without_main(place: Place, minor: int) -> limits.Violation:
    """BJ-11."""
    return limits.Violation(
        limit=limits.LIMIT_NO_MAIN_BET,
        bet=place[0],
        position=place[1],
        would_be_minor=minor,
        against=MAIN,
    )
