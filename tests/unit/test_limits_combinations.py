"""What an account may not combine in a round: opposite sides, the difference between them, and the
numbers of the wheel that its bets cover (LIM-1 to LIM-3, LIM-8)."""

from __future__ import annotations

from itertools import permutations, product

import pytest

from sabot.limits.v1 import events_pb2 as limits
from sabot.rules.v1 import rule_set_pb2 as rule_sets
from services.games import roulette
from services.limits.domain.state import LimitsState
from tests.unit.deciding import Deciding
from tests.unit.limits_facts import (
    BACCARAT,
    DRAGON_TIGER,
    EZ,
    FOOTBALL_STUDIO,
    ROULETTE,
    SICBO,
    Wager,
    approved,
    coverage,
    declined,
    difference,
    on,
    opposite,
    placed,
    refused,
    reserved,
    returned,
    round_open,
    spec,
    withdrawal,
    withdrawal_refused,
    withdrawn,
)

# ---- LIM-1: opposite sides -----------------------------------------------------------------------

SIDES = [
    (BACCARAT, "player", "banker"),
    (BACCARAT, "player", "banker_no_commission"),
    (EZ, "player", "banker"),
    (SICBO, "big", "small"),
    (SICBO, "odd", "even"),
    (DRAGON_TIGER, "dragon", "tiger"),
    (FOOTBALL_STUDIO, "home", "away"),
]
BOTH_WAYS = [(game, *pair) for game, *both in SIDES for pair in permutations(both)]


@pytest.mark.parametrize(("of", "one", "other"), BOTH_WAYS)
def test_lim_1_opposite_sides_are_forbidden_over_all_requests(
    of: rule_sets.RuleSet, one: str, other: str
) -> None:
    game = round_open(spec(of)).given(placed("r1", ("b1", one, "", 100)))
    game.when(placed("r2", ("b2", other, "", 200))).then(
        refused("r2", ["b2"], opposite(other, 200, one))
    )
    game.given(reserved("r1", ("b1", one, "", 100)))
    game.when(placed("r3", ("b3", other, "", 200))).then(
        refused("r3", ["b3"], opposite(other, 200, one))
    )
    game.when(placed("r4", ("b4", other, "", 200), account="ben")).then(
        approved("r4", ("b4", other, "", 200), account="ben")
    )


@pytest.mark.parametrize(("of", "one", "other"), BOTH_WAYS)
def test_lim_1_opposite_sides_are_forbidden_in_one_request(
    of: rule_sets.RuleSet, one: str, other: str
) -> None:
    wagers = (("b1", one, "", 100), ("b2", other, "", 200))
    round_open(spec(of)).when(placed("r1", *wagers)).then(
        refused("r1", ["b1", "b2"], opposite(one, 100, other), opposite(other, 200, one))
    )


@pytest.mark.parametrize(
    ("of", "wagers"),
    [
        (SICBO, ["big", "odd", "any_triple"]),
        (SICBO, ["small", "even"]),
        (DRAGON_TIGER, ["dragon", "tie", "suited_tie"]),
        (FOOTBALL_STUDIO, ["away", "draw"]),
        (BACCARAT, ["banker", "banker_no_commission", "tie", "player_pair"]),
        (ROULETTE, ["odd", "black", "low"]),
    ],
)
def test_lim_1_everything_else_goes_together(of: rule_sets.RuleSet, wagers: list[str]) -> None:
    asked = tuple((f"b{number}", kind, "", 100) for number, kind in enumerate(wagers))
    round_open(spec(of)).when(placed("r1", *asked)).then(approved("r1", *asked))


def test_lim_1_odd_and_even_of_roulette_are_a_matter_of_coverage() -> None:
    wagers = (("b1", "odd", "", 100), ("b2", "even", "", 100))
    round_open(spec(ROULETTE)).when(placed("r1", *wagers)).then(
        refused("r1", ["b1", "b2"], coverage(36))
    )
    round_open(spec(ROULETTE, max_numbers=36)).when(placed("r1", *wagers)).then(
        approved("r1", *wagers)
    )


def test_lim_1_a_side_is_free_again_once_the_other_one_went_back() -> None:
    first, other = ("b1", "big", "", 100), ("b2", "small", "", 100)
    game = round_open(spec(SICBO))
    on(game, "r1", first)
    game.given(withdrawn("w1", first))
    game.when(placed("r2", other)).then(refused("r2", ["b2"], opposite("small", 100, "big")))
    game.given(returned("w1", first)).when(placed("r3", other)).then(approved("r3", other))


# ---- LIM-2: the greatest difference --------------------------------------------------------------

MOST = 10_000


def with_difference(most: int = MOST) -> Deciding[LimitsState]:
    return round_open(spec(BACCARAT, max_difference_minor=most))


