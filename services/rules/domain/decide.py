"""What rules answers: the next cards, or the result (rules BAC-4 to BAC-9).

Nothing is called before `StakesSealed`, and nothing while cards that were called are still to come.

A suspension holds calls, and only them: cards that were called before it are taken when they come,
and if they were the last ones `RoundResolved` follows at once; the table holds it until it resumes.
`RoundResumed` releases the one call that was held: the first four cards if the stakes were sealed
meanwhile, or the third card that the cards taken meanwhile ask for. If cards are still to come, it
releases nothing; they will be answered when they come.

A voided round is called nothing more and has no result, whatever still comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never, cast

from google.protobuf.message import Message

from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.games import baccarat
from services.games.cards import is_card
from services.kernel.event import Answers, Event, InvariantViolated
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


def decide(state: RulesState, event: Event) -> Answers:
    """What rules answers to an event that it has just folded."""
    body = cast("Folded", event.body)
    match body:
        case wallet.StakesSealed() | shoe.CardsDealt() | table.RoundResumed():
            return _next(state, body.table_id, body.round_id)
        case (
            table.TableOpened()
            | table.RoundOpened()
            | table.RoundSuspended()
            | table.RoundVoided()
            | table.RoundClosed()
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
    if not running.sealed or running.voided or running.resolved:
        return ()
    taken = len(running.player) + len(running.banker)
    if taken < running.called:
        return ()
    if taken > running.called:
        raise InvariantViolated(f"{round_id}: {taken} cards dealt, {running.called} called")
    if one.game != rule_set_pb2.GAME_BACCARAT:
        raise InvariantViolated(f"{round_id}: game {one.game} has no rules")
    return _baccarat(table_id, running)


def _baccarat(table_id: str, running: Round) -> Sequence[Message]:
    strange = [card for card in (*running.player, *running.banker) if not is_card(card)]
    if strange:
        raise InvariantViolated(f"{running.round_id}: no such card: {strange}")
    draw = baccarat.next_draw(running.player, running.banker)
    if not draw:
        result = _result(running)
        return (rules.RoundResolved(table_id=table_id, round_id=running.round_id, result=result),)
    if running.suspended:
        return ()
    return (
        rules.DrawCalled(
            table_id=table_id,
            round_id=running.round_id,
            shoe_id=running.shoe_id,
            called_before=running.called,
            hands=[_HANDS[side] for side in draw],
        ),
    )


def _result(running: Round) -> rules.Result:
    player, banker = running.player, running.banker
    return rules.Result(
        baccarat=rules.BaccaratResult(
            player_cards=player,
            banker_cards=banker,
            player_total=baccarat.total(player),
            banker_total=baccarat.total(banker),
            winner=_WINNERS[baccarat.winner(player, banker)],
        )
    )
