"""Faults in the rules of the games and in their restrictions that are planted in the product to see
whether the simulation finds them. See `mutations`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.table.v1 import events_pb2 as table
from services.games import (
    baccarat,
    baccarat_bets,
    blackjack,
    blackjack_bets,
    blackjack_result,
    roulette,
    sicbo,
    two_cards,
)
from services.games.baccarat import total
from services.games.bets import LOST, PUSHED, Judged, won
from services.games.odds import NO_COMMISSION
from services.games.registry import announced
from services.kernel.event import Event
from services.limits.domain import accounts, judging, protection
from services.limits.domain import core as limits_core
from services.limits.domain.scopes import LOSS
from services.limits.domain.state import Book, Holding, TableLimits, opened
from services.rules.domain import blackjack as rules_blackjack
from services.settlement.domain import paying as settlement_paying
from services.shoe import custodian
from services.shoe.domain import evolve as shoe_evolve
from services.shoe.domain import inputs as shoe_inputs
from services.shoe.domain import wanted
from services.shoe.domain.order import order_of
from services.shoe.domain.state import ShoeState
from services.shoe.domain.tosses import note_toss
from services.shoe.tossing import tossed
from services.simulator.releases import BASE, Cores
from services.table.domain import booking, decide_bets, decide_turns, evolve_turns
from services.table.domain.state import Round, Table
from services.table.domain.turns import action_us
from tests.simulation.mutations import Mutation

# ---- chance is loaded, so that what is rare comes soon: that is no fault of the product's -------


def load_wheels(patch: pytest.MonkeyPatch) -> None:
    """Every third number is the zero."""

    def loaded(*args: Any) -> Any:
        told = tossed(*args)
        if isinstance(told, shoe.RecordSpin) and told.number % 3 == 0:
            told.number = 0
        return told

    patch.setattr(custodian, "tossed", loaded)


def load_dice(patch: pytest.MonkeyPatch) -> None:
    """Every second roll is a triple."""

    def loaded(*args: Any) -> Any:
        told = tossed(*args)
        if isinstance(told, shoe.RecordDice) and sum(told.dice) % 2:
            told.dice[:] = [told.dice[0]] * 3
        return told

    patch.setattr(custodian, "tossed", loaded)


def pair_cards(patch: pytest.MonkeyPatch) -> None:
    """The same cards of all decks lie together."""

    def paired(number: int, decks: int) -> list[str]:
        return [card for card in dict.fromkeys(order_of(number, decks)) for _ in range(decks)]

    patch.setattr(custodian, "order_of", paired)


# ---- what bets are paid ------------------------------------------------------------------------


def halves_the_wrong_chances(patch: pytest.MonkeyPatch) -> Cores:
    """La partage gives half back where the table has none, and takes all where it has."""
    load_wheels(patch)
    judge = roulette.judge

    def wrong(bet: str, position: str, number: int, *, la_partage: bool = False) -> Judged:
        return judge(bet, position, number, la_partage=not la_partage)

    patch.setattr(roulette, "judge", wrong)
    return BASE


def pays_a_column_that_is_a_dozen(patch: pytest.MonkeyPatch) -> Cores:
    """Columns and dozens are mixed up."""
    swapped = {"column": roulette.PLACES["dozen"], "dozen": roulette.PLACES["column"]}
    patch.setattr(roulette, "PLACES", {**roulette.PLACES, **swapped})
    return BASE


def pays_big_and_small_on_triples(patch: pytest.MonkeyPatch) -> Cores:
    """They lose on every triple (rule SIC-1)."""
    load_dice(patch)
    judges = {
        "big": lambda _position, dice: won(sum(dice) in sicbo.BIG),
        "small": lambda _position, dice: won(sum(dice) in sicbo.SMALL),
    }
    patch.setattr(sicbo, "JUDGES", {**sicbo.JUDGES, **judges})
    return BASE


def pays_three_of_a_face_as_two(patch: pytest.MonkeyPatch) -> Cores:
    """A single number on all three dice pays 3:1."""
    load_dice(patch)
    lines = {1: "one_die", 2: "two_dice", 3: "two_dice"}
    patch.setattr(sicbo, "_SINGLE_LINES", lines)
    return BASE


def pays_no_tie_that_is_suited(patch: pytest.MonkeyPatch) -> Cores:
    """A suited tie wins both bets on a tie (rule DT-1)."""
    pair_cards(patch)

    def tie(cards: two_cards.Dealt) -> Judged:
        return won(cards.winner is two_cards.Winner.TIE and not cards.suited)

    patch.setattr(two_cards, "JUDGES", {**two_cards.JUDGES, "tie": tie})
    return BASE


def takes_all_at_a_tie(patch: pytest.MonkeyPatch) -> Cores:
    """A tie takes half the stake of either side (rules DT-1, FS-1)."""
    pair_cards(patch)
    patch.setattr(two_cards, "HALF_LOST", LOST)
    return BASE


def keeps_no_commission(patch: pytest.MonkeyPatch) -> Cores:
    """Banker with commission pays 0.95:1 (rule BAC-21)."""
    patch.setattr(settlement_paying, "commission_of", lambda _offer: NO_COMMISSION)
    return BASE


def pays_tens_as_a_pair(patch: pytest.MonkeyPatch) -> Cores:
    """A pair is of printed rank: 10 and J are none (rule BAC-25)."""

    def pair(cards: Sequence[str]) -> bool:
        return total(cards[:1]) == total(cards[1:2])

    patch.setattr(baccarat_bets, "_pair", pair)
    return BASE


# ---- what is dealt, spun and rolled ------------------------------------------------------------


def draws_banker_on_too_much(patch: pytest.MonkeyPatch) -> Cores:
    """Banker draws on 3 to 6 whatever Player's third card is (rule BAC-8)."""
    patch.setattr(baccarat, "_BANKER_DRAWS_ON", (frozenset(range(10)),) * 7 + (frozenset(),))
    return BASE


