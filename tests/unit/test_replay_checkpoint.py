"""A replay that is interrupted goes on and comes to the same; accepted differences count apart."""

from __future__ import annotations

import asyncio
import dataclasses
import io
import json
import sys
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest

from sabot.log.v1 import events_pb2 as logs
from sabot.settlement.v1 import events_pb2 as settlements
from services.cli import progress as progress_module
from services.cli import verify_export
from services.cli.capsule_file import Part, read_parts, write_parts
from services.cli.cores import CORES
from services.cli.progress import progress
from services.cli.prove_checkpoint import (
    CheckpointUnusable,
    heads_until,
    identity_of,
    joined,
    read_checkpoint,
    write_checkpoint,
)
from services.cli.proving import History, Proven, history_of, pieces_of, prove_piece
from services.cli.replay import Verified, verify
from services.cli.replay_checkpoint import MAGIC, ReplayCheckpoint
from services.kernel.entry import first_head, position_proto
from services.kernel.event import Answers, Event, Position, Unfinished
from services.kernel.log import LogMessage
from services.kernel.memory_log import MemoryLog, MemoryStore
from services.simulator.virtual_time import run_virtual
from tests.fleet.small_cell import memory_cell
from tests.unit.test_prove import Slow, overpaying

NOTED = frozenset({logs.InputNoted})
WRONG = tuple(
    dataclasses.replace(core, decide=overpaying) if core.service == "settlement" else core
    for core in CORES
)


async def accept(cell: Any, at: Position, head: bytes) -> None:
    """What an operator accepted, as the next start logs it."""
    body = logs.AcceptLog(
        sequence=at.sequence, head=head, reason="known", difference=position_proto(at)
    )
    await cell.submit("audit", body, NOTED, "operator:dana")


def played(cores: Sequence[Any] = CORES, seed: int = 1, accepting: str = "") -> MemoryStore:
    """A log of three rounds. `accepting`: which differences of the first two are accepted before
    the third: "all", or "other", by another chain hash, or "first", only that of each entry."""

    async def main() -> MemoryStore:
        async with memory_cell(seed, cores=cores) as (cell, store):
            await cell.open_table()
            await cell.open_account("ann", 1_000_000)
            await cell.play(2, ["ann"])
            if accepting:
                await cell.until(lambda: cell.process.between_entries, "nothing is half-way")
                log = MemoryLog(store)
                for one in (await verify(log)).differences:
                    if accepting == "first" and one.position.index:
                        continue
                    (head,) = await heads_until(log, {one.position.sequence: b""}, 1, check=False)
                    await accept(cell, one.position, bytes(32) if accepting == "other" else head)
            await cell.play(1, ["ann"])
        return store

    return run_virtual(main())


@pytest.fixture(scope="module")
def right() -> MemoryStore:
    return played()


@pytest.fixture(scope="module")
def wrong() -> MemoryStore:
    return played(WRONG)


def interrupted(store: MemoryStore, path: Path, after: int) -> None:
    """Replay until so many more entries are read, then let Ctrl-C come."""

    async def main() -> None:
        under_way = asyncio.Event()
        begun: list[int] = []

        def told(done: int, _all: int, _events: int) -> None:
            begun.append(done)
            if len(begun) == after:
                under_way.set()

        task = asyncio.create_task(verify(Slow(store), told, kept=ReplayCheckpoint(path)))
        await under_way.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run_virtual(main())
    assert path.exists()


def gone_on(store: MemoryStore, path: Path) -> tuple[Verified, int]:
    """The rest, and where it went on."""
    begun: list[int] = []
    kept = ReplayCheckpoint(path, lambda _path, sequence: begun.append(sequence))
    found = run_virtual(verify(MemoryLog(store), kept=kept))
    assert not path.exists()
    return found, begun[0] if begun else 0


def facts(found: Verified) -> dict[str, Any]:
    told = {one.name: getattr(found, one.name) for one in dataclasses.fields(found)}
    told.pop("seconds")
    for name in ("differences", "let_stand"):
        told[name] = [(one.service, one.position, one.expected, one.recorded) for one in told[name]]
    return told


@pytest.mark.parametrize("after", [1, 9, 40, 70])
@pytest.mark.parametrize("which", ["right", "wrong"])
def test_a_replay_goes_on_from_where_it_was_interrupted(
    request: pytest.FixtureRequest, tmp_path: Path, which: str, after: int
) -> None:
    """Also between differences, of which some were found before."""
    store: MemoryStore = request.getfixturevalue(which)
    whole = run_virtual(verify(MemoryLog(store)))
    assert whole.right == (which == "right")
    path = tmp_path / "checkpoint"
    interrupted(store, path, after)
    found, begun = gone_on(store, path)
    assert begun == after
    assert facts(found) == facts(whole)
    assert found.line() == whole.line()


