"""What is followed live: tables as they change, and the outcomes of a partner's bets.

Tables: each has a ring of its last changes, which all its watchers read at their own pace. Whoever
falls out of it, or comes with a token from before this process began, gets the state again, marked
`resync`. Bets: events only say that a partner's bets changed; what is told is read from the
projection, so that a token is good for ever.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from google.protobuf.message import Message

from sabot.audit.v1 import events_pb2 as audits
from sabot.limits.v1 import events_pb2 as limits
from sabot.partner.v1 import partner_service_pb2 as partners
from sabot.settlement.v1 import correction_events_pb2 as settled_again
from sabot.settlement.v1 import events_pb2 as settlements
from sabot.table.v1 import correction_events_pb2 as corrections
from sabot.table.v1 import events_pb2 as tables
from sabot.table.v1 import switch_events_pb2 as switches
from sabot.wallet.v1 import events_pb2 as wallets
from services.kernel.call import position_message, position_text, seal_token
from services.kernel.edge import Edge, EdgeNotReady
from services.kernel.event import Event, Position
from services.kernel.projections import ProjectionUnavailable
from services.kernel.telemetry import Metrics
from services.kernel.telemetry_names import WATCH_RESYNCS, WATCHERS
from services.table import round_view
from services.table.domain.state import Table, TableState
from services.table.domain.switches import table_off
from services.table.queries import TableQueries
from services.table.ring import Ring
from services.table.roads import GAMES, ShoeRoads
from services.table.seats_view import SEATING, is_further, show_held

HEARTBEAT_S = 5.0
"""A watcher that hears nothing for so long is told that nothing happened."""
LOAD_WAIT_S = 1.0
"""How long a table's round may wait for the projection before it is shown without its cards."""
RESUME_WAIT_S = 5.0
"""How long a token from another server may wait for this one to read so far."""
BETS_PAGE = 200
"""Bets told at a time: about 100 KiB."""
NOWHERE = Position(0, 0, 0)
"""Before every event."""
BETS_RETRY_S = 0.5
"""Before a projection that is away or behind is asked again."""


