"""Tables on the floor in a whole cell under virtual time: rounds, counts, corrections; faults and
long suspensions are alarms; and decided again the log says the same."""

from __future__ import annotations

from collections import Counter
from typing import Any

from google.protobuf.message import Message

from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import floor_events_pb2 as orders
from sabot.table.v1 import spec_pb2
from services.cli.fleet import CELL
from services.games.cards import pack
from services.shoe.floor_servicer import ORDER_ENDS as TOLD
from services.simulator.virtual_time import run_virtual
from tests.fleet.small_cell import SUPERVISOR, SmallCell, memory_cell, spec
from tests.histories.history import fold

DEVICE = "operator:scanner-1"
PACKS = [f"pack-{number}" for number in range(8)]


def floor_spec() -> spec_pb2.TableSpec:
    made = spec()
    made.origin = spec_pb2.OUTCOME_ORIGIN_FLOOR
    made.pacing.suspend_max_ms = 5_000
    return made


async def tell(cell: SmallCell, body: Any) -> Message:
    """A dealer or a device tells; what it came to."""
    if "source" in body.DESCRIPTOR.fields_by_name:
        body.source, body.device = shoes.CARD_SOURCE_DEVICE, "scanner-1"
    return (await cell.submit("shoe", body, TOLD, DEVICE)).event.body


async def opened(cell: SmallCell) -> None:
    """A baccarat table on the floor with its first shoe ready, and accounts `ann` and `ben`."""
    await cell.order(table.OpenTable(spec=floor_spec()), SUPERVISOR)
    for name in PACKS:
        await tell(
            cell,
            floor.RegisterConsumable(consumable_id=name, kind=floor.CONSUMABLE_KIND_CARDS, decks=1),
        )
    await cell.until(lambda: bool(cell.process.state("shoe").tables), "the shoe hears of it")
    await tell(cell, floor.LoadShoe(table_id="t1", number=1, decks=8, packs=PACKS))
    await tell(cell, floor.RecordCard(table_id="t1", shoe_id="t1-s1", card="AS"))
    await tell(
        cell,
        floor.RecordBurn(
            table_id="t1", shoe_id="t1-s1", reason=shoes.BURN_REASON_SHOE_START, face_down=1
        ),
    )
    for account in ("ann", "ben"):
        await cell.open_account(account, 100_000)


async def card(cell: SmallCell, round_id: str, text: str) -> Message:
    body = floor.RecordCard(table_id="t1", shoe_id="t1-s1", round_id=round_id, card=text)
    return await tell(cell, body)


async def called(cell: SmallCell, cards: int) -> None:
    def awaits() -> bool:
        shoe = cell.process.state("shoe").shoes["t1-s1"]
        return shoe.call is not None and len(shoe.call.hands) == cards

    await cell.until(awaits, f"{cards} cards are called")


def close(round_id: str) -> table.CloseBetting:
    return table.CloseBetting(table_id="t1", round_id=round_id, source=table.SOURCE_OPERATOR)


def run(play: Any) -> SmallCell:
    """Play on a memory log; then the log is decided again, to the same states."""

    async def main() -> SmallCell:
        async with memory_cell() as (cell, store):
            await play(cell)
            await cell.process.drain(5.0)
            live = cell.digests()
        folded = fold(CELL, store.entries())
        assert folded.digests() == live
        return cell

    return run_virtual(main())


def test_a_round_is_played_from_the_floor_and_decided_again_the_same() -> None:
    async def play(cell: SmallCell) -> None:
        await opened(cell)
        round_id = await cell.open_round()
        await cell.bet(round_id, "ann", ("banker", 1_000))

        async def deal() -> None:
            await cell.order(close(round_id))
            await called(cell, 4)
            for text in ("2H", "2D", "3H", "2C"):  # Player draws on 5, Banker on 4 against a 5.
                await card(cell, round_id, text)
            for text in ("5D", "4D"):
                await called(cell, 1)
                await card(cell, round_id, text)

        await cell.over(round_id, deal)
        accounts = cell.process.state("wallet").accounts
        assert accounts["acme", "ann"].available_minor == 100_950

    assert run(play).alarms == []


