"""The command `sabot` on data folders: of a stopped fleet, of a running one, and of none."""

from __future__ import annotations

import asyncio
import errno
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from sabot.log.v1 import entry_pb2, events_pb2
from sabot.wallet.v1 import events_pb2 as wallets
from services.cli.fleet import CELL, connect, embedded_log, fleet
from services.cli.log_source import open_source, witnesses_of
from services.cli.main import app
from services.events import event_types
from services.kernel.accepted import read_accepted
from services.kernel.embedded import FolderLock
from services.kernel.reader import LogReader
from services.kernel.recovery import entries_until
from tests.fleet.clients import PATIENCE_S
from tests.fleet.stores import copied, play, records

ROUNDS = 3
LINE = f"verified: {ROUNDS} rounds, {2 * ROUNDS} bets, "


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a fleet that stopped in order. Never changed: copy it first."""
    data = tmp_path_factory.mktemp("stopped") / "data"
    play(data, ROUNDS)
    return data


def sabot(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(one) for one in arguments])


def told(*arguments: str | Path) -> Any:
    """What a command says with --json."""
    done = sabot(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_help_is_there_at_once_and_tells_the_exit_codes() -> None:
    """Nothing that takes seconds to import is imported for it."""
    program = (
        "import sys, services.cli.main; "
        "print([name for name in ('grpc', 'google.protobuf', 'sqlalchemy', 'nats', 'rich') "
        "if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert done.stdout == "[]\n", done.stderr
    for verb in ([], ["replay"], ["projections", "rebuild"], ["log", "accept"]):
        shown = sabot(*verb, "--help")
        assert shown.exit_code == 0
        assert "Exit codes: 0 " in shown.stdout


def test_replay_verifies_a_stopped_folder_and_a_copy(stopped: Path, tmp_path: Path) -> None:
    for data in (stopped, copied(stopped, tmp_path / "copy")):
        done = sabot("replay", "--data", data, "--verify")
        assert done.exit_code == 0, done.output
        rate, line = done.stdout.splitlines()
        assert " events/s, head " in rate
        assert line.startswith(LINE)
        assert line.endswith("answers re-decided, 0 differences, accounts sum to 0")
    found = told("replay", "--data", stopped, "--verify")
    assert found["right"] is True
    assert found["rounds"] == ROUNDS
    assert found["sums"] == {"EUR": 0}
    assert found["line"] == line


def test_a_copy_that_cannot_be_written_is_read(
    stopped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Evidence is kept read-only."""

    async def acquire(self: FolderLock, *, wait_s: float) -> None:
        raise OSError(errno.EROFS, "read-only file system")

    monkeypatch.setattr(FolderLock, "acquire", acquire)
    assert sabot("replay", "--data", stopped, "--verify").exit_code == 0


def test_a_running_fleet_is_read_through_its_server(stopped: Path, tmp_path: Path) -> None:
    data = copied(stopped, tmp_path / "data")

    async def main() -> None:
        async with fleet(data, port=0):
            for arguments in (
                ("replay", "--verify"),
                ("rounds",),
                ("state", "wallet"),
                ("replay", "--round", "t1-2"),
                ("projections", "rebuild"),
                ("log", "head"),
            ):
                done = await asyncio.to_thread(sabot, *arguments, "--data", data)
                assert done.exit_code == 0, done.output
                if arguments == ("replay", "--verify"):
                    assert done.stdout.splitlines()[-1].startswith(LINE)
            # Accepting is for a stopped fleet.
            refused = await asyncio.to_thread(sabot, "log", "accept", "--data", data)
            assert refused.exit_code == 1
            assert "is in use by process" in refused.stderr

    asyncio.run(main())


