"""Sic bo: the layout and what became of each bet (rules SIC-1, SIC-2)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product

from services.games.bets import Judged, Pays, won
from services.games.odds import EVENS, Odds

FACES = (1, 2, 3, 4, 5, 6)
DICE = 3
TOTALS = tuple(range(4, 18))
"""The totals to bet on: 3 and 18 are triples only."""
SMALL = range(4, 11)
BIG = range(11, 18)

Roll = tuple[int, ...]
"""Three dice, 1 to 6, in any order."""

ROLLS: tuple[Roll, ...] = tuple(product(FACES, repeat=DICE))
"""All 216, equally probable."""

_ONE_PLACE = ("",)
_EACH_FACE = tuple(map(str, FACES))

PLACES: dict[str, tuple[str, ...]] = {
    "big": _ONE_PLACE,
    "small": _ONE_PLACE,
    "odd": _ONE_PLACE,
    "even": _ONE_PLACE,
    "any_triple": _ONE_PLACE,
    "triple": _EACH_FACE,
    "double": _EACH_FACE,
    "single": _EACH_FACE,
    "total": tuple(map(str, TOTALS)),
    "combination": tuple(f"{low}-{high}" for low, high in combinations(FACES, 2)),
}
"""The layout: by bet id, the positions."""

_SINGLE_LINES = {1: "one_die", 2: "two_dice", 3: "three_dice"}
"""Pay lines by how many dice show the face."""


def _total_line(total: int) -> str:
    """A total's pay line; two digits, so that ascending ids are ascending totals."""
    return f"total_{total:02}"


def is_roll(dice: Roll) -> bool:
    """Whether these may be the dice of a round."""
    return len(dice) == DICE and all(face in FACES for face in dice)


def is_triple(dice: Roll) -> bool:
    """Whether all dice show one face."""
    return dice.count(dice[0]) == DICE


def canonical(bet: str, position: str) -> str | None:
    """The canonical text of a position of this bet, the faces of a combination in any order; None
    where the layout has no such one."""
    text = "-".join(sorted(position.split("-"))) if bet == "combination" else position
    return text if text in PLACES.get(bet, ()) else None


def _single(position: str, dice: Roll) -> Judged:
    """By how many dice show the face, on triples too."""
    count = dice.count(int(position))
    return won(True, _SINGLE_LINES[count]) if count else won(False)


def _total(position: str, dice: Roll) -> Judged:
    """On triples too."""
    return won(sum(dice) == int(position), _total_line(sum(dice)))


def _combination(position: str, dice: Roll) -> Judged:
    return won(all(int(face) in dice for face in position.split("-")))


def _unless_triple(wins: Callable[[int], bool]) -> Callable[[str, Roll], Judged]:
    """Bets on the total that all lose on any triple."""

    def judge_total(position: str, dice: Roll) -> Judged:
        del position  # These bets have one place.
        return won(wins(sum(dice)) and not is_triple(dice))

    return judge_total


JUDGES: dict[str, Callable[[str, Roll], Judged]] = {
    "big": _unless_triple(lambda total: total in BIG),
    "small": _unless_triple(lambda total: total in SMALL),
    "odd": _unless_triple(lambda total: total % 2 == 1),
    "even": _unless_triple(lambda total: total % 2 == 0),
    "any_triple": lambda _position, dice: won(is_triple(dice)),
    "triple": lambda position, dice: won(dice.count(int(position)) == DICE),
    "double": lambda position, dice: won(dice.count(int(position)) >= 2),
    "single": _single,
    "total": _total,
    "combination": _combination,
}
"""By bet id (rule SIC-1)."""


def judge(bet: str, position: str, dice: Roll) -> Judged:
    """What became of a bet. The bet and its position stand in `PLACES`."""
    return JUDGES[bet](position, dice)


def _paytable(
    double: int, triple: int, any_triple: int, totals: tuple[int, ...]
) -> dict[str, Pays]:
    """A paytable from what tables differ in; `totals` are those from 4 to 10, and 11 to 17 mirror
    them."""
    return {
        "big": EVENS,
        "small": EVENS,
        "odd": EVENS,
        "even": EVENS,
        "any_triple": Odds(any_triple, 1),
        "triple": Odds(triple, 1),
        "double": Odds(double, 1),
        "single": {"one_die": EVENS, "three_dice": Odds(3, 1), "two_dice": Odds(2, 1)},
        "total": {
            _total_line(total): Odds(pays, 1)
            for total, pays in zip(TOTALS, (*totals, *reversed(totals)), strict=True)
        },
        "combination": Odds(5, 1),
    }


PAYTABLES: dict[str, dict[str, Pays]] = {
    "atlantic_city": _paytable(10, 180, 30, (60, 30, 17, 12, 8, 6, 6)),
    "macau": _paytable(8, 150, 24, (50, 18, 14, 12, 8, 6, 6)),
}
"""What a bet pays, by the name of the paytable (rule SIC-2, D12)."""
PAYS = PAYTABLES["atlantic_city"]
"""The usual one."""
