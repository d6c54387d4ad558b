"""No more bets at a table on the floor: who was late, and what was taken back (ROU-7, BAC-3)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest

from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1 import events_pb2 as log
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import floor_events_pb2 as orders
from sabot.table.v1 import spec_pb2
from services.games import catalogue, steps
from services.games.rule_set_faults import table_faults
from services.kernel.event import Position, Unfinished
from services.table.domain import floor_close
from services.table.domain.core import CORE
from services.table.domain.state import Phase, Round, TableState
from tests.unit import table_facts
from tests.unit.deciding import PARTNER, START_US, Deciding, Fact, by
from tests.unit.table_facts import (
    R1,
    S1,
    T,
    bets_of,
    bets_rejected,
    open_round,
    order,
    place,
    rejected,
    resume,
    resumed,
    returned,
    shoe_opened,
    shoe_started,
    suspend,
    suspended,
    timer_closes,
    void,
    voided,
    withdraw,
    withdrawal_rejected,
)

CALL_US = 50_000
"""When the dealer called, since the start of the test. Bets come in around it."""
EARLY = floor.FLOOR_FAULT_EARLY_OUTCOME


def floor_spec(window_ms: int = 0) -> spec_pb2.TableSpec:
    spec = table_facts.spec(window_ms)
    spec.origin = spec_pb2.OUTCOME_ORIGIN_FLOOR
    return spec


def betting(window_ms: int = 0) -> Deciding[TableState]:
    """A round on the floor that takes bets."""
    log_ = Deciding(CORE).given(
        table_facts.open_table(of=floor_spec(window_ms)), shoe_opened(), shoe_started()
    )
    return log_ if window_ms else log_.given(open_round())


def running(log_: Deciding[TableState]) -> Round:
    found = log_.state.tables[T].running
    assert found is not None
    return found


def bet(
    number: int, edge_us: int, account: str = "ann", partner: str = PARTNER, count: int = 1
) -> Fact:
    """A request for so many bets of 500 on Player, taken by an edge at that time."""
    body = place(f"q{number}", *[("player", 500)] * count, account=account)
    return by(body, edge_us=edge_us, partner=partner)


def take_back(number: int, edge_us: int, *bet_ids: str, account: str = "ann") -> Fact:
    return by(withdraw(f"w{number}", *bet_ids, account=account), edge_us=edge_us)


def close(at_us: int | None = CALL_US, number: int = 3, edge_us: int = 60_000) -> Fact:
    """The dealer's call; `at_us`: when it was made by the device's clock."""
    told = 0 if at_us is None else START_US + at_us
    body = table.CloseBetting(
        table_id=T, round_id=R1, source=table.SOURCE_OPERATOR, device_time_us=told
    )
    fact = order(body, number)
    return by(fact.body, partner="", actor=fact.actor, edge_us=edge_us)


def closing(
    cut_off_us: int | None = CALL_US,
    source: table.Source.ValueType = table.SOURCE_OPERATOR,
    suspends: table.RoundReason.ValueType = table.ROUND_REASON_UNSPECIFIED,
) -> table.BettingClose:
    at = 0 if cut_off_us is None else START_US + cut_off_us
    return table.BettingClose(cut_off_us=at, source=source, suspends=suspends)


def closed(
    cut_off_us: int | None = CALL_US, source: table.Source.ValueType = table.SOURCE_OPERATOR
) -> table.BettingClosed:
    at = 0 if cut_off_us is None else START_US + cut_off_us
    return table.BettingClosed(table_id=T, round_id=R1, source=source, cut_off_us=at)


def late(
    *bet_ids: str,
    account: str = "ann",
    partner: str = PARTNER,
    close_: table.BettingClose | None = None,
) -> table.BetsWithdrawn:
    return table.BetsWithdrawn(
        account_id=account,
        table_id=T,
        round_id=R1,
        bets=bets_of(*((one, "player", 500) for one in bet_ids)),
        partner_id=partner,
        close=close_ or closing(),
        late=True,
    )


def back(
    number: int, *bet_ids: str, account: str = "ann", close_: table.BettingClose | None = None
) -> table.BetsWithdrawn:
    body = late(*bet_ids, account=account, close_=close_)
    body.late = False
    body.request_id = f"w{number}"
    return body


def noted(number: int, edge_us: int, *bet_ids: str) -> orders.WithdrawalNoted:
    return orders.WithdrawalNoted(
        request_id=f"w{number}",
        account_id="ann",
        table_id=T,
        round_id=R1,
        bets=bets_of(*((one, "player", 500) for one in bet_ids)),
        edge_time_us=START_US + edge_us,
    )


def told(
    fault: floor.FloorFault.ValueType = EARLY, happened_us: int = CALL_US, round_id: str = R1
) -> Fact:
    return by(
        floor.FloorFaultFound(
            table_id=T,
            round_id=round_id,
            fault=fault,
            told="17",
            happened_us=START_US + happened_us,
            source=shoes.CARD_SOURCE_DEVICE,
        ),
        partner="",
    )


# ---- late bets ---------------------------------------------------------------------------------


def test_a_bet_tells_when_an_edge_took_it_on_the_floor_and_nowhere_else() -> None:
    log_ = betting()
    log_.when(bet(1, 40_000))
    [placed] = log_.answers
    assert isinstance(placed, table.BetsPlaced)
    assert placed.edge_time_us == START_US + 40_000
    virtual = Deciding(CORE).given(table_facts.open_table(), shoe_opened(), shoe_started())
    virtual.given(open_round()).when(bet(1, 40_000))
    [placed] = virtual.answers
    assert isinstance(placed, table.BetsPlaced)
    assert placed.edge_time_us == 0


def test_bets_that_an_edge_took_after_the_call_go_back_before_betting_closes() -> None:
    log_ = betting().given(
        bet(1, CALL_US - 1),
        bet(2, CALL_US),
        bet(3, CALL_US + 1),
        bet(4, CALL_US + 2, account="ben"),
        bet(5, CALL_US + 3),
    )
    log_.when(close()).then(late("t1-1.3", "t1-1.5"), late("t1-1.4", account="ben"), closed())
    assert running(log_).phase is Phase.DEALING
    assert list(running(log_).accounts[PARTNER, "ann"].live) == ["t1-1.1", "t1-1.2"]


def test_without_a_device_time_the_order_of_the_log_alone_decides() -> None:
    betting().given(bet(1, 99_000)).when(close(None)).then(closed(None))


def test_where_outcomes_are_drawn_a_device_time_is_not_looked_at() -> None:
    virtual = Deciding(CORE).given(table_facts.open_table(), shoe_opened(), shoe_started())
    virtual.given(open_round(), bet(1, 99_000)).when(close()).then(closed(None))


def test_rou_7_a_timer_closes_by_the_order_of_the_log() -> None:
    log_ = betting(15_000).given(bet(1, 99_000), take_back(1, 99_500))
    close_ = closing(None, table.SOURCE_TIMER)
    log_.when(timer_closes()).then(
        back(1, "t1-1.1", close_=close_), closed(None, table.SOURCE_TIMER)
    )


@pytest.mark.parametrize("at_us", [-10_000_000, 60_000 + 1_000_001])
def test_at_a_time_that_cannot_be_betting_closes_and_the_round_stands_still(at_us: int) -> None:
    log_ = betting().given(bet(1, 99_000))
    log_.when(close(at_us)).then(closed(None), suspended(table.ROUND_REASON_EQUIPMENT))


def test_a_device_may_be_a_second_ahead() -> None:
    betting().when(close(60_000 + 1_000_000)).then(closed(60_000 + 1_000_000))


def test_bets_of_several_partners_go_back_to_their_own() -> None:
    log_ = betting().given(
        bet(1, CALL_US + 1, partner="north"), bet(1, CALL_US + 1, partner="south")
    )
    log_.when(close()).then(
        late("t1-1.1", partner="north"), late("t1-1.2", partner="south"), closed()
    )
    approved = limits.WithdrawalApproved(
        account_id="ann",
        table_id=T,
        round_id=R1,
        bets=bets_of(("t1-1.2", "player", 500)),
        partner_id="south",
        late=True,
    )
    log_.given(by(approved, partner=""))
    assert running(log_).accounts["south", "ann"].withdrawing == {}
    assert list(running(log_).accounts["north", "ann"].withdrawing) == ["t1-1.1"]


def test_a_bet_that_comes_after_the_close_is_refused_whenever_an_edge_took_it() -> None:
    log_ = betting().given(close())
    log_.when(bet(1, CALL_US - 10)).then(bets_rejected(table.REFUSAL_BETTING_CLOSED))


# ---- withdrawals -------------------------------------------------------------------------------


def test_a_withdrawal_is_noted_and_takes_effect_as_betting_closes() -> None:
    log_ = betting().given(bet(1, 10_000, count=2))
    log_.when(take_back(1, CALL_US, "t1-1.2")).then(noted(1, CALL_US, "t1-1.2"))
    assert list(running(log_).accounts[PARTNER, "ann"].live) == ["t1-1.1", "t1-1.2"]
    log_.when(close()).then(back(1, "t1-1.2"), closed())


def test_a_withdrawal_made_after_the_call_has_no_effect() -> None:
    log_ = betting().given(bet(1, 10_000), take_back(1, CALL_US + 1))
    log_.when(close()).then(closed())
    assert list(running(log_).accounts[PARTNER, "ann"].live) == ["t1-1.1"]


def test_a_bet_is_asked_back_once() -> None:
    log_ = betting().given(bet(1, 10_000), take_back(1, 11_000))
    log_.when(take_back(2, 12_000, "t1-1.1")).then(
        withdrawal_rejected(table.REFUSAL_NO_SUCH_BET, "w2")
    )
    log_.when(take_back(3, 12_000)).then(withdrawal_rejected(table.REFUSAL_NO_SUCH_BET, "w3"))
    log_.given(bet(2, 13_000)).when(take_back(4, 14_000)).then(noted(4, 14_000, "t1-1.2"))
    log_.when(close()).then(back(1, "t1-1.1"), back(4, "t1-1.2"), closed())


def test_a_late_bet_goes_back_as_late_whatever_asks_for_it() -> None:
    log_ = betting().given(bet(1, CALL_US + 1), take_back(1, CALL_US - 1))
    log_.when(close()).then(late("t1-1.1"), closed())


def test_a_bet_that_limits_refused_meanwhile_is_not_asked_back() -> None:
    log_ = betting().given(bet(1, 10_000), take_back(1, 11_000))
    log_.given(table_facts.refused_by_limits("t1-1.1")).when(close()).then(closed())


def test_lim_8_a_withdrawal_that_limits_refuse_leaves_the_bet_on() -> None:
    log_ = betting().given(bet(1, 10_000), take_back(1, 11_000), close())
    refused = limits.WithdrawalRefused(
        account_id="ann", table_id=T, round_id=R1, bet_ids=["t1-1.1"], partner_id=PARTNER
    )
    log_.given(by(refused, partner=""))
    assert list(running(log_).accounts[PARTNER, "ann"].live) == ["t1-1.1"]


@pytest.mark.parametrize(("behaviour", "asked_again"), [(1, True), (2, False)])
def test_lim_8_a_withdrawal_refused_between_two_steps_is_asked_for_once(
    behaviour: int, *, asked_again: bool
) -> None:
    """Under behaviour 1 it was asked for in every step, as parts of it were."""
    refused = limits.WithdrawalRefused(
        account_id="ann", table_id=T, round_id=R1, bet_ids=["t1-1.1"], partner_id=PARTNER
    )
    log_ = betting().given(bet(1, 10_000, count=2), take_back(1, 11_000, "t1-1.1"))
    log_.given(take_back(2, 12_000, "t1-1.2"))
    first = back(1, "t1-1.1")
    read_back = log_.last._replace(body=first, partner="", behaviour=behaviour)
    CORE.evolve(log_.state, read_back)
    log_.given(by(refused, partner=""))
    again = [back(1, "t1-1.1")] if asked_again else []
    answers = floor_close.go_on_closing(log_.state, read_back, first)
    assert answers == [*again, back(2, "t1-1.2"), closed()]


# ---- in steps ----------------------------------------------------------------------------------


def test_a_great_close_goes_in_steps_and_takes_no_bet_between_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(steps, "STEP_BETS", (2,))
    log_ = betting().given(
        bet(1, CALL_US + 1, count=5), bet(2, CALL_US + 1, account="ben"), bet(3, 10_000)
    )
    log_.given(take_back(1, 11_000, "t1-1.7"))
    log_.when(close())
    assert log_.steps == [
        [late("t1-1.1", "t1-1.2")],
        [late("t1-1.3", "t1-1.4")],
        [late("t1-1.5"), late("t1-1.6", account="ben")],
        [back(1, "t1-1.7"), closed()],
    ]


def test_a_withdrawal_is_never_split_between_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits judge what is left by it: half of it may leave what the whole would not."""
    monkeypatch.setattr(steps, "STEP_BETS", (2,))
    log_ = betting().given(bet(1, CALL_US + 1), bet(2, 10_000, count=4))
    log_.given(take_back(1, 11_000, "t1-1.2", "t1-1.3", "t1-1.4"), take_back(2, 12_000, "t1-1.5"))
    log_.when(close())
    assert log_.steps == [
        [late("t1-1.1")],
        [back(1, "t1-1.2", "t1-1.3", "t1-1.4")],
        [back(2, "t1-1.5"), closed()],
    ]


