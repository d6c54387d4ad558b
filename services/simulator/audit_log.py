"""The auditor's check of the log as such: who answered what, once, whole, in order, and when."""

from __future__ import annotations

from collections.abc import Sequence

from sabot.log.v1 import events_pb2 as logs
from sabot.table.v1 import events_pb2 as table
from services.simulator.facts import Fact, Findings, Place


def check_answers(facts: Sequence[Fact], findings: Findings, *, at_rest: bool) -> None:
    """Every input is answered once and whole by its service, no copy is, and nothing is answered
    twice (invariant 4)."""
    by_place = {fact.place: fact for fact in facts}
    log_times = _log_times(facts)
    answered: dict[tuple[str, Place], tuple[int, int]] = {}
    """By service and cause: how many answers, and in which entry."""
    last_cause: dict[str, Place] = {}
    for fact in facts:
        if fact.is_input:
            continue
        cause = by_place.get(fact.cause)
        if cause is None or fact.cause >= fact.place:
            findings.add(fact.place, f"answers {fact.cause}, which does not stand before it")
            continue
        name = type(fact.body).__name__
        findings.check(not cause.copy, fact.place, f"{name} answers a copy of an entry")
        count, entry = answered.get((fact.service, fact.cause), (0, fact.place[0]))
        findings.check(
            fact.rank == count and entry == fact.place[0],
            fact.place,
            f"{name} of {fact.service} is answer {fact.rank} to {fact.cause}, "
            f"which has {count} in entry {entry}",
        )
        answered[fact.service, fact.cause] = (count + 1, fact.place[0])
        findings.check(
            fact.cause >= last_cause.get(fact.service, (0, 0)),
            fact.place,
            f"{fact.service} answers {fact.cause} after {last_cause.get(fact.service)}",
        )
        last_cause[fact.service] = fact.cause
        about = [(cause.partner, cause.actor)]
        if isinstance(cause.body, logs.RetryInput):
            # An operator's retry is decided for whom the failed input was.
            again = by_place.get((cause.body.position.sequence, cause.body.position.index), cause)
            about.append((again.partner, again.actor))
        findings.check(
            fact.time_us == log_times[fact.cause] and (fact.partner, fact.actor) in about,
            fact.place,
            f"the header of {name} does not follow from its cause",
        )
    voided = {fact.body.round_id for fact in facts if isinstance(fact.body, table.RoundVoided)}
    for fact in facts if at_rest else ():
        if fact.is_input and not fact.copy and (fact.service, fact.place) not in answered:
            findings.add(fact.place, f"{type(fact.body).__name__} was never answered")
        elif isinstance(fact.body, logs.InputFailed):
            continue  # It goes on where its own service acts on failures: some do, some do not.
        elif not fact.continues:
            continue
        elif isinstance(fact.body, table.BetsWithdrawn) and fact.body.round_id in voided:
            # A void ends a close that has further steps; who called it is told, if somebody did.
            findings.check(
                not fact.body.close.request_id or (fact.service, fact.place) in answered,
                fact.place,
                "nobody is told that a close came to no end",
            )
        elif (fact.service, fact.place) not in answered:
            findings.add(fact.place, f"{type(fact.body).__name__} was to be gone on with")


def _log_times(facts: Sequence[Fact]) -> dict[Place, int]:
    times: dict[Place, int] = {}
    now = 0
    for fact in facts:
        if fact.is_input and not fact.copy:
            now = max(now, fact.time_us)
        times[fact.place] = now
    return times
