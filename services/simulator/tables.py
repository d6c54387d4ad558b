"""What the tables of a simulation play: every game and variant, with short shoes, short windows and
low limits."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from sabot.rules.v1 import rule_set_pb2
from sabot.table.v1 import spec_pb2
from services.games import catalogue
from services.games.blackjack import Peek
from services.games.money import Rounding

CURRENCY = "EUR"
GAME_NUMBERS = {
    "baccarat": rule_set_pb2.GAME_BACCARAT,
    "blackjack": rule_set_pb2.GAME_BLACKJACK,
    "roulette": rule_set_pb2.GAME_ROULETTE,
    "sicbo": rule_set_pb2.GAME_SICBO,
    "dragon_tiger": rule_set_pb2.GAME_DRAGON_TIGER,
    "football_studio": rule_set_pb2.GAME_FOOTBALL_STUDIO,
}
FLOOR_GAMES = {
    "baccarat": 45,
    "roulette": 20,
    "sicbo": 14,
    "dragon_tiger": 22,
    "football_studio": 10,
    "blackjack": 0,
}
"""The games whose outcomes may be told from the floor, and how often a table plays them there. One
more line opens tables for one more game; what it awaits there, `floor.py` must be able to tell."""
FLOOR = "floor_"
LONG = "long_baccarat"
"""The only table of its seed, whose shoe lasts until side bets are closed (rule BAC-40)."""
GAMES: dict[str, int] = {
    "baccarat": 40,
    "blackjack": 65,
    "roulette": 30,
    "sicbo": 20,
    "dragon_tiger": 20,
    "football_studio": 10,
    LONG: 5,
    **{f"{FLOOR}{name}": often for name, often in FLOOR_GAMES.items()},
}
"""What a table may play, and how often one does: the more there is to it, the more often."""
MIN_MINOR = 10
HIGHS_MINOR = (300, 700)
"""Greatest totals at a place."""
BLACKJACK_CUT_DEPTH = 137
"""The least with which seven seats can always finish (rule BJ-15)."""
LONG_DECKS = 8
SUSPEND_MAX_MS = (0, 150, 400)
"""How long a suspension lasts before it is escalated (rule INC-2); 0: ten minutes."""


class Kind(NamedTuple):
    """What a table plays, and where its outcomes come from."""

    game: int
    """`sabot.rules.v1.Game`."""
    floor: bool

    @property
    def may_move(self) -> bool:
        """Whether its outcomes may come from the floor at one time and be drawn at another."""
        return any(GAME_NUMBERS[name] == self.game for name, often in FLOOR_GAMES.items() if often)


def kind_of(name: str) -> Kind:
    """A name of `GAMES`."""
    if name == LONG:
        return Kind(rule_set_pb2.GAME_BACCARAT, floor=False)
    return Kind(GAME_NUMBERS[name.removeprefix(FLOOR)], name.startswith(FLOOR))


def named(game: str) -> tuple[str, ...]:
    """All of `GAMES` that is one game: drawn, told from the floor, and with a long shoe."""
    return tuple(name for name in GAMES if name == game or name.endswith(f"_{game}"))


def drawn_games(rng: random.Random, among: Sequence[str]) -> list[str]:
    """The games of a seed's tables, of those named; none named: of all."""
    names = among or list(GAMES)
    tables = rng.choice((1, 2, 2, 3))
    found = rng.choices(names, [GAMES[name] or int(bool(among)) for name in names], k=tables)
    return [LONG] if LONG in found[:1] else [name for name in found if name != LONG]


