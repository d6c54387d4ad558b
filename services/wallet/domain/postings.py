"""The double-entry journal: which postings each answer of the wallet stands for. One definition, by
which the core's state, the journal's projection and audit all move money.

Ledger accounts:

| kind | whose | holds |
|---|---|---|
| `cash` | an account | what it may stake or withdraw |
| `reserved` | an account | the stakes of its bets that are on |
| `house` | a partner, in a currency | stakes lost less winnings paid |
| `commission` | a partner, in a currency | commission kept from winnings |
| `external` | a partner, in a currency | the other side of deposits and withdrawals |
| `receivable` | an account | what it owes after a correction that its cash did not cover |
| `corrections` | a partner, in a currency | the other side of what corrections give and take |
| `due` | a seamless partner, in a currency | ordered of its wallet and not confirmed yet |
| `written_off` | a seamless partner, in a currency | refused by its wallet for good |

A seamless partner's accounts hold no cash here: their stakes come from `external`, which is what
the partner has, and what goes back to it is `due` until it has confirmed.

The postings of an answer sum to zero, so all ledger accounts of a currency always do.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from google.protobuf.message import Message

from sabot.wallet.v1 import correction_events_pb2 as corrections
from sabot.wallet.v1 import events_pb2 as wallets
from sabot.wallet.v1 import seamless_events_pb2 as seamless


class Kind(StrEnum):
    """The kinds of ledger accounts."""

    CASH = "cash"
    RESERVED = "reserved"
    HOUSE = "house"
    COMMISSION = "commission"
    EXTERNAL = "external"
    RECEIVABLE = "receivable"
    CORRECTIONS = "corrections"
    DUE = "due"
    WRITTEN_OFF = "written_off"


OF_ACCOUNTS = frozenset({Kind.CASH, Kind.RESERVED, Kind.RECEIVABLE})
"""The kinds that belong to a person's account; the others are a partner's."""


class Posting(NamedTuple):
    """One leg of a journal entry."""

    kind: Kind
    partner: str
    account_id: str
    """Empty for the kinds that belong to a partner."""
    currency_code: str
    minor: int
    """Signed minor units; never 0."""

    @property
    def ledger_account(self) -> str:
        """The ledger account's name, such as `cash:acme:a-17:EUR` or `house:acme:EUR`."""
        parts = (self.kind.value, self.partner, self.account_id, self.currency_code)
        return ":".join(part for part in parts if part)


MOVES: frozenset[type[Message]] = frozenset(
    {
        wallets.StakeReserved,
        wallets.PayoutPosted,
        wallets.StakeReturned,
        wallets.FundsDeposited,
        wallets.FundsWithdrawn,
        corrections.CorrectionPosted,
        corrections.ReceivableSettled,
        seamless.MovementConfirmed,
        seamless.MovementWrittenOff,
    }
)
"""Every answer that may move money. Whoever adds a case to `postings` adds its type here."""


