"""What projections keep of corrections: the facts of closed rounds, byte for byte as the log has
them, how each correction stands, and what rounds and bets came to before and after."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from sabot.partner.v1 import partner_service_pb2 as partners
from sabot.settlement.v1 import correction_events_pb2 as settlements
from sabot.table.v1 import correction_events_pb2 as corrections
from sabot.table.v1 import correction_service_pb2 as service
from sabot.table.v1 import events_pb2 as table
from services.cli.fleet import CELL
from services.events import event_types
from services.kernel.event import Event
from services.kernel.log import LogMessage
from services.kernel.projections import Projector
from services.kernel.reader import LogReader
from services.kernel.recovery import read_message
from services.settlement.projection import SettlementProjection
from services.settlement.projection_queries import SqlSettlementQueries
from services.simulator.log_facts import facts_in
from services.simulator.virtual_time import run_virtual
from services.table.correction_queries import CorrectionQueries
from services.table.projection import TableProjection
from services.table.projection_queries import SqlTableQueries
from tests.fleet.small_cell import PARTNER
from tests.unit.projecting import ON_BOTH, url_of
from tests.unit.test_corrections_cell import SAM, VOID, Correcting

pytestmark = ON_BOTH
WAIT_S = 60.0
ROUND = "wheel-1"


@lru_cache(maxsize=1)
def played() -> tuple[LogMessage, ...]:
    """A round that was corrected twice, a proposal that waits, and a round after it."""
    one = Correcting()

    async def main() -> None:
        async with one.running():
            round_id = await one.paid_round()
            assert round_id == ROUND
            await one.correct(round_id, one.other(round_id))
            await one.correct(round_id, VOID)
            await one.propose(round_id, one.other(round_id))
            again = await one.cell.open_round("wheel")
            await one.cell.close_betting(again)

    run_virtual(main())
    return tuple(one.store.entries())


@pytest.fixture(autouse=True, scope="module")
def _played() -> None:
    """Before any event loop runs: it is played in virtual time."""
    played()


async def read(after: int) -> AsyncIterator[tuple[int, bytes, list[Event]]]:
    reader = LogReader(CELL, event_types())
    for message in played():
        entry = read_message(reader, message)
        if entry.sequence > after:
            yield entry.sequence, entry.head, entry.events


async def projected(projection: Any, tmp_path: Path) -> Projector:
    projector = Projector(projection, url_of(tmp_path, "p"), read)
    await projector.start(wait_s=WAIT_S)
    assert await projector.caught_up(WAIT_S)
    return projector


async def test_facts_of_a_round_are_what_the_log_has(tmp_path: Path) -> None:
    projector = await projected(SettlementProjection(), tmp_path)
    queries = SqlSettlementQueries(projector)
    found = await queries.facts(ROUND)
    assert found == facts_in(played(), ROUND)
    kinds = [fact.type.rpartition(".")[2] for fact in found]
    assert kinds[:3] == ["TableOpened", "RoundOpened", "ResultAccepted"]
    assert kinds.count("RoundCorrected") == 2
    assert await queries.facts("wheel-9") == []
    assert await queries.facts_at(ROUND, projector.position) == found
    told = await queries.corrections(ROUND, [(PARTNER, "a0000"), (PARTNER, "nobody")])
    assert [one.version for one in told] == [1, 2]
    assert {one.account_id for one in told} == {"a0000"}
    await projector.close()


async def test_corrections_are_listed_as_they_stand(tmp_path: Path) -> None:
    projector = await projected(TableProjection(), tmp_path)
    queries = CorrectionQueries(projector)
    listed = await queries.corrections("", 10, None)
    assert [(one.correction_id, one.state) for _, one in listed] == [
        ("correction-3", service.CORRECTION_STATE_PROPOSED),
        ("correction-2", service.CORRECTION_STATE_POSTED),
        ("correction-1", service.CORRECTION_STATE_POSTED),
    ]
    first = listed[-1][1]
    assert (first.proposed_by, first.approved_by) == (SAM, "operator:rosa")
    assert (first.round_id, first.version, first.accounts) == (ROUND, 1, 2)
    older = await queries.corrections(ROUND, 10, listed[1][0])
    assert [one.correction_id for _, one in older] == ["correction-1"]
    assert await queries.corrections("wheel-2", 10, None) == []
    assert await queries.correction("correction-9") is None
    await projector.close()


async def test_rounds_and_bets_show_what_holds_and_what_held(tmp_path: Path) -> None:
    projector = await projected(TableProjection(), tmp_path)
    queries = SqlTableQueries(projector)
    shown = await queries.round(ROUND)
    assert shown is not None
    assert shown.HasField("result")
    assert (shown.correction.version, shown.correction.voided) == (2, True)
    assert shown.correction.reason == table.ROUND_REASON_MISREAD
    last = await queries.round("wheel-2")
    assert last is not None
    assert not last.HasField("correction")
    bets = await queries.bets(PARTNER, "a0000", ROUND, 10, None)
    events = [event async for _, _, some in read(0) for event in some]
    told = [
        event.body
        for event in events
        if isinstance(event.body, settlements.BetsCorrected) and event.body.account_id == "a0000"
    ]
    changes = {bet.after.bet_id: bet for bet in told[-1].bets}
    assert len(bets) == len(changes) == 2
    for _, bet in bets:
        change = changes[bet.bet_id]
        assert bet.state == partners.BET_STATE_VOIDED
        assert bet.payout.minor_units == bet.stake.minor_units
        assert bet.correction.payout_before.minor_units == change.before.payout_minor
        assert bet.correction.outcome_before == change.before.outcome
        assert bet.correction.version == 2
    assert any(isinstance(event.body, corrections.ResultCorrected) for event in events)
    await projector.close()
