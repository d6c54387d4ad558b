"""Rounds of dragon tiger, football studio and baccarat with its side bets, each chosen for the
rules that it shows."""

from __future__ import annotations

from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import spec_pb2
from services.games.catalogue import baccarat, baccarat_ez, dragon_tiger, football_studio
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

DRAGON_TIGER: dict[str, Story] = {
    # DT-1: the higher rank wins, suits say nothing.
    "dragon": Story(
        dragon_tiger(),
        [bets("ann", ("dragon", 100), ("tie", 10)), bets("ben", ("tiger", 100))],
        cards="TC 9S",
    ),
    # DT-1: the ace is low.
    "ace-low": Story(
        dragon_tiger(),
        [bets("ann", ("dragon", 100)), bets("ben", ("tiger", 100), ("suited_tie", 10))],
        cards="AS 2H",
    ),
    # DT-1, MON-1: a tie takes half of either side, of 101 the greater half; it is no suited one.
    "tie": Story(
        dragon_tiger(),
        [
            bets("ann", ("dragon", 101), ("tie", 10), ("suited_tie", 10)),
            bets("ben", ("tiger", 100)),
        ],
        cards="8S 8D",
    ),
    # DT-1, D13: a suited tie wins both bets on a tie; here the table pays a tie 8:1.
    "suited-tie": Story(
        dragon_tiger(tie_pays=8),
        [
            bets("ann", ("dragon", 100), ("tie", 10), ("suited_tie", 10)),
            bets("ben", ("tiger", 1)),
        ],
        cards="QH QH",
    ),
    # LIM-1: Dragon with Tiger, in one request or in two.
    "opposite-sides": Story(
        dragon_tiger(),
        [
            bets("ann", ("dragon", 100), ("tiger", 100), comes_to=REFUSED),
            bets("ann", ("dragon", 100)),
            bets("ann", ("tiger", 100), ("tie", 10), comes_to=REFUSED),
            takes_back("ann", 3, comes_to=BACK),
            bets("ann", ("tiger", 100)),
        ],
        cards="3C 7D",
    ),
    # INC-2: voided by a supervisor before anything is dealt.
    "voided": Story(
        dragon_tiger(),
        [bets("ann", ("dragon", 100), ("tie", 10)), bets("ben", ("tiger", 50))],
        cards="3C 7D",
        ends=voids(table.ROUND_REASON_DEALER_ERROR),
    ),
}

FOOTBALL_STUDIO: dict[str, Story] = {
    # FS-1: Home is dealt first.
    "home": Story(
        football_studio(),
        [bets("ann", ("home", 100)), bets("ben", ("away", 100), ("draw", 10))],
        cards="9C 4S",
    ),
    # FS-1: the ace is high.
    "ace-high": Story(
        football_studio(),
        [bets("ann", ("home", 100)), bets("ben", ("away", 100))],
        cards="AS KH",
    ),
    # FS-1, D14: a table may have it low.
    "ace-low": Story(
        football_studio(ace_high=False),
        [bets("ann", ("home", 100)), bets("ben", ("away", 100))],
        cards="AS KH",
    ),
    # FS-1, MON-1: a draw takes half of either side; halves of a unit to the bettor.
    "draw-half-up": Story(
        football_studio(rounding=Rounding.HALF_UP),
        [bets("ann", ("home", 101), ("draw", 10)), bets("ben", ("away", 3))],
        cards="7H 7H",
    ),
    # LIM-1, LIM-4: Home with Away; a raise under the minimum stands on what is on.
    "refused": Story(
        football_studio(),
        [
            bets("ann", ("home", 9), comes_to=REFUSED),
            bets("ann", ("home", 50)),
            bets("ann", ("home", 5)),
            bets("ann", ("away", 50), comes_to=REFUSED),
            bets("ann", ("home", 9_950), comes_to=REFUSED),
            bets("ann", ("draw", 10, "1"), comes_to=REJECTED),
            takes_back("ann", 2, comes_to=STANDS),
        ],
        cards="2D JC",
        least=10,
    ),
}

