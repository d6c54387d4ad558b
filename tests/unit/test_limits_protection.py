"""What protects an account: stakes, losses, deposits and time at play within windows, exclusion,
breaks, age (rule LIM-7)."""

from __future__ import annotations

from typing import Any

import pytest

from sabot.limits.v1 import events_pb2 as limits
from sabot.limits.v1 import protection_events_pb2 as protection
from sabot.table.v1 import bet_pb2
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import correction_events_pb2 as wallet_corrections
from sabot.wallet.v1 import events_pb2 as wallet
from services.limits.domain.protection import IDLE_US, MAX_COOL_OFF_US, MAX_FORMER
from tests.unit.deciding import START_US, Fact, by, request_id
from tests.unit.limits_facts import (
    BACCARAT,
    BETTING_CLOSED,
    BLACKJACK,
    ROUND_CLOSED,
    ROUND_VOIDED,
    R,
    T,
    action,
    approved,
    below,
    declined,
    on,
    placed,
    refused,
    returned,
    spec,
    withdrawn,
)
from tests.unit.protection_facts import (
    AGE,
    BET,
    DAY,
    DAY_S,
    DEPOSIT,
    HOUR,
    LOSS,
    MINUTE,
    SESSION,
    STAKE,
    WEEK_S,
    Lobby,
    S,
    ann_sets,
    deposit,
    deposit_refused,
    deposit_taken,
    describe,
    exclude,
    lift,
    not_obeyed,
    opened,
    over,
    paid,
    paid_in,
    sets,
    setting,
)

SPEC = spec(BACCARAT, high=100_000)
COOL_OFF = protection.EXCLUSION_KIND_COOL_OFF
STAKES, LOSSES = limits.LIMIT_STAKE_WINDOW, limits.LIMIT_LOSS_WINDOW
DEPOSITS = limits.LIMIT_DEPOSIT_WINDOW


def lobby(*of: protection.LimitSetting, account: Any = None) -> Lobby:
    hall = Lobby(SPEC, account or opened())
    return hall.given(ann_sets(1, *of)) if of else hall


def next_round(hall: Lobby) -> None:
    """Another round of the same name: its bets are gone, and what windows hold stays."""
    hall.given(ROUND_CLOSED, table.RoundOpened(table_id=T, round_id=R, revision=1, round_in_shoe=2))


# ---- stakes ------------------------------------------------------------------------------------


def test_lim_7_stakes_within_a_day_and_a_week() -> None:
    hall = lobby(setting(STAKE, 500, window_s=DAY_S), setting(STAKE, 800, window_s=WEEK_S))
    assert hall.bet(500, at_us=MINUTE) == []
    assert hall.bet(100) == [over(STAKES, 600, 500, 0, until=DAY + HOUR)]
    assert hall.bet(400, at_us=DAY + HOUR) == [
        over(STAKES, 900, 800, 300, WEEK_S, until=7 * DAY + HOUR)
    ]
    assert hall.bet(300) == []
    # Of the first day only the part of the hour in which it was staked may count for longer.
    assert hall.bet(500, at_us=7 * DAY + 6 * HOUR) == []


def test_lim_7_a_stake_counts_from_its_approval() -> None:
    """What is not reserved yet counts too: else a thousand bets at once would pass."""
    hall = lobby(setting(STAKE, 500, window_s=DAY_S))
    hall.game.when(placed("p1", ("x1", "player", "", 400))).then_only(limits.BetsApproved)
    assert [one.limit for one in hall.bet(200)] == [STAKES]


@pytest.mark.parametrize("kind", [STAKE, LOSS])
def test_lim_7_what_is_declined_or_goes_back_was_never_staked(
    kind: protection.LimitKind.ValueType,
) -> None:
    hall = lobby(setting(kind, 500, window_s=DAY_S))
    wager = ("x1", "player", "", 500)
    hall.game.when(placed("p1", wager)).then_only(limits.BetsApproved)
    assert hall.bet(100) != []
    hall.given(declined("p1", wager))
    hall.game.when(placed("p2", wager)).then_only(limits.BetsApproved)
    hall.given(returned("p3", wager))
    assert hall.bet(500) == []


