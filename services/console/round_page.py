"""A round's timeline: every event with its grounds, the table as it stood behind each, and proofs
that the entries stand under a signed head, which the browser itself checks."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sabot.audit.v1 import audit_service_pb2 as audits
from sabot.wallet.v1 import events_pb2 as wallets
from services.cli.describe import describe
from services.cli.inspect_state import PositionUnknown
from services.cli.moments import parse_position, place
from services.cli.playthrough import Playthrough, Shown, cards_of
from services.cli.readable import readable_message
from services.console.calls import Calls
from services.console.contested_shown import contests_by_position, contests_shown
from services.console.replayed import picture_at
from services.console.web import Refusal, Visit, live, page
from services.kernel.entry import canonical_headers
from services.kernel.event import Position
from services.kernel.log import LogMessage

PROOF_WORDS = ("none", "insecure", "unsealed", "unsigned", "right", "partly", "wrong")
"""What the page's script says of proofs."""
MOST_PROVEN = 400
"""Entries of a round that are proven at once; a round has about a hundred."""
LOOK_EVERY_S = 1.0
"""How often a round that runs is read again."""


@dataclass(slots=True)
class Row:
    """An event of the timeline."""

    number: int
    position: str
    sequence: int
    cause: str
    cause_number: int | None
    """Where its cause stands in the timeline."""
    time_us: int
    actor: str
    partner: str
    subject: str
    is_input: bool
    name: str
    details: str
    cards: list[str]
    moved: list[tuple[str, int, int]]
    """(ledger account, before, after), minor units."""
    trace: str
    body: Any
    contested: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """What the audit expected instead, account by account."""


def rows_of(
    found: Playthrough, contested: Mapping[str, list[dict[str, Any]]] | None = None
) -> list[Row]:
    """The timeline of a round. `contested`: by position, what the audit contests there."""
    places = {one.event.position: number for number, one in enumerate(found.shown)}
    rows = [_row(number, one, places) for number, one in enumerate(found.shown)]
    for row in rows:
        row.contested = (contested or {}).get(row.position, [])
    return rows


def _row(number: int, one: Shown, places: dict[Position, int]) -> Row:
    event = one.event
    parts = event.traceparent.split("-")
    return Row(
        number,
        str(event.position),
        event.position.sequence,
        str(event.cause) if event.cause else "",
        places.get(event.cause) if event.cause else None,
        event.time_us,
        event.actor,
        event.partner,
        f"{event.service}.{'in' if event.is_input else 'out'}",
        event.is_input,
        type(event.body).__name__,
        describe(event.body),
        cards_of(event.body),
        [
            (moved.posting.ledger_account, moved.before_minor, moved.after_minor)
            for moved in one.moved
        ],
        parts[1] if len(parts) == 4 else "",
        readable_message(event.body),
    )


def currency_of(found: Playthrough) -> str:
    """The currency of a round's amounts."""
    return found.governed_by.spec.currency_code if found.governed_by is not None else ""


async def show(visit: Visit) -> Response:
    """The page; `?at=POSITION` puts the scrubber there."""
    round_id = visit.path("round_id")
    found = await visit.desk.archive.playthrough(round_id)
    asked = visit.query("at")
    number = await _number_at(visit, found, asked) if asked else len(found.shown) - 1
    return visit.page("round.html", **(_facts(visit, found, round_id) | _picture(found, number)))


def _facts(visit: Visit, found: Playthrough, round_id: str) -> dict[str, Any]:
    note = visit.desk.archive.history.rounds.get(round_id)
    spec = found.governed_by.spec if found.governed_by is not None else None
    return {
        "round_id": round_id,
        "rows": rows_of(found, contests_by_position(visit, round_id)),
        "contested": contests_shown(visit, round_id),
        "paid": any(isinstance(one.event.body, wallets.RoundPaid) for one in found.shown),
        "currency": currency_of(found),
        "table_id": spec.table_id if spec is not None else "",
        "rule_set": (
            f"{spec.rule_set.rule_set_id} v{spec.rule_set.version}" if spec is not None else ""
        ),
        "rules_hash": spec.rule_set.hash.hex()[:16] if spec is not None else "",
        "proof_words": {key: visit.words(f"proof.{key}") for key in PROOF_WORDS},
        "runs": note is not None and not note.last,
        "corrected": note is not None and note.corrected,
    }


def _picture(found: Playthrough, number: int) -> dict[str, Any]:
    events = [one.event for one in found.shown]
    return {
        "number": number,
        "count": len(events),
        "picture": picture_at(events, number),
        "at": rows_of(found)[number],
        "currency": currency_of(found),
    }


async def _number_at(visit: Visit, found: Playthrough, asked: str) -> int:
    """The last event of a round that is no later than a position. Raises Refusal."""
    try:
        wanted = parse_position(asked)
    except ValueError:
        raise Refusal(400, "refused.position", position=asked[:40]) from None
    last = await visit.desk.archive.last_sequence()
    if wanted.sequence > last:
        raise PositionUnknown(f"the log ends at entry {last}, before {place(wanted)}")
    before = [n for n, one in enumerate(found.shown) if one.event.position <= wanted]
    if not before:
        raise Refusal(404, "refused.before_round", position=place(wanted))
    return before[-1]