class LiveTables:
    """The tables as everyone sees them now."""

    def __init__(self, edge: Edge, queries: TableQueries, metrics: Metrics) -> None:
        self._edge = edge
        self._queries = queries
        self._rounds: dict[str, partners.Round] = {}
        self._roads: dict[str, ShoeRoads] = {}
        """Of the shoe of each table's running or last round."""
        self._missed: dict[str, list[Event]] = {}
        self._loading: dict[str, asyncio.Lock] = {}
        self._rings: dict[str, Ring] = {}
        self._heard = edge.position
        self._seal: audits.LogSealed | None = None
        """The newest seal since this server began to read."""
        self._closed = False
        self._watchers = metrics.gauge(WATCHERS).labels("tables")
        self._resyncs = metrics.counter(WATCH_RESYNCS)
        self._leave: Callable[[], None] = edge.follow(self._hear)

    def close(self) -> None:
        """End all watchers: they are to go on at another server."""
        if self._closed:
            return
        self._closed = True
        self._leave()
        for ring in self._rings.values():
            ring.stir()

    # ---- what is shown -------------------------------------------------------------------------

    async def table(self, table_id: str, wait_s: float = LOAD_WAIT_S) -> partners.Table | None:
        """A table with its running or last round; None where there is none of this id."""
        table = self._table(table_id)
        if table is None:
            return None
        if table.number and not self._is_known(table_id, table):
            await self._load(table_id, table, wait_s)
        return self._view(table_id)

    def ids(self) -> list[str]:
        """The open tables, by id."""
        return sorted(name for name, table in self._state().tables.items() if table.is_open)

    def have_roads(self, table_id: str) -> bool:
        """Whether the game at a table has roads."""
        table = self._table(table_id)
        return table is not None and _has_roads(table)

    def seat(self, table_id: str, round_id: str, number: int) -> partners.Seat | None:
        """A seat of the running or last round as it is shown; None where it is not."""
        shown = self._rounds.get(table_id)
        if shown is None or shown.round_id != round_id:
            return None
        return next((seat for seat in shown.seats if seat.seat == number), None)

    def _state(self) -> TableState:
        state: TableState = self._edge.state("table")
        return state

    def _table(self, table_id: str) -> Table | None:
        return self._state().tables.get(table_id)

    def _shown(self, table_id: str, table: Table) -> partners.Round | None:
        """The view of the table's running or last round, if it is here."""
        view = self._rounds.get(table_id)
        return view if view is not None and view.number == table.number else None

    def _is_known(self, table_id: str, table: Table) -> bool:
        """Whether all is here that is shown of the table's running or last round."""
        if self._shown(table_id, table) is None:
            return False
        roads = self._roads.get(table_id)
        return (roads is not None and roads.complete) or not _has_roads(table)

    def _view(self, table_id: str) -> partners.Table | None:
        table = self._table(table_id)
        if table is None:
            return None
        view = partners.Table(
            spec=table.spec,
            revision=table.revision,
            open=table.is_open,
            position=position_message(self._heard),
        )
        view.server_time.GetCurrentTime()
        off = table_off(self._state(), table)
        if off is not None:
            view.switched_off = off.scope
        shown = self._shown(table_id, table)
        if shown is not None:
            view.round.CopyFrom(shown)
            round_view.show_time(view.round, table.running)
            if table.running is not None and table.running.seated:
                show_held(view.round, table.running.seats)
        elif table.running is not None:
            view.round.CopyFrom(round_view.from_state(table, table.running))
        roads = self._roads.get(table_id)
        if not _has_roads(table):
            pass
        elif roads is not None and roads.complete and shown is not None:
            view.roads.CopyFrom(roads.message())
        elif not table.number:
            view.roads.shoe_id = table.shoe_id
        return view

    async def _load(self, table_id: str, table: Table, wait_s: float) -> None:
        """Take a round that began before this process from the projection, and what happens
        meanwhile from the log. Where the projection is away, nothing is taken."""
        async with self._loading.setdefault(table_id, asyncio.Lock()):
            if self._is_known(table_id, table):
                return
            running = table.running
            round_id = running.round_id if running else f"{table_id}-{table.number}"
            missed = self._missed[table_id] = []
            shoe: Sequence[partners.Round] = ()
            with suppress(ProjectionUnavailable):
                if await self._queries.reached(self._edge.position, wait_s):
                    found = await self._queries.round(round_id)
                    if found is not None:
                        shoe = await self._queries.rounds_of_shoe(found.shoe_id)
            self._missed.pop(table_id, None)
            for event in missed:
                for view in shoe:
                    if getattr(event.body, "round_id", "") == view.round_id:
                        round_view.follow(view, event, _ace(table))
            for view in shoe:
                if view.round_id == round_id and not self._shown(table_id, table):
                    self._rounds[table_id] = view
                    self._follow_roads(table_id, view)
            roads = self._roads.get(table_id)
            if shoe and roads is not None and roads.shoe_id == shoe[0].shoe_id:
                roads.begin_with(shoe)

    # ---- what happens --------------------------------------------------------------------------

    def _hear(self, events: list[Event]) -> None:
        if not events:
            return
        for event in events:
            body = event.body
            if type(body) in round_view.CHANGES or is_further(body):
                self._round_changed(event)
            elif type(body) in SEATING:
                self._seats_changed(event)
            elif isinstance(body, tables.TableOpened | tables.TableClosed | switches.SwitchSet):
                self._heard = event.position
                for table_id in _changed_by(body) or self._rings:
                    self._table_changed(event, table_id)
            elif isinstance(body, audits.LogSealed):
                self._seal = body
        self._heard = events[-1].position

    def _round_changed(self, event: Event) -> None:
        body = event.body
        table_id: str = getattr(body, "table_id")  # noqa: B009 - every type in CHANGES has one
        round_id: str = getattr(body, "round_id")  # noqa: B009 - the same
        if isinstance(body, tables.RoundOpened):
            self._rounds[table_id] = round_view.opened(body, event.time_us)
            self._missed.pop(table_id, None)
        shown = self._rounds.get(table_id)
        if shown is None or shown.round_id != round_id:
            missed = self._missed.get(table_id)
            if missed is not None:
                missed.append(event)
            if isinstance(body, corrections.ResultCorrected) and table_id in self._roads:
                self._roads[table_id].forget(round_id)
            if table_id in self._rings:
                self._rings[table_id].restart(event.position)
            return
        table = self._table(table_id)
        round_view.follow(shown, event, _ace(table) if table else 0)
        round_view.show_time(shown, table.running if table else None)
        self._follow_roads(table_id, shown)
        self._push_round(event, table_id, shown)

    def _seats_changed(self, event: Event) -> None:
        """Bets came or went: at a table with seats, who may sit where can be another matter."""
        table_id: str = getattr(event.body, "table_id")  # noqa: B009 - every type has one
        table, shown = self._table(table_id), self._rounds.get(table_id)
        running = table.running if table else None
        if running is None or not running.seated or shown is None:
            return
        if shown.round_id == running.round_id and show_held(shown, running.seats):
            self._push_round(event, table_id, shown)

    def _push_round(self, event: Event, table_id: str, shown: partners.Round) -> None:
        ring = self._rings.get(table_id)
        if ring is not None:
            change = partners.WatchTableResponse(round=shown)
            ring.push(event.position, self._at(change, table_id, event.position))

    def _follow_roads(self, table_id: str, shown: partners.Round) -> None:
        """Of a shoe's first round all is known; what came before any other must be loaded."""
        roads = self._roads.get(table_id)
        if roads is None or roads.shoe_id != shown.shoe_id:
            complete = shown.round_in_shoe == 1
            roads = self._roads[table_id] = ShoeRoads(shown.shoe_id, complete=complete)
        roads.follow(shown)

    def _table_changed(self, event: Event, table_id: str) -> None:
        ring = self._rings.get(table_id)
        view = self._view(table_id)
        if ring is not None and view is not None:
            change = partners.WatchTableResponse(state=view)
            ring.push(event.position, self._at(change, table_id, event.position))

    def _at(
        self, change: partners.WatchTableResponse, table_id: str, position: Position
    ) -> partners.WatchTableResponse:
        change.position.CopyFrom(position_message(position))
        change.resume_token = seal_token(self.scope(table_id), position_text(position))
        if self._seal is not None and (not change.HasField("round") or _is_over(change.round)):
            change.seal.CopyFrom(self._seal)
        return change

    def scope(self, table_id: str) -> tuple[str, ...]:
        """What a table's resume tokens are good for."""
        return ("WatchTable", self._edge.cell, table_id)

    # ---- watching ------------------------------------------------------------------------------

    async def watch(
        self, table_id: str, resume: Position | None
    ) -> AsyncIterator[partners.WatchTableResponse]:
        """The table's state, or what changed since `resume`, then every change; without end.

        The table exists. Raises EdgeNotReady when this server is behind the token, or stops.
        """
        with self._watchers.track_inprogress():
            ring = self._rings.get(table_id)
            if ring is None:
                ring = self._rings[table_id] = Ring(self._heard)
            told = resume
            if resume and not await self._edge.reached(resume, wait_s=RESUME_WAIT_S):
                raise EdgeNotReady("the token is from a server that has read further")
            while not self._closed:
                if told is None or told < ring.since:
                    view = await self.table(table_id)
                    state = partners.WatchTableResponse(state=view, resync=told is not None)
                    if state.resync:
                        self._resyncs.inc()
                    told = self._heard
                    yield self._at(state, table_id, told)
                    continue
                wake = ring.wake
                fresh = [each for each in ring.changes if each[0] > told]
                for position, change in fresh:
                    told = position
                    yield change
                if fresh:
                    continue
                if not await _heard_within(wake, HEARTBEAT_S) and not self._closed:
                    told = max(told, self._heard) if wake is ring.wake else told
                    yield self._at(partners.WatchTableResponse(heartbeat=True), table_id, told)
            raise EdgeNotReady("stopping")


