"""Corrections at seamless partners: what an account gets is a credit, due until the partner has
confirmed it. What it gives back is a receivable at once; where the partner's wallet takes debits
for corrections (`reversal_after_settlement`), one is ordered, and pays the receivable once it is
taken. A debit that the partner declines leaves the receivable: nothing is taken in silence, and
nothing is forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.message import Message

from sabot.partnerwallet.v1 import partner_wallet_service_pb2 as partner_wallet
from sabot.settlement.v1 import correction_events_pb2 as settlements
from sabot.table.v1 import bet_pb2
from sabot.wallet.v1 import correction_events_pb2 as corrections
from sabot.wallet.v1 import seamless_events_pb2 as seamless
from services.kernel.event import Event
from services.wallet.domain.seamless_debits import add_movement, disputed, transaction_id
from services.wallet.domain.seamless_state import (
    Movement,
    MovementKind,
    MovementStanding,
    SeamlessState,
)


def order_correction(
    state: SeamlessState,
    event: Event,
    body: settlements.BetsCorrected,
    posted: corrections.CorrectionPosted,
) -> list[Message]:
    """The difference of an account whose money the partner holds."""
    posted.due = True
    delta = posted.payout_delta_minor
    posted.receivable_minor = max(0, -delta)
    takes_debits = state.profiles[body.partner_id].reversal_after_settlement
    if not delta or (delta < 0 and not takes_debits):
        return [posted]
    ordered = seamless.CreditOrdered if delta > 0 else seamless.DebitOrdered
    order = ordered(
        transaction_id=transaction_id(event, "correction", body.partner_id, body.account_id),
        partner_id=body.partner_id,
        account_id=body.account_id,
        table_id=body.table_id,
        round_id=body.round_id,
        currency_code=body.currency_code,
        amount_minor=abs(delta),
        bets=[
            bet_pb2.Bet(
                bet_id=one.after.bet_id,
                bet=one.after.bet,
                position=one.after.position,
                stake_minor=one.after.stake_minor,
            )
            for one in body.bets
        ],
    )
    if isinstance(order, seamless.CreditOrdered):
        order.reason = partner_wallet.CREDIT_REASON_CORRECTION
        order.rule_set_hash = body.rule_set_hash
        order.debit_transaction_ids.extend(body.transaction_ids)
    else:
        order.reason = partner_wallet.DEBIT_REASON_CORRECTION
    posted.transaction_id = order.transaction_id
    return [posted, order]


def is_correction(movement: Movement | seamless.DebitOrdered) -> bool:
    """Whether it is a debit for a correction: no round waits for it."""
    debit = isinstance(movement, seamless.DebitOrdered) or movement.kind is MovementKind.DEBIT
    return debit and movement.reason == partner_wallet.DEBIT_REASON_CORRECTION


def correction_debit_is_ordered(
    state: SeamlessState, event: Event, body: seamless.DebitOrdered
) -> None:
    """A debit is under way that pays a receivable. Part of evolve."""
    add_movement(
        state,
        body.transaction_id,
        Movement(
            MovementKind.DEBIT,
            body.partner_id,
            body.account_id,
            body.table_id,
            body.round_id,
            body.currency_code,
            body.amount_minor,
            body.reason,
            list(body.bets),
            event.cause or event.position,
            event.time_us,
        ),
    )


def collected(
    transaction: str, movement: Movement, request_id: str = ""
) -> corrections.ReceivableSettled:
    """The partner has taken what the account owed; `request_id`: an operator says so."""
    return corrections.ReceivableSettled(
        request_id=request_id,
        partner_id=movement.partner,
        account_id=movement.account_id,
        currency_code=movement.currency_code,
        amount_minor=movement.amount_minor,
        at_partner=True,
        transaction_id=transaction,
    )


def decide_correction_debit(body: seamless.RecordReply, movement: Movement) -> Sequence[Message]:
    """The partner answered. Nothing that it left open ends the debit: it is asked again. A call
    that is no good is not remembered, so one before it may still be carried out, and what is owed
    would be taken twice: that is for an operator to look at, who has it called once more."""
    match body.outcome:
        case seamless.REPLY_OUTCOME_DONE:
            return [collected(body.transaction_id, movement)]
        case seamless.REPLY_OUTCOME_DECLINED if _leaves_open(body, movement):
            if movement.standing is MovementStanding.DISPUTED:
                return []
            return [disputed(body.transaction_id, movement, body.problem)]
        case seamless.REPLY_OUTCOME_DECLINED:
            return [
                corrections.CorrectionDebitDeclined(
                    transaction_id=body.transaction_id,
                    partner_id=movement.partner,
                    account_id=movement.account_id,
                    round_id=movement.round_id,
                    currency_code=movement.currency_code,
                    amount_minor=movement.amount_minor,
                )
            ]
        case seamless.REPLY_OUTCOME_CONTRADICTORY:
            if movement.standing is MovementStanding.DISPUTED:
                return []
            return [disputed(body.transaction_id, movement, body.problem)]
        case _:
            return []


def _leaves_open(body: seamless.RecordReply, movement: Movement) -> bool:
    return bool(body.problem) and movement.calls > 1 and not movement.retries


def being_paid_minor(state: SeamlessState, partner: str, account_id: str) -> int:
    """How much of what an account owes a debit is under way for, minor units."""
    return sum(
        one.amount_minor
        for one in state.movements.values()
        if (one.partner, one.account_id) == (partner, account_id) and is_correction(one)
    )
