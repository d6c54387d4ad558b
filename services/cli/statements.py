"""Statements: what each account had, what moved, and what it had afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from services.cli.moments import written
from services.kernel.event import Event
from services.wallet.domain.postings import OF_ACCOUNTS, Kind, Posting, postings
from services.wallet.domain.state import WalletState

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
    for event in events:
        if not event.is_input and event.service == "wallet":
            for leg in postings(event.body, event.partner):
                ledger[leg.ledger_account] = ledger.get(leg.ledger_account, 0) + leg.minor


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
