"""Requests for baccarat bets that must be accepted or refused, judged by the core of limits."""

from __future__ import annotations

from typing import Any

import pytest

from sabot.limits.v1 import events_pb2 as limits
from sabot.table.v1 import bet_pb2, spec_pb2
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.games.catalogue import baccarat_1
from services.limits.domain.core import CORE
from tests.conformance.case_files import cases, named
from tests.unit.deciding import Deciding

OFFERED = ("banker", "player", "tie")
REASONS = {
    "PLAYER_BANKER_CONFLICT": limits.LIMIT_OPPOSITE_SIDES,
    "STAKE_ABOVE_MAX": limits.LIMIT_ABOVE_MAXIMUM,
    "STAKE_BELOW_MIN": limits.LIMIT_BELOW_MINIMUM,
}


def is_offered(case: dict[str, Any]) -> bool:
    """Whether a table of today offers all that the case asks for: the three main bets, with Player
    and Banker exclusive. The others wait for side bets and for the greatest difference."""
    bets = [bet["bet"] for bet in (*case["accepted"], *case["request"])]
    return case["table"]["player_banker"] == "exclusive" and all(bet in OFFERED for bet in bets)


CASES = [case for case in cases("baccarat_restrictions.jsonl") if is_offered(case)]
T, R = "t1", "t1-1"


def bet_limit(case: dict[str, Any], bet: str) -> spec_pb2.BetLimit:
    by_bet = case["table"]["limits"]
    limit = by_bet.get(bet, by_bet["default"])
    return spec_pb2.BetLimit(bet=bet, min_minor=limit["min"], max_minor=limit["max"], step_minor=1)


def bets_of(asked: list[dict[str, Any]], first: int) -> list[bet_pb2.Bet]:
    return [
        bet_pb2.Bet(bet_id=f"{R}.{number}", bet=bet["bet"], stake_minor=bet["stake"])
        for number, bet in enumerate(asked, start=first)
    ]


@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_request(case: dict[str, Any]) -> None:
    spec = spec_pb2.TableSpec(
        table_id=T,
        currency_code="EUR",
        rule_set=baccarat_1(),
        limits=[bet_limit(case, bet) for bet in OFFERED],
        pacing=spec_pb2.Pacing(),
    )
    log = Deciding(CORE).given(
        table.TableOpened(spec=spec, revision=1),
        table.RoundOpened(table_id=T, round_id=R, number=1, round_in_shoe=case["round_in_shoe"]),
    )
    whose: dict[str, Any] = {
        "account_id": "A",
        "table_id": T,
        "round_id": R,
        "currency_code": "EUR",
    }
    assert {bet["account"] for bet in (*case["accepted"], *case["request"])} == {"A"}
    if case["accepted"]:
        held = bets_of(case["accepted"], 1)
        log.given(
            table.BetsPlaced(request_id="q1", bets=held, **whose),
            wallet.StakeReserved(request_id="q1", bets=held, **whose),
        )
    asked = bets_of(case["request"], 100)
    log.when(table.BetsPlaced(request_id="q2", bets=asked, **whose))
    if case["expect"] == "accept":
        log.then(limits.BetsApproved(request_id="q2", bets=asked, **whose))
        return
    [refused] = log.answers
    assert isinstance(refused, limits.BetsRefused)
    assert list(refused.bet_ids) == [bet.bet_id for bet in asked]
    assert REASONS[case["reason"]] in [one.limit for one in refused.violations]
