"""What the console keeps of the whole log while it follows it: where each round stands, and what
became of bets.

Of an entry only what is looked for is decoded. It all comes from the log and is lost with the
process: a start reads the log from its beginning, and says how far it is."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass

from sabot.audit.v1 import events_pb2 as audit
from sabot.settlement.v1 import events_pb2 as settlements
from sabot.table.v1 import events_pb2 as tables
from sabot.wallet.v1 import events_pb2 as wallets
from services.cli.skim import Skimmed, SkimmedEntry, SkimReader
from services.cli.statements import advance
from services.kernel.entry import EventTypes
from services.kernel.log import Log
from services.kernel.reader import ReaderState
from services.kernel.recovery import read_message
from services.odds.tally import Tallies

MOST_ROUNDS = 50_000
"""Rounds whose places are kept; older ones are looked for in the log."""
SHOWN_SEALS = 50
MARK_EVERY = 500
"""Entries between places that a round may be read from: read within a tenth of a second."""
MOST_MARKS = 128
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
    voided: bool = False
    suspended: bool = False
    """Whether it was at any time."""
    corrected: bool = False
    """Whether anything of it was corrected, or was to be."""


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
    ledger: Mapping[str, int]
    """All balances behind it."""
    opened: Mapping[str, tables.TableOpened]
    """By table, the rules in force."""

    @property
    def sequence(self) -> int:
        """The last entry that is in it."""
        return self.reader.sequence


class History:
    """See the module."""

    def __init__(self, cell: str, types: EventTypes, accepted: Mapping[int, bytes]) -> None:
        self._types = types
        self._reader = SkimReader(cell, types, accepted=accepted)
        self.rounds: OrderedDict[str, RoundNote] = OrderedDict()
        self.forgetful = False
        """Whether rounds were left out of `rounds` since the log began, as there are too many."""
        self.tallies = Tallies()
        self.seals: deque[SealNote] = deque(maxlen=SHOWN_SEALS)
        self.accounts: set[tuple[str, str]] = set()
        """(partner, account), the first ones: for a list to choose from."""
        self.marks: deque[Mark] = deque([self._mark({}, {})])
        """Oldest first; the first of all is the log's beginning, as long as it is kept."""
        self._ledger: dict[str, int] = {}
        self._opened: dict[str, tables.TableOpened] = {}
        self.events = 0
        self.last_us = 0
        """When the newest entry came, log time."""
        self.actors: dict[str, dict[str, str]] = {}
        """By running round, who gave orders there: actor → `dealer` or `supervisor`."""
        self._takes = {
            _name(tables.TableOpened): self._table_opened,
            _name(wallets.AccountOpened): self._account_opened,
            _name(tables.RoundOpened): self._round_opened,
            _name(tables.RoundClosed): self._round_closed,
            _name(tables.RoundVoided): self._round_voided,
            _name(tables.RoundSuspended): self._round_suspended,
            _name(settlements.BetsSettled): self._bets_settled,
            _name(audit.LogSealed): self._sealed,
        }

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
                    self.take(entry)
                await asyncio.sleep(0)
        finally:
            await messages.aclose()  # type: ignore[attr-defined]  # an async generator, by its contract

    def take(self, entry: SkimmedEntry) -> None:
        """The next entry, which this reader has read."""
        self.events += len(entry.read.protos)
        self._look_at(entry)
        if self.sequence - self.marks[-1].sequence >= MARK_EVERY:
            self.marks.append(self._mark(dict(self._ledger), dict(self._opened)))
            room = max(2, min(MOST_MARKS, MOST_BALANCES // (len(self._ledger) + 1)))
            while len(self.marks) > room:
                self.marks.popleft()

    def mark_before(self, sequence: int) -> Mark | None:
        """The newest mark behind which an entry still lies ahead; None: they are all later."""
        found = [mark for mark in self.marks if mark.sequence < sequence]
        return found[-1] if found else None

    def mark_of(self, round_id: str) -> Mark | None:
        """Where to read a round from; None: from the log's beginning. One that is not known lies
        ahead, as long as none was left out: nobody has a log read by asking for what is not there.
        Its order may have come already, so not the very newest mark."""
        note = self.rounds.get(round_id)
        if note is not None:
            return self.mark_before(note.first)
        return None if self.forgetful else self.marks[max(0, len(self.marks) - 2)]

    def _mark(self, ledger: Mapping[str, int], opened: Mapping[str, tables.TableOpened]) -> Mark:
        return Mark(deepcopy(self._reader.state), ledger, opened)

    def _look_at(self, entry: SkimmedEntry) -> None:
        if entry.read.copy:
            return
        if entry.read.service == "wallet" and not entry.read.is_input:
            entry.decode(self._types)
            advance(self._ledger, entry.read.events)
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
        self._opened[body.spec.table_id] = body

    def _account_opened(self, one: Skimmed) -> None:
        body = wallets.AccountOpened.FromString(one.proto.body)
        if len(self.accounts) < MOST_ACCOUNTS:
            self.accounts.add((one.proto.partner, body.account_id))

    def _round_opened(self, one: Skimmed) -> None:
        body = tables.RoundOpened.FromString(one.proto.body)
        first = one.proto.cause.sequence
        self.rounds[body.round_id] = RoundNote(body.round_id, body.table_id, first, one.time_us)
        while len(self.rounds) > MOST_ROUNDS:
            self.rounds.popitem(last=False)
            self.forgetful = True

    def _round_closed(self, one: Skimmed) -> None:
        body = tables.RoundClosed.FromString(one.proto.body)
        self.tallies.over(body.round_id)
        self.actors.pop(body.round_id, None)
        note = self.rounds.get(body.round_id)
        if note is not None:
            note.last = one.position.sequence

    def _round_voided(self, one: Skimmed) -> None:
        note = self.rounds.get(tables.RoundVoided.FromString(one.proto.body).round_id)
        if note is not None:
            note.voided = True

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
            if note.last:
                note.last = max(note.last, one.position.sequence)

    def _bets_settled(self, one: Skimmed) -> None:
        self.tallies.settled(settlements.BetsSettled.FromString(one.proto.body))

    def _sealed(self, one: Skimmed) -> None:
        body = audit.LogSealed.FromString(one.proto.body)
        self.seals.append(
            SealNote(body.size, body.key_id, body.root.hex(), one.time_us, one.position.sequence)
        )


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
