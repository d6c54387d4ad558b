"""Corrections of rounds that were paid (rule INC-3): differences are posted, what was posted before
stays as it is.

An account that cannot give back what a correction takes owes the rest, as a receivable of its own;
at a partner whose policy says so its balance goes below zero instead. Nothing that comes in later
pays a receivable by itself: a supervisor has it settled (`SettleReceivable`).
"""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.message import Message

from sabot.settlement.v1 import correction_events_pb2 as settlements
from sabot.wallet.v1 import correction_events_pb2 as wallets
from services.kernel.event import Event, InvariantViolated
from services.wallet.domain.seamless_corrections import order_correction
from services.wallet.domain.seamless_state import is_seamless
from services.wallet.domain.state import Account, WalletState


def correct(state: WalletState, event: Event, body: settlements.BetsCorrected) -> Sequence[Message]:
    """Post an account's difference; a seamless partner is ordered to."""
    owner = (body.partner_id, body.account_id)
    who = f"account {body.account_id} of {body.partner_id} in {body.correction_id}"
    account = state.accounts.get(owner)
    if account is None or account.currency_code != body.currency_code:
        raise InvariantViolated(f"{who} is corrected in {body.currency_code}, which it never held")
    payout = sum(bet.after.payout_minor - bet.before.payout_minor for bet in body.bets)
    commission = sum(bet.after.commission_minor - bet.before.commission_minor for bet in body.bets)
    if (payout, commission) != (body.payout_delta_minor, body.commission_delta_minor):
        raise InvariantViolated(f"{who}: bets change by {payout} and {commission}: {body}")
    for bet in body.bets:
        stakes = {bet.before.stake_minor, bet.after.stake_minor}
        if len(stakes) != 1 or bet.before.bet_id != bet.after.bet_id or bet.after.payout_minor < 0:
            raise InvariantViolated(f"{who}: {bet.before.bet_id} does not add up: {bet}")
    posted = wallets.CorrectionPosted(
        correction_id=body.correction_id,
        partner_id=body.partner_id,
        account_id=body.account_id,
        table_id=body.table_id,
        round_id=body.round_id,
        currency_code=body.currency_code,
        payout_delta_minor=payout,
        commission_delta_minor=commission,
        version=body.version,
        bet_ids=[bet.after.bet_id for bet in body.bets],
        rule_set_hash=body.rule_set_hash,
    )
    if is_seamless(state.seamless, body.partner_id):
        return order_correction(state.seamless, event, body, posted)
    posted.receivable_minor = _shortfall(state, body.partner_id, account, payout)
    return [posted]


def _shortfall(state: WalletState, partner: str, account: Account, delta_minor: int) -> int:
    """What becomes a receivable."""
    policy = state.shortfalls.get(partner, wallets.SHORTFALL_POLICY_RECEIVABLE)
    if policy == wallets.SHORTFALL_POLICY_NEGATIVE_BALANCE:
        return 0
    return max(0, -delta_minor - max(0, account.available_minor))


def end_corrections(body: settlements.RoundCorrected) -> wallets.CorrectionsPosted:
    """The marker behind the last difference."""
    return wallets.CorrectionsPosted(
        correction_id=body.correction_id, table_id=body.table_id, round_id=body.round_id
    )
