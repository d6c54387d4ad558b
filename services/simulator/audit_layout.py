"""The auditor's own layouts: where bets may lie, and what announced bets are made of. Naive, from
docs/rules, with nothing of the product's layouts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from sabot.rules.v1 import rule_set_pb2
from sabot.table.v1 import bet_pb2
from sabot.table.v1 import events_pb2 as table

WHEEL = [
    *("0", "32", "15", "19", "4", "21", "2", "25", "17", "34", "6", "27", "13", "36", "11", "30"),
    *("8", "23", "10", "5", "24", "16", "33", "1", "20", "14", "31", "9", "22", "18", "29", "7"),
    *("28", "12", "35", "3", "26"),
]
ANNOUNCED: dict[str, str] = {
    "voisins": "2*0-2-3 4-7 12-15 18-21 19-22 32-35 2*25-26-28-29",
    "tiers": "5-8 10-11 13-16 23-24 27-30 33-36",
    "orphelins": "1 6-9 14-17 17-20 31-34",
    "jeu_zero": "0-3 12-15 32-35 26",
}
"""Chips as rule ROU-4 lists them."""
BY_COUNT = {1: "straight", 2: "split", 3: "trio", 4: "corner"}
"""What the places of announced bets are, by how many numbers they have."""
ONE_PLACE = frozenset(
    ("red", "black", "odd", "even", "low", "high", "first_four", "big", "small", "any_triple")
)


AT_SEATS = ("main", "perfect_pairs", "21_plus_3")
"""Blackjack's bets of the betting window."""


class Part(NamedTuple):
    """A bet to book."""

    bet: str
    position: str
    stake: int
    announced: str


def booked(
    rule_set: rule_set_pb2.RuleSet, asked: Sequence[bet_pb2.Bet]
) -> list[Part] | table.Refusal.ValueType:
    """What a request is booked as; or why it is refused, by its first wrong bet."""
    offered = {offer.bet for offer in rule_set.bets}
    found: list[Part] = []
    for one in asked:
        if rule_set.game == rule_set_pb2.GAME_ROULETTE and (
            one.bet in ANNOUNCED or one.bet == "neighbours"
        ):
            chips = _chips(one.bet, one.position)
            if chips is None:
                return table.REFUSAL_NOT_ON_LAYOUT
            if one.stake_minor % len(chips) or one.stake_minor <= 0:
                return table.REFUSAL_NOT_WHOLE_CHIPS
            chip = one.stake_minor // len(chips)
            for place in dict.fromkeys(chips):
                kind = BY_COUNT[len(place.split("-"))]
                found.append(Part(kind, place, chip * chips.count(place), one.bet))
        elif one.bet not in offered:
            return table.REFUSAL_UNKNOWN_BET
        else:
            position = _sorted(one.bet, one.position)
            if not _is_place(rule_set.game, one.bet, position):
                return table.REFUSAL_NOT_ON_LAYOUT
            if one.bet == "first_four":
                position = ""
            found.append(Part(one.bet, position, one.stake_minor, ""))
    return found


def _chips(bet: str, position: str) -> list[str] | None:
    """The place of each chip of an announced bet; None where there is none such."""
    if bet == "neighbours":
        told = re.fullmatch(r"(0|[1-9][0-9]?)-([1-9])", position)
        if told is None or told[1] not in WHEEL:
            return None
        at, reach = WHEEL.index(told[1]), int(told[2])
        return [WHEEL[(at + step) % 37] for step in range(-reach, reach + 1)]
    if position:
        return None
    found: list[str] = []
    for text in ANNOUNCED[bet].split():
        count, star, place = text.rpartition("*")
        found += [place] * (int(count) if star else 1)
    return found


def _sorted(bet: str, position: str) -> str:
    """The text of a place, however it was asked for."""
    if bet in ONE_PLACE and bet != "first_four":
        return position
    numbers = position.split("-")
    if not all(re.fullmatch(r"0|[1-9][0-9]?", one) for one in numbers):
        return position
    return "-".join(sorted(numbers, key=int))


def _is_place(game: int, bet: str, position: str) -> bool:
    match game:
        case rule_set_pb2.GAME_ROULETTE:
            return _is_on_wheel_layout(bet, position)
        case rule_set_pb2.GAME_SICBO:
            return _is_on_dice_layout(bet, position)
        case rule_set_pb2.GAME_BLACKJACK:
            return bet in AT_SEATS and position in ("1", "2", "3", "4", "5", "6", "7")
        case _:
            return not position


def _numbers(position: str) -> list[int]:
    """The numbers of a place; none where the text is not one of numbers, ascending, each once."""
    if not re.fullmatch(r"(0|[1-9][0-9]?)(-(0|[1-9][0-9]?))*", position):
        return []
    numbers = [int(one) for one in position.split("-")]
    return numbers if numbers == sorted(set(numbers)) else []


def _is_on_wheel_layout(bet: str, position: str) -> bool:
    """A number n of the layout stands in row (n - 1) // 3, column (n - 1) % 3."""
    if bet == "first_four":
        return position in ("", "0-1-2-3")
    if bet in ONE_PLACE:
        return not position
    numbers = _numbers(position)
    if not numbers or numbers[-1] > 36:
        return False
    first = numbers[0]
    starts_row = first % 3 == 1
    match bet:
        case "straight":
            return len(numbers) == 1
        case "dozen" | "column":
            return numbers in ([1], [2], [3])
        case "trio":
            return numbers in ([0, 1, 2], [0, 2, 3])
        case "split":
            if len(numbers) != 2:
                return False
            step = numbers[1] - first
            if first == 0:
                return step <= 3
            return step == 3 or (step == 1 and first % 3 != 0)
        case "street":
            return starts_row and numbers == [first, first + 1, first + 2]
        case "corner":
            square = [first, first + 1, first + 3, first + 4]
            return first > 0 and first % 3 != 0 and numbers == square
        case _:
            return bet == "six_line" and starts_row and numbers == list(range(first, first + 6))


def _is_on_dice_layout(bet: str, position: str) -> bool:
    if bet in ONE_PLACE:
        return not position
    numbers = _numbers(position)
    match bet:
        case "single" | "double" | "triple":
            return len(numbers) == 1 and 1 <= numbers[0] <= 6
        case "total":
            return len(numbers) == 1 and 4 <= numbers[0] <= 17
        case _:
            return len(numbers) == 2 and numbers[0] >= 1 and numbers[1] <= 6
