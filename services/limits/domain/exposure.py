"""What the house may have to pay in a round, outcome by outcome (rule LIM-4).

The exposure of a round is the greatest sum of winnings that any of its outcomes brings, over all
accounts. Winnings are what a bet pays above its own stake; the stakes of the bets that lose do not
count against them. So every bet adds to an exposure or leaves it as it is, and a bet that is
declined or goes back can never raise it.

- Roulette, sic bo, dragon tiger, football studio: every outcome, so the exposure is exact.
- Baccarat: rounds come down to a few classes, in each of which every bet wins by one line or not at
  all; those that pay no bet more than another class does are left out. Exact too, for a shoe that
  still has the cards.
- Blackjack: one sum for the whole round, an upper bound. Each main bet adds what its seat may win
  at most (rules BJ-3, BJ-6 to BJ-8): with a blackjack, by a double or a split of the same stake, or
  by insurance, which wins only where the rest does not. So a further stake adds nothing of its own
  when it comes. Each side bet adds its best line. One seat can come to its sum; that all do at once
  takes more equal cards than a shoe may have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import lcm
from operator import ge

from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2 as rule_sets
from services.games.baccarat import Side, Winner, next_draw
from services.games.baccarat_bets import dealt
from services.games.blackjack_bets import FURTHER_STAKES
from services.games.money import Rounding, Verdict, settled
from services.games.odds import NO_COMMISSION, Odds, after_commission
from services.games.registry import Judging, judging, outcomes
from services.games.rule_sets import commission_of, line_of, lines_of, rounding_of

KNOWN_RULE_SETS = 64
"""Rule sets whose outcomes are kept at hand: more than differ at the tables of a cell."""

RANK_OF_VALUE = "KA23456789"
"""A rank of each value of baccarat."""
_WINNERS = {
    Winner.PLAYER: rules.BACCARAT_WINNER_PLAYER,
    Winner.BANKER: rules.BACCARAT_WINNER_BANKER,
    Winner.TIE: rules.BACCARAT_WINNER_TIE,
}
PLAIN_WIN = "win"
"""The line of blackjack's main bet by which a doubled or split hand wins (rule BJ-7)."""

Cards = tuple[str, ...]
Winnings = Callable[[str, str, int], Sequence[tuple[int, int]]]
"""From (bet, position, stake in minor units) to what it wins: (outcome, minor units)."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The outcomes of a rule set's rounds, numbered from 0."""

    count: int
    winnings: Winnings


def outcomes_of(rule_set: rule_sets.RuleSet) -> Outcomes:
    """The outcomes that exposures under this rule set are counted by. Their numbers stand in
    states: to number them otherwise is another schema."""
    return _outcomes(rule_set.SerializeToString(deterministic=True))


@lru_cache(maxsize=KNOWN_RULE_SETS)
def _outcomes(raw: bytes) -> Outcomes:
    rule_set = rule_sets.RuleSet.FromString(raw)
    match rule_set.game:
        case rule_sets.GAME_BLACKJACK:
            return Outcomes(1, _blackjack(rule_set))
        case rule_sets.GAME_BACCARAT:
            judges = _classes(rule_set)
        case _:
            judges = [judging(rule_set, result) for result in outcomes(rule_set)]
    return Outcomes(len(judges), _by_judging(rule_set, judges))


def _by_judging(rule_set: rule_sets.RuleSet, judges: Sequence[Judging]) -> Winnings:
    """Winnings by what becomes of a bet in each outcome."""
    offers = {offer.bet: offer for offer in rule_set.bets}
    rounding = rounding_of(rule_set)
    known: dict[tuple[str, str], list[tuple[Odds, list[int]]]] = {}

    def ways(bet: str, position: str) -> list[tuple[Odds, list[int]]]:
        """The outcomes that a bet wins in, by what it pays there."""
        found: dict[Odds, list[int]] = {}
        for outcome, judge in enumerate(judges):
            pays = _pays(offers[bet], judge, position)
            if pays is not None:
                found.setdefault(pays, []).append(outcome)
        return list(found.items())

    def winnings(bet: str, position: str, stake_minor: int) -> list[tuple[int, int]]:
        place = (bet, position)
        if place not in known:  # Never more than the layout has.
            known[place] = ways(bet, position)
        commission = commission_of(offers[bet])
        return [
            (outcome, profit)
            for pays, won in known[place]
            for profit in (_profit(stake_minor, pays, rounding, commission),)
            for outcome in won
        ]

    return winnings


