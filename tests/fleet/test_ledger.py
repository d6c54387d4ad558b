"""The books of a real fleet: by calls while it runs, by commands beside it and afterwards."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import grpc
import pytest

from sabot.wallet.v1 import ledger_service_pb2 as ledgers
from sabot.wallet.v1 import ledger_service_pb2_grpc as ledgers_grpc
from services.cli.fleet import fleet
from services.kernel.call_again import CALL_AGAIN
from services.wallet.domain import postings as postings_module
from services.wallet.domain.postings import Kind
from tests.fleet.clients import Servers, reason_of
from tests.fleet.stores import copied, play
from tests.fleet.test_command import sabot, told
from tests.fleet.test_incident_commands import refused

ROUNDS = 3


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a fleet that stopped in order. Never changed: copy it first."""
    data = tmp_path_factory.mktemp("stopped") / "data"
    play(data, ROUNDS)
    return data


def today(zone: str = "UTC") -> str:
    return datetime.now(ZoneInfo(zone)).date().isoformat()


def period(stopped: Path, zone: str = "UTC") -> tuple[str, ...]:
    """A zone's days around the log's own, whatever midnight did meanwhile."""
    began = told("find", "--data", stopped, "--table", "t1")["events"][0]["time"]
    first = datetime.fromisoformat(began).astimezone(ZoneInfo(zone)).date().isoformat()
    return ("--from", first, "--to", today(zone))


def rows(*arguments: str | Path) -> list[dict[str, str]]:
    done = sabot(*arguments, "--csv")
    assert done.exit_code == 0, done.output
    return list(csv.DictReader(io.StringIO(done.stdout)))


def test_a_statement_adds_up_and_the_journal_tells_the_same(stopped: Path) -> None:
    whose = ("--partner", "acme", "--account", "ann")
    ask: tuple[str | Path, ...] = ("--data", stopped, *whose, *period(stopped))
    found = told("statement", *ask)
    opening, closing = found["opening"]["available"], found["closing"]["available"]
    assert opening == {"currency_code": "EUR"}
    moved = sum(one["amount"].get("minor_units", 0) for one in found["sums"])
    assert closing["minor_units"] == moved
    state = told("state", "wallet", "--data", stopped)["state"]["accounts"]["acme/ann"]
    assert closing["minor_units"] == state["available_minor"]
    journal = rows("journal", *ask)
    assert rows("statement", *ask) == journal
    cash = [row for row in journal if row["ledger_kind"] == "cash"]
    assert int(cash[-1]["balance_minor"]) == closing["minor_units"]
    assert cash[-1]["balance"] == f"{closing['minor_units'] / 100:.2f}"
    for row in journal:
        assert bool(row["round"]) == (len(row["rule_set_hash"]) == 64) == bool(row["bets"])
    shown = sabot("statement", *ask).stdout.splitlines()
    assert shown[0].startswith("acme/ann, from ")
    assert any(line.startswith("closing: available ") for line in shown)
    of_round = rows("journal", "--data", stopped, "--partner", "acme", "--round", "t1-2")
    assert {row["round"] for row in of_round} == {"t1-2"}
    assert {row["account"] for row in of_round} == {"ann", "ben"}


