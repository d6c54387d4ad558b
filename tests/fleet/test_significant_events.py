"""Significant events of a running fleet: what is told, listed, and by whom it may be asked."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from sabot.audit.v1 import audit_service_pb2 as audits
from sabot.audit.v1 import audit_service_pb2_grpc as audits_grpc
from sabot.audit.v1 import significant_events_pb2 as significant
from sabot.wallet.v1 import ledger_service_pb2 as ledgers
from sabot.wallet.v1 import ledger_service_pb2_grpc as ledgers_grpc
from sabot.wallet.v1 import wallet_service_pb2 as wallets
from sabot.wallet.v1 import wallet_service_pb2_grpc as wallets_grpc
from services.cli.fleet import fleet
from services.kernel import notices
from services.kernel.call_again import CALL_AGAIN
from tests.fleet.clients import AGAIN_S, PATIENCE_S
from tests.fleet.stores import copied, play
from tests.fleet.test_command import sabot


async def said(*arguments: str) -> str:
    """What `sabot events` says."""
    done = await asyncio.to_thread(sabot, "events", *arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


async def until_listed(
    kind: str, *options: str, enough: Callable[[list[dict[str, Any]]], bool] = bool
) -> list[dict[str, Any]]:
    """What is listed of a kind, once it is enough: something."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            told = await said("list", "--kind", kind, "--json", *options)
            found: list[dict[str, Any]] = json.loads(told)
            if enough(found):
                return found
            await asyncio.sleep(AGAIN_S)


def test_what_is_significant_is_listed_as_it_stands_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notices, "GATHER_US", 200_000)
    data = tmp_path / "data"
    play(data, 1)

    async def main() -> None:
        async with fleet(copied(data, tmp_path / "again"), port=0) as running:
            again, address = tmp_path / "again", running.address
            tokens = json.loads((again / "tokens.json").read_text())
            at = ("--address", address, "--data", str(again))
            (opened, *_) = await until_listed("parameters", *at)
            assert opened["event"] == "sabot.table.v1.TableOpened"
            thresholds = ("thresholds", "EUR", "--reason", "licence", "--round-win", "100")
            assert await said(*thresholds, *at) == "thresholds of all tables in EUR are set\n"
            found = await until_listed("parameters", *at, enough=lambda found: len(found) > 1)
            assert (found[-1]["event"], found[-1]["actor"]) == (
                "sabot.audit.v1.ThresholdsSet", "operator:sam",
            )  # fmt: skip
            async with grpc.aio.insecure_channel(address, CALL_AGAIN) as channel:
                await strangers_call(channel)
                await a_console_tells(channel, tokens)
                await an_operator_reads(channel, tokens["operator:vera"])
                refused = await until_listed(
                    "failed_sign_in", *at, enough=lambda found: calls(found).total() >= 9
                )
                assert calls(refused) == {
                    ("operator:sam", "console/sign-in"): 2,
                    ("", "sabot.wallet.v1.WalletService/GetBalance"): 7,
                }
                (read,) = await until_listed("read", *at)
                assert read["body"]["subject"] == "operator:vera"
                assert read["body"]["method"] == "sabot.wallet.v1.LedgerService/ListJournal"
                await pages_are_whole(channel, tokens["operator:ada"])
                await only_auditors_ask(channel, tokens)
            lines = await said("list", *at)
            assert "failed_sign_in  EventsNoted  by system:watchman" in lines

    asyncio.run(main())
    again = tmp_path / "again"
    assert sabot("replay", "--data", again, "--verify").exit_code == 0
    assert sabot("events", "list", "--kind", "odd", "--data", again).exit_code == 2


def calls(found: list[dict[str, Any]]) -> Counter[tuple[str, str]]:
    """How many calls are told of whom and what; on a busy machine not all of them together."""
    told: Counter[tuple[str, str]] = Counter()
    for one in found:
        body = one["body"]
        told[body.get("subject", ""), body["method"]] += body["count"]
    return told


async def strangers_call(channel: grpc.aio.Channel) -> None:
    stub: wallets_grpc.WalletServiceAsyncStub = wallets_grpc.WalletServiceStub(channel)
    for _ in range(7):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub.GetBalance(wallets.GetBalanceRequest(account_id="ann"), **by("nobody's"))
        assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def a_console_tells(channel: grpc.aio.Channel, tokens: dict[str, str]) -> None:
    """Of wrong passwords; and nobody but a console may, and it may nothing else."""
    stub: audits_grpc.AuditServiceAsyncStub = audits_grpc.AuditServiceStub(channel)
    seen = audits.NoteSeenRequest(
        kind=significant.NOTED_KIND_FAILED_SIGN_IN, operator_id="sam", page="sign-in", count=2
    )
    await stub.NoteSeen(seen, **by(tokens["operator:console"]))
    for actor, asked in (
        ("operator:ada", stub.NoteSeen(seen, **by(tokens["operator:ada"]))),
        (
            "operator:console",
            stub.GetSeal(audits.GetSealRequest(), **by(tokens["operator:console"])),
        ),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await asked
        assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED, actor


async def an_operator_reads(channel: grpc.aio.Channel, token: str) -> None:
    stub: ledgers_grpc.LedgerServiceAsyncStub = ledgers_grpc.LedgerServiceStub(channel)
    await stub.ListJournal(ledgers.ListJournalRequest(partner_id="north"), **by(token))


async def pages_are_whole(channel: grpc.aio.Channel, token: str) -> None:
    """Of one event each they are what one page holds; a token is good for its own question."""
    stub: audits_grpc.AuditServiceAsyncStub = audits_grpc.AuditServiceStub(channel)
    ask = audits.ListSignificantEventsRequest
    whole = await stub.ListSignificantEvents(ask(page_size=1000), **by(token))
    assert not whole.next_page_token
    count = len(whole.events)
    assert count > 3
    found: list[audits.SignificantEvent] = []
    page_token = ""
    while True:
        page = await stub.ListSignificantEvents(
            ask(page_size=1, page_token=page_token), **by(token)
        )
        found += page.events
        page_token = page.next_page_token or page_token
        if not page.next_page_token or len(found) >= count:
            break
    assert found[:count] == list(whole.events)
    middle = whole.events[count // 2].log_time
    early = await stub.ListSignificantEvents(ask(end_time=middle), **by(token))
    late = await stub.ListSignificantEvents(ask(start_time=middle, page_size=1000), **by(token))
    assert (list(early.events) + list(late.events))[:count] == list(whole.events)
    for request in (
        ask(page_token=page_token, significance=audits.SIGNIFICANCE_VOID),
        ask(page_token="odd"),  # noqa: S106 - no password
        ask(page_size=1001),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub.ListSignificantEvents(request, **by(token))
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def only_auditors_ask(channel: grpc.aio.Channel, tokens: dict[str, str]) -> None:
    stub: audits_grpc.AuditServiceAsyncStub = audits_grpc.AuditServiceStub(channel)
    for actor in ("operator:vera", "operator:sam", "partner:north"):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub.ListSignificantEvents(
                audits.ListSignificantEventsRequest(), **by(tokens[actor])
            )
        assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
    for actor in ("operator:ada", "partner:north"):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub.SetThresholds(
                audits.SetThresholdsRequest(
                    thresholds=significant.Thresholds(currency_code="EUR"), reason="no"
                ),
                **by(tokens[actor]),
            )
        assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED


def by(token: str) -> dict[str, Any]:
    return {"metadata": (("authorization", f"Bearer {token}"),), "timeout": PATIENCE_S}
