"""How the fleet is: who answers, how far behind the log everybody is, seals, and what the audit
found."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from starlette.responses import Response
from starlette.routing import Route

from sabot.audit.v1 import audit_service_pb2 as audits
from services.cli.describe import describe
from services.console.accounts_page import books_balance
from services.console.calls import NotDone
from services.console.contested_shown import contests_shown, follow_contests
from services.console.web import Visit, live, merged, page
from services.kernel.log import LogUnavailable
from services.kernel.tokens import Role

SERVICES = ("table", "limits", "wallet", "shoe", "rules", "settlement", "audit")
ASK_S = 1.5
"""For a service to say how it is."""
AGAIN_S = 2.0


@dataclass(frozen=True, slots=True)
class Answering:
    """A service's server."""

    service: str
    address: str
    state: str
    """`serving`, `not_serving` or `silent`."""
    answer_ms: float


async def _ask(visit: Visit, service: str) -> Answering:
    fleet = visit.desk.fleet
    address = fleet.addresses.get(service, fleet.default)
    stub = fleet.stub(service, health_pb2_grpc.HealthStub)
    began = time.monotonic()
    try:
        answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=ASK_S)
    except grpc.aio.AioRpcError:
        state = "silent"
    else:
        serving = answer.status == health_pb2.HealthCheckResponse.SERVING
        state = "serving" if serving else "not_serving"
    return Answering(service, address, state, (time.monotonic() - began) * 1000)


async def _audit(visit: Visit) -> audits.GetAuditResponse | None:
    """What the audit found, for auditors; None: nobody tells."""
    if not visit.who.may(Role.AUDITOR):
        return None
    try:
        told: audits.GetAuditResponse = await visit.calls.ask(
            visit.calls.audit.GetAudit, audits.GetAuditRequest()
        )
    except NotDone:
        return None
    return told


def _difference(visit: Visit, one: audits.Difference) -> dict[str, str]:
    """An answer that does not follow, in words."""
    told = {"service": one.service, "round_id": ""}
    at = one.position
    told["position"] = f"{at.segment}/{at.sequence}/{at.index}"
    for side, name, raw in (
        ("expected", one.expected_type, one.expected_body),
        ("recorded", one.recorded_type, one.recorded_body),
    ):
        told[f"{side}_name"], told[side] = name.rpartition(".")[2], ""
        if name in visit.desk.archive.types:
            body: Any = visit.desk.archive.types.decode(name, raw)
            told[side] = describe(body)
            told["round_id"] = told["round_id"] or str(getattr(body, "round_id", ""))
    return told


async def _seal(visit: Visit) -> audits.GetSealResponse | None:
    try:
        told: audits.GetSealResponse = await visit.calls.ask(
            visit.calls.audit.GetSeal, audits.GetSealRequest()
        )
    except NotDone:
        return None
    return told if told.HasField("seal") else None


async def _facts(visit: Visit) -> dict[str, Any]:
    archive = visit.desk.archive
    history = archive.history
    try:
        last = await archive.last_sequence()
    except (LogUnavailable, OSError):
        last = 0
    answering, audit, seal, balanced = await asyncio.gather(
        asyncio.gather(*(_ask(visit, service) for service in SERVICES)),
        _audit(visit),
        _seal(visit),
        books_balance(visit),
    )
    return {
        "answering": answering,
        "audit": audit,
        "differences": [_difference(visit, one) for one in audit.first] if audit else [],
        "seal": seal.seal if seal is not None else None,
        "unsealed": last - seal.seal.size if seal is not None else last,
        "seals": list(reversed(history.seals)),
        "last": last,
        "read": history.sequence,
        "behind": max(last - history.sequence, 0),
        "events": history.events,
        "time_us": history.time_us,
        "trouble": archive.trouble,
        "telling": visit.desk.telling,
        "balanced": balanced,
    }


async def show(visit: Visit) -> Response:
    """The page."""
    facts = await _facts(visit)
    return visit.page("health.html", contested=contests_shown(visit), **facts)


async def follow(visit: Visit) -> AsyncIterator[tuple[str, str]]:
    """The same, again and again; what is contested, as it comes."""
    async for part in merged(_again(visit), follow_contests(visit)):
        yield part


async def _again(visit: Visit) -> AsyncIterator[tuple[str, str]]:
    while True:
        await asyncio.sleep(AGAIN_S)
        yield "health", visit.render("part_health.html", **await _facts(visit))


ROUTES = [Route("/health-of-fleet", page(show)), Route("/health-of-fleet/live", live(follow))]
