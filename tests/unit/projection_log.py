"""A cell's log made by hand, for tests of projections: no core is asked, so that the tests say what
stands in the log and what must be read from it."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from typing import Any

from google.protobuf.message import Message

from sabot.limits.v1 import events_pb2 as limits
from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.table.v1 import bet_pb2, spec_pb2
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.kernel.event import Event, Position

STAKE_MINOR = 500
START_US = 1_700_000_000_000_000
STEP_US = 1_000
RULES = bytes(range(32))
"""The hash of the rule set that tables play by."""

Entries = list[tuple[int, bytes, list[Event]]]


class HandMadeLog:
    """Events in entries of `entry_events` each; `flush` ends one earlier."""

    def __init__(self, *, entry_events: int = 1, salt: bytes = b"") -> None:
        self.entries: Entries = []
        self.reads = 0
        self._entry_events = entry_events
        self._head = hashlib.sha256(salt).digest()
        self._buffer: list[Event] = []
        self._time_us = START_US
        self._requests = 0

    def add(
        self,
        service: str,
        body: Message,
        cause: Event | None = None,
        *,
        partner: str = "",
        actor: str = "",
    ) -> Event:
        """One more event: an input, or the answer to `cause` on its behalf."""
        self._time_us += STEP_US
        position = Position(1, len(self.entries) + 1, len(self._buffer))
        event = Event(
            position,
            service,
            cause is None,
            body,
            cause.position if cause else None,
            cause.partner if cause else partner,
            cause.actor if cause else actor,
            self._time_us,
            1,
        )
        self._buffer.append(event)
        if len(self._buffer) >= self._entry_events:
            self.flush()
        return event

    def flush(self) -> None:
        """End the entry that is being filled."""
        if self._buffer:
            self._append(self._buffer)
            self._buffer = []

    def add_empty(self) -> None:
        """An entry with no event for anyone, such as a repeated one."""
        self.flush()
        self._append([])

    def _append(self, events: list[Event]) -> None:
        sequence = len(self.entries) + 1
        self._head = hashlib.sha256(self._head + sequence.to_bytes(8)).digest()
        self.entries.append((sequence, self._head, events))

    @property
    def events(self) -> list[Event]:
        """All events, in order."""
        return [event for _, _, events in self.entries for event in events]

    async def read(self, after: int) -> AsyncIterator[tuple[int, bytes, list[Event]]]:
        """The log's reader, as a projector is given it."""
        self.reads += 1
        for entry in self.entries[after:]:
            yield entry

    # ---- whole happenings ----------------------------------------------------------------------

    def next_request(self) -> str:
        """A request id that was not used yet."""
        self._requests += 1
        return f"request-{self._requests}"

    def open_account(self, partner: str, account: str, amount_minor: int) -> None:
        """An account with money in it."""
        actor = f"partner:{partner}"
        asked = self.add(
            "wallet",
            wallet.OpenAccount(
                request_id=self.next_request(), account_id=account, currency_code="EUR"
            ),
            partner=partner,
            actor=actor,
        )
        self.add("wallet", wallet.AccountOpened(account_id=account, currency_code="EUR"), asked)
        self.deposit(partner, account, amount_minor)

    def deposit(self, partner: str, account: str, amount_minor: int) -> tuple[Event, Event]:
        """Money coming in: the input and its outcome."""
        request_id = self.next_request()
        fields: dict[str, Any] = {
            "request_id": request_id,
            "account_id": account,
            "currency_code": "EUR",
            "amount_minor": amount_minor,
        }
        asked = self.add(
            "wallet", wallet.Deposit(**fields), partner=partner, actor=f"partner:{partner}"
        )
        requested = self.add("wallet", wallet.DepositRequested(**fields), asked)
        approved = self.add("limits", limits.DepositApproved(**fields), requested)
        return asked, self.add("wallet", wallet.FundsDeposited(**fields), approved)

    def open_table(self, table_id: str = "t1", rules: bytes = RULES) -> None:
        """A table with a rule set of this hash."""
        spec = spec_pb2.TableSpec(table_id=table_id, rule_set=rule_set_pb2.RuleSet(hash=rules))
        asked = self.add("table", table.OpenTable(spec=spec), actor="operator:ann")
        self.add("table", table.TableOpened(spec=spec, revision=1), asked)

    def open_round(self, number: int, table_id: str = "t1", closes_after_ms: int = 20_000) -> str:
        """A round that takes bets; its id."""
        round_id = f"{table_id}-{number}"
        asked = self.add(
            "table", table.OpenRound(table_id=table_id, number=number), actor="system:timers"
        )
        self.add(
            "table",
            table.RoundOpened(
                table_id=table_id,
                round_id=round_id,
                number=number,
                shoe_id=f"{table_id}-s1",
                round_in_shoe=number,
                closes_after_ms=closes_after_ms,
            ),
            asked,
        )
        return round_id

    def ask_bets(
        self, round_id: str, partner: str, account: str, kinds: tuple[str, ...], request_id: str
    ) -> Event:
        """The input of a request for bets."""
        return self.add(
            "table",
            table.PlaceBets(
                request_id=request_id,
                account_id=account,
                table_id=round_id.rsplit("-", 1)[0],
                round_id=round_id,
                currency_code="EUR",
                bets=[bet_pb2.Bet(bet=kind, stake_minor=STAKE_MINOR) for kind in kinds],
            ),
            partner=partner,
            actor=f"partner:{partner}",
        )

    def place(self, asked: Event) -> Event:
        """The table takes the bets of a request."""
        body = asked.body
        assert isinstance(body, table.PlaceBets)
        bets = [
            bet_pb2.Bet(
                bet_id=f"{body.round_id}.{asked.position.sequence}.{asked.position.index}.{number}",
                bet=bet.bet,
                stake_minor=bet.stake_minor,
            )
            for number, bet in enumerate(body.bets)
        ]
        return self.add(
            "table",
            table.BetsPlaced(
                request_id=body.request_id,
                account_id=body.account_id,
                table_id=body.table_id,
                round_id=body.round_id,
                currency_code=body.currency_code,
                bets=bets,
            ),
            asked,
        )

    def approve(self, placed: Event) -> Event:
        """Limits approve placed bets."""
        return self.add("limits", _like(limits.BetsApproved(), placed.body), placed)

    def reserve(self, approved: Event) -> Event:
        """The wallet reserves their stakes."""
        return self.add("wallet", _like(wallet.StakeReserved(), approved.body), approved)

    def bet(
        self,
        round_id: str,
        partner: str,
        account: str,
        kinds: tuple[str, ...] = ("banker",),
        request_id: str | None = None,
    ) -> tuple[Event, Event]:
        """Bets that are on: the input and its outcome."""
        asked = self.ask_bets(round_id, partner, account, kinds, request_id or self.next_request())
        return asked, self.reserve(self.approve(self.place(asked)))

    def close_betting(self, round_id: str) -> Event:
        """No more bets, as far as the seal."""
        at: dict[str, Any] = {"table_id": round_id.rsplit("-", 1)[0], "round_id": round_id}
        asked = self.add("table", table.CloseBetting(**at), actor="system:timers")
        closed = self.add("table", table.BettingClosed(**at), asked)
        booked = self.add("limits", limits.BookClosed(**at), closed)
        return self.add("wallet", wallet.StakesSealed(**at), booked)

    def play(self, round_id: str, reserved: list[tuple[str, Event]]) -> None:
        """Cards, result, settlement, payment: banker wins. `reserved`: (partner, StakeReserved)."""
        at: dict[str, Any] = {"table_id": round_id.rsplit("-", 1)[0], "round_id": round_id}
        self.close_betting(round_id)
        for cards in (("4S", "9H", "2C", "KD"), ("7S",)):
            opened = self.add("shoe", shoe.OpenCards(**at), actor="system:custodian")
            dealt = [
                shoe.DealtCard(index=index, card=card, hand=rules.HAND_PLAYER)
                for index, card in enumerate(cards)
            ]
            self.add("shoe", shoe.CardsDealt(**at, cards=dealt), opened)
        result = rules.Result(
            baccarat=rules.BaccaratResult(
                player_cards=["4S", "2C"],
                banker_cards=["9H", "KD"],
                player_total=6,
                banker_total=9,
                winner=rules.BACCARAT_WINNER_BANKER,
            )
        )
        resolved = self.add("rules", rules.RoundResolved(**at, result=result), opened)
        accepted = self.add("table", table.ResultAccepted(**at, result=result), resolved)
        cause = accepted
        for partner, event in reserved:
            cause = self._settle(at, partner, event, accepted)
        settled = self.add(
            "settlement", settlement.RoundSettled(**at, accounts=len(reserved)), cause
        )
        paid = self.add("wallet", wallet.RoundPaid(**at), settled)
        self.add("table", table.RoundClosed(**at, end=table.ROUND_END_PAID), paid)

    def _settle(self, at: dict[str, Any], partner: str, event: Event, accepted: Event) -> Event:
        body = event.body
        assert isinstance(body, wallet.StakeReserved)
        bets = [
            settlement.SettledBet(
                bet_id=bet.bet_id,
                bet=bet.bet,
                stake_minor=bet.stake_minor,
                outcome=settlement.OUTCOME_WON,
                profit_minor=475,
                payout_minor=bet.stake_minor + 475,
                commission_minor=25,
            )
            for bet in body.bets
        ]
        whose: dict[str, Any] = {
            "partner_id": partner,
            "account_id": body.account_id,
            "currency_code": "EUR",
        }
        settled = self.add(
            "settlement",
            settlement.BetsSettled(**at, **whose, bets=bets, rule_set_hash=RULES),
            accepted,
        )
        self.add(
            "wallet",
            wallet.PayoutPosted(
                **at,
                **whose,
                stake_minor=sum(bet.stake_minor for bet in bets),
                payout_minor=sum(bet.payout_minor for bet in bets),
                commission_minor=sum(bet.commission_minor for bet in bets),
            ),
            settled,
        )
        return settled

    def void(self, round_id: str, reserved: list[tuple[str, Event]]) -> None:
        """The round does not count; the stakes go back."""
        at: dict[str, Any] = {"table_id": round_id.rsplit("-", 1)[0], "round_id": round_id}
        asked = self.add(
            "table",
            table.VoidRound(**at, request_id="void", reason=table.ROUND_REASON_DEALER_ERROR),
            actor="operator:ann",
        )
        voided = self.add(
            "table", table.RoundVoided(**at, reason=table.ROUND_REASON_DEALER_ERROR), asked
        )
        booked = self.add("limits", limits.BookVoided(**at), voided)
        for partner, event in reserved:
            returned = _like(
                wallet.StakeReturned(reason=wallet.RETURN_REASON_VOIDED, partner_id=partner),
                event.body,
            )
            returned.ClearField("request_id")
            self.add("wallet", returned, booked)
        done = self.add("wallet", wallet.RoundReturned(**at), booked)
        self.add("table", table.RoundClosed(**at, end=table.ROUND_END_RETURNED), done)


def _like(message: Message, other: Message) -> Message:
    """`message` with every field of `other` that it has by that name."""
    for field, value in other.ListFields():
        if field.name in message.DESCRIPTOR.fields_by_name:
            if field.is_repeated:
                getattr(message, field.name).extend(value)
            else:
                setattr(message, field.name, value)
    return message


def busy_log(
    *, rounds: int, bets: int, entry_events: int = 40, void_every: int = 7, partners: int = 2
) -> HandMadeLog:
    """A log of whole rounds, with `bets` requests for two bets each in every round."""
    made = HandMadeLog(entry_events=entry_events)
    accounts = 20
    for number in range(accounts):
        made.open_account(f"p{number % partners}", f"a{number}", 10_000_000)
    made.open_table()
    for number in range(1, rounds + 1):
        round_id = made.open_round(number)
        reserved: list[tuple[str, Event]] = []
        for one in range(bets):
            partner = f"p{one % accounts % partners}"
            account = f"a{one % accounts}"
            asked, outcome = made.bet(round_id, partner, account, ("banker", "tie"))
            reserved.append((asked.partner, outcome))
        if number % void_every == 0:
            made.void(round_id, reserved)
        else:
            made.play(round_id, reserved)
    made.flush()
    return made
