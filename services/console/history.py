"""What the console keeps of the whole log while it follows it: where each round stands, and what
became of bets.

Of an entry only what is looked for is decoded. It all comes from the log; a file (`kept_file.py`)
saves the next start the reading of what was read before, and without one a start reads the log from
its beginning, and says how far it is."""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field

from sabot.audit.v1 import contest_events_pb2 as contested
from sabot.audit.v1 import events_pb2 as audit
from sabot.settlement.v1 import events_pb2 as settlements
from sabot.table.v1 import correction_events_pb2 as corrections
from sabot.table.v1 import events_pb2 as tables
from sabot.wallet.v1 import events_pb2 as wallets
from services.cli.skim import Skimmed, SkimmedEntry, SkimReader
from services.cli.statements import advance
from services.console.contests import Contests
from services.kernel.entry import EventTypes, first_head
from services.kernel.log import Log, LogMessage
from services.kernel.reader import ReaderState
from services.kernel.recovery import read_message
from services.odds.tally import Tallies

MOST_ROUNDS = 50_000
"""Rounds whose places are kept; older ones are looked for in the log."""
SHOWN_SEALS = 50
MARK_EVERY = 500
"""Entries between places that a round may be read from: read within a tenth of a second."""
MOST_MARKS = 128
FINE_MARKS = 32
"""So many of the newest stay as they were made. Older ones are let go where they lie closest, so
that those that are left are spread over the whole log."""
MOST_BALANCES = 2_000_000
"""Balances kept in all marks together: the more accounts there are, the fewer marks."""
MOST_ACCOUNTS = 500


@dataclass(slots=True)
class RoundNote:
    """Where a round stands in the log."""

    round_id: str
    table_id: str
    first: int
    """The entry of what opened it."""
    opened_us: int
    last: int = 0
    """The entry that says it is over; 0: it runs."""
    voided_at: int = 0
    """The entry that says it was voided; 0: it was not."""
    closed_at: int = 0
    """The entry that says it was closed; what is said of it afterwards only moves `last`."""
    suspended: bool = False
    """Whether it was at any time."""
    corrected: bool = False
    """Whether anything of it was corrected, or was to be."""

    @property
    def voided(self) -> bool:
        """Whether it was voided before it was paid."""
        return self.voided_at > 0


@dataclass(frozen=True, slots=True)
class SealNote:
    """A signed head."""

    size: int
    key_id: str
    root: str
    time_us: int
    sequence: int


@dataclass(frozen=True, slots=True)
class Mark:
    """What is needed to read on from an entry as if all before it had been read."""

    reader: ReaderState
    ledger: dict[str, int]
    """All balances behind it."""
    opened: dict[str, int]
    """By table, which of `Kept.openings` tells the rules in force."""

    @property
    def sequence(self) -> int:
        """The last entry that is in it."""
        return self.reader.sequence


