"""`sabot events`: significant events of a running fleet, and the thresholds of large amounts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import grpc

from sabot.audit.v1 import audit_service_pb2 as audits
from sabot.audit.v1 import audit_service_pb2_grpc as audits_grpc
from sabot.audit.v1 import significant_events_pb2 as significant
from services.cli.moments import written
from services.cli.odds_live import NotTold
from services.cli.readable import readable_message
from services.events import event_types
from services.kernel.call_again import CALL_AGAIN
from services.kernel.entry import NotUnderstood, position_of, position_proto
from services.kernel.event import Position

CALL_S = 30.0
PAGE = 500
KINDS = {
    name.removeprefix("SIGNIFICANCE_").lower(): audits.Significance.Value(name)
    for name in audits.Significance.keys()  # noqa: SIM118 - an enum wrapper, no dict
    if name != "SIGNIFICANCE_UNSPECIFIED"
}


@dataclass(frozen=True, slots=True)
class Client:
    """An operator's calls at a fleet."""

    address: str
    token: str

    async def events(
        self, kind: str, since_us: int | None, until_us: int | None
    ) -> AsyncIterator[audits.SignificantEvent]:
        """All, oldest first; of a kind, or of all (""). Raises NotTold."""
        request = audits.ListSignificantEventsRequest(page_size=PAGE)
        if kind:
            request.significance = KINDS[kind]
        if since_us is not None:
            request.start_time.FromMicroseconds(since_us)
        if until_us is not None:
            request.end_time.FromMicroseconds(until_us)
        async with grpc.aio.insecure_channel(self.address, CALL_AGAIN) as channel:
            stub: audits_grpc.AuditServiceAsyncStub = audits_grpc.AuditServiceStub(channel)
            while True:
                try:
                    page = await stub.ListSignificantEvents(request, **self._options)
                except grpc.aio.AioRpcError as error:
                    raise NotTold(f"{error.code().name}: {error.details()}") from error
                for one in page.events:
                    yield one
                if not page.next_page_token:
                    return
                request.page_token = page.next_page_token

    async def set_thresholds(self, thresholds: significant.Thresholds, reason: str) -> None:
        """From where on amounts are large. Raises NotTold."""
        request = audits.SetThresholdsRequest(thresholds=thresholds, reason=reason)
        async with grpc.aio.insecure_channel(self.address, CALL_AGAIN) as channel:
            stub: audits_grpc.AuditServiceAsyncStub = audits_grpc.AuditServiceStub(channel)
            try:
                await stub.SetThresholds(request, **self._options)
            except grpc.aio.AioRpcError as error:
                raise NotTold(f"{error.code().name}: {error.details()}") from error

    async def ask_attestation(self, reason: str) -> str:
        """Have every process attest; the position of the order. Raises NotTold."""
        request = audits.AskAttestationRequest(reason=reason)
        async with grpc.aio.insecure_channel(self.address, CALL_AGAIN) as channel:
            stub: audits_grpc.AuditServiceAsyncStub = audits_grpc.AuditServiceStub(channel)
            try:
                told = await stub.AskAttestation(request, **self._options)
            except grpc.aio.AioRpcError as error:
                raise NotTold(f"{error.code().name}: {error.details()}") from error
        at = told.position
        return f"{at.segment}/{at.sequence}/{at.index}"

    async def accept_difference(self, at: Position, reason: str) -> Position:
        """Let a recorded answer stand that does not follow; where the log says so. Raises
        NotTold."""
        request = audits.AcceptDifferenceRequest(position=position_proto(at), reason=reason)
        async with grpc.aio.insecure_channel(self.address, CALL_AGAIN) as channel:
            stub: audits_grpc.AuditServiceAsyncStub = audits_grpc.AuditServiceStub(channel)
            try:
                told = await stub.AcceptDifference(request, **self._options)
            except grpc.aio.AioRpcError as error:
                raise NotTold(f"{error.code().name}: {error.details()}") from error
        return position_of(told.position)

    @property
    def _options(self) -> dict[str, Any]:
        return {"metadata": (("authorization", f"Bearer {self.token}"),), "timeout": CALL_S}


def event_json(one: audits.SignificantEvent) -> dict[str, Any]:
    """For programs."""
    position = one.position
    return {
        "position": f"{position.segment}/{position.sequence}/{position.index}",
        "time": written(one.log_time.ToMicroseconds()),
        "significance": _kind_of(one),
        "event": one.event_type,
        "actor": one.actor,
        "partner": one.partner_id,
        "body": _body(one),
    }


def line_of(one: audits.SignificantEvent) -> str:
    """For people."""
    told = event_json(one)
    who = f"  by {one.actor}" if one.actor else ""
    short = one.event_type.rpartition(".")[2]
    facts = ", ".join(f"{name} {value}" for name, value in told["body"].items() if _plain(value))
    return f"{told['position']}  {told['time']}  {told['significance']}  {short}{who}  {facts}"


def _kind_of(one: audits.SignificantEvent) -> str:
    return audits.Significance.Name(one.significance).removeprefix("SIGNIFICANCE_").lower()


def _body(one: audits.SignificantEvent) -> dict[str, Any]:
    try:
        told = readable_message(event_types().decode(one.event_type, one.body))
    except NotUnderstood:
        return {"unreadable": one.body.hex()}  # The fleet is of a later release.
    noted = told.get("noted")
    return noted if isinstance(noted, dict) else told


def _plain(value: object) -> bool:
    return isinstance(value, str | int | bool)
