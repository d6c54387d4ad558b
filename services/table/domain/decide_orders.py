"""Operators' orders, and timers that fired. The order of refusals stands in `decide`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from google.protobuf.message import Message

from sabot.log.v1 import entry_pb2
from sabot.log.v1 import events_pb2 as log
from sabot.rules.v1 import rule_set_pb2
from sabot.table.v1 import correction_events_pb2 as corrections
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import floor_events_pb2 as orders
from sabot.table.v1 import spec_pb2, switch_pb2
from sabot.table.v1 import switch_events_pb2 as switches
from services.games.rule_set_faults import table_faults
from services.kernel.event import Answers, Event
from services.kernel.requests import Standing
from services.table.domain.corrections import ordered, why_not_corrected
from services.table.domain.events import Order, RoundOrder
from services.table.domain.floor_close import close_by_call, close_by_timer
from services.table.domain.paid_rounds import decide_correction
from services.table.domain.paid_rounds import rejected as paid_round_rejected
from services.table.domain.rounds import round_opened, voided
from services.table.domain.state import (
    MAX_KNOWN_TABLES,
    MAX_OPEN_TABLES,
    Phase,
    Round,
    Table,
    TableState,
    round_number,
)
from services.table.domain.switches import decide_switch, table_off

MAX_DETAIL = 2000
"""Characters of what is wrong with a table's rules: enough for a person to begin with."""


def decide_order(state: TableState, event: Event, body: Order) -> Answers:
    """The answers to an operator's order, or to a timer."""
    if isinstance(body, table.OpenRound) and body.source == table.SOURCE_TIMER:
        return (_timer_opens(state, body),)
    if isinstance(body, table.CloseBetting) and body.source == table.SOURCE_TIMER:
        return _timer_closes(state, event, body)
    repeated = _repeated(state, event, body)
    if repeated is not None:
        return (repeated,)
    match body:
        case table.OpenTable():
            return _open_table(state, body)
        case table.CloseTable():
            return (_close_table(state, body),)
        case table.OpenRound():
            return (_open_round(state, body),)
        case table.CloseBetting():
            return _close_betting(state, event, body)
        case switches.SetSwitch():
            return (decide_switch(state, body),)
        case (
            table.SuspendRound()
            | table.ResumeRound()
            | table.VoidRound()
            | orders.CorrectCard()
            | orders.CorrectOutcome()
        ):
            return _round_order(state, body)
        case corrections.ProposeCorrection() | corrections.ApproveCorrection():
            return decide_correction(state, event, body)
        case _:
            assert_never(body)


def _rejected(
    body: Order,
    refusal: table.Refusal.ValueType,
    detail: str = "",
    off: switch_pb2.Switch | None = None,
) -> table.OrderRejected:
    if isinstance(body, corrections.ProposeCorrection | corrections.ApproveCorrection):
        return paid_round_rejected(body, refusal)
    table_id = round_id = ""
    if isinstance(body, table.OpenTable):
        table_id = body.spec.table_id
    elif isinstance(body, table.CloseTable | table.OpenRound):
        table_id = body.table_id
    elif not isinstance(body, switches.SetSwitch):
        table_id, round_id = body.table_id, body.round_id
    return table.OrderRejected(
        request_id=body.request_id,
        table_id=table_id,
        round_id=round_id,
        refusal=refusal,
        detail=detail,
        off=off,
    )


def _repeated(state: TableState, event: Event, body: Order) -> Message | None:
    """What answers an order whose id is not new; None where it is."""
    standing, first = state.request_ids.standing(
        event.actor, body.request_id, body.request_hash, event.time_us
    )
    match standing:
        case Standing.NEW:
            return None
        case Standing.EXPIRED:
            return _rejected(body, table.REFUSAL_REQUEST_EXPIRED)
        case Standing.AHEAD:
            return _rejected(body, table.REFUSAL_REQUEST_ID_AHEAD)
        case Standing.REUSED:
            return _rejected(body, table.REFUSAL_REQUEST_ID_REUSED)
        case Standing.REPEATED:
            if first is None or first == event.position:
                return None  # It is the first itself: folding kept its id before this decision.
            return log.RequestRepeated(
                request_id=body.request_id,
                first=entry_pb2.Position(
                    segment=first.segment, sequence=first.sequence, index=first.index
                ),
            )
        case _:
            assert_never(standing)


# ---- tables ------------------------------------------------------------------------------------


