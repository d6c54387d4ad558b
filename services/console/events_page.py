"""Significant events, as a regulator wants to be told of them: for auditors, newest first."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from sabot.audit.v1 import audit_service_pb2 as audits
from sabot.audit.v1 import significant_events_pb2 as significant
from sabot.limits.v1 import events_pb2 as limit_events
from sabot.limits.v1 import protection_events_pb2 as protection
from sabot.table.v1 import events_pb2 as tables
from sabot.table.v1 import switch_events_pb2 as switch_events
from services.cli.describe import describe
from services.console.accounts_page import days_of
from services.console.switches_page import target_of
from services.console.web import Refusal, Visit, live, page
from services.kernel.tokens import Role

MOST = 500
"""Events shown of the days that are asked for: the newest."""
PAGE, MOST_PAGES = 1_000, 20
"""Read for it, oldest first as they come; of more, `sabot events list` tells."""
DAYS = 1
AGAIN_S = 3.0
KINDS = tuple(
    name
    for name in audits.Significance.keys()  # noqa: SIM118 - an enum of the protos is no mapping
    if not name.endswith("_UNSPECIFIED")
)
NOTED = (significant.EventsNoted, significant.ReadsNoted)


async def _facts(visit: Visit) -> dict[str, Any]:
    kind = visit.query("kind")
    if kind and kind not in KINDS:
        raise Refusal(404, "refused.page")
    first, last = days_of(visit, DAYS)
    request = audits.ListSignificantEventsRequest(page_size=PAGE)
    if kind:
        request.significance = audits.Significance.Value(kind)
    request.start_time.FromDatetime(_midnight(first))
    request.end_time.FromDatetime(_midnight(last + timedelta(days=1)))
    events: deque[audits.SignificantEvent] = deque(maxlen=MOST)
    count = 0
    for _ in range(MOST_PAGES):
        told: audits.ListSignificantEventsResponse = await visit.calls.ask(
            visit.calls.audit.ListSignificantEvents, request
        )
        events.extend(told.events)
        count += len(told.events)
        request.page_token = told.next_page_token
        if not told.next_page_token:
            break
    return {
        "kinds": KINDS,
        "kind": kind,
        "first": first.isoformat(),
        "last": last.isoformat(),
        "events": [_event(visit, one) for one in reversed(events)],
        "more": count > len(events) or bool(request.page_token),
    }


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _event(visit: Visit, one: audits.SignificantEvent) -> dict[str, Any]:
    types = visit.desk.archive.types
    at = one.position
    body: Any = types.decode(one.event_type, one.body) if one.event_type in types else None
    noted = body.noted if isinstance(body, NOTED) else None
    return {
        "position": f"{at.segment}/{at.sequence}/{at.index}",
        "time_us": one.log_time.ToMicroseconds(),
        "kind": audits.Significance.Name(one.significance),
        "name": one.event_type.rpartition(".")[2],
        "actor": noted.subject if noted is not None else one.actor,
        "partner": one.partner_id,
        "round_id": str(getattr(body, "round_id", "")),
        "method": noted.method if noted is not None else "",
        "count": noted.count if noted is not None else 0,
        "details": _details(visit, body) if body is not None and noted is None else "",
    }


def _details(visit: Visit, body: Any) -> str:
    """What was changed, in the words of the page; of other events what every list says."""
    words = visit.words
    match body:
        case switch_events.SwitchSet():
            target = target_of(body.switch)
            which = [words.of(target["scope"]), words.of(target["game"]), target["rules"][:16]]
            which += [target["partner"], target["account"]]
            state = words("switch.is_off") if body.off else words("events.on")
            return f"{' '.join(filter(None, which))}: {state}; {body.reason}"
        case protection.LimitsSet():
            kinds = [words.of(protection.LimitKind.Name(one.kind)) for one in body.limits]
            scope = words.of(limit_events.Scope.Name(body.scope))
            return f"{scope} {body.scope_id}: {', '.join(kinds)}"
        case tables.TableOpened():
            rules = body.spec.rule_set
            return f"{body.spec.table_id}: {rules.rule_set_id} v{rules.version}"
        case _:
            return describe(body)


async def show(visit: Visit) -> Response:
    """The page."""
    return visit.page("events.html", **await _facts(visit))


async def follow(visit: Visit) -> AsyncIterator[tuple[str, str]]:
    """The list as it grows."""
    newest = ""
    while True:
        facts = await _facts(visit)
        now = facts["events"][0]["position"] if facts["events"] else ""
        if now != newest:
            newest = now
            yield "events", visit.render("part_events.html", **facts)
        await asyncio.sleep(AGAIN_S)


ROUTES = [
    Route("/events", page(show, Role.AUDITOR)),
    Route("/events/live", live(follow, Role.AUDITOR)),
]
