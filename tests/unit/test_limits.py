"""The limits core: every input and answer that it folds, accepted and refused."""

from __future__ import annotations

from itertools import product

import pytest

from sabot.limits.v1 import events_pb2 as limits
from sabot.rules.v1 import rule_set_pb2 as rule_sets
from sabot.table.v1 import bet_pb2, spec_pb2
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.limits.domain.core import CORE
from services.limits.domain.queries import check, limits_at
from services.limits.domain.state import LimitsState
from tests.unit.deciding import Deciding, Fact, by, failure_of

T, R, A = "t1", "t1-1", "a1"
BETS = ("banker", "banker_no_commission", "player", "tie")


def spec(low: int = 100, high: int = 1_000, step: int = 1) -> spec_pb2.TableSpec:
    return spec_pb2.TableSpec(
        table_id=T,
        currency_code="EUR",
        rule_set=rule_sets.RuleSet(game=rule_sets.GAME_BACCARAT),
        limits=[
            spec_pb2.BetLimit(bet=bet, min_minor=low, max_minor=high, step_minor=step)
            for bet in BETS
        ],
    )


def bets(*wagers: tuple[str, str, int]) -> list[bet_pb2.Bet]:
    """(bet id, kind, stake)."""
    return [bet_pb2.Bet(bet_id=one, bet=kind, stake_minor=stake) for one, kind, stake in wagers]


def placed(
    request: str, *wagers: tuple[str, str, int], account: str = A, round_id: str = R
) -> table.BetsPlaced:
    return table.BetsPlaced(
        request_id=request,
        account_id=account,
        table_id=T,
        round_id=round_id,
        currency_code="EUR",
        bets=bets(*wagers),
    )


def approved(request: str, *wagers: tuple[str, str, int], account: str = A) -> limits.BetsApproved:
    return limits.BetsApproved(
        request_id=request,
        account_id=account,
        table_id=T,
        round_id=R,
        currency_code="EUR",
        bets=bets(*wagers),
    )


def refused(
    request: str, bet_ids: list[str], *violations: limits.Violation, round_id: str = R
) -> limits.BetsRefused:
    return limits.BetsRefused(
        request_id=request,
        account_id=A,
        table_id=T,
        round_id=round_id,
        bet_ids=bet_ids,
        violations=violations,
    )


def reserved(request: str, *wagers: tuple[str, str, int], account: str = A) -> wallet.StakeReserved:
    return wallet.StakeReserved(
        request_id=request,
        account_id=account,
        table_id=T,
        round_id=R,
        currency_code="EUR",
        bets=bets(*wagers),
    )


def declined(request: str, *wagers: tuple[str, str, int]) -> wallet.StakeDeclined:
    return wallet.StakeDeclined(
        request_id=request,
        account_id=A,
        table_id=T,
        round_id=R,
        bets=bets(*wagers),
        decline=wallet.DECLINE_INSUFFICIENT_FUNDS,
    )


def withdrawn(request: str, *wagers: tuple[str, str, int]) -> table.BetsWithdrawn:
    return table.BetsWithdrawn(
        request_id=request, account_id=A, table_id=T, round_id=R, bets=bets(*wagers)
    )


def withdrawal(request: str, *wagers: tuple[str, str, int]) -> limits.WithdrawalApproved:
    return limits.WithdrawalApproved(
        request_id=request, account_id=A, table_id=T, round_id=R, bets=bets(*wagers)
    )


def withdrawal_refused(
    request: str, bet_ids: list[str], *violations: limits.Violation
) -> limits.WithdrawalRefused:
    return limits.WithdrawalRefused(
        request_id=request,
        account_id=A,
        table_id=T,
        round_id=R,
        bet_ids=bet_ids,
        violations=violations,
    )


def returned(request: str, *wagers: tuple[str, str, int]) -> Fact:
    return by(
        wallet.StakeReturned(
            request_id=request,
            account_id=A,
            table_id=T,
            round_id=R,
            currency_code="EUR",
            bets=bets(*wagers),
            reason=wallet.RETURN_REASON_WITHDRAWN,
            partner_id="acme",
        )
    )


def below(bet: str, would_be: int, allowed: int = 100) -> limits.Violation:
    return limits.Violation(
        limit=limits.LIMIT_BELOW_MINIMUM, bet=bet, allowed_minor=allowed, would_be_minor=would_be
    )


