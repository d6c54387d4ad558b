"""AuditService: what the continuous audit has found."""

from __future__ import annotations

from typing import Protocol

from sabot.audit.v1 import audit_service_pb2 as audits
from services.kernel.call import Call, rpc
from services.kernel.tokens import Role


class AuditReport(Protocol):
    """The continuous audit of this process."""

    def report(self) -> audits.GetAuditResponse:
        """How far it is, and what it found."""
        ...


class AuditServicer:
    """For auditors only: differences hold bodies of events, accounts and bets in them."""

    def __init__(self, audit: AuditReport) -> None:
        self._audit = audit

    @rpc(roles=(Role.AUDITOR,))
    async def get_audit(
        self, request: audits.GetAuditRequest, call: Call
    ) -> audits.GetAuditResponse:
        """The report as it stands."""
        del request, call
        return self._audit.report()
