"""Money that is stuck: movements that a partner's own wallet has not answered, or not clearly."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from sabot.wallet.v1 import seamless_events_pb2 as seamless
from sabot.wallet.v1 import wallet_operator_service_pb2 as wallets
from sabot.wallet.v1.wallet_operator_service_pb2_grpc import WalletOperatorServiceStub
from services.cli.uuid7 import uuid7
from services.console.web import Refusal, Visit, change, live, page
from services.kernel import telemetry
from services.kernel.telemetry_names import CONSOLE_ORDER
from services.kernel.tokens import Role

SHOWN = 200
AGAIN_S = 2.0
MOST_REASON = 500


async def _facts(visit: Visit) -> dict[str, Any]:
    stub = visit.desk.fleet.stub("wallet", WalletOperatorServiceStub)
    told: wallets.ListUnresolvedResponse = await visit.calls.ask(
        stub.ListUnresolved, wallets.ListUnresolvedRequest(fresh=True, page_size=SHOWN)
    )
    return {
        "movements": list(told.movements),
        "total": told.total,
        "action_name": seamless.MovementAction.Name,
        "new_id": uuid7,
        "position": f"{told.position.segment}/{told.position.sequence}",
    }


async def show(visit: Visit) -> Response:
    """The list, oldest first."""
    return visit.page("unresolved.html", **await _facts(visit))


async def follow(visit: Visit) -> AsyncIterator[tuple[str, str]]:
    """The list as it changes; while it is the same, forms stay as they are filled in."""
    last: list[bytes] = []
    while True:
        facts = await _facts(visit)
        now = [one.transaction_id.encode() + bytes(one.safe_actions) for one in facts["movements"]]
        if now != last:
            last = now
            yield "unresolved", visit.render("part_unresolved.html", **facts)
        await asyncio.sleep(AGAIN_S)


async def resolve(visit: Visit) -> Response:
    """What a supervisor decides of a movement, with a reason."""
    form = visit.form
    action = form.get("action", "")
    if action not in seamless.MovementAction.keys():  # noqa: SIM118 - no mapping, an enum
        raise Refusal(400, "refused.action")
    if not form.get("reason"):
        raise Refusal(400, "refused.reason")
    request = wallets.ResolveMovementRequest(
        request_id=form.get("request_id", ""),
        partner_id=form.get("partner_id", ""),
        transaction_id=form.get("transaction_id", ""),
        action=seamless.MovementAction.Value(action),
        reason=form["reason"][:MOST_REASON],
    )
    stub = visit.desk.fleet.stub("wallet", WalletOperatorServiceStub)
    answer = await visit.calls.ask(stub.ResolveMovement, request)
    telemetry.logger().info(CONSOLE_ORDER, operator=visit.who.name, order="resolve")
    at = answer.position
    position = f"{at.segment}/{at.sequence}/{at.index}"
    return visit.page("part_done.html", order="resolve", position=position, outcome="")


ROUTES = [
    Route("/money", page(show)),
    Route("/money/live", live(follow)),
    Route("/money/resolve", change(resolve, Role.SUPERVISOR), methods=["POST"]),
]
