"""LimitsService in front of callers, over the core that decides: who may do what, and what support
sees of an account (rules LIM-6, LIM-7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from google.protobuf.message import Message

from sabot.limits.v1 import events_pb2 as limits
from sabot.limits.v1 import limits_service_pb2 as service
from sabot.limits.v1 import protection_events_pb2 as protection
from sabot.log.v1 import events_pb2 as log
from sabot.table.v1 import spec_pb2
from services.kernel.call import Call
from services.kernel.edge import Outcome
from services.kernel.errors import Refused
from services.kernel.tokens import Caller, Role
from services.limits.domain.state import LimitsState
from services.limits.servicer import LimitsServicer
from tests.unit.deciding import PARTNER, START_US, Deciding, by, request_id
from tests.unit.fake_edge import FakeEdge
from tests.unit.limits_facts import BACCARAT, ROULETTE, T, on, placed, round_open, spec
from tests.unit.protection_facts import (
    AGE,
    BET,
    DAY,
    DAY_S,
    DEPOSIT,
    HOUR,
    LOSS,
    MINUTE,
    SESSION,
    STAKE,
    WEEK_S,
    deposit,
    opened,
    paid,
    setting,
)

ACME = Call(Caller(partner=PARTNER), method="a/B")
OTHER = Call(Caller(partner="other"), method="a/B")
DANA = Call(Caller(operator="dana", roles=frozenset({Role.SUPERVISOR})), method="a/B")
MONTH_S = 30 * DAY_S


@dataclass
class DecidingEdge(FakeEdge):
    """An edge whose inputs the limits core decides."""

    game: Deciding[LimitsState] | None = None
    fails: bool = False

    async def submit(self, service: str, body: Message, **more: Any) -> Outcome:
        assert service == "limits"
        assert self.game is not None
        self.game.when(by(body, partner=more["partner"], actor=more["actor"]))
        answer = log.InputFailed() if self.fails else self.game.answers[0]
        at = self.game.last.position
        return Outcome(at, self.event(answer, sequence=at.sequence, service=service))


class Desk:
    """Accounts `ann` of acme, `bob` of other, and a table."""

    def __init__(self, of: spec_pb2.TableSpec | None = None) -> None:
        self.game = round_open(of or spec(BACCARAT))
        self.game.given(opened(jurisdiction="FR"), opened("bob", partner="other"))
        self.edge = DecidingEdge(states={"limits": self.game.state}, game=self.game)
        self.servicer = LimitsServicer(self.edge)
        self.count = 0

    def an_id(self) -> str:
        self.count += 1
        return request_id(self.count)

    async def set(
        self,
        *of: protection.LimitSetting,
        scope: limits.Scope.ValueType = limits.SCOPE_ACCOUNT,
        name: str = "ann",
        call: Call = DANA,
        partner: str = PARTNER,
        currency: str = "EUR",
        an_id: str = "",
    ) -> service.SetLimitsResponse:
        request = service.SetLimitsRequest(
            request_id=an_id or self.an_id(),
            scope=scope,
            scope_id=name,
            partner_id=partner if scope == limits.SCOPE_ACCOUNT else "",
            currency_code=currency,
            limits=of,
            reason="asked for",
        )
        return await self.servicer.set_limits(request, call)

    async def exclude(
        self, term_s: int = 0, call: Call = ACME, account: str = "ann", partner: str = ""
    ) -> service.ExcludeResponse:
        request = service.ExcludeRequest(
            request_id=self.an_id(),
            account_id=account,
            partner_id=partner,
            kind=protection.EXCLUSION_KIND_EXCLUSION,
            term_s=term_s,
            reason="asked for",
        )
        return await self.servicer.exclude(request, call)

    async def protection(
        self, call: Call = ACME, account: str = "ann", partner: str = ""
    ) -> service.GetProtectionResponse:
        self.edge.log_time_us = self.game.time_us
        request = service.GetProtectionRequest(account_id=account, partner_id=partner)
        return await self.servicer.get_protection(request, call)


async def reason_of(asking: Any) -> str:
    with pytest.raises(Refused) as caught:
        await asking
    return caught.value.reason.name


# ---- who may do what ---------------------------------------------------------------------------


async def test_a_partner_tightens_for_its_own_accounts_and_nothing_else() -> None:
    desk = Desk()
    await desk.set(setting(BET, 500), call=ACME)
    assert await reason_of(desk.set(setting(BET, 501), call=ACME)) == "LIMIT_LOOSENS"
    assert await reason_of(desk.set(setting(BET, 5), call=OTHER)) == "PERMISSION_DENIED"
    for scope, name in (
        (limits.SCOPE_TABLE, T),
        (limits.SCOPE_PARTNER, PARTNER),
        (limits.SCOPE_JURISDICTION, "FR"),
    ):
        denied = desk.set(setting(BET, 5), scope=scope, name=name, call=ACME)
        assert await reason_of(denied) == "PERMISSION_DENIED"


async def test_an_operator_sets_limits_of_everything() -> None:
    desk = Desk()
    for scope, name in (
        (limits.SCOPE_TABLE, T),
        (limits.SCOPE_PARTNER, PARTNER),
        (limits.SCOPE_JURISDICTION, "FR"),
        (limits.SCOPE_ACCOUNT, "ann"),
    ):
        told = await desk.set(setting(BET, 500), scope=scope, name=name)
        assert not told.HasField("looser_from")
    told = await desk.set(setting(BET, 501))
    assert told.looser_from.ToMicroseconds() == desk.game.time_us + DAY


async def test_an_operator_says_whose_account_it_means() -> None:
    desk = Desk()
    assert await reason_of(desk.set(setting(BET, 5), partner="")) == "INVALID_REQUEST"
    assert await reason_of(desk.exclude(call=DANA)) == "INVALID_REQUEST"
    assert await reason_of(desk.protection(DANA)) == "INVALID_REQUEST"
    assert (await desk.protection(DANA, partner=PARTNER)).currency_code == "EUR"


async def test_a_token_for_single_tables_sets_their_limits_alone() -> None:
    desk = Desk()
    roles = frozenset({Role.SUPERVISOR})
    bound = Call(Caller(operator="dana", roles=roles, tables=frozenset({T})), method="a/B")
    await desk.set(setting(BET, 500), scope=limits.SCOPE_TABLE, name=T, call=bound)
    for scope, name in (
        (limits.SCOPE_TABLE, "t2"),
        (limits.SCOPE_PARTNER, PARTNER),
        (limits.SCOPE_ACCOUNT, "ann"),
    ):
        asked = desk.set(setting(BET, 5), scope=scope, name=name, call=bound)
        assert await reason_of(asked) == "TABLE_NOT_BOUND"


async def test_others_accounts_are_not_there() -> None:
    desk = Desk()
    assert await reason_of(desk.protection(OTHER)) == "ACCOUNT_NOT_FOUND"
    assert await reason_of(desk.exclude(call=OTHER)) == "ACCOUNT_NOT_FOUND"
    assert await reason_of(desk.protection(OTHER, partner=PARTNER)) == "PERMISSION_DENIED"


# ---- repeats and faults ------------------------------------------------------------------------


async def test_a_repeat_is_told_the_first_outcome() -> None:
    desk = Desk()
    await desk.set(setting(BET, 500))
    same = request_id(50)
    first = await desk.set(setting(BET, 600), an_id=same)
    again = await desk.set(setting(BET, 600), an_id=same)
    assert (first.replayed, again.replayed) == (False, True)
    assert again.looser_from == first.looser_from
    assert await reason_of(desk.set(setting(BET, 700), an_id=same)) == "REQUEST_ID_REUSED"
    refused = request_id(51)
    for _ in range(2):
        asked = desk.set(setting(BET, 1), name="eve", an_id=refused)
        assert await reason_of(asked) == "ACCOUNT_NOT_FOUND"


async def test_an_order_that_failed_is_told_so() -> None:
    desk = Desk()
    desk.edge.fails = True
    assert await reason_of(desk.set(setting(BET, 500))) == "INPUT_FAILED"


async def test_what_is_wrong_is_told_in_words() -> None:
    desk = Desk()
    with pytest.raises(Refused) as caught:
        await desk.set(setting(STAKE, 5))
    assert caught.value.text("en") == "This cannot be asked of limits: the limit needs a window."


async def test_a_table_that_is_not_open_has_no_limits_to_set() -> None:
    desk = Desk()
    asked = desk.set(setting(BET, 5), scope=limits.SCOPE_TABLE, name="t9")
    assert await reason_of(asked) == "TABLE_NOT_FOUND"


# ---- exclusions and descriptions ---------------------------------------------------------------


async def test_an_exclusion_is_lifted_by_an_operator_a_day_later() -> None:
    desk = Desk()
    assert not (await desk.exclude()).HasField("until")
    lifting = service.LiftExclusionRequest(
        request_id=desk.an_id(), account_id="ann", partner_id=PARTNER, reason="asked for"
    )
    told = await desk.servicer.lift_exclusion(lifting, DANA)
    assert told.until.ToMicroseconds() == desk.game.time_us + DAY


async def test_an_exclusion_with_a_term_says_until_when() -> None:
    desk = Desk()
    told = await desk.exclude(DAY_S, call=DANA, partner=PARTNER)
    assert told.until.ToMicroseconds() == desk.game.time_us + DAY
    assert await reason_of(desk.exclude(60)) == "EXCLUDED_LONGER"


async def test_a_partner_describes_its_account() -> None:
    desk = Desk()
    request = service.DescribeAccountRequest(
        request_id=desk.an_id(),
        account_id="ann",
        jurisdiction="DE",
        age=limits.AGE_STATEMENT_OF_AGE,
    )
    told = await desk.servicer.describe_account(request, ACME)
    assert told.former_until.ToMicroseconds() == desk.game.time_us + DAY
    seen = await desk.protection()
    assert (seen.jurisdiction, list(seen.former_jurisdictions)) == ("DE", ["FR"])
    assert seen.age == limits.AGE_STATEMENT_OF_AGE


# ---- what support sees -------------------------------------------------------------------------


def use_of(
    told: service.GetProtectionResponse, kind: protection.LimitKind.ValueType, window_s: int
) -> service.WindowUse:
    [found] = [one for one in told.windows if (one.kind, one.window_s) == (kind, window_s)]
    return found


async def test_lim_7_every_window_is_told_with_what_is_used_left_and_until_when() -> None:
    desk = Desk()
    await desk.set(setting(STAKE, 1_000, window_s=DAY_S), setting(SESSION, 3_600), call=ACME)
    await desk.set(
        setting(STAKE, 900, window_s=DAY_S),
        setting(DEPOSIT, 5_000, window_s=12 * 3_600),
        scope=limits.SCOPE_PARTNER,
        name=PARTNER,
    )
    desk.game.given(deposit(1, 2_000))
    on(desk.game, "r1", ("b1", "player", "", 300))
    desk.game.given(by(placed("r2", ("b2", "player", "", 100)), at_us=10 * MINUTE))
    told = await desk.protection()
    staked = use_of(told, STAKE, DAY_S)
    assert (staked.used, staked.left) == (400, 500)
    assert (staked.limit.scope, staked.limit.scope_id) == (limits.SCOPE_PARTNER, PARTNER)
    assert staked.frees_at.ToMicroseconds() == START_US + HOUR + DAY
    assert use_of(told, LOSS, WEEK_S).used == 400  # At stake, and so as good as lost.
    assert not use_of(told, LOSS, WEEK_S).HasField("left")
    paid_in = use_of(told, DEPOSIT, 12 * 3_600)
    assert (paid_in.used, paid_in.left) == (2_000, 3_000)
    played = use_of(told, SESSION, 0)
    assert 599 <= played.used <= 600
    assert played.left == 3_600 - played.used
    assert told.at_stake_minor == 400
    windows = {(one.kind, one.window_s) for one in told.windows}
    assert windows == {
        (kind, window_s)
        for kind in (STAKE, LOSS, DEPOSIT, SESSION)
        for window_s in (DAY_S, WEEK_S, MONTH_S)
    } | {(SESSION, 0), (DEPOSIT, 12 * 3_600)}
    assert len(told.limits) == 4
    desk.game.given(paid(400, 900))
    assert use_of(await desk.protection(), LOSS, DAY_S).used == -500


async def test_lim_7_support_sees_what_will_be_looser_and_when() -> None:
    desk = Desk()
    await desk.set(setting(STAKE, 500, window_s=DAY_S))
    await desk.set(setting(STAKE, None, window_s=DAY_S))
    [one] = (await desk.protection()).limits
    assert (one.maximum, one.loosens, one.HasField("later_maximum")) == (500, True, False)
    assert one.later_from.ToMicroseconds() == desk.game.time_us + DAY
    desk.game.given(by(deposit(1, 1).body, at_us=2 * DAY))
    assert list((await desk.protection()).limits) == []


async def test_lim_7_support_sees_an_exclusion() -> None:
    desk = Desk()
    await desk.exclude(DAY_S)
    told = await desk.protection()
    assert told.exclusion == protection.EXCLUSION_KIND_EXCLUSION
    assert told.excluded_until.ToMicroseconds() == desk.game.time_us + DAY


async def test_lim_6_get_limits_says_what_is_in_force_and_whose_it_is() -> None:
    desk = Desk()
    await desk.set(setting(BET, 500, bet="tie"), scope=limits.SCOPE_TABLE, name=T)
    await desk.set(setting(BET, 400), scope=limits.SCOPE_PARTNER, name=PARTNER)
    await desk.set(setting(AGE, 0), scope=limits.SCOPE_JURISDICTION, name="FR", currency="")
    await desk.set(setting(STAKE, 300, window_s=DAY_S))
    request = service.GetLimitsRequest(table_id=T)
    told = await desk.servicer.get_limits(request, ACME)
    assert [(one.scope, one.scope_id, one.kind) for one in told.scoped] == [
        (limits.SCOPE_TABLE, T, BET),
        (limits.SCOPE_PARTNER, PARTNER, BET),
    ]
    request.account_id = "ann"
    told = await desk.servicer.get_limits(request, ACME)
    assert [(one.scope, one.scope_id) for one in told.scoped][2:] == [
        (limits.SCOPE_JURISDICTION, "FR"),
        (limits.SCOPE_ACCOUNT, "ann"),
    ]
    assert await reason_of(desk.servicer.get_limits(request, OTHER)) == "ACCOUNT_NOT_FOUND"
    assert await reason_of(desk.servicer.get_limits(request, DANA)) == "INVALID_REQUEST"
    request.account_id = ""
    told = await desk.servicer.get_limits(request, DANA)
    assert [one.scope for one in told.scoped] == [limits.SCOPE_TABLE]


async def test_lim_6_a_dry_run_tells_the_room_that_is_left() -> None:
    desk = Desk(spec(ROULETTE, by_bet={"straight": (100, 500)}, max_account_minor=550))
    on(desk.game, "r1", ("b1", "straight", "17", 400))
    request = service.CheckBetsRequest(account_id="ann", table_id=T)
    request.bets.add(bet="straight", position="17").stake.minor_units = 200
    for wager in request.bets:
        wager.stake.currency_code = "EUR"
    told = await desk.servicer.check_bets(request, ACME)
    assert [(one.limit, one.room_minor) for one in told.violations] == [
        (limits.LIMIT_ABOVE_MAXIMUM, 100),
        (limits.LIMIT_ACCOUNT_MAXIMUM, 150),
    ]


async def test_vis_1_a_dry_run_says_nothing_of_what_others_have_staked() -> None:
    """Else a caller would find their total by halves, without a stake of its own."""
    desk = Desk(spec(ROULETTE, max_exposure_minor=40_000))
    desk.game.given(opened("eve"))
    on(desk.game, "r1", ("b1", "straight", "17", 1_000), account="eve")
    request = service.CheckBetsRequest(account_id="ann", table_id=T)
    one = request.bets.add(bet="straight", position="17")
    one.stake.currency_code, one.stake.minor_units = "EUR", 1_000
    assert list((await desk.servicer.check_bets(request, ACME)).violations) == []
    desk.game.when(placed("r2", ("b2", "straight", "17", 1_000)))
    desk.game.then_only(limits.BetsRefused)
