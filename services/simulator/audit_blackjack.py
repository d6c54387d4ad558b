"""The auditor's own table of blackjack: whose turn it is, what a hand may do, which cards and looks
are called, and what a round comes to. Naive, from docs/rules/blackjack.md, with nothing of the
product's game.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1 import events_pb2 as logs
from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.table.v1 import bet_pb2, spec_pb2
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.simulator.audit_judge import LOST, seat_side_bet, twenty_one
from services.simulator.facts import Fact, Findings, Place

Call = tuple[Any, ...]
"""What rules must say next, by its kind."""
FURTHER = {
    "double": rules.ACTION_DOUBLE,
    "split": rules.ACTION_SPLIT,
    "insurance": rules.ACTION_INSURE,
}
STANDS_FROM = 17
"""The dealer (rule BJ-5)."""


@dataclass(slots=True)
class Hand:
    """A hand of a seat."""

    cards: list[str]
    owed: int = 0
    """Cards that it is still to get."""
    split: bool = False
    doubled: bool = False
    stood: bool = False


@dataclass(slots=True)
class SeatPlay:
    """A seat."""

    owner: tuple[str, str]
    main: int = 0
    hands: list[Hand] = field(default_factory=lambda: [Hand([])])


@dataclass(slots=True)
class OpenTurn:
    """A turn that was called, until it is answered for good."""

    number: int
    seats: dict[int, int]
    """The seats that may act, with what insurance would cost them."""
    hand: int
    actions: Sequence[int]
    advice: int
    since_us: int
    """When its time began."""
    pending: set[str] = field(default_factory=set)
    """Bets whose stakes are under way."""


@dataclass(slots=True)
class Play:
    """A round."""

    spec: spec_pb2.TableSpec
    bets: dict[str, tuple[tuple[str, str], bet_pb2.Bet]] = field(default_factory=dict)
    """Reserved in the betting window."""
    seats: dict[int, SeatPlay] | None = None
    """From the seal on."""
    dealer: list[str] = field(default_factory=list)
    hole_lies: bool = False
    hole_open: bool = False
    looked: bool | None = None
    insured: bool = False
    """Whether insurance is over."""
    turn: OpenTurn | None = None
    side_bets: set[tuple[int, str]] = field(default_factory=set)

    @property
    def later(self) -> bool:
        """Whether the dealer's second card is drawn only once the seats have acted."""
        told = self.spec.origin == spec_pb2.OUTCOME_ORIGIN_FLOOR
        return told and self.options.peek == rule_set_pb2.PEEK_NONE

    @property
    def options(self) -> rule_set_pb2.BlackjackOptions:
        """What its table configures."""
        return self.spec.rule_set.blackjack