def above(bet: str, would_be: int, allowed: int = 1_000) -> limits.Violation:
    return limits.Violation(
        limit=limits.LIMIT_ABOVE_MAXIMUM, bet=bet, allowed_minor=allowed, would_be_minor=would_be
    )


def off_step(bet: str, would_be: int, step: int) -> limits.Violation:
    return limits.Violation(
        limit=limits.LIMIT_STAKE_STEP, bet=bet, allowed_minor=step, would_be_minor=would_be
    )


def opposite(bet: str, would_be: int, against: str) -> limits.Violation:
    return limits.Violation(
        limit=limits.LIMIT_OPPOSITE_SIDES, bet=bet, would_be_minor=would_be, against=against
    )


def plain(limit: limits.Limit.ValueType) -> limits.Violation:
    return limits.Violation(limit=limit)


def round_open(**changes: int) -> Deciding[LimitsState]:
    return Deciding(CORE).given(
        table.TableOpened(spec=spec(**changes), revision=1),
        table.RoundOpened(table_id=T, round_id=R, revision=1),
    )


# ---- bets --------------------------------------------------------------------------------------


def test_bets_within_the_limits_are_approved() -> None:
    wagers = (("b1", "player", 100), ("b2", "tie", 1_000))
    round_open().when(placed("r1", *wagers)).then(approved("r1", *wagers))


@pytest.mark.parametrize(
    ("stake", "violations"),
    [
        (99, [below("player", 99)]),
        (100, []),
        (1_000, []),
        (1_001, [above("player", 1_001)]),
        (0, [below("player", 0)]),
        (-5, [below("player", -5)]),
    ],
)
def test_lim_4_minimum_and_maximum_are_inclusive(
    stake: int, violations: list[limits.Violation]
) -> None:
    answer = approved("r1", ("b1", "player", stake))
    expected = refused("r1", ["b1"], *violations) if violations else answer
    round_open().when(placed("r1", ("b1", "player", stake))).then(expected)


def test_lim_4_the_total_on_a_bet_counts_within_a_request() -> None:
    wagers = (("b1", "player", 60), ("b2", "player", 40))
    round_open().when(placed("r1", *wagers)).then(approved("r1", *wagers))
    wagers = (("b1", "player", 600), ("b2", "player", 401))
    round_open().when(placed("r1", *wagers)).then(
        refused("r1", ["b1", "b2"], above("player", 1_001))
    )


def test_mon_2_a_stake_that_is_none_is_not_made_good_by_another() -> None:
    round_open().when(placed("r1", ("b1", "player", 500), ("b2", "player", -100))).then(
        refused("r1", ["b1", "b2"], below("player", -100))
    )


def test_lim_4_a_raise_may_be_smaller_than_the_minimum_on_a_reserved_stake() -> None:
    first, more = ("b1", "player", 100), ("b2", "player", 1)
    (
        round_open()
        .given(placed("r1", first), reserved("r1", first))
        .when(placed("r2", more))
        .then(approved("r2", more))
    )


def test_lim_4_a_stake_that_may_yet_be_declined_covers_no_raise() -> None:
    first, more = ("b1", "player", 100), ("b2", "player", 50)
    (
        round_open()
        .given(placed("r1", first))
        .when(placed("r2", more))
        .then(refused("r2", ["b2"], below("player", 50)))
    )


def test_a_stake_counts_from_its_approval() -> None:
    (
        round_open()
        .given(placed("r1", ("b1", "player", 900)))
        .when(placed("r2", ("b2", "player", 101)))
        .then(refused("r2", ["b2"], above("player", 1_001)))
    )


def test_a_declined_stake_counts_no_more() -> None:
    first, second = ("b1", "player", 900), ("b2", "player", 1_000)
    (
        round_open()
        .given(placed("r1", first), declined("r1", first))
        .when(placed("r2", second))
        .then(approved("r2", second))
    )


def test_a_stake_that_the_wallet_failed_to_decide_counts_no_more() -> None:
    first, second = ("b1", "player", 900), ("b2", "banker", 1_000)
    (
        round_open()
        .given(
            placed("r1", first),
            by(failure_of(approved("r1", first)), service="wallet"),
            declined("r1", first),  # A retry says so once more.
        )
        .when(placed("r2", second))
        .then(approved("r2", second))
    )


def test_other_failures_release_nothing() -> None:
    first = ("b1", "player", 900)
    (
        round_open()
        .given(
            placed("r1", first),
            by(failure_of(approved("r1", first)), service="table"),
            by(failure_of(withdrawal("r1", first)), service="wallet"),
        )
        .when(placed("r2", ("b2", "player", 101)))
        .then(refused("r2", ["b2"], above("player", 1_001)))
    )