def test_bac_3_a_shoe_ends_with_its_cut_card_and_is_counted() -> None:
    dealt = ("9S", "2S", "TS", "3S")

    async def play(cell: SmallCell) -> None:
        await opened(cell)
        round_id = await cell.open_round()
        await cell.bet(round_id, "ann", ("tie", 100))
        await tell(cell, floor.RecordCutCard(table_id="t1", shoe_id="t1-s1"))

        async def deal() -> None:
            await cell.order(close(round_id))
            await called(cell, 4)
            for text in dealt:
                await card(cell, round_id, text)

        await cell.over(round_id, deal)
        tables = cell.process.state("shoe").tables
        await cell.until(lambda: tables["t1"].awaited_number == 2, "the shoe is over")
        left = Counter(pack(8)) - Counter(("AS", *dealt))
        missing = list((left - Counter(("KD",))).elements())
        told = await tell(
            cell,
            floor.RecordRemaining(table_id="t1", shoe_id="t1-s1", cards=missing, last=True),
        )
        assert isinstance(told, floor.ShoeCensus)
        assert (list(told.missing), told.over, told.complete) == (["KD"], True, False)
        again = await tell(cell, floor.LoadShoe(table_id="t1", number=2, decks=8, packs=PACKS))
        assert isinstance(again, floor.FloorRejected)
        for name in PACKS:
            move = floor.MoveConsumable(
                consumable_id=name, movement=floor.MOVEMENT_INSPECTED, reason="recounted"
            )
            await tell(cell, move)
        again = await tell(cell, floor.LoadShoe(table_id="t1", number=2, decks=8, packs=PACKS))
        assert isinstance(again, shoes.ShoeOpened)

    assert [kind for kind, _ in run(play).alarms] == ["floor_fault"]


def test_a_ninth_copy_and_a_suspension_that_lasts_are_alarms() -> None:
    async def play(cell: SmallCell) -> None:
        await opened(cell)
        round_id = await cell.open_round()
        await cell.bet(round_id, "ann", ("banker", 1_000))
        dropped = floor.RecordBurn(
            table_id="t1",
            shoe_id="t1-s1",
            reason=shoes.BURN_REASON_DROPPED,
            cards=["KS"] * 8,
        )
        await tell(cell, dropped)
        await cell.order(close(round_id))
        await called(cell, 4)

        def escalates(event: Any) -> bool:
            return isinstance(event.body, orders.SuspensionEscalated)

        async def ninth() -> None:
            told = await card(cell, round_id, "KS")
            assert isinstance(told, floor.FloorFaultFound)

        escalated = await cell.event(escalates, ninth)
        assert 5_000 <= escalated.body.suspended_ms < 5_200  # type: ignore[attr-defined] # escalated
        assert cell.process.state("table").tables["t1"].running.suspended
        void = table.VoidRound(table_id="t1", round_id=round_id, reason=table.ROUND_REASON_MISDEAL)
        await cell.over(round_id, lambda: cell.order(void, SUPERVISOR))
        assert cell.process.state("wallet").accounts["acme", "ann"].available_minor == 100_000

    cell = run(play)
    assert [kind for kind, _ in cell.alarms] == ["floor_fault", "suspension_escalated"]
    fault, escalation = (facts for _, facts in cell.alarms)
    assert (fault["fault"], fault["told"], fault["table_id"]) == (
        "FLOOR_FAULT_IMPOSSIBLE_CARD",
        "KS",
        "t1",
    )
    assert escalation["round_id"] == "t1-1"


def test_a_misread_card_is_corrected_and_the_corrected_hands_are_paid() -> None:
    async def play(cell: SmallCell) -> None:
        await opened(cell)
        round_id = await cell.open_round()
        await cell.bet(round_id, "ann", ("banker", 1_000))
        await cell.bet(round_id, "ben", ("player", 1_000))
        await cell.order(close(round_id))
        await called(cell, 4)
        for text in ("2H", "2D", "3H", "5C"):
            await card(cell, round_id, text)
        await called(cell, 1)  # Player's third on a 5; but the 3 was a 7.
        named: dict[str, Any] = {"table_id": "t1", "round_id": round_id}
        suspend = table.SuspendRound(**named, reason=table.ROUND_REASON_MISREAD)
        await cell.order(suspend, SUPERVISOR)
        fix = orders.CorrectCard(**named, index=4, card="7H", reason=table.ROUND_REASON_MISREAD)
        until = frozenset((floor.CardCorrected, floor.FloorRejected, table.OrderRejected))
        outcome = await cell.submit("table", fix, until, SUPERVISOR)
        assert isinstance(outcome.event.body, floor.CardCorrected)
        resume = table.ResumeRound(**named, reason=table.ROUND_REASON_CLEARED)
        await cell.over(round_id, lambda: cell.order(resume, SUPERVISOR))
        accounts = cell.process.state("wallet").accounts
        # 2 and 7 are a natural 9 of Player's: nobody draws.
        assert accounts["acme", "ben"].available_minor == 101_000
        assert accounts["acme", "ann"].available_minor == 99_000

    assert run(play).alarms == []
