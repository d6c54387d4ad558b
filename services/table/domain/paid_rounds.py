"""Corrections of rounds that are over and paid (rule INC-3): one supervisor proposes, another
approves, and nothing moves before audit has confirmed the facts that the differences rest on.

Misread cards of a round without a result are another matter: see `corrections.py`.

Order of refusals, behind those of every operator's order:

- ProposeCorrection: UNKNOWN_TABLE, UNKNOWN_ROUND, ROUND_RUNNING, BAD_RESULT (of another game, or
  none that a round can come to), NOT_CORRECTABLE (another result of blackjack), CORRECTION_PENDING
  (one of this round is under way), NOTHING_TO_CORRECT (a corrected round is that already),
  TOO_MANY_CORRECTIONS.
- ApproveCorrection: UNKNOWN_CORRECTION, CORRECTION_OVER, ALREADY_APPROVED, SAME_PERSON,
  DRY_RUN_STALE (the round was corrected since), CORRECTION_PENDING, TOO_MANY_CORRECTIONS.

What the table does not remember, such as what a round that was never corrected came to, settlement
finds in the facts; where they do not allow the correction it answers `CorrectionRejected`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from google.protobuf.message import Message

from sabot.audit.v1 import correction_events_pb2 as audit
from sabot.log.v1 import entry_pb2
from sabot.rules.v1 import rule_set_pb2
from sabot.settlement.v1 import correction_events_pb2 as settlement
from sabot.table.v1 import correction_events_pb2 as corrections
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import correction_events_pb2 as wallet
from services.games.told_results import completed, game_of
from services.kernel.event import UNLOGGED, Event
from services.table.domain.corrected_rounds import CorrectedRound, Correction, Stage
from services.table.domain.state import TableState, round_number

MAX_OPEN = 1_000
"""Corrections that are open: a person reads each. More is a program's mistake."""
MAX_UNDER_WAY = 8
"""Corrections whose facts are in memory at a time."""
PROPOSAL_KEPT_US = 24 * 3600 * 1_000_000
"""How long a proposal waits for its approval, in log time."""

Order = corrections.ProposeCorrection | corrections.ApproveCorrection
Told = (
    settlement.CorrectionRejected
    | audit.FactsConfirmed
    | audit.FactsRefuted
    | wallet.CorrectionsPosted
)
Own = (
    corrections.CorrectionProposed
    | corrections.CorrectionApproved
    | corrections.ResultCorrected
    | corrections.CorrectionClosed
)
_ENDS: dict[type[Message], corrections.CorrectionEnd.ValueType] = {
    settlement.CorrectionRejected: corrections.CORRECTION_END_REJECTED,
    audit.FactsRefuted: corrections.CORRECTION_END_REFUTED,
    wallet.CorrectionsPosted: corrections.CORRECTION_END_POSTED,
}
_PREFIX = "correction-"


def rejected(body: Order, refusal: table.Refusal.ValueType) -> table.OrderRejected:
    """The refusal of an order."""
    order = table.OrderRejected(request_id=body.request_id, refusal=refusal)
    if isinstance(body, corrections.ProposeCorrection):
        order.table_id, order.round_id = body.table_id, body.round_id
    return order


def decide_correction(state: TableState, event: Event, body: Order) -> Sequence[Message]:
    """The answer to a new order about a correction."""
    found: corrections.CorrectionProposed | corrections.CorrectionApproved | int
    match body:
        case corrections.ProposeCorrection():
            found = _proposed(state, event, body)
        case corrections.ApproveCorrection():
            found = _approved(state, event, body)
        case _:
            assert_never(body)
    if isinstance(found, int):
        return (rejected(body, table.Refusal.ValueType(found)),)
    return (found,)


def _proposed(
    state: TableState, event: Event, body: corrections.ProposeCorrection
) -> corrections.CorrectionProposed | int:
    one = state.tables.get(body.table_id)
    if one is None:
        return table.REFUSAL_UNKNOWN_TABLE
    if not 1 <= round_number(body.table_id, body.round_id) <= one.number:
        return table.REFUSAL_UNKNOWN_ROUND
    if one.running is not None and one.running.round_id == body.round_id:
        return table.REFUSAL_ROUND_RUNNING
    outcome = corrections.CorrectedOutcome(voided=True)
    if not body.outcome.voided:
        result = completed(body.outcome.result)
        game = one.spec.rule_set.game
        if result is None or game_of(result) != game:
            return table.REFUSAL_BAD_RESULT
        if game == rule_set_pb2.GAME_BLACKJACK:
            return table.REFUSAL_NOT_CORRECTABLE
        outcome = corrections.CorrectedOutcome(result=result)
    kept = state.corrections
    if any(other.proposed.round_id == body.round_id for other in kept.under_way()):
        return table.REFUSAL_CORRECTION_PENDING
    corrected = kept.rounds.get(body.round_id)
    if corrected is not None and corrected.outcome == outcome:
        return table.REFUSAL_NOTHING_TO_CORRECT
    if sum(not _is_expired(other, event.time_us) for other in kept.open.values()) >= MAX_OPEN:
        return table.REFUSAL_TOO_MANY_CORRECTIONS
    return corrections.CorrectionProposed(
        correction_id=f"{_PREFIX}{kept.count + 1}",
        table_id=body.table_id,
        round_id=body.round_id,
        outcome=outcome,
        reason=body.reason,
        reference=body.reference,
        dry_run=body.dry_run,
        version=1 if corrected is None else corrected.version + 1,
    )


