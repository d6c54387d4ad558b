"""Rounds of roulette and sic bo, each chosen for the rules that it shows."""

from __future__ import annotations

from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import spec_pb2
from services.games.catalogue import roulette, sicbo
from services.games.money import Rounding
from tests.playthroughs.stories import (
    BACK,
    REFUSED,
    REJECTED,
    STANDS,
    Story,
    bets,
    takes_back,
    voids,
)

ROULETTE: dict[str, Story] = {
    # ROU-4: every announced bet, whole chips only; 26 is a split's, a corner's and a straight's.
    "announced": Story(
        roulette(),
        [
            bets("ann", ("voisins", 900)),
            bets("ann", ("tiers", 600)),
            bets("ben", ("orphelins", 500), ("jeu_zero", 400)),
            bets("cid", ("neighbours", 505, "26-2")),
        ],
        number=26,
    ),
    # ROU-4: what cannot be announced; it is refused whole, with what stands beside it.
    "announced-refused": Story(
        roulette(),
        [
            bets("ann", ("voisins", 901), comes_to=REJECTED),
            bets("ann", ("red", 100), ("neighbours", 2_100, "26-10"), comes_to=REJECTED),
            bets("ann", ("orphelins", 45), comes_to=REFUSED),
            bets("ann", ("neighbours", 300, "0-1")),
        ],
        number=32,
        least=10,
    ),
    # LIM-3: 34 of the numbers may be covered, over all requests together; overlaps do not count.
    "coverage": Story(
        roulette(),
        [
            bets("ann", ("dozen", 100, "1"), ("dozen", 100, "2")),
            bets("ann", ("six_line", 100, "25-26-27-28-29-30"), ("street", 100, "31-32-33")),
            bets("ann", ("straight", 100, "34")),
            bets("ann", ("red", 100), comes_to=REFUSED),
            bets("ann", ("straight", 100, "17"), ("split", 100, "31-34")),
            bets("ben", ("red", 100), ("black", 100), comes_to=REFUSED),
        ],
        number=33,
    ),
    # ROU-3, LIM-8: places that are none, numbers in any order, a place that two bets share.
    "places": Story(
        roulette(),
        [
            bets("ann", ("split", 100, "1-5"), comes_to=REJECTED),
            bets("ann", ("first_four", 100, "0-1-2-3-4"), comes_to=REJECTED),
            bets("ann", ("corner", 100, "21-17-20-18"), ("split", 100, "20-17")),
            bets("ann", ("split", 5, "17-20"), ("street", 50, "16-17-18")),
            bets("ann", ("street", 5, "19-20-21"), comes_to=REFUSED),
            takes_back("ann", 2, comes_to=STANDS),
            takes_back("ann", 2, 3, comes_to=BACK),
        ],
        number=17,
        least=10,
    ),
    # ROU-1, ROU-2: every kind of bet that 17 wins with, and what lies beside it.
    "seventeen": Story(
        roulette(),
        [
            bets("ann", ("straight", 10, "17"), ("split", 10, "14-17"), ("street", 10, "16-17-18")),
            bets("ann", ("corner", 10, "13-14-16-17"), ("six_line", 10, "16-17-18-19-20-21")),
            bets("ben", ("dozen", 10, "2"), ("column", 10, "2"), ("black", 10), ("odd", 10)),
            bets("ben", ("low", 10)),
            bets("cid", ("dozen", 10, "1"), ("column", 10, "3"), ("red", 10), ("even", 10)),
            bets("cid", ("high", 10), ("split", 10, "18-21")),
        ],
        number=17,
    ),
    # ROU-1: the zero is neither; it has a split, trios and the first four of its own.
    "zero": Story(
        roulette(),
        [
            bets("ann", ("straight", 10, "0"), ("split", 10, "0-2"), ("trio", 10, "0-2-3")),
            bets("ann", ("first_four", 10, "0-1-2-3"), ("street", 10, "1-2-3")),
            bets("ben", ("red", 101), ("even", 100), ("low", 100), ("dozen", 100, "1")),
        ],
        number=0,
    ),
    # ROU-5, MON-1: half back on zero for even chances alone, of 101 a half of 50 is left.
    "la-partage": Story(
        roulette(la_partage=True),
        [
            bets("ann", ("red", 101), ("even", 100), ("column", 100, "1")),
            bets("ben", ("high", 1), ("straight", 10, "0")),
        ],
        number=0,
    ),
    # MON-1: the same halves, to the nearest even unit.
    "la-partage-half-even": Story(
        roulette(la_partage=True, rounding=Rounding.HALF_EVEN),
        [bets("ann", ("red", 101), ("odd", 103))],
        number=0,
    ),
    # LIM-4: an account's maximum, and the table's exposure with what others have on.
    "account-and-exposure": Story(
        roulette(),
        [
            bets("ann", ("straight", 100, "7"), ("red", 300)),
            bets("ann", ("odd", 150), comes_to=REFUSED),
            bets("ben", ("straight", 80, "7"), comes_to=REFUSED),
            bets("ben", ("straight", 40, "7"), ("straight", 80, "8")),
        ],
        number=8,
        restrictions=spec_pb2.Restrictions(max_account_minor=500, max_exposure_minor=5_500),
    ),
    # INC-2: voided while bets are taken; the parts of an announced bet go back like any other.
    "voided": Story(
        roulette(),
        [bets("ann", ("tiers", 600)), bets("ben", ("low", 50))],
        ends=voids(table.ROUND_REASON_EQUIPMENT),
    ),
}

