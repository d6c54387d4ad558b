"""Audit's own core: which signed head of the log is the newest, whether recalled facts are what the
log says (see `facts.py`), what is significant (see `significant.py`), and which settlements are
contested (see `contested.py`). Snapshots and acceptances are inputs that the kernel notes; there is
nothing to decide about them.

A seal is believed for no more than its place in the log: whoever reads it checks its root, its
chain hash and its signature against the log itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import assert_never, cast

from google.protobuf.message import Message

from sabot.audit.v1 import contest_events_pb2 as contests
from sabot.audit.v1 import correction_events_pb2 as corrections
from sabot.audit.v1 import events_pb2 as audit
from sabot.audit.v1 import significant_events_pb2 as significant
from sabot.log.v1 import events_pb2 as log
from sabot.settlement.v1 import correction_events_pb2 as settlement
from sabot.settlement.v1 import events_pb2 as settlements
from services.audit.domain.attestations import answer_attestation, take_attestation
from services.audit.domain.contested import contest, keep
from services.audit.domain.facts import FactsAsked, answer_facts, asked_by
from services.audit.domain.significant import (
    Significance,
    add_settled,
    large_amounts,
    may_set,
    note_told,
    noted,
    noted_calls,
    set_thresholds,
)
from services.kernel.event import NEWEST_BEHAVIOUR, UNLOGGED, Answers, Core, Event, Position


@dataclass(slots=True)
class AuditState:
    """The newest seal."""

    seal: audit.LogSealed | None = None
    sealed_us: int = 0
    """Log time of it; 0: there is none."""
    position: Position = UNLOGGED
    """Where its input stands."""
    asked: dict[str, FactsAsked] = field(default_factory=dict[str, FactsAsked])
    """By correction: facts that are to be confirmed."""
    significance: Significance = field(default_factory=Significance)
    attested: dict[str, log.Attest] = field(default_factory=dict[str, log.Attest])
    """By process, what it attested last."""
    contested: dict[str, int] = field(default_factory=dict[str, int])
    """Settlements that are contested, by `contested.key_of`; since when, log time."""


Folded = (
    audit.SealLog
    | corrections.ConfirmFacts
    | settlement.FactsRecalled
    | settlements.BetsSettled
    | significant.SetThresholds
    | significant.NoteEvents
    | log.NoteCalls
    | log.Attest
    | contests.ContestSettlement
)
Answered = (
    audit.LogSealed
    | corrections.FactsConfirmed
    | corrections.FactsRefuted
    | significant.ThresholdsSet
    | significant.LargeAmountsFound
    | significant.EventsNoted
    | significant.ReadsNoted
    | audit.AttestationTaken
    | audit.AttestationChanged
    | contests.SettlementContested
    | log.InputIgnored
)
FOLDS: frozenset[type[Message]] = frozenset(Folded.__args__)
ANSWERS: frozenset[type[Message]] = frozenset(Answered.__args__)


def evolve(state: AuditState, event: Event) -> None:
    """Fold one event."""
    body = cast("Folded | Answered", event.body)
    match body:
        case audit.LogSealed():
            state.seal = body
            state.sealed_us = event.time_us
            state.position = event.cause or event.position
        case settlement.FactsRecalled():
            state.asked[body.correction_id] = asked_by(event, body)
        case corrections.FactsConfirmed() | corrections.FactsRefuted():
            state.asked.pop(body.correction_id, None)
        case settlements.BetsSettled():
            add_settled(state.significance, event, body)
        case significant.ThresholdsSet():
            set_thresholds(state.significance, body)
        case significant.LargeAmountsFound():
            note_told(state.significance, body)
        case audit.SealLog() | corrections.ConfirmFacts() | log.InputIgnored():
            pass
        case significant.SetThresholds() | significant.NoteEvents() | log.NoteCalls():
            pass
        case contests.SettlementContested():
            keep(state.contested, body, event.time_us)
        case contests.ContestSettlement():
            pass
        case significant.EventsNoted() | significant.ReadsNoted():
            pass
        case audit.AttestationTaken() | audit.AttestationChanged():
            take_attestation(state.attested, body)
        case log.Attest():
            pass
        case _:
            assert_never(body)


def decide(state: AuditState, event: Event) -> Answers:
    """Answer one event."""
    body = cast("Folded", event.body)
    match body:
        case settlement.FactsRecalled():
            return ()  # Audit's shell looks them up, and tells.
        case corrections.ConfirmFacts():
            return [answer_facts(state.asked.get(body.correction_id), body)]
        case audit.SealLog():
            return [_sealed(state, event, body)]
        case settlements.BetsSettled():
            large = large_amounts(state.significance, body)
            return [large] if large is not None else ()
        case significant.SetThresholds():
            if not may_set(state.significance, body):
                return [_ignored(log.IGNORED_REASON_IMPOSSIBLE)]
            return [significant.ThresholdsSet(thresholds=body.thresholds, reason=body.reason)]
        case significant.NoteEvents():
            return [noted(body)]
        case log.NoteCalls():
            return [noted_calls(body)]
        case log.Attest():
            return answer_attestation(state.attested, body)
        case contests.ContestSettlement():
            return [contest(state.contested, body)]
        case _:
            assert_never(body)


def _sealed(state: AuditState, event: Event, body: audit.SealLog) -> Message:
    """The answer to a seal.

    Order of reasons to ignore: an entry that is not there yet; a head older than the newest; the
    same once more, or one that contradicts it.
    """
    newest = state.seal
    if body.size < 1 or body.size >= event.position.sequence:
        return _ignored(log.IGNORED_REASON_IMPOSSIBLE)
    if newest is not None and body.size < newest.size:
        return _ignored(log.IGNORED_REASON_NOT_NOW)
    if newest is not None and body.size == newest.size:
        same = (body.root, body.head) == (newest.root, newest.head)
        reason = log.IGNORED_REASON_ALREADY_DONE if same else log.IGNORED_REASON_CONTRADICTS
        return _ignored(reason)
    return audit.LogSealed(
        size=body.size,
        root=body.root,
        head=body.head,
        signature=body.signature,
        key_id=body.key_id,
        public_key=body.public_key,
    )


def _ignored(reason: log.IgnoredReason.ValueType) -> log.InputIgnored:
    return log.InputIgnored(reason=reason)


CORE: Core[AuditState] = Core(
    service="audit",
    schema=6,
    behaviour=NEWEST_BEHAVIOUR,
    state_type=AuditState,
    initial=AuditState,
    evolve=evolve,
    decide=decide,
    folds=FOLDS,
    answers=ANSWERS,
    alarms={
        corrections.FactsRefuted: "facts_refuted",
        significant.LargeAmountsFound: "large_amounts",
        significant.EventsNoted: "events_noted",
        audit.AttestationChanged: "attestation_changed",
    },
)
"""The audit core."""
