"""What a broken limit is called in front of a caller, with its arithmetic (rule LIM-6)."""

from __future__ import annotations

import pytest

from sabot.limits.v1 import events_pb2 as limits
from services.kernel.errors import Refused, status_of
from services.refusals.limits import LIMITS, open_to_partners, refused
from services.refusals.wallet import DECISION_FAILED

FACTS: dict[str, str | int] = {
    "request_id": "r-1",
    "table_id": "t1",
    "round_id": "t1-7",
    "account_id": "a-1",
    "detail": "",
}
TOLD = [
    (
        limits.Violation(
            limit=limits.LIMIT_BELOW_MINIMUM,
            bet="straight",
            position="17",
            allowed_minor=100,
            would_be_minor=50,
        ),
        "total on straight 17 would be 50, minimum 100 (minor units)",
        {"bet": "straight", "position": "17", "would_be_minor": "50", "allowed_minor": "100"},
    ),
    (
        limits.Violation(
            limit=limits.LIMIT_ABOVE_MAXIMUM, bet="red", allowed_minor=1_000, would_be_minor=1_001
        ),
        "total on red would be 1001, maximum 1000, room for ? (minor units)",
        {"bet": "red", "would_be_minor": "1001", "allowed_minor": "1000"},
    ),
    (
        limits.Violation(
            limit=limits.LIMIT_STAKE_STEP,
            bet="total",
            position="4",
            allowed_minor=20,
            would_be_minor=50,
        ),
        "total on total 4 would be 50, no multiple of 20 (minor units)",
        {"bet": "total", "position": "4", "would_be_minor": "50", "allowed_minor": "20"},
    ),
    (
        limits.Violation(
            limit=limits.LIMIT_OPPOSITE_SIDES, bet="big", would_be_minor=100, against="small"
        ),
        "big may not be held together with small",
        {"bet": "big", "against": "small"},
    ),
    (
        limits.Violation(
            limit=limits.LIMIT_SIDE_BET_CLOSED, bet="tie", allowed_count=60, would_be_count=61
        ),
        "tie is offered up to round 60 of a shoe; this is round 61",
        {"bet": "tie", "allowed_count": "60", "would_be_count": "61"},
    ),
    (
        limits.Violation(
            limit=limits.LIMIT_NO_MAIN_BET,
            bet="perfect_pairs",
            position="3",
            would_be_minor=100,
            against="main",
        ),
        "perfect_pairs 3 needs a bet on main that is on at the same seat",
        {"bet": "perfect_pairs", "position": "3", "against": "main"},
    ),
    (
        limits.Violation(
            limit=limits.LIMIT_DIFFERENCE,
            bet="player",
            against="banker",
            allowed_minor=10_000,
            would_be_minor=10_001,
        ),
        "player could exceed banker by 10001, maximum 10000 (minor units)",
        {"bet": "player", "against": "banker", "would_be_minor": "10001", "allowed_minor": "10000"},
    ),
    (
        limits.Violation(
            limit=limits.LIMIT_COVERAGE, allowed_count=34, would_be_count=35, of_count=37
        ),
        "covers 35 of 37 = 94.6 % > 92 %, at most 34 numbers",
        {
            "allowed_count": "34",
            "would_be_count": "35",
            "of_count": "37",
            "would_be_percent": "94.6",
            "allowed_percent": "92",
        },
    ),
    (
        limits.Violation(
            limit=limits.LIMIT_ACCOUNT_MAXIMUM, allowed_minor=5_000, would_be_minor=5_001
        ),
        "all stakes in the round would be 5001, maximum 5000, room for ? (minor units)",
        {"would_be_minor": "5001", "allowed_minor": "5000"},
    ),
    (
        limits.Violation(limit=limits.LIMIT_EXPOSURE, allowed_minor=90_000, would_be_minor=90_100),
        "the round takes no such stake: the most that the house may have to pay is reached",
        {},
    ),
    (
        limits.Violation(limit=limits.LIMIT_BET_CLOSED, bet="tie"),
        "tie is closed for this round",
        {"bet": "tie"},
    ),
    (
        limits.Violation(
            limit=limits.LIMIT_STAKE_WINDOW,
            allowed_minor=5_000,
            would_be_minor=5_100,
            room_minor=400,
            window_s=86_400,
            scope=limits.SCOPE_PARTNER,
            scope_id="acme",
            until_us=7,
        ),
        "stakes within 24 h would be 5100, maximum 5000 (PARTNER acme), room for 400 (minor units)",
        {
            "would_be_minor": "5100",
            "allowed_minor": "5000",
            "room_minor": "400",
            "scope": "PARTNER",
            "scope_id": "acme",
            "until_us": "7",
        },
    ),
    (
        limits.Violation(
            limit=limits.LIMIT_LOSS_WINDOW,
            allowed_minor=5_000,
            would_be_minor=5_100,
            room_minor=0,
            window_s=7 * 86_400,
            scope=limits.SCOPE_JURISDICTION,
            scope_id="FR",
        ),
        "losses within 7 d could be 5100, maximum 5000 (JURISDICTION FR), room for 0 (minor units)",
        {"scope": "JURISDICTION", "scope_id": "FR"},
    ),
    (
        limits.Violation(
            limit=limits.LIMIT_DEPOSIT_WINDOW,
            allowed_minor=5_000,
            would_be_minor=5_100,
            room_minor=40,
            window_s=12 * 3_600,
            scope=limits.SCOPE_ACCOUNT,
        ),
        "deposits within 12 h would be 5100, maximum 5000 (ACCOUNT), room for 40 (minor units)",
        {"scope": "ACCOUNT"},
    ),
    (
        limits.Violation(
            limit=limits.LIMIT_SESSION_TIME,
            allowed_count=3_600,
            would_be_count=3_700,
            scope=limits.SCOPE_ACCOUNT,
        ),
        "the time at play in 1 session is 3700 s, maximum 3600 s (ACCOUNT)",
        {"would_be_count": "3700", "allowed_count": "3600"},
    ),
    (
        limits.Violation(limit=limits.LIMIT_EXCLUDED, scope=limits.SCOPE_ACCOUNT),
        "the account is excluded",
        {"scope": "ACCOUNT"},
    ),
    (
        limits.Violation(limit=limits.LIMIT_COOLING_OFF, scope=limits.SCOPE_ACCOUNT, until_us=9),
        "the account takes a break",
        {"until_us": "9"},
    ),
    (
        limits.Violation(limit=limits.LIMIT_UNDER_AGE, scope=limits.SCOPE_ACCOUNT),
        "the account's holder is not of age",
        {},
    ),
    (
        limits.Violation(
            limit=limits.LIMIT_AGE_NOT_STATED, scope=limits.SCOPE_JURISDICTION, scope_id="FR"
        ),
        "the partner has not stated that the account's holder is of age (JURISDICTION FR)",
        {"scope_id": "FR"},
    ),
    (
        limits.Violation(limit=limits.LIMIT_BOOK_CLOSED),
        "The round t1-7 takes no more bets.",
        {"round_id": "t1-7"},
    ),
    (
        limits.Violation(limit=limits.LIMIT_FAILED),
        DECISION_FAILED.english,
        {},
    ),
]


