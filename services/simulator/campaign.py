"""Many seeds, over processes; what was injected, and what was violated."""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

from sabot.limits.v1 import events_pb2 as limits
from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import floor_events_pb2 as orders
from services.kernel.memory_log import FAULT_KINDS
from services.simulator.coverage import FLOOR_PATHS, REACHED
from services.simulator.director import FLOOR_GAPS, GAPS, OF_DICE, OF_TURNS, OF_WHEELS, VOID_GAPS
from services.simulator.releases import PLANTABLE
from services.simulator.simulation import ROUNDS, SeedResult, run_seed
from services.simulator.tables import FLOOR, FLOOR_GAMES, GAME_NUMBERS, named

REFUSED: tuple[str, ...] = (
    *(f"refused: {table.Refusal.Name(refusal)}" for refusal in (
        table.REFUSAL_UNKNOWN_TABLE, table.REFUSAL_UNKNOWN_ROUND, table.REFUSAL_REQUEST_EXPIRED,
        table.REFUSAL_REQUEST_ID_REUSED, table.REFUSAL_BETTING_CLOSED,
        table.REFUSAL_ROUND_SUSPENDED, table.REFUSAL_CURRENCY_MISMATCH, table.REFUSAL_UNKNOWN_BET,
        table.REFUSAL_ROUND_VOIDED, table.REFUSAL_FAILED, table.REFUSAL_NOT_ON_LAYOUT,
        table.REFUSAL_NOT_WHOLE_CHIPS, table.REFUSAL_SEAT_TAKEN, table.REFUSAL_NOT_YOUR_SEAT,
        table.REFUSAL_NOT_YOUR_TURN, table.REFUSAL_ACTION_NOT_ALLOWED,
        table.REFUSAL_BAD_EXTRA_STAKE, table.REFUSAL_ACTION_PENDING,
        table.REFUSAL_NOT_ON_FLOOR, table.REFUSAL_CORRECTION_PENDING,
        table.REFUSAL_RESULT_ACCEPTED, table.REFUSAL_NOT_SUSPENDED,
    )),
    *(f"refused: {limits.Limit.Name(limit)}" for limit in (
        limits.LIMIT_BELOW_MINIMUM, limits.LIMIT_ABOVE_MAXIMUM, limits.LIMIT_STAKE_STEP,
        limits.LIMIT_OPPOSITE_SIDES, limits.LIMIT_SIDE_BET_CLOSED, limits.LIMIT_DIFFERENCE,
        limits.LIMIT_COVERAGE, limits.LIMIT_ACCOUNT_MAXIMUM, limits.LIMIT_EXPOSURE,
        limits.LIMIT_NO_MAIN_BET, limits.LIMIT_STAKE_WINDOW, limits.LIMIT_LOSS_WINDOW,
        limits.LIMIT_DEPOSIT_WINDOW, limits.LIMIT_COOLING_OFF,
    )),
)  # fmt: skip
"""Each refusal of bets, actions and orders that somebody can bring about."""
SELDOM_ON_FLOOR = frozenset(
    {
        rules.HandsCorrected,
        rules.DrawRecalled,
        orders.OutcomeCorrectionOrdered,
        floor.OutcomeCorrected,
    }
)
"""So rare that not every deed can be asked for behind them."""
REQUIRED: tuple[str, ...] = (
    *FAULT_KINDS,
    "partner contradicts itself",
    "partner's answer lost",
    "partner's call late",
    "partner's call lost",
    "partner's call repeated",
    "partner's wallet away",
    "partner's wallet broke",
    "crash",
    "crash with an append in flight",
    "crash while starting",
    "crash of both replicas",
    "machine cut off",
    "clock off",
    "start refused",
    "snapshots taken",
    "snapshots taken around an append",
    "snapshots lost",
    "start from a snapshot",
    "correction approved",
    "correction refused: SAME_PERSON",
    "correction refused: ALREADY_APPROVED",
    "upgrade",
    "behaviour 2 activated in the middle of a settlement",
    "release 1 stopped at behaviour 2",
    *(f"decision of {service} failed" for service in PLANTABLE),
    "failed decision retried",
    "failed decision retried twice at once",
    "void of a round whose settlement failed",
    "late result",
    "result held by a suspension",
    "late bets",
    "request repeated",
    "id reused with another body",
    "old request about money again",
    "the same request at two machines at once",
    "outcome unknown",
    "request id of another time",
    "account blocked",
    "limit of an account set",
    "break of an account",
    "second draw of a toss",
    "turn ended by the clock",
    "table moved to the floor or from it",
    "call right behind a stake",
    "outcome seen before the call, told after it",
    "order while a correction is under way",
    "two actions at once",
    *REFUSED,
    *(
        f"{deed} after {gap.__name__}"
        for deed in ("void", "withdrawal", "suspend", "crash")
        for gap in GAPS
    ),
    *(f"withdrawal after {gap.__name__}" for gap in VOID_GAPS),
    *(
        f"{deed} after {gap.__name__}"
        for deed in ("void", "crash")
        for gap in FLOOR_GAPS
        if gap not in SELDOM_ON_FLOOR
    ),
    *REACHED,
)
"""What a campaign of 200 seeds must have injected, and reached."""

