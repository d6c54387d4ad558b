"""What processes attest, held against what each attested before. An unchanged one says nothing new.

That tables go by other rules is an operator's order that stands in the log itself: it is told, and
alarms nobody. Other code, settings or callers do.
"""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.message import Message

from sabot.audit.v1 import events_pb2 as audit
from sabot.log.v1 import events_pb2 as log

MAX_PROCESSES = 1000
"""Whose last attestation is known; those that attested longest ago are forgotten, and are new when
they come back."""
RULES = "rules"
"""The part that operators change by orders."""


def answer_attestation(known: dict[str, log.Attest], body: log.Attest) -> Sequence[Message]:
    """What there is to say of an attestation."""
    before = known.get(body.process)
    like = before if before is not None else _newest_of(known, body.service)
    changed = changes(like, body) if like is not None else []
    if before is not None and not changed:
        return ()
    if changed in ([], [RULES]):
        return [audit.AttestationTaken(attested=body, changed=changed)]
    return [audit.AttestationChanged(attested=body, changed=changed)]


def _newest_of(known: dict[str, log.Attest], service: str) -> log.Attest | None:
    """What a process of this service attested last. Where each start has another name, as pods of a
    Deployment have, a release shows as a new process that is made of something else."""
    return next((one for one in reversed(known.values()) if one.service == service), None)


def take_attestation(
    known: dict[str, log.Attest], body: audit.AttestationTaken | audit.AttestationChanged
) -> None:
    """Part of evolve."""
    known.pop(body.attested.process, None)
    known[body.attested.process] = body.attested
    if len(known) > MAX_PROCESSES:
        del known[next(iter(known))]


def changes(before: log.Attest, after: log.Attest) -> list[str]:
    """The names of the parts that differ, or that only one of them has."""
    one = {part.name: part.digest for part in before.parts}
    other = {part.name: part.digest for part in after.parts}
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
