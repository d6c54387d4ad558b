"""What the wallet keeps: accounts, ledgers, and the stakes of rounds that are not over."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

from services.kernel.requests import RequestIds
from services.wallet.domain.seamless_state import SeamlessState


class Standing(IntEnum):
    """How an account stands. One that is closed stays so; its id is never used again."""

    OPEN = 1
    BLOCKED = 2
    CLOSED = 3


@dataclass(slots=True)
class Account:
    """An account of a partner; minor units of its one currency. Only postings change amounts."""

    currency_code: str
    standing: Standing = Standing.OPEN
    available_minor: int = 0
    reserved_minor: int = 0
    owed_minor: int = 0
    """What it could not give back when rounds were corrected: its `receivable`, turned about."""


@dataclass(slots=True)
class Stake:
    """A reserved stake."""

    bet: str
    stake_minor: int
    position: str = ""
    transaction_id: str = ""
    """The seamless partner's debit that paid it; empty where it came from the account's cash."""


@dataclass(slots=True)
class RoundStakes:
    """The reserved stakes of a round, oldest first."""

    table_id: str
    sealed: bool = False
    """Nothing of the betting window is reserved or taken back any more: cards may be dealt."""
    insurance_sealed: bool = False
    """No more insurance is reserved (rule BJ-13)."""
    voided: bool = False
    """Nothing more is paid: what is still reserved goes back."""
    stakes: dict[tuple[str, str], dict[str, Stake]] = field(
        default_factory=dict[tuple[str, str], dict[str, Stake]]
    )
    """By (partner, account), then by bet id. Never an empty entry."""


@dataclass(slots=True)
class PendingDeposit:
    """A deposit that limits have not decided yet."""

    account_id: str
    currency_code: str
    amount_minor: int


@dataclass(slots=True)
class WalletState:
    """The whole of it. A round leaves at its `RoundPaid` or `RoundReturned`."""

    accounts: dict[tuple[str, str], Account] = field(default_factory=dict[tuple[str, str], Account])
    """By (partner, account)."""
    opened: dict[str, int] = field(default_factory=dict[str, int])
    """By partner: how many accounts it ever opened."""
    ledgers: dict[tuple[str, str, str], int] = field(
        default_factory=dict[tuple[str, str, str], int]
    )
    """By (kind, partner, currency): the ledger accounts of partners, signed minor units."""
    deposits: dict[tuple[str, str], PendingDeposit] = field(
        default_factory=dict[tuple[str, str], PendingDeposit]
    )
    """By (partner, request id)."""
    rounds: dict[str, RoundStakes] = field(default_factory=dict[str, RoundStakes])
    """By round id."""
    requests: RequestIds = field(default_factory=RequestIds)
    """Scope: the partner; for operators' orders `operator:<id>`."""
    shortfalls: dict[str, int] = field(default_factory=dict[str, int])
    """By partner: a `sabot.wallet.v1.ShortfallPolicy`, where it was ever set."""
    seamless: SeamlessState = field(default_factory=SeamlessState)


def sums(state: WalletState) -> dict[str, int]:
    """By currency, what all accounts and ledgers come to: always zero (invariant 1)."""
    totals: dict[str, int] = {}
    for account in state.accounts.values():
        held = account.available_minor + account.reserved_minor - account.owed_minor
        totals[account.currency_code] = totals.get(account.currency_code, 0) + held
    for (_, _, currency_code), minor in state.ledgers.items():
        totals[currency_code] = totals.get(currency_code, 0) + minor
    return totals
