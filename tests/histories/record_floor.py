"""Record rounds of blackjack on the floor as a history:
`python -m tests.histories.record_floor NAME SEED`. Misread cards, looks, cards out of turn, plays
that are contradicted and voids, by chance.
"""

from __future__ import annotations

import sys

from services.cli.fleet import CELL
from services.kernel.build import BUILD
from services.kernel.memory_log import MemoryStore
from services.simulator.virtual_time import run_virtual
from tests.fleet.small_cell import memory_cell
from tests.histories.history import HERE, History, fold, save
from tests.unit.test_floor_blackjack_cell import ROUNDS, Hall

MISREADS = 0.02


def main(name: str, seed: int) -> None:
    """Play, and save what folds to the live states."""

    async def play() -> tuple[MemoryStore, dict[str, tuple[int, str]]]:
        async with memory_cell(seed=seed) as (cell, store):
            await Hall(cell, seed).play(MISREADS)
            await cell.process.drain(5.0)
            return store, cell.digests()

    store, live = run_virtual(play())
    folded = fold(CELL, store.entries())
    if folded.digests() != live:
        raise RuntimeError("the log does not fold to the live states")
    path = HERE / f"{name}.jsonl.gz"
    head = folded.reader.state.head.hex()
    save(path, History(CELL, BUILD, ROUNDS, head, live, store.entries()))
    print(f"{path.name}: {store.last_sequence} entries, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