def burns_where_nothing_is_burned(patch: pytest.MonkeyPatch) -> Cores:
    """Every new shoe shows a card and burns some (rule DT-2)."""
    open_table = shoe_evolve._open_table

    def open_and_burn(state: ShoeState, *args: Any) -> None:
        open_table(state, *args)
        for one in state.tables.values():
            one.burns = True

    patch.setattr(shoe_evolve, "_open_table", open_and_burn)
    return BASE


def deals_on_behind_the_cut_card(patch: pytest.MonkeyPatch) -> Cores:
    """The cut card is told of, and one more round follows (rule BAC-3)."""
    cut_card = shoe_inputs._cut_card

    def one_more(*args: Any) -> Any:
        told = cut_card(*args)
        told.rounds_left += 1
        return told

    patch.setattr(shoe_inputs, "_cut_card", one_more)
    return BASE


def lets_a_second_spin_stand(patch: pytest.MonkeyPatch) -> Cores:
    """What is told later takes the place of what was told first."""

    def last(state: ShoeState, event: Any, body: Any) -> None:
        one = state.tables.get(body.table_id)
        if one is not None and one.toss is not None:
            one.toss.numbers = []
        note_toss(state, event, body)

    patch.setattr(shoe_evolve, "note_toss", last)
    # Custodians that draw anew whenever they tell make second draws that differ.
    chance = random.Random(1)
    patch.setattr(
        custodian, "tossed", lambda wish, asked_by, _below: tossed(wish, asked_by, chance.randrange)
    )
    return BASE


def spins_before_it_is_called(patch: pytest.MonkeyPatch) -> Cores:
    """The custodian spins ahead, so as to be quick."""
    granted = custodian.Custodian._granted

    def ahead(self: Any, state: ShoeState, wish: Any) -> Any:
        told = granted(self, state, wish)
        if hasattr(told, "attempt"):
            told.attempt += 1
        return told

    patch.setattr(custodian.Custodian, "_granted", ahead)
    return BASE


# ---- blackjack ---------------------------------------------------------------------------------


def hits_a_soft_seventeen(patch: pytest.MonkeyPatch) -> Cores:
    """The dealer stands on every 17 (rule BJ-5)."""

    def draws(dealer: Sequence[str]) -> bool:
        points, soft = blackjack.total(dealer)
        return points < 17 or (soft and points == 17)

    patch.setattr(blackjack, "dealer_draws", draws)
    patch.setattr(blackjack_result, "dealer_draws", draws)
    return BASE


def gives_a_double_back(patch: pytest.MonkeyPatch) -> Cores:
    """A double's further stake goes with its hand (rule BJ-6)."""
    judges = {**blackjack_bets.JUDGES, "double": lambda *_: PUSHED}
    patch.setattr(blackjack_bets, "JUDGES", judges)
    return BASE


def looks_at_every_ten(patch: pytest.MonkeyPatch) -> Cores:
    """Whether the dealer looks behind a ten is the table's choice (rule BJ-4)."""

    def at_both(_peek: object, up_card: str) -> bool:
        return blackjack.value(up_card) in {1, 10}

    patch.setattr(blackjack, "peeks", at_both)
    patch.setattr(blackjack_result, "peeks", at_both)
    return BASE


def deals_the_hole_card_open(patch: pytest.MonkeyPatch) -> Cores:
    """It lies face down until it is turned over (rule BJ-2)."""
    patch.setattr(shoe_inputs, "hidden_in", lambda _hands: 0)
    patch.setattr(wanted, "hidden_in", lambda _hands: 0)
    return BASE


