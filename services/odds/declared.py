"""What a rule set declares of its edges, held against the enumeration."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

from sabot.rules.v1 import rule_set_pb2
from services.games.catalogue import PUBLISHED
from services.odds.enumeration import odds_of
from services.odds.outcomes import text_of


class EdgesWrong(RuntimeError):
    """A rule set of this build declares an edge that is not the enumerated one."""


@lru_cache(maxsize=1)
def require_published() -> None:
    """Refuse to go on where a published rule set declares a wrong edge. Once in a process.

    Raises EdgesWrong."""
    require(published.default for published in PUBLISHED.values())


def require(rule_sets: Iterable[rule_set_pb2.RuleSet]) -> None:
    """Every edge that these declare is the enumerated one. Raises EdgesWrong."""
    for rule_set in rule_sets:
        found = faults(rule_set)
        if found:
            raise EdgesWrong(
                f"rule set {rule_set.rule_set_id} version {rule_set.version}: {'; '.join(found)}"
            )


def edges(rule_set: rule_set_pb2.RuleSet) -> dict[str, Fraction]:
    """The exact edge of each kind of bet in the first round of a fresh shoe. A kind whose positions
    differ in their edge, such as sic bo's totals, has none: one figure would be false for most."""
    found: dict[str, set[Fraction]] = {offer.bet: set() for offer in rule_set.bets}
    for one in odds_of(rule_set):
        found[one.kind].add(one.edge)
    return {bet: min(of_bet) for bet, of_bet in found.items() if len(of_bet) == 1}


def faults(rule_set: rule_set_pb2.RuleSet) -> list[str]:
    """Where a declared edge is not the enumerated one, in words; empty: nowhere. An edge that is
    not declared is no fault: old rule sets declare none."""
    exact = edges(rule_set)
    found: list[str] = []
    for offer in rule_set.bets:
        if not offer.edge:
            continue
        if offer.bet not in exact:
            found.append(f"{offer.bet} declares an edge of {offer.edge}; its positions differ")
        elif offer.edge != text_of(exact[offer.bet]):
            found.append(
                f"{offer.bet} declares an edge of {offer.edge}; "
                f"by enumeration it is {text_of(exact[offer.bet])}"
            )
    return found
