"""The further stakes of blackjack's actions on their way through limits: stages, the main bet they
stand on, the account's maximum (BJ-3, BJ-6, BJ-7, BJ-11, LIM-4)."""

from __future__ import annotations

from typing import Any

import pytest

from sabot.limits.v1 import events_pb2 as limits
from sabot.rules.v1 import events_pb2 as rules
from sabot.table.v1 import bet_pb2
from sabot.table.v1 import events_pb2 as table
from services.limits.domain.state import LimitsState
from tests.unit.deciding import Deciding, by, failure_of
from tests.unit.limits_facts import (
    BETTING_CLOSED,
    BLACKJACK,
    INSURANCE_CLOSED,
    ROUND_CLOSED,
    ROUND_VOIDED,
    R,
    T,
    Wager,
    account_maximum,
    action,
    approved,
    declined,
    no_main,
    on,
    placed,
    plain,
    refused,
    reserved,
    round_open,
    spec,
)

MAIN: Wager = ("b1", "main", "3", 1_000)
DOUBLE: Wager = ("x1", "double", "3", 1_000)
SPLIT: Wager = ("x2", "split", "3", 1_000)
INSURANCE: Wager = ("x3", "insurance", "3", 500)
STAGES = [
    (DOUBLE, bet_pb2.STAGE_PLAY),
    (SPLIT, bet_pb2.STAGE_PLAY),
    (INSURANCE, bet_pb2.STAGE_INSURANCE),
]
EACH_STAGE = pytest.mark.parametrize(("extra", "stage"), STAGES, ids=[one[1] for one, _ in STAGES])


def dealt(**restrictions: Any) -> Deciding[LimitsState]:
    """Betting is closed, and seat 3 has its main bet on."""
    game = round_open(spec(BLACKJACK, high=1_000, **restrictions))
    on(game, "r1", MAIN)
    return game.given(BETTING_CLOSED)


@EACH_STAGE
def test_lim_4_a_further_stake_is_approved_at_its_stage(
    extra: Wager, stage: bet_pb2.Stage.ValueType
) -> None:
    dealt().when(action("a1", extra)).then(approved("a1", extra, stage=stage))


def test_bj_6_stake_limits_do_not_hold_for_a_further_stake() -> None:
    """A double may be as small as 1, and lies beside the main bet."""
    small: Wager = ("x1", "double", "3", 1)
    dealt().when(action("a1", small)).then(approved("a1", small, stage=bet_pb2.STAGE_PLAY))
    of = spec(BLACKJACK, low=700, high=1_000, step=700)
    game = round_open(of)
    on(game, "r1", ("b1", "main", "3", 700))
    half: Wager = ("x3", "insurance", "3", 350)
    game.given(BETTING_CLOSED).when(action("a1", half)).then(
        approved("a1", half, stage=bet_pb2.STAGE_INSURANCE)
    )


@EACH_STAGE
def test_lim_4_a_further_stake_counts_to_the_accounts_maximum(
    extra: Wager, stage: bet_pb2.Stage.ValueType
) -> None:
    most = 1_000 + extra[3]
    dealt(max_account_minor=most).when(action("a1", extra)).then(approved("a1", extra, stage=stage))
    game = dealt(max_account_minor=most - 1)
    game.when(action("a1", extra)).then(
        refused("a1", [extra[0]], account_maximum(most, most - 1), stage=stage)
    )
    assert list(game.state.books[R].holdings["acme", "ann"].bets) == ["b1"]


def test_lim_4_further_stakes_add_up() -> None:
    game = dealt(max_account_minor=2_000)
    game.when(action("a1", INSURANCE)).then_only(limits.BetsApproved)
    game.given(reserved("a1", INSURANCE))
    game.when(action("a2", SPLIT)).then(
        refused("a2", ["x2"], account_maximum(2_500, 2_000), stage=bet_pb2.STAGE_PLAY)
    )
    game = dealt(max_account_minor=2_000)
    game.given(action("a1", INSURANCE), declined("a1", INSURANCE))
    game.when(action("a2", SPLIT)).then(approved("a2", SPLIT, stage=bet_pb2.STAGE_PLAY))


