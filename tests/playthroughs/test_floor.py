"""Whole rounds at tables on the floor as text, compared exactly with what lies beside this file.

A change of a text is a change of what the fleet does or says: look at it, and if it is meant, write
them anew with `python -m tests.playthroughs.test_floor`.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message

from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import bet_pb2, spec_pb2
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import floor_events_pb2 as orders
from services.cli.playthrough import Playthrough, playthrough
from services.games import catalogue
from services.kernel.memory_log import MemoryLog
from services.shoe.domain.events import ANSWERS as SHOE_ANSWERS
from services.simulator.virtual_time import run_virtual
from tests.fleet.small_cell import DEALER, PARTNER, PLACED, SUPERVISOR, SmallCell, memory_cell

HERE = Path(__file__).parent
SENSOR, SCANNER = "operator:wheel-7", "operator:scanner-1"
DEVICE, MANUAL = shoes.CARD_SOURCE_DEVICE, shoes.CARD_SOURCE_MANUAL
PACKS = [f"pack-{number}" for number in range(1, 9)]
ROUNDS = {
    "floor-late-bet-and-spun-again": "wheel-1",
    "floor-early-outcome": "wheel-2",
    "floor-misread-card": "shoe-1",
    "floor-ninth-copy": "shoe-2",
}
"""By file: the round that it tells of."""


def spec(table_id: str) -> spec_pb2.TableSpec:
    rule_set = catalogue.roulette() if table_id == "wheel" else catalogue.baccarat()
    return spec_pb2.TableSpec(
        table_id=table_id,
        currency_code="EUR",
        rule_set=rule_set,
        limits=[
            spec_pb2.BetLimit(bet=offer.bet, min_minor=1, max_minor=100_000, step_minor=1)
            for offer in rule_set.bets
        ],
        pacing=spec_pb2.Pacing(),
        origin=spec_pb2.OUTCOME_ORIGIN_FLOOR,
    )


async def tell(cell: SmallCell, body: Any, actor: str = DEALER) -> Message:
    """A dealer or a device tells; what it came to."""
    if "source" in body.DESCRIPTOR.fields_by_name:
        body.source = MANUAL if actor == DEALER else DEVICE
        body.device = "" if actor == DEALER else actor.removeprefix("operator:")
    return (await cell.submit("shoe", body, SHOE_ANSWERS, actor)).event.body


async def bet(cell: SmallCell, round_id: str, account: str, kind: str, place: str = "") -> None:
    body = table.PlaceBets(
        account_id=account,
        table_id=round_id.rpartition("-")[0],
        round_id=round_id,
        currency_code="EUR",
        bets=[bet_pb2.Bet(bet=kind, position=place, stake_minor=1_000)],
    )
    await cell.submit("table", body, PLACED, f"partner:{PARTNER}")


async def close(cell: SmallCell, round_id: str, called_us: int = 0) -> None:
    body = table.CloseBetting(
        table_id=round_id.rpartition("-")[0],
        round_id=round_id,
        source=table.SOURCE_OPERATOR,
        device_time_us=called_us,
    )
    await cell.order(body)


def spin(attempt: int, number: int, turns: int, round_id: str = "wheel-1") -> shoes.RecordSpin:
    return shoes.RecordSpin(
        table_id="wheel",
        round_id=round_id,
        attempt=attempt,
        number=number,
        turns=turns,
        direction=shoes.SPIN_DIRECTION_AGAINST,
    )


async def late_bet_and_spun_again(cell: SmallCell) -> None:
    """One bet in time, one taken back in time, one late; a spin of two turns; one of five."""
    round_id = await cell.open_round("wheel")
    await bet(cell, round_id, "ann", "straight", "17")
    await bet(cell, round_id, "ben", "red")
    withdrawal = table.WithdrawBets(account_id="ben", table_id="wheel", round_id=round_id)
    noted = frozenset((orders.WithdrawalNoted, table.WithdrawalRejected))
    await cell.submit("table", withdrawal, noted, f"partner:{PARTNER}")
    called_us = cell.clock()
    await asyncio.sleep(0.02)
    await bet(cell, round_id, "cid", "straight", "0")
    await close(cell, round_id, called_us)
    await called(cell, 1)
    await tell(cell, spin(1, 0, turns=2), SENSOR)
    await called(cell, 2)
    await cell.over(round_id, lambda: tell(cell, spin(2, 17, turns=5), SENSOR))


async def called(cell: SmallCell, attempt: int) -> None:
    def awaits() -> bool:
        toss = cell.process.state("shoe").tables["wheel"].toss
        return toss is not None and toss.attempt == attempt and not toss.invalid

    await cell.until(awaits, f"spin {attempt} is called")


async def early_outcome(cell: SmallCell) -> None:
    """The ball rests before the dealer has called: the round stands still, and is voided."""
    round_id = await cell.open_round("wheel")
    await bet(cell, round_id, "ann", "red")
    body = spin(1, 4, turns=6, round_id=round_id)
    body.device_time_us = cell.clock()
    await asyncio.sleep(0.02)
    await bet(cell, round_id, "ben", "black")
    await tell(cell, body, SENSOR)
    void = table.VoidRound(
        table_id="wheel", round_id=round_id, reason=table.ROUND_REASON_EARLY_OUTCOME
    )
    await cell.over(round_id, lambda: cell.order(void, SUPERVISOR))


async def filled(cell: SmallCell) -> None:
    """Eight packs become the first shoe; an ace is shown, and one card burned."""
    for pack in PACKS:
        received = floor.RegisterConsumable(
            consumable_id=pack, kind=floor.CONSUMABLE_KIND_CARDS, decks=1
        )
        await tell(cell, received)
    await tell(cell, floor.LoadShoe(table_id="shoe", number=1, decks=8, packs=PACKS))
    await card(cell, "", "AS")
    burn = floor.RecordBurn(
        table_id="shoe", shoe_id="shoe-s1", reason=shoes.BURN_REASON_SHOE_START, face_down=1
    )
    await tell(cell, burn)


async def card(cell: SmallCell, round_id: str, text: str, actor: str = SCANNER) -> Message:
    body = floor.RecordCard(table_id="shoe", shoe_id="shoe-s1", round_id=round_id, card=text)
    return await tell(cell, body, actor)


async def awaits(cell: SmallCell, cards: int) -> None:
    def called_() -> bool:
        call = cell.process.state("shoe").shoes["shoe-s1"].call
        return call is not None and len(call.hands) == cards

    await cell.until(called_, f"{cards} cards are called")


async def misread_card(cell: SmallCell) -> None:
    """Player's 7 is read as a 3, and a third card drawn for it; a supervisor says what it is."""
    round_id = await cell.open_round("shoe")
    await bet(cell, round_id, "ann", "player")
    await bet(cell, round_id, "ben", "banker")
    await close(cell, round_id)
    await awaits(cell, 4)
    for text, actor in (("2H", SCANNER), ("2D", SCANNER), ("3H", DEALER), ("5C", SCANNER)):
        await card(cell, round_id, text, actor)
    await awaits(cell, 1)
    named: dict[str, Any] = {"table_id": "shoe", "round_id": round_id}
    await cell.order(table.SuspendRound(**named, reason=table.ROUND_REASON_MISREAD), SUPERVISOR)
    await card(cell, round_id, "9D")
    fix = orders.CorrectCard(
        **named, index=4, card="7H", reason=table.ROUND_REASON_MISREAD, remark="glare"
    )
    until = frozenset((floor.CardCorrected, floor.FloorRejected, table.OrderRejected))
    await cell.submit("table", fix, until, SUPERVISOR)
    resume = table.ResumeRound(**named, reason=table.ROUND_REASON_CLEARED)
    await cell.over(round_id, lambda: cell.order(resume, SUPERVISOR))


