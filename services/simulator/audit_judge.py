"""The auditor's own judge of bets: naive, written from docs/rules, with nothing of the judges and
paytables that settlement uses. Only what a table may choose is read from its rules.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from sabot.settlement.v1 import events_pb2 as settlement

LOST, PUSHED, HALF = Fraction(-1), Fraction(0), Fraction(-1, 2)
"""Profits to stake that no paytable says."""
PIPS = {rank: min(number, 10) % 10 for number, rank in enumerate("A23456789TJQK", start=1)}
RED = frozenset((1, 3, 5, 7, 9, 12, 14, 16, 18, 19, 21, 23, 25, 27, 30, 32, 34, 36))
TOTALS = {
    "sicbo_atlantic_city": (60, 30, 17, 12, 8, 6, 6),
    "sicbo_macau": (50, 18, 14, 12, 8, 6, 6),
}
"""What the totals 4 to 10 pay; 17 to 11 pay the same."""
TRIPLES = {"sicbo_atlantic_city": (10, 180, 30), "sicbo_macau": (8, 150, 24)}
"""What a double, a triple and any triple pay."""


class Due(NamedTuple):
    """A bet's fate and money, minor units."""

    outcome: int
    """A `sabot.settlement.v1.Outcome`."""
    profit: int
    payout: int
    commission: int


def due(
    rule_set: rule_set_pb2.RuleSet, result: rules.Result, bet: str, position: str, stake: int
) -> Due:
    """What a bet is due. Commission is taken of Banker's winnings alone (rule BAC-21)."""
    pays = profit_to_stake(rule_set, result, bet, position)
    commission = 0
    if bet == "banker" and pays > 0 and not rule_set.baccarat.ez:
        profit = _whole(stake * pays * Fraction(19, 20), rule_set.rounding)
        commission = stake - profit
    else:
        profit = _whole(stake * pays, rule_set.rounding)
    return Due(_outcome(pays), profit, stake + profit, commission)


def profit_to_stake(
    rule_set: rule_set_pb2.RuleSet, result: rules.Result, bet: str, position: str
) -> Fraction:
    """The profit for each unit staked, before commission and rounding."""
    match rule_set.game:
        case rule_set_pb2.GAME_BACCARAT:
            told = result.baccarat
            return _baccarat(rule_set, bet, list(told.player_cards), list(told.banker_cards))
        case rule_set_pb2.GAME_BLACKJACK:
            return _blackjack(result.blackjack, bet, int(position))
        case rule_set_pb2.GAME_ROULETTE:
            return _roulette(rule_set, bet, position, result.roulette.number)
        case rule_set_pb2.GAME_SICBO:
            return _sicbo(rule_set.rule_set_id, bet, position, list(result.sicbo.dice))
        case rule_set_pb2.GAME_DRAGON_TIGER:
            dragon_tiger = result.dragon_tiger
            return _two_cards(rule_set, bet, dragon_tiger.dragon_card, dragon_tiger.tiger_card)
        case _:
            football = result.football_studio
            return _two_cards(rule_set, bet, football.home_card, football.away_card)


def _outcome(pays: Fraction) -> int:
    if pays > 0:
        return settlement.OUTCOME_WON
    named = {LOST: settlement.OUTCOME_LOST, PUSHED: settlement.OUTCOME_PUSHED}
    return named.get(pays, settlement.OUTCOME_HALF_LOST)


def _whole(profit: Fraction, rounding: int) -> int:
    """Rule MON-1."""
    match rounding:
        case rule_set_pb2.ROUNDING_DOWN:
            return math.floor(profit)
        case rule_set_pb2.ROUNDING_HALF_UP:
            return math.floor(profit + Fraction(1, 2))
        case _:
            return round(profit)  # Python rounds halves of a Fraction to the even one.


def _if(wins: object, pays: int | Fraction) -> Fraction:
    return Fraction(pays) if wins else LOST


def _chosen(rule_set: rule_set_pb2.RuleSet, bet: str) -> int:
    """What a table chose that a bet pays to one."""
    return next(offer.pays.numerator for offer in rule_set.bets if offer.bet == bet)


# ---- baccarat ----------------------------------------------------------------------------------


