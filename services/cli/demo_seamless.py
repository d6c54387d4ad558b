"""The demonstration's seamless partner: its wallet is a process of its own, beside the fleet.

It is the example that partners start from, with its books in the data folder. The cell's keys sign
the calls, and the wallet knows their public halves from a file, as a partner does.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path

import grpc

from sabot.partnerwallet.v1 import conventions_pb2 as conventions
from sabot.wallet.v1 import partner_profile_pb2 as profiles
from sabot.wallet.v1 import wallet_operator_service_pb2 as operators
from sabot.wallet.v1 import wallet_operator_service_pb2_grpc as operators_grpc
from services.cli.uuid7 import uuid7
from services.kernel.call_tokens import load_or_create_call_keys, public_keys
from services.kernel.nats_process import LAUNCHER

PARTNER = "west"
FOLDER = "partner-west"
"""In the data folder: the wallet's books, and the cell's public keys as the partner has them."""
DEFAULT_PORT = 7490
OPENED_MINOR = 100_000_000
"""What each account has at first: more than it loses in days."""
START_S = 30.0
"""For it to come up, on a machine that is busy with a fleet."""
STOP_S = 10.0
CALL_S = 5.0
AGAIN_S = 0.05
TRIES = 100


class WalletNotStarted(Exception):
    """The partner's wallet did not come up; its own lines say why."""


class WalletProcess:
    """The partner's wallet with these accounts. It may be killed, and started again."""

    def __init__(
        self, data: Path, cell: str, port: int, accounts: Sequence[str], currency: str
    ) -> None:
        self._folder = data / FOLDER
        self._folder.mkdir(parents=True, exist_ok=True)
        published = self._folder / "cell.jwks.json"
        ring = load_or_create_call_keys(data / "call_keys.json")
        published.write_text(json.dumps(public_keys(ring), indent=2) + "\n")
        self._program = [
            *("-m", "services.partner_wallet_example"),
            *("--listen", f"127.0.0.1:{port}", "--db", str(self._folder / "wallet.db")),
            *("--keys", str(published), "--cell", cell, "--partner", PARTNER),
            *(f"--open={account}:{currency}:{OPENED_MINOR}" for account in accounts),
        ]
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> str:
        """Run it; where it takes calls. Raises WalletNotStarted."""
        with (self._folder / "wallet.log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", "-c", LAUNCHER, str(os.getpid())),
                *(sys.executable, *self._program),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # Ctrl-C reaches this process, which ends it
            )
        return await _address(self._process, self._folder)

    async def kill(self) -> None:
        """End it as a crash would."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    async def stop(self) -> None:
        """End it in order, if it runs."""
        if self._process is not None:
            await _stop(self._process)


@asynccontextmanager
async def wallet(
    data: Path, cell: str, port: int, accounts: Sequence[str], currency: str
) -> AsyncIterator[str]:
    """The partner's wallet with these accounts, until the end: where it takes calls.

    Raises WalletNotStarted.
    """
    process = WalletProcess(data, cell, port, accounts, currency)
    try:
        yield await process.start()
    finally:
        await process.stop()


def profile(address: str) -> profiles.PartnerProfile:
    """How the partner's money is kept: what certification says of the example."""
    return profiles.PartnerProfile(
        mode=profiles.WALLET_MODE_SEAMLESS,
        address=address,
        plaintext=True,
        end_of_round=True,
        reversal_after_settlement=True,
        conventions=conventions.WalletConventions(
            repeats=conventions.REPEAT_CONVENTION_FIRST_ANSWER,
            settled_rollbacks=conventions.SETTLED_ROLLBACK_CONVENTION_REFUSED,
            overdraws=conventions.OVERDRAW_CONVENTION_DECLINED,
        ),
    )


async def set_profile(channel: grpc.aio.Channel, token: str, address: str) -> None:
    """Say where the partner's money is, unless it is said already. `token`: a supervisor's."""
    stub: operators_grpc.WalletOperatorServiceAsyncStub
    stub = operators_grpc.WalletOperatorServiceStub(channel)
    metadata = (("authorization", f"Bearer {token}"),)
    with suppress(grpc.aio.AioRpcError):
        known = await stub.GetPartnerProfile(
            operators.GetPartnerProfileRequest(partner_id=PARTNER),
            metadata=metadata,
            timeout=CALL_S,
        )
        if known.profile == profile(address):
            return
    await stub.SetPartnerProfile(
        operators.SetPartnerProfileRequest(
            request_id=uuid7(),
            partner_id=PARTNER,
            profile=profile(address),
            reason="the demonstration's own wallet, certified by its tests",
        ),
        metadata=metadata,
        timeout=CALL_S,
    )


async def all_confirmed(channel: grpc.aio.Channel, token: str) -> None:
    """Wait, but not for ever, until the wallet has confirmed all that it was asked for."""
    stub: operators_grpc.WalletOperatorServiceAsyncStub
    stub = operators_grpc.WalletOperatorServiceStub(channel)
    metadata = (("authorization", f"Bearer {token}"),)
    request = operators.ListUnresolvedRequest(partner_id=PARTNER, fresh=True)
    for _ in range(TRIES):
        with suppress(grpc.aio.AioRpcError):
            told = await stub.ListUnresolved(request, metadata=metadata, timeout=CALL_S)
            if not told.total:
                return
        await asyncio.sleep(AGAIN_S)


def books_line(data: Path) -> str:
    """What the wallet's books say for themselves."""
    with closing(sqlite3.connect(data / FOLDER / "wallet.db")) as books:
        taken, given, moved = books.execute(
            "SELECT coalesce(sum(moved_minor < 0), 0), coalesce(sum(moved_minor > 0), 0),"
            " coalesce(sum(moved_minor), 0) FROM movements"
        ).fetchone()
    return f"{PARTNER}'s own wallet: {taken} debits, {given} credits and rollbacks, sum {moved}"


async def _address(process: asyncio.subprocess.Process, folder: Path) -> str:
    line = b""
    if process.stdout is not None:
        with suppress(TimeoutError):
            line = await asyncio.wait_for(process.stdout.readline(), START_S)
    if not line.startswith(b"listens on "):
        raise WalletNotStarted(f"the partner's wallet did not start: see {folder / 'wallet.log'}")
    return line.decode().split()[-1]


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        await asyncio.wait_for(process.wait(), STOP_S)
    except TimeoutError:
        process.kill()
        await process.wait()
