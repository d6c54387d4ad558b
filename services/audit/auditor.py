"""What the continuous audit of this process has found."""

from __future__ import annotations

from sabot.audit.v1 import audit_service_pb2 as audits
from services.audit.ledger_check import LedgerCheck, Unbalanced
from services.kernel.entry import position_of, position_proto
from services.kernel.event import Position
from services.kernel.process import Process
from services.kernel.reader import END_OF_ENTRY, SEGMENT
from services.kernel.replica import Diverged
from services.wallet.domain.state import sums


class Auditor:
    """Reads the observers of its process: they decide every answer again behind the head."""

    def __init__(self, process: Process, check: LedgerCheck) -> None:
        self._process = process
        self._check = check

    def report(self) -> audits.GetAuditResponse:
        """How far it is, and what it found."""
        process = self._process
        wallet = process.observer("wallet")
        sequence, head = process.folding.observed
        return audits.GetAuditResponse(
            position=position_proto(Position(SEGMENT, sequence, END_OF_ENTRY)),
            head=head,
            answers=process.folding.answers_compared,
            differences=process.folding.difference_count,
            first=[_difference(one) for one in process.folding.differences],
            balanced=wallet is not None
            and not any(sums(wallet.state.core).values())
            and not self._check.found,
            journal_entries=self._check.entries,
            unbalanced_entries=self._check.found,
            first_unbalanced=_unbalanced(self._check.first),
        )


def _unbalanced(found: Unbalanced | None) -> audits.UnbalancedEntry | None:
    if found is None:
        return None
    return audits.UnbalancedEntry(
        position=position_proto(found.position), event_type=found.event_type, legs=found.told
    )


def _difference(found: Diverged) -> audits.Difference:
    expected = found.expected
    return audits.Difference(
        service=found.service,
        position=position_proto(found.position),
        cause=position_proto(position_of(found.recorded.cause)),
        expected_type=expected.type if expected else "",
        expected_body=expected.body if expected else b"",
        recorded_type=found.recorded.type,
        recorded_body=found.recorded.body,
    )
