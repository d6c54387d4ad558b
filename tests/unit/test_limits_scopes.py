"""Limits of table, partner, jurisdiction and account: the strictest holds, and a refusal says whose
it is and what room is left (rules LIM-6, LIM-7)."""

from __future__ import annotations

from typing import Any

import pytest

from sabot.limits.v1 import events_pb2 as limits
from sabot.limits.v1 import protection_events_pb2 as protection
from sabot.log.v1 import entry_pb2
from sabot.log.v1 import events_pb2 as log
from sabot.rules.v1 import rule_set_pb2 as rule_sets
from services.limits.domain import orders
from services.limits.domain.core import CORE
from services.limits.domain.orders import MAX_LIMITS, MAX_MINOR
from tests.unit.deciding import START_US, Deciding, by, request_id
from tests.unit.limits_facts import BACCARAT, T, above, account_maximum, spec
from tests.unit.protection_facts import (
    AGE,
    BET,
    DAY,
    DAY_S,
    DEPOSIT,
    HOUR,
    LOSS,
    ROUND,
    SESSION,
    STAKE,
    Lobby,
    ann_sets,
    describe,
    not_obeyed,
    of_scope,
    opened,
    over,
    sets,
    setting,
    was_set,
)

SPEC = spec(BACCARAT, high=1_000)
ABOVE = limits.LIMIT_ABOVE_MAXIMUM
SCOPES: list[tuple[limits.Scope.ValueType, str, str]] = [
    (limits.SCOPE_TABLE, T, ""),
    (limits.SCOPE_PARTNER, "acme", "acme"),
    (limits.SCOPE_JURISDICTION, "FR", "FR"),
    (limits.SCOPE_ACCOUNT, "ann", ""),
]
EACH_SCOPE = pytest.mark.parametrize(
    ("scope", "name", "told"), SCOPES, ids=[limits.Scope.Name(one) for one, _, _ in SCOPES]
)


def lobby(**restrictions: Any) -> Lobby:
    of = spec(BACCARAT, high=1_000, **restrictions) if restrictions else SPEC
    return Lobby(of, opened(jurisdiction="FR"))


# ---- the strictest holds -----------------------------------------------------------------------


@EACH_SCOPE
def test_lim_6_a_scope_may_be_stricter_than_the_tables_rules(
    scope: limits.Scope.ValueType, name: str, told: str
) -> None:
    hall = lobby()
    hall.game.when(sets(1, scope, name, setting(BET, 500))).then(
        was_set(1, scope, name, setting(BET, 500))
    )
    assert hall.bet(300) == []
    assert hall.bet(201) == [
        of_scope(ABOVE, 501, 500, 200, scope, told, bet="player"),
    ]
    assert hall.bet(200) == []


@EACH_SCOPE
def test_lim_6_a_looser_scope_changes_nothing(
    scope: limits.Scope.ValueType, name: str, told: str
) -> None:
    del told
    hall = lobby().given(sets(1, scope, name, setting(BET, 5_000), setting(ROUND, 5_000)))
    assert hall.bet(1_000) == []
    assert hall.bet(100) == [above("player", "", 1_100, 1_000)]


def test_lim_6_of_all_scopes_the_strictest_is_told() -> None:
    hall = lobby(max_account_minor=900)
    for number, (scope, name, _) in enumerate(SCOPES, 1):
        hall.given(sets(number, scope, name, setting(BET, 700 - number), setting(ROUND, 800)))
    violations = hall.bet(950)
    assert violations == [
        of_scope(ABOVE, 950, 696, 696, bet="player"),
        of_scope(limits.LIMIT_ACCOUNT_MAXIMUM, 950, 800, 800, limits.SCOPE_TABLE),
    ]
    assert hall.bet(696) == []
    assert hall.bet(205, bet="tie") == [
        of_scope(limits.LIMIT_ACCOUNT_MAXIMUM, 901, 800, 104, limits.SCOPE_TABLE)
    ]