SICBO: dict[str, Story] = {
    # SIC-1: three different faces.
    "three-faces": Story(
        sicbo(),
        [
            bets("ann", ("big", 100), ("odd", 100), ("total", 10, "11"), ("total", 10, "10")),
            bets("ben", ("combination", 10, "5-2"), ("combination", 10, "1-2")),
            bets("ben", ("single", 10, "4"), ("single", 10, "6"), ("double", 10, "2")),
        ],
        dice=(4, 2, 5),
    ),
    # SIC-1: a single pays by how many dice show it, a double needs two.
    "double": Story(
        sicbo(),
        [
            bets("ann", ("single", 10, "2"), ("double", 10, "2"), ("triple", 10, "2")),
            bets("ben", ("small", 100), ("odd", 100), ("combination", 10, "2-5")),
            bets("ben", ("total", 10, "9"), ("any_triple", 10)),
        ],
        dice=(2, 5, 2),
    ),
    # SIC-1: on a triple the four big bets lose; totals, doubles and singles win.
    "triple": Story(
        sicbo(),
        [
            bets("ann", ("small", 100), ("odd", 100), ("triple", 10, "3"), ("any_triple", 10)),
            bets("ben", ("big", 100), ("even", 100), ("triple", 10, "4")),
            bets("cid", ("single", 10, "3"), ("double", 10, "3"), ("total", 10, "9")),
        ],
        dice=(3, 3, 3),
    ),
    # LIM-1, ROU-3: opposite sides over two requests; places that the layout does not have.
    "refused": Story(
        sicbo(),
        [
            bets("ann", ("big", 100), ("small", 100), comes_to=REFUSED),
            bets("ann", ("big", 100), ("odd", 100)),
            bets("ann", ("even", 100), comes_to=REFUSED),
            bets("ann", ("total", 10, "18"), comes_to=REJECTED),
            bets("ann", ("combination", 10, "3-3"), comes_to=REJECTED),
            bets("ann", ("banker", 10), comes_to=REJECTED),
            bets("ben", ("even", 95), comes_to=REFUSED),
            bets("ben", ("even", 110)),
        ],
        dice=(6, 5, 1),
        least=10,
        step=10,
    ),
    # SIC-2: the other paytable.
    "macau": Story(
        sicbo("macau"),
        [
            bets("ann", ("total", 10, "17"), ("double", 10, "6"), ("single", 10, "6")),
            bets("ben", ("big", 100), ("odd", 100), ("triple", 10, "6")),
        ],
        dice=(6, 6, 5),
    ),
    "macau-triple": Story(
        sicbo("macau"),
        [
            bets("ann", ("triple", 10, "1"), ("any_triple", 10), ("total", 10, "4")),
            bets("ben", ("small", 100), ("double", 10, "1"), ("single", 10, "1")),
        ],
        dice=(1, 1, 1),
    ),
}
