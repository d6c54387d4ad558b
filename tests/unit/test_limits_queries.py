"""What partners may ask of limits: what is in force, what is still open, and what limits would say
(VIS-5, LIM-6)."""

from __future__ import annotations

from typing import Any

import pytest

from sabot.limits.v1 import events_pb2 as limits
from sabot.limits.v1 import limits_service_pb2 as service
from sabot.rules.v1 import rule_set_pb2 as rule_sets
from sabot.table.v1 import bet_pb2, spec_pb2
from sabot.table.v1 import events_pb2 as table
from services.kernel.call import Call
from services.kernel.errors import Refused
from services.kernel.tokens import Caller
from services.limits.domain.core import CORE
from services.limits.domain.queries import Unbookable, check, exposure_at, limits_at
from services.limits.domain.state import LimitsState
from services.limits.servicer import LimitsServicer
from tests.unit.deciding import Deciding
from tests.unit.fake_edge import FakeEdge
from tests.unit.limits_facts import (
    BACCARAT,
    BETTING_CLOSED,
    BLACKJACK,
    ROULETTE,
    SICBO,
    R,
    T,
    above,
    bet,
    coverage,
    no_main,
    on,
    placed,
    plain,
    round_open,
    spec,
)

ACME = Call(Caller(partner="acme"))


def asked(*wagers: tuple[str, str, int]) -> list[bet_pb2.Bet]:
    """(kind, position, stake)."""
    return [bet(("", *wager)) for wager in wagers]


# ---- what is in force --------------------------------------------------------------------------


def side_bets(game: Deciding[LimitsState]) -> dict[str, tuple[bool, int]]:
    found = limits_at(game.state, T)
    assert found is not None
    return {one.bet: (one.open, one.rounds_left) for one in found.round.bets}


@pytest.mark.parametrize(
    ("in_shoe", "bonus", "pair"),
    [
        (1, (True, 40), (True, 60)),
        (40, (True, 1), (True, 21)),
        (41, (False, 0), (True, 20)),
        (60, (False, 0), (True, 1)),
        (61, (False, 0), (False, 0)),
    ],
)
def test_vis_5_side_bets_are_shown_with_the_rounds_left(
    in_shoe: int, bonus: tuple[bool, int], pair: tuple[bool, int]
) -> None:
    told = side_bets(round_open(spec(BACCARAT), in_shoe=in_shoe))
    assert told["player_bonus"] == bonus
    assert told["player_pair"] == pair
    assert list(told) == sorted(told)
    assert "player" not in told


def test_vis_5_the_running_round_is_shown() -> None:
    game = round_open(spec(BACCARAT), in_shoe=7)
    found = limits_at(game.state, T)
    assert found is not None
    assert (found.round.round_id, found.round.round_in_shoe, found.round.open) == (R, 7, True)
    game.given(BETTING_CLOSED)
    found = limits_at(game.state, T)
    assert found is not None
    assert not found.round.open
    game.given(table.RoundClosed(table_id=T, round_id=R))
    found = limits_at(game.state, T)
    assert found is not None
    assert not found.HasField("round")
    assert limits_at(game.state, "t9") is None


@pytest.mark.parametrize(
    ("of", "given", "told"),
    [
        (BACCARAT, {}, {}),
        (BACCARAT, {"max_difference_minor": 5}, {"max_difference_minor": 5}),
        (SICBO, {"max_difference_minor": 5, "max_numbers": 5}, {}),
        (ROULETTE, {}, {"max_numbers": 34}),
        (ROULETTE, {"max_numbers": 30}, {"max_numbers": 30}),
        (
            BLACKJACK,
            {"max_account_minor": 7, "max_exposure_minor": 8},
            {"max_account_minor": 7, "max_exposure_minor": 8},
        ),
    ],
)
def test_vis_5_restrictions_are_shown_with_their_defaults(
    of: rule_sets.RuleSet, given: dict[str, Any], told: dict[str, int]
) -> None:
    found = limits_at(round_open(spec(of, **given)).state, T)
    assert found is not None
    assert found.restrictions == spec_pb2.Restrictions(**told)
    further = ("double", "insurance", "split") if of is BLACKJACK else ()  # rule BJ-6
    assert [one.bet for one in found.limits] == [
        offer.bet for offer in of.bets if offer.bet not in further
    ]


# ---- what limits would say ---------------------------------------------------------------------


def test_lim_6_a_dry_run_says_what_placing_would_say() -> None:
    game = round_open(spec(ROULETTE, by_bet={"straight": (100, 500)}))
    on(game, "r1", ("b1", "straight", "17", 400), ("b2", "red", "", 100))
    wagers = [("straight", "17", 200), ("black", "", 100)]
    told = check(game.state, "acme", "ann", T, asked(*wagers))
    assert told == [above("straight", "17", 600, 500), coverage(36)]
    game.when(placed("r2", *((f"x{number}", *one) for number, one in enumerate(wagers))))
    [answer] = game.answers
    assert isinstance(answer, limits.BetsRefused)
    assert list(answer.violations) == told
    assert check(game.state, "acme", "ben", T, asked(*wagers)) == []
    assert check(game.state, "other", "ann", T, asked(*wagers)) == []


def test_lim_6_positions_are_read_as_the_table_reads_them() -> None:
    game = round_open(spec(ROULETTE, by_bet={"split": (100, 500)}))
    on(game, "r1", ("b1", "split", "17-20", 400))
    assert check(game.state, "acme", "ann", T, asked(("split", "20-17", 200))) == [
        above("split", "17-20", 600, 500)
    ]


