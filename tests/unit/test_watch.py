"""Following tables and bets: a state, then every change; nothing is ever skipped in silence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from sabot.log.v1 import entry_pb2
from sabot.partner.v1 import partner_service_pb2 as partners
from sabot.rules.v1 import events_pb2 as rules
from sabot.settlement.v1 import events_pb2 as settlements
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.table.v1 import bet_pb2
from sabot.table.v1 import events_pb2 as tables
from sabot.wallet.v1 import events_pb2 as wallets
from services.kernel.edge import EdgeNotReady
from services.kernel.errors import Refused
from services.kernel.event import Position
from services.kernel.telemetry import Metrics
from services.table import ring, watch
from services.table.domain.state import Phase, TableState
from services.table.servicer import PartnerServicer
from services.table.watch import LiveBets, LiveTables
from tests.unit.fake_edge import FakeEdge, FakeQueries
from tests.unit.front import NORTH, SAM, SOUTH, table_state
from tests.unit.projecting import WAIT_S

ROUND: dict[str, Any] = {"table_id": "t1", "round_id": "t1-8"}
OPENED = tables.RoundOpened(
    **ROUND, number=8, shoe_id="t1-s1", round_in_shoe=5, closes_after_ms=15_000
)
CARDS = [
    shoes.DealtCard(index=20, card="7H", hand=rules.HAND_PLAYER),
    shoes.DealtCard(index=21, card="9S", hand=rules.HAND_BANKER),
]
RESULT = rules.Result(
    baccarat=rules.BaccaratResult(
        player_total=7, banker_total=9, winner=rules.BACCARAT_WINNER_BANKER
    )
)
WHOLE_ROUND = (
    tables.BettingClosed(**ROUND),
    shoes.CardsDealt(**ROUND, cards=CARDS),
    tables.ResultAccepted(**ROUND, result=RESULT),
    tables.RoundClosed(**ROUND, end=tables.ROUND_END_PAID),
)


class Hall:
    """One table, with round 7 long over."""

    def __init__(self) -> None:
        self.state = TableState(tables={"t1": table_state(running=False)})
        self.edge = FakeEdge(states={"table": self.state})
        self.queries = FakeQueries()
        self.queries.rounds["t1-7"] = partners.Round(
            round_id="t1-7", number=7, state=partners.ROUND_STATE_PAID
        )
        self.metrics = Metrics()
        self.tables = LiveTables(self.edge, self.queries, self.metrics)
        self.bets = LiveBets(self.edge, self.queries, self.metrics)
        self.partner = PartnerServicer(self.edge, self.queries, self.tables, self.bets)

    def open_round(self) -> None:
        self.state.tables["t1"] = table_state(number=8)
        self.edge.happens(OPENED)

    def watch(self, token: str = "", table_id: str = "t1") -> AsyncIterator[Any]:
        request = partners.WatchTableRequest(table_id=table_id, resume_token=token)
        return self.partner.watch_table(request, NORTH)

    def watch_bets(self, token: str = "", call: Any = NORTH) -> AsyncIterator[Any]:
        return self.partner.watch_bets(partners.WatchBetsRequest(resume_token=token), call)


@pytest.fixture
def hall(monkeypatch: pytest.MonkeyPatch) -> Hall:
    monkeypatch.setattr(watch, "HEARTBEAT_S", 0.02)
    monkeypatch.setattr(watch, "BETS_RETRY_S", 0.005)
    return Hall()


async def following(stream: AsyncIterator[Any]) -> Any:
    """The next message that is no heartbeat."""
    async with asyncio.timeout(WAIT_S):
        async for message in stream:
            if message.WhichOneof("update") != "heartbeat":
                return message
    raise AssertionError("the stream ended")


# ---- tables ------------------------------------------------------------------------------------


async def test_a_watcher_gets_the_state_and_then_every_change(hall: Hall) -> None:
    stream = hall.watch()
    first = await anext(stream)
    assert first.state.round.round_id == "t1-7"
    assert not first.resync
    hall.open_round()
    opened = await following(stream)
    assert opened.round.state == partners.ROUND_STATE_BETTING
    assert opened.round.close_time.ToMicroseconds() - opened.round.open_time.ToMicroseconds() == (
        15_000_000
    )
    for body in WHOLE_ROUND:
        hall.edge.happens(body)
    seen = [(await following(stream)).round for _ in WHOLE_ROUND]
    assert [each.state for each in seen] == [
        partners.ROUND_STATE_DEALING,
        partners.ROUND_STATE_DEALING,
        partners.ROUND_STATE_PAYING,
        partners.ROUND_STATE_PAID,
    ]
    assert [len(each.cards) for each in seen] == [0, 2, 2, 2]
    assert seen[-1].result == RESULT


async def test_vis_1_a_watcher_sees_nothing_of_accounts_or_stakes(hall: Hall) -> None:
    names: set[str] = set()

    def collect(descriptor: Any) -> None:
        for each in descriptor.fields:
            if each.name not in names or each.message_type is None:
                names.add(each.name)
                if each.message_type is not None:
                    collect(each.message_type)

    collect(partners.WatchTableResponse.DESCRIPTOR)
    names.discard("max_account_minor")  # A limit of the table, the same for all.
    assert not {name for name in names if "account" in name or "partner" in name or "stake" in name}


async def test_a_quiet_table_has_heartbeats_with_the_position(hall: Hall) -> None:
    stream = hall.watch()
    await anext(stream)
    hall.edge.happens(tables.RoundOpened(table_id="t2", round_id="t2-1"))
    beat = await anext(stream)
    assert beat.heartbeat
    assert beat.position.sequence == hall.edge.position.sequence
    hall.open_round()
    resumed = hall.watch(beat.resume_token)
    assert (await anext(resumed)).round.round_id == "t1-8"


async def test_a_token_goes_on_without_gap_or_repeat(hall: Hall) -> None:
    stream = hall.watch()
    await anext(stream)
    hall.open_round()
    token = (await following(stream)).resume_token
    await stream.aclose()  # type: ignore[attr-defined]  # a generator
    for body in WHOLE_ROUND:
        hall.edge.happens(body)
    resumed = hall.watch(token)
    seen = [await following(resumed) for _ in WHOLE_ROUND]
    assert not any(each.resync or each.HasField("state") for each in seen)
    assert [each.round.state for each in seen][-1] == partners.ROUND_STATE_PAID


async def test_who_was_away_too_long_is_told_so_and_gets_the_state(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ring, "RING_CHANGES", 3)
    stream = hall.watch()
    token = (await anext(stream)).resume_token
    hall.open_round()
    for body in WHOLE_ROUND:
        hall.edge.happens(body)
    for late in (stream, hall.watch(token)):
        again = await anext(late)
        assert again.resync
        assert again.state.round.state == partners.ROUND_STATE_PAID
    assert hall.metrics.registry.get_sample_value("sabot_watch_resyncs_total") == 2


async def test_a_token_of_a_former_process_resyncs(hall: Hall) -> None:
    token = (await anext(hall.watch())).resume_token
    later = Hall()
    later.edge.position = Position(1, 50, 0)
    later.tables = LiveTables(later.edge, later.queries, Metrics())
    later.partner = PartnerServicer(later.edge, later.queries, later.tables, later.bets)
    first = await anext(later.watch(token))
    assert first.resync
    assert first.position.sequence == 50


async def test_a_token_from_a_server_that_is_ahead_is_not_ready(hall: Hall) -> None:
    ahead = Hall()
    ahead.edge.position = Position(1, 99, 0)
    ahead.tables = LiveTables(ahead.edge, ahead.queries, Metrics())
    ahead.partner = PartnerServicer(ahead.edge, ahead.queries, ahead.tables, ahead.bets)
    token = (await anext(ahead.watch())).resume_token
    with pytest.raises(EdgeNotReady):
        await anext(hall.watch(token))


@pytest.mark.parametrize("token", ["x", "AAAA", "A" * 300])
async def test_a_token_of_ones_own_making_is_refused(hall: Hall, token: str) -> None:
    for stream in (hall.watch(token), hall.watch_bets(token)):
        with pytest.raises(Refused) as caught:
            await anext(stream)
        assert caught.value.reason.name == "RESUME_TOKEN_INVALID"


async def test_a_token_is_good_for_its_own_stream_only(hall: Hall) -> None:
    token = (await anext(hall.watch())).resume_token
    hall.state.tables["t2"] = table_state(table_id="t2")
    for stream in (hall.watch(token, "t2"), hall.watch_bets(token)):
        with pytest.raises(Refused):
            await anext(stream)


async def test_no_table_no_watch(hall: Hall) -> None:
    with pytest.raises(Refused) as caught:
        await anext(hall.watch(table_id="t9"))
    assert caught.value.reason.name == "TABLE_NOT_FOUND"


async def test_a_round_that_ran_before_this_process_is_taken_from_the_projection(
    hall: Hall,
) -> None:
    """What happens while the projection is being read is not lost."""
    hall.state.tables["t1"] = table_state(number=8)
    hall.queries.rounds["t1-8"] = partners.Round(
        round_id="t1-8", number=8, state=partners.ROUND_STATE_DEALING, cards=CARDS[:1]
    )
    read = hall.queries.round

    async def slow(round_id: str) -> partners.Round | None:
        found = await read(round_id)
        hall.edge.happens(shoes.CardsDealt(**ROUND, cards=CARDS))
        hall.edge.happens(tables.ResultAccepted(**ROUND, result=RESULT))
        return found

    hall.queries.round = slow  # type: ignore[method-assign]  # to act in between
    first = await anext(hall.watch())
    assert [card.card for card in first.state.round.cards] == ["7H", "9S"]
    assert first.state.round.state == partners.ROUND_STATE_PAYING


async def test_a_change_of_an_unknown_round_starts_its_watchers_again(hall: Hall) -> None:
    hall.state.tables["t1"] = table_state(number=8)
    hall.queries.away = True
    stream = hall.watch()
    assert (await anext(stream)).state.round.round_id == "t1-8"
    hall.queries.away = False
    hall.queries.rounds["t1-8"] = partners.Round(round_id="t1-8", number=8, cards=CARDS)
    hall.edge.happens(WHOLE_ROUND[2])
    again = await following(stream)
    assert again.resync
    assert len(again.state.round.cards) == 2


async def test_suspending_stops_the_clock_and_resuming_starts_it_anew(hall: Hall) -> None:
    stream = hall.watch()
    await anext(stream)
    hall.open_round()
    await following(stream)
    hall.edge.happens(tables.RoundSuspended(**ROUND))
    suspended = (await following(stream)).round
    assert suspended.suspended
    assert not suspended.HasField("close_time")
    hall.edge.happens(tables.RoundResumed(**ROUND, closes_after_ms=15_000))
    resumed = (await following(stream)).round
    assert not resumed.suspended
    assert resumed.HasField("close_time")
    hall.edge.happens(tables.RoundVoided(**ROUND, reason=tables.ROUND_REASON_DEALER_ERROR))
    voided = (await following(stream)).round
    assert voided.state == partners.ROUND_STATE_RETURNING
    assert voided.void_reason == tables.ROUND_REASON_DEALER_ERROR
    hall.edge.happens(tables.RoundClosed(**ROUND, end=tables.ROUND_END_RETURNED))
    assert (await following(stream)).round.state == partners.ROUND_STATE_RETURNED


async def test_new_rules_and_closing_are_told_as_state(hall: Hall) -> None:
    stream = hall.watch()
    await anext(stream)
    hall.state.tables["t1"].revision = 4
    hall.edge.happens(tables.TableOpened(spec=hall.state.tables["t1"].spec, revision=4))
    assert (await following(stream)).state.revision == 4
    hall.state.tables["t1"].is_open = False
    hall.edge.happens(tables.TableClosed(table_id="t1"))
    assert not (await following(stream)).state.open


async def test_a_server_that_stops_sends_its_watchers_elsewhere(hall: Hall) -> None:
    streams = [hall.watch(), hall.watch_bets()]
    await anext(streams[0])
    waiting = [asyncio.ensure_future(following(stream)) for stream in streams]
    await asyncio.sleep(0)
    hall.partner.drain()
    for each in waiting:
        with pytest.raises(EdgeNotReady):
            await each
    assert not hall.edge.listeners


async def test_the_state_alone_knows_every_phase() -> None:
    for phase in Phase:
        hall = Hall()
        hall.queries.away = True
        table = hall.state.tables["t1"] = table_state(number=8)
        assert table.running is not None
        table.running.phase = phase
        table.running.closes_at_us = 1_700_000_000_000_000
        shown = (await anext(hall.watch())).state.round
        assert shown.state
        assert shown.HasField("close_time") == (phase is Phase.BETTING)


# ---- bets --------------------------------------------------------------------------------------


def bet(number: int, sequence: int, state: Any = partners.BET_STATE_ACCEPTED) -> Any:
    return partners.PlacedBet(
        bet_id=f"t1-8.{number}",
        state=state,
        position=entry_pb2.Position(segment=1, sequence=sequence),
    )


def project(hall: Hall, *bets: Any, partner: str = "north") -> None:
    for each in bets:
        hall.queries.placed = [row for row in hall.queries.placed if row[0] != each.bet_id]
        hall.queries.placed.append((each.bet_id, partner, each))
    hall.queries.position = hall.edge.position


async def test_outcomes_come_as_they_are_decided_and_to_their_partner_only(hall: Hall) -> None:
    hall.queries.position = hall.edge.position
    north, south = hall.watch_bets(), hall.watch_bets(call=SOUTH)
    waiting = [asyncio.ensure_future(following(stream)) for stream in (north, south)]
    await asyncio.sleep(0.01)
    (reserved,) = hall.edge.happens(wallets.StakeReserved(**ROUND), partner="north")
    project(hall, bet(1, reserved.position.sequence))
    got = await waiting[0]
    assert (got.bet.bet_id, got.bet.state) == ("t1-8.1", partners.BET_STATE_ACCEPTED)
    (settled,) = hall.edge.happens(settlements.BetsSettled(**ROUND, partner_id="north"))
    project(hall, bet(1, settled.position.sequence, partners.BET_STATE_SETTLED))
    assert (await following(north)).bet.state == partners.BET_STATE_SETTLED
    assert not waiting[1].done()
    waiting[1].cancel()


async def test_bets_are_whose_the_answer_says_whoever_set_it_off(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a seat does may bring about what concerns others' bets too."""
    monkeypatch.setattr(watch, "HEARTBEAT_S", 60.0)  # So that no heartbeat looks for it.
    hall.queries.position = hall.edge.position
    north = hall.watch_bets()
    waiting = asyncio.ensure_future(following(north))
    await asyncio.sleep(0.01)
    back = wallets.StakeReturned(**ROUND, partner_id="north")
    (returned,) = hall.edge.happens(back, partner="south")
    project(hall, bet(1, returned.position.sequence, partners.BET_STATE_VOIDED))
    got = await waiting
    assert got.bet.state == partners.BET_STATE_VOIDED