def test_lim_6_the_tables_own_maximum_is_told_as_before_where_it_is_the_strictest() -> None:
    hall = lobby(max_account_minor=500).given(ann_sets(1, setting(ROUND, 500)))
    assert hall.bet(600) == [account_maximum(600, 500)]


@pytest.mark.parametrize(
    ("of", "limited"),
    [
        (setting(BET, 150, game=rule_sets.GAME_BACCARAT, bet="tie"), {"tie"}),
        (setting(BET, 150, bet="tie"), {"tie"}),
        (setting(BET, 150, game=rule_sets.GAME_BACCARAT), {"tie", "player"}),
        (setting(BET, 150), {"tie", "player"}),
        (setting(BET, 150, game=rule_sets.GAME_DRAGON_TIGER, bet="tie"), set[str]()),
        (setting(BET, 150, game=rule_sets.GAME_SICBO), set[str]()),
    ],
)
def test_lim_6_a_limit_may_be_of_one_game_or_bet(
    of: protection.LimitSetting, limited: set[str]
) -> None:
    hall = lobby().given(ann_sets(1, of))
    assert {bet for bet in ("tie", "player") if hall.bet(200, bet=bet)} == limited


def test_lim_6_a_bet_may_be_forbidden() -> None:
    hall = lobby().given(sets(1, limits.SCOPE_JURISDICTION, "FR", setting(BET, 0, bet="tie")))
    assert hall.bet(100, bet="tie") == [
        of_scope(ABOVE, 100, 0, 0, limits.SCOPE_JURISDICTION, "FR", bet="tie")
    ]
    assert hall.bet(100) == []


@pytest.mark.parametrize(
    ("scope", "name", "partner"),
    [
        (limits.SCOPE_TABLE, "t1", ""),
        (limits.SCOPE_PARTNER, "other", ""),
        (limits.SCOPE_JURISDICTION, "DE", ""),
        (limits.SCOPE_ACCOUNT, "ann", "other"),
    ],
)
def test_lim_6_a_scope_limits_nobody_else(
    scope: limits.Scope.ValueType, name: str, partner: str
) -> None:
    hall = lobby().given(opened(partner="other"))
    hall.game.when(sets(1, scope, name, setting(ROUND, 100), partner=partner))
    hall.game.then_only(protection.LimitsSet)
    assert bool(hall.bet(200)) == (scope == limits.SCOPE_TABLE)


def test_lim_6_limits_of_another_currency_do_not_hold() -> None:
    hall = lobby().given(sets(1, limits.SCOPE_PARTNER, "acme", setting(BET, 5), currency="USD"))
    assert hall.bet(200) == []


def test_lim_6_a_limit_holds_in_the_middle_of_a_round_for_what_comes_after() -> None:
    hall = lobby()
    assert hall.bet(600) == []
    hall.given(ann_sets(1, setting(BET, 500)))
    assert hall.bet(1) == [of_scope(ABOVE, 601, 500, 0, bet="player")]


# ---- tighter at once, looser after a day -------------------------------------------------------


def test_lim_7_what_is_tighter_holds_from_the_next_position() -> None:
    hall = lobby().given(ann_sets(1, setting(BET, 500)), ann_sets(2, setting(BET, 200)))
    assert hall.bet(201) == [of_scope(ABOVE, 201, 200, 200, bet="player")]


def test_lim_7_what_is_looser_holds_a_day_later() -> None:
    hall = lobby().given(ann_sets(1, setting(BET, 200), at_us=HOUR))
    hall.game.when(ann_sets(2, setting(BET, 600), at_us=2 * HOUR)).then(
        was_set(
            2,
            limits.SCOPE_ACCOUNT,
            "ann",
            setting(BET, 600),
            at_us=2 * HOUR,
            looser_from=2 * HOUR + DAY,
        )
    )
    assert hall.bet(300, at_us=2 * HOUR + DAY - 1) != []
    assert hall.bet(300, at_us=2 * HOUR + DAY) == []
    assert hall.bet(301) == [of_scope(ABOVE, 601, 600, 300, bet="player")]


