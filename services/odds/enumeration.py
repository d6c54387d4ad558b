"""From a rule set to the exact odds of its bets: every case is counted, none is simulated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from sabot.rules.v1 import rule_set_pb2
from services.games import registry, roulette, sicbo
from services.games.two_cards import Ace
from services.odds import baccarat, two_cards
from services.odds.compositions import Composition, fresh
from services.odds.outcomes import BetOdds, Counts, bet_odds, by_position

_PLACES: dict[int, Mapping[str, Iterable[str]]] = {
    rule_set_pb2.GAME_ROULETTE: roulette.PLACES,
    rule_set_pb2.GAME_SICBO: sicbo.PLACES,
}
"""The layouts of the games without cards."""
_ACES = {rule_set_pb2.ACE_RANK_LOW: Ace.LOW, rule_set_pb2.ACE_RANK_HIGH: Ace.HIGH}


class NotEnumerated(ValueError):
    """A game or a bet that no enumeration knows."""


def has_cards(rule_set: rule_set_pb2.RuleSet) -> bool:
    """Whether its odds depend on what is left of a shoe."""
    return rule_set.game not in _PLACES


def odds_of(
    rule_set: rule_set_pb2.RuleSet, composition: Composition | None = None
) -> tuple[BetOdds, ...]:
    """The odds of every bet of a rule set, in its order: in the first round of a fresh shoe, or for
    cards at another composition. Raises NotEnumerated, TooFewCards, PayMissing."""
    places = _PLACES.get(rule_set.game)
    if places is not None:
        return tuple(one for offer in rule_set.bets for one in _on_layout(rule_set, offer, places))
    counts = _by_cards(rule_set, composition or fresh(rule_set.decks))
    return tuple(
        bet_odds(offer, _known(counts, _judged_as(rule_set, offer.bet))) for offer in rule_set.bets
    )


def _by_cards(rule_set: rule_set_pb2.RuleSet, composition: Composition) -> Mapping[str, Counts]:
    """In how many deals each bet of a game meets each fate."""
    match rule_set.game:
        case rule_set_pb2.GAME_BACCARAT:
            return baccarat.counts(composition)
        case rule_set_pb2.GAME_DRAGON_TIGER | rule_set_pb2.GAME_FOOTBALL_STUDIO:
            return two_cards.counts(composition, _ACES[rule_set.two_cards.ace])
        case _:
            raise NotEnumerated(f"no enumeration knows game {rule_set.game}")


def _judged_as(rule_set: rule_set_pb2.RuleSet, bet: str) -> str:
    """Banker is another bet at an EZ table."""
    ez = rule_set.game == rule_set_pb2.GAME_BACCARAT and rule_set.baccarat.ez
    return "banker_ez" if ez and bet == "banker" else bet


def _known(counts: Mapping[str, Counts], bet: str) -> Counts:
    if bet not in counts:
        raise NotEnumerated(f"no enumeration knows the bet {bet}")
    return counts[bet]


def _on_layout(
    rule_set: rule_set_pb2.RuleSet,
    offer: rule_set_pb2.BetOffer,
    places: Mapping[str, Iterable[str]],
) -> list[BetOdds]:
    """Over all spins or rolls, which are equally probable."""
    if offer.bet not in places:
        raise NotEnumerated(f"no enumeration knows the bet {offer.bet}")
    judges = [registry.judging(rule_set, result) for result in registry.outcomes(rule_set)]
    return by_position(
        offer,
        [
            (position, Counter(judge(offer.bet, position) for judge in judges))
            for position in places[offer.bet]
        ],
    )
