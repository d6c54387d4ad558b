"""`sabot bench`: what the fleet does on this machine, beside what could at best be had.

One run measures, on loopback, with this process as the client of all of them:

- `echo`: a bare grpc.aio server that answers PlaceBets' bytes with PlaceBets' bytes;
- `place_bets`: the fleet as `sabot up` starts it, every bet durable before it is confirmed;
- `sql_baseline`: the same job as one SQL transaction per request (see `bench_sql`);

each at 1, 32 and 128 calls in flight, in slices that take turns, so that what else the machine does
hits all three alike. Then the log alone and a cold recovery (see `bench_log`), the fleet's peak of
memory, bets of a seamless partner's accounts (see `bench_seamless`), big rounds (see
`bench_settle`), audit's tools on a long log (see `bench_history`), and the games by themselves (see
`bench_games`). Between slices rounds are settled and projections catch up, uncounted; how far they
were behind is shown.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sabot.partner.v1 import partner_service_pb2 as partners
from services.cli.bench_child import child
from services.cli.bench_fleet import START_S, Desk, bench_fleet
from services.cli.bench_history import History, history
from services.cli.bench_load import (
    TABLE,
    WARM_S,
    BenchFailed,
    Figure,
    Slice,
    Target,
    check_placed,
)
from services.cli.bench_settle import BigRounds, big_rounds
from services.kernel import event_loop

IN_FLIGHT = (1, 32, 128)
CALLED = ("echo", "place_bets", "sql_baseline")
GAMES = ("settled_bets_per_s", "core_rounds_per_s", "live_odds_ms")
HISTORY = (
    "redecide_events_per_s",
    "verify_export_vs_hash",
    "capsule_seconds",
    "replay_rss_mib",
)
BIG_ROUNDS = ("settle_seconds", "other_table_p99_ms", "other_table_p99_ms_voided")
OTHERS = (
    "log_only_per_s",
    "recovery_events_per_s",
    "peak_rss_mib",
    "seamless_per_s",
    *GAMES,
    *BIG_ROUNDS,
    *HISTORY,
)
PARTS = (*CALLED, *OTHERS)
SLICES = 4
"""Turns that each server takes at each number of calls in flight, a second or more each."""
FULL_S = 5.0
"""Of a figure, to be relied on."""
RECOVERY_EVENTS = 200_000
"""At least so many events are recovered."""
TRIAL_EVENTS = 1_000
"""In a run that is too short to be relied on."""
EVENTS_A_BET = 4
"""At least: asked, placed, approved, reserved."""
FILL_ROUND_S = 4.0
"""Bets of one round when the log is filled up for recovery."""
ECHO_SHARE = 0.4
"""Expected of PlaceBets at 128 in flight, against the echo."""
SQL_SHARE = 1.5
"""Expected of PlaceBets at 128 in flight, against SQL."""
RECOVERY_PER_S = 50_000
"""Expected of recovery."""
HISTORY_EVENTS = 1_000_000
"""Of the log that audit's tools are tried on."""
TRIAL_HISTORY_EVENTS = 4_000
"""In a run that is too short to be relied on."""
REDECIDED_EVENTS = 200_000
"""Of them are decided again by workers."""
CAPSULE_S = 1.0
"""Expected of a capsule of a round in that log, at most."""
LIVE_ODDS_MS = 20
"""Expected of the odds of all baccarat bets at one composition, at most."""

BIG_ACCOUNTS = (1_000, 10_000)
"""Accounts of the big rounds."""
TRIAL_ACCOUNTS = (20, 200)
"""In a run that is too short to be relied on."""
GROWTH = 12
"""Expected of ten times as many accounts: at most so many times the seconds."""
OTHER_TABLE_MS = 150
"""Expected of bets at another table meanwhile, at most."""

EXIT_FAILED = 1
EXIT_USAGE = 2


