"""The dry run of a correction: the same functions over the same facts as the correction itself."""

from __future__ import annotations

from collections.abc import Sequence

from sabot.settlement.v1 import correction_events_pb2 as corrections
from sabot.settlement.v1 import settlement_service_pb2 as settlements
from sabot.table.v1 import correction_events_pb2 as table_corrections
from sabot.table.v1.events_pb2 import RoundOpened
from services.games.told_results import completed
from services.kernel.call import PAGE_BYTES
from services.kernel.errors import Reason, Refused
from services.kernel.event import NEWEST_BEHAVIOUR
from services.refusals.corrections import BAD_RESULT, FAULTS
from services.refusals.table import NOT_CORRECTABLE
from services.settlement.domain.correcting import differences, dry_run_digest, fault_of
from services.settlement.domain.facts import Facts, take
from services.settlement.queries import Fact

_ROUND_OPENED = str(RoundOpened.DESCRIPTOR.full_name)


def table_of(facts: Sequence[Fact]) -> str:
    """The table of a round; empty where nothing is known of it."""
    opened = next((fact for fact in facts if fact.type == _ROUND_OPENED), None)
    return "" if opened is None else RoundOpened.FromString(opened.body).table_id


def folded(round_id: str, facts: Sequence[Fact]) -> Facts:
    """What the facts of a round come to."""
    found = Facts()
    table_id = table_of(facts)
    for fact in facts:
        take(found, table_id, round_id, fact.position, fact.type, fact.body)
    return found


def preview(
    round_id: str,
    told: table_corrections.CorrectedOutcome,
    facts: Sequence[Fact],
    first: int,
    limit: int,
    behaviour: int = NEWEST_BEHAVIOUR,
) -> tuple[settlements.PreviewCorrectionResponse, bool]:
    """The response, with differences from number `first` on, `limit` at most and as many as one
    message holds; and whether more are left. `behaviour`: in force. Raises Refused."""
    found = folded(round_id, facts)
    table_id = table_of(facts)
    named = {"round_id": round_id, "table_id": table_id}
    outcome = table_corrections.CorrectedOutcome(voided=True)
    if not told.voided:
        result = completed(told.result)
        if result is None:
            raise Refused(BAD_RESULT, named)
        outcome = table_corrections.CorrectedOutcome(result=result)
    version = found.version + 1
    fault = fault_of(found, version, outcome, behaviour)
    if fault is not None:
        raise Refused(_reason(fault), named)
    response = settlements.PreviewCorrectionResponse(
        table_id=table_id,
        in_force=found.outcome,
        outcome=outcome,
        version=version,
        dry_run=dry_run_digest(found, round_id, outcome),
        currency_code=found.currency_code,
    )
    size, left = 0, False
    for number, (_, one) in enumerate(differences(found, round_id, outcome)):
        response.accounts += 1
        response.payout_delta_minor += one.payout_delta_minor
        response.commission_delta_minor += one.commission_delta_minor
        if number < first or left:
            continue
        difference = settlements.AccountDifference(
            partner_id=one.partner_id,
            account_id=one.account_id,
            bets=one.bets,
            payout_delta_minor=one.payout_delta_minor,
            commission_delta_minor=one.commission_delta_minor,
        )
        size += difference.ByteSize()
        full = len(response.differences) >= limit or size > PAGE_BYTES
        if full and response.differences:
            left = True
            continue
        response.differences.append(difference)
    return response, left


def _reason(fault: corrections.CorrectionFault.ValueType) -> Reason:
    if fault == corrections.CORRECTION_FAULT_NOT_CORRECTABLE:
        return NOT_CORRECTABLE
    return FAULTS[fault]
