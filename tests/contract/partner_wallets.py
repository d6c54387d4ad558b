"""Partners' wallets in this process, on real sockets and files, and a cell that calls them."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc

from sabot.partnerwallet.v1 import conventions_pb2 as conventions
from services.kernel.call_tokens import load_or_create_call_keys, public_keys, signer_of
from services.partner_wallet_example.book import Book
from services.partner_wallet_example.guard import Guard
from services.partner_wallet_example.servicer import PartnerWallet

CELL = "main"
PARTNER = "north"
USUAL = conventions.WalletConventions(
    repeats=conventions.REPEAT_CONVENTION_FIRST_ANSWER,
    settled_rollbacks=conventions.SETTLED_ROLLBACK_CONVENTION_REFUSED,
    overdraws=conventions.OVERDRAW_CONVENTION_DECLINED,
)
CONTRARY = conventions.WalletConventions(
    repeats=conventions.REPEAT_CONVENTION_ALREADY_EXISTS,
    settled_rollbacks=conventions.SETTLED_ROLLBACK_CONVENTION_DONE,
    overdraws=conventions.OVERDRAW_CONVENTION_TAKEN,
)


class RunningWallet:
    """A wallet that can be restarted on its port and its books."""

    book_type: type[Book] = Book
    guard_type: type[Guard] = Guard
    servicer_type: type[PartnerWallet] = PartnerWallet

    def __init__(self, folder: Path, kinds: conventions.WalletConventions = USUAL) -> None:
        self.keys = folder / "call_keys.json"
        self.books = folder / "wallet.db"
        self._published = folder / "cell.jwks.json"
        self._published.write_text(json.dumps(public_keys(load_or_create_call_keys(self.keys))))
        self._kinds = kinds
        self._port = 0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    async def start(self) -> None:
        self.book = self.book_type(self.books, self._kinds)
        guard = self.guard_type(self._published, CELL, PARTNER)
        self._servicer = self.servicer_type(self.book, guard)
        self._server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        self._servicer.add_to(self._server)
        self._port = self._server.add_insecure_port(f"127.0.0.1:{self._port}")
        await self._server.start()

    async def stop(self) -> None:
        await self._server.stop(None)
        self._servicer.close()
        self.book.close()

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    def metadata(
        self, method: str, transaction_id: str, account_id: str
    ) -> tuple[tuple[str, str], ...]:
        """What a call of the cell carries."""
        signer = signer_of(load_or_create_call_keys(self.keys), CELL)
        token = signer.token(PARTNER, method, transaction_id, account_id, int(time.time()))
        return (("authorization", f"Bearer {token}"),)


@asynccontextmanager
async def running(wallet: RunningWallet) -> AsyncIterator[RunningWallet]:
    """A wallet while it runs."""
    await wallet.start()
    try:
        yield wallet
    finally:
        await wallet.stop()