def _changed_by(body: Message) -> list[str]:
    """The table that an event changes; empty: any."""
    match body:
        case tables.TableOpened():
            return [body.spec.table_id]
        case tables.TableClosed():
            return [body.table_id]
        case _:
            return []


def _ace(table: Table) -> int:
    """Where the ace stands; a running round keeps its table's rules."""
    return table.spec.rule_set.two_cards.ace


def _has_roads(table: Table) -> bool:
    return table.spec.rule_set.game in GAMES


def _is_over(shown: partners.Round) -> bool:
    return shown.state in (partners.ROUND_STATE_PAID, partners.ROUND_STATE_RETURNED)


async def _heard_within(wake: asyncio.Event, wait_s: float) -> bool:
    try:
        async with asyncio.timeout(wait_s):
            await wake.wait()
    except TimeoutError:
        return False
    return True


BET_CHANGES: frozenset[type[Message]] = frozenset(
    (
        tables.BetsPlaced,
        tables.ActionTaken,
        limits.BetsRefused,
        wallets.StakeReserved,
        wallets.StakeDeclined,
        wallets.StakeReturned,
        settlements.BetsSettled,
        settled_again.BetsCorrected,
    )
)
"""The events after which some bet of a partner stands differently."""


@dataclass(slots=True)
class _Stir:
    """What a partner's watchers wait for."""

    watchers: int = 0
    last: Position = NOWHERE
    """The last event that changed one of the partner's bets."""
    wake: asyncio.Event = field(default_factory=asyncio.Event)

    def stir(self) -> None:
        self.wake.set()
        self.wake = asyncio.Event()


