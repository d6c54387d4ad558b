"""The journal as a fold of the log: each movement of money is one entry that names what it is for.

An answer of the wallet does not say everything that its entry must name: a payout tells neither its
bets nor the rules that it was settled by. Those stand in earlier events of the same log
(`TableOpened`, `RoundOpened`, `BetsSettled`), and the fold remembers them for as long as a movement
may still need them. Nothing here is asked of anything but the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from google.protobuf.message import Message

from sabot.settlement.v1 import events_pb2 as settlements
from sabot.table.v1 import events_pb2 as tables
from sabot.wallet.v1 import events_pb2 as wallets
from services.kernel.event import Event, Position
from services.wallet.domain.postings import MOVES, OF_ACCOUNTS, Kind, Posting, postings


class EntryKind(IntEnum):
    """What a journal entry is for. The numbers are those of wallet.v1.EntryKind."""

    DEPOSIT = 1
    WITHDRAWAL = 2
    STAKE = 3
    STAKE_WITHDRAWN = 4
    STAKE_LATE = 5
    STAKE_VOIDED = 6
    PAYOUT = 7
    CORRECTION = 8


Owner = tuple[str, str]
"""(partner, account)."""


class Ledger(NamedTuple):
    """One account of the ledger."""

    kind: Kind
    partner: str
    account_id: str
    """Empty where it is a partner's."""
    currency_code: str


class Entry(NamedTuple):
    """A journal entry. Its id is its position in the log."""

    position: Position
    time_us: int
    """Log time, microseconds since 1970 UTC: never less than that of the entry before."""
    kind: EntryKind
    partner: str
    account_id: str
    """Whom it concerns."""
    currency_code: str
    table_id: str
    round_id: str
    """Empty where no round is concerned, and so are `table_id`, bets and hash."""
    request_id: str
    bet_ids: tuple[str, ...]
    rule_set_hash: bytes
    """Of the rules that govern the round; 32 bytes."""
    cause: Position
    event_type: str
    legs: tuple[Posting, ...]
    """They sum to zero."""

    @property
    def own_minor(self) -> int:
        """What it changes in all that the account has here, reserved stakes included."""
        return sum(leg.minor for leg in self.legs if leg.kind in OF_ACCOUNTS)


class Settlement(NamedTuple):
    """What a payout is for."""

    bet_ids: tuple[str, ...]
    rule_set_hash: bytes


_KINDS: Mapping[type[Message], EntryKind] = {
    wallets.FundsDeposited: EntryKind.DEPOSIT,
    wallets.FundsWithdrawn: EntryKind.WITHDRAWAL,
    wallets.StakeReserved: EntryKind.STAKE,
    wallets.PayoutPosted: EntryKind.PAYOUT,
}
_RETURNS: Mapping[int, EntryKind] = {
    wallets.RETURN_REASON_WITHDRAWN: EntryKind.STAKE_WITHDRAWN,
    wallets.RETURN_REASON_LATE: EntryKind.STAKE_LATE,
    wallets.RETURN_REASON_VOIDED: EntryKind.STAKE_VOIDED,
}


def kind_of(body: Message) -> EntryKind:
    """What an answer that moves money moves it for."""
    if isinstance(body, wallets.StakeReturned):
        return _RETURNS[body.reason]
    return _KINDS[type(body)]


class JournalFold:
    """Sees every event of a log, in order; what it remembers between them is bounded by what is
    open: tables, running rounds, settlements that are not paid yet."""

    def __init__(self) -> None:
        self.tables: dict[str, bytes] = {}
        """By table: the hash of its rules in force."""
        self.rounds: dict[str, bytes] = {}
        """By running round: that of the rules that it was opened with."""
        self.settled: dict[tuple[str, str, str], Settlement] = {}
        """By (round, partner, account): settled and not paid yet."""

    def see(self, event: Event) -> Entry | None:
        """The entry that an event is, if it moves money."""
        body = event.body
        kind = type(body)
        if kind in MOVES:
            return self._entry(event, body)
        if isinstance(body, settlements.BetsSettled):
            self._settled(body)
        elif isinstance(body, tables.RoundOpened):
            self._opened(body)
        elif isinstance(body, tables.TableOpened):
            self._governed(body)
        elif isinstance(body, tables.RoundClosed):
            self._closed(body)
        return None

    def _governed(self, body: tables.TableOpened) -> None:
        self.tables[body.spec.table_id] = body.spec.rule_set.hash

    def _opened(self, body: tables.RoundOpened) -> None:
        self.rounds[body.round_id] = self.tables.get(body.table_id, b"")

    def _closed(self, body: tables.RoundClosed) -> None:
        self.rounds.pop(body.round_id, None)

    def _settled(self, body: settlements.BetsSettled) -> None:
        bet_ids = tuple([bet.bet_id for bet in body.bets])
        key = (body.round_id, body.partner_id, body.account_id)
        self.settled[key] = Settlement(bet_ids, body.rule_set_hash)

    def _paid(self, key: tuple[str, str, str]) -> Settlement | None:
        return self.settled.pop(key, None)

    def _entry(self, event: Event, body: Any) -> Entry | None:  # Any: one of MOVES
        legs = postings(body, event.partner)
        if not legs:
            return None
        round_id = getattr(body, "round_id", "")
        partner = getattr(body, "partner_id", "") or event.partner
        bet_ids: tuple[str, ...] = ()
        rule_set_hash = b""
        settlement = None
        if isinstance(body, wallets.PayoutPosted):
            settlement = self._paid((round_id, partner, body.account_id))
        elif round_id:
            bet_ids = tuple([bet.bet_id for bet in body.bets])
        if settlement is not None:
            bet_ids, rule_set_hash = settlement
        elif round_id:
            rule_set_hash = self.rounds.get(round_id, b"")
        return Entry(
            event.position,
            event.time_us,
            kind_of(body),
            partner,
            body.account_id,
            body.currency_code,
            getattr(body, "table_id", ""),
            round_id,
            getattr(body, "request_id", ""),
            bet_ids,
            rule_set_hash,
            event.cause or event.position,
            str(body.DESCRIPTOR.full_name),
            legs,
        )


def ledger_of(leg: Posting) -> Ledger:
    """Where a posting goes."""
    return Ledger(leg.kind, leg.partner, leg.account_id, leg.currency_code)
