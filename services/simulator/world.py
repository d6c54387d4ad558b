"""What players and operators can know: the log's answers, as a client that watches its tables would
see them, and what became of requests, as GetRequest would say.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from google.protobuf.message import Message

from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1 import entry_pb2
from sabot.log.v1 import events_pb2 as logs
from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import bet_pb2, spec_pb2
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import floor_events_pb2 as orders
from sabot.wallet.v1 import events_pb2 as wallet
from services.kernel.entry import EventTypes, position_of
from services.kernel.event import Position, waiting_since
from services.kernel.log import LogMessage
from services.kernel.reader import SEGMENT


class Seen(NamedTuple):
    """An answer as it was stored."""

    position: Position
    service: str
    body: Any
    """The message; its type is matched where it matters."""
    cause: Position
    partner: str
    continues: bool


@dataclass(slots=True)
class SeenRound:
    """A round."""

    table_id: str
    round_id: str
    number: int
    rule_set: rule_set_pb2.RuleSet
    """That governs it."""
    floor: bool = False
    """Whether its outcomes are told from the floor."""
    phase: str = "betting"
    """betting, dealing, paying, voided, closed"""
    suspended: bool = False
    unsettled: bool = False
    """Whether settling its result failed: an operator may void it."""
    reserved: dict[tuple[str, str], dict[str, bet_pb2.Bet]] = field(default_factory=dict)
    """By (partner, account): the bets that are on, by id."""


@dataclass(slots=True)
class SeenTable:
    """A table."""

    spec: spec_pb2.TableSpec
    open: bool = True
    shoe_ready: bool = False
    by_hand: bool = False
    """Whether the shoe that stands there was filled by hand: it stays on the floor to its end."""
    running: SeenRound | None = None


ABOUT_BETS = (
    table.BetsRejected,
    limits.BetsRefused,
    wallet.StakeReserved,
    wallet.StakeDeclined,
)
"""What ends the path of bets."""
ABOUT_ACTIONS = (table.ActionRejected, table.ActionTaken)
"""What ends the path of an action that needs no stake."""
ABOUT_STAKED_ACTIONS = (
    table.ActionRejected,
    limits.BetsRefused,
    wallet.StakeReserved,
    wallet.StakeDeclined,
)
"""What ends the path of one that does."""
ABOUT_WITHDRAWALS = (
    table.WithdrawalRejected,
    orders.WithdrawalNoted,
    limits.WithdrawalRefused,
    wallet.StakeReturned,
)
"""What ends the path of a withdrawal of bets."""
ABOUT_MONEY = (
    wallet.AccountOpened,
    wallet.AccountRequestDeclined,
    wallet.FundsDeposited,
    wallet.FundsWithdrawn,
)
"""What ends the path of a request about an account."""
TOSSES = frozenset(str(toss.DESCRIPTOR.full_name) for toss in (shoe.RecordSpin, shoe.RecordDice))
RESULT = str(table.ResultAccepted.DESCRIPTOR.full_name)
ENDS = (*ABOUT_BETS, *ABOUT_WITHDRAWALS, *ABOUT_MONEY, *ABOUT_ACTIONS)


def _waits(body: Any) -> bool:
    """Whether an action is taken, but takes effect only with its stake."""
    return isinstance(body, table.ActionTaken) and body.HasField("extra")


class World:
    """Everything that is known outside of the fleet."""

    def __init__(self, types: EventTypes) -> None:
        self._types = types
        self.tables: dict[str, SeenTable] = {}
        self.rounds: dict[str, SeenRound] = {}
        self.rounds_closed = 0
        self.outcomes: dict[tuple[str, str], Seen] = {}
        """By (partner, request id): how it ended first."""
        self.failures: list[Seen] = []
        """Failed decisions that nobody has had retried yet."""
        self.failed: Counter[str] = Counter()
        """By service: how many decisions failed."""
        self.inputs_open: dict[Position, None] = {}
        """Inputs that their service has not answered."""
        self.late_results = 0
        """Results that came after their round was voided."""
        self.refusals: Counter[str] = Counter()
        """What the table and limits said no to, by reason."""
        self.turns_timed_out = 0
        """Turns that the system ended."""
        self.second_tosses = 0
        """Spins and rolls that came after the one that stands."""
        self.held_results = 0
        """Results that came while their round was suspended."""
        self._tosses: set[Position] = set()
        self._by_cause: dict[Position, list[Seen]] = {}
        self._copies: dict[tuple[str, str], int] = {}
        self._listeners: list[Callable[[Seen], None]] = []
        self._changed: list[asyncio.Future[None]] = []

    def listen(self, listener: Callable[[Seen], None]) -> None:
        """Call `listener` with every answer, at the instant at which it is stored."""
        self._listeners.append(listener)

    async def changed(self, wait_s: float) -> None:
        """Wait for the next answer, at most so long."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._changed.append(future)
        await asyncio.wait((future,), timeout=wait_s)

    def see(self, message: LogMessage) -> None:
        """Take an entry, as it is stored."""
        service, kind = message.subject.split(".")[2:]
        entry = entry_pb2.Entry.FromString(message.payload)
        if kind == "in":
            key = (service, entry.writer)
            if entry.counter > self._copies.get(key, 0):
                self._copies[key] = entry.counter
                for index, told in enumerate(entry.events):
                    position = Position(SEGMENT, message.sequence, index)
                    self.inputs_open[position] = None
                    if told.type in TOSSES:
                        self._tosses.add(position)
            return
        for index, event in enumerate(entry.events):
            seen = Seen(
                Position(SEGMENT, message.sequence, index),
                service,
                self._types.decode(event.type, event.body),
                position_of(event.cause),
                event.partner,
                event.continues,
            )
            self._take(seen)
            for listener in self._listeners:
                listener(seen)
        changed, self._changed = self._changed, []
        for future in changed:
            if not future.done():
                future.set_result(None)

    def _take(self, seen: Seen) -> None:
        body = seen.body
        self.inputs_open.pop(seen.cause, None)
        self._by_cause.setdefault(seen.cause, []).append(seen)
        self._end_of_request(seen)
        match body:
            case (
                table.BetsRejected()
                | table.WithdrawalRejected()
                | table.ActionRejected()
                | table.OrderRejected()
            ):
                self.refusals[table.Refusal.Name(body.refusal)] += 1
            case limits.BetsRefused() | limits.DepositRefused():
                self.refusals.update(limits.Limit.Name(one.limit) for one in body.violations)
            case floor.FloorRejected():
                self.refusals[floor.FloorRefusal.Name(body.refusal)] += 1
            case logs.InputIgnored():
                self.second_tosses += (
                    body.reason == logs.IGNORED_REASON_SECOND_DRAW and seen.cause in self._tosses
                )
            case logs.InputFailed():
                self.failures.append(seen)
                self.failed[seen.service] += 1
                if seen.service == "settlement" and body.input_type == RESULT:
                    accepted = table.ResultAccepted.FromString(body.input_body)
                    self.rounds[accepted.round_id].unsettled = True
            case table.TableOpened():
                known = self.tables.setdefault(body.spec.table_id, SeenTable(body.spec))
                known.spec = body.spec
                known.open = True
                known.shoe_ready = known.shoe_ready or not body.spec.rule_set.decks
            case table.TableClosed():
                self.tables[body.table_id].open = False
            case shoe.CardsBurned():
                if body.reason == shoe.BURN_REASON_SHOE_START:
                    self.tables[body.table_id].shoe_ready = True
            case shoe.ShoeOpened():
                self.tables[body.table_id].shoe_ready = body.ready
                self.tables[body.table_id].by_hand = bool(body.packs)
            case shoe.ShoeClosed():
                self.tables[body.table_id].shoe_ready = False
                self.tables[body.table_id].by_hand = False
            case table.RoundOpened():
                where = self.tables[body.table_id]
                rule_set = where.spec.rule_set
                one = SeenRound(body.table_id, body.round_id, body.number, rule_set)
                one.floor = where.by_hand or where.spec.origin == spec_pb2.OUTCOME_ORIGIN_FLOOR
                self.rounds[body.round_id] = where.running = one
            case _:
                one_or_none = self.rounds.get(getattr(body, "round_id", ""))
                if one_or_none is not None:
                    self._round_goes_on(one_or_none, seen.partner, body)

    def _end_of_request(self, seen: Seen) -> None:
        """What may be the outcome of a caller's request."""
        since = waiting_since(seen.body)
        if since is not None and since != seen.cause:
            # A partner's wallet was waited for: this is what came of it.
            self._by_cause.setdefault(since, []).append(seen)
        if isinstance(seen.body, ENDS) and not _waits(seen.body):
            request_id = str(getattr(seen.body, "request_id", ""))
            partner = seen.partner or str(getattr(seen.body, "partner_id", ""))
            self.outcomes.setdefault((partner, request_id), seen)

    def _round_goes_on(self, one: SeenRound, partner: str, body: Message) -> None:
        match body:
            case table.BettingClosed():
                one.phase = "dealing"
            case table.RoundSuspended():
                one.suspended = True
            case table.RoundResumed():
                one.suspended = False
            case table.ResultAccepted():
                one.phase = "paying"
            case table.RoundVoided():
                one.phase = "voided"
                one.suspended = False
            case table.RoundClosed():
                one.phase = "closed"
                self.rounds_closed += 1
                self.tables[one.table_id].running = None
            case table.ActionTaken():
                self.turns_timed_out += body.source == table.SOURCE_TIMER
            case rules.RoundResolved():
                self.late_results += one.phase == "voided"
                self.held_results += one.suspended
            case wallet.StakeReserved():
                held = one.reserved.setdefault((partner, body.account_id), {})
                held.update({bet.bet_id: bet for bet in body.bets})
            case wallet.StakeReturned():
                held = one.reserved.get((body.partner_id, body.account_id), {})
                for bet in body.bets:
                    held.pop(bet.bet_id, None)
            case _:
                pass

    def outcome_of(self, position: Position, until: tuple[type[Message], ...]) -> Seen | None:
        """How the path that begins with an input ended, if it has, in one of `until`."""
        for seen in self._by_cause.get(position, ()):
            if isinstance(seen.body, (*until, logs.InputFailed, logs.InputIgnored)):
                return seen
            further = self.outcome_of(seen.position, until)
            if further is not None:
                return further
        return None

    def who_sits(self, one: SeenRound, seat: int) -> tuple[str, str] | None:
        """(partner, account) of a seat's main bet; None where there is none."""
        for owner, bets in one.reserved.items():
            if any(bet.bet == "main" and bet.position == str(seat) for bet in bets.values()):
                return owner
        return None

    def running(self, *phases: str) -> list[SeenRound]:
        """The rounds that run and are in one of these phases, by table."""
        return [
            one.running
            for one in self.tables.values()
            if one.running is not None and one.running.phase in phases
        ]
