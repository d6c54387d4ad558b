"""The hole card of blackjack on the floor: it is laid face down, looked at, and turned over (rules
BJ-2, BJ-4, BJ-5, VIS-3).

What it is, is told when it is turned over and never before: `RecordFaceDown` cannot say it, and a
`RecordCard` that could be of a card face down is refused by edges before anything of it is logged
(`may_lie_face_down`). An edge may know less than the log does, so at blackjack a card names its
round and its place in the shoe: from these alone it follows which places an edge cannot vouch for.
"""

from __future__ import annotations

from google.protobuf.message import Message

from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as floor
from services.games.blackjack import is_blackjack
from services.kernel.event import Event
from services.shoe.domain.floor_state import FloorShoe
from services.shoe.domain.refusing import contradiction, impossible_card, refused
from services.shoe.domain.state import Hole, Shoe, ShoeState, ShoeTable, given, standing_at

ALWAYS_OPEN = 3
"""The first cards of a deal that lie open whoever plays: with one seat the fourth is the hole card,
with more it comes later (rule BJ-2)."""


# ---- laid face down ----------------------------------------------------------------------------


def answer_laid(table: ShoeTable, shoe: Shoe, body: floor.RecordFaceDown) -> list[Message]:
    """A card lies face down where the next one is to. The order of refusals stands in
    `floor_orders.py`."""
    place = next_place(shoe)
    hole = shoe.hole
    if body.index < place:
        again = hole is not None and hole.index == body.index
        return refused(
            body,
            floor.FLOOR_REFUSAL_ALREADY_RECORDED if again else floor.FLOOR_REFUSAL_OUT_OF_ORDER,
        )
    if body.index > place:
        return refused(body, floor.FLOOR_REFUSAL_OUT_OF_ORDER)
    if body.index >= shoe.cards:
        return refused(body, floor.FLOOR_REFUSAL_SHOE_EMPTY)
    if not runs(table, body.round_id) or not awaits_hole(shoe):
        return refused(body, floor.FLOOR_REFUSAL_NOT_FACE_DOWN)
    return [_hole_dealt(body, body.index)]


def awaits_hole(shoe: Shoe) -> bool:
    """Whether the next card is the hole card."""
    return shoe.call is not None and shoe.call.hands[0] == rules.HAND_HOLE


def seats_may_act(shoe: Shoe, on_floor: FloorShoe) -> bool:
    """Whether, of a round of blackjack that is dealt, seats may still act: the dealer's second card
    is neither open nor called."""
    hole = shoe.hole
    return on_floor.dealers == 1 and (hole is None or hole.reveal_asked_by is None)


def next_place(shoe: Shoe) -> int:
    """The place of the card that comes out next: what is held has left the shoe too."""
    return shoe.gone + (0 if shoe.floor is None else len(shoe.floor.held))


def runs(table: ShoeTable, round_id: str) -> bool:
    """Whether a card was drawn for the round that runs."""
    return bool(table.round_id) and table.round_id == round_id and not table.voided


# ---- looked at ---------------------------------------------------------------------------------


def answer_peek(
    table: ShoeTable, shoe: Shoe, on_floor: FloorShoe, body: floor.RecordPeek
) -> list[Message]:
    """Say what a look told: the first stands, a second must agree. The order of refusals stands in
    `floor_orders.py`."""
    del on_floor
    hole = shoe.hole
    if hole is None or hole.round_id != body.round_id or not runs(table, body.round_id):
        return refused(body, floor.FLOOR_REFUSAL_LOOK_NOT_CALLED)
    if hole.looked_at is not None:
        if hole.blackjack == body.blackjack:
            return refused(body, floor.FLOOR_REFUSAL_ALREADY_RECORDED)
        return contradiction(body, _words(body.blackjack), _words(hole.blackjack), body.round_id)
    if hole.peek_asked_by is None:
        return refused(body, floor.FLOOR_REFUSAL_LOOK_NOT_CALLED)
    return [
        shoes.HoleChecked(
            table_id=body.table_id,
            shoe_id=body.shoe_id,
            round_id=body.round_id,
            blackjack=body.blackjack,
            source=body.source,
            device=body.device,
        )
    ]


