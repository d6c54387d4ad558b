"""`sabot capsule make`: an incident as one file, with all that is needed to decide it again.

It holds the states of all cores just before, the entries from there to the end, and proofs that
they stand under a signed head. A partner's capsule holds no states and, of the entries, only those
that hold nothing of others; for the rest it has their chain hashes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from sabot.audit.v1 import events_pb2 as audit
from sabot.log.v1 import events_pb2 as logs
from sabot.table.v1 import events_pb2 as tables
from services.cli.capsule_file import Part, write_parts
from services.cli.cell_states import Progress, core_states, states_near
from services.cli.cores import CORES
from services.cli.find import event_json
from services.cli.incident_span import NothingToKeep, Span, Wanted, locate, parted
from services.cli.partner_view import may_see
from services.cli.proofs import Proof, first_seal_over, kept_tree, proof_of, tree_of
from services.cli.readable import readable_message
from services.cli.skim import SkimmedEntry, SkimReader
from services.cli.statements import Moves, Statement, accounts_in, ledger_of, statements
from services.cli.verify_export import ENTRY
from services.events import event_types
from services.kernel.build import BUILD
from services.kernel.entry import EventTypes, NotUnderstood, canonical_headers
from services.kernel.event import Event
from services.kernel.log import Log, LogMessage
from services.kernel.reader import LogBroken, LogReader, ReadEntry
from services.kernel.recovery import AnyReplica, Window, read_message
from services.kernel.replica import Replica
from services.kernel.snapshot import (
    Snapshot,
    StateCodec,
    decode_snapshot,
    digest,
    encode_snapshot,
    state_digest,
)

VERSION = 1
FOLDED_AT_ONCE = 5_000
"""Events that are folded while a capsule is made, so that it can tell the digests they come to:
some tenths of a second's work. Of more, whoever opens it computes them."""
NAMES = str(logs.RecordSnapshot.DESCRIPTOR.full_name)
"""The type of the inputs that name states."""


@cache
def _types() -> EventTypes:
    return event_types()


@dataclass(slots=True)
class Taken:
    """All cores just before an incident."""

    sequence: int
    head: bytes
    raw: dict[str, bytes]
    """By service, as `encode_snapshot` has it."""
    named: bool
    """Whether the log names their digests."""
    tables: dict[str, tables.TableOpened]
    """The rules in force, by table."""
    ledger: dict[str, int]
    """Every balance, by ledger account."""
    reader: LogReader


@dataclass(slots=True)
class Kept:
    """An entry with its chain hash."""

    message: LogMessage
    skimmed: SkimmedEntry

    @property
    def read(self) -> ReadEntry:
        """Its events are there where they have been decoded."""
        return self.skimmed.read


@dataclass(slots=True)
class Made:
    """What a capsule came to."""

    entries: int
    shown: int
    size: int
    sealed: bool
    rounds: list[str] = field(default_factory=list[str])


async def make_capsule(
    log: Log,
    wanted: Wanted,
    path: Path,
    data: Path | None = None,
    accepted: Mapping[int, bytes] | None = None,
    progress: Progress = lambda _done, _all, _events: None,
) -> Made:
    """Write a capsule. `data`: the folder of the log, for its snapshots and its tree.

    Raises RoundUnknown, NothingToKeep, LogBroken, LogUnavailable."""
    last = (await log.info(wait_s=5.0)).last_sequence
    span = await locate(log, wanted, last, data)
    taken = await _states_before(log, span.first, data, accepted, progress)
    kept = await _entries(log, taken, span, last, accepted)
    # Of what stands before and behind it, not everything is decoded.
    incident = parted([event for one in kept for event in one.read.events], span)[1]
    accounts = _accounts(incident, wanted)
    if wanted.partner:
        if not accounts:
            raise NothingToKeep(f"partner {wanted.partner} has no account in it")
        kept = _cut(taken, kept, span)
    told = statements(taken.ledger, incident, accounts)
    digests = {} if wanted.partner else _digests(taken, kept)
    seal = await first_seal_over(log, kept[-1].read.sequence, last)
    shown = [_is_shown(one, wanted.partner) for one in kept]
    proofs = await _proofs(log, data, seal, _run_ends(kept, shown), progress)
    rounds = rounds_in(incident, wanted.round_id)
    about = _about(log.cell, wanted, span, taken, kept, digests, rounds)
    parts = _parts(about, taken, kept, shown, seal, proofs, told, wanted.partner)
    size = write_parts(path, parts)
    return Made(len(kept), sum(shown), size, seal is not None, rounds)


