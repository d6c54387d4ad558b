"""What a call to a partner's wallet asks, and what its answer means. Nothing here waits.

An answer counts only where it fits its call in every respect. Where none came, or one that leaves
open what happened, the outcome is unknown: the same call is made again. What cannot be is
contradictory, and for people to look at.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import grpc
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from protovalidate import Validator

from sabot.money.v1.money_pb2 import Money
from sabot.partnerwallet.v1 import conventions_pb2 as conventions
from sabot.partnerwallet.v1 import partner_wallet_service_pb2 as partner_wallet
from sabot.wallet.v1 import seamless_events_pb2 as seamless
from sabot.wallet.v1.partner_profile_pb2 import PartnerProfile
from services.wallet.domain.seamless_state import Movement, MovementKind

MAX_LISTED = 1_000
"""Bets and debits that a call may name; their amounts need not sum up."""

Request = (
    partner_wallet.DebitRequest | partner_wallet.CreditRequest | partner_wallet.RollbackRequest
)
METHODS = {
    MovementKind.DEBIT: "Debit",
    MovementKind.CREDIT: "Credit",
    MovementKind.ROLLBACK: "Rollback",
}
_validator = Validator()
_NOT_DONE = (grpc.StatusCode.INVALID_ARGUMENT,)
"""By the contract nothing moved and nothing is remembered."""


class Verdict(NamedTuple):
    """What a call came to."""

    outcome: seamless.ReplyOutcome.ValueType
    problem: str = ""
    """Why there is no usable answer, in a word of ours: partners' words may be personal."""
    reason: int = 0
    """The partner's DebitDecline, CreditRefusal or RollbackRefusal."""
    partner_transaction_id: str = ""
    duplicate: bool = False
    balance_minor: int | None = None
    """What the account has afterwards, where the partner told it."""


def request_of(transaction_id: str, movement: Movement) -> Request:
    """The call that carries out a movement: the same bytes every time."""
    shared: dict[str, Any] = {
        "transaction_id": transaction_id,
        "account_id": movement.account_id,
        "amount": Money(currency_code=movement.currency_code, minor_units=movement.amount_minor),
        "table_id": movement.table_id,
        "round_id": movement.round_id,
        "reason": movement.reason,
        "rule_set_hash": movement.rule_set_hash,
        "bets": () if _corrects(movement) else movement.bets[:MAX_LISTED],
        "time": Timestamp(
            seconds=movement.ordered_us // 1_000_000,
            nanos=movement.ordered_us % 1_000_000 * 1_000,
        ),
    }
    match movement.kind:
        case MovementKind.DEBIT:
            return partner_wallet.DebitRequest(**shared)
        case MovementKind.CREDIT:
            return partner_wallet.CreditRequest(
                **shared,
                debit_transaction_ids=movement.debits[:MAX_LISTED],
                round_ended=movement.round_ended,
            )
        case MovementKind.ROLLBACK:
            return partner_wallet.RollbackRequest(**shared, debit_transaction_id=movement.debits[0])


def _corrects(movement: Movement) -> bool:
    """Whether it is for a correction: that is of the round, and names no bets."""
    match movement.kind:
        case MovementKind.DEBIT:
            return movement.reason == partner_wallet.DEBIT_REASON_CORRECTION
        case MovementKind.CREDIT:
            return movement.reason == partner_wallet.CREDIT_REASON_CORRECTION
        case MovementKind.ROLLBACK:
            return False


def verdict_of(transaction_id: str, movement: Movement, response: Message) -> Verdict:
    """What an answer with status OK means."""
    told: Any = response
    if _validator.collect_violations(response):
        return _contradictory("MALFORMED")
    if told.transaction_id != transaction_id:
        return _contradictory("OTHER_TRANSACTION")
    if told.HasField("balance") and told.balance.currency_code != movement.currency_code:
        return _contradictory("OTHER_CURRENCY")
    done, reason = _outcome(movement.kind, told)
    if done and reason:
        return _contradictory("DONE_AND_REFUSED")
    outcome = seamless.REPLY_OUTCOME_DONE if done else seamless.REPLY_OUTCOME_DECLINED
    return Verdict(
        outcome,
        reason=reason,
        partner_transaction_id=told.partner_transaction_id,
        duplicate=told.duplicate,
        balance_minor=told.balance.minor_units if told.HasField("balance") else None,
    )


def _outcome(kind: MovementKind, told: Any) -> tuple[bool, int]:
    match kind:
        case MovementKind.DEBIT:
            return told.outcome == partner_wallet.DEBIT_OUTCOME_TAKEN, told.decline
        case MovementKind.CREDIT:
            return told.outcome == partner_wallet.CREDIT_OUTCOME_CREDITED, told.refusal
        case MovementKind.ROLLBACK:
            return told.outcome == partner_wallet.ROLLBACK_OUTCOME_DONE, told.refusal


def verdict_of_status(
    profile: PartnerProfile, kind: MovementKind, status: grpc.StatusCode
) -> Verdict:
    """What another status means."""
    if status is grpc.StatusCode.ALREADY_EXISTS:
        if profile.conventions.repeats == conventions.REPEAT_CONVENTION_ALREADY_EXISTS:
            return Verdict(seamless.REPLY_OUTCOME_DONE, duplicate=True)
        return _contradictory(status.name)
    if status is grpc.StatusCode.FAILED_PRECONDITION:
        return _contradictory("ID_OF_ANOTHER_CALL")
    if status in _NOT_DONE:
        return Verdict(seamless.REPLY_OUTCOME_DECLINED, status.name, _OTHER[kind])
    return Verdict(seamless.REPLY_OUTCOME_UNKNOWN, status.name)


_OTHER = {
    MovementKind.DEBIT: partner_wallet.DEBIT_DECLINE_OTHER,
    MovementKind.CREDIT: partner_wallet.CREDIT_REFUSAL_OTHER,
    MovementKind.ROLLBACK: partner_wallet.ROLLBACK_REFUSAL_OTHER,
}


def reply_of(
    transaction_id: str, movement: Movement, asked_by: Any, verdict: Verdict, calls: int
) -> seamless.RecordReply:
    """The input that tells of it. `asked_by`: as a message. `calls`: made since the last one."""
    reply = seamless.RecordReply(
        transaction_id=transaction_id,
        asked_by=asked_by,
        table_id=movement.table_id,
        round_id=movement.round_id,
        account_id=movement.account_id,
        outcome=verdict.outcome,
        partner_transaction_id=verdict.partner_transaction_id,
        duplicate=verdict.duplicate,
        problem=verdict.problem,
        calls=calls,
    )
    match movement.kind:
        case MovementKind.DEBIT:
            reply.debit_decline = partner_wallet.DebitDecline.ValueType(verdict.reason)
        case MovementKind.CREDIT:
            reply.credit_refusal = partner_wallet.CreditRefusal.ValueType(verdict.reason)
        case MovementKind.ROLLBACK:
            reply.rollback_refusal = partner_wallet.RollbackRefusal.ValueType(verdict.reason)
    return reply


def _contradictory(problem: str) -> Verdict:
    return Verdict(seamless.REPLY_OUTCOME_CONTRADICTORY, problem)
