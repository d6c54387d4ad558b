"""The demonstration, as `make run` starts it: every game at once, on a folder that held only
baccarat, verified at its end."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from services.cli.demo_games import every_table
from services.kernel.telemetry_names import ALARM, LOG_READING
from services.kernel.tokens import Caller, Role, write_tokens
from tests.fleet.running import is_harmless

TRIES = 5
TIMEOUT_S = 240
"""Far above the twenty seconds that it takes: other tests run beside it."""


def demo(data: Path, *more: str) -> str:
    """What a demonstration prints; it ends well."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "services.cli.main",
            "demo",
            "--data",
            str(data),
            "--port",
            "0",
            *more,
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
        env=environment(),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert complaints(done.stderr) == []
    return done.stdout


def complaints(stderr: str) -> list[str]:
    """What was said besides, where a busy machine alone is no reason to."""
    found = []
    for line in stderr.splitlines():
        fact = json.loads(line) if line.startswith("{") else {}
        slow = fact.get("event") == LOG_READING or (
            fact.get("event") == ALARM
            and (is_harmless(fact["kind"], fact) or fact["kind"] == "movements_overdue")
        )
        if not slow:
            found.append(line)
    return found


def environment() -> dict[str, str]:
    """GRPC tells of every connection that ends, if it is let."""
    return {**os.environ, "GRPC_VERBOSITY": "NONE"}


@pytest.mark.timeout(3 * TIMEOUT_S)
def test_all_games_play_at_once_on_a_folder_that_held_only_baccarat(tmp_path: Path) -> None:
    first = demo(tmp_path / "data", "--rounds", "2")
    assert re.search(r"^demo-1-2 ", first, re.MULTILINE)
    assert re.search(r"^west's own wallet: 20 debits, ", first, re.MULTILINE)
    tables = [table.table_id for table in every_table()]
    rounds = 6 * len(tables)
    played: Counter[str] = Counter()
    for _ in range(TRIES):
        told = demo(tmp_path / "data", "--rounds", str(rounds), "--tables", "all")
        played.update(re.findall(r"^([a-z0-9-]+)-\d+ ", told, re.MULTILINE))
        if set(tables) <= played.keys():
            break  # else hands at seven seats take their time: they go on where they stopped
    assert set(tables) <= played.keys()
    verdict = told.splitlines()[-1]
    found = re.fullmatch(
        r"verified: (\d+) rounds, (\d+) bets, (\d+) answers re-decided, 0 differences, "
        r"accounts sum to 0",
        verdict,
    )
    assert found, verdict
    assert int(found.group(1)) >= rounds
    leave_the_verification_out(tmp_path / "data")


def leave_the_verification_out(data: Path) -> None:
    """Verified is the folder's whole history: what was played before makes it last, and Ctrl-C ends
    it; unless this process is so late that it was over."""
    for _ in range(TRIES):
        ended = interrupted(data)
        if ended[0] != 0:
            break
    assert ended == (1, "", [])


def interrupted(data: Path) -> tuple[int, str, list[str]]:
    """What a verification ends with that is left out, and what it says behind its beginning."""
    command = [sys.executable, "-m", "services.cli.main", "demo", "--data", str(data)]
    with subprocess.Popen(
        [*command, "--port", "0", "--rounds", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("stopped; every answer is decided again"):
                process.send_signal(signal.SIGINT)
                break
        rest, errors = process.communicate(timeout=TIMEOUT_S)
    return process.returncode, rest, complaints(errors)


def test_a_folder_whose_tokens_somebody_changed_is_left_alone(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "tokens.json").write_text(json.dumps({"partner:north": "n", "operator:sam": "s"}))
    write_tokens(
        data / "tokens.hashed.json",
        {"n": Caller(partner="north"), "x": Caller(operator="sam", roles=frozenset(Role))},
    )
    done = subprocess.run(
        [sys.executable, "-m", "services.cli.main", "demo", "--data", str(data), "--no-console",
         "--port", "0"],
        capture_output=True, text=True, check=False, timeout=TIMEOUT_S, env=environment(),
    )  # fmt: skip
    assert done.returncode == 1
    assert complaints(done.stderr) == [
        f"sabot: {data / 'tokens.json'} has no token of south, west: take another folder"
    ]