@dataclass(slots=True)
class Kept:
    """All that is kept, as a file can hold it."""

    reader: ReaderState
    """Behind the last entry that was read."""
    marks: deque[Mark]
    """Oldest first; the first of all is the log's beginning."""
    rounds: dict[str, RoundNote] = field(default_factory=dict[str, RoundNote])
    """By id, in the order in which they opened."""
    forgetful: bool = False
    """Whether rounds were left out of `rounds` since the log began, as there are too many."""
    tallies: Tallies = field(default_factory=Tallies)
    contests: Contests = field(default_factory=Contests)
    seals: deque[SealNote] = field(default_factory=deque[SealNote])
    accounts: dict[str, dict[str, bool]] = field(default_factory=dict[str, dict[str, bool]])
    """By partner, account ids, the first ones: for a list to choose from."""
    ledger: dict[str, int] = field(default_factory=dict[str, int])
    openings: list[tables.TableOpened] = field(default_factory=list[tables.TableOpened])
    """Every opening of a table, as the log has them."""
    opened: dict[str, int] = field(default_factory=dict[str, int])
    """As in a mark, now."""
    events: int = 0
    actors: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    """By running round, who gave orders there: actor → `dealer` or `supervisor`."""
    times: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Every few hundred entries one, and the log time behind it."""


class History:
    """See the module."""

    def __init__(
        self,
        cell: str,
        types: EventTypes,
        accepted: Mapping[int, bytes],
        kept: Kept | None = None,
    ) -> None:
        """`kept`: of an earlier process over the same log; it is taken over."""
        self._types = types
        if kept is None:
            begin = ReaderState(0, first_head(cell))
            kept = Kept(begin, deque([Mark(deepcopy(begin), {}, {})]))
        self.kept = kept
        self.last: LogMessage | None = None
        """The last entry that was read, as it is stored; None: none was by this process."""
        self._reader = SkimReader(cell, types, kept.reader, accepted=accepted)
        self._takes = {
            _name(tables.TableOpened): self._table_opened,
            _name(wallets.AccountOpened): self._account_opened,
            _name(tables.RoundOpened): self._round_opened,
            _name(tables.RoundClosed): self._round_closed,
            _name(tables.RoundVoided): self._round_voided,
            _name(tables.RoundSuspended): self._round_suspended,
            _name(settlements.BetsSettled): self._bets_settled,
            _name(audit.LogSealed): self._sealed,
            _name(contested.SettlementContested): self._contested,
            _name(corrections.ResultCorrected): self._result_corrected,
            _name(corrections.CorrectionClosed): self._correction_closed,
        }

    @property
    def rounds(self) -> dict[str, RoundNote]:
        """See `Kept`."""
        return self.kept.rounds

    @property
    def tallies(self) -> Tallies:
        """What became of bets."""
        return self.kept.tallies

    @property
    def contests(self) -> Contests:
        """What the audit contests, and what corrected rounds have come to."""
        return self.kept.contests

    @property
    def seals(self) -> deque[SealNote]:
        """The newest signed heads, oldest first."""
        return self.kept.seals

    @property
    def accounts(self) -> list[tuple[str, str]]:
        """(partner, account), the first ones."""
        return [(partner, one) for partner, ids in self.kept.accounts.items() for one in ids]

    @property
    def actors(self) -> dict[str, dict[str, str]]:
        """See `Kept`."""
        return self.kept.actors

    @property
    def events(self) -> int:
        """How many were read."""
        return self.kept.events

    @property
    def sequence(self) -> int:
        """The last entry that was read."""
        return self._reader.state.sequence

    @property
    def time_us(self) -> int:
        """Log time there."""
        return self._reader.state.time_us

    async def follow(self, log: Log) -> None:
        """Read on without end. Raises LogBroken, LogUnavailable."""
        reader = self._reader
        messages = log.read(reader.state.sequence)
        try:
            async for batch in messages:
                for message in batch:
                    reader.times = ()
                    read = read_message(reader, message)
                    entry = SkimmedEntry(
                        read, message.payload, reader.times, reader.state.behaviour
                    )
                    self.last = message
                    self.take(entry)
                await asyncio.sleep(0)
        finally:
            await messages.aclose()  # type: ignore[attr-defined]  # an async generator, by its contract

    def take(self, entry: SkimmedEntry) -> None:
        """The next entry, which this reader has read."""
        kept = self.kept
        kept.events += len(entry.read.protos)
        self._look_at(entry)
        if self.sequence - kept.marks[-1].sequence >= MARK_EVERY:
            kept.times.append((self.sequence, self.time_us))
            kept.marks.append(
                Mark(deepcopy(self._reader.state), dict(kept.ledger), dict(kept.opened))
            )
            room = max(2, min(MOST_MARKS, MOST_BALANCES // (len(kept.ledger) + 1)))
            while len(kept.marks) > room:
                thin(kept.marks)

    def opened_at(self, mark: Mark) -> dict[str, tables.TableOpened]:
        """By table, the rules in force at a mark."""
        return {table_id: self.kept.openings[at] for table_id, at in mark.opened.items()}

    def time_before(self, sequence: int) -> tuple[int, int]:
        """An entry no later than this one and not far before it, and the log time behind it; of
        what was not read yet, the last that was."""
        at = bisect_right(self.kept.times, sequence, key=lambda one: one[0])
        return self.kept.times[at - 1] if at else (0, 0)

    def sequence_at(self, time_us: int) -> int:
        """An entry behind which everything stands that is later than a log time."""
        at = bisect_left(self.kept.times, time_us, key=lambda one: one[1])
        return self.kept.times[at - 1][0] if at else 0

    def mark_before(self, sequence: int) -> Mark | None:
        """The newest mark behind which an entry still lies ahead; None: they are all later."""
        found = [mark for mark in self.kept.marks if mark.sequence < sequence]
        return found[-1] if found else None

    def mark_of(self, round_id: str) -> Mark | None:
        """Where to read a round from; None: from the log's beginning. One that is not known lies
        ahead, as long as none was left out: nobody has a log read by asking for what is not there.
        Its order may have come already, so not the very newest mark."""
        note = self.rounds.get(round_id)
        if note is not None:
            return self.mark_before(note.first)
        marks = self.kept.marks
        return None if self.kept.forgetful else marks[max(0, len(marks) - 2)]

    def _look_at(self, entry: SkimmedEntry) -> None:
        if entry.read.copy:
            return
        if entry.read.service == "wallet" and not entry.read.is_input:
            entry.decode(self._types)
            advance(self.kept.ledger, entry.read.events)
        if entry.read.is_input:
            self._orders(entry)
            return
        for proto, one in zip(entry.read.protos, entry.events(), strict=True):
            take = self._takes.get(proto.type)
            if take is not None:
                take(one)
            elif "Correct" in proto.type:
                self._corrected(one)

    def _orders(self, entry: SkimmedEntry) -> None:
        """Who gives orders in which round: dealer and supervisor of one round are two people."""
        for one in entry.events():
            role = ORDERS.get(one.proto.type)
            if role is None or not one.proto.actor.startswith("operator:"):
                continue
            body = self._types.decode(one.proto.type, one.proto.body)
            round_id = str(getattr(body, "round_id", ""))
            if round_id:
                self.actors.setdefault(round_id, {}).setdefault(one.proto.actor, role)

    # ---- answers -------------------------------------------------------------------------------

    def _table_opened(self, one: Skimmed) -> None:
        body = tables.TableOpened.FromString(one.proto.body)
        self.tallies.know(body.spec.rule_set)
        self.kept.opened[body.spec.table_id] = len(self.kept.openings)
        self.kept.openings.append(body)

    def _account_opened(self, one: Skimmed) -> None:
        body = wallets.AccountOpened.FromString(one.proto.body)
        accounts = self.kept.accounts
        if sum(map(len, accounts.values())) < MOST_ACCOUNTS:
            accounts.setdefault(one.proto.partner, {})[body.account_id] = True

    def _round_opened(self, one: Skimmed) -> None:
        body = tables.RoundOpened.FromString(one.proto.body)
        first = one.proto.cause.sequence
        self.rounds[body.round_id] = RoundNote(body.round_id, body.table_id, first, one.time_us)
        while len(self.rounds) > MOST_ROUNDS:
            self.rounds.pop(next(iter(self.rounds)))
            self.kept.forgetful = True

    def _round_closed(self, one: Skimmed) -> None:
        body = tables.RoundClosed.FromString(one.proto.body)
        self.tallies.over(body.round_id)
        self.actors.pop(body.round_id, None)
        self.contests.closed(body.round_id, one.position.sequence)
        note = self.rounds.get(body.round_id)
        if note is not None:
            note.last = note.closed_at = one.position.sequence

    def _round_voided(self, one: Skimmed) -> None:
        round_id = tables.RoundVoided.FromString(one.proto.body).round_id
        self.contests.voided(round_id, one.position.sequence)
        note = self.rounds.get(round_id)
        if note is not None:
            note.voided_at = one.position.sequence

    def _round_suspended(self, one: Skimmed) -> None:
        note = self.rounds.get(tables.RoundSuspended.FromString(one.proto.body).round_id)
        if note is not None:
            note.suspended = True

    def _corrected(self, one: Skimmed) -> None:
        """Whatever is said of a round that is over makes it longer."""
        body = self._types.decode(one.proto.type, one.proto.body)
        note = self.rounds.get(str(getattr(body, "round_id", "")))
        if note is not None:
            note.corrected = True
            _longer(note, one)

    def _contested(self, one: Skimmed) -> None:
        body = contested.SettlementContested.FromString(one.proto.body)
        self.contests.add(body, one.time_us)
        note = self.rounds.get(body.round_id)
        if note is not None:
            _longer(note, one)
            # The audit may have been away meanwhile, and contest what is repaired.
            if note.voided_at:
                self.contests.voided(note.round_id, note.voided_at)
            if note.closed_at:
                self.contests.closed(note.round_id, note.closed_at)

    def _result_corrected(self, one: Skimmed) -> None:
        self.contests.corrected(corrections.ResultCorrected.FromString(one.proto.body))
        self._corrected(one)

    def _correction_closed(self, one: Skimmed) -> None:
        body = corrections.CorrectionClosed.FromString(one.proto.body)
        self.contests.ended(body, one.position.sequence)
        self._corrected(one)

    def _bets_settled(self, one: Skimmed) -> None:
        self.tallies.settled(settlements.BetsSettled.FromString(one.proto.body))

    def _sealed(self, one: Skimmed) -> None:
        body = audit.LogSealed.FromString(one.proto.body)
        self.seals.append(
            SealNote(body.size, body.key_id, body.root.hex(), one.time_us, one.position.sequence)
        )
        while len(self.seals) > SHOWN_SEALS:
            self.seals.popleft()


def thin(marks: deque[Mark]) -> None:
    """Let go of one mark: of those older than the finest, neither first nor last, the one that
    leaves the smallest gap."""
    last = max(2, len(marks) - FINE_MARKS)
    at = min(range(1, last), key=lambda one: marks[one + 1].sequence - marks[one - 1].sequence)
    del marks[at]


def _longer(note: RoundNote, one: Skimmed) -> None:
    """An event of a round that is over."""
    if note.last:
        note.last = max(note.last, one.position.sequence)


def _name(body: type) -> str:
    return str(body.DESCRIPTOR.full_name)  # type: ignore[attr-defined]  # every message has one


DEALING, SUPERVISING = "dealer", "supervisor"
ORDERS: dict[str, str] = {
    "sabot.table.v1.OpenRound": DEALING,
    "sabot.table.v1.CloseBetting": DEALING,
    "sabot.shoe.v1.RecordCard": DEALING,
    "sabot.shoe.v1.RecordFaceDown": DEALING,
    "sabot.shoe.v1.RecordPeek": DEALING,
    "sabot.shoe.v1.RecordBurn": DEALING,
    "sabot.shoe.v1.RecordCutCard": DEALING,
    "sabot.shoe.v1.RecordSpin": DEALING,
    "sabot.shoe.v1.RecordDice": DEALING,
    "sabot.shoe.v1.DeclareNoSpin": DEALING,
    "sabot.table.v1.ResumeRound": SUPERVISING,
    "sabot.table.v1.VoidRound": SUPERVISING,
    "sabot.table.v1.CorrectCard": SUPERVISING,
    "sabot.table.v1.CorrectOutcome": SUPERVISING,
}
"""What an operator does in a round, and as what. Whoever sees something wrong may suspend."""