def table_spec(
    rng: random.Random, table_id: str, kind: Kind, *, timed: bool, lasting: bool = False
) -> spec_pb2.TableSpec:
    """What governs a table of a game, this time. `lasting`: with a shoe of many rounds."""
    game = kind.game
    rules = _rule_set(rng, game, lasting=lasting)
    high, step = rng.choice(HIGHS_MINOR), rng.choice((1, 1, 1, 5))
    return spec_pb2.TableSpec(
        table_id=table_id,
        currency_code=CURRENCY,
        rule_set=rules,
        limits=[
            spec_pb2.BetLimit(bet=offer.bet, min_minor=MIN_MINOR, max_minor=high, step_minor=step)
            for offer in rules.bets
        ],
        pacing=spec_pb2.Pacing(
            betting_window_ms=rng.randint(200, 450) if timed else 0,
            pause_ms=rng.randint(20, 80),
            action_ms=rng.choice((80, 200)),
            suspend_max_ms=rng.choice(SUSPEND_MAX_MS),
        ),
        origin=(
            spec_pb2.OUTCOME_ORIGIN_FLOOR if kind.floor else spec_pb2.OUTCOME_ORIGIN_UNSPECIFIED
        ),
        restrictions=_restrictions(rng, game),
        timeout_policy=rng.choice(
            (spec_pb2.TIMEOUT_POLICY_STAND, spec_pb2.TIMEOUT_POLICY_BASIC_STRATEGY)
        ),
    )


def _rule_set(rng: random.Random, game: int, *, lasting: bool) -> rule_set_pb2.RuleSet:
    rounding = rng.choice(
        (Rounding.DOWN, Rounding.DOWN, Rounding.DOWN, Rounding.HALF_EVEN, Rounding.HALF_UP)
    )
    match game:
        case rule_set_pb2.GAME_BACCARAT:
            return _baccarat(rng, rounding, lasting=lasting)
        case rule_set_pb2.GAME_BLACKJACK:
            return catalogue.blackjack(
                peek=rng.choice(tuple(Peek)), doubles=rng.random() < 0.9,
                one_card_on_split_aces=rng.random() < 0.7, rounding=rounding,
                decks=rng.choice((3, 4)), cut_depth=BLACKJACK_CUT_DEPTH,
            )  # fmt: skip
        case rule_set_pb2.GAME_ROULETTE:
            return catalogue.roulette(rounding=rounding, la_partage=rng.random() < 0.5)
        case rule_set_pb2.GAME_SICBO:
            return catalogue.sicbo(rng.choice(("atlantic_city", "macau")), rounding=rounding)
        case rule_set_pb2.GAME_DRAGON_TIGER:
            return catalogue.dragon_tiger(
                tie_pays=rng.choice((11, 11, 8)), ace_high=rng.random() < 0.2, rounding=rounding,
                decks=rng.choice((1, 4)), cut_depth=rng.choice((7, 20)),
            )  # fmt: skip
        case _:
            return catalogue.football_studio(
                ace_high=rng.random() < 0.7, rounding=rounding, decks=rng.choice((1, 4)),
                cut_depth=rng.choice((7, 20)),
            )  # fmt: skip


def _baccarat(rng: random.Random, rounding: Rounding, *, lasting: bool) -> rule_set_pb2.RuleSet:
    """The first version is still offered; where the cut card lies deep, a round may follow it."""
    cut_depth = rng.choice((7, 20))
    after = int(cut_depth == 20 and rng.random() < 0.5)
    tie_pays = rng.choice((8, 8, 9))
    if lasting:
        return catalogue.baccarat(tie_pays=tie_pays, rounding=rounding, decks=LONG_DECKS)
    variants = (catalogue.baccarat_1, catalogue.baccarat, catalogue.baccarat, catalogue.baccarat_ez)
    return rng.choice(variants)(
        tie_pays=tie_pays, rounding=rounding, decks=1, cut_depth=cut_depth, rounds_after_cut=after
    )


def _restrictions(rng: random.Random, game: int) -> spec_pb2.Restrictions | None:
    """Half of the tables keep the defaults."""
    if rng.random() < 0.5:
        return None
    asked = spec_pb2.Restrictions(
        max_account_minor=rng.choice((0, 250, 500)),
        max_exposure_minor=rng.choice((0, 1_500, 6_000)),
    )
    if game == rule_set_pb2.GAME_BACCARAT:
        asked.max_difference_minor = rng.choice((0, 60, 150))
    elif game == rule_set_pb2.GAME_ROULETTE:
        asked.max_numbers = rng.choice((0, 18, 30))
    return asked
