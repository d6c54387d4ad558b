"""Whole rounds of blackjack as text, compared exactly with what lies beside this file.

A change of a text is a change of what the fleet does or says: look at it, and if it is meant, write
them anew with `python -m tests.playthroughs.test_blackjack`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sabot.limits.v1 import events_pb2 as limits
from sabot.rules.v1 import events_pb2 as rules
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import spec_pb2
from sabot.wallet.v1 import events_pb2 as wallet
from services.cli.playthrough import Playthrough, playthrough
from services.games.blackjack import Peek
from services.games.catalogue import blackjack
from services.kernel.memory_log import MemoryLog, MemoryStore
from services.simulator.virtual_time import run_virtual
from tests.fleet.small_cell import SUPERVISOR, SmallCell, memory_cell
from tests.fleet.stacked_shoe import stacked_generator

HERE = Path(__file__).parent
HIT, STAND = rules.ACTION_HIT, rules.ACTION_STAND
DOUBLE, SPLIT = rules.ACTION_DOUBLE, rules.ACTION_SPLIT
INSURE, DECLINE = rules.ACTION_INSURE, rules.ACTION_DECLINE_INSURANCE
ON, DECLINED, REFUSED = wallet.StakeReserved, wallet.StakeDeclined, limits.BetsRefused
TAKEN, REJECTED = table.ActionTaken, table.ActionRejected
MONEY = {"ann": 100_000, "ben": 1_500, "cid": 50_000}
"""What each account has at first, in minor units."""


def spec(
    table_id: str,
    *,
    peek: Peek = Peek.ACE_ONLY,
    policy: spec_pb2.TimeoutPolicy.ValueType = spec_pb2.TIMEOUT_POLICY_UNSPECIFIED,
    max_account: int = 0,
) -> spec_pb2.TableSpec:
    """A table of blackjack in euro, whose betting an operator closes."""
    rule_set = blackjack(peek=peek)
    return spec_pb2.TableSpec(
        table_id=table_id,
        currency_code="EUR",
        rule_set=rule_set,
        limits=[
            spec_pb2.BetLimit(bet=offer.bet, min_minor=1, max_minor=100_000, step_minor=1)
            for offer in rule_set.bets
        ],
        pacing=spec_pb2.Pacing(action_ms=5_000),
        restrictions=spec_pb2.Restrictions(max_account_minor=max_account),
        timeout_policy=policy,
    )


async def outcome(act: Awaitable[Any], expected: type[Any]) -> None:
    """What a request came to; the story depends on it."""
    told = await act
    if not isinstance(told, expected):
        raise TypeError(f"{type(told).__name__} instead of {expected.__name__}: {told}")


async def deal(cell: SmallCell, round_id: str) -> None:
    """No more bets."""
    await cell.order(
        table.CloseBetting(
            table_id=round_id.rpartition("-")[0], round_id=round_id, source=table.SOURCE_OPERATOR
        )
    )


async def naturals(cell: SmallCell, round_id: str) -> None:
    """Three seats against an ace: a blackjack and a nineteen are insured, the dealer has one too.
    Ann's side bets are decided by the deal."""
    await outcome(
        cell.bet_at(
            round_id, "ann", ("main", 1, 1_000), ("perfect_pairs", 1, 100), ("21_plus_3", 1, 100)
        ),
        ON,
    )
    await outcome(cell.bet_at(round_id, "ben", ("main", 3, 501)), ON)
    await outcome(cell.bet_at(round_id, "cid", ("main", 3, 500)), table.BetsRejected)
    await outcome(cell.bet_at(round_id, "cid", ("main", 7, 500)), ON)
    await deal(cell, round_id)
    await outcome(cell.act(round_id, "ann", 1, INSURE), ON)
    await outcome(cell.act(round_id, "ann", 1, DECLINE, turn=1), REJECTED)
    await outcome(cell.act(round_id, "ben", 3, INSURE), ON)
    await outcome(cell.act(round_id, "cid", 7, DECLINE), TAKEN)


async def splits(cell: SmallCell, round_id: str) -> None:
    """Split aces get one card each and stand, ace and ten among them is no blackjack; split tens
    are played on, one of them busts."""
    await outcome(cell.bet_at(round_id, "ann", ("main", 2, 1_000)), ON)
    await outcome(cell.bet_at(round_id, "cid", ("main", 5, 400)), ON)
    await deal(cell, round_id)
    await outcome(cell.act(round_id, "ann", 2, SPLIT), ON)
    await outcome(cell.act(round_id, "cid", 5, SPLIT), ON)
    await outcome(cell.act(round_id, "cid", 5, DOUBLE, 10), REJECTED)
    await outcome(cell.act(round_id, "cid", 5, HIT), TAKEN)
    await outcome(cell.act(round_id, "cid", 5, STAND), TAKEN)


async def doubles(cell: SmallCell, round_id: str) -> None:
    """Ann doubles for less; Ben has no money for it, hits instead; Cid is over the account's
    maximum. Acting out of turn and at another's seat are refused."""
    await outcome(cell.bet_at(round_id, "ann", ("main", 1, 1_000)), ON)
    await outcome(cell.bet_at(round_id, "ben", ("main", 2, 900)), ON)
    await outcome(cell.bet_at(round_id, "cid", ("main", 3, 2_000)), ON)
    await deal(cell, round_id)
    await outcome(cell.act(round_id, "ben", 1, HIT), REJECTED)
    await outcome(cell.act(round_id, "ann", 1, DOUBLE, 1_001), REJECTED)
    await outcome(cell.act(round_id, "ben", 2, HIT, turn=1), REJECTED)
    await outcome(cell.act(round_id, "ann", 1, DOUBLE, 250), ON)
    await outcome(cell.act(round_id, "ben", 2, DOUBLE, 900), DECLINED)
    await outcome(cell.act(round_id, "ben", 2, HIT), TAKEN)
    await outcome(cell.act(round_id, "cid", 3, DOUBLE, 2_000), REFUSED)
    await outcome(cell.act(round_id, "cid", 3, STAND), TAKEN)


