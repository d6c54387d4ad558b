"""Roads as SVG: marks on a grid, for templates to write out."""

from __future__ import annotations

from dataclasses import dataclass

from sabot.partner.v1 import roads_pb2

CELL = 16
"""Pixels of a cell of the grid."""
ROWS = 6
MOST_COLUMNS = 40
"""Shown at once: the newest; a shoe has about 70 rounds."""
_COLOURS = {
    roads_pb2.ROAD_COLOUR_RED: "red",
    roads_pb2.ROAD_COLOUR_BLUE: "blue",
    roads_pb2.ROAD_COLOUR_GREEN: "green",
}
_ROADS = ("bead_plate", "big_road", "big_eye_boy", "small_road", "cockroach_pig")


@dataclass(frozen=True, slots=True)
class Mark:
    """One mark, in pixels."""

    x: int
    y: int
    colour: str
    ties: int
    player_pair: bool
    banker_pair: bool


@dataclass(frozen=True, slots=True)
class Drawn:
    """One road."""

    name: str
    filled: bool
    """Discs; else rings."""
    width: int
    height: int
    columns: int
    marks: list[Mark]


def drawn(roads: roads_pb2.Roads) -> list[Drawn]:
    """All roads of a shoe, or none where there are none."""
    return [_road(name, getattr(roads, name)) for name in _ROADS] if roads.shoe_id else []


def _road(name: str, road: roads_pb2.Road) -> Drawn:
    used = max((cell.column for cell in road.cells), default=0) + 1
    first = max(0, used - MOST_COLUMNS)
    columns = max(used - first, 12)
    return Drawn(
        name,
        name in {"bead_plate", "small_road"},
        columns * CELL,
        ROWS * CELL,
        columns,
        [
            Mark(
                (cell.column - first) * CELL + CELL // 2,
                cell.row * CELL + CELL // 2,
                _COLOURS.get(cell.colour, ""),
                cell.ties,
                cell.player_pair,
                cell.banker_pair,
            )
            for cell in road.cells
            if cell.column >= first
        ],
    )