async def test_a_stream_that_breaks_before_its_first_bet_can_be_resumed(hall: Hall) -> None:
    hall.queries.position = hall.edge.position
    first = await asyncio.wait_for(anext(hall.watch_bets()), timeout=WAIT_S)
    assert first.heartbeat
    (reserved,) = hall.edge.happens(wallets.StakeReserved(**ROUND), partner="north")
    project(hall, bet(1, reserved.position.sequence))
    assert (await following(hall.watch_bets(first.resume_token))).bet.bet_id == "t1-8.1"


async def test_a_token_tells_all_that_changed_since_and_nothing_twice(hall: Hall) -> None:
    hall.edge.position = Position(1, 40, 0)
    project(hall, *(bet(number, 20 + number // 3) for number in range(9)))
    stream = hall.watch_bets()
    beat = await anext(stream)
    assert beat.heartbeat
    token = beat.resume_token
    hall.edge.position = Position(1, 60, 0)
    project(hall, *(bet(number, 50 + number // 3) for number in range(9)))
    whole = hall.watch_bets(token)
    told = [await following(whole) for _ in range(9)]
    assert [each.bet.bet_id for each in told] == [f"t1-8.{number}" for number in range(9)]
    for index, each in enumerate(told[:-1]):  # whoever breaks off here hears of all the rest
        rest = hall.watch_bets(each.resume_token)
        first = (await following(rest)).bet.bet_id
        assert first == f"t1-8.{(index + 1) // 3 * 3}"  # three bets were changed by one event


async def test_what_one_event_changed_is_told_whole_before_the_token_moves_on(hall: Hall) -> None:
    hall.edge.position = hall.queries.position = Position(1, 60, 0)
    token = (await anext(hall.watch_bets())).resume_token
    hall.edge.position = Position(1, 70, 0)
    project(hall, bet(1, 61), bet(2, 61), bet(3, 62), bet(4, 62))
    stream = hall.watch_bets(token)
    told = [await following(stream) for _ in range(4)]
    assert [each.position.sequence for each in told] == [60, 61, 61, 70]


async def test_a_projection_that_is_away_delays_and_loses_nothing(hall: Hall) -> None:
    hall.queries.position = hall.edge.position
    stream = hall.watch_bets()
    waiting = asyncio.ensure_future(following(stream))
    await asyncio.sleep(0)
    hall.queries.away = True
    (event,) = hall.edge.happens(wallets.StakeReserved(**ROUND), partner="north")
    await asyncio.sleep(0.03)
    project(hall, bet(1, event.position.sequence))
    hall.queries.away = False
    assert (await waiting).bet.bet_id == "t1-8.1"


async def test_operators_have_no_bets_to_watch(hall: Hall) -> None:
    with pytest.raises(Refused) as caught:
        await anext(hall.watch_bets(call=SAM))
    assert caught.value.reason.name == "PERMISSION_DENIED"


def test_every_answer_that_moves_a_bet_wakes_its_watchers() -> None:
    moving = {tables.BetsPlaced, wallets.StakeReserved, wallets.StakeDeclined}
    assert moving < watch.BET_CHANGES
    assert bet_pb2.Bet not in watch.BET_CHANGES
