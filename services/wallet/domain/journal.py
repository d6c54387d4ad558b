"""The journal as a fold of the log: each movement of money is one entry that names what it is for.

An answer of the wallet does not say everything that its entry must name: a payout tells neither its
bets nor the rules that it was settled by. Those stand in earlier events of the same log
(`TableOpened`, `RoundOpened`, `BetsSettled`), and the fold remembers them for as long as a movement
may still need them. Nothing here is asked of anything but the log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from google.protobuf.message import Message

from sabot.settlement.v1 import events_pb2 as settlements
from sabot.table.v1 import events_pb2 as tables
from sabot.wallet.v1 import correction_events_pb2 as corrections
from sabot.wallet.v1 import events_pb2 as wallets
from sabot.wallet.v1 import seamless_events_pb2 as seamless
from services.kernel.event import Event, Position
from services.wallet.domain.postings import MOVES, Kind, Posting, postings


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
    CONFIRMED = 9
    WRITTEN_OFF = 10
    RECEIVABLE_SETTLED = 11


SettledKey = tuple[str, str, str]
"""(round, partner, account)."""


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
    amount_minor: int
    """What it moves, minor units: stakes, a payout with the stakes that come back, a deposit, a
    withdrawal; of a correction what the account gets, negative where it gives."""
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
    def cash_minor(self) -> int:
        """What the account may stake or withdraw more afterwards, minor units."""
        return sum([leg.minor for leg in self.legs if leg.kind is Kind.CASH])


class Settlement(NamedTuple):
    """What a movement that is still to come is for."""

    bet_ids: tuple[str, ...]
    rule_set_hash: bytes


_NOTHING = Settlement((), b"")

_KINDS: Mapping[type[Message], EntryKind] = {
    wallets.FundsDeposited: EntryKind.DEPOSIT,
    wallets.FundsWithdrawn: EntryKind.WITHDRAWAL,
    wallets.StakeReserved: EntryKind.STAKE,
    wallets.PayoutPosted: EntryKind.PAYOUT,
    corrections.CorrectionPosted: EntryKind.CORRECTION,
    corrections.ReceivableSettled: EntryKind.RECEIVABLE_SETTLED,
    seamless.MovementConfirmed: EntryKind.CONFIRMED,
    seamless.MovementWrittenOff: EntryKind.WRITTEN_OFF,
}
_RETURNS: Mapping[int, EntryKind] = {
    wallets.RETURN_REASON_WITHDRAWN: EntryKind.STAKE_WITHDRAWN,
    wallets.RETURN_REASON_LATE: EntryKind.STAKE_LATE,
    wallets.RETURN_REASON_VOIDED: EntryKind.STAKE_VOIDED,
}


class JournalFold:
    """Sees every event of a log, in order; what it remembers between them is bounded by what is
    open: tables, running rounds, settlements that are not paid yet.

    Whoever must keep what is remembered extends `govern`, `opened`, `closed`, `settle`, `paid`,
    `order` and `done`.
    """

    def __init__(self) -> None:
        self.tables: dict[str, bytes] = {}
        """By table: the hash of its rules in force."""
        self.rounds: dict[str, bytes] = {}
        """By running round: that of the rules that it was opened with."""
        self.settled: dict[SettledKey, Settlement] = {}
        """Settled and not paid yet."""
        self.orders: dict[str, Settlement] = {}
        """By transaction: credits and rollbacks that a partner has not confirmed yet."""
        self._notes: Mapping[type[Message], Callable[[Any], None]] = {
            settlements.BetsSettled: self.settle,
            tables.RoundOpened: self.opened,
            tables.RoundClosed: self.closed,
            tables.TableOpened: self.govern,
            seamless.CreditOrdered: self.order,
            seamless.RollbackOrdered: self.order,
        }

    def see(self, event: Event) -> Entry | None:
        """The entry that an event is, if it moves money."""
        kind = type(event.body)
        if kind in MOVES:
            return self._entry(event, event.body)
        note = self._notes.get(kind)
        if note is not None:
            note(event.body)
        return None

    def govern(self, body: tables.TableOpened) -> None:
        """A table's rules are in force."""
        self.tables[body.spec.table_id] = body.spec.rule_set.hash

    def opened(self, body: tables.RoundOpened) -> None:
        """A round is governed by its table's rules as they are now."""
        self.rounds[body.round_id] = self.tables.get(body.table_id, b"")

    def closed(self, body: tables.RoundClosed) -> None:
        """All of a round is paid or returned."""
        self.rounds.pop(body.round_id, None)

    def settle(self, body: settlements.BetsSettled) -> None:
        """A payout will follow."""
        bet_ids = tuple([bet.bet_id for bet in body.bets])
        key = (body.round_id, body.partner_id, body.account_id)
        self.settled[key] = Settlement(bet_ids, body.rule_set_hash)

    def paid(self, key: SettledKey) -> Settlement | None:
        """The payout is here: what it is for."""
        return self.settled.pop(key, None)

    def order(self, body: seamless.CreditOrdered | seamless.RollbackOrdered) -> None:
        """A partner's confirmation will follow, perhaps long after the round."""
        bet_ids = tuple([bet.bet_id for bet in body.bets])
        governed = self.rounds.get(body.round_id, b"")
        if isinstance(body, seamless.CreditOrdered):
            governed = body.rule_set_hash or governed
        self.orders[body.transaction_id] = Settlement(bet_ids, governed)

    def done(self, transaction_id: str) -> Settlement | None:
        """The confirmation is here: what it is for."""
        return self.orders.pop(transaction_id, None)

    def _entry(self, event: Event, body: Any) -> Entry | None:  # Any: one of MOVES
        kind = type(body)
        partner, round_id, table_id, request_id = event.partner, "", "", ""
        purpose = _NOTHING
        # The commonest first.
        if kind is wallets.StakeReserved or kind is wallets.StakeReturned:
            round_id, table_id, request_id = body.round_id, body.table_id, body.request_id
            if kind is wallets.StakeReturned:
                partner = body.partner_id
            bets = body.bets
            amount_minor = sum([bet.stake_minor for bet in bets])
            governed = self.rounds.get(round_id, b"")
            purpose = Settlement(tuple([bet.bet_id for bet in bets]), governed)
        elif kind is wallets.PayoutPosted:
            partner, round_id, table_id = body.partner_id, body.round_id, body.table_id
            amount_minor = body.payout_minor
            found = self.paid((round_id, partner, body.account_id))
            purpose = found or Settlement((), self.rounds.get(round_id, b""))
        elif kind is corrections.CorrectionPosted:
            partner, round_id, table_id = body.partner_id, body.round_id, body.table_id
            amount_minor = body.payout_delta_minor
            purpose = Settlement(tuple(body.bet_ids), body.rule_set_hash)
        elif kind is seamless.MovementConfirmed or kind is seamless.MovementWrittenOff:
            partner, round_id, table_id = body.partner_id, body.round_id, body.table_id
            amount_minor, request_id = body.amount_minor, body.request_id
            found = self.done(body.transaction_id)
            purpose = found or Settlement((), self.rounds.get(round_id, b""))
        else:
            amount_minor, request_id = body.amount_minor, body.request_id
            partner = getattr(body, "partner_id", "") or partner
        legs = postings(body, event.partner)
        if not legs:
            return None
        return Entry(
            event.position,
            event.time_us,
            _RETURNS[body.reason] if kind is wallets.StakeReturned else _KINDS[kind],
            partner,
            body.account_id,
            body.currency_code,
            amount_minor,
            table_id,
            round_id,
            request_id,
            purpose.bet_ids,
            purpose.rule_set_hash,
            event.cause or event.position,
            str(kind.DESCRIPTOR.full_name),
            legs,
        )


def ledger_of(leg: Posting) -> Ledger:
    """Where a posting goes."""
    return Ledger(leg.kind, leg.partner, leg.account_id, leg.currency_code)
