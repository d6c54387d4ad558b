"""Rounds without bets at a table that skips them (BAC-40): neither dealt nor counted."""

from __future__ import annotations

from sabot.limits.v1 import events_pb2 as limits
from sabot.rules.v1 import rule_set_pb2
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import spec_pb2
from sabot.wallet.v1 import events_pb2 as wallet
from services.games.catalogue import baccarat
from services.games.rule_set_faults import table_faults
from services.kernel.event import Event
from services.simulator.virtual_time import run_virtual
from services.table.domain.core import CORE
from services.table.domain.state import TableState
from tests.fleet.small_cell import memory_cell
from tests.unit.deciding import Deciding
from tests.unit.table_facts import (
    R1,
    T,
    betting_closed,
    close_betting,
    open_round,
    open_table,
    place,
    shoe_opened,
    shoe_started,
    spec,
    timer_closes,
    voided,
    withdraw,
    withdrawal_approved,
)

BETS = ("banker", "player", "tie")


def skipping(window_ms: int = 0) -> spec_pb2.TableSpec:
    of = spec(window_ms=window_ms)
    of.rule_set.CopyFrom(baccarat(bets=BETS, skips_empty_rounds=True))
    return of


def betting(of: spec_pb2.TableSpec) -> Deciding[TableState]:
    log = Deciding(CORE).given(open_table(of=of), shoe_opened(), shoe_started())
    return log if of.pacing.betting_window_ms else log.given(open_round())


def no_bets() -> table.RoundVoided:
    skipped = voided()
    skipped.reason = table.ROUND_REASON_NO_BETS
    return skipped


def test_bac_40_an_empty_round_is_voided_as_its_betting_closes() -> None:
    betting(skipping()).when(close_betting()).then(betting_closed(), no_bets())


def test_bac_40_the_clock_skips_it_as_the_dealer_does() -> None:
    log = betting(skipping(window_ms=1_000))
    by_the_clock = betting_closed()
    by_the_clock.source = table.SOURCE_TIMER
    log.when(timer_closes()).then(by_the_clock, no_bets())


def test_bac_40_a_bet_is_a_bet_though_it_is_not_decided_yet() -> None:
    log = betting(skipping()).given(place("q1", ("player", 500)))
    log.when(close_betting()).then(betting_closed())


def test_bac_40_a_round_whose_bets_were_all_taken_back_is_empty() -> None:
    bet_id = f"{R1}.1"
    log = betting(skipping()).given(place("q1", ("player", 500)), withdraw("w1", bet_id))
    log.given(withdrawal_approved((bet_id, "player", 500)))
    log.when(close_betting()).then(betting_closed(), no_bets())


def test_bac_40_by_default_an_empty_round_is_dealt() -> None:
    betting(spec()).when(close_betting()).then(betting_closed())


def test_bac_40_on_the_floor_the_dealer_decides() -> None:
    of = skipping()
    assert table_faults(of) == []
    of.origin = spec_pb2.OUTCOME_ORIGIN_FLOOR
    assert table_faults(of) == [
        "rounds without bets are skipped at virtual tables only: a dealer may deal"
    ]
    assert isinstance(of.rule_set, rule_set_pb2.RuleSet)


def test_bac_40_a_skipped_round_takes_no_card_and_does_not_count() -> None:
    """Through the whole cell: the next round is the shoe's first, and is dealt."""

    async def main() -> None:
        async with memory_cell() as (cell, _):
            told: list[Event] = []
            cell.process.follow(told.extend)
            of = skipping()
            of.table_id = T
            await cell.open_table(of)
            await cell.open_account("ann", 100_000)
            round_id = await cell.open_round(T)
            await cell.order(table.CloseBetting(table_id=T, round_id=round_id))
            await cell.until(
                lambda: cell.process.state("table").tables[T].running is None, "it is over"
            )
            kinds = [type(event.body) for event in told]
            assert shoes.CardsDealt not in kinds
            assert limits.BookVoided in kinds
            assert wallet.RoundReturned in kinds
            await cell.play(1, ["ann"], T)
            opened = [one.body for one in told if isinstance(one.body, table.RoundOpened)]
            assert [(one.number, one.round_in_shoe) for one in opened] == [(1, 1), (2, 1)]
            assert shoes.CardsDealt in [type(event.body) for event in told]
            assert cell.alarms == []

    run_virtual(main())