BACCARAT: dict[str, Story] = {
    # BAC-29, BAC-30: two naturals; the higher one wins its bonus 1:1 whatever the margin.
    "naturals": Story(
        baccarat(),
        [
            bets("ann", ("player", 100), ("player_natural", 10), ("player_bonus", 10)),
            bets("ben", ("banker", 100), ("banker_natural", 10), ("banker_bonus", 10)),
            bets("cid", ("tie", 10), ("player_pair", 10), ("either_pair", 10)),
        ],
        cards="AS 2D 4C 8H 5D KS",
    ),
    # BAC-9, BAC-30: a natural tie pushes both bonuses; Player and Banker are pushed.
    "natural-tie": Story(
        baccarat(),
        [
            bets("ann", ("player", 100), ("player_bonus", 10), ("tie", 10)),
            bets("ben", ("banker", 100), ("banker_no_commission", 50), ("banker_bonus", 10)),
        ],
        cards="AS 2D 9C 9H KD KS",
    ),
    # BAC-21, BAC-22, BAC-31, BAC-32, BAC-41: both ways of Banker on the same cards; a 6 of three.
    "banker-six": Story(
        baccarat(),
        [
            bets("ann", ("banker", 101), ("banker_no_commission", 101)),
            bets("ann", ("player", 100), comes_to=REFUSED),
            bets("ben", ("lucky_six", 10), ("lucky_six_2", 10), ("lucky_six_3", 10)),
            bets("ben", ("banker_bonus", 10)),
        ],
        cards="AS 2D KC 2H 2D 2C 3S 2S",
    ),
    # BAC-22: another win of Banker's.
    "no-commission": Story(
        baccarat(),
        [bets("ann", ("banker_no_commission", 101)), bets("ben", ("banker", 101))],
        cards="AS 2D KC 9H 5D KS",
    ),
    # BAC-33 to BAC-35: Player's 7 of three cards against Banker's 6 of two.
    "super-lucky-seven": Story(
        baccarat(),
        [
            bets("ann", ("super_lucky_seven", 10), ("lucky_seven", 10), ("lucky_seven_3", 10)),
            bets("ben", ("lucky_seven_2", 10), ("lucky_six", 10), ("player", 100)),
        ],
        cards="AS 2D 2C 4H 2D 2S 3C",
    ),
    # BAC-25 to BAC-28: a pair of rank and suit; ten and jack are none.
    "pairs": Story(
        baccarat(),
        [
            bets("ann", ("player_pair", 10), ("either_pair", 10), ("perfect_pair", 10)),
            bets("ben", ("banker_pair", 10), ("either_pair", 10)),
        ],
        cards="AS 2D 4C TH 4C JS KD 6H",
    ),
    # BAC-30: a margin of 9 without a natural.
    "bonus-by-nine": Story(
        baccarat(),
        [
            bets("ann", ("player_bonus", 10), ("player", 100)),
            bets("ben", ("banker_bonus", 10), ("player_natural", 10)),
        ],
        cards="AS 2D KC QH 2D KS 7C TD",
    ),
    # LIM-2: Player and Banker both, up to a difference; one side counts against what is sure.
    "difference": Story(
        baccarat(),
        [
            bets("ann", ("player", 600), comes_to=REFUSED),
            bets("ann", ("player", 500)),
            bets("ann", ("banker", 800), ("banker_no_commission", 201), comes_to=REFUSED),
            bets("ann", ("banker", 800), ("banker_no_commission", 200)),
            takes_back("ann", 2, comes_to=STANDS),
        ],
        cards="AS 2D 3C 5H 4D 2S",
        restrictions=spec_pb2.Restrictions(max_difference_minor=500),
    ),
    # BAC-40, LIM-5: in round 41 the bonuses are closed, pairs and lucky bets are not.
    "closed-side-bets": Story(
        baccarat(),
        [
            bets("ann", ("player_bonus", 10), ("player", 100), comes_to=REFUSED),
            bets("ann", ("player_pair", 10), ("lucky_six", 10)),
        ],
        rounds_before=40,
    ),
}

EZ: dict[str, Story] = {
    # BAC-23, BAC-36: Banker's three-card 7 pushes Banker; Player and Tie lose.
    "dragon": Story(
        baccarat_ez(),
        [
            bets("ann", ("banker", 100), ("dragon_7", 10)),
            bets("ben", ("player", 100), ("tie", 10), ("panda_8", 10)),
        ],
        cards="AS 2D KC 2H 4D 2C 2S 3D",
    ),
    # BAC-37: Player's three-card 8.
    "panda": Story(
        baccarat_ez(),
        [bets("ann", ("player", 100), ("panda_8", 10)), bets("ben", ("banker", 100))],
        cards="AS 2D 2C 7H 2D KS 4C",
    ),
    # BAC-23: with 6 it pays evens, and no commission is taken.
    "banker-six": Story(
        baccarat_ez(),
        [bets("ann", ("banker", 101)), bets("ben", ("dragon_7", 10))],
        cards="AS 2D KC 2H 5D 4C KD",
    ),
    # BAC-41: it offers exactly five bets.
    "refused": Story(
        baccarat_ez(),
        [
            bets("ann", ("banker_no_commission", 100), comes_to=REJECTED),
            bets("ann", ("player_pair", 10), comes_to=REJECTED),
            bets("ann", ("player", 100), ("banker", 100), comes_to=REFUSED),
            bets("ann", ("tie", 10), ("player", 100)),
        ],
        cards="AS 2D 6C 7H KD 9S",
    ),
}
