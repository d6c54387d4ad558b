"""Seats and turns of blackjack as the table keeps them (rules BJ-11 to BJ-14).

Rules say whose turn it is; the table gives it its time, takes the action, and decides for whoever
does not act. A double, a split and insurance wait for their stake: while that is under way the turn
stays with the seat, under its first deadline.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sabot.rules.v1 import events_pb2 as rules
from sabot.table.v1 import spec_pb2
from services.games.blackjack_bets import seat_of
from services.kernel.event import Position

ACTION_MS = 15_000
"""The time of an action where a table does not say (`Pacing.action_ms`)."""
MAX_FURTHER_BETS = 14
"""Further stakes of an account that holds every seat: each insured, and doubled or split."""


@dataclass(slots=True)
class Seat:
    """A seat that somebody holds: it is free again once none of its bets can come on any more."""

    partner: str
    account_id: str
    bets: int = 0
    """Bets that lie there, or may: not known to be refused, declined or taken back."""


@dataclass(slots=True)
class Turn:
    """The turn that is open: an action of one hand, or the offer of insurance to several seats."""

    number: int
    due_us: int | None
    """When its time is over, in log time; None while the round stands still."""
    asked_at: Position
    """What set its timer: its call, or the resumption of the round."""
    timer: int = 1
    """Which setting of its timer is in force."""
    seat: int = 0
    """0: the offer of insurance."""
    hand: int = 0
    actions: tuple[int, ...] = ()
    """`sabot.rules.v1.Action`, all that are allowed."""
    max_double_minor: int = 0
    split_minor: int = 0
    advice: int = 0
    """What basic strategy does, hit or stand."""
    offered: dict[int, int] = field(default_factory=dict[int, int])
    """Insurance: the stake by seat, of the seats that have not answered for good."""
    pending: dict[int, str] = field(default_factory=dict[int, str])
    """By seat: the bet whose stake is under way."""
    timed_out: bool = False
    """Its time was over while a stake was under way."""

    @property
    def is_offer(self) -> bool:
        """Whether it is the offer of insurance."""
        return not self.seat


def turn_called(
    body: rules.ActionCalled | rules.InsuranceOffered, due_us: int | None, asked_at: Position
) -> Turn:
    """The turn that rules called."""
    if isinstance(body, rules.InsuranceOffered):
        return Turn(
            body.turn,
            due_us,
            asked_at,
            actions=(rules.ACTION_INSURE, rules.ACTION_DECLINE_INSURANCE),
            offered=dict(zip(body.seats, body.stakes_minor, strict=False)),
        )
    return Turn(
        body.turn,
        due_us,
        asked_at,
        seat=body.seat,
        hand=body.hand,
        actions=tuple(body.actions),
        max_double_minor=body.max_double_minor,
        split_minor=body.split_minor,
        advice=body.advice,
    )


def action_us(spec: spec_pb2.TableSpec) -> int:
    """How long a turn may take."""
    return (spec.pacing.action_ms or ACTION_MS) * 1_000


def held_seat(position: str) -> int:
    """The seat that a bet lies at; 0: none."""
    return seat_of(position) or 0
