"""What a table has shown of its shoe, and the kinds of bet that a round closes for it.

What a bet returns at the live composition is enumerated outside, since no core computes with such
numbers; what comes in is held against the table's line here (rules VIS-4, LIM-4).
"""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.message import Message

from sabot.log.v1 import events_pb2 as log
from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import risk_events_pb2 as risk
from services.table.domain.state import (
    Phase,
    Table,
    TableState,
    round_number,
    running_round,
)

PER_MILLE = 1000


# ---- the cards that everybody at the table has seen. Parts of evolve. ---------------------------
# Burned ones count as unseen, whoever knows them; a hole card is seen once it is turned over.


def note_shoe(one: Table, body: shoe.ShoeOpened) -> None:
    """Another shoe stands at the table."""
    one.shoe_cards = body.cards


def note_shown(one: Table, body: shoe.CardsBurned) -> None:
    """The first card of a virtual shoe is shown with its burn (rule BAC-2)."""
    one.seen.update((card.index, card.card) for card in body.opened[:1])


def note_first(one: Table, body: floor.FirstCardShown) -> None:
    """That of a shoe on the floor is shown before, and comes again with its burn."""
    if body.shoe_id == one.shoe_id:
        one.seen[0] = body.card


def note_dealt(one: Table, body: shoe.CardsDealt) -> None:
    """Cards lie open, but a hidden hole card."""
    if body.shoe_id == one.shoe_id:
        one.seen.update((card.index, card.card) for card in body.cards if card.card)


def note_correction(state: TableState, body: floor.CardCorrected) -> None:
    """A card was misread. One that is held for its call is not seen yet."""
    one = state.tables.get(body.table_id)
    if one is not None and body.shoe_id == one.shoe_id and body.index in one.seen:
        one.seen[body.index] = body.card


# ---- closing -----------------------------------------------------------------------------------


def decide_closing(state: TableState, body: risk.CloseBets) -> Sequence[Message]:
    """Close kinds of bet for a round.

    Order of reasons to ignore: an unknown table or round; a round that takes no bets any more, or
    has closed some before; kinds that are not offered, or whose return is not over the line."""
    one = state.tables.get(body.table_id)
    number = round_number(body.table_id, body.round_id)
    if one is None or not 1 <= number <= one.number:
        return (log.InputIgnored(reason=log.IGNORED_REASON_UNKNOWN),)
    running = one.running
    if running is None or running.number != number or running.phase is not Phase.BETTING:
        return (log.InputIgnored(reason=log.IGNORED_REASON_NOT_NOW),)
    if running.closed_bets:
        return (log.InputIgnored(reason=log.IGNORED_REASON_ALREADY_DONE),)
    if not body.bets or not all(_is_over(one, closing) for closing in body.bets):
        return (log.InputIgnored(reason=log.IGNORED_REASON_IMPOSSIBLE),)
    return (
        risk.BetsClosed(
            table_id=body.table_id,
            round_id=body.round_id,
            unseen_cards=body.unseen_cards,
            bets=body.bets,
            max_return_per_mille=one.spec.max_return_per_mille,
            ends_offer=body.ends_offer,
        ),
    )


def decide_offer(state: TableState, body: rules.InsuranceOffered) -> Sequence[Message]:
    """An offer of insurance that is closed for the round ends as it begins."""
    running = running_round(state, body.table_id, body.round_id)
    if running is None or running.turn is None or not running.turn.is_offer:
        return ()
    if not running.offer_closed:
        return ()
    return (table.InsuranceClosed(table_id=body.table_id, round_id=body.round_id),)


def _is_over(one: Table, closing: risk.LiveReturn) -> bool:
    """Whether a kind is offered and its return is over the table's line."""
    line = one.spec.max_return_per_mille
    numerator, _, denominator = closing.rtp.partition("/")
    if not line or closing.bet not in one.bets or not _is_whole(numerator, denominator):
        return False
    return int(numerator) * PER_MILLE > line * int(denominator) > 0


def _is_whole(*texts: str) -> bool:
    return all(text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS for text in texts)


MAX_DIGITS = 80
"""Of the parts of a fraction: blackjack's have 47 in a fresh shoe."""
