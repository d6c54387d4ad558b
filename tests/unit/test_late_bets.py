"""Late bets at a table on the floor: whatever stands first in the log, and however far each service
has read, the bets that are played are those that were made in time (docs/adr/0017)."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass

import pytest
from google.protobuf.message import Message

from sabot.limits.v1 import events_pb2 as limits
from sabot.rules.v1 import events_pb2 as rules
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import bet_pb2, spec_pb2
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.games import catalogue
from tests.unit.cores_together import Together
from tests.unit.deciding import START_US, request_id

T, R = "w1", "w1-1"
CALL = 1_000_000
"""When the dealer called, since the start."""
REST = CALL + 500_000
"""When the ball came to rest, where it did so in time."""


@dataclass(frozen=True)
class Told:
    """An input of the round: what it is called here, and when its edge took it."""

    name: str
    edge_us: int


BET_IN_TIME, BET_LATE = Told("a", CALL - 10), Told("b", CALL + 10)
BACK_IN_TIME, BACK_LATE = Told("back", CALL - 5), Told("back", CALL + 5)
CLOSE, SPIN = Told("close", CALL + 100), Told("spin", REST)


def spec() -> spec_pb2.TableSpec:
    rule_set = catalogue.roulette()
    return spec_pb2.TableSpec(
        table_id=T,
        currency_code="EUR",
        rule_set=rule_set,
        origin=spec_pb2.OUTCOME_ORIGIN_FLOOR,
        limits=[
            spec_pb2.BetLimit(bet=offer.bet, min_minor=1, max_minor=10_000, step_minor=1)
            for offer in rule_set.bets
        ],
        pacing=spec_pb2.Pacing(),
    )


def begun(seed: int = 0) -> Together:
    """A round of roulette that takes bets; accounts `a`, `b` and `c`, and a bet of `c`."""
    cell = Together(seed)
    number = iter(range(1, 100))
    cell.tell("table", table.OpenTable(request_id=request_id(next(number)), spec=spec()))
    for account in "abc":
        opened = wallet.OpenAccount(
            request_id=request_id(next(number)), account_id=account, currency_code="EUR"
        )
        cell.tell("wallet", opened, partner="north")
        paid = wallet.Deposit(
            request_id=request_id(next(number)),
            account_id=account,
            currency_code="EUR",
            amount_minor=1_000,
        )
        cell.tell("wallet", paid, partner="north")
    order = table.OpenRound(
        request_id=request_id(next(number)), table_id=T, source=table.SOURCE_OPERATOR
    )
    cell.tell("table", order)
    cell.settle()
    cell.tell("table", place("c"), partner="north", edge_us=100)
    cell.settle()
    return cell


def place(account: str) -> table.PlaceBets:
    return table.PlaceBets(
        request_id=f"bet-{account}",
        account_id=account,
        table_id=T,
        round_id=R,
        currency_code="EUR",
        bets=[bet_pb2.Bet(bet="straight", position="17", stake_minor=100)],
    )


def tell(cell: Together, told: Told, *, device_time: bool = True) -> None:
    match told.name:
        case "a" | "b":
            body: Message = place(told.name)
            cell.tell("table", body, partner="north", edge_us=told.edge_us)
        case "back":
            body = table.WithdrawBets(request_id="back", account_id="c", table_id=T, round_id=R)
            cell.tell("table", body, partner="north", edge_us=told.edge_us)
        case "close":
            body = table.CloseBetting(
                request_id=request_id(50),
                table_id=T,
                round_id=R,
                source=table.SOURCE_OPERATOR,
                device_time_us=START_US + CALL if device_time else 0,
            )
            cell.tell("table", body, edge_us=told.edge_us)
        case _:
            body = shoes.RecordSpin(
                request_id=request_id(51),
                table_id=T,
                round_id=R,
                attempt=1,
                number=17,
                turns=4,
                direction=shoes.SPIN_DIRECTION_AGAINST,
                source=shoes.CARD_SOURCE_DEVICE,
                device="wheel-7",
                device_time_us=START_US + told.edge_us,
            )
            cell.tell("shoe", body, edge_us=told.edge_us)


def resume(cell: Together) -> None:
    body = table.ResumeRound(
        request_id=request_id(52), table_id=T, round_id=R, reason=table.ROUND_REASON_CLEARED
    )
    cell.tell("table", body)


def void(cell: Together) -> None:
    body = table.VoidRound(
        request_id=request_id(53),
        table_id=T,
        round_id=R,
        reason=table.ROUND_REASON_EARLY_OUTCOME,
    )
    cell.tell("table", body)


def balances(cell: Together) -> dict[str, tuple[int, int]]:
    accounts = cell.state("wallet").accounts
    return {
        account: (
            accounts["north", account].available_minor,
            accounts["north", account].reserved_minor,
        )
        for account in "abc"
    }


def played(cell: Together) -> set[str]:
    """The accounts whose bets were settled."""
    return {body.account_id for body in cell.said(settlement.BetsSettled)}


def check_money(cell: Together) -> None:
    """Every reserved stake was settled or returned, once; nothing is left reserved; 35:1 was won by
    whoever played 17."""
    ends = [
        bet.bet_id
        for body in cell.said(settlement.BetsSettled, wallet.StakeReturned)
        for bet in body.bets
    ]
    reserved = [bet.bet_id for body in cell.said(wallet.StakeReserved) for bet in body.bets]
    assert sorted(ends) == sorted(reserved)
    for account, (available, held) in balances(cell).items():
        assert held == 0
        assert available == (1_000 + 35 * 100 if account in played(cell) else 1_000)


def check_order(cell: Together) -> None:
    """The order of events that the decision lays down."""
    kinds = [type(event.body) for event in cell.log]
    closed = kinds.index(table.BettingClosed)
    assert kinds.count(table.BettingClosed) == 1
    for kind in (table.BetsPlaced, table.BetsWithdrawn):
        assert all(at < closed for at, one in enumerate(kinds) if one is kind)
    sealed = kinds.index(wallet.StakesSealed)
    assert closed < kinds.index(limits.BookClosed) < sealed
    for later in (rules.SpinCalled, shoes.WheelSpun, table.ResultAccepted):
        assert all(at > sealed for at, one in enumerate(kinds) if one is later)
    returned = [at for at, one in enumerate(kinds) if one is wallet.StakeReturned]
    if table.RoundVoided not in kinds:
        assert all(at < sealed for at in returned)


# ---- without an early outcome ------------------------------------------------------------------

ORDERS = list(itertools.permutations(("a", "b", "back", "close")))


@pytest.mark.parametrize("back", [BACK_IN_TIME, BACK_LATE], ids=["back-in-time", "back-late"])
@pytest.mark.parametrize("names", ORDERS, ids="-".join)
@pytest.mark.parametrize("pace", ["prompt", "late", "any"])
def test_bets_that_are_played_were_made_in_time(
    names: tuple[str, ...], back: Told, pace: str
) -> None:
    """Bet `a` in time, bet `b` late, a withdrawal of bet `c`, the dealer's call: in every order in
    the log, with services that are prompt, that read only once all is told, or that read as it
    comes."""
    told = {"a": BET_IN_TIME, "b": BET_LATE, "back": back, "close": CLOSE}
    for seed in range(6 if pace == "any" else 1):
        cell = begun(seed)
        for name in names:
            tell(cell, told[name])
            if pace == "prompt":
                cell.settle()
            elif pace == "any":
                cell.stir(cell.chance.randint(0, 6))
        cell.settle()
        tell(cell, SPIN)
        cell.settle()
        before = {name for name in names if names.index(name) < names.index("close")}
        expected = {"a"} & before
        if not ("back" in before and back is BACK_IN_TIME):
            expected.add("c")
        assert played(cell) == expected
        check_money(cell)
        check_order(cell)
        late = [body for body in cell.said(table.BetsWithdrawn) if body.late]
        assert [body.account_id for body in late] == sorted({"b"} & before)
        assert [
            body.account_id
            for body in cell.said(wallet.StakeReturned)
            if body.reason == wallet.RETURN_REASON_LATE
        ] == sorted({"b"} & before)


def test_without_a_device_time_whatever_stands_before_the_close_is_played() -> None:
    cell = begun()
    for told in (BET_IN_TIME, BET_LATE):
        tell(cell, told)
    tell(cell, CLOSE, device_time=False)
    cell.settle()
    tell(cell, SPIN)
    cell.settle()
    assert played(cell) == {"a", "b", "c"}
    check_money(cell)


# ---- with an outcome before the seal -----------------------------------------------------------

EARLY_ORDERS = [
    names
    for names in itertools.permutations(("a", "b", "close", "spin"))
    if names.index("spin") <= names.index("close") + 2
]


@pytest.mark.parametrize("end", ["resumed", "voided"])
@pytest.mark.parametrize("names", EARLY_ORDERS, ids="-".join)
def test_an_outcome_before_the_seal_is_itself_the_cut_off(names: tuple[str, ...], end: str) -> None:
    """The ball rests before the dealer has called: at the moment of the call itself, so that the
    same bet is late by either."""
    told = {"a": BET_IN_TIME, "b": BET_LATE, "close": CLOSE, "spin": Told("spin", CALL)}
    for seed in range(8):
        cell = begun(seed)
        for name in names:
            tell(cell, told[name])
            cell.stir(cell.chance.randint(0, 5))
        cell.settle()
        early = cell.said(floor.FloorFaultFound)
        if early:
            assert [body.reason for body in cell.said(table.RoundSuspended)] == [
                table.ROUND_REASON_EARLY_OUTCOME
            ]
            assert cell.said(table.ResultAccepted) == []
            resume(cell) if end == "resumed" else void(cell)
            cell.settle()
        check_money(cell)
        check_order(cell)
        ended = end == "resumed" or not early
        ends = [body.end for body in cell.said(table.RoundClosed)]
        assert ends == [table.ROUND_END_PAID if ended else table.ROUND_END_RETURNED]
        if not ended:
            assert played(cell) == set()
            continue
        [closed] = cell.said(table.BettingClosed)
        assert closed.cut_off_us == START_US + CALL
        assert "b" not in played(cell)
        assert "c" in played(cell)
        placed = {body.account_id for body in cell.said(table.BetsPlaced)}
        assert ("a" in played(cell)) == ("a" in placed)


def test_a_ball_that_rested_before_the_call_stops_the_round_however_late_it_is_told() -> None:
    """A sensor that lags: the bets between the rest and the call were made by who might have seen
    it. The round stands still, with its result held."""
    cell = begun()
    tell(cell, CLOSE)
    cell.settle()
    assert cell.said(wallet.StakesSealed)
    tell(cell, Told("spin", CALL - 1))
    cell.settle()
    [fault] = cell.said(floor.FloorFaultFound)
    assert fault.happened_us == START_US + CALL - 1
    assert cell.said(rules.RoundResolved)
    assert cell.said(table.ResultAccepted) == []
    resume(cell)
    cell.settle()
    assert played(cell) == {"c"}
    check_money(cell)


def test_a_misread_number_is_corrected_before_anything_is_paid() -> None:
    from sabot.table.v1 import floor_events_pb2 as orders  # noqa: PLC0415 - for this test alone

    for seed in range(30):
        cell = begun(seed)
        tell(cell, CLOSE)
        cell.settle()
        body = table.SuspendRound(
            request_id=request_id(60),
            table_id=T,
            round_id=R,
            reason=table.ROUND_REASON_MISREAD,
        )
        cell.tell("table", body)
        cell.stir(cell.chance.randint(0, 4))
        tell(cell, SPIN)
        cell.settle()
        assert cell.said(table.ResultAccepted) == []
        fix = orders.CorrectOutcome(
            request_id=request_id(61),
            table_id=T,
            round_id=R,
            attempt=1,
            numbers=[18],
            reason=table.ROUND_REASON_MISREAD,
        )
        cell.tell("table", fix)
        cell.stir(cell.chance.randint(0, 8))
        resume(cell)
        cell.stir(cell.chance.randint(0, 8))
        cell.settle()
        if cell.said(table.OrderRejected):  # It came before the shoe had answered.
            again = table.ResumeRound(
                request_id=request_id(62),
                table_id=T,
                round_id=R,
                reason=table.ROUND_REASON_CLEARED,
            )
            cell.tell("table", again)
            cell.settle()
        [accepted] = cell.said(table.ResultAccepted)
        assert accepted.result.roulette.number == 18
        assert balances(cell)["c"] == (900, 0)


def test_random_schedules_keep_the_money_right() -> None:
    """Everything at once, in any order, at any pace: nothing is lost and nothing is paid twice."""
    for seed in range(120):
        chance = random.Random(seed)
        cell = begun(seed)
        told = [BET_IN_TIME, BET_LATE, chance.choice((BACK_IN_TIME, BACK_LATE)), CLOSE]
        told.append(Told("spin", chance.choice((CALL - 1, CALL, CALL + 1, REST))))
        chance.shuffle(told)
        for one in told:
            tell(cell, one)
            cell.stir(chance.randint(0, 7))
        cell.settle()
        if cell.said(table.RoundSuspended):
            void(cell) if seed % 2 else resume(cell)
            cell.settle()
        if not cell.said(table.RoundClosed):  # The spin came before its round could take it.
            assert cell.said(floor.FloorRejected)
            continue
        ends = [
            bet.bet_id
            for body in cell.said(settlement.BetsSettled, wallet.StakeReturned)
            for bet in body.bets
        ]
        reserved = [bet.bet_id for body in cell.said(wallet.StakeReserved) for bet in body.bets]
        assert sorted(ends) == sorted(reserved)
        assert all(held == 0 for _, held in balances(cell).values())