@pytest.mark.parametrize(
    ("player", "banker", "over"),
    [
        (15_000, 5_000, None),
        (15_001, 5_000, ("player", "banker", 10_001)),
        (5_000, 15_000, None),
        (5_000, 15_001, ("banker", "player", 10_001)),
        (10_000, 0, None),
        (10_001, 0, ("player", "banker", 10_001)),
        (0, 10_000, None),
        (0, 10_001, ("banker", "player", 10_001)),
        (700_000, 700_000, None),
    ],
)
@pytest.mark.parametrize("way", ["banker", "banker_no_commission"])
def test_lim_2_both_sides_up_to_a_difference_and_one_side_against_zero(
    player: int, banker: int, over: tuple[str, str, int] | None, way: str
) -> None:
    asked: list[Wager] = [("b1", "player", "", player), ("b2", way, "", banker)]
    wagers = [wager for wager in asked if wager[3]]
    ids = [wager[0] for wager in wagers]
    expected = (
        approved("r1", *wagers) if over is None else refused("r1", ids, difference(*over, MOST))
    )
    with_difference().when(placed("r1", *wagers)).then(expected)


def test_lim_2_both_ways_of_banker_are_banker_together() -> None:
    wagers = (("b1", "banker", "", 6_000), ("b2", "banker_no_commission", "", 4_001))
    with_difference().when(placed("r1", *wagers)).then(
        refused("r1", ["b1", "b2"], difference("banker", "player", 10_001, MOST))
    )


def test_lim_2_the_other_side_covers_once_it_is_reserved() -> None:
    first, second = ("b1", "player", "", 10_000), ("b2", "banker", "", 20_000)
    game = with_difference().given(placed("r1", first))
    game.when(placed("r2", second)).then(
        refused("r2", ["b2"], difference("banker", "player", 20_000, MOST))
    )
    game.given(reserved("r1", first)).when(placed("r3", second)).then(approved("r3", second))


def test_lim_2_a_stake_that_may_yet_be_declined_counts_already() -> None:
    game = with_difference().given(placed("r1", ("b1", "player", "", 10_000)))
    game.when(placed("r2", ("b2", "player", "", 100))).then(
        refused("r2", ["b2"], difference("player", "banker", 10_100, MOST))
    )
    game.given(declined("r1", ("b1", "player", "", 10_000)))
    game.when(placed("r3", ("b3", "player", "", 100))).then(
        approved("r3", ("b3", "player", "", 100))
    )


def test_lim_2_other_bets_have_nothing_to_do_with_it() -> None:
    game = with_difference()
    first, second = ("b1", "player", "", 20_000), ("b2", "banker", "", 20_000)
    on(game, "r1", first, second)
    game.given(withdrawn("w1", ("b1", "player", "", 20_000), second))
    tie = ("b3", "tie", "", 900_000)
    game.when(placed("r2", tie)).then(approved("r2", tie))


def test_lim_2_a_greatest_difference_is_baccarats() -> None:
    wagers = (("b1", "dragon", "", 100), ("b2", "tiger", "", 100))
    round_open(spec(DRAGON_TIGER, max_difference_minor=1)).when(placed("r1", *wagers)).then(
        refused(
            "r1", ["b1", "b2"], opposite("dragon", 100, "tiger"), opposite("tiger", 100, "dragon")
        )
    )


def test_lim_8_a_withdrawal_may_not_widen_the_difference() -> None:
    player, banker = ("b1", "player", "", 12_000), ("b2", "banker", "", 5_000)
    more = ("b3", "banker", "", 4_000)
    game = with_difference()
    on(game, "r1", player, banker)
    on(game, "r2", more)
    game.when(withdrawn("w1", banker)).then(withdrawal("w1", banker))
    game = with_difference()
    on(game, "r1", player, banker)
    game.when(withdrawn("w1", banker)).then(
        withdrawal_refused("w1", ["b2"], difference("player", "banker", 12_000, MOST))
    )
    game.when(withdrawn("w2", player, banker)).then(withdrawal("w2", player, banker))


def test_lim_8_what_may_yet_be_declined_does_not_hold_the_difference() -> None:
    player, banker, more = (
        ("b1", "player", "", 12_000),
        ("b2", "banker", "", 5_000),
        ("b3", "banker", "", 5_000),
    )
    game = with_difference()
    on(game, "r1", player, banker)
    game.given(placed("r2", more))
    game.when(withdrawn("w1", banker)).then(
        withdrawal_refused("w1", ["b2"], difference("player", "banker", 12_000, MOST))
    )
    game.given(reserved("r2", more)).when(withdrawn("w2", banker)).then(withdrawal("w2", banker))


def test_lim_2_no_schedule_of_declines_leaves_too_great_a_difference() -> None:
    """All short histories of requests, withdrawals and outcomes: what is reserved in the end
    differs by no more than the table allows."""
    wagers: list[list[Wager]] = [
        [("b0", "player", "", 8_000)],
        [("b1", "banker", "", 15_000)],
        [("b2", "player", "", 12_000), ("b3", "banker_no_commission", "", 5_000)],
        [("b4", "banker", "", 3_000)],
    ]
    for order in permutations(range(4), 3):
        for take, at, fates in product(range(4), (1, 2, 3), product((True, False), repeat=3)):
            steps = [("place", number) for number in order]
            steps.insert(at, ("take", take))
            _play(steps, wagers, dict(zip(order, fates, strict=True)))


