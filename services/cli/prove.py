"""`sabot prove`: a whole history decided again by several processes, which may be interrupted."""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from multiprocessing.pool import AsyncResult
from pathlib import Path
from typing import Any

from services.cli.cluster_log import ClusterLog
from services.cli.log_source import StoreLog, through_server
from services.cli.prove_checkpoint import (
    CheckpointUnusable,
    heads_until,
    identity_of,
    joined,
    read_checkpoint,
    remove_checkpoint,
    write_checkpoint,
)
from services.cli.proving import History, Piece, Proven, history_of, pieces_of, prove_piece
from services.kernel.embedded import stream_folder
from services.kernel.log import Log

GoingOn = Callable[[Path, int], None]
"""Told of (a checkpoint, entries that it speaks of)."""
LOOK_EVERY_S = 0.1
"""How often it looks how far the processes are."""
LEAVE_WITHIN_S = 60.0
"""How long they may take to hand over their states when they are interrupted."""


class NothingToProve(Exception):
    """The log is empty."""


class _Source:
    """Where each process reads: a raw store, the server of a data folder, or a cluster's."""

    def __init__(self, data: Path, log: Log, cluster: ClusterLog | None) -> None:
        self._data = data
        self._cell = log.cell
        self._raw = isinstance(log, StoreLog)
        self._cluster = cluster

    @asynccontextmanager
    async def opened(self, name: str) -> AsyncIterator[Log]:
        """The log. Raises NoLog, LogUnavailable."""
        if self._raw:
            yield StoreLog(stream_folder(self._data, self._cell), self._cell)
        elif self._cluster is not None:
            async with self._cluster.connected(name) as log:
                yield log
        else:
            async with through_server(self._data, name=name) as log:
                yield log


_here: dict[str, Any] = {}
"""What a process of the pool was given at its start."""


async def prove(
    data: Path,
    log: Log,
    processes: int,
    checkpoint: Path,
    accepted: Mapping[int, bytes],
    progress: Callable[[int, int, int], None],
    last: int = 0,
    cluster: ClusterLog | None = None,
    going_on: GoingOn = lambda _path, _entries: None,
) -> History:
    """Decide everything up to an entry again; up to the log's end where it is 0. Where a checkpoint
    is there, it goes on from it, and tells `going_on` up to where something of it is done; when it
    is interrupted it leaves one, and removes it at its end.
    `cluster`: where the log is, if it is not the data folder's.

    Raises CheckpointUnusable, LogBroken, LogUnavailable."""
    last = last or (await log.info(wait_s=5.0)).last_sequence
    if not last:
        raise NothingToProve("the log is empty")
    identity = await identity_of(log)
    kept = read_checkpoint(checkpoint, identity)
    if kept is None:
        pieces = await pieces_of(log, last, data / "snapshots", processes, accepted)
        proven: dict[int, Proven] = {}
    else:
        pieces, proven = kept.pieces, kept.proven
        if any(piece.last > last for piece in pieces):
            raise CheckpointUnusable(f"{checkpoint} is of a longer log: remove it")
        try:
            await heads_until(log, {one.sequence: one.head for one in proven.values()})
        except CheckpointUnusable as unusable:
            raise CheckpointUnusable(f"{checkpoint} does not fit: {unusable}; remove it") from None
        going_on(checkpoint, max((one.sequence for one in proven.values()), default=0))
    try:
        await _all(_Source(data, log, cluster), pieces, proven, processes, accepted, progress)
    except asyncio.CancelledError:
        write_checkpoint(checkpoint, identity, pieces, proven)
        raise
    remove_checkpoint(checkpoint)
    return history_of(list(proven.values()))


async def _all(
    source: _Source,
    pieces: list[Piece],
    proven: dict[int, Proven],
    processes: int,
    accepted: Mapping[int, bytes],
    progress: Callable[[int, int, int], None],
) -> None:
    """Do the pieces that are left; what they come to goes into `proven`."""
    left = [piece for piece in pieces if not _is_done(piece, proven)]
    if not left:
        return
    spawn = multiprocessing.get_context("spawn")
    stop = spawn.Event()
    done = spawn.Array("Q", 2 * len(left))
    before = [piece.after for piece in left]
    total = sum(piece.last for piece in left) - sum(before)
    # A terminal sends Ctrl-C to all processes. Those of the pool never see it, not even while they
    # start: this one tells them when to stop.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        pool = spawn.Pool(min(processes, len(left)), _begin, (source, dict(accepted), stop, done))
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    try:
        results = [pool.apply_async(_work, (place, piece)) for place, piece in enumerate(left)]
        try:
            while not all(result.ready() for result in results):
                await asyncio.sleep(LOOK_EVERY_S)
                entries = sum(max(0, done[2 * n] - before[n]) for n in range(len(left)))
                progress(entries, total, sum(done[2 * n + 1] for n in range(len(left))))
                _raise_if_failed(results)
        except asyncio.CancelledError:
            stop.set()
            for result in results:
                result.wait(LEAVE_WITHIN_S)
            _gather(results, proven)
            raise
        _gather(results, proven)
    finally:
        pool.terminate()
        pool.join()


def _is_done(piece: Piece, proven: Mapping[int, Proven]) -> bool:
    found = proven.get(piece.number)
    return found is not None and found.sequence >= piece.last


def _raise_if_failed(results: list[AsyncResult[Proven]]) -> None:
    for result in results:
        if result.ready() and not result.successful():
            result.get()


def _gather(results: list[AsyncResult[Proven]], proven: dict[int, Proven]) -> None:
    for result in results:
        if result.ready() and result.successful():
            one = result.get()
            proven[one.number] = joined(proven.get(one.number), one)


# ---- in the processes --------------------------------------------------------------------------


def _begin(source: _Source, accepted: dict[int, bytes], stop: Any, done: Any) -> None:
    _here.update(source=source, accepted=accepted, stop=stop, done=done)


def _work(place: int, piece: Piece) -> Proven:
    return asyncio.run(_prove(place, piece))


async def _prove(place: int, piece: Piece) -> Proven:
    done = _here["done"]

    def report(sequence: int, events: int) -> None:
        done[2 * place], done[2 * place + 1] = sequence, events

    async with _here["source"].opened(f"sabot-prove-{place}") as log:
        return await prove_piece(log, piece, _here["accepted"], report, _here["stop"].is_set)
