"""A seamless partner's wallet is killed, paused and started again under load, and so is ours: every
round ends settled or returned, none is held up, and both books agree."""

from __future__ import annotations

import asyncio
import re
import signal
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from typer.testing import CliRunner

from sabot.limits.v1 import events_pb2 as limits
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from sabot.wallet.v1 import seamless_events_pb2 as seamless
from sabot.wallet.v1 import wallet_operator_service_pb2 as operators
from sabot.wallet.v1 import wallet_operator_service_pb2_grpc as operators_grpc
from services.cli.main import app
from services.cli.uuid7 import uuid7
from services.kernel.call_again import CALL_AGAIN
from services.kernel.event import Event
from services.kernel.host import clock_us
from tests.fleet.clients import AGAIN_S, PATIENCE_S
from tests.fleet.ledger import read_events
from tests.fleet.load import ACCOUNTS, Crowd, crowd
from tests.fleet.partner_wallet_process import WalletProcess, opened
from tests.fleet.running import Running, kill, on_one_server
from tests.unit.seamless_facts import profile

PARTNER = "south"
OPENED = 50_000_000
HELD_S = 2.0
"""What a round may wait for a partner (docs/architecture.md)."""
SLACK_S = 20.0
"""For a busy machine, on top. A round that waited for a partner would wait for as long as that is
away: until two rounds are over, which none would be."""
Spans = Sequence[tuple[int, int]]
"""From and to, microseconds since 1970 UTC."""


class Orders:
    """An operator at the front door, which passes on what is the wallet's."""

    def __init__(self, running: Running) -> None:
        self._channel = grpc.aio.insecure_channel(running.fleet.address, CALL_AGAIN)
        self._stub: Any = operators_grpc.WalletOperatorServiceStub(self._channel)
        token = running.fleet.tokens["operator:sam"]
        self._call = {"timeout": PATIENCE_S, "metadata": (("authorization", f"Bearer {token}"),)}

    async def close(self) -> None:
        await self._channel.close()

    async def set_profile(self, address: str) -> None:
        request = operators.SetPartnerProfileRequest(
            request_id=uuid7(),
            partner_id=PARTNER,
            profile=profile(address=address, deadline_ms=500),
            reason="certified",
        )
        await self._stub.SetPartnerProfile(request, **self._call)

    async def unresolved(self, *, fresh: bool = True) -> operators.ListUnresolvedResponse:
        request = operators.ListUnresolvedRequest(partner_id=PARTNER, fresh=fresh)
        async with asyncio.timeout(PATIENCE_S):
            while True:
                try:
                    found: operators.ListUnresolvedResponse
                    found = await self._stub.ListUnresolved(request, **self._call)
                except grpc.aio.AioRpcError:
                    await asyncio.sleep(AGAIN_S)  # Our wallet is being started again.
                else:
                    return found

    async def until_resolved(self) -> None:
        """Wait until the partner has confirmed everything."""
        async with asyncio.timeout(PATIENCE_S):
            while (await self.unresolved()).total:  # noqa: ASYNC110 - another process's doing
                await asyncio.sleep(AGAIN_S)


@asynccontextmanager
async def playing_with(
    folder: Path, seed: int
) -> AsyncIterator[tuple[Running, WalletProcess, Orders, Crowd]]:
    accounts = opened([f"{PARTNER}-{one}:EUR:{OPENED}" for one in range(ACCOUNTS)])
    async with on_one_server(folder / "fleet") as running:
        there = folder / "partner"
        there.mkdir()
        keys = running.data / "call_keys.json"
        with WalletProcess(there, *accounts, partner=PARTNER, keys=keys) as partner:
            orders = Orders(running)
            await orders.set_profile(partner.address)
            try:
                async with crowd(running, seed, frozenset({PARTNER})) as playing:
                    await playing.partners[PARTNER].more_bets_on(3)
                    yield running, partner, orders, playing
            finally:
                partner.signal(signal.SIGCONT)
                await orders.close()


async def both_books_agree(
    running: Running, partner: WalletProcess, playing: Crowd, away: Spans = ()
) -> None:
    """The log against itself, what partners were told, and the partner's own database."""
    ledger = await running.proven(**playing.partners)
    assert not any(ledger.reserved.values())
    async with running.log() as log:
        events = await read_events(log)
    there = sqlite3.connect(partner.books)
    try:
        rows = there.execute("SELECT account_id, balance_minor - opened_minor FROM accounts")
        moved_there = dict(rows.fetchall())
    finally:
        there.close()
    assert moved_there == moved_here(events)
    held_up(events, away)
    today = datetime.now(UTC).date()
    args = [
        "reconcile", "--partner", PARTNER, "--currency", "EUR",
        "--from", str(today - timedelta(days=1)), "--to", str(today),
        "--data", str(running.data), "--against", partner.address,
        "--keys", str(partner.keys),
    ]  # fmt: skip
    told = await asyncio.to_thread(CliRunner().invoke, app, args)
    assert told.exit_code == 0, told.output
    victim = one_tampered_with(partner)
    told = await asyncio.to_thread(CliRunner().invoke, app, args)
    assert told.exit_code == 1, told.output
    lines = told.stdout.splitlines()
    assert lines[0] == f"{victim}:"
    assert lines[1].startswith("  ours  : debit of ")
    assert lines[2].startswith("  theirs: debit of ")
    assert any(line.startswith("1 transactions differ: ") for line in lines)


