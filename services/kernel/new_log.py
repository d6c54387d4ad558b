"""A log that is new begins with the newest behaviour (docs/adr/0035).

In a log that is not, an operator activates it: a build that does not know it could not go on there,
and nobody but an operator knows whether one is still needed. Where nothing was decided yet there is
nothing to go back to.
"""

from __future__ import annotations

from sabot.log.v1 import events_pb2
from services.kernel.entry import KERNEL_INPUT_SUBJECTS, NotUnderstood, decode_entry
from services.kernel.log import Log
from services.kernel.process import Process

ACTIVATES = KERNEL_INPUT_SUBJECTS[events_pb2.ActivateBehaviour]
"""The service on whose inputs the order stands: its processes alone may append there, and whatever
opens a table stands there too, behind it."""
ACTOR = "system:start"
YOUNG_US = 300_000_000
"""How old the log of a new cell may be, while the processes of the cell come up one after the other
and the database comes up beside them."""


def begin_anew(process: Process) -> None:
    """Let the newest behaviour stand in front of this process's first input of the service that
    takes the order, where the log is new then: where that service has never answered anything.

    It goes with that input, in one entry, and not by itself. If the process dies before, the next
    one finds the log as new. Two that begin it at once both give the order: the second one changes
    nothing."""

    def order() -> events_pb2.ActivateBehaviour | None:
        state, newest = process.replica(ACTIVATES).state, process.known_behaviour
        is_new = not state.out_sequence and not state.pending
        if not is_new or process.behaviour >= newest:
            return None
        return events_pb2.ActivateBehaviour(behaviour=newest)

    process.appending.put_in_front(ACTIVATES, order, ACTOR)


async def is_young(log: Log, now_us: int) -> bool:
    """Whether a log began so lately that the database may have been away ever since: then nobody
    has noted anything of it yet. `now_us`: this machine's time. Raises LogUnavailable."""
    messages = log.read(0)
    try:
        async for batch in messages:
            began_us = decode_entry(batch[0].payload).events[0].time_us
            return now_us - began_us < YOUNG_US
    except NotUnderstood:
        return False  # Whoever reads it says so.
    finally:
        await messages.aclose()  # type: ignore[attr-defined]  # an async generator, by its contract
    return True
