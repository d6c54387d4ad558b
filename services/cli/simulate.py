"""`sabot simulate`: the fleet on a log that fails on demand, seed after seed."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence

from services.simulator.campaign import injected, missing, run_further, run_seeds
from services.simulator.coverage import ELSEWHERE, EVENT, EVENTS, FLOOR_PATHS
from services.simulator.director import FLOOR_GAPS, GAPS, VOID_GAPS
from services.simulator.simulation import ROUNDS, SeedResult
from services.simulator.tables import FLOOR, GAME_NUMBERS, named

GAMES = (*GAME_NUMBERS, *(f"{FLOOR}{name}" for name in GAME_NUMBERS))
ENOUGH_SEEDS = 200
"""So many seeds must have injected every kind of fault."""


def run_simulation(
    *,
    seeds: int,
    first: int = 1,
    rounds: int = ROUNDS,
    jobs: int | None = None,
    as_json: bool = False,
    game: str = "",
) -> int:
    """Run seeds `first` to `first + seeds - 1`; the exit code: 0 where nothing was violated, and
    nothing left out where there are enough seeds. `game`: the only one of all tables, which leaves
    out what others have."""
    games = named(game) if game else ()
    began = time.monotonic()
    results: list[SeedResult] = []
    shown = sys.stderr.isatty()
    for result in run_seeds(range(first, first + seeds), rounds=rounds, jobs=jobs, games=games):
        results.append(result)
        if result.violations and not as_json:
            _show_violated(result, rounds, game, clear=shown)
        if shown:
            _progress(len(results), seeds, time.monotonic() - began)
    whole = seeds >= ENOUGH_SEEDS and not game
    further: dict[int, str] = {}
    for name, result in run_further(injected(results), rounds=rounds) if whole else ():
        results.append(result)
        further[result.seed] = name
        if result.violations and not as_json:
            _show_violated(result, rounds, name, clear=shown)
    if shown:
        sys.stderr.write("\r\x1b[K")
    results.sort(key=lambda result: result.seed)
    violated = [result for result in results if result.violations]
    counts = injected(results)
    never = missing(counts) if whole else []
    seconds = time.monotonic() - began
    if as_json:
        again = {
            one.seed: repeat_command(one.seed, rounds, further.get(one.seed, game))
            for one in violated
        }
        print(json.dumps(_report(results, counts, never, again, seconds)))
    else:
        _show(results, counts, never, seconds)
        print(f"{len(results)} seeds, {len(violated)} violated")
    return 1 if violated or never else 0


def repeat_command(seed: int, rounds: int, game: str = "") -> str:
    """What runs one seed again."""
    more = "" if rounds == ROUNDS else f" --rounds {rounds}"
    more += f" --game {game}" if game else ""
    return f".venv/bin/sabot simulate --seeds 1 --first {seed}{more}"


def _show_violated(result: SeedResult, rounds: int, game: str, *, clear: bool) -> None:
    if clear:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
    print(f"seed {result.seed}: {len(result.violations)} violations; the first: "
          f"{result.violations[0]}")  # fmt: skip
    print(f"  again: {repeat_command(result.seed, rounds, game)}", flush=True)


def _progress(done: int, seeds: int, seconds: float) -> None:
    rate = done / seconds if seconds else 0.0
    left = (seeds - done) / rate if rate else 0.0
    sys.stderr.write(f"\r\x1b[K{done} of {seeds} seeds, {rate:.1f}/s, {left:.0f} s left")
    sys.stderr.flush()


def _show(
    results: Sequence[SeedResult], counts: Counter[str], never: Sequence[str], seconds: float
) -> None:
    _show_injected(counts)
    _show_reached(counts)
    if len(results) == 1:
        for violation in results[0].violations:
            print(f"  {violation}")
        print(f"log {results[0].log_hash}")
    for kind in never:
        print(f"never {'reached' if _is_reached(kind) else 'injected'}: {kind}")
    rounds = [result.rounds for result in results]
    print(
        f"{sum(rounds):,} rounds (at least {min(rounds)} a seed), "
        f"{sum(result.bets_settled for result in results):,} bets settled, "
        f"{sum(result.events for result in results):,} events, "
        f"{sum(result.answers_compared for result in results):,} answers decided again, "
        f"{sum(result.virtual_s for result in results) / 3600:.1f} simulated hours "
        f"in {seconds:.0f} s"
    )


def _show_injected(counts: Counter[str]) -> None:
    """What happened at any time, then what was done right behind an event, by event and deed."""
    plain = sorted(kind for kind in counts if not _gap(kind) and not _is_reached(kind))
    width = max(map(len, plain))
    print("injected:")
    for kind in plain:
        print(f"  {kind:<{width}} {counts[kind]:>9,}")
    deeds = sorted({deed for kind in counts for deed, _ in _gap(kind)})
    print(f"right behind: {'':<{width - 12}}" + "".join(f"{deed:>12}" for deed in deeds))
    for gap in (*GAPS, *VOID_GAPS, *FLOOR_GAPS):
        name = gap.__name__
        row = "".join(f"{counts[f'{deed} after {name}']:>12,}" for deed in deeds)
        print(f"  {name:<{width}}{row}")


def _show_reached(counts: Counter[str]) -> None:
    """The ways of the floor, and how many types of events the logs had."""
    width = max(map(len, FLOOR_PATHS))
    print("on the floor:")
    for path in FLOOR_PATHS:
        print(f"  {path:<{width}} {counts[path]:>9,}")
    types = sum(bool(counts[event]) for event in EVENTS)
    print(f"types of events: {types} of {len(EVENTS)}; {len(ELSEWHERE)} are tried elsewhere")


def _is_reached(kind: str) -> bool:
    """Whether this is something that a log had, not something that was done to the fleet."""
    return kind.startswith(EVENT) or kind in FLOOR_PATHS


def _gap(kind: str) -> list[tuple[str, str]]:
    """(deed, event) of what is done behind an event; empty for all else."""
    deed, after, event = kind.partition(" after ")
    return [(deed, event)] if after and event[:1].isupper() else []


def _report(
    results: Sequence[SeedResult],
    counts: Counter[str],
    never: Sequence[str],
    again: Mapping[int, str],
    seconds: float,
) -> dict[str, object]:
    """`again`: what runs a violated seed again."""
    return {
        "seeds": len(results),
        "violated": [
            {
                "seed": result.seed,
                "violations": result.violations,
                "again": again[result.seed],
            }
            for result in results
            if result.violations
        ],
        "rounds": sum(result.rounds for result in results),
        "events": sum(result.events for result in results),
        "injected": {kind: counts[kind] for kind in sorted(counts) if not _is_reached(kind)},
        "reached": {kind: counts[kind] for kind in sorted(counts) if _is_reached(kind)},
        "never_injected": [kind for kind in never if not _is_reached(kind)],
        "never_reached": [kind for kind in never if _is_reached(kind)],
        "seconds": round(seconds, 3),
    }