async def ninth_copy(cell: SmallCell) -> None:
    """Eight kings are out; a ninth cannot be. It was a queen."""
    dropped = floor.RecordBurn(
        table_id="shoe", shoe_id="shoe-s1", reason=shoes.BURN_REASON_DROPPED, cards=["KS"] * 8
    )
    await tell(cell, dropped)
    round_id = await cell.open_round("shoe")
    await bet(cell, round_id, "ann", "tie")
    await close(cell, round_id)
    await awaits(cell, 4)
    await card(cell, round_id, "KS")
    await card(cell, round_id, "QS", DEALER)
    for text in ("4D", "7S", "3C"):
        await card(cell, round_id, text)
    resume = table.ResumeRound(
        table_id="shoe", round_id=round_id, reason=table.ROUND_REASON_CLEARED
    )
    await cell.over(round_id, lambda: cell.order(resume, SUPERVISOR))


def play() -> dict[str, Playthrough]:
    """All rounds, one after the other, on one log."""

    async def main() -> dict[str, Playthrough]:
        async with memory_cell(seed=5) as (cell, store):
            for table_id in ("wheel", "shoe"):
                await cell.order(table.OpenTable(spec=spec(table_id)), SUPERVISOR)
            for account in ("ann", "ben", "cid"):
                await cell.open_account(account, 100_000)
            await late_bet_and_spun_again(cell)
            await early_outcome(cell)
            await filled(cell)
            await misread_card(cell)
            await ninth_copy(cell)
        log = MemoryLog(store)
        return {name: await playthrough(log, round_id) for name, round_id in ROUNDS.items()}

    return run_virtual(main())


@pytest.fixture(scope="module")
def played() -> dict[str, Playthrough]:
    return play()


@pytest.mark.parametrize("name", ROUNDS)
def test_a_round_on_the_floor_is_told_as_it_was_written(
    played: dict[str, Playthrough], name: str
) -> None:
    assert played[name].text() == (HERE / f"{name}.txt").read_text()


if __name__ == "__main__":
    for file, one in play().items():
        (HERE / f"{file}.txt").write_text(one.text())
