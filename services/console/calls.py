"""The console's calls to the fleet, each under the identity of whoever is signed in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf.message import DecodeError, Message
from google.rpc import error_details_pb2  # type: ignore[import-untyped] # ships no types
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped] # the same

from sabot.audit.v1.audit_service_pb2_grpc import AuditServiceStub
from sabot.limits.v1.limits_service_pb2_grpc import LimitsServiceStub
from sabot.partner.v1.partner_service_pb2_grpc import PartnerServiceStub
from sabot.settlement.v1.settlement_service_pb2_grpc import SettlementServiceStub
from sabot.shoe.v1.floor_service_pb2_grpc import FloorServiceStub
from sabot.shoe.v1.shoe_service_pb2_grpc import ShoeServiceStub
from sabot.table.v1.odds_service_pb2_grpc import OddsServiceStub
from sabot.table.v1.operator_service_pb2_grpc import TableOperatorServiceStub
from sabot.wallet.v1.wallet_service_pb2_grpc import WalletServiceStub

WAIT_S = 4.0
"""Deadline of a call: a page that takes longer is no help at a table."""
DETAILS = "grpc-status-details-bin"
"""Where a google.rpc.Status travels."""
KEEPALIVE_MS = 20_000
TLS = "tls:"
"""Before an address whose server has a certificate."""
UNKNOWN = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED})
"""Codes after which nobody knows what became of an order."""


class NotDone(Exception):
    """The fleet refused a call, or did not answer."""

    def __init__(self, code: grpc.StatusCode, reason: str, texts: Mapping[str, str]) -> None:
        super().__init__(f"{code.name} {reason}")
        self.code = code
        self.reason = reason
        """Of docs/errors.md; empty where the fleet did not answer."""
        self.texts = texts
        """By language."""

    @property
    def unknown(self) -> bool:
        """Whether an order may have taken effect all the same."""
        return self.code in UNKNOWN and self.reason in {"", "OUTCOME_UNKNOWN"}


@dataclass(slots=True)
class Fleet:
    """Channels to all services."""

    default: str
    addresses: Mapping[str, str] = field(default_factory=dict[str, str])
    ca: bytes | None = None
    tls_name: str = ""
    _channels: dict[str, grpc.aio.Channel] = field(default_factory=dict[str, grpc.aio.Channel])
    _stubs: dict[str, Any] = field(default_factory=dict[str, Any])

    async def close(self) -> None:
        """Let go of all connections."""
        for channel in self._channels.values():
            await channel.close()

    def stub(self, service: str, make: Callable[[grpc.aio.Channel], Any]) -> Any:
        """The stub of a service, made once."""
        name = f"{service} {getattr(make, '__name__', '')}"
        if name not in self._stubs:
            self._stubs[name] = make(self._channel(self.addresses.get(service, self.default)))
        return self._stubs[name]

    def _channel(self, address: str) -> grpc.aio.Channel:
        if address not in self._channels:
            options: list[tuple[str, str | int]] = [("grpc.keepalive_time_ms", KEEPALIVE_MS)]
            if not address.startswith(TLS):
                self._channels[address] = grpc.aio.insecure_channel(address, options)
            else:
                if self.tls_name:
                    options.append(("grpc.ssl_target_name_override", self.tls_name))
                self._channels[address] = grpc.aio.secure_channel(
                    address.removeprefix(TLS), grpc.ssl_channel_credentials(self.ca), options
                )
        return self._channels[address]


class Calls:
    """Calls as one person."""

    def __init__(self, fleet: Fleet, token: str, language: str) -> None:
        self._metadata = (("authorization", f"Bearer {token}"), ("accept-language", language))
        self.tables = fleet.stub("table", PartnerServiceStub)
        self.orders = fleet.stub("table", TableOperatorServiceStub)
        self.odds = fleet.stub("table", OddsServiceStub)
        self.limits = fleet.stub("limits", LimitsServiceStub)
        self.wallet = fleet.stub("wallet", WalletServiceStub)
        self.shoes = fleet.stub("shoe", ShoeServiceStub)
        self.floor = fleet.stub("shoe", FloorServiceStub)
        self.settlements = fleet.stub("settlement", SettlementServiceStub)
        self.audit = fleet.stub("audit", AuditServiceStub)

    async def ask(self, method: Any, request: Message, wait_s: float = WAIT_S) -> Any:
        """Make a call. Raises NotDone."""
        try:
            return await method(request, metadata=self._metadata, timeout=wait_s)
        except grpc.aio.AioRpcError as error:
            raise not_done(error) from None

    async def follow(self, method: Any, request: Message) -> AsyncIterator[Any]:
        """The messages of a stream. Raises NotDone."""
        call = method(request, metadata=self._metadata)
        try:
            async for message in call:
                yield message
        except grpc.aio.AioRpcError as error:
            raise not_done(error) from None
        finally:
            call.cancel()


def not_done(error: grpc.aio.AioRpcError) -> NotDone:
    """What a failed call says to a person."""
    reason, texts = "", {}
    for name, value in error.trailing_metadata() or ():
        if name != DETAILS or not isinstance(value, bytes):
            continue
        try:
            status = Status.FromString(value)
        except DecodeError:
            continue
        for detail in status.details:
            info, text = error_details_pb2.ErrorInfo(), error_details_pb2.LocalizedMessage()
            if detail.Unpack(info):
                reason = str(info.reason)
            elif detail.Unpack(text):
                texts[str(text.locale)] = str(text.message)
    return NotDone(error.code(), reason, texts)
