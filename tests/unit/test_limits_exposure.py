"""What the house may have to pay in a round (LIM-4): the outcomes that it is counted by, and what
is approved by it."""

from __future__ import annotations

from itertools import combinations_with_replacement, product
from operator import le
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from sabot.limits.v1 import events_pb2 as limits
from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2 as rule_sets
from services.games import blackjack_bets, registry, roulette, sicbo
from services.games.baccarat import Side, next_draw, total
from services.games.baccarat_bets import dealt
from services.games.cards import CARDS
from services.games.catalogue import baccarat
from services.games.money import MAX_STAKE_MINOR, Rounding, Verdict, settled
from services.games.rule_sets import commission_of, line_of, rounding_of
from services.limits.domain.exposure import outcomes_of
from tests.unit.limits_facts import (
    BACCARAT,
    BETTING_CLOSED,
    BLACKJACK,
    DRAGON_TIGER,
    EZ,
    FOOTBALL_STUDIO,
    ROULETTE,
    SICBO,
    R,
    Wager,
    action,
    approved,
    declined,
    exposure,
    on,
    placed,
    refused,
    reserved,
    returned,
    round_open,
    spec,
    withdrawn,
)

PLACES: dict[int, dict[str, list[str]]] = {
    rule_sets.GAME_ROULETTE: {bet: list(places) for bet, places in roulette.PLACES.items()},
    rule_sets.GAME_SICBO: {bet: list(places) for bet, places in sicbo.PLACES.items()},
}


def places_of(of: rule_sets.RuleSet) -> list[tuple[str, str]]:
    by_bet = PLACES.get(of.game, {})
    return [(offer.bet, place) for offer in of.bets for place in by_bet.get(offer.bet, [""])]


def won(of: rule_sets.RuleSet, result: rules.Result, bet: str, place: str, stake: int) -> int:
    """What settlement pays above the stake, where the bet wins."""
    [offer] = [one for one in of.bets if one.bet == bet]
    fate = registry.judging(of, result)(bet, place)
    if fate.verdict is not Verdict.WON:
        return 0
    pays = line_of(offer, fate.line)
    assert pays is not None
    money = settled(stake, fate.verdict, pays, rounding_of(of), commission_of(offer))
    return money.profit_minor


def winnings(of: rule_sets.RuleSet, *wagers: tuple[str, str, int]) -> list[int]:
    """By outcome, what these bets win together."""
    known = outcomes_of(of)
    totals = [0] * known.count
    for bet, place, stake in wagers:
        for outcome, minor in known.winnings(bet, place, stake):
            totals[outcome] += minor
    return totals


# ---- outcomes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("of", "count"),
    [(ROULETTE, 37), (SICBO, 216), (DRAGON_TIGER, 4), (FOOTBALL_STUDIO, 4)],
)
def test_lim_4_every_bet_wins_in_the_outcomes_that_it_wins_in(
    of: rule_sets.RuleSet, count: int
) -> None:
    results = registry.outcomes(of)
    assert len(results) == outcomes_of(of).count == count
    for bet, place in places_of(of):
        assert winnings(of, (bet, place, 1_001)) == [
            won(of, result, bet, place, 1_001) for result in results
        ], (bet, place)


CARD = some.sampled_from(CARDS)


def baccarat_round(cards: list[str]) -> rules.Result:
    left = list(cards)
    hands: dict[Side, list[str]] = {Side.PLAYER: [], Side.BANKER: []}
    while draw := next_draw(hands[Side.PLAYER], hands[Side.BANKER]):
        for side in draw:
            hands[side].append(left.pop(0))
    shown = dealt(hands[Side.PLAYER], hands[Side.BANKER])
    winners = {
        "PLAYER": rules.BACCARAT_WINNER_PLAYER,
        "BANKER": rules.BACCARAT_WINNER_BANKER,
        "TIE": rules.BACCARAT_WINNER_TIE,
    }
    return rules.Result(
        baccarat=rules.BaccaratResult(
            player_cards=shown.player,
            banker_cards=shown.banker,
            player_total=shown.player_total,
            banker_total=shown.banker_total,
            winner=winners[shown.winner.name],
        )
    )


