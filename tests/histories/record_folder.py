"""Record a data folder's log as a history: `python -m tests.histories.record_folder DATA NAME`.

For what the small cell of `record` does not play: the demonstration with all its games, say. The
fleet must be stopped. What is recorded must end at rest, decided to its last entry.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from services.cli.fleet import CELL
from services.cli.log_source import open_source
from services.cli.replay import verify
from services.kernel.build import BUILD
from services.kernel.log import LogMessage
from tests.histories.history import HERE, History, fold, save


async def main(data: Path, name: str) -> None:
    messages: list[LogMessage] = []
    async with open_source(data, check=True) as log:
        last = (await log.info(wait_s=5.0)).last_sequence
        async for batch in log.read(0):
            messages.extend(batch)
            if batch[-1].sequence >= last:
                break
        found = await verify(log)
    if not found.right:
        raise RuntimeError(found.line())
    folded = fold(CELL, messages)
    head = folded.reader.state.head.hex()
    path = HERE / f"{name}.jsonl.gz"
    save(path, History(CELL, BUILD, found.rounds, head, folded.digests(), messages))
    print(f"{path.name}: {len(messages)} entries, {path.stat().st_size} bytes, {found.line()}")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