def test_lim_7_a_voided_round_gives_its_stakes_back_whenever_that_is() -> None:
    """They leave the windows that they were in, not those of today."""
    hall = lobby(setting(STAKE, 500, window_s=DAY_S))
    assert hall.bet(500) == []
    back = wallet.StakeReturned(
        account_id="ann",
        table_id=T,
        round_id=R,
        currency_code="EUR",
        bets=[bet_pb2.Bet(bet_id="b1", bet="player", stake_minor=500)],
        reason=wallet.RETURN_REASON_VOIDED,
        partner_id="acme",
    )
    hall.given(ROUND_VOIDED, by(back, partner="", at_us=3 * HOUR))
    next_round(hall)
    assert hall.bet(500) == []
    record = hall.game.state.accounts["acme", "ann"]
    assert record.history is not None
    assert record.history.at_stake_minor == 500


def test_lim_7_a_withdrawal_is_no_way_to_a_further_stake() -> None:
    hall = lobby(setting(STAKE, 500, window_s=DAY_S))
    assert hall.bet(500) == []
    hall.game.when(withdrawn("w1", ("b1", "player", "", 500)))
    assert hall.bet(500) != []  # Until the wallet gave it back.
    hall.given(returned("w1", ("b1", "player", "", 500)))
    assert hall.bet(500) == []


def test_lim_7_further_stakes_of_blackjack_count_and_are_limited() -> None:
    hall = Lobby(spec(BLACKJACK, high=100_000), opened())
    hall.given(ann_sets(1, setting(STAKE, 1_400, window_s=DAY_S)))
    on(hall.game, "r1", ("m1", "main", "3", 1_000))
    hall.given(BETTING_CLOSED)
    double = ("x1", "double", "3", 500)
    hall.game.when(action("a1", double)).then(
        refused(
            "a1",
            ["x1"],
            over(STAKES, 1_500, 1_400, 400, until=DAY + HOUR),
            stage=bet_pb2.STAGE_PLAY,
        )
    )
    less = ("x2", "double", "3", 400)
    hall.game.when(action("a2", less)).then(approved("a2", less, stage=bet_pb2.STAGE_PLAY))


def test_lim_7_a_stake_of_nothing_makes_no_room() -> None:
    hall = lobby(setting(STAKE, 500, window_s=DAY_S))
    hall.game.when(placed("p1", ("x1", "player", "", 600), ("x2", "tie", "", -600)))
    [answer] = hall.game.answers
    assert isinstance(answer, limits.BetsRefused)
    assert list(answer.violations) == [
        below("tie", "", -600),
        over(STAKES, 600, 500, 500),
    ]


# ---- losses ------------------------------------------------------------------------------------


def test_lim_7_what_is_at_stake_counts_as_lost_until_it_is_paid() -> None:
    hall = lobby(setting(LOSS, 500, window_s=DAY_S))
    assert hall.bet(300) == []
    assert hall.bet(201) == [over(LOSSES, 501, 500, 200)]
    hall.given(paid(300, 0, at_us=MINUTE))
    next_round(hall)
    assert hall.bet(201) == [over(LOSSES, 501, 500, 200, until=DAY + HOUR)]
    assert hall.bet(200) == []
    hall.given(paid(200, 400))
    next_round(hall)
    assert hall.bet(401) == [over(LOSSES, 501, 500, 400, until=DAY + HOUR)]
    assert hall.bet(400) == []


def test_lim_7_a_win_makes_room_and_a_push_none() -> None:
    hall = lobby(setting(LOSS, 500, window_s=DAY_S))
    assert hall.bet(500) == []
    hall.given(paid(500, 500))
    next_round(hall)
    assert hall.bet(500) == []
    hall.given(paid(500, 1_000))
    next_round(hall)
    assert hall.bet(1_001) == [over(LOSSES, 501, 500, 1_000, until=DAY + HOUR)]
    assert hall.bet(1_000) == []


