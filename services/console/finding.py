"""The search field: whatever somebody has in hand, a round, a table, an account, a bet, a request,
a trace or a position."""

from __future__ import annotations

import re

from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from services.cli.describe import describe
from services.cli.moments import parse_position
from services.console.archive import SEEK_S
from services.console.lobby import all_tables
from services.console.web import Refusal, Visit, page
from services.kernel.event import Event

SHOWN = 500
"""Events of a search; there may be thousands of an account."""
TRACE = re.compile(r"[0-9a-f]{32}")
POSITION = re.compile(r"\d{1,6}/\d{1,13}(/\d{1,6})?")
ID = re.compile(r"[!-~]{1,80}")
KINDS = ("bet", "request", "account", "table", "round")
"""Tried in this order where the text itself does not say what it is."""


async def seek(visit: Visit) -> Response:
    """Where it leads: to the page of what was found, or to a list of events."""
    asked = visit.query("q")
    if not asked:
        return visit.page("find.html", asked="", kind="", events=[], whole=True)
    if ID.fullmatch(asked) is None:
        raise Refusal(404, "refused.nothing", asked=asked[:40])
    if POSITION.fullmatch(asked):
        return await _position(visit, asked)
    if asked in visit.desk.archive.history.rounds:
        return RedirectResponse(f"/rounds/{asked}", 303)
    calls = visit.calls
    if any(one.spec.table_id == asked for one in await all_tables(calls)):
        return RedirectResponse(f"/tables/{asked}", 303)
    kinds = ("trace",) if TRACE.fullmatch(asked) else KINDS
    # A bet's id names its round.
    note = visit.desk.archive.history.rounds.get(asked.rpartition(".")[0])
    after = note.first - 1 if note is not None else 0
    try:
        found = await visit.desk.archive.find(asked, kinds, SHOWN, after)
    except TimeoutError:
        # Not as what may be over in a moment: such a page would search again by itself.
        raise Refusal(422, "refused.search", seconds=int(SEEK_S)) from None
    if not found.events:
        raise Refusal(404, "refused.nothing", asked=asked)
    return visit.page(
        "find.html",
        asked=asked,
        kind=found.kind,
        events=[_shown(event) for event in found.events],
        whole=found.whole,
    )


async def _position(visit: Visit, asked: str) -> Response:
    """The events of an entry; one of a round leads to that round's timeline."""
    archive = visit.desk.archive
    try:
        position = parse_position(asked)
    except ValueError:
        raise Refusal(400, "refused.position", position=asked) from None
    await archive.entry(position.sequence)
    for note in archive.history.rounds.values():
        if note.first <= position.sequence <= (note.last or position.sequence):
            found = await archive.playthrough(note.round_id)
            if any(one.event.position.sequence == position.sequence for one in found.shown):
                return RedirectResponse(f"/rounds/{note.round_id}?at={asked}", 303)
    raise Refusal(404, "refused.no_round_there", position=asked)


def _shown(event: Event) -> dict[str, object]:
    body = event.body
    return {
        "position": str(event.position),
        "time_us": event.time_us,
        "subject": f"{event.service}.{'in' if event.is_input else 'out'}",
        "actor": event.actor,
        "name": type(body).__name__,
        "round_id": str(getattr(body, "round_id", "")),
        "details": describe(body),
    }


ROUTES = [Route("/find", page(seek, reads="find"))]
