"""`sabot capsule open`: checks a capsule and decides its entries again, on any machine.

In this order, and each fault is named by the part or entry at which it shows: every part is as it
was written; the entries are chained; proofs and seal hold; the states are those that the log names;
today's cores, from these states on, give the recorded answers and come to the digests that were
told; rules and statements are what states and entries say.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from google.protobuf.message import DecodeError

from sabot.settlement.v1 import events_pb2 as settlements
from services.cli.capsule import as_json, named_in, tables_of
from services.cli.capsule_file import NotACapsule
from services.cli.capsule_read import Capsule, CapsuleRefused
from services.cli.capsule_redecide import Redeciding
from services.cli.cores import CORES
from services.cli.find import event_lines
from services.cli.incident_span import Span, parted
from services.cli.playthrough import RoundUnknown, playthrough_from
from services.cli.proofs import proof_fault, seal_faults
from services.cli.readable import readable_message
from services.cli.statements import advanced, ledger_of, statements
from services.events import event_types
from services.kernel.entry import EventTypes, NotUnderstood, decode_entry, next_head, position_of
from services.kernel.event import Event
from services.kernel.log import LogMessage
from services.kernel.reader import LogBroken, LogReader
from services.kernel.replica import BehaviourUnknown
from services.kernel.snapshot import (
    Snapshot,
    SnapshotUnusable,
    StateCodec,
    decode_snapshot,
    digest,
)


@dataclass(slots=True)
class Opened:
    """What a capsule shows, and what is wrong with it."""

    capsule: Capsule
    faults: list[str] = field(default_factory=list[str])
    answers: int = 0
    """Recorded answers that were decided again."""
    differences: int = 0
    passed_over: list[int] = field(default_factory=list[int])
    """Entries that nobody can read, and that an operator of the cell had accepted."""
    digests: dict[str, str] = field(default_factory=dict[str, str])
    """By service, what the states come to at the end."""
    events: list[Event] = field(default_factory=list[Event])
    playthroughs: list[str] = field(default_factory=list[str])

    @property
    def right(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults


# ---- checking ----------------------------------------------------------------------------------


def open_capsule(
    capsule: Capsule, trusted: frozenset[bytes] = frozenset(), cell: str = ""
) -> Opened:
    """Check and decide again. `trusted`: public keys of which one must have signed the seal; empty:
    any, or none. `cell`: the only one that it may be of; empty: any.

    Raises CapsuleRefused, NotACapsule."""
    if cell and capsule.about["cell"] != cell:
        raise CapsuleRefused(f"the capsule is of cell {capsule.about['cell']}, not of {cell}")
    try:
        return _opened(capsule, trusted)
    except (ValueError, KeyError, TypeError, IndexError, DecodeError, NotUnderstood) as error:
        # Its digests hold, so somebody made it so.
        raise NotACapsule(f"its parts contradict one another: {error!r}") from error


def _opened(capsule: Capsule, trusted: frozenset[bytes]) -> Opened:
    found = Opened(capsule)
    _check_chain(found)
    _check_proofs(found, trusted)
    if found.faults:
        return found
    if capsule.partner:
        _show_partner(found)
    else:
        _decide_again(found)
    return found


def _check_chain(found: Opened) -> None:
    """The entries follow one another, and each one's bytes give its chain hash."""
    capsule = found.capsule
    head = bytes.fromhex(capsule.about["head_before"])
    first, last = capsule.about["entries"]
    expected = list(range(first, last + 1))
    if list(capsule.heads) != expected:
        odd = next((n for n, m in zip(capsule.heads, expected, strict=False) if n != m), last)
        found.faults.append(f"entry {odd}: entries {first} to {last} do not all stand in order")
        return
    for sequence, said in capsule.heads.items():
        message = capsule.messages.get(sequence)
        if message is not None:
            gives = next_head(head, sequence, message.subject, message.headers, message.payload)
            if gives != said:
                found.faults.append(f"entry {sequence}: its bytes do not give its chain hash")
                return
            found.faults += _answers_fault(capsule, message)
        head = said


def _answers_fault(capsule: Capsule, message: LogMessage) -> list[str]:
    """An entry of answers commits to the chain hash at what it answers."""
    if not message.subject.endswith(".out"):
        return []
    try:
        entry = decode_entry(message.payload)
    except NotUnderstood as error:
        told = f"entry {message.sequence}: {error}"
        return [] if message.sequence in capsule.accepted else [told]
    known = capsule.heads.get(entry.events[-1].cause.sequence)
    if known is None or known == entry.head:
        return []
    return [f"entry {message.sequence}: it answers another log than this"]


