"""Roads in front of partners (rule BAC-42): the projection's, the live ones, and GetRoads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sabot.partner.v1 import partner_service_pb2 as partners
from sabot.partner.v1 import roads_pb2
from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from sabot.table.v1 import events_pb2 as tables
from services.games.road_outcomes import outcome_of
from services.games.roads import Colour, Outcome, roads
from services.kernel.errors import Refused
from services.kernel.event import Position
from services.kernel.projections import Projector
from services.kernel.telemetry import Metrics
from services.table.domain.state import TableState
from services.table.projection import TableProjection
from services.table.projection_queries import SqlTableQueries
from services.table.roads import drawn
from services.table.servicer import PartnerServicer
from services.table.watch import LiveBets, LiveTables
from tests.unit.fake_edge import FakeEdge, FakeQueries
from tests.unit.front import NORTH, table_state
from tests.unit.projecting import WAIT_S, url_of
from tests.unit.projection_log import HandMadeLog

SHOE = "t1-s1"
RED, BLUE, GREEN = (
    roads_pb2.ROAD_COLOUR_RED,
    roads_pb2.ROAD_COLOUR_BLUE,
    roads_pb2.ROAD_COLOUR_GREEN,
)
PAIR = ["7S", "7H"]
WINNERS: dict[int, rules.BaccaratWinner.ValueType] = {
    RED: rules.BACCARAT_WINNER_BANKER,
    BLUE: rules.BACCARAT_WINNER_PLAYER,
    GREEN: rules.BACCARAT_WINNER_TIE,
}


def result(colour: int, player: list[str] | None = None) -> rules.Result:
    return rules.Result(
        baccarat=rules.BaccaratResult(
            winner=WINNERS[colour], player_cards=player or ["7S", "8H"], banker_cards=["7S", "9H"]
        )
    )


def opened(number: int, in_shoe: int, shoe: str = SHOE) -> tables.RoundOpened:
    return tables.RoundOpened(
        table_id="t1", round_id=f"t1-{number}", number=number, shoe_id=shoe, round_in_shoe=in_shoe
    )


def accepted(number: int, colour: int, player: list[str] | None = None) -> tables.ResultAccepted:
    return tables.ResultAccepted(
        table_id="t1", round_id=f"t1-{number}", result=result(colour, player)
    )


def voided(number: int) -> tables.RoundVoided:
    return tables.RoundVoided(table_id="t1", round_id=f"t1-{number}")


def closed(number: int) -> tables.RoundClosed:
    return tables.RoundClosed(table_id="t1", round_id=f"t1-{number}", end=tables.ROUND_END_PAID)


class SlowQueries(FakeQueries):
    """A projection during whose answers the log goes on."""

    meanwhile: list[Any]

    async def rounds_of_shoe(self, shoe_id: str) -> list[partners.Round]:
        found = await super().rounds_of_shoe(shoe_id)
        while self.meanwhile:
            self.meanwhile.pop(0)()
        return found


class Hall:
    """One table of baccarat, where rounds 1 to 3 were dealt from the first shoe before this process
    began: Banker, voided, Player with a pair."""

    def __init__(self) -> None:
        self.state = TableState(tables={"t1": table_state(running=False, number=3)})
        self.edge = FakeEdge(states={"table": self.state})
        self.queries = SlowQueries()
        self.queries.meanwhile = []
        self.keep(1, RED)
        self.keep(2, RED, partners.ROUND_STATE_RETURNED)
        self.keep(3, BLUE, player=PAIR)
        metrics = Metrics()
        self.tables = LiveTables(self.edge, self.queries, metrics)
        bets = LiveBets(self.edge, self.queries, metrics)
        self.partner = PartnerServicer(self.edge, self.queries, self.tables, bets)

    def keep(
        self,
        number: int,
        colour: int,
        state: partners.RoundState.ValueType = partners.ROUND_STATE_PAID,
        player: list[str] | None = None,
    ) -> None:
        """A round that stands in the projection, as its queries give it."""
        view = partners.Round(
            round_id=f"t1-{number}", number=number, table_id="t1", shoe_id=SHOE, state=state
        )
        if state == partners.ROUND_STATE_PAID:
            view.road.CopyFrom(road(number, colour, pair=player is PAIR))
        self.queries.rounds[view.round_id] = view

    def play(self, number: int, in_shoe: int, colour: int, shoe: str = SHOE) -> None:
        self.state.tables["t1"].number = number
        self.edge.happens(opened(number, in_shoe, shoe))
        self.edge.happens(accepted(number, colour))
        self.edge.happens(closed(number))

    async def colours(self) -> list[int]:
        table = await self.tables.table("t1")
        assert table is not None
        return [one.colour for one in table.roads.results]

    async def get(self, **of: str) -> partners.GetRoadsResponse:
        return await self.partner.get_roads(partners.GetRoadsRequest(**of), NORTH)  # type: ignore[arg-type]  # one of two texts


def road(number: int, colour: int, *, pair: bool = False) -> roads_pb2.RoadResult:
    return roads_pb2.RoadResult(
        round_id=f"t1-{number}",
        colour=colour,  # type: ignore[arg-type]  # a value of the enum
        player_pair=pair,
    )


@pytest.fixture
def hall() -> Hall:
    return Hall()


async def changes(stream: AsyncIterator[Any], count: int) -> list[partners.Round]:
    seen: list[partners.Round] = []
    async with asyncio.timeout(WAIT_S):
        while len(seen) < count:
            message = await anext(stream)
            if message.HasField("round"):
                seen.append(message.round)
    return seen


# ---- as a table changes ------------------------------------------------------------------------


async def test_bac_42_the_state_has_the_roads_of_the_shoe_without_voided_rounds(hall: Hall) -> None:
    table = await hall.tables.table("t1")
    assert table is not None
    assert list(table.roads.results) == [road(1, RED), road(3, BLUE, pair=True)]
    assert table.roads.shoe_id == SHOE
    assert [(one.column, one.row, one.colour) for one in table.roads.big_road.cells] == [
        (0, 0, RED),
        (1, 0, BLUE),
    ]
    assert table.roads.bead_plate.cells[1].player_pair


async def test_bac_42_each_round_tells_what_it_adds_when_its_result_stands(hall: Hall) -> None:
    stream = hall.partner.watch_table(partners.WatchTableRequest(table_id="t1"), NORTH)
    first = await anext(stream)
    known = list(first.state.roads.results)
    hall.play(4, 4, GREEN)
    seen = await changes(stream, 3)
    assert [one.HasField("road") for one in seen] == [False, True, True]
    known.append(seen[-1].road)
    table = await hall.tables.table("t1")
    assert table is not None
    assert list(table.roads.results) == known
    assert table.roads.big_road.cells[-1].ties == 1


async def test_bac_42_a_round_that_is_voided_after_its_result_is_taken_out(hall: Hall) -> None:
    await hall.tables.table("t1")
    hall.state.tables["t1"] = table_state(number=4)
    hall.edge.happens(opened(4, 4), accepted(4, RED))
    assert await hall.colours() == [RED, BLUE, RED]
    hall.edge.happens(voided(4))
    assert await hall.colours() == [RED, BLUE]
    table = await hall.tables.table("t1")
    assert table is not None
    assert not table.round.HasField("road")


async def test_bac_42_a_new_shoe_begins_anew(hall: Hall) -> None:
    assert await hall.colours() == [RED, BLUE]
    hall.play(4, 1, BLUE, "t1-s2")
    assert await hall.colours() == [BLUE]
    assert (await hall.get(table_id="t1")).roads.shoe_id == "t1-s2"
    assert [one.colour for one in (await hall.get(shoe_id=SHOE)).roads.results] == [RED, BLUE]


async def test_bac_42_a_round_heard_first_has_the_shoes_earlier_results_loaded(hall: Hall) -> None:
    hall.play(4, 4, BLUE)
    hall.keep(4, BLUE)
    hall.play(5, 5, RED)
    hall.keep(5, RED)
    assert await hall.colours() == [RED, BLUE, BLUE, RED]


async def test_bac_42_nothing_is_lost_that_happens_while_the_roads_are_loaded(hall: Hall) -> None:
    """A round that runs at the query ends meanwhile, and another one is played."""
    hall.state.tables["t1"] = table_state(number=4)
    hall.keep(4, RED, partners.ROUND_STATE_DEALING)
    hall.queries.meanwhile = [
        lambda: hall.edge.happens(accepted(4, GREEN), closed(4)),
        lambda: hall.play(5, 5, RED),
    ]
    assert await hall.colours() == [RED, BLUE, GREEN, RED]


async def test_bac_42_roads_wait_for_their_projection(hall: Hall) -> None:
    hall.queries.away = True
    hall.play(4, 4, BLUE)
    table = await hall.tables.table("t1")
    assert table is not None
    assert not table.HasField("roads")
    hall.queries.away = False
    hall.keep(4, BLUE)
    assert await hall.colours() == [RED, BLUE, BLUE]


async def test_bac_42_a_table_before_its_first_round_has_empty_roads(hall: Hall) -> None:
    hall.state.tables["t1"] = table_state(running=False, number=0)
    hall.state.tables["t1"].shoe_id = SHOE
    assert (await hall.get(table_id="t1")).roads == roads_pb2.Roads(shoe_id=SHOE)


# ---- GetRoads ----------------------------------------------------------------------------------


async def test_get_roads_of_a_table_and_of_its_shoe_agree(hall: Hall) -> None:
    by_table, by_shoe = await hall.get(table_id="t1"), await hall.get(shoe_id=SHOE)
    assert by_table.roads == by_shoe.roads
    assert by_table.HasField("position")
    assert by_shoe.HasField("position")


async def test_get_roads_refusals(hall: Hall) -> None:
    roulette = table_state(running=False, number=0, table_id="t2")
    roulette.spec.rule_set.game = rule_set_pb2.GAME_ROULETTE
    hall.state.tables["t2"] = roulette
    for of, reason in (
        ({"table_id": "t9"}, "TABLE_NOT_FOUND"),
        ({"table_id": "t2"}, "NO_ROADS"),
        ({"shoe_id": "t1-s9"}, "SHOE_NOT_PLAYED"),
    ):
        with pytest.raises(Refused) as caught:
            await hall.get(**of)
        assert caught.value.reason.name == reason


async def test_get_roads_of_a_shoe_of_another_game_are_refused(hall: Hall) -> None:
    hall.state.tables["t1"].spec.rule_set.game = rule_set_pb2.GAME_BLACKJACK
    with pytest.raises(Refused) as caught:
        await hall.get(shoe_id=SHOE)
    assert caught.value.reason.name == "NO_ROADS"


# ---- the projection ----------------------------------------------------------------------------


async def test_bac_42_the_projection_keeps_the_results_of_every_shoe(tmp_path: Path) -> None:
    """Round 2 is voided, round 4 is dealt from the next shoe, round 5 has no result yet."""
    log = HandMadeLog()
    for number in (1, 2, 3):
        round_id = log.open_round(number)
        if number == 2:
            log.void(round_id, [])
        else:
            log.play(round_id, [])
    for number in (4, 5):
        asked = log.add("table", tables.OpenRound(table_id="t1"), actor="system:timers")
        log.add("table", opened(number, number - 3, "t1-s2"), asked)
    log.play("t1-4", [])
    url = url_of(tmp_path, "table")
    projector = Projector(TableProjection(), url, log.read)
    await projector.start()
    last = len(log.entries)
    assert await projector.reached(Position(1, last, 0), 5.0)
    queries = SqlTableQueries(projector)
    first, second = await queries.rounds_of_shoe(SHOE), await queries.rounds_of_shoe("t1-s2")
    assert [one.round_id for one in first] == ["t1-1", "t1-2", "t1-3"]
    assert [one.HasField("road") for one in first] == [True, False, True]
    assert first[0].road == roads_pb2.RoadResult(
        round_id="t1-1", round_in_shoe=1, colour=RED, player_pair=False, banker_pair=False
    )
    assert [one.HasField("road") for one in second] == [True, False]
    assert await queries.rounds_of_shoe("t1-s3") == []
    await projector.close()


def two_card_result(first: str, second: str) -> rules.Result:
    return rules.Result(
        football_studio=rules.FootballStudioResult(home_card=first, away_card=second)
    )


@pytest.mark.parametrize(
    ("first", "second", "ace", "colour"),
    [
        ("AS", "KS", rule_set_pb2.ACE_RANK_HIGH, Colour.RED),
        ("AS", "KS", rule_set_pb2.ACE_RANK_LOW, Colour.BLUE),
        ("2S", "9H", rule_set_pb2.ACE_RANK_LOW, Colour.BLUE),
        ("9S", "9H", rule_set_pb2.ACE_RANK_HIGH, Colour.GREEN),
    ],
)
def test_two_cards_have_roads_too(first: str, second: str, ace: int, colour: Colour) -> None:
    dragon = rules.Result(
        dragon_tiger=rules.DragonTigerResult(dragon_card=first, tiger_card=second)
    )
    for told in (two_card_result(first, second), dragon):
        assert outcome_of(told, ace) == Outcome(colour)


def test_games_without_roads_add_nothing() -> None:
    spin = rules.Result(roulette=rules.RouletteResult(number=17))
    assert outcome_of(spin, 0) is None
    assert outcome_of(two_card_result("AS", ""), rule_set_pb2.ACE_RANK_LOW) is None


async def test_roads_of_two_cards_keep_the_ace_of_their_rounds(tmp_path: Path) -> None:
    """The ace is high in round 1 and low in round 2, whatever is asked when; a restart of the
    projection between the table's opening and its next round forgets nothing."""
    log = HandMadeLog()
    url = url_of(tmp_path, "table")
    for number, ace in ((1, rule_set_pb2.ACE_RANK_HIGH), (2, rule_set_pb2.ACE_RANK_LOW)):
        spec = tables.TableOpened().spec
        spec.table_id = "t1"
        spec.rule_set.two_cards.ace = ace
        asked = log.add("table", tables.OpenTable(spec=spec), actor="operator:ann")
        log.add("table", tables.TableOpened(spec=spec, revision=number), asked)
        projector = Projector(TableProjection(), url, log.read)
        await projector.start()
        assert await projector.reached(Position(1, len(log.entries), 0), 5.0)
        await projector.close()
        asked = log.add("table", tables.OpenRound(table_id="t1"), actor="system:timers")
        log.add("table", opened(number, number), asked)
        log.add(
            "table",
            tables.ResultAccepted(
                table_id="t1", round_id=f"t1-{number}", result=two_card_result("AS", "KS")
            ),
            asked,
        )
    projector = Projector(TableProjection(), url, log.read)
    await projector.start()
    assert await projector.reached(Position(1, len(log.entries), 0), 5.0)
    rounds = await SqlTableQueries(projector).rounds_of_shoe(SHOE)
    assert [one.road.colour for one in rounds] == [RED, BLUE]
    await projector.close()


