"""What limits and the wallet make of bets that go back as betting closes on the floor."""

from __future__ import annotations

from sabot.limits.v1 import events_pb2 as limits
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from tests.unit import limits_baccarat_facts as book
from tests.unit import wallet_facts as purse
from tests.unit.deciding import PARTNER, Fact, by

HIGH, LOW = ("b1", "player", 900), ("b2", "player", 50)


def closing(*bets: tuple[str, str, int], late: bool) -> Fact:
    """The close is the dealer's: the header names no partner."""
    body = table.BetsWithdrawn(
        account_id=book.A,
        table_id=book.T,
        round_id=book.R,
        bets=book.bets(*bets),
        partner_id=PARTNER,
        close=table.BettingClose(cut_off_us=1, source=table.SOURCE_OPERATOR),
        late=late,
    )
    return by(body, partner="", actor="operator:dana")


def approved(*bets: tuple[str, str, int], late: bool) -> limits.WithdrawalApproved:
    return limits.WithdrawalApproved(
        account_id=book.A,
        table_id=book.T,
        round_id=book.R,
        bets=book.bets(*bets),
        partner_id=PARTNER,
        late=late,
    )


def test_limits_may_not_refuse_what_was_late() -> None:
    """The rest is under the minimum: a withdrawal would be refused (LIM-8), a late bet is not."""
    log = book.round_open().given(
        book.placed("r1", HIGH), book.reserved("r1", HIGH), book.placed("r2", LOW)
    )
    log.given(book.reserved("r2", LOW))
    log.when(closing(HIGH, late=False))
    [refused] = log.answers
    assert isinstance(refused, limits.WithdrawalRefused)
    assert refused.partner_id == PARTNER
    log.when(closing(HIGH, late=True)).then(approved(HIGH, late=True))


def test_a_late_bet_that_limits_refused_is_not_on_and_goes_nowhere() -> None:
    log = book.round_open()
    log.when(closing(HIGH, late=True)).then(approved(late=True))


def test_lim_8_a_noted_withdrawal_is_judged_as_any_other() -> None:
    log = book.round_open().given(book.placed("r1", HIGH), book.reserved("r1", HIGH))
    log.when(closing(HIGH, late=False)).then(approved(HIGH, late=False))
    holding = log.state.books[book.R].holdings[PARTNER, book.A]
    assert not holding.cover_minor


def test_a_close_behind_a_void_is_refused() -> None:
    log = book.round_open().given(book.placed("r1", HIGH))
    log.given(table.RoundVoided(table_id=book.T, round_id=book.R))
    log.when(closing(HIGH, late=True)).then_only(limits.WithdrawalRefused)


def test_late_stakes_are_available_again_and_said_to_be_late() -> None:
    for late, reason in (
        (True, wallet.RETURN_REASON_LATE),
        (False, wallet.RETURN_REASON_WITHDRAWN),
    ):
        log = purse.with_money(500).given(purse.approved("r1", ("b1", "tie", 40)))
        assert purse.balance(log) == (460, 40)
        body = limits.WithdrawalApproved(
            account_id=purse.A,
            table_id=purse.T,
            round_id=purse.R,
            bets=purse.bets(("b1", "tie", 40)),
            partner_id="acme",
            late=late,
        )
        log.when(by(body, partner="", actor="operator:dana")).then(
            purse.returned("", reason, ("b1", "tie", 40))
        )
        assert purse.balance(log) == (500, 0)
