"""The wallet: accounts and their money, by double entry.

Money moves only by the postings of an answer (`postings.py`); evolve applies exactly those.
"""

from __future__ import annotations

from typing import assert_never, cast

from google.protobuf.message import Message

from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1 import events_pb2 as log
from sabot.settlement.v1 import correction_events_pb2 as settled_again
from sabot.settlement.v1 import events_pb2 as settlements
from sabot.wallet.v1 import correction_events_pb2 as corrections
from sabot.wallet.v1 import events_pb2 as wallets
from sabot.wallet.v1 import seamless_events_pb2 as seamless
from services.kernel.event import NEWEST_BEHAVIOUR, Answers, Core, Event
from services.wallet.domain.accounts import (
    ID_DECLINES,
    Request,
    answer_approval,
    answer_refusal,
    answer_request,
    use_request_id,
)
from services.wallet.domain.corrections import correct, end_corrections
from services.wallet.domain.postings import Kind, postings
from services.wallet.domain.seamless_confirming import decide_reply, movement_goes_on
from services.wallet.domain.seamless_corrections import (
    correction_debit_is_ordered,
    is_correction,
)
from services.wallet.domain.seamless_debits import (
    book_is_closed,
    debit_is_ordered,
    decide_timeout,
    drop_movement,
    position_of,
    reply_is_known,
    request_is_off,
    request_is_on,
)
from services.wallet.domain.seamless_orders import SeamlessOrder, answer_order, use_order_id
from services.wallet.domain.seamless_returns import (
    credit_is_ordered,
    note_leaving,
    return_leaving,
    rollback_is_ordered,
)
from services.wallet.domain.stakes import (
    drop,
    end,
    hold,
    note_closed,
    of_round,
    pay,
    reserve,
    return_step,
    seal,
    seal_behind,
    take_back,
    takes_back,
)
from services.wallet.domain.state import Account, PendingDeposit, Standing, WalletState

SERVICE = "wallet"

Folded = (
    limits.BetsApproved
    | settlements.BetsSettled
    | limits.WithdrawalApproved
    | limits.BookClosed
    | limits.BookVoided
    | settlements.RoundSettled
    | limits.DepositApproved
    | settled_again.BetsCorrected
    | settled_again.RoundCorrected
    | limits.DepositRefused
    | log.InputFailed
    | Request
    | seamless.RecordReply
    | seamless.TimeOutDebit
    | SeamlessOrder
)
Seamless = (
    seamless.DebitOrdered
    | seamless.RecordReply
    | seamless.CreditOrdered
    | seamless.RollbackOrdered
    | seamless.MovementConfirmed
    | seamless.MovementWrittenOff
    | seamless.MovementRefused
    | seamless.MovementDisputed
    | seamless.MovementRetried
    | seamless.PartnerProfileSet
    | corrections.ReceivableSettled
    | corrections.CorrectionDebitDeclined
    | limits.WithdrawalApproved
    | wallets.StakeDeclined
    | SeamlessOrder
)
"""What concerns money at seamless partners."""
Answered = (
    wallets.StakeReserved
    | wallets.StakeDeclined
    | wallets.StakeReturned
    | wallets.StakesSealed
    | wallets.PayoutPosted
    | wallets.RoundPaid
    | wallets.RoundReturned
    | wallets.DepositRequested
    | wallets.FundsDeposited
    | wallets.FundsWithdrawn
    | wallets.AccountOpened
    | wallets.AccountClosed
    | wallets.AccountBlocked
    | wallets.AccountUnblocked
    | wallets.AccountRequestDeclined
    | corrections.CorrectionPosted
    | corrections.CorrectionsPosted
    | corrections.ShortfallPolicySet
    | corrections.ReceivableSettled
    | corrections.CorrectionDebitDeclined
    | seamless.PartnerProfileSet
    | seamless.DebitOrdered
    | seamless.CreditOrdered
    | seamless.RollbackOrdered
    | seamless.MovementConfirmed
    | seamless.MovementRefused
    | seamless.MovementDisputed
    | seamless.MovementWrittenOff
    | seamless.MovementRetried
    | seamless.SeamlessOrderRejected
    | log.RequestRepeated
    | log.InputIgnored
)
Continued = (
    wallets.StakeReturned
    | wallets.StakeDeclined
    | seamless.RollbackOrdered
    | seamless.CreditOrdered
)
"""What may end an unfinished step."""
FOLDS: frozenset[type[Message]] = frozenset(Folded.__args__)
ANSWERS: frozenset[type[Message]] = frozenset(Answered.__args__)

DEPOSIT_REQUESTED = str(wallets.DepositRequested.DESCRIPTOR.full_name)


