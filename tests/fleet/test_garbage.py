"""Every verb of `sabot` that takes an id, a position, a time or a file, with what is none: one
line, the exit code that the help tells, and never a traceback."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from services.cli.main import app
from tests.fleet.stores import play

NOT_TEXT = "\udcff"
"""As Python has an argument that is no UTF-8."""
LONG = "9" * 5_000
"""More digits than Python makes a number of."""
POSITIONS = ("now", "-1", "1/2/3/4", "2/5/0", LONG, "٣", " ")
TIMES = ("tomorrow-", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00", "9999-12-31T23:59:59-23:59",
         "0001-01-01T00:00:00+23:59")  # fmt: skip
DATES = ("yesterday", "2026-13-01", "2026-01-01T00:00:00Z", NOT_TEXT)
FILES = ("none", "folder", "empty", "text", "binary", "json")
FOLDERS = ("none", "folder", "text", "odd", "list")
FAR = "127.0.0.1:1"
"""Where nobody listens."""

DATA = ("--data", "{data}")
NOTHING_TO_TAKE = {
    "bench", "demo", "keys", "nats config", "nats secrets", "nats watch",
    "projections migrate", "rng-report", "rules list", "simulate", "streams apply",
    "streams diff", "up",
}  # fmt: skip
"""Verbs that take nothing, numbers, names out of a list, and places to write to."""


def usage() -> Iterator[tuple[str, ...]]:
    """What is not understood: exit code 2."""
    for at in POSITIONS:
        yield ("state", "wallet", *DATA, f"--at={at}")
        yield ("trial-balance", *DATA, f"--at={at}")
        yield ("what-if", *DATA, "--round", "t1-1", f"--closing={at}")
        yield ("log", "accept", *DATA, "--reason", "x", f"--difference={at}")
        yield ("log", "head", *DATA, f"--at={at}")
        yield ("log", "accept", *DATA, "--reason", "x", "--", at)
    for at in ("1:zz", "1:" + "00" * 31, f"{LONG}:" + "00" * 32, NOT_TEXT):
        yield ("log", "accept", *DATA, "--reason", "x", at)
        yield ("verify-export", "{text}", "--head", at)
        yield ("verify-export", "{text}", "--key", at)
        yield ("capsule", "open", "{text}", "--key", at)
        yield ("restore", "{text}", "--data", "{none}", "--key", at)
    for what in ("list", "build", "verify"):
        yield ("snapshots", what, "money")
    yield ("drill", "nobody")
    yield ("drill", "service-paused", "--folder", "{folder}")
    yield ("capacity", "--folder", "{folder}")
    for number in ("nan", "inf", "0", "-1", "many"):
        yield ("capacity", "--room", number)
        yield ("capacity", "--bets-a-round", number)
        yield ("capacity", "--bets-a-day", number)
    for time in TIMES:
        yield ("state", "wallet", *DATA, f"--at={time}")
        yield ("find", *DATA, "--round", "t1-1", "--from", time)
        yield ("find", *DATA, "--round", "t1-1", "--to", time)
        yield ("capsule", "make", *DATA, "-o", "{none}", "--table", "t1", "--from", time,
               "--to", "2999-01-01T00:00:00Z")  # fmt: skip
        yield ("events", "list", *DATA, "--from", time)
    for date in DATES:
        yield ("statement", *DATA, "--partner", "acme", "--account", "ann", "--from", date)
        yield ("journal", *DATA, "--partner", "acme", "--from", "2026-01-01", "--to", date)
        yield ("reconcile", *DATA, "--partner", "acme", "--currency", "EUR", "--from", date)
    yield ("find", *DATA, "--trace", "xyz")
    yield ("state", "money", *DATA)
    for verb in (
        ("find", *DATA, "--round"),
        ("replay", *DATA, "--round"),
        ("switch", "on"),
        ("capsule", "make", *DATA, "-o", "{none}", "--round"),
        ("rules", "show"),
    ):
        yield (*verb, NOT_TEXT)
    yield ("projections", "rebuild", *DATA, "--service", "money")
    for file in FILES:
        if file != "text":  # Of a file that is read, each line that is wrong is told.
            yield ("conformance", f"{{{file}}}")
    yield ("certify-wallet", FAR, "--account", "one")
    for number in ("0", "two", str(1 << 32), LONG):
        yield ("behaviour", "activate", number, *DATA)
        paid = (str(1 << 63), number)[number != str(1 << 32)]
        yield ("receivables", "settle", "acme", "ann", paid, "EUR", "--reason", "x")
    yield ("receivables", "policy", "acme", "mercy", "--reason", "x")
    for file in ("folder", "empty", "text", "binary", "json"):
        yield ("partner-profile", "set", "acme", f"{{{file}}}", "--reason", "x",
               "--token-file", "{text}")  # fmt: skip
    yield ("switch", "off", "everything", "--reason", "x", *DATA)
    yield ("console-person", "x", "--role", "king", "--file", "{none}")
    yield ("what-if", *DATA, "--round", "t1-1", "--card", "x=AS")
    yield ("what-if", *DATA, "--round", "t1-1", "--card", f"{LONG}=AS")
    yield ("what-if", *DATA, "--round", "t1-1", "--dice", NOT_TEXT)


def refused() -> Iterator[tuple[str, ...]]:
    """What is understood, and is not there or not right: exit code 1."""
    for unknown in ("nobody", "a\nb"):
        for kind in ("round", "account", "bet", "request", "table"):
            yield ("find", *DATA, f"--{kind}", unknown)
        yield ("replay", *DATA, "--round", unknown)
        yield ("capsule", "make", *DATA, "-o", "{none}", "--round", unknown)
        yield ("capsule", "make", *DATA, "-o", "{none}", "--round", "t1-1", "--partner", unknown)
        yield ("what-if", *DATA, "--round", unknown, "--spin", "3")
        yield ("what-if", *DATA, "--round", "t1-1", "--rule-set", unknown)
        yield ("odds", "baccarat", "--shoe", unknown, *DATA)
        yield ("statement", *DATA, "--partner", "acme", "--account", unknown, "--from",
               "2026-01-01")  # fmt: skip
        yield ("correct", "preview", unknown, "--void", *DATA)
        yield ("correct", "approve", unknown, *DATA)
        yield ("correct", "list", "--round", unknown, *DATA)
        yield ("switch", "off", f"partner:{unknown}", "--reason", "x", *DATA)
    yield ("events", "list", *DATA)
    yield ("behaviour", "activate", "2", *DATA)
    yield ("partner-profile", "set", "acme", "{none}", "--reason", "x", "--token-file", "{text}")
    yield ("attest", "--ask", "a visit", "--address", FAR, *DATA)
    for at in ("999999", "1/5/77"):
        yield ("state", "wallet", *DATA, "--at", at)
    yield ("state", "wallet", *DATA, "--at", "2999-01-01T00:00:00Z")
    yield ("find", *DATA, "--from", "2999-01-01T00:00:00Z")
    yield ("log", "head", *DATA, "--at", "999999")
    yield ("log", "accept", *DATA, "--reason", "x", "999999:" + "00" * 32)
    yield ("log", "accept", *DATA, "--reason", "x", "--difference", "1/999999/0")
    for file in FILES:
        yield ("verify-export", f"{{{file}}}")
        yield ("capsule", "open", f"{{{file}}}")
        yield ("restore", f"{{{file}}}", "--data", "{new}")
        if file != "folder":
            for call in (
                ("switch", "list"),
                ("odds", "baccarat", "--shoe", "s"),
                ("movements", "list"),
                ("receivables", "list"),
                ("receivables", "settle", "acme", "ann", "5", "EUR", "--reason", "x"),
                ("receivables", "policy", "acme", "receivable", "--reason", "x"),
                ("partner-profile", "show", "acme"),
                ("behaviour", "activate", "2"),
                ("behaviour", "show"),
            ):
                yield (*call, "--address", FAR, "--token-file", f"{{{file}}}")
            yield (
                "streams",
                "plan",
                "--nats-url",
                f"nats://{FAR}",
                "--password-file",
                f"{{{file}}}",
            )
            yield ("export", *DATA, "-o", f"{{{file}}}/x")
            yield ("backup", *DATA, "-o", f"{{{file}}}/x")
            yield ("capsule", "make", *DATA, "--round", "t1-1", "-o", f"{{{file}}}/x")
        if file not in {"none", "folder"}:
            yield ("wallet-keys", "--keys", f"{{{file}}}")
            yield (
                "reconcile",
                *DATA,
                "--partner",
                "acme",
                "--currency",
                "EUR",
                "--from",
                "2026-01-01",
                "--against",
                f"{{{file}}}",
            )
        if file != "none":
            yield ("prove", *DATA, "--checkpoint", f"{{{file}}}")
            yield ("replay", *DATA, "--verify", "--checkpoint", f"{{{file}}}")
            yield ("backup", *DATA, "-o", f"{{{file}}}")
        if file not in {"none", "json"}:
            yield ("token", "x", "--role", "dealer", "--file", f"{{{file}}}")
    yield ("token", "x", "--role", "dealer", "--file", "{json}")
    yield (
        "correct",
        "propose",
        "nobody",
        "--reason",
        "system",
        "--reference",
        "x",
        "--void",
        "--dry-run",
        "d",
        *DATA,
    )
    yield ("events", "thresholds", "EURO", "--reason", "x", "--bet-win", "5", *DATA)
    yield (
        "movements",
        "resolve",
        "nobody",
        "retry",
        "--partner",
        "a",
        "--reason",
        "x",
        "--address",
        FAR,
        "--token-file",
        "{empty}",
    )
    for folder in FOLDERS:
        if folder == "text":
            continue  # A file is no folder: that is usage.
        for ask in FOLDER_VERBS:
            yield (*ask, "--data", f"{{{folder}}}")


FOLDER_VERBS = (
    ("find", "--round", "x"), ("what-if", "--round", "x", "--spin", "1"), ("prove",),
    ("journal", "--partner", "p"), ("trial-balance",), ("export", "-o", "{none}"),
    ("replay", "--verify"), ("replay", "--round", "x"), ("rounds",), ("state", "wallet"),
    ("projections", "rebuild"), ("capsule", "make", "--round", "x", "-o", "{none}"),
    ("log", "head"), ("log", "accept"), ("backup", "-o", "{none}"),
)  # fmt: skip


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the cases name in braces."""
    base = tmp_path_factory.mktemp("garbage")
    found = {name: base / name for name in ("none", "new", *FILES, *FOLDERS, "data")}
    for name in ("folder", "odd", "list"):
        found[name].mkdir()
    (found["odd"] / "cell.json").write_text("nonsense")
    (found["list"] / "cell.json").write_text("[]")
    found["empty"].write_bytes(b"")
    found["text"].write_text("Dear auditor,\nhere is what you asked for.\n")
    found["binary"].write_bytes(bytes(range(256)) * 9)
    found["json"].write_text('[1, {"cell": null}]')
    for name in FILES[2:]:
        found[name].chmod(0o600)  # such as secrets have
    play(found["data"], 1)
    return {name: str(path) for name, path in found.items()}