def test_rou_4_announced_bets_are_judged_by_their_parts() -> None:
    game = round_open(spec(ROULETTE, by_bet={"split": (100, 150), "straight": (500, 900)}))
    voisins = check(game.state, "acme", "ann", T, asked(("voisins", "", 1_800)))
    assert isinstance(voisins, list)
    assert [(one.bet, one.position) for one in voisins] == [
        ("split", place) for place in ("4-7", "12-15", "18-21", "19-22", "32-35")
    ]
    assert check(game.state, "acme", "ann", T, asked(("neighbours", "26-2", 2_500))) == []


@pytest.mark.parametrize(
    ("of", "wager", "why", "reason"),
    [
        (ROULETTE, ("five_number", "", 100), Unbookable.NOT_OFFERED, "BET_NOT_OFFERED"),
        (ROULETTE, ("split", "1-5", 100), Unbookable.NOT_ON_LAYOUT, "NOT_ON_LAYOUT"),
        (ROULETTE, ("neighbours", "26-10", 100), Unbookable.NOT_ON_LAYOUT, "NOT_ON_LAYOUT"),
        (ROULETTE, ("voisins", "", 100), Unbookable.NOT_WHOLE_CHIPS, "NOT_WHOLE_CHIPS"),
        (BACCARAT, ("player", "1", 100), Unbookable.NOT_ON_LAYOUT, "NOT_ON_LAYOUT"),
        (BLACKJACK, ("main", "8", 100), Unbookable.NOT_ON_LAYOUT, "NOT_ON_LAYOUT"),
        (BLACKJACK, ("double", "1", 100), Unbookable.NOT_ON_LAYOUT, "BET_BY_ACT"),
        (SICBO, ("dragon", "", 100), Unbookable.NOT_OFFERED, "BET_NOT_OFFERED"),
    ],
)
async def test_what_the_table_would_not_book_is_refused_as_the_table_does(
    of: rule_sets.RuleSet, wager: tuple[str, str, int], why: Unbookable, reason: str
) -> None:
    game = round_open(spec(of))
    assert check(game.state, "acme", "ann", T, asked(wager)) is why
    with pytest.raises(Refused) as caught:
        await servicer(game).check_bets(request(wager), ACME)
    assert caught.value.reason.name == reason


def test_rou_4_an_announced_bet_whose_parts_are_not_offered() -> None:
    bare = rule_sets.RuleSet(
        game=rule_sets.GAME_ROULETTE, bets=[one for one in ROULETTE.bets if one.bet != "trio"]
    )
    game = round_open(spec(bare))
    assert check(game.state, "acme", "ann", T, asked(("voisins", "", 900))) is (
        Unbookable.NOT_OFFERED
    )
    assert check(game.state, "acme", "ann", T, asked(("tiers", "", 600))) == []


def test_without_an_open_round_betting_is_closed() -> None:
    game = round_open(spec(BLACKJACK))
    wagers = asked(("main", "1", 100))
    assert check(game.state, "acme", "ann", T, wagers) == []
    game.given(BETTING_CLOSED)
    closed = [plain(limits.LIMIT_BOOK_CLOSED)]
    assert check(game.state, "acme", "ann", T, wagers) == closed
    game.given(table.RoundClosed(table_id=T, round_id=R))
    assert check(game.state, "acme", "ann", T, wagers) == closed
    game.given(table.TableClosed(table_id=T))
    assert check(game.state, "acme", "ann", T, wagers) is None


# ---- over gRPC ---------------------------------------------------------------------------------


def servicer(game: Deciding[LimitsState]) -> LimitsServicer:
    return LimitsServicer(FakeEdge(states={"limits": game.state}))


def request(*wagers: tuple[str, str, int]) -> service.CheckBetsRequest:
    made = service.CheckBetsRequest(account_id="ann", table_id=T)
    for kind, place, stake in wagers:
        one = made.bets.add(bet=kind, position=place)
        one.stake.currency_code = "EUR"
        one.stake.minor_units = stake
    return made


async def test_check_bets_speaks_positions() -> None:
    game = round_open(spec(BLACKJACK))
    on(game, "r1", ("b1", "main", "3", 100))
    asked_for = request(("perfect_pairs", "3", 100), ("perfect_pairs", "4", 100))
    found = await servicer(game).check_bets(asked_for, ACME)
    assert list(found.violations) == [no_main("perfect_pairs", "4", 100)]
    assert found.HasField("position")


async def test_get_limits_tells_restrictions_and_the_running_round() -> None:
    game = round_open(spec(BACCARAT, max_difference_minor=500), in_shoe=50)
    found = await servicer(game).get_limits(service.GetLimitsRequest(table_id=T), ACME)
    assert found.restrictions.max_difference_minor == 500
    assert found.round.round_id == R
    assert found.HasField("position")


# ---- what the house may have to pay ------------------------------------------------------------


async def test_lim_4_operators_are_told_the_exposure_without_a_limit_of_it_too() -> None:
    game = round_open(spec(ROULETTE))
    on(game, "r1", ("b1", "straight", "17", 100), ("b2", "red", "", 700))
    told = exposure_at(game.state, T)
    assert told is not None
    # 17 is black: 35 to 1 on it; on red 700 are won, and less than that.
    assert (told.round_id, told.accounts, told.stakes_minor) == (R, 1, 800)
    assert (told.exposure_minor, told.max_exposure_minor) == (3500, 0)
    assert [(one.bet, one.place, one.bets, one.stakes_minor) for one in told.places] == [
        ("red", "", 1, 700),
        ("straight", "17", 1, 100),
    ]
    with pytest.raises(Refused):
        await servicer(game).get_exposure(service.GetExposureRequest(table_id="nowhere"), ACME)


def test_lim_4_between_rounds_nothing_is_exposed() -> None:
    told = exposure_at(
        Deciding(CORE).given(table.TableOpened(spec=spec(ROULETTE), revision=1)).state, T
    )
    assert told == service.GetExposureResponse()
