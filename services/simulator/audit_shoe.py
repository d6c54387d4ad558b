"""The auditor's check of the cards: what was committed to was dealt, in order and once; shoes begin
and end as the rules say; the results follow from the cards (invariant 8).
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.table.v1 import events_pb2 as table
from services.simulator.audit_judge import twenty_one
from services.simulator.audit_results import burned_after, result_of
from services.simulator.facts import Fact, Findings, Place

COMMITMENT_BYTES = 32


@dataclass(slots=True)
class ShoeRecord:
    """A shoe that stands in the log."""

    commitments: bytes
    cards: int
    rule_set: rule_set_pb2.RuleSet
    """The rules in force when it was set up: they say how it begins and ends."""
    gone: int = 0
    """Cards that have left it."""
    opened: dict[int, str] = field(default_factory=dict)
    hidden: dict[int, str] = field(default_factory=dict)
    """Hole cards that are not turned over, by index: of which round."""
    looked: dict[int, tuple[str, bool]] = field(default_factory=dict)
    """What was told of hole cards: whether they make a blackjack with the dealer's open card."""
    cut: Place | None = None
    """Where the cut card came out."""
    cut_told: bool = False
    ran_out: bool = False
    last_rounds: list[str] = field(default_factory=list)
    """Rounds whose first card came behind the cut card."""
    spare: int = 0
    """A round more that may follow, where the cut card came out of cards that were burned."""


