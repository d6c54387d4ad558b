"""`sabot drill`: a failure, brought about on purpose in a fleet of the drill's own, until the alert
that operators would be woken by holds; then it is repaired, and the log proves that nothing was
lost.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from services.cli.drill_failures import Drill
from services.cli.drill_rules import RULES, Rule, Vector, evaluate, read_rule
from services.cli.drill_stage import PATIENCE_S, SCRAPE_S, DrillFailed, Stage, staged, until

ROUNDS_AFTER = 2
"""Rounds that must be paid after the repair."""
QUIET_S = 5.0
"""For so long an alert must be over."""


@dataclass(slots=True)
class Seen:
    """How a drill went."""

    drill: Drill
    rule: Rule
    steps: list[str] = field(default_factory=list[str])
    alert_after_s: float = 0.0
    verified: str = ""
    right: bool = False


async def run_drill(
    drill: Drill,
    data: Path,
    rules: Path = RULES,
    *,
    whole: bool = True,
    say: Callable[[str], None] = print,
) -> Seen:
    """Run one in an empty folder. `whole`: the failure lasts until the alert has held for as long
    as its rule wants; else until its expression holds once.

    Raises DrillFailed, CannotEvaluate, and what a fleet's start raises."""
    rule = read_rule(rules, drill.alert)
    seen = Seen(drill, rule)

    def step(text: str) -> None:
        seen.steps.append(text)
        say(text)

    async with staged(data, drill.needs) as (stage, proof):
        await until(
            lambda: _all_play(stage, {}) and not _holds(rule, stage),
            f"no round was paid before the failure, or {rule.alert} holds without it",
        )
        step(f"{drill.name}: {drill.what}")
        began = time.monotonic()
        repair = await drill.begin(stage)
        try:
            await _alarmed(rule, stage, rule.for_s if whole else 0.0)
            seen.alert_after_s = time.monotonic() - began
            step(
                f"alert {rule.alert} {'fires' if whole else 'is pending'} after "
                f"{seen.alert_after_s:.0f} s; runbook {rule.runbook}"
            )
            if drill.goes_on:
                await _rounds(stage, 1, "while it lasts")
                step("meanwhile rounds are paid")
        finally:
            await repair()
        await _over(rule, stage)
        step(f"repaired: {ROUNDS_AFTER} more rounds are paid, {_is_over(rule)}")
    seen.verified, seen.right = proof[0].line(), proof[0].right
    step(seen.verified)
    return seen


def _holds(rule: Rule, stage: Stage, since: float = 0.0) -> Vector:
    """The series for which an alert's expression holds now. With `since`: what happened before
    stands as far back as the rule looks, so that only what came after counts."""
    samples = stage.samples
    if since:
        samples = samples.aged(rule.expression, since, rule.window_s)
    return evaluate(rule.expression, samples, time.monotonic())


def _all_play(stage: Stage, before: dict[str, int]) -> bool:
    """Whether a round is paid, and each partner's account has a bet on that it had not before."""
    on = stage.played.on
    return stage.played.paid >= 1 and all(on[name] > before.get(name, 0) for name in on)


async def _rounds(stage: Stage, count: int, when: str) -> None:
    wanted = stage.played.paid + count
    await until(lambda: stage.played.paid >= wanted, f"no {count} rounds were paid {when}")


async def _alarmed(rule: Rule, stage: Stage, for_s: float) -> None:
    """Wait until a rule's expression has held for so long."""
    end = time.monotonic() + PATIENCE_S + for_s
    since: float | None = None
    while since is None or time.monotonic() - since < for_s:
        now = time.monotonic()
        since = (since or now) if _holds(rule, stage) else None
        if now > end:
            raise DrillFailed(f"{rule.alert} did not hold: {' '.join(rule.expression.split())}")
        await asyncio.sleep(SCRAPE_S / 2)


async def _over(rule: Rule, stage: Stage) -> None:
    """Wait until the fleet has recovered: everybody bets, rounds are paid, nothing more is
    alarmed."""
    before = dict(stage.played.on)
    await _rounds(stage, ROUNDS_AFTER, "after the repair")
    await until(lambda: _all_play(stage, before), "a partner's bets are not on after the repair")
    recovered = time.monotonic()
    quiet_at = 0.0

    def quiet() -> bool:
        nonlocal quiet_at
        now = time.monotonic()
        quiet_at = 0.0 if _holds(rule, stage, recovered) else quiet_at or now
        return bool(quiet_at) and now - quiet_at >= QUIET_S

    await until(quiet, f"{rule.alert} holds on after the repair")


def _is_over(rule: Rule) -> str:
    if rule.window_s:
        return f"{rule.alert} is not raised again and ends within {rule.window_s / 60:.0f} min"
    return f"{rule.alert} is over"
