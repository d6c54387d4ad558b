"""Orders from numbers, numbers from bytes: exact and without bias (RNG-01)."""

from __future__ import annotations

import contextlib
from collections import Counter
from itertools import permutations, product
from math import factorial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.games.cards import pack
from services.shoe.domain.order import below, order_of, orders_of, unranked


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 6, 7])
def test_rng_01_numbers_and_orders_are_one_to_one(size: int) -> None:
    orders = [tuple(unranked(number, size)) for number in range(factorial(size))]
    assert orders == list(permutations(range(size)))


@pytest.mark.parametrize("word_bits", range(9))
def test_rng_01_every_result_below_every_bound_has_as_many_words(word_bits: int) -> None:
    """All words of up to eight bits, for all bounds they reach: each result has equally many, and
    fewer than that are drawn anew, never as many as half."""
    words = 1 << word_bits
    for bound in range(1, words + 1):
        counts: Counter[int] = Counter()
        rejected = 0
        for word in range(words):
            try:
                counts[below(bound, word_bits, iter([word]).__next__)] += 1
            except StopIteration:
                rejected += 1
        assert counts == dict.fromkeys(range(bound), words // bound)
        assert rejected == words % bound
        assert 2 * rejected < words


@pytest.mark.parametrize(("bound", "accepted"), [(6, 252), (37, 222), (216, 216)])
def test_rng_01_two_draws_are_as_independent_as_their_words(bound: int, accepted: int) -> None:
    """All pairs of bytes, for dice and wheels: where none is drawn anew, each pair of results has
    equally many pairs of bytes."""
    results: list[int] = []
    for byte in range(256):
        drawn = iter([byte])
        with contextlib.suppress(StopIteration):
            results.append(below(bound, 8, drawn.__next__))
    assert len(results) == accepted
    pairs = Counter((one, other) for one in results for other in results)
    assert set(pairs.values()) == {(accepted // bound) ** 2}
    assert len(pairs) == bound**2


@pytest.mark.parametrize("size", [3, 4])
def test_rng_01_every_sequence_of_draws_gives_every_order_equally_often(size: int) -> None:
    """The whole way, from every byte that may be drawn, a rejected one drawn anew."""
    orders = factorial(size)
    counts: Counter[tuple[int, ...]] = Counter()
    for byte in range(256):
        words = iter([byte])
        try:
            number = below(orders, 8, words.__next__)
        except StopIteration:
            continue  # Rejected: what comes next is as uniform as the first.
        counts[tuple(unranked(number, size))] += 1
    assert len(counts) == orders
    assert set(counts.values()) == {256 // orders}


def test_rng_01_the_draws_of_a_swap_with_anything_would_not() -> None:
    """The fault itself, so that the test above is known to find it: 27 ways to 6 orders."""
    counts: Counter[tuple[int, ...]] = Counter()
    for draws in product(range(3), repeat=3):
        order = [0, 1, 2]
        for place, other in enumerate(draws):
            order[place], order[other] = order[other], order[place]
        counts[tuple(order)] += 1
    assert sorted(counts.values()) == [4, 4, 4, 5, 5, 5]


@pytest.mark.parametrize(
    ("words", "result"),
    [([65_311], 415), ([65_312, 7], 7), ([65_535, 8], 8), ([0], 0), ([65_312, 65_535, 416], 0)],
)
def test_rng_01_words_of_16_bits_for_416_cards(words: list[int], result: int) -> None:
    drawn = iter(words)
    assert below(416, 16, drawn.__next__) == result
    assert next(drawn, None) is None


def test_rng_01_bytes_for_37_numbers() -> None:
    counts: Counter[int] = Counter()
    for byte in range(256):
        drawn = iter([byte, 0])
        result = below(37, 8, drawn.__next__)
        rejected = next(drawn, None) is None
        assert rejected == (byte >= 222)
        if not rejected:
            counts[result] += 1
    assert set(counts.values()) == {6}
    assert len(counts) == 37


@pytest.mark.parametrize("bound", [0, -1, 257])
def test_a_word_must_reach_every_result(bound: int) -> None:
    with pytest.raises(ValueError, match="cannot reach"):
        below(bound, 8, lambda: 0)


@pytest.mark.parametrize("number", [-1, 24, 10**9])
def test_a_number_that_is_no_order(number: int) -> None:
    with pytest.raises(ValueError, match="no permutation"):
        unranked(number, 4)


def test_the_first_and_the_last_order_of_a_shoe() -> None:
    cards = pack(8)
    assert order_of(0, 8) == list(cards)
    assert order_of(orders_of(416) - 1, 8) == list(reversed(cards))
    with pytest.raises(ValueError, match="no permutation"):
        order_of(orders_of(416), 8)
    assert orders_of(416).bit_length() == 3025


@given(st.integers(0, factorial(416) - 1))
def test_every_number_is_a_whole_shoe(number: int) -> None:
    assert Counter(order_of(number, 8)) == Counter(pack(8))


@given(st.integers(0, factorial(60) - 1))
def test_an_order_gives_its_number_back(number: int) -> None:
    left = list(range(60))
    back = 0
    for place in unranked(number, 60):
        digit = left.index(place)
        back = back * len(left) + digit
        del left[digit]
    assert back == number
