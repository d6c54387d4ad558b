"""The auditor of a simulation: reads the final log from its beginning and checks the invariants of
docs/architecture.md, with a ledger of its own; then has the inputs decided again by fresh replicas.

Invariants 6 (projections) and 10 (power cuts) are not to be seen here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sabot.log.v1 import events_pb2 as logs
from services.kernel.entry import EventTypes
from services.kernel.log import LogMessage
from services.kernel.process import Process
from services.kernel.reader import LogBroken, LogReader
from services.kernel.replica import BehaviourUnknown, Diverged, Replica
from services.kernel.snapshot import StateCodec, state_digest
from services.simulator.asking import Acknowledged
from services.simulator.audit_blackjack import BlackjackAuditor
from services.simulator.audit_consumables import ConsumableAuditor
from services.simulator.audit_corrections import CorrectionsAuditor
from services.simulator.audit_floor import FloorAuditor
from services.simulator.audit_floor_cards import HandShoeAuditor
from services.simulator.audit_floor_tosses import FloorTossAuditor
from services.simulator.audit_limits import LimitsAuditor
from services.simulator.audit_log import check_answers
from services.simulator.audit_money import MoneyAuditor
from services.simulator.audit_partners import PartnersAuditor
from services.simulator.audit_protection import ProtectionAuditor
from services.simulator.audit_rounds import RoundsAuditor
from services.simulator.audit_shoe import ShoeAuditor
from services.simulator.audit_tosses import TossAuditor
from services.simulator.facts import Fact, Findings, decoded
from services.simulator.releases import Cores, PlantedBug

CODEC = StateCodec()


@dataclass(frozen=True, slots=True)
class Audited:
    """What the auditor counted, and what is wrong: `position: what`, in the order of the log."""

    events: int
    bets_settled: int
    answers_compared: int
    violations: list[str]
    reached: Counter[str]
    """The events and the ways of the floor that the log had."""


def audit(
    messages: Sequence[LogMessage],
    types: EventTypes,
    cores: Cores,
    *,
    cell: str,
    at_rest: bool,
    planted: Sequence[str],
    acknowledged: Sequence[Acknowledged],
    processes: Sequence[tuple[str, Process]],
    books: Mapping[tuple[str, str], int],
) -> Audited:
    """Check a log.

    - processes: those that still run, by name.
    - at_rest: whether everything came to its end; else what is still open is not counted as wrong.
    - planted: the services with a planted bug.
    - books: what (partner, account) has more by a seamless partner's own books, minor units.
    """
    findings = Findings()
    facts = decoded(messages, types, findings)
    end = (len(messages) + 1, 0)
    check_answers(facts, findings, at_rest=at_rest)
    money = MoneyAuditor(findings)
    corrected = CorrectionsAuditor(findings, money)
    partners = PartnersAuditor(findings)
    auditors = (
        ShoeAuditor(findings),
        TossAuditor(findings),
        BlackjackAuditor(findings),
        money,
        corrected,
        partners,
        LimitsAuditor(findings),
        ProtectionAuditor(findings),
        RoundsAuditor(findings),
        FloorAuditor(findings),
        HandShoeAuditor(findings),
        FloorTossAuditor(findings),
        ConsumableAuditor(findings),
    )
    _check_failures(facts, planted, findings)
    for fact in facts:
        if not fact.copy:
            findings.reach(f"event: {type(fact.body).DESCRIPTOR.full_name}")
            try:
                for one in auditors:
                    one.see(fact)
            except (KeyError, AttributeError, IndexError) as error:
                findings.add(fact.place, f"{type(fact.body).__name__} out of nowhere: {error!r}")
    if at_rest:
        money.finish(end)
        corrected.finish(end)
        partners.finish(end, books)
    _check_acknowledged(facts, acknowledged, findings)
    compared, digests, replayed = _replayed(messages, types, cores, cell, findings, at_rest=at_rest)
    if replayed is not None and at_rest:
        _check_balances(replayed, money, findings)
        for name, process in processes:
            _check_state(name, process, cores, digests, findings)
    return Audited(len(facts), money.settled_bets, compared, findings.lines(), findings.reached)


def _check_failures(facts: Sequence[Fact], planted: Sequence[str], findings: Findings) -> None:
    """No decision fails but by a planted bug, or by what such a bug left undone in its service."""
    for fact in facts:
        body = fact.body
        if isinstance(body, logs.InputFailed) and body.error != PlantedBug.__name__:
            findings.check(
                fact.service in planted,
                fact.place,
                f"{fact.service} cannot decide {body.input_type}: {body.error}",
            )


def _check_acknowledged(
    facts: Sequence[Fact], acknowledged: Sequence[Acknowledged], findings: Findings
) -> None:
    """What a caller was told stands in the log, and is about its request (invariant 2)."""
    by_place = {fact.place: fact for fact in facts}
    for told in acknowledged:
        place = (told.position.sequence, told.position.index)
        asked = by_place.get((told.input_position.sequence, told.input_position.index))
        fact = by_place.get(place)
        name = type(told.body).__name__
        if told.while_forked:
            findings.add(place, f"{name} was acknowledged on a log that had lost its tail")
        elif fact is None or fact.body != told.body or fact.is_input:
            findings.add(place, f"{name} was acknowledged, but does not stand here")
        elif asked is None or getattr(asked.body, "request_id", "") != told.request_id:
            findings.add(place, f"{name} was acknowledged for another request")


def _replayed(
    messages: Sequence[LogMessage],
    types: EventTypes,
    cores: Cores,
    cell: str,
    findings: Findings,
    *,
    at_rest: bool,
) -> tuple[int, dict[str, str], Mapping[str, Replica[Any]] | None]:
    """Decide everything again from the inputs (invariant 5): how many answers were compared, and
    the digests of the states at the end."""
    reader = LogReader(cell, types)
    replicas: dict[str, Replica[Any]] = {
        service: Replica(core, writer="auditor") for service, core in cores.items()
    }
    sequence = 0
    try:
        for message in messages:
            sequence = message.sequence
            entry = reader.read(*message)
            for replica in replicas.values():
                replica.read(entry, 0.0)
    except (Diverged, LogBroken, BehaviourUnknown) as error:
        findings.add((sequence, 0), f"replay: {error}")
        return 0, {}, None
    for service, replica in replicas.items():
        for pending in replica.state.pending if at_rest else ():
            findings.add(
                (len(messages) + 1, 0),
                f"replay: {service} still has to answer {pending.proto.cause.sequence}/"
                f"{pending.proto.cause.index} with {pending.proto.type}",
            )
    digests = {
        service: state_digest(CODEC, cores[service], replica.state.core)
        for service, replica in replicas.items()
    }
    return sum(one.answers_compared for one in replicas.values()), digests, replicas


def _check_balances(
    replicas: Mapping[str, Replica[Any]], money: MoneyAuditor, findings: Findings
) -> None:
    """The wallet's balances are those of the auditor's ledger, and all of them sum to zero."""
    state = replicas["wallet"].state.core
    total = sum(state.ledgers.values())
    end = (1 << 32, 0)
    for (partner, account_id), account in state.accounts.items():
        told = (account.available_minor, account.reserved_minor)
        own = (
            money.balances["cash", partner, account_id],
            money.balances["reserved", partner, account_id],
        )
        total += sum(told) - account.owed_minor
        owed = -money.balances["receivable", partner, account_id]
        findings.check(
            account.owed_minor == owed, end, f"{partner}/{account_id} owes {owed} by the log"
        )
        findings.check(told == own, end, f"{partner}/{account_id} has {told}, by the log {own}")
    findings.check(total == 0, end, f"all accounts sum to {total}")


def _check_state(
    name: str, process: Process, cores: Cores, digests: dict[str, str], findings: Findings
) -> None:
    """A live replica holds the state that follows from the log."""
    end = (1 << 32, 0)
    for service, core in cores.items():
        for kind, find in (("replica", process.replica), ("observer", process.observer)):
            try:
                replica = find(service)
            except KeyError:
                replica = None
            if replica is None:
                continue
            same = state_digest(CODEC, core, replica.state.core) == digests[service]
            findings.check(
                same, end, f"the {kind} of {service} on {name} has another state than a replay"
            )
