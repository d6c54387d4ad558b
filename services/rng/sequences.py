"""Tests of a sequence of independent outcomes: spins of a wheel, faces and rolls of dice.

Outcomes are bytes below `kinds`. Unless a test says otherwise each is equally likely. References:
Knuth, The Art of Computer Programming 2, 3rd ed., section 3.3.2; NIST SP 800-22 rev. 1a.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from math import comb
from operator import ne

from services.rng.findings import (
    Finding,
    chi_square,
    fitted,
    never,
    rare_events,
    score,
)

LAGS = 50
"""A period of up to so many outcomes shows as outcomes that come again."""
RARE = 1e-6
"""The chance of a repeated stretch at the length that is looked for; no p-value that matters lies
between this and 0."""
PATIENCE = 20
"""Times the number of kinds: hardly ever does it take longer until all have come."""


def frequencies(name: str, stream: bytes, chances: Sequence[float]) -> Finding:
    """How often each outcome came (Knuth, frequency test). Freedom: outcomes - 1."""
    counts = Counter(stream)
    return fitted(
        name, "how often each came", [counts[kind] for kind in range(len(chances))], chances
    )


def overlaps(name: str, stream: bytes, kinds: int, length: int) -> Finding:
    """How often each stretch of `length` successive outcomes came, stretches overlapping and the
    end joined to the beginning (Good 1953; SP 800-22, 2.11, serial test): the sum of squares for
    this length less that for one less is chi-square. Freedom: kindsᶫ - kindsᶫ⁻¹."""
    statistic = _squares(stream, kinds, length) - _squares(stream, kinds, length - 1)
    freedom = kinds**length - kinds ** (length - 1)
    return chi_square(name, f"each {length} in a row, overlapping", statistic, freedom)


def _squares(stream: bytes, kinds: int, length: int) -> float:
    """Good's sum: cells/total · Σ count² - total."""
    counts = Counter(_stretches(stream, length))
    squares = sum(count * count for count in counts.values())
    cells: int = kinds**length
    return cells / len(stream) * squares - len(stream)


def _stretches(stream: bytes, length: int) -> zip[tuple[int, ...]]:
    joined = stream + stream[: length - 1]
    return zip(*(joined[start:] for start in range(length)), strict=False)


def serial_correlation(name: str, values: Sequence[int], chances: dict[int, float]) -> Finding:
    """Whether the next is greater after a great one: Σ (x - mean)(next - mean), which has mean 0
    and variance (pairs)·variance² (Knuth, serial correlation test, for a known mean)."""
    mean = sum(value * chance for value, chance in chances.items())
    variance = sum((value - mean) ** 2 * chance for value, chance in chances.items())
    products = sum((a - mean) * (b - mean) for a, b in pairwise(values))
    pairs = len(values) - 1
    return score(name, "correlation with the next", products, 0.0, pairs * variance * variance)


def recurrence(name: str, stream: bytes, kinds: int) -> Finding:
    """How often an outcome is the same as the one 1, 2, … LAGS before it: squared scores of
    binomial counts, which are independent of one another for equally likely outcomes. Freedom:
    LAGS."""
    chance = 1 / kinds
    total = 0.0
    for lag in range(1, LAGS + 1):
        pairs = len(stream) - lag
        same = _same(stream, stream[lag:])
        total += (same - pairs * chance) ** 2 / (pairs * chance * (1 - chance))
    return chi_square(name, f"the same again 1 to {LAGS} later", total, LAGS)


def _same(one: bytes, other: bytes) -> int:
    """At how many places they are equal, as far as the shorter goes: a long stream is compared as
    one number, fifty times as fast."""
    size = min(len(one), len(other))
    apart = int.from_bytes(one[:size], "big") ^ int.from_bytes(other[:size], "big")
    return apart.to_bytes(size, "big").count(0)


