"""Roads from a real fleet (rule BAC-42): while it runs, and after it was started again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc
import pytest

from sabot.partner.v1 import partner_service_pb2 as partner
from sabot.partner.v1 import roads_pb2
from sabot.rules.v1 import events_pb2 as rules
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import operator_service_pb2 as operators
from services.cli.fleet import fleet
from services.cli.uuid7 import uuid7
from tests.fleet.clients import PATIENCE_S, Operator, Partner, Servers, reason_of, table_spec

COLOURS = {
    rules.BACCARAT_WINNER_BANKER: roads_pb2.ROAD_COLOUR_RED,
    rules.BACCARAT_WINNER_PLAYER: roads_pb2.ROAD_COLOUR_BLUE,
    rules.BACCARAT_WINNER_TIE: roads_pb2.ROAD_COLOUR_GREEN,
}


async def roads(north: Partner, **of: Any) -> partner.GetRoadsResponse:
    return await north.bets.GetRoads(partner.GetRoadsRequest(**of), metadata=north.metadata)


async def play(north: Partner, dealer: Operator, number: int) -> partner.Round:
    """A round without bets, to its end; the second one is voided."""
    round_id = await dealer.open_round("t1")
    if number == 2:
        await dealer.tables.VoidRound(
            operators.VoidRoundRequest(
                request_id=uuid7(),
                table_id="t1",
                round_id=round_id,
                reason=table.ROUND_REASON_DEALER_ERROR,
            ),
            metadata=dealer.metadata,
            timeout=PATIENCE_S,
        )
    else:
        await dealer.close_betting(round_id)
    over = (partner.ROUND_STATE_PAID, partner.ROUND_STATE_RETURNED)
    while True:
        seen = await north.round_in("t1", *over)
        if seen.round_id == round_id:
            return seen


async def test_bac_42_roads_of_a_table_and_of_a_shoe(tmp_path: Path) -> None:
    played: list[partner.Round] = []
    for more in (4, 2):  # The second time the first rounds are known to the projection alone.
        async with fleet(tmp_path / "data", port=0) as running:
            front_door = Servers(running.address)
            north = Partner(front_door, running.tokens["partner:north"])
            dealer = Operator(front_door, running.tokens["operator:sam"])
            if not played:
                await dealer.open_table(table_spec("t1"))
            for _ in range(more):
                played.append(await play(north, dealer, len(played) + 1))
            counted = [one for one in played if one.state == partner.ROUND_STATE_PAID]
            assert [one.HasField("road") for one in counted] == [True] * len(counted)

            answer = await roads(north, table_id="t1")
            shown = answer.roads
            assert list(shown.results) == [one.road for one in counted]
            assert [one.colour for one in shown.results] == [
                COLOURS[one.result.baccarat.winner] for one in counted
            ]
            assert len(shown.bead_plate.cells) == len(played) - 1
            same = await roads(north, shoe_id=counted[0].shoe_id, at_least=answer.position)
            assert same.roads == shown
            state = await north.bets.GetTable(
                partner.GetTableRequest(table_id="t1"), metadata=north.metadata
            )
            assert state.table.roads == shown

            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await roads(north, shoe_id="t1-s99")
            assert reason_of(caught.value) == "SHOE_NOT_PLAYED"
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await roads(north)
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            await front_door.close()
