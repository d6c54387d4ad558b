"""Two releases of the fleet's cores, so that a simulation can roll one out over the other.

Release 1 decides by behaviour 1. Release 2 decides by behaviour 2 as well: as the cores do, with
big work in smaller steps. Beyond that it says the same things a little differently, and mends the
bugs that are planted in behaviour 1: a decision that fails there, everywhere alike, for a few
events.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from google.protobuf.message import Message

from sabot.limits.v1 import events_pb2 as limits
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.audit.domain.core import CORE as AUDIT
from services.games import steps
from services.kernel.event import Answers, Core, Event, InvariantViolated, Unfinished
from services.limits.domain.core import CORE as LIMITS
from services.rules.domain.core import CORE as RULES
from services.settlement.domain.core import CORE as SETTLEMENT
from services.shoe.domain.core import CORE as SHOE
from services.table.domain.core import CORE as TABLE
from services.wallet.domain.core import CORE as WALLET

Cores = Mapping[str, Core[Any]]
"""By service."""

BASE: Cores = {
    core.service: core for core in (TABLE, LIMITS, WALLET, SHOE, RULES, SETTLEMENT, AUDIT)
}
"""The cores as they are."""
STEP_BETS = (5, 3)
"""So many bets in a step, by behaviour, instead of dozens: simulated rounds are small, and a
settlement or a void must still go in several steps."""
POISONED_CLIENT_TIME = 666
POISONED_LIMITS_STAKE = 613
POISONED_WALLET_STAKE = 617
"""What the planted bugs stumble over; a simulated player sends it now and then."""

Poisoned = Callable[[Message], bool]


class PlantedBug(Exception):
    """A planted bug in behaviour 1."""


def _by_round(share: int) -> Poisoned:
    """One round in so many, by its id."""
    return lambda body: zlib.crc32(f"{body.round_id}".encode()) % share == 0  # type: ignore[attr-defined]  # bodies about a round


def _stakes(minor: int) -> Poisoned:
    return lambda body: any(bet.stake_minor == minor for bet in body.bets)  # type: ignore[attr-defined]  # bodies with bets


_POISONS: Mapping[str, Mapping[type[Message], Poisoned]] = {
    "table": {
        table.PlaceBets: lambda body: (
            body.client_time_us == POISONED_CLIENT_TIME  # type: ignore[attr-defined]  # PlaceBets
        )
    },
    "limits": {
        table.BetsPlaced: _stakes(POISONED_LIMITS_STAKE),
        table.BetsWithdrawn: _by_round(5),
    },
    "wallet": {
        limits.BetsApproved: _stakes(POISONED_WALLET_STAKE),
        settlement.BetsSettled: _by_round(7),
    },
    "rules": {wallet.StakesSealed: _by_round(5)},
    "settlement": {table.ResultAccepted: _by_round(11)},
}
"""By service and what it answers: where its planted bug fails."""
PLANTABLE = tuple(_POISONS)


def release(number: int, base: Cores, planted: Sequence[str]) -> Cores:
    """The cores of a release, 1 or 2. `planted`: the services with a bug in behaviour 1."""
    cores: dict[str, Core[Any]] = {}
    for service, core in base.items():
        decide = core.decide
        if service in ("settlement", "limits"):
            decide = _by_behaviour(decide)
        if service in planted:
            decide = _with_bug(decide, _POISONS[service])
        cores[service] = dataclasses.replace(core, behaviour=number, decide=decide)
    return cores


def _with_bug(
    decide: Callable[[Any, Event], Answers], poisons: Mapping[type[Message], Poisoned]
) -> Callable[[Any, Event], Answers]:
    def decide_or_fail(state: Any, event: Event) -> Answers:
        poisoned = poisons.get(type(event.body))
        if poisoned is not None and event.behaviour < 2 and poisoned(event.body):
            raise PlantedBug
        return decide(state, event)

    return decide_or_fail


def _by_behaviour(decide: Callable[[Any, Event], Answers]) -> Callable[[Any, Event], Answers]:
    """Behaviour 2: a refusal names the first broken limit only, a settlement lists bets backwards.
    A settlement keeps the behaviour of its round, through all of its steps."""

    def decide_by_behaviour(state: Any, event: Event) -> Answers:
        answers = decide(state, event)
        unfinished = isinstance(answers, Unfinished)
        bodies = answers.answers if isinstance(answers, Unfinished) else answers
        for body in bodies:
            if isinstance(body, limits.BetsRefused) and event.behaviour >= 2:
                del body.violations[1:]
            elif isinstance(body, settlement.BetsSettled):
                running = state.tables[body.table_id].running
                if running is None:
                    raise InvariantViolated(f"{body.round_id} is settled, but does not run")
                if running.behaviour >= 2:
                    backwards = list(reversed(body.bets))
                    del body.bets[:]
                    body.bets.extend(backwards)
        return Unfinished(bodies) if unfinished else bodies

    return decide_by_behaviour


@contextmanager
def small_steps() -> Iterator[None]:
    """Let settlements, voids and closes on the floor go in steps of a few bets."""
    before = steps.STEP_BETS
    steps.STEP_BETS = STEP_BETS
    try:
        yield
    finally:
        steps.STEP_BETS = before
