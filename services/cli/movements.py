"""Calls to what the wallet's process serves for operators, and an unconfirmed movement in words."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc

from sabot.wallet.v1 import receivable_service_pb2_grpc as receivables_grpc
from sabot.wallet.v1 import seamless_events_pb2 as seamless
from sabot.wallet.v1 import wallet_operator_service_pb2 as operators
from sabot.wallet.v1 import wallet_operator_service_pb2_grpc as operators_grpc
from services.games.currencies import EXPONENTS
from services.kernel.call_again import CALL_AGAIN


class CallFailed(Exception):
    """The service refused the call, or nobody answered; the message says why, in one line."""


WAIT_S = 10.0
"""Of a call: the longest that a person at a terminal waits without a word."""


@asynccontextmanager
async def service(
    address: str, token: str, roots: Path | None
) -> AsyncIterator[tuple[Any, dict[str, Any]]]:
    """The stub of WalletOperatorService, and what each call takes beside its request. Raises
    CallFailed."""
    async with calls(address, token, roots) as (channel, call):
        yield operator_stub(channel), call


@asynccontextmanager
async def calls(
    address: str, token: str, roots: Path | None
) -> AsyncIterator[tuple[grpc.aio.Channel, dict[str, Any]]]:
    """A channel, and what each call over it takes beside its request. Raises CallFailed."""
    async with _channel(address, roots) as channel:
        call = {"timeout": WAIT_S, "metadata": (("authorization", f"Bearer {token}"),)}
        try:
            yield channel, call
        except grpc.aio.AioRpcError as error:
            raise CallFailed(f"{address}: {error.code().name}: {error.details()}") from error


def operator_stub(channel: grpc.aio.Channel) -> Any:
    """Of WalletOperatorService."""
    return operators_grpc.WalletOperatorServiceStub(channel)


def receivable_stub(channel: grpc.aio.Channel) -> Any:
    """Of ReceivableService."""
    return receivables_grpc.ReceivableServiceStub(channel)


def _channel(address: str, roots: Path | None) -> grpc.aio.Channel:
    if roots is None:
        return grpc.aio.insecure_channel(address, CALL_AGAIN)
    return grpc.aio.secure_channel(
        address, grpc.ssl_channel_credentials(roots.read_bytes()), CALL_AGAIN
    )


def told(one: operators.UnresolvedMovement) -> str:
    """A movement in some lines."""
    kind = operators.MovementKind.Name(one.kind).removeprefix("MOVEMENT_KIND_").lower()
    outcome = seamless.ReplyOutcome.Name(one.last_outcome).removeprefix("REPLY_OUTCOME_").lower()
    if not one.last_outcome:
        outcome = "nothing came back yet"
    elif one.last_reason:
        outcome += f" {one.last_reason}"
    if one.HasField("last_reply_time"):
        outcome += f", {_time(one.last_reply_time.ToMicroseconds())}, {one.calls} calls"
    safe = ", ".join(
        seamless.MovementAction.Name(action)
        .removeprefix("MOVEMENT_ACTION_")
        .lower()
        .replace("_", "-")
        for action in one.safe_actions
    )
    retrying = "called again by itself" if one.retrying else "called no more"
    about = f"{one.partner_id}/{one.account_id}  {one.round_id}"
    return "\n".join(
        (
            f"{one.transaction_id}  {kind} {_amount(one)} {one.reason}  {about}",
            f"    ordered      {_time(one.order_time.ToMicroseconds())}; {retrying}",
            f"    last answer  {outcome}",
            f"    safe         {safe}",
            f"    advice       {one.advice}",
        )
    )


def _amount(one: operators.UnresolvedMovement) -> str:
    code, minor = one.amount.currency_code, one.amount.minor_units
    digits = EXPONENTS.get(code, 0)
    whole, part = divmod(minor, 10**digits)
    return f"{whole}.{part:0{digits}d} {code}" if digits else f"{whole} {code}"


def _time(time_us: int) -> str:
    return datetime.fromtimestamp(time_us // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