@dataclass(slots=True)
class Report:
    """What was measured so far."""

    figures: dict[str, dict[int, Figure]] = field(default_factory=dict[str, dict[int, Figure]])
    log_only_per_s: float = 0.0
    recovery_per_s: float = 0.0
    recovery_events: int = 0
    peak_rss_mib: float = 0.0
    settled_per_s: dict[str, float] = field(default_factory=dict[str, float])
    """By game."""
    rounds_per_s: dict[str, float] = field(default_factory=dict[str, float])
    """By game."""
    live_odds_ms: float = 0.0
    seamless_per_s: float = 0.0
    big_rounds: BigRounds | None = None
    history: History | None = None
    lags_s: list[float] = field(default_factory=list[float])
    load_before: float = 0.0
    took_s: float = 0.0

    def ratio(self, of: str, to: str, in_flight: int) -> float | None:
        """PlaceBets against another; None where one of them was not measured."""
        if of not in self.figures or to not in self.figures:
            return None
        below = self.figures[to][in_flight].per_s
        return round(self.figures[of][in_flight].per_s / below, 3) if below else None

    def told(self, parts: Sequence[str]) -> dict[str, Any]:
        """For programs."""
        told: dict[str, Any] = {
            name: {str(count): one.told() for count, one in self.figures[name].items()}
            for name in CALLED
            if name in parts
        }
        others: dict[str, Any] = {
            "log_only_per_s": round(self.log_only_per_s, 1),
            "recovery_events_per_s": round(self.recovery_per_s, 1),
            "peak_rss_mib": self.peak_rss_mib,
            "seamless_per_s": round(self.seamless_per_s, 1),
            "settled_bets_per_s": self.settled_per_s,
            "core_rounds_per_s": self.rounds_per_s,
            "live_odds_ms": self.live_odds_ms,
        }
        if self.big_rounds is not None:
            big = self.big_rounds
            others |= {
                "settle_seconds": {str(count): took for count, took in big.settle_seconds.items()},
                "other_table_p99_ms": big.settled_p99_ms,
                "other_table_p99_ms_voided": big.voided_p99_ms,
            }
        if self.history is not None:
            per_s = self.history.redecide_per_s
            others |= {
                "redecide_events_per_s": {str(count): value for count, value in per_s.items()},
                "verify_export_vs_hash": self.history.verify_vs_hash,
                "capsule_seconds": self.history.capsule_seconds,
                "replay_rss_mib": self.history.replay_rss_mib,
            }
        told |= {name: value for name, value in others.items() if name in parts}
        told["ratios"] = {
            f"place_bets/{short}": {
                str(count): self.ratio("place_bets", name, count) for count in IN_FLIGHT
            }
            for short, name in (("echo", "echo"), ("sql", "sql_baseline"))
            if name in self.figures and "place_bets" in self.figures
        }
        return told


def run_bench(
    as_json: bool,
    seconds: float = FULL_S,
    only: Sequence[str] | None = None,
    folder: Path | None = None,
) -> int:
    """Measure, print, and return the exit code: 0 when everything could be measured, whatever the
    figures are.

    - seconds: of each figure.
    - only: names of PARTS; None: all.
    - folder: on which disk to measure; None: `build` in the current folder (`/tmp` may be memory,
      where nothing durable costs anything). What is written there is removed again.
    """
    parts = PARTS if only is None else tuple(only)
    unknown = [name for name in parts if name not in PARTS]
    if unknown or not parts or seconds <= 0:
        print(f"sabot bench: {', '.join(unknown) or 'nothing'} cannot be measured; there are "
              f"{', '.join(PARTS)}, for more than 0 s", file=sys.stderr)  # fmt: skip
        return EXIT_USAGE
    # Children are started while this process has connections; gRPC would warn of each fork.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")
    beside = folder or Path("build")
    beside.mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(prefix="bench-", dir=beside)).absolute()
    try:
        report = event_loop.run(_measure(place, seconds, parts))
    except (BenchFailed, ExceptionGroup) as error:
        print(f"sabot bench: {_words(error)}", file=sys.stderr)
        return EXIT_FAILED
    finally:
        shutil.rmtree(place, ignore_errors=True)
    if as_json:
        print(json.dumps(report.told(parts), indent=2))
    else:
        print("\n".join(_shown(report, parts, seconds)))
    return 0


