"""Actions of blackjack that must be accepted or refused: a hand is brought to the state that the
case describes, and then acts."""

from __future__ import annotations

from collections.abc import Sequence

from sabot.rules.v1 import events_pb2 as rules
from services.conformance.blackjack import UnknownAction, action_of
from services.conformance.cases import ActionCase, Findings, Laid
from services.conformance.croupier import Croupier
from services.conformance.play import MOST_STEPS, Play, Refusal, RoundStuck
from services.conformance.restrictions import check_answer
from services.conformance.rules import spec_of
from services.games.blackjack import FIRST_CARDS
from services.games.cards import SUITS, rank_of, suit_of

ACCOUNT = "A"
SEAT = 1
HOLE = "5C"
"""Makes no blackjack with anything."""
OTHER_HAND = "9D"
"""The second card of the other hand after a split."""


def play_action(case: ActionCase, findings: Findings) -> None:
    """Bring the hand about, act, and note where the answer is another one. Raises what stops it."""
    spec = spec_of(case.rules, case.limits)
    play = Play(spec, Croupier(_shoe(case), spec.rule_set.decks))
    play.open_round()
    play.place(ACCOUNT, [Laid(ACCOUNT, "main", str(SEAT), case.main, "the main bet")])
    play.close_betting()
    turn = _reach(case, play)
    refusal: Refusal | None = None
    try:
        action, extra = action_of(case.action, case.main)
        if action == rules.ACTION_INSURE and extra == _offered(play, turn):
            extra = 0  # The offer has named the stake: taking it names no other.
        play.act(ACCOUNT, SEAT, turn, action, extra)
    except UnknownAction:
        refusal = Refusal(["REFUSAL_ACTION_NOT_ALLOWED"])
    except Refusal as told:
        refusal = told
    check_answer(findings, refusal, expected=case.expected, reason=case.reason)


def _shoe(case: ActionCase) -> Sequence[str]:
    """The cards that lead to the hand: dealt, split if it comes from a split, drawn."""
    first, second, *drawn = case.cards if len(case.cards) >= FIRST_CARDS else (*case.cards, "", "")
    if not second:
        raise RoundStuck("a hand has two cards at least")
    if not case.from_split:
        return (first, case.up_card, second, HOLE, *drawn)
    twin = rank_of(first) + next(suit for suit in SUITS if suit != suit_of(first))
    return (first, case.up_card, twin, HOLE, second, OTHER_HAND, *drawn)


def _reach(case: ActionCase, play: Play) -> int:
    """Act until the hand is as the case says; the turn at which it then acts, or, where it has none
    any more, the last one that was given."""
    splits, hits = int(case.from_split), len(case.cards) - FIRST_CARDS
    turn = 0
    for _ in range(MOST_STEPS):
        play.deal(lambda _: True)
        question = play.question(turn)
        if question is None:
            return turn
        turn = question.turn
        if isinstance(question, rules.InsuranceOffered):
            if _asks_now(case):
                return turn
            action = rules.ACTION_INSURE if case.insured else rules.ACTION_DECLINE_INSURANCE
        elif splits:
            splits, action = 0, rules.ACTION_SPLIT
        elif hits:
            hits, action = hits - 1, rules.ACTION_HIT
        else:
            return turn
        play.act(ACCOUNT, SEAT, turn, action)
    raise RoundStuck("the hand is never reached")


def _offered(play: Play, turn: int) -> int | None:
    """The stake of insurance that is offered to the seat at this turn."""
    offer = play.last_of(rules.InsuranceOffered)
    if offer is None or offer.turn != turn:
        return None
    return dict(zip(offer.seats, offer.stakes_minor, strict=True)).get(SEAT)


def _asks_now(case: ActionCase) -> bool:
    """Whether the case's action is the answer to the offer of insurance."""
    fresh = not case.from_split and len(case.cards) == FIRST_CARDS and not case.insured
    return fresh and case.action.partition(":")[0] == "insurance"