def test_lim_7_a_payout_told_twice_is_one() -> None:
    hall = lobby(setting(LOSS, 500, window_s=DAY_S))
    assert hall.bet(300) == []
    hall.given(paid(300, 0), paid(300, 0))
    record = hall.game.state.accounts["acme", "ann"]
    assert record.history is not None
    assert record.history.at_stake_minor == 0


def test_lim_7_a_correction_counts_from_when_it_is_posted() -> None:
    hall = lobby(setting(LOSS, 500, window_s=DAY_S))
    assert hall.bet(300) == []
    hall.given(paid(300, 600, at_us=MINUTE))
    next_round(hall)
    # What was won is taken back: 300 more were lost than won, and then a void gives them back.
    hall.given(corrected(-600))
    assert hall.bet(201) == [over(LOSSES, 501, 500, 200, until=DAY + HOUR)]
    hall.given(corrected(300))
    assert hall.bet(501) == [over(LOSSES, 501, 500, 500, until=DAY + HOUR)]
    assert hall.bet(500) == []


def corrected(delta_minor: int) -> Fact:
    body = wallet_corrections.CorrectionPosted(
        partner_id="acme", account_id="ann", round_id="t1-1", payout_delta_minor=delta_minor
    )
    return by(body, partner="")


def test_lim_7_a_win_of_yesterday_is_no_room_for_the_losses_since() -> None:
    hall = lobby(setting(LOSS, 500, window_s=DAY_S))
    assert hall.bet(500, at_us=MINUTE) == []
    hall.given(paid(500, 1_000))
    next_round(hall)
    assert hall.bet(900, at_us=2 * HOUR) == []
    hall.given(paid(900, 0))
    next_round(hall)
    assert hall.bet(200, at_us=3 * HOUR) == [over(LOSSES, 600, 500, 100, until=DAY + HOUR)]
    assert [one.would_be_minor for one in hall.bet(100, at_us=DAY + HOUR)] == [1_000]


# ---- deposits ----------------------------------------------------------------------------------


def test_lim_7_a_deposit_is_approved_up_to_its_limit() -> None:
    hall = lobby(setting(DEPOSIT, 1_000, window_s=DAY_S))
    hall.game.when(deposit(1, 600)).then(deposit_taken(1, 600))
    hall.game.when(deposit(2, 401)).then(
        deposit_refused(2, 401, over(DEPOSITS, 1_001, 1_000, 400, until=DAY + HOUR))
    )
    hall.given(paid_in(1, 600))
    hall.game.when(deposit(3, 400)).then(deposit_taken(3, 400))
    hall.game.when(deposit(4, 1_000, at_us=DAY + HOUR)).then(deposit_taken(4, 1_000))


def test_lim_7_a_deposit_that_the_wallet_declines_after_all_does_not_count() -> None:
    hall = lobby(setting(DEPOSIT, 1_000, window_s=DAY_S))
    hall.game.when(deposit(1, 600)).then(deposit_taken(1, 600))
    other = wallet.AccountRequestDeclined(
        request_id="d1", account_id="ann", decline=wallet.DECLINE_REQUEST_ID_REUSED
    )
    hall.given(other)  # Of the id alone: the deposit is still under way.
    hall.game.when(deposit(2, 401)).then_only(limits.DepositRefused)
    hall.given(
        wallet.AccountRequestDeclined(
            request_id="d1", account_id="ann", decline=wallet.DECLINE_ACCOUNT_BLOCKED
        )
    )
    hall.game.when(deposit(3, 1_000)).then(deposit_taken(3, 1_000))
    hall.given(paid_in(3, 1_000))
    assert hall.game.state.deposits == {}


