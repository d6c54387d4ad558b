"""The count of a shoe that is over: the cards that were told while it was played, and those that
were burned face down or left over, once they have been scanned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from google.protobuf.message import Message

from sabot.shoe.v1 import floor_events_pb2 as floor
from services.games.cards import CARDS, is_card
from services.shoe.domain.refusing import refused
from services.shoe.domain.state import Shoe, ShoeState, Standing, stood_before


def answer_remaining(state: ShoeState, body: floor.RecordRemaining) -> list[Message]:
    """Say what is missing and what is too many. It is over with the last scan, or as soon as the
    shoe is whole; where it is over and not whole, that is a fault, and its packs must be inspected
    before they are used again. The order of refusals stands in `floor_orders.py`."""
    if body.table_id not in state.tables:
        return refused(body, floor.FLOOR_REFUSAL_UNKNOWN_TABLE)
    shoe = state.shoes.get(body.shoe_id)
    if shoe is None or shoe.table_id != body.table_id:
        over = shoe is None and stood_before(state, body.table_id, body.shoe_id)
        return refused(
            body, floor.FLOOR_REFUSAL_SHOE_OVER if over else floor.FLOOR_REFUSAL_UNKNOWN_SHOE
        )
    if shoe.floor is None:
        return refused(body, floor.FLOOR_REFUSAL_NOT_ON_FLOOR)
    if shoe.standing is not Standing.CLOSED:
        return refused(body, floor.FLOOR_REFUSAL_SHOE_RUNS)
    if not all(is_card(card) for card in body.cards):
        return refused(body, floor.FLOOR_REFUSAL_IMPOSSIBLE)
    counted = Counter(shoe.floor.counted or _told(shoe))
    counted.update(body.cards)
    missing = _each(shoe.decks, counted, missing=True)
    extra = _each(shoe.decks, counted, missing=False)
    complete = not missing and not extra
    census = floor.ShoeCensus(
        table_id=body.table_id,
        shoe_id=body.shoe_id,
        seen=counted.total(),
        missing=missing,
        extra=extra,
        complete=complete,
        over=complete or body.last,
    )
    if complete or not body.last:
        return [census]
    fault = floor.FloorFaultFound(
        table_id=body.table_id,
        shoe_id=body.shoe_id,
        fault=floor.FLOOR_FAULT_CENSUS,
        told=f"{len(missing)} missing, {len(extra)} too many",
        source=body.source,
        device=body.device,
    )
    inspected = [
        floor.ConsumableMoved(
            consumable_id=pack,
            kind=floor.CONSUMABLE_KIND_CARDS,
            movement=floor.MOVEMENT_REJECTED,
            shoe_id=body.shoe_id,
            reason=fault.told,
        )
        for pack in shoe.floor.packs
        if pack in state.consumables and state.consumables[pack].shoe_id == body.shoe_id
    ]
    return [census, fault, *inspected]


def note_census(state: ShoeState, body: floor.ShoeCensus) -> None:
    """Keep the count, or let go of the shoe. Part of evolve."""
    shoe = state.shoes.get(body.shoe_id)
    if shoe is None or shoe.floor is None:
        return
    if not body.over:
        lacking, beyond = Counter(body.missing), Counter(body.extra)
        shoe.floor.counted = {card: shoe.decks - lacking[card] + beyond[card] for card in CARDS}
        return
    del state.shoes[body.shoe_id]


def _told(shoe: Shoe) -> Counter[str]:
    """The cards that were told while the shoe was played."""
    return Counter(opened.card for opened in shoe.opened.values())


def _each(decks: int, counted: Mapping[str, int], *, missing: bool) -> list[str]:
    """The cards that are missing, or too many, each as often as it is."""
    found: list[str] = []
    for card in CARDS:
        lacking = decks - counted.get(card, 0)
        found.extend([card] * (lacking if missing else -lacking))
    return found