def test_mon_4_totals_are_multiples_of_the_step() -> None:
    game = round_open(step=50)
    game.when(placed("r1", ("b1", "tie", 125))).then(
        refused("r1", ["b1"], off_step("tie", 125, 50))
    )
    wagers = (("b1", "tie", 75), ("b2", "tie", 75))
    game.when(placed("r2", *wagers)).then(approved("r2", *wagers))


@pytest.mark.parametrize("banker", ["banker", "banker_no_commission"])
def test_lim_1_player_with_banker_is_forbidden_over_all_requests(banker: str) -> None:
    (
        round_open()
        .given(placed("r1", ("b1", "player", 100)))
        .when(placed("r2", ("b2", banker, 200)))
        .then(refused("r2", ["b2"], opposite(banker, 200, "player")))
    )
    (
        round_open()
        .given(placed("r1", ("b1", banker, 100)))
        .when(placed("r2", ("b2", "player", 200)))
        .then(refused("r2", ["b2"], opposite("player", 200, banker)))
    )


def test_lim_1_both_sides_in_one_request() -> None:
    round_open().when(placed("r1", ("b1", "player", 100), ("b2", "banker", 200))).then(
        refused(
            "r1",
            ["b1", "b2"],
            opposite("player", 100, "banker"),
            opposite("banker", 200, "player"),
        )
    )


def test_lim_1_both_ways_of_banker_go_together() -> None:
    wagers = (("b1", "banker", 100), ("b2", "banker_no_commission", 100), ("b3", "tie", 100))
    round_open().when(placed("r1", *wagers)).then(approved("r1", *wagers))


def test_lim_1_is_per_account_and_partner() -> None:
    game = round_open().given(placed("r1", ("b1", "player", 100)))
    game.when(placed("r2", ("b2", "banker", 100), account="a2")).then(
        approved("r2", ("b2", "banker", 100), account="a2")
    )
    game.when(by(placed("r3", ("b3", "banker", 100)), partner="other")).then(
        approved("r3", ("b3", "banker", 100))
    )


def test_every_violation_is_told_in_order_of_bet_and_limit() -> None:
    (
        round_open(step=7)
        .given(placed("r1", ("b1", "player", 105)))
        .when(placed("r2", ("b2", "tie", 10), ("b3", "banker", 2_000)))
        .then(
            refused(
                "r2",
                ["b2", "b3"],
                below("tie", 10),
                off_step("tie", 10, 7),
                above("banker", 2_000),
                off_step("banker", 2_000, 7),
                opposite("banker", 2_000, "player"),
            )
        )
    )


def test_a_bet_that_is_not_offered_fits_no_limit() -> None:
    round_open().when(placed("r1", ("b1", "dragon_7", 100))).then(
        refused("r1", ["b1"], above("dragon_7", 100, 0))
    )


def test_a_refused_request_counts_for_nothing() -> None:
    (
        round_open()
        .given(placed("r1", ("b1", "player", 100), ("b2", "tie", 1)))
        .when(placed("r2", ("b3", "banker", 100)))
        .then(approved("r2", ("b3", "banker", 100)))
    )


def test_a_closed_book_takes_no_bets() -> None:
    closed = table.BettingClosed(table_id=T, round_id=R)
    voided = table.RoundVoided(table_id=T, round_id=R)
    ended = table.RoundClosed(table_id=T, round_id=R)
    for last in (closed, voided, ended):
        round_open().given(last).when(placed("r1", ("b1", "player", 1))).then(
            refused("r1", ["b1"], plain(limits.LIMIT_BOOK_CLOSED))
        )
    round_open().when(placed("r1", ("b1", "player", 100), round_id="t1-9")).then(
        refused("r1", ["b1"], plain(limits.LIMIT_BOOK_CLOSED), round_id="t1-9")
    )


def test_bets_whose_decision_failed_are_refused_when_it_is_retried() -> None:
    game = round_open().given(placed("r1", ("b1", "player", 100)))
    event = game.last
    game.retry(event).then(refused("r1", ["b1"], plain(limits.LIMIT_FAILED)))
    game.given(table.BettingClosed(table_id=T, round_id=R))
    game.retry(event).then(refused("r1", ["b1"], plain(limits.LIMIT_FAILED)))


