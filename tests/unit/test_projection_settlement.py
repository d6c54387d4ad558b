"""What may be asked of settlement's projection."""

from __future__ import annotations

from pathlib import Path

from sabot.settlement.v1.events_pb2 import BetsSettled
from services.kernel.event import Event
from services.kernel.projections import Projector
from services.settlement.projection import SettlementProjection
from services.settlement.projection_queries import SqlSettlementQueries
from services.settlement.queries import SettlementQueries
from tests.unit.projecting import ON_BOTH, url_of
from tests.unit.projection_log import HandMadeLog

pytestmark = ON_BOTH

WAIT_S = 60.0


async def test_settlements_of_a_round(tmp_path: Path) -> None:
    log = HandMadeLog()
    first = log.open_round(1)
    names = [(f"p{number % 3}", f"a{number:02}") for number in range(25)]
    reserved: list[tuple[str, Event]] = [
        (partner, log.bet(first, partner, account)[1]) for partner, account in reversed(names)
    ]
    log.play(first, reserved)
    empty = log.open_round(2)
    log.play(empty, [])
    voided = log.open_round(3)
    log.void(voided, [])
    projector = Projector(SettlementProjection(), url_of(tmp_path, "s"), log.read)
    await projector.start(wait_s=WAIT_S)
    assert await projector.caught_up(WAIT_S)
    queries = SqlSettlementQueries(projector)
    shell: SettlementQueries = queries
    assert shell.position.sequence == len(log.entries)
    assert await queries.reached(log.events[-1].position, 0)

    seen: list[BetsSettled] = []
    after: tuple[str, str] | None = None
    while page := await queries.settlement(first, None, 4, after):
        seen += page
        after = (page[-1].partner_id, page[-1].account_id)
    assert [(one.partner_id, one.account_id) for one in seen] == sorted(names)
    in_log = {
        one.body.account_id: one.body for one in log.events if isinstance(one.body, BetsSettled)
    }
    assert {one.account_id: one for one in seen} == in_log

    mine = await queries.settlement(first, "p1", 100, None)
    assert mine is not None
    assert {one.partner_id for one in mine} == {"p1"}
    assert await queries.settlement(first, "nobody", 100, None) == []
    assert await queries.settlement(empty, None, 100, None) == []
    assert await queries.settlement(voided, None, 100, None) is None
    assert await queries.settlement("t9-1", None, 100, None) is None
    marker = await queries.round_settled(first)
    assert marker is not None
    assert marker.accounts == 25
    assert await queries.round_settled(voided) is None
    await projector.close()
