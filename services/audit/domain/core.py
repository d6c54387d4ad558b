"""Audit's own core. Snapshots, acceptances and (later) seals are inputs that the kernel notes;
there is nothing to decide about them yet, so its state is empty."""

from __future__ import annotations

from dataclasses import dataclass

from services.kernel.event import Answers, Core, Event


@dataclass(slots=True)
class AuditState:
    """Nothing yet."""


def evolve(state: AuditState, event: Event) -> None:
    """Fold one event: none concerns audit."""
    del state, event


def decide(state: AuditState, event: Event) -> Answers:
    """Answer one event: none concerns audit."""
    del state, event
    return []


CORE: Core[AuditState] = Core(
    service="audit",
    schema=1,
    behaviour=1,
    state_type=AuditState,
    initial=AuditState,
    evolve=evolve,
    decide=decide,
    folds=frozenset(),
    answers=frozenset(),
)
"""The audit core."""
