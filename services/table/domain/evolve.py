"""How an event changes what the table knows."""

from __future__ import annotations

from typing import assert_never, cast

from sabot.audit.v1 import correction_events_pb2 as audit
from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1 import events_pb2 as log
from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from sabot.settlement.v1 import correction_events_pb2 as settlement
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import correction_events_pb2 as corrections
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import floor_events_pb2 as orders
from sabot.table.v1 import risk_events_pb2 as risk
from sabot.table.v1 import switch_events_pb2 as switches
from sabot.wallet.v1 import correction_events_pb2 as wallet_corrections
from sabot.wallet.v1 import events_pb2 as wallet
from services.kernel.event import UNLOGGED, Event, Position
from services.kernel.requests import Standing
from services.table.domain.corrections import is_overtaken
from services.table.domain.events import Folded, Order, Own, PartnerRequest
from services.table.domain.evolve_floor import (
    begin_suspension,
    end_suspension,
    follow_floor,
    note_asked,
    note_closing,
    note_placed,
    opened_at_floor,
)
from services.table.domain.evolve_shoe import forget_shoe, shoe_goes_on
from services.table.domain.evolve_turns import (
    OffTheTable,
    bet_ids_of,
    call_turn,
    failed_bets,
    free_seat,
    hold_turn,
    resume_turn,
    stake_is_off,
    stake_is_on,
    take_action,
    take_seats,
    time_is_over,
)
from services.table.domain.failures import accepted_of_failure
from services.table.domain.paid_rounds import follow_paid_round
from services.table.domain.state import (
    MAX_ACCOUNT_REQUESTS,
    MAX_ACTION_REQUESTS,
    MAX_BET_REQUESTS,
    MAX_ROUND_REQUESTS,
    AccountBets,
    Phase,
    PlacedBet,
    Round,
    Table,
    TableState,
    running_round,
)
from services.table.domain.switches import note_switch


def evolve(state: TableState, event: Event) -> None:
    """Fold one event in place."""
    body = cast("Folded | Own", event.body)
    match body:
        case table.PlaceBets():
            _keep_request(state, event, body, MAX_BET_REQUESTS)
        case table.BetsPlaced():
            _bets_placed(state, event, body)
        case table.WithdrawBets():
            _keep_request(state, event, body, MAX_ACCOUNT_REQUESTS)
        case table.BetsWithdrawn():
            _bets_withdrawn(state, event, body)
        case wallet.StakeReserved():
            if body.stage:  # The commonest has none.
                _turn_goes_on(state, event, body)
        case limits.BetsRefused() | limits.WithdrawalApproved() | wallet.StakeDeclined():
            _bets_gone(state, event, body, bet_ids_of(body))
        case table.Act():
            _keep_request(state, event, body, MAX_ACTION_REQUESTS)
        case (
            rules.ActionCalled()
            | rules.InsuranceOffered()
            | table.ActionTaken()
            | table.InsuranceClosed()
            | table.TimeOutTurn()
        ):
            _turn_goes_on(state, event, body)
        case limits.WithdrawalRefused():
            _withdrawal_refused(state, event, body)
        case (
            table.OpenTable()
            | table.CloseTable()
            | table.OpenRound()
            | table.CloseBetting()
            | table.SuspendRound()
            | table.ResumeRound()
            | table.VoidRound()
            | orders.CorrectCard()
            | orders.CorrectOutcome()
            | corrections.ProposeCorrection()
            | corrections.ApproveCorrection()
            | switches.SetSwitch()
        ):
            _keep_order(state, event, body)
        case table.TableOpened() | table.TableClosed() | switches.SwitchSet():
            _tables_change(state, event, body)
        case table.RoundOpened():
            _round_opened(state, event, body)
        case table.RoundClosed():
            _round_closed(state, event, body)
        case (
            table.BettingClosed()
            | table.RoundSuspended()
            | table.RoundResumed()
            | table.ResultAccepted()
            | table.RoundVoided()
            | risk.BetsClosed()
        ):
            _round_goes_on(state, event, body)
        case rules.RoundResolved():
            _hold_result(state, event, body)
        case (
            orders.CardCorrectionOrdered()
            | orders.OutcomeCorrectionOrdered()
            | floor.CardCorrected()
            | floor.OutcomeCorrected()
            | floor.FloorRejected()
            | floor.FloorFaultFound()
            | orders.WithdrawalNoted()
            | orders.EscalateSuspension()
            | orders.SuspensionEscalated()
            | rules.DrawRecalled()
            | rules.HandsCorrected()
            | rules.PlayContradicted()
        ):
            follow_floor(state, event, body)
        case (
            shoe.ShoeOpened()
            | shoe.CardsBurned()
            | shoe.CardsDealt()
            | shoe.CutCardReached()
            | shoe.ShoeRanOut()
            | shoe.ShoeClosed()
            | floor.FirstCardShown()
        ):
            shoe_goes_on(state, body)
        case (
            corrections.CorrectionProposed()
            | corrections.CorrectionApproved()
            | corrections.ResultCorrected()
            | corrections.CorrectionClosed()
        ):
            follow_paid_round(state, event, body)
        case log.InputFailed():
            _path_failed(state, event, body)
        case log.RetryInput():
            _settlement_retried(state, event, body)
        case (
            table.BetsRejected()
            | table.ActionRejected()
            | table.WithdrawalRejected()
            | table.OrderRejected()
            | wallet.RoundPaid()
            | wallet.RoundReturned()
            | risk.CloseBets()
            | settlement.CorrectionRejected()
            | audit.FactsConfirmed()
            | audit.FactsRefuted()
            | wallet_corrections.CorrectionsPosted()
            | log.RequestRepeated()
            | log.InputIgnored()
        ):
            pass
        case _:
            assert_never(body)