def test_lim_7_a_deposit_that_failed_is_not_approved_later() -> None:
    """The wallet has declined it as it failed: nothing would come that settles it here."""
    hall = lobby(setting(DEPOSIT, 1_000, window_s=DAY_S))
    hall.game.given(deposit(1, 600))
    event, hall = hall.game.last, lobby(setting(DEPOSIT, 1_000, window_s=DAY_S))
    failed = limits.Violation(limit=limits.LIMIT_FAILED)
    hall.game.retry(event).then(deposit_refused(1, 600, failed))
    assert hall.game.state.deposits == {}
    hall.game.when(deposit(2, 1_000)).then(deposit_taken(2, 1_000))


def test_lim_7_an_account_without_limits_deposits_as_ever() -> None:
    hall = lobby()
    hall.game.when(deposit(1, 10**12)).then(deposit_taken(1, 10**12))


# ---- time at play ------------------------------------------------------------------------------


def test_lim_7_a_session_ends_bets_when_its_time_is_over() -> None:
    hall = lobby(setting(SESSION, 3_600))
    for minute in range(0, 60, 20):
        assert hall.bet(100, at_us=minute * MINUTE) == []
    assert hall.bet(100, at_us=59 * MINUTE) == []
    started = hall.game.state.accounts["acme", "ann"].history
    assert started is not None
    [told] = hall.bet(100, at_us=61 * MINUTE)
    assert (told.limit, told.allowed_count) == (limits.LIMIT_SESSION_TIME, 3_600)
    assert 3_600 <= told.would_be_count <= 3_660
    assert told.until_us == started.last_bet_us + IDLE_US
    # A refused bet is no play: the break goes on.
    assert hall.bet(100, at_us=80 * MINUTE) != []
    assert hall.bet(100, at_us=89 * MINUTE + S) == []
    assert hall.bet(100, at_us=100 * MINUTE) == []


def test_lim_7_time_at_play_within_a_day() -> None:
    hall = lobby(setting(SESSION, 3_600, window_s=DAY_S))
    for start in (0, 3 * HOUR):
        for minute in (0, 25, 29):
            assert hall.bet(100, at_us=start + minute * MINUTE) == []
    assert hall.bet(100, at_us=3 * HOUR + 31 * MINUTE) == []
    [told] = hall.bet(100, at_us=3 * HOUR + 33 * MINUTE)
    assert (told.limit, told.window_s) == (limits.LIMIT_SESSION_TIME, DAY_S)
    assert 3_600 <= told.would_be_count < 3_800
    assert hall.bet(100, at_us=DAY + HOUR) == []


def test_lim_7_no_time_at_all_is_none() -> None:
    assert [one.limit for one in lobby(setting(SESSION, 0)).bet(100)] == [limits.LIMIT_SESSION_TIME]


# ---- exclusion ---------------------------------------------------------------------------------


def away(limit: limits.Limit.ValueType, until: int = 0) -> limits.Violation:
    return limits.Violation(
        limit=limit,
        scope=limits.SCOPE_ACCOUNT,
        until_us=START_US + until if until else 0,
    )


@pytest.mark.parametrize(
    ("kind", "limit"),
    [
        (protection.EXCLUSION_KIND_EXCLUSION, limits.LIMIT_EXCLUDED),
        (COOL_OFF, limits.LIMIT_COOLING_OFF),
    ],
)
def test_lim_7_who_is_kept_away_neither_bets_nor_pays_in(
    kind: protection.ExclusionKind.ValueType, limit: limits.Limit.ValueType
) -> None:
    hall = lobby()
    assert hall.bet(100) == []
    hall.game.when(exclude(2, DAY_S, kind=kind, at_us=HOUR)).then(
        protection.AccountExcluded(
            request_id=request_id(2, HOUR),
            account_id="ann",
            kind=kind,
            until_us=START_US + HOUR + DAY,
        )
    )
    assert hall.bet(100) == [away(limit, HOUR + DAY)]
    hall.game.when(deposit(1, 100)).then(deposit_refused(1, 100, away(limit, HOUR + DAY)))
    assert hall.bet(100, at_us=HOUR + DAY - 1) != []
    assert hall.bet(100, at_us=HOUR + DAY) == []
    hall.game.when(deposit(2, 100)).then(deposit_taken(2, 100))


