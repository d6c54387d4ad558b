"""What is switched off: no new bets, no new rounds; what runs is played to its end."""

from __future__ import annotations

from typing import Any

import pytest

from sabot.log.v1 import events_pb2 as log
from sabot.partner.v1 import partner_service_pb2 as partners
from sabot.rules.v1 import rule_set_pb2 as rule_sets
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import operator_service_pb2 as operators
from sabot.table.v1 import switch_events_pb2 as orders
from sabot.table.v1 import switch_pb2 as switches
from services.games.catalogue import baccarat_1
from services.kernel.errors import Refused
from services.kernel.telemetry import Metrics
from services.table.domain import switches as domain
from services.table.domain.core import CORE
from services.table.domain.state import SwitchedOff, TableState
from services.table.domain.switches import key_of
from services.table.domain.timers import timers_wanted
from services.table.timers import Timers
from services.table.watch import LiveTables
from tests.unit.deciding import OPERATOR, START_US, Deciding, Fact, by, request_id
from tests.unit.fake_edge import FakeEdge, FakeQueries
from tests.unit.front import NORTH, SAM, UUID7, Door, table_state
from tests.unit.table_facts import (
    ONE_ROUND,
    PACED,
    R1,
    S2,
    WINDOW_MS,
    T,
    accepted,
    bets_rejected,
    betting,
    betting_closed,
    close_betting,
    closed,
    cut_card,
    ignored,
    open_round,
    open_table,
    opened,
    paced,
    paid,
    place,
    placed,
    ready,
    rejected,
    resolved,
    round_opened,
    shoe_closed,
    shoe_opened,
    shoe_started,
    suspend,
    timer_closes,
    timer_opens,
    void,
    withdraw,
    withdrawn,
)

ALL = switches.Switch(scope=switches.SWITCH_SCOPE_ALL)
GAME = switches.Switch(scope=switches.SWITCH_SCOPE_GAME, game=rule_sets.GAME_BACCARAT)
RULES = switches.Switch(scope=switches.SWITCH_SCOPE_RULE_SET, rule_set_hash=baccarat_1().hash)
PARTNER = switches.Switch(scope=switches.SWITCH_SCOPE_PARTNER, partner_id="acme")
ACCOUNT = switches.Switch(scope=switches.SWITCH_SCOPE_ACCOUNT, partner_id="acme", account_id="ann")
OTHERS = [
    switches.Switch(scope=switches.SWITCH_SCOPE_GAME, game=rule_sets.GAME_ROULETTE),
    switches.Switch(scope=switches.SWITCH_SCOPE_RULE_SET, rule_set_hash=b"x" * 32),
    switches.Switch(scope=switches.SWITCH_SCOPE_PARTNER, partner_id="other"),
    switches.Switch(scope=switches.SWITCH_SCOPE_ACCOUNT, partner_id="acme", account_id="bob"),
    switches.Switch(scope=switches.SWITCH_SCOPE_ACCOUNT, partner_id="other", account_id="ann"),
]


def named(one: switches.Switch | str) -> str:
    return one if isinstance(one, str) else switches.SwitchScope.Name(one.scope)


OF_TABLES = pytest.mark.parametrize("switch", [ALL, GAME, RULES], ids=named)
EVERY = pytest.mark.parametrize("switch", [ALL, GAME, RULES, PARTNER, ACCOUNT], ids=named)


def turn(number: int, switch: switches.Switch, off: bool = True, at_us: int | None = None) -> Fact:
    body = orders.SetSwitch(
        request_id=request_id(number),
        request_hash=b"%d" % number,
        switch=switch,
        off=off,
        reason="an inquiry",
    )
    return by(body, partner="", actor=OPERATOR, at_us=at_us)


def turned(switch: switches.Switch, off: bool = True) -> orders.SwitchSet:
    return orders.SwitchSet(switch=switch, off=off, reason="an inquiry")


def told_off(switch: switches.Switch, request: str = "q1") -> table.BetsRejected:
    told = bets_rejected(table.REFUSAL_SWITCHED_OFF, request)
    told.off.CopyFrom(switch)
    return told


# ---- bets --------------------------------------------------------------------------------------


@EVERY
def test_no_new_bets_while_it_is_off(switch: switches.Switch) -> None:
    game = betting()
    game.when(turn(20, switch)).then(turned(switch))
    game.when(place("q1")).then(told_off(switch))
    game.when(turn(21, switch, off=False)).then(turned(switch, off=False))
    game.when(place("q2")).then(placed("q2"))


@pytest.mark.parametrize("switch", OTHERS, ids=named)
def test_nobody_else_is_stopped(switch: switches.Switch) -> None:
    game = betting().given(turn(20, switch))
    game.when(place("q1")).then(placed("q1"))
    game.given(*ONE_ROUND).when(open_round(21)).then_only(table.RoundOpened)


