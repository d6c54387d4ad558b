"""A round of blackjack in which a card was misread (docs/adr: a misread card at blackjack).

The round is where its plays bring it with the right cards. What was asked and still is what comes
next stays asked; anything else is recalled, and the right thing is asked once the round goes on.
Where the plays cannot have been, the round stands still.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from google.protobuf.message import Message

from sabot.rules.v1 import events_pb2 as rules
from services.games.blackjack import Draw, Over, Step, Turn
from services.games.blackjack import OfferInsurance as Offer
from services.kernel.event import InvariantViolated
from services.rules.domain.blackjack import (
    Blackjack,
    as_told,
    call_for,
    hand_of,
    is_dealt,
    next_calls,
    side_bets,
)
from services.rules.domain.blackjack_plays import Played
from services.rules.domain.state import Round


def calls_of_corrected(
    table_id: str, running: Round, one: Blackjack, *, just_now: bool
) -> Sequence[Message]:
    """What rules answers in a round with a corrected card. `just_now`: it is the correction that is
    answered: then the table awaits to be told whose the cards are. Raises InvariantViolated."""
    if one.fault:
        raise InvariantViolated(f"{running.round_id}: {one.fault}")
    round_id = running.round_id
    answers: list[Message] = []
    open_cards = running.taken < running.called
    outstanding = open_cards or one.asked
    contradicted = bool(one.contradiction)
    if outstanding and (contradicted or not _still_asked(table_id, running, one)):
        recalled = rules.DrawRecalled(table_id=table_id, round_id=round_id, shoe_id=running.shoe_id)
        if one.asked and _is_turn(one):
            recalled.turn = one.turn
        answers.append(recalled)
        outstanding = False
    if contradicted:
        if not one.contradiction_told:
            answers.append(
                rules.PlayContradicted(table_id=table_id, round_id=round_id, why=one.contradiction)
            )
        return answers
    if just_now or _hands(running, one) != [hand for hand, _ in running.cards]:
        answers.append(_hands_corrected(table_id, running, one))
    if one.game is None or running.resolved:
        return answers
    if outstanding:
        if is_dealt(one, one.game):
            answers.extend(side_bets(one, one.game, table_id, running.round_id))
        return answers
    answers.extend(
        next_calls(
            replace(one, asked=False),
            table_id,
            running.round_id,
            running.shoe_id,
            running.taken,
            suspended=running.suspended,
        )
    )
    return answers


def _still_asked(table_id: str, running: Round, one: Blackjack) -> bool:
    """Whether what is asked, and not answered, is what the round needs next."""
    if one.game is None:
        return True
    step: Step = Played(one.game, one.expected).step
    if running.taken < running.called:
        wanted = [hand_of(spot) for spot in step.spots] if isinstance(step, Draw) else []
        return running.calling[-(running.called - running.taken) :] == wanted
    if isinstance(step, Draw | Over):
        return False
    draw = rules.DrawCalled(table_id=table_id, round_id=running.round_id, shoe_id=running.shoe_id)
    again = one.turn - 1 if isinstance(step, Offer | Turn) else one.turn
    return as_told(call_for(replace(one, turn=again), one.game, step, draw)) == one.question


def _is_turn(one: Blackjack) -> bool:
    kind = one.question.partition(b"\0")[0].decode()
    return kind != rules.HoleCalled.DESCRIPTOR.full_name


def _hands(running: Round, one: Blackjack) -> list[int]:
    """Whose each card is, in dealing order; 0: it is not played."""
    return [
        rules.HAND_UNSPECIFIED if place in one.unplayed else _before(hand)
        for place, (hand, _) in zip(running.places, running.cards, strict=True)
    ]


def _before(hand: int) -> int:
    """Only the dealer draws in error: a card that was not played, and is now, is the dealer's."""
    return hand or rules.HAND_DEALER


def _hands_corrected(table_id: str, running: Round, one: Blackjack) -> rules.HandsCorrected:
    """All cards of the round, each once: a hole card lay face down before it was turned over."""
    hands = dict(zip(running.places, _hands(running, one), strict=True))
    return rules.HandsCorrected(
        table_id=table_id,
        round_id=running.round_id,
        cards=[
            rules.CardInHand(index=place, hand=cast("rules.Hand.ValueType", hand))
            for place, hand in hands.items()
        ],
    )
