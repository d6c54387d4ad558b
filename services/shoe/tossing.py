"""Drawing what a virtual wheel or virtual dice show, from a uniform integer below a bound."""

from __future__ import annotations

from collections.abc import Callable

from sabot.log.v1 import entry_pb2
from sabot.shoe.v1 import events_pb2 as shoes
from services.games import roulette, sicbo
from services.shoe.domain.state import TossKind
from services.shoe.domain.wanted import TossWanted


def drawn_number(below: Callable[[int], int]) -> int:
    """A pocket of the wheel."""
    return roulette.NUMBERS[below(len(roulette.NUMBERS))]


def drawn_dice(below: Callable[[int], int]) -> tuple[int, ...]:
    """Three dice, as one of their 216 rolls."""
    return sicbo.ROLLS[below(len(sicbo.ROLLS))]


def tossed(
    wish: TossWanted, asked_by: entry_pb2.Position, below: Callable[[int], int]
) -> shoes.RecordSpin | shoes.RecordDice:
    """The input that tells of a drawn spin or roll."""
    if wish.kind is TossKind.SPIN:
        return shoes.RecordSpin(
            table_id=wish.table_id,
            round_id=wish.round_id,
            attempt=wish.attempt,
            number=drawn_number(below),
            source=shoes.CARD_SOURCE_VIRTUAL,
            asked_by=asked_by,
        )
    return shoes.RecordDice(
        table_id=wish.table_id,
        round_id=wish.round_id,
        attempt=wish.attempt,
        dice=drawn_dice(below),
        source=shoes.CARD_SOURCE_VIRTUAL,
        asked_by=asked_by,
    )