def test_of_several_switches_the_widest_is_told() -> None:
    game = betting()
    found = [ACCOUNT, PARTNER, RULES, GAME, ALL]
    for number, switch in enumerate(found):
        game.given(turn(20 + number, switch))
        game.when(place(f"q{number}")).then(told_off(switch, f"q{number}"))


def test_a_repeat_gets_its_first_outcome_though_it_is_off_now() -> None:
    game = betting().given(place("q1"), turn(20, ALL))
    game.when(place("q1")).then_only(log.RequestRepeated)


@pytest.mark.parametrize(
    ("facts", "refusal"),
    [
        ([close_betting()], table.REFUSAL_BETTING_CLOSED),
        ([suspend()], table.REFUSAL_ROUND_SUSPENDED),
        ([void()], table.REFUSAL_ROUND_VOIDED),
    ],
)
def test_what_the_round_says_comes_first(
    facts: list[Fact], refusal: table.Refusal.ValueType
) -> None:
    betting().given(turn(20, ALL), *facts).when(place("q1")).then(bets_rejected(refusal))


def test_it_comes_before_what_is_wrong_with_a_bet() -> None:
    game = betting().given(turn(20, ALL))
    game.when(place("q1", ("no_such", 1), currency="USD")).then(told_off(ALL))


@EVERY
def test_a_round_that_runs_is_played_to_its_end(switch: switches.Switch) -> None:
    game = betting().given(place("q1"), turn(20, switch))
    game.when(withdraw("w1")).then(withdrawn("w1", ("t1-1.1", "player", 500)))
    game.when(close_betting()).then(betting_closed())
    game.when(resolved()).then(accepted())
    game.when(paid()).then(closed())


# ---- rounds ------------------------------------------------------------------------------------


@OF_TABLES
def test_no_new_rounds_while_it_is_off(switch: switches.Switch) -> None:
    game = ready().given(turn(20, switch))
    refused = rejected(table.REFUSAL_SWITCHED_OFF, 2)
    refused.off.CopyFrom(switch)
    game.when(open_round()).then(refused)
    game.given(turn(21, switch, off=False))
    game.when(open_round(3)).then(round_opened())


@pytest.mark.parametrize("switch", [PARTNER, ACCOUNT], ids=named)
def test_a_round_opens_for_everyone_else(switch: switches.Switch) -> None:
    ready().given(turn(20, switch)).when(open_round()).then(round_opened())


@OF_TABLES
def test_the_clock_opens_the_next_round_once_it_is_on_again(switch: switches.Switch) -> None:
    game = paced().given(turn(20, switch), timer_closes(), resolved(), paid(at_us=1_000_000))
    assert timers_wanted(game.state) == []
    game.when(timer_opens(2, at_us=6_000_000)).then(ignored(log.IGNORED_REASON_NOT_NOW))
    game.given(turn(21, switch, off=False, at_us=60_000_000))
    [timer] = timers_wanted(game.state)
    assert timer.due_us == START_US + 6_000_000
    told = Timers().poll(game.state, START_US + 60_000_001, leading=True)
    assert [type(body) for body in told] == [table.OpenRound]
    game.when(timer_opens(2, at_us=60_000_002)).then(round_opened(2, window_ms=WINDOW_MS))


@OF_TABLES
def test_a_new_shoe_opens_no_round_while_it_is_off(switch: switches.Switch) -> None:
    game = paced().given(cut_card(), timer_closes(), resolved(), paid(at_us=1_000_000))
    game.given(shoe_closed(), shoe_opened(S2, 2), turn(20, switch))
    game.when(shoe_started(S2, at_us=7_000_000)).then()
    game.given(turn(21, switch, off=False))
    game.when(timer_opens(2)).then(round_opened(2, shoe_id=S2, in_shoe=1, window_ms=WINDOW_MS))


def test_a_table_that_opens_while_it_is_off_opens_no_round() -> None:
    game = ready().given(turn(20, GAME))
    game.when(open_table(11, PACED)).then(opened(2, PACED))
    assert timers_wanted(game.state) == []
    game.given(turn(21, GAME, off=False))
    assert len(timers_wanted(game.state)) == 1


# ---- the order itself --------------------------------------------------------------------------


def test_why_by_whom_and_since_when_is_kept() -> None:
    game: Deciding[TableState] = Deciding(CORE).given(turn(1, GAME, at_us=5_000_000))
    assert game.state.switches == {
        key_of(GAME): SwitchedOff("an inquiry", OPERATOR, START_US + 5_000_000)
    }


def test_a_repeated_switch_is_one() -> None:
    game = Deciding(CORE).given(turn(1, GAME))
    game.when(turn(1, GAME)).then_only(log.RequestRepeated)