def _open_table(state: TableState, body: table.OpenTable) -> Sequence[Message]:
    spec = body.spec
    faults = table_faults(spec)
    told = spec.origin == spec_pb2.OUTCOME_ORIGIN_FLOOR
    if told and spec.rule_set.game == rule_set_pb2.GAME_BLACKJACK and not body.blackjack_on_floor:
        # From before a hole card could be told face down: a scanner would have named it (VIS-3).
        faults.append("blackjack is dealt from a virtual shoe only")
    if faults:
        detail = "; ".join(faults)[:MAX_DETAIL]
        return (_rejected(body, table.REFUSAL_BAD_TABLE_SPEC, detail),)
    one = state.tables.get(spec.table_id)
    if one is not None and one.spec.rule_set.game != spec.rule_set.game:
        detail = "a table keeps its game; open another one"
        return (_rejected(body, table.REFUSAL_BAD_TABLE_SPEC, detail),)
    if one is not None and one.running is not None:
        return (_rejected(body, table.REFUSAL_ROUND_RUNNING),)
    if one is None or not one.is_open:
        open_tables = sum(other.is_open for other in state.tables.values())
        known_full = one is None and len(state.tables) >= MAX_KNOWN_TABLES
        if open_tables >= MAX_OPEN_TABLES or known_full:
            return (_rejected(body, table.REFUSAL_TOO_MANY_TABLES),)
    revision = 1 if one is None else one.revision + 1
    opened = table.TableOpened(spec=spec, revision=revision)
    if one is None or not one.is_open or not one.shoe_ready:
        return (opened,)
    after = Table(spec, revision, ())
    if spec.pacing.betting_window_ms and one.next_due_us is None and not table_off(state, after):
        # From rounds by an operator's call to rounds by the clock: the first opens at once.
        return (opened, round_opened(spec.table_id, one, spec, revision))
    return (opened,)


def _close_table(state: TableState, body: table.CloseTable) -> Message:
    one = state.tables.get(body.table_id)
    if one is None:
        return _rejected(body, table.REFUSAL_UNKNOWN_TABLE)
    if not one.is_open:
        return _rejected(body, table.REFUSAL_TABLE_CLOSED)
    return table.TableClosed(table_id=body.table_id)


# ---- rounds ------------------------------------------------------------------------------------


def _open_round(state: TableState, body: table.OpenRound) -> Message:
    one = state.tables.get(body.table_id)
    if one is None:
        return _rejected(body, table.REFUSAL_UNKNOWN_TABLE)
    if not one.is_open:
        return _rejected(body, table.REFUSAL_TABLE_CLOSED)
    off = table_off(state, one)
    if off is not None:
        return _rejected(body, table.REFUSAL_SWITCHED_OFF, off=off)
    if one.running is not None:
        return _rejected(body, table.REFUSAL_ROUND_RUNNING)
    if not one.shoe_ready:
        return _rejected(body, table.REFUSAL_SHOE_NOT_READY)
    return round_opened(body.table_id, one, one.spec, one.revision)


def _timer_opens(state: TableState, body: table.OpenRound) -> Message:
    """A timer that comes before the shoe is ready is early: the shoe's start opens the round then,
    or the timer fires again, whichever is later. One that comes while the table is switched off
    fires again once it is on."""
    one = state.tables.get(body.table_id)
    if one is None:
        return _ignored(log.IGNORED_REASON_UNKNOWN)
    if body.number <= one.number:
        return _ignored(log.IGNORED_REASON_ALREADY_DONE)
    awaited = one.next_due_us is not None and body.number == one.number + 1
    ready = one.shoe_ready and table_off(state, one) is None
    if not awaited or one.running is not None or not ready:
        return _ignored(log.IGNORED_REASON_NOT_NOW)
    return round_opened(body.table_id, one, one.spec, one.revision)


def _about(
    state: TableState, body: table.CloseBetting | RoundOrder
) -> Round | table.Refusal.ValueType:
    """The running round that an order is about, not voided; else why it cannot be obeyed."""
    one = state.tables.get(body.table_id)
    if one is None:
        return table.REFUSAL_UNKNOWN_TABLE
    running = one.running
    if running is None or running.round_id != body.round_id:
        if 1 <= round_number(body.table_id, body.round_id) <= one.number:
            return table.REFUSAL_ROUND_OVER
        return table.REFUSAL_UNKNOWN_ROUND
    return table.REFUSAL_ROUND_VOIDED if running.phase is Phase.VOIDED else running


