"""Switches: what takes no new bets and opens no new rounds, by whom and why; and the orders of
supervisors that change it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from sabot.rules.v1 import rule_set_pb2
from sabot.table.v1 import operator_service_pb2 as operators
from sabot.table.v1 import switch_pb2 as switches
from services.cli.uuid7 import uuid7
from services.console.calls import Calls
from services.console.lobby import all_tables
from services.console.web import Refusal, Visit, change, live, page
from services.kernel import telemetry
from services.kernel.telemetry_names import CONSOLE_ORDER
from services.kernel.tokens import Role

AGAIN_S = 2.0
MOST_REASON = 500
PARTNER = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
ACCOUNT = re.compile(r"[!-~]{1,64}")
_HASH = re.compile(r"[0-9a-f]{64}")
GAMES = tuple(
    name
    for name in rule_set_pb2.Game.keys()  # noqa: SIM118 - an enum of the protos is no mapping
    if not name.endswith("_UNSPECIFIED")
)


def target_of(one: switches.Switch) -> dict[str, str]:
    """A switch as a form's fields name it."""
    return {
        "scope": switches.SwitchScope.Name(one.scope),
        "game": rule_set_pb2.Game.Name(one.game) if one.game else "",
        "rules": one.rule_set_hash.hex(),
        "partner": one.partner_id,
        "account": one.account_id,
    }


def switch_of(form: Any) -> switches.Switch:
    """The switch that a form names; of its fields those that its scope has. Raises Refusal."""
    scope = form.get("scope", "")
    if scope not in switches.SwitchScope.keys() or scope.endswith("_UNSPECIFIED"):  # noqa: SIM118 - as above
        raise Refusal(400, "refused.switch")
    made = switches.Switch(scope=switches.SwitchScope.Value(scope))
    match made.scope:
        case switches.SWITCH_SCOPE_GAME:
            _require(form, "game", re.compile("|".join(GAMES)))
            made.game = rule_set_pb2.Game.Value(form["game"])
        case switches.SWITCH_SCOPE_RULE_SET:
            _require(form, "rules", _HASH)
            made.rule_set_hash = bytes.fromhex(form["rules"])
        case switches.SWITCH_SCOPE_PARTNER | switches.SWITCH_SCOPE_ACCOUNT:
            _require(form, "partner", PARTNER)
            made.partner_id = form["partner"]
            if made.scope == switches.SWITCH_SCOPE_ACCOUNT:
                _require(form, "account", ACCOUNT)
                made.account_id = form["account"]
        case _:
            pass
    return made


def _require(form: Any, name: str, pattern: re.Pattern[str]) -> None:
    if pattern.fullmatch(form.get(name, "")) is None:
        raise Refusal(400, "refused.switch")


def reason_of(form: Any) -> str:
    """The reason in a form. Raises Refusal."""
    reason = form.get("reason", "")
    if not reason:
        raise Refusal(400, "refused.why")
    return str(reason)[:MOST_REASON]


def place_of(answer: Any) -> str:
    """Where the log says that an order was done."""
    at = answer.position
    return f"{at.segment}/{at.sequence}/{at.index}"


async def _off(calls: Calls) -> operators.ListSwitchesResponse:
    told: operators.ListSwitchesResponse = await calls.ask(
        calls.orders.ListSwitches, operators.ListSwitchesRequest()
    )
    return told


def _facts(told: operators.ListSwitchesResponse) -> dict[str, Any]:
    return {
        "off": [(one, target_of(one.switch)) for one in told.off],
        "new_id": uuid7,
        "position": f"{told.position.segment}/{told.position.sequence}",
    }


async def show(visit: Visit) -> Response:
    """The page."""
    calls = visit.calls
    told, tables = await asyncio.gather(_off(calls), all_tables(calls))
    rules: dict[str, str] = {}
    for table in tables:
        one = table.spec.rule_set
        rules[one.hash.hex()] = f"{one.rule_set_id} v{one.version}"
    accounts = visit.desk.archive.history.accounts
    return visit.page(
        "switches.html",
        games=GAMES,
        rules=rules,
        partners=sorted({partner for partner, _ in accounts}),
        **_facts(told),
    )


async def follow(visit: Visit) -> AsyncIterator[tuple[str, str]]:
    """The list as it changes; while it is the same, forms stay as they are filled in."""
    last: list[bytes] | None = None
    while True:
        told = await _off(visit.calls)
        now = [one.SerializeToString(deterministic=True) for one in told.off]
        if now != last and last is not None:
            yield "switches", visit.render("part_switches.html", **_facts(told))
        last = now
        await asyncio.sleep(AGAIN_S)


async def give(visit: Visit) -> Response:
    """Switch something off or on."""
    form = visit.form
    off = form.get("off") == "yes"
    if off and form.get("sure") != "yes":
        raise Refusal(400, "refused.sure")
    request = operators.SetSwitchRequest(
        request_id=form.get("request_id", ""),
        switch=switch_of(form),
        off=off,
        reason=reason_of(form),
    )
    calls = visit.calls
    answer = await calls.ask(calls.orders.SetSwitch, request)
    name = "switch-off" if off else "switch-on"
    telemetry.logger().info(CONSOLE_ORDER, operator=visit.who.name, order=name)
    return visit.page("part_done.html", order=name, position=place_of(answer), outcome="")


ROUTES = [
    Route("/switches", page(show)),
    Route("/switches/live", live(follow)),
    Route("/switches/set", change(give, Role.SUPERVISOR), methods=["POST"]),
]