def wrong_with(case: tuple[str, ...], code: int, places: dict[str, str]) -> str:
    """What is not as it must be; empty where all is."""
    arguments = [one.format_map(places) if "{" in one else one for one in case]
    done = CliRunner().invoke(app, arguments)
    raised = done.exception
    if raised is not None and not isinstance(raised, SystemExit):
        return f"{type(raised).__name__}: {raised}"
    said = done.stderr.splitlines()
    if done.exit_code != code:
        return f"exit code {done.exit_code}: {said[-1:]}"
    if code == 1 and len(said) != 1:
        return f"{len(said)} lines: {said}"
    if code == 2 and sum(line.startswith(("Error: ", "a ", "sabot: ")) for line in said) != 1:
        return f"no one line: {said}"
    return ""


def some(cases: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The first case of each verb, and every twelfth of the others."""
    seen: Counter[tuple[str, ...]] = Counter()
    kept: list[tuple[str, ...]] = []
    for case in cases:
        if seen[case[:2]] % 12 == 0:
            kept.append(case)
        seen[case[:2]] += 1
    return kept


def checked(cases: list[tuple[str, ...]], code: int, places: dict[str, str]) -> dict[str, str]:
    told = {ascii(case)[:200]: wrong_with(case, code, places) for case in cases}
    return {case: what for case, what in told.items() if what}


def test_what_is_not_understood_is_usage(places: dict[str, str]) -> None:
    assert checked(some(usage()), 2, places) == {}


def test_what_is_not_there_or_not_right_is_refused(places: dict[str, str]) -> None:
    assert checked(some(refused()), 1, places) == {}
    assert not Path(places["none"]).exists()


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_every_piece_of_garbage_is_refused(places: dict[str, str]) -> None:
    assert checked(list(usage()), 2, places) == {}
    assert checked(list(refused()), 1, places) == {}
    assert not Path(places["none"]).exists()


def verbs(command: Any, *path: str) -> Iterator[str]:
    if not hasattr(command, "commands"):
        yield " ".join(path)
        return
    for name, one in command.commands.items():
        yield from verbs(one, *path, name)


def test_no_verb_is_left_out() -> None:
    tried = {" ".join(case[:2]) for case in (*usage(), *refused())}
    tried |= {case[0] for case in (*usage(), *refused())}
    left = {verb for verb in verbs(typer.main.get_command(app)) if verb not in tried}
    assert left == NOTHING_TO_TAKE