def one_tampered_with(partner: WalletProcess) -> str:
    """One debit of the partner's takes one minor unit more, by its database alone; its id."""
    with closing(sqlite3.connect(partner.books)) as sql, sql:
        rows = sql.execute(
            "SELECT transaction_id FROM movements WHERE kind = 'Debit' AND moved_minor <> 0 AND"
            " transaction_id NOT IN (SELECT debit_id FROM cancelled_debits) ORDER BY number"
        ).fetchall()
        victim = str(rows[len(rows) // 2][0])
        sql.execute(
            "UPDATE movements SET moved_minor = moved_minor - 1 WHERE transaction_id = ?",
            (victim,),
        )
    return victim


def moved_here(events: Sequence[Event]) -> dict[str, int]:
    """What each of the partner's accounts has more by our log."""
    moved: Counter[str] = Counter({f"{PARTNER}-{one}": 0 for one in range(ACCOUNTS)})
    for event in events:
        body = event.body
        if isinstance(body, wallet.StakeReserved) and body.transaction_ids:
            moved[body.account_id] -= sum(bet.stake_minor for bet in body.bets)
        elif isinstance(body, seamless.MovementConfirmed):
            moved[body.account_id] += body.amount_minor
    return dict(moved)


def held_up(events: Sequence[Event], away: Spans) -> None:
    """No round waited for the partner longer than it may, in log time. `away`: when our own wallet
    was, for which a round waits whatever partners do."""
    closed: dict[str, int] = {}
    accepted: dict[str, int] = {}

    def waited(round_id: str, since_us: int, until_us: int, most_s: float) -> None:
        ours = any(start <= until_us and since_us <= end for start, end in away)
        waited_s = (until_us - since_us) / 1e6
        assert ours or waited_s <= most_s, (round_id, waited_s)

    for event in events:
        round_id = str(getattr(event.body, "round_id", ""))
        if isinstance(event.body, limits.BookClosed):
            closed[round_id] = event.time_us
        elif isinstance(event.body, wallet.StakesSealed):
            waited(round_id, closed[round_id], event.time_us, HELD_S + SLACK_S)
        elif isinstance(event.body, table.ResultAccepted):
            accepted[round_id] = event.time_us
        elif isinstance(event.body, wallet.RoundPaid):
            waited(round_id, accepted[round_id], event.time_us, SLACK_S)


async def operators_see_it(running: Running, transaction_id: str) -> None:
    """`sabot movements`: what only was not answered can be called again, and not written off."""
    secret = running.folder / "sam.token"
    secret.write_text(running.fleet.tokens["operator:sam"])
    here = ["--address", running.fleet.address, "--partner", PARTNER, "--token-file", str(secret)]

    async def said(*words: str) -> tuple[int, str]:
        done = await asyncio.to_thread(CliRunner().invoke, app, ["movements", *words, *here])
        return done.exit_code, done.output

    code, text = await said("list")
    assert code == 1, "there is something to look at"
    assert transaction_id in text
    assert "safe         retry, mark-done" in text
    reason = ("--reason", "the wallet is being mended")
    code, text = await said("resolve", transaction_id, "write-off", *reason)
    assert code == 1
    assert "it may have carried it out" in text
    code, text = await said("resolve", transaction_id, "retry", *reason)
    assert code == 0, text
    assert re.search(rf"^retry {transaction_id}: in the log at 1/\d+/\d+$", text, re.MULTILINE)


async def test_a_partners_wallet_is_killed_and_paused_under_load(tmp_path: Path) -> None:
    async with playing_with(tmp_path, seed=11) as (running, partner, orders, playing):
        partner.signal(signal.SIGKILL)
        await playing.rounds_go_on(2)
        partner.start()
        await playing.partners[PARTNER].more_bets_on(2)
        partner.signal(signal.SIGSTOP)
        await playing.rounds_go_on(2)
        async with asyncio.timeout(PATIENCE_S):
            # What was rolled back is on the list, once the partner has had its time.
            while not (stuck := await orders.unresolved(fresh=False)).total:  # noqa: ASYNC110 - asked
                await asyncio.sleep(AGAIN_S)
        await operators_see_it(running, stuck.movements[0].transaction_id)
        partner.signal(signal.SIGCONT)
        await playing.partners[PARTNER].more_bets_on(2)
        await playing.rest()
        await orders.until_resolved()
        await both_books_agree(running, partner, playing)


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_both_wallets_are_killed_paused_and_started_again_ten_times(tmp_path: Path) -> None:
    async with playing_with(tmp_path, seed=12) as (running, partner, orders, playing):
        south = playing.partners[PARTNER]
        away: list[tuple[int, int]] = []
        for number in range(10):
            await asyncio.sleep(playing.random.random())
            match number % 3:
                case 0:
                    partner.signal(signal.SIGKILL)
                    await playing.rounds_go_on(2)
                    partner.start()
                case 1:
                    partner.signal(signal.SIGSTOP)
                    await playing.rounds_go_on(2)
                    partner.signal(signal.SIGCONT)
                case _:
                    since_us = clock_us()
                    kill(running.fleet.child("wallet").pid)
                    await playing.rounds_go_on(1)
                    await running.until_ready()
                    away.append((since_us, clock_us()))
            await south.more_bets_on(2)
        await playing.rest()
        await orders.until_resolved()
        await both_books_agree(running, partner, playing, away)
