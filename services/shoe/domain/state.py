"""What shoes are: what stands at each table, what has left it, and what is awaited."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from sabot.shoe.v1 import events_pb2 as shoes
from services.kernel.event import Position
from services.kernel.requests import RequestIds
from services.shoe.domain.floor_state import Consumable, FloorRound, FloorShoe


class Standing(IntEnum):
    """How far along a shoe is."""

    SEALED = 1
    """It awaits its shown card."""
    READY = 2
    """It deals."""
    CLOSED = 3
    """It deals no more and awaits being laid open, or on the floor being counted."""
    SHOWN = 4
    """On the floor: its first card lies open, the burn is awaited."""


@dataclass(slots=True)
class Call:
    """Cards that a running round has called and not got."""

    round_id: str
    hands: list[int]
    """Where each goes, `sabot.rules.v1.Hand`."""
    asked_by: Position


@dataclass(slots=True)
class OpenedCard:
    """A card that was opened and matches its commitment."""

    card: str
    salt: bytes
    shown: bool = False
    """Whether it was dealt, or shown at the start of the shoe. What was burned, or opened and left
    where it was, is told to nobody (VIS-3)."""


@dataclass(slots=True)
class Hole:
    """A hole card that lies face down, or did."""

    round_id: str
    index: int
    """Its place in the shoe."""
    up_card: str = ""
    """The dealer's open card, once the hole card was called."""
    peek_asked_by: Position | None = None
    looked_at: Position | None = None
    """The first look in the log."""
    blackjack: bool = False
    """What that told."""
    reveal_asked_by: Position | None = None
    opened: bool = False


@dataclass(slots=True)
class Shoe:
    """A shoe, sealed until it has been laid open, or on the floor until it has been counted. It
    keeps the rules of its beginning."""

    shoe_id: str
    table_id: str
    decks: int
    cards: int
    cut_at: int
    """How many cards stand before the cut card (BAC-3)."""
    rounds_after_cut: int
    commitments: bytes
    sealed_order: bytes
    key_id: str
    asked_by: Position
    """What asks for its next step that no call asks for: its seal for the shown card, then the
    cause of its end for being laid open."""
    standing: Standing = Standing.SEALED
    gone: int = 0
    """Cards that have left it, shown and burned ones included."""
    opened: dict[int, OpenedCard] = field(default_factory=dict[int, OpenedCard])
    """By index."""
    rounds_to_close: int | None = None
    """Once the cut card is out: at which `RoundClosed` from here on it ends."""
    call: Call | None = None
    hole: Hole | None = None
    """Of the running round, if it has one."""
    floor: FloorShoe | None = None
    """Where it stands on the floor; None: it is a virtual one."""


class TossKind(IntEnum):
    """What is tossed."""

    SPIN = 1
    """The ball of a wheel."""
    ROLL = 2
    """Three dice."""


@dataclass(slots=True)
class Toss:
    """A spin or a roll that a running round has called."""

    kind: TossKind
    round_id: str
    attempt: int
    asked_by: Position
    numbers: list[int] = field(default_factory=list[int])
    """What it came to; empty while it is awaited."""
    tossed_at: Position | None = None
    """The input that said so."""
    invalid: bool = False
    """Whether it does not count."""


class Ended(NamedTuple):
    """The spin or the roll that a round was paid for."""

    attempt: int
    numbers: tuple[int, ...]


MAX_ENDED = 8
"""Rounds of a table that are remembered for a second reading: some minutes."""


@dataclass(slots=True)
class ShoeTable:
    """A table, open or closed: its shoes are numbered on when it opens again."""

    table_id: str
    open: bool = False
    decks: int = 0
    cut_depth: int = 0
    rounds_after_cut: int = 0
    last_number: int = 0
    """The number of the last shoe that stood here."""
    awaited_number: int = 0
    """The number of the shoe to be sealed; 0: none."""
    awaited_by: Position | None = None
    seal: shoes.SealShoe | None = None
    """The first seal in the log for the awaited shoe."""
    sealed_at: Position | None = None
    """Where that stands."""
    shoe_id: str = ""
    """The shoe that stands here; empty: none."""
    round_id: str = ""
    """The round between its opening and its end; empty: none."""
    voided: bool = False
    """Whether that round was voided: nothing is dealt to it."""
    burns: bool = True
    """Whether a shoe begins with a shown card and a burn (rule BAC-2)."""
    floor: bool = False
    """Whether outcomes are told from the floor; else the custodian draws them."""
    toss: Toss | None = None
    """The last spin or roll that the running round called."""
    tosses: TossKind | None = None
    """What is tossed at it; None: nothing, cards are dealt."""
    last_round_id: str = ""
    """The running round, or the last one."""
    at_floor: FloorRound = field(default_factory=FloorRound)
    """Of the running round."""
    seated: bool = False
    """Whether it is blackjack: a hole card is dealt face down."""
    ended: dict[str, Ended] = field(default_factory=dict[str, Ended])
    """On the floor: the last rounds that were paid, with what they were paid for, oldest first."""


@dataclass(slots=True)
class ShoeState:
    """The whole of it. A shoe leaves when it has been laid open."""

    tables: dict[str, ShoeTable] = field(default_factory=dict[str, ShoeTable])
    shoes: dict[str, Shoe] = field(default_factory=dict[str, Shoe])
    """By shoe id."""
    consumables: dict[str, Consumable] = field(default_factory=dict[str, Consumable])
    """By id; a destroyed one leaves."""
    destroyed: dict[str, bool] = field(default_factory=dict[str, bool])
    """Ids of destroyed ones, oldest first."""
    request_ids: RequestIds = field(default_factory=RequestIds)
    """Of those who tell from the floor; the scope is the actor."""


def given(shoe: Shoe, card: str) -> int:
    """How many of a card a shoe has given, as far as they were seen."""
    return sum(opened.card == card for opened in shoe.opened.values())


def shoe_id_of(table_id: str, number: int) -> str:
    """The id of a table's shoe."""
    return f"{table_id}-s{number}"


def standing_at(state: ShoeState, table_id: str) -> tuple[ShoeTable | None, Shoe | None]:
    """A table and the shoe that stands there."""
    table = state.tables.get(table_id)
    return table, None if table is None else state.shoes.get(table.shoe_id)


def stood_before(state: ShoeState, table_id: str, shoe_id: str) -> bool:
    """Whether a shoe that is not in state any more stood at a table."""
    table = state.tables.get(table_id)
    number = shoe_id.removeprefix(f"{table_id}-s")
    return (
        table is not None
        and number.isascii()
        and number.isdecimal()
        and shoe_id == shoe_id_of(table_id, int(number))
        and 1 <= int(number) <= table.last_number
    )