def test_a_trial_balance_is_zero_at_every_position(stopped: Path) -> None:
    found = told("trial-balance", "--data", stopped)
    assert [one.get("minor_units", 0) for one in found["sums"]] == [0]
    assert found["first_unbalanced"] is None
    last = told("log", "head", "--data", stopped)["sequence"]
    for at in (1, last // 3, last // 2):
        early = told("trial-balance", "--data", stopped, "--at", str(at))
        assert not any(one.get("minor_units") for one in early.get("sums", ()))
        state = told("state", "wallet", "--data", stopped, "--at", str(at))["state"]
        sums: dict[str, int] = state["ledgers"]
        for line in early.get("lines", ()):
            kind = line["kind"][12:].lower()
            if kind in ("house", "commission", "external"):
                key = f"{kind}/acme/EUR"
                assert sums.get(key, 0) == line["balance"].get("minor_units", 0)
    shown = sabot("trial-balance", "--data", stopped).stdout.splitlines()
    assert shown[-2] == "sum EUR: 0.00"
    assert shown[-1].endswith(" entries looked at, 0 do not sum to 0")
    refused("trial-balance", "--data", stopped, "--at", str(last + 100))
    refused("trial-balance", "--data", stopped, "--at", "x", code=2)


def test_a_planted_unbalanced_posting_is_named_by_the_trial_balance(
    stopped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    payout = postings_module._payout
    monkeypatch.setattr(
        postings_module,
        "_payout",
        lambda body: tuple(leg for leg in payout(body) if leg.kind is not Kind.HOUSE),
    )
    done = sabot("trial-balance", "--data", stopped)
    assert done.exit_code == 1
    first = told("find", "--data", stopped, "--round", "t1-1")["events"]
    position = next(one["position"] for one in first if one["event"] == "PayoutPosted")
    assert done.stderr.startswith(
        f"the first that does not sum to 0: {position} sabot.wallet.v1.PayoutPosted: reserved:acme:"
    )


def test_totals_and_transactions_are_exported_and_compared(stopped: Path, tmp_path: Path) -> None:
    whose = ("--partner", "acme", "--currency", "EUR")
    ask: tuple[str | Path, ...] = ("reconcile", "--data", stopped, *whose, *period(stopped))
    totals = {row["what"]: row for row in rows(*ask)}
    found = told(*ask)
    assert int(totals["stakes"]["bets"]) == found["stakes"]["bets"] == 2 * ROUNDS
    assert totals["open_reservations"]["amount"] == "0.00"
    copy = tmp_path / "partner.csv"
    exported = sabot(*ask, "--transactions")
    copy.write_text(exported.stdout, newline="")
    listed = told(*ask, "--transactions")["transactions"]
    assert len(listed) == found["digest"]["count"] == len(rows(*ask, "--transactions"))
    same = sabot(*ask, "--against", copy)
    assert same.exit_code == 0, same.output
    assert same.stdout.startswith("the books agree: ")
    victim = rows(*ask, "--transactions")[3]
    copy.write_text(
        exported.stdout.replace(
            f"{victim['transaction_id']},{victim['account_id']},EUR",
            f"{victim['transaction_id']},somebody,EUR",
        ),
        newline="",
    )
    done = sabot(*ask, "--against", copy)
    assert done.exit_code == 1
    assert done.stdout.splitlines()[0] == f"{victim['transaction_id']}:"
    assert "of somebody" in done.stdout
    assert "1 transactions differ" in done.stdout
    refused(*ask, "--against", tmp_path / "none", code=2)


def test_what_cannot_be_asked_is_said_in_one_line(stopped: Path) -> None:
    ask = ("statement", "--data", stopped, "--partner", "acme")
    days = ("--from", "2026-01-01")
    assert "no account nobody" in refused(*ask, "--account", "nobody", *days)
    assert "no time zone" in refused(*ask, "--account", "ann", *days, "--zone", "Mars/Base")
    assert "no date" in refused(*ask, "--account", "ann", "--from", "2026-02-30", code=2)
    refused(*ask, "--account", "ann", *days, "--csv", "--json", code=2)
    refused("journal", "--data", stopped, "--partner", "acme", "--to", "2026-01-01", code=2)


def test_the_running_fleet_tells_the_same_by_calls(stopped: Path, tmp_path: Path) -> None:
    data = copied(stopped, tmp_path / "data")
    zone = "Europe/Paris"
    days = period(stopped, zone)
    ask: tuple[str | Path, ...] = (
        *("--data", data, "--partner", "acme", "--account", "ann"),
        *(*days, "--zone", zone, "--json"),
    )

    async def main() -> None:
        async with fleet(data, port=0) as running:
            servers = Servers(running.address)
            async with grpc.aio.insecure_channel(running.address, CALL_AGAIN) as channel:
                ledger = ledgers_grpc.LedgerServiceStub(channel)
                tokens = running.tokens
                assert "partner:north" in tokens
                auditor = (("authorization", f"Bearer {tokens['operator:ada']}"),)
                north = (("authorization", f"Bearer {tokens['partner:north']}"),)
                asked = ledgers.LocalDays(first_date=days[1], last_date=days[3], time_zone=zone)
                request = ledgers.GetStatementRequest(
                    partner_id="acme", account_id="ann", days=asked, page_size=2
                )
                entries: list[ledgers.JournalEntry] = []
                while True:
                    page = await ledger.GetStatement(request, metadata=auditor)
                    entries += page.entries
                    if not page.next_page_token:
                        break
                    request.page_token = page.next_page_token
                done = await asyncio.to_thread(sabot, "statement", *ask)
                local = json.loads(done.stdout)
                assert [
                    f"{one.position.segment}/{one.position.sequence}/{one.position.index}"
                    for one in entries
                ] == [one["position"] for one in local["entries"]]
                assert (
                    page.closing.available.minor_units
                    == local["closing"]["available"]["minor_units"]
                )
                trial = await ledger.GetTrialBalance(
                    ledgers.GetTrialBalanceRequest(), metadata=auditor
                )
                assert [one.minor_units for one in trial.sums] == [0]
                mine = await ledger.ListJournal(ledgers.ListJournalRequest(), metadata=north)
                assert list(mine.entries) == []
                for call, metadata, code in (
                    (request, north, grpc.StatusCode.PERMISSION_DENIED),
                    (
                        ledgers.GetStatementRequest(account_id="ann", days=asked),
                        auditor,
                        grpc.StatusCode.INVALID_ARGUMENT,
                    ),
                    (
                        ledgers.GetStatementRequest(account_id="ann", days=asked),
                        north,
                        grpc.StatusCode.NOT_FOUND,
                    ),
                ):
                    with pytest.raises(grpc.aio.AioRpcError) as caught:
                        await ledger.GetStatement(call, metadata=metadata)
                    assert caught.value.code() is code, reason_of(caught.value)
                await _compared(ledger, auditor, asked)
            await servers.close()

    asyncio.run(main())


async def _compared(ledger: Any, auditor: Any, days: ledgers.LocalDays) -> None:
    """The digest of a reconciliation is that of GetDigest, and of its children."""
    totals = await ledger.GetReconciliation(
        ledgers.GetReconciliationRequest(partner_id="acme", currency_code="EUR", days=days),
        metadata=auditor,
    )
    request = ledgers.GetDigestRequest(
        partner_id="acme",
        currency_code="EUR",
        from_time=totals.from_time,
        to_time=totals.to_time,
    )
    root = await ledger.GetDigest(request, metadata=auditor)
    assert root.digest == totals.digest
    assert sum(one.count for one in root.children) == root.digest.count


def test_every_command_of_the_page_runs(stopped: Path, tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs/ledger.md").read_text()
    lines = [line.strip() for line in text.splitlines() if line.startswith("    sabot ")]
    assert len(lines) > 6
    first = period(stopped)[1]
    copy = tmp_path / "copy.csv"
    places = {
        "--data DIR": f"--data {stopped}", "--partner ID": "--partner acme",
        "--account ID": "--account ann", "--round ID": "--round t1-1",
        "--from DATE": f"--from {first}", "--to DATE": f"--to {today()}",
        "POSITION": "20", "FILE": str(copy),
    }  # fmt: skip
    export = next(line for line in lines if "--transactions" in line)
    asked = [export, *(line for line in lines if "HOST:PORT" not in line)]
    for line in asked:
        command = re.split(r"\s{3,}", line)[0]
        for place, value in places.items():
            command = command.replace(place, value)
        done = sabot(*command.split()[1:])
        assert done.exit_code == 0, (command, done.output)
        if line is export:
            copy.write_text(done.stdout, newline="")
