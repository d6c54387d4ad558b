"""Whether bets keep the limits, and what would remain after a withdrawal. Every violation is found,
in order of bet (as first named in the request) and limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sabot.limits.v1 import events_pb2 as limits
from sabot.rules.v1 import rule_set_pb2 as rule_sets
from sabot.table.v1 import spec_pb2 as specs
from services.limits.domain.state import (
    BetStanding,
    Book,
    BookStanding,
    Holding,
    LimitsState,
    StakeLimits,
)

OPPOSITE_SIDES: Mapping[int, Mapping[str, tuple[str, ...]]] = {
    # LIM-1; both ways of betting on Banker are Banker.
    rule_sets.GAME_BACCARAT: {
        "player": ("banker", "banker_no_commission"),
        "banker": ("player",),
        "banker_no_commission": ("player",),
    },
}
"""By game and bet: the bets that an account may not hold beside it in one round."""

NO_SIDES: Mapping[str, tuple[str, ...]] = {}
NOTHING: Mapping[str, int] = {}
NOT_OFFERED = StakeLimits(min_minor=1, max_minor=0, step_minor=1)
"""The limits of a bet that the table does not offer: nothing fits them."""


def judged(
    book: Book, holding: Holding | None, bets: Sequence[tuple[str, int]]
) -> list[limits.Violation]:
    """What a request would break. `bets`: (kind, stake in minor units), judged as a whole.

    Maxima and combinations (LIM-4, LIM-1) count every stake from its approval on. Minimum and step
    are judged on what is certain, the reserved stakes and this request: a raise may be smaller than
    the minimum only on top of a stake that can no longer be declined.
    """
    table = book.limits
    sides = OPPOSITE_SIDES.get(table.game, NO_SIDES)
    counted: Mapping[str, int] = NOTHING if holding is None else holding.counted_minor
    covered: Mapping[str, int] = NOTHING if holding is None else holding.cover_minor
    added: dict[str, int] = {}
    smallest: dict[str, int] = {}
    for bet, stake in bets:
        added[bet] = added.get(bet, 0) + stake
        if stake < 1:
            smallest[bet] = min(stake, smallest.get(bet, stake))
    violations: list[limits.Violation] = []
    for bet, extra in added.items():
        limit = table.limits.get(bet, NOT_OFFERED)
        certain = covered.get(bet, 0) + extra
        total = counted.get(bet, 0) + extra
        if bet in smallest:
            # MON-2: a stake that is none cannot be made good by another one beside it.
            violations.append(_below(bet, limit, smallest[bet]))
        elif certain < limit.min_minor:
            violations.append(_below(bet, limit, certain))
        if total > limit.max_minor:
            violations.append(
                limits.Violation(
                    limit=limits.LIMIT_ABOVE_MAXIMUM,
                    bet=bet,
                    allowed_minor=limit.max_minor,
                    would_be_minor=total,
                )
            )
        if certain % limit.step_minor:
            violations.append(_off_step(bet, limit, certain))
        violations.extend(
            limits.Violation(
                limit=limits.LIMIT_OPPOSITE_SIDES, bet=bet, would_be_minor=total, against=other
            )
            for other in sides.get(bet, ())
            if other in added or other in counted
        )
    return violations


def judged_rest(
    book: Book, holding: Holding, leaving: Mapping[str, object]
) -> list[limits.Violation]:
    """What would be broken by what remains when the bets `leaving` (by bet id) go (LIM-8).

    Nothing left of a kind is fine. What is left must keep minimum and step whatever the wallet
    still declines: the reserved rest by itself, or, where nothing is reserved, each pending request
    by itself. (While something stays reserved it covers the pending raises.)
    """
    touched: dict[str, None] = {}
    certain: dict[str, int] = {}
    pending: dict[str, dict[str, int]] = {}
    for bet_id, held in holding.bets.items():
        if held.standing is BetStanding.LEAVING:
            continue
        if bet_id in leaving:
            touched[held.bet] = None
        elif held.standing is BetStanding.RESERVED:
            certain[held.bet] = certain.get(held.bet, 0) + held.stake_minor
        else:
            requests = pending.setdefault(held.bet, {})
            requests[held.request_id] = requests.get(held.request_id, 0) + held.stake_minor
    violations: list[limits.Violation] = []
    for bet in touched:
        limit = book.limits.limits.get(bet, NOT_OFFERED)
        rest = certain.get(bet, 0)
        waiting = list(pending.get(bet, {}).values())
        alone = [rest] if rest else waiting
        below = [minor for minor in alone if minor < limit.min_minor]
        if below:
            violations.append(_below(bet, limit, min(below)))
        off = [minor for minor in (rest, *waiting) if minor % limit.step_minor]
        if off:
            violations.append(_off_step(bet, limit, min(off)))
    return violations


def check(
    state: LimitsState,
    partner: str,
    account_id: str,
    table_id: str,
    bets: Sequence[tuple[str, int]],
) -> list[limits.Violation] | None:
    """What bets of an account would break if they were placed now: the dry run (CheckBets).

    `bets`: (kind, stake in minor units). Empty: they would be approved. None: no such open table.
    """
    if table_id not in state.tables:
        return None
    for book in state.books.values():
        if book.table_id == table_id and book.standing is BookStanding.OPEN:
            return judged(book, book.holdings.get((partner, account_id)), bets)
    return [limits.Violation(limit=limits.LIMIT_BOOK_CLOSED)]


def limits_at(state: LimitsState, table_id: str) -> list[specs.BetLimit] | None:
    """The limits in force at a table, by bet id; those of a running round may be older.

    None: no such open table.
    """
    table = state.tables.get(table_id)
    if table is None:
        return None
    return [
        specs.BetLimit(
            bet=bet,
            min_minor=limit.min_minor,
            max_minor=limit.max_minor,
            step_minor=limit.step_minor,
        )
        for bet, limit in table.limits.items()
    ]


def _below(bet: str, limit: StakeLimits, minor: int) -> limits.Violation:
    return limits.Violation(
        limit=limits.LIMIT_BELOW_MINIMUM,
        bet=bet,
        allowed_minor=limit.min_minor,
        would_be_minor=minor,
    )


def _off_step(bet: str, limit: StakeLimits, minor: int) -> limits.Violation:
    return limits.Violation(
        limit=limits.LIMIT_STAKE_STEP,
        bet=bet,
        allowed_minor=limit.step_minor,
        would_be_minor=minor,
    )
