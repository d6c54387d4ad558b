"""What a refusal for the round's exposure tells, and to whom: its figures are others' stakes (rules
LIM-4, VIS-1)."""

from __future__ import annotations

import pytest

from sabot.limits.v1 import events_pb2 as limits
from sabot.partner.v1 import partner_service_pb2 as partners
from sabot.rules.v1 import events_pb2 as rules
from services.cli.describe import describe
from services.cli.partner_view import may_see
from services.events import event_types
from services.kernel.errors import Refused, status_of
from services.kernel.event import Event, Position
from tests.unit.front import NORTH, SAM, Door

OVER = limits.Violation(limit=limits.LIMIT_EXPOSURE, allowed_minor=4_711, would_be_minor=4_712)
OWN = limits.Violation(limit=limits.LIMIT_ACCOUNT_MAXIMUM, allowed_minor=500, would_be_minor=700)
REFUSED = limits.BetsRefused(account_id="ann", violations=[OVER, OWN])


def asked() -> partners.PlaceBetsRequest:
    request = partners.PlaceBetsRequest(
        request_id="q", account_id="ann", table_id="t1", round_id="t1-7"
    )
    one = request.bets.add(bet="player")
    one.stake.currency_code, one.stake.minor_units = "EUR", 300
    return request


async def test_a_bettor_is_told_its_own_figures_alone() -> None:
    with pytest.raises(Refused) as caught:
        await Door(REFUSED).partner.place_bets(asked(), NORTH)
    assert caught.value.reason.name == "EXPOSURE"
    told = status_of(caught.value).SerializeToString()
    assert b"471" not in told
    assert b"room for 100 " in told


async def test_a_repeated_question_has_no_other_answer() -> None:
    for caller, call, scope in (("partner:north", NORTH, True), ("operator:sam", SAM, False)):
        door = Door()
        outcome = partners.RequestOutcome(refused=REFUSED)
        door.queries.requests[caller, "t1-7", "q"] = (Position(1, 5, 0), outcome)
        request = partners.GetRequestRequest(request_id="q", round_id="t1-7")
        told = await door.partner.get_request(request, call)
        kept = list(told.outcome.refused.violations)
        hidden = limits.Violation(limit=limits.LIMIT_EXPOSURE)
        assert kept == [hidden if scope else OVER, OWN]


def test_an_export_for_a_partner_hides_the_refusal() -> None:
    def seen(body: limits.BetsRefused) -> bool:
        event = Event(Position(1, 1, 0), "limits", False, body, None, "north", "", 0, 1)
        return may_see("north", event, event_types())

    assert not seen(REFUSED)
    assert seen(limits.BetsRefused(account_id="ann", violations=[OWN]))


async def test_a_double_is_told_the_room_that_is_left() -> None:
    request = partners.ActRequest(
        request_id="a",
        account_id="ann",
        table_id="t1",
        round_id="t1-7",
        seat=1,
        turn=1,
        action=rules.ACTION_DOUBLE,
    )
    request.extra.currency_code, request.extra.minor_units = "EUR", 250
    with pytest.raises(Refused) as caught:
        await Door(limits.BetsRefused(violations=[OWN])).partner.act(request, NORTH)
    assert caught.value.facts["room_minor"] == "50"


def test_a_scope_is_told_in_a_playthrough() -> None:
    one = limits.Violation(
        limit=limits.LIMIT_STAKE_WINDOW,
        allowed_minor=5,
        would_be_minor=9,
        scope=limits.SCOPE_PARTNER,
        scope_id="acme",
    )
    body = limits.BetsRefused(account_id="ann", violations=[one])
    assert describe(body) == "ann: STAKE_WINDOW: 9, allowed 5 (PARTNER acme)"
