"""Roads (rule BAC-42), against drawings made by hand and against a second definition.

The second definition works on drawn grids: a streak is drawn as a whole, and a derived road looks
at whether cells of a big road without a bottom are filled, never at lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.games.roads import (
    BIG_EYE_BOY,
    COCKROACH_PIG,
    DEPTH,
    SMALL_ROAD,
    Cell,
    Colour,
    Outcome,
    bead_plate,
    big_road,
    derived_road,
    roads,
    streaks,
)

RED, BLUE, GREEN = Colour.RED, Colour.BLUE, Colour.GREEN
LETTERS = {"B": RED, "P": BLUE, "T": GREEN}
DERIVED = {"big eye boy": BIG_EYE_BOY, "small road": SMALL_ROAD, "cockroach pig": COCKROACH_PIG}


def shoe(letters: str) -> list[Outcome]:
    """Results by letter: B, P, T; blanks are for the eye."""
    return [Outcome(LETTERS[letter]) for letter in letters if letter != " "]


def drawn(cells: Sequence[Cell]) -> list[str]:
    """A road as lines of text: r, b and g, two characters a cell, with the number of ties."""
    if not cells:
        return []
    lines = []
    for row in range(max(cell.row for cell in cells) + 1):
        here = {cell.column: cell for cell in cells if cell.row == row}
        marks = [
            here[column].colour.name[0].lower() + (str(here[column].ties or "") or " ")
            if column in here
            else "  "
            for column in range(max(here, default=-1) + 1)
        ]
        lines.append("".join(marks).rstrip())
    return lines


# ---- drawn by hand -----------------------------------------------------------------------------


def test_bac_42_bead_plate_goes_down_columns_of_six_ties_and_pairs_included() -> None:
    outcomes = [
        *shoe("BPTBBP"),
        Outcome(GREEN, player_pair=True),
        Outcome(BLUE, banker_pair=True),
    ]
    plate = bead_plate(outcomes)
    assert drawn(plate) == ["r g", "b b", "g", "r", "r", "b"]
    assert plate[6] == Cell(1, 0, GREEN, player_pair=True)
    assert plate[7] == Cell(1, 1, BLUE, banker_pair=True)


def test_bac_42_big_road_streaks_go_down_and_ties_are_counted_on_the_result_before() -> None:
    assert drawn(big_road(shoe("BB T T P B T PPP"))) == [
        "r b r1b",
        "r2    b",
        "      b",
    ]


def test_bac_42_ties_before_any_win_wait_in_the_first_cell() -> None:
    assert drawn(big_road(shoe("TT"))) == ["g2"]
    assert drawn(big_road(shoe("TT P T P B"))) == ["b3r", "b"]
    assert big_road([]) == ()


def test_bac_42_a_tie_keeps_its_pairs_for_the_bead_plate() -> None:
    outcomes = [Outcome(RED, banker_pair=True), Outcome(GREEN, player_pair=True)]
    assert big_road(outcomes) == (Cell(0, 0, RED, ties=1, banker_pair=True),)


def test_bac_42_dragon_tail_turns_right_at_the_sixth_row() -> None:
    assert drawn(big_road(shoe("BBBBBBBB PP"))) == ["r b", "r b", "r", "r", "r", "r r r"]


def test_bac_42_dragon_tail_turns_where_the_cell_below_is_taken() -> None:
    """The second streak meets the first one's tail at the sixth row and turns in the fifth; the
    third goes on in its row under nothing, and does not go down again behind the tail's end."""
    assert drawn(big_road(shoe("BBBBBBBB PPPPPPPP B"))) == [
        "r b r",
        "r b",
        "r b",
        "r b",
        "r b b b b",
        "r r r",
    ]


def test_bac_42_a_tail_in_the_top_row_pushes_the_next_streak_on() -> None:
    """Each tail turns a row higher than the one before; the sixth stays in the top row, and the
    next streak begins behind it."""
    long = "".join(side * 12 for side in "BPBPB") + "PPP" + "B"
    assert drawn(big_road(shoe(long)))[0] == "r b r b r b b b r"