async def at(visit: Visit) -> Response:
    """The table behind an event of the round, by its number from 0: what the scrubber asks for."""
    found = await visit.desk.archive.playthrough(visit.path("round_id"))
    asked = visit.query("n")
    number = int(asked) if asked.isascii() and asked.isdecimal() and len(asked) < 10 else -1
    if not 0 <= number < len(found.shown):
        raise Refusal(404, "refused.event", number=asked[:20], count=len(found.shown))
    return visit.page("part_picture.html", **_picture(found, number))


async def follow(visit: Visit) -> AsyncIterator[tuple[str, str]]:
    """A round that runs: its timeline grows."""
    round_id = visit.path("round_id")
    archive = visit.desk.archive
    known = contested = -1
    over = False
    while True:
        found = await archive.playthrough(round_id)
        facts = _facts(visit, found, round_id)
        contests = archive.history.contests.version
        if (len(found.shown), contests) != (known, contested):
            known, contested = len(found.shown), contests
            yield "contests", visit.render("part_contests.html", **facts)
            yield "timeline", visit.render("part_timeline.html", **facts)
            yield "scrubber", visit.render("part_scrubber.html", **facts, **_last(found))
            yield "picture", visit.render("part_picture.html", **_picture(found, known - 1))
        if not facts["runs"] and not over:
            over = True
            yield "over", ""
        # What is over may be contested or corrected yet; a stream that ends would be opened again.
        await asyncio.sleep(LOOK_EVERY_S)


def _last(found: Playthrough) -> dict[str, Any]:
    return {"number": len(found.shown) - 1, "count": len(found.shown)}


# ---- proofs ------------------------------------------------------------------------------------


async def proofs(visit: Visit) -> Response:
    """Everything that a browser needs to check that a round's entries stand under the newest signed
    head: the entries' bytes, audit paths, and the head with its signature."""
    found = await visit.desk.archive.playthrough(visit.path("round_id"))
    calls = visit.calls
    sealed: audits.GetSealResponse = await calls.ask(calls.audit.GetSeal, audits.GetSealRequest())
    seal = sealed.seal
    sequences = sorted({one.event.position.sequence for one in found.shown})[:MOST_PROVEN]
    covered = [sequence for sequence in sequences if sequence <= seal.size]
    messages, told = await asyncio.gather(
        visit.desk.archive.entries(covered), _paths(calls, covered, seal.size)
    )
    return JSONResponse(
        {
            "cell": visit.desk.archive.cell,
            "seal": {
                "size": seal.size,
                "root": seal.root.hex(),
                "head": seal.head.hex(),
                "signature": seal.signature.hex(),
                "public_key": seal.public_key.hex(),
                "key_id": seal.key_id,
            },
            "beyond": [sequence for sequence in sequences if sequence > seal.size],
            "entries": [
                _entry(messages[sequence], proof)
                for sequence, proof in zip(covered, told, strict=True)
            ],
        }
    )


async def _paths(
    calls: Calls, sequences: Sequence[int], size: int
) -> Sequence[audits.ProveEntryResponse]:
    if not sequences:
        return ()
    told: audits.ProveEntriesResponse = await calls.ask(
        calls.audit.ProveEntries, audits.ProveEntriesRequest(sequences=sequences, size=size)
    )
    return told.proofs


def _entry(message: LogMessage, proof: audits.ProveEntryResponse) -> dict[str, Any]:
    return {
        "sequence": message.sequence,
        "subject": message.subject,
        "headers": base64.b64encode(
            canonical_headers(message.headers) if message.headers else b""
        ).decode(),
        "payload": base64.b64encode(message.payload).decode(),
        "previous_head": proof.previous_head.hex(),
        "head": proof.head.hex(),
        "path": [node.hex() for node in proof.path],
    }


# ---- all rounds --------------------------------------------------------------------------------

ROUNDS_SHOWN = 200


async def index(visit: Visit) -> Response:
    """The newest rounds, of one table where that is asked for."""
    return visit.page("rounds.html", **_newest(visit))


def _newest(visit: Visit) -> dict[str, Any]:
    table_id = visit.query("table")
    history = visit.desk.archive.history
    found = [
        note
        for note in reversed(history.rounds.values())
        if not table_id or note.table_id == table_id
    ]
    return {
        "notes": found[:ROUNDS_SHOWN],
        "whole": len(found),
        "table_id": table_id,
        "tables": sorted({note.table_id for note in history.rounds.values()}),
    }


async def follow_index(visit: Visit) -> AsyncIterator[tuple[str, str]]:
    """The list as it grows."""
    last: list[tuple[str, int, bool]] = []
    while True:
        facts = _newest(visit)
        now = [(note.round_id, note.last, note.suspended) for note in facts["notes"]]
        if now != last:
            last = now
            yield "rounds", visit.render("part_rounds.html", **facts)
        await asyncio.sleep(LOOK_EVERY_S)


ROUTES = [
    Route("/rounds", page(index)),
    Route("/rounds/live", live(follow_index)),
    Route("/rounds/{round_id}", page(show, reads="rounds")),
    Route("/rounds/{round_id}/at", page(at, reads="rounds")),
    Route("/rounds/{round_id}/live", live(follow, reads="rounds")),
    Route("/rounds/{round_id}/proofs", page(proofs, reads="proofs")),
]
