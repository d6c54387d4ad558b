"""From a rule set to the exact odds of its bets: every case is counted, none is simulated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache

from sabot.rules.v1 import rule_set_pb2
from services.games import registry, roulette, sicbo
from services.games.blackjack import SEATS
from services.games.blackjack_bets import FURTHER_STAKES
from services.games.two_cards import Ace
from services.odds import baccarat, blackjack_sides, two_cards
from services.odds.blackjack_main import main_odds
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
    cards at another composition. Raises NotEnumerated, TooFewCards, PayMissing.

    Blackjack's further stakes are told with its main bet; its insurance is left out where no ace is
    left that could bring it."""
    left = composition or fresh(rule_set.decks)
    match rule_set.game:
        case rule_set_pb2.GAME_BACCARAT:
            return _by_deals(rule_set, baccarat.counts(left))
        case rule_set_pb2.GAME_BLACKJACK:
            return _of_blackjack(rule_set, left)
        case rule_set_pb2.GAME_DRAGON_TIGER | rule_set_pb2.GAME_FOOTBALL_STUDIO:
            return _by_deals(rule_set, two_cards.counts(left, _ACES[rule_set.two_cards.ace]))
        case game if game in _PLACES:
            return tuple(one for offer in rule_set.bets for one in _on_layout(rule_set, offer))
        case _:
            raise NotEnumerated(f"no enumeration knows game {rule_set.game}")


def _by_deals(rule_set: rule_set_pb2.RuleSet, counts: Mapping[str, Counts]) -> tuple[BetOdds, ...]:
    return tuple(
        bet_odds(offer, _known(counts, _judged_as(rule_set, offer.bet))) for offer in rule_set.bets
    )


def _of_blackjack(rule_set: rule_set_pb2.RuleSet, left: Composition) -> tuple[BetOdds, ...]:
    counts = blackjack_sides.counts(left)
    found: list[BetOdds] = []
    for offer in rule_set.bets:
        if offer.bet == "main":
            found.append(main_odds(rule_set, left))
        elif offer.bet in counts:
            found.append(bet_odds(offer, counts[offer.bet], positions=SEATS))
        elif offer.bet not in FURTHER_STAKES:
            raise NotEnumerated(f"no enumeration knows the bet {offer.bet}")
    return tuple(found)


def _judged_as(rule_set: rule_set_pb2.RuleSet, bet: str) -> str:
    """Banker is another bet at an EZ table."""
    ez = rule_set.game == rule_set_pb2.GAME_BACCARAT and rule_set.baccarat.ez
    return "banker_ez" if ez and bet == "banker" else bet


def _known(counts: Mapping[str, Counts], bet: str) -> Counts:
    if bet not in counts:
        raise NotEnumerated(f"no enumeration knows the bet {bet}")
    return counts[bet]


def _on_layout(rule_set: rule_set_pb2.RuleSet, offer: rule_set_pb2.BetOffer) -> list[BetOdds]:
    """Over all spins or rolls, which are equally probable."""
    if offer.bet not in _PLACES[rule_set.game]:
        raise NotEnumerated(f"no enumeration knows the bet {offer.bet}")
    return by_position(offer, _by_spins(rule_set.game, rule_set.roulette.la_partage, offer.bet))


@lru_cache(maxsize=64)
def _by_spins(
    game: rule_set_pb2.Game.ValueType, la_partage: bool, bet: str
) -> tuple[tuple[str, Counts], ...]:
    """By position: how many spins or rolls bring each fate; the same whatever is paid."""
    rule_set = rule_set_pb2.RuleSet(
        game=game,
        roulette=rule_set_pb2.RouletteOptions(la_partage=la_partage),
    )
    judges = [registry.judging(rule_set, result) for result in registry.outcomes(rule_set)]
    return tuple(
        (position, Counter(judge(bet, position) for judge in judges))
        for position in _PLACES[game][bet]
    )
