"""How an event changes the seats and turns of a round of blackjack."""

from __future__ import annotations

from collections.abc import Iterable

from google.protobuf.message import DecodeError

from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1 import events_pb2 as log
from sabot.rules.v1 import events_pb2 as rules
from sabot.table.v1 import bet_pb2
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.kernel.event import UNLOGGED, Event
from services.table.domain.state import Phase, PlacedBet, Round, Table
from services.table.domain.turns import Seat, Turn, action_us, held_seat, turn_called

# ---- seats -------------------------------------------------------------------------------------


def take_seats(running: Round, who: tuple[str, str], bets: Iterable[bet_pb2.Bet]) -> None:
    """Bets were placed: their seats are held."""
    for bet in bets:
        seat = held_seat(bet.position)
        if seat:
            held = running.seats.get(seat)
            if held is None:
                held = running.seats[seat] = Seat(*who)
            held.bets += 1


def free_seat(running: Round, bet: PlacedBet) -> None:
    """A bet is off: its seat is free once it was the last one there."""
    held = running.seats.get(held_seat(bet.position))
    if held is not None:
        held.bets -= 1
        if not held.bets:
            del running.seats[held_seat(bet.position)]


# ---- turns -------------------------------------------------------------------------------------


def call_turn(
    one: Table, running: Round, event: Event, body: rules.ActionCalled | rules.InsuranceOffered
) -> None:
    """A turn begins, and its time, unless the round stands still or is over."""
    if running.phase is Phase.DEALING:
        due_us = None if running.suspended else event.time_us + action_us(one.spec)
        running.turn = turn_called(body, due_us, event.position)


def take_action(running: Round, body: table.ActionTaken) -> None:
    """A seat acted: its turn is over, or waits for a stake."""
    turn = running.turn
    if body.HasField("extra"):
        running.bets_placed += 1
        if turn is not None:
            turn.pending[body.seat] = body.extra.bet_id
    elif body.action == rules.ACTION_DECLINE_INSURANCE:
        if turn is not None:
            turn.offered.pop(body.seat, None)
    else:
        running.turn = None


def stake_is_on(running: Round, body: wallet.StakeReserved) -> None:
    """The further stake of an action is reserved: that takes effect."""
    turn = running.turn
    if turn is None:
        return
    for bet in body.bets:
        seat = held_seat(bet.position)
        if turn.pending.get(seat) == bet.bet_id:
            del turn.pending[seat]
            turn.offered.pop(seat, None)
            if not turn.is_offer:
                running.turn = None


def stake_is_off(running: Round, bet_ids: Iterable[str]) -> None:
    """A further stake is refused or declined: hand and turn are as they were (rule BJ-14)."""
    turn = running.turn
    if turn is None:
        return
    for bet_id in bet_ids:
        for seat, pending in list(turn.pending.items()):
            if pending == bet_id:
                del turn.pending[seat]


def time_is_over(running: Round, body: table.TimeOutTurn) -> None:
    """The time of a turn was over while its stake was under way: if that fails, the system acts."""
    turn = running.turn
    if turn is not None and is_due(turn, body) and turn.pending and not turn.is_offer:
        turn.timed_out = True


def is_due(turn: Turn, body: table.TimeOutTurn) -> bool:
    """Whether a timer is the one that the turn waits for."""
    return (
        turn.number == body.turn
        and turn.timer == body.timer
        and turn.due_us is not None
        and not turn.timed_out
    )


def hold_turn(running: Round) -> None:
    """The round stands still, and the time of its turn."""
    if running.turn is not None:
        running.turn.due_us = None
        running.turn.timed_out = False


def resume_turn(one: Table, running: Round, event: Event) -> None:
    """The round goes on, and its turn has its whole time anew."""
    turn = running.turn
    if turn is not None:
        turn.due_us = event.time_us + action_us(one.spec)
        turn.timer += 1
        turn.asked_at = event.cause or UNLOGGED


# ---- bets that are off -------------------------------------------------------------------------

OffTheTable = (
    limits.BetsRefused
    | limits.WithdrawalApproved
    | wallet.StakeDeclined
    | table.BetsPlaced
    | limits.BetsApproved
    | table.ActionTaken
)
"""What says of bets that they are off; the last three where a decision about them failed."""


def bet_ids_of(body: OffTheTable) -> tuple[str, ...]:
    """The bets that are off."""
    match body:
        case limits.BetsRefused():
            return tuple(body.bet_ids)
        case table.ActionTaken():
            return (body.extra.bet_id,)
        case _:
            return tuple(bet.bet_id for bet in body.bets)


def failed_bets(
    event: Event, failed: log.InputFailed
) -> table.BetsPlaced | limits.BetsApproved | table.ActionTaken | None:
    """The bets whose path broke off because a decision about them failed: they count as declined.
    None where something else failed."""
    made = _FAILED.get((event.service, failed.input_type))
    if made is None:
        return None
    try:
        return made.FromString(failed.input_body)
    except DecodeError:
        return None


_FAILED: dict[tuple[str, str], type[table.BetsPlaced | limits.BetsApproved | table.ActionTaken]] = {
    ("limits", str(table.BetsPlaced.DESCRIPTOR.full_name)): table.BetsPlaced,
    ("limits", str(table.ActionTaken.DESCRIPTOR.full_name)): table.ActionTaken,
    ("wallet", str(limits.BetsApproved.DESCRIPTOR.full_name)): limits.BetsApproved,
}
"""By the service whose decision failed, and what it was about."""
