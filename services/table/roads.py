"""The roads of a table's shoe in front of partners (rule BAC-42)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sabot.partner.v1 import partner_service_pb2 as partners
from sabot.partner.v1 import roads_pb2
from sabot.rules.v1 import rule_set_pb2
from services.games.road_outcomes import outcome_of
from services.games.roads import Cell, Colour, Outcome, roads

GAMES = frozenset(
    (
        rule_set_pb2.GAME_BACCARAT,
        rule_set_pb2.GAME_DRAGON_TIGER,
        rule_set_pb2.GAME_FOOTBALL_STUDIO,
    )
)
"""The games that have roads."""

_COLOURS = {
    Colour.RED: roads_pb2.ROAD_COLOUR_RED,
    Colour.BLUE: roads_pb2.ROAD_COLOUR_BLUE,
    Colour.GREEN: roads_pb2.ROAD_COLOUR_GREEN,
}
_COLOURS_BACK = {number: colour for colour, number in _COLOURS.items()}
_STANDING = (partners.ROUND_STATE_PAYING, partners.ROUND_STATE_PAID)
"""States of rounds whose result counts."""


class ShoeRoads:
    """The results of one shoe, as far as they are known; fed with its rounds, in order."""

    def __init__(self, shoe_id: str, *, complete: bool) -> None:
        self.shoe_id = shoe_id
        self.complete = complete
        """Whether the rounds before the first that was fed are in, too."""
        self._results: dict[str, roads_pb2.RoadResult | None] = {}
        """By round id; None: a round without a result, or a voided one."""
        self._drawn: roads_pb2.Roads | None = None

    def follow(self, view: partners.Round) -> None:
        """Take a round as it stands now."""
        self._results[view.round_id] = view.road if view.HasField("road") else None
        self._drawn = None

    def forget(self, round_id: str) -> None:
        """A round has come to something else: it must be taken anew, with those before it."""
        if self._results.pop(round_id, None) is not None:
            self.complete = False
            self._drawn = None

    def begin_with(self, rounds: Iterable[partners.Round]) -> None:
        """Take what was before: the shoe's rounds up to one of those that were fed, or behind."""
        fed, self._results = self._results, {}
        for view in rounds:
            self.follow(view)
        self._results.update(fed)
        self._drawn = None
        self.complete = True

    def message(self) -> roads_pb2.Roads:
        """The roads as they go out. Not to be changed."""
        if self._drawn is None:
            results = [result for result in self._results.values() if result is not None]
            self._drawn = drawn(self.shoe_id, results)
        return self._drawn


def mark_road(view: partners.Round, ace: int) -> None:
    """Say what a round with a result adds to the roads of its shoe. `ace`: where the ace stands by
    its rules, a `sabot.rules.v1.AceRank`."""
    result = view.correction.result if view.HasField("correction") else view.result
    outcome = outcome_of(result, ace) if view.state in _STANDING else None
    if outcome is None:
        view.ClearField("road")
        return
    view.road.round_id = view.round_id
    view.road.round_in_shoe = view.round_in_shoe
    view.road.colour = _COLOURS[outcome.colour]
    view.road.player_pair = outcome.player_pair
    view.road.banker_pair = outcome.banker_pair


def drawn(shoe_id: str, results: Sequence[roads_pb2.RoadResult]) -> roads_pb2.Roads:
    """The roads that follow from a shoe's results."""
    found = roads(
        [Outcome(_COLOURS_BACK[one.colour], one.player_pair, one.banker_pair) for one in results]
    )
    return roads_pb2.Roads(
        shoe_id=shoe_id,
        results=results,
        bead_plate=_road(found.bead_plate),
        big_road=_road(found.big_road),
        big_eye_boy=_road(found.big_eye_boy),
        small_road=_road(found.small_road),
        cockroach_pig=_road(found.cockroach_pig),
    )


def _road(cells: Sequence[Cell]) -> roads_pb2.Road:
    return roads_pb2.Road(
        cells=[
            roads_pb2.RoadCell(
                column=cell.column,
                row=cell.row,
                colour=_COLOURS[cell.colour],
                ties=cell.ties,
                player_pair=cell.player_pair,
                banker_pair=cell.banker_pair,
            )
            for cell in cells
        ]
    )