def refused_switch(
    number: int, switch: switches.Switch, refusal: table.Refusal.ValueType, detail: str = ""
) -> table.OrderRejected:
    told = rejected(refusal, number, table_id="", detail=detail)
    told.off.CopyFrom(switch)
    return told


def test_a_switch_that_is_so_already_is_refused() -> None:
    unchanged = table.REFUSAL_SWITCH_UNCHANGED
    game: Deciding[TableState] = Deciding(CORE)
    game.when(turn(1, GAME, off=False)).then(refused_switch(1, GAME, unchanged))
    game.given(turn(2, GAME))
    game.when(turn(3, GAME)).then(refused_switch(3, GAME, unchanged))


BAD = [
    (switches.Switch(), "what is to be switched is not named"),
    (
        switches.Switch(scope=switches.SWITCH_SCOPE_ALL, partner_id="acme"),
        "it names more than one thing",
    ),
    (switches.Switch(scope=switches.SWITCH_SCOPE_GAME), "the game is not known"),
    (
        switches.Switch(scope=switches.SWITCH_SCOPE_RULE_SET, rule_set_hash=b"short"),
        "the hash of a rule set has 32 bytes",
    ),
    (switches.Switch(scope=switches.SWITCH_SCOPE_PARTNER), "the partner is not named"),
    (
        switches.Switch(scope=switches.SWITCH_SCOPE_ACCOUNT, account_id="ann"),
        "the account and its partner are not named",
    ),
]


@pytest.mark.parametrize(("switch", "detail"), BAD, ids=[detail for _, detail in BAD])
def test_a_switch_names_one_thing(switch: switches.Switch, detail: str) -> None:
    Deciding(CORE).when(turn(1, switch)).then(
        refused_switch(1, switch, table.REFUSAL_BAD_SWITCH, detail)
    )


def test_so_many_switches_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domain, "MAX_SWITCHES", 1)
    game = Deciding(CORE).given(turn(1, ACCOUNT))
    game.when(turn(2, PARTNER)).then(refused_switch(2, PARTNER, table.REFUSAL_TOO_MANY_SWITCHES))
    game.when(turn(3, ACCOUNT, off=False)).then(turned(ACCOUNT, off=False))


# ---- in front of callers -----------------------------------------------------------------------


async def test_an_operator_switches_and_sees_what_is_off() -> None:
    door = Door(turned(GAME))
    request = operators.SetSwitchRequest(
        request_id=UUID7, switch=GAME, off=True, reason="an inquiry"
    )
    await door.operator.set_switch(request, SAM)
    [asked] = door.edge.submitted
    assert isinstance(asked.body, orders.SetSwitch)
    assert (asked.body.switch, asked.body.off, asked.body.reason) == (GAME, True, "an inquiry")
    state: TableState = door.edge.states["table"]
    state.switches[key_of(GAME)] = SwitchedOff("an inquiry", OPERATOR, START_US)
    told = await door.operator.list_switches(operators.ListSwitchesRequest(), SAM)
    [off] = told.off
    assert (off.switch, off.reason, off.actor) == (GAME, "an inquiry", OPERATOR)
    assert off.since.ToMicroseconds() == START_US


@pytest.mark.parametrize(
    ("switch", "words"),
    [
        (ALL, "ALL"),
        (GAME, "GAME BACCARAT"),
        (RULES, f"RULE SET {baccarat_1().hash.hex()}"),
        (PARTNER, "PARTNER acme"),
        (ACCOUNT, "ACCOUNT ann"),
    ],
    ids=named,
)
async def test_a_bettor_is_told_what_is_off(switch: switches.Switch, words: str) -> None:
    door = Door(told_off(switch))
    with pytest.raises(Refused) as caught:
        await door.partner.place_bets(BET, NORTH)
    assert caught.value.reason.name == "SWITCHED_OFF"
    assert caught.value.text("en") == f"No new bets or rounds: {words} is switched off."


BET = partners.PlaceBetsRequest(request_id="q1", account_id="ann", table_id=T, round_id=R1)
BET.bets.add(bet="player").stake.currency_code = "EUR"


@OF_TABLES
async def test_watchers_and_lists_show_what_is_off(switch: switches.Switch) -> None:
    one = table_state(running=False)
    one.spec.rule_set.CopyFrom(baccarat_1())
    state = TableState(tables={"t1": one})
    edge = FakeEdge(states={"table": state})
    live = LiveTables(edge, FakeQueries(), Metrics())
    seen: list[Any] = []
    stream = live.watch("t1", None)
    seen.append(await anext(stream))
    state.switches[key_of(switch)] = SwitchedOff("an inquiry", OPERATOR, START_US)
    edge.happens(turned(switch))
    seen.append(await anext(stream))
    state.switches.clear()
    edge.happens(turned(switch, off=False))
    seen.append(await anext(stream))
    assert [one.state.switched_off for one in seen] == [0, switch.scope, 0]
    live.close()
