"""The auditor's check of shoes that were filled by hand: every card that came out is dealt, held,
burned or refused as a second, simple model of the floor says, none twice, none before the stakes
are certain; what was corrected is what counts; and the count at the end is right.

What the shoe decided in answer to an event is judged by what stood before that event.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.simulator.audit_floor_hole import HoleAuditor
from services.simulator.audit_floor_model import (
    MOST_HELD,
    NEVER,
    PACK,
    Call,
    CardRound,
    HandShoe,
    may_refuse,
)
from services.simulator.audit_results import burned_after, dealt_by_the_rules, result_of
from services.simulator.facts import Fact, Findings, Place


class HandShoeAuditor:
    """See the module."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.shoes: dict[str, HandShoe] = {}
        self.rounds: dict[str, CardRound] = {}
        self._standing: dict[str, HandShoe] = {}
        """By table."""
        self._rules: dict[tuple[str, int], rule_set_pb2.RuleSet] = {}
        self._specs: defaultdict[str, list[tuple[Place, rule_set_pb2.RuleSet]]] = defaultdict(list)
        self._told: dict[Place, Any] = {}
        """What the floor told, and what it was answered for."""
        self._early: set[Place] = set()
        """What was told and found to be early."""
        self.hole = HoleAuditor(findings)
        self._short: dict[Place, floor.ShoeCensus] = {}
        """Counts that found a shoe not whole at its end."""

    def see(self, fact: Fact) -> None:
        """Take the next event."""
        body: Any = fact.body
        match body:
            case (
                floor.RecordCard()
                | floor.RecordFaceDown()
                | floor.RecordPeek()
                | floor.RecordBurn()
                | floor.RecordCutCard()
                | floor.RecordRemaining()
                | floor.LoadShoe()
            ):
                self._told[fact.place] = body
            case table.TableOpened():
                rule_set = body.spec.rule_set
                self._rules[body.spec.table_id, body.revision] = rule_set
                self._specs[body.spec.table_id].append((fact.place, rule_set))
            case shoe.ShoeOpened():
                if body.packs:
                    self._filled(fact, body)
            case table.RoundOpened():
                self._round_opened(fact, body)
            case floor.FloorFaultFound():
                self._fault(fact, body)
            case floor.FloorRejected():
                self._refused(fact, body)
            case _:
                self._of_shoe(fact)
                one = self.rounds.get(getattr(body, "round_id", ""))
                if one is not None and not fact.is_input:
                    self._of_round(fact, one)

    def _of_shoe(self, fact: Fact) -> None:
        body: Any = fact.body
        one = self.shoes.get(getattr(body, "shoe_id", ""))
        if one is None or fact.is_input:
            return
        match body:
            case floor.FirstCardShown():
                self._first(fact, one, body)
            case shoe.CardsDealt():
                self._dealt(fact, one, body)
            case floor.OutcomeHeld():
                self._held(fact, one, body)
            case shoe.CardsBurned():
                self._burned(fact, one, body)
            case floor.CardCorrected():
                self._corrected(fact, one, body)
            case shoe.CutCardReached():
                self._cut(fact, one)
            case shoe.ShoeClosed():
                one.closed = True
                self._standing.pop(one.table_id, None)
            case shoe.ShoeRanOut():
                # Nothing is dealt for what it cannot meet.
                self.rounds[body.round_id].calls.clear()
                self.findings.reach("shoe on the floor runs out")
            case floor.ShoeCensus():
                self._census(fact, one, body)
            case _:
                pass

    def _of_round(self, fact: Fact, one: CardRound) -> None:
        body: Any = fact.body
        match body:
            case wallet.StakesSealed() if not body.stage:
                one.sealed = fact.place
            case table.BettingClosed():
                one.cut_off = (fact.place, body.cut_off_us)
            case rules.DrawCalled():
                one.calls.append(Call(fact.place, list(body.hands)))
            case rules.HoleCalled() | shoe.HoleChecked():
                self.hole.see(fact, one, self._told.get(fact.cause))
            case rules.DrawRecalled():
                for call in one.calls:
                    call.recalled = min(call.recalled, fact.place)
                self.findings.reach("call recalled")
            case rules.HandsCorrected():
                self.findings.reach("hands corrected")
                if any(card.hand == rules.HAND_UNSPECIFIED for card in body.cards):
                    self.findings.reach("card drawn in error is not played")
            case rules.RoundResolved():
                one.resolved = fact.place
            case table.RoundVoided():
                one.voided = fact.place
            case table.RoundClosed():
                one.closed = fact.place
            case table.ResultAccepted():
                self._result(fact, one, body)
            case _:
                pass

    # ---- a shoe and a round begin --------------------------------------------------------------

    def _filled(self, fact: Fact, body: shoe.ShoeOpened) -> None:
        told = self._told.get(fact.cause)
        in_force = [
            rule_set for place, rule_set in self._specs[body.table_id] if place < fact.cause
        ]
        rule_set = in_force[-1]
        self.findings.check(
            isinstance(told, floor.LoadShoe)
            and (told.table_id, told.number) == (body.table_id, body.number)
            and list(told.packs) == list(body.packs)
            and told.decks == rule_set.decks
            and body.cards == 52 * rule_set.decks
            and not body.root,
            fact.place,
            f"shoe {body.shoe_id} is filled otherwise than was told",
        )
        for shoe_id, one in list(self.shoes.items()):
            if one.table_id == body.table_id:
                self.findings.check(one.closed, fact.place, f"{shoe_id} still stands here")
                del self.shoes[shoe_id]  # Nobody counts it any more.
        one = HandShoe(body.shoe_id, body.table_id, rule_set.decks, rule_set)
        one.begun = rule_set.game != rule_set_pb2.GAME_BACCARAT
        self.shoes[body.shoe_id] = self._standing[body.table_id] = one
        self.findings.check(
            body.ready is one.begun, fact.place, f"{body.shoe_id} is ready: {body.ready}"
        )

    def _round_opened(self, fact: Fact, body: table.RoundOpened) -> None:
        stands = self._standing.get(body.table_id)
        if stands is None:
            return
        rule_set = self._rules[body.table_id, body.revision]
        self.rounds[body.round_id] = CardRound(
            body.table_id,
            rule_set,
            fact.place,
            shoe_id=stands.shoe_id,
        )

    def _running(self, table_id: str, at: Place) -> tuple[str, CardRound] | None:
        """The round that runs at a place of the log, voided or not."""
        for round_id, one in reversed(self.rounds.items()):
            if one.table_id == table_id and one.opened < at:
                return (round_id, one) if one.closed > at else None
        return None

    def _round_of(self, told: floor.RecordCard, at: Place) -> tuple[str, CardRound] | None:
        """The running round that a card was drawn for; None where there is none."""
        found = self._running(told.table_id, at)
        if found is None or found[1].voided < at:
            return None
        return found if told.round_id in ("", found[0]) else None

    # ---- cards come out ------------------------------------------------------------------------

    def _comes_out(self, fact: Fact, one: HandShoe, index: int, card: str) -> None:
        """A card leaves the shoe: the next one, and not more of it than there are."""
        self.findings.check(
            index == one.gone and index < 52 * one.decks,
            fact.place,
            f"card {index} of {one.shoe_id} comes out, {one.gone} have left it",
        )
        known = one.known.get(index)
        one.known[index] = card
        one.gone = index + 1
        self.findings.check(
            known in (None, card) and one.given(card) <= one.decks,
            fact.place,
            f"{one.shoe_id} gives {card} at {index}, where {known} lay: {one.given(card)} in all",
        )

    def _first(self, fact: Fact, one: HandShoe, body: floor.FirstCardShown) -> None:
        told = self._told.get(fact.cause)
        self.findings.check(
            isinstance(told, floor.RecordCard)
            and told.card == body.card
            and not one.gone
            and not one.begun
            and body.burn == burned_after(body.card),
            fact.place,
            f"{one.shoe_id} shows {body.card} and burns {body.burn}",
        )
        self._comes_out(fact, one, 0, body.card)

    def _dealt(self, fact: Fact, one: HandShoe, body: shoe.CardsDealt) -> None:
        """A card is dealt because it was called: as it comes, or as it was held."""
        told, running = self._told.get(fact.cause), self.rounds[body.round_id]
        if [card.hand for card in body.cards] == [rules.HAND_HOLE]:
            self.hole.dealt(fact, one, running, told)
            return
        if not running.cards and one.cut:
            one.more_rounds -= 1
            self.findings.check(
                one.more_rounds >= 0,
                fact.place,
                f"{body.round_id} is dealt from {one.shoe_id} behind its last round",
            )
        for card in body.cards:
            if told is not None:
                self._as_told(fact, told, body, card.card, card.index)
                self.findings.check(
                    not one.held, fact.place, f"card {card.index} is dealt before what is held"
                )
            else:
                held = one.held.pop(0) if one.held else None
                same = held is not None and (held.index, held.card, held.source, held.device) == (
                    card.index, card.card, body.source, body.device,
                )  # fmt: skip
                self.findings.check(
                    same, fact.place, f"card {card.index} of {one.shoe_id} was not held"
                )
                self.findings.reach("held card dealt")
            self._comes_out(fact, one, card.index, card.card)
            hands = running.awaited(fact.cause)
            self.findings.check(
                bool(hands) and hands.pop(0) == card.hand,
                fact.place,
                f"card {card.index} of {one.shoe_id} goes to a hand that is not next",
            )
            running.cards[card.index] = card.hand
        self._not_early(fact, running, told)
        by_hand = body.source == shoe.CARD_SOURCE_MANUAL
        self.findings.reach(
            "card dealt by a dealer's entry" if by_hand else "card dealt by a device"
        )

    def _as_told(self, fact: Fact, told: Any, body: Any, card: str, index: int) -> None:
        self.findings.check(
            isinstance(told, floor.RecordCard)
            and (told.card, told.source, told.device) == (card, body.source, body.device)
            and (told.table_id, told.shoe_id) == (body.table_id, body.shoe_id)
            and told.round_id in ("", body.round_id)
            and (not told.HasField("index") or told.index == index),
            fact.place,
            f"{card} of {body.shoe_id} was not told so",
        )

    def _not_early(self, fact: Fact, running: CardRound, told: Any) -> None:
        """What comes out before every stake is certain is told to be early."""
        if told is None:
            return  # It was held: that was judged as it came.
        closed, cut_off_us = running.cut_off
        too_soon = closed < fact.cause and 0 < told.device_time_us < cut_off_us
        early = running.sealed > fact.cause or too_soon
        self.findings.check(
            early == (fact.cause in self._early),
            fact.place,
            f"a card of {fact.body.round_id} comes before the stakes are certain: {early}; told "
            f"to be early: {not early}",
        )
        if early:
            self.findings.reach("early card")

    def _held(self, fact: Fact, one: HandShoe, body: floor.OutcomeHeld) -> None:
        """Nobody has called it yet."""
        told, running = self._told.get(fact.cause), self.rounds[body.round_id]
        self._as_told(fact, told, body, body.card, body.index)
        hands = [
            call.hands
            for call in running.calls
            if call.at < fact.cause < call.recalled and call.hands
        ]
        self.findings.check(
            body.index == one.next
            and (bool(one.held) or not hands)
            and running.resolved > fact.cause
            and len(one.held) < MOST_HELD,
            fact.place,
            f"card {body.index} of {one.shoe_id} is held, {one.next} comes next, called: {hands}",
        )
        self._not_early(fact, running, told)
        one.held.append(body)
        one.known[body.index] = body.card
        self.findings.check(
            one.given(body.card) <= one.decks,
            fact.place,
            f"{one.shoe_id} holds one {body.card} too many",
        )
        self.findings.reach("card held")

    def _burned(self, fact: Fact, one: HandShoe, body: shoe.CardsBurned) -> None:
        told = self._told.get(fact.cause)
        opened = {card.index: card.card for card in body.opened}
        if isinstance(told, floor.RecordBurn):
            begins = body.reason == shoe.BURN_REASON_SHOE_START
            seen = [one.known[0]] if begins else list(told.cards)
            right = (
                body.reason == told.reason
                and body.face_down == told.face_down
                and not one.held
                and begins is not one.begun
                and (not begins or told.face_down == burned_after(one.known[0]))
            )
            one.begun = True
            if begins:
                one.gone = 0  # The shown card is told once more, with the burn.
        elif isinstance(told, floor.RecordCard):
            seen, right = [told.card], self._strays(fact, told, body)
        else:
            seen = [held.card for held in one.held]
            over = body.reason in (shoe.BURN_REASON_NOT_CALLED, shoe.BURN_REASON_ROUND_OVER)
            right = over and bool(seen)
            one.held.clear()
        self.findings.check(
            right and list(opened.values()) == seen,
            fact.place,
            f"{one.shoe_id} burns {opened} and {body.face_down} for "
            f"{shoe.BurnReason.Name(body.reason)}",
        )
        self.findings.reach(f"burned on the floor: {shoe.BurnReason.Name(body.reason)}")
        for index, card in opened.items():
            self._comes_out(fact, one, index, card)
        one.gone += body.face_down

    def _strays(self, fact: Fact, told: floor.RecordCard, body: shoe.CardsBurned) -> bool:
        """A card that no running round takes: of none, of one that is over, or not called."""
        found = self._round_of(told, fact.cause)
        if found is not None:
            return body.reason == shoe.BURN_REASON_NOT_CALLED and found[1].resolved < fact.cause
        runs = self._running(told.table_id, fact.cause) is not None
        over = runs or bool(told.round_id)
        return body.reason == (
            shoe.BURN_REASON_ROUND_OVER if over else shoe.BURN_REASON_BETWEEN_ROUNDS
        )

    def _cut(self, fact: Fact, one: HandShoe) -> None:
        """The dealer's entry decides (rule BAC-3)."""
        told = self._told.get(fact.cause)
        found = self._running(one.table_id, fact.cause)
        self.findings.check(
            isinstance(told, floor.RecordCutCard) and not one.cut,
            fact.place,
            f"the cut card of {one.shoe_id} came out that nobody entered, or twice",
        )
        one.cut = True
        begun = found is not None and bool(found[1].cards)
        one.more_rounds = one.rule_set.rounds_after_cut + (not begun)
        self.findings.reach("cut card in a round" if found else "cut card between rounds")

    # ---- what was wrong ------------------------------------------------------------------------

    def _fault(self, fact: Fact, body: floor.FloorFaultFound) -> None:
        told, one = self._told.get(fact.cause), self.shoes.get(body.shoe_id)
        if body.fault == floor.FLOOR_FAULT_EARLY_OUTCOME:
            self._early.add(fact.cause)
        if body.fault == floor.FLOOR_FAULT_CENSUS:
            short = self._short.get(fact.cause)
            self.findings.check(short, fact.place, f"{body.shoe_id} was counted and is whole")
        elif one is not None and isinstance(told, floor.RecordCard | floor.RecordBurn):
            cards = [told.card] if isinstance(told, floor.RecordCard) else list(told.cards)
            if body.fault == floor.FLOOR_FAULT_IMPOSSIBLE_CARD:
                known = [*one.known.values(), *cards]
                right = known.count(body.told) > one.decks
            elif body.fault == floor.FLOOR_FAULT_CONTRADICTION and isinstance(
                told, floor.RecordCard
            ):
                running = self.rounds.get(body.round_id)
                right = self.hole.contradicts(fact, one, running, told) or (
                    one.known.get(told.index) == body.told_before != body.told
                )
            else:
                right = True  # Judged with the card.
            self.findings.check(
                right, fact.place, f"{one.shoe_id} cannot give {cards}, but nothing is wrong"
            )
        self.findings.reach(f"fault: {floor.FloorFault.Name(body.fault)}")

    def _corrected(self, fact: Fact, one: HandShoe, body: floor.CardCorrected) -> None:
        """A card of the running round is another one, before its result counts."""
        running = self.rounds[body.round_id]
        held = [card for card in one.held if card.index == body.index]
        was = one.known.get(body.index)
        one.known[body.index] = body.card
        self.findings.check(
            (body.index in running.cards or held)
            and was == body.read_as != body.card
            and one.given(body.card) <= one.decks
            and running.voided > fact.cause,
            fact.place,
            f"card {body.index} of {one.shoe_id} is {body.card} instead of {body.read_as}",
        )
        for card in held:
            again = floor.OutcomeHeld()
            again.CopyFrom(card)
            again.card = body.card
            one.held[one.held.index(card)] = again
            self.findings.reach("held card corrected")
        running.corrected = True
        running.resolved = NEVER
        self.findings.reach("card corrected")

    def _result(self, fact: Fact, running: CardRound, body: table.ResultAccepted) -> None:
        """The result is that of the cards as they were corrected, in the order in which they came
        out; without a correction each was dealt to the hand that the rules name."""
        if running.rule_set.game == rule_set_pb2.GAME_BLACKJACK:
            self.findings.reach("round of blackjack on the floor")
            return  # The auditor of blackjack has a table of its own.
        one = self.shoes[running.shoe_id]
        cards = [one.known[index] for index in sorted(running.cards)]
        dealt = dealt_by_the_rules(running.rule_set.game, cards)
        self.findings.check(
            result_of(running.rule_set, dealt) == body.result,
            fact.place,
            f"the result of {body.round_id} is not that of its cards {cards}",
        )
        told = [(running.cards[index], one.known[index]) for index in sorted(running.cards)]
        self.findings.check(
            running.corrected or told == dealt,
            fact.place,
            f"the cards of {body.round_id} are dealt as {told}, by the rules as {dealt}",
        )
        self.findings.reach(
            "corrected round settled" if running.corrected else "round of cards on the floor"
        )

    # ---- what was refused ----------------------------------------------------------------------

    def _refused(self, fact: Fact, body: floor.FloorRejected) -> None:
        """No card is refused that is right."""
        told, one = self._told.get(fact.cause), self.shoes.get(body.shoe_id)
        if not isinstance(told, floor.RecordCard) or one is None or one.closed:
            return
        place = one.next
        index = told.index if told.HasField("index") else place
        right = may_refuse(one, told, body.refusal)
        self.findings.check(
            right,
            fact.place,
            f"{told.card} at {index} of {one.shoe_id} is refused as "
            f"{floor.FloorRefusal.Name(body.refusal)}, {place} comes next",
        )

    # ---- the count -----------------------------------------------------------------------------

    def _census(self, fact: Fact, one: HandShoe, body: floor.ShoeCensus) -> None:
        """All cards of the shoe, seen while it was played or scanned at its end."""
        told = self._told[fact.cause]
        counted = one.counted if one.counted is not None else Counter(one.known.values())
        counted.update(told.cards)
        whole = Counter(dict.fromkeys(PACK, one.decks))
        own = (
            counted.total(),
            sorted((whole - counted).elements()),
            sorted((counted - whole).elements()),
            counted == whole,
        )
        told_all = (body.seen, sorted(body.missing), sorted(body.extra), body.complete)
        self.findings.check(
            one.closed and told_all == own and body.over is (body.complete or told.last),
            fact.place,
            f"the count of {one.shoe_id} says {told_all}, that is {own}",
        )
        one.counted = counted
        if body.over:
            del self.shoes[one.shoe_id]
            if not body.complete:
                self._short[fact.cause] = body
        how = "whole" if body.complete else "not whole" if body.over else "in parts"
        self.findings.reach(f"shoe counted: {how}")
