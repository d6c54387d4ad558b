"""The demonstration's bettors at the blackjack table: who sits where, and what they do at their
turns."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import grpc

from sabot.money.v1.money_pb2 import Money
from sabot.partner.v1 import partner_service_pb2 as partner
from sabot.rules.v1 import events_pb2 as rules
from services.cli.uuid7 import uuid7
from services.games.blackjack import SEATS

ABSENT = 0.02
"""Of turns nobody answers: the table decides when the time is over (rule BJ-12)."""
STAND_AT = 15
"""What a bettor of the demonstration stands on, so that hands of all kinds come about."""

Patiently = Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]]


def seat_of(number: int, opened: partner.Round, accounts: int) -> int:
    """Where an account sits in a round; 0: nowhere. They take turns."""
    place = (number + opened.number) % accounts
    return place + 1 if place < SEATS else 0


def who_sits(seat: int, opened: partner.Round, accounts: int) -> int:
    """The number of the account at a seat."""
    return (seat - 1 - opened.number) % accounts


def main_minor(number: int, opened: partner.Round) -> int:
    """An account's main bet in a round; some have an odd half."""
    return (200, 502, 1_000, 2_500)[(number + opened.number) % 4]


class Seats:
    """Answers each turn of a table once."""

    def __init__(self, desks: Sequence[Any], until_known: Patiently, call_s: float) -> None:
        self._bettors = [(desk, account) for desk in desks for account in desk.accounts]
        self._until_known = until_known
        self._call_s = call_s
        self._answered: set[tuple[str, int]] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def look(self, seen: partner.Round) -> None:
        """Act, if somebody's turn has come."""
        turn = (seen.round_id, seen.turn.turn)
        if not seen.HasField("turn") or seen.suspended or turn in self._answered:
            return
        self._answered.add(turn)
        for seat in seen.turn.seats:
            task = asyncio.create_task(self._act(seen, seat))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _act(self, seen: partner.Round, seat: int) -> None:
        number = who_sits(seat, seen, len(self._bettors))
        desk, account = self._bettors[number]
        action = _chosen(seen, seat)
        if action is None:
            return
        request = partner.ActRequest(
            request_id=uuid7(),
            account_id=account,
            table_id=seen.table_id,
            round_id=seen.round_id,
            seat=seat,
            turn=seen.turn.turn,
            action=action,
        )
        if action == rules.ACTION_DOUBLE:
            first = main_minor(number, seen)
            extra = first if number % 2 else first // 2
            request.extra.CopyFrom(Money(currency_code="EUR", minor_units=extra))
        request.client_send_time.GetCurrentTime()
        try:
            await self._until_known(
                lambda: desk.bets.Act(request, metadata=desk.metadata, timeout=self._call_s)
            )
        except grpc.aio.AioRpcError:
            return  # Too late, or too little money: the table goes on without it.


def _chosen(seen: partner.Round, seat: int) -> rules.Action.ValueType | None:
    """What a bettor does; None: nothing at all."""
    allowed = list(seen.turn.actions)
    chance = random.random()  # noqa: S311 - bettors, not draws
    if chance < ABSENT:
        return None
    if rules.ACTION_INSURE in allowed:
        return rules.ACTION_INSURE if chance < 0.4 else rules.ACTION_DECLINE_INSURANCE
    if rules.ACTION_SPLIT in allowed and chance < 0.7:
        return rules.ACTION_SPLIT
    if rules.ACTION_DOUBLE in allowed and chance < 0.25:
        return rules.ACTION_DOUBLE
    [total] = [
        hand.total
        for one in seen.seats
        if one.seat == seat
        for hand in one.hands
        if hand.hand == seen.turn.hand
    ]
    return rules.ACTION_HIT if total < STAND_AT else rules.ACTION_STAND