def test_lim_7_a_limit_that_is_lifted_holds_for_a_day_more() -> None:
    hall = lobby().given(
        ann_sets(1, setting(BET, 200)), ann_sets(2, setting(BET, None), at_us=HOUR)
    )
    assert hall.bet(300, at_us=HOUR + DAY - 1) != []
    assert hall.bet(300, at_us=HOUR + DAY) == []


def test_lim_7_what_waits_is_given_up_by_a_tighter_wish() -> None:
    hall = lobby().given(
        ann_sets(1, setting(BET, 200)),
        ann_sets(2, setting(BET, 600), at_us=HOUR),
        ann_sets(3, setting(BET, 200), at_us=2 * HOUR),
    )
    assert hall.bet(300, at_us=3 * DAY) != []


def test_lim_7_a_wish_between_what_holds_and_what_waits_does_not_wait_longer() -> None:
    hall = lobby().given(
        ann_sets(1, setting(BET, 200)),
        ann_sets(2, setting(BET, 600), at_us=HOUR),
        ann_sets(3, setting(BET, 400), at_us=2 * HOUR),
    )
    assert hall.bet(300, at_us=HOUR + DAY) == []
    assert hall.bet(200) == [of_scope(ABOVE, 500, 400, 100, bet="player")]


def test_lim_7_a_wish_looser_than_what_waits_waits_anew() -> None:
    hall = lobby().given(
        ann_sets(1, setting(BET, 200)),
        ann_sets(2, setting(BET, 400), at_us=HOUR),
        ann_sets(3, setting(BET, 600), at_us=2 * HOUR),
    )
    assert hall.bet(300, at_us=2 * HOUR + DAY - 1) != []
    assert hall.bet(600, at_us=2 * HOUR + DAY) == []


def test_lim_7_the_limits_of_a_former_jurisdiction_hold_for_a_day() -> None:
    hall = lobby().given(sets(1, limits.SCOPE_JURISDICTION, "FR", setting(BET, 200)))
    hall.game.when(describe(2, "DE", at_us=HOUR)).then(
        protection.AccountDescribed(
            request_id=request_id(2, HOUR),
            account_id="ann",
            jurisdiction="DE",
            former_until_us=START_US + HOUR + DAY,
        )
    )
    assert hall.bet(300, at_us=HOUR + DAY - 1) == [
        of_scope(ABOVE, 300, 200, 200, limits.SCOPE_JURISDICTION, "FR", bet="player")
    ]
    assert hall.bet(300, at_us=HOUR + DAY) == []


def test_lim_7_a_new_jurisdiction_holds_at_once() -> None:
    hall = lobby().given(
        sets(1, limits.SCOPE_JURISDICTION, "DE", setting(BET, 200)), describe(2, "DE")
    )
    assert hall.bet(300) != []


# ---- refusals of SetLimits, in their order -----------------------------------------------------


def test_a_repeated_order_is_one_order() -> None:
    hall = lobby().given(ann_sets(1, setting(BET, 200)))
    first = hall.game.last.position
    hall.game.when(ann_sets(1, setting(BET, 200))).then(
        log.RequestRepeated(
            request_id=request_id(1),
            first=entry_pb2.Position(
                segment=first.segment, sequence=first.sequence, index=first.index
            ),
        )
    )
    assert list(hall.game.state.outcomes) == [("operator:dana", request_id(1))]


@pytest.mark.parametrize(
    ("at_us", "hash_of", "why"),
    [
        (0, b"other", protection.ORDER_REFUSAL_REQUEST_ID_REUSED),
        (DAY + HOUR, b"1", protection.ORDER_REFUSAL_REQUEST_EXPIRED),
    ],
)
def test_an_id_is_used_once_and_for_a_day(
    at_us: int, hash_of: bytes, why: protection.OrderRefusal.ValueType
) -> None:
    hall = lobby().given(ann_sets(1, setting(BET, 200)))
    again = ann_sets(1, setting(BET, 200))
    body = again.body
    assert isinstance(body, protection.SetLimits)
    body.request_hash = hash_of
    hall.game.when(by(body, actor="operator:dana", at_us=at_us)).then(not_obeyed(1, why))
    kept = hall.game.state.outcomes["operator:dana", request_id(1)]
    assert isinstance(kept, protection.LimitsSet)


