"""`sabot prove`: a history in pieces comes to what the whole comes to; it may be interrupted."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sabot.settlement.v1 import events_pb2 as settlements
from services.audit.snapshots import Snapshots
from services.cli import prove_checkpoint
from services.cli.cores import CORES
from services.cli.prove_checkpoint import (
    CheckpointUnusable,
    identity_of,
    joined,
    left_of,
    read_checkpoint,
    write_checkpoint,
)
from services.cli.proving import (
    History,
    Piece,
    Proven,
    history_of,
    pieces_of,
    prove_piece,
    spread,
)
from services.cli.replay import verify
from services.kernel.event import Answers, Core, Event, Unfinished
from services.kernel.log import LogMessage
from services.kernel.memory_log import MemoryLog, MemoryStore
from services.kernel.snapshot import SnapshotFolder, SnapshotSet
from services.simulator.virtual_time import run_virtual
from tests.fleet.small_cell import memory_cell


class Past(NamedTuple):
    store: MemoryStore
    folder: Path
    places: list[int]
    """Where snapshots stand."""


class Slow(MemoryLog):
    """A log that gives an entry at a time."""

    async def read(self, after: int) -> AsyncGenerator[Sequence[LogMessage], None]:
        async for batch in super().read(after):
            for message in batch:
                yield [message]


def played(folder: Path, cores: Sequence[Core[Any]] = CORES) -> Past:
    async def main() -> Past:
        places: list[int] = []
        async with memory_cell(cores=cores) as (cell, store):
            await cell.open_table()
            await cell.open_account("ann", 1_000_000)
            for _ in range(2):
                await cell.play(1, ["ann"])
                await cell.until(lambda: cell.process.between_entries, "nothing is half-way")
                places.append(Snapshots(SnapshotFolder(folder)).take(cell.process))
            await cell.play(1, ["ann"])
        return Past(store, folder, places)

    return run_virtual(main())


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Past:
    return played(tmp_path_factory.mktemp("snapshots"))


async def last_of(past: Past) -> int:
    return (await MemoryLog(past.store).info(wait_s=1.0)).last_sequence


async def cut(past: Past, processes: int) -> list[Piece]:
    log = MemoryLog(past.store)
    return await pieces_of(log, await last_of(past), past.folder, processes)


def proven(past: Past, processes: int = 1) -> History:
    async def main() -> History:
        log = MemoryLog(past.store)
        return history_of([await prove_piece(log, one) for one in await cut(past, processes)])

    return run_virtual(main())


@pytest.mark.parametrize(("processes", "pieces"), [(1, 3), (2, 3), (4, 6), (99, 21)])
def test_pieces_come_to_what_the_whole_comes_to(past: Past, processes: int, pieces: int) -> None:
    whole = run_virtual(verify(MemoryLog(past.store)))
    found = proven(past, processes)
    assert found.right
    assert found.pieces == pieces
    assert (found.rounds, found.answers) == (whole.rounds, whole.answers)
    assert (found.last, found.head) == (whole.last_sequence, whole.head)
    assert found.sums == {"EUR": 0}
    assert found.line() == (
        f"3 rounds, {whole.answers} answers, 0 differences, "
        f"head {whole.last_sequence}:{whole.head.hex()}"
    )


def test_pieces_begin_where_snapshots_stand(past: Past, tmp_path: Path) -> None:
    pieces = run_virtual(cut(past, 1))
    assert [piece.after for piece in pieces] == [0, *past.places]
    assert [piece.last for piece in pieces] == [*past.places, run_virtual(last_of(past))]
    alone = past._replace(folder=tmp_path)
    assert [piece.services for piece in run_virtual(cut(alone, 2))] == [
        ("table", "wallet", "rules", "audit"), ("limits", "shoe", "settlement"),
    ]  # fmt: skip
    assert proven(alone, 2).line() == proven(past).line()


def test_a_snapshot_that_is_not_what_came_before_it_is_a_difference(past: Past) -> None:
    async def main() -> Proven:
        piece = (await cut(past, 1))[0]
        other = piece.expected["wallet"].replace(b'"EUR",1,', b'"EUR",2,')
        assert other != piece.expected["wallet"]
        expected = {**piece.expected, "wallet": other}
        return await prove_piece(
            MemoryLog(past.store), dataclasses.replace(piece, expected=expected)
        )

    found = run_virtual(main())
    (told,) = found.differences
    assert "the state of wallet is not the one" in told.line
    assert not history_of([found]).right


def overpaying(state: Any, event: Event) -> Answers:
    """Settlement by a build that pays one minor unit too much to the first bet of an event."""
    core = next(core for core in CORES if core.service == "settlement")
    decided = core.decide(state, event)
    answers = list(decided.answers if isinstance(decided, Unfinished) else decided)
    for body in answers:
        if isinstance(body, settlements.BetsSettled) and body.bets[0].payout_minor:
            body.bets[0].payout_minor += 1
            body.bets[0].profit_minor += 1
    return Unfinished(answers) if isinstance(decided, Unfinished) else answers


@pytest.mark.parametrize("processes", [1, 4])
def test_wrong_payouts_are_named_and_the_rest_is_decided(tmp_path: Path, processes: int) -> None:
    """Each is one difference: behind it the record is followed, in every piece."""
    cores = tuple(
        dataclasses.replace(core, decide=overpaying) if core.service == "settlement" else core
        for core in CORES
    )
    past = played(tmp_path, cores)
    whole = run_virtual(verify(MemoryLog(past.store)))
    assert whole.differences
    found = proven(past, processes)
    assert len(found.differences) == len(whole.differences)
    assert all("settlement answered" in told for told in found.differences)
    assert found.answers == whole.answers
    assert not found.right
    assert not found.lost


# ---- interrupted -------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [1, 5, 17])
def test_it_goes_on_from_where_it_was_left(past: Past, tmp_path: Path, after: int) -> None:
    path = tmp_path / "checkpoint"

    async def main() -> History:
        log = Slow(past.store)
        identity = await identity_of(log)
        pieces = await cut(past, 4)
        done: dict[int, Proven] = {}
        write_checkpoint(path, identity, pieces, done)
        for _ in range(1_000):
            kept = read_checkpoint(path, identity)
            assert kept is not None
            if not kept.pieces:
                return history_of(list(kept.proven.values()))
            piece, read = kept.pieces[-1], 0

            def stop() -> bool:
                nonlocal read
                read += 1
                return read == after

            one = await prove_piece(log, piece, stop=stop)
            assert one.sequence == min(piece.after + after, piece.last)
            kept.proven[one.number] = joined(kept.proven.get(one.number), one)
            write_checkpoint(path, identity, kept.pieces, kept.proven)
        raise AssertionError("it does not end")

    found = run_virtual(main())
    assert found.json() == proven(past, 4).json()


def test_what_is_left_is_what_is_not_done(past: Past) -> None:
    async def main() -> None:
        pieces = await cut(past, 1)
        first = await prove_piece(MemoryLog(past.store), pieces[0])
        assert left_of(pieces, {0: first}) == pieces[1:]
        part = await prove_piece(Slow(past.store), pieces[1], stop=lambda: True)
        left = left_of(pieces, {0: first, 1: part})
        assert [piece.number for piece in left] == [1, 2]
        assert left[0].after == pieces[1].after + 1
        assert left[0].expected == pieces[1].expected
        # Once more interrupted, before it went on: nothing is lost.
        waiting = dataclasses.replace(part, states={})
        assert left_of(left, {1: waiting}) == left

    run_virtual(main())


def test_a_checkpoint_of_other_code_or_log_or_a_damaged_one_is_refused(
    past: Past, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "checkpoint"
    assert read_checkpoint(path, "main") is None
    with monkeypatch.context() as other:
        other.setattr(prove_checkpoint, "installed_code", lambda: bytes(32))
        write_checkpoint(path, "one", [], {})
    with pytest.raises(CheckpointUnusable, match="was left by other code: remove it"):
        read_checkpoint(path, "one")
    write_checkpoint(path, "one", run_virtual(cut(past, 1)), {})
    assert read_checkpoint(path, "one") is not None
    with pytest.raises(CheckpointUnusable, match="another log"):
        read_checkpoint(path, "other")
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)
    with pytest.raises(CheckpointUnusable, match="cannot be read, remove it"):
        read_checkpoint(path, "one")


def test_of_many_snapshots_some_that_lie_evenly_are_cut_at(tmp_path: Path) -> None:
    folder = SnapshotFolder(tmp_path)
    for at in range(10, 1010, 10):
        folder.save(SnapshotSet(at, {"table": b"t"}))
    assert spread(tmp_path, 55, 8) == [10, 20, 30, 40, 50]
    some = spread(tmp_path, 1000, 8)
    assert len(some) == 8
    gaps = [one - other for one, other in zip([*some[1:], 1000], some, strict=True)]
    assert max(gaps) <= 150
    assert spread(tmp_path / "none", 1000, 8) == []