class LiveBets:
    """The outcomes of partners' bets as they come."""

    def __init__(self, edge: Edge, queries: TableQueries, metrics: Metrics) -> None:
        self._edge = edge
        self._queries = queries
        self._partners: dict[str, _Stir] = {}
        self._closed = False
        self._watchers = metrics.gauge(WATCHERS).labels("bets")
        self._leave: Callable[[], None] = edge.follow(self._hear)

    def close(self) -> None:
        """End all watchers: they are to go on at another server."""
        if self._closed:
            return
        self._closed = True
        self._leave()
        for stir in self._partners.values():
            stir.stir()

    def scope(self, partner: str) -> tuple[str, ...]:
        """What a partner's resume tokens are good for."""
        return ("WatchBets", self._edge.cell, partner)

    def _hear(self, events: list[Event]) -> None:
        if not self._partners:
            return
        for event in events:
            if type(event.body) not in BET_CHANGES:
                continue
            # Where the body says whose bets they are, the header says only who set it off: what
            # a seat does may bring about what concerns everybody at the table.
            partner = str(getattr(event.body, "partner_id", "")) or event.partner
            stir = self._partners.get(partner)
            if stir is not None:
                stir.last = event.position
                stir.stir()

    async def watch(
        self, partner: str, resume: Position | None
    ) -> AsyncIterator[partners.WatchBetsResponse]:
        """Every bet of the partner that stands differently after `resume`, or from now on; then a
        heartbeat comes at once, so that a stream that breaks before the first bet can be resumed.
        """
        stir = self._partners.setdefault(partner, _Stir())
        stir.watchers += 1
        try:
            with self._watchers.track_inprogress():
                told = self._edge.position if resume is None else resume
                if resume is None:
                    yield self._at(partners.WatchBetsResponse(heartbeat=True), partner, told)
                next_beat = time.monotonic() + HEARTBEAT_S
                while not self._closed:
                    wake = stir.wake
                    bets, upto = await self._changed(partner, told, stir.last)
                    for message, at in self._messages(partner, bets, told, upto):
                        told = at
                        yield message
                    told = max(told, upto)
                    if bets:
                        next_beat = time.monotonic() + HEARTBEAT_S
                    elif time.monotonic() >= next_beat:
                        next_beat = time.monotonic() + HEARTBEAT_S
                        yield self._at(partners.WatchBetsResponse(heartbeat=True), partner, told)
                    if upto < stir.last or len(bets) >= BETS_PAGE:
                        await asyncio.sleep(0 if len(bets) >= BETS_PAGE else BETS_RETRY_S)
                        continue
                    await _heard_within(wake, max(0.0, next_beat - time.monotonic()))
                raise EdgeNotReady("stopping")
        finally:
            stir.watchers -= 1
            if not stir.watchers:
                self._partners.pop(partner, None)

    async def _changed(
        self, partner: str, told: Position, wanted: Position
    ) -> tuple[list[partners.PlacedBet], Position]:
        """Bets that stand differently after `told`, and up to where that is all of them. Nothing
        while the projection is away."""
        try:
            await self._queries.reached(max(told, wanted), BETS_RETRY_S)
            bets, upto = await self._queries.bets_after(partner, told, BETS_PAGE)
        except ProjectionUnavailable:
            return [], told
        return list(bets), upto

    def _messages(
        self, partner: str, bets: list[partners.PlacedBet], told: Position, upto: Position
    ) -> list[tuple[partners.WatchBetsResponse, Position]]:
        """One message a bet. What one event changed is told whole only with its last bet: until
        then a token goes back before that event."""
        found = []
        for index, bet in enumerate(bets):
            at = Position(bet.position.segment, bet.position.sequence, bet.position.index)
            last = index + 1 == len(bets)
            if last:
                told = upto
            elif bets[index + 1].position != bet.position:
                told = at
            message = self._at(partners.WatchBetsResponse(bet=bet), partner, told)
            found.append((message, told))
        return found

    def _at(
        self, message: partners.WatchBetsResponse, partner: str, position: Position
    ) -> partners.WatchBetsResponse:
        message.position.CopyFrom(position_message(position))
        message.resume_token = seal_token(self.scope(partner), position_text(position))
        return message
