"""What the table answers.

Order of refusals, each tested:

- PlaceBets: UNKNOWN_TABLE; UNKNOWN_ROUND (the table never had it); REQUEST_EXPIRED (the round is
  over, and its request ids with it: whether the bet was on, GetRequest knows); a repeat with the
  same content is `RequestRepeated`, with other content REQUEST_ID_REUSED; TOO_MANY_REQUESTS;
  BETTING_CLOSED or ROUND_VOIDED; ROUND_SUSPENDED; SWITCHED_OFF; CURRENCY_MISMATCH; bet by bet
  UNKNOWN_BET, NOT_ON_LAYOUT, NOT_WHOLE_CHIPS; SEAT_TAKEN; TOO_MANY_BETS.
  TOO_MANY_REQUESTS comes before all that depends on the moment, because past that bound ids are not
  kept: such a refusal is not remembered, all later ones are.
  A request whose decision failed counts as declined ever since: decided again it is FAILED, so that
  no bet comes on, or off, behind the partner's back.
- WithdrawBets: the same down to ROUND_SUSPENDED; then NO_SUCH_BET. A suspended round stands still,
  for withdrawals too; if it is voided, every stake goes back anyway. At a table on the floor it is
  noted, and takes effect as betting closes.
- Act: the same down to TOO_MANY_REQUESTS; ROUND_VOIDED; NOT_YOUR_TURN while there are no turns
  (bets are taken, or the result stands); ROUND_SUSPENDED; NOT_YOUR_SEAT; NOT_YOUR_TURN (another
  seat's, one that is over or to come, insurance that is answered); ACTION_PENDING;
  ACTION_NOT_ALLOWED; CURRENCY_MISMATCH; BAD_EXTRA_STAKE.
- Every order of an operator: REQUEST_EXPIRED, a repeat, REQUEST_ID_REUSED, REQUEST_ID_AHEAD. Then
    OpenTable: BAD_TABLE_SPEC, ROUND_RUNNING, TOO_MANY_TABLES;
    CloseTable: UNKNOWN_TABLE, TABLE_CLOSED;
    OpenRound: UNKNOWN_TABLE, TABLE_CLOSED, SWITCHED_OFF, ROUND_RUNNING, SHOE_NOT_READY;
    SetSwitch: BAD_SWITCH, SWITCH_UNCHANGED, TOO_MANY_SWITCHES;
    orders about a round: UNKNOWN_TABLE, UNKNOWN_ROUND, ROUND_OVER, ROUND_VOIDED, then
      CloseBetting: BETTING_CLOSED, ROUND_SUSPENDED;
      SuspendRound: RESULT_ACCEPTED, ALREADY_SUSPENDED;
      ResumeRound: NOT_SUSPENDED, CORRECTION_PENDING, PLAY_CONTRADICTED;
      VoidRound: RESULT_ACCEPTED;
      CorrectCard, CorrectOutcome: see `corrections.py`.
    ProposeCorrection, ApproveCorrection: see `paid_rounds.py`.

A void takes a round from any state before its result, suspended or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never, cast

from google.protobuf.message import Message

from sabot.audit.v1 import correction_events_pb2 as audit
from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1 import events_pb2 as log
from sabot.rules.v1 import events_pb2 as rules
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
from services.kernel.event import Answers, Event
from services.table.domain.corrections import decide_contradiction, is_overtaken
from services.table.domain.decide_bets import decide_bets, decide_withdrawal
from services.table.domain.decide_orders import decide_order
from services.table.domain.decide_turns import (
    decide_action,
    decide_refused_stake,
    decide_reserved_stake,
    decide_time,
)
from services.table.domain.events import Folded
from services.table.domain.failures import table_of_failure
from services.table.domain.floor_close import decide_fault, go_on_closing
from services.table.domain.paid_rounds import decide_progress
from services.table.domain.risk import decide_closing, decide_offer
from services.table.domain.rounds import round_opened, voided
from services.table.domain.state import Phase, TableState, round_number, running_round
from services.table.domain.suspensions import decide_escalation
from services.table.domain.switches import table_off


def decide(state: TableState, event: Event) -> Answers:
    """What the table answers to an event that it has just folded."""
    body = cast("Folded | table.BetsWithdrawn", event.body)
    match body:
        case table.PlaceBets():
            return (decide_bets(state, event, body),)
        case table.WithdrawBets():
            return (decide_withdrawal(state, event, body),)
        case wallet.StakeReserved():
            return decide_reserved_stake(state, body) if body.stage else ()
        case limits.BetsRefused() | wallet.StakeDeclined():
            return decide_refused_stake(state, body) if body.stage else ()
        case table.Act():
            return decide_action(state, event, body)
        case table.TimeOutTurn():
            return decide_time(state, body)
        case (
            limits.WithdrawalApproved()
            | limits.WithdrawalRefused()
            | shoe.CardsDealt()
            | rules.ActionCalled()
            | rules.DrawRecalled()
            | rules.HandsCorrected()
            | floor.FirstCardShown()
            | floor.CardCorrected()
            | floor.OutcomeCorrected()
            | floor.FloorRejected()
            | log.RetryInput()
        ):
            return ()
        case risk.CloseBets():
            return decide_closing(state, body)
        case rules.InsuranceOffered():
            return decide_offer(state, body)
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
            return decide_order(state, event, body)
        case rules.RoundResolved():
            return _result(state, event, body)
        case rules.PlayContradicted():
            return decide_contradiction(state, body)
        case floor.FloorFaultFound():
            return decide_fault(state, event, body)
        case table.BetsWithdrawn():
            return go_on_closing(
                state, event, body
            )  # The last answer of an unfinished close, read back.
        case orders.EscalateSuspension():
            return decide_escalation(state, event, body)
        case wallet.RoundPaid() | wallet.RoundReturned():
            return _money_is_home(state, body)
        case shoe.CardsBurned():
            if body.reason != shoe.BURN_REASON_SHOE_START:
                return ()
            return _shoe_is_ready(state, event, body)
        case shoe.ShoeOpened():
            return _shoe_is_ready(state, event, body) if body.ready else ()
        case shoe.CutCardReached() | shoe.ShoeRanOut() | shoe.ShoeClosed():
            return _shoe_is_over(state, body)
        case (
            settlement.CorrectionRejected()
            | audit.FactsConfirmed()
            | audit.FactsRefuted()
            | wallet_corrections.CorrectionsPosted()
        ):
            return decide_progress(state, body)
        case log.InputFailed():
            return _failure(state, body)
        case _:
            assert_never(body)


def _result(state: TableState, event: Event, body: rules.RoundResolved) -> Sequence[Message]:
    """A suspended round holds its result until it is resumed; one that was given before something
    was corrected does not count."""
    running = running_round(state, body.table_id, body.round_id)
    if running is None or running.phase is not Phase.DEALING or running.suspended:
        return ()
    if is_overtaken(running, event.cause):
        return ()
    return (
        table.ResultAccepted(table_id=body.table_id, round_id=body.round_id, result=body.result),
    )


def _money_is_home(
    state: TableState, body: wallet.RoundPaid | wallet.RoundReturned
) -> Sequence[Message]:
    """The round is over, and a table with a betting window asks for the next one."""
    one = state.tables.get(body.table_id)
    running = running_round(state, body.table_id, body.round_id)
    paid = isinstance(body, wallet.RoundPaid)
    awaited = Phase.PAYING if paid else Phase.VOIDED
    if one is None or running is None or running.phase is not awaited:
        return ()
    closed = table.RoundClosed(
        table_id=body.table_id,
        round_id=body.round_id,
        end=table.ROUND_END_PAID if paid else table.ROUND_END_RETURNED,
        next_number=one.number + 1,
    )
    pacing = one.spec.pacing
    if one.is_open and pacing.betting_window_ms:
        closed.opens_after_ms = pacing.pause_ms
    return (closed,)


def _shoe_is_ready(
    state: TableState, event: Event, body: shoe.CardsBurned | shoe.ShoeOpened
) -> Sequence[Message]:
    """A round whose time has come opens with the shoe; one whose time will come has its timer."""
    one = state.tables.get(body.table_id)
    if one is None or body.shoe_id != one.shoe_id:
        return ()
    due = one.next_due_us
    if not one.shoe_ready or one.running is not None or due is None or event.time_us < due:
        return ()
    if table_off(state, one) is not None:
        return ()  # Its timer opens it once it is on again.
    return (round_opened(body.table_id, one, one.spec, one.revision),)


def _shoe_is_over(
    state: TableState, body: shoe.CutCardReached | shoe.ShoeRanOut | shoe.ShoeClosed
) -> Sequence[Message]:
    """A round that the shoe cannot serve is voided (rule BAC-3)."""
    one = state.tables.get(body.table_id)
    if one is None or one.running is None:
        return ()
    running = one.running
    if running.phase not in (Phase.BETTING, Phase.DEALING) or running.shoe_id != body.shoe_id:
        return ()
    match body:
        case shoe.CutCardReached():
            # The cut card came out in a round that was voided, and the shoe said so only after the
            # next one had opened: that one may be a round too many.
            since = running.number - round_number(body.table_id, body.round_id)
            lost = since > body.rounds_left
        case shoe.ShoeRanOut():
            lost = running.round_id == body.round_id
        case shoe.ShoeClosed():
            lost = True
        case _:
            assert_never(body)
    return (voided(body.table_id, running, table.ROUND_REASON_SHOE_EMPTY),) if lost else ()


def _failure(state: TableState, body: log.InputFailed) -> Sequence[Message]:
    """A decision failed somewhere: the round at that table stands still for a supervisor."""
    table_id = table_of_failure(body)
    one = state.tables.get(table_id)
    if one is None or one.running is None:
        return ()
    running = one.running
    if running.suspended or running.phase not in (Phase.BETTING, Phase.DEALING):
        return ()
    return (
        table.RoundSuspended(
            table_id=table_id, round_id=running.round_id, reason=table.ROUND_REASON_SYSTEM
        ),
    )
