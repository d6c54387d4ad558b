"""Results in one line, for people who watch."""

from __future__ import annotations

from sabot.rules.v1 import events_pb2 as rules
from services.games import blackjack as cards
from services.games import roulette as wheel

_WINNERS = {
    rules.BACCARAT_WINNER_PLAYER: "Player wins",
    rules.BACCARAT_WINNER_BANKER: "Banker wins",
    rules.BACCARAT_WINNER_TIE: "Tie",
}


def baccarat(result: rules.Result) -> str:
    """`P TS 9H    9  B 4D 2C    6  Player wins`."""
    shown = result.baccarat
    return (
        f"P {' '.join(shown.player_cards):8} {shown.player_total}  "
        f"B {' '.join(shown.banker_cards):8} {shown.banker_total}  "
        f"{_WINNERS.get(shown.winner, '?')}"
    )


def roulette(result: rules.Result) -> str:
    """`17 black`."""
    number = result.roulette.number
    return f"{number} {wheel.colour(number)}"


def sicbo(result: rules.Result) -> str:
    """`1-4-6  total 11`."""
    dice = result.sicbo.dice
    return f"{'-'.join(map(str, dice))}  total {sum(dice)}"


def blackjack(result: rules.Result) -> str:
    """`dealer KS 7D 17  seats 3 hands 4`."""
    told = result.blackjack
    if not told.dealer_cards:
        return "no main bet, no deal"
    hands = sum(len(seat.hands) for seat in told.seats)
    points = cards.total(told.dealer_cards).points
    return f"dealer {' '.join(told.dealer_cards)} {points}  {len(told.seats)} seats, {hands} hands"


def dragon_tiger(result: rules.Result) -> str:
    """`Dragon KS  Tiger 2D`."""
    return f"Dragon {result.dragon_tiger.dragon_card}  Tiger {result.dragon_tiger.tiger_card}"


def football_studio(result: rules.Result) -> str:
    """`Home KS  Away 2D`."""
    return f"Home {result.football_studio.home_card}  Away {result.football_studio.away_card}"
