"""A long log for `sabot bench`, made by the cores themselves: rounds of baccarat with some tens of
accounts, one after another, each answer decided by the core whose it is, with snapshots and seals
as audit makes them. No calls and no projections, so that it is made some times faster than a fleet
would write it; it is appended to a server of its own, entry by entry, and folds and is verified as
any other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from google.protobuf.message import Message

from sabot.audit.v1 import events_pb2 as audit
from sabot.log.v1 import entry_pb2, events_pb2
from sabot.table.v1 import bet_pb2
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.audit.domain.tree import root
from services.audit.seal_keys import Signer, load_or_create_signer, signed_text
from services.audit.snapshots import EVERY_ANSWERS, EVERY_ENTRIES
from services.audit.tree_file import TreeFile
from services.cli.bench_games import Dealer
from services.cli.bench_load import BenchFailed
from services.cli.cores import CORES
from services.conformance.cases import Rules
from services.conformance.rules import TABLE_ID, spec_of
from services.events import event_types
from services.games import catalogue
from services.kernel.entry import MAX_EVENTS, encode_body
from services.kernel.fence import fence_headers
from services.kernel.log import LogMessage
from services.kernel.reader import LogReader
from services.kernel.recovery import AnyReplica, read_message
from services.kernel.replica import Replica
from services.kernel.snapshot import (
    Snapshot,
    SnapshotFolder,
    SnapshotSet,
    StateCodec,
    digest,
    encode_snapshot,
)
from services.shoe.domain.wanted import wanted

PARTNER = "north"
CURRENCY = "EUR"
ACCOUNTS = 1_000
BETTORS = 200
"""Of a round."""
STAKE_MINOR = 1_000
DEPOSIT_MINOR = 500_000_000_000_000
START_US = 1_767_225_600_000_000
ROUND_US = 30_000_000
"""Log time from round to round; each is sealed, as half a minute of a live log is."""


class Appended(NamedTuple):
    """An entry as it was made; it is stored as it stands."""

    message: LogMessage
    expected: int | None
    """Its fence."""


class FilledLog:
    """See the module."""

    def __init__(self, cell: str, data: Path) -> None:
        self.events = 0
        self.rounds: list[str] = []
        self._cell = cell
        self._types = event_types()
        self._reader = LogReader(cell, self._types)
        self._replicas: dict[str, AnyReplica] = {
            core.service: Replica(core, writer="bench", build="bench") for core in CORES
        }
        self._folder = SnapshotFolder(data / "snapshots")
        self._tree = TreeFile(data / "seals" / "bench")
        self._signer: Signer | None = load_or_create_signer(data / "seal_keys.json")
        self._dealer = Dealer(8)
        self._counters: dict[str, int] = {}
        self._time_us = START_US
        self._ids = 0
        self._next = 0
        self._taken_at = self._taken_events = 0
        self._made: deque[Appended] = deque()
        self._last_of: dict[str, int] = {}

    # ---- entries -------------------------------------------------------------------------------

    def begin(self) -> Iterator[Appended]:
        """The table and the accounts; the entries that came of it."""
        spec = spec_of(Rules(catalogue.BACCARAT))
        self._tell("table", [table.OpenTable(request_id=self._uuid(), spec=spec)])
        self._deal()
        for first in range(0, ACCOUNTS, BETTORS):
            names = [_account(number) for number in range(first, first + BETTORS)]
            opening: list[Message] = [
                wallet.OpenAccount(request_id=self._uuid(), account_id=name, currency_code=CURRENCY)
                for name in names
            ]
            opening += [
                wallet.Deposit(
                    request_id=self._uuid(),
                    account_id=name,
                    currency_code=CURRENCY,
                    amount_minor=DEPOSIT_MINOR,
                )
                for name in names
            ]
            self._tell("wallet", opening, PARTNER)
        yield from self._drained()

    def round(self) -> Iterator[Appended]:
        """A round, sealed; the entries that came of it. Raises BenchFailed."""
        self._time_us += ROUND_US
        opening = table.OpenRound(
            request_id=self._uuid(), table_id=TABLE_ID, source=table.SOURCE_OPERATOR
        )
        events = self._tell("table", [opening])
        opened = next((one.body for one in events if isinstance(one.body, table.RoundOpened)), None)
        if opened is None:
            raise BenchFailed("a round of the filled log does not open")
        self._tell("table", [self._bet(opened.round_id) for _ in range(BETTORS)], PARTNER)
        closing = table.CloseBetting(
            request_id=self._uuid(),
            table_id=TABLE_ID,
            round_id=opened.round_id,
            source=table.SOURCE_OPERATOR,
        )
        events = self._tell("table", [closing]) + self._deal()
        if not any(isinstance(one.body, table.RoundClosed) for one in events):
            raise BenchFailed(f"round {opened.round_id} of the filled log stands")
        self.rounds.append(opened.round_id)
        self._seal()
        self._snapshot()
        yield from self._drained()

    def close(self) -> None:
        """Let go of its files."""
        self._tree.close()

    def _drained(self) -> Iterator[Appended]:
        while self._made:
            yield self._made.popleft()

    def _bet(self, round_id: str) -> table.PlaceBets:
        number, self._next = self._next, self._next + 1
        return table.PlaceBets(
            request_id=self._uuid(),
            account_id=_account(number % ACCOUNTS),
            table_id=TABLE_ID,
            round_id=round_id,
            currency_code=CURRENCY,
            bets=[bet_pb2.Bet(bet="player" if number % 2 else "banker", stake_minor=STAKE_MINOR)],
        )

    def _deal(self) -> list[Any]:
        """Give the shoe what it asks for."""
        told: list[Any] = []
        while True:
            state = self._replicas["shoe"].state.core
            body = next((one for wish in wanted(state) if (one := self._dealer.told(wish))), None)
            if body is None:
                return told
            told += self._tell("shoe", [body])

    def _tell(self, service: str, bodies: Sequence[Message], partner: str = "") -> list[Any]:
        """Append inputs, and all that is answered; the events."""
        actor = f"partner:{partner}" if partner else "operator:bench"
        events: list[Any] = []
        for first in range(0, len(bodies), MAX_EVENTS):
            counter = self._counters[service] = self._counters.get(service, 0) + 1
            entry = entry_pb2.Entry(writer=f"bench-{service}", counter=counter)
            for body in bodies[first : first + MAX_EVENTS]:
                self._time_us += 1
                entry.events.add(
                    type=str(body.DESCRIPTOR.full_name),
                    body=encode_body(body),
                    partner=partner,
                    actor=actor,
                    time_us=self._time_us,
                )
            payload = entry.SerializeToString(deterministic=True)
            events += self._append(f"sabot.{self._cell}.{service}.in", payload, None)
            events += self._answered()
        return events

    def _answered(self) -> list[Any]:
        """Append what is answered until nothing more is."""
        events: list[Any] = []
        went_on = True
        while went_on:
            went_on = False
            for service, replica in self._replicas.items():
                append = replica.next_append()
                if append is not None:
                    subject = f"sabot.{self._cell}.{service}.out"
                    events += self._append(subject, append.payload, append.expected)
                    went_on = True
        return events

    def _append(self, subject: str, payload: bytes, expected: int | None) -> list[Any]:
        sequence = self._reader.state.sequence + 1
        if expected is not None and expected != self._last_of.get(subject, 0):
            raise BenchFailed(f"the fence of {subject} does not fit")
        self._last_of[subject] = sequence
        message = LogMessage(sequence, subject, fence_headers(expected), payload)
        read = read_message(self._reader, message)
        for replica in self._replicas.values():
            replica.read(read, 0.0)
        self._tree.append(read.head)
        self._made.append(Appended(message, expected))
        self.events += len(read.events)
        return read.events

    # ---- what audit does -----------------------------------------------------------------------

    def _seal(self) -> None:
        size = self._tree.size
        top, head = root(self._tree, size), self._tree.head(size)
        signer = self._signer
        if signer is None:
            raise BenchFailed("no key to seal with")
        seal = audit.SealLog(
            size=size,
            root=top,
            head=head,
            signature=signer.key.sign(signed_text(self._cell, size, top, head)),
            key_id=signer.key_id,
            public_key=signer.public_key,
        )
        self._tell("audit", [seal])

    def _snapshot(self) -> None:
        state = self._reader.state
        entries, events = state.sequence - self._taken_at, self.events - self._taken_events
        if entries < EVERY_ENTRIES and events < EVERY_ANSWERS:
            return
        self._taken_at, self._taken_events = state.sequence, self.events
        codec = StateCodec()
        raw = {
            one.core.service: encode_snapshot(
                codec, one.core, Snapshot(one.core.service, one.core.schema, state, one.state)
            )
            for one in self._replicas.values()
        }
        self._folder.save(SnapshotSet(state.sequence, raw))
        named: list[Message] = [
            events_pb2.RecordSnapshot(
                service=one.core.service,
                schema=one.core.schema,
                sequence=state.sequence,
                head=state.head,
                digest=digest(raw[one.core.service]),
            )
            for one in self._replicas.values()
        ]
        self._tell("audit", named)

    def _uuid(self) -> str:
        """A UUIDv7 of this moment of the log."""
        self._ids += 1
        millis = f"{self._time_us // 1000:012x}"
        return f"{millis[:8]}-{millis[8:]}-7000-8000-{self._ids:012x}"


def _account(number: int) -> str:
    return f"bench-{number:04}"
