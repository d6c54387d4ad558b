"""Corrections of paid rounds in the table's projection: how each stands, what rounds have come to,
and what bets came to before."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message
from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
)

from sabot.money.v1.money_pb2 import Money
from sabot.partner.v1 import partner_service_pb2 as partner_v1
from sabot.settlement.v1 import correction_events_pb2 as settlement_corrections
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.table.v1 import correction_events_pb2 as corrections
from sabot.table.v1 import correction_service_pb2 as service
from sabot.wallet.v1 import correction_events_pb2 as wallet_corrections
from services.kernel.databases import KeyInteger, position_key
from services.kernel.event import Event
from services.kernel.row_changes import Changes

CORRECTION_CHANGES: frozenset[type[Message]] = frozenset(
    (
        corrections.CorrectionProposed,
        corrections.CorrectionApproved,
        corrections.ResultCorrected,
        corrections.CorrectionClosed,
        settlement_corrections.CorrectionRejected,
        settlement_corrections.RoundCorrected,
        settlement_corrections.BetsCorrected,
    )
)
"""The events that change these rows."""
CORRECTION_REQUESTS: dict[type[Message], str] = {
    corrections.ProposeCorrection: "",
    corrections.ApproveCorrection: "",
    wallet_corrections.SettleReceivable: "",
    wallet_corrections.SetShortfallPolicy: "",
}
"""Operators' orders, unique in the operator's name."""
_ENDS: dict[int, service.CorrectionState.ValueType] = {
    corrections.CORRECTION_END_POSTED: service.CORRECTION_STATE_POSTED,
    corrections.CORRECTION_END_REJECTED: service.CORRECTION_STATE_REJECTED,
    corrections.CORRECTION_END_REFUTED: service.CORRECTION_STATE_REFUTED,
}


def correction_tables(metadata: MetaData) -> tuple[Table, Table]:
    """One row a correction; one row a round that was corrected."""
    rows = Table(
        "corrections",
        metadata,
        Column("correction_id", Text, primary_key=True),
        # Where it was proposed.
        Column("proposed", KeyInteger, nullable=False),
        Column("round_id", Text, nullable=False),
        # A serialised CorrectionProposed.
        Column("body", LargeBinary, nullable=False),
        # As table.v1.CorrectionState.
        Column("state", SmallInteger, nullable=False),
        # As settlement.v1.CorrectionFault; 0: none.
        Column("fault", SmallInteger, nullable=False),
        Column("proposed_by", Text, nullable=False),
        Column("approved_by", Text, nullable=False),
        Column("propose_time_us", BigInteger, nullable=False),
        Column("accounts", Integer, nullable=False),
        Index("corrections_by_proposal", "proposed"),
        Index("corrections_by_round", "round_id", "proposed"),
    )
    rounds = Table(
        "corrected_rounds",
        metadata,
        Column("round_id", Text, primary_key=True),
        # A serialised partner.v1.RoundCorrection.
        Column("body", LargeBinary, nullable=False),
    )
    return rows, rounds


def round_correction(event: Event, body: corrections.ResultCorrected) -> partner_v1.RoundCorrection:
    """What everyone may know of it: not who, and no reference."""
    shown = partner_v1.RoundCorrection(
        version=body.version, voided=body.outcome.voided, reason=body.reason
    )
    if body.outcome.HasField("result"):
        shown.result.CopyFrom(body.outcome.result)
    shown.correct_time.FromMicroseconds(event.time_us)
    return shown


def keep_correction(
    event: Event, body: Any, changes: Changes, rows: Table, rounds: Table, bets: Table
) -> None:
    """The row changes of one of CORRECTION_CHANGES."""
    key = (body.correction_id,)
    match body:
        case corrections.CorrectionProposed():
            changes[rows].save(
                key,
                {
                    "correction_id": body.correction_id,
                    "proposed": position_key(event.position),
                    "round_id": body.round_id,
                    "body": body.SerializeToString(),
                    "state": service.CORRECTION_STATE_PROPOSED,
                    "fault": 0,
                    "proposed_by": event.actor,
                    "approved_by": "",
                    "propose_time_us": event.time_us,
                    "accounts": 0,
                },
            )
        case corrections.CorrectionApproved():
            values = {"state": service.CORRECTION_STATE_APPROVED, "approved_by": event.actor}
            changes[rows].update(key, values)
        case corrections.ResultCorrected():
            changes[rows].update(key, {"state": service.CORRECTION_STATE_POSTING})
            shown = round_correction(event, body).SerializeToString()
            row = {"round_id": body.round_id, "body": shown}
            changes[rounds].save((body.round_id,), row)
        case corrections.CorrectionClosed():
            changes[rows].update(key, {"state": _ENDS[body.end]})
        case settlement_corrections.CorrectionRejected():
            changes[rows].update(key, {"fault": body.fault})
        case settlement_corrections.RoundCorrected():
            changes[rows].update(key, {"accounts": body.accounts})
        case settlement_corrections.BetsCorrected():
            _keep_bets(event, body, changes, bets)
        case _:
            pass  # Not in CORRECTION_CHANGES.


def _keep_bets(
    event: Event, body: settlement_corrections.BetsCorrected, changes: Changes, bets: Table
) -> None:
    changed = position_key(event.position)
    code = body.currency_code
    for one in body.bets:
        before, after = one.before, one.after
        if before == after:
            continue
        told = partner_v1.BetCorrection(
            version=body.version,
            reason=body.reason,
            outcome_before=before.outcome,
            payout_before=Money(currency_code=code, minor_units=before.payout_minor),
            commission_before=Money(currency_code=code, minor_units=before.commission_minor),
            line_before=before.line,
        )
        voided = after.outcome == settlement.OUTCOME_VOIDED
        changes[bets].update(
            (after.bet_id,),
            {
                "state": partner_v1.BET_STATE_VOIDED if voided else partner_v1.BET_STATE_SETTLED,
                "outcome": after.outcome,
                "payout_minor": after.payout_minor,
                "commission_minor": after.commission_minor,
                "line": after.line,
                "changed": changed,
                "correction": told.SerializeToString(),
            },
        )
