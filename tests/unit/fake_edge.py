"""A process's edge without a log, for tests of servicers: it answers what the test has laid out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import Message

from sabot.partner.v1 import partner_service_pb2 as partners
from services.kernel.edge import Outcome
from services.kernel.event import Event, Position
from services.kernel.projections import ProjectionUnavailable, Projector
from services.wallet.books import Books
from services.wallet.ledger_queries import SqlLedgerQueries
from services.wallet.projection import WalletProjection
from tests.unit.projecting import nothing

START_US = 1_700_000_000_000_000
PARTNER = "north"


@dataclass
class Submitted:
    """An input that a servicer has appended."""

    service: str
    body: Any
    partner: str
    actor: str
    until: frozenset[type[Message]]
    wait_s: float
    traceparent: str


@dataclass
class FakeEdge:
    """`answers`: what the next inputs become, in order: a message, or an exception to be raised."""

    answers: list[Message | Exception] = field(default_factory=list)
    states: dict[str, Any] = field(default_factory=dict)
    submitted: list[Submitted] = field(default_factory=list)
    cell: str = "main"
    position: Position = Position(1, 10, 0)  # noqa: RUF009  # a tuple never changes
    log_time_us: int = START_US
    behaviour: int = 1
    known_behaviour: int = 3
    failed: dict[Position, Position] = field(default_factory=dict)
    listeners: list[Callable[[list[Event]], None]] = field(default_factory=list)

    def failed_input(self, position: Position) -> Position | None:
        return self.failed.get(position)

    async def submit(
        self,
        service: str,
        body: Message,
        *,
        partner: str,
        actor: str,
        until: frozenset[type[Message]],
        wait_s: float,
        traceparent: str = "",
    ) -> Outcome:
        asked = Submitted(service, body, partner, actor, until, wait_s, traceparent)
        self.submitted.append(asked)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        at = Position(1, self.position.sequence + 1, 0)
        told = self.event(answer, sequence=at.sequence + 1, service=service, partner=partner)
        self.position = told.position
        return Outcome(at, told)

    def state(self, service: str) -> Any:
        return self.states[service]

    async def reached(self, position: Position, *, wait_s: float) -> bool:
        del wait_s
        return position <= self.position

    def follow(self, listener: Callable[[list[Event]], None]) -> Callable[[], None]:
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)

    def event(
        self, body: Message, *, sequence: int, service: str = "table", partner: str = ""
    ) -> Event:
        """An answer as it is read back."""
        position = Position(1, sequence, 0)
        cause = Position(1, sequence - 1, 0)
        actor = f"partner:{partner}" if partner else "system:test"
        time_us = self.log_time_us + sequence * 1000
        return Event(position, service, False, body, cause, partner, actor, time_us, 1)

    def happens(self, *bodies: Message, partner: str = "") -> list[Event]:
        """The log goes on by one entry of these events."""
        sequence = self.position.sequence + 1
        events = [
            self.event(body, sequence=sequence, partner=partner)._replace(
                position=Position(1, sequence, index)
            )
            for index, body in enumerate(bodies)
        ]
        self.position = events[-1].position
        for listener in self.listeners:
            listener(events)
        return events


@dataclass
class FakeQueries:
    """A projection that holds what the test has put there."""

    position: Position = Position(1, 1000, 0)  # noqa: RUF009  # a tuple never changes
    rounds: dict[str, partners.Round] = field(default_factory=dict)
    placed: list[tuple[str, str, partners.PlacedBet]] = field(default_factory=list)
    """(key, partner, bet), newest first."""
    requests: dict[tuple[str, str, str], tuple[Position, partners.RequestOutcome]] = field(
        default_factory=dict
    )
    outcomes: dict[Position, list[partners.RequestOutcome]] = field(default_factory=dict)
    """What is told of an input, each time that it is asked; the last one stays."""
    away: bool = False

    async def reached(self, position: Position, wait_s: float) -> bool:
        del wait_s
        self._look()
        return position <= self.position

    async def round(self, round_id: str) -> partners.Round | None:
        self._look()
        found = self.rounds.get(round_id)
        if found is None:
            return None
        copy = partners.Round()
        copy.CopyFrom(found)
        return copy

    async def rounds_of_shoe(self, shoe_id: str) -> list[partners.Round]:
        self._look()
        found = [await self.round(one.round_id) for one in self.rounds.values()]
        return [one for one in found if one is not None and one.shoe_id == shoe_id]

    async def bets(
        self,
        partner: str | None,
        account: str | None,
        round_id: str | None,
        limit: int,
        before_key: str | None,
    ) -> list[tuple[str, partners.PlacedBet]]:
        self._look()
        found = [
            (key, bet)
            for key, owner, bet in self.placed
            if partner in {None, owner}
            and account in {None, bet.account_id}
            and round_id in {None, bet.round_id}
        ]
        keys = [key for key, _ in found]
        start = 0 if before_key is None else keys.index(before_key) + 1
        return found[start : start + limit]

    async def bets_after(
        self, partner: str, position: Position, limit: int
    ) -> tuple[list[partners.PlacedBet], Position]:
        self._look()

        def at(bet: partners.PlacedBet) -> Position:
            return Position(bet.position.segment, bet.position.sequence, bet.position.index)

        changed = [bet for _, owner, bet in self.placed if owner == partner and at(bet) > position]
        changed.sort(key=at)
        if len(changed) < limit:
            return changed, self.position
        last = at(changed[limit - 1])
        return [bet for bet in changed if at(bet) <= last], last

    async def request(
        self, scope: str, round_id: str, request_id: str
    ) -> tuple[Position, partners.RequestOutcome] | None:
        self._look()
        return self.requests.get((scope, round_id, request_id))

    async def outcome_at(self, position: Position) -> partners.RequestOutcome | None:
        self._look()
        told = self.outcomes.get(position)
        if not told:
            return None
        return told.pop(0) if len(told) > 1 else told[0]

    def _look(self) -> None:
        if self.away:
            raise ProjectionUnavailable("away")


def unopened_books() -> Books:
    """Books that nobody looks into: their projection is never opened."""
    projector = Projector(WalletProjection(), "sqlite+aiosqlite:///:memory:", nothing)
    return Books(SqlLedgerQueries(projector))
