"""What limits keep for speed is what the held bets add up to, after any history: property tests of
holdings, coverage and exposure, and of the promises that rest on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from sabot.limits.v1 import events_pb2 as limits
from sabot.rules.v1 import rule_set_pb2 as rule_sets
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.games import roulette, sicbo
from services.games.registry import covered
from services.kernel.snapshot import StateCodec
from services.limits.domain.exposure import outcomes_of
from services.limits.domain.state import BetStanding, Book, Holding, LimitsState
from tests.unit.deciding import Deciding, by
from tests.unit.limits_facts import (
    BACCARAT,
    BLACKJACK,
    DRAGON_TIGER,
    ROULETTE,
    SICBO,
    R,
    Wager,
    bet,
    declined,
    placed,
    reserved,
    returned,
    round_open,
    spec,
    withdrawn,
)

ACCOUNTS = ("ann", "ben")
SEATS = [str(seat) for seat in range(1, 8)]
GAMES: dict[str, tuple[rule_sets.RuleSet, dict[str, Any], Mapping[str, list[str]]]] = {
    "baccarat": (
        BACCARAT,
        {"max_difference_minor": 900},
        {"player": [""], "banker": [""], "banker_no_commission": [""], "tie": [""]},
    ),
    "roulette": (
        ROULETTE,
        {"max_numbers": 30},
        {kind: list(places) for kind, places in roulette.PLACES.items()},
    ),
    "sicbo": (SICBO, {}, {kind: list(places) for kind, places in sicbo.PLACES.items()}),
    "dragon_tiger": (DRAGON_TIGER, {}, {kind: [""] for kind in ("dragon", "tiger", "suited_tie")}),
    "blackjack": (
        BLACKJACK,
        {},
        {"main": SEATS[:3], "perfect_pairs": SEATS[:3], "21_plus_3": SEATS[:3]},
    ),
}


def opened(name: str) -> Deciding[LimitsState]:
    of, restrictions, _ = GAMES[name]
    game = round_open(
        spec(
            of,
            low=100,
            high=2_000,
            step=50,
            max_account_minor=5_000,
            max_exposure_minor=60_000,
            **restrictions,
        )
    )
    game.careful = False  # Purity is shown elsewhere; here it would cost most of the time.
    return game


class Story:
    """A round as chance brings it: requests, and what becomes of them, in the order of the log."""

    def __init__(self, name: str, draw: Any) -> None:
        self.name, self.draw = name, draw
        self.game = opened(name)
        self.waiting: list[limits.BetsApproved | limits.WithdrawalApproved] = []
        self.on: dict[str, dict[str, Wager]] = {account: {} for account in ACCOUNTS}
        """By account and bet id: the bets that the wallet has reserved."""
        self.requests = 0

    def step(self) -> None:
        what = self.draw(some.sampled_from(("place", "place", "take", "decide", "decide")))
        if what == "place":
            self.place()
        elif what == "take":
            self.take()
        elif self.waiting:
            self.decide()

    def place(self) -> None:
        _, _, places = GAMES[self.name]
        self.requests += 1
        wagers: list[Wager] = []
        for number in range(self.draw(some.integers(1, 4))):
            kind = self.draw(some.sampled_from(sorted(places)))
            where = self.draw(some.sampled_from(places[kind]))
            stake = self.draw(some.sampled_from((50, 100, 100, 150, 500, 900, 60)))
            wagers.append((f"{self.requests}.{number}", kind, where, stake))
        account = self.draw(some.sampled_from(ACCOUNTS))
        self.game.when(placed(f"r{self.requests}", *wagers, account=account))
        self.keep()

    def take(self) -> None:
        account = self.draw(some.sampled_from(ACCOUNTS))
        book = self.game.state.books[R]
        holding = book.holdings.get(("acme", account))
        if holding is None:
            return
        ids = self.draw(some.lists(some.sampled_from(list(holding.bets)), min_size=1, unique=True))
        self.requests += 1
        wagers = [(one, *holding.bets[one].place, holding.bets[one].stake_minor) for one in ids]
        self.game.when(withdrawn(f"r{self.requests}", *wagers, account=account))
        self.keep()

    def keep(self) -> None:
        [answer] = self.game.answers
        if isinstance(answer, limits.BetsApproved | limits.WithdrawalApproved):
            self.waiting.append(answer)

    def decide(self) -> None:
        """The wallet decides what it was told first."""
        answer = self.waiting.pop(0)
        account = answer.account_id
        wagers = [(one.bet_id, one.bet, one.position, one.stake_minor) for one in answer.bets]
        on = self.on[account]
        if isinstance(answer, limits.WithdrawalApproved):
            back = [wager for wager in wagers if on.pop(wager[0], None) is not None]
            self.game.given(returned(answer.request_id, *back, account=account))
        elif self.draw(some.booleans()):
            on |= {wager[0]: wager for wager in wagers}
            self.game.given(reserved(answer.request_id, *wagers, account=account))
        else:
            self.game.given(declined(answer.request_id, *wagers, account=account))


def recomputed(book: Book, holding: Holding) -> Holding:
    """A holding anew from its bets."""
    again = Holding(bets=holding.bets)
    for held in holding.bets.values():
        counted = again.counted_minor
        counted[held.place] = counted.get(held.place, 0) + held.stake_minor
        again.total_minor += held.stake_minor
        if held.standing is BetStanding.RESERVED:
            sure = again.cover_minor
            sure[held.place] = sure.get(held.place, 0) + held.stake_minor
        if book.limits.max_numbers:
            for number in covered(book.limits.rule_set, *held.place):
                again.numbers |= 1 << number
    return again


def check_book(book: Book) -> None:
    outcomes = outcomes_of(book.limits.rule_set)
    winnings = [0] * outcomes.count
    for holding in book.holdings.values():
        assert holding == recomputed(book, holding)
        assert all(holding.counted_minor.values())
        assert all(holding.cover_minor.values())
        for held in holding.bets.values():
            for outcome, minor in outcomes.winnings(*held.place, held.stake_minor):
                winnings[outcome] += minor
        assert holding.total_minor <= book.limits.max_account_minor
        assert all(total <= 2_000 for total in holding.counted_minor.values())
        if book.limits.max_numbers:
            assert holding.numbers.bit_count() <= book.limits.max_numbers
    assert book.winnings_minor == winnings
    assert max(winnings) <= book.limits.max_exposure_minor


def check_end(story: Story) -> None:
    """What the wallet has reserved in the end keeps every limit, whatever was declined."""
    for on in story.on.values():
        totals: dict[tuple[str, str], int] = {}
        for _, kind, place, stake in on.values():
            totals[kind, place] = totals.get((kind, place), 0) + stake
        assert all(total >= 100 and total % 50 == 0 for total in totals.values()), totals
        if story.name == "baccarat":
            player = totals.get(("player", ""), 0)
            banker = sum(totals.get((kind, ""), 0) for kind in ("banker", "banker_no_commission"))
            assert abs(player - banker) <= 900
        if story.name == "blackjack":
            assert all(kind == "main" or ("main", seat) in totals for kind, seat in totals)
        for one, other in (("big", "small"), ("odd", "even"), ("dragon", "tiger")):
            if story.name in ("sicbo", "dragon_tiger"):
                assert not {(one, ""), (other, "")} <= totals.keys()


@pytest.mark.parametrize("name", GAMES)
@given(data=some.data())
@settings(max_examples=60, deadline=None)
def test_what_is_kept_for_speed_is_what_the_bets_add_up_to(name: str, data: Any) -> None:
    story = Story(name, data.draw)
    for _ in range(data.draw(some.integers(1, 25))):
        story.step()
        book = story.game.state.books[R]
        check_book(book)
    while story.waiting:
        story.decide()
        check_book(story.game.state.books[R])
    check_end(story)


@pytest.mark.parametrize("name", GAMES)
@given(data=some.data())
@settings(max_examples=10, deadline=None)
def test_a_state_survives_a_snapshot_and_goes_on_as_before(name: str, data: Any) -> None:
    story = Story(name, data.draw)
    for _ in range(12):
        story.step()
    codec = StateCodec()
    raw = codec.dumps(LimitsState, story.game.state)
    back = codec.loads(LimitsState, raw)
    assert back == story.game.state
    assert codec.dumps(LimitsState, back) == raw
    story.game.state = back
    for _ in range(6):
        story.step()
        check_book(story.game.state.books[R])


@given(order=some.permutations(range(6)), keep=some.integers(0, 5))
@settings(max_examples=50, deadline=None)
def test_the_order_of_returns_leaves_no_trace(order: list[int], keep: int) -> None:
    """Bets that go back in any order leave what the one that stays adds up to."""
    wagers: list[Wager] = [
        ("b0", "red", "", 100),
        ("b1", "straight", "1", 100),
        ("b2", "straight", "1", 100),
        ("b3", "split", "0-1", 150),
        ("b4", "dozen", "1", 200),
        ("b5", "red", "", 100),
    ]
    game = opened("roulette")
    game.given(placed("r1", *wagers), reserved("r1", *wagers))
    for number in order:
        if number != keep:
            one = wagers[number]
            game.given(
                by(
                    wallet.StakeReturned(
                        account_id="ann",
                        round_id=R,
                        bets=[bet(one)],
                        reason=wallet.RETURN_REASON_VOIDED,
                        partner_id="acme",
                    ),
                    partner="",
                )
            )
    book = game.state.books[R]
    check_book(book)
    [holding] = book.holdings.values()
    assert list(holding.bets) == [f"b{keep}"]


def test_an_account_whose_bets_are_all_off_is_forgotten() -> None:
    game = opened("roulette")
    wager: Wager = ("b1", "red", "", 100)
    game.given(placed("r1", wager), declined("r1", wager))
    book = game.state.books[R]
    assert book.holdings == {}
    assert book.winnings_minor == [0] * 37
    game.given(table.RoundClosed(table_id="t1", round_id=R), table.TableClosed(table_id="t1"))
    assert game.state == LimitsState()