def _check_proofs(found: Opened, trusted: frozenset[bytes]) -> None:
    """Every stretch of shown entries ends with one that is proven to stand under the seal."""
    capsule, seal = found.capsule, found.capsule.seal
    if seal is None:
        if trusted:
            found.faults.append("it stands under no seal, so no trusted key vouches for it")
        return
    found.faults += seal_faults(capsule.about["cell"], seal, trusted)
    for proof in capsule.proofs.values():
        fault = proof_fault(proof, capsule.heads.get(proof.sequence, b""), seal)
        if fault:
            found.faults.append(fault)
    for sequence in capsule.messages:
        if sequence + 1 not in capsule.messages and sequence not in capsule.proofs:
            found.faults.append(f"entry {sequence}: no proof that it stands under the seal")


# ---- deciding again ----------------------------------------------------------------------------


def _decide_again(found: Opened) -> None:
    capsule = found.capsule
    snapshots = _snapshots(found)
    if found.faults:
        return
    state = next(iter(snapshots.values())).reader
    reader = LogReader(capsule.about["cell"], _types(), state, capsule.accepted)
    before = snapshots["table"].replica.core, snapshots["wallet"].replica.core
    opened, ledger = tables_of(before[0]), ledger_of(before[1])
    if not _check_rules(found, {name: readable_message(one) for name, one in opened.items()}):
        return
    redeciding = Redeciding({name: capsule.states[name] for name in snapshots}, found.faults)
    missing = {(name, digest(raw)) for name, raw in capsule.states.items()}
    sequence, head = reader.state.sequence, reader.state.head
    for message in capsule.messages.values():
        try:
            entry = reader.read(message.sequence, message.subject, message.headers, message.payload)
            found.events += entry.events
            missing -= set(named_in((event.body for event in entry.events), sequence, head))
            redeciding.take(entry)
        except LogBroken as broken:
            found.faults.append(str(broken))
            return
        except BehaviourUnknown as unknown:
            raise CapsuleRefused(str(unknown)) from unknown
    found.passed_over = reader.accepted_entries
    if capsule.about["named"] and missing:
        found.faults.append(f"state {min(missing)[0]}: the log does not name it")
    found.answers, found.differences = redeciding.answers, redeciding.differences
    found.digests = redeciding.digests()
    for service, told in capsule.about["digests"].items():
        if found.digests.get(service, told) != told:
            found.faults.append(f"state {service}: it comes to another digest than was told")
    _check_statements(found, ledger)
    for round_id in capsule.about["rounds"]:
        try:
            text = playthrough_from(found.events, round_id, ledger, opened).text()
        except RoundUnknown:
            found.faults.append(f"round {round_id} is not in it")
        else:
            found.playthroughs.append(text)


def _snapshots(found: Opened) -> dict[str, Snapshot]:
    """The states before; what is wrong with them is noted."""
    capsule = found.capsule
    first = capsule.about["entries"][0]
    head = bytes.fromhex(capsule.about["head_before"])
    snapshots: dict[str, Snapshot] = {}
    for core in CORES:
        try:
            one = decode_snapshot(StateCodec(), core, capsule.states.get(core.service, b""))
        except SnapshotUnusable as unusable:
            found.faults.append(f"state {core.service}: {unusable}")
            continue
        if one.sequence != first - 1 or one.reader.head != head:
            found.faults.append(f"state {core.service}: it is not of just before the entries")
        snapshots[core.service] = one
    return snapshots


def _check_rules(found: Opened, opened: Mapping[str, Any]) -> bool:
    said = found.capsule.rules
    wrong = [
        name
        for name in sorted(said.keys() | opened.keys())
        if name not in opened or said.get(name) != as_json(opened[name])
    ]
    found.faults += [f"rules {name}: not those of the table's state" for name in wrong]
    return not wrong


def _check_statements(found: Opened, ledger: Mapping[str, int]) -> None:
    said = found.capsule.statements
    whose = [(json.loads(one)["partner"], json.loads(one)["account"]) for one in said.values()]
    before, incident = parted(found.events, Span(*found.capsule.about["incident"]))
    for statement in statements(advanced(ledger, before), incident, whose):
        if said.get(statement.name) != as_json(statement.json()):
            found.faults.append(f"statement {statement.name}: not what states and entries say")


@cache
def _types() -> EventTypes:
    return event_types()


# ---- a partner's -------------------------------------------------------------------------------


def _show_partner(found: Opened) -> None:
    """What a partner's capsule shows: its events; log times are those that the entries tell."""
    capsule = found.capsule
    time_us = 0
    for message in capsule.messages.values():
        entry = decode_entry(message.payload)
        _, _, service, end = message.subject.split(".")
        for index, proto in enumerate(entry.events):
            time_us = max(time_us, proto.time_us)
            found.events.append(
                Event(
                    position_of(
                        type(proto.cause)(segment=1, sequence=message.sequence, index=index)
                    ),
                    service,
                    end == "in",
                    _types().decode(proto.type, proto.body),
                    None if end == "in" else position_of(proto.cause),
                    proto.partner,
                    proto.actor,
                    time_us,
                    1,
                    traceparent=proto.note.traceparent,
                )
            )
    _check_partner(found)
    for round_id in capsule.about["rounds"]:
        try:
            found.playthroughs.append(playthrough_from(found.events, round_id, None, {}).text())
        except RoundUnknown:
            shown = [one for one in found.events if getattr(one.body, "round_id", "") == round_id]
            found.playthroughs.append("\n".join([f"round {round_id}", *event_lines(shown)]) + "\n")