async def test_a_live_table_of_two_cards_shows_its_roads(hall: Hall) -> None:
    table = hall.state.tables["t1"]
    table.number = 0
    table.spec.rule_set.game = rule_set_pb2.GAME_FOOTBALL_STUDIO
    table.spec.rule_set.two_cards.ace = rule_set_pb2.ACE_RANK_HIGH
    table.number = 1
    hall.edge.happens(opened(1, 1))
    told = tables.ResultAccepted(table_id="t1", round_id="t1-1", result=two_card_result("2S", "AS"))
    hall.edge.happens(told)
    assert await hall.colours() == [BLUE]


# ---- as messages -------------------------------------------------------------------------------


def test_bac_42_the_message_says_what_the_pure_roads_say() -> None:
    outcomes = [Outcome(Colour.RED)] * 8 + [Outcome(Colour.GREEN)] + [Outcome(Colour.BLUE)] * 8
    colours = {Colour.RED: RED, Colour.BLUE: BLUE, Colour.GREEN: GREEN}
    results = [
        roads_pb2.RoadResult(round_id=f"t1-{number}", colour=colours[one.colour])
        for number, one in enumerate(outcomes, start=1)
    ]
    found, expected = drawn(SHOE, results), roads(outcomes)
    for name in expected._fields:
        cells = [
            (cell.column, cell.row, cell.colour, cell.ties) for cell in getattr(found, name).cells
        ]
        assert cells == [
            (cell.column, cell.row, colours[cell.colour], cell.ties)
            for cell in getattr(expected, name)
        ]
    assert found.big_road.cells[7].ties == 1