async def timeouts(cell: SmallCell, round_id: str) -> None:
    """Nobody answers the offer of insurance, and nobody acts: the system plays basic strategy."""
    await outcome(cell.bet_at(round_id, "ann", ("main", 4, 1_000)), ON)
    await outcome(cell.bet_at(round_id, "cid", ("main", 6, 1_000)), ON)
    await deal(cell, round_id)


async def unseen_blackjack(cell: SmallCell, round_id: str) -> None:
    """Nobody looks at a ten: the dealer's blackjack comes out at the end, and takes the double."""
    await outcome(cell.bet_at(round_id, "ann", ("main", 1, 1_000)), ON)
    await outcome(cell.bet_at(round_id, "cid", ("main", 2, 1_000)), ON)
    await deal(cell, round_id)
    await outcome(cell.act(round_id, "ann", 1, DOUBLE, 1_000), ON)


async def voided(cell: SmallCell, round_id: str) -> None:
    """Insured, split and busted, then suspended and voided in the middle of a hand: every stake
    goes back, and the hole card is never opened."""
    await outcome(cell.bet_at(round_id, "ann", ("main", 1, 1_000), ("perfect_pairs", 1, 50)), ON)
    await outcome(cell.bet_at(round_id, "cid", ("main", 2, 600)), ON)
    await deal(cell, round_id)
    await outcome(cell.act(round_id, "ann", 1, INSURE), ON)
    await outcome(cell.act(round_id, "cid", 2, DECLINE), TAKEN)
    await outcome(cell.act(round_id, "ann", 1, SPLIT), ON)
    await outcome(cell.act(round_id, "ann", 1, HIT), TAKEN)
    await outcome(cell.act(round_id, "ann", 1, HIT), TAKEN)
    await cell.turn_of(round_id, 1, hand=2)
    about: dict[str, Any] = {"table_id": round_id.rpartition("-")[0], "round_id": round_id}
    suspend = table.SuspendRound(**about, reason=table.ROUND_REASON_DEALER_ERROR)
    await outcome(cell.order(suspend), table.RoundSuspended)
    await outcome(cell.act(round_id, "ann", 1, STAND), REJECTED)
    void = table.VoidRound(
        **about, reason=table.ROUND_REASON_DEALER_ERROR, remark="a card was dropped"
    )
    await outcome(cell.order(void, SUPERVISOR), table.RoundVoided)


async def nobody(cell: SmallCell, round_id: str) -> None:
    """Nobody bets: nothing is dealt."""
    await deal(cell, round_id)


class Story(NamedTuple):
    """A round at a table of its own."""

    spec: spec_pb2.TableSpec
    cards: str
    """What its shoe begins with."""
    play: Callable[[SmallCell, str], Awaitable[None]]


BASIC = spec_pb2.TIMEOUT_POLICY_BASIC_STRATEGY
STORIES = {
    "naturals-and-insurance": Story(spec("naturals"), "AS TH 9C AD KS 9D 9H KC", naturals),
    "split-aces-and-tens": Story(spec("splits"), "AS KD 6C AH TD TC KH 5S 7D 6H 8C TS 2S", splits),
    "doubles-refused-and-declined": Story(
        spec("doubles", max_account=3_000), "5S 4H 9C 9D 6S 7H 9H 8D TH 7S", doubles
    ),
    "timeouts": Story(spec("timeouts", policy=BASIC), "TS 5H AD 2S 4H 6C 8S KH", timeouts),
    "unseen-blackjack": Story(spec("unseen"), "6S AS KD 5S KH AC TH", unseen_blackjack),
    "voided-mid-hand": Story(spec("voided"), "8S TS AD 8D 9S 6C 2H 3H TD KH", voided),
    "nobody": Story(spec("nobody"), "", nobody),
}


async def happened() -> MemoryStore:
    """All rounds, one after the other, on one log. Run it under virtual time."""
    generator = stacked_generator([story.cards for story in STORIES.values()])
    async with memory_cell(seed=3, generator=generator) as (cell, store):
        for account, minor in MONEY.items():
            await cell.open_account(account, minor)
        for story in STORIES.values():
            await cell.open_table(story.spec)
            round_id = await cell.open_round(story.spec.table_id)
            await cell.over(round_id, lambda: story.play(cell, round_id))  # noqa: B023  # at once
        if cell.alarms:
            raise RuntimeError(f"alarms: {cell.alarms}")
    return store


def play() -> dict[str, Playthrough]:
    """Every round as text."""

    async def main() -> dict[str, Playthrough]:
        log = MemoryLog(await happened())
        return {
            name: await playthrough(log, f"{story.spec.table_id}-1")
            for name, story in STORIES.items()
        }

    return run_virtual(main())


@pytest.fixture(scope="module")
def played() -> dict[str, Playthrough]:
    return play()


def file_of(name: str) -> Path:
    return HERE / f"blackjack-{name}.txt"


@pytest.mark.parametrize("name", STORIES)
def test_a_round_is_told_as_it_was_written(played: dict[str, Playthrough], name: str) -> None:
    assert played[name].text() == file_of(name).read_text()


if __name__ == "__main__":
    for told, one in play().items():
        file_of(told).write_text(one.text())