def doubles_before_the_stake_is_certain(patch: pytest.MonkeyPatch) -> Cores:
    """A double takes effect with its reserved stake, and not at all where that is refused."""
    patch.setattr(
        rules_blackjack,
        "_PLAIN",
        {**rules_blackjack._PLAIN, rules.ACTION_DOUBLE: blackjack.Action.DOUBLE},
    )
    patch.setattr(rules_blackjack, "_STAKED", {"split": blackjack.Action.SPLIT})
    return BASE


def lets_a_seat_be_shared(patch: pytest.MonkeyPatch) -> Cores:
    """A seat belongs to one account in a round (rule BJ-11)."""
    patch.setattr(decide_bets, "_seats_are_free", lambda *_: True)
    return BASE


def needs_no_main_bet(patch: pytest.MonkeyPatch) -> Cores:
    """Side bets need a main bet at their seat (rule BJ-11)."""
    patch.setattr(judging, "NEEDS_MAIN", frozenset())
    return BASE


def lets_strangers_act(patch: pytest.MonkeyPatch) -> Cores:
    """A seat acts for its owner alone (rule BJ-11)."""
    refusal = decide_turns._refusal

    def of_anybody(one: Table, running: Round, event: Event, body: table.Act) -> Any:
        held = running.seats.get(body.seat)
        if held is None:
            return refusal(one, running, event, body)
        asked = table.Act()
        asked.CopyFrom(body)
        asked.account_id = held.account_id
        return refusal(one, running, event._replace(partner=held.partner), asked)

    patch.setattr(decide_turns, "_refusal", of_anybody)
    return BASE


