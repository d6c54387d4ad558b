"""Scenarios GRPC-01, NATS-01 and NATS-05 on a whole fleet. The others, and more of these, are shown
where they can be shown closer: in tests/contract and tests/unit.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message

from sabot.partner.v1 import partner_service_pb2 as partner
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.table.v1 import bet_pb2
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import operator_service_pb2 as operators
from sabot.wallet.v1 import wallet_service_pb2 as wallets
from services.cli.fleet import CELL, all_parts, embedded_log, prepare_tokens
from services.cli.uuid7 import uuid7
from services.events import event_types
from services.kernel import host
from services.kernel.build import BUILD
from services.kernel.embedded import EmbeddedServer
from services.kernel.entry import decode_entry
from services.kernel.jetstream import JetStreamLog
from services.kernel.nats_connection import NatsConnection
from services.kernel.nats_users import ADMIN, FLEET
from services.kernel.preflight import Preflight
from services.kernel.settings import ServiceSettings
from services.kernel.streams import stream_definition, stream_name
from services.kernel.tokens import Tokens
from tests.contract.proxy import Proxy
from tests.fleet.clients import (
    CALL_S,
    PATIENCE_S,
    UNKNOWN,
    Operator,
    Partner,
    RefusedError,
    Servers,
    money,
    reason_of,
    table_spec,
)
from tests.fleet.ledger import Ledger, read_events
from tests.fleet.running import Running, inside, kill, on_one_server

# ---- GRPC-01 -----------------------------------------------------------------------------------

WITHOUT_ID = {"ActivateBehaviour", "RetryInput"}
"""They say to the letter what shall be so: twice is once."""


def test_grpc_01_every_call_that_changes_something_has_a_request_id() -> None:
    for module, name in (
        (partner, "PartnerService"),
        (wallets, "WalletService"),
        (operators, "TableOperatorService"),
    ):
        for method in module.DESCRIPTOR.services_by_name[name].methods:
            if not method.name.startswith(("Get", "List", "Watch")):
                has_id = "request_id" in method.input_type.fields_by_name
                assert has_id or method.name in WITHOUT_ID, method.full_name


async def kill_once_logged(running: Running, kind: type[Message], following: asyncio.Event) -> None:
    """Kill the front door as soon as an input of this kind stands in the log."""
    name = str(kind.DESCRIPTOR.full_name)
    async with running.log() as log:
        last = (await log.info(wait_s=PATIENCE_S)).last_sequence
        following.set()
        async for batch in log.read(last):
            for message in batch:
                if any(event.type == name for event in decode_entry(message.payload).events):
                    kill(running.fleet.child("table").pid)
                    return


async def test_grpc_01_a_server_that_dies_after_doing_the_work_does_it_once(
    tmp_path: Path,
) -> None:
    async with on_one_server(tmp_path) as running:
        dealer, north = running.operator(), running.partner("north")
        await dealer.open_table(table_spec("t1"))
        await north.open_account("anna", 100_00)
        round_id = await dealer.open_round("t1")
        place = partner.PlaceBetsRequest(
            request_id=uuid7(),
            account_id="anna",
            table_id="t1",
            round_id=round_id,
            bets=[bet_pb2.BetRequest(bet="player", stake=money(40_00))],
        )
        close = operators.CloseBettingRequest(request_id=uuid7(), table_id="t1", round_id=round_id)

        async def put_bets() -> Any:
            return await north.bets.PlaceBets(place, metadata=north.metadata, timeout=CALL_S)

        async def close_betting() -> Any:
            return await dealer.tables.CloseBetting(close, metadata=dealer.metadata, timeout=CALL_S)

        cases: tuple[tuple[type[Message], Callable[[], Any], Any], ...] = (
            (table.PlaceBets, put_bets, north),
            (table.CloseBetting, close_betting, dealer),
        )
        for kind, call, caller in cases:
            following = asyncio.Event()
            killing = asyncio.create_task(kill_once_logged(running, kind, following))
            await following.wait()
            try:
                await call()
            except grpc.aio.AioRpcError as error:
                assert error.code() in UNKNOWN  # never "failed"  # noqa: PT017 - or the answer was quicker
            await killing
            answer, _ = await caller.known(call)  # the same request again, until it is known
            assert answer.replayed
        await north.round_in("t1", partner.ROUND_STATE_PAID)
        async with running.log() as log:
            events = await read_events(log)
        ledger = await running.proven(north=north)
        assert [stake for _, _, stake in ledger.stakes.values()] == [40_00]
        dealt = [
            card.index
            for event in events
            if isinstance(event.body, shoe.CardsDealt)
            for card in event.body.cards
        ]
        assert dealt == list(range(dealt[0], dealt[0] + len(dealt)))  # no card was passed over


# ---- NATS-01 -----------------------------------------------------------------------------------


@asynccontextmanager
async def fleet_behind_proxy(data: Path) -> AsyncIterator[tuple[Proxy, Partner, Operator]]:
    """A fleet whose way to the log's server can be disturbed."""
    async with embedded_log(data) as server:
        token_file, tokens = prepare_tokens(data)
        proxy = Proxy(server.client_url)
        await proxy.start()
        log = await log_of(server, proxy.url)
        settings = ServiceSettings(cell=CELL, data=data, port=0, token_file=token_file)

        async def preflight() -> Preflight:
            return Preflight((), ())

        running = await host.start(
            all_parts(settings),
            name="fleet",
            log=log,
            types=event_types(),
            settings=settings,
            tokens=Tokens(token_file),
            preflight=preflight,
            build=BUILD,
        )
        front = Servers(f"127.0.0.1:{running.port}")
        try:
            yield (
                proxy,
                Partner(front, tokens["partner:north"]),
                Operator(front, tokens["operator:sam"]),
            )
            direct = await log_of(server, server.client_url)
            assert Ledger(await read_events(direct)).at_rest() == []
            await direct.close()
        finally:
            await front.close()
            await running.stop(settings.drain_s)
            await log.close()
            await proxy.stop()