ALONE = {"blackjack": OF_TURNS, "roulette": OF_WHEELS, "sicbo": OF_DICE}
"""What one game only has."""
FURTHER = 60
"""Seeds that a whole campaign may add, each of one game, where chance left something out."""
FURTHER_FROM = 1_001
"""The first of them."""


def run_seeds(
    seeds: Sequence[int],
    *,
    rounds: int = ROUNDS,
    jobs: int | None = None,
    games: Sequence[str] = (),
) -> Iterator[SeedResult]:
    """Run seeds, as they come to their ends.

    - jobs: so many processes; None: one for each CPU.
    - games: what tables play; empty: all.
    """
    workers = min(jobs or os.cpu_count() or 1, len(seeds))
    work = partial(run_seed, rounds=rounds, games=games)
    if workers <= 1:
        yield from map(work, seeds)
        return
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        yield from pool.imap_unordered(work, seeds)


def run_further(counts: Counter[str], *, rounds: int = ROUNDS) -> Iterator[tuple[str, SeedResult]]:
    """Seeds, each with the one game of its tables, until nothing is missing any more that `counts`
    lacks: what a wheel has around it comes more often where there are wheels only."""
    left, tried = counts.copy(), Counter[str]()
    for seed in range(FURTHER_FROM, FURTHER_FROM + FURTHER):
        wanted = missing(left)
        if not wanted:
            return
        among = games_with(wanted[0])
        game = among[tried[wanted[0]] % len(among)]
        tried[wanted[0]] += 1
        result = run_seed(seed, rounds=rounds, games=named(game))
        left.update(result.counts)
        yield game, result


def games_with(kind: str) -> Sequence[str]:
    """The names of games in which something happens most often, of `REQUIRED`."""
    event = kind.rpartition(" after ")[2].rpartition(".")[2]
    for game, events in ALONE.items():
        if event in {one.__name__ for one in events}:
            return [game]
    on_floor = {one.__name__ for one in (*FLOOR_GAPS, shoe.ShoeRanOut)}
    if event in on_floor or kind in FLOOR_PATHS:
        return [f"{FLOOR}{name}" for name, often in FLOOR_GAMES.items() if often]
    return list(GAME_NUMBERS)


def injected(results: Sequence[SeedResult]) -> Counter[str]:
    """How often each fault was injected, over all seeds."""
    counts: Counter[str] = Counter(dict.fromkeys(REQUIRED, 0))
    for result in results:
        counts.update(result.counts)
    return counts


def missing(counts: Counter[str]) -> list[str]:
    """What was never injected, of what must be."""
    return [kind for kind in REQUIRED if not counts[kind]]
