"""Wheels and dice: what came of a call for a spin or a roll (rules ROU-6, ROU-7).

One toss is called at a time. The first in the log stands: of drawn ones a later one is counted, of
told ones a later one must agree. What a dealer or a device tells by a call of its own has a request
id: see `floor_tosses.py`.
"""

from __future__ import annotations

from google.protobuf.message import Message

from sabot.log.v1 import events_pb2 as log
from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.table.v1 import spec_pb2
from services.games import roulette, sicbo
from services.kernel.event import Event
from services.shoe.domain.state import ShoeState, ShoeTable, Toss, TossKind

MIN_TURNS = 3
"""Of the ball around the wheel (rule ROU-6)."""

Recorded = shoes.RecordSpin | shoes.RecordDice


def note_call(state: ShoeState, event: Event, body: rules.SpinCalled | rules.RollCalled) -> None:
    """A running round calls a spin or a roll. Part of evolve."""
    table = state.tables.get(body.table_id)
    if table is None or table.round_id != body.round_id or table.voided:
        return  # The call crossed the end of its round.
    kind = TossKind.SPIN if isinstance(body, rules.SpinCalled) else TossKind.ROLL
    table.toss = Toss(kind, body.round_id, body.attempt, event.position)


def note_toss(state: ShoeState, event: Event, body: Recorded) -> None:
    """Keep the first toss that can be the called one. Part of evolve."""
    table = state.tables.get(body.table_id)
    if table is None or _fault(table, body) is not None:
        return
    toss = table.toss
    if toss is not None and not toss.numbers:
        toss.numbers = numbers_of(body)
        toss.tossed_at = event.position


def answer_toss(state: ShoeState, event: Event, body: Recorded) -> list[Message]:
    """Say what a toss came to.

    Order of reasons to ignore: unknown table; a number or dice that cannot be; a round, kind or
    attempt that is not called, or a voided round; a source that is not the table's; a second toss
    (drawn: counted; told: it agrees, or contradicts).
    """
    table = state.tables.get(body.table_id)
    if table is None:
        return _ignored(log.IGNORED_REASON_UNKNOWN)
    fault = _fault(table, body)
    if fault is not None:
        return _ignored(fault)
    toss = table.toss
    if toss is None:
        return _ignored(log.IGNORED_REASON_NOT_NOW)
    if toss.tossed_at != event.position:
        if body.source == shoes.CARD_SOURCE_VIRTUAL:
            return _ignored(log.IGNORED_REASON_SECOND_DRAW)
        same = toss.numbers == numbers_of(body)
        return _ignored(log.IGNORED_REASON_ALREADY_DONE if same else log.IGNORED_REASON_CONTRADICTS)
    return [came_to(body)]


def came_to(body: Recorded) -> Message:
    """What a toss that counts, or does not, means."""
    if isinstance(body, shoes.RecordDice):
        return shoes.DiceRolled(
            table_id=body.table_id,
            round_id=body.round_id,
            attempt=body.attempt,
            dice=body.dice,
            source=body.source,
            device=body.device,
        )
    invalid = invalid_by(body)
    if invalid is not None:
        return shoes.SpinInvalidated(
            table_id=body.table_id,
            round_id=body.round_id,
            attempt=body.attempt,
            reason=invalid,
        )
    return shoes.WheelSpun(
        table_id=body.table_id,
        round_id=body.round_id,
        attempt=body.attempt,
        number=body.number,
        source=body.source,
        device=body.device,
    )


def is_possible(body: Recorded) -> bool:
    """Whether there is such a number, or such dice."""
    if isinstance(body, shoes.RecordSpin):
        return body.number in roulette.NUMBERS
    return len(body.dice) == sicbo.DICE and all(die in sicbo.FACES for die in body.dice)


def _fault(table: ShoeTable, body: Recorded) -> log.IgnoredReason.ValueType | None:
    kind = TossKind.SPIN if isinstance(body, shoes.RecordSpin) else TossKind.ROLL
    if not is_possible(body):
        return log.IGNORED_REASON_IMPOSSIBLE
    toss = table.toss
    if (
        toss is None
        or (toss.kind, toss.round_id, toss.attempt) != (kind, body.round_id, body.attempt)
        or table.round_id != body.round_id
        or table.voided
    ):
        return log.IGNORED_REASON_NOT_NOW
    drawn = body.source == shoes.CARD_SOURCE_VIRTUAL
    if drawn is table.floor or body.source == shoes.CARD_SOURCE_UNSPECIFIED:
        return log.IGNORED_REASON_IMPOSSIBLE
    return None


def numbers_of(body: Recorded) -> list[int]:
    """What was tossed."""
    return [body.number] if isinstance(body, shoes.RecordSpin) else list(body.dice)


def invalid_by(body: Recorded) -> shoes.InvalidReason.ValueType | None:
    """Why a spin does not count (rule ROU-6); None: it does. A drawn number has made no turns, nor
    have dice."""
    if isinstance(body, shoes.RecordDice) or body.source == shoes.CARD_SOURCE_VIRTUAL:
        return None
    if body.direction == shoes.SPIN_DIRECTION_WITH:
        return shoes.INVALID_REASON_WRONG_DIRECTION
    if body.turns < MIN_TURNS:
        return shoes.INVALID_REASON_TOO_FEW_TURNS
    return None


def is_floor(spec: spec_pb2.TableSpec) -> bool:
    """Whether a table's outcomes are told from the floor."""
    return spec.origin == spec_pb2.OUTCOME_ORIGIN_FLOOR


def _ignored(reason: log.IgnoredReason.ValueType) -> list[Message]:
    return [log.InputIgnored(reason=reason)]