def test_an_id_from_tomorrow_is_refused() -> None:
    order = ann_sets(1, setting(BET, 200), at_us=2 * HOUR)
    lobby().game.when(by(order.body, actor="operator:dana", at_us=0)).then(
        not_obeyed(1, protection.ORDER_REFUSAL_REQUEST_ID_AHEAD, at_us=2 * HOUR)
    )


def test_outcomes_are_forgotten_with_their_ids() -> None:
    hall = lobby()
    for number in range(1, 200):
        at_us = number * HOUR
        hall.given(ann_sets(number, setting(BET, 1_000 - number), at_us=at_us))
    assert len(hall.game.state.outcomes) <= 24 + 2 + orders.KEPT_BEYOND


@pytest.mark.parametrize(
    ("order", "refused"),
    [
        (
            sets(1, limits.SCOPE_ACCOUNT, "bob", setting(BET, 1), currency="USD"),
            not_obeyed(1, protection.ORDER_REFUSAL_UNKNOWN_ACCOUNT, account="bob"),
        ),
        (
            sets(1, limits.SCOPE_ACCOUNT, "ann", setting(BET, 1), partner="other"),
            not_obeyed(1, protection.ORDER_REFUSAL_UNKNOWN_ACCOUNT),
        ),
        (
            sets(1, limits.SCOPE_TABLE, "t9", setting(STAKE, 1)),
            not_obeyed(1, protection.ORDER_REFUSAL_UNKNOWN_TABLE, account=""),
        ),
        (
            sets(1, limits.SCOPE_TABLE, T, setting(STAKE, 1), currency="USD"),
            not_obeyed(1, protection.ORDER_REFUSAL_CURRENCY_MISMATCH, account=""),
        ),
        (
            ann_sets(1, setting(STAKE, 1), currency="USD"),
            not_obeyed(1, protection.ORDER_REFUSAL_CURRENCY_MISMATCH),
        ),
    ],
)
def test_whose_limits_there_are_none_of_cannot_be_set(
    order: Any, refused: protection.LimitsOrderRefused
) -> None:
    lobby().game.when(order).then(refused)


FAULTS = [
    ((setting(protection.LIMIT_KIND_UNSPECIFIED, 1),), "the kind of a limit is not known"),
    ((setting(BET, 1, bet="no_such"),), "there is no such bet that may be limited"),
    ((setting(BET, 1, bet="insurance"),), "there is no such bet that may be limited"),
    (
        (setting(BET, 1, game=rule_sets.GAME_BLACKJACK, bet="double"),),
        "there is no such bet that may be limited",
    ),
    (
        (setting(BET, 1, game=rule_sets.GAME_BACCARAT, bet="straight"),),
        "there is no such bet that may be limited",
    ),
    ((setting(BET, 1, window_s=3_600),), "a limit of bets, rounds or age has no window"),
    ((setting(STAKE, 1),), "the limit needs a window"),
    ((setting(LOSS, 1, window_s=1_800),), "a window is whole hours, up to 30 days"),
    ((setting(DEPOSIT, 1, window_s=31 * DAY_S),), "a window is whole hours, up to 30 days"),
    (
        (setting(ROUND, 1, bet="tie"),),
        "a game and a bet are named for limits of bets only",
    ),
    ((setting(BET, -1),), f"a maximum is 0 to {MAX_MINOR}"),
    ((setting(BET, MAX_MINOR + 1),), f"a maximum is 0 to {MAX_MINOR}"),
    ((setting(SESSION, 30 * DAY_S + 1),), f"a maximum is 0 to {30 * DAY_S}"),
    ((setting(AGE, 1),), "the maximum is 0 where a statement of age is required"),
    ((setting(BET, 1), setting(BET, 2)), "a limit is named twice"),
]