def test_a_folder_that_is_in_use_without_a_server_is_left_alone(
    stopped: Path, tmp_path: Path
) -> None:
    data = copied(stopped, tmp_path / "data")

    async def main() -> Result:
        lock = FolderLock(data)
        await lock.acquire(wait_s=0.0)
        try:
            return await asyncio.to_thread(sabot, "replay", "--data", data, "--verify")
        finally:
            lock.release()

    done = asyncio.run(main())
    assert done.exit_code == 1
    assert done.stderr.startswith("sabot: ")
    assert "is in use by process" in done.stderr


def test_rounds_are_listed(stopped: Path) -> None:
    listed = told("rounds", "--data", stopped)["rounds"]
    assert [one["round"] for one in listed] == ["t1-1", "t1-2", "t1-3"]
    assert {one["table"] for one in listed} == {"t1"}
    assert {one["state"] for one in listed} == {"paid"}
    opened = told("replay", "--data", stopped, "--round", "t1-2")
    position = next(one["position"] for one in opened if one["event"] == "RoundOpened")
    assert listed[1]["position"] == position
    shown = sabot("rounds", "--data", stopped).stdout.splitlines()
    assert shown[0].split() == ["round", "table", "position", "state"]
    assert shown[2].split() == ["t1-2", "t1", position, "paid"]


def test_a_round_is_played_through(stopped: Path) -> None:
    text = sabot("replay", "--data", stopped, "--round", "t1-1").stdout
    assert text.startswith("round t1-1\n")
    assert "cash:acme:ann:EUR" in text
    unknown = sabot("replay", "--data", stopped, "--round", "t1-99")
    assert unknown.exit_code == 1
    assert unknown.stderr == "sabot: there is no round t1-99 in this log\n"


def test_a_state_is_shown_as_it_was(stopped: Path) -> None:
    now = told("state", "wallet", "--data", stopped)
    assert now["state"]["accounts"].keys() == {"acme/ann", "acme/ben"}
    assert now["unanswered"] == 0
    events = told("replay", "--data", stopped, "--round", "t1-1")
    for one in events:
        seen = told("state", "wallet", "--data", stopped, "--at", one["position"])
        for leg in one["balances"]:
            kind, _, account_id, _ = [*leg["ledger_account"].split(":"), "", ""][:4]
            if kind == "reserved" and one["event"] == "StakeReserved":
                account = seen["state"]["accounts"][f"acme/{account_id}"]
                assert account["reserved_minor"] == leg["after_minor"]
    begun = told("state", "wallet", "--data", stopped, "--at", "0")
    assert begun["state"]["accounts"] == {}
    assert told("state", "wallet", "--data", stopped, "--at", now["position"]) == now
    for wrong, code in (("999999", 1), ("1/5/77", 1), ("now", 2), ("2/5/0", 2)):
        assert sabot("state", "wallet", "--data", stopped, "--at", wrong).exit_code == code
    assert sabot("state", "money", "--data", stopped).exit_code == 2


def test_a_log_is_exported_and_the_export_checked(stopped: Path, tmp_path: Path) -> None:
    out = tmp_path / "log.export"
    done = sabot("export", "--data", stopped, "-o", out)
    assert done.exit_code == 0, done.output
    head = sabot("log", "head", "--data", stopped).stdout.strip()
    assert done.stdout.strip().endswith(f"head {head}")
    checked = sabot("verify-export", out)
    assert checked.exit_code == 0, checked.output
    assert checked.stdout.splitlines()[-1] == "right"
    raw = bytearray(out.read_bytes())
    raw[-40] ^= 1
    out.write_bytes(raw)
    assert sabot("verify-export", out).exit_code == 1


def test_projections_are_rebuilt(stopped: Path, tmp_path: Path) -> None:
    data = copied(stopped, tmp_path / "data")
    shutil.rmtree(data / "projections", ignore_errors=True)
    last = records(data)[-1].sequence
    built = told("projections", "rebuild", "--data", data)["projections"]
    assert [one["projection"] for one in built] == ["table", "wallet", "settlement", "shoe"]
    assert {one["sequence"] for one in built} == {last}
    one = told("projections", "rebuild", "--data", data, "--service", "wallet")["projections"]
    assert [found["projection"] for found in one] == ["wallet"]
    assert sabot("projections", "rebuild", "--data", data, "--service", "rules").exit_code == 2


