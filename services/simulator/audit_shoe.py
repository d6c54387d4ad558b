"""The auditor's check of the cards: what was committed to was dealt, in order and once; the results
follow from it (invariant 8).
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.table.v1 import events_pb2 as table
from services.simulator.facts import Fact, Findings, Place

PIPS = {rank: min(number, 10) % 10 for number, rank in enumerate("A23456789TJQK", start=1)}
COMMITMENT_BYTES = 32


@dataclass(slots=True)
class ShoeRecord:
    """A shoe that stands in the log."""

    commitments: bytes
    cards: int
    gone: int = 0
    """Cards that have left it."""
    opened: dict[int, str] = field(default_factory=dict)


class ShoeAuditor:
    """See the module."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.shoes: dict[str, ShoeRecord] = {}
        self.hands: defaultdict[str, dict[int, list[str]]] = defaultdict(
            lambda: {rules.HAND_PLAYER: [], rules.HAND_BANKER: []}
        )
        """By round and hand: the cards dealt."""
        self._inputs: dict[Place, shoe.SealShoe | shoe.OpenCards | shoe.RevealShoe] = {}

    def see(self, fact: Fact) -> None:
        """Take the next event."""
        body, place = fact.body, fact.place
        match body:
            case shoe.SealShoe() | shoe.OpenCards() | shoe.RevealShoe():
                self._inputs[place] = body
            case shoe.ShoeOpened():
                self._shoe_opened(fact, body)
            case shoe.CardsBurned():
                one = self.shoes[body.shoe_id]
                self._opened(fact, one, {card.index: card.card for card in body.opened})
                one.gone += body.face_down
            case shoe.CardsDealt():
                one = self.shoes[body.shoe_id]
                self._opened(fact, one, {card.index: card.card for card in body.cards})
                for card in body.cards:
                    self.hands[body.round_id][card.hand].append(card.card)
            case shoe.ShoeRevealed():
                self._revealed(fact, body)
            case table.ResultAccepted():
                self._result(place, body)
            case _:
                pass

    def _shoe_opened(self, fact: Fact, body: shoe.ShoeOpened) -> None:
        seal = self._inputs.get(fact.cause)
        if not isinstance(seal, shoe.SealShoe):
            self.findings.add(fact.place, f"shoe {body.shoe_id} opens without its seal")
            return
        self.findings.check(
            body.shoe_id not in self.shoes, fact.place, f"shoe {body.shoe_id} opens twice"
        )
        right = (
            seal.shoe_id == body.shoe_id
            and len(seal.commitments) == body.cards * COMMITMENT_BYTES
            and hashlib.sha256(seal.commitments).digest() == body.root
        )
        self.findings.check(right, fact.place, f"the root of {body.shoe_id} is not of its seal")
        self.shoes[body.shoe_id] = ShoeRecord(seal.commitments, body.cards)

    def _opened(self, fact: Fact, one: ShoeRecord, cards: dict[int, str]) -> None:
        """Cards leave the shoe in order, each once, as they were committed to."""
        told = self._inputs.get(fact.cause)
        salts = (
            {card.index: (card.card, card.salt) for card in told.cards}
            if isinstance(told, shoe.OpenCards)
            else {}
        )
        for index, card in cards.items():
            self.findings.check(
                index == one.gone and index not in one.opened,
                fact.place,
                f"card {index} of {fact.body.shoe_id} is opened, {one.gone} have left the shoe",
            )
            one.gone = index + 1
            one.opened[index] = card
            told_card, salt = salts.get(index, ("", b""))
            hashed = hashlib.sha256(
                salt + fact.body.shoe_id.encode() + index.to_bytes(4, "big") + card.encode()
            ).digest()
            at = index * COMMITMENT_BYTES
            self.findings.check(
                told_card == card and hashed == one.commitments[at : at + COMMITMENT_BYTES],
                fact.place,
                f"card {index} of {fact.body.shoe_id} is not the one committed to",
            )
        census = Counter(one.opened.values())
        self.findings.check(
            all(census[card] <= one.cards // 52 for card in cards.values()),
            fact.place,
            f"{fact.body.shoe_id} gave more of a card than it holds",
        )

    def _revealed(self, fact: Fact, body: shoe.ShoeRevealed) -> None:
        told = self._inputs.get(fact.cause)
        one = self.shoes[body.shoe_id]
        if not isinstance(told, shoe.RevealShoe):
            self.findings.add(fact.place, f"shoe {body.shoe_id} is revealed without its cards")
            return
        cards = {card.index: card.card for card in told.cards}
        census = Counter(cards.values())
        right = (
            len(cards) == one.cards
            and set(census.values()) == {one.cards // 52}
            and all(cards[index] == card for index, card in one.opened.items())
        )
        self.findings.check(right, fact.place, f"shoe {body.shoe_id} is not what was dealt")

    def _result(self, place: Place, body: table.ResultAccepted) -> None:
        """The result is that of the cards dealt to the round."""
        told, hands = body.result.baccarat, self.hands[body.round_id]
        player, banker = hands[rules.HAND_PLAYER], hands[rules.HAND_BANKER]
        totals = [sum(PIPS[card[0]] for card in hand) % 10 for hand in (player, banker)]
        winner = (
            rules.BACCARAT_WINNER_TIE
            if totals[0] == totals[1]
            else rules.BACCARAT_WINNER_PLAYER
            if totals[0] > totals[1]
            else rules.BACCARAT_WINNER_BANKER
        )
        right = (
            list(told.player_cards) == player
            and list(told.banker_cards) == banker
            and [told.player_total, told.banker_total] == totals
            and told.winner == winner
        )
        self.findings.check(right, place, f"the result of {body.round_id} is not that of its cards")