def _cut(taken: Taken, kept: list[Kept], span: Span) -> list[Kept]:
    """The incident alone: without states nothing needs what stands before it."""
    for one in kept:
        if one.read.sequence < span.first:
            taken.head = one.read.head
    taken.named = False
    return [one for one in kept if span.first <= one.read.sequence <= span.last]


# ---- the states before -------------------------------------------------------------------------


async def _states_before(
    log: Log,
    first: int,
    data: Path | None,
    accepted: Mapping[int, bytes] | None,
    progress: Progress,
) -> Taken:
    """All cores just before an entry: as the newest snapshot that the log names has them, else
    folded."""
    near = await states_near(log, first, data, accepted, progress, ("table", "wallet"))
    reader, start = near.reader, near.snapshots
    if start is None:
        codec = StateCodec()
        raw = {
            one.core.service: encode_snapshot(
                codec,
                one.core,
                Snapshot(one.core.service, one.core.schema, reader.state, one.state),
            )
            for one in near.replicas
        }
    else:
        raw = dict(start.raw)
    states: dict[str, Any] = core_states(near.replicas)
    return Taken(
        reader.state.sequence,
        reader.state.head,
        raw,
        start is not None,
        tables_of(states["table"]),
        ledger_of(states["wallet"]),
        reader,
    )


def tables_of(state: Any) -> dict[str, tables.TableOpened]:
    """The rules in force, by table, of the table core's state."""
    return {
        table_id: tables.TableOpened(spec=one.spec, revision=one.revision)
        for table_id, one in state.tables.items()
    }


# ---- the entries -------------------------------------------------------------------------------


async def _entries(
    log: Log, taken: Taken, span: Span, last: int, accepted: Mapping[int, bytes] | None
) -> list[Kept]:
    """The entries behind the states up to the end of the span, and up to where the log names the
    states, if that is later. Of those before it, only what moves money or names states is decoded:
    there may be thousands. The ledger is brought up to the span."""
    types = _types()
    reader = SkimReader(log.cell, types, taken.reader.state, accepted)
    missing = {(name, digest(raw)) for name, raw in taken.raw.items()} if taken.named else set()
    kept: list[Kept] = []
    moves = Moves()
    messages = log.read(taken.sequence)
    try:
        async for batch in messages:
            for message in batch:
                reader.times = ()
                read = read_message(reader, message)
                times, behaviour = reader.times, reader.state.behaviour
                one = Kept(message, SkimmedEntry(read, message.payload, times, behaviour))
                kept.append(one)
                if read.sequence >= span.first:
                    one.skimmed.decode(types)
                try:
                    if read.sequence < span.first and read.service == "wallet":
                        moves.add_recorded(() if read.is_input else read.protos, types)
                    named = [types.decode(NAMES, e.body) for e in read.protos if e.type == NAMES]
                except NotUnderstood as error:
                    raise LogBroken(read.sequence, str(error)) from error
                missing -= set(named_in(named, taken.sequence, taken.head))
                if message.sequence >= last or (message.sequence >= span.last and not missing):
                    return kept
            await asyncio.sleep(0)
    finally:
        await messages.aclose()  # type: ignore[attr-defined]  # an async generator, by its contract
        moves.post(taken.ledger)
    return kept


def named_in(bodies: Iterable[Any], sequence: int, head: bytes) -> Iterator[tuple[str, bytes]]:
    """The states at a place that some events name: service and digest."""
    for body in bodies:
        if (
            isinstance(body, logs.RecordSnapshot)
            and body.sequence == sequence
            and body.head == head
        ):
            yield body.service, body.digest


def _digests(taken: Taken, kept: list[Kept]) -> dict[str, str]:
    """What the states come to at the end; empty where that takes too long."""
    if sum(len(one.read.protos) for one in kept) > FOLDED_AT_ONCE:
        return {}
    codec = StateCodec()
    found: dict[str, str] = {}
    for core in CORES:
        replica: AnyReplica = Replica(
            core, writer="capsule", state=_decoded(core, taken.raw[core.service])
        )
        window = Window([replica])
        for one in kept:
            one.skimmed.decode(_types())
            window.push(one.read, 0.0)
        window.drain(0.0)
        found[core.service] = state_digest(codec, core, replica.state.core)
    return found


def _decoded(core: Any, raw: bytes) -> Any:
    return decode_snapshot(StateCodec(), core, raw).replica


