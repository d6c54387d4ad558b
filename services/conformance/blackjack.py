"""Rounds and actions of blackjack: seats are asked, and answer as the case says."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoes
from services.conformance.cases import (
    BlackjackCase,
    ExpectedHand,
    Findings,
    Money,
    SeatCase,
)
from services.conformance.croupier import Croupier
from services.conformance.play import MOST_STEPS, Play, Refusal, RoundStuck
from services.conformance.rounds import (
    check_balances,
    check_facts,
    check_money,
    check_totals,
    money_of,
)
from services.conformance.rules import spec_of
from services.games.blackjack import is_blackjack, is_bust, total

PLAIN: Mapping[str, rules.Action.ValueType] = {
    "hit": rules.ACTION_HIT,
    "stand": rules.ACTION_STAND,
    "double": rules.ACTION_DOUBLE,
    "split": rules.ACTION_SPLIT,
    "insurance": rules.ACTION_INSURE,
}
"""By the word of a case; `double:<amount>` and `insurance:<amount>` name a stake."""
KINDS: Mapping[str, str] = {
    "perfect": "perfect_pair",
    "coloured": "coloured_pair",
    "mixed": "mixed_pair",
    "suited_trips": "suited_trips",
    "straight_flush": "straight_flush",
    "trips": "three_of_a_kind",
    "straight": "straight",
    "flush": "flush",
}
"""By pay line: what the case files call it."""


class UnknownAction(Exception):
    """Blackjack has no such action."""


class NoAction(Exception):
    """A hand must act, and the case does not say how."""


@dataclass(slots=True)
class SeatActions:
    """What is left of a seat's actions, by hand."""

    whole: deque[str]
    hands: tuple[deque[str], ...]

    @classmethod
    def of(cls, seat: SeatCase) -> SeatActions:
        """All of them."""
        return cls(deque(seat.actions), tuple(map(deque, seat.hand_actions)))

    def take(self, hand: int, *, split: bool) -> str:
        """The next action of a hand. Raises NoAction."""
        if not split:
            left = self.whole
        else:
            left = self.hands[hand - 1] if hand <= len(self.hands) else deque[str]()
        if not left:
            raise NoAction
        return left.popleft()

    def left(self) -> list[str]:
        """All that nobody asked for."""
        return [*self.whole, *(action for hand in self.hands for action in hand)]


def play_blackjack(case: BlackjackCase, findings: Findings) -> None:
    """Play a round and note every difference. Raises what stops it."""
    spec = spec_of(case.rules)
    play = Play(spec, Croupier(case.shoe, spec.rule_set.decks))
    play.open_round()
    for seat in case.seats:
        try:
            play.place(seat.account, seat.laid)
        except Refusal as refusal:
            raise RoundStuck(f"the bets at seat {seat.seat} are refused: {refusal}") from None
    play.close_betting()
    _Seats(case, play).play()
    found = money_of(play)
    facts = _facts(play)
    for seat in case.seats:
        _compare(seat, play, found, findings, void=case.void)
    if not case.void:
        check_facts(case.outcome, facts, findings)
    check_totals(case.totals, [bet for _, bet in play.booked()], found, findings)
    check_balances(play, found, findings)


class _Seats:
    """The accounts at the seats of a case."""

    def __init__(self, case: BlackjackCase, play: Play) -> None:
        self._void = case.void
        self._play = play
        self._seats = {seat.seat: seat for seat in case.seats}
        self._actions = {seat.seat: SeatActions.of(seat) for seat in case.seats}
        self._uninsured = {seat.seat for seat in case.seats if seat.insurance}
        """Seats that want insurance and have not been asked."""
        self._turn = 0
        """The last one that was answered."""

    def play(self) -> None:
        """Deal and act to the end of the round. Raises RoundStuck.

        A round to be voided is suspended once the case has no action left, or no card for what is
        called; what was called by then is still taken."""
        play = self._play
        for _ in range(MOST_STEPS):
            if self._void and not self._left():
                break
            play.deal(play.croupier.has)
            if play.closed():
                break
            try:
                if not self._answer():
                    break
            except NoAction as stuck:
                if not self._void:
                    raise RoundStuck(str(stuck)) from None
                break
        if self._void:
            play.suspend()
            play.deal(play.croupier.has)
            play.void()
        if not play.closed():
            raise RoundStuck(f"the round does not end: {play.croupier.left()}")
        if self._void:
            return
        if self._left():
            raise RoundStuck(f"nobody was asked for {', '.join(self._left())}")
        if play.croupier.unused():
            raise RoundStuck(f"the round ended with {play.croupier.left()}")

    def _left(self) -> list[str]:
        """What the case would still have done."""
        wanted = [f"insurance at seat {seat}" for seat in sorted(self._uninsured)]
        return wanted + [
            f"{action} at seat {seat}"
            for seat, actions in self._actions.items()
            for action in actions.left()
        ]

    def _answer(self) -> bool:
        """Answer the open question, if there is one. Raises NoAction, RoundStuck."""
        question = self._play.question(self._turn)
        if question is None:
            return False
        self._turn = question.turn
        try:
            if isinstance(question, rules.InsuranceOffered):
                self._insure(question)
            else:
                self._act(question)
        except Refusal as refusal:
            raise RoundStuck(f"an action at turn {question.turn} is refused: {refusal}") from None
        return True

    def _insure(self, offer: rules.InsuranceOffered) -> None:
        """Every seat answers the offer; the stake is not the case's to choose (rule BJ-3)."""
        for seat in offer.seats:
            wants = seat in self._uninsured
            self._uninsured.discard(seat)
            action = rules.ACTION_INSURE if wants else rules.ACTION_DECLINE_INSURANCE
            self._play.act(self._seats[seat].account, seat, offer.turn, action)

    def _act(self, call: rules.ActionCalled) -> None:
        seat = self._seats[call.seat]
        split = len(self._actions[call.seat].hands) > 0 and not self._actions[call.seat].whole
        word = self._actions[call.seat].take(call.hand, split=split)
        action, extra = action_of(word, seat.laid[0].stake)
        self._play.act(seat.account, call.seat, call.turn, action, extra)