def _words(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__


async def _measure(place: Path, seconds: float, parts: Sequence[str]) -> Report:
    began = time.monotonic()
    report = Report(load_before=os.getloadavg()[0])
    data = place / "fleet"
    events = RECOVERY_EVENTS if seconds >= FULL_S else TRIAL_EVENTS
    called = [name for name in CALLED if name in parts]
    needs_fleet = {"place_bets", "sql_baseline", "recovery_events_per_s", "peak_rss_mib"}
    if called or needs_fleet & set(parts):
        await _call_all(place, data, seconds, parts, report, events)
    if "log_only_per_s" in parts:
        from services.cli.bench_log import log_only

        _progress("the log alone")
        report.log_only_per_s = await log_only(place, seconds)
    if "recovery_events_per_s" in parts:
        from services.cli.bench_log import recovery

        _progress("recovery")
        found = await recovery(place, data, seconds)
        report.recovery_per_s, report.recovery_events = found["per_s"], found["events"]
        if report.recovery_events < events:
            raise BenchFailed(f"the log has {report.recovery_events} events, fewer than {events}")
    if "seamless_per_s" in parts:
        from services.cli.bench_seamless import seamless_per_s

        _progress("a seamless partner")
        report.seamless_per_s = await seamless_per_s(place, seconds)
    if set(BIG_ROUNDS) & set(parts):
        accounts = BIG_ACCOUNTS if seconds >= FULL_S else TRIAL_ACCOUNTS
        report.big_rounds = await big_rounds(place, accounts, _progress)
    if set(HISTORY) & set(parts):
        whole = seconds >= FULL_S
        long = HISTORY_EVENTS if whole else TRIAL_HISTORY_EVENTS
        some = REDECIDED_EVENTS if whole else TRIAL_EVENTS
        report.history = await history(place, long, some, frozenset(parts), _progress)
    if set(GAMES) & set(parts):
        _measure_games(seconds, parts, report)
    report.took_s = time.monotonic() - began
    _progress("")
    return report


def _measure_games(seconds: float, parts: Sequence[str], report: Report) -> None:
    """The time of a figure is shared by the games."""
    from services.cli.bench_games import (
        RULE_SETS,
        core_rounds_per_s,
        live_odds_ms,
        settled_bets_per_s,
    )

    each_s = seconds / len(RULE_SETS)
    for game in RULE_SETS:
        _progress(f"rounds of {game}")
        if "settled_bets_per_s" in parts:
            report.settled_per_s[game] = settled_bets_per_s(game, each_s)
        if "core_rounds_per_s" in parts:
            report.rounds_per_s[game] = core_rounds_per_s(game, each_s)
    if "live_odds_ms" in parts:
        _progress("odds")
        report.live_odds_ms = live_odds_ms(each_s)


async def _call_all(
    place: Path, data: Path, seconds: float, parts: Sequence[str], report: Report, events: int
) -> None:
    """Everything that needs the fleet to run."""
    async with AsyncExitStack() as stack:
        _progress("starting")
        fleet = await stack.enter_async_context(bench_fleet(place, data))
        at = fleet.desk
        targets = {"place_bets": Target("place_bets", fleet.address, at.partner)}
        for name, module, *rest in (
            ("echo", "services.cli.bench_echo"),
            (
                "sql_baseline",
                "services.cli.bench_sql",
                str(place / "sql.db"),
                str(fleet.token_file),
            ),
        ):
            if name in parts:
                one = await stack.enter_async_context(child(place, name, module, *rest))
                address = (await one.line(START_S))["address"]
                targets[name] = Target(name, address, None if name == "echo" else at.partner)
        for target in targets.values():
            stack.push_async_callback(target.close)
        await _take_turns(targets, at, seconds, [n for n in CALLED if n in parts], report)
        if "recovery_events_per_s" in parts:
            await _fill(data, targets["place_bets"], at, events)
        report.peak_rss_mib = fleet.child.peak_rss_mib()
        report.lags_s = at.lags_s


async def _take_turns(
    targets: dict[str, Target], at: Desk, seconds: float, called: Sequence[str], report: Report
) -> None:
    report.figures = {name: {count: Figure() for count in IN_FLIGHT} for name in called}
    turns = max(1, min(SLICES, int(seconds)))
    warm_s = min(WARM_S, seconds / turns)
    left = len(called) * len(IN_FLIGHT) * turns
    done, began = 0, time.monotonic()
    for turn in range(turns):
        for count in IN_FLIGHT:
            for place in range(len(called)):
                name = called[(place + turn) % len(called)]  # nobody is always the first
                one = await _slice(targets[name], at, turn, count, seconds / turns, warm_s)
                report.figures[name][count].add(one)
                done += 1
                each_s = (time.monotonic() - began) / done
                _progress(f"slice {done} of {left}, {each_s * (left - done):.0f} s left")


async def _slice(
    target: Target, at: Desk, turn: int, count: int, seconds: float, warm_s: float
) -> Slice:
    if target.name != "place_bets":
        # SQL's rounds are all open; one for each of its slices.
        round_id = f"{TABLE}-{1 + turn * len(IN_FLIGHT) + IN_FLIGHT.index(count)}"
        one = await target.run(round_id, count, seconds, warm_s)
        if target.name == "sql_baseline":
            check_placed(target.name, one)
        return one
    one = await target.run(await at.open_round(), count, seconds, warm_s)
    await at.note_lag(partners.PlaceBetsResponse.FromString(one.answers[-1]).position)
    check_placed(target.name, one)
    await at.settle()  # now, not while another is measured
    return one


async def _fill(data: Path, target: Target, at: Desk, events: int) -> None:
    """Place bets until the log has so many events."""
    from services.cli.bench_log import count_events
    from services.cli.log_source import open_source

    async with open_source(data) as log:
        missing = events - await count_events(log)
    seconds = min(FILL_ROUND_S, events / 1000)
    while missing > 0:
        _progress(f"filling the log, {missing} events left")
        one = await target.run(await at.open_round(), max(IN_FLIGHT), seconds, 0.0)
        missing -= len(one.answers) * EVENTS_A_BET
        await at.settle()


def _progress(words: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{words}", end="", file=sys.stderr, flush=True)


def _shown(report: Report, parts: Sequence[str], seconds: float) -> list[str]:
    """For people: the figures, and beside them what is expected."""
    lines = [f"{'':14}{'in flight':>10}{'per second':>12}{'p50 ms':>10}{'p99 ms':>10}"]
    for name, by_count in report.figures.items():
        for count, figure in by_count.items():
            one = figure.told()
            lines.append(
                f"{name:14}{count:>10}{one['per_s']:>12,.0f}{one['p50_ms']:>10.2f}"
                f"{one['p99_ms']:>10.2f}"
                + (f"  {figure.again} sent again, refused for the moment" if figure.again else "")
            )
    lines.append("")
    for to, word, least in (
        ("echo", "the echo", ECHO_SHARE),
        ("sql_baseline", "SQL", SQL_SHARE),
    ):
        for count in IN_FLIGHT:
            share = report.ratio("place_bets", to, count)
            if share is not None:
                verdict = _verdict(share, least) if count == max(IN_FLIGHT) else ""
                lines.append(f"place_bets / {word:9} at {count:>3}: {share:6.2f}{verdict}")
    if "log_only_per_s" in parts:
        lines.append(f"the log alone: {report.log_only_per_s:,.0f} bets/s")
    if "recovery_events_per_s" in parts:
        lines.append(
            f"recovery: {report.recovery_per_s:,.0f} events/s of {report.recovery_events:,}"
            + _verdict(report.recovery_per_s, RECOVERY_PER_S)
        )
    if "peak_rss_mib" in parts:
        lines.append(f"peak memory of the fleet: {report.peak_rss_mib:,.0f} MiB")
    if "seamless_per_s" in parts:
        lines.append(
            f"bets whose stakes a partner's own wallet takes: {report.seamless_per_s:,.0f}/s"
        )
    for game, settled in report.settled_per_s.items():
        lines.append(f"settlement of {game}: {settled:,.0f} bets/s")
    for game, rounds in report.rounds_per_s.items():
        lines.append(f"all cores, {game}: {rounds:,.0f} rounds/s")
    if "live_odds_ms" in parts:
        lines.append(
            f"odds of all baccarat bets at a composition: {report.live_odds_ms:.1f} ms"
            + _verdict_at_most(report.live_odds_ms, LIVE_ODDS_MS)
        )
    if report.big_rounds is not None:
        lines += _big_rounds_shown(report.big_rounds)
    if report.history is not None:
        lines += _history_shown(report.history, parts)
    if report.lags_s:
        lines.append(
            f"projections, when the last bet of a slice was confirmed: {max(report.lags_s):.2f} s "
            "behind at most"
        )
    lines.append(
        f"{seconds:g} s a figure; load before {report.load_before:.2f}, after "
        f"{os.getloadavg()[0]:.2f}, on {os.cpu_count()} processors; {report.took_s:.0f} s in all"
    )
    return lines


def _big_rounds_shown(found: BigRounds) -> list[str]:
    lines = [
        f"a round of {count:,} accounts is paid in {took:.2f} s"
        for count, took in found.settle_seconds.items()
    ]
    least, *_, most = found.settle_seconds.values()
    lines.append(f"growth: {most / least:.1f} times{_verdict_at_most(most / least, GROWTH)}")
    for what, p99_ms in (("settled", found.settled_p99_ms), ("voided", found.voided_p99_ms)):
        lines.append(
            f"bets at another table while it is {what}: p99 {p99_ms:.1f} ms"
            + _verdict_at_most(p99_ms, OTHER_TABLE_MS)
        )
    return lines


def _history_shown(found: History, parts: Sequence[str]) -> list[str]:
    lines = [
        f"decided again by {count}: {per_s:,.0f} events/s"
        for count, per_s in found.redecide_per_s.items()
    ]
    if "verify_export_vs_hash" in parts:
        lines.append(f"an export is checked in {found.verify_vs_hash:.1f} times its hashing")
    if "capsule_seconds" in parts:
        lines.append(
            f"a capsule out of {found.events:,} events: {found.capsule_seconds:.2f} s"
            + _verdict_at_most(found.capsule_seconds, CAPSULE_S)
        )
    if "replay_rss_mib" in parts:
        lines.append(
            f"replay of {found.events:,} events: {found.replay_events_per_s:,.0f} events/s, "
            f"{found.replay_rss_mib:,.0f} MiB at most; {found.replay_rss_tenth_mib:,.0f} MiB after "
            "a tenth of it"
        )
    return lines


def _verdict_at_most(found: float, expected: float) -> str:
    reached = "reached" if found <= expected else "not reached"
    return f"  (expected at most {expected:,g}: {reached})"


def _verdict(found: float, expected: float) -> str:
    reached = "reached" if found >= expected else "not reached"
    return f"  (expected at least {expected:,g}: {reached})"
