"""Calls to partners' wallets over gRPC: a channel for each, every call signed, with a deadline."""

from __future__ import annotations

import time
from typing import NamedTuple, Protocol

import grpc

from sabot.partnerwallet.v1 import partner_wallet_service_pb2 as partner_wallet
from sabot.partnerwallet.v1 import partner_wallet_service_pb2_grpc as partner_wallet_grpc
from sabot.wallet.v1.partner_profile_pb2 import PartnerProfile
from services.kernel.call_tokens import CallSigner
from services.wallet.domain.seamless_state import Movement
from services.wallet.partner_replies import (
    METHODS,
    Verdict,
    request_of,
    verdict_of,
    verdict_of_status,
)

DEFAULT_DEADLINE_MS = 1_000
"""Of a call where the profile says nothing: half of what a round waits for its answer, so that one
call may fail and the next one still comes in time."""
MAX_ANSWER_BYTES = 64 * 1024
"""Of an answer: some hundred bytes are expected."""
OPTIONS = (
    ("grpc.max_receive_message_length", MAX_ANSWER_BYTES),
    # A wallet that is back is found soon: a round waits two seconds at most.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 250),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # A way that is cut without a word is noticed within some seconds.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 3_000),
)


class PartnerCaller(Protocol):
    """Carries out movements at partners' wallets, once each time it is asked."""

    async def carry_out(
        self, partner: str, profile: PartnerProfile, transaction_id: str, movement: Movement
    ) -> Verdict:
        """Call the wallet. Raises nothing that says what came back."""
        ...

    async def balance(
        self, partner: str, profile: PartnerProfile, account_id: str
    ) -> tuple[str, int] | None:
        """What an account has there: currency and minor units; None where nobody says."""
        ...

    async def close(self) -> None:
        """Let go of all connections."""
        ...


class _Door(NamedTuple):
    """The way to a partner's wallet."""

    made_for: bytes
    """The profile that it was made for."""
    channel: grpc.aio.Channel
    stub: partner_wallet_grpc.PartnerWalletServiceAsyncStub
    """Made once: making it costs an eighth of what a call does."""


class GrpcPartnerCaller:
    """See the module; a `PartnerCaller`."""

    def __init__(self, signer: CallSigner) -> None:
        self._signer = signer
        self._doors: dict[str, _Door] = {}
        """By partner."""

    async def carry_out(
        self, partner: str, profile: PartnerProfile, transaction_id: str, movement: Movement
    ) -> Verdict:
        """See `PartnerCaller`."""
        stub = await self._stub(partner, profile)
        method = METHODS[movement.kind]
        request = request_of(transaction_id, movement)
        metadata = self._metadata(partner, method, transaction_id, movement.account_id)
        call = getattr(stub, method)
        try:
            response = await call(request, timeout=deadline_s(profile), metadata=metadata)
        except grpc.aio.AioRpcError as error:
            return verdict_of_status(profile, movement.kind, error.code())
        return verdict_of(transaction_id, movement, response)

    async def balance(
        self, partner: str, profile: PartnerProfile, account_id: str
    ) -> tuple[str, int] | None:
        """See `PartnerCaller`."""
        stub = await self._stub(partner, profile)
        request = partner_wallet.GetBalanceRequest(account_id=account_id)
        metadata = self._metadata(partner, "GetBalance", "", account_id)
        try:
            told = await stub.GetBalance(request, timeout=deadline_s(profile), metadata=metadata)
        except grpc.aio.AioRpcError:
            return None
        if told.account_id != account_id:
            return None
        return told.balance.currency_code, told.balance.minor_units

    async def close(self) -> None:
        """See `PartnerCaller`."""
        doors, self._doors = self._doors, {}
        for door in doors.values():
            await door.channel.close()

    def _metadata(
        self, partner: str, method: str, transaction_id: str, account_id: str
    ) -> tuple[tuple[str, str], ...]:
        now_s = int(time.time())
        token = self._signer.token(partner, method, transaction_id, account_id, now_s)
        return (("authorization", f"Bearer {token}"),)

    async def _stub(
        self, partner: str, profile: PartnerProfile
    ) -> partner_wallet_grpc.PartnerWalletServiceAsyncStub:
        made_for = profile.SerializeToString(deterministic=True)
        known = self._doors.get(partner)
        if known is not None and known.made_for == made_for:
            return known.stub
        channel = _channel(profile)
        stub: partner_wallet_grpc.PartnerWalletServiceAsyncStub = (
            partner_wallet_grpc.PartnerWalletServiceStub(channel)
        )
        self._doors[partner] = _Door(made_for, channel, stub)
        if known is not None:
            await known.channel.close(grace=deadline_s(profile))
        return stub


def deadline_s(profile: PartnerProfile) -> float:
    """How long a call may take, seconds."""
    return (profile.deadline_ms or DEFAULT_DEADLINE_MS) / 1000


def _channel(profile: PartnerProfile) -> grpc.aio.Channel:
    if profile.plaintext:
        return grpc.aio.insecure_channel(profile.address, options=OPTIONS)
    roots = profile.root_certificates.encode() or None
    return grpc.aio.secure_channel(
        profile.address, grpc.ssl_channel_credentials(roots), options=OPTIONS
    )
