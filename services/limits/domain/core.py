"""Limits: may these bets stand, may these be taken back, may this money come in? (LIM-1 to LIM-8,
BJ-11, MON-4)

A stake counts against limits from its approval; it covers raises, side bets, the other side and
withdrawals only once the wallet has reserved it. Whatever the wallet declines, returns or fails to
decide is released. Bets are judged while betting is open; the further stakes of blackjack's actions
come after that, at a stage of their own.
"""

from __future__ import annotations

from typing import assert_never, cast

from google.protobuf.message import Message

from sabot.limits.v1 import events_pb2 as limits
from sabot.limits.v1 import protection_events_pb2 as protection
from sabot.log.v1 import events_pb2 as log
from sabot.rules.v1 import events_pb2 as rules
from sabot.table.v1 import bet_pb2 as bets
from sabot.table.v1 import events_pb2 as tables
from sabot.table.v1 import risk_events_pb2 as risk
from sabot.wallet.v1 import correction_events_pb2 as corrections
from sabot.wallet.v1 import events_pb2 as wallets
from services.kernel.event import NEWEST_BEHAVIOUR, Answers, Core, Event
from services.limits.domain.accounts import (
    account_goes_on,
    bettor_of,
    judged_deposit,
    note_approved,
    note_gone,
    note_round_over,
)
from services.limits.domain.judging import judged, judged_extra, judged_rest
from services.limits.domain.orders import (
    answer_order,
    order_answered,
    use_request_id,
)
from services.limits.domain.state import (
    BetStanding,
    BookStanding,
    HeldBet,
    Holding,
    LimitsState,
    cover,
    hold,
    in_force,
    leave,
    opened,
    release,
)

SERVICE = "limits"

Folded = (
    tables.BetsPlaced
    | wallets.StakeReserved
    | wallets.StakeDeclined
    | wallets.StakeReturned
    | wallets.DepositRequested
    | tables.BetsWithdrawn
    | tables.BettingClosed
    | tables.ActionTaken
    | tables.InsuranceClosed
    | tables.RoundOpened
    | risk.BetsClosed
    | tables.RoundVoided
    | tables.RoundClosed
    | tables.TableOpened
    | tables.TableClosed
    | wallets.PayoutPosted
    | corrections.CorrectionPosted
    | wallets.AccountOpened
    | wallets.AccountClosed
    | wallets.FundsDeposited
    | wallets.AccountRequestDeclined
    | protection.SetLimits
    | protection.Exclude
    | protection.LiftExclusion
    | protection.DescribeAccount
    | log.InputFailed
)
Answered = (
    limits.BetsApproved
    | limits.BetsRefused
    | limits.WithdrawalApproved
    | limits.WithdrawalRefused
    | limits.DepositApproved
    | limits.DepositRefused
    | limits.BookClosed
    | limits.BookVoided
    | protection.LimitsSet
    | protection.AccountExcluded
    | protection.ExclusionLifted
    | protection.AccountDescribed
    | protection.LimitsOrderRefused
    | log.RequestRepeated
)
FOLDS: frozenset[type[Message]] = frozenset(Folded.__args__)
ANSWERS: frozenset[type[Message]] = frozenset(Answered.__args__)

APPROVAL = str(limits.BetsApproved.DESCRIPTOR.full_name)


def evolve(state: LimitsState, event: Event) -> None:
    """Fold one event."""
    body = cast("Folded | Answered", event.body)
    match body:
        case tables.BetsPlaced():
            pass  # The commonest first: a match tries its cases in order.
        case limits.BetsApproved():
            _approve(state, event, body)
        case wallets.StakeReserved():
            holding = _holding(state, event.partner, body)
            if holding is not None:
                for bet in body.bets:
                    cover(holding, bet.bet_id)
        case (
            wallets.PayoutPosted()
            | corrections.CorrectionPosted()
            | wallets.FundsDeposited()
            | wallets.AccountRequestDeclined()
            | wallets.AccountOpened()
            | wallets.AccountClosed()
            | limits.DepositApproved()
        ):
            account_goes_on(state, event, body)
        case wallets.StakeDeclined():
            _release(state, body.partner_id or event.partner, body)
        case wallets.StakeReturned():
            _release(state, body.partner_id, body)
        case limits.WithdrawalApproved():
            holding = _holding(state, body.partner_id or event.partner, body)
            if holding is not None:
                for bet in body.bets:
                    leave(holding, bet.bet_id)
        case log.InputFailed():
            # A bet whose path failed counts as declined: what the wallet could not decide is off.
            if event.service == "wallet" and body.input_type == APPROVAL:
                failed = limits.BetsApproved.FromString(body.input_body)
                _release(state, event.partner, failed)
        case tables.TableOpened():
            state.tables[body.spec.table_id] = in_force(body.spec, body.revision)
        case tables.TableClosed():
            state.tables.pop(body.table_id, None)
        case tables.RoundOpened():
            found = state.tables.get(body.table_id)
            if found is not None:
                state.books[body.round_id] = opened(body.table_id, found, body.round_in_shoe)
        case (
            risk.BetsClosed()
            | tables.BettingClosed()
            | tables.RoundVoided()
            | tables.RoundClosed()
            | tables.InsuranceClosed()
        ):
            _book_goes_on(state, body)
        case (
            protection.SetLimits()
            | protection.Exclude()
            | protection.LiftExclusion()
            | protection.DescribeAccount()
        ):
            use_request_id(state, event, body)
        case (
            protection.LimitsSet()
            | protection.AccountExcluded()
            | protection.ExclusionLifted()
            | protection.AccountDescribed()
            | protection.LimitsOrderRefused()
        ):
            order_answered(state, event, body)
        case (
            tables.BetsWithdrawn()
            | tables.ActionTaken()
            | wallets.DepositRequested()
            | limits.BetsRefused()
            | limits.WithdrawalRefused()
            | limits.DepositRefused()
            | limits.BookClosed()
            | limits.BookVoided()
            | log.RequestRepeated()
        ):
            pass
        case _:
            assert_never(body)