def test_under_behaviour_1_a_withdrawal_was_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "STEP_BETS", (2,))
    log_ = betting().given(bet(1, CALL_US + 1), bet(2, 10_000, count=4))
    log_.given(take_back(1, 11_000, "t1-1.2", "t1-1.3", "t1-1.4"))
    log_.when(dataclasses.replace(close(), behaviour=1))
    assert log_.steps == [
        [late("t1-1.1"), back(1, "t1-1.2")],
        [back(1, "t1-1.3", "t1-1.4"), closed()],
    ]


def test_between_two_steps_nothing_is_taken_and_a_void_ends_the_close() -> None:
    log_ = betting().given(bet(1, CALL_US + 1))
    running(log_).at_floor.closing = closing()  # type: ignore[union-attr] # as after a first step
    log_.when(bet(2, 10_000)).then(bets_rejected(table.REFUSAL_BETTING_CLOSED, "q2"))
    log_.when(take_back(1, 10_000)).then(withdrawal_rejected(table.REFUSAL_BETTING_CLOSED, "w1"))
    log_.when(close(number=9)).then(rejected(table.REFUSAL_BETTING_CLOSED, 9, round_id=R1))
    log_.when(timer_closes()).then(log.InputIgnored(reason=log.IGNORED_REASON_ALREADY_DONE))
    log_.when(told()).then(suspended(table.ROUND_REASON_EARLY_OUTCOME))
    log_.when(void()).then(voided())
    assert floor_close.go_on_closing(log_.state, log_.last, late("t1-1.1")) == ()


