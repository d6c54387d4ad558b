"""Blackjack on a real fleet with a real nats-server: three accounts of two partners at four seats,
each driven by what WatchTable shows, until the round is paid; and the log decided again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path

from sabot.log.v1 import entry_pb2
from sabot.partner.v1 import partner_service_pb2 as partner
from sabot.rules.v1 import events_pb2 as rules
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.table.v1 import bet_pb2, spec_pb2
from sabot.wallet.v1 import events_pb2 as wallet
from services.cli.fleet import connect, fleet
from services.cli.replay import verify
from services.cli.uuid7 import uuid7
from services.games.catalogue import blackjack
from services.kernel.event import Event
from tests.fleet.clients import (
    CALL_S,
    ENDED,
    PATIENCE_S,
    Operator,
    Partner,
    RefusedError,
    Servers,
    money,
)
from tests.fleet.ledger import read_events

ROUNDS = 6
ACTION_MS = 60_000
"""Everybody acts: no turn ends by the clock, however busy the machine is."""
DEPOSIT = 500_00
STAKED = {rules.ACTION_DOUBLE, rules.ACTION_SPLIT, rules.ACTION_INSURE}


def spec() -> spec_pb2.TableSpec:
    rule_set = blackjack()
    return spec_pb2.TableSpec(
        table_id="t1",
        currency_code="EUR",
        rule_set=rule_set,
        limits=[
            spec_pb2.BetLimit(bet=offer.bet, min_minor=1, max_minor=100_00, step_minor=1)
            for offer in rule_set.bets
        ],
        pacing=spec_pb2.Pacing(action_ms=ACTION_MS),
    )


class Seated:
    """An account of a partner at some seats, by its platform's view of the table."""

    def __init__(
        self,
        of: Partner,
        account_id: str,
        mains: dict[int, int],
        seed: int,
        table_id: str = "t1",
    ) -> None:
        self.table_id = table_id
        self.partner = of
        self.account_id = account_id
        self.mains = mains
        """By seat."""
        self._chance = random.Random(seed)
        self.refused: list[str] = []
        self.acted = 0

    async def sit(self, round_id: str) -> None:
        bets = [
            bet_pb2.BetRequest(bet=bet, stake=money(minor), position=str(seat))
            for seat, main in self.mains.items()
            for bet, minor in (("main", main), ("perfect_pairs", 1_00))
        ]
        request = partner.PlaceBetsRequest(
            request_id=uuid7(),
            account_id=self.account_id,
            table_id=self.table_id,
            round_id=round_id,
            bets=bets,
        )
        await self.partner.known(
            lambda: self.partner.bets.PlaceBets(
                request, metadata=self.partner.metadata, timeout=CALL_S
            )
        )

    async def play(self, round_id: str) -> partner.Round:
        """Answer every turn of one's seats, once each, until the round is over."""
        answered: set[tuple[int, int]] = set()
        async for seen in self.partner.rounds(self.table_id):
            if seen.round_id != round_id:
                continue
            if seen.state in ENDED:
                return seen
            for seat in seen.turn.seats:
                if seat in self.mains and (seen.turn.turn, seat) not in answered:
                    answered.add((seen.turn.turn, seat))
                    await self.act(round_id, seen.turn, seat)
        raise AssertionError("the table is watched without end")

    async def act(self, round_id: str, turn: partner.Turn, seat: int) -> None:
        action = self._chance.choice(list(turn.actions))
        request = partner.ActRequest(
            request_id=uuid7(),
            account_id=self.account_id,
            table_id=self.table_id,
            round_id=round_id,
            seat=seat,
            turn=turn.turn,
            action=action,
        )
        if action == rules.ACTION_DOUBLE:
            request.extra.CopyFrom(money(self._chance.randint(1, self.mains[seat])))
        for repeated in (False, True):
            try:
                answer, sent = await self.partner.known(
                    lambda: self.partner.bets.Act(
                        request, metadata=self.partner.metadata, timeout=CALL_S
                    )
                )
            except RefusedError as refused:
                self.refused.append(refused.reason)
                return
            assert answer.replayed or not repeated or sent > 1
            assert answer.HasField("extra") == (action in STAKED)
            assert answer.seat.seat == seat
        self.acted += 1


async def test_a_table_of_blackjack(tmp_path: Path) -> None:
    async with fleet(tmp_path / "data", port=0) as running:
        front_door = Servers(running.address)
        north = Partner(front_door, running.tokens["partner:north"])
        south = Partner(front_door, running.tokens["partner:south"])
        dealer = Operator(front_door, running.tokens["operator:sam"])
        await dealer.open_table(spec())
        sitting = [
            Seated(north, "ann", {2: 10_00, 5: 7_01}, 1),
            Seated(north, "ben", {3: 5_00}, 2),
            Seated(south, "ann", {7: 20_00}, 3),
        ]
        for one in sitting:
            await one.partner.open_account(one.account_id, DEPOSIT)
        for _ in range(ROUNDS):
            round_id = await dealer.open_round("t1")
            for one in sitting:
                await one.sit(round_id)
            await taken_seats_are_refused(south, round_id)
            async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as playing:
                played = [playing.create_task(one.play(round_id)) for one in sitting]
                await dealer.close_betting(round_id)
            seen = played[0].result()
            assert [seat.seat for seat in seen.seats] == [2, 3, 5, 7]
            assert list(seen.dealer.cards) == list(seen.result.blackjack.dealer_cards)
        assert sum(one.acted for one in sitting) > ROUNDS
        assert [one.refused for one in sitting] == [[], [], []]

        log = await connect(running.server)
        events = await read_events(log)
        verified = await verify(log)
        await log.close()
        assert verified.right, verified.line()
        assert verified.rounds == ROUNDS
        staked = [e.body for e in events if isinstance(e.body, wallet.StakeReserved)]
        settled = [
            bet
            for event in events
            if isinstance(event.body, settlement.BetsSettled)
            for bet in event.body.bets
        ]
        assert sum(len(body.bets) for body in staked) == len(settled)
        assert {bet.bet for bet in settled} >= {"main", "perfect_pairs"}
        at = entry_pb2.Position(segment=1, sequence=events[-1].position.sequence)
        for one in sitting:
            available, reserved = await one.partner.balance(one.account_id, at_least=at)
            assert reserved == 0
            assert available == DEPOSIT + profit(events, one)
            listed = await one.partner.list_bets(at, account_id=one.account_id)
            assert {bet.state for bet in listed} == {partner.BET_STATE_SETTLED}


def profit(events: Sequence[Event], one: Seated) -> int:
    """What the log says that an account won."""
    owner = "south" if 7 in one.mains else "north"
    return sum(
        bet.profit_minor
        for event in events
        if isinstance(body := event.body, settlement.BetsSettled)
        and (body.partner_id, body.account_id) == (owner, one.account_id)
        for bet in body.bets
    )


async def taken_seats_are_refused(south: Partner, round_id: str) -> None:
    """Seat 3 is another partner's."""
    request = partner.PlaceBetsRequest(
        request_id=uuid7(),
        account_id="ann",
        table_id="t1",
        round_id=round_id,
        bets=[bet_pb2.BetRequest(bet="main", stake=money(1_00), position="3")],
    )
    try:
        await south.known(
            lambda: south.bets.PlaceBets(request, metadata=south.metadata, timeout=CALL_S)
        )
    except RefusedError as refused:
        assert refused.reason == "SEAT_TAKEN"  # noqa: PT017  # what it is refused for
    else:
        raise AssertionError("two accounts at one seat")
