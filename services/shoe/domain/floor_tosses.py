"""Spins and rolls that the floor tells (rules ROU-6, ROU-7).

One that comes before its call is held, and the call takes it; before every stake is certain it is
early, which is told, and the table stops the round. A dealer may declare that one does not count,
until it has its outcome.
"""

from __future__ import annotations

from google.protobuf.message import Message

from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as floor
from services.kernel.event import Event
from services.shoe.domain.refusing import contradiction, early, refused
from services.shoe.domain.state import (
    MAX_ENDED,
    Ended,
    ShoeState,
    ShoeTable,
    Toss,
    TossKind,
)
from services.shoe.domain.tosses import Recorded, came_to, invalid_by, is_possible, numbers_of

FIRST = 1
"""The attempt that may come before its call; a later one follows one that was called."""


def answer_told(state: ShoeState, event: Event, body: Recorded) -> list[Message]:
    """Say what a spin or a roll came to. The order of refusals stands in `floor_orders.py`."""
    table = state.tables.get(body.table_id)
    if table is None:
        return refused(body, floor.FLOOR_REFUSAL_UNKNOWN_TABLE)
    if not is_possible(body):
        return refused(body, floor.FLOOR_REFUSAL_IMPOSSIBLE)
    if not table.floor:
        return refused(body, floor.FLOOR_REFUSAL_NOT_ON_FLOOR)
    kind = TossKind.SPIN if isinstance(body, shoes.RecordSpin) else TossKind.ROLL
    ended = table.ended.get(body.round_id) if body.compared_when_over else None
    if ended is not None and table.tosses is kind and ended.attempt == body.attempt:
        return _once_more(body, list(ended.numbers))
    if table.tosses is not kind or table.round_id != body.round_id or table.voided:
        return refused(body, floor.FLOOR_REFUSAL_NOT_CALLED)
    at_floor, numbers = table.at_floor, numbers_of(body)
    if table.toss is None:
        if body.attempt != FIRST:
            return refused(body, floor.FLOOR_REFUSAL_NOT_CALLED)
        if at_floor.early is not None:
            return _once_more(body, list(at_floor.early.numbers))
        held = _held(body)
        if at_floor.sealed:
            return [held]
        return [early(body, _text(numbers), event.edge_us), held]
    toss = table.toss
    if toss.attempt != body.attempt or toss.invalid:
        return refused(body, floor.FLOOR_REFUSAL_NOT_CALLED)
    if toss.numbers:
        return _once_more(body, toss.numbers)
    answers: list[Message] = [came_to(body)]
    if 0 < body.device_time_us < at_floor.cut_off_us:
        answers.insert(0, early(body, _text(numbers), event.edge_us))
    return answers


def answer_no_spin(state: ShoeState, body: floor.DeclareNoSpin) -> list[Message]:
    """A spin or a roll that is called does not count; rules call it again."""
    table = state.tables.get(body.table_id)
    if table is None:
        return refused(body, floor.FLOOR_REFUSAL_UNKNOWN_TABLE)
    if not table.floor:
        return refused(body, floor.FLOOR_REFUSAL_NOT_ON_FLOOR)
    toss = _running(table, body.round_id)
    if toss is None or toss.attempt != body.attempt or toss.invalid:
        return refused(body, floor.FLOOR_REFUSAL_NOT_CALLED)
    if toss.numbers:
        return refused(body, floor.FLOOR_REFUSAL_OUTCOME_STANDS)
    return [
        shoes.SpinInvalidated(
            table_id=body.table_id,
            round_id=body.round_id,
            attempt=body.attempt,
            reason=shoes.INVALID_REASON_DECLARED,
        )
    ]


def answer_called(table: ShoeTable, event: Event) -> list[Message]:
    """A call takes the spin or the roll that is held for it; one that crossed the end of its round
    is none."""
    held, toss = table.at_floor.early, table.toss
    if held is None or toss is None or toss.asked_by != event.position:
        return []
    if toss.attempt != held.attempt:
        return []
    if held.invalid:
        return [
            shoes.SpinInvalidated(
                table_id=held.table_id,
                round_id=held.round_id,
                attempt=held.attempt,
                reason=held.invalid,
            )
        ]
    if toss.kind is TossKind.SPIN:
        return [
            shoes.WheelSpun(
                table_id=held.table_id,
                round_id=held.round_id,
                attempt=held.attempt,
                number=held.numbers[0],
                source=held.source,
                device=held.device,
            )
        ]
    return [
        shoes.DiceRolled(
            table_id=held.table_id,
            round_id=held.round_id,
            attempt=held.attempt,
            dice=held.numbers,
            source=held.source,
            device=held.device,
        )
    ]


def note_outcome(
    state: ShoeState, body: shoes.WheelSpun | shoes.DiceRolled | shoes.SpinInvalidated
) -> None:
    """Keep what a toss came to. Part of evolve."""
    table = state.tables.get(body.table_id)
    toss = None if table is None else _running(table, body.round_id)
    if toss is None or toss.attempt != body.attempt:
        return
    match body:
        case shoes.SpinInvalidated():
            toss.invalid = True
        case shoes.WheelSpun():
            toss.numbers = [body.number]
        case _:
            toss.numbers = list(body.dice)


def note_ended(table: ShoeTable) -> None:
    """The running round is over: what it was paid for is remembered for a while. Part of evolve."""
    toss = table.toss
    if toss is None or table.voided or not table.floor or not toss.numbers or toss.invalid:
        return
    table.ended[toss.round_id] = Ended(toss.attempt, tuple(toss.numbers))
    if len(table.ended) > MAX_ENDED:
        del table.ended[next(iter(table.ended))]


def _running(table: ShoeTable, round_id: str) -> Toss | None:
    """What the running round has called last."""
    toss = table.toss
    if toss is None or table.round_id != round_id or toss.round_id != round_id or table.voided:
        return None
    return toss


def _held(body: Recorded) -> floor.OutcomeHeld:
    held = floor.OutcomeHeld(
        table_id=body.table_id,
        round_id=body.round_id,
        attempt=body.attempt,
        numbers=numbers_of(body),
        source=body.source,
        device=body.device,
    )
    invalid = invalid_by(body)
    if invalid is not None:
        held.invalid = invalid
    return held


def _once_more(body: Recorded, known: list[int]) -> list[Message]:
    """A second reading, which must agree."""
    numbers = numbers_of(body)
    if numbers == known:
        return refused(body, floor.FLOOR_REFUSAL_ALREADY_RECORDED)
    return contradiction(body, _text(numbers), _text(known), body.round_id)


def _text(numbers: list[int]) -> str:
    return "-".join(map(str, numbers))