@EACH_STAGE
def test_bj_11_a_further_stake_needs_the_main_bet_of_its_account_at_its_seat(
    extra: Wager, stage: bet_pb2.Stage.ValueType
) -> None:
    kind, stake = extra[1], extra[3]
    elsewhere: Wager = (extra[0], kind, "4", stake)
    dealt().when(action("a1", elsewhere)).then(
        refused("a1", [extra[0]], no_main(kind, "4", stake), stage=stage)
    )
    dealt().when(action("a1", extra, account="ben")).then(
        refused("a1", [extra[0]], no_main(kind, "3", stake), account="ben", stage=stage)
    )
    dealt().when(by(action("a1", extra), partner="other")).then(
        refused("a1", [extra[0]], no_main(kind, "3", stake), stage=stage)
    )
    game = round_open(spec(BLACKJACK)).given(placed("r1", MAIN), BETTING_CLOSED)
    game.when(action("a1", extra)).then(
        refused("a1", [extra[0]], no_main(kind, "3", stake), stage=stage)
    )


@EACH_STAGE
def test_a_further_stake_in_a_round_that_is_voided_or_over_is_refused(
    extra: Wager, stage: bet_pb2.Stage.ValueType
) -> None:
    for last in (ROUND_VOIDED, ROUND_CLOSED):
        dealt().given(last).when(action("a1", extra)).then(
            refused("a1", [extra[0]], plain(limits.LIMIT_BOOK_CLOSED), stage=stage)
        )


@EACH_STAGE
def test_a_further_stake_whose_decision_failed_is_refused_when_it_is_retried(
    extra: Wager, stage: bet_pb2.Stage.ValueType
) -> None:
    game = dealt().given(action("a1", extra))
    game.retry(game.last).then(refused("a1", [extra[0]], plain(limits.LIMIT_FAILED), stage=stage))


def test_a_further_stake_that_the_wallet_failed_to_decide_counts_no_more() -> None:
    game = dealt(max_account_minor=2_000)
    game.given(
        action("a1", SPLIT),
        by(
            failure_of(approved("a1", SPLIT, stage=bet_pb2.STAGE_PLAY)),
            service="wallet",
        ),
    )
    game.when(action("a2", DOUBLE)).then(approved("a2", DOUBLE, stage=bet_pb2.STAGE_PLAY))


def test_a_refused_further_stake_releases_nothing() -> None:
    game = dealt(max_account_minor=1_500, max_exposure_minor=2_000)
    before = repr(game.state)
    game.when(action("a1", DOUBLE)).then_only(limits.BetsRefused)
    assert repr(game.state) == before
    game.when(action("a2", INSURANCE)).then(
        approved("a2", INSURANCE, stage=bet_pb2.STAGE_INSURANCE)
    )


def test_an_action_without_a_stake_asks_nothing_of_limits() -> None:
    for what in (rules.ACTION_HIT, rules.ACTION_STAND, rules.ACTION_DECLINE_INSURANCE):
        dealt().when(
            table.ActionTaken(account_id="ann", table_id=T, round_id=R, seat=3, action=what)
        ).then()


def test_bj_13_the_marker_of_insurance() -> None:
    marker = limits.BookClosed(table_id=T, round_id=R, stage=bet_pb2.STAGE_INSURANCE)
    game = dealt().given(action("a1", INSURANCE))
    game.when(INSURANCE_CLOSED).then(marker)
    late: Wager = ("x4", "insurance", "3", 500)
    game.when(action("a2", late)).then(
        refused("a2", ["x4"], plain(limits.LIMIT_BOOK_CLOSED), stage=bet_pb2.STAGE_INSURANCE)
    )
    game.when(action("a3", DOUBLE)).then(approved("a3", DOUBLE, stage=bet_pb2.STAGE_PLAY))
    # For a round that is over the marker comes all the same: the wallet says what it makes of it.
    dealt().given(ROUND_CLOSED).when(INSURANCE_CLOSED).then(marker)


def test_further_stakes_go_with_the_round() -> None:
    game = dealt().given(action("a1", DOUBLE), reserved("a1", DOUBLE), ROUND_CLOSED)
    assert game.state.books == {}
