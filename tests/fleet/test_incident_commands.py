"""The verbs for incidents on the data folder of a fleet that stopped."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from services.cli.fleet import fleet
from services.cli.log_source import open_source
from services.cli.prove import prove
from services.kernel.accepted import read_accepted
from services.kernel.entry import position_of
from tests.fleet.stores import copied, flip, play, records
from tests.fleet.test_command import forge_an_answer, sabot, told

ROUNDS = 2
TRIES = 5
TIMEOUT_S = 240


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a fleet that stopped in order. Never changed: copy it first."""
    data = tmp_path_factory.mktemp("stopped") / "data"
    play(data, ROUNDS)
    return data


def refused(*arguments: str | Path, code: int = 1) -> str:
    """What a command says that refuses: one line of its own, or two of usage."""
    done = sabot(*arguments)
    assert done.exit_code == code, done.output
    assert done.stdout == ""
    if code == 1:
        assert done.stderr.startswith("sabot: ")
        assert len(done.stderr.splitlines()) == 1
    return done.stderr


def test_events_are_found(stopped: Path) -> None:
    events = told("find", "--data", stopped, "--round", "t1-1")["events"]
    assert events == sorted(events, key=lambda one: [int(n) for n in one["position"].split("/")])
    assert events[-1]["event"] == "RoundClosed"
    shown = sabot("find", "--data", stopped, "--round", "t1-1").stdout.splitlines()
    assert len(shown) == len(events) + 1
    first, last = events[0]["time"], events[-1]["time"]
    within = told("find", "--data", stopped, "--from", first, "--to", last)["events"]
    assert {one["position"] for one in events} <= {one["position"] for one in within}


def test_what_cannot_be_found_is_said_in_one_line(stopped: Path, tmp_path: Path) -> None:
    assert "concerns round t1-99" in refused("find", "--data", stopped, "--round", "t1-99")
    refused("find", "--data", tmp_path / "none", "--round", "t1-1")
    refused("find", "--data", stopped, code=2)
    refused("find", "--data", stopped, "--trace", "xyz", code=2)
    refused("find", "--data", stopped, "--from", "2026-01-01T00:00:00", code=2)
    early, late = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
    refused("find", "--data", stopped, "--from", late, "--to", early, code=2)


def test_a_damaged_and_a_cut_log_are_said_so(stopped: Path, tmp_path: Path) -> None:
    data = copied(stopped, tmp_path / "data")
    every = records(data)
    begin, _ = every[10].parts["payload"]
    flip(every[10].block, begin + 12, 3)
    assert "the log is damaged" in refused("find", "--data", data, "--round", "t1-1")
    data = copied(stopped, tmp_path / "cut")
    cut = records(data)[-2]
    cut.block.write_bytes(cut.block.read_bytes()[: cut.offset])
    assert "missing" in refused("find", "--data", data, "--round", "t1-1")