def decide(state: LimitsState, event: Event) -> Answers:
    """Answer one event."""
    body = cast("Folded", event.body)
    match body:
        case tables.BetsPlaced():
            return [_judge_bets(state, event, body)]
        case wallets.StakeReserved() | wallets.StakeDeclined() | wallets.StakeReturned():
            return ()
        case tables.BetsWithdrawn():
            return [_judge_withdrawal(state, event, body)]
        case tables.BettingClosed():
            return [limits.BookClosed(table_id=body.table_id, round_id=body.round_id)]
        case tables.ActionTaken():
            return [_judge_action(state, event, body)] if body.HasField("extra") else ()
        case tables.InsuranceClosed():
            return [
                limits.BookClosed(
                    table_id=body.table_id, round_id=body.round_id, stage=bets.STAGE_INSURANCE
                )
            ]
        case tables.RoundVoided():
            return [limits.BookVoided(table_id=body.table_id, round_id=body.round_id)]
        case wallets.DepositRequested():
            return [_judge_deposit(state, event, body)]
        case (
            protection.SetLimits()
            | protection.Exclude()
            | protection.LiftExclusion()
            | protection.DescribeAccount()
        ):
            return [answer_order(state, event, body)]
        case (
            wallets.PayoutPosted()
            | corrections.CorrectionPosted()
            | wallets.AccountOpened()
            | wallets.AccountClosed()
            | wallets.FundsDeposited()
            | wallets.AccountRequestDeclined()
            | tables.RoundOpened()
            | tables.RoundClosed()
            | tables.TableOpened()
            | tables.TableClosed()
            | risk.BetsClosed()
            | log.InputFailed()
        ):
            return ()
        case _:
            assert_never(body)


def _judge_bets(
    state: LimitsState, event: Event, body: tables.BetsPlaced
) -> limits.BetsApproved | limits.BetsRefused:
    """Order of refusals: a decision that failed before, a closed book, then bet by bet."""
    book = state.books.get(body.round_id)
    if event.retried:
        # The table has counted it as declined long since (and the deal may be over).
        violations = [limits.Violation(limit=limits.LIMIT_FAILED)]
    elif book is None or book.standing is not BookStanding.OPEN:
        violations = [limits.Violation(limit=limits.LIMIT_BOOK_CLOSED)]
    else:
        owner = (event.partner, body.account_id)
        bettor = bettor_of(state, owner, book.table_id, body.currency_code, event.time_us)
        violations = judged(book, book.holdings.get(owner), body.bets, bettor)
    if violations:
        return limits.BetsRefused(
            request_id=body.request_id,
            account_id=body.account_id,
            table_id=body.table_id,
            round_id=body.round_id,
            bet_ids=[bet.bet_id for bet in body.bets],
            violations=violations,
        )
    return limits.BetsApproved(
        request_id=body.request_id,
        account_id=body.account_id,
        table_id=body.table_id,
        round_id=body.round_id,
        currency_code=body.currency_code,
        bets=body.bets,
    )


def _judge_action(
    state: LimitsState, event: Event, body: tables.ActionTaken
) -> limits.BetsApproved | limits.BetsRefused:
    """LIM-4. The same order of refusals; insurance is closed by a marker of its own."""
    book = state.books.get(body.round_id)
    insures = body.action == rules.ACTION_INSURE
    stage = bets.STAGE_INSURANCE if insures else bets.STAGE_PLAY
    if event.retried:
        violations = [limits.Violation(limit=limits.LIMIT_FAILED)]
    elif (
        book is None or book.standing is BookStanding.VOIDED or (insures and book.insurance_closed)
    ):
        violations = [limits.Violation(limit=limits.LIMIT_BOOK_CLOSED)]
    else:
        owner = (event.partner, body.account_id)
        bettor = bettor_of(state, owner, book.table_id, body.currency_code, event.time_us)
        violations = judged_extra(book, book.holdings.get(owner), body.extra, bettor)
    if violations:
        return limits.BetsRefused(
            request_id=body.request_id,
            account_id=body.account_id,
            table_id=body.table_id,
            round_id=body.round_id,
            bet_ids=[body.extra.bet_id],
            violations=violations,
            stage=stage,
        )
    return limits.BetsApproved(
        request_id=body.request_id,
        account_id=body.account_id,
        table_id=body.table_id,
        round_id=body.round_id,
        currency_code=body.currency_code,
        bets=[body.extra],
        stage=stage,
    )