class ShoeAuditor:
    """See the module."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.shoes: dict[str, ShoeRecord] = {}
        self.dealt: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        """By round: hand and card, in dealing order; hole cards as they are turned over."""
        self._inputs: dict[Place, Any] = {}
        self._specs: defaultdict[str, list[tuple[Place, table.TableOpened]]] = defaultdict(list)
        self._rules: dict[str, rule_set_pb2.RuleSet] = {}
        """By round."""
        self._to_be_turned: set[str] = set()
        """Rounds whose hole card was called."""
        self._by_hand: set[str] = set()
        """Shoes on the floor, which have an auditor of their own, and rounds dealt from them."""
        self._closed_at: defaultdict[str, list[Place]] = defaultdict(list)
        """By table."""

    def see(self, fact: Fact) -> None:
        """Take the next event."""
        body, place = fact.body, fact.place
        of_shoe = not isinstance(body, table.RoundOpened)  # Which names its shoe.
        if of_shoe and getattr(body, "shoe_id", "") in self._by_hand:
            if isinstance(body, shoe.CardsDealt):
                self._by_hand.add(body.round_id)
            return
        match body:
            case shoe.SealShoe() | shoe.OpenCards() | shoe.RevealShoe() | shoe.CheckHole():
                self._inputs[place] = body
                if isinstance(body, shoe.OpenCards):
                    self._told(fact, body)
            case rules.HoleCalled():
                if body.purpose == rules.HOLE_PURPOSE_REVEAL:
                    self._to_be_turned.add(body.round_id)
            case table.TableOpened():
                self._specs[body.spec.table_id].append((place, body))
            case table.TableClosed():
                self._closed_at[body.table_id].append(place)
            case table.RoundOpened():
                self._rules[body.round_id] = self._in_force(body.table_id, place, body.revision)
            case shoe.ShoeOpened():
                self._shoe_opened(fact, body)
            case shoe.CardsBurned():
                self._burned(fact, body)
            case shoe.CardsDealt():
                self._dealt(fact, body)
            case shoe.HoleChecked():
                self._looked(fact, body)
            case shoe.CutCardReached():
                self._cut_card(fact, body)
            case shoe.ShoeRanOut():
                self.shoes[body.shoe_id].ran_out = True
            case shoe.ShoeClosed():
                self._closed(fact, body)
            case shoe.ShoeRevealed():
                self._revealed(fact, body)
            case table.ResultAccepted():
                self._result(place, body)
            case _:
                pass

    def _in_force(self, table_id: str, at: Place, revision: int = 0) -> rule_set_pb2.RuleSet:
        """The rules of a table, by their revision or as they stood at a place."""
        for place, opened in reversed(self._specs[table_id]):
            if opened.revision == revision or (not revision and place < at):
                return opened.spec.rule_set
        raise KeyError(table_id)

    # ---- a shoe begins -------------------------------------------------------------------------

    def _shoe_opened(self, fact: Fact, body: shoe.ShoeOpened) -> None:
        if body.packs:
            self._by_hand.add(body.shoe_id)
            return
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
        rule_set = self._in_force(body.table_id, fact.cause)
        told = (body.cards, body.cut_at, body.ready)
        own = (
            52 * rule_set.decks,
            52 * rule_set.decks - rule_set.cut_depth,
            rule_set.game != rule_set_pb2.GAME_BACCARAT,
        )
        self.findings.check(
            told == own, fact.place, f"shoe {body.shoe_id} stands as {told}, by its rules as {own}"
        )
        self.shoes[body.shoe_id] = ShoeRecord(seal.commitments, body.cards, rule_set)

    def _told(self, fact: Fact, body: shoe.OpenCards) -> None:
        """Nobody is told a hole card before it is turned over (rule VIS-3)."""
        one = self.shoes.get(body.shoe_id)
        for card in body.cards if one is not None else ():
            hidden = one.hidden.get(card.index) if one is not None else None
            self.findings.check(
                hidden is None or hidden in self._to_be_turned,
                fact.place,
                f"hole card {card.index} of {body.shoe_id} is told before it is turned over",
            )

    # ---- cards leave it ------------------------------------------------------------------------

    def _opened(self, fact: Fact, one: ShoeRecord, cards: dict[int, str]) -> None:
        """Cards leave the shoe in order, each once, as they were committed to."""
        for index, card in cards.items():
            self.findings.check(
                index == one.gone and index not in one.opened,
                fact.place,
                f"card {index} of {fact.body.shoe_id} is opened, {one.gone} have left the shoe",
            )
            one.gone = index + 1
            self._as_committed(fact, one, index, card)
        census = Counter(one.opened.values())
        self.findings.check(
            all(census[card] <= one.cards // 52 for card in cards.values()),
            fact.place,
            f"{fact.body.shoe_id} gave more of a card than it holds",
        )

    def _as_committed(self, fact: Fact, one: ShoeRecord, index: int, card: str) -> None:
        told = self._inputs.get(fact.cause)
        salts = (
            {card.index: (card.card, card.salt) for card in told.cards}
            if isinstance(told, shoe.OpenCards)
            else {}
        )
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
        one.opened[index] = card

    def _burned(self, fact: Fact, body: shoe.CardsBurned) -> None:
        one = self.shoes[body.shoe_id]
        begins = body.reason == shoe.BURN_REASON_SHOE_START
        burns = one.rule_set.game == rule_set_pb2.GAME_BACCARAT
        self.findings.check(
            (begins and burns and one.gone == 0) or not (begins or body.face_down),
            fact.place,
            f"shoe {body.shoe_id} burns {len(body.opened)} and {body.face_down} cards",
        )
        self._opened(fact, one, {card.index: card.card for card in body.opened})
        if begins and body.opened:
            self.findings.check(
                body.face_down == burned_after(body.opened[0].card),
                fact.place,
                f"{body.face_down} cards are burned after {body.opened[0].card}",
            )
        one.gone += body.face_down
        self._cut_if_out(fact, one, spare=1)

    def _dealt(self, fact: Fact, body: shoe.CardsDealt) -> None:
        one, round_id = self.shoes[body.shoe_id], body.round_id
        if one.cut is not None and not self.dealt[round_id]:
            one.last_rounds.append(round_id)
        for card in body.cards:
            if not card.card:
                self.findings.check(
                    card.hand == rules.HAND_HOLE and card.index == one.gone,
                    fact.place,
                    f"card {card.index} of {body.shoe_id} is dealt and not told",
                )
                one.gone = card.index + 1
                one.hidden[card.index] = round_id
            elif card.hand == rules.HAND_HOLE:
                self._turned(fact, one, card)
            else:
                self._opened(fact, one, {card.index: card.card})
                self.dealt[round_id].append((card.hand, card.card))
        self._cut_if_out(fact, one, spare=0)

    def _turned(self, fact: Fact, one: ShoeRecord, card: shoe.DealtCard) -> None:
        """A hole card is turned over: once, in its own round, and as it was looked at."""
        self.findings.check(
            one.hidden.pop(card.index, None) == fact.body.round_id,
            fact.place,
            f"card {card.index} of {fact.body.shoe_id} is no hole card",
        )
        self._as_committed(fact, one, card.index, card.card)
        self.dealt[fact.body.round_id].append((card.hand, card.card))

    def _looked(self, fact: Fact, body: shoe.HoleChecked) -> None:
        """What a look told is held against the card once the shoe is laid open."""
        told = self._inputs.get(fact.cause)
        one = self.shoes[body.shoe_id]
        self.findings.check(
            isinstance(told, shoe.CheckHole)
            and one.hidden.get(told.index) == body.round_id
            and told.blackjack == body.blackjack,
            fact.place,
            f"{body.round_id} was told of a hole card that it has not",
        )
        if isinstance(told, shoe.CheckHole):
            up = [card for hand, card in self.dealt[body.round_id] if hand == rules.HAND_DEALER]
            one.looked[told.index] = (up[0], body.blackjack)

    # ---- the cut card --------------------------------------------------------------------------

    def _cut_if_out(self, fact: Fact, one: ShoeRecord, *, spare: int) -> None:
        if one.cut is None and one.gone > one.cards - one.rule_set.cut_depth:
            one.cut = fact.cause
            one.spare = spare

    def _cut_card(self, fact: Fact, body: shoe.CutCardReached) -> None:
        one = self.shoes[body.shoe_id]
        self.findings.check(
            one.cut == fact.cause and not one.cut_told,
            fact.place,
            f"the cut card of {body.shoe_id} is told of here, it came out at {one.cut}",
        )
        one.cut_told = True

    def _closed(self, fact: Fact, body: shoe.ShoeClosed) -> None:
        """A shoe ends with its last round (rule BAC-3) or with its table."""
        one, at = self.shoes[body.shoe_id], fact.cause
        opened = [place for place, _ in self._specs[body.table_id] if place <= at]
        closed = [place for place in self._closed_at[body.table_id] if place <= at]
        self.findings.check(
            one.cut is not None or one.ran_out or max(closed, default=(0, 0)) > opened[-1],
            fact.place,
            f"shoe {body.shoe_id} is closed, its cut card has not come out",
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
        for index, (up, blackjack) in one.looked.items():
            self.findings.check(
                blackjack == (twenty_one((up, cards[index])) == 21),
                fact.place,
                f"hole card {cards[index]} behind {up} was told to make a blackjack: {blackjack}",
            )
        self.findings.check(
            one.cut is None or one.cut_told,
            fact.place,
            f"nobody was told that the cut card of {body.shoe_id} came out at {one.cut}",
        )

    # ---- results -------------------------------------------------------------------------------

    def _result(self, place: Place, body: table.ResultAccepted) -> None:
        """The result is that of the cards dealt to the round, and the shoe was not over."""
        rule_set = self._rules[body.round_id]
        for shoe_id, one in self.shoes.items():
            late = one.last_rounds.index(body.round_id) if body.round_id in one.last_rounds else -1
            self.findings.check(
                late < one.rule_set.rounds_after_cut + one.spare,
                place,
                f"{body.round_id} is dealt from {shoe_id} behind its last round",
            )
        if not rule_set.decks or rule_set.game == rule_set_pb2.GAME_BLACKJACK:
            return  # Those of wheels, dice and turns are checked by auditors of their own.
        if body.round_id in self._by_hand:
            return
        own = result_of(rule_set, self.dealt[body.round_id])
        self.findings.check(
            own == body.result, place, f"the result of {body.round_id} is not that of its cards"
        )
