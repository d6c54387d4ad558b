"""`sabot switch` and `sabot behaviour`: what operators tell a running fleet, by its calls."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc

from sabot.rules.v1 import rule_set_pb2 as rule_sets
from sabot.table.v1 import operator_service_pb2 as operators
from sabot.table.v1 import operator_service_pb2_grpc
from sabot.table.v1 import switch_pb2 as switches
from services.cli.odds_live import NotTold
from services.cli.uuid7 import uuid7
from services.kernel.call_again import CALL_AGAIN
from services.kernel.entry import position_of

CALL_S = 20.0
GAMES = {
    name.removeprefix("GAME_").lower(): rule_sets.Game.Value(name)
    for name in rule_sets.Game.keys()  # noqa: SIM118 - an enum wrapper, no dict
    if name != "GAME_UNSPECIFIED"
}


class BadTarget(Exception):
    """What shall be switched is not said in a way that is understood."""


def switch_of(target: str) -> switches.Switch:
    """`all`, `game:NAME`, `rules:HASH`, `partner:NAME` or `account:PARTNER/ACCOUNT`. Raises
    BadTarget."""
    kind, _, name = target.partition(":")
    match kind:
        case "all" if not name:
            return switches.Switch(scope=switches.SWITCH_SCOPE_ALL)
        case "game" if name in GAMES:
            return switches.Switch(scope=switches.SWITCH_SCOPE_GAME, game=GAMES[name])
        case "game":
            raise BadTarget(f"the games are {', '.join(GAMES)}")
        case "rules":
            try:
                raw = bytes.fromhex(name)
            except ValueError as error:
                raise BadTarget("a version of rules is named by its hash, 64 digits") from error
            return switches.Switch(scope=switches.SWITCH_SCOPE_RULE_SET, rule_set_hash=raw)
        case "partner" if name:
            return switches.Switch(scope=switches.SWITCH_SCOPE_PARTNER, partner_id=name)
        case "account" if "/" in name:
            partner, _, account = name.partition("/")
            return switches.Switch(
                scope=switches.SWITCH_SCOPE_ACCOUNT, partner_id=partner, account_id=account
            )
        case _:
            raise BadTarget(
                "say all, game:NAME, rules:HASH, partner:NAME or account:PARTNER/ACCOUNT"
            )


def target_of(switch: switches.Switch) -> str:
    """The same, back."""
    match switch.scope:
        case switches.SWITCH_SCOPE_GAME:
            return f"game:{rule_sets.Game.Name(switch.game).removeprefix('GAME_').lower()}"
        case switches.SWITCH_SCOPE_RULE_SET:
            return f"rules:{switch.rule_set_hash.hex()}"
        case switches.SWITCH_SCOPE_PARTNER:
            return f"partner:{switch.partner_id}"
        case switches.SWITCH_SCOPE_ACCOUNT:
            return f"account:{switch.partner_id}/{switch.account_id}"
        case _:
            return "all"


def line_of(one: operators.SwitchedOff) -> str:
    """What is off, in one line."""
    since = one.since.ToDatetime().strftime("%Y-%m-%d %H:%M:%S")
    return f"{target_of(one.switch)} is off since {since} UTC by {one.actor}: {one.reason}"


class Client:
    """The calls, as an operator. Each raises NotTold."""

    def __init__(self, channel: grpc.aio.Channel, address: str, token: str) -> None:
        self._address = address
        self._metadata = (("authorization", f"Bearer {token}"),)
        self._operators: Any = operator_service_pb2_grpc.TableOperatorServiceStub(channel)

    async def turn(self, switch: switches.Switch, reason: str, *, off: bool) -> None:
        """Switch something off, or on again."""
        asked = operators.SetSwitchRequest(
            request_id=uuid7(), switch=switch, off=off, reason=reason
        )
        await self._call(self._operators.SetSwitch, asked)

    async def off(self) -> list[operators.SwitchedOff]:
        """What is off, the oldest first."""
        told: operators.ListSwitchesResponse
        told = await self._call(self._operators.ListSwitches, operators.ListSwitchesRequest())
        return list(told.off)

    async def activate(self, behaviour: int) -> str:
        """Let every service decide by a behaviour; from which position on."""
        asked = operators.ActivateBehaviourRequest(behaviour=behaviour)
        told: operators.ActivateBehaviourResponse
        told = await self._call(self._operators.ActivateBehaviour, asked)
        return str(position_of(told.position))

    async def behaviours(self) -> tuple[int, int]:
        """The behaviour in force, and the newest that the fleet's release knows."""
        told: operators.GetBehaviourResponse
        told = await self._call(self._operators.GetBehaviour, operators.GetBehaviourRequest())
        return told.in_force, told.known

    async def _call(self, method: Any, request: Any) -> Any:
        try:
            return await method(request, metadata=self._metadata, timeout=CALL_S)
        except grpc.aio.AioRpcError as error:
            told = f"{self._address}: {error.code().name}: {error.details()}"
            raise NotTold(told) from error


@asynccontextmanager
async def client(address: str, token: str) -> AsyncIterator[Client]:
    """A client of a running fleet."""
    async with grpc.aio.insecure_channel(address, CALL_AGAIN) as channel:
        yield Client(channel, address, token)
