"""Partners' requests: bets placed and taken back. The order of refusals stands in `decide`."""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.message import Message

from sabot.log.v1 import events_pb2 as log
from sabot.table.v1 import bet_pb2
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import floor_events_pb2 as orders
from sabot.table.v1 import switch_pb2 as switches
from services.kernel.event import Event
from services.table.domain.booking import booked
from services.table.domain.requests import place_of
from services.table.domain.state import MAX_BETS, Phase, Round, Table, TableState
from services.table.domain.switches import bets_off
from services.table.domain.turns import MAX_FURTHER_BETS, held_seat


def decide_bets(state: TableState, event: Event, body: table.PlaceBets) -> Message:
    """One answer to PlaceBets: all of its bets or none."""
    found = place_of(state, event, body)
    if isinstance(found, log.RequestRepeated):
        return found
    if isinstance(found, tuple):
        one, running = found
        bets = _bets_to_book(state, one, running, event, body)
        if isinstance(bets, switches.Switch):
            return table.BetsRejected(
                request_id=body.request_id,
                account_id=body.account_id,
                table_id=body.table_id,
                round_id=body.round_id,
                refusal=table.REFUSAL_SWITCHED_OFF,
                off=bets,
            )
        if isinstance(bets, list):
            placed = _placed(running, body, bets)
            if running.at_floor is not None:
                placed.edge_time_us = event.edge_us
            return placed
        refusal = bets
    else:
        refusal = found
    return table.BetsRejected(
        request_id=body.request_id,
        account_id=body.account_id,
        table_id=body.table_id,
        round_id=body.round_id,
        refusal=refusal,
    )


def _placed(running: Round, body: table.PlaceBets, bets: Sequence[bet_pb2.Bet]) -> table.BetsPlaced:
    round_id, number = running.round_id, running.bets_placed
    placed = table.BetsPlaced(
        request_id=body.request_id,
        account_id=body.account_id,
        table_id=body.table_id,
        round_id=round_id,
        currency_code=body.currency_code,
        bets=bets,
    )
    for bet in placed.bets:
        number += 1
        bet.bet_id = f"{round_id}.{number}"
    return placed


def _bets_to_book(
    state: TableState, one: Table, running: Round, event: Event, body: table.PlaceBets
) -> list[bet_pb2.Bet] | table.Refusal.ValueType | switches.Switch:
    refusal = _window_refusal(running)
    if refusal is not None:
        return refusal
    off = bets_off(state, one, event.partner, body.account_id)
    if off is not None:
        return off
    if body.currency_code != one.spec.currency_code:
        return table.REFUSAL_CURRENCY_MISMATCH
    bets = booked(one.spec.rule_set, one.bets, body.bets)
    if not isinstance(bets, list):
        return bets
    who = (event.partner, body.account_id)
    if running.seated and not _seats_are_free(running, who, bets):
        return table.REFUSAL_SEAT_TAKEN
    account = running.accounts[who]
    most = MAX_BETS - MAX_FURTHER_BETS if running.seated else MAX_BETS
    if len(account.live) + len(account.withdrawing) + len(bets) > most:
        return table.REFUSAL_TOO_MANY_BETS
    return bets


def _seats_are_free(running: Round, who: tuple[str, str], bets: Sequence[bet_pb2.Bet]) -> bool:
    """Whether the seats of these bets are nobody's, or the account's own (rule BJ-11)."""
    held = (running.seats.get(held_seat(bet.position)) for bet in bets)
    return all(seat is None or (seat.partner, seat.account_id) == who for seat in held)


def _window_refusal(running: Round) -> table.Refusal.ValueType | None:
    if running.phase is Phase.VOIDED:
        return table.REFUSAL_ROUND_VOIDED
    closing = running.at_floor is not None and running.at_floor.closing is not None
    if running.phase is not Phase.BETTING or closing:
        return table.REFUSAL_BETTING_CLOSED
    if running.suspended:
        return table.REFUSAL_ROUND_SUSPENDED
    return None


def decide_withdrawal(state: TableState, event: Event, body: table.WithdrawBets) -> Message:
    """One answer to WithdrawBets: all of the bets named or none; none named: all that are on. At a
    table on the floor it is noted, and takes effect as betting closes."""
    found = place_of(state, event, body)
    if isinstance(found, log.RequestRepeated):
        return found
    if isinstance(found, tuple):
        _, running = found
        refusal = _window_refusal(running)
        if refusal is None:
            bets = _asked_back(running, event, body)
            if bets and running.at_floor is not None:
                return orders.WithdrawalNoted(
                    request_id=body.request_id,
                    account_id=body.account_id,
                    table_id=body.table_id,
                    round_id=body.round_id,
                    bets=bets,
                    edge_time_us=event.edge_us,
                )
            if bets:
                return table.BetsWithdrawn(
                    request_id=body.request_id,
                    account_id=body.account_id,
                    table_id=body.table_id,
                    round_id=body.round_id,
                    bets=bets,
                )
            refusal = table.REFUSAL_NO_SUCH_BET
    else:
        refusal = found
    return table.WithdrawalRejected(
        request_id=body.request_id,
        account_id=body.account_id,
        table_id=body.table_id,
        round_id=body.round_id,
        refusal=refusal,
    )


def _asked_back(running: Round, event: Event, body: table.WithdrawBets) -> list[bet_pb2.Bet]:
    """The bets that a withdrawal names; empty where one of them is not on, or is named twice."""
    live = running.accounts[event.partner, body.account_id].live
    if running.at_floor is not None:
        noted = {bet_id for one in running.at_floor.noted for bet_id in one.bet_ids}
        live = {bet_id: bet for bet_id, bet in live.items() if bet_id not in noted}
    bet_ids = list(body.bet_ids) or list(live)
    if len(frozenset(bet_ids)) != len(bet_ids):
        return []
    bets: list[bet_pb2.Bet] = []
    for bet_id in bet_ids:
        held = live.get(bet_id)
        if held is None:
            return []
        bets.append(
            bet_pb2.Bet(
                bet_id=bet_id,
                bet=held.bet,
                stake_minor=held.stake_minor,
                position=held.position,
                announced=held.announced,
            )
        )
    return bets
