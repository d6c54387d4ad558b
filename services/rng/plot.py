"""A picture of what was drawn, as one SVG file that needs nothing else.

On the left, how often the cards of each part of the unshuffled pack came to each part of the shoe;
on the right, pockets and totals with bands that a perfect source leaves anywhere once in a hundred
pictures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import sqrt

from services.rng.findings import CONFIDENCE
from services.rng.games import DICE, POCKETS, total_chances
from services.rng.tails import binomial_tails

BLOCKS = 52
"""Squares of the heat map in a row: of a shoe of eight decks, each is eight positions wide."""
SQUARE = 7
"""Pixels of one."""
STRONGEST = 4.0
"""Standard deviations that have the full colour; among 2,704 squares one in six pictures has such
a square."""
WIDTH, HEIGHT = 1060, 500
LEFT, TOP = 60, 70
CHART_LEFT, CHART_WIDTH, CHART_HEIGHT = 500, 520, 150
INK, PALE = "#333", "#bbb"


def picture(
    cells: Sequence[int], cards: int, orders: int, spins: bytes, faces: bytes, source: str
) -> str:
    """The SVG. `cells`: how often each place came at each position, as Shuffles counts them."""
    rolls = zip(*(faces[die::DICE] for die in range(DICE)), strict=True)
    totals = Counter(DICE + sum(roll) for roll in rolls)
    size = f'width="{WIDTH}" height="{HEIGHT}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {WIDTH} {HEIGHT}">',
            f'<g font-family="sans-serif" font-size="11" fill="{INK}">',
            f'<rect {size} fill="#fff"/>',
            _text(LEFT, 28, f"Drawn from {source}", size=15),
            *_heat_map(cells, cards, orders),
            *_chart(
                TOP,
                f"{len(spins):,} spins: each pocket, away from its share",
                Counter(spins),
                dict.fromkeys(range(POCKETS), 1 / POCKETS),
            ),
            *_chart(
                TOP + CHART_HEIGHT + 70,
                f"{totals.total():,} rolls of three dice: each total, away from its share",
                totals,
                total_chances(),
            ),
            _text(CHART_LEFT, HEIGHT - 24, "Bands: a perfect source leaves any of one chart's"),
            _text(CHART_LEFT, HEIGHT - 10, "bands once in a hundred pictures (exact, binomial)."),
            "</g>",
            "</svg>\n",
        ]
    )


def _text(x: float, y: float, words: str, *, size: int = 11, anchor: str = "start") -> str:
    escaped = words.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}">{escaped}</text>'


# ---- the heat map ------------------------------------------------------------------------------


def block_scores(cells: Sequence[int], cards: int, orders: int) -> list[list[float]]:
    """How many standard deviations each block of positions and places is off, row by row. A block
    of a positions and b places has the variance orders·a(1 - a/n)·b(1 - b/n)/(n - 1)."""
    wide = max(1, cards // BLOCKS)
    rows = range(0, cards, wide)
    scores: list[list[float]] = []
    for position in rows:
        high = min(wide, cards - position)
        sums = [0] * cards
        for row in range(position, position + high):
            sums = [
                a + b for a, b in zip(sums, cells[row * cards : (row + 1) * cards], strict=True)
            ]
        line: list[float] = []
        for place in rows:
            across = min(wide, cards - place)
            count = sum(sums[place : place + across])
            spread = high * (1 - high / cards) * across * (1 - across / cards) / (cards - 1)
            line.append((count - orders * high * across / cards) / sqrt(orders * spread))
        scores.append(line)
    return scores


def _heat_map(cells: Sequence[int], cards: int, orders: int) -> list[str]:
    scores = block_scores(cells, cards, orders)
    side = len(scores) * SQUARE
    squares = [
        f'<rect x="{LEFT + across * SQUARE}" y="{TOP + down * SQUARE}" width="{SQUARE}" '
        f'height="{SQUARE}" fill="{colour(away)}"/>'
        for down, line in enumerate(scores)
        for across, away in enumerate(line)
    ]
    legend = [
        f'<rect x="{LEFT + 18 * step}" y="{TOP + side + 34}" width="18" height="10" '
        f'fill="{colour(step - STRONGEST)}"/>'
        for step in range(2 * int(STRONGEST) + 1)
    ]
    return [
        _text(LEFT, TOP - 10, f"{orders:,} shoes: position in the shoe and in the pack", size=12),
        *squares,
        f'<rect x="{LEFT}" y="{TOP}" width="{side}" height="{side}" fill="none" stroke="{PALE}"/>',
        _text(LEFT, TOP + side + 16, "place in the unshuffled pack: first"),
        _text(LEFT + side, TOP + side + 16, "last", anchor="end"),
        _text(LEFT - 6, TOP + 10, "first out", anchor="end"),
        _text(LEFT - 6, TOP + side, "last out", anchor="end"),
        *legend,
        _text(
            LEFT + 18 * (2 * STRONGEST + 1) + 8,
            TOP + side + 43,
            f"{-STRONGEST:g} to {STRONGEST:g} standard deviations",
        ),
    ]


def colour(away: float) -> str:
    """White at 0, red above, blue below; the full colour at STRONGEST."""
    part = min(1.0, abs(away) / STRONGEST)
    faded = round(255 * (1 - part))
    return f"#ff{faded:02x}{faded:02x}" if away > 0 else f"#{faded:02x}{faded:02x}ff"


# ---- counts with bands -------------------------------------------------------------------------


def band(trials: int, chance: float, outside: float) -> tuple[int, int]:
    """The least and the greatest count such that a binomial count is below, and is above, with at
    most half of `outside` each."""
    low = _least(lambda count: binomial_tails(count, trials, chance)[0] > outside / 2, trials)
    high = _least(lambda count: binomial_tails(count + 1, trials, chance)[1] <= outside / 2, trials)
    return low, high


def _least(holds: Callable[[int], bool], most: int) -> int:
    """The least count from which on it holds, by halving."""
    low, high = 0, most
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _chart(
    top: float, title: str, counts: Mapping[int, int], chances: Mapping[int, float]
) -> list[str]:
    trials = sum(counts.values())
    outside = (1 - CONFIDENCE) / len(chances)
    bands = {kind: band(trials, chance, outside) for kind, chance in chances.items()}

    def away(kind: int, count: float) -> float:
        expected = trials * chances[kind]
        return count / expected - 1

    most = 1.1 * max(
        abs(away(kind, count)) for kind in chances for count in (*bands[kind], counts[kind])
    )
    middle, step = top + CHART_HEIGHT / 2, CHART_WIDTH / len(chances)

    def y(kind: int, count: float) -> float:
        return middle - away(kind, count) / most * CHART_HEIGHT / 2

    drawn = [
        _text(CHART_LEFT, top - 10, title, size=12),
        _line(CHART_LEFT, middle, CHART_LEFT + CHART_WIDTH, middle),
        _text(CHART_LEFT - 6, middle + 4, "0", anchor="end"),
        _text(CHART_LEFT - 6, top + 8, f"+{most:.1%}", anchor="end"),
        _text(CHART_LEFT - 6, top + CHART_HEIGHT, f"-{most:.1%}", anchor="end"),
    ]
    for number, kind in enumerate(chances):
        x = CHART_LEFT + (number + 0.5) * step
        low, high = bands[kind]
        inside = low <= counts[kind] <= high
        drawn += [
            (
                f'<rect x="{x - step / 3:.1f}" y="{y(kind, high):.1f}" width="{step / 1.5:.1f}" '
                f'height="{y(kind, low) - y(kind, high):.1f}" fill="#dde6ee"/>'
            ),
            (
                f'<circle cx="{x:.1f}" cy="{y(kind, counts[kind]):.1f}" r="2.5" '
                f'fill="{INK if inside else "#d00"}"/>'
            ),
            _text(x, top + CHART_HEIGHT + 14, str(kind), size=9, anchor="middle"),
        ]
    return drawn


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" stroke="{PALE}"/>'