def _pays(offer: rule_sets.BetOffer, judge: Judging, position: str) -> Odds | None:
    """What a bet pays by its judgement, before commission; None where it does not win."""
    fate = judge(offer.bet, position)
    return line_of(offer, fate.line) if fate.verdict is Verdict.WON else None


def _profit(
    stake_minor: int, pays: Odds, rounding: Rounding, commission: Odds = NO_COMMISSION
) -> int:
    return settled(stake_minor, Verdict.WON, pays, rounding, commission).profit_minor


def _classes(rule_set: rule_sets.RuleSet) -> list[Judging]:
    """The classes of baccarat's rounds that no other one outdoes."""
    scale = lcm(
        *(
            after_commission(pays, commission_of(offer)).denominator
            for offer in rule_set.bets
            for pays in lines_of(offer).values()
        )
    )
    found: dict[tuple[int, ...], Judging] = {}
    for result in _rounds("S" if rule_set.decks > 1 else "H"):
        judge = judging(rule_set, result)
        found.setdefault(tuple(_scaled(offer, judge, scale) for offer in rule_set.bets), judge)
    return [judge for each, judge in found.items() if not _is_outdone(each, found)]


def _scaled(offer: rule_sets.BetOffer, judge: Judging, scale: int) -> int:
    """What a bet of baccarat wins with a stake of `scale`, which leaves no fraction."""
    pays = _pays(offer, judge, "")
    if pays is None:
        return 0
    net = after_commission(pays, commission_of(offer))
    return scale * net.numerator // net.denominator


def _is_outdone(one: tuple[int, ...], others: Iterable[tuple[int, ...]]) -> bool:
    """Whether another class pays every bet as much or more."""
    return any(other != one and all(map(ge, other, one)) for other in others)


@lru_cache(maxsize=2)
def _rounds(second_suit: str) -> tuple[rules.Result, ...]:
    """A round of baccarat for each way in which bets may win together.

    One hand for each total of two cards is enough: where a pair makes that total it is a pair,
    which wins all that other cards would, and of one suit where a shoe has such cards twice. What
    follows depends on the values of the third cards.
    """
    found: dict[tuple[object, ...], rules.Result] = {}
    for player_points, banker_points in product(range(10), repeat=2):
        first = _two(player_points, second_suit), _two(banker_points, second_suit)
        for player, banker in _played(*first):
            shown = dealt(player, banker)
            key = (player_points % 2, banker_points % 2, len(player), len(banker), *shown[2:])
            if key not in found:
                found[key] = rules.Result(
                    baccarat=rules.BaccaratResult(
                        player_cards=player,
                        banker_cards=banker,
                        player_total=shown.player_total,
                        banker_total=shown.banker_total,
                        winner=_WINNERS[shown.winner],
                    )
                )
    return tuple(found.values())


def _played(player: Cards, banker: Cards) -> Iterator[tuple[Cards, Cards]]:
    """The ends of a round that began with these cards, by the values of those that follow."""
    draw = next_draw(player, banker)
    if not draw:
        yield player, banker
        return
    for points in range(10):
        card = _card(points)
        if draw[0] is Side.PLAYER:
            yield from _played((*player, card), banker)
        else:
            yield from _played(player, (*banker, card))


def _two(points: int, second_suit: str) -> Cards:
    """Two cards of this total, a pair where there is one."""
    if points % 2:
        return (_card(0), _card(points))
    half = RANK_OF_VALUE[points // 2]
    return (f"{half}S", f"{half}{second_suit}")


def _card(points: int) -> str:
    return f"{RANK_OF_VALUE[points]}S"


def _blackjack(rule_set: rule_sets.RuleSet) -> Winnings:
    """See the module. What an action stakes later is in what its main bet added."""
    offers = {offer.bet: offer for offer in rule_set.bets}
    rounding = rounding_of(rule_set)

    def best(bet: str, stake_minor: int, *lines: str) -> int:
        """The most that a bet pays, by these lines or by any; nothing where it is not offered."""
        offer = offers.get(bet)
        if offer is None:
            return 0
        pays = [odds for line, odds in lines_of(offer).items() if not lines or line in lines]
        return max((_profit(stake_minor, odds, rounding) for odds in pays), default=0)

    def winnings(bet: str, position: str, stake_minor: int) -> list[tuple[int, int]]:
        del position  # All seats may win at once.
        if bet in FURTHER_STAKES:
            return []
        most = best(bet, stake_minor)
        if bet == "main":
            further = max(best("double", stake_minor), best("split", stake_minor))
            insured = best("insurance", stake_minor // 2)
            most = max(most, best(bet, stake_minor, PLAIN_WIN) + further, insured)
        return [(0, most)]

    return winnings
