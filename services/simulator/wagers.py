"""What simulated players bet at each game: all bets at all places, and what no table should
take."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sabot.rules.v1 import rule_set_pb2
from services.games import roulette, sicbo

STAKES_MINOR = (10, 11, 15, 37, 50, 99, 120)
CHIPS_MINOR = (10, 11, 25)
BANKERS = ("banker", "banker_no_commission")
ANNOUNCED_CHIPS = {"voisins": 9, "tiers": 6, "orphelins": 5, "jeu_zero": 4}


class Wager(NamedTuple):
    """A bet to ask for."""

    bet: str
    stake_minor: int
    position: str = ""


Wagers = list[Wager]


def plain(rng: random.Random, rule_set: rule_set_pb2.RuleSet, stake_minor: int) -> Wager:
    """A bet that the game always offers, with this stake."""
    match rule_set.game:
        case rule_set_pb2.GAME_BACCARAT:
            return Wager(rng.choice(("banker", "player", "tie")), stake_minor)
        case rule_set_pb2.GAME_BLACKJACK:
            return Wager("main", stake_minor, str(rng.randint(1, 7)))
        case rule_set_pb2.GAME_ROULETTE:
            return Wager(rng.choice(("red", "low", "odd")), stake_minor)
        case rule_set_pb2.GAME_SICBO:
            return Wager(rng.choice(("big", "odd", "any_triple")), stake_minor)
        case rule_set_pb2.GAME_DRAGON_TIGER:
            return Wager(rng.choice(("dragon", "tie", "suited_tie")), stake_minor)
        case _:
            return Wager(rng.choice(("home", "draw")), stake_minor)


def raced(rng: random.Random, rule_set: rule_set_pb2.RuleSet) -> tuple[Wager, Wager]:
    """A bet that is much for an account, and one that may stand only on top of it: a raise, or the
    other side within the greatest difference (rule LIM-2)."""
    if rule_set.game == rule_set_pb2.GAME_BACCARAT and rng.random() < 0.4:
        stake = rng.choice((55, 120, 140))
        return Wager("player", stake), Wager("banker", 2 * stake)
    big = plain(rng, rule_set, rng.randint(200, 290))
    return big, big._replace(stake_minor=rng.randint(1, 9))


def usual(rng: random.Random, rule_set: rule_set_pb2.RuleSet) -> Wagers:
    """What a player bets as a rule: mostly what the table takes."""
    match rule_set.game:
        case rule_set_pb2.GAME_BACCARAT:
            return _baccarat(rng, rule_set)
        case rule_set_pb2.GAME_BLACKJACK:
            return _blackjack(rng)
        case rule_set_pb2.GAME_ROULETTE:
            return _roulette(rng)
        case rule_set_pb2.GAME_SICBO:
            return _sicbo(rng)
        case rule_set_pb2.GAME_DRAGON_TIGER:
            return _some(rng, ("dragon", "tiger"), ("tie", "suited_tie"))
        case _:
            return _some(rng, ("home", "away"), ("draw",))


def _stake(rng: random.Random) -> int:
    return rng.choice(STAKES_MINOR)


def _some(rng: random.Random, sides: Sequence[str], more: Sequence[str]) -> Wagers:
    """One of the sides, further bets, or both."""
    found = [Wager(rng.choice(sides), _stake(rng))] if rng.random() < 0.7 else []
    if not found or rng.random() < 0.6:
        chosen = rng.sample(more, rng.randint(1, min(2, len(more))))
        found.extend(Wager(bet, _stake(rng)) for bet in chosen)
    return found


def _baccarat(rng: random.Random, rule_set: rule_set_pb2.RuleSet) -> Wagers:
    offered = [offer.bet for offer in rule_set.bets]
    sides = ["player", *(bet for bet in BANKERS if bet in offered)]
    return _some(rng, sides, [bet for bet in offered if bet not in sides])


def _blackjack(rng: random.Random) -> Wagers:
    """At one seat or two, often with side bets, sometimes with those alone (rule BJ-11)."""
    found: Wagers = []
    for seat in rng.sample(range(1, 8), rng.choice((1, 1, 1, 2))):
        if rng.random() < 0.9:
            found.append(Wager("main", _stake(rng), str(seat)))
        if not found or rng.random() < 0.3:
            bet = rng.choice(("perfect_pairs", "21_plus_3"))
            found.append(Wager(bet, _stake(rng), str(seat)))
    return found


def _roulette(rng: random.Random) -> Wagers:
    if rng.random() < 0.25:
        return [_announced(rng)]
    kinds = rng.sample(list(roulette.PLACES), rng.randint(1, 3))
    return [Wager(bet, _stake(rng), _asked_at(rng, bet)) for bet in kinds]


def _asked_at(rng: random.Random, bet: str) -> str:
    """A place of this bet, its numbers sometimes in another order."""
    position = rng.choice(list(roulette.PLACES[bet]))
    numbers = position.split("-")
    rng.shuffle(numbers)
    return "-".join(numbers) if rng.random() < 0.3 else position


def _announced(rng: random.Random) -> Wager:
    if rng.random() < 0.4:
        reach = rng.randint(1, 9)
        place = f"{rng.choice(roulette.NUMBERS)}-{reach}"
        return Wager("neighbours", (2 * reach + 1) * rng.choice(CHIPS_MINOR), place)
    bet = rng.choice(list(ANNOUNCED_CHIPS))
    return Wager(bet, ANNOUNCED_CHIPS[bet] * rng.choice(CHIPS_MINOR))


def _sicbo(rng: random.Random) -> Wagers:
    kinds = rng.sample(("big", "small", "odd", "even", *sicbo.PLACES), rng.randint(1, 3))
    return [Wager(bet, _stake(rng), rng.choice(sicbo.PLACES[bet])) for bet in dict.fromkeys(kinds)]


# ---- what no table takes -----------------------------------------------------------------------


def over_limits(rng: random.Random, rule_set: rule_set_pb2.RuleSet) -> Wagers:
    """What breaks a limit or a restriction, by itself or with what is on."""
    one = plain(rng, rule_set, 5_000)
    return rng.choice(
        (
            [one],
            [one._replace(stake_minor=1)],
            [one._replace(stake_minor=4), *_opposite(rng, rule_set)],
            _opposite(rng, rule_set),
            _opposite(rng, rule_set),
            _a_lot(rng, rule_set),
        )
    )


_OPPOSITE = {
    rule_set_pb2.GAME_BACCARAT: (("player", "banker"),),
    rule_set_pb2.GAME_SICBO: (("big", "small"), ("odd", "even")),
    rule_set_pb2.GAME_DRAGON_TIGER: (("dragon", "tiger"),),
    rule_set_pb2.GAME_FOOTBALL_STUDIO: (("home", "away"),),
}


def _opposite(rng: random.Random, rule_set: rule_set_pb2.RuleSet) -> Wagers:
    """Both sides (rule LIM-1); at roulette most of the numbers (rule LIM-3), at blackjack a side
    bet without its main bet (rule BJ-11)."""
    if rule_set.game == rule_set_pb2.GAME_ROULETTE:
        return _coverage(rng)
    if rule_set.game == rule_set_pb2.GAME_BLACKJACK:
        return [Wager("21_plus_3", _stake(rng), str(rng.randint(1, 7)))]
    one, other = rng.choice(_OPPOSITE[rule_set.game])
    stake = _stake(rng)
    return [Wager(one, stake), Wager(other, stake + rng.choice((0, 0, 30, 80)))]


def _coverage(rng: random.Random) -> Wagers:
    """From 12 numbers to 37, so that two requests together may be what neither is alone."""
    dozens = [Wager("dozen", 10, str(index)) for index in (1, 2, 3)]
    further = [Wager("straight", 10, str(number)) for number in rng.sample(range(25, 37), 11)]
    return rng.choice(
        (
            dozens,
            [*dozens[:2], *further[: rng.randint(8, 11)]],
            dozens[:2],
            [dozens[2]],
            [Wager("red", 10), Wager("black", 10)],
            [Wager("even", 10), Wager("neighbours", 190, f"{rng.randint(0, 36)}-9")],
        )
    )


def _a_lot(rng: random.Random, rule_set: rule_set_pb2.RuleSet) -> Wagers:
    """More than an account or a table may have on in a round, sometimes."""
    found: dict[tuple[str, str], Wager] = {}
    for _ in range(4):
        for one in usual(rng, rule_set):
            if one.bet in ANNOUNCED_CHIPS or one.bet == "neighbours":
                continue
            found[one.bet, one.position] = one._replace(stake_minor=rng.choice((120, 180)))
    return list(found.values())


def nonsense(rng: random.Random, rule_set: rule_set_pb2.RuleSet) -> tuple[str, Wagers]:
    """What is no bet of this table, and what that is called."""
    what, make = rng.choice(_NONSENSE)
    return what, make(rng, rule_set)


def _unknown(rng: random.Random, rule_set: rule_set_pb2.RuleSet) -> Wagers:
    """A bet of another game, or of none."""
    own = {offer.bet for offer in rule_set.bets}
    others = ("lucky_six", "dragon_7", "red", "dragon", "home", "big", "voisins_", "main")
    one = Wager(rng.choice([bet for bet in others if bet not in own]), 20)
    return [plain(rng, rule_set, 20), one] if rng.random() < 0.5 else [one]


_OFF_LAYOUT = {
    rule_set_pb2.GAME_ROULETTE: (
        ("split", "1-5"), ("split", "3-4"), ("split", "0-4"), ("split", "36-37"),
        ("street", "2-3-4"), ("corner", "3-4-6-7"), ("trio", "0-1-3"), ("six_line", "2-3-4-5-6-7"),
        ("straight", "37"), ("straight", "07"), ("straight", ""), ("dozen", "4"), ("column", "0"),
        ("first_four", "0-1-2-3-4"), ("red", "1"), ("neighbours", "5-10"), ("neighbours", "37-2"),
        ("voisins", "1"),
    ),
    rule_set_pb2.GAME_BLACKJACK: (
        ("main", ""), ("main", "0"), ("main", "8"), ("perfect_pairs", "1-2"), ("double", "1"),
        ("insurance", "2"),
    ),
    rule_set_pb2.GAME_SICBO: (
        ("single", "7"), ("double", "0"), ("triple", ""), ("total", "3"), ("total", "18"),
        ("combination", "3-3"), ("combination", "2"), ("big", "11"), ("any_triple", "2"),
    ),
}  # fmt: skip


def _off_layout(rng: random.Random, rule_set: rule_set_pb2.RuleSet) -> Wagers:
    """A place that the layout does not have (rule ROU-3)."""
    places = _OFF_LAYOUT.get(rule_set.game)
    if places is None:
        return [plain(rng, rule_set, 20)._replace(position=str(rng.randint(1, 9)))]
    bet, position = rng.choice(places)
    return [plain(rng, rule_set, 20), Wager(bet, 20 * 9, position)]


def _broken_chips(rng: random.Random, rule_set: rule_set_pb2.RuleSet) -> Wagers:
    """An announced bet whose stake is no whole multiple of its chips (rule ROU-4)."""
    if rule_set.game != rule_set_pb2.GAME_ROULETTE:
        return _unknown(rng, rule_set)
    one = _announced(rng)
    return [one._replace(stake_minor=one.stake_minor + 1)]


_NONSENSE: Sequence[tuple[str, Callable[[random.Random, rule_set_pb2.RuleSet], Wagers]]] = (
    ("a bet that is not offered", _unknown),
    ("a place that is not on the layout", _off_layout),
    ("no whole chips", _broken_chips),
)