def stakes_of(of: rule_sets.RuleSet) -> some.SearchStrategy[list[tuple[str, str, int]]]:
    """Bets of a game, on any of its places."""
    return some.lists(
        some.tuples(some.sampled_from(places_of(of)), some.integers(1, 10_000)).map(
            lambda both: (*both[0], both[1])
        ),
        min_size=1,
        max_size=12,
    )


@pytest.mark.parametrize("of", [BACCARAT, EZ], ids=["baccarat", "ez"])
@given(data=some.data(), cards=some.lists(CARD, min_size=6, max_size=6))
@settings(max_examples=300, deadline=None)
def test_lim_4_no_round_of_baccarat_pays_more_than_the_exposure(
    of: rule_sets.RuleSet, data: Any, cards: list[str]
) -> None:
    wagers = data.draw(stakes_of(of))
    result = baccarat_round(cards)
    paid = sum(won(of, result, *wager) for wager in wagers)
    assert paid <= max(winnings(of, *wagers))


RANK = "A23456789K"
FIRST_TWO = [
    *((f"{one}S", f"{other}H") for one, other in combinations_with_replacement(RANK, 2)),
    *((f"{one}S", f"{one}S") for one in RANK),
]
"""Two cards of all values and pairs; of one suit or not where that matters."""


def all_rounds() -> dict[tuple[object, ...], rules.Result]:
    """A round for each combination of what bets of baccarat ask: by exhaustion."""
    found: dict[tuple[object, ...], rules.Result] = {}
    for player, banker in product(FIRST_TWO, repeat=2):
        dealt_first = [player[0], banker[0], player[1], banker[1]]
        thirds = range(10) if max(total(player), total(banker)) < 8 else range(1)
        for third, last in product(thirds, repeat=2):
            cards = [*dealt_first, f"{RANK[third]}D", f"{RANK[last]}D"]
            result = baccarat_round(cards)
            told = result.baccarat
            key = (
                told.player_total,
                told.banker_total,
                len(told.player_cards),
                len(told.banker_cards),
                player[0][0] == player[1][0],
                banker[0][0] == banker[1][0],
                player[0] == player[1] or banker[0] == banker[1],
            )
            found.setdefault(key, result)
    return found


@pytest.mark.timeout(300)
def test_lim_4_the_classes_of_baccarat_are_its_rounds_and_no_round_outdoes_them() -> None:
    """By all first cards and third ones: the exposure is reached by a round, and never passed."""
    rounds = all_rounds()
    for of in (BACCARAT, EZ):
        wagers = [(offer.bet, "", 40) for offer in of.bets]
        attained = {
            tuple(won(of, result, *wager) for wager in wagers) for result in rounds.values()
        }
        by_bet = [winnings(of, wager) for wager in wagers]
        classes = list(zip(*by_bet, strict=True))
        assert len(classes) == (4 if of is EZ else 13)  # None of them outdoes another.
        assert set(classes) <= attained
        for one in sorted(attained):
            assert any(all(map(le, one, other)) for other in classes), one


def test_lim_4_a_single_deck_has_no_suited_pair() -> None:
    of = baccarat(decks=1)
    pair = ("perfect_pair", "", 100)
    assert set(winnings(of, pair)) == {0}
    assert max(winnings(BACCARAT, pair)) == 2_500


def test_lim_4_winnings_are_rounded_bet_by_bet_as_they_are_paid() -> None:
    """19 of 20 of 39 is 37.05: two bets may win 74, not 74.1, nor 37 and a rest."""
    banker = ("banker", "", 39)
    assert max(winnings(BACCARAT, banker)) == 37
    assert max(winnings(BACCARAT, banker, banker)) == 74
    up = baccarat(rounding=Rounding.HALF_UP)
    natural = ("player_natural", "", 1)
    assert max(winnings(BACCARAT, natural)) == 3
    assert max(winnings(up, natural)) == 4


# ---- blackjack ---------------------------------------------------------------------------------


def blackjack_round(dealer: list[str], *hands: list[str], doubled: bool = False) -> rules.Result:
    return rules.Result(
        blackjack=rules.BlackjackResult(
            seats=[
                rules.BlackjackSeat(
                    seat=3,
                    hands=[
                        rules.BlackjackHand(cards=cards, split=len(hands) > 1, doubled=doubled)
                        for cards in hands
                    ],
                )
            ],
            dealer_cards=dealer,
        )
    )


