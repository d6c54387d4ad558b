"""What every verb of `sabot` is run by: errors in one line, exit codes, the log of a folder."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

if TYPE_CHECKING:
    from services.kernel.log import Log

T = TypeVar("T")

EXIT_CODES = (
    "Exit codes: 0 all is right; 1 something is wrong (differences, damage, a folder in use); "
    "2 the command was not understood."
)
RIGHT, WRONG, USAGE = 0, 1, 2
INTERRUPTED = 130
"""As shells have it for Ctrl-C."""

Data = Annotated[
    Path, typer.Option("--data", metavar="DIR", help="The data folder.", file_okay=False)
]
AsJson = Annotated[bool, typer.Option("--json", help="For programs.")]
DATA = Path("data")


@contextmanager
def plainly() -> Iterator[None]:
    """Errors that are expected become one line and exit code 1."""
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        # Whoever read our output has enough of it.
        sys.stderr.close()
        raise typer.Exit(RIGHT) from None
    except Exception as error:
        from services.cli.failures import in_one_line

        told = in_one_line(error)
        if told is None:
            raise
        print(f"sabot: {told}", file=sys.stderr)
        raise typer.Exit(WRONG) from None


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a verb's work; expected errors as `plainly` has them. SIGTERM ends it as Ctrl-C does: the
    first process of a container is given no other way to end by it."""
    with plainly():
        return asyncio.run(_until_told_to_end(work))
    raise typer.Exit(WRONG)  # never reached: plainly ends otherwise


async def _until_told_to_end(work: Coroutine[Any, Any, T]) -> T:
    # Only a main thread hears signals. What ends in some other way says so itself, later.
    if threading.current_thread() is threading.main_thread():
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, signal.raise_signal, signal.SIGINT)
    return await work


def dump(what: Any) -> None:
    """One line of JSON."""
    print(json.dumps(what, ensure_ascii=False))


@asynccontextmanager
async def opened(
    data: Path, *, check: bool = True, hash_all: bool = False
) -> AsyncIterator[tuple[Log, Mapping[int, bytes]]]:
    """The log of a folder, checked where it is raw, and the entries that were accepted.

    `check=False`: for who reads the log from its beginning anyway, and sees by the chain what is
    damaged. Only its length is held against what was read of it before."""
    from services.cli.log_source import open_source, witnesses_of
    from services.cli.progress import progress
    from services.kernel.accepted import read_accepted
    from services.kernel.store_check import StoreNotTheLog

    accepted = read_accepted(data).entries
    known = max((seen.sequence for seen in witnesses_of(data).values()), default=None)
    with progress("checking") as shown:
        async with open_source(
            data, check=check, hash_all=hash_all, progress=lambda done: shown(done, known)
        ) as log:
            shown.close()
            if not check and known is not None:
                last = (await log.info(wait_s=5.0)).last_sequence
                if last < known:
                    raise StoreNotTheLog(last + 1, f"missing: the log was read up to {known}")
            yield log, accepted