def test_lim_7_stakes_that_are_accepted_are_played_out_but_not_raised() -> None:
    hall = Lobby(spec(BLACKJACK, high=100_000), opened())
    on(hall.game, "r1", ("m1", "main", "3", 1_000))
    hall.given(BETTING_CLOSED, exclude(2))
    double = ("x1", "double", "3", 500)
    hall.game.when(action("a1", double)).then(
        refused("a1", ["x1"], away(limits.LIMIT_EXCLUDED), stage=bet_pb2.STAGE_PLAY)
    )
    hall.given(paid(1_000, 2_000))
    assert hall.game.state.accounts["acme", "ann"].exclusion is not None


def test_lim_7_a_withdrawal_of_bets_is_open_to_who_is_excluded() -> None:
    hall = lobby()
    assert hall.bet(100) == []
    hall.given(exclude(2))
    hall.game.when(withdrawn("w1", ("b1", "player", "", 100)))
    hall.game.then_only(limits.WithdrawalApproved)


def test_lim_7_an_exclusion_without_a_term_ends_a_day_after_it_is_lifted() -> None:
    hall = lobby().given(exclude(2))
    hall.game.when(lift(3, at_us=10 * DAY)).then(
        protection.ExclusionLifted(
            request_id=request_id(3, 10 * DAY),
            account_id="ann",
            until_us=START_US + 11 * DAY,
        )
    )
    assert hall.bet(100, at_us=11 * DAY - 1) == [away(limits.LIMIT_EXCLUDED, 11 * DAY)]
    assert hall.bet(100, at_us=11 * DAY) == []


def test_lim_7_an_exclusion_may_be_longer_and_not_shorter() -> None:
    longer = protection.ORDER_REFUSAL_EXCLUDED_LONGER
    hall = lobby().given(exclude(2, 2 * DAY_S))
    hall.game.when(exclude(3, DAY_S)).then(not_obeyed(3, longer))
    hall.game.when(exclude(4, 3 * DAY_S)).then_only(protection.AccountExcluded)
    hall.game.when(lift(5)).then(not_obeyed(5, protection.ORDER_REFUSAL_TERM_RUNS))
    hall.game.when(exclude(6)).then_only(protection.AccountExcluded)
    hall.game.when(exclude(7)).then(not_obeyed(7, longer))
    hall.game.when(exclude(8, 100 * DAY_S)).then(not_obeyed(8, longer))
    # A break beside it is another matter.
    hall.game.when(exclude(9, DAY_S, kind=COOL_OFF)).then_only(protection.AccountExcluded)
    assert hall.bet(100) == [
        away(limits.LIMIT_EXCLUDED),
        hall_break(hall),
    ]
    # One that is being lifted may be meant again.
    hall.given(lift(10))
    hall.game.when(exclude(11)).then_only(protection.AccountExcluded)


def hall_break(hall: Lobby) -> limits.Violation:
    record = hall.game.state.accounts["acme", "ann"]
    assert record.cool_off is not None
    told = away(limits.LIMIT_COOLING_OFF)
    told.until_us = record.cool_off.until_us
    return told


