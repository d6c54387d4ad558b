"""Journals for tests: hand-made logs of money, projected, and a simple model of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sabot.limits.v1 import events_pb2 as limits
from sabot.settlement.v1 import events_pb2 as settlements
from sabot.table.v1 import bet_pb2
from sabot.wallet.v1 import events_pb2 as wallets
from services.kernel.event import Event, Position
from services.kernel.projections import Projector
from services.wallet.ledger_queries import SqlLedgerQueries
from services.wallet.projection import WalletProjection
from tests.unit.projecting import WAIT_S, url_of
from tests.unit.projection_log import RULES, HandMadeLog

PARTNERS = ("north", "south")
CURRENCIES = ("EUR", "JPY", "KWD")
Line = tuple[Position, int, str, str, str, int, int]
"""(position, time, kind, partner, account, change of cash, change of reserved)."""


@dataclass
class MoneyLog:
    """A log of movements, and the same movements in a list: no core and no posting is asked."""

    log: HandMadeLog = field(default_factory=HandMadeLog)
    lines: list[Line] = field(default_factory=list[Line])
    currency: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    held: defaultdict[tuple[str, str], list[int]] = field(
        default_factory=lambda: defaultdict(lambda: [0, 0])
    )
    stakes: list[tuple[str, str, str, str, int]] = field(
        default_factory=list[tuple[str, str, str, str, int]]
    )
    """Bets that are on: (round, partner, account, bet, stake)."""
    commission: defaultdict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    rounds: int = 0
    bets: int = 0

    def wait(self, until_us: int) -> None:
        """Nothing happens until a time."""
        assert until_us >= self.log._time_us
        self.log._time_us = until_us

    def open(self, partner: str, account: str, currency: str) -> None:
        """An account."""
        asked = self.log.add(
            "wallet",
            wallets.OpenAccount(
                request_id=self.log.next_request(), account_id=account, currency_code=currency
            ),
            partner=partner,
            actor=f"partner:{partner}",
        )
        opened = wallets.AccountOpened(account_id=account, currency_code=currency)
        self.log.add("wallet", opened, asked)
        self.currency[partner, account] = currency

    def move(self, partner: str, account: str, minor: int) -> None:
        """Money in, or out where it is negative."""
        fields: dict[str, Any] = {
            "request_id": self.log.next_request(),
            "account_id": account,
            "currency_code": self.currency[partner, account],
            "amount_minor": abs(minor),
        }
        asked = wallets.Deposit(**fields) if minor > 0 else wallets.Withdraw(**fields)
        cause = self.log.add("wallet", asked, partner=partner, actor=f"partner:{partner}")
        done = wallets.FundsDeposited if minor > 0 else wallets.FundsWithdrawn
        event = self.log.add("wallet", done(**fields), cause)
        self._note(event, "deposit" if minor > 0 else "withdrawal", partner, account, minor, 0)

    def open_round(self) -> str:
        """A round."""
        self.rounds += 1
        return self.log.open_round(self.rounds)

    def bet(self, round_id: str, partner: str, account: str, stakes: Sequence[int]) -> None:
        """Bets that are on."""
        bets = []
        for stake in stakes:
            self.bets += 1
            bets.append(bet_pb2.Bet(bet_id=f"b{self.bets}", bet="banker", stake_minor=stake))
            self.stakes.append((round_id, partner, account, f"b{self.bets}", stake))
        fields: dict[str, Any] = {
            "request_id": self.log.next_request(),
            "account_id": account,
            "table_id": "t1",
            "round_id": round_id,
            "currency_code": self.currency[partner, account],
            "bets": bets,
        }
        cause = self.log.add(
            "limits", limits.BetsApproved(**fields), partner=partner, actor=f"partner:{partner}"
        )
        event = self.log.add("wallet", wallets.StakeReserved(**fields), cause)
        total = sum(stakes)
        self._note(event, "stake", partner, account, -total, total)

    def end(self, round_id: str, paid: dict[str, tuple[int, int]] | None) -> None:
        """Every bet of a round is paid (by bet: payout and commission), or the round is voided."""
        mine = [one for one in self.stakes if one[0] == round_id]
        self.stakes = [one for one in self.stakes if one[0] != round_id]
        owners = list(dict.fromkeys((partner, account) for _, partner, account, _, _ in mine))
        at: dict[str, Any] = {"table_id": "t1", "round_id": round_id}
        cause = self.log.add("limits", limits.BookVoided(**at), actor="operator:ann")
        for partner, account in owners:
            bets = [(bet, stake) for _, *owner, bet, stake in mine if owner == [partner, account]]
            whose: dict[str, Any] = {
                "partner_id": partner,
                "account_id": account,
                "currency_code": self.currency[partner, account],
            }
            total = sum(stake for _, stake in bets)
            if paid is None:
                returned = wallets.StakeReturned(
                    **at,
                    **whose,
                    bets=[bet_pb2.Bet(bet_id=bet, stake_minor=stake) for bet, stake in bets],
                    reason=wallets.RETURN_REASON_VOIDED,
                )
                event = self.log.add("wallet", returned, cause)
                self._note(event, "voided", partner, account, total, -total)
                continue
            settled = settlements.BetsSettled(
                **at,
                **whose,
                bets=[settlements.SettledBet(bet_id=bet) for bet, _ in bets],
                rule_set_hash=RULES,
            )
            payout = sum(paid[bet][0] for bet, _ in bets)
            kept = sum(paid[bet][1] for bet, _ in bets)
            self.commission[partner, self.currency[partner, account]] += kept
            posted = wallets.PayoutPosted(
                **at, **whose, stake_minor=total, payout_minor=payout, commission_minor=kept
            )
            event = self.log.add("wallet", posted, self.log.add("settlement", settled, cause))
            self._note(event, "payout", partner, account, payout, -total)

    def _note(
        self, event: Event, kind: str, partner: str, account: str, cash: int, reserved: int
    ) -> None:
        self.lines.append((event.position, event.time_us, kind, partner, account, cash, reserved))
        self.held[partner, account][0] += cash
        self.held[partner, account][1] += reserved

    # ---- the model -----------------------------------------------------------------------------

    def had(self, partner: str, account: str, before: Position) -> tuple[int, int]:
        """(cash, reserved) of an account before a position."""
        mine = [one for one in self.lines if one[3:5] == (partner, account) and one[0] < before]
        return sum(one[5] for one in mine), sum(one[6] for one in mine)


def some_money() -> MoneyLog:
    """A small log of everything: two partners, three currencies, a round paid and one voided."""
    made = MoneyLog()
    made.log.open_table()
    made.open("north", "a", "EUR")
    made.open("north", "b", "JPY")
    made.open("south", "a", "EUR")
    for partner, account in made.currency:
        made.move(partner, account, 10_000)
    first = made.open_round()
    made.bet(first, "north", "a", [500, 100])
    made.bet(first, "south", "a", [300])
    made.end(first, {"b1": (975, 25), "b2": (0, 0), "b3": (300, 0)})
    second = made.open_round()
    made.bet(second, "north", "a", [200])
    made.end(second, None)
    made.move("north", "a", -1_000)
    third = made.open_round()
    made.bet(third, "north", "a", [50])
    made.log.flush()
    return made


async def projected(
    made: MoneyLog | HandMadeLog, folder: Path, name: str = "ledger"
) -> tuple[Projector, SqlLedgerQueries]:
    """The whole log in tables."""
    log = made.log if isinstance(made, MoneyLog) else made
    log.flush()
    projector = Projector(WalletProjection(), url_of(folder, name), log.read)
    assert await projector.start(wait_s=WAIT_S)
    assert await projector.caught_up(WAIT_S)
    return projector, SqlLedgerQueries(projector)