def points(cards: Sequence[str]) -> int:
    """A hand's total (rule BAC-1)."""
    return sum(PIPS[card[0]] for card in cards) % 10


def _baccarat(
    rule_set: rule_set_pb2.RuleSet, bet: str, player: list[str], banker: list[str]
) -> Fraction:
    p, b = points(player), points(banker)
    match bet:
        case "tie":
            return _if(p == b, _chosen(rule_set, "tie"))
        case "player":
            return PUSHED if p == b else _if(p > b, 1)
        case "banker":
            dragon = rule_set.baccarat.ez and len(banker) == 3 and b == 7 > p
            return PUSHED if p == b or dragon else _if(b > p, 1)
        case "banker_no_commission":
            return PUSHED if p == b else _if(b > p, Fraction(1, 2) if b == 6 else 1)
        case "player_pair":
            return _if(player[0][0] == player[1][0], 11)
        case "banker_pair":
            return _if(banker[0][0] == banker[1][0], 11)
        case "either_pair":
            return _if(player[0][0] == player[1][0] or banker[0][0] == banker[1][0], 5)
        case "perfect_pair":
            return _if(player[0] == player[1] or banker[0] == banker[1], 25)
        case "player_natural":
            return _if(points(player[:2]) >= 8, Fraction(7, 2))
        case "banker_natural":
            return _if(points(banker[:2]) >= 8, Fraction(7, 2))
        case "player_bonus":
            return _bonus(player, p, b)
        case "banker_bonus":
            return _bonus(banker, b, p)
        case "super_lucky_seven":
            cards = len(player) + len(banker)
            return _if(p == 7 and b == 6, {4: 30, 5: 40, 6: 100}[cards])
        case _:
            return _lucky(bet, player, banker)


def _bonus(cards: list[str], own: int, other: int) -> Fraction:
    """Rule BAC-30."""
    if len(cards) == 2 and own >= 8:
        return PUSHED if own == other else _if(own > other, 1)
    return Fraction({4: 1, 5: 2, 6: 4, 7: 6, 8: 10, 9: 30}.get(own - other, -1))


def _lucky(bet: str, player: list[str], banker: list[str]) -> Fraction:
    """Wins with a certain total and number of cards (rules BAC-31 to BAC-37)."""
    p, b = points(player), points(banker)
    six, seven = b == 6 > p, p == 7 > b
    match bet:
        case "lucky_six":
            return _if(six, 12 if len(banker) == 2 else 20)
        case "lucky_six_2":
            return _if(six and len(banker) == 2, 22)
        case "lucky_six_3":
            return _if(six and len(banker) == 3, 50)
        case "lucky_seven":
            return _if(seven, 6 if len(player) == 2 else 15)
        case "lucky_seven_2":
            return _if(seven and len(player) == 2, 15)
        case "lucky_seven_3":
            return _if(seven and len(player) == 3, 30)
        case "dragon_7":
            return _if(b == 7 > p and len(banker) == 3, 40)
        case "panda_8":
            return _if(p == 8 > b and len(player) == 3, 25)
        case _:
            raise KeyError(bet)


# ---- blackjack ---------------------------------------------------------------------------------


def twenty_one(cards: Sequence[str]) -> int:
    """A hand's better total (rule BJ-1)."""
    low = sum(min(10, "A23456789TJQK".index(card[0]) + 1) for card in cards)
    return low + 10 if low <= 11 and any(card[0] == "A" for card in cards) else low


def seat_side_bet(bet: str, first_two: Sequence[str], up: str) -> Fraction:
    """Rules BJ-9, BJ-10."""
    if bet == "perfect_pairs":
        one, other = first_two
        if one[0] != other[0]:
            return LOST
        colours = {"S": "black", "C": "black", "H": "red", "D": "red"}
        same_colour = colours[one[1]] == colours[other[1]]
        return Fraction(25 if one == other else 12 if same_colour else 6)
    cards = [*first_two, up]
    ranks, suits = {card[0] for card in cards}, {card[1] for card in cards}
    row = any(ranks == set("A23456789TJQKA"[low : low + 3]) for low in range(12))
    if len(ranks) == 1:
        return Fraction(100 if len(suits) == 1 else 30)
    if row:
        return Fraction(40 if len(suits) == 1 else 10)
    return _if(len(suits) == 1, 5)