@pytest.mark.parametrize("term_s", [0, MAX_COOL_OFF_US // S + 1])
def test_lim_7_a_break_has_a_term_of_up_to_42_days(term_s: int) -> None:
    lobby().game.when(exclude(2, term_s, kind=COOL_OFF)).then(
        not_obeyed(
            2,
            protection.ORDER_REFUSAL_BAD_LIMIT,
            detail="a break lasts from a second to 42 days",
        )
    )


def test_an_exclusion_that_there_is_none_of_cannot_be_lifted() -> None:
    none = protection.ORDER_REFUSAL_NOT_EXCLUDED
    hall = lobby()
    hall.game.when(lift(2)).then(not_obeyed(2, none))
    hall.given(exclude(3, DAY_S))
    hall.game.when(lift(4, at_us=2 * DAY)).then(not_obeyed(4, none, at_us=2 * DAY))


@pytest.mark.parametrize(
    "order",
    [exclude(2, account="bob"), lift(2, account="bob")],
)
def test_an_unknown_account_is_refused(order: Any) -> None:
    lobby().game.when(order).then(
        not_obeyed(2, protection.ORDER_REFUSAL_UNKNOWN_ACCOUNT, account="bob")
    )


@pytest.mark.parametrize(
    "order", [exclude(2), lift(2), describe(2, "FR"), ann_sets(2, setting(BET, 1))]
)
def test_a_closed_account_is_refused(order: Any) -> None:
    hall = lobby().given(wallet.AccountClosed(account_id="ann"))
    hall.game.when(order).then(not_obeyed(2, protection.ORDER_REFUSAL_ACCOUNT_CLOSED))


def test_of_a_closed_account_nothing_is_kept() -> None:
    hall = lobby(setting(STAKE, 500, window_s=DAY_S))
    assert hall.bet(100) == []
    hall.given(wallet.AccountClosed(account_id="ann"))
    record = hall.game.state.accounts["acme", "ann"]
    assert (record.closed, record.history) == (True, None)
    assert hall.game.state.scopes == {}


# ---- age and jurisdiction ----------------------------------------------------------------------


def test_lim_7_who_is_not_of_age_neither_bets_nor_pays_in() -> None:
    hall = lobby(account=opened(age=limits.AGE_STATEMENT_UNDER_AGE))
    assert hall.bet(100) == [away(limits.LIMIT_UNDER_AGE)]
    hall.game.when(deposit(1, 100)).then(deposit_refused(1, 100, away(limits.LIMIT_UNDER_AGE)))
    hall.game.when(describe(2, age=limits.AGE_STATEMENT_OF_AGE)).then(
        protection.AccountDescribed(
            request_id=request_id(2), account_id="ann", age=limits.AGE_STATEMENT_OF_AGE
        )
    )
    assert hall.bet(100) == []


def test_lim_7_a_statement_of_age_may_be_required() -> None:
    hall = lobby(account=opened(jurisdiction="FR"))
    assert hall.bet(100) == []  # Nobody asks for it.
    hall.given(sets(1, limits.SCOPE_JURISDICTION, "FR", setting(AGE, 0), currency=""))
    missing = limits.Violation(
        limit=limits.LIMIT_AGE_NOT_STATED, scope=limits.SCOPE_JURISDICTION, scope_id="FR"
    )
    assert hall.bet(100) == [missing]
    hall.game.when(deposit(1, 100)).then(deposit_refused(1, 100, missing))
    hall.given(describe(2, age=limits.AGE_STATEMENT_OF_AGE))
    assert hall.bet(100) == []


def test_what_a_partner_says_of_an_account_says_something() -> None:
    lobby().game.when(describe(2)).then(
        not_obeyed(
            2,
            protection.ORDER_REFUSAL_BAD_LIMIT,
            detail="neither a jurisdiction nor an age is told",
        )
    )


def test_lim_7_a_jurisdiction_changes_so_often_within_a_day() -> None:
    hall = lobby(account=opened(jurisdiction="AA"))
    codes = ["BB", "CC", "DD", "EE", "FF"][: MAX_FORMER + 1]
    for number, code in enumerate(codes[:MAX_FORMER], 2):
        hall.game.when(describe(number, code)).then_only(protection.AccountDescribed)
    hall.game.when(describe(9, codes[MAX_FORMER])).then(
        not_obeyed(9, protection.ORDER_REFUSAL_JURISDICTION_CHANGES)
    )
    hall.game.when(describe(10, codes[MAX_FORMER - 1])).then_only(protection.AccountDescribed)
    hall.game.when(describe(11, codes[MAX_FORMER], at_us=2 * DAY)).then_only(
        protection.AccountDescribed
    )
    assert len(hall.game.state.accounts["acme", "ann"].former or ()) == 1