# ---- request ids -------------------------------------------------------------------------------


def _keep_request(state: TableState, event: Event, body: PartnerRequest, most: int) -> None:
    """Remember the first use of a request id within its round, refused or not.

    It is remembered before it is decided, so that a request whose decision failed keeps its place:
    decided again by an operator it is the first, and a repeat of it is a repeat."""
    running = running_round(state, body.table_id, body.round_id)
    if running is None:
        return
    partner = event.partner
    requests = running.requests
    key = (partner, body.request_id)
    if key in requests or len(requests) >= MAX_ROUND_REQUESTS:
        return
    who = (partner, body.account_id)
    account = running.accounts.get(who)
    if account is None:
        account = running.accounts[who] = AccountBets()
    if account.requests < most:
        account.requests += 1
        requests[key] = (body.request_hash, event.position)


def _keep_order(state: TableState, event: Event, body: Order) -> None:
    """Remember an operator's request id; a timer has none."""
    request_id = body.request_id
    if not request_id:
        return
    ids, scope, request_hash = state.request_ids, event.actor, body.request_hash
    standing, _ = ids.standing(scope, request_id, request_hash, event.time_us)
    if standing is Standing.NEW:
        ids.use(scope, request_id, request_hash, event.position, event.time_us)


# ---- bets --------------------------------------------------------------------------------------


def _bets_placed(state: TableState, event: Event, body: table.BetsPlaced) -> None:
    running = running_round(state, body.table_id, body.round_id)
    if running is None:
        return
    who = (event.partner, body.account_id)
    account = running.accounts.get(who)
    if account is None:
        account = running.accounts[who] = AccountBets()
    live = account.live
    for bet in body.bets:
        live[bet.bet_id] = PlacedBet(bet.bet, bet.stake_minor, bet.position, bet.announced)
    running.bets_placed += len(body.bets)
    note_placed(running, body)
    if running.seated:
        take_seats(running, who, body.bets)


def _account(
    state: TableState, event: Event, body: table.BetsWithdrawn | limits.WithdrawalRefused
) -> AccountBets | None:
    """On the floor bets go back as betting closes: then the body says whose they are."""
    running = running_round(state, body.table_id, body.round_id)
    if running is None:
        return None
    return running.accounts.get((body.partner_id or event.partner, body.account_id))