def note_checked(state: ShoeState, event: Event, body: shoes.HoleChecked) -> None:
    """Keep what a look told. A look at a virtual shoe's card was kept as it came. Part of
    evolve."""
    _, shoe = standing_at(state, body.table_id)
    hole = None if shoe is None or shoe.shoe_id != body.shoe_id else shoe.hole
    if hole is not None and hole.round_id == body.round_id and hole.looked_at is None:
        hole.looked_at = event.cause
        hole.blackjack = body.blackjack


def _words(blackjack: bool) -> str:
    return "blackjack" if blackjack else "no blackjack"


# ---- turned over -------------------------------------------------------------------------------


def answer_turned_over(
    table: ShoeTable, shoe: Shoe, on_floor: FloorShoe, hole: Hole, body: floor.RecordCard
) -> list[Message]:
    """The hole card is named, as it was called: it must not contradict a look at it. Then what
    stands, stands, and the card may be told again."""
    if not runs(table, body.round_id) or hole.reveal_asked_by is None:
        return refused(body, floor.FLOOR_REFUSAL_FACE_DOWN)
    if given(shoe, body.card) >= shoe.decks:
        return impossible_card(body, body.card, body.round_id)
    up_card = hole.up_card if on_floor.up_at is None else shoe.opened[on_floor.up_at].card
    if hole.looked_at is not None and is_blackjack((up_card, body.card)) != hole.blackjack:
        return contradiction(body, body.card, _words(hole.blackjack), body.round_id)
    dealt = _hole_dealt(body, hole.index)
    dealt.cards[0].card = body.card
    return [dealt]


def _hole_dealt(body: floor.RecordFaceDown | floor.RecordCard, index: int) -> shoes.CardsDealt:
    return shoes.CardsDealt(
        table_id=body.table_id,
        shoe_id=body.shoe_id,
        round_id=body.round_id,
        cards=[shoes.DealtCard(index=index, hand=rules.HAND_HOLE)],
        source=body.source,
        device=body.device,
    )


# ---- before the log ----------------------------------------------------------------------------


def may_lie_face_down(state: ShoeState, body: floor.RecordCard) -> bool:
    """Whether a card that somebody is about to name lies face down, or may, as far as is known
    here. It errs on the safe side where less is known than the log says: then the same call may be
    made again."""
    table, shoe = standing_at(state, body.table_id)
    if table is None:
        return False  # Nothing can be dealt there yet.
    if shoe is None or shoe.floor is None or shoe.shoe_id != body.shoe_id:
        return table.seated and _is_later(table.shoe_id, body.shoe_id)
    if not body.HasField("index"):
        return False  # At blackjack it is refused for that.
    hole = shoe.hole
    if hole is not None and body.index == hole.index and not hole.opened:
        return hole.reveal_asked_by is None or body.round_id != hole.round_id
    if body.index < next_place(shoe):
        return body.index not in shoe.opened
    if not table.seated:
        return False
    if body.round_id != table.round_id:
        return _is_later(table.last_round_id, body.round_id)
    if hole is not None or table.voided or table.at_floor.resolved:
        return False  # There is no further card of it that is dealt face down.
    if shoe.call is None:
        # Before the deal is called; behind a deal without a hole card nothing lies face down.
        return shoe.floor.up_at is None and body.index - shoe.gone >= ALWAYS_OPEN
    place = body.index - shoe.gone  # What is held takes the first of the hands.
    return place < len(shoe.call.hands) and shoe.call.hands[place] == rules.HAND_HOLE


def _is_later(known: str, named: str) -> bool:
    """Whether an id is none that is known here to have come before: by its number, which is behind
    the last hyphen, a shoe's behind a letter."""
    first, then = (_number(one.rpartition("-")[2].removeprefix("s")) for one in (known, named))
    return then > first


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() else 0
