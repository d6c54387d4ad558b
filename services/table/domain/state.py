"""What the table knows: tables, the round that runs at each, and who has bet in it.

A round stays here until its money is where it belongs; then only its number is left.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from sabot.rules.v1 import events_pb2 as rules
from sabot.table.v1 import spec_pb2
from services.kernel.event import UNLOGGED, Position
from services.kernel.requests import RequestIds
from services.table.domain.corrected_rounds import Corrections
from services.table.domain.floor_state import FloorRound
from services.table.domain.turns import Seat, Turn

MAX_OPEN_TABLES = 500
"""Open tables in a cell: more belong to another cell; each costs state in every service."""
MAX_KNOWN_TABLES = 10_000
"""Tables that were ever opened: they are kept so that a reopened one goes on counting."""
MAX_BETS = 500
"""Bets of an account in a round: its settlement is one event and must fit one entry."""
MAX_BET_REQUESTS = 500
"""PlaceBets of an account in a round whose ids are kept: no fewer than it may have bets."""
MAX_ACCOUNT_REQUESTS = 600
"""The same with its withdrawals: whoever may not bet any more may still take bets back."""
MAX_ACTION_REQUESTS = 1_000
"""The same with its actions: whoever may not do anything else any more may still play seven seats,
each of two hands that hit a dozen times, and be refused as often."""
MAX_ROUND_REQUESTS = 200_000
"""Request ids kept for a round, over all partners: what a cell takes in a long betting window."""


class Phase(IntEnum):
    """How far a round is. Suspended or not stands apart."""

    BETTING = 1
    DEALING = 2
    """Betting is closed, there is no result yet."""
    PAYING = 3
    """The result is accepted."""
    VOIDED = 4
    """Voided; stakes are going back."""


class PlacedBet(NamedTuple):
    """A bet that was booked."""

    bet: str
    stake_minor: int
    position: str = ""
    announced: str = ""


@dataclass(slots=True)
class AccountBets:
    """An account in a round. Bets are by bet id."""

    requests: int = 0
    """Request ids kept for it."""
    live: dict[str, PlacedBet] = field(default_factory=dict[str, PlacedBet])
    """Placed, and not known to be refused, declined or withdrawn."""
    withdrawing: dict[str, PlacedBet] = field(default_factory=dict[str, PlacedBet])
    """Asked back; limits have not decided."""


@dataclass(slots=True)
class Round:
    """The round that runs at a table."""

    round_id: str
    number: int
    shoe_id: str
    phase: Phase = Phase.BETTING
    suspended: bool = False
    suspended_us: int | None = None
    """Since when, in log time."""
    suspended_by: Position = UNLOGGED
    """What the suspension answered: a timer about another one is late."""
    escalated: bool = False
    """Whether this suspension has lasted so long that it was told (rule INC-2)."""
    held: rules.Result | None = None
    """A result that came while the round was suspended."""
    timer: int = 1
    """Which setting of the betting timer is in force."""
    closes_at_us: int | None = None
    """When the betting window ends, in log time; None where an operator closes betting."""
    asked_at: Position = UNLOGGED
    """What set the timer: the cause of `RoundOpened` or `RoundResumed`."""
    requests: dict[tuple[str, str], tuple[bytes, Position]] = field(
        default_factory=dict[tuple[str, str], tuple[bytes, Position]]
    )
    """By (partner, request id): hash and position of its first use."""
    accounts: dict[tuple[str, str], AccountBets] = field(
        default_factory=dict[tuple[str, str], AccountBets]
    )
    """By (partner, account)."""
    seated: bool = False
    """Whether its bets lie at seats, which act by turns: blackjack."""
    seats: dict[int, Seat] = field(default_factory=dict[int, Seat])
    """Who holds which."""
    turn: Turn | None = None
    """The turn that is open."""
    at_floor: FloorRound | None = None
    """Where its outcomes are told from the floor; None: they are drawn."""
    bets_placed: int = 0
    """How many bet ids were given out."""
    cards_left_shoe: bool = False
    opened_by: Position = UNLOGGED
    """The cause of `RoundOpened`."""
    closed_bets: list[str] = field(default_factory=list[str])
    """Kinds that are closed for this round because of what they return."""
    offer_closed: bool = False
    """Whether insurance is among them, so that an offer of it ends as it begins."""
    unsettled: bool = False
    """Settling its result failed before anything was paid: it may be retried, or voided."""
    unsettled_at: Position = UNLOGGED
    """The `ResultAccepted` whose settlement failed."""
    retried_at: Position = UNLOGGED
    """The operator's last retry of it. While a retry is undecided the round may not be voided."""


@dataclass(slots=True)
class Table:
    """A table, open or closed."""

    spec: spec_pb2.TableSpec
    revision: int
    bets: tuple[str, ...]
    """The kinds offered."""
    is_open: bool = True
    number: int = 0
    """The number of its last round; 0: there was none."""
    running: Round | None = None
    next_due_us: int | None = None
    """When a timer shall open the next round, in log time; None where none shall."""
    next_asked_at: Position = UNLOGGED
    """What set that timer: the cause of `TableOpened` or `RoundClosed`."""
    shoe_id: str = ""
    """The shoe at the table; empty: none."""
    shoe_ready: bool = False
    """Its start is over, and another round may be dealt from it."""
    shoe_by_hand: bool = False
    """It was filled by hand: what comes out of it the floor tells, whatever the table's rules say
    of its next one."""
    shoe_rounds: int = 0
    """Rounds that it has seen (rule BAC-40)."""
    rounds_left: int | None = None
    """Rounds that may follow the last one; None until the cut card came out (rule BAC-3)."""
    last_uncounted: bool = False
    """The last round was voided before a card left the shoe, as far as is known."""
    shoe_cards: int = 0
    """All cards of the shoe; 0: there is none, or it is not known."""
    seen: dict[int, str] = field(default_factory=dict[int, str])
    """Its cards that lay open at the table, by their places in it (rule VIS-4)."""


SwitchKey = tuple[int, str, str]
"""(scope, what, account of that partner); the scope is a `SwitchScope`."""


@dataclass(slots=True)
class SwitchedOff:
    """Why, by whom and since when something is off."""

    reason: str
    actor: str
    since_us: int


@dataclass(slots=True)
class TableState:
    """Everything the table core remembers."""

    tables: dict[str, Table] = field(default_factory=dict[str, Table])
    request_ids: RequestIds = field(default_factory=RequestIds)
    """Operators' request ids; the scope is the actor."""
    corrections: Corrections = field(default_factory=Corrections)
    """Of rounds that were paid."""
    switches: dict[SwitchKey, SwitchedOff] = field(default_factory=dict[SwitchKey, SwitchedOff])
    """What is switched off, the oldest first."""


def running_round(state: TableState, table_id: str, round_id: str) -> Round | None:
    """The round, if it runs at this table."""
    table = state.tables.get(table_id)
    if table is None:
        return None
    running = table.running
    return running if running is not None and running.round_id == round_id else None


def round_number(table_id: str, round_id: str) -> int:
    """The number in a round id of this table; 0 where it is none."""
    prefix = f"{table_id}-"
    digits = round_id.removeprefix(prefix)
    if len(prefix) + len(digits) != len(round_id) or len(digits) > 19:
        return 0
    if not digits.isascii() or not digits.isdecimal() or digits.startswith("0"):
        return 0
    return int(digits)