def test_it_may_be_interrupted_again_and_again(wrong: MemoryStore, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    for _ in range(4):
        interrupted(wrong, path, 11)
    found, begun = gone_on(wrong, path)
    assert begun == 44
    assert facts(found) == facts(run_virtual(verify(MemoryLog(wrong))))


def test_it_is_kept_now_and_then_for_who_is_killed(right: MemoryStore, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    kept: list[bytes] = []

    def told(_done: int, _all: int, _events: int) -> None:
        kept.append(path.read_bytes())

    run_virtual(verify(Slow(right), told, kept=ReplayCheckpoint(path, every_s=0.0)))
    assert not path.exists(), "all is done"
    path.write_bytes(kept[29])
    found, begun = gone_on(right, path)
    assert begun == 30
    assert facts(found) == facts(run_virtual(verify(MemoryLog(right))))


def changed(path: Path, **about: Any) -> None:
    with path.open("rb") as file:
        parts = list(read_parts(file, MAGIC))
    first = json.loads(parts[0].body) | about
    write_parts(path, [Part("about", json.dumps(first).encode()), *parts[1:]], MAGIC)


def test_a_damaged_or_foreign_checkpoint_is_told_and_not_used(
    right: MemoryStore, tmp_path: Path
) -> None:
    path = tmp_path / "checkpoint"
    interrupted(right, path, 30)
    whole = path.read_bytes()

    def refused(words: str, store: MemoryStore = right) -> None:
        with pytest.raises(CheckpointUnusable, match=words):
            run_virtual(verify(MemoryLog(store), kept=ReplayCheckpoint(path)))
        assert path.exists(), "it is left for its owner"
        path.write_bytes(whole)

    for spot in range(7, len(whole), 997):
        damaged = bytearray(whole)
        damaged[spot] ^= 1
        path.write_bytes(damaged)
        refused("cannot be read, remove it")
    for cut in (0, 10, len(whole) - 1):
        path.write_bytes(whole[:cut])
        refused("cannot be read, remove it")
    changed(path, build="sabot-99")
    refused("was left by sabot-99: remove it")
    changed(path, code=bytes(32).hex())
    refused("was left by other code: remove it to begin anew")
    changed(path, sequence=10**6)
    refused("is of a longer log")
    changed(path, sequence=29)
    refused("another place")
    changed(path, compared={})
    refused("services are missing")
    odds: tuple[dict[str, Any], ...] = (
        {"lost": 7}, {"recalled": {}}, {"differing": [["x"]]}, {"counts": {}},
    )  # fmt: skip
    for odd in odds:
        changed(path, **odd)
        refused("cannot be read, remove it")
    # The same beginning, another log behind it; and another log altogether.
    refused("is of another log|does not fit", played(seed=2))
    fork = played()
    one = fork._entries[20]
    assert one is not None
    fork._entries[20] = one._replace(payload=one.payload + b"\x80")
    refused("does not fit: the log has another entry 30, or before it; remove it", fork)
    assert gone_on(right, path)[1] == 30


# ---- accepted on purpose -----------------------------------------------------------------------


def proven(store: MemoryStore, folder: Path, interrupting: bool) -> History:
    path = folder / "checkpoint"

    async def main() -> History:
        log = Slow(store)
        last, identity = (await log.info(wait_s=1.0)).last_sequence, await identity_of(log)
        pieces, done = await pieces_of(log, last, folder, 4), dict[int, Proven]()
        write_checkpoint(path, identity, pieces, done)
        while True:
            kept = read_checkpoint(path, identity)
            assert kept is not None
            if not kept.pieces:
                return history_of(list(kept.proven.values()))
            read = 0

            def stop() -> bool:
                nonlocal read
                read += 1
                return interrupting and read == 25

            one = await prove_piece(log, kept.pieces[0], stop=stop)
            kept.proven[one.number] = joined(kept.proven.get(one.number), one)
            write_checkpoint(path, identity, kept.pieces, kept.proven)

    return run_virtual(main())


@pytest.mark.parametrize("accepting", ["all", "other"])
def test_what_was_accepted_on_purpose_counts_apart(tmp_path: Path, accepting: str) -> None:
    """Where the log says so of the very answer; what comes later is a difference again."""
    store = played(WRONG, seed=3, accepting=accepting)
    whole = run_virtual(verify(MemoryLog(store)))
    told = logs.AcceptLog.DESCRIPTOR.full_name.encode()
    accepted = sum(told in one.payload for one in store.entries())
    assert accepted >= 1
    apart = accepted if accepting == "all" else 0
    assert len(whole.let_stand) == apart
    assert f" differences{f', {apart} accepted' if apart else ''}, accounts" in whole.line()
    later = len(whole.differences)
    assert whole.right == (later == 0)
    interrupted(store, tmp_path / "replay", 50)
    found, _ = gone_on(store, tmp_path / "replay")
    assert facts(found) == facts(whole)
    for interrupting in (False, True):
        history = proven(store, tmp_path, interrupting)
        assert (len(history.differences), len(history.let_stand)) == (later, apart)
        assert history.right == whole.right
        assert f" {later} differences{f', {apart} accepted' if apart else ''}, head" in (
            history.line()
        )


def test_what_was_accepted_hides_nothing_else_of_its_entry(tmp_path: Path) -> None:
    """Every round's payout and what ends its settlement are wrong, in one entry."""

    def wrong_twice(state: Any, event: Event) -> Answers:
        decided = overpaying(state, event)
        for body in decided.answers if isinstance(decided, Unfinished) else decided:
            if isinstance(body, settlements.RoundSettled):
                body.rule_set_hash = bytes(32)
        return decided

    cores = [
        dataclasses.replace(core, decide=wrong_twice) if core.service == "settlement" else core
        for core in CORES
    ]
    whole = run_virtual(verify(MemoryLog(played(cores, seed=3))))
    places = {one.position for one in whole.differences}
    both = {at for at in places if at.index and at._replace(index=0) in places}
    assert both
    store = played(cores, seed=3, accepting="first")
    found = run_virtual(verify(MemoryLog(store)))
    assert found.let_stand
    assert {at.index for at in (one.position for one in found.let_stand)} == {0}
    assert both <= {one.position for one in found.differences}
    history = proven(store, tmp_path, interrupting=True)
    assert (len(history.differences), len(history.let_stand)) == (
        len(found.differences),
        len(found.let_stand),
    )
    assert not found.lost
    assert found.answers == whole.answers + 1, "that the acceptance was noted"


def test_who_could_not_be_followed_is_not_right_even_where_all_was_accepted() -> None:
    whole = Verified(lost={"wallet": Position(1, 2, 3)})
    assert not whole.right
    assert not History(lost=["wallet"]).right


# ---- how far it is -----------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_is_told_rate_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(progress_module, "SHOWN_AFTER_S", 0.0)
    monkeypatch.setattr(progress_module, "EVERY_S", 0.0)
    with progress("deciding again") as one:
        for done in range(1, 9):
            one(10 * done, 100, 1_000 * done)
    told = shown.getvalue()
    assert "deciding again" in told
    assert " events/s" in told
    assert "left" in told
    monkeypatch.setattr(verify_export, "SHOWN_AFTER_S", 0.0)
    monkeypatch.setattr(verify_export, "SHOWN_EVERY_S", 0.0)
    line = verify_export._Shown(io.BytesIO(bytes(1_000)))
    line(50, 500)
    line.close()
    assert " 50%  50 entries, " in shown.getvalue()
    assert " a second, " in shown.getvalue()
    assert "s left" in shown.getvalue()


class Ending(MemoryLog):
    """A log that ends before it says that it does."""

    async def read(self, after: int) -> AsyncGenerator[Sequence[LogMessage], None]:
        del after
        batches: list[Sequence[LogMessage]] = []
        for batch in batches:
            yield batch


def test_a_log_is_held_against_what_is_known_of_it(right: MemoryStore) -> None:
    log = MemoryLog(right)

    async def heads(*places: int, log: MemoryLog = log) -> list[bytes]:
        return list(await heads_until(log, dict.fromkeys(places, b""), 10, check=False))

    many = run_virtual(heads(40))
    assert len(many) == 10
    assert run_virtual(heads(39))[1:] == many[:-1]
    assert run_virtual(heads()) == [first_head(log.cell)]
    assert run_virtual(heads_until(log, {40: many[-1], 35: many[-6]}))[-1] == many[-1]
    with pytest.raises(CheckpointUnusable, match="another entry 35"):
        run_virtual(heads_until(log, {40: many[-1], 35: many[-5]}))
    with pytest.raises(CheckpointUnusable, match="ends before entry 40"):
        run_virtual(heads(40, log=Ending(right)))
