"""Blackjack on the floor in a whole cell under virtual time, by chance: seats that act or do not,
cards that are misread and corrected, looks that are wrong, cards out of turn, tellings that come
twice, voids. Every round ends; a round that is paid has the cards that lay on the cloth; the hole
card is nowhere in the log before it is turned over; and decided again the log says the same."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message

from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import events_pb2 as table
from services.cli.fleet import CELL
from services.events import event_types
from services.games import catalogue, steps
from services.games.blackjack import Peek, is_blackjack
from services.games.cards import CARDS, pack
from services.kernel.event import Event, Position
from services.kernel.memory_log import MemoryLog
from services.kernel.projections import Projector
from services.kernel.reader import LogReader, ReadEntry
from services.kernel.recovery import entries_until
from services.shoe.domain.core import CORE as SHOE
from services.shoe.domain.hole_on_floor import may_lie_face_down, next_place
from services.simulator.virtual_time import run_virtual
from services.table.projection import TableProjection
from services.table.projection_queries import SqlTableQueries
from tests.fleet.floor_dealer import FACE_DOWN, FloorDealer, floor_spec
from tests.fleet.small_cell import SmallCell, memory_cell
from tests.histories.history import fold

ACCOUNTS = {"ann": (1, 4), "ben": (2,), "cid": (7,)}
"""The seats of each."""
ROUNDS = 8
"""Of a shoe: more would reach its cut card."""
STAKED = {rules.ACTION_DOUBLE, rules.ACTION_SPLIT, rules.ACTION_INSURE}


@dataclass
class Cloth:
    """What really lies on the table."""

    chance: random.Random
    left: list[str]
    by_place: dict[int, str] = field(default_factory=dict)
    misread: dict[int, str] = field(default_factory=dict)
    """By place: what a card was read as, where that is wrong and not corrected yet."""
    unnoticed: dict[int, str] = field(default_factory=dict)
    """The same of rounds that are over: the last card brought the result before anybody saw it."""

    def card(self, place: int) -> str:
        if place not in self.by_place:
            self.by_place[place] = self.left.pop()
        return self.by_place[place]

    def reading(self, place: int, misreads: float) -> str:
        """What the scanner reads."""
        right = self.card(place)
        if self.chance.random() >= misreads:
            return right
        self.misread[place] = self.chance.choice([one for one in CARDS if one != right])
        return self.misread[place]


class Hall:
    """One table, its dealer and its bettors, by chance."""

    def __init__(self, cell: SmallCell, seed: int) -> None:
        self.cell = cell
        self.chance = random.Random(seed)
        cards = list(pack(8))
        self.chance.shuffle(cards)
        self.cloth = Cloth(self.chance, cards)
        self.dealer = FloorDealer(cell, "bj")
        self.answered: set[tuple[str, int, int]] = set()
        self.ended: dict[str, str] = {}

    @property
    def running(self) -> Any:
        return self.cell.process.state("table").tables["bj"].running

    async def play(self, misreads: float) -> None:
        peek = self.chance.choice(list(Peek))  # Without any, no hole card is dealt.
        rule_set = catalogue.blackjack(peek=peek, cut_depth=137)
        await self.dealer.open(floor_spec("bj", rule_set, action_ms=400))
        for account in ACCOUNTS:
            await self.cell.open_account(account, 100_000)
        for _ in range(ROUNDS):
            await self.round(misreads)

    async def round(self, misreads: float) -> None:
        round_id = await self.dealer.open_round()
        for account, seats in ACCOUNTS.items():
            for seat in seats:
                if self.chance.random() < 0.7:
                    bets = [("main", seat, 1_000)]
                    if self.chance.random() < 0.5:
                        bets.append(("21_plus_3", seat, 100))
                    await self.cell.bet_at(round_id, account, *bets)
        early = self.chance.random() < 0.15
        if early:
            await self.tell_card(misreads)
        else:
            await self.dealer.close()
        voids = self.chance.random() < 0.15
        for _ in range(600):
            if self.running is None or self.running.round_id != round_id:
                self.cloth.unnoticed |= self.cloth.misread
                self.cloth.misread.clear()
                return
            if voids and self.chance.random() < 0.05 and self.running.phase.name == "DEALING":
                await self.dealer.void(table.ROUND_REASON_MISDEAL)
            elif self.running.suspended:
                await self.supervise()
            elif self.cloth.misread and self.chance.random() < 0.1:
                await self.dealer.suspend()
            else:
                await self.step(misreads)
            await self.pause()
        raise AssertionError(f"{round_id} does not end: {self.running}")

    async def pause(self) -> None:
        await asyncio.sleep(0.02)

    async def step(self, misreads: float) -> None:
        """The dealer does what is awaited, or a bettor acts."""
        shoe, turn = self.dealer.shoe, self.running.turn
        hole = shoe.hole
        if shoe.call is not None:
            await self.tell_card(misreads)
        elif hole is not None and not hole.opened and hole.reveal_asked_by is not None:
            if self.cloth.misread:
                await self.dealer.suspend()  # Put right what is wrong before it is too late.
                return
            text = self.cloth.reading(hole.index, misreads)
            told = await self.dealer.card(text, index=hole.index)
            if not isinstance(told, shoes.CardsDealt):
                self.cloth.misread.pop(hole.index, None)
        elif hole is not None and hole.peek_asked_by is not None and hole.looked_at is None:
            up_card = self.cloth.card(shoe.floor.up_at if shoe.floor else 0)  # type: ignore[arg-type]  # dealt
            await self.dealer.look(is_blackjack((up_card, self.cloth.card(hole.index))))
        elif turn is not None and self.chance.random() < 0.9:
            await self.act(turn)

    async def tell_card(self, misreads: float) -> None:
        shoe, place = self.dealer.shoe, next_place(self.dealer.shoe)
        hidden = shoe.call is not None and shoe.call.hands[0] == rules.HAND_HOLE
        if hidden:
            self.cloth.card(place)
            await self.dealer.card(FACE_DOWN)
            return
        text = self.cloth.reading(place, misreads)
        told = await self.dealer.card(text)
        if isinstance(told, floor.FloorFaultFound | floor.FloorRejected):
            impossible = (floor.FLOOR_FAULT_IMPOSSIBLE_CARD, floor.FLOOR_FAULT_CONTRADICTION)
            if isinstance(told, floor.FloorRejected) or told.fault in impossible:
                self.cloth.misread.pop(place, None)  # It was not taken.
        elif self.chance.random() < 0.1:
            again = await self.dealer.card(text, index=place)
            assert isinstance(again, floor.FloorRejected)
            assert again.refusal == floor.FLOOR_REFUSAL_ALREADY_RECORDED

    async def act(self, turn: Any) -> None:
        seats = [turn.seat] if turn.seat else list(turn.offered)
        seat = self.chance.choice(seats)
        if (self.dealer.round_id, turn.number, seat) in self.answered:
            return
        self.answered.add((self.dealer.round_id, turn.number, seat))
        account = next(name for name, own in ACCOUNTS.items() if seat in own)
        action = self.chance.choice(list(turn.actions))
        extra = self.chance.randint(1, 1_000) if action == rules.ACTION_DOUBLE else 0
        if self.chance.random() < 0.08 and not turn.is_offer:
            told = await self.dealer.card(self.cloth.card(next_place(self.dealer.shoe)))
            assert isinstance(told, floor.FloorFaultFound), told
            assert told.fault == floor.FLOOR_FAULT_CARD_OUT_OF_TURN
            return
        await self.cell.act(self.dealer.round_id, account, seat, action, extra, turn=turn.number)

    async def supervise(self) -> None:
        """Correct what is wrong, then resume; void what cannot have been played."""
        if self.running.turn is not None and self.running.turn.pending:
            return
        one = self.cell.process.state("table").tables["bj"]
        for place in list(self.cloth.misread):
            if place not in one.seen:
                continue  # It is held, and lies in no hand yet.
            told = await self.dealer.correct(place, self.cloth.card(place))
            if isinstance(told, floor.CardCorrected):
                del self.cloth.misread[place]
            else:
                # The shoe holds no further card of this kind: another one was misread for it.
                await self.dealer.void(table.ROUND_REASON_INTEGRITY)
                self.cloth.misread.clear()
                return
        told = await self.dealer.resume()
        if isinstance(told, table.OrderRejected):
            assert told.refusal == table.REFUSAL_PLAY_CONTRADICTED, told
            await self.dealer.void(table.ROUND_REASON_MISREAD)


def campaign(seed: int, misreads: float) -> tuple[Hall, list[Event], SmallCell]:
    """A hall by chance; its log, decided again to the same states."""
    events: list[Event] = []

    async def main() -> tuple[Hall, SmallCell]:
        async with memory_cell(seed=seed) as (cell, store):
            unfollow = cell.process.follow(events.extend)
            hall = Hall(cell, seed)
            await hall.play(misreads)
            await cell.process.drain(5.0)
            unfollow()
            live = cell.digests()
        folded = fold(CELL, store.entries())
        assert folded.digests() == live
        return hall, cell

    hall, cell = run_virtual(main())
    return hall, events, cell


def check(hall: Hall, events: list[Event], cell: SmallCell) -> dict[str, int]:
    """What must hold of every log; how often what happened."""
    counts: dict[str, int] = {}
    face_down: dict[int, str] = {}
    for event in events:
        body: Any = event.body
        name = type(body).__name__
        counts[name] = counts.get(name, 0) + 1
        match body:
            case floor.RecordFaceDown():
                face_down[body.index] = hall.cloth.by_place[body.index]
            case rules.HoleCalled() if body.purpose == rules.HOLE_PURPOSE_REVEAL:
                for place in [one for one in face_down if _lies(body, one, events)]:
                    del face_down[place]
            case floor.RecordCard():
                assert body.index not in face_down
            case table.ResultAccepted():
                _as_on_the_cloth(hall, body, events)
            case _:
                pass
    assert {kind for kind, _ in cell.alarms} <= {"floor_fault"}, cell.alarms
    return counts


def _lies(body: rules.HoleCalled, place: int, events: list[Event]) -> bool:
    return any(
        isinstance(one.body, floor.RecordFaceDown)
        and one.body.index == place
        and one.body.round_id == body.round_id
        for one in events
    )


def _as_on_the_cloth(hall: Hall, body: table.ResultAccepted, events: list[Event]) -> None:
    """Every card of the result is one that lay there, of this round and none twice."""
    result = body.result.blackjack
    told = [*result.dealer_cards]
    told += [card for seat in result.seats for hand in seat.hands for card in hand.cards]
    places = {
        card.index
        for one in events
        if isinstance(one.body, shoes.CardsDealt) and one.body.round_id == body.round_id
        for card in one.body.cards
    }
    lay = [hall.cloth.unnoticed.get(place, hall.cloth.by_place[place]) for place in sorted(places)]
    for card in told:
        assert card in lay, (body.round_id, card, lay)
        lay.remove(card)


@pytest.mark.parametrize("seed", range(4))
def test_rounds_by_chance_end_as_the_cards_lay(seed: int) -> None:
    counts = check(*campaign(seed, misreads=0.0))
    assert counts["RoundClosed"] == ROUNDS
    assert counts["ResultAccepted"] + counts.get("RoundVoided", 0) == ROUNDS


@pytest.mark.parametrize("seed", range(10, 16))
def test_misread_cards_are_put_right_or_the_round_is_voided(seed: int) -> None:
    counts = check(*campaign(seed, misreads=0.06))
    assert counts["RoundClosed"] == ROUNDS


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 160))
def test_many_halls_by_chance(seed: int) -> None:
    counts = check(*campaign(seed, misreads=0.02 * (seed % 5)))
    assert counts["RoundClosed"] == ROUNDS


# ---- edges that are behind ---------------------------------------------------------------------


def _calls(events: list[Event]) -> dict[tuple[str, int], int]:
    """By round and place of each hole card: which event calls it to be turned over, or ends its
    round; the last one where none does."""
    found: dict[tuple[str, int], int] = {}
    for number, event in enumerate(events):
        body: Any = event.body
        match body:
            case floor.RecordFaceDown():
                found[body.round_id, body.index] = len(events)
            case rules.HoleCalled() if body.purpose == rules.HOLE_PURPOSE_REVEAL:
                for key, called in found.items():
                    if key[0] == body.round_id:
                        found[key] = min(called, number)
            case _:
                pass
    return found


@pytest.mark.parametrize("seed", [1, 2])
def test_vis_3_however_far_behind_an_edge_is_it_keeps_every_hole_card(seed: int) -> None:
    """At every place of a log, an edge that has read so far takes no card for a hole card that is
    not called to be turned over yet; and takes every card that was dealt as it was told."""
    _, events, _ = campaign(seed, misreads=0.0)
    calls = _calls(events)
    assert calls
    state = SHOE.initial()
    asked = kept = taken = 0
    accepted = {
        event.cause
        for event in events
        if isinstance(event.body, shoes.CardsDealt) and event.cause is not None
    }
    for number, event in enumerate(events):
        if type(event.body) in SHOE.folds | SHOE.answers and event.service in ("shoe", *OTHERS):
            if isinstance(event.body, floor.RecordCard) and event.position in accepted:
                assert not may_lie_face_down(state, event.body)
                taken += 1
            SHOE.evolve(state, event)
        if "bj" not in state.tables:
            continue
        for (round_id, place), called in calls.items():
            body = floor.RecordCard(
                table_id="bj", shoe_id="bj-s1", round_id=round_id, index=place, card="KH"
            )
            asked += 1
            if number < called:
                assert may_lie_face_down(state, body), (event, round_id, place)
                kept += 1
    assert asked > kept > 1_000
    assert taken > 50


OTHERS = ("table", "rules", "wallet", "limits")


# ---- a scanner that is late --------------------------------------------------------------------


def test_bj_12_a_scanner_that_is_late_costs_nobody_time() -> None:
    """No turn is open while a card is awaited; the next one has its whole time."""

    async def main() -> list[Event]:
        async with memory_cell() as (cell, _):
            events: list[Event] = []
            cell.process.follow(events.extend)
            dealer = FloorDealer(cell, "bj")
            await dealer.open(floor_spec("bj", action_ms=400))
            await cell.open_account("ann", 100_000)
            round_id = await dealer.open_round()
            await cell.bet_at(round_id, "ann", ("main", 1, 1_000))
            await dealer.close()
            await asyncio.sleep(3.0)
            await dealer.deal("5H 9C 4S ??")
            await cell.act(round_id, "ann", 1, rules.ACTION_HIT)
            await asyncio.sleep(3.0)
            await dealer.deal("3D")
            await cell.turn_of(round_id, 1)
            await asyncio.sleep(0.3)
            await cell.act(round_id, "ann", 1, rules.ACTION_HIT)
            await dealer.deal("2D")
            await asyncio.sleep(1.0)  # Now Ann is late.
            await dealer.turn_over("8C")
            await cell.until(lambda: not _running(cell), "it is over")
            return events

    actions = [one.body for one in run_virtual(main()) if isinstance(one.body, table.ActionTaken)]
    assert [(one.turn, one.action, one.source) for one in actions] == [
        (1, rules.ACTION_HIT, table.SOURCE_UNSPECIFIED),
        (2, rules.ACTION_HIT, table.SOURCE_UNSPECIFIED),
        (3, rules.ACTION_STAND, table.SOURCE_TIMER),
    ]


def _running(cell: SmallCell) -> Any:
    return cell.process.state("table").tables["bj"].running


# ---- a close that is cut short -----------------------------------------------------------------


async def test_a_close_that_a_void_cuts_short_has_an_outcome(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """For whoever called, and for whoever asks again."""
    monkeypatch.setattr(steps, "STEP_BETS", (1,))

    async def main() -> tuple[Message, Message, list[ReadEntry]]:
        async with memory_cell() as (cell, store):
            dealer = FloorDealer(cell, "bj")
            await dealer.open(floor_spec("bj"))
            for account in ACCOUNTS:
                await cell.open_account(account, 100_000)
            round_id = await dealer.open_round()
            called_us = cell.clock()
            await asyncio.sleep(0.02)
            for account, seats in ACCOUNTS.items():
                await cell.bet_at(round_id, account, ("main", seats[0], 1_000))
            close = table.CloseBetting(
                table_id="bj",
                round_id=round_id,
                source=table.SOURCE_OPERATOR,
                device_time_us=called_us,
                told_when_voided=True,
            )
            closing = asyncio.create_task(cell.order(close))
            voided = await dealer.void(table.ROUND_REASON_EQUIPMENT)
            closed = await closing
        log = MemoryLog(store)
        last = (await log.info(wait_s=5.0)).last_sequence
        reader = LogReader(log.cell, event_types())
        read = [one async for some in entries_until(log, reader, last) for one in some]
        return voided, closed, read

    voided, closed, entries = await asyncio.to_thread(run_virtual, main())
    assert isinstance(voided, table.RoundVoided)
    assert isinstance(closed, table.OrderRejected)
    assert closed.refusal == table.REFUSAL_ROUND_VOIDED

    async def tail(after: int) -> AsyncIterator[tuple[int, bytes, list[Event]]]:
        for one in entries:
            if one.sequence > after:
                yield one.sequence, one.head, one.events

    projector = Projector(TableProjection(), f"sqlite+aiosqlite:///{tmp_path / 'table'}.db", tail)
    assert await projector.start(wait_s=60.0)
    for one in entries:
        projector.feed(one.sequence, one.head, one.events)
    queries = SqlTableQueries(projector)
    assert await queries.reached(Position(1, entries[-1].sequence, 0), 60.0)
    [asked] = [
        event.position
        for one in entries
        for event in one.events
        if isinstance(event.body, table.CloseBetting)
    ]
    outcome = await queries.outcome_at(asked)
    assert outcome is not None
    assert outcome.order_rejected == closed
    await projector.close()