def test_a_round_keeps_the_limits_that_stood_when_it_opened() -> None:
    game = round_open().given(table.TableOpened(spec=spec(low=10, high=20), revision=2))
    game.when(placed("r1", ("b1", "player", 500))).then(approved("r1", ("b1", "player", 500)))
    game.given(
        table.RoundClosed(table_id=T, round_id=R),
        table.RoundOpened(table_id=T, round_id="t1-2", revision=2),
    )
    game.when(placed("r1", ("b2", "player", 500), round_id="t1-2")).then(
        refused("r1", ["b2"], above("player", 500, 20), round_id="t1-2")
    )


# ---- withdrawals (LIM-8) -----------------------------------------------------------------------


def test_lim_8_all_of_a_bet_may_go() -> None:
    wagers = (("b1", "player", 100), ("b2", "player", 100))
    (
        round_open()
        .given(placed("r1", *wagers), reserved("r1", *wagers))
        .when(withdrawn("w1", *wagers))
        .then(withdrawal("w1", *wagers))
    )


@pytest.mark.parametrize(("rest", "fine"), [(100, True), (99, False)])
def test_lim_8_the_rest_keeps_the_minimum(rest: int, fine: bool) -> None:
    first, second = ("b1", "player", 100), ("b2", "player", rest)
    expected = (
        withdrawal("w1", first) if fine else withdrawal_refused("w1", ["b1"], below("player", rest))
    )
    (
        round_open()
        .given(placed("r1", first, second), reserved("r1", first, second))
        .when(withdrawn("w1", first))
        .then(expected)
    )


def test_lim_8_the_rest_keeps_the_step() -> None:
    first, second = ("b1", "player", 75), ("b2", "player", 125)
    (
        round_open(step=100)
        .given(placed("r1", first, second), reserved("r1", first, second))
        .when(withdrawn("w1", first))
        .then(withdrawal_refused("w1", ["b1"], off_step("player", 125, 100)))
    )


def test_lim_8_a_stake_not_yet_reserved_covers_no_rest() -> None:
    """50 stay reserved on top of a pending 100: should that be declined, 50 would be left."""
    first, raise_, pending = ("b1", "player", 100), ("b2", "player", 50), ("b3", "player", 100)
    game = round_open().given(
        placed("r1", first),
        reserved("r1", first),
        placed("r2", raise_),
        reserved("r2", raise_),
        placed("r3", pending),
    )
    game.when(withdrawn("w1", first)).then(withdrawal_refused("w1", ["b1"], below("player", 50)))
    game.given(reserved("r3", pending))
    game.when(withdrawn("w2", first)).then(withdrawal("w2", first))


def test_lim_8_a_pending_raise_must_not_be_left_alone() -> None:
    first, raise_ = ("b1", "player", 100), ("b2", "player", 50)
    game = round_open().given(placed("r1", first), reserved("r1", first), placed("r2", raise_))
    game.when(withdrawn("w1", first)).then(withdrawal_refused("w1", ["b1"], below("player", 50)))
    game.given(declined("r2", raise_))
    game.when(withdrawn("w2", first)).then(withdrawal("w2", first))


def test_lim_8_pending_bets_may_be_taken_back() -> None:
    first = ("b1", "player", 100)
    game = round_open().given(placed("r1", first))
    game.when(withdrawn("w1", first)).then(withdrawal("w1", first))
    # It is on its way out, whatever the wallet says of it.
    game.given(reserved("r1", first)).when(placed("r2", ("b2", "player", 50))).then(
        refused("r2", ["b2"], below("player", 50))
    )


def test_a_leaving_stake_covers_nothing_and_counts_until_it_went_back() -> None:
    first = ("b1", "player", 900)
    game = round_open().given(placed("r1", first), reserved("r1", first), withdrawn("w1", first))
    game.when(placed("r2", ("b2", "player", 50))).then(refused("r2", ["b2"], below("player", 50)))
    game.when(placed("r3", ("b3", "banker", 100))).then(
        refused("r3", ["b3"], opposite("banker", 100, "player"))
    )
    game.given(returned("w1", first))
    game.when(placed("r4", ("b4", "banker", 100))).then(approved("r4", ("b4", "banker", 100)))
    assert list(game.state.books[R].holdings["acme", A].bets) == ["b4"]