def _check_partner(found: Opened) -> None:
    """What can be checked without the states: that nothing shown is missing in the statements, and
    that bets were settled by the rules that are told."""
    said = {name: json.loads(raw) for name, raw in found.capsule.statements.items()}
    ours = [(one["partner"], one["account"]) for one in said.values()]
    for statement in statements({}, found.events, ours):
        known = {_movement(line) for line in said[statement.name]["lines"]}
        found.faults += [
            f"statement {statement.name}: what moved at {line['position']} is missing"
            for line in statement.lines
            if _movement(line) not in known
        ]
    for event in found.events:
        body = event.body
        if isinstance(body, settlements.BetsSettled):
            rules = json.loads(found.capsule.rules[body.table_id])
            if rules["spec"]["rule_set"]["hash"] != body.rule_set_hash.hex():
                found.faults.append(
                    f"rules {body.table_id}: not those by which {event.position} was settled"
                )


def _movement(line: Mapping[str, Any]) -> tuple[str, str, int]:
    return str(line["position"]), str(line["ledger_account"]), int(line["minor"])


# ---- told --------------------------------------------------------------------------------------


def verdict(found: Opened) -> str:
    """The line that sums it up."""
    if found.faults:
        return f"WRONG: {len(found.faults)} faults, the first: {found.faults[0]}"
    capsule = found.capsule
    first, last = capsule.about["entries"]
    seal = capsule.seal
    under = (
        f"under the seal of {seal.size} entries by key {seal.key_id}"
        if seal is not None
        else "under no seal: nothing but itself vouches for it"
    )
    if capsule.partner:
        hidden = len(capsule.heads) - len(capsule.messages)
        return (
            f"right: of entries {first} to {last} {len(capsule.messages)} are shown and {under}; "
            f"{hidden} hold what is others' and stand here by their hashes, so nothing was decided "
            f"again"
        )
    unread = len(found.passed_over)
    apart = f", {unread} entries that nobody can read were accepted" if unread else ""
    named = "that the log names" if capsule.about["named"] else "that its maker folded"
    return (
        f"right: entries {first} to {last} {under}; from states {named}, {found.answers} answers "
        f"re-decided, 0 differences{apart}"
    )


def lines(found: Opened) -> list[str]:
    """What a capsule shows, for people."""
    about = found.capsule.about
    what = f"round {about['round']}" if about["round"] else f"table {about['table']}"
    whose = f", for partner {about['partner']}" if about["partner"] else ""
    builds = ", ".join(about["builds"]) or "unknown builds"
    told = [f"capsule of {what}{whose}; cell {about['cell']}, behaviour {about['behaviour']}"]
    told += [f"made by {about['made_by']}; its entries were written by {builds}", ""]
    told += [line for text in found.playthroughs for line in (*text.splitlines(), "")]
    for name, raw in found.capsule.statements.items():
        one = json.loads(raw)
        for ledger_account, after in one["after"].items():
            before = one["before"].get(ledger_account, 0)
            told.append(f"statement {name}: {ledger_account} {before} -> {after}")
    if found.capsule.told:
        count = sum(len(events) for events in found.capsule.told.values())
        told.append(
            f"{count} events stand in entries that hold what is others': they are told here and "
            f"not proven"
        )
        told += [
            f"  {one['position']}  {one['time']}  {one['subject']}  {one['event']}"
            for events in found.capsule.told.values()
            for one in events
        ]
    told += [f"digest of {name}: {value}" for name, value in sorted(found.digests.items())]
    told += [
        f"entry {sequence}: nobody can read it; its cell's operator accepted that"
        for sequence in found.passed_over
    ]
    told += [f"fault: {fault}" for fault in found.faults]
    told.append(verdict(found))
    return told


def opened_json(found: Opened) -> dict[str, Any]:
    """For programs."""
    capsule = found.capsule
    return {
        "right": found.right,
        "verdict": verdict(found),
        "about": capsule.about,
        "faults": found.faults,
        "answers": found.answers,
        "differences": found.differences,
        "passed_over": found.passed_over,
        "digests": found.digests,
        "entries": len(capsule.heads),
        "shown": len(capsule.messages),
        "sealed": None
        if capsule.seal is None
        else {"size": capsule.seal.size, "key_id": capsule.seal.key_id},
        "statements": [json.loads(one) for one in capsule.statements.values()],
        "told": [event for events in capsule.told.values() for event in events],
        "playthroughs": found.playthroughs,
    }
