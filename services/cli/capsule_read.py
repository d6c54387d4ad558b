"""Capsules as they are read from their files: nothing is checked but that it can be read."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from sabot.audit.v1 import events_pb2 as audit
from services.audit.domain.tree import HASH_BYTES
from services.cli.capsule import VERSION
from services.cli.capsule_file import NotACapsule, read_parts
from services.cli.cores import CORES
from services.cli.proofs import Proof
from services.cli.verify_export import ENTRY
from services.kernel.log import LogMessage

SHOWN = {"behaviour": int, "builds": list, "digests": dict, "made_by": str, "named": bool}
"""What else a capsule says of itself, and is shown."""


class CapsuleRefused(Exception):
    """The capsule is whole and is not for this release, or not of the cell asked for."""


@dataclass(slots=True)
class Capsule:
    """A capsule as it stands in its file."""

    about: dict[str, Any]
    seal: audit.LogSealed | None = None
    states: dict[str, bytes] = field(default_factory=dict[str, bytes])
    rules: dict[str, bytes] = field(default_factory=dict[str, bytes])
    statements: dict[str, bytes] = field(default_factory=dict[str, bytes])
    messages: dict[int, LogMessage] = field(default_factory=dict[int, LogMessage])
    """The entries that are shown."""
    heads: dict[int, bytes] = field(default_factory=dict[int, bytes])
    """Chain hashes of all entries, in order, as the file has them."""
    told: dict[int, list[dict[str, Any]]] = field(default_factory=dict[int, list[dict[str, Any]]])
    """Events of entries that are not shown."""
    proofs: dict[int, Proof] = field(default_factory=dict[int, Proof])

    @property
    def accepted(self) -> dict[int, bytes]:
        """Entries that an operator of the cell had accepted although nobody could read them, each
        with the chain hash there: its maker says so."""
        return {one: self.heads[one] for one in self.about["accepted"] if one in self.heads}

    @property
    def partner(self) -> str:
        """Whose capsule it is; empty: everything is in it."""
        return str(self.about["partner"])


def read_capsule(path: Path) -> Capsule:
    """A capsule from its file. Raises NotACapsule, CapsuleRefused, OSError."""
    capsule: Capsule | None = None
    with path.open("rb") as file:
        for part in read_parts(file):
            try:
                if part.name == "about":
                    capsule = Capsule(_about(json.loads(part.body)))
                elif capsule is None:
                    raise NotACapsule("the file does not begin with what it is about")
                else:
                    _take(capsule, part.name, part.body)
            except (AttributeError, ValueError, KeyError, TypeError, DecodeError) as error:
                raise NotACapsule(f"the part {part.name!r} cannot be read: {error}") from error
    if capsule is None or not capsule.heads:
        raise NotACapsule("nothing is in it")
    return capsule


def _about(about: Any) -> dict[str, Any]:
    if about["version"] != VERSION:
        raise CapsuleRefused(
            f"the capsule has version {about['version']}, this release reads version {VERSION}"
        )
    schemas = {core.service: core.schema for core in CORES}
    if about["schemas"] != schemas:
        other = sorted(name for name in schemas if about["schemas"].get(name) != schemas[name])
        raise CapsuleRefused(
            f"the capsule was made by another release, {about['made_by']}: what {other[0]} keeps "
            f"has schema {about['schemas'].get(other[0])} there and {schemas[other[0]]} here"
        )
    for name in ("cell", "partner", "round", "table", "head_before"):
        if not isinstance(about[name], str):
            raise TypeError(f"{name} is no text")
    if not all(isinstance(about[name], list) for name in ("entries", "incident", "rounds")):
        raise TypeError("the entries are not told")
    for name, kind in SHOWN.items():
        if not isinstance(about[name], kind):
            raise TypeError(f"{name} is not told")
    if not all(isinstance(one, str) for one in about["builds"]):
        raise TypeError("the builds are no texts")
    accepted = about.get("accepted", [])
    if not (isinstance(accepted, list) and all(isinstance(one, int) for one in accepted)):
        raise TypeError("what was accepted is not told")
    return {**about, "accepted": accepted}


def _take(capsule: Capsule, name: str, body: bytes) -> None:
    kind, _, which = name.partition(" ")
    match kind:
        case "seal":
            capsule.seal = audit.LogSealed.FromString(body)
        case "state":
            capsule.states[which] = body
        case "rules":
            capsule.rules[which] = body
        case "statement":
            _check_statement(json.loads(body))
            capsule.statements[which] = body
        case "entry":
            message, head = _entry(body)
            capsule.messages[message.sequence] = message
            capsule.heads[message.sequence] = head
        case "hash":
            capsule.heads[int(which)] = body
        case "told":
            events = json.loads(body)
            for told in ("position", "time", "subject", "event"):
                if not all(isinstance(event[told], str) for event in events):
                    raise TypeError(f"{told} is not told")
            capsule.told[int(which)] = events
        case "proof":
            path = [body[at : at + HASH_BYTES] for at in range(0, len(body), HASH_BYTES)]
            capsule.proofs[int(which)] = Proof(int(which), tuple(path))
        case _:
            raise ValueError("nobody knows what it is")


def _check_statement(one: Any) -> None:
    """What it says is held against the entries later: it must be a statement to be shown."""
    for name in ("before", "after"):
        if not all(isinstance(minor, int) for minor in one[name].values()):
            raise TypeError(f"{name} holds no amounts")
    for line in one["lines"]:
        if not isinstance(line["minor"], int):
            raise TypeError("a line has no amount")
        if not (isinstance(line["position"], str) and isinstance(line["ledger_account"], str)):
            raise TypeError("a line does not say what it is of")
    if not (isinstance(one["partner"], str) and isinstance(one["account"], str)):
        raise TypeError("it says not whose it is")


def _entry(body: bytes) -> tuple[LogMessage, bytes]:
    if len(body) < ENTRY.size:
        raise ValueError("it is too short")
    sequence, *sizes = ENTRY.unpack_from(body)
    parts: list[bytes] = []
    at = ENTRY.size
    for size in (*sizes, HASH_BYTES):
        parts.append(body[at : at + size])
        at += size
    if at != len(body):
        raise ValueError("its lengths do not fit it")
    subject, headers, payload, head = parts
    lines = [line.partition(":") for line in headers.decode().splitlines()]
    named = {name: value for name, _, value in lines}
    return LogMessage(sequence, subject.decode(), named, payload), head