def gives_half_the_time(patch: pytest.MonkeyPatch) -> Cores:
    """The system acts before the time of a turn is over (rule BJ-12)."""
    patch.setattr(evolve_turns, "action_us", lambda spec: action_us(spec) // 2)
    return BASE


# ---- what may be bet ---------------------------------------------------------------------------


def loses_a_part_of_an_announced_bet(patch: pytest.MonkeyPatch) -> Cores:
    """The last chip of an announced bet lies nowhere."""

    def without_the_last(*args: Any) -> Any:
        parts = announced(*args)
        return parts[:-1] if isinstance(parts, tuple) else parts

    patch.setattr(booking, "announced", without_the_last)
    return BASE


def takes_a_place_that_is_none(patch: pytest.MonkeyPatch) -> Cores:
    """Two numbers of a row are a split, neighbours or not (rule ROU-3)."""
    splits = {**roulette.PLACES["split"], "1-3": (1, 3), "3-4": (3, 4), "1-5": (1, 5)}
    patch.setattr(roulette, "PLACES", {**roulette.PLACES, "split": splits})
    return BASE


def counts_coverage_by_request(patch: pytest.MonkeyPatch) -> Cores:
    """Coverage is a union over all requests of the round (rule LIM-3)."""
    coverage = judging._coverage

    def alone(table: TableLimits, _holding: Holding | None, added: Any) -> Any:
        return coverage(table, None, added)

    patch.setattr(judging, "_coverage", alone)
    return BASE


def offers_closed_side_bets(patch: pytest.MonkeyPatch) -> Cores:
    """Side bets close after their rounds of the shoe (rule BAC-40)."""

    def open_all(table_id: str, limits: TableLimits, _round_in_shoe: int) -> Book:
        return opened(table_id, limits, 1)

    patch.setattr(limits_core, "opened", open_all)
    return BASE


def forbids_no_sides_of_two_cards(patch: pytest.MonkeyPatch) -> Cores:
    """Dragon with Tiger, Home with Away are forbidden (rule LIM-1)."""
    games = (rule_set_pb2.GAME_DRAGON_TIGER, rule_set_pb2.GAME_FOOTBALL_STUDIO)
    sides = {game: of for game, of in judging.OPPOSITE_SIDES.items() if game not in games}
    patch.setattr(judging, "OPPOSITE_SIDES", sides)
    return BASE


def limits_each_bet_by_itself(patch: pytest.MonkeyPatch) -> Cores:
    """The account's maximum is one of all its bets in a round (rule LIM-4)."""
    account_maximum = judging._account_maximum

    def alone(table: TableLimits, _holding: Holding | None, extra_minor: int, bettor: Any) -> Any:
        return account_maximum(table, None, extra_minor, bettor)

    patch.setattr(judging, "_account_maximum", alone)
    return BASE


def forgets_what_others_may_win(patch: pytest.MonkeyPatch) -> Cores:
    """A table's exposure is that of all accounts together (rule LIM-4)."""
    exposure = judging._exposure

    def alone(book: Book, wagers: Any) -> Any:
        counted, book.winnings_minor = book.winnings_minor, [0] * len(book.winnings_minor)
        found = exposure(book, wagers)
        book.winnings_minor = counted
        return found

    patch.setattr(judging, "_exposure", alone)
    return BASE


def differs_by_what_is_not_sure(patch: pytest.MonkeyPatch) -> Cores:
    """The other side counts only once it is reserved (rule LIM-2)."""
    difference = judging._difference

    def by_all(table: TableLimits, counted: Any, _covered: Any) -> Any:
        return difference(table, counted, counted)

    patch.setattr(judging, "_difference", by_all)
    return BASE


SETTLED = "is settled as"


def forgets_what_is_at_stake(patch: pytest.MonkeyPatch) -> Cores:
    """What an account has on counts as lost until it is paid (rule LIM-7)."""

    def nothing_on(history: protection.History, kind: int, window_s: int, now_us: int) -> int:
        found = used(history, kind, window_s, now_us)
        return found - history.at_stake_minor if kind == LOSS else found

    used = protection.used
    patch.setattr(protection, "used", nothing_on)
    return BASE


def counts_no_stake_twice(patch: pytest.MonkeyPatch) -> Cores:
    """Every stake counts in its windows (rule LIM-7)."""
    note_stake = protection.note_stake

    def once(record: protection.AccountRecord, now_us: int, minor: int) -> None:
        if record.history is None or not record.history.at_stake_minor:
            note_stake(record, now_us, minor)
        else:
            record.history.at_stake_minor += minor

    patch.setattr(accounts, "note_stake", once)
    return BASE


def lets_who_takes_a_break_play(patch: pytest.MonkeyPatch) -> Cores:
    """Who takes a break neither bets nor pays in (rule LIM-7)."""
    patch.setattr(protection.Away, "holds", lambda away, now_us: away.until_us < now_us)
    return BASE


GAME_MUTATIONS: dict[str, Mutation] = {
    install.__name__: Mutation(install, sign, games, *rounds)
    for install, sign, games, *rounds in (
        (halves_the_wrong_chances, SETTLED, ("roulette",)),
        (pays_a_column_that_is_a_dozen, SETTLED, ("roulette",)),
        (pays_big_and_small_on_triples, SETTLED, ("sicbo",)),
        (pays_three_of_a_face_as_two, SETTLED, ("sicbo",), 20),
        (pays_no_tie_that_is_suited, SETTLED, ("dragon_tiger",)),
        (takes_all_at_a_tie, SETTLED, ("football_studio",)),
        (keeps_no_commission, SETTLED, ("baccarat",)),
        (pays_tens_as_a_pair, SETTLED, ("baccarat",), 20),
        (draws_banker_on_too_much, "is not that of its cards", ("baccarat",)),
        (burns_where_nothing_is_burned, "by its rules as", ("dragon_tiger",)),
        (deals_on_behind_the_cut_card, "behind its last round", ("baccarat",), 20),
        (lets_a_second_spin_stand, "but the first toss stands at", ("roulette", "sicbo")),
        (spins_before_it_is_called, "is drawn, but not called", ("roulette",)),
        (hits_a_soft_seventeen, "by the rules with", ("blackjack",)),
        (gives_a_double_back, SETTLED, ("blackjack",)),
        (looks_at_every_ten, "by the rules with", ("blackjack",)),
        (deals_the_hole_card_open, "is no hole card", ("blackjack",)),
        (doubles_before_the_stake_is_certain, "by the rules with", ("blackjack",)),
        (lets_a_seat_be_shared, "share seat", ("blackjack",)),
        (needs_no_main_bet, "although LIMIT_NO_MAIN_BET", ("blackjack",)),
        (lets_strangers_act, "may not", ("blackjack",)),
        (gives_half_the_time, "may not", ("blackjack",)),
        (loses_a_part_of_an_announced_bet, "are booked for", ("roulette",)),
        (takes_a_place_that_is_none, "are booked for", ("roulette",)),
        (counts_coverage_by_request, "although LIMIT_COVERAGE", ("roulette",)),
        (offers_closed_side_bets, "although LIMIT_SIDE_BET_CLOSED", ("long_baccarat",)),
        (forbids_no_sides_of_two_cards, "although LIMIT_OPPOSITE_SIDES", ("football_studio",)),
        (forgets_what_is_at_stake, "although LIMIT_KIND_LOSS", (), 20),
        (counts_no_stake_twice, "although LIMIT_KIND_STAKE", (), 20),
        (lets_who_takes_a_break_play, "although the account takes a break", (), 20),
        (limits_each_bet_by_itself, "although LIMIT_ACCOUNT_MAXIMUM", ()),
        (forgets_what_others_may_win, "although LIMIT_EXPOSURE", ("roulette",)),
        (differs_by_what_is_not_sure, "although LIMIT_DIFFERENCE", ("baccarat",)),
    )
}
