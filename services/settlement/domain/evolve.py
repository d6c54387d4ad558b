"""How an event changes what settlement knows."""

from __future__ import annotations

from typing import assert_never, cast

from sabot.log.v1 import events_pb2 as log
from sabot.settlement.v1 import correction_events_pb2 as corrections
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.table.v1 import correction_events_pb2 as table_corrections
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.kernel.event import Event
from services.settlement.domain.events import Folded, Own
from services.settlement.domain.evolve_corrections import follow_correction
from services.settlement.domain.state import (
    Round,
    SettlementState,
    StakedBet,
    Table,
    running_round,
)


def evolve(state: SettlementState, event: Event) -> None:
    """Fold one event in place."""
    body = cast("Folded | Own", event.body)
    match body:
        case table.TableOpened():
            _table_opened(state, body)
        case table.RoundOpened():
            one = state.tables.get(body.table_id)
            if one is not None:
                # The rules of the round are those of its opening (INC-4); a table refuses new ones
                # while a round runs.
                one.running = Round(body.round_id, one.rule_set, one.currency_code)
        case table.VoidRound():
            running = running_round(state, body.table_id, body.round_id)
            if running is not None and running.result is not None:
                state.void_orders[event.position] = body.round_id
        case table.OrderRejected() | log.RequestRepeated():
            _order_decided(state, event)
        case table.RoundClosed():
            for place in [at for at, of in state.void_orders.items() if of == body.round_id]:
                del state.void_orders[place]
            if running_round(state, body.table_id, body.round_id) is not None:
                state.tables[body.table_id].running = None
        case (
            wallet.StakeReserved()
            | wallet.StakeReturned()
            | table.ResultAccepted()
            | table.RoundVoided()
            | settlement.BetsSettled()
            | settlement.RoundSettled()
        ):
            if isinstance(body, table.RoundVoided):
                _order_decided(state, event)
            running = running_round(state, body.table_id, body.round_id)
            if running is not None:
                _round_goes_on(running, event, body)
        case (
            table_corrections.CorrectionApproved()
            | table_corrections.ResultCorrected()
            | table_corrections.CorrectionClosed()
            | corrections.RecallFacts()
            | corrections.FactsRecalled()
            | corrections.CorrectionRejected()
            | corrections.BetsCorrected()
            | corrections.RoundCorrected()
        ):
            follow_correction(state, event, body)
        case corrections.EndRecall() | corrections.FactsTaken() | log.InputIgnored():
            pass
        case _:
            assert_never(body)


def _order_decided(state: SettlementState, event: Event) -> None:
    if event.service == "table" and event.cause is not None:
        state.void_orders.pop(event.cause, None)


def _table_opened(state: SettlementState, body: table.TableOpened) -> None:
    spec = body.spec
    one = state.tables.get(spec.table_id)
    if one is None:
        state.tables[spec.table_id] = Table(spec.rule_set, spec.currency_code)
    else:
        one.rule_set = spec.rule_set
        one.currency_code = spec.currency_code


def _round_goes_on(
    running: Round,
    event: Event,
    body: wallet.StakeReserved
    | wallet.StakeReturned
    | table.ResultAccepted
    | table.RoundVoided
    | settlement.BetsSettled
    | settlement.RoundSettled,
) -> None:
    match body:
        case wallet.StakeReserved():
            bets = running.stakes.setdefault((event.partner, body.account_id), {})
            debits = body.transaction_ids
            for place, bet in enumerate(body.bets):
                paid_by = debits[place if len(debits) > 1 else 0] if debits else ""
                bets[bet.bet_id] = StakedBet(bet.bet, bet.stake_minor, bet.position, paid_by)
        case wallet.StakeReturned():
            _returned(running, event, body)
        case table.ResultAccepted():
            if running.result is None:
                running.result = body.result
                running.behaviour = event.behaviour
        case table.RoundVoided():
            running.voided = True
            running.stakes.clear()
        case settlement.BetsSettled():
            running.accounts_settled += 1
        case settlement.RoundSettled():
            running.done = True
            running.stakes.clear()
        case _:
            assert_never(body)


def _returned(running: Round, event: Event, body: wallet.StakeReturned) -> None:
    """Stakes that went back are not settled; an account without any has no settlement."""
    who = (body.partner_id or event.partner, body.account_id)
    bets = running.stakes.get(who)
    if bets is None:
        return
    for bet in body.bets:
        bets.pop(bet.bet_id, None)
    if not bets:
        del running.stakes[who]