EXAMPLE = "BB P BBB PP B PPPP BB P"
"""Columns of the big road: 2 1 3 2 1 4 2 1."""


def test_bac_42_big_eye_boy_by_hand() -> None:
    """From the first result of column 3 (column 2 has no second one): 1 ≠ 2, blue. Column 3, rows 2
    and 3, beside one of 1: blue, red. Column 4: 3 ≠ 1, blue; row 2 beside 3: red. Column 5: 2 ≠ 3,
    blue. Column 6: 1 ≠ 2, blue; rows 2, 3, 4 beside 1: blue, red, red. Column 7: 4 ≠ 1, blue; row 2
    beside 4: red. Column 8: 2 ≠ 4, blue."""
    assert streaks(shoe(EXAMPLE)) == [2, 1, 3, 2, 1, 4, 2, 1]
    assert drawn(roads(shoe(EXAMPLE)).big_eye_boy) == [
        "b r b r b r b r b",
        "b       b r",
        "        b",
    ]


def test_bac_42_small_road_by_hand() -> None:
    """From column 3, row 2, beside one of 2: red (both filled); row 3: blue. Column 4: 3 ≠ 2, blue;
    row 2 beside 1: blue. Column 5: 2 ≠ 1, blue. Column 6: 1 ≠ 3, blue; rows 2, 3, 4 beside 2: red,
    blue, red. Column 7: 4 ≠ 2, blue; row 2 beside 1: blue. Column 8: 2 ≠ 1, blue."""
    assert drawn(roads(shoe(EXAMPLE)).small_road) == [
        "r b r b r b",
        "  b       b",
        "  b       b",
        "  b",
        "  b",
    ]


def test_bac_42_cockroach_pig_by_hand() -> None:
    """From column 4, row 2, beside one of 2: red. Column 5: 2 = 2, red. Column 6: 1 = 1, red; rows
    2, 3, 4 beside 3: red, red, blue. Column 7: 4 ≠ 3, blue; row 2 beside 2: red. Column 8: 2 = 2,
    red."""
    assert drawn(roads(shoe(EXAMPLE)).cockroach_pig) == [
        "r b r",
        "r b r",
        "r",
        "r",
        "r",
    ]


@pytest.mark.parametrize(
    ("letters", "road", "first"),
    [
        ("B P", "big eye boy", None),
        ("B PP", "big eye boy", BLUE),
        ("B P B", "big eye boy", RED),
        ("B P B", "small road", None),
        ("B P BB", "small road", BLUE),
        ("B P B P", "small road", RED),
        ("B P B P", "cockroach pig", None),
        ("B P B PP", "cockroach pig", BLUE),
        ("B P B P B", "cockroach pig", RED),
        ("BB P B P B", "cockroach pig", BLUE),
    ],
)
def test_bac_42_where_a_derived_road_begins(letters: str, road: str, first: Colour | None) -> None:
    cells = derived_road(streaks(shoe(letters)), DERIVED[road])
    assert [cell.colour for cell in cells] == ([first] if first else [])


def test_bac_42_derived_roads_look_at_streaks_not_at_tails() -> None:
    """Eight Bankers, tail and all, are a column of eight: a Player streak beside it stays red up to
    its eighth result, and the ninth is blue."""
    cells = derived_road(streaks(shoe("B" * 8 + "P" * 10)), BIG_EYE_BOY)
    assert [cell.colour for cell in cells] == [RED] * 7 + [BLUE] + [RED]


# ---- by a second definition --------------------------------------------------------------------


def drawn_by_streaks(colours: Sequence[Colour], depth: int) -> dict[tuple[int, int], Colour]:
    """A road drawn streak by streak: down while there is room, then right."""
    grid: dict[tuple[int, int], Colour] = {}
    start = -1
    for colour, streak in groupby(colours):
        length = len(list(streak))
        start += 1
        while (start, 0) in grid:
            start += 1
        down = 0
        while down < min(length, depth) and (start, down) not in grid:
            grid[start, down] = colour
            down += 1
        for right in range(1, length - down + 1):
            assert (start + right, down - 1) not in grid
            grid[start + right, down - 1] = colour
    return grid


