"""How an event changes what rules knows."""

from __future__ import annotations

from typing import assert_never, cast

from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import spec_pb2
from sabot.wallet.v1 import events_pb2 as wallet
from services.games.blackjack import Options, Peek
from services.games.blackjack_result import options_of
from services.kernel.event import Event
from services.rules.domain.blackjack import Blackjack, Told, follow
from services.rules.domain.corrections import follow_correction
from services.rules.domain.events import Folded, Own
from services.rules.domain.state import Round, RulesState, Table, running_round


def evolve(state: RulesState, event: Event) -> None:
    """Fold one event in place."""
    body = cast("Folded | Own", event.body)
    match body:
        case wallet.StakeReserved():  # The commonest first, and nothing to any other game.
            one = state.tables.get(body.table_id)
            if one is not None and one.options is not None:
                _blackjack_goes_on(state, body)
        case table.TableOpened():
            _table_opened(state, body)
        case table.RoundOpened():
            one = state.tables.get(body.table_id)
            if one is not None:
                one.running = Round(body.round_id, body.shoe_id)
                if one.options is not None:
                    one.running.blackjack = Blackjack(one.options)
        case table.RoundClosed():
            if running_round(state, body.table_id, body.round_id) is not None:
                state.tables[body.table_id].running = None
        case (
            table.RoundSuspended()
            | table.RoundResumed()
            | table.RoundVoided()
            | wallet.StakesSealed()
            | shoe.CardsDealt()
            | shoe.WheelSpun()
            | shoe.SpinInvalidated()
            | shoe.DiceRolled()
            | rules.DrawCalled()
            | rules.SpinCalled()
            | rules.RollCalled()
            | rules.RoundResolved()
        ):
            running = running_round(state, body.table_id, body.round_id)
            if running is not None:
                _round_goes_on(running, body)
        case (
            wallet.StakeReturned()
            | shoe.HoleChecked()
            | table.ActionTaken()
            | rules.HoleCalled()
            | rules.InsuranceOffered()
            | rules.ActionCalled()
            | rules.SideBetDecided()
            | rules.PlayContradicted()
        ):
            _blackjack_goes_on(state, body)
        case (
            floor.CardCorrected()
            | floor.OutcomeCorrected()
            | rules.DrawRecalled()
            | rules.HandsCorrected()
        ):
            running = running_round(state, body.table_id, body.round_id)
            if running is not None:
                follow_correction(running, body)
        case _:
            assert_never(body)


def _blackjack_goes_on(state: RulesState, body: Told) -> None:
    running = running_round(state, body.table_id, body.round_id)
    if running is not None and running.blackjack is not None:
        follow(running.blackjack, body)


def _table_opened(state: RulesState, body: table.TableOpened) -> None:
    """The table refuses to change its rules while a round runs, so none has to be looked after."""
    spec = body.spec
    one = state.tables.get(spec.table_id)
    if one is None:
        one = state.tables[spec.table_id] = Table(spec.rule_set.game)
    one.game = spec.rule_set.game
    one.options = _options(spec) if one.game == rule_set_pb2.GAME_BLACKJACK else None


def _options(spec: spec_pb2.TableSpec) -> Options:
    """On a floor where nobody looks at a hole card, none is dealt."""
    options = options_of(spec.rule_set)
    told = spec.origin == spec_pb2.OUTCOME_ORIGIN_FLOOR
    return options._replace(second_card_later=told and options.peek is Peek.NONE)


def _round_goes_on(
    running: Round,
    body: table.RoundSuspended
    | table.RoundResumed
    | table.RoundVoided
    | wallet.StakesSealed
    | shoe.CardsDealt
    | shoe.WheelSpun
    | shoe.SpinInvalidated
    | shoe.DiceRolled
    | rules.DrawCalled
    | rules.SpinCalled
    | rules.RollCalled
    | rules.RoundResolved,
) -> None:
    match body:
        case table.RoundSuspended():
            running.suspended = True
        case table.RoundResumed():
            running.suspended = False
        case table.RoundVoided():
            running.voided = True
        case wallet.StakesSealed():
            running.sealed = True
            if running.blackjack is not None:
                follow(running.blackjack, body)
        case shoe.CardsDealt():
            running.cards.extend((card.hand, card.card) for card in body.cards)
            running.places.extend(card.index for card in body.cards)
            # A hole card that is turned over came face down before.
            came = [card for card in body.cards if card.hand != rules.HAND_HOLE or not card.card]
            running.taken += len(came)
            if running.corrected:
                # It was dealt before its call was known to be recalled.
                running.called = max(running.called, running.taken)
            if running.blackjack is not None:
                follow(running.blackjack, body)
        case shoe.WheelSpun():
            running.numbers = [body.number]
            running.taken += 1
        case shoe.SpinInvalidated():
            running.taken += 1
        case shoe.DiceRolled():
            running.numbers = list(body.dice)
            running.taken += 1
        case rules.DrawCalled():
            running.called += len(body.hands)
            running.calling = list(body.hands)
        case rules.SpinCalled() | rules.RollCalled():
            running.called += 1
        case rules.RoundResolved():
            running.resolved = True
        case _:
            assert_never(body)