@pytest.mark.parametrize(("behaviour", "steps_taken"), [(1, 2), (2, 12)])
def test_all_that_an_account_may_have_fits_one_step_after_the_other(
    behaviour: int, steps_taken: int
) -> None:
    log_ = Deciding(CORE, careful=False).given(
        table_facts.open_table(of=floor_spec()), shoe_opened(), shoe_started(), open_round()
    )
    for number in range(15):
        log_.given(bet(number, CALL_US + 1, count=32))
    log_.when(dataclasses.replace(close(), behaviour=behaviour))
    assert [len(step) for step in log_.steps] == [1] * (steps_taken - 1) + [2]


# ---- outcomes that come too early --------------------------------------------------------------


def test_an_outcome_while_bets_are_taken_is_itself_the_call() -> None:
    log_ = betting().given(bet(1, CALL_US), bet(2, CALL_US + 1), take_back(1, CALL_US, "t1-1.1"))
    close_ = closing(CALL_US, table.SOURCE_OUTCOME, table.ROUND_REASON_EARLY_OUTCOME)
    log_.when(told()).then(
        late("t1-1.2", close_=close_),
        back(1, "t1-1.1", close_=close_),
        closed(CALL_US, table.SOURCE_OUTCOME),
        suspended(table.ROUND_REASON_EARLY_OUTCOME),
    )
    log_.when(close(number=9)).then(rejected(table.REFUSAL_BETTING_CLOSED, 9, round_id=R1))
    log_.when(told()).then()