def _blackjack(told: rules.BlackjackResult, bet: str, number: int) -> Fraction:
    seat = next(one for one in told.seats if one.seat == number)
    dealer = list(told.dealer_cards)
    natural = len(dealer) == 2 and twenty_one(dealer) == 21
    match bet:
        case "insurance":
            return _if(natural, 2)
        case "main" | "double":
            hand = seat.hands[0]
        case "split":
            hand = seat.hands[1]
        case _:
            first = seat.hands[0].cards
            second = seat.hands[1].cards[0] if len(seat.hands) == 2 else first[1]
            return seat_side_bet(bet, [first[0], second], dealer[0])
    own, theirs = twenty_one(hand.cards), twenty_one(dealer)
    own_natural = own == 21 and len(hand.cards) == 2 and not hand.split
    if own > 21:
        return LOST
    if own_natural or natural:
        return PUSHED if own_natural and natural else _if(own_natural, Fraction(3, 2))
    return PUSHED if own == theirs else _if(theirs > 21 or own > theirs, 1)


# ---- roulette ----------------------------------------------------------------------------------


def numbers_of(bet: str, position: str) -> frozenset[int]:
    """The numbers that a bet wins with."""
    match bet:
        case "dozen":
            last = 12 * int(position)
            return frozenset(range(last - 11, last + 1))
        case "column":
            return frozenset(number for number in range(1, 37) if number % 3 == int(position) % 3)
        case "red":
            return RED
        case "black":
            return frozenset(range(1, 37)) - RED
        case "odd":
            return frozenset(range(1, 37, 2))
        case "even":
            return frozenset(range(2, 37, 2))
        case "low":
            return frozenset(range(1, 19))
        case "high":
            return frozenset(range(19, 37))
        case "first_four":
            return frozenset((0, 1, 2, 3))
        case _:
            return frozenset(map(int, position.split("-")))


def _roulette(rule_set: rule_set_pb2.RuleSet, bet: str, position: str, number: int) -> Fraction:
    """Every bet pays as if the wheel had 36 numbers."""
    covered = numbers_of(bet, position)
    even_chance = bet in ("red", "black", "odd", "even", "low", "high")
    if number == 0 and even_chance and rule_set.roulette.la_partage:
        return HALF
    return _if(number in covered, 36 // len(covered) - 1)


# ---- sic bo ------------------------------------------------------------------------------------


def _sicbo(rule_set_id: str, bet: str, position: str, dice: list[int]) -> Fraction:
    total, triple = sum(dice), len(set(dice)) == 1
    double_pays, triple_pays, any_triple_pays = TRIPLES[rule_set_id]
    match bet:
        case "small":
            return _if(not triple and total <= 10, 1)
        case "big":
            return _if(not triple and total >= 11, 1)
        case "odd":
            return _if(not triple and total % 2, 1)
        case "even":
            return _if(not triple and not total % 2, 1)
        case "any_triple":
            return _if(triple, any_triple_pays)
        case "triple":
            return _if(triple and dice[0] == int(position), triple_pays)
        case "double":
            return _if(dice.count(int(position)) > 1, double_pays)
        case "single":
            return Fraction(dice.count(int(position)) or -1)
        case "total":
            low = min(total, 21 - total)
            wins = total == int(position)
            return _if(wins, TOTALS[rule_set_id][low - 4] if wins else 0)
        case _:
            return _if({int(face) for face in position.split("-")} <= set(dice), 5)


# ---- dragon tiger, football studio -------------------------------------------------------------


def _two_cards(rule_set: rule_set_pb2.RuleSet, bet: str, first: str, second: str) -> Fraction:
    high = rule_set.two_cards.ace == rule_set_pb2.ACE_RANK_HIGH
    order = "23456789TJQKA" if high else "A23456789TJQK"
    margin = order.index(first[0]) - order.index(second[0])
    match bet:
        case "tie" | "draw":
            return _if(margin == 0, _chosen(rule_set, bet))
        case "suited_tie":
            return _if(first == second, _chosen(rule_set, bet))
        case "dragon" | "home":
            return HALF if margin == 0 else _if(margin > 0, 1)
        case "tiger" | "away":
            return HALF if margin == 0 else _if(margin < 0, 1)
        case _:
            raise KeyError(bet)
