"""What is told and asked of blackjack's doubles, splits and insurance beside their turns: an offer
of closed insurance ends at once, they need no limits, and they are not placed on the layout."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sabot.limits.v1 import limits_service_pb2
from sabot.partner.v1 import partner_service_pb2 as partners
from sabot.rules.v1 import rule_set_pb2 as rule_sets
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import operator_service_pb2 as operators
from sabot.table.v1 import risk_events_pb2 as risk
from sabot.table.v1 import spec_pb2
from services.games import catalogue
from services.games.money import MAX_STAKE_MINOR
from services.games.rule_set_faults import table_faults
from services.kernel.ask import Told
from services.kernel.errors import Refused
from services.kernel.event import Position
from services.limits.domain.queries import limits_at
from services.table.answers import placed
from services.table.domain.core import CORE
from services.table.domain.state import TableState
from tests.unit.blackjack_facts import ANN, bet, offered, reserved, spec
from tests.unit.deciding import Deciding, by
from tests.unit.front import NORTH, SAM, UUID7, Door
from tests.unit.limits_facts import BLACKJACK, R, T, round_open
from tests.unit.limits_facts import spec as limits_spec
from tests.unit.table_facts import close_betting, open_round, open_table, shoe_opened, shoe_started

LINE = 985


def dealing(*, ends_offer: bool, closed: Sequence[str] = ("insurance",)) -> Deciding[TableState]:
    """A main bet is on, kinds are closed for the round, and no more bets are taken."""
    of = spec()
    of.max_return_per_mille = LINE
    game = Deciding(CORE).given(open_table(of=of), shoe_opened(), shoe_started(), open_round())
    body = table.PlaceBets(
        request_id="r",
        account_id=ANN,
        table_id=T,
        round_id=R,
        currency_code="EUR",
        bets=[bet("", "main", 100, 1)],
    )
    closing = risk.CloseBets(
        table_id=T,
        round_id=R,
        bets=[risk.LiveReturn(bet=one, rtp="101/100") for one in closed],
        ends_offer=ends_offer,
    )
    game.given(body, reserved(ANN, bet("t1-1.1", "main", 100, 1)), by(closing, partner=""))
    return game.given(close_betting())


def test_bj_3_an_offer_of_closed_insurance_ends_as_it_begins() -> None:
    game = dealing(ends_offer=True)
    game.when(by(offered(1, 1), partner="")).then(table.InsuranceClosed(table_id=T, round_id=R))
    running = game.state.tables[T].running
    assert running is not None
    assert running.turn is None


@pytest.mark.parametrize("closed", [("insurance",), ("main", "perfect_pairs")])
def test_bj_3_any_other_offer_stands(closed: Sequence[str]) -> None:
    """That of an earlier release too, which did not ask for its end: its log is decided as then."""
    dealing(ends_offer=False, closed=closed).when(by(offered(1, 1), partner="")).then()


# ---- limits of their own -----------------------------------------------------------------------


async def test_bj_6_a_table_may_leave_out_limits_of_further_stakes() -> None:
    of = spec()
    kept = [one for one in of.limits if one.bet not in ("double", "split", "insurance")]
    del of.limits[:]
    of.limits.extend(kept)
    of.pacing.SetInParent()
    assert table_faults(of) == ["no limit for double, insurance, split"]
    door = Door(table.TableOpened(revision=1))
    await door.operator.open_table(operators.OpenTableRequest(request_id=UUID7, spec=of), SAM)
    [asked] = door.edge.submitted
    assert isinstance(asked.body, table.OpenTable)
    assert table_faults(asked.body.spec) == []
    line = spec_pb2.BetLimit(bet="double", min_minor=1, max_minor=MAX_STAKE_MINOR, step_minor=1)
    assert line in asked.body.spec.limits
    assert [one for one in asked.body.spec.limits if one.bet in {k.bet for k in kept}] == kept


async def test_another_game_has_all_its_limits_named() -> None:
    of = spec(catalogue.baccarat_1())
    del of.limits[0]
    door = Door(table.TableOpened(revision=1))
    await door.operator.open_table(operators.OpenTableRequest(request_id=UUID7, spec=of), SAM)
    [asked] = door.edge.submitted
    assert isinstance(asked.body, table.OpenTable)
    assert asked.body.spec == of


def test_bj_6_no_limits_of_further_stakes_are_shown() -> None:
    found = limits_at(round_open(limits_spec(BLACKJACK)).state, T)
    assert isinstance(found, limits_service_pb2.GetLimitsResponse)
    assert not {one.bet for one in found.limits} & {"double", "split", "insurance"}


# ---- which bet is wrong ------------------------------------------------------------------------

WRONG = [
    (catalogue.blackjack(), ("insurance", "3"), "BET_BY_ACT", "insurance 3"),
    (catalogue.blackjack(), ("main", "8"), "NOT_ON_LAYOUT", "main 8"),
    (catalogue.roulette(), ("split", "1-5"), "NOT_ON_LAYOUT", "split 1-5"),
    (catalogue.roulette(), ("zebra", ""), "BET_NOT_OFFERED", "zebra"),
    (catalogue.roulette(), ("voisins", ""), "NOT_WHOLE_CHIPS", "voisins"),
]
REFUSALS = {
    "BET_BY_ACT": table.REFUSAL_NOT_ON_LAYOUT,
    "NOT_ON_LAYOUT": table.REFUSAL_NOT_ON_LAYOUT,
    "BET_NOT_OFFERED": table.REFUSAL_UNKNOWN_BET,
    "NOT_WHOLE_CHIPS": table.REFUSAL_NOT_WHOLE_CHIPS,
}


@pytest.mark.parametrize(
    ("rule_set", "wrong", "reason", "words"), WRONG, ids=[words for *_, words in WRONG]
)
async def test_a_bettor_is_told_which_bet_is_wrong(
    rule_set: rule_sets.RuleSet, wrong: tuple[str, str], reason: str, words: str
) -> None:
    right = ("main", "1") if rule_set.game == rule_sets.GAME_BLACKJACK else ("red", "")
    door = Door(table.BetsRejected(refusal=REFUSALS[reason]))
    door.state.tables["t1"].spec.rule_set.CopyFrom(rule_set)
    request = partners.PlaceBetsRequest(
        request_id="q", account_id="ann", table_id="t1", round_id="t1-7"
    )
    for kind, position in (right, wrong):
        one = request.bets.add(bet=kind, position=position)
        one.stake.currency_code, one.stake.minor_units = "EUR", 100
    with pytest.raises(Refused) as caught:
        await door.partner.place_bets(request, NORTH)
    assert caught.value.reason.name == reason
    assert words in caught.value.text("en")
    assert caught.value.facts["bet"] == wrong[0]


def test_without_the_rules_the_refusal_is_told_without_the_bet() -> None:

    told = Told(table.BetsRejected(refusal=table.REFUSAL_UNKNOWN_BET), Position(1, 1, 0), False)
    facts = {"request_id": "q", "table_id": "t1", "round_id": "", "account_id": "", "detail": ""}
    with pytest.raises(Refused) as caught:
        placed(told, facts, None, [])
    assert caught.value.reason.name == "BET_NOT_OFFERED"