def test_what_cannot_be_is_said_in_one_line(tmp_path: Path) -> None:
    for arguments in (
        ("replay", "--verify"),
        ("rounds",),
        ("state", "table"),
        ("projections", "rebuild"),
        ("log", "head"),
        ("log", "accept"),
    ):
        done = sabot(*arguments, "--data", tmp_path / "none")
        assert done.exit_code == 1, arguments
        assert done.stderr == f"sabot: there is no log in {tmp_path / 'none'}\n"
        assert done.stdout == ""
    assert not (tmp_path / "none").exists()
    for misuse in (["replay"], ["replay", "--verify", "--round", "t1-1"], ["reply"]):
        assert sabot(*misuse).exit_code == 2


def test_a_shorter_log_is_accepted_only_by_name_and_reason(stopped: Path, tmp_path: Path) -> None:
    data = copied(stopped, tmp_path / "data")
    last = records(data)[-1]
    last.block.write_bytes(last.block.read_bytes()[: last.offset])
    shown = sabot("log", "accept", "--data", data)
    assert shown.exit_code == 0
    head = shown.stdout.splitlines()[0].removeprefix("the log ends at ")
    assert f"entries {last.sequence} to {last.sequence} are lost" in shown.stdout
    assert sabot("log", "head", "--data", data).stdout.strip() == head
    # Nothing was accepted by looking.
    assert sabot("replay", "--data", data, "--verify").exit_code == 1

    assert sabot("log", "accept", head, "--data", data).exit_code == 2
    wrong = f"{last.sequence - 1}:{'00' * 32}"
    assert sabot("log", "accept", wrong, "--data", data, "--reason", "x").exit_code == 1
    assert sabot("log", "accept", "zero", "--data", data, "--reason", "x").exit_code == 2
    done = sabot(
        "log", "accept", head, "--data", data, "--reason", "disk swapped", "--operator", "dana"
    )
    assert done.exit_code == 0, done.output
    assert {str(seen.sequence) for seen in witnesses_of(data).values()} == {head.split(":")[0]}
    assert sabot("replay", "--data", data, "--verify").exit_code == 0
    assert sabot("log", "accept", head, "--data", data, "--reason", "x").exit_code == 1

    sabot("projections", "rebuild", "--data", data)
    play_through_fleet(data)
    accepted = asyncio.run(find_accepted(data))
    assert [(one.sequence, one.reason) for one in accepted] == [(last.sequence - 1, "disk swapped")]
    assert accepted[0].witnessed_sequence == last.sequence


async def find_accepted(data: Path) -> list[events_pb2.AcceptLog]:
    """What the log tells of acceptances."""
    found = []
    entries_accepted = read_accepted(data).entries
    async with open_source(data, check=True) as log:
        end = (await log.info(wait_s=PATIENCE_S)).last_sequence
        reader = LogReader(log.cell, event_types(), accepted=entries_accepted)
        async for entries in entries_until(log, reader, end):
            for entry in entries:
                found += [
                    event.body
                    for event in entry.events
                    if isinstance(event.body, events_pb2.AcceptLog)
                ]
    return found


