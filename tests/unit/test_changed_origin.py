"""A table whose rules change where outcomes come from: a shoe that stands goes on as it began."""

from __future__ import annotations

from sabot.shoe.v1 import events_pb2 as shoe
from sabot.table.v1 import spec_pb2
from services.table.domain.core import CORE
from services.table.domain.state import TableState
from tests.unit import table_facts
from tests.unit.deciding import Deciding, Fact, by
from tests.unit.table_facts import (
    S1,
    T,
    open_round,
    open_table,
    shoe_closed,
    shoe_opened,
    shoe_started,
)
from tests.unit.test_floor_close import CALL_US, bet, close, closed, floor_spec, late


def by_hand(shoe_id: str = S1) -> Fact:
    """A shoe that was filled with packs stands at the table."""
    packs = [f"pack-{number}" for number in range(1, 9)]
    body = shoe.ShoeOpened(
        table_id=T, shoe_id=shoe_id, number=1, cards=416, cut_at=409, packs=packs
    )
    return by(body, partner="")


def begun(
    shoe_: Fact, before: spec_pb2.TableSpec, after: spec_pb2.TableSpec
) -> Deciding[TableState]:
    """A round behind a change of rules, on the shoe that stood there before it."""
    return Deciding(CORE).given(
        open_table(of=before), shoe_, shoe_started(), open_table(8, of=after), open_round(9)
    )


def test_bets_are_late_as_long_as_a_shoe_filled_by_hand_stands() -> None:
    log_ = begun(by_hand(), floor_spec(), table_facts.spec())
    log_.given(bet(1, CALL_US - 10), bet(2, CALL_US + 10, account="ben"))
    log_.when(close(number=10)).then(late("t1-1.2", account="ben"), closed())


def test_from_the_next_shoe_on_the_log_alone_decides() -> None:
    log_ = Deciding(CORE).given(open_table(of=floor_spec()), by_hand(), shoe_started())
    log_.given(open_table(8, of=table_facts.spec()), shoe_closed())
    log_.given(shoe_opened("t1-s2", 2), shoe_started("t1-s2"), open_round(9))
    log_.given(bet(1, CALL_US - 10), bet(2, CALL_US + 10, account="ben"))
    log_.when(close(number=10)).then(closed(cut_off_us=None))
