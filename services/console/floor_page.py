"""The page of dealers and supervisors: what a table awaits, and the orders that they give there."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

from google.protobuf.message import Message
from starlette.responses import Response
from starlette.routing import Route

from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import floor_events_pb2 as floor_events
from sabot.shoe.v1 import floor_service_pb2 as floor
from services.cli.describe import describe
from services.cli.uuid7 import uuid7
from services.console.calls import Calls, NotDone
from services.console.history import DEALING, SUPERVISING
from services.console.lobby import table_changes
from services.console.orders import BURNS, DEALERS, ORDERS, REASONS, Order
from services.console.table_page import table_of
from services.console.tables_shown import TableShown, round_shown, table_shown
from services.console.web import Refusal, Visit, change, live, merged, page
from services.games.cards import RANKS, SUITS
from services.games.roulette import NUMBERS, colour
from services.kernel import telemetry
from services.kernel.telemetry_names import CONSOLE_ORDER

LOOK_EVERY_S = 0.3
"""How often it is asked what the floor is awaited to tell."""
KEPT_ORDERS = 500
"""Orders remembered as they were sent, so that a form sent twice is one order to the last bit."""
MOST_PACKS = 100
_WORDS: dict[str, Any] = {
    "hand_name": rules.Hand.Name,
    "reasons": REASONS,
    "burns": BURNS,
    "ranks": RANKS,
    "suits": SUITS,
    "numbers": [(number, colour(number)) for number in NUMBERS],
}


async def awaited(calls: Calls, table_id: str) -> floor.Floor | None:
    """What a table awaits from the floor; None: its outcomes are drawn. Raises NotDone."""
    try:
        answer = await calls.ask(calls.floor.GetFloor, floor.GetFloorRequest(table_id=table_id))
    except NotDone as error:
        if error.reason == "NOT_ON_FLOOR":
            return None
        raise
    found: floor.Floor = answer.floor
    return found


async def packs(calls: Calls) -> list[str]:
    """Packs of cards that lie in the store, by id. Raises NotDone."""
    request = floor.ListConsumablesRequest(
        kind=floor_events.CONSUMABLE_KIND_CARDS, page_size=MOST_PACKS
    )
    answer = await calls.ask(calls.floor.ListConsumables, request)
    stored = floor.CONSUMABLE_STATE_STORED
    return [one.consumable_id for one in answer.consumables if one.state == stored]


async def show(visit: Visit) -> Response:
    """The page."""
    calls = visit.calls
    table = table_shown(await table_of(visit, calls))
    wants = await awaited(calls, table.table_id)
    return visit.page("floor.html", **await _facts(visit, calls, table, wants))


async def _facts(
    visit: Visit, calls: Calls, table: TableShown, wants: floor.Floor | None
) -> dict[str, Any]:
    stored = await packs(calls) if wants is not None and wants.awaited_shoe else []
    acts_as = _acts_as(visit, table.round.round_id) if table.round is not None else ""
    return {
        **_WORDS,
        "table": table,
        "wants": wants,
        "stored": stored,
        "new_id": uuid7,
        "deals": acts_as != SUPERVISING,
        "supervises": visit.who.may(*ORDERS["resume"].roles) and acts_as != DEALING,
        "key": "-".join(_keys(visit, table, wants).values()),
    }


def _acts_as(visit: Visit, round_id: str) -> str:
    """What this person is in a round already; empty: nothing yet."""
    actors = visit.desk.archive.history.actors.get(round_id, {})
    return actors.get(f"operator:{visit.who.name}", "")


async def follow(visit: Visit) -> AsyncIterator[tuple[str, str]]:
    """The table, and what is awaited. Forms are replaced only where something else is awaited:
    nobody is interrupted while typing."""
    calls = visit.calls
    table = table_shown(await table_of(visit, calls))
    async for part in merged(_cards(visit, calls, table), _wants(visit, calls, table)):
        yield part


async def _cards(visit: Visit, calls: Calls, table: TableShown) -> AsyncIterator[tuple[str, str]]:
    game = 0
    async for told in table_changes(calls, table.table_id):
        if told.HasField("state"):
            game = told.state.spec.rule_set.game
            table.round = table_shown(told.state).round
        elif told.HasField("round"):
            table.round = round_shown(told.round, game)
        else:
            continue
        yield "cards", visit.render("part_table_cards.html", table=table)


async def _wants(visit: Visit, calls: Calls, table: TableShown) -> AsyncIterator[tuple[str, str]]:
    known = visit.query("known").partition("-")
    last = {"dealer": known[0], "supervisor": known[2]}
    while True:
        wants = await awaited(calls, table.table_id)
        now = _keys(visit, table, wants)
        for part in [part for part in now if now[part] != last[part]]:
            facts = await _facts(visit, calls, table, wants)
            yield part, visit.render(f"part_{part}.html", **facts)
        last = now
        await asyncio.sleep(LOOK_EVERY_S)


def _keys(visit: Visit, table: TableShown, wants: floor.Floor | None) -> dict[str, str]:
    """What each part's forms are for, in short: while it is the same they stay as they are filled
    in."""
    one = table.round
    of_round = (
        (one.round_id, one.state, one.suspended, _dealt(one.hands), len(one.tosses))
        if one
        else None,
        _acts_as(visit, one.round_id) if one else "",
    )
    of_floor = wants.SerializeToString(deterministic=True) if wants is not None else b""
    return {"dealer": _short(of_round, of_floor), "supervisor": _short(of_round)}


def _short(*told: object) -> str:
    return sha256(repr(told).encode()).hexdigest()[:16]


def _dealt(hands: list[Any]) -> tuple[str, ...]:
    return tuple(card for hand in hands for card in hand.cards)


# ---- orders ------------------------------------------------------------------------------------

_sent: OrderedDict[tuple[str, ...], Message] = OrderedDict()


async def give(visit: Visit) -> Response:
    """One order, under the name of whoever is signed in."""
    table_id, name = visit.path("table_id"), visit.path("order")
    order = ORDERS.get(name)
    if order is None:
        raise Refusal(404, "refused.page")
    if not visit.who.may(*order.roles):
        told = ", ".join(visit.words.of(role.value) for role in order.roles)
        raise Refusal(403, "refused.role", roles=told)
    round_id = visit.form.get("round_id", "")
    _require_other_person(visit, order, round_id)
    request = _request(visit, name, order, table_id)
    calls = visit.calls
    with _claimed(visit, order, round_id):
        answer = await calls.ask(order.method(calls), request)
    telemetry.logger().info(CONSOLE_ORDER, operator=visit.who.name, order=name, table=table_id)
    return visit.page(
        "part_done.html", order=name, position=_position(answer), outcome=_outcome(answer)
    )


@contextmanager
def _claimed(visit: Visit, order: Order, round_id: str) -> Iterator[None]:
    """This person acts in the round as the order says, from before it is sent: the log says so a
    moment later only, and orders may come from two windows at once. One that was refused never
    was."""
    actor, rounds = f"operator:{visit.who.name}", visit.desk.archive.history.actors
    if not order.acts_as or not round_id or actor in rounds.get(round_id, {}):
        yield
        return
    rounds.setdefault(round_id, {})[actor] = order.acts_as
    try:
        yield
    except NotDone as error:
        if not error.unknown and round_id in rounds:
            rounds[round_id].pop(actor, None)
            if not rounds[round_id]:
                del rounds[round_id]
        raise


def _require_other_person(visit: Visit, order: Order, round_id: str) -> None:
    """Dealer and supervisor of one round are two people."""
    if order.acts_as and not visit.desk.archive.reached:
        raise Refusal(503, "refused.reading")
    known = _acts_as(visit, round_id)
    if order.acts_as and known and known != order.acts_as:
        raise Refusal(403, "refused.two_people", role=visit.words.of(known))


def _request(visit: Visit, name: str, order: Order, table_id: str) -> Message:
    """The call's request; of a form that is sent again, the very same."""
    facts = sorted((key, value) for key, value in visit.form.items() if key != "csrf")
    key = (visit.who.name, name, table_id, *(f"{field}={value}" for field, value in facts))
    request = _sent.get(key)
    if request is None:
        request = _sent[key] = order.build(table_id, visit.form)
        while len(_sent) > KEPT_ORDERS:
            _sent.popitem(last=False)
    return request


def _position(answer: Any) -> str:
    at = answer.position
    return f"{at.segment}/{at.sequence}/{at.index}"


def _outcome(answer: Any) -> str:
    """What it came to, where that is more than that it was done."""
    if "outcome" not in answer.DESCRIPTOR.fields_by_name:
        return ""
    which = answer.outcome.WhichOneof("outcome")
    if which is None or which == "pending":
        return ""
    return describe(getattr(answer.outcome, which))


ROUTES = [
    Route("/tables/{table_id}/floor", page(show, *DEALERS)),
    Route("/tables/{table_id}/floor/live", live(follow, *DEALERS)),
    Route("/tables/{table_id}/orders/{order}", change(give), methods=["POST"]),
]
