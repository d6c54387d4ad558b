"""What truly lies on a simulated floor: the cards of each shoe, and the packs they come from.

A shoe's order is fixed when it is filled. Whoever draws from it tells the card that lies at the
next place; what the log then says of that place may be another card, if somebody misread it.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from sabot.shoe.v1 import events_pb2 as shoe
from sabot.shoe.v1 import floor_events_pb2 as floor
from services.games.cards import CARDS, pack
from services.simulator.world import Seen


@dataclass(slots=True)
class PhysicalShoe:
    """A shoe that was filled by hand."""

    shoe_id: str
    table_id: str
    decks: int
    cut_at: int
    """Cards in front of the cut card."""
    cards: list[str]
    """In dealing order."""
    forgetful: bool
    """Whether nobody enters its cut card, so that it runs out."""
    told: dict[int, str] = field(default_factory=dict)
    """What the log says of each card that was seen, by place."""
    rounds: dict[str, list[int]] = field(default_factory=dict)
    """By round: the places of the cards that were dealt to it or are held for it."""
    next: int = 0
    """The place of the card that comes out next, as the log has it."""
    cut_told: bool = False
    over: bool = False
    counted: bool = False
    impossible: Counter[int] = field(default_factory=Counter)
    """By place: how often the true card was said to be impossible."""

    def unseen(self) -> list[str]:
        """The cards that nobody has seen: burned face down, or left over."""
        return [card for place, card in enumerate(self.cards) if place not in self.told]

    def misread(self, round_id: str) -> list[tuple[int, str]]:
        """The cards of a round that the log has otherwise than they are: place and true card."""
        places = [place for place in self.rounds.get(round_id, ()) if place < len(self.cards)]
        return [
            (place, self.cards[place])
            for place in places
            if self.told.get(place, self.cards[place]) != self.cards[place]
        ]

    def spent(self) -> list[str]:
        """The cards of which the shoe has given all, by the log."""
        given = Counter(self.told.values())
        return [card for card in CARDS if given[card] >= self.decks]


@dataclass(slots=True)
class Pack:
    """Some decks, or a wheel or dice, as the log has them."""

    consumable_id: str
    kind: int
    decks: int
    table_id: str = ""
    """Where it is in use; empty: it is stored."""
    shoe_id: str = ""
    rejected: bool = False
    destroyed: bool = False


class Stock:
    """The shoes that stand or stood, and all consumables, followed in the log's answers."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.shoes: dict[str, PhysicalShoe] = {}
        self.packs: dict[str, Pack] = {}

    def see(self, seen: Seen) -> None:
        """Take an answer, as it is stored."""
        body: Any = seen.body
        match body:
            case shoe.ShoeOpened():
                if body.packs:
                    self._filled(body)
            case floor.ConsumableRegistered():
                name = body.consumable_id
                self.packs[name] = Pack(name, body.kind, body.decks)
            case floor.ConsumableMoved():
                self._moved(body)
            case (
                floor.FirstCardShown()
                | floor.OutcomeHeld()
                | floor.CardCorrected()
                | floor.ShoeCensus()
                | shoe.CardsDealt()
                | shoe.CardsBurned()
                | shoe.CutCardReached()
                | shoe.ShoeClosed()
            ):
                one = self.shoes.get(body.shoe_id)
                if one is not None:
                    _goes_on(one, body)
            case _:
                pass

    def _filled(self, body: shoe.ShoeOpened) -> None:
        decks = body.cards // len(CARDS)
        cards = list(pack(decks))
        self.rng.shuffle(cards)
        self.shoes[body.shoe_id] = PhysicalShoe(
            body.shoe_id,
            body.table_id,
            decks,
            body.cut_at,
            cards,
            forgetful=self.rng.random() < 0.3,
        )

    def _moved(self, body: floor.ConsumableMoved) -> None:
        one = self.packs[body.consumable_id]
        match body.movement:
            case floor.MOVEMENT_PUT_INTO_USE:
                one.table_id = body.table_id
                one.shoe_id = body.shoe_id or one.shoe_id
            case floor.MOVEMENT_INSPECTED:
                one.rejected = False
            case floor.MOVEMENT_DESTROYED:
                one.destroyed = True
            case _:
                one.table_id = ""
                one.rejected = one.rejected or body.movement == floor.MOVEMENT_REJECTED

    def standing(self, table_id: str) -> PhysicalShoe | None:
        """The shoe at a table that was filled by hand."""
        for one in reversed(self.shoes.values()):
            if one.table_id == table_id and not one.over:
                return one
        return None

    def usable(self, table_id: str) -> list[Pack]:
        """Packs of cards that may become a shoe of this table."""
        return [
            one
            for one in self.packs.values()
            if one.kind == floor.CONSUMABLE_KIND_CARDS
            and not (one.rejected or one.destroyed)
            and one.table_id in ("", table_id)
            and not self.deals(one)
        ]

    def deals(self, one: Pack) -> bool:
        """Whether a pack is in a shoe that is not over."""
        holds = self.shoes.get(one.shoe_id)
        return bool(one.table_id) and holds is not None and not holds.over


def _goes_on(one: PhysicalShoe, body: Any) -> None:
    """What the log says of a shoe."""
    match body:
        case floor.FirstCardShown():
            one.told[0] = body.card
            one.next = 1
        case floor.OutcomeHeld():
            one.told[body.index] = body.card
            one.rounds.setdefault(body.round_id, []).append(body.index)
            one.next = body.index + 1
        case shoe.CardsDealt():
            for card in body.cards:
                if card.card:  # A hole card lies face down.
                    one.told[card.index] = card.card
                places = one.rounds.setdefault(body.round_id, [])
                if card.index not in places:
                    places.append(card.index)
                one.next = max(one.next, card.index + 1)
        case shoe.CardsBurned():
            for burned in body.opened:
                one.told[burned.index] = burned.card
                one.next = max(one.next, burned.index + 1)
            one.next += body.face_down
        case floor.CardCorrected():
            one.told[body.index] = body.card
        case floor.ShoeCensus():
            one.counted = one.counted or body.over
        case shoe.CutCardReached():
            one.cut_told = True
        case _:
            one.over = True
