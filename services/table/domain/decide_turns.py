"""Actions at a seat, and turns whose time is over. The order of refusals stands in `decide`."""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.message import Message

from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1 import events_pb2 as log
from sabot.rules.v1 import events_pb2 as rules
from sabot.table.v1 import bet_pb2, spec_pb2
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.kernel.event import Event
from services.table.domain.evolve_turns import is_due
from services.table.domain.requests import place_of
from services.table.domain.state import Phase, Round, Table, TableState, round_number, running_round
from services.table.domain.turns import Seat, Turn

_FURTHER = {
    rules.ACTION_DOUBLE: "double",
    rules.ACTION_SPLIT: "split",
    rules.ACTION_INSURE: "insurance",
}
"""The bet that an action's further stake is."""


def decide_action(state: TableState, event: Event, body: table.Act) -> Sequence[Message]:
    """One answer to Act, and the end of the offer behind the last answer to it."""
    found = place_of(state, event, body)
    if isinstance(found, log.RequestRepeated):
        return (found,)
    refusal: table.Refusal.ValueType
    if isinstance(found, tuple):
        one, running = found
        turn = running.turn
        refused = _refusal(one, running, event, body)
        if refused is None and turn is not None:
            taken = _taken(one, running, turn, body)
            if _ends_offer(turn, body):
                return taken, _closed(running, body.table_id)
            return (taken,)
        refusal = refused or table.REFUSAL_NOT_YOUR_TURN
    else:
        refusal = found
    return (
        table.ActionRejected(
            request_id=body.request_id,
            account_id=body.account_id,
            table_id=body.table_id,
            round_id=body.round_id,
            seat=body.seat,
            turn=body.turn,
            refusal=refusal,
        ),
    )


def _refusal(
    one: Table, running: Round, event: Event, body: table.Act
) -> table.Refusal.ValueType | None:
    if running.phase is Phase.VOIDED:
        return table.REFUSAL_ROUND_VOIDED
    if running.phase is not Phase.DEALING:
        return table.REFUSAL_NOT_YOUR_TURN
    if running.suspended:
        return table.REFUSAL_ROUND_SUSPENDED
    held = running.seats.get(body.seat)
    if held is None or (held.partner, held.account_id) != (event.partner, body.account_id):
        return table.REFUSAL_NOT_YOUR_SEAT
    turn = running.turn
    if turn is None or turn.number != body.turn or not _has_turn(turn, body.seat):
        return table.REFUSAL_NOT_YOUR_TURN
    if body.seat in turn.pending:
        return table.REFUSAL_ACTION_PENDING
    if body.action not in turn.actions:
        return table.REFUSAL_ACTION_NOT_ALLOWED
    if body.currency_code not in ("", one.spec.currency_code):
        return table.REFUSAL_CURRENCY_MISMATCH
    least, most = (1, turn.max_double_minor) if body.action == rules.ACTION_DOUBLE else (0, 0)
    return None if least <= body.extra_minor <= most else table.REFUSAL_BAD_EXTRA_STAKE


def _ends_offer(turn: Turn, body: table.Act) -> bool:
    """Whether this declines the last insurance that is open. One that is taken is open until its
    stake is reserved."""
    declined = body.action == rules.ACTION_DECLINE_INSURANCE
    return declined and list(turn.offered) == [body.seat]


def _has_turn(turn: Turn, seat: int) -> bool:
    return seat in turn.offered if turn.is_offer else seat == turn.seat


def _taken(one: Table, running: Round, turn: Turn, body: table.Act) -> table.ActionTaken:
    held = running.seats[body.seat]
    taken = _action(running, turn, body.table_id, body.seat, held, body.action)
    taken.request_id = body.request_id
    bet = _FURTHER.get(body.action)
    if bet is not None:
        stakes = {
            "double": body.extra_minor,
            "split": turn.split_minor,
            "insurance": turn.offered.get(body.seat, 0),
        }
        taken.extra.CopyFrom(
            bet_pb2.Bet(
                bet_id=f"{running.round_id}.{running.bets_placed + 1}",
                bet=bet,
                stake_minor=stakes[bet],
                position=str(body.seat),
            )
        )
        taken.currency_code = one.spec.currency_code
    return taken


def _action(
    running: Round, turn: Turn, table_id: str, seat: int, held: Seat | None, action: int
) -> table.ActionTaken:
    return table.ActionTaken(
        account_id="" if held is None else held.account_id,
        partner_id="" if held is None else held.partner,
        table_id=table_id,
        round_id=running.round_id,
        seat=seat,
        hand=turn.hand,
        turn=turn.number,
        action=rules.Action.ValueType(action),
    )


def _closed(running: Round, table_id: str) -> table.InsuranceClosed:
    return table.InsuranceClosed(table_id=table_id, round_id=running.round_id)


# ---- time --------------------------------------------------------------------------------------


def decide_time(state: TableState, body: table.TimeOutTurn) -> Sequence[Message]:
    """The time of a turn is over: the system acts (rule BJ-12), unless a stake is under way."""
    one = state.tables.get(body.table_id)
    running = running_round(state, body.table_id, body.round_id)
    if one is None or running is None:
        over = one is not None and (1 <= round_number(body.table_id, body.round_id) <= one.number)
        return _ignored(log.IGNORED_REASON_ALREADY_DONE if over else log.IGNORED_REASON_UNKNOWN)
    turn = running.turn
    if turn is None or turn.number > body.turn:
        return _ignored(log.IGNORED_REASON_ALREADY_DONE)
    if not is_due(turn, body):
        return _ignored(log.IGNORED_REASON_NOT_NOW)
    if turn.is_offer:
        return (_closed(running, body.table_id),)
    return (_by_the_system(one, running, turn, body.table_id),)


def decide_refused_stake(
    state: TableState, body: limits.BetsRefused | wallet.StakeDeclined
) -> Sequence[Message]:
    """A further stake is off; the system acts at once where the turn's time is over meanwhile."""
    one = state.tables.get(body.table_id)
    running = running_round(state, body.table_id, body.round_id)
    if one is None or running is None or running.turn is None:
        return ()
    turn = running.turn
    if not turn.timed_out or turn.pending or running.suspended:
        return ()
    return (_by_the_system(one, running, turn, body.table_id),)


def decide_reserved_stake(state: TableState, body: wallet.StakeReserved) -> Sequence[Message]:
    """A further stake is on; the offer of insurance ends with the last answer to it."""
    running = running_round(state, body.table_id, body.round_id)
    if running is None or running.turn is None or not running.turn.is_offer:
        return ()
    return () if running.turn.offered else (_closed(running, body.table_id),)


def _by_the_system(one: Table, running: Round, turn: Turn, table_id: str) -> table.ActionTaken:
    """It never adds a stake (rule BJ-12)."""
    by_strategy = one.spec.timeout_policy == spec_pb2.TIMEOUT_POLICY_BASIC_STRATEGY
    action = turn.advice if by_strategy else rules.ACTION_STAND
    taken = _action(running, turn, table_id, turn.seat, running.seats.get(turn.seat), action)
    taken.source = table.SOURCE_TIMER
    return taken


def _ignored(reason: log.IgnoredReason.ValueType) -> Sequence[Message]:
    return (log.InputIgnored(reason=reason),)
