"""A table: cards, shoe, roads, bets and exposure, live."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from starlette.responses import Response
from starlette.routing import Route

from sabot.limits.v1 import limits_service_pb2 as limits
from sabot.partner.v1 import partner_service_pb2 as partners
from sabot.shoe.v1 import shoe_service_pb2 as shoes
from services.console.calls import Calls, NotDone
from services.console.lobby import exposure_of, table_changes
from services.console.roads_drawn import drawn
from services.console.tables_shown import TableShown, round_shown, table_shown
from services.console.web import Refusal, Visit, live, merged, page

BETS_SHOWN = 200
"""Of a round: the newest."""
MONEY_EVERY_S = 0.7
"""How often bets and exposure are asked for."""


async def table_of(visit: Visit, calls: Calls) -> partners.Table:
    """The table of the address. Raises Refusal, NotDone."""
    table_id = visit.path("table_id")
    try:
        answer = await calls.ask(calls.tables.GetTable, partners.GetTableRequest(table_id=table_id))
    except NotDone as error:
        if error.reason in {"TABLE_NOT_FOUND", "INVALID_REQUEST"}:
            raise Refusal(404, "refused.table", table=table_id[:40]) from None
        raise
    table: partners.Table = answer.table
    return table


async def shoe_of(calls: Calls, shoe_id: str) -> shoes.GetShoeResponse | None:
    """How far a shoe is; None: there is none. Raises NotDone."""
    if not shoe_id:
        return None
    try:
        found: shoes.GetShoeResponse = await calls.ask(
            calls.shoes.GetShoe, shoes.GetShoeRequest(shoe_id=shoe_id)
        )
    except NotDone as error:
        if error.reason == "SHOE_NOT_FOUND":
            return None
        raise
    return found


async def bets_of(calls: Calls, round_id: str) -> list[partners.PlacedBet]:
    """A round's bets, newest first. Raises NotDone."""
    if not round_id:
        return []
    request = partners.ListBetsRequest(round_id=round_id, page_size=BETS_SHOWN)
    answer = await calls.ask(calls.tables.ListBets, request)
    return list(answer.bets)


async def show(visit: Visit) -> Response:
    """The page."""
    calls = visit.calls
    table = await table_of(visit, calls)
    shown = table_shown(table)
    round_id = shown.round.round_id if shown.round else ""
    shoe, exposure, bets = await asyncio.gather(
        shoe_of(calls, table.round.shoe_id),
        exposure_of(calls, shown.table_id),
        bets_of(calls, round_id),
    )
    return visit.page(
        "table.html",
        table=shown,
        limits=table.spec.limits,
        shoe=shoe,
        roads=drawn(table.roads),
        exposure=exposure,
        bets=bets,
    )


async def follow(visit: Visit) -> AsyncIterator[tuple[str, str]]:
    """Its parts as they change."""
    calls = visit.calls
    table = await table_of(visit, calls)
    seen = _Seen(table_shown(table))
    async for part in merged(_cards(visit, calls, seen), _money(visit, calls, seen)):
        yield part


class _Seen:
    """What both halves of the page go by."""

    def __init__(self, table: TableShown) -> None:
        self.table = table


async def _cards(visit: Visit, calls: Calls, seen: _Seen) -> AsyncIterator[tuple[str, str]]:
    game, roads_of = 0, ""
    async for change in table_changes(calls, seen.table.table_id):
        if change.HasField("state"):
            game = change.state.spec.rule_set.game
            seen.table = table_shown(change.state)
            now = change.state.round
        elif change.HasField("round"):
            now = change.round
            seen.table.round = round_shown(now, game)
        else:
            continue
        yield "cards", visit.render("part_table_cards.html", table=seen.table)
        shoe = await shoe_of(calls, now.shoe_id)
        if shoe is not None:
            yield "shoe", visit.render("part_shoe.html", shoe=shoe)
        key = f"{now.shoe_id} {now.road.round_id}"
        if now.road.round_id and key != roads_of:
            roads_of = key
            table = await table_of(visit, calls)
            yield "roads", visit.render("part_roads.html", roads=drawn(table.roads))


async def _money(visit: Visit, calls: Calls, seen: _Seen) -> AsyncIterator[tuple[str, str]]:
    last: tuple[bytes, ...] = ()
    while True:
        round_id = seen.table.round.round_id if seen.table.round else ""
        exposure: limits.GetExposureResponse
        exposure, bets = await asyncio.gather(
            exposure_of(calls, seen.table.table_id), bets_of(calls, round_id)
        )
        told = limits.GetExposureResponse.FromString(exposure.SerializeToString())
        told.ClearField("position")
        now = (told.SerializeToString(), *(bet.SerializeToString() for bet in bets))
        if now != last:
            last = now
            yield (
                "money",
                visit.render("part_money.html", table=seen.table, exposure=exposure, bets=bets),
            )
        await asyncio.sleep(MONEY_EVERY_S)


ROUTES = [
    Route("/tables/{table_id}", page(show)),
    Route("/tables/{table_id}/live", live(follow)),
]
