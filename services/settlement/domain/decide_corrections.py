"""What settlement answers when a closed round is settled again.

Order of answers to a step of facts: InputIgnored where no correction waits for it, or it is not the
next one; `FactsTaken`.

Order of faults at the end of a recall: nothing was recalled (NOT_PAID); the count or the digest is
not that of the facts (DIGEST_DIFFERS); facts are missing (FACTS_INCOMPLETE); NOTHING_TO_CORRECT;
NOT_CORRECTABLE; BAD_RESULT; DRY_RUN_STALE. Any of them ends the correction, and nothing has moved.
"""

from __future__ import annotations

from google.protobuf.message import Message

from sabot.log.v1 import entry_pb2
from sabot.log.v1 import events_pb2 as log
from sabot.settlement.v1 import correction_events_pb2 as corrections
from sabot.table.v1 import events_pb2 as table
from services.games.steps import step_bets
from services.kernel.event import Answers, Event, Position, Unfinished
from services.settlement.domain.correcting import differences, dry_run_digest, fault_of
from services.settlement.domain.state import Recall, SettlementState

Fault = corrections.CorrectionFault


def decide_recall(
    state: SettlementState, event: Event, body: corrections.RecallFacts | corrections.EndRecall
) -> Answers:
    """The answer to facts that were brought back, or to their end."""
    recall = state.recalls.get(body.correction_id)
    asked_by = Position(body.asked_by.segment, body.asked_by.sequence, body.asked_by.index)
    if recall is None or asked_by != recall.asked_by:
        return (log.InputIgnored(reason=log.IGNORED_REASON_UNKNOWN),)
    if isinstance(body, corrections.RecallFacts):
        if recall.steps and recall.steps[-1] == event.position:
            return (corrections.FactsTaken(correction_id=body.correction_id, step=body.step),)
        taken = recall.is_recalled or body.step <= len(recall.steps)
        reason = log.IGNORED_REASON_ALREADY_DONE if taken else log.IGNORED_REASON_NOT_NOW
        return (log.InputIgnored(reason=reason),)
    if recall.is_recalled:
        return (log.InputIgnored(reason=log.IGNORED_REASON_ALREADY_DONE),)
    fault = _fault(recall, body, event.behaviour)
    named = {
        "correction_id": body.correction_id,
        "table_id": recall.table_id,
        "round_id": recall.round_id,
    }
    if fault is not None:
        return (corrections.CorrectionRejected(**named, fault=fault),)
    return (
        corrections.FactsRecalled(
            **named,
            count=recall.facts.count,
            digest=recall.facts.digest,
            steps=[
                entry_pb2.Position(segment=one.segment, sequence=one.sequence, index=one.index)
                for one in recall.steps
            ],
        ),
    )


def _fault(
    recall: Recall, body: corrections.EndRecall, behaviour: int
) -> corrections.CorrectionFault.ValueType | None:
    facts = recall.facts
    if not facts.count and not body.count:
        return Fault.CORRECTION_FAULT_NOT_PAID
    if (body.count, body.digest) != (facts.count, facts.digest):
        return Fault.CORRECTION_FAULT_DIGEST_DIFFERS
    fault = fault_of(facts, recall.version, recall.outcome, behaviour)
    if fault is not None:
        return fault
    if dry_run_digest(facts, recall.round_id, recall.outcome) != recall.dry_run:
        return Fault.CORRECTION_FAULT_DRY_RUN_STALE
    return None


def correct_step(state: SettlementState, correction_id: str) -> Answers:
    """The next accounts, as many as a step takes; `RoundCorrected` behind the last one. They are
    decided by `recall.behaviour`: that of their `ResultCorrected`, whatever has been activated
    since."""
    recall = state.recalls.get(correction_id)
    if recall is None or not recall.is_recalled or not recall.behaviour:
        return ()
    facts = recall.facts
    named = {
        "correction_id": correction_id,
        "table_id": recall.table_id,
        "round_id": recall.round_id,
    }
    answers: list[Message] = []
    most, bets_in_step = step_bets(recall.behaviour), 0
    found = differences(facts, recall.round_id, recall.outcome, recall.accounts_done)
    for _, one in found:
        # Each bet is told twice, before and after.
        if answers and bets_in_step + 2 * len(one.bets) > most:
            return Unfinished(answers)
        bets_in_step += 2 * len(one.bets)
        answers.append(
            corrections.BetsCorrected(
                **named,
                version=recall.version,
                partner_id=one.partner_id,
                account_id=one.account_id,
                currency_code=facts.currency_code,
                bets=one.bets,
                payout_delta_minor=one.payout_delta_minor,
                commission_delta_minor=one.commission_delta_minor,
                rule_set_hash=b"" if facts.rule_set is None else facts.rule_set.hash,
                reason=table.RoundReason.ValueType(recall.reason),
                transaction_ids=one.debits,
            )
        )
    accounts = recall.accounts_corrected + len(answers)
    answers.append(corrections.RoundCorrected(**named, accounts=accounts, version=recall.version))
    return answers
