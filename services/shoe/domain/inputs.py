"""What custodians, scanners and dealers tell of shoes: checked against what was committed to.

Each of these inputs may come twice, late, or from two senders at once. The first in the log stands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import cast

from google.protobuf.message import Message

from sabot.log.v1 import events_pb2 as log
from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoes
from services.games.baccarat import burn_count, cut_at
from services.games.cards import CARDS_PER_DECK, is_card
from services.kernel.event import Event
from services.shoe.domain.commitments import COMMITMENT_BYTES, commitment, committed, root
from services.shoe.domain.hole import answer_turned, hidden_in
from services.shoe.domain.state import (
    OpenedCard,
    Shoe,
    ShoeState,
    ShoeTable,
    Standing,
    shoe_id_of,
    standing_at,
    stood_before,
)


def ignored(reason: log.IgnoredReason.ValueType) -> list[Message]:
    """The answer to an input without effect."""
    return [log.InputIgnored(reason=reason)]


# ---- a seal ------------------------------------------------------------------------------------


def note_seal(state: ShoeState, event: Event, body: shoes.SealShoe) -> None:
    """Keep the first good seal of the awaited shoe. Part of evolve."""
    table = state.tables.get(body.table_id)
    if table is not None and table.seal is None and _fault_of_seal(state, body) is None:
        table.seal = body
        table.sealed_at = event.position


def answer_seal(state: ShoeState, event: Event, body: shoes.SealShoe) -> list[Message]:
    """Open the shoe, if this seal is the first.

    Order of reasons: unknown table, a shoe that was drawn before, one that is not awaited, a seal
    that cannot be one.
    """
    fault = _fault_of_seal(state, body)
    if fault is not None:
        return ignored(fault)
    table = state.tables[body.table_id]
    if table.sealed_at != event.position:
        return ignored(log.IGNORED_REASON_SECOND_DRAW)
    cards = table.decks * CARDS_PER_DECK
    return [
        shoes.ShoeOpened(
            table_id=body.table_id,
            shoe_id=body.shoe_id,
            number=body.number,
            cards=cards,
            cut_at=cut_at(table.decks, table.cut_depth),
            root=root(body.commitments),
            ready=not table.burns,
        )
    ]


def _fault_of_seal(state: ShoeState, body: shoes.SealShoe) -> log.IgnoredReason.ValueType | None:
    table = state.tables.get(body.table_id)
    if table is None:
        return log.IGNORED_REASON_UNKNOWN
    if 1 <= body.number <= table.last_number:
        shoe = state.shoes.get(body.shoe_id)
        same = shoe is not None and shoe.commitments == body.commitments
        return log.IGNORED_REASON_ALREADY_DONE if same else log.IGNORED_REASON_SECOND_DRAW
    if table.floor or body.number != table.awaited_number or body.decks != table.decks:
        # The decks, and where shoes come from, differ where the table's rules changed since it was
        # asked for.
        return log.IGNORED_REASON_NOT_NOW
    if (
        body.shoe_id != shoe_id_of(body.table_id, body.number)
        or len(body.commitments) != table.decks * CARDS_PER_DECK * COMMITMENT_BYTES
        or not body.sealed_order
        or not body.key_id
    ):
        return log.IGNORED_REASON_IMPOSSIBLE
    return None


# ---- opened cards ------------------------------------------------------------------------------


def note_cards(state: ShoeState, body: shoes.OpenCards) -> None:
    """Keep the cards that match their commitments: whoever reads the log knows them from here on.
    Part of evolve."""
    shoe = state.shoes.get(body.shoe_id)
    if shoe is None or shoe.standing is Standing.CLOSED:
        return
    for card in body.cards:
        if card.index not in shoe.opened and _matches(shoe, card):
            shoe.opened[card.index] = OpenedCard(card.card, card.salt)


def answer_cards(state: ShoeState, body: shoes.OpenCards) -> list[Message]:
    """Say what became of opened cards: shown, dealt, or burned.

    Whatever is opened has left the shoe: what no running round has called is burned. Order of
    reasons to ignore: unknown shoe, one that is over, cards in no order, cards that contradict what
    was opened or committed to, more of a card than there are, cards that are out already.
    """
    table, current = standing_at(state, body.table_id)
    shoe = state.shoes.get(body.shoe_id)
    if table is None or shoe is None or shoe is not current:
        known = (shoe is not None and shoe.table_id == body.table_id) or stood_before(
            state, body.table_id, body.shoe_id
        )
        return ignored(log.IGNORED_REASON_NOT_NOW if known else log.IGNORED_REASON_UNKNOWN)
    fault = _fault_of_cards(shoe, body.cards)
    if fault is not None:
        return ignored(fault)
    first, end = body.cards[0].index, body.cards[-1].index + 1
    if shoe.standing is Standing.SEALED:
        if body.round_id or end != 1:
            return ignored(log.IGNORED_REASON_IMPOSSIBLE)
        return [
            shoes.CardsBurned(
                table_id=body.table_id,
                shoe_id=body.shoe_id,
                opened=body.cards,
                face_down=burn_count(body.cards[0].card),
                reason=shoes.BURN_REASON_SHOE_START,
            )
        ]
    turned = answer_turned(shoe, body)
    if turned is not None:
        return turned
    if end <= shoe.gone:
        return ignored(log.IGNORED_REASON_ALREADY_DONE)
    if first > shoe.gone:
        return ignored(log.IGNORED_REASON_IMPOSSIBLE)
    call = shoe.call
    if (
        call is not None
        and call.round_id == body.round_id
        and first == shoe.gone
        and end - first == len(call.hands) - hidden_in(call.hands)
    ):
        answers: list[Message] = [_dealt(body, call.hands)]
        end = first + len(call.hands)
    else:
        answers = [_burned(table, shoe, body)]
        if call is not None and end + len(call.hands) > shoe.cards:
            answers.append(_ran_out(body, call.round_id))
    if shoe.rounds_to_close is None and end > shoe.cut_at:
        answers.insert(1, _cut_card(table, shoe, body))
    return answers


def _fault_of_cards(shoe: Shoe, cards: Sequence[shoes.Card]) -> log.IgnoredReason.ValueType | None:
    if not cards or any(card.index != index for index, card in enumerate(cards, cards[0].index)):
        return log.IGNORED_REASON_IMPOSSIBLE
    for card in cards:
        known = shoe.opened.get(card.index)
        if known is None:
            return log.IGNORED_REASON_IMPOSSIBLE  # It did not match its commitment.
        if known.card != card.card or known.salt != card.salt:
            return log.IGNORED_REASON_CONTRADICTS
    census = Counter(opened.card for opened in shoe.opened.values())
    if any(census[card.card] > shoe.decks for card in cards):
        return log.IGNORED_REASON_IMPOSSIBLE
    return None


def _dealt(body: shoes.OpenCards, hands: Sequence[int]) -> shoes.CardsDealt:
    """A hole card at their end has left the shoe too: it is dealt, and named only when it is
    turned over."""
    dealt = shoes.CardsDealt(
        table_id=body.table_id,
        shoe_id=body.shoe_id,
        round_id=body.round_id,
        cards=[
            shoes.DealtCard(
                index=card.index, card=card.card, hand=cast("rules.Hand.ValueType", hand)
            )
            for card, hand in zip(body.cards, hands, strict=False)
        ],
        source=body.source,
    )
    if len(hands) > len(body.cards):
        dealt.cards.add(index=body.cards[-1].index + 1, hand=rules.HAND_HOLE)
    return dealt


def _burned(table: ShoeTable, shoe: Shoe, body: shoes.OpenCards) -> shoes.CardsBurned:
    runs = body.round_id == table.round_id and not table.voided
    return shoes.CardsBurned(
        table_id=body.table_id,
        shoe_id=body.shoe_id,
        opened=[card for card in body.cards if card.index >= shoe.gone],
        reason=shoes.BURN_REASON_NOT_CALLED if runs else shoes.BURN_REASON_ROUND_OVER,
    )


def _ran_out(body: shoes.OpenCards, round_id: str) -> shoes.ShoeRanOut:
    return shoes.ShoeRanOut(table_id=body.table_id, shoe_id=body.shoe_id, round_id=round_id)


def _cut_card(table: ShoeTable, shoe: Shoe, body: shoes.OpenCards) -> shoes.CutCardReached:
    """BAC-3: the round before or during which it comes out is the last. Burned between two rounds,
    it comes out before the next, which follows the one that the cards were opened for."""
    between = not table.round_id
    return shoes.CutCardReached(
        table_id=body.table_id,
        shoe_id=body.shoe_id,
        round_id=body.round_id if between else table.round_id,
        rounds_left=shoe.rounds_after_cut + between,
    )


# ---- the whole shoe ----------------------------------------------------------------------------


def answer_reveal(state: ShoeState, body: shoes.RevealShoe) -> list[Message]:
    """Hold a whole shoe to its commitments and to a complete pack.

    Order of reasons: unknown shoe, one laid open before, one that still deals, a card that does not
    fit.
    """
    shoe = state.shoes.get(body.shoe_id)
    if shoe is None or shoe.table_id != body.table_id:
        done = shoe is None and stood_before(state, body.table_id, body.shoe_id)
        return ignored(log.IGNORED_REASON_ALREADY_DONE if done else log.IGNORED_REASON_UNKNOWN)
    if shoe.standing is not Standing.CLOSED:
        return ignored(log.IGNORED_REASON_NOT_NOW)
    fits = len(body.cards) == shoe.cards and all(
        card.index == index and _matches(shoe, card) for index, card in enumerate(body.cards)
    )
    census = Counter(card.card for card in body.cards)
    if not fits or any(count != shoe.decks for count in census.values()):
        return ignored(log.IGNORED_REASON_IMPOSSIBLE)
    for index, opened in shoe.opened.items():
        if body.cards[index].card != opened.card:
            return ignored(log.IGNORED_REASON_CONTRADICTS)
    return [shoes.ShoeRevealed(table_id=body.table_id, shoe_id=body.shoe_id)]


def _matches(shoe: Shoe, card: shoes.Card) -> bool:
    return (
        card.index < shoe.cards
        and is_card(card.card)
        and commitment(card.salt, shoe.shoe_id, card.index, card.card)
        == committed(shoe.commitments, card.index)
    )
