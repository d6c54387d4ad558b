"""What is known of shoes, wheels and dice from a log: the draws that a replay may give again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import assert_never

from google.protobuf.message import Message

from sabot.shoe.v1 import events_pb2 as shoes
from services.cli.skim import SkimReader, skim
from services.events import event_types
from services.games.blackjack import is_blackjack
from services.kernel.entry import position_proto
from services.kernel.log import Log
from services.shoe.domain.commitments import COMMITMENT_BYTES, SALT_BYTES, commitment
from services.shoe.domain.state import TossKind
from services.shoe.domain.wanted import (
    CardsWanted,
    LookWanted,
    RevealWanted,
    SealWanted,
    TossWanted,
    Wanted,
)

SALT = bytes(SALT_BYTES)
"""Of cards that are put in the place of others: nothing is hidden here."""


class CardUnknown(Exception):
    """A card is called that the log does not show."""


@dataclass(slots=True)
class Draws:
    """See the module. What is put in place of something counts first."""

    cards: dict[tuple[str, int], shoes.Card] = field(
        default_factory=dict[tuple[str, int], shoes.Card]
    )
    """By shoe and index, as they were opened."""
    looks: dict[tuple[str, int], bool] = field(default_factory=dict[tuple[str, int], bool])
    """What looks at hole cards told."""
    seals: dict[str, shoes.SealShoe] = field(default_factory=dict[str, shoes.SealShoe])
    """By shoe."""
    spins: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    """By round and attempt."""
    rolls: dict[tuple[str, int], tuple[int, ...]] = field(
        default_factory=dict[tuple[str, int], tuple[int, ...]]
    )

    def note(self, body: Message) -> None:
        """Take what an input of the log shows. The first draw stands."""
        match body:
            case shoes.OpenCards() | shoes.RevealShoe():
                for card in body.cards:
                    self.cards.setdefault((body.shoe_id, card.index), card)
            case shoes.CheckHole():
                self.looks.setdefault((body.shoe_id, body.index), body.blackjack)
            case shoes.SealShoe():
                self.seals.setdefault(body.shoe_id, body)
            case shoes.RecordSpin():
                self.spins.setdefault((body.round_id, body.attempt), body.number)
            case shoes.RecordDice():
                self.rolls.setdefault((body.round_id, body.attempt), tuple(body.dice))
            case _:
                pass

    def put(self, shoe_id: str, cards: Mapping[int, str]) -> None:
        """Let these cards stand in a shoe, by index, in place of those that do."""
        for index, card in cards.items():
            self.cards[shoe_id, index] = shoes.Card(index=index, card=card, salt=SALT)
        sealed = self.seals.get(shoe_id)
        if sealed is not None:
            again = shoes.SealShoe()
            again.CopyFrom(sealed)
            again.commitments = committed_to(sealed.commitments, shoe_id, cards)
            self.seals[shoe_id] = again

    def told(self, wish: Wanted) -> Message | None:
        """The input that answers a wish; None where nothing is known of it. Raises CardUnknown."""
        asked_by = position_proto(wish.asked_by)
        match wish:
            case SealWanted():
                sealed = self.seals.get(wish.shoe_id)
                if sealed is None:
                    return None
                again = shoes.SealShoe()
                again.CopyFrom(sealed)
                again.asked_by.CopyFrom(asked_by)
                return again
            case CardsWanted():
                indexes = range(wish.first, wish.first + wish.count)
                return shoes.OpenCards(
                    table_id=wish.table_id,
                    shoe_id=wish.shoe_id,
                    round_id=wish.round_id,
                    cards=[self._card(wish.shoe_id, index) for index in indexes],
                    source=shoes.CARD_SOURCE_VIRTUAL,
                    asked_by=asked_by,
                )
            case LookWanted():
                return shoes.CheckHole(
                    table_id=wish.table_id,
                    shoe_id=wish.shoe_id,
                    round_id=wish.round_id,
                    index=wish.index,
                    blackjack=self._look(wish),
                    source=shoes.CARD_SOURCE_VIRTUAL,
                    asked_by=asked_by,
                )
            case TossWanted():
                return self._toss(wish)
            case RevealWanted():
                return None
            case _:
                assert_never(wish)

    def _card(self, shoe_id: str, index: int) -> shoes.Card:
        known = self.cards.get((shoe_id, index))
        if known is None:
            raise CardUnknown(
                f"card #{index} of shoe {shoe_id} is called, and the log does not show it yet; "
                f"name it with --card {index}=CARD"
            )
        return known

    def _look(self, wish: LookWanted) -> bool:
        key = (wish.shoe_id, wish.index)
        if key in self.cards:
            return is_blackjack((wish.up_card, self.cards[key].card))
        if key in self.looks:
            return self.looks[key]
        return is_blackjack((wish.up_card, self._card(*key).card))

    def _toss(self, wish: TossWanted) -> Message | None:
        key = (wish.round_id, wish.attempt)
        asked_by = position_proto(wish.asked_by)
        if wish.kind is TossKind.SPIN:
            if key not in self.spins:
                return None
            return shoes.RecordSpin(
                table_id=wish.table_id,
                round_id=wish.round_id,
                attempt=wish.attempt,
                number=self.spins[key],
                source=shoes.CARD_SOURCE_VIRTUAL,
                asked_by=asked_by,
            )
        if key not in self.rolls:
            return None
        return shoes.RecordDice(
            table_id=wish.table_id,
            round_id=wish.round_id,
            attempt=wish.attempt,
            dice=self.rolls[key],
            source=shoes.CARD_SOURCE_VIRTUAL,
            asked_by=asked_by,
        )


def committed_to(commitments: bytes, shoe_id: str, cards: Mapping[int, str]) -> bytes:
    """The commitments of a shoe in which some cards are others."""
    raw = bytearray(commitments)
    for index, card in cards.items():
        at = index * COMMITMENT_BYTES
        if at + COMMITMENT_BYTES > len(raw):
            raise CardUnknown(
                f"shoe {shoe_id} has {len(raw) // COMMITMENT_BYTES} cards, no #{index}"
            )
        raw[at : at + COMMITMENT_BYTES] = commitment(SALT, shoe_id, index, card)
    return bytes(raw)


async def draws_of(log: Log, last: int, accepted: Mapping[int, bytes] | None = None) -> Draws:
    """Everything that a whole log shows. Raises LogBroken, LogUnavailable."""
    types = event_types()
    found = Draws()
    reader = SkimReader(log.cell, types, accepted=accepted)
    async for entries in skim(log, reader, last):
        for entry in entries:
            if entry.read.service == "shoe" and entry.read.is_input:
                for proto in entry.read.protos:
                    found.note(types.decode(proto.type, proto.body))
        await asyncio.sleep(0)
    return found