def action_of(word: str, main: int) -> tuple[rules.Action.ValueType, int]:
    """An action of a case, and the further stake that it names; a double that names none is for the
    whole main bet. Raises UnknownAction."""
    name, _, amount = word.partition(":")
    action = PLAIN.get(name)
    if action is None or (amount and not amount.removeprefix("-").isdecimal()):
        raise UnknownAction(f"there is no action {word!r}")
    if amount:
        return action, int(amount)
    return action, main if action == rules.ACTION_DOUBLE else 0


# ---- what came of it ---------------------------------------------------------------------------


def _compare(
    seat: SeatCase, play: Play, found: Mapping[str, Money], findings: Findings, *, void: bool
) -> None:
    """A seat's bets against what is expected of them."""
    place = str(seat.seat)
    bets = {bet.bet: bet for _, bet in play.booked() if bet.position == place}
    moneys = {name: found[bet.bet_id] for name, bet in bets.items() if bet.bet_id in found}
    lines = {bet.bet: bet.line for bet in play.settled().values() if bet.position == place}
    cards = _cards(play, seat.seat)
    parts = (("main", "double"), ("split",))
    at = f"seat {place}"
    findings.check(f"hands of {at}", len(seat.hands), 2 if "split" in bets else 1)
    for number, (expected, names) in enumerate(zip(seat.hands, parts, strict=False)):
        hand = cards[number] if number < len(cards) else []
        staked = [moneys[name] for name in names if name in moneys]
        got = _hand_money(staked, lines.get(names[0], ""), hand)
        what = f"hand {number + 1} of {at}"
        check_money(what, expected.money, got, findings)
        if not void:
            _check_cards(what, expected, hand, findings)
    for name, side in seat.sides.items():
        check_money(f"{name} of {at}", side.money, moneys.get(name), findings)
        if not void and name != "insurance":
            findings.check(f"kind of {name} of {at}", side.kind, KINDS.get(lines.get(name, "")))
    for name in sorted(bets.keys() - {"main", "double", "split"} - seat.sides.keys()):
        findings.note(f"{name} of {at}", "nothing", "a bet that the case does not expect")
    findings.check(f"stake of {at}", seat.totals.stake, _sum(moneys, "stake"))
    findings.check(f"profit of {at}", seat.totals.profit, _sum(moneys, "profit"))
    findings.check(f"return of {at}", seat.totals.returned, _sum(moneys, "returned"))


def _sum(moneys: Mapping[str, Money], name: str) -> int:
    return sum(int(getattr(money, name)) for money in moneys.values())


def _cards(play: Play, seat: int) -> list[list[str]]:
    """The hands of a seat by the result; none where there is no result."""
    accepted = play.result()
    if accepted is None:
        return []
    for one in accepted.result.blackjack.seats:
        if one.seat == seat:
            return [list(hand.cards) for hand in one.hands]
    return []


def _hand_money(staked: list[Money], line: str, cards: list[str]) -> Money | None:
    """A hand's money, its double included, with its fate in the words of the case files."""
    if not staked:
        return None
    result = staked[0].result
    if result == "win" and line == "blackjack":
        result = "blackjack"
    elif result == "lose" and is_bust(cards):
        result = "bust"
    return Money(
        result,
        sum(money.stake for money in staked),
        sum(money.profit for money in staked),
        sum(money.returned for money in staked),
    )


def _check_cards(what: str, expected: ExpectedHand, cards: list[str], findings: Findings) -> None:
    if expected.cards:
        findings.check(f"cards of {what}", list(expected.cards), cards)
    if expected.total is not None:
        findings.check(f"total of {what}", expected.total, total(cards).points)


def _facts(play: Play) -> dict[str, object]:
    """What the round ended with, by the names of the case files."""
    accepted = play.result()
    dealer = [] if accepted is None else list(accepted.result.blackjack.dealer_cards)
    checked = play.last_of(shoes.HoleChecked)
    return {
        "dealer_cards": dealer,
        "dealer_total": total(dealer).points,
        "dealer_blackjack": is_blackjack(dealer),
        "stopped_by_peek": checked is not None and checked.blackjack,
    }