def test_an_outcome_at_a_time_that_cannot_be_closes_by_the_order_of_the_log() -> None:
    log_ = betting().given(bet(1, 99_000))
    log_.when(told(happened_us=-10_000_000)).then(
        closed(None, table.SOURCE_OUTCOME), suspended(table.ROUND_REASON_EARLY_OUTCOME)
    )


def test_an_outcome_in_a_suspended_window_closes_it_and_it_stays_suspended() -> None:
    log_ = betting().given(suspend())
    log_.when(told()).then(closed(CALL_US, table.SOURCE_OUTCOME))
    assert running(log_).suspended
    log_.when(resume()).then(resumed())


def test_an_outcome_between_close_and_seal_stops_the_round() -> None:
    log_ = betting().given(close())
    log_.when(told()).then(suspended(table.ROUND_REASON_EARLY_OUTCOME))
    log_.when(told()).then()


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (floor.FLOOR_FAULT_IMPOSSIBLE_CARD, table.ROUND_REASON_INTEGRITY),
        (floor.FLOOR_FAULT_CONTRADICTION, table.ROUND_REASON_EQUIPMENT),
    ],
)
def test_what_cannot_be_right_stops_the_round_wherever_it_stands(
    fault: floor.FloorFault.ValueType, reason: table.RoundReason.ValueType
) -> None:
    betting().when(told(fault)).then(suspended(reason))
    betting().given(close()).when(told(fault)).then(suspended(reason))
    betting().when(told(fault, round_id="")).then()
    betting().given(void()).when(told(fault)).then()
    betting().given(close(), void(), returned()).when(told(fault)).then()