def evolve(state: WalletState, event: Event) -> None:
    """Fold one event."""
    body = cast("Folded | Answered", event.body)
    match body:
        case limits.BetsApproved() | settlements.BetsSettled():
            pass  # The commonest first: a match tries its cases in order.
        case wallets.StakeReserved():
            if body.transaction_ids:
                request_is_on(state.seamless, event, body)
            hold(state, event.partner, body)
            _post(state, event)
        case wallets.PayoutPosted() | wallets.StakeReturned():
            drop(state, body)
            _post(state, event)
        case wallets.FundsWithdrawn() | corrections.CorrectionPosted():
            _post(state, event)
        case corrections.ShortfallPolicySet():
            state.shortfalls[body.partner_id] = body.policy
        case wallets.FundsDeposited():
            state.deposits.pop((event.partner, body.request_id), None)
            _post(state, event)
        case (
            wallets.OpenAccount()
            | wallets.CloseAccount()
            | wallets.BlockAccount()
            | wallets.UnblockAccount()
            | wallets.Deposit()
            | wallets.Withdraw()
            | corrections.SettleReceivable()
            | corrections.SetShortfallPolicy()
        ):
            use_request_id(state, event, body)
        case limits.BookClosed():
            note_closed(state, body)
            book_is_closed(state.seamless, event, body)
        case limits.BookVoided():
            of_round(state, body).voided = True
        case wallets.RoundPaid() | wallets.RoundReturned():
            state.rounds.pop(body.round_id, None)
            state.seamless.rounds.pop(body.round_id, None)
        case wallets.AccountOpened():
            state.accounts[event.partner, body.account_id] = Account(body.currency_code)
            state.opened[event.partner] = state.opened.get(event.partner, 0) + 1
        case wallets.AccountClosed():
            state.accounts[event.partner, body.account_id].standing = Standing.CLOSED
        case wallets.AccountBlocked():
            state.accounts[event.partner, body.account_id].standing = Standing.BLOCKED
        case wallets.AccountUnblocked():
            state.accounts[event.partner, body.account_id].standing = Standing.OPEN
        case wallets.DepositRequested():
            state.deposits[event.partner, body.request_id] = PendingDeposit(
                body.account_id, body.currency_code, body.amount_minor
            )
        case wallets.AccountRequestDeclined():
            if body.decline not in ID_DECLINES:
                state.deposits.pop((event.partner, body.request_id), None)
        case (
            limits.DepositApproved()
            | limits.DepositRefused()
            | settlements.RoundSettled()
            | settled_again.BetsCorrected()
            | settled_again.RoundCorrected()
            | corrections.CorrectionsPosted()
            | log.InputFailed()
            | wallets.StakesSealed()
            | seamless.TimeOutDebit()
            | seamless.SeamlessOrderRejected()
            | log.RequestRepeated()
            | log.InputIgnored()
        ):
            pass
        case _:
            _evolve_seamless(state, event, body)


def _evolve_seamless(state: WalletState, event: Event, body: Seamless) -> None:
    """What concerns money at seamless partners."""
    match body:
        case limits.WithdrawalApproved():
            if takes_back(state, body.round_id):
                note_leaving(state.seamless, body.partner_id or event.partner, body)
        case wallets.StakeDeclined():
            if body.HasField("waiting_since"):
                request_is_off(state.seamless, body)
        case seamless.SetPartnerProfile() | seamless.ResolveMovement():
            use_order_id(state, event, body)
        case seamless.DebitOrdered():
            if is_correction(body):
                correction_debit_is_ordered(state.seamless, event, body)
            else:
                debit_is_ordered(state.seamless, event, body)
        case seamless.RecordReply():
            reply_is_known(state.seamless, event, body)
        case seamless.CreditOrdered():
            credit_is_ordered(state.seamless, event, body)
        case seamless.RollbackOrdered():
            rollback_is_ordered(state.seamless, event, body)
        case corrections.ReceivableSettled() | corrections.CorrectionDebitDeclined():
            _post(state, event)
            drop_movement(state.seamless, body.transaction_id)
        case seamless.MovementConfirmed() | seamless.MovementWrittenOff():
            _post(state, event)
            movement_goes_on(state.seamless, body)
        case seamless.MovementRefused() | seamless.MovementDisputed() | seamless.MovementRetried():
            movement_goes_on(state.seamless, body)
        case seamless.PartnerProfileSet():
            state.seamless.profiles[body.partner_id] = body.profile
        case _:
            assert_never(body)