def _play(
    steps: list[tuple[str, int]], wagers: list[list[Wager]], outcomes: dict[int, bool]
) -> None:
    """The wallet decides every second request at once, the others at the end."""
    game = with_difference()
    game.careful = False
    waiting: list[limits.BetsApproved | limits.WithdrawalApproved] = []
    held: dict[str, tuple[str, int]] = {}

    def decide(answer: limits.BetsApproved | limits.WithdrawalApproved) -> None:
        for one in answer.bets:
            if isinstance(answer, limits.WithdrawalApproved):
                held.pop(one.bet_id, None)
            elif outcomes[int(answer.request_id[1:])]:
                held[one.bet_id] = (one.bet, one.stake_minor)

    for count, (step, number) in enumerate(steps):
        if step == "place":
            game.when(placed(f"r{number}", *wagers[number]))
        else:
            game.when(withdrawn(f"w{number}", *wagers[number]))
        [answer] = game.answers
        if not isinstance(answer, limits.BetsApproved | limits.WithdrawalApproved):
            continue
        waiting.append(answer)
        if count % 2:
            for one in waiting:
                decide(one)
                if isinstance(one, limits.WithdrawalApproved):
                    continue
                known = outcomes[int(one.request_id[1:])]
                asked = wagers[int(one.request_id[1:])]
                game.given((reserved if known else declined)(one.request_id, *asked))
            waiting = []
    for one in waiting:
        decide(one)
    player = sum(stake for kind, stake in held.values() if kind == "player")
    banker = sum(stake for kind, stake in held.values() if kind != "player")
    assert abs(player - banker) <= MOST, (steps, outcomes, held)


# ---- LIM-3: coverage -----------------------------------------------------------------------------


def straights(*numbers: int) -> list[Wager]:
    return [(f"s{number}", "straight", str(number), 100) for number in numbers]


def test_lim_3_34_numbers_are_allowed_and_35_refused() -> None:
    round_open(spec(ROULETTE)).when(placed("r1", *straights(*range(34)))).then(
        approved("r1", *straights(*range(34)))
    )
    round_open(spec(ROULETTE)).when(placed("r1", *straights(*range(35)))).then(
        refused("r1", [f"s{number}" for number in range(35)], coverage(35))
    )


def test_lim_3_a_union_over_all_requests_whatever_lies_on_it() -> None:
    game = round_open(spec(ROULETTE))
    on(game, "r1", ("b1", "dozen", "1", 100), ("b2", "dozen", "2", 900_000))
    on(game, "r2", ("b3", "column", "1", 100), ("b4", "corner", "1-2-4-5", 100))
    on(game, "r3", *straights(0, 26, 27, 29, 30))
    game.when(placed("r4", ("b5", "six_line", "25-26-27-28-29-30", 100))).then_only(
        limits.BetsApproved
    )
    game.when(placed("r5", ("b6", "street", "34-35-36", 100))).then(
        refused("r5", ["b6"], coverage(35))
    )
    game.when(placed("r6", ("b7", "split", "32-35", 100))).then(refused("r6", ["b7"], coverage(35)))


def test_lim_3_a_pending_stake_covers_numbers_and_a_declined_one_none() -> None:
    red, black = ("b1", "red", "", 100), ("b2", "black", "", 100)
    game = round_open(spec(ROULETTE)).given(placed("r1", red))
    game.when(placed("r2", black)).then(refused("r2", ["b2"], coverage(36)))
    game.given(declined("r1", red)).when(placed("r3", black)).then(approved("r3", black))


def test_lim_3_numbers_are_free_again_only_when_nothing_lies_on_them() -> None:
    red, again, black = ("b1", "red", "", 100), ("b2", "red", "", 100), ("b3", "black", "", 100)
    low = ("b4", "low", "", 100)
    game = round_open(spec(ROULETTE))
    on(game, "r1", red, again, low)
    game.given(withdrawn("w1", red), returned("w1", red))
    game.when(placed("r2", black)).then(refused("r2", ["b3"], coverage(36)))
    game.given(withdrawn("w2", again), returned("w2", again))
    game.when(placed("r3", black)).then(approved("r3", black))


def test_lim_3_is_per_account_and_configurable() -> None:
    game = round_open(spec(ROULETTE, max_numbers=18))
    red, black = ("b1", "red", "", 100), ("b2", "black", "", 100)
    on(game, "r1", red)
    game.when(placed("r2", *straights(2))).then(refused("r2", ["s2"], coverage(19, 18)))
    game.when(placed("r3", black, account="ben")).then(approved("r3", black, account="ben"))


@pytest.mark.parametrize("kind", roulette.PLACES)
def test_lim_3_every_position_covers_its_numbers(kind: str) -> None:
    for position, numbers in roulette.PLACES[kind].items():
        game = round_open(spec(ROULETTE, max_numbers=1))
        game.careful = False
        game.when(placed("r1", ("b1", kind, position, 100)))
        if len(numbers) == 1:
            game.then(approved("r1", ("b1", kind, position, 100)))
        else:
            game.then(refused("r1", ["b1"], coverage(len(numbers), 1)))
