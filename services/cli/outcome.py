"""What a round came to for each account and for the house, and how two of them differ."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sabot.table.v1 import events_pb2 as tables
from sabot.wallet.v1 import events_pb2 as wallets
from services.cli.describe import describe
from services.cli.find import Columns
from services.kernel.event import Event
from services.wallet.domain.postings import OF_ACCOUNTS, Kind, postings

Key = tuple[str, str, str]
"""Partner, account (empty: the partner's house), currency."""
AT_PARTNERS = frozenset({Kind.EXTERNAL, Kind.DUE})
"""The kinds for what a partner keeps for an account of its own, or is to give it."""


@dataclass(slots=True)
class Came:
    """What a round came to for one account, minor units."""

    stake_minor: int = 0
    """Staked and not returned."""
    payout_minor: int = 0
    net_minor: int = 0
    """What it has more by it, here or at its partner's."""


@dataclass(slots=True)
class Outcome:
    """What a round came to."""

    result: str = "no result"
    end: str = "not over"
    by_account: dict[Key, Came] = field(default_factory=dict[Key, Came])
    """Accounts and, per partner, the house."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One account, or the house, as it is and as it would be."""

    key: Key
    recorded: Came
    would_be: Came

    @property
    def minor(self) -> int:
        """What it would have more."""
        return self.would_be.net_minor - self.recorded.net_minor

    def json(self) -> dict[str, Any]:
        """For programs."""
        partner, account_id, currency_code = self.key
        return {
            "partner": partner,
            "account": account_id or None,
            "currency": currency_code,
            "recorded": _json(self.recorded),
            "would_be": _json(self.would_be),
            "difference_minor": self.minor,
        }


def _json(came: Came) -> dict[str, int]:
    return {
        "stake_minor": came.stake_minor,
        "payout_minor": came.payout_minor,
        "net_minor": came.net_minor,
    }


def outcome_of(events: Iterable[Event], round_id: str) -> Outcome:
    """What a round came to, by the wallet's answers among some events."""
    found = Outcome()
    for event in events:
        body: Any = event.body
        if event.is_input or getattr(body, "round_id", "") != round_id:
            continue
        match body:
            case tables.ResultAccepted():
                found.result = describe(body)
            case tables.RoundClosed():
                found.end = tables.RoundEnd.Name(body.end).removeprefix("ROUND_END_").lower()
            case wallets.StakeReserved():
                came = _of(found, (event.partner, body.account_id, body.currency_code))
                came.stake_minor += sum(bet.stake_minor for bet in body.bets)
            case wallets.StakeReturned():
                came = _of(found, (body.partner_id, body.account_id, body.currency_code))
                came.stake_minor -= sum(bet.stake_minor for bet in body.bets)
            case wallets.PayoutPosted():
                came = _of(found, (body.partner_id, body.account_id, body.currency_code))
                came.payout_minor += body.payout_minor
            case _:
                continue
        for leg in postings(body, event.partner):
            whose = leg.account_id if leg.kind in OF_ACCOUNTS else ""
            if leg.kind in AT_PARTNERS:
                whose = str(getattr(body, "account_id", ""))
            key = (leg.partner, whose, leg.currency_code)
            _of(found, key).net_minor += leg.minor
    return found


def _of(found: Outcome, key: Key) -> Came:
    return found.by_account.setdefault(key, Came())


def differences(recorded: Outcome, would_be: Outcome) -> list[Difference]:
    """Every account of either, then the houses; their differences sum to zero by currency."""
    keys = {**recorded.by_account, **would_be.by_account}
    ordered = sorted(keys, key=lambda key: (not key[1], key))
    return [
        Difference(key, recorded.by_account.get(key, Came()), would_be.by_account.get(key, Came()))
        for key in ordered
    ]


def difference_lines(found: list[Difference]) -> list[str]:
    """For people: who staked and got what, and would have; then the sum by currency."""
    rows = Columns(
        [("account", "currency", "stake", "would be", "payout", "would be", "difference")]
    )
    sums: dict[str, int] = {}
    for one in found:
        partner, account_id, currency_code = one.key
        sums[currency_code] = sums.get(currency_code, 0) + one.minor
        was, would = one.recorded, one.would_be
        numbers = (was.stake_minor, would.stake_minor, was.payout_minor, would.payout_minor)
        cells = tuple(str(number) for number in numbers) if account_id else ("", "", "", "")
        name = f"{partner}/{account_id}" if account_id else f"house of {partner}"
        rows.rows.append((name, currency_code, *cells, f"{one.minor:+}"))
    told = list(rows.lines())
    told += [f"sum {currency_code}: {minor}" for currency_code, minor in sorted(sums.items())]
    return told