def _accounts(events: Sequence[Event], wanted: Wanted) -> list[tuple[str, str]]:
    """The accounts that an incident concerns."""
    concerned = [
        event
        for event in events
        if (not wanted.round_id or getattr(event.body, "round_id", "") == wanted.round_id)
        and (not wanted.table_id or getattr(event.body, "table_id", "") == wanted.table_id)
    ]
    found = accounts_in(concerned)
    return [one for one in found if wanted.partner in {"", one[0]}]


def rounds_in(events: Sequence[Event], round_id: str) -> list[str]:
    """The rounds that opened among some events; or the one that was asked for."""
    if round_id:
        return [round_id]
    return [event.body.round_id for event in events if isinstance(event.body, tables.RoundOpened)]


# ---- proofs ------------------------------------------------------------------------------------


def _is_shown(one: Kept, partner: str) -> bool:
    """Whether it is written whole. An entry without events is a copy, or one that nobody
    understood: its bytes may hold anything, so a partner is told its hash alone."""
    if not partner:
        return True
    events, types = one.read.events, _types()
    return bool(events) and all(may_see(partner, event, types) for event in events)


def _run_ends(kept: list[Kept], shown: list[bool]) -> list[Kept]:
    """Where what is shown without a gap ends: its chain hash stands for all before it."""
    return [
        one
        for place, one in enumerate(kept)
        if shown[place] and (place + 1 == len(kept) or not shown[place + 1])
    ]


async def _proofs(
    log: Log,
    data: Path | None,
    seal: audit.LogSealed | None,
    ends: list[Kept],
    progress: Progress,
) -> list[Proof]:
    if seal is None:
        return []
    with kept_tree(data, seal) as kept:
        nodes = kept or await tree_of(log, seal.size, lambda done: progress(done, seal.size, 0))
        return [proof_of(nodes, one.read.sequence, seal.size) for one in ends]


# ---- the file ----------------------------------------------------------------------------------


def _about(
    cell: str,
    wanted: Wanted,
    span: Span,
    taken: Taken,
    kept: list[Kept],
    digests: dict[str, str],
    rounds: list[str],
) -> dict[str, Any]:
    builds = sorted({proto.note.build for one in kept for proto in one.read.protos} - {""})
    return {
        "version": VERSION,
        "cell": cell,
        "made_by": BUILD,
        "round": wanted.round_id,
        "table": wanted.table_id,
        "partner": wanted.partner,
        "rounds": rounds,
        "incident": [span.first, span.last],
        "entries": [kept[0].read.sequence, kept[-1].read.sequence],
        "head_before": taken.head.hex(),
        "named": taken.named,
        "schemas": {core.service: core.schema for core in CORES},
        "behaviour": taken.reader.state.behaviour,
        "builds": builds,
        "digests": digests,
        "accepted": [one.read.sequence for one in kept if one.read.passed_over],
    }


def _parts(
    about: dict[str, Any],
    taken: Taken,
    kept: list[Kept],
    shown: list[bool],
    seal: audit.LogSealed | None,
    proofs: list[Proof],
    told: list[Statement],
    partner: str,
) -> Iterator[Part]:
    yield Part("about", as_json(about))
    if seal is not None:
        yield Part("seal", seal.SerializeToString(deterministic=True))
    for table_id, opened in taken.tables.items():
        yield Part(f"rules {table_id}", as_json(readable_message(opened)))
    if not partner:
        for service, raw in taken.raw.items():
            yield Part(f"state {service}", raw)
    for one, whole in zip(kept, shown, strict=True):
        if whole:
            yield Part(f"entry {one.read.sequence}", entry_bytes(one.message, one.read.head))
            continue
        yield Part(f"hash {one.read.sequence}", one.read.head)
        types = _types()
        visible = [event_json(each) for each in one.read.events if may_see(partner, each, types)]
        if visible:
            yield Part(f"told {one.read.sequence}", as_json(visible))
    for proof in proofs:
        yield Part(f"proof {proof.sequence}", b"".join(proof.path))
    for statement in told:
        yield Part(f"statement {statement.name}", as_json(statement.json()))


def entry_bytes(message: LogMessage, head: bytes) -> bytes:
    """An entry with its chain hash, as exports have it."""
    subject, headers = message.subject.encode(), canonical_headers(message.headers)
    lengths = (len(subject), len(headers), len(message.payload))
    return ENTRY.pack(message.sequence, *lengths) + subject + headers + message.payload + head


def as_json(what: Any) -> bytes:
    """JSON in one way only."""
    return json.dumps(what, ensure_ascii=False, sort_keys=True, indent=1).encode()
