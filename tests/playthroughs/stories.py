"""Rounds to be told: what is bet by whom and what comes of it, and what is dealt, spun or
rolled."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from sabot.limits.v1 import events_pb2 as limits
from sabot.rules.v1 import rule_set_pb2
from sabot.table.v1 import bet_pb2, spec_pb2
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.games import roulette, sicbo
from tests.fleet.small_cell import PARTNER, PLACED, SUPERVISOR, SmallCell

ON, DECLINED = wallet.StakeReserved, wallet.StakeDeclined
REFUSED, REJECTED = limits.BetsRefused, table.BetsRejected
BACK, STANDS = wallet.StakeReturned, limits.WithdrawalRefused

Bet = tuple[str, int] | tuple[str, int, str]
"""(kind, stake in minor units, position)"""
Step = Callable[[SmallCell, str], Awaitable[None]]
"""Something that happens in a round, by its id."""


class Story(NamedTuple):
    """A round at a table of its own."""

    rule_set: rule_set_pb2.RuleSet
    steps: Sequence[Step]
    """In the betting window."""
    cards: str = ""
    """What its shoe begins with; of baccarat the shown card and the burned ones first."""
    number: int = -1
    """What the wheel shows."""
    dice: tuple[int, int, int] | tuple[()] = ()
    restrictions: spec_pb2.Restrictions | None = None
    least: int = 1
    """Of each place, minor units."""
    step: int = 1
    rounds_before: int = 0
    """Rounds that nobody bets on."""
    ends: Step | None = None
    """What ends it; None: betting closes and it is paid."""

    def spec(self, table_id: str) -> spec_pb2.TableSpec:
        """What governs its table."""
        return spec_pb2.TableSpec(
            table_id=table_id,
            currency_code="EUR",
            rule_set=self.rule_set,
            limits=[
                spec_pb2.BetLimit(
                    bet=offer.bet, min_minor=self.least, max_minor=10_000, step_minor=self.step
                )
                for offer in self.rule_set.bets
            ],
            pacing=spec_pb2.Pacing(),
            restrictions=self.restrictions,
        )

    def tosses(self) -> list[tuple[int, int]]:
        """What is drawn for it, with the bound that it is drawn below."""
        if self.number >= 0:
            return [(self.number, len(roulette.NUMBERS))]
        return [(sicbo.ROLLS.index(self.dice), len(sicbo.ROLLS))] if self.dice else []


def bets(account_id: str, *wagers: Bet, comes_to: type[Any] = ON) -> Step:
    """An account places bets; the story depends on what that comes to."""

    async def step(cell: SmallCell, round_id: str) -> None:
        body = table.PlaceBets(
            account_id=account_id,
            table_id=round_id.rpartition("-")[0],
            round_id=round_id,
            currency_code="EUR",
            bets=[
                bet_pb2.Bet(bet=bet, stake_minor=minor, position="".join(position))
                for bet, minor, *position in wagers
            ],
        )
        told = (await cell.submit("table", body, PLACED, f"partner:{PARTNER}")).event.body
        expect(told, comes_to)

    return step


def takes_back(account_id: str, *numbers: int, comes_to: type[Any] = BACK) -> Step:
    """An account takes back bets, by their numbers in the round."""

    async def step(cell: SmallCell, round_id: str) -> None:
        told = await cell.withdraw(round_id, account_id, *(f"{round_id}.{one}" for one in numbers))
        expect(told, comes_to)

    return step


def voids(reason: table.RoundReason.ValueType) -> Step:
    """A supervisor voids the round."""

    async def step(cell: SmallCell, round_id: str) -> None:
        table_id = round_id.rpartition("-")[0]
        order = table.VoidRound(table_id=table_id, round_id=round_id, reason=reason)
        await cell.over(round_id, lambda: cell.order(order, SUPERVISOR))

    return step


def expect(told: Any, what: type[Any]) -> None:
    """The story goes wrong where something else comes."""
    if not isinstance(told, what):
        raise TypeError(f"{type(told).__name__} instead of {what.__name__}: {told}")


async def tell(cell: SmallCell, table_id: str, story: Story) -> str:
    """Let it happen; the id of its round."""
    await cell.open_table(story.spec(table_id))
    for _ in range(story.rounds_before):
        await cell.close_betting(await cell.open_round(table_id))
    round_id = await cell.open_round(table_id)
    for step in story.steps:
        await step(cell, round_id)
    if story.ends is None:
        await cell.close_betting(round_id)
    else:
        await story.ends(cell, round_id)
    return round_id