# ---- tables ------------------------------------------------------------------------------------


def test_bac_40_a_card_that_leaves_the_shoe_counts_for_the_round_it_leaves_in() -> None:
    def burn(reason: shoes.BurnReason.ValueType) -> Fact:
        body = shoes.CardsBurned(table_id=T, shoe_id=S1, face_down=1, reason=reason)
        return by(body, partner="")

    for reason in (shoes.BURN_REASON_DROPPED, shoes.BURN_REASON_PROCEDURE):
        log_ = betting().given(burn(reason))
        assert running(log_).cards_left_shoe
        log_ = betting().given(void(), returned(), burn(reason))
        assert log_.state.tables[T].shoe_rounds == 0
    log_ = betting().given(void(), returned(), burn(shoes.BURN_REASON_BETWEEN_ROUNDS))
    assert log_.state.tables[T].shoe_rounds == 0


def blackjack_table(told: bool) -> Fact:
    spec = table_facts.spec()
    rule_set = catalogue.blackjack()
    spec.rule_set.CopyFrom(rule_set)
    del spec.limits[:]
    spec.limits.extend(
        spec_pb2.BetLimit(bet=offer.bet, min_minor=1, max_minor=100, step_minor=1)
        for offer in rule_set.bets
    )
    spec.origin = spec_pb2.OUTCOME_ORIGIN_FLOOR
    assert table_faults(spec) == []
    return order(table.OpenTable(spec=spec, blackjack_on_floor=told), 1)


def test_vis_3_blackjack_is_told_from_the_floor_since_edges_keep_its_hole_card() -> None:
    log_ = Deciding(CORE)
    log_.when(blackjack_table(False)).then(
        rejected(
            table.REFUSAL_BAD_TABLE_SPEC, 1, detail="blackjack is dealt from a virtual shoe only"
        )
    )
    Deciding(CORE).when(blackjack_table(True)).then_only(table.TableOpened)


def test_a_card_out_of_turn_suspends_a_round_that_is_dealt() -> None:
    log_ = betting().given(close(None))
    body = floor.FloorFaultFound(
        table_id=T, round_id=R1, fault=floor.FLOOR_FAULT_CARD_OUT_OF_TURN, told="5C"
    )
    log_.when(body).then(suspended(table.ROUND_REASON_EARLY_OUTCOME))


# ---- a close that a void cuts short ------------------------------------------------------------


def cut_short(told: bool, monkeypatch: pytest.MonkeyPatch) -> Deciding[TableState]:
    """A close of two steps, with a void between them: the last answer of the first is read back
    behind it."""
    monkeypatch.setattr(steps, "STEP_BETS", (1,))
    log_ = betting().given(bet(1, 55_000), bet(2, 56_000, account="ben"))
    fact = close()
    body: Any = fact.body
    body.told_when_voided = told
    event = log_._event(fact)
    log_.core.evolve(log_.state, event)
    step = log_.core.decide(log_.state, event)
    assert isinstance(step, Unfinished)
    [first] = step.answers
    own = event._replace(
        position=Position(1, 900, 0), is_input=False, body=first, cause=event.position
    )
    log_.core.evolve(log_.state, own)
    log_.given(void())
    again = log_.core.decide(log_.state, own)
    assert isinstance(again, Sequence)
    log_.steps = [list(again)]
    return log_


def test_whoever_called_is_told_that_a_void_cut_the_close_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log_ = cut_short(told=True, monkeypatch=monkeypatch)
    log_.then(rejected(table.REFUSAL_ROUND_VOIDED, 3, round_id=R1))


def test_closes_from_before_end_as_they_did(monkeypatch: pytest.MonkeyPatch) -> None:
    cut_short(told=False, monkeypatch=monkeypatch).then()
