"""AuditService: what the continuous audit has found."""

from __future__ import annotations

from typing import Protocol

from sabot.audit.v1 import audit_service_pb2 as audits
from sabot.audit.v1 import significant_events_pb2 as significant
from services.audit.accepting import Accepting
from services.audit.seals import Seals
from services.audit.significant_list import SignificantEvents
from services.kernel.call import EVERY_ROLE, Call, rpc
from services.kernel.errors import Refused
from services.kernel.notices import NoticeKind, Notices
from services.kernel.tokens import Role
from services.refusals.audit import NO_SUCH_PROOF, NOT_SEALED


class AuditReport(Protocol):
    """The continuous audit of this process."""

    def report(self) -> audits.GetAuditResponse:
        """How far it is, and what it found."""
        ...


class AuditServicer:
    """What the audit found is for auditors only: differences hold bodies of events, accounts and
    bets in them. Seals and proofs are hashes, and for everyone."""

    def __init__(
        self,
        audit: AuditReport,
        seals: Seals,
        events: SignificantEvents,
        notices: Notices,
        accepting: Accepting,
    ) -> None:
        self._audit = audit
        self._seals = seals
        self._significant = events
        self._notices = notices
        self._accepting = accepting

    @rpc(roles=(Role.AUDITOR,))
    async def get_audit(
        self, request: audits.GetAuditRequest, call: Call
    ) -> audits.GetAuditResponse:
        """The report as it stands."""
        del request, call
        return self._audit.report()

    @rpc(partners=True, roles=EVERY_ROLE)
    async def get_seal(self, request: audits.GetSealRequest, call: Call) -> audits.GetSealResponse:
        """The newest signed head."""
        del request, call
        return self._seals.newest()

    @rpc(partners=True, roles=EVERY_ROLE)
    async def prove_entry(
        self, request: audits.ProveEntryRequest, call: Call
    ) -> audits.ProveEntryResponse:
        """An entry's proof."""
        del call
        self._check(request.sequence, request.size)
        return self._seals.entry(request.sequence, request.size)

    @rpc(partners=True, roles=EVERY_ROLE)
    async def prove_entries(
        self, request: audits.ProveEntriesRequest, call: Call
    ) -> audits.ProveEntriesResponse:
        """Several entries' proofs."""
        del call
        self._check(max(request.sequences), request.size)
        return audits.ProveEntriesResponse(
            proofs=[self._seals.entry(sequence, request.size) for sequence in request.sequences]
        )

    @rpc(partners=True, roles=EVERY_ROLE)
    async def prove_growth(
        self, request: audits.ProveGrowthRequest, call: Call
    ) -> audits.ProveGrowthResponse:
        """The proof between two heads."""
        del call
        self._check(request.old_size, request.size)
        return self._seals.growth(request.old_size, request.size)

    @rpc(roles=(Role.AUDITOR,))
    async def list_significant_events(
        self, request: audits.ListSignificantEventsRequest, call: Call
    ) -> audits.ListSignificantEventsResponse:
        """A page of significant events."""
        del call
        return await self._significant.page(request)

    @rpc(roles=(Role.SUPERVISOR,))
    async def set_thresholds(
        self, request: audits.SetThresholdsRequest, call: Call
    ) -> audits.SetThresholdsResponse:
        """From where on amounts are large."""
        return await self._significant.set_thresholds(request, call)

    @rpc(roles=(Role.CONSOLE,))
    async def note_seen(
        self, request: audits.NoteSeenRequest, call: Call
    ) -> audits.NoteSeenResponse:
        """What a console saw: gathered like this process's own calls, and told by its shell."""
        del call
        read = request.kind == significant.NOTED_KIND_READ
        self._notices.seen(
            NoticeKind.READ if read else NoticeKind.REFUSED,
            f"operator:{request.operator_id}" if request.operator_id else "",
            f"console/{request.page}",
            request.count,
        )
        return audits.NoteSeenResponse()

    @rpc(roles=(Role.AUDITOR,))
    async def ask_attestation(
        self, request: audits.AskAttestationRequest, call: Call
    ) -> audits.AskAttestationResponse:
        """Have every process attest."""
        return await self._significant.ask_attestation(request, call)

    @rpc(roles=(Role.SUPERVISOR,))
    async def accept_difference(
        self, request: audits.AcceptDifferenceRequest, call: Call
    ) -> audits.AcceptDifferenceResponse:
        """An answer that does not follow, accepted on purpose."""
        return await self._accepting.accept(request, call)

    def _check(self, within: int, size: int) -> None:
        if within > size:
            raise Refused(NO_SUCH_PROOF, {"within": within, "size": size})
        if not self._seals.covers(size):
            raise Refused(NOT_SEALED, {"size": size})