@pytest.mark.parametrize(("of", "detail"), FAULTS, ids=[detail for _, detail in FAULTS])
def test_a_limit_that_cannot_be_is_refused(
    of: tuple[protection.LimitSetting, ...], detail: str
) -> None:
    lobby().game.when(ann_sets(1, *of)).then(
        not_obeyed(1, protection.ORDER_REFUSAL_BAD_LIMIT, detail=detail)
    )


@pytest.mark.parametrize(
    ("order", "detail"),
    [
        (ann_sets(1, setting(BET, 1), currency=""), "an amount needs its currency"),
        (
            sets(1, limits.SCOPE_TABLE, T, setting(STAKE, 1, window_s=DAY_S)),
            "a table limits bets and rounds",
        ),
    ],
)
def test_a_limit_fits_its_scope(order: Any, detail: str) -> None:
    hall = lobby()
    hall.game.when(order)
    [refused] = hall.game.answers
    assert isinstance(refused, protection.LimitsOrderRefused)
    assert (refused.refusal, refused.detail) == (protection.ORDER_REFUSAL_BAD_LIMIT, detail)


def test_a_time_needs_no_currency() -> None:
    lobby().game.when(ann_sets(1, setting(SESSION, 3_600), currency="")).then_only(
        protection.LimitsSet
    )


def test_lim_7_a_partner_may_tighten_and_not_loosen() -> None:
    hall = lobby()
    by_partner: dict[str, Any] = {"actor": "partner:acme"}
    hall.game.when(ann_sets(1, setting(BET, 500), **by_partner)).then_only(protection.LimitsSet)
    hall.game.when(ann_sets(2, setting(BET, 400), **by_partner)).then_only(protection.LimitsSet)
    for number, wish in ((3, 401), (4, None)):
        hall.game.when(ann_sets(number, setting(BET, wish), **by_partner)).then(
            not_obeyed(number, protection.ORDER_REFUSAL_LOOSENS)
        )
    # One of two is looser: neither is set.
    both = setting(BET, 100), setting(ROUND, None)
    hall.given(ann_sets(5, setting(ROUND, 900)))
    hall.game.when(ann_sets(6, *both, **by_partner)).then(
        not_obeyed(6, protection.ORDER_REFUSAL_LOOSENS)
    )
    assert hall.bet(400) == []


def test_a_scope_has_so_many_limits() -> None:
    hall = lobby()
    many = [setting(STAKE, 10, window_s=3_600 * hours) for hours in range(1, MAX_LIMITS + 1)]
    hall.game.when(ann_sets(1, *many)).then_only(protection.LimitsSet)
    hall.game.when(ann_sets(2, setting(BET, 1))).then(
        not_obeyed(2, protection.ORDER_REFUSAL_TOO_MANY_LIMITS)
    )
    hall.game.when(ann_sets(3, setting(STAKE, 5, window_s=3_600))).then_only(protection.LimitsSet)


def test_a_cell_has_so_many_scopes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orders, "MAX_SCOPES", 1)
    hall = lobby().given(sets(1, limits.SCOPE_PARTNER, "acme", setting(BET, 1)))
    hall.game.when(ann_sets(2, setting(BET, 1))).then(
        not_obeyed(2, protection.ORDER_REFUSAL_TOO_MANY_LIMITS)
    )


def test_a_scope_without_limits_is_forgotten() -> None:
    game = Deciding(CORE).given(opened(), ann_sets(1, setting(BET, None)))
    assert game.state.scopes == {}


def test_lim_6_windows_of_a_partner_hold_for_each_account_by_itself() -> None:
    hall = lobby().given(opened("bob"))
    hall.given(sets(1, limits.SCOPE_PARTNER, "acme", setting(STAKE, 500, window_s=DAY_S)))
    assert hall.bet(400) == []
    assert hall.bet(200, at_us=60_000_000) == [
        over(
            limits.LIMIT_STAKE_WINDOW,
            600,
            500,
            100,
            until=DAY + HOUR,
            scope=limits.SCOPE_PARTNER,
            scope_id="acme",
        )
    ]
