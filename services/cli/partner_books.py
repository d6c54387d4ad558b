"""A partner's books, asked by calls of its PartnerReconciliationService."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc

from sabot.partnerwallet.v1 import partner_reconciliation_service_pb2 as partners
from sabot.partnerwallet.v1.partner_reconciliation_service_pb2_grpc import (
    PartnerReconciliationServiceStub,
)
from services.cli.certify_wallet import is_this_machine
from services.cli.reconcile import BadBooks, CalledSide, asked_of_partner
from services.kernel.call_tokens import signer_of
from services.kernel.key_file import load_keys
from services.wallet.books import moment
from services.wallet.periods import Period

CALL_S = 30.0
"""Deadline of a call: a wallet may read a whole period for it."""


@asynccontextmanager
async def partner_side(
    address: str,
    partner: str,
    currency: str,
    period: Period,
    cell: str,
    keys: Path,
    roots: Path | None,
) -> AsyncIterator[CalledSide]:
    """A partner's wallet as one side of a comparison. Raises BadBooks where it does not answer,
    and KeyFileUnusable: keys that were made only now the partner could not know."""
    signer = signer_of(load_keys(keys), cell)
    channel = _channel(address, roots)
    stub = PartnerReconciliationServiceStub(channel)

    async def ask(prefix: str) -> partners.GetDigestResponse:
        token = signer.token(partner, "GetDigest", "", "", int(time.time()))
        request = asked_of_partner(currency, moment(period.from_us), moment(period.to_us), prefix)
        metadata = (("authorization", f"Bearer {token}"),)
        try:
            return await stub.GetDigest(request, timeout=CALL_S, metadata=metadata)
        except grpc.aio.AioRpcError as error:
            told = f"{error.code().name}: {error.details()}"
            raise BadBooks(f"{address} does not tell its books: {told}") from error

    try:
        yield CalledSide(ask)
    finally:
        await channel.close()


def _channel(address: str, roots: Path | None) -> grpc.aio.Channel:
    """In plain text to this machine itself, where no authority is named."""
    if roots is None and is_this_machine(address.rpartition(":")[0].strip("[]")):
        return grpc.aio.insecure_channel(address)
    pem = roots.read_bytes() if roots is not None else None
    return grpc.aio.secure_channel(address, grpc.ssl_channel_credentials(pem))