def derived_by_looking(colours: Sequence[Colour], back: int) -> list[Colour]:
    """A derived road by what is filled in a big road without a bottom.

    A result under another looks `back` columns left: is the cell there filled, and the one above
    it? Alike is red. The first result of a column says the opposite of what the column before it
    would have said had it gone on."""

    def alike(column: int, row: int) -> bool:
        return ((column - back, row) in grid) == ((column - back, row - 1) in grid)

    grid: dict[tuple[int, int], Colour] = {}
    found: list[Colour] = []
    column, row = 0, -1
    for before, colour in zip([None, *colours], colours, strict=False):
        if before in {None, colour}:
            row += 1
            if row and column >= back:
                found.append(RED if alike(column, row) else BLUE)
        else:
            if column >= back:
                found.append(BLUE if alike(column, row + 1) else RED)
            column, row = column + 1, 0
        grid[column, row] = colour
    return found


def check(outcomes: Sequence[Outcome]) -> None:
    found = roads(outcomes)
    assert [(cell.column * DEPTH + cell.row, cell.colour) for cell in found.bead_plate] == list(
        enumerate(one.colour for one in outcomes)
    )
    sides = [one.colour for one in outcomes if one.colour is not GREEN]
    ties = len(outcomes) - len(sides)
    assert sum(cell.ties for cell in found.big_road) == ties
    if sides:
        assert [cell.colour for cell in found.big_road] == sides
        check_drawing(found.big_road, sides)
    else:
        assert len(found.big_road) == (1 if ties else 0)
    for cells, back in (
        (found.big_eye_boy, BIG_EYE_BOY),
        (found.small_road, SMALL_ROAD),
        (found.cockroach_pig, COCKROACH_PIG),
    ):
        expected = derived_by_looking(sides, back)
        assert [cell.colour for cell in cells] == expected
        check_drawing(cells, expected)


def check_drawing(cells: Sequence[Cell], colours: Sequence[Colour]) -> None:
    grid = drawn_by_streaks(colours, DEPTH)
    assert {(cell.column, cell.row): cell.colour for cell in cells} == grid
    assert len(grid) == len(cells), "two marks in one cell"
    assert all(cell.row < DEPTH for cell in cells)


def test_bac_42_all_shoes_of_twelve_results_without_ties() -> None:
    for colours in product((RED, BLUE), repeat=12):
        check([Outcome(colour) for colour in colours])


@pytest.mark.parametrize("rounds", range(8))
def test_bac_42_all_short_shoes_with_ties(rounds: int) -> None:
    for colours in product(Colour, repeat=rounds):
        check([Outcome(colour) for colour in colours])


@given(st.lists(st.tuples(st.sampled_from((RED, BLUE, GREEN)), st.integers(1, 14)), max_size=40))
def test_bac_42_long_shoes_with_dragons(runs: list[tuple[Colour, int]]) -> None:
    check([Outcome(colour) for colour, length in runs for _ in range(length)])


@given(st.lists(st.builds(Outcome, st.sampled_from(Colour), st.booleans(), st.booleans())))
def test_bac_42_a_further_result_leaves_what_is_drawn(outcomes: list[Outcome]) -> None:
    """Clients draw on: only the last cell of the big road may change, by a tie or by its first
    side."""
    before = roads(outcomes)
    for colour in Colour:
        after = roads([*outcomes, Outcome(colour)])
        for old, new in zip(before, after, strict=True):
            kept = len(old) - 1 if old is before.big_road and len(old) == len(new) else len(old)
            assert new[:kept] == old[:kept]
            assert len(new) - len(old) in {0, 1}


def test_bac_42_pairs_stand_where_they_fell() -> None:
    outcomes = [Outcome(RED, True, False), Outcome(RED, False, True), Outcome(BLUE, True, True)]
    pairs = [(cell.player_pair, cell.banker_pair) for cell in big_road(outcomes)]
    assert pairs == [(True, False), (False, True), (True, True)]
