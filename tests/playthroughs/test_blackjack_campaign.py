"""Rounds of blackjack by chance through a whole cell: seven seats, every option, timeouts,
refusals, suspensions and voids. A model of its own says what every bet is worth, and the log is
decided again.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from sabot.rules.v1 import events_pb2 as rules
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import spec_pb2
from sabot.wallet.v1 import events_pb2 as wallet
from services.cli.replay import verify
from services.games.blackjack import Peek
from services.games.catalogue import blackjack
from services.kernel.event import Event
from services.kernel.memory_log import MemoryLog, MemoryStore
from services.simulator.virtual_time import run_virtual
from tests.fleet.small_cell import PARTNER, PLACED, SUPERVISOR, SmallCell, memory_cell

ROUNDS = 30
"""Of each table."""
SEED = 2
ACCOUNTS = ("ann", "ben", "cid", "dan")
TABLES = {
    "usual": (blackjack(), spec_pb2.TIMEOUT_POLICY_STAND),
    "both": (blackjack(peek=Peek.BOTH), spec_pb2.TIMEOUT_POLICY_BASIC_STRATEGY),
    "none": (
        blackjack(peek=Peek.NONE, doubles=False, one_card_on_split_aces=False),
        spec_pb2.TIMEOUT_POLICY_BASIC_STRATEGY,
    ),
}


def spec(table_id: str) -> spec_pb2.TableSpec:
    rule_set, policy = TABLES[table_id]
    return spec_pb2.TableSpec(
        table_id=table_id,
        currency_code="EUR",
        rule_set=rule_set,
        limits=[
            spec_pb2.BetLimit(bet=offer.bet, min_minor=1, max_minor=2_000, step_minor=1)
            for offer in rule_set.bets
        ],
        pacing=spec_pb2.Pacing(action_ms=2_000),
        restrictions=spec_pb2.Restrictions(max_account_minor=6_000),
        timeout_policy=policy,
    )


class Gamblers:
    """Answer every question at a table somehow, or not at all."""

    def __init__(self, cell: SmallCell, chance: random.Random) -> None:
        self._cell = cell
        self._chance = chance
        self._tasks: set[asyncio.Task[Any]] = set()
        cell.process.follow(self._hear)

    def _hear(self, events: list[Event]) -> None:
        for event in events:
            body = event.body
            if isinstance(body, rules.ActionCalled):
                self._begin(body, body.seat, list(body.actions), body.max_double_minor)
            elif isinstance(body, rules.InsuranceOffered):
                for seat in body.seats:
                    self._begin(
                        body, seat, [rules.ACTION_INSURE, rules.ACTION_DECLINE_INSURANCE], 0
                    )

    def _begin(self, asked: Any, seat: int, actions: list[Any], most: int) -> None:
        if self._chance.random() < 0.85:
            task = asyncio.ensure_future(self._act(asked, seat, actions, most))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _act(self, asked: Any, seat: int, actions: list[Any], most: int) -> None:
        """Perhaps late, perhaps wrong, perhaps twice."""
        chance = self._chance
        running = self._cell.process.state("table").tables[asked.table_id].running
        held = None if running is None else running.seats.get(seat)
        if held is None:
            return
        for _ in range(chance.choice((1, 1, 2))):
            await asyncio.sleep(chance.random() * 2.2)
            action = chance.choice(actions)
            extra = 0
            if action == rules.ACTION_DOUBLE:
                extra = chance.randint(1, most + 5)
            body = table.Act(
                account_id=chance.choice((held.account_id,) * 9 + ACCOUNTS[:1]),
                table_id=asked.table_id,
                round_id=asked.round_id,
                seat=seat,
                turn=asked.turn,
                action=action,
                extra_minor=extra,
            )
            until = PLACED | {table.ActionTaken, table.ActionRejected}
            await self._cell.submit("table", body, until, f"partner:{PARTNER}")

    async def over(self) -> None:
        while self._tasks:
            await asyncio.gather(*self._tasks)


async def one_round(cell: SmallCell, chance: random.Random, table_id: str) -> None:
    round_id = await cell.open_round(table_id)
    seats = chance.sample(range(1, 8), chance.randint(0, 7))
    for seat in seats:
        account = chance.choice(ACCOUNTS)
        bets = [("main", seat, chance.choice((1, 2, 3, 100, 501, 1_999, 2_001)))]
        sides = [side for side in ("perfect_pairs", "21_plus_3") if chance.random() < 0.4]
        bets.extend((side, seat, chance.choice((1, 10, 77))) for side in sides)
        await cell.bet_at(round_id, account, *bets)
        if chance.random() < 0.1:
            await cell.withdraw(round_id, account)

    async def play() -> None:
        close = table.CloseBetting(
            table_id=table_id, round_id=round_id, source=table.SOURCE_OPERATOR
        )
        await cell.order(close)
        if chance.random() < 0.3:
            await trouble(cell, chance, table_id, round_id)

    await cell.over(round_id, play)


async def trouble(cell: SmallCell, chance: random.Random, table_id: str, round_id: str) -> None:
    """A supervisor suspends the round, and lets it go on or voids it; perhaps it is over before."""
    about: dict[str, Any] = {"table_id": table_id, "round_id": round_id}
    await asyncio.sleep(chance.random() * 12)
    await cell.order(table.SuspendRound(**about, reason=table.ROUND_REASON_EQUIPMENT), SUPERVISOR)
    await asyncio.sleep(chance.random() * 3)
    if chance.random() < 0.4:
        await cell.order(table.VoidRound(**about, reason=table.ROUND_REASON_DISPUTE), SUPERVISOR)
    else:
        resume = table.ResumeRound(**about, reason=table.ROUND_REASON_CLEARED)
        await cell.order(resume, SUPERVISOR)


async def campaign(seed: int) -> tuple[MemoryStore, list[Event]]:
    chance = random.Random(seed)
    heard: list[Event] = []
    async with memory_cell(seed=seed) as (cell, store):
        cell.process.follow(heard.extend)
        for account in ACCOUNTS:
            await cell.open_account(account, chance.choice((3_000, 200_000)))
        gamblers = Gamblers(cell, chance)
        for table_id in TABLES:
            await cell.open_table(spec(table_id))
        for _ in range(ROUNDS):
            for table_id in TABLES:
                await one_round(cell, chance, table_id)
        await gamblers.over()
        assert cell.alarms == []
    return store, heard


# ---- a second model, which knows nothing of the first ------------------------------------------


WORTH = {"A": 11, "T": 10, "J": 10, "Q": 10, "K": 10}


def points(cards: Sequence[str]) -> int:
    """The best total, aces tried one by one."""
    counts = [WORTH.get(card[0]) or int(card[0]) for card in cards]
    total = sum(counts)
    for _ in range(counts.count(11)):
        if total > 21:
            total -= 10
    return total


def hand_pays(cards: Sequence[str], dealer: Sequence[str], split: bool, stake: int) -> int:
    """What comes back for a hand."""
    mine, theirs = points(cards), points(dealer)
    natural = mine == 21 and len(cards) == 2 and not split
    dealers = theirs == 21 and len(dealer) == 2
    if mine > 21:
        return 0
    if natural or dealers:
        if natural and dealers:
            return stake
        return stake + stake * 3 // 2 if natural else 0
    if theirs > 21 or mine > theirs:
        return 2 * stake
    return stake if mine == theirs else 0


ORDER = "A23456789TJQKA"
PAIRS = {"same": 25, "colour": 12, "rank": 6}


def side_pays(bet: str, two: Sequence[str], up: str, stake: int) -> int:
    if bet == "perfect_pairs":
        if two[0][0] != two[1][0]:
            return 0
        red = [card[1] in "HD" for card in two]
        kind = "same" if two[0] == two[1] else "colour" if red[0] == red[1] else "rank"
        return stake * (PAIRS[kind] + 1)
    three = [*two, up]
    ranks = {card[0] for card in three}
    flush = len({card[1] for card in three}) == 1
    straight = any(ranks == set(ORDER[at : at + 3]) for at in range(12))
    if len(ranks) == 1:
        return stake * (101 if flush else 31)
    if straight:
        return stake * (41 if flush else 11)
    return stake * 6 if flush else 0


def worth(bet: Any, result: rules.BlackjackResult) -> int:
    """What comes back for a settled bet."""
    seat = next(one for one in result.seats if str(one.seat) == bet.position)
    dealer, hands = list(result.dealer_cards), [list(one.cards) for one in seat.hands]
    split = len(hands) == 2
    match bet.bet:
        case "main" | "double":
            return hand_pays(hands[0], dealer, split, bet.stake_minor)
        case "split":
            return hand_pays(hands[1], dealer, True, bet.stake_minor)
        case "insurance":
            natural = points(dealer) == 21 and len(dealer) == 2
            return 3 * bet.stake_minor if natural else 0
        case _:
            two = [hands[0][0], hands[1][0]] if split else hands[0][:2]
            return side_pays(bet.bet, two, dealer[0], bet.stake_minor)


@pytest.mark.timeout(300)
def test_rounds_by_chance() -> None:
    async def main() -> tuple[list[Event], Any]:
        store, heard = await campaign(SEED)
        return heard, await verify(MemoryLog(store))

    heard, verified = run_virtual(main())
    assert verified.right, verified.line()
    results: dict[str, rules.BlackjackResult] = {}
    seen: Counter[str] = Counter()
    dealt: dict[str, list[int]] = {}
    for event in heard:
        body = event.body
        match body:
            case table.ResultAccepted():
                results[body.round_id] = body.result.blackjack
            case settlement.BetsSettled():
                for bet in body.bets:
                    assert bet.payout_minor == worth(bet, results[body.round_id]), (event, bet)
                    seen[bet.bet] += 1
            case table.ActionTaken():
                name = rules.Action.Name(body.action)
                seen[name + (" by the system" if body.source else "")] += 1
            case table.ActionRejected():
                seen[table.Refusal.Name(body.refusal)] += 1
            case wallet.StakeDeclined() if body.stage:
                seen["declined later"] += 1
            case table.RoundVoided():
                seen["voided"] += 1
            case shoe.CardsDealt():
                places = dealt.setdefault(body.shoe_id, [])
                places.extend(card.index for card in body.cards if card.card)
            case _:
                pass
    for places in dealt.values():
        assert len(places) == len(set(places))  # No card is dealt twice; a hole card once, open.
    for what in ("main", "double", "split", "insurance", "perfect_pairs", "21_plus_3", "voided"):
        assert seen[what], seen
    for what in ("ACTION_HIT by the system", "ACTION_STAND by the system", "REFUSAL_NOT_YOUR_TURN"):
        assert seen[what], seen
