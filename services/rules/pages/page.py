"""The page of a rule set: generated from what it holds, so that it cannot say anything else."""

from __future__ import annotations

from fractions import Fraction

from sabot.rules.v1 import rule_set_pb2
from services.games.rule_sets import commission_of, lines_of
from services.rules.pages.english import ENGLISH
from services.rules.pages.french import FRENCH
from services.rules.pages.words import Words

WORDS = {words.language: words for words in (ENGLISH, FRENCH)}
"""By language."""


def page(rule_set: rule_set_pb2.RuleSet, language: str = ENGLISH.language) -> str:
    """A rule set in Markdown. The language is one of `WORDS`."""
    words = WORDS[language]
    parts = [
        f"# {words.titles[rule_set.rule_set_id]}",
        *([words.prevails] if words.prevails else []),
        f"## {words.how}",
        *words.play[rule_set.game](rule_set),
        words.roundings[rule_set.rounding],
        f"## {words.paytable}",
        "\n".join(_table(rule_set, words)),
        *_highest(rule_set, words),
        words.version.format(
            rule_set_id=rule_set.rule_set_id, version=rule_set.version, hash=rule_set.hash.hex()
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _table(rule_set: rule_set_pb2.RuleSet, words: Words) -> list[str]:
    """One row a bet; the columns of closing rounds and returns only where there is one."""
    rounds = any(offer.until_round for offer in rule_set.bets)
    bet, wins, pays, last, share = words.columns
    rows = [[bet, wins, pays, *([last] if rounds else []), share]]
    rows.append(["---"] * len(rows[0]))
    for offer in rule_set.bets:
        known = words.bets[rule_set.game][offer.bet]
        until = str(offer.until_round) if offer.until_round else words.always
        rows.append(
            [
                f"{known.name} (`{offer.bet}`)",
                known.wins,
                _pays(offer, words),
                *([until] if rounds else []),
                percent(returned(offer)) if offer.edge else "-",
            ]
        )
    return [f"| {' | '.join(row)} |" for row in rows]


def _pays(offer: rule_set_pb2.BetOffer, words: Words) -> str:
    told: list[str] = []
    for line, odds in lines_of(offer).items():
        text = words.to_one.format(numerator=odds.numerator, denominator=odds.denominator)
        told.append(f"{line_name(line, words)} {text}" if line else text)
    commission = commission_of(offer)
    if commission.numerator:
        told.append(words.commission.format(share=percent(Fraction(*commission), 0)))
    return "; ".join(told)


def line_name(line: str, words: Words) -> str:
    """A way of winning, in words."""
    if line.startswith("total_"):
        return words.total.format(total=int(line.removeprefix("total_")))
    return words.lines[line]


def returned(offer: rule_set_pb2.BetOffer) -> Fraction:
    """What a bet returns on average, of its stake; it has a declared edge."""
    return 1 - Fraction(offer.edge)


def percent(share: Fraction, digits: int = 4) -> str:
    """A share as a percentage, rounded half up to so many digits."""
    scale = 10**digits
    scaled = (share * 100 * scale + Fraction(1, 2)).__floor__()
    whole, rest = divmod(scaled, scale)
    return f"{whole}.{rest:0{digits}} %" if digits else f"{whole} %"


def _highest(rule_set: rule_set_pb2.RuleSet, words: Words) -> list[str]:
    """The bet with the highest return (rules BAC-43, VIS-5)."""
    declared = [offer for offer in rule_set.bets if offer.edge]
    if not declared:
        return []
    best = max(declared, key=returned)
    name = words.bets[rule_set.game][best.bet].name
    when = words.in_fresh_shoe if rule_set.decks else ""
    return [f"{words.highest.format(bet=name, share=percent(returned(best)))}{when}."]