BUST = ["8S", "4D", "TD"]
SEAT_ROUNDS: list[tuple[rules.Result, list[str]]] = [
    (blackjack_round(["8S", "TD"], ["AS", "KD"]), ["main"]),
    (blackjack_round(BUST, ["8S", "8S", "2D"], doubled=True), ["main", "double"]),
    (blackjack_round(BUST, ["8S", "2D"], ["8S", "3D"]), ["main", "split"]),
    (blackjack_round(["AS", "KD"], ["8S", "8S"]), ["main", "insurance"]),
    (blackjack_round(["AS", "KD"], ["AS", "KS"]), ["main", "insurance"]),
]
"""The ways in which a seat wins most, and the bets on it."""


def seat_wins(result: rules.Result, bets: list[str], stake: int) -> int:
    stakes = {"insurance": stake // 2}
    return sum(won(BLACKJACK, result, bet, "3", stakes.get(bet, stake)) for bet in bets)


@pytest.mark.parametrize("stake", [1, 2, 99, 100, 1_001])
def test_lim_4_a_main_bet_reserves_the_worst_that_its_seat_may_bring(stake: int) -> None:
    worst = [seat_wins(result, bets, stake) for result, bets in SEAT_ROUNDS]
    assert winnings(BLACKJACK, ("main", "3", stake)) == [max(worst)] == [2 * stake]
    assert worst[0] == stake * 3 // 2
    assert worst[3] == worst[4] == stake // 2 * 2


def test_lim_4_further_stakes_are_in_what_their_main_bet_reserved() -> None:
    for bet in blackjack_bets.FURTHER_STAKES:
        assert winnings(BLACKJACK, (bet, "3", 1_000)) == [0]


def test_lim_4_one_seat_of_blackjack_can_come_to_its_sum() -> None:
    split, _ = SEAT_ROUNDS[2]
    seat = [("main", "3", 100), ("perfect_pairs", "3", 100), ("21_plus_3", "3", 100)]
    most = seat_wins(split, ["main", "split", "perfect_pairs", "21_plus_3"], 100)
    assert winnings(BLACKJACK, *seat) == [most] == [200 + 2_500 + 10_000]


def test_lim_4_without_doubles_and_splits_a_blackjack_is_the_worst() -> None:
    bare = rule_sets.RuleSet(
        game=rule_sets.GAME_BLACKJACK,
        bets=[one for one in BLACKJACK.bets if one.bet in ("main", "insurance")],
        rounding=rule_sets.ROUNDING_DOWN,
    )
    assert winnings(bare, ("main", "3", 101)) == [151]


def test_lim_4_a_double_and_its_insurance_change_nothing_when_they_come() -> None:
    main = ("b1", "main", "3", 1_000)
    game = round_open(spec(BLACKJACK, max_exposure_minor=2_000))
    on(game, "r1", main)
    game.given(BETTING_CLOSED)
    for number, kind in enumerate(("insurance", "double")):
        extra = (f"x{number}", kind, "3", 500)
        game.when(action(f"a{number}", extra)).then_only(limits.BetsApproved)
        game.given(reserved(f"a{number}", extra))
        assert game.state.books[R].winnings_minor == [2_000]
    game.given(declined("a1", ("x1", "double", "3", 500)))
    assert game.state.books[R].winnings_minor == [2_000]


# ---- approvals ---------------------------------------------------------------------------------


def test_lim_4_the_exposure_is_the_greatest_sum_of_one_outcome_over_all_accounts() -> None:
    game = round_open(spec(ROULETTE, max_exposure_minor=4_000))
    here, there = ("b1", "straight", "17", 100), ("b2", "straight", "18", 110)
    on(game, "r1", here)
    game.when(placed("r2", there, account="ben")).then(approved("r2", there, account="ben"))
    # 17 brings 3,500 and black 500; 18 brings 3,850 and red none.
    black = ("b3", "black", "", 500)
    game.when(placed("r3", black, account="cid")).then(approved("r3", black, account="cid"))
    more = ("b4", "split", "17-18", 100)
    game.when(placed("r4", more)).then(refused("r4", ["b4"], exposure(1_700, 0)))
    low = ("b5", "low", "", 101)
    game.when(placed("r5", low)).then(refused("r5", ["b5"], exposure(101, 0)))


def test_lim_4_the_greatest_exposure_is_inclusive() -> None:
    for stake, fine in ((100, True), (101, False)):
        wager = ("b1", "tie", "", stake)
        game = round_open(spec(BACCARAT, max_exposure_minor=800))
        expected = approved("r1", wager) if fine else refused("r1", ["b1"], exposure(808, 800))
        game.when(placed("r1", wager)).then(expected)


def test_lim_4_bets_that_cannot_win_together_do_not_add_up() -> None:
    """Player and Tie, by two accounts and in one request."""
    player, banker = ("b1", "player", "", 800), ("b2", "banker", "", 800)
    tie = ("b3", "tie", "", 100)
    game = round_open(spec(BACCARAT, max_exposure_minor=800))
    game.when(placed("r1", player, tie)).then(approved("r1", player, tie))
    game.when(placed("r2", banker, account="ben")).then(approved("r2", banker, account="ben"))


def test_lim_4_stakes_that_lose_pay_for_nobody() -> None:
    """What the losers staked is not set off: a withdrawal can never raise an exposure."""
    game = round_open(spec(ROULETTE, max_exposure_minor=1_000))
    on(game, "r1", ("b1", "red", "", 1_000))
    on(game, "r2", ("b2", "black", "", 1_000), account="ben")
    game.when(placed("r3", ("b3", "red", "", 100), account="cid")).then(
        refused("r3", ["b3"], exposure(100, 0), account="cid")
    )


def test_lim_4_what_is_declined_or_went_back_is_exposed_no_more() -> None:
    first, second = ("b1", "suited_tie", "", 100), ("b2", "suited_tie", "", 110)
    game = round_open(spec(DRAGON_TIGER, max_exposure_minor=5_500))
    game.given(placed("r1", first))
    game.when(placed("r2", second)).then(refused("r2", ["b2"], exposure(5_500, 500)))
    game.given(declined("r1", first)).when(placed("r3", second)).then(approved("r3", second))
    game.given(reserved("r3", second), withdrawn("w1", second))
    game.when(placed("r4", first)).then(refused("r4", ["b1"], exposure(5_000, 0)))
    game.given(returned("w1", second)).when(placed("r5", first)).then(approved("r5", first))


def test_lim_4_without_a_limit_nothing_is_kept() -> None:
    game = round_open(spec(ROULETTE))
    on(game, "r1", ("b1", "red", "", 1_000))
    assert game.state.books[R].winnings_minor == []


def test_lim_4_what_is_kept_does_not_grow_with_the_bets() -> None:
    game = round_open(spec(SICBO, low=1, max_exposure_minor=10**15))
    on(game, "r1", *_every_place(SICBO))
    totals = game.state.books[R].winnings_minor
    assert len(totals) == 216
    game.given(withdrawn("w1", *_every_place(SICBO)), returned("w1", *_every_place(SICBO)))
    assert totals == [0] * 216


def _every_place(of: rule_sets.RuleSet) -> list[Wager]:
    """All bets that go together."""
    return [
        (f"b{number}", bet, place, 10 + number)
        for number, (bet, place) in enumerate(places_of(of))
        if bet not in ("small", "even")
    ]


def test_lim_4_the_greatest_stakes_fit() -> None:
    """Amounts are whole numbers of any size; the event holds 63 bits."""
    game = round_open(spec(ROULETTE, high=MAX_STAKE_MINOR, max_exposure_minor=10**15))
    wager = ("b1", "straight", "17", MAX_STAKE_MINOR)
    for number in range(28):
        on(game, f"r{number}", (f"b{number}", *wager[1:]), account=f"a{number}")
    game.when(placed("r28", wager)).then(
        refused(
            "r28",
            ["b1"],
            exposure(35 * MAX_STAKE_MINOR, 10**15 - 28 * 35 * MAX_STAKE_MINOR),
        )
    )