def test_bets_that_are_off_already_are_left_out_of_an_approval() -> None:
    first, second = ("b1", "player", 100), ("b2", "player", 100)
    game = round_open().given(
        placed("r1", first), reserved("r1", first), placed("r2", second), declined("r2", second)
    )
    game.when(withdrawn("w1", first, second)).then(withdrawal("w1", first))
    game.when(withdrawn("w2", first)).then(withdrawal("w2"))


def test_a_withdrawal_after_the_book_is_closed_is_refused() -> None:
    first = ("b1", "player", 100)
    game = round_open().given(placed("r1", first), reserved("r1", first))
    game.given(table.BettingClosed(table_id=T, round_id=R))
    game.when(withdrawn("w1", first)).then(
        withdrawal_refused("w1", ["b1"], plain(limits.LIMIT_BOOK_CLOSED))
    )


def test_no_schedule_of_declines_leaves_a_rest_under_the_minimum() -> None:
    """All short histories of one bet's requests, withdrawals and outcomes: what the wallet has
    reserved in the end is nothing or enough."""
    wagers = [("b0", "player", 100), ("b1", "player", 60), ("b2", "player", 140)]
    steps = ["place0", "place1", "place2", "take0", "take1", "take2"]
    for order in product(range(len(steps)), repeat=4):
        for outcomes in product((True, False), repeat=3):
            _play([steps[one] for one in order], wagers, outcomes)


def _play(steps: list[str], wagers: list[tuple[str, str, int]], outcomes: tuple[bool, ...]) -> None:
    game = round_open()
    game.careful = False
    placed_already: set[int] = set()
    waiting: list[limits.BetsApproved | limits.WithdrawalApproved] = []
    for step in steps:
        number = int(step[-1])
        if step.startswith("place"):
            if number in placed_already:
                return
            placed_already.add(number)
            game.when(placed(f"r{number}", wagers[number]))
        else:
            game.when(withdrawn(f"w{number}", wagers[number]))
        waiting += [
            one
            for one in game.answers
            if isinstance(one, limits.BetsApproved | limits.WithdrawalApproved)
        ]
    on: dict[str, int] = {}
    for answer in waiting:
        for bet in answer.bets:
            if isinstance(answer, limits.WithdrawalApproved):
                on.pop(bet.bet_id, None)
            elif outcomes[int(bet.bet_id[-1])]:
                on[bet.bet_id] = bet.stake_minor
    total = sum(on.values())
    assert total == 0 or total >= 100, (steps, outcomes, on)


# ---- markers, deposits, queries ----------------------------------------------------------------


def test_the_markers() -> None:
    round_open().when(table.BettingClosed(table_id=T, round_id=R)).then(
        limits.BookClosed(table_id=T, round_id=R)
    )
    round_open().when(table.RoundVoided(table_id=T, round_id=R)).then(
        limits.BookVoided(table_id=T, round_id=R)
    )


def test_a_deposit_is_approved() -> None:
    asked = wallet.DepositRequested(
        request_id="d1", account_id=A, currency_code="EUR", amount_minor=500
    )
    Deciding(CORE).when(asked).then(
        limits.DepositApproved(request_id="d1", account_id=A, currency_code="EUR", amount_minor=500)
    )


def test_what_is_over_is_forgotten() -> None:
    first = ("b1", "player", 100)
    game = round_open().given(placed("r1", first), reserved("r1", first))
    game.given(
        table.BettingClosed(table_id=T, round_id=R),
        table.RoundClosed(table_id=T, round_id=R),
        table.TableClosed(table_id=T),
    )
    assert game.state == LimitsState()


def test_check_says_what_placing_would_say() -> None:
    game = round_open().given(placed("r1", ("b1", "player", 900)))
    wagers = bets(("", "player", 101), ("", "banker", 100))
    asked = check(game.state, "acme", A, T, wagers)
    game.when(placed("r2", ("b2", "player", 101), ("b3", "banker", 100)))
    answer = game.answers[0]
    assert isinstance(answer, limits.BetsRefused)
    assert asked == list(answer.violations)
    assert check(game.state, "acme", "a2", T, wagers[:1]) == []
    assert check(game.state, "acme", A, "t9", wagers) is None
    game.given(table.BettingClosed(table_id=T, round_id=R))
    assert check(game.state, "acme", A, T, wagers) == [plain(limits.LIMIT_BOOK_CLOSED)]


def test_limits_at_a_table() -> None:
    game = round_open()
    found = limits_at(game.state, T)
    assert found is not None
    assert list(found.limits) == list(spec().limits)
    assert limits_at(game.state, "t9") is None
