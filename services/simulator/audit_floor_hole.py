"""The auditor's check of hole cards on the floor: laid face down when that is called, looked at and
turned over when that is, and never told before."""

from __future__ import annotations

from typing import Any

from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.shoe.v1 import floor_events_pb2 as floor
from services.simulator.audit_floor_model import CardRound, HandShoe
from services.simulator.audit_judge import twenty_one
from services.simulator.facts import Fact, Findings


class HoleAuditor:
    """See the module."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings

    def see(self, fact: Fact, running: CardRound, told: Any) -> None:
        """What rules call of it, and what a look told."""
        body: Any = fact.body
        match body:
            case rules.HoleCalled() if body.purpose == rules.HOLE_PURPOSE_PEEK:
                running.to_look = fact.place
            case rules.HoleCalled():
                running.to_turn = fact.place
            case shoe.HoleChecked() if isinstance(told, floor.RecordPeek):
                self.findings.check(
                    running.looked is None
                    and running.hole is not None
                    and running.to_look < fact.cause
                    and (told.blackjack, told.source, told.device)
                    == (body.blackjack, body.source, body.device),
                    fact.place,
                    f"a look at the hole card of {body.round_id} that was not called",
                )
                running.looked = body.blackjack
                self.findings.reach("hole card on the floor looked at")
            case _:
                pass

    def dealt(self, fact: Fact, one: HandShoe, running: CardRound, told: Any) -> None:
        """It is laid face down, and named when it is turned over."""
        body: Any = fact.body
        [card] = body.cards
        named = (told.table_id, told.shoe_id, told.round_id, told.index, told.source, told.device)
        same = named == (
            body.table_id, body.shoe_id, body.round_id, card.index, body.source, body.device,
        )  # fmt: skip
        if not card.card:
            hands = running.awaited(fact.cause)
            self.findings.check(
                isinstance(told, floor.RecordFaceDown)
                and same
                and not one.held
                and card.index == one.gone
                and bool(hands)
                and hands.pop(0) == rules.HAND_HOLE,
                fact.place,
                f"card {card.index} of {one.shoe_id} lies face down that is no hole card",
            )
            one.gone = card.index + 1
            running.hole = card.index
            self.findings.reach("hole card laid face down")
            return
        self.findings.check(
            isinstance(told, floor.RecordCard)
            and same
            and told.card == card.card
            and card.index == running.hole
            and running.to_turn < fact.cause
            and _fits(one, running, card.card),
            fact.place,
            f"the hole card {card.index} of {one.shoe_id} is turned over before its time, or is "
            f"not what the look told: {running.looked}",
        )
        one.known[card.index] = card.card
        running.hole = None
        self.findings.check(
            one.given(card.card) <= one.decks,
            fact.place,
            f"{one.shoe_id} gives {card.card} as the hole card once too often",
        )
        self.findings.reach("hole card on the floor turned over")

    def contradicts(
        self, fact: Fact, one: HandShoe, running: CardRound | None, told: floor.RecordCard
    ) -> bool:
        """Whether a fault is about a hole card that does not fit the look at it; if it is, it must
        not fit."""
        body: Any = fact.body
        looked = {"blackjack": True, "no blackjack": False}.get(body.told_before)
        if looked is None:
            return False
        self.findings.check(
            running is not None
            and told.index == running.hole
            and looked is running.looked
            and not _fits(one, running, told.card),
            fact.place,
            f"{told.card} fits the look that told of {body.told_before}, and is a fault",
        )
        self.findings.reach("hole card contradicts the look")
        return True


def _fits(one: HandShoe, running: CardRound, card: str) -> bool:
    """Whether a hole card is what the look at it told."""
    up = min(place for place, hand in running.cards.items() if hand == rules.HAND_DEALER)
    makes = twenty_one((one.known[up], card)) == 21
    return running.looked in (None, makes)
