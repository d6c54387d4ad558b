"""`sabot odds`: what every bet of a game returns, exactly."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sabot.rules.v1 import rule_set_pb2
from services.games import catalogue
from services.games.blackjack import Peek
from services.games.rule_set_faults import MAX_DECKS, MAX_PAYS
from services.games.sicbo import PAYTABLES
from services.odds.compositions import Composition, fresh
from services.odds.enumeration import has_cards, odds_of
from services.odds.outcomes import BetOdds, per_cent, text_of


class OddsRefused(ValueError):
    """The question has no answer; the message says why."""


@dataclass(frozen=True, slots=True)
class Game:
    """A game, and the words that choose its rules."""

    build: Callable[..., rule_set_pb2.RuleSet]
    words: dict[str, dict[str, Any]]
    """By word: what it changes."""
    numbers: tuple[str, ...] = ()
    """Words that a number follows: `tie` for `tie_8`."""


def _baccarat(*, ez: bool = False, **options: Any) -> rule_set_pb2.RuleSet:
    return catalogue.baccarat_ez(**options) if ez else catalogue.baccarat(**options)


GAMES = {
    "baccarat": Game(_baccarat, {"ez": {"ez": True}}, ("tie", "decks")),
    "blackjack": Game(
        catalogue.blackjack,
        {
            **{peek.name.lower(): {"peek": peek} for peek in Peek},
            "no_doubles": {"doubles": False},
            "split_aces_play": {"one_card_on_split_aces": False},
        },
        ("decks",),
    ),
    "roulette": Game(catalogue.roulette, {"la_partage": {"la_partage": True}}),
    "sicbo": Game(catalogue.sicbo, {paytable: {"paytable": paytable} for paytable in PAYTABLES}),
    "dragon_tiger": Game(
        catalogue.dragon_tiger, {"ace_high": {"ace_high": True}}, ("tie", "decks")
    ),
    "football_studio": Game(
        catalogue.football_studio, {"ace_low": {"ace_high": False}}, ("decks",)
    ),
}
_NUMBERS: dict[str, tuple[str, int]] = {
    "tie": ("tie_pays", MAX_PAYS),
    "decks": ("decks", MAX_DECKS),
}
"""What a word with a number sets, and the greatest one."""


def rules_of(game: str, rules: str) -> tuple[rule_set_pb2.RuleSet, str]:
    """A rule set of a game by the words that choose it, separated by commas or spaces, and how it
    is called: by its id, then the words that are not in it. Raises OddsRefused."""
    found = GAMES.get(game)
    if found is None:
        raise OddsRefused(f"the games are {', '.join(GAMES)}")
    options: dict[str, Any] = {}
    told = [word for word in _split(rules) if word != game]
    for word in told:
        option = _option(found, word.removeprefix(f"{game}_"))
        if any(options.get(name, value) != value for name, value in option.items()):
            raise OddsRefused(f"{word!r} contradicts a word before it")
        options |= option
    rule_set = found.build(**options)
    beside = [word for word in told if not f"_{rule_set.rule_set_id}".endswith(f"_{word}")]
    return rule_set, " ".join([rule_set.rule_set_id, *beside])


def _option(game: Game, word: str) -> dict[str, Any]:
    if word in game.words:
        return game.words[word]
    name, _, digits = word.rpartition("_")
    if name in game.numbers and digits.isascii() and digits.isdigit():
        option, most = _NUMBERS[name]
        if len(digits) <= len(str(most)) and 1 <= int(digits) <= most:
            return {option: int(digits)}
    words = [*game.words, *(f"{one}_1 to {one}_{_NUMBERS[one][1]}" for one in game.numbers)]
    raise OddsRefused(f"no rules {word!r}; there are {', '.join(words)}")


def seen_of(rule_set: rule_set_pb2.RuleSet, seen: str) -> Composition:
    """What is left of a shoe once these cards were seen. Raises OddsRefused, CardImpossible."""
    if not has_cards(rule_set):
        raise OddsRefused("the game has no cards to be seen")
    return fresh(rule_set.decks).without(_split(seen))


def _split(words: str) -> list[str]:
    return [word for word in re.split(r"[,\s]+", words) if word]


def as_json(game: str, rules: str, told: Iterable[BetOdds]) -> dict[str, Any]:
    """For programs. Every fraction is `n/d` in lowest terms, whole numbers too."""
    return {
        "game": game,
        "rules": rules,
        "bets": [
            {
                "bet": one.bet,
                "outcomes": [
                    {
                        "name": outcome.name,
                        "pays": text_of(outcome.pays),
                        "probability": text_of(outcome.probability),
                    }
                    for outcome in one.outcomes
                ],
                "rtp": text_of(one.rtp),
                "edge": text_of(one.edge),
            }
            for one in told
        ],
    }


def lines(rules: str, cards_left: int | None, told: Sequence[BetOdds]) -> list[str]:
    """For people: a line for each bet, and its outcomes below it."""
    where = f", {cards_left} cards left" if cards_left is not None else ""
    rows = [(f"{rules}{where}", "positions", "return %", "edge %")]
    for one in told:
        rows.append((one.bet, str(one.positions), per_cent(one.rtp), per_cent(one.edge)))
        rows.extend(
            (f"  {outcome.name} {_pays(outcome.pays)}", "", per_cent(outcome.probability), "")
            for outcome in one.outcomes
        )
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _pays(profit: Fraction) -> str:
    """Whole and simple profits as they are; the mean of a split in decimals."""
    if profit.denominator <= MAX_PLAIN_DENOMINATOR:
        return f"{profit.numerator}:{profit.denominator}"
    return f"{per_cent(profit / 100)}:1"


MAX_PLAIN_DENOMINATOR = 1000
"""Commissions and halves are told as they are; what is a mean of many outcomes is not."""


def exact(
    game: str, rules: str, seen: str | None
) -> tuple[str, Composition | None, tuple[BetOdds, ...]]:
    """The odds of a game, under what rules, and what is left of the shoe where cards were seen.
    Raises OddsRefused, CardImpossible, TooFewCards."""
    rule_set, name = rules_of(game, rules)
    left = None if seen is None else seen_of(rule_set, seen)
    return name, left, odds_of(rule_set, left)