def rising_runs(name: str, values: Sequence[int], chances: Sequence[float]) -> Finding:
    """Lengths of rising runs, the number that ends a run left out, so that runs are independent
    (Knuth, run test, exercise 14). A run has at least r numbers with the chance that r numbers
    rise, which is the r-th elementary symmetric polynomial of the outcomes' chances."""
    lengths: Counter[int] = Counter()
    length, previous = 0, 0
    for value in values:
        if not length or value > previous:
            length, previous = length + 1, value
        else:
            lengths[length] += 1
            length = 0
    at_least = rise_chances(chances)
    longer = [*at_least[1:], 0.0]
    exactly = [some - more for some, more in zip(at_least, longer, strict=True)]
    counts = [lengths[length] for length in range(1, len(exactly) + 1)]
    return fitted(name, "lengths of rising runs", counts, exactly)


def rise_chances(chances: Sequence[float]) -> list[float]:
    """The chance that 1, 2, 3, … outcomes in a row rise: of all that have the same outcomes in
    another order, one does."""
    rises = [1.0] + [0.0] * len(chances)
    for chance in chances:
        for length in range(len(chances), 0, -1):
            rises[length] += chance * rises[length - 1]
    return rises[1:]


def median_runs(name: str, above: Sequence[bool]) -> Finding:
    """How often the sequence changes between above and below the median, outcomes at the median
    left out: binomial with chance 1/2 (SP 800-22, 2.3, runs test)."""
    changes = sum(map(ne, above, above[1:]))
    pairs = len(above) - 1
    return score(name, "runs above and below the median", changes, pairs / 2, pairs / 4)


def coupons(name: str, stream: bytes, kinds: int) -> Finding:
    """How many outcomes it takes until every kind has come, again and again (Knuth, coupon
    collector's test)."""
    lengths: Counter[int] = Counter()
    seen: set[int] = set()
    began = 0
    for at, kind in enumerate(stream, start=1):
        seen.add(kind)
        if len(seen) == kinds:
            lengths[at - began] += 1
            seen.clear()
            began = at
    longest = PATIENCE * kinds
    counts = [lengths[length] for length in range(kinds, longest + 1)]
    counts.append(lengths.total() - sum(counts))
    chances = coupon_chances(kinds, longest)
    return fitted(name, "how many until all have come", counts, chances)


@lru_cache(maxsize=8)
def coupon_chances(kinds: int, longest: int) -> tuple[float, ...]:
    """The chance that all kinds have come after exactly `kinds`, `kinds` + 1, … `longest` outcomes,
    and last that it takes more: by the number of kinds that have come, step by step."""
    have = [0.0] * (kinds + 1)
    have[0] = 1.0
    chances: list[float] = []
    for length in range(1, longest + 1):
        done = have[kinds - 1] / kinds
        for count in range(kinds - 1, 0, -1):
            have[count] = (have[count] * count + have[count - 1] * (kinds - count + 1)) / kinds
        have[0] = 0.0
        if length >= kinds:
            chances.append(done)
    return (*chances, sum(have))


# ---- duplicates --------------------------------------------------------------------------------


def repeats(name: str, stream: bytes, kinds: int) -> Finding:
    """Stretches that came before, of a length at which chance shows none: among N outcomes N²/2
    pairs of stretches begin, and each pair is the same with kinds⁻ᶫ. A source that repeats itself
    shows almost all."""
    length = 1
    while len(stream) ** 2 / 2 / kinds**length > RARE:
        length += 1
    seen: set[bytes] = set()
    again = 0
    for start in range(len(stream) - length + 1):
        stretch = stream[start : start + length]
        if stretch in seen:
            again += 1
        else:
            seen.add(stretch)
    expected = len(stream) ** 2 / 2 / kinds**length
    return never(name, f"stretches of {length} that came before", again, expected)


def birthdays(name: str, stream: bytes, kinds: int) -> Finding:
    """Equal pairs among words of successive outcomes, the words not overlapping: pairs are
    independent of one another in twos, so their number is Poisson (Knuth, collision test). Words
    are the shortest of which there are more kinds than words."""
    length = 1
    while kinds**length < len(stream) // length:
        length += 1
    words = Counter(
        stream[start : start + length] for start in range(0, len(stream) - length + 1, length)
    )
    equal = sum(comb(count, 2) for count in words.values())
    expected = comb(words.total(), 2) / kinds**length
    return rare_events(name, f"equal words of {length}", equal, expected)