def decide(state: WalletState, event: Event) -> Answers:
    """Answer one event."""
    body = cast("Folded | Continued", event.body)
    match body:
        case limits.BetsApproved():
            return reserve(state, event, body)
        case settlements.BetsSettled():
            return pay(state, event, body)
        case limits.WithdrawalApproved():
            return take_back(state, event, body)
        case limits.BookClosed():
            return seal(state, body)
        case (
            limits.BookVoided()
            | wallets.StakeReturned()
            | wallets.StakeDeclined()
            | seamless.RollbackOrdered()
            | seamless.CreditOrdered()
        ):
            # All but the first are the last answer of an unfinished step, read back.
            return return_step(state, event, body.round_id)
        case seamless.RecordReply():
            return _answer_reply(state, event, body)
        case seamless.TimeOutDebit():
            return seal_behind(state, decide_timeout(state.seamless, event, body))
        case seamless.SetPartnerProfile() | seamless.ResolveMovement():
            return [answer_order(state, event, body)]
        case settlements.RoundSettled():
            return [end(state, body)]
        case settled_again.BetsCorrected():
            return correct(state, event, body)
        case settled_again.RoundCorrected():
            return [end_corrections(body)]
        case limits.DepositApproved():
            answer = answer_approval(state, event.partner, body.request_id)
            return () if answer is None else [answer]
        case limits.DepositRefused():
            refusal = answer_refusal(state, event.partner, body)
            return () if refusal is None else [refusal]
        case log.InputFailed():
            return _answer_failure(state, event, body)
        case (
            wallets.OpenAccount()
            | wallets.CloseAccount()
            | wallets.BlockAccount()
            | wallets.UnblockAccount()
            | wallets.Deposit()
            | wallets.Withdraw()
            | corrections.SettleReceivable()
            | corrections.SetShortfallPolicy()
        ):
            return [answer_request(state, event, body)]
        case _:
            assert_never(body)


def _answer_reply(state: WalletState, event: Event, body: seamless.RecordReply) -> Answers:
    """What a partner's answer decides; bets that were withdrawn meanwhile go back at once."""
    decided = decide_reply(state.seamless, event, body)
    if isinstance(decided, wallets.StakeReserved):
        round_id = decided.round_id
        pending = state.seamless.rounds[round_id].pending[position_of(decided.waiting_since)]
        decided = [decided, *return_leaving(state.seamless, event, round_id, pending)]
    return seal_behind(state, decided)


def _answer_failure(state: WalletState, event: Event, body: log.InputFailed) -> Answers:
    """A deposit that limits could not decide is declined, so that its caller hears of it; an
    approval by a later retry finds it decided. Everything else that failed elsewhere has moved no
    money here: stakes stay reserved until a retry, or a void, brings them home."""
    if event.service != "limits" or body.input_type != DEPOSIT_REQUESTED:
        return ()
    request_id = wallets.DepositRequested.FromString(body.input_body).request_id
    deposit = state.deposits.get((event.partner, request_id))
    if deposit is None:
        return ()
    return [
        wallets.AccountRequestDeclined(
            request_id=request_id,
            account_id=deposit.account_id,
            decline=wallets.DECLINE_FAILED,
        )
    ]


def _post(state: WalletState, event: Event) -> None:
    """Apply the journal entry of an answer."""
    for kind, partner, account_id, currency_code, minor in postings(event.body, event.partner):
        if kind is Kind.CASH:
            state.accounts[partner, account_id].available_minor += minor
        elif kind is Kind.RESERVED:
            state.accounts[partner, account_id].reserved_minor += minor
        elif kind is Kind.RECEIVABLE:
            state.accounts[partner, account_id].owed_minor -= minor
        else:
            ledger = (kind.value, partner, currency_code)
            state.ledgers[ledger] = state.ledgers.get(ledger, 0) + minor


def _given_back(returned: wallets.StakeReturned, _: str) -> tuple[str, ...]:
    """The bets of an account that a void gives back; a withdrawal is its own request's matter."""
    if returned.request_id:
        return ()
    return (returned.partner_id, returned.account_id, returned.round_id)


CORE: Core[WalletState] = Core(
    service=SERVICE,
    schema=4,
    behaviour=NEWEST_BEHAVIOUR,
    state_type=WalletState,
    initial=WalletState,
    evolve=evolve,
    decide=decide,
    folds=FOLDS,
    answers=ANSWERS,
    begins={
        wallets.StakeReserved: lambda stake, partner: (partner, stake.account_id, stake.round_id)
    },
    ends={wallets.StakeReturned: _given_back},
    alarms={
        seamless.MovementRefused: "movement_refused",
        seamless.MovementDisputed: "movement_disputed",
    },
)