def _bets_withdrawn(state: TableState, event: Event, body: table.BetsWithdrawn) -> None:
    running = running_round(state, body.table_id, body.round_id)
    account = _account(state, event, body)
    if running is None or account is None:
        return
    if body.HasField("close"):
        note_asked(running, event, body)
    for bet in body.bets:
        if account.live.pop(bet.bet_id, None) is not None:
            account.withdrawing[bet.bet_id] = PlacedBet(
                bet.bet, bet.stake_minor, bet.position, bet.announced
            )


def _withdrawal_refused(state: TableState, event: Event, body: limits.WithdrawalRefused) -> None:
    account = _account(state, event, body)
    if account is None:
        return
    for bet_id in body.bet_ids:
        bet = account.withdrawing.pop(bet_id, None)
        if bet is not None:
            account.live[bet_id] = bet


def _bets_gone(
    state: TableState,
    event: Event,
    body: OffTheTable,
    bet_ids: tuple[str, ...],
) -> None:
    running = running_round(state, body.table_id, body.round_id)
    if running is None:
        return
    partner = ""
    if isinstance(body, limits.WithdrawalApproved | wallet.StakeDeclined):
        partner = body.partner_id
    account = running.accounts.get((partner or event.partner, body.account_id))
    if account is None:
        return
    for bet_id in bet_ids:
        live, withdrawing = account.live.pop(bet_id, None), account.withdrawing.pop(bet_id, None)
        bet = live or withdrawing
        if running.seated and bet is not None:
            free_seat(running, bet)
    if running.turn is not None:
        stake_is_off(running, bet_ids)


def _path_failed(state: TableState, event: Event, body: log.InputFailed) -> None:
    _settlement_failed(state, event, body)
    _bets_failed(state, event, body)


def _bets_failed(state: TableState, event: Event, body: log.InputFailed) -> None:
    """Bets whose path failed are off. Elsewhere than at seats nothing depends on it: there they
    only count against what an account may have, as they always did."""
    failed = failed_bets(event, body)
    if failed is None:
        return
    running = running_round(state, failed.table_id, failed.round_id)
    if running is not None and running.seated:
        _bets_gone(state, event, failed, bet_ids_of(failed))


def _turn_goes_on(
    state: TableState,
    event: Event,
    body: rules.ActionCalled
    | rules.InsuranceOffered
    | table.ActionTaken
    | table.InsuranceClosed
    | table.TimeOutTurn
    | wallet.StakeReserved,
) -> None:
    running = running_round(state, body.table_id, body.round_id)
    if running is None:
        return
    match body:
        case rules.ActionCalled() | rules.InsuranceOffered():
            call_turn(state.tables[body.table_id], running, event, body)
        case wallet.StakeReserved():
            stake_is_on(running, body)
        case table.ActionTaken():
            take_action(running, body)
        case table.InsuranceClosed():
            running.turn = None
        case table.TimeOutTurn():
            time_is_over(running, body)
        case _:
            assert_never(body)


# ---- tables and rounds -------------------------------------------------------------------------


def _tables_change(
    state: TableState,
    event: Event,
    body: table.TableOpened | table.TableClosed | switches.SwitchSet,
) -> None:
    if isinstance(body, table.TableOpened):
        _table_opened(state, event, body)
    elif isinstance(body, table.TableClosed):
        _table_closed(state, body)
    else:
        note_switch(state, event, body)


def _table_opened(state: TableState, event: Event, body: table.TableOpened) -> None:
    spec = body.spec
    one = state.tables.get(spec.table_id)
    bets = tuple(offer.bet for offer in spec.rule_set.bets)
    if one is None:
        one = state.tables[spec.table_id] = Table(spec, body.revision, bets)
    if not spec.rule_set.decks:
        one.shoe_ready = True  # A game without a shoe waits for none.
    was_waiting = one.is_open and one.next_due_us is not None
    one.spec = spec
    one.revision = body.revision
    one.bets = bets
    one.is_open = True
    if not spec.pacing.betting_window_ms:
        one.next_due_us = None
    elif not was_waiting:
        one.next_due_us = event.time_us
        one.next_asked_at = event.cause or UNLOGGED


def _table_closed(state: TableState, body: table.TableClosed) -> None:
    one = state.tables.get(body.table_id)
    if one is None:
        return
    one.is_open = False
    one.next_due_us = None
    if one.running is None:
        forget_shoe(one)