def test_every_limit_is_told_here() -> None:
    assert {violation.limit for violation, _, _ in TOLD} == set(LIMITS)


@pytest.mark.parametrize(
    ("violation", "text", "metadata"),
    TOLD,
    ids=[limits.Limit.Name(violation.limit) for violation, _, _ in TOLD],
)
def test_lim_6_a_broken_limit_is_told_with_its_arithmetic(
    violation: limits.Violation, text: str, metadata: dict[str, str]
) -> None:
    told = status_of(refused([violation], FACTS))
    assert told.message == text
    info = metadata_of(refused([violation], FACTS))
    assert metadata.items() <= info.items()
    counted = violation.would_be_count > 0
    assert counted == ("would_be_count" in info)
    assert not counted or "would_be_minor" not in info
    assert ("window" in info) == ("{window}" in LIMITS[violation.limit].english)


def metadata_of(refusal: Refused) -> dict[str, str]:
    return {name: value for name, value in refusal.facts.items() if value}


@pytest.mark.parametrize(
    ("limit", "bet", "asked", "room"),
    [
        (limits.LIMIT_ABOVE_MAXIMUM, "red", {("red", ""): 600, ("black", ""): 50}, 99),
        (limits.LIMIT_ABOVE_MAXIMUM, "red", {("red", ""): 501}, 0),
        (limits.LIMIT_ACCOUNT_MAXIMUM, "", {("red", ""): 600, ("black", ""): 50}, 149),
    ],
)
def test_lim_6_the_room_that_is_left_follows_from_what_was_asked(
    limit: limits.Limit.ValueType, bet: str, asked: dict[tuple[str, str], int], room: int
) -> None:
    violation = limits.Violation(limit=limit, bet=bet, allowed_minor=500, would_be_minor=1_001)
    told = refused([violation], FACTS, asked)
    assert told.facts["room_minor"] == str(room)
    assert f"room for {room} " in told.text("en")


def test_vis_1_no_figure_of_an_exposure_is_told() -> None:
    violation = limits.Violation(
        limit=limits.LIMIT_EXPOSURE, allowed_minor=90_000, would_be_minor=90_100
    )
    told = status_of(refused([violation], FACTS))
    assert b"90" not in told.SerializeToString()
    assert open_to_partners([violation]) == [limits.Violation(limit=limits.LIMIT_EXPOSURE)]


def test_lim_6_several_broken_limits_are_all_told() -> None:
    told = refused([TOLD[0][0], TOLD[7][0], TOLD[9][0]], FACTS)
    assert told.text("en") == "; ".join((TOLD[0][1], TOLD[7][1], TOLD[9][1]))
    assert [rule.reason.name for rule in told.broken] == ["BELOW_MINIMUM", "COVERAGE", "EXPOSURE"]
    assert [rule.subject for rule in told.broken] == ["straight 17", "", ""]
    assert told.text("fr").startswith("le total sur straight 17 serait de 50, minimum 100")
    assert "couvre 35 numéros sur 37 = 94.6 % > 92 %" in told.text("fr")


@pytest.mark.parametrize(
    ("most", "covers", "text"),
    [
        (18, 19, "covers 19 of 37 = 51.4 % > 49 %, at most 18 numbers"),
        (36, 37, "covers 37 of 37 = 100.0 % > 98 %, at most 36 numbers"),
        (1, 2, "covers 2 of 37 = 5.4 % > 3 %, at most 1 numbers"),
    ],
)
def test_lim_3_shares_are_told_so_that_the_greater_one_is_greater(
    most: int, covers: int, text: str
) -> None:
    violation = limits.Violation(
        limit=limits.LIMIT_COVERAGE, allowed_count=most, would_be_count=covers, of_count=37
    )
    assert status_of(refused([violation], FACTS)).message == text
