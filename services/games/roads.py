"""Roads: the results of a shoe as tables show them (rule BAC-42).

A road is read column by column, from 0. Red is Banker, Dragon or Home; blue is Player, Tiger or
Away; green is a tie. In the derived roads red and blue name no side: red says that the shoe repeats
itself, blue that it does not. Everything follows from the results alone; a voided round is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple

DEPTH = 6
"""Rows of every road."""
BIG_EYE_BOY = 1
SMALL_ROAD = 2
COCKROACH_PIG = 3
"""By how many columns of the big road a derived road looks back."""


class Colour(Enum):
    """What a mark says."""

    RED = 1
    BLUE = 2
    GREEN = 3


class Outcome(NamedTuple):
    """The result of one round, as far as roads go."""

    colour: Colour
    player_pair: bool = False
    """Player's first two cards are of one rank (rule BAC-25); never so in games without pairs."""
    banker_pair: bool = False
    """The same of Banker's (rule BAC-26)."""


class Cell(NamedTuple):
    """One mark of a road and where it is drawn."""

    column: int
    row: int
    """0 to 5, from the top."""
    colour: Colour
    ties: int = 0
    """Big road: how many ties followed this result; in the first cell also those before it."""
    player_pair: bool = False
    banker_pair: bool = False


class Roads(NamedTuple):
    """All five, each in the order in which its marks were made."""

    bead_plate: tuple[Cell, ...]
    big_road: tuple[Cell, ...]
    big_eye_boy: tuple[Cell, ...]
    small_road: tuple[Cell, ...]
    cockroach_pig: tuple[Cell, ...]


def roads(outcomes: Sequence[Outcome]) -> Roads:
    """The roads of a shoe whose rounds ended so, in this order."""
    lengths = streaks(outcomes)
    return Roads(
        bead_plate(outcomes),
        big_road(outcomes),
        derived_road(lengths, BIG_EYE_BOY),
        derived_road(lengths, SMALL_ROAD),
        derived_road(lengths, COCKROACH_PIG),
    )


def bead_plate(outcomes: Sequence[Outcome]) -> tuple[Cell, ...]:
    """Every result, ties too: down a column of six, then down the next one."""
    return tuple(
        Cell(
            *divmod(place, DEPTH),
            one.colour,
            player_pair=one.player_pair,
            banker_pair=one.banker_pair,
        )
        for place, one in enumerate(outcomes)
    )


def big_road(outcomes: Sequence[Outcome]) -> tuple[Cell, ...]:
    """Streaks: results of one side go down a column, and the other side begins the next one.

    A tie takes no cell: it is counted in the cell of the result before it, and its pairs are shown
    on the bead plate alone. Ties at the very beginning are counted in the first cell, which is
    green until a side has won. A streak that can go down no further, since it is at the sixth row
    or the cell below is taken, turns right and stays in its row: the dragon's tail. A new streak
    begins in the top row, at the first column behind the one where the last streak began whose top
    cell is free.
    """
    cells: list[Cell] = []
    marks: list[Outcome] = []
    ties: list[int] = []
    before = 0
    for one in outcomes:
        if one.colour is not Colour.GREEN:
            marks.append(one)
            ties.append(0)
        elif marks:
            ties[-1] += 1
        else:
            before += 1
    if not marks:
        return (Cell(0, 0, Colour.GREEN, before),) if before else ()
    ties[0] += before
    places = _places([one.colour for one in marks])
    for (column, row), one, count in zip(places, marks, ties, strict=True):
        cells.append(Cell(column, row, one.colour, count, one.player_pair, one.banker_pair))
    return tuple(cells)


def streaks(outcomes: Iterable[Outcome]) -> list[int]:
    """How many times in a row each side won, ties left out: the lengths of the big road's columns,
    as if it were as deep as they are long."""
    lengths: list[int] = []
    last = Colour.GREEN
    for one in outcomes:
        if one.colour is Colour.GREEN:
            continue
        if one.colour is last:
            lengths[-1] += 1
        else:
            lengths.append(1)
            last = one.colour
    return lengths


def derived_road(lengths: Sequence[int], back: int) -> tuple[Cell, ...]:
    """Big eye boy (`back` 1), small road (2) or cockroach pig (3), from the lengths of the big
    road's columns, tails counted as if they went on down.

    One mark for each result from the second of column `back` + 1 on (columns counted from 1), or
    from the first of the column behind it where that is no streak:

    - the first result of a column: red if the column before it and the one `back` further left are
      of one length, else blue;
    - any other, in row r: look at the column `back` to the left, in rows r and r - 1. Red if it has
      results in both, or in neither; blue if it ends between them.

    The marks are then drawn as the big road's are: equal ones down, the other colour a column on.
    """
    colours: list[Colour] = []
    for column, length in enumerate(lengths):
        if column > back:
            same = lengths[column - 1] == lengths[column - 1 - back]
            colours.append(Colour.RED if same else Colour.BLUE)
        if column >= back:
            ends = lengths[column - back]
            colours.extend(
                Colour.BLUE if ends == row - 1 else Colour.RED for row in range(2, length + 1)
            )
    places = _places(colours)
    return tuple(
        Cell(column, row, colour) for (column, row), colour in zip(places, colours, strict=True)
    )


def _places(colours: Sequence[Colour]) -> list[tuple[int, int]]:
    """Where the marks of a road are drawn, as (column, row)."""
    taken: set[tuple[int, int]] = set()
    places: list[tuple[int, int]] = []
    begun = column = row = 0
    turned = False
    last: Colour | None = None
    for colour in colours:
        if last is None:
            pass
        elif colour is not last:
            begun += 1
            while (begun, 0) in taken:
                begun += 1
            column, row, turned = begun, 0, False
        else:
            turned = turned or row + 1 == DEPTH or (column, row + 1) in taken
            if turned:
                column += 1
            else:
                row += 1
        last = colour
        places.append((column, row))
        taken.add((column, row))
    return places
