"""Rule sets whose odds are asked, and the plain way to the same odds: every deal, card by card."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import permutations

from sabot.rules.v1 import rule_set_pb2
from services.games.baccarat import Side, next_draw
from services.games.baccarat_bets import JUDGES, PAYS, Dealt, dealt, judge
from services.games.bets import Judged, Pays
from services.games.cards import CARDS
from services.games.odds import NO_COMMISSION, Odds
from services.odds.compositions import Composition, fresh
from services.odds.outcomes import BetOdds

FIVE_PER_CENT = Odds(1, 20)


def odds(of: Odds) -> rule_set_pb2.Odds:
    return rule_set_pb2.Odds(numerator=of.numerator, denominator=of.denominator)


def offer(bet: str, pays: Pays, commission: Odds = NO_COMMISSION) -> rule_set_pb2.BetOffer:
    made = rule_set_pb2.BetOffer(bet=bet)
    if isinstance(pays, dict):
        made.lines.extend(
            rule_set_pb2.PayLine(line=line, pays=odds(one)) for line, one in pays.items()
        )
    else:
        made.pays.CopyFrom(odds(pays))
    if commission.numerator:
        made.commission.CopyFrom(odds(commission))
    return made


def offers(pays: Mapping[str, Pays]) -> list[rule_set_pb2.BetOffer]:
    return [offer(bet, one) for bet, one in sorted(pays.items())]


def baccarat() -> rule_set_pb2.RuleSet:
    """Every bet of baccarat at once."""
    bets = {bet: pays for bet, pays in PAYS.items() if bet != "banker_ez"}
    return rule_set_pb2.RuleSet(
        game=rule_set_pb2.GAME_BACCARAT,
        decks=8,
        bets=[
            offer(bet, pays, FIVE_PER_CENT if bet == "banker" else NO_COMMISSION)
            for bet, pays in sorted(bets.items())
        ],
    )


def baccarat_ez() -> rule_set_pb2.RuleSet:
    bets = ("banker", "dragon_7", "panda_8", "player", "tie")
    return rule_set_pb2.RuleSet(
        game=rule_set_pb2.GAME_BACCARAT,
        decks=8,
        bets=[offer(bet, PAYS[bet]) for bet in bets],
        baccarat=rule_set_pb2.BaccaratOptions(ez=True),
    )


def of_cards(cards: Sequence[str]) -> Composition:
    """A pack of these cards."""
    held = Counter(cards)
    return Composition(tuple(held[card] for card in CARDS))


def cards_of(composition: Composition) -> list[str]:
    """The cards of a pack."""
    pairs = zip(CARDS, composition.counts, strict=True)
    return [card for card, copies in pairs for _ in range(copies)]


def some_cards(cards: int, seed: int) -> Composition:
    """So many cards of eight decks, by chance."""
    pack = cards_of(fresh(8))
    random.Random(seed).shuffle(pack)
    return of_cards(pack[:cards])


def played(cards: Sequence[str]) -> Dealt:
    """A round of baccarat from the front of these cards."""
    left = list(cards)
    hands: dict[Side, list[str]] = {Side.PLAYER: [], Side.BANKER: []}
    while draw := next_draw(hands[Side.PLAYER], hands[Side.BANKER]):
        for side in draw:
            hands[side].append(left.pop(0))
    return dealt(hands[Side.PLAYER], hands[Side.BANKER])


def baccarat_by_hand(cards: Sequence[str]) -> dict[str, dict[Judged, Fraction]]:
    """Each bet's fates by every order of the first six of these cards."""
    found: dict[str, Counter[Judged]] = {bet: Counter() for bet in JUDGES}
    orders = 0
    for order in permutations(cards, 6):
        orders += 1
        hands = played(order)
        for bet, fates in found.items():
            fates[judge(bet, hands)] += 1
    return {
        bet: {fate: Fraction(count, orders) for fate, count in fates.items()}
        for bet, fates in found.items()
    }


def by_bet(told: Sequence[BetOdds]) -> dict[str, BetOdds]:
    return {one.bet: one for one in told}
