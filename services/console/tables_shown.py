"""Tables and rounds as pages show them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sabot.partner.v1 import partner_service_pb2 as partners
from sabot.partner.v1 import roads_pb2
from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.table.v1 import events_pb2 as tables
from sabot.table.v1 import spec_pb2
from services.console.shown import microseconds
from services.games.roulette import colour

TAKES_BETS = partners.ROUND_STATE_BETTING
_TWO_CARDS = {
    rule_set_pb2.GAME_DRAGON_TIGER: ("dragon", "tiger"),
    rule_set_pb2.GAME_FOOTBALL_STUDIO: ("home", "away"),
    rule_set_pb2.GAME_BACCARAT: ("banker", "player"),
}
"""By game, the sides that roads draw red and blue."""
_MARKS = {
    roads_pb2.ROAD_COLOUR_RED: "red",
    roads_pb2.ROAD_COLOUR_BLUE: "blue",
    roads_pb2.ROAD_COLOUR_GREEN: "green",
}


@dataclass(slots=True)
class HandShown:
    """Cards that lie together."""

    name: str
    """Key of its name, such as `HAND_PLAYER`."""
    cards: list[str] = field(default_factory=list[str])
    total: str = ""
    won: bool = False
    places: list[int] = field(default_factory=list[int])
    """Of each card, where it lay in the shoe; none at blackjack."""


@dataclass(slots=True)
class RoundShown:
    """A round."""

    round_id: str
    number: int
    state: str
    """The proto's name."""
    suspended: bool
    shoe_id: str
    round_in_shoe: int
    closes_at_ms: int
    """When the window ends, by the fleet's clock; 0: it is closed, or somebody closes it."""
    opened_us: int
    hands: list[HandShown]
    tosses: list[tuple[str, str, bool]]
    """What it was (numbers), its colour or total, and whether it counts."""
    won: str
    """Key of the side or outcome that won; empty: none yet."""
    mark: str
    """Its colour: `red`, `blue`, `green`, `black` or empty."""
    corrected: bool
    void_reason: str
    turn: str = ""


@dataclass(slots=True)
class TableShown:
    """A table."""

    table_id: str
    game: str
    rule_set: str
    currency: str
    revision: int
    open: bool
    floor: bool
    decks: int
    round: RoundShown | None


def table_shown(table: partners.Table) -> TableShown:
    """A table as it stands."""
    spec = table.spec
    has_round = bool(table.round.round_id)
    return TableShown(
        spec.table_id,
        rule_set_pb2.Game.Name(spec.rule_set.game),
        f"{spec.rule_set.rule_set_id} v{spec.rule_set.version}",
        spec.currency_code,
        table.revision,
        table.open,
        spec.origin == spec_pb2.OUTCOME_ORIGIN_FLOOR,
        spec.rule_set.decks,
        round_shown(table.round, spec.rule_set.game) if has_round else None,
    )


def round_shown(one: partners.Round, game: int) -> RoundShown:
    """A round as it stands."""
    won, mark = _won(one, game)
    takes_bets = one.state == TAKES_BETS and not one.suspended
    closes_at_us = microseconds(one.close_time) if one.HasField("close_time") else 0
    return RoundShown(
        one.round_id,
        one.number,
        partners.RoundState.Name(one.state),
        one.suspended,
        one.shoe_id,
        one.round_in_shoe,
        closes_at_us // 1000 if takes_bets else 0,
        microseconds(one.open_time),
        _hands(one, won),
        [_toss(toss) for toss in one.tosses],
        won,
        mark,
        one.corrected,
        _reason(one),
        _turn(one),
    )


def _reason(one: partners.Round) -> str:
    return tables.RoundReason.Name(one.void_reason) if one.void_reason else ""


def _turn(one: partners.Round) -> str:
    if not one.HasField("turn"):
        return ""
    return ", ".join(map(str, one.turn.seats))


def _won(one: partners.Round, game: int) -> tuple[str, str]:
    result = one.result
    which = result.WhichOneof("game")
    if which is None:
        return "", ""
    if which == "roulette":
        number = result.roulette.number
        return str(number), colour(number)
    if which == "sicbo":
        return str(sum(result.sicbo.dice)), ""
    sides = _TWO_CARDS.get(rule_set_pb2.Game.ValueType(game))
    mark = _MARKS.get(one.road.colour, "")
    if sides is None or not mark:
        return "", ""
    return {"red": sides[0], "blue": sides[1], "green": "tie"}[mark], mark


def _toss(toss: partners.Toss) -> tuple[str, str, bool]:
    numbers = list(toss.numbers)
    if not numbers:
        return "", "", False
    if len(numbers) == 1:
        return str(numbers[0]), colour(numbers[0]), not toss.invalid
    return " ".join(map(str, numbers)), str(sum(numbers)), not toss.invalid


def _hands(one: partners.Round, won: str) -> list[HandShown]:
    if one.seats or one.HasField("dealer"):
        return list(_blackjack(one))
    found = hands_of(one.cards)
    baccarat = one.result.baccarat
    for hand in found:
        side = hand.name.removeprefix("HAND_").lower()
        hand.won = side == won
        if side in {"player", "banker"}:
            hand.total = str(points_of(hand.cards))
    if one.result.WhichOneof("game") == "baccarat":
        for hand, total in zip(found, (baccarat.player_total, baccarat.banker_total), strict=False):
            hand.total = str(total)
    return found


def points_of(cards: Iterable[str]) -> int:
    """A hand's total at baccarat (rule BAC-1)."""
    worth = {"A": 1} | {str(number): number for number in range(2, 10)}
    return sum(worth.get(card[:1], 0) for card in cards) % 10


def hands_of(cards: Iterable[shoes.DealtCard]) -> list[HandShown]:
    """Cards by the hand that they went to, in the order of the hands' numbers."""
    found: dict[int, HandShown] = {}
    for one in cards:
        name = rules.Hand.Name(one.hand)
        hand = found.setdefault(one.hand, HandShown(name))
        hand.cards.append(one.card)
        hand.places.append(one.index)
    return [found[number] for number in sorted(found)]


def _blackjack(one: partners.Round) -> Iterable[HandShown]:
    if one.HasField("dealer") and one.dealer.cards:
        yield HandShown("HAND_DEALER", list(one.dealer.cards), str(one.dealer.total))
    for seat in one.seats:
        for hand in seat.hands:
            split = "_SPLIT" if hand.hand == 2 else ""
            total = (
                f"{hand.total}"
                + (" BJ" if hand.blackjack else "")
                + (" x2" if hand.doubled else "")
            )
            yield HandShown(f"HAND_SEAT_{seat.seat}{split}", list(hand.cards), total)
        if not seat.hands:
            yield HandShown(f"HAND_SEAT_{seat.seat}")