def _close_betting(state: TableState, event: Event, body: table.CloseBetting) -> Answers:
    running = _about(state, body)
    if not isinstance(running, Round):
        return (_rejected(body, running),)
    if running.phase is not Phase.BETTING or _closes(running):
        return (_rejected(body, table.REFUSAL_BETTING_CLOSED),)
    if running.suspended:
        return (_rejected(body, table.REFUSAL_ROUND_SUSPENDED),)
    if running.at_floor is not None:
        return close_by_call(event, running, body)
    return _closed(state, running, body.table_id, table.SOURCE_OPERATOR)


def _closes(running: Round) -> bool:
    """Whether betting is closing, in more steps than one."""
    return running.at_floor is not None and running.at_floor.closing is not None


def _timer_closes(state: TableState, event: Event, body: table.CloseBetting) -> Answers:
    running = _about(state, body)
    if not isinstance(running, Round):
        unknown = (table.REFUSAL_UNKNOWN_TABLE, table.REFUSAL_UNKNOWN_ROUND)
        if running in unknown:
            return (_ignored(log.IGNORED_REASON_UNKNOWN),)
        return (_ignored(log.IGNORED_REASON_ALREADY_DONE),)
    if running.phase is not Phase.BETTING or _closes(running):
        return (_ignored(log.IGNORED_REASON_ALREADY_DONE),)
    if running.suspended or running.closes_at_us is None or body.timer != running.timer:
        return (_ignored(log.IGNORED_REASON_NOT_NOW),)
    if running.at_floor is not None:
        return close_by_timer(event, body.table_id, running)
    return _closed(state, running, body.table_id, table.SOURCE_TIMER)


def _closed(
    state: TableState, running: Round, table_id: str, source: table.Source.ValueType
) -> Answers:
    """No more bets. At a table that skips empty rounds (rule BAC-40), one that nobody has a bet in
    is voided at once: nothing is dealt, and it does not count. A bet that is still being decided is
    a bet."""
    closed = table.BettingClosed(table_id=table_id, round_id=running.round_id, source=source)
    skips = state.tables[table_id].spec.rule_set.baccarat.skips_empty_rounds
    if skips and not any(one.live or one.withdrawing for one in running.accounts.values()):
        return (closed, voided(table_id, running, table.ROUND_REASON_NO_BETS))
    return (closed,)


def _round_order(state: TableState, body: RoundOrder) -> Sequence[Message]:
    running = _about(state, body)
    if not isinstance(running, Round):
        return (_rejected(body, running),)
    match body:
        case table.SuspendRound():
            if running.phase is Phase.PAYING:
                return (_rejected(body, table.REFUSAL_RESULT_ACCEPTED),)
            if running.suspended:
                return (_rejected(body, table.REFUSAL_ALREADY_SUSPENDED),)
            return (
                table.RoundSuspended(
                    table_id=body.table_id, round_id=body.round_id, reason=body.reason
                ),
            )
        case table.ResumeRound():
            if not running.suspended:
                return (_rejected(body, table.REFUSAL_NOT_SUSPENDED),)
            if running.at_floor is not None and running.at_floor.correcting:
                return (_rejected(body, table.REFUSAL_CORRECTION_PENDING),)
            if running.at_floor is not None and running.at_floor.contradicted:
                return (_rejected(body, table.REFUSAL_PLAY_CONTRADICTED),)
            return _resumed(state, running, body)
        case table.VoidRound():
            if running.phase is Phase.PAYING and not running.unsettled:
                return (_rejected(body, table.REFUSAL_RESULT_ACCEPTED),)
            return (voided(body.table_id, running, body.reason),)
        case orders.CorrectCard() | orders.CorrectOutcome():
            refusal = why_not_corrected(running)
            if refusal is not None:
                return (_rejected(body, refusal),)
            return (ordered(running, body),)
        case _:
            assert_never(body)


def _resumed(state: TableState, running: Round, body: table.ResumeRound) -> Sequence[Message]:
    """The round goes on: with its whole window anew, or with the result that was held."""
    resumed = table.RoundResumed(table_id=body.table_id, round_id=body.round_id, reason=body.reason)
    window_ms = state.tables[body.table_id].spec.pacing.betting_window_ms
    if running.phase is Phase.BETTING and window_ms:
        resumed.closes_after_ms = window_ms
        resumed.timer = running.timer + 1
    if running.held is None:
        return (resumed,)
    return (
        resumed,
        table.ResultAccepted(table_id=body.table_id, round_id=body.round_id, result=running.held),
    )


def _ignored(reason: log.IgnoredReason.ValueType) -> log.InputIgnored:
    return log.InputIgnored(reason=reason)
