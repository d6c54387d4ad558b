"""What a language must have words for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sabot.rules.v1 import rule_set_pb2


class BetWords(NamedTuple):
    """A kind of bet."""

    name: str
    wins: str
    """When it wins, and when it is neither won nor lost."""


@dataclass(frozen=True, slots=True)
class Words:
    """One language."""

    language: str
    titles: Mapping[str, str]
    """By rule-set id."""
    play: Mapping[int, Callable[[rule_set_pb2.RuleSet], list[str]]]
    """How a game goes, by `sabot.rules.v1.Game`: one paragraph each."""
    bets: Mapping[int, Mapping[str, BetWords]]
    """By game and bet."""
    lines: Mapping[str, str]
    """Ways of winning, by pay line; totals of sic bo come from `total`."""
    total: str
    """Of a sic bo total: a text with `{total}`."""
    columns: tuple[str, str, str, str, str]
    """Headings: bet, wins, pays, last round, return."""
    always: str
    to_one: str
    """Odds: a text with `{numerator}` and `{denominator}`."""
    commission: str
    """A text with `{share}`."""
    roundings: Mapping[int, str]
    """What happens to fractions, by `sabot.rules.v1.Rounding`."""
    highest: str
    """The highest return: a text with `{bet}` and `{share}`, and without its full stop."""
    in_fresh_shoe: str
    """What is added to it where the game has a shoe."""
    version: str
    """A text with `{rule_set_id}`, `{version}` and `{hash}`."""
    how: str
    paytable: str
    """Headings of the two parts."""
    prevails: str
    """That English prevails; empty in English (rule VIS-6)."""