def _round_opened(state: TableState, event: Event, body: table.RoundOpened) -> None:
    one = state.tables.get(body.table_id)
    if one is None:
        return
    closes_at_us = event.time_us + body.closes_after_ms * 1000 if body.closes_after_ms else None
    one.running = Round(
        body.round_id,
        body.number,
        body.shoe_id,
        closes_at_us=closes_at_us,
        asked_at=event.cause or UNLOGGED,
        opened_by=event.cause or UNLOGGED,
        seated=one.spec.rule_set.game == rule_set_pb2.GAME_BLACKJACK,
        at_floor=opened_at_floor(one, event),
    )
    one.number = body.number
    one.next_due_us = None
    if one.rounds_left:
        one.rounds_left -= 1


def _round_goes_on(
    state: TableState,
    event: Event,
    body: table.BettingClosed
    | table.RoundSuspended
    | table.RoundResumed
    | table.ResultAccepted
    | table.RoundVoided
    | risk.BetsClosed,
) -> None:
    running = running_round(state, body.table_id, body.round_id)
    if running is None:
        return
    match body:
        case risk.BetsClosed():
            running.closed_bets = [closed.bet for closed in body.bets]
            running.offer_closed = body.ends_offer
        case table.BettingClosed():
            running.phase = Phase.DEALING
            running.closes_at_us = None
            note_closing(running, None)
        case table.RoundSuspended():
            begin_suspension(running, event)
            running.closes_at_us = None
            hold_turn(running)
        case table.RoundResumed():
            end_suspension(running)
            resume_turn(state.tables[body.table_id], running, event)
            if body.closes_after_ms:
                running.closes_at_us = event.time_us + body.closes_after_ms * 1000
                running.timer = body.timer
                running.asked_at = event.cause or UNLOGGED
        case table.ResultAccepted():
            running.phase = Phase.PAYING
            running.held = None
        case table.RoundVoided():
            running.phase = Phase.VOIDED
            end_suspension(running)
            running.held = None
            running.closes_at_us = None
            running.turn = None
        case _:
            assert_never(body)


def _hold_result(state: TableState, event: Event, body: rules.RoundResolved) -> None:
    running = running_round(state, body.table_id, body.round_id)
    if running is None or not running.suspended or running.phase is not Phase.DEALING:
        return
    if not is_overtaken(running, event.cause):
        running.held = body.result


def _settlement_failed(state: TableState, event: Event, body: log.InputFailed) -> None:
    """Remember a round whose settlement failed at its very beginning: nothing of it is paid."""
    accepted = accepted_of_failure(body) if event.service == "settlement" else None
    running = running_round(state, accepted.table_id, accepted.round_id) if accepted else None
    if running is None or running.phase is not Phase.PAYING or event.cause is None:
        return
    if running.unsettled_at == UNLOGGED:
        running.unsettled_at = event.cause
    elif event.cause != running.retried_at:
        return  # An earlier retry failed; the last one is undecided, and may pay.
    running.unsettled = True


def _settlement_retried(state: TableState, event: Event, body: log.RetryInput) -> None:
    """From the retry on settlement may pay at any moment, so the round may not be voided."""
    about = Position(body.position.segment, body.position.sequence, body.position.index)
    for one in state.tables.values():
        running = one.running
        if running is not None and running.unsettled_at == about != UNLOGGED:
            running.unsettled = False
            running.retried_at = event.position


def _round_closed(state: TableState, event: Event, body: table.RoundClosed) -> None:
    one = state.tables.get(body.table_id)
    if one is None or one.running is None or one.running.round_id != body.round_id:
        return
    counted = body.end == table.ROUND_END_PAID or one.running.cards_left_shoe
    if one.running.shoe_id == one.shoe_id and counted:
        one.shoe_rounds += 1
    one.last_uncounted = not counted
    one.running = None
    if one.rounds_left == 0:
        one.shoe_ready = False
    if not one.is_open:
        forget_shoe(one)
    if body.HasField("opens_after_ms"):
        one.next_due_us = event.time_us + body.opens_after_ms * 1000
        one.next_asked_at = event.cause or UNLOGGED
