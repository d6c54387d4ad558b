"""How a correction of a closed round goes on, in what settlement knows."""

from __future__ import annotations

from typing import assert_never

from sabot.settlement.v1 import correction_events_pb2 as corrections
from sabot.table.v1 import correction_events_pb2 as table_corrections
from services.kernel.event import Event, Position
from services.settlement.domain.facts import take
from services.settlement.domain.state import Recall, SettlementState

Told = (
    table_corrections.CorrectionApproved
    | table_corrections.ResultCorrected
    | table_corrections.CorrectionClosed
    | corrections.RecallFacts
    | corrections.FactsRecalled
    | corrections.CorrectionRejected
    | corrections.BetsCorrected
    | corrections.RoundCorrected
)


def follow_correction(state: SettlementState, event: Event, body: Told) -> None:
    """Fold one event of a correction. Part of evolve."""
    if isinstance(body, table_corrections.CorrectionApproved):
        state.recalls[body.correction_id] = Recall(
            body.table_id,
            body.round_id,
            body.outcome,
            body.version,
            body.dry_run,
            body.reason,
            event.position,
        )
        return
    recall = state.recalls.get(body.correction_id)
    if recall is None:
        return
    match body:
        case corrections.RecallFacts():
            if is_next(recall, body):
                _take(recall, event.position, body)
        case corrections.FactsRecalled():
            recall.is_recalled = True
        case table_corrections.ResultCorrected():
            recall.behaviour = event.behaviour
        case corrections.BetsCorrected():
            _corrected(recall, body)
        case (
            corrections.CorrectionRejected()
            | corrections.RoundCorrected()
            | table_corrections.CorrectionClosed()
        ):
            del state.recalls[body.correction_id]
        case _:
            assert_never(body)


def is_next(recall: Recall, body: corrections.RecallFacts) -> bool:
    """Whether a step of facts is the one that is waited for."""
    asked_by = Position(body.asked_by.segment, body.asked_by.sequence, body.asked_by.index)
    return (
        not recall.is_recalled
        and asked_by == recall.asked_by
        and body.step == len(recall.steps) + 1
    )


def _take(recall: Recall, position: Position, body: corrections.RecallFacts) -> None:
    recall.steps.append(position)
    for fact in body.facts:
        place = Position(fact.position.segment, fact.position.sequence, fact.position.index)
        take(recall.facts, recall.table_id, recall.round_id, place, fact.type, fact.body)


def _corrected(recall: Recall, body: corrections.BetsCorrected) -> None:
    """Accounts before this one, in the round's order, are done too: nothing changed for them."""
    recall.accounts_corrected += 1
    account = recall.facts.accounts.get((body.partner_id, body.account_id))
    if account is not None:
        recall.accounts_done = account.number + 1