def _approved(
    state: TableState, event: Event, body: corrections.ApproveCorrection
) -> corrections.CorrectionApproved | int:
    kept = state.corrections
    correction = kept.open.get(body.correction_id)
    if correction is None:
        was_one = 1 <= _number(body.correction_id) <= kept.count
        return table.REFUSAL_CORRECTION_OVER if was_one else table.REFUSAL_UNKNOWN_CORRECTION
    if correction.stage is not Stage.PROPOSED:
        return table.REFUSAL_ALREADY_APPROVED
    if _is_expired(correction, event.time_us):
        return table.REFUSAL_CORRECTION_OVER
    if correction.proposed_by == event.actor:
        return table.REFUSAL_SAME_PERSON
    proposed = correction.proposed
    corrected = kept.rounds.get(proposed.round_id)
    if proposed.version != (1 if corrected is None else corrected.version + 1):
        return table.REFUSAL_DRY_RUN_STALE
    under_way = kept.under_way()
    if any(other.proposed.round_id == proposed.round_id for other in under_way):
        return table.REFUSAL_CORRECTION_PENDING
    if len(under_way) >= MAX_UNDER_WAY:
        return table.REFUSAL_TOO_MANY_CORRECTIONS
    return corrections.CorrectionApproved(
        correction_id=proposed.correction_id,
        table_id=proposed.table_id,
        round_id=proposed.round_id,
        outcome=proposed.outcome,
        dry_run=proposed.dry_run,
        version=proposed.version,
        reason=proposed.reason,
    )


def _number(correction_id: str) -> int:
    """The number in a correction's id; 0 where it is none."""
    digits = correction_id.removeprefix(_PREFIX)
    if f"{_PREFIX}{digits}" != correction_id or len(digits) > 19 or digits.startswith("0"):
        return 0
    return int(digits) if digits.isascii() and digits.isdecimal() else 0


def _is_expired(correction: Correction, time_us: int) -> bool:
    waits = correction.stage is Stage.PROPOSED
    return waits and correction.proposed_us + PROPOSAL_KEPT_US < time_us


def decide_progress(state: TableState, body: Told) -> Sequence[Message]:
    """What follows from how a correction goes on elsewhere."""
    correction = state.corrections.open.get(body.correction_id)
    awaited = Stage.POSTING if isinstance(body, wallet.CorrectionsPosted) else Stage.RECALLING
    if correction is None or correction.stage is not awaited:
        return ()
    proposed = correction.proposed
    if isinstance(body, audit.FactsConfirmed):
        return (
            corrections.ResultCorrected(
                correction_id=proposed.correction_id,
                table_id=proposed.table_id,
                round_id=proposed.round_id,
                outcome=proposed.outcome,
                version=proposed.version,
                reason=proposed.reason,
                reference=proposed.reference,
                proposed_by=correction.proposed_by,
                approved_by=correction.approved_by,
            ),
        )
    at = correction.proposed_at
    return (
        corrections.CorrectionClosed(
            correction_id=proposed.correction_id,
            table_id=proposed.table_id,
            round_id=proposed.round_id,
            end=_ENDS[type(body)],
            proposed_at=entry_pb2.Position(
                segment=at.segment, sequence=at.sequence, index=at.index
            ),
        ),
    )


def follow_paid_round(state: TableState, event: Event, body: Own) -> None:
    """Fold how a correction goes on. Part of evolve."""
    kept = state.corrections
    match body:
        case corrections.CorrectionProposed():
            for correction_id in list(kept.open):
                if _is_expired(kept.open[correction_id], event.time_us):
                    del kept.open[correction_id]
            kept.count += 1
            kept.open[body.correction_id] = Correction(
                body, event.actor, event.time_us, event.cause or UNLOGGED
            )
        case corrections.CorrectionApproved():
            correction = kept.open.get(body.correction_id)
            if correction is not None:
                correction.stage = Stage.RECALLING
                correction.approved_by = event.actor
        case corrections.ResultCorrected():
            correction = kept.open.get(body.correction_id)
            if correction is not None:
                correction.stage = Stage.POSTING
            kept.rounds[body.round_id] = CorrectedRound(body.version, body.outcome)
        case corrections.CorrectionClosed():
            kept.open.pop(body.correction_id, None)
        case _:
            assert_never(body)