def postings(body: Message, partner: str) -> tuple[Posting, ...]:
    """The journal entry of one answer; empty where it moves no money. `partner`: of its header."""
    match body:
        case wallets.StakeReserved():
            total = sum(bet.stake_minor for bet in body.bets)
            if body.transaction_ids:
                return (
                    Posting(Kind.EXTERNAL, partner, "", body.currency_code, -total),
                    Posting(Kind.RESERVED, partner, body.account_id, body.currency_code, total),
                )
            return (
                Posting(Kind.CASH, partner, body.account_id, body.currency_code, -total),
                Posting(Kind.RESERVED, partner, body.account_id, body.currency_code, total),
            )
        case wallets.PayoutPosted():
            return _payout(body)
        case wallets.StakeReturned():
            total = sum(bet.stake_minor for bet in body.bets)
            owner, account_id, currency_code = body.partner_id, body.account_id, body.currency_code
            if not total:
                return ()
            back = (
                Posting(Kind.DUE, owner, "", currency_code, total)
                if body.transaction_ids
                else Posting(Kind.CASH, owner, account_id, currency_code, total)
            )
            return (Posting(Kind.RESERVED, owner, account_id, currency_code, -total), back)
        case wallets.FundsDeposited():
            return (
                Posting(Kind.EXTERNAL, partner, "", body.currency_code, -body.amount_minor),
                Posting(Kind.CASH, partner, body.account_id, body.currency_code, body.amount_minor),
            )
        case wallets.FundsWithdrawn():
            return (
                Posting(
                    Kind.CASH, partner, body.account_id, body.currency_code, -body.amount_minor
                ),
                Posting(Kind.EXTERNAL, partner, "", body.currency_code, body.amount_minor),
            )
        case corrections.CorrectionPosted():
            return _correction(body)
        case corrections.ReceivableSettled():
            return _receivable_settled(body)
        case seamless.MovementConfirmed():
            return _no_longer_due(body, Kind.EXTERNAL)
        case seamless.MovementWrittenOff():
            return _no_longer_due(body, Kind.WRITTEN_OFF)
        case _:
            return ()


def _correction(body: corrections.CorrectionPosted) -> tuple[Posting, ...]:
    """What the payout changes by goes to the account or comes from it, and what it could not give
    back is owed; the commission changes on its own leg."""
    partner, account_id, currency_code = body.partner_id, body.account_id, body.currency_code
    paid, kept, owed = body.payout_delta_minor, body.commission_delta_minor, body.receivable_minor
    legs = (
        Posting(Kind.CORRECTIONS, partner, "", currency_code, -(paid + kept)),
        (
            Posting(Kind.DUE, partner, "", currency_code, paid + owed)
            if body.due
            else Posting(Kind.CASH, partner, account_id, currency_code, paid + owed)
        ),
        Posting(Kind.RECEIVABLE, partner, account_id, currency_code, -owed),
        Posting(Kind.COMMISSION, partner, "", currency_code, kept),
    )
    return tuple(leg for leg in legs if leg.minor)


def _receivable_settled(body: corrections.ReceivableSettled) -> tuple[Posting, ...]:
    """It comes out of the balance here, or the partner that holds the money has collected it."""
    owner, account_id, currency_code = body.partner_id, body.account_id, body.currency_code
    paid = body.amount_minor
    return (
        (
            Posting(Kind.EXTERNAL, owner, "", currency_code, -paid)
            if body.at_partner
            else Posting(Kind.CASH, owner, account_id, currency_code, -paid)
        ),
        Posting(Kind.RECEIVABLE, owner, account_id, currency_code, paid),
    )


def _no_longer_due(
    body: seamless.MovementConfirmed | seamless.MovementWrittenOff, to: Kind
) -> tuple[Posting, ...]:
    if not body.amount_minor:
        return ()
    return (
        Posting(Kind.DUE, body.partner_id, "", body.currency_code, -body.amount_minor),
        Posting(to, body.partner_id, "", body.currency_code, body.amount_minor),
    )


def _payout(body: wallets.PayoutPosted) -> tuple[Posting, ...]:
    """The stakes go to the house; the gross winnings and the stakes that come back leave it; of the
    winnings the commission stays on a leg of its own."""
    partner, account_id, currency_code = body.partner_id, body.account_id, body.currency_code
    paid, kept = body.payout_minor, body.commission_minor
    legs = (
        Posting(Kind.RESERVED, partner, account_id, currency_code, -body.stake_minor),
        Posting(Kind.HOUSE, partner, "", currency_code, body.stake_minor),
        Posting(Kind.HOUSE, partner, "", currency_code, -(paid + kept)),
        (
            Posting(Kind.DUE, partner, "", currency_code, paid)
            if body.due
            else Posting(Kind.CASH, partner, account_id, currency_code, paid)
        ),
        Posting(Kind.COMMISSION, partner, "", currency_code, kept),
    )
    return tuple(leg for leg in legs if leg.minor)
