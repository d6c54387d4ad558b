"""The facts that the shoe's tests speak of: table `t1`, its shoes in any order wanted."""

from __future__ import annotations

from collections.abc import Sequence

from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import spec_pb2
from services.games.cards import pack
from services.games.catalogue import baccarat_1
from services.shoe.domain.commitments import commitment, root
from services.shoe.domain.core import CORE
from services.shoe.domain.state import ShoeState
from tests.unit.deciding import Deciding, Fact, by

T, S1, S2 = "t1", "t1-s1", "t1-s2"
PLAYER, BANKER = rules.HAND_PLAYER, rules.HAND_BANKER
FOUR = (PLAYER, BANKER, PLAYER, BANKER)

PACK = pack(8)


def order_with(*first: str) -> tuple[str, ...]:
    """A shoe that begins with these cards."""
    left = list(PACK)
    for card in first:
        left.remove(card)
    return (*first, *left)


SEVEN_FIRST = order_with("7H")


def salt(index: int) -> bytes:
    return index.to_bytes(16, "big")


def card(order: Sequence[str], index: int) -> shoe.Card:
    return shoe.Card(index=index, card=order[index], salt=salt(index))


def cards(order: Sequence[str], first: int, count: int) -> list[shoe.Card]:
    return [card(order, first + more) for more in range(count)]


def commitments(order: Sequence[str], shoe_id: str) -> bytes:
    return b"".join(commitment(salt(at), shoe_id, at, one) for at, one in enumerate(order))


def seal(
    order: Sequence[str] = SEVEN_FIRST, number: int = 1, sealed: bytes = b"sealed"
) -> shoe.SealShoe:
    shoe_id = f"{T}-s{number}"
    return shoe.SealShoe(
        table_id=T,
        shoe_id=shoe_id,
        number=number,
        decks=8,
        commitments=commitments(order, shoe_id),
        sealed_order=sealed,
        key_id="k1",
    )


def shoe_opened(
    order: Sequence[str] = SEVEN_FIRST, number: int = 1, cut_at: int = 409
) -> shoe.ShoeOpened:
    shoe_id = f"{T}-s{number}"
    return shoe.ShoeOpened(
        table_id=T,
        shoe_id=shoe_id,
        number=number,
        cards=416,
        cut_at=cut_at,
        root=root(commitments(order, shoe_id)),
    )


def opening(
    order: Sequence[str], first: int, count: int, round_id: str = "", shoe_id: str = S1
) -> shoe.OpenCards:
    return shoe.OpenCards(
        table_id=T,
        shoe_id=shoe_id,
        round_id=round_id,
        cards=cards(order, first, count),
        source=shoe.CARD_SOURCE_VIRTUAL,
    )


def dealt(
    order: Sequence[str], first: int, round_id: str, hands: Sequence[rules.Hand.ValueType] = FOUR
) -> shoe.CardsDealt:
    return shoe.CardsDealt(
        table_id=T,
        shoe_id=S1,
        round_id=round_id,
        cards=[
            shoe.DealtCard(index=first + more, card=order[first + more], hand=hand)
            for more, hand in enumerate(hands)
        ],
        source=shoe.CARD_SOURCE_VIRTUAL,
    )


def burned(
    order: Sequence[str],
    first: int,
    count: int,
    reason: shoe.BurnReason.ValueType,
    face_down: int = 0,
) -> shoe.CardsBurned:
    return shoe.CardsBurned(
        table_id=T,
        shoe_id=S1,
        opened=cards(order, first, count),
        face_down=face_down,
        reason=reason,
    )


def spec(cut_depth: int = 7, rounds_after_cut: int = 0) -> spec_pb2.TableSpec:
    return spec_pb2.TableSpec(
        table_id=T,
        currency_code="EUR",
        rule_set=baccarat_1(cut_depth=cut_depth, rounds_after_cut=rounds_after_cut),
    )


def table_opened(cut_depth: int = 7, rounds_after_cut: int = 0) -> Fact:
    body = table.TableOpened(spec=spec(cut_depth, rounds_after_cut), revision=1)
    return by(body, partner="")


def round_opened(number: int, shoe_id: str = S1) -> table.RoundOpened:
    return table.RoundOpened(table_id=T, round_id=f"{T}-{number}", number=number, shoe_id=shoe_id)


def called(
    number: int,
    hands: Sequence[rules.Hand.ValueType] = FOUR,
    before: int = 0,
    shoe_id: str = S1,
) -> rules.DrawCalled:
    return rules.DrawCalled(
        table_id=T, round_id=f"{T}-{number}", shoe_id=shoe_id, called_before=before, hands=hands
    )


def voided(number: int) -> table.RoundVoided:
    return table.RoundVoided(table_id=T, round_id=f"{T}-{number}")


def closed(number: int) -> table.RoundClosed:
    return table.RoundClosed(table_id=T, round_id=f"{T}-{number}")


def shoe_closed(next_number: int, shoe_id: str = S1) -> shoe.ShoeClosed:
    return shoe.ShoeClosed(table_id=T, shoe_id=shoe_id, next_number=next_number)


TABLE_CLOSED = table.TableClosed(table_id=T)


def ready(
    order: Sequence[str] = SEVEN_FIRST, cut_depth: int = 7, rounds_after_cut: int = 0
) -> Deciding[ShoeState]:
    """A shoe that deals; its next card is the one after the burned ones."""
    return Deciding(CORE, careful=False).given(
        table_opened(cut_depth, rounds_after_cut), seal(order), opening(order, 0, 1)
    )


def play(game: Deciding[ShoeState], number: int, order: Sequence[str], count: int = 4) -> None:
    """A whole round of four to six cards."""
    first = game.state.shoes[S1].gone
    game.given(
        round_opened(number),
        called(number),
        opening(order, first, 4, f"{T}-{number}"),
    )
    for more in range(4, count):
        game.given(
            called(number, (PLAYER,), before=more),
            opening(order, first + more, 1, f"{T}-{number}"),
        )
    game.when(closed(number))
