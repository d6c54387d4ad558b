"""RNG-03: burn, cut card and the last round, counted out; test_shoe.py has the rest of it."""

from __future__ import annotations

import pytest

from services.games.catalogue import baccarat_1
from services.games.rule_set_faults import rule_set_faults
from tests.unit.shoe_facts import S1, order_with, ready, shoe_closed
from tests.unit.test_shoe import last_round, near_the_end

SHOE = 416
MOST = 6
"""Cards of a round."""


@pytest.mark.parametrize(("first", "left"), [("7H", 408), ("AS", 414), ("QC", 405)])
def test_rng_03_cards_left_after_burning(first: str, left: int) -> None:
    shoe = ready(order_with(first)).state.shoes[S1]
    assert shoe.cards - shoe.gone == left


@pytest.mark.parametrize("depth", range(6, 21))
def test_rng_03_seven_behind_the_cut_and_an_extra_round_are_refused(depth: int) -> None:
    """A round that starts at the cut card takes six, the extra one six more: twelve behind it."""
    faults = rule_set_faults(baccarat_1(cut_depth=depth, rounds_after_cut=1))
    assert (faults == []) == (depth >= 2 * MOST)
    assert rule_set_faults(baccarat_1(cut_depth=depth)) == []


@pytest.mark.parametrize("gone", range(403, 410))
@pytest.mark.parametrize("count", [4, 5, 6])
def test_rng_03_no_round_ends_out_of_cards(gone: int, count: int) -> None:
    """409 cards lie before the cut card: whoever starts at 409 or before plays to the end, and a
    round that takes a card from behind it is the last. The worst case ends at 415 of 416."""
    game, number = near_the_end(gone)
    over = gone + count > 409
    assert last_round(game, number, count) == ([shoe_closed(2)] if over else [])
    assert game.state.shoes[S1].gone == gone + count < SHOE


@pytest.mark.parametrize("gone", range(399, 405))
def test_rng_03_an_extra_round_after_the_cut_card_has_its_cards(gone: int) -> None:
    """Twelve behind it: the worst case ends with the last card of the shoe."""
    game, number = near_the_end(gone, 12, 1)
    assert last_round(game, number, MOST) == []
    assert last_round(game, number + 1, MOST) == [shoe_closed(2)]
    assert game.state.shoes[S1].gone == gone + 2 * MOST <= SHOE
