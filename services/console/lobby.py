"""The lobby: every table with what happens there now."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from starlette.responses import Response
from starlette.routing import Route

from sabot.limits.v1 import limits_service_pb2 as limits
from sabot.partner.v1 import partner_service_pb2 as partners
from services.console.calls import Calls, NotDone
from services.console.contested_shown import contests_shown, follow_contests
from services.console.tables_shown import TableShown, round_shown, table_shown
from services.console.web import Visit, live, merged, page

MOST_TABLES = 200
EXPOSURE_EVERY_S = 2.0
"""How often stakes and exposure of each table are asked for."""
LOOK_EVERY_S = 5.0
"""How often the lobby looks for tables that opened or closed."""
NOT_OFTENER_S = 0.25
"""A table's row is sent at most so often."""


@dataclass(slots=True)
class Row:
    """A table in the lobby."""

    table: TableShown
    exposure: limits.GetExposureResponse


async def all_tables(calls: Calls) -> list[partners.Table]:
    """Every open table, by id. Raises NotDone."""
    found: list[partners.Table] = []
    token = ""
    while len(found) < MOST_TABLES:
        request = partners.ListTablesRequest(page_size=50, page_token=token)
        answer = await calls.ask(calls.tables.ListTables, request)
        found += answer.tables
        token = answer.next_page_token
        if not token:
            break
    return found


async def exposure_of(calls: Calls, table_id: str) -> limits.GetExposureResponse:
    """What is staked at a table; nothing where it was closed just now. Raises NotDone."""
    try:
        found: limits.GetExposureResponse = await calls.ask(
            calls.limits.GetExposure, limits.GetExposureRequest(table_id=table_id)
        )
    except NotDone as error:
        if error.reason == "TABLE_NOT_FOUND":
            return limits.GetExposureResponse()
        raise
    return found


async def _rows(calls: Calls) -> list[Row]:
    tables = await all_tables(calls)
    exposures = await asyncio.gather(*(exposure_of(calls, one.spec.table_id) for one in tables))
    return [Row(table_shown(one), told) for one, told in zip(tables, exposures, strict=True)]


async def show(visit: Visit) -> Response:
    """The page."""
    rows = await _rows(visit.calls)
    return visit.page("lobby.html", rows=rows, contested=contests_shown(visit))


async def follow(visit: Visit) -> AsyncIterator[tuple[str, str]]:
    """Rows as they change; the whole list where tables opened or closed."""
    calls = visit.calls
    tables = await all_tables(calls)
    ids = [one.spec.table_id for one in tables]
    changes = (_changes(visit, ids), follow_contests(visit))
    async for part in merged(*changes, *(_table(visit, one) for one in tables)):
        yield part


async def _changes(visit: Visit, ids: list[str]) -> AsyncIterator[tuple[str, str]]:
    """Ends the stream where there are other tables now: the browser opens it anew."""
    calls = visit.calls
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        if [one.spec.table_id for one in await all_tables(calls)] != ids:
            yield "tables", visit.render("part_lobby_rows.html", rows=await _rows(calls))
            return


async def _table(visit: Visit, table: partners.Table) -> AsyncIterator[tuple[str, str]]:
    """One table's row."""
    calls = visit.calls
    loop = asyncio.get_running_loop()
    table_id, game = table.spec.table_id, table.spec.rule_set.game
    row = Row(table_shown(table), limits.GetExposureResponse())
    sent_at, asked_at = 0.0, 0.0
    async for change in table_changes(calls, table_id):
        if change.HasField("state"):
            row.table = table_shown(change.state)
            game = change.state.spec.rule_set.game
        elif change.HasField("round"):
            row.table.round = round_shown(change.round, game)
        now = loop.time()
        if now - asked_at >= EXPOSURE_EVERY_S or row.exposure.round_id != _round_id(row):
            asked_at = now
            row.exposure = await exposure_of(calls, table_id)
        if now - sent_at < NOT_OFTENER_S:
            await asyncio.sleep(NOT_OFTENER_S - (now - sent_at))
        sent_at = loop.time()
        yield f"table-{table_id}", visit.render("part_lobby_row.html", row=row)


def _round_id(row: Row) -> str:
    return row.table.round.round_id if row.table.round is not None else ""


async def table_changes(calls: Calls, table_id: str) -> AsyncIterator[partners.WatchTableResponse]:
    """What happens at a table, the newest where more came than was taken. Raises NotDone."""
    newest: dict[str, partners.WatchTableResponse] = {}
    came = asyncio.Event()

    async def read() -> None:
        request = partners.WatchTableRequest(table_id=table_id)
        try:
            async for message in calls.follow(calls.tables.WatchTable, request):
                kind = message.WhichOneof("update")
                if kind == "state":
                    newest.clear()
                newest[kind] = message
                came.set()
        finally:
            came.set()

    reading = asyncio.ensure_future(read())
    try:
        while True:
            await came.wait()
            came.clear()
            for kind in ("state", "round", "heartbeat"):
                message = newest.pop(kind, None)
                if message is not None:
                    yield message
            if reading.done() and not newest:
                reading.result()
                return
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


ROUTES = [Route("/", page(show)), Route("/live", live(follow))]
