"""What rules answers: the next cards, spin or roll, or the result (rules BAC-4 to BAC-9, DT-2,
FS-1, ROU-6, SIC-1; for blackjack see `blackjack.py`).

Nothing is called before `StakesSealed`, and nothing while what was called is still to come.

A suspension holds calls, and only them: cards that were called before it are taken when they come,
and if they were the last ones `RoundResolved` follows at once; the table holds it until it resumes.
`RoundResumed` releases the one call that was held: the first one if the stakes were sealed
meanwhile, or the one that what came meanwhile asks for. If something is still to come, it releases
nothing; that will be answered when it comes.

A voided round is called nothing more and has no result, whatever still comes.

Where something was misread, the round is at once where the corrected cards or numbers bring it: see
`corrections.py`. Cards may still come that were dealt before their recall was known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never, cast

from google.protobuf.message import Message

from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import bet_pb2
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.games import baccarat
from services.games.cards import is_card
from services.kernel.event import Answers, Event, InvariantViolated
from services.rules.domain.blackjack import next_calls
from services.rules.domain.blackjack_corrections import calls_of_corrected
from services.rules.domain.corrections import (
    hands_by_the_rules,
    hands_corrected,
    is_still_called,
)
from services.rules.domain.events import Folded
from services.rules.domain.state import Round, RulesState

_HANDS = {
    baccarat.Side.PLAYER: rules.HAND_PLAYER,
    baccarat.Side.BANKER: rules.HAND_BANKER,
}
_WINNERS = {
    baccarat.Winner.PLAYER: rules.BACCARAT_WINNER_PLAYER,
    baccarat.Winner.BANKER: rules.BACCARAT_WINNER_BANKER,
    baccarat.Winner.TIE: rules.BACCARAT_WINNER_TIE,
}
_TWO_CARD_HANDS: dict[int, tuple[rules.Hand.ValueType, rules.Hand.ValueType]] = {
    rule_set_pb2.GAME_DRAGON_TIGER: (rules.HAND_DRAGON, rules.HAND_TIGER),
    rule_set_pb2.GAME_FOOTBALL_STUDIO: (rules.HAND_HOME, rules.HAND_AWAY),
}
"""In dealing order."""


def decide(state: RulesState, event: Event) -> Answers:
    """What rules answers to an event that it has just folded."""
    body = cast("Folded", event.body)
    match body:
        case wallet.StakeReserved():
            # A double or a split takes effect (BJ-6, BJ-7).
            play = body.stage == bet_pb2.STAGE_PLAY
            return _next(state, body.table_id, body.round_id) if play else ()
        case (
            wallet.StakesSealed()
            | shoe.CardsDealt()
            | shoe.WheelSpun()
            | shoe.SpinInvalidated()
            | shoe.DiceRolled()
            | shoe.HoleChecked()
            | table.ActionTaken()
            | table.RoundResumed()
        ):
            return _next(state, body.table_id, body.round_id)
        case floor.CardCorrected() | floor.OutcomeCorrected():
            return _corrected(state, body)
        case (
            table.TableOpened()
            | table.RoundOpened()
            | table.RoundSuspended()
            | table.RoundVoided()
            | table.RoundClosed()
            | wallet.StakeReturned()
        ):
            return ()
        case _:
            assert_never(body)


def _next(state: RulesState, table_id: str, round_id: str) -> Sequence[Message]:
    """The one thing that the round waits for from rules, if there is any."""
    one = state.tables.get(table_id)
    if one is None or one.running is None or one.running.round_id != round_id:
        return ()
    running = one.running
    if not running.sealed or running.voided:
        return ()
    if running.corrected and running.blackjack is not None:
        return calls_of_corrected(table_id, running, running.blackjack, just_now=False)
    if running.corrected:
        return _rebuilt(one.game, table_id, running)
    if running.resolved or running.taken < running.called:
        return ()
    if running.taken > running.called:
        raise InvariantViolated(f"{round_id}: {running.taken} came, {running.called} called")
    if running.blackjack is not None:
        return next_calls(
            running.blackjack,
            table_id,
            round_id,
            running.shoe_id,
            running.called,
            suspended=running.suspended,
        )
    result = _result(one.game, running)
    if result is not None:
        return (rules.RoundResolved(table_id=table_id, round_id=round_id, result=result),)
    if running.suspended:
        return ()
    return (_call(one.game, table_id, running),)


def _corrected(
    state: RulesState, body: floor.CardCorrected | floor.OutcomeCorrected
) -> Sequence[Message]:
    """Where a correction brings the round."""
    if isinstance(body, floor.OutcomeCorrected):
        return _next(state, body.table_id, body.round_id)
    one = state.tables.get(body.table_id)
    running = None if one is None else one.running
    if one is None or running is None or running.round_id != body.round_id:
        return ()
    if running.voided:
        return ()
    if running.blackjack is not None:
        return calls_of_corrected(body.table_id, running, running.blackjack, just_now=True)
    if body.index not in running.places:
        return ()  # A card that is held is another one before its call takes it.
    return _rebuilt(one.game, body.table_id, running)


def _rebuilt(game: int, table_id: str, running: Round) -> Sequence[Message]:
    """The cards go to whom they belong, a call that they do not ask for is recalled, and the round
    is resolved, or called the next cards once it may go on."""
    answers: list[Message] = []
    hands = hands_by_the_rules(game, running)
    if running.taken < running.called and not is_still_called(game, running, hands):
        recalled = rules.DrawRecalled(table_id=table_id, round_id=running.round_id)
        recalled.shoe_id = running.shoe_id
        answers.append(recalled)
        running = replace(running, called=running.taken)
    if hands != [hand for hand, _ in running.cards]:
        answers.append(hands_corrected(table_id, running, hands))
        cards = [(hand, card) for hand, (_, card) in zip(hands, running.cards, strict=True)]
        running = replace(running, cards=cards)
    if running.resolved or running.taken < running.called:
        return answers
    result = _result(game, running)
    if result is not None:
        resolved = rules.RoundResolved(table_id=table_id, round_id=running.round_id, result=result)
        answers.append(resolved)
    elif not running.suspended:
        answers.append(_call(game, table_id, running))
    return answers


def _call(game: int, table_id: str, running: Round) -> Message:
    """What the game needs next, there being no result."""
    attempt = running.called + 1
    match game:
        case rule_set_pb2.GAME_BACCARAT:
            draw = baccarat.next_draw(*_baccarat_hands(running))
            return _draw(table_id, running, [_HANDS[side] for side in draw])
        case rule_set_pb2.GAME_DRAGON_TIGER | rule_set_pb2.GAME_FOOTBALL_STUDIO:
            return _draw(table_id, running, _TWO_CARD_HANDS[game])
        case rule_set_pb2.GAME_ROULETTE:
            return rules.SpinCalled(table_id=table_id, round_id=running.round_id, attempt=attempt)
        case rule_set_pb2.GAME_SICBO:
            return rules.RollCalled(table_id=table_id, round_id=running.round_id, attempt=attempt)
        case _:
            raise InvariantViolated(f"{running.round_id}: game {game} has no rules")


def _draw(table_id: str, running: Round, hands: Sequence[rules.Hand.ValueType]) -> rules.DrawCalled:
    return rules.DrawCalled(
        table_id=table_id,
        round_id=running.round_id,
        shoe_id=running.shoe_id,
        called_before=running.called,
        hands=hands,
    )


def _result(game: int, running: Round) -> rules.Result | None:
    """The result, once all that the game needs has come."""
    strange = [card for _, card in running.cards if not is_card(card)]
    if strange:
        raise InvariantViolated(f"{running.round_id}: no such card: {strange}")
    match game:
        case rule_set_pb2.GAME_BACCARAT:
            return _baccarat(*_baccarat_hands(running))
        case rule_set_pb2.GAME_DRAGON_TIGER:
            cards = _two_cards(game, running)
            if cards is None:
                return None
            dragon, tiger = cards
            return rules.Result(
                dragon_tiger=rules.DragonTigerResult(dragon_card=dragon, tiger_card=tiger)
            )
        case rule_set_pb2.GAME_FOOTBALL_STUDIO:
            cards = _two_cards(game, running)
            if cards is None:
                return None
            home, away = cards
            return rules.Result(
                football_studio=rules.FootballStudioResult(home_card=home, away_card=away)
            )
        case rule_set_pb2.GAME_ROULETTE:
            if not running.numbers:
                return None
            return rules.Result(roulette=rules.RouletteResult(number=running.numbers[0]))
        case rule_set_pb2.GAME_SICBO:
            if not running.numbers:
                return None
            return rules.Result(sicbo=rules.SicboResult(dice=running.numbers))
        case _:
            raise InvariantViolated(f"{running.round_id}: game {game} has no rules")


def _two_cards(game: int, running: Round) -> tuple[str, str] | None:
    """The two cards in dealing order; None until they lie."""
    first, second = (running.hand(hand) for hand in _TWO_CARD_HANDS[game])
    return (first[0], second[0]) if first and second else None


def _baccarat_hands(running: Round) -> tuple[list[str], list[str]]:
    return running.hand(rules.HAND_PLAYER), running.hand(rules.HAND_BANKER)


def _baccarat(player: list[str], banker: list[str]) -> rules.Result | None:
    if baccarat.next_draw(player, banker):
        return None
    return rules.Result(
        baccarat=rules.BaccaratResult(
            player_cards=player,
            banker_cards=banker,
            player_total=baccarat.total(player),
            banker_total=baccarat.total(banker),
            winner=_WINNERS[baccarat.winner(player, banker)],
        )
    )