def test_an_entry_that_cannot_be_understood_passes_only_when_accepted(
    stopped: Path, tmp_path: Path
) -> None:
    """Another release, or a foreign hand, wrote something that this build does not know."""
    data = copied(stopped, tmp_path / "data")

    async def write_nonsense() -> int:
        async with embedded_log(data) as server:
            log = await connect(server)
            try:
                return await log.append(
                    f"sabot.{CELL}.wallet.in", b"\xff\xffnonsense", expected=None, wait_s=PATIENCE_S
                )
            finally:
                await log.close()

    sequence = asyncio.run(write_nonsense())
    refused = sabot("replay", "--data", data, "--verify")
    assert refused.exit_code == 1
    assert f"entry {sequence}: the entry cannot be decoded" in refused.stderr
    head = sabot("log", "head", "--data", data, "--at", str(sequence)).stdout.strip()
    assert sabot("log", "accept", "--entry", "--data", data, "--reason", "x").exit_code == 2
    other = f"{sequence}:{'00' * 32}"
    assert sabot("log", "accept", other, "--entry", "--data", data, "--reason", "x").exit_code == 1
    done = sabot("log", "accept", head, "--entry", "--data", data, "--reason", "looked at")
    assert done.exit_code == 0, done.output
    assert sabot("replay", "--data", data, "--verify").exit_code == 0
    play_through_fleet(data)
    accepted = asyncio.run(find_accepted(data))
    assert [(one.sequence, one.witnessed_sequence) for one in accepted] == [(sequence, 0)]
    assert sabot("replay", "--data", data, "--verify").exit_code == 0


def play_through_fleet(data: Path) -> None:
    """Let a fleet start on the folder and log what was accepted."""

    async def main() -> None:
        async with fleet(data, port=0):
            async with asyncio.timeout(PATIENCE_S):
                while read_accepted(data).to_log:  # noqa: ASYNC110 - a file tells no event
                    await asyncio.sleep(0.02)

    asyncio.run(main())


def test_a_difference_is_named(stopped: Path, tmp_path: Path) -> None:
    """An answer that does not follow, written by whoever had the right to write it."""
    data = copied(stopped, tmp_path / "data")
    assert asyncio.run(forge_an_answer(data)) > 0
    done = sabot("replay", "--data", data, "--verify")
    assert done.exit_code == 1
    difference, *_, line = done.stdout.splitlines()
    assert difference.startswith("difference at 1/")
    assert "wallet answered 1/" in difference
    assert "expected " in difference
    assert " 1 differences, " in line
    found = json.loads(sabot("replay", "--data", data, "--verify", "--json").stdout)
    assert found["right"] is False
    assert found["differences"][0]["recorded"]["body"]["amount_minor"] == 7


async def forge_an_answer(data: Path) -> int:
    """Append to a folder's log an answer of the wallet that nothing asks for."""
    every = records(data)
    fence = next(one.sequence for one in reversed(every) if one.subject.endswith("wallet.out"))
    async with open_source(data) as log:
        reader = LogReader(log.cell, event_types())
        async for entries in entries_until(log, reader, every[-1].sequence):
            heads = {entry.sequence: entry.head for entry in entries}
            withdrawal = entries[-1]
    body = wallets.FundsWithdrawn(account_id="ann", currency_code="EUR", amount_minor=7)
    entry = entry_pb2.Entry(writer="forger", head=heads[withdrawal.sequence])
    entry.events.add(
        type="sabot.wallet.v1.FundsWithdrawn",
        body=body.SerializeToString(),
        cause=entry_pb2.Position(segment=1, sequence=withdrawal.sequence),
        partner="acme",
        actor="partner:acme",
        time_us=withdrawal.events[-1].time_us,
    )
    async with embedded_log(data) as server:
        log_client = await connect(server)
        try:
            return await log_client.append(
                f"sabot.{CELL}.wallet.out",
                entry.SerializeToString(),
                expected=fence,
                wait_s=PATIENCE_S,
            )
        finally:
            await log_client.close()


def test_no_witness_is_taken_for_another(stopped: Path, tmp_path: Path) -> None:
    data = copied(stopped, tmp_path / "data")
    (witness,) = (data / "witness").iterdir()
    raw = bytearray(witness.read_bytes())
    raw[3] ^= 1
    witness.write_bytes(raw)
    done = sabot("replay", "--data", data, "--verify")
    assert done.exit_code == 1
    assert "witness" in done.stderr or "checksum" in done.stderr