async def log_of(server: EmbeddedServer, url: str) -> JetStreamLog:
    user = server.users[FLEET]
    return await JetStreamLog.connect(
        [url],
        CELL,
        name="fleet",
        consumer_prefix=user.consumer_prefix,
        user=user.user,
        password=user.password,
        inbox_prefix=user.inbox_prefix,
    )


async def test_nats_01_a_bet_whose_acknowledgement_is_lost_counts_once(tmp_path: Path) -> None:
    async with fleet_behind_proxy(tmp_path / "data") as (proxy, north, dealer):
        await dealer.open_table(table_spec("t1"))
        await north.open_account("anna", 100_00)
        round_id = await dealer.open_round("t1")
        request = partner.PlaceBetsRequest(
            request_id="m1",
            account_id="anna",
            table_id="t1",
            round_id=round_id,
            bets=[bet_pb2.BetRequest(bet="player", stake=money(40_00))],
        )

        async def put() -> partner.PlaceBetsResponse:
            return await north.bets.PlaceBets(request, metadata=north.metadata, timeout=1.0)

        proxy.lose_answers()  # what is sent still arrives
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await put()
        assert caught.value.code() in UNKNOWN
        proxy.heal()
        placed, _ = await north.known(put)
        assert [bet.stake_minor for bet in placed.bets] == [40_00]
        again, _ = await north.known(put)
        assert again.replayed
        assert again.bets == placed.bets
        request.bets[0].stake.minor_units = 60_00  # the same id with another body
        with pytest.raises(RefusedError, match="REQUEST_ID_REUSED"):
            await north.known(put)
        assert await north.balance("anna", again.position) == (60_00, 40_00)
        await dealer.close_betting(round_id)
        await north.round_in("t1", partner.ROUND_STATE_PAID)


# ---- NATS-05 -----------------------------------------------------------------------------------


FULL = {"LOG_FULL", "BUSY"}
"""The log has no room for the request, or had none for the answers to those before it. Both are
RESOURCE_EXHAUSTED, and say that nothing was done."""


async def set_room(server: EmbeddedServer, max_bytes: int) -> None:
    """What an operator may do: give the log more room, or less."""
    user = server.users[ADMIN]
    connection = NatsConnection(
        [server.client_url],
        name="operator",
        user=user.user,
        password=user.password,
        inbox_prefix=user.inbox_prefix,
    )
    await connection.open(wait_s=PATIENCE_S)
    config = stream_definition(CELL, replicas=1, max_bytes=max_bytes)
    reply = await connection.request(
        f"$JS.API.STREAM.UPDATE.{stream_name(CELL)}", json.dumps(config).encode(), wait_s=PATIENCE_S
    )
    assert "error" not in json.loads(reply.data)
    await connection.close()


async def test_nats_05_a_full_log_refuses_bets_cleanly_and_goes_on_with_more_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alarms: list[str] = []
    monkeypatch.setattr(host.Alarms, "__call__", lambda _, kind, _facts: alarms.append(kind))
    async with inside(tmp_path / "data") as running:
        server = running.fleet.server
        dealer, north = running.operator(), running.partner("north")
        await dealer.open_table(table_spec("t1"))
        await north.open_account("anna", 1_000_00)
        round_id = await dealer.open_round("t1")
        used = (await running.log.info(wait_s=PATIENCE_S)).bytes_used
        await set_room(server, used + 30_000)

        outcomes: dict[str, str] = {}
        while FULL.isdisjoint(outcomes.values()):
            request = partner.PlaceBetsRequest(
                request_id=f"bet-{len(outcomes)}",
                account_id="anna",
                table_id="t1",
                round_id=round_id,
                bets=[bet_pb2.BetRequest(bet="player", stake=money(1_00))],
            )
            try:
                await north.bets.PlaceBets(request, metadata=north.metadata, timeout=CALL_S)
            except grpc.aio.AioRpcError as error:
                outcomes[request.request_id] = reason_of(error) or error.code().name
            else:
                outcomes[request.request_id] = "on"
            assert len(outcomes) < 300, Counter(outcomes.values())
        info = await running.log.info(wait_s=PATIENCE_S)
        assert (info.first_sequence, info.bytes_used <= info.bytes_max) == (1, True)
        assert "log_nearly_full" in alarms

        await set_room(server, -1)
        assert (await north.place("anna", round_id, ("player", 1_00))).bets
        await dealer.close_betting(round_id)
        await north.round_in("t1", partner.ROUND_STATE_PAID)
        ledger = await running.ledger()
        assert ledger.at_rest() == []
        for request_id, outcome in outcomes.items():
            in_log = ("north", round_id, request_id) in ledger.reserved_requests
            assert in_log or outcome != "on"
            assert not in_log or outcome not in FULL  # refused: debit 0.00
