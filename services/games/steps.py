"""How much of big work is done in one step: the bets of a settlement, a void, a close on the floor.

A step is decided in one piece, in one entry of the log; other tables' inputs come in between two of
them. So the size of a step is what a bet at another table may have to wait for, and each step costs
one more way through the log (docs/adr/0035).

How many bets a step holds decides what stands in an entry: it is part of the answer, and a log is
decided again with what was in force when it was written.
"""

from __future__ import annotations

from collections.abc import Sequence

STEP_BETS: Sequence[int] = (400, 40)
"""Bets in one step, by the behaviour in force from 1 on; later behaviours keep the last. With the
longest ids 400 bets are 100 to 200 of an entry's 256 KiB."""


def step_bets(behaviour: int) -> int:
    """Bets in one step of what is decided by this behaviour."""
    return STEP_BETS[min(behaviour, len(STEP_BETS)) - 1]
