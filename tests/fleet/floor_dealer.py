"""A dealer and a scanner at a table of blackjack on the floor, in a small cell: packs become a
shoe, and cards are told as they are called."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message

from sabot.rules.v1 import rule_set_pb2
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import floor_events_pb2 as orders
from sabot.table.v1 import spec_pb2
from services.games import catalogue
from services.shoe.domain.events import ANSWERS
from services.shoe.domain.hole_on_floor import awaits_hole
from services.shoe.domain.state import Shoe
from tests.fleet.small_cell import DEALER, SUPERVISOR, SmallCell

SCANNER = "operator:scanner-1"
FACE_DOWN = "??"
"""Where a text of cards has this, the card is laid face down."""
CORRECTED = frozenset((floor.CardCorrected, floor.FloorRejected, table.OrderRejected))


def floor_spec(
    table_id: str, rule_set: rule_set_pb2.RuleSet | None = None, action_ms: int = 5_000
) -> spec_pb2.TableSpec:
    """A table of blackjack on the floor, in euro, whose betting an operator closes."""
    rule_set = rule_set or catalogue.blackjack()
    return spec_pb2.TableSpec(
        table_id=table_id,
        currency_code="EUR",
        rule_set=rule_set,
        limits=[
            spec_pb2.BetLimit(bet=offer.bet, min_minor=1, max_minor=100_000, step_minor=1)
            for offer in rule_set.bets
        ],
        pacing=spec_pb2.Pacing(action_ms=action_ms),
        origin=spec_pb2.OUTCOME_ORIGIN_FLOOR,
    )


class FloorDealer:
    """Tells a table's cards."""

    def __init__(self, cell: SmallCell, table_id: str) -> None:
        self.cell = cell
        self.table_id = table_id
        self.round_id = ""
        self.shoe_id = f"{table_id}-s1"

    @property
    def shoe(self) -> Shoe:
        """As the shoe's core has it."""
        found: Shoe = self.cell.process.state("shoe").shoes[self.shoe_id]
        return found

    async def open(self, spec: spec_pb2.TableSpec) -> None:
        """Open the table and fill its first shoe."""
        await self.cell.order(table.OpenTable(spec=spec, blackjack_on_floor=True), SUPERVISOR)
        packs = [f"{self.table_id}-pack-{number}" for number in range(1, 9)]
        for pack in packs:
            body = floor.RegisterConsumable(
                consumable_id=pack, kind=floor.CONSUMABLE_KIND_CARDS, decks=1
            )
            await self.tell(body, DEALER)
        loaded = floor.LoadShoe(table_id=self.table_id, number=1, decks=8, packs=packs)
        await self.tell(loaded, DEALER)

    async def open_round(self) -> str:
        """Open the next round."""
        self.round_id = await self.cell.open_round(self.table_id)
        return self.round_id

    async def close(self) -> None:
        """No more bets."""
        await self.cell.order(
            table.CloseBetting(
                table_id=self.table_id,
                round_id=self.round_id,
                source=table.SOURCE_OPERATOR,
                told_when_voided=True,
            )
        )

    async def tell(self, body: Any, actor: str = SCANNER) -> Message:
        """A dealer or a device tells; what it came to."""
        if "source" in body.DESCRIPTOR.fields_by_name:
            manual = actor == DEALER
            body.source = shoes.CARD_SOURCE_MANUAL if manual else shoes.CARD_SOURCE_DEVICE
            body.device = "" if manual else actor.removeprefix("operator:")
        return (await self.cell.submit("shoe", body, ANSWERS, actor)).event.body

    async def deal(self, cards: str, actor: str = SCANNER) -> None:
        """Tell cards, each once it is called."""
        for text in cards.split():
            await self.cell.until(lambda: self.shoe.call is not None, f"a card for {text}")
            told = await self.card(text, actor)
            if not isinstance(told, shoes.CardsDealt):
                raise TypeError(f"{text} is not dealt: {told}")

    async def card(self, text: str, actor: str = SCANNER, index: int | None = None) -> Message:
        """Tell a card that came out, called or not; what it came to."""
        shoe = self.shoe
        held = 0 if shoe.floor is None else len(shoe.floor.held)
        named: dict[str, Any] = {
            "table_id": self.table_id,
            "shoe_id": self.shoe_id,
            "round_id": self.round_id,
            "index": shoe.gone + held if index is None else index,
        }
        if text == FACE_DOWN:
            return await self.tell(floor.RecordFaceDown(**named), actor)
        return await self.tell(floor.RecordCard(**named, card=text), actor)

    async def look(self, blackjack: bool, actor: str = SCANNER) -> Message:
        """Look at the hole card, once that is called; what it came to."""

        def called() -> bool:
            return self.shoe.hole is not None and self.shoe.hole.peek_asked_by is not None

        await self.cell.until(called, "a look at the hole card")
        body = floor.RecordPeek(
            table_id=self.table_id,
            shoe_id=self.shoe_id,
            round_id=self.round_id,
            blackjack=blackjack,
        )
        return await self.tell(body, actor)

    async def turn_over(self, text: str, actor: str = SCANNER) -> Message:
        """Turn the hole card over, once that is called; what it came to."""

        def called() -> bool:
            return self.shoe.hole is not None and self.shoe.hole.reveal_asked_by is not None

        await self.cell.until(called, "the hole card is turned over")
        hole = self.shoe.hole
        return await self.card(text, actor, None if hole is None else hole.index)

    async def await_hole(self) -> None:
        """Wait until the next card is the hole card."""
        await self.cell.until(lambda: awaits_hole(self.shoe), "the hole card is called")

    async def suspend(self) -> None:
        """A round stands still, for something that was misread."""
        await self.cell.order(
            table.SuspendRound(
                table_id=self.table_id, round_id=self.round_id, reason=table.ROUND_REASON_MISREAD
            )
        )

    async def resume(self) -> Message:
        """A supervisor lets it go on; what it came to."""
        return await self.cell.order(
            table.ResumeRound(
                table_id=self.table_id, round_id=self.round_id, reason=table.ROUND_REASON_CLEARED
            ),
            SUPERVISOR,
        )

    async def void(self, reason: table.RoundReason.ValueType) -> Message:
        """A supervisor voids it."""
        body = table.VoidRound(table_id=self.table_id, round_id=self.round_id, reason=reason)
        return await self.cell.order(body, SUPERVISOR)

    async def correct(self, index: int, text: str) -> Message:
        """A supervisor says what a card is; wait until that has its effect."""
        body = orders.CorrectCard(
            table_id=self.table_id,
            round_id=self.round_id,
            index=index,
            card=text,
            reason=table.ROUND_REASON_MISREAD,
        )
        told = (await self.cell.submit("table", body, CORRECTED, SUPERVISOR)).event.body
        one = self.cell.process.state("table").tables[self.table_id]
        await self.cell.until(lambda: not one.running.at_floor.correcting, "rules say what follows")
        return told
