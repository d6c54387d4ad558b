"""Statements: what each account had, what moved, and what it had afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import Message

from sabot.log.v1 import entry_pb2
from services.cli.moments import written
from services.kernel.entry import EventTypes
from services.kernel.event import Event
from services.wallet.domain.postings import MOVES, OF_ACCOUNTS, Kind, Posting, postings
from services.wallet.domain.state import WalletState

MOVING = frozenset(str(one.DESCRIPTOR.full_name) for one in MOVES)
"""Types of the answers that may move money, as entries name them."""
OWN = OF_ACCOUNTS
"""The ledger accounts of a person; the others are a partner's."""


def ledger_of(state: WalletState) -> dict[str, int]:
    """Every balance of a wallet's state, by ledger account."""
    found: dict[str, int] = {}
    for (partner, account_id), account in state.accounts.items():
        for kind, minor in (
            (Kind.CASH, account.available_minor),
            (Kind.RESERVED, account.reserved_minor),
            (Kind.RECEIVABLE, -account.owed_minor),
        ):
            if kind is Kind.RECEIVABLE and not minor:
                continue  # Hardly anybody ever owes: that is told where it is so.
            leg = Posting(kind, partner, account_id, account.currency_code, minor)
            found[leg.ledger_account] = minor
    for (kind_name, partner, currency_code), minor in state.ledgers.items():
        found[Posting(Kind(kind_name), partner, "", currency_code, minor).ledger_account] = minor
    return found


def advanced(ledger: Mapping[str, int], events: Iterable[Event]) -> dict[str, int]:
    """The balances after some events."""
    found = dict(ledger)
    advance(found, events)
    return found


def advance(ledger: dict[str, int], events: Iterable[Event]) -> None:
    """Change balances by some events, in place."""
    moves = Moves()
    for event in events:
        if not event.is_input and event.service == "wallet":
            moves.add(event.body, event.partner)
    moves.post(ledger)


class Moves:
    """What many answers of the wallet move, summed up before any ledger account is named."""

    def __init__(self) -> None:
        self._sums: dict[tuple[Kind, str, str, str], int] = {}

    def add(self, body: Message, partner: str) -> None:
        """Add an answer. `partner`: of its header."""
        sums = self._sums
        for kind, owner, account_id, currency_code, minor in postings(body, partner):
            key = (kind, owner, account_id, currency_code)
            sums[key] = sums.get(key, 0) + minor

    def add_recorded(self, protos: Iterable[entry_pb2.Event], types: EventTypes) -> None:
        """Add answers as an entry has them; of those that move nothing no body is decoded. Raises
        NotUnderstood."""
        for proto in protos:
            if proto.type in MOVING:
                self.add(types.decode(proto.type, proto.body), proto.partner)

    def post(self, ledger: dict[str, int]) -> None:
        """Change balances by all of it, in place."""
        for key, minor in self._sums.items():
            name = Posting(*key, minor).ledger_account
            ledger[name] = ledger.get(name, 0) + minor


@dataclass(slots=True)
class Statement:
    """Of one account, over some entries of a log."""

    partner: str
    account_id: str
    before: dict[str, int] = field(default_factory=dict[str, int])
    """By its ledger accounts, minor units."""
    lines: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    after: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def name(self) -> str:
        """Whose it is."""
        return f"{self.partner}/{self.account_id}"

    def json(self) -> dict[str, Any]:
        """For people and programs."""
        return {
            "partner": self.partner,
            "account": self.account_id,
            "before": self.before,
            "lines": self.lines,
            "after": self.after,
        }


def statements(
    ledger: Mapping[str, int], events: Iterable[Event], accounts: Iterable[tuple[str, str]]
) -> list[Statement]:
    """The statements of some accounts, (partner, account), in their order. `ledger`: all balances
    before the events."""
    found = {key: Statement(*key) for key in accounts}
    by_owner: dict[str, list[str]] = {}
    for name in ledger:
        by_owner.setdefault(name.rpartition(":")[0], []).append(name)
    for (partner, account_id), one in found.items():
        for kind in sorted(OWN):
            for name in by_owner.get(f"{kind.value}:{partner}:{account_id}", ()):
                one.before[name] = ledger[name]
        one.after = dict(one.before)
    for event in events:
        if event.is_input or event.service != "wallet":
            continue
        for leg in postings(event.body, event.partner):
            statement = found.get((leg.partner, leg.account_id))
            if statement is not None and leg.kind in OWN:
                _add(statement, event, leg)
    return list(found.values())


def _add(statement: Statement, event: Event, leg: Posting) -> None:
    name = leg.ledger_account
    statement.after[name] = statement.after.get(name, 0) + leg.minor
    statement.lines.append(
        {
            "position": str(event.position),
            "time": written(event.time_us),
            "event": type(event.body).__name__,
            "round": str(getattr(event.body, "round_id", "")),
            "ledger_account": name,
            "minor": leg.minor,
            "after_minor": statement.after[name],
        }
    )


def accounts_in(events: Iterable[Event]) -> list[tuple[str, str]]:
    """Every account that some events name, (partner, account), in order of first appearance."""
    found: dict[tuple[str, str], None] = {}
    for event in events:
        account_id = str(getattr(event.body, "account_id", ""))
        partner = str(getattr(event.body, "partner_id", "")) or event.partner
        if account_id and partner:
            found[partner, account_id] = None
    return list(found)
