"""Whole rounds of blackjack whose cards are told from the floor, as text, compared exactly with
what lies beside this file.

A change of a text is a change of what the fleet does or says: look at it, and if it is meant, write
them anew with `python -m tests.playthroughs.test_floor_blackjack`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.cli.playthrough import Playthrough, playthrough
from services.kernel.memory_log import MemoryLog, MemoryStore
from services.simulator.virtual_time import run_virtual
from tests.fleet.floor_dealer import FloorDealer, floor_spec
from tests.fleet.small_cell import DEALER, SmallCell, memory_cell

HERE = Path(__file__).parent
HIT, STAND = rules.ACTION_HIT, rules.ACTION_STAND
DOUBLE, SPLIT = rules.ACTION_DOUBLE, rules.ACTION_SPLIT
INSURE, DECLINE = rules.ACTION_INSURE, rules.ACTION_DECLINE_INSURANCE
ON, TAKEN = wallet.StakeReserved, table.ActionTaken


async def outcome(act: Awaitable[Any], expected: type[Any]) -> None:
    """What something came to; the story depends on it."""
    told = await act
    if not isinstance(told, expected):
        raise TypeError(f"{type(told).__name__} instead of {expected.__name__}: {told}")


async def bets(cell: SmallCell, dealer: FloorDealer, *seats: tuple[str, int]) -> str:
    """A round opens, and these accounts bet 10.00 at their seats; betting closes."""
    round_id = await dealer.open_round()
    for account, seat in seats:
        await outcome(cell.bet_at(round_id, account, ("main", seat, 1_000)), ON)
    await dealer.close()
    return round_id


async def looked_at(cell: SmallCell, dealer: FloorDealer) -> None:
    """An ace: Ann is insured, Ben is not. The scanner looks: no blackjack. Ann doubles, Ben splits
    and stands; the scanner does not read his second card, and the dealer enters it by hand."""
    round_id = await bets(cell, dealer, ("ann", 1), ("ben", 4))
    await dealer.deal("6H 8S AD 5C 8C ??")
    await outcome(cell.act(round_id, "ann", 1, INSURE), ON)
    await outcome(cell.act(round_id, "ben", 4, DECLINE), TAKEN)
    await outcome(dealer.look(False), shoes.HoleChecked)
    await outcome(cell.act(round_id, "ann", 1, DOUBLE, 1_000), ON)
    await dealer.deal("TS")
    await outcome(cell.act(round_id, "ben", 4, SPLIT), ON)
    await dealer.deal("3D")
    await dealer.deal("TC", DEALER)
    await outcome(cell.act(round_id, "ben", 4, HIT), TAKEN)
    await dealer.deal("9D")
    await outcome(cell.act(round_id, "ben", 4, STAND), TAKEN)
    await outcome(cell.act(round_id, "ben", 4, STAND), TAKEN)
    await outcome(dealer.turn_over("5D", DEALER), shoes.CardsDealt)
    await cell.over(round_id, lambda: dealer.deal("9S 2H"))


async def misread_in_a_split_hand(cell: SmallCell, dealer: FloorDealer) -> None:
    """Ben's second hand draws a five that is read as a six: the hand stands as it was dealt, on
    nineteen, and the turn that followed it still is the right one."""
    round_id = await bets(cell, dealer, ("ben", 2), ("cid", 3))
    await dealer.deal("9H 4S TD 9C TC ??")
    await outcome(cell.act(round_id, "ben", 2, SPLIT), ON)
    await dealer.deal("8D 5S")
    await outcome(cell.act(round_id, "ben", 2, STAND), TAKEN)
    await outcome(cell.act(round_id, "ben", 2, HIT), TAKEN)
    await dealer.deal("6C")
    await cell.turn_of(round_id, 2, 2)
    await dealer.suspend()
    await outcome(dealer.correct(dealer.shoe.gone - 1, "5H"), floor.CardCorrected)
    await outcome(dealer.resume(), table.RoundResumed)
    await outcome(cell.act(round_id, "ben", 2, STAND), TAKEN)
    await outcome(cell.act(round_id, "cid", 3, STAND), TAKEN)
    await outcome(dealer.turn_over("7C"), shoes.CardsDealt)
    await cell.until(lambda: not cell.process.state("table").tables["bj"].running, "it is over")


async def look_contradicted(cell: SmallCell, dealer: FloorDealer) -> None:
    """The look said no blackjack, the card is read as a king behind the ace: that cannot be both.
    The round stands still; it was a three, which the dealer enters."""
    round_id = await bets(cell, dealer, ("ann", 5))
    await dealer.deal("TS AC 9S ??")
    await outcome(cell.act(round_id, "ann", 5, DECLINE), TAKEN)
    await outcome(dealer.look(False, DEALER), shoes.HoleChecked)
    await outcome(cell.act(round_id, "ann", 5, STAND), TAKEN)
    await outcome(dealer.turn_over("KD"), floor.FloorFaultFound)
    await outcome(dealer.turn_over("3D", DEALER), shoes.CardsDealt)
    await outcome(dealer.resume(), table.RoundResumed)
    await cell.over(round_id, lambda: dealer.deal("6D"))


async def play_contradicted(cell: SmallCell, dealer: FloorDealer) -> None:
    """Ann's nine was read as an eight, and she hit twenty: with the right card it was twenty-one,
    which stands by itself. Resuming is refused; the round is voided, and its hole card was never
    turned over."""
    round_id = await bets(cell, dealer, ("ann", 1))
    await dealer.deal("5H 6C 7H ??")
    await outcome(cell.act(round_id, "ann", 1, HIT), TAKEN)
    await dealer.deal("8S")
    await outcome(cell.act(round_id, "ann", 1, HIT), TAKEN)
    await dealer.deal("AD")
    await cell.until(lambda: dealer.shoe.call is None, "nothing is called")
    await dealer.suspend()
    await outcome(dealer.correct(dealer.shoe.gone - 2, "9S"), floor.CardCorrected)
    await outcome(dealer.resume(), table.OrderRejected)
    await cell.over(round_id, lambda: dealer.void(table.ROUND_REASON_MISREAD))


async def early_cards(cell: SmallCell, dealer: FloorDealer) -> None:
    """Three cards are dealt before the dealer has called: the first is itself the call and stops
    the round, a fourth may be the hole card and is not taken. A supervisor lets it go on: the deal
    takes what is held."""
    round_id = await dealer.open_round()
    await outcome(cell.bet_at(round_id, "ann", ("main", 7, 1_000), ("21_plus_3", 7, 100)), ON)
    await asyncio.sleep(0.02)
    await outcome(dealer.card("QH"), floor.FloorFaultFound)
    one = cell.process.state("shoe").tables["bj"].at_floor
    await cell.until(lambda: one.sealed, "every stake is certain")
    for text in ("JH", "TH"):
        await outcome(dealer.card(text), floor.OutcomeHeld)
    await outcome(dealer.card("2C"), floor.FloorRejected)
    await outcome(dealer.resume(), table.RoundResumed)
    await dealer.await_hole()
    await dealer.deal("??")
    await outcome(cell.act(round_id, "ann", 7, STAND), TAKEN)
    await outcome(dealer.turn_over("2C"), shoes.CardsDealt)
    await cell.over(round_id, lambda: dealer.deal("4D 9H"))


async def out_of_turn(cell: SmallCell, dealer: FloorDealer) -> None:
    """A card slips out while Ann's turn is open: everybody has seen it. A supervisor lets the round
    go on, and the next call takes it."""
    round_id = await bets(cell, dealer, ("ann", 1), ("cid", 6))
    await dealer.deal("9C TD 7D 3S QD ??")
    await cell.turn_of(round_id, 1)
    await outcome(dealer.card("8D"), floor.FloorFaultFound)
    await outcome(dealer.resume(), table.RoundResumed)
    await outcome(cell.act(round_id, "ann", 1, HIT), TAKEN)
    await outcome(cell.act(round_id, "ann", 1, STAND), TAKEN)
    await outcome(cell.act(round_id, "cid", 6, STAND), TAKEN)
    await outcome(dealer.turn_over("TC"), shoes.CardsDealt)
    await cell.until(lambda: not cell.process.state("table").tables["bj"].running, "it is over")


STORIES = {
    "floor-blackjack-looked-at": looked_at,
    "floor-blackjack-misread-in-a-split-hand": misread_in_a_split_hand,
    "floor-blackjack-look-contradicted": look_contradicted,
    "floor-blackjack-play-contradicted": play_contradicted,
    "floor-blackjack-early-cards": early_cards,
    "floor-blackjack-out-of-turn": out_of_turn,
}


async def happened() -> tuple[MemoryStore, dict[str, str]]:
    """A log with all rounds, one after the other, and by story the round that it is."""
    rounds: dict[str, str] = {}
    async with memory_cell(seed=5) as (cell, store):
        dealer = FloorDealer(cell, "bj")
        await dealer.open(floor_spec("bj"))
        for account in ("ann", "ben", "cid"):
            await cell.open_account(account, 100_000)
        for name, story in STORIES.items():
            await story(cell, dealer)
            rounds[name] = dealer.round_id
    return store, rounds


def play() -> dict[str, Playthrough]:
    """All rounds as text."""

    async def main() -> dict[str, Playthrough]:
        store, rounds = await happened()
        log = MemoryLog(store)
        return {name: await playthrough(log, round_id) for name, round_id in rounds.items()}

    return run_virtual(main())


@pytest.fixture(scope="module")
def played() -> dict[str, Playthrough]:
    return play()


@pytest.mark.parametrize("name", STORIES)
def test_a_round_of_blackjack_on_the_floor_is_told_as_it_was_written(
    played: dict[str, Playthrough], name: str
) -> None:
    assert played[name].text() == (HERE / f"{name}.txt").read_text()


def test_vis_3_no_round_tells_a_hole_card_before_it_is_turned_over(
    played: dict[str, Playthrough],
) -> None:
    for one in played.values():
        told: set[int] = set()
        face_down: set[int] = set()
        for shown in one.shown:
            body: Any = shown.event.body
            match body:
                case floor.RecordFaceDown():
                    assert not any("card" in name for name in body.DESCRIPTOR.fields_by_name)
                    face_down.add(body.index)
                case rules.HoleCalled() if body.purpose == rules.HOLE_PURPOSE_REVEAL:
                    told |= face_down
                case floor.RecordCard():
                    assert body.index not in face_down - told
                case _:
                    pass
        assert len(face_down) == 1


if __name__ == "__main__":
    for file, one in play().items():
        (HERE / f"{file}.txt").write_text(one.text())