def test_a_capsule_is_made_and_opened_without_the_folder(stopped: Path, tmp_path: Path) -> None:
    file = tmp_path / "t1-2.capsule"
    done = sabot("capsule", "make", "--data", stopped, "--round", "t1-2", "-o", file)
    assert done.exit_code == 0, done.output
    assert "entries, under no seal yet, " in done.stdout
    opened = sabot("capsule", "open", file)
    assert opened.exit_code == 0, opened.output
    assert "round t1-2" in opened.stdout
    assert opened.stdout.splitlines()[-1].startswith("right: entries ")
    found = told("capsule", "open", file, "--cell", "main")
    assert (found["right"], found["differences"]) == (True, 0)
    now = told("state", "wallet", "--data", stopped, "--at", str(found["about"]["entries"][1]))
    assert found["digests"]["wallet"] == now["digest"]
    times = [
        event["time"] for event in told("find", "--data", stopped, "--round", "t1-2")["events"]
    ]
    other = tmp_path / "table.capsule"
    done = sabot(
        "capsule", "make", "--data", stopped, "--table", "t1", "--from", times[0], "--to",
        times[-1], "--partner", "acme", "-o", other,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "by their hashes" in done.stdout
    assert sabot("capsule", "open", other).exit_code == 0


def test_a_capsule_that_cannot_be_made_or_opened_is_said_in_one_line(
    stopped: Path, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    make = ("capsule", "make", "--data", stopped, "-o", file)
    assert "no round t1-99" in refused(*make, "--round", "t1-99")
    assert "no account" in refused(*make, "--round", "t1-1", "--partner", "nobody")
    refused(*make, code=2)
    refused(*make, "--round", "t1-1", "--table", "t1", code=2)
    refused(*make, "--table", "t1", code=2)
    assert not file.exists()
    refused("capsule", "open", file)
    file.write_bytes(b"something else")
    assert "no capsule" in refused("capsule", "open", file)
    assert sabot(*make, "--round", "t1-1").exit_code == 0
    assert "of cell main" in refused("capsule", "open", file, "--cell", "other")
    refused("capsule", "open", file, "--key", "zz", code=2)
    assert sabot("capsule", "open", file, "--key", "00" * 32).exit_code == 1
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2] ^= 1
    file.write_bytes(raw)
    assert "is damaged" in refused("capsule", "open", file)


def test_what_would_have_been_is_told(stopped: Path) -> None:
    ask = ("what-if", "--data", stopped, "--round", "t1-1")
    events = told("find", "--data", stopped, "--round", "t1-1")["events"]
    cards = [
        card for one in events if one["event"] == "CardsDealt" for card in one["body"]["cards"]
    ]
    first = [card.get("index", 0) for card in cards if card["hand"] == "HAND_PLAYER"][:2]
    first += [card.get("index", 0) for card in cards if card["hand"] == "HAND_BANKER"][:2]
    change: list[str] = []
    for index, card in zip(first, ("9S", "KS", "2S", "3S"), strict=True):
        change += ["--card", f"{index}={card}"]
    shown = sabot(*ask, *change)
    assert shown.exit_code == 0, shown.output
    assert ": player (paid)" in shown.stdout
    assert "sum EUR: 0" in shown.stdout.splitlines()
    found = told(*ask, *change)
    assert sum(one["difference_minor"] for one in found["differences"]) == 0
    same = told(*ask, "--rule-set", "baccarat")
    assert {one["difference_minor"] for one in same["differences"]} == {0}
    assert sabot("replay", "--data", stopped, "--verify").exit_code == 0


def test_what_cannot_be_asked_is_refused(stopped: Path) -> None:
    ask = ("what-if", "--data", stopped, "--round", "t1-1")
    assert "no wheel" in refused(*ask, "--spin", "7")
    assert "no rule set" in refused(*ask, "--rule-set", "poker")
    assert "tie pays" in refused(*ask, "--rule-set", "baccarat", "tie_pays=2000")
    assert "betting can close" in refused(*ask, "--closing", "999999")
    assert "no round" in refused("what-if", "--data", stopped, "--round", "x", "--dice", "1,2,3")
    for misuse in (
        (),
        ("--spin", "7", "--dice", "1,2,3"),
        ("--card", "AS"),
        ("--card", "1=XX"),
        ("--dice", "1,2"),
        ("--dice", "0,1,7"),
        ("--spin", "38"),
        ("--closing", "now"),
        ("--spin", "7", "tie_pays=9"),
    ):
        refused(*ask, *misuse, code=2)


def test_the_whole_history_is_proven(stopped: Path, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    ask = ("prove", "--data", stopped, "--checkpoint", checkpoint)
    done = sabot(*ask, "--processes", "2")
    assert done.exit_code == 0, done.output
    head = sabot("log", "head", "--data", stopped).stdout.strip()
    (line,) = done.stdout.splitlines()
    assert line.startswith(f"{ROUNDS} rounds, ")
    assert line.endswith(f" answers, 0 differences, head {head}")
    assert told(*ask, "--processes", "1")["line"] == line
    checkpoint.write_bytes(b"something else")
    assert "remove it" in refused(*ask)


def test_a_proof_that_is_interrupted_goes_on(stopped: Path, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"

    async def main() -> None:
        async with open_source(stopped) as log:
            under_way = asyncio.Event()
            task = asyncio.create_task(
                prove(stopped, log, 2, checkpoint, {}, lambda *_: under_way.set())
            )
            await under_way.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    assert checkpoint.exists()
    again = told("prove", "--data", stopped, "--checkpoint", checkpoint)
    assert not checkpoint.exists()
    whole = told("prove", "--data", stopped, "--checkpoint", checkpoint)
    assert again == {**whole, "pieces": again["pieces"]}


def test_a_wrong_answer_fails_the_proof(stopped: Path, tmp_path: Path) -> None:
    data = copied(stopped, tmp_path / "data")
    assert asyncio.run(forge_an_answer(data)) > 0
    done = sabot("prove", "--data", data, "--checkpoint", tmp_path / "checkpoint")
    assert done.exit_code == 1
    assert "wallet answered" in done.stdout
    assert " 1 differences, " in done.stdout.splitlines()[-1]


def test_a_running_fleet_is_asked_through_its_server(stopped: Path, tmp_path: Path) -> None:
    data, file = copied(stopped, tmp_path / "data"), tmp_path / "file"
    when = told("find", "--data", stopped, "--round", "t1-1")["events"][-1]["time"]

    async def main() -> None:
        async with fleet(data, port=0):
            for arguments in (
                ("state", "wallet", "--at", when),
                ("find", "--round", "t1-2"),
                ("capsule", "make", "--round", "t1-2", "-o", str(file)),
                ("what-if", "--round", "t1-2", "--rule-set", "baccarat"),
                ("prove", "--processes", "2", "--checkpoint", str(tmp_path / "checkpoint")),
            ):
                done = await asyncio.to_thread(sabot, *arguments, "--data", data)
                assert done.exit_code == 0, (arguments, done.output, done.exception)

    asyncio.run(main())
    assert sabot("capsule", "open", file).exit_code == 0


def test_a_running_fleet_s_log_says_what_is_accepted(stopped: Path, tmp_path: Path) -> None:
    """By a supervisor, of an answer that is there."""
    data = copied(stopped, tmp_path / "data")
    asked, answered = (
        next(one.sequence for one in records(data) if one.subject.endswith(end))
        for end in (".in", "wallet.out")
    )

    async def main() -> None:
        async with fleet(data, port=0) as running:
            accept = ("log", "accept", "--data", data, "--reason", "made good",
                      "--address", f"127.0.0.1:{running.host.port}")  # fmt: skip

            async def tried(at: str, *more: str) -> tuple[int, str]:
                done = await asyncio.to_thread(sabot, *accept, "--difference", at, *more)
                return done.exit_code, done.output

            code, said = await tried(f"1/{asked}/0")
            assert (code, said.splitlines()) == (
                1, [f"sabot: NOT_FOUND: The log has no answer at 1/{asked}/0."],
            )  # fmt: skip
            assert (await tried("1/999999/0"))[0] == 1
            assert "PERMISSION_DENIED" in (await tried(f"1/{answered}/0", "--operator", "ada"))[1]
            code, said = await tried(f"1/{answered}/0")
            assert code == 0, said
            assert said.startswith(f"accepted: the answer at 1/{answered}/0 stands, as the log ")

    asyncio.run(main())
    (event,) = [
        one
        for one in told("find", "--data", data, "--from", "2020-01-01T00:00:00Z")["events"]
        if one["event"] == "AcceptLog"
    ]
    assert (event["actor"], event["body"]["reason"]) == ("operator:sam", "made good")
    head = sabot("log", "head", "--data", data, "--at", str(answered)).stdout.strip()
    sequence, _, digits = head.partition(":")
    assert (event["body"]["sequence"], event["body"]["head"]) == (int(sequence), digits)
    assert event["body"]["difference"] == f"1/{answered}/0"
    # It follows, so nothing is counted apart.
    done = sabot("replay", "--data", data, "--verify")
    assert (done.exit_code, " 0 differences, accounts" in done.stdout) == (0, True)


HEARS_CTRL_C = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from services.cli.main import app
if __name__ == "__main__":
    app()
"""
"""The command; what a test run in the background starts would ignore Ctrl-C otherwise."""
UNTIL_CTRL_C = """
import asyncio, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from {module} import {holder}
done, whole = 0, {holder}.{name}
def slowly(*arguments):
    global done
    done += 1
    if done == 40:
        print("under way", flush=True)
        until = time.monotonic() + 100  # Ctrl-C ends it, or asks the task to end.
        while time.monotonic() < until and not ({task} and asyncio.current_task().cancelling()):
            time.sleep(0.01)
    return whole(*arguments)
{holder}.{name} = slowly
from services.cli import log_source
log_source.BATCH = 10
from services.cli.main import app
app()
"""
"""A command that is in the middle of its work until Ctrl-C comes."""


def interrupt(*arguments: str | Path, where: tuple[str, str, str], cwd: Path) -> None:
    """Let a real Ctrl-C come while a command is under way; it ends at once and says nothing."""
    module, holder, name = where
    task = holder == "LogReader"
    program = UNTIL_CTRL_C.format(module=module, holder=holder, name=name, task=task)
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        cwd=cwd, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={"PYTHONPATH": f"{root}:{root / 'protos' / 'gen'}", "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "under way\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out, err) == (130, "", ""), arguments


READS = ("services.kernel.reader", "LogReader", "read")


@pytest.mark.timeout(180)
def test_a_replay_goes_on_after_ctrl_c(stopped: Path, tmp_path: Path) -> None:
    whole = sabot("replay", "--data", stopped, "--verify")
    assert (whole.exit_code, whole.stderr) == (0, "")
    interrupt("replay", "--data", stopped, "--verify", where=READS, cwd=tmp_path)
    checkpoint = tmp_path / "replay.checkpoint"
    ask = ("replay", "--data", stopped, "--verify", "--checkpoint", checkpoint)
    left = checkpoint.read_bytes()
    checkpoint.write_bytes(left[:-3])
    assert "cannot be read, remove it" in refused(*ask)
    checkpoint.write_bytes(left)
    done = sabot(*ask)
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, whole.stdout.splitlines()[-1])
    head = re.compile(r"head \d+:[0-9a-f]{64}$", re.MULTILINE)
    assert head.findall(done.stdout) == head.findall(whole.stdout)
    assert done.stderr == f"going on from {checkpoint}, which reaches to entry 40\n"
    assert not checkpoint.exists()


@pytest.mark.timeout(180)
def test_ctrl_c_ends_what_only_reads_and_a_check_goes_on(stopped: Path, tmp_path: Path) -> None:
    ask = ("state", "wallet", "--data", stopped, "--at", "60")
    interrupt(*ask, where=READS, cwd=tmp_path)
    file = tmp_path / "log.export"
    assert sabot("export", "--data", stopped, "-o", file).exit_code == 0
    where = ("services.cli", "verify_export", "next_head")
    interrupt("verify-export", file, where=where, cwd=tmp_path)
    checkpoint = tmp_path / "verify-export.checkpoint"
    done = sabot("verify-export", file, "--checkpoint", checkpoint)
    believed = f"answers up to entry 39: as the call found them that left {checkpoint}\n"
    assert (done.exit_code, done.stdout) == (0, believed + sabot("verify-export", file).stdout)
    assert done.stderr == f"going on from {checkpoint}, which reaches to entry 39\n"
    assert list(tmp_path.iterdir()) == [file], "of a state near a snapshot nothing is kept"


def test_a_difference_is_accepted_by_its_place_and_with_a_reason(
    stopped: Path, tmp_path: Path
) -> None:
    data = copied(stopped, tmp_path / "data")
    sequence = asyncio.run(forge_an_answer(data))
    answer = f"1/{sequence}/0"
    asked = next(one.sequence for one in records(data) if one.subject.endswith(".in"))
    accept = ("log", "accept", "--data", data, "--operator", "dana", "--difference")
    for wrong in ("now", str(sequence), "2/1/0"):
        refused(*accept, wrong, "--reason", "x", code=2)
    refused(*accept, answer, code=2)
    refused("log", "accept", "1:00", *accept[2:], answer, "--reason", "x", code=2)
    for unknown in (f"1/{sequence}/1", f"1/{sequence + 1}/0", f"1/{asked}/0", "1/0/0"):
        assert f"no answer at {unknown}" in refused(*accept, unknown, "--reason", "x")
    assert read_accepted(data).to_log == []
    assert told(*accept, answer, "--reason", "a forged withdrawal, made good")["accepted"]
    accepted = read_accepted(data)
    ((body, actor),) = [(one.body, one.actor) for one in accepted.to_log]
    assert (body.sequence, body.reason, actor) == (
        sequence, "a forged withdrawal, made good", "operator:dana",
    )  # fmt: skip
    assert str(position_of(body.difference)) == answer
    head = sabot("log", "head", "--data", data, "--at", str(sequence)).stdout.strip()
    assert f"{body.sequence}:{body.head.hex()}" == head
    assert accepted.entries == {}, "its entry is understood"
    # Until the log says so, it is a difference.
    assert sabot("replay", "--data", data, "--verify").exit_code == 1


def test_ctrl_c_leaves_a_checkpoint(stopped: Path, tmp_path: Path) -> None:
    """As a terminal sends it: to every process of the command."""
    checkpoint = tmp_path / "checkpoint"
    for _ in range(TRIES):
        ended = interrupted("prove", "--data", stopped, "--checkpoint", checkpoint)
        if ended[0] != 0:
            break  # else this process was so late that the proof was over
    assert ended == (130, "", "")
    assert checkpoint.exists()
    done = sabot("prove", "--data", stopped, "--checkpoint", checkpoint)
    assert done.exit_code == 0
    assert " 0 differences, " in done.stdout
    assert not checkpoint.exists()


def interrupted(*words: str | Path) -> tuple[int, str, str]:
    """What a command with two workers ends with that Ctrl-C ends, and what it said."""
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "-c", HEARS_CTRL_C, *map(str, words), "--processes", "2"],
        cwd=root, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={"PYTHONPATH": f"{root}:{root / 'protos' / 'gen'}", "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while process.poll() is None and len(children.read_text().split()) < 3:
        time.sleep(0.01)  # Two workers, and what keeps count of what they share.
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=TIMEOUT_S)
    return process.returncode, out, err