def _judge_withdrawal(
    state: LimitsState, event: Event, body: tables.BetsWithdrawn
) -> limits.WithdrawalApproved | limits.WithdrawalRefused:
    """LIM-8. Bets that are off already (refused, declined, leaving) are left out of the answer. At
    a table on the floor what came too late goes back, whatever the rest breaks."""
    book = state.books.get(body.round_id)
    leaving = {}
    if book is None or book.standing is not BookStanding.OPEN:
        # In order this cannot be; a retry may come after the cards.
        violations = [limits.Violation(limit=limits.LIMIT_BOOK_CLOSED)]
    else:
        violations = []
        holding = book.holdings.get((body.partner_id or event.partner, body.account_id))
        if holding is not None:
            leaving = {
                bet.bet_id: bet
                for bet in body.bets
                if (held := holding.bets.get(bet.bet_id)) is not None
                and held.standing is not BetStanding.LEAVING
            }
            violations = [] if body.late else judged_rest(book, holding, leaving)
    if violations:
        return limits.WithdrawalRefused(
            request_id=body.request_id,
            account_id=body.account_id,
            table_id=body.table_id,
            round_id=body.round_id,
            bet_ids=[bet.bet_id for bet in body.bets],
            violations=violations,
            partner_id=body.partner_id,
        )
    return limits.WithdrawalApproved(
        request_id=body.request_id,
        account_id=body.account_id,
        table_id=body.table_id,
        round_id=body.round_id,
        bets=leaving.values(),
        partner_id=body.partner_id,
        late=body.late,
    )


def _judge_deposit(
    state: LimitsState, event: Event, body: wallets.DepositRequested
) -> limits.DepositApproved | limits.DepositRefused:
    """LIM-7. One whose decision failed before has counted as declined ever since: an approval now
    would count towards limits, and nothing would ever settle it."""
    if event.retried:
        violations = [limits.Violation(limit=limits.LIMIT_FAILED)]
    else:
        violations = judged_deposit(state, event, body)
    if violations:
        return limits.DepositRefused(
            request_id=body.request_id,
            account_id=body.account_id,
            currency_code=body.currency_code,
            amount_minor=body.amount_minor,
            violations=violations,
        )
    return limits.DepositApproved(
        request_id=body.request_id,
        account_id=body.account_id,
        currency_code=body.currency_code,
        amount_minor=body.amount_minor,
    )


def _approve(state: LimitsState, event: Event, body: limits.BetsApproved) -> None:
    book = state.books.get(body.round_id)
    if book is None:
        return
    owner = (event.partner, body.account_id)
    now_us = event.time_us
    total = 0
    for bet in body.bets:
        place = (bet.bet, bet.position)
        held = HeldBet(place, bet.stake_minor, body.request_id, BetStanding.APPROVED, now_us)
        if hold(book, owner, bet.bet_id, held):
            total += bet.stake_minor
    note_approved(state, owner, now_us, total)


def _holding(
    state: LimitsState, partner: str, body: wallets.StakeReserved | limits.WithdrawalApproved
) -> Holding | None:
    book = state.books.get(body.round_id)
    return None if book is None else book.holdings.get((partner, body.account_id))


def _release(
    state: LimitsState,
    partner: str,
    body: wallets.StakeDeclined | wallets.StakeReturned | limits.BetsApproved,
) -> None:
    book = state.books.get(body.round_id)
    if book is not None:
        owner = (partner, body.account_id)
        for bet in body.bets:
            held = release(book, owner, bet.bet_id)
            if held is not None:
                note_gone(state, owner, held)


def _book_goes_on(
    state: LimitsState,
    body: risk.BetsClosed
    | tables.BettingClosed
    | tables.RoundVoided
    | tables.RoundClosed
    | tables.InsuranceClosed,
) -> None:
    book = state.books.get(body.round_id)
    if book is None:
        return
    match body:
        case risk.BetsClosed():
            book.shut = [closed.bet for closed in body.bets]
        case tables.BettingClosed():
            book.standing = BookStanding.CLOSED
        case tables.RoundVoided():
            book.standing = BookStanding.VOIDED
        case tables.RoundClosed():
            del state.books[body.round_id]
            note_round_over(state, book)
        case tables.InsuranceClosed():
            book.insurance_closed = True
        case _:
            assert_never(body)


CORE: Core[LimitsState] = Core(
    service=SERVICE,
    schema=4,
    behaviour=NEWEST_BEHAVIOUR,
    state_type=LimitsState,
    initial=LimitsState,
    evolve=evolve,
    decide=decide,
    folds=FOLDS,
    answers=ANSWERS,
)