class BlackjackAuditor:
    """See the module."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.rounds: dict[str, Play] = {}
        self._specs: dict[tuple[str, int], spec_pb2.TableSpec] = {}
        self._inputs: dict[Place, table.Act | table.TimeOutTurn] = {}

    def see(self, fact: Fact) -> None:
        """Take the next event."""
        body: Any = fact.body
        match body:
            case table.TableOpened():
                self._specs[body.spec.table_id, body.revision] = body.spec
            case table.RoundOpened():
                spec = self._specs[body.table_id, body.revision]
                if spec.rule_set.game == rule_set_pb2.GAME_BLACKJACK:
                    self.rounds[body.round_id] = Play(spec)
            case table.Act() | table.TimeOutTurn():
                self._inputs[fact.place] = body
            case logs.InputFailed():
                self._failed(body)
            case _:
                one = self.rounds.get(getattr(body, "round_id", ""))
                if one is not None and not fact.is_input:
                    self._goes_on(fact, one)

    def _goes_on(self, fact: Fact, one: Play) -> None:
        body: Any = fact.body
        match body:
            case wallet.StakeReserved():
                self._reserved(fact, one, body)
            case wallet.StakeReturned() if one.seats is None:
                # Those of a void come while rules may still answer what stood before it.
                for bet in body.bets:
                    one.bets.pop(bet.bet_id, None)
            case wallet.StakeDeclined():
                _not_pending(one, (bet.bet_id for bet in body.bets))
            case limits.BetsRefused():
                _not_pending(one, body.bet_ids)
            case wallet.StakesSealed():
                self._sealed(fact, one, body)
            case table.RoundResumed():
                if one.turn is not None:
                    one.turn.since_us = fact.time_us
            case table.ActionTaken():
                self._taken(fact, one, body)
            case table.InsuranceClosed():
                self._insurance_closed(fact, one)
            case shoe.CardsDealt():
                for card in body.cards:
                    _lay(one, card)
            case shoe.HoleChecked():
                one.looked = body.blackjack
            case rules.SideBetDecided():
                self._side_bet(fact, one, body)
            case (
                rules.DrawCalled()
                | rules.HoleCalled()
                | rules.InsuranceOffered()
                | rules.ActionCalled()
                | rules.RoundResolved()
            ):
                self._called(fact, one)
            case _:
                pass

    def _failed(self, body: logs.InputFailed) -> None:
        """A further stake whose path broke off counts as declined."""
        if body.input_type == str(limits.BetsApproved.DESCRIPTOR.full_name):
            failed = limits.BetsApproved.FromString(body.input_body)
            one = self.rounds.get(failed.round_id)
            if one is not None:
                _not_pending(one, (bet.bet_id for bet in failed.bets))

    # ---- stakes --------------------------------------------------------------------------------

    def _reserved(self, fact: Fact, one: Play, body: wallet.StakeReserved) -> None:
        owner = (fact.partner, body.account_id)
        for bet in body.bets:
            if body.stage == bet_pb2.STAGE_UNSPECIFIED:
                one.bets[bet.bet_id] = (owner, bet)
                continue
            turn = one.turn
            if turn is None or bet.bet_id not in turn.pending:
                self.findings.add(fact.place, f"{bet.bet} is reserved that no turn waits for")
                continue
            turn.pending.discard(bet.bet_id)
            seat = int(bet.position)
            if bet.bet == "insurance":
                turn.seats.pop(seat, None)
            else:
                _act(one, seat, turn.hand, FURTHER[bet.bet])
                one.turn = None

    def _sealed(self, fact: Fact, one: Play, body: wallet.StakesSealed) -> None:
        if body.stage == bet_pb2.STAGE_INSURANCE:
            one.insured, one.turn = True, None
            return
        seats: dict[int, SeatPlay] = {}
        for owner, bet in one.bets.values():
            seat = seats.setdefault(int(bet.position), SeatPlay(owner))
            self.findings.check(
                seat.owner == owner,
                fact.place,
                f"{owner} and {seat.owner} share seat {bet.position}",
            )
            if bet.bet == "main":
                seat.main += bet.stake_minor
        one.seats = {number: seats[number] for number in sorted(seats) if seats[number].main}

    # ---- turns ---------------------------------------------------------------------------------

    def _called(self, fact: Fact, one: Play) -> None:
        """Rules say what comes next, and nothing else."""
        body: Any = fact.body
        match body:
            case rules.DrawCalled():
                told: Call = ("draw", *body.hands)
            case rules.HoleCalled():
                told = ("hole", body.purpose, body.up_card)
            case rules.InsuranceOffered():
                offered = dict(zip(body.seats, body.stakes_minor, strict=True))
                told = ("insurance", offered)
                one.turn = OpenTurn(body.turn, dict(offered), 0, _OFFER, 0, fact.time_us)
            case rules.ActionCalled():
                told = (
                    "turn", body.seat, body.hand, list(body.actions),
                    body.max_double_minor, body.split_minor, body.advice,
                )  # fmt: skip
                one.turn = OpenTurn(
                    body.turn, {body.seat: 0}, body.hand, list(body.actions), body.advice,
                    fact.time_us,
                )  # fmt: skip
            case _:
                told = ("over", body.result.blackjack)
        own = _next(one)
        self.findings.check(
            told == own, fact.place, f"{body.round_id} goes on with {told}, by the rules with {own}"
        )

    def _taken(self, fact: Fact, one: Play, body: table.ActionTaken) -> None:
        """An action is one of the turn that is open, by whose turn it is, in time; or the system's
        when the time is over (rules BJ-11 to BJ-13)."""
        turn = one.turn
        seat = (one.seats or {}).get(body.seat)
        if turn is None or seat is None or turn.number != body.turn or body.seat not in turn.seats:
            self.findings.add(fact.place, f"seat {body.seat} acts, but has no turn {body.turn}")
            return
        asked = self._inputs.get(fact.cause)
        if body.source == table.SOURCE_TIMER:
            strategy = one.spec.timeout_policy == spec_pb2.TIMEOUT_POLICY_BASIC_STRATEGY
            right = body.action == (turn.advice if strategy else rules.ACTION_STAND)
            right = right and self._is_over(fact, one, turn) and not body.HasField("extra")
        else:
            right = (
                isinstance(asked, table.Act)
                and (asked.account_id, asked.seat, asked.turn, asked.action)
                == (body.account_id, body.seat, body.turn, body.action)
                and seat.owner == (fact.partner, asked.account_id)
            )
        self.findings.check(
            right
            and (body.partner_id, body.account_id) == seat.owner
            and body.action in turn.actions
            and not (turn.pending and turn.hand)
            and body.hand == turn.hand,
            fact.place,
            f"seat {body.seat} may not {rules.Action.Name(body.action)} in turn {turn}",
        )
        if body.HasField("extra"):
            self._extra(fact, seat, turn, body)
        elif body.action == rules.ACTION_DECLINE_INSURANCE:
            turn.seats.pop(body.seat)
        else:
            _act(one, body.seat, body.hand, body.action)
            one.turn = None

    def _extra(self, fact: Fact, seat: SeatPlay, turn: OpenTurn, body: table.ActionTaken) -> None:
        """A further stake: up to the first one, as much, or half of it (rules BJ-3, BJ-6, BJ-7)."""
        bet = body.extra
        least, most = {
            "double": (1, seat.main),
            "split": (seat.main, seat.main),
            "insurance": (seat.main // 2, seat.main // 2),
        }[bet.bet]
        asked = self._inputs.get(fact.cause)
        asked_minor = asked.extra_minor if isinstance(asked, table.Act) else 0
        self.findings.check(
            FURTHER[bet.bet] == body.action
            and bet.position == str(body.seat)
            and least <= bet.stake_minor <= most
            and (bet.bet != "double" or bet.stake_minor == asked_minor),
            fact.place,
            f"seat {body.seat} stakes {bet.bet} {bet.stake_minor}, of {least} to {most}",
        )
        turn.pending.add(bet.bet_id)

    def _insurance_closed(self, fact: Fact, one: Play) -> None:
        turn = one.turn
        self.findings.check(
            turn is not None
            and not turn.hand
            and (not turn.seats or self._is_over(fact, one, turn)),
            fact.place,
            "insurance is closed before its time",
        )

    def _is_over(self, fact: Fact, one: Play, turn: OpenTurn) -> bool:
        return fact.time_us >= turn.since_us + one.spec.pacing.action_ms * 1_000

    def _side_bet(self, fact: Fact, one: Play, body: rules.SideBetDecided) -> None:
        """Once the deal lies, each side bet once (rule BJ-13)."""
        seat = (one.seats or {}).get(body.seat)
        key = (body.seat, body.bet)
        lies = {(int(bet.position), bet.bet) for _, bet in one.bets.values()}
        if (
            seat is None
            or not (one.hole_lies or one.later)
            or key in one.side_bets
            or key not in lies
        ):
            self.findings.add(fact.place, f"{body.bet} at seat {body.seat} is decided out of turn")
            return
        one.side_bets.add(key)
        own = seat_side_bet(body.bet, seat.hands[0].cards, one.dealer[0])
        offer = next(offer for offer in one.spec.rule_set.bets if offer.bet == body.bet)
        pays = {line.line: line.pays.numerator for line in offer.lines}.get(body.line, LOST)
        self.findings.check(
            own == pays, fact.place, f"{body.bet} is decided as {body.line!r}, by the cards {own}"
        )


_OFFER = [rules.ACTION_INSURE, rules.ACTION_DECLINE_INSURANCE]


def _not_pending(one: Play, bet_ids: Iterable[str]) -> None:
    """A further stake is refused: hand and turn are as they were (rule BJ-14)."""
    if one.turn is not None:
        one.turn.pending -= set(bet_ids)


# ---- the game ----------------------------------------------------------------------------------


def _lay(one: Play, card: shoe.DealtCard) -> None:
    if card.hand == rules.HAND_HOLE and not card.card:
        one.hole_lies = True
    elif card.hand == rules.HAND_HOLE:
        one.hole_open = True
        one.dealer.append(card.card)
    elif card.hand == rules.HAND_DEALER:
        one.hole_open = one.hole_open or (one.later and bool(one.dealer))
        one.dealer.append(card.card)
    else:
        seat = (one.seats or {}).get(card.hand % 10)
        number = card.hand // 10 - 1
        if seat is not None and number < len(seat.hands):
            seat.hands[number].cards.append(card.card)
            seat.hands[number].owed -= 1


def _act(one: Play, number: int, hand_number: int, action: int) -> None:
    seat = (one.seats or {})[number]
    hand = seat.hands[hand_number - 1]
    match action:
        case rules.ACTION_HIT:
            hand.owed = 1
        case rules.ACTION_STAND:
            hand.stood = True
        case rules.ACTION_DOUBLE:
            hand.owed, hand.doubled = 1, True
        case _:
            seat.hands = [Hand([card], owed=1, split=True) for card in hand.cards]


def _next(one: Play) -> Call:
    """What comes next (rule BJ-13)."""
    seats = one.seats or {}
    if not seats:
        return ("over", rules.BlackjackResult())
    each = [10 + number for number in seats]
    if not one.dealer:
        hole = () if one.later else (rules.HAND_HOLE,)
        return ("draw", *each, rules.HAND_DEALER, *each, *hole)
    owed = [
        10 * place + number
        for number, seat in seats.items()
        for place, hand in enumerate(seat.hands, start=1)
        if hand.owed > 0
    ]
    if owed:
        return ("draw", *owed)
    up = one.dealer[0]
    insurable = {number: seat.main // 2 for number, seat in seats.items() if seat.main > 1}
    if up[0] == "A" and insurable and not one.insured:
        return ("insurance", insurable)
    peek = one.options.peek
    looks = (up[0] == "A" and peek != rule_set_pb2.PEEK_NONE) or (
        up[0] in "TJQK" and peek == rule_set_pb2.PEEK_BOTH
    )
    if looks and one.looked is None and not one.hole_open:
        return ("hole", rules.HOLE_PURPOSE_PEEK, up)
    if not one.looked:
        for number, seat in seats.items():
            for place, hand in enumerate(seat.hands, start=1):
                if _acts(one, hand):
                    return _turn(one, number, place, seat.main, hand)
    if not one.hole_open:
        draws = ("draw", rules.HAND_DEALER)
        return draws if one.later else ("hole", rules.HOLE_PURPOSE_REVEAL, up)
    hands = [hand for seat in seats.values() for hand in seat.hands]
    contest = any(
        twenty_one(hand.cards) <= 21
        and not (twenty_one(hand.cards) == 21 and len(hand.cards) == 2 and not hand.split)
        for hand in hands
    )
    if contest and twenty_one(one.dealer) < STANDS_FROM:
        return ("draw", rules.HAND_DEALER)
    return ("over", _result(one, seats))


def _acts(one: Play, hand: Hand) -> bool:
    if hand.split and hand.cards[0][0] == "A" and one.options.one_card_on_split_aces:
        return False
    return not hand.stood and not hand.doubled and twenty_one(hand.cards) < 21


def _turn(one: Play, number: int, place: int, main: int, hand: Hand) -> Call:
    actions, double, split = [rules.ACTION_HIT, rules.ACTION_STAND], 0, 0
    if len(hand.cards) == 2 and not hand.split:
        if one.options.doubles:
            actions.append(rules.ACTION_DOUBLE)
            double = main
        if twenty_one([hand.cards[0][0]]) == twenty_one([hand.cards[1][0]]):
            actions.append(rules.ACTION_SPLIT)
            split = main
    return ("turn", number, place, actions, double, split, _advice(hand.cards, one.dealer[0]))


def _advice(cards: Sequence[str], up: str) -> int:
    """The table of rule BJ-12."""
    total = twenty_one(cards)
    hard = sum(min(10, "A23456789TJQK".index(card[0]) + 1) for card in cards)
    if hard < total:
        hits = total < 18 or (total == 18 and up[0] in "9TJQKA")
    elif total == 12:
        hits = up[0] not in "456"
    else:
        hits = total < 12 or (total < 17 and up[0] not in "23456")
    return rules.ACTION_HIT if hits else rules.ACTION_STAND


def _result(one: Play, seats: dict[int, SeatPlay]) -> rules.BlackjackResult:
    return rules.BlackjackResult(
        seats=[
            rules.BlackjackSeat(
                seat=number,
                hands=[
                    rules.BlackjackHand(cards=hand.cards, split=hand.split, doubled=hand.doubled)
                    for hand in seat.hands
                ],
            )
            for number, seat in seats.items()
        ],
        dealer_cards=one.dealer,
    )
