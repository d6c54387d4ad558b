"""The table's projection: rounds, bets and what became of requests, as partners may ask for
them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from google.protobuf.message import Message
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    select,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1.events_pb2 import InputFailed
from sabot.partner.v1 import partner_service_pb2 as partner_v1
from sabot.rules.v1 import events_pb2 as rules
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import floor_events_pb2 as orders
from sabot.table.v1 import switch_events_pb2 as switches
from sabot.wallet.v1 import events_pb2 as wallet
from services.kernel.databases import KeyInteger, position_key
from services.kernel.event import Event
from services.kernel.projection_store import positions_table
from services.kernel.request_rows import RequestKinds, RequestRows, request_tables
from services.kernel.row_changes import Changes, Row
from services.table.correction_rows import (
    CORRECTION_CHANGES,
    CORRECTION_REQUESTS,
    correction_tables,
    keep_correction,
)
from services.table.outcome_view import OUTCOME_CHANGES, follow_outcome, told_cards
from services.table.round_view import laid_out
from services.table.seats_view import SEAT_CHANGES, follow_seats, is_further

REQUEST_KINDS = RequestKinds(
    scopes={
        table.PlaceBets: "round_id",
        table.WithdrawBets: "round_id",
        table.Act: "round_id",
        table.OpenTable: "",
        table.CloseTable: "",
        table.OpenRound: "",
        table.CloseBetting: "",
        table.SuspendRound: "",
        table.ResumeRound: "",
        table.VoidRound: "",
        orders.CorrectCard: "",
        orders.CorrectOutcome: "",
        **CORRECTION_REQUESTS,
        switches.SetSwitch: "",
        wallet.OpenAccount: "",
        wallet.CloseAccount: "",
        wallet.BlockAccount: "",
        wallet.UnblockAccount: "",
        wallet.Deposit: "",
        wallet.Withdraw: "",
    },
    onward={
        table.BetsPlaced: "limits",
        limits.BetsApproved: "wallet",
        table.BetsWithdrawn: "limits",
        table.ActionTaken: "limits",
        orders.CardCorrectionOrdered: "shoe",
        orders.OutcomeCorrectionOrdered: "shoe",
        limits.WithdrawalApproved: "wallet",
        wallet.DepositRequested: "limits",
        limits.DepositApproved: "wallet",
        limits.DepositRefused: "wallet",
    },
    refusals=frozenset(
        (
            table.BetsRejected,
            table.WithdrawalRejected,
            table.ActionRejected,
            table.OrderRejected,
            floor.FloorRejected,
            wallet.AccountRequestDeclined,
        )
    ),
    # An action without a further stake is decided by the table alone.
    ends=lambda body: isinstance(body, table.ActionTaken) and not body.HasField("extra"),
    # On the floor late bets go back before betting closes.
    steps=lambda body: isinstance(body, table.BetsWithdrawn) and body.HasField("close"),
)
"""The partners' front door answers for every request, the wallet's ones too (GetRequest)."""

METADATA = MetaData()
positions_table(METADATA)
REQUESTS = request_tables(METADATA)

ROUNDS = Table(
    "rounds",
    METADATA,
    Column("round_id", Text, primary_key=True),
    Column("table_id", Text, nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("shoe_id", Text, nullable=False),
    Column("round_in_shoe", Integer, nullable=False),
    Column("state", SmallInteger, nullable=False),
    Column("suspended", Boolean, nullable=False),
    Column("open_time_us", BigInteger, nullable=False),
    Column("close_time_us", BigInteger),
    # A serialised partner.v1.Round with its cards and tosses, and whether it was corrected.
    Column("cards", LargeBinary, nullable=False),
    # A serialised partner.v1.Round with nothing but its seats, dealer, turn and look.
    Column("seats", LargeBinary),
    Column("result", LargeBinary),
    Column("void_reason", SmallInteger, nullable=False),
    # Where the ace stands, a sabot.rules.v1.AceRank; 0 in games that do not say.
    Column("ace", SmallInteger, nullable=False, server_default="0"),
    Column("opened", KeyInteger, nullable=False),
    Column("changed", KeyInteger, nullable=False),
    Index("rounds_by_opening", "opened"),
    Index("rounds_by_shoe", "shoe_id", "opened"),
    Index("rounds_by_table", "table_id", "opened"),
    Index("rounds_by_state", "state"),
)
"""One row a round. `opened`, `changed`: keys of log positions."""

ACES = Table(
    "table_aces",
    METADATA,
    Column("table_id", Text, primary_key=True),
    Column("ace", SmallInteger, nullable=False),
)
"""One row a table of a game that says where the ace stands, by the rules in force: its next rounds
are read by it."""

BETS = Table(
    "bets",
    METADATA,
    Column("bet_id", Text, primary_key=True),
    Column("partner", Text, nullable=False),
    Column("account_id", Text, nullable=False),
    Column("table_id", Text, nullable=False),
    Column("round_id", Text, nullable=False),
    Column("request_id", Text, nullable=False),
    Column("bet", Text, nullable=False),
    Column("position", Text, nullable=False, server_default=""),
    Column("announced", Text, nullable=False, server_default=""),
    Column("line", Text, nullable=False, server_default=""),
    Column("stake_minor", BigInteger, nullable=False),
    Column("currency_code", Text, nullable=False),
    Column("state", SmallInteger, nullable=False),
    Column("outcome", SmallInteger, nullable=False),
    Column("payout_minor", BigInteger, nullable=False),
    Column("commission_minor", BigInteger, nullable=False),
    Column("place_time_us", BigInteger, nullable=False),
    Column("placed", KeyInteger, nullable=False),
    Column("number", SmallInteger, nullable=False),
    Column("changed", KeyInteger, nullable=False),
    # A serialised partner.v1.BetCorrection.
    Column("correction", LargeBinary),
    Index("bets_by_account", "partner", "account_id", "placed", "number"),
    Index("bets_by_placing", "placed", "number"),
    Index("bets_by_partner", "partner", "placed", "number"),
    Index("bets_by_round", "round_id", "placed", "number"),
    Index("bets_by_change", "partner", "changed"),
)
"""One row a bet. `placed` and `number`: key of its `BetsPlaced` and its place there, from 0."""

CORRECTIONS, CORRECTED_ROUNDS = correction_tables(METADATA)

OVER = (partner_v1.ROUND_STATE_PAID, partner_v1.ROUND_STATE_RETURNED)
"""States of rounds to which nothing happens any more."""

_PLACING: dict[str, type[Message]] = {
    str(body.DESCRIPTOR.full_name): body for body in (table.BetsPlaced, limits.BetsApproved)
}
_ACTION = str(table.ActionTaken.DESCRIPTOR.full_name)


_RETURNED: dict[int, partner_v1.BetState.ValueType] = {
    wallet.RETURN_REASON_VOIDED: partner_v1.BET_STATE_VOIDED,
    wallet.RETURN_REASON_LATE: partner_v1.BET_STATE_LATE,
}


class TableProjection:
    """Folds the cell's log into rounds, bets and requests."""

    name = "table"
    metadata = METADATA
    migrations = "services.table.migrations"

    def __init__(self) -> None:
        self._requests = RequestRows(REQUESTS, REQUEST_KINDS)
        self._running: dict[str, Row] = {}
        """Rows of the rounds that are not over."""
        self._aces: dict[str, int] = {}
        """By table, see `ACES`."""
        self._handlers: dict[type[Message], Callable[[Event, Any, Changes], None]] = {
            table.TableOpened: self._table_opened,
            table.RoundOpened: self._round_opened,
            table.BettingClosed: self._betting_closed,
            table.RoundSuspended: self._round_suspended,
            table.RoundResumed: self._round_resumed,
            table.ResultAccepted: self._result_accepted,
            table.RoundVoided: self._round_voided,
            table.RoundClosed: self._round_closed,
            shoe.CardsDealt: self._cards_dealt,
            limits.BetsRefused: self._bets_refused,
            wallet.StakeDeclined: self._stake_declined,
            wallet.StakeReserved: self._stake_reserved,
            wallet.StakeReturned: self._stake_returned,
            settlement.BetsSettled: self._bets_settled,
            table.ActionTaken: self._action_taken,
            **dict.fromkeys(CORRECTION_CHANGES, _corrected),
            **dict.fromkeys(OUTCOME_CHANGES, self._outcome_changed),
            **dict.fromkeys(SEAT_CHANGES - {table.ActionTaken}, self._seats_changed),
        }

    async def load(self, connection: AsyncConnection) -> None:
        """Take the running rounds and the pending requests from the tables."""
        await self._requests.load(connection)
        rows = await connection.execute(select(ROUNDS).where(ROUNDS.c.state.not_in(OVER)))
        self._running = {row.round_id: dict(row._mapping) for row in rows}  # noqa: SLF001  # public
        self._aces = {row.table_id: row.ace for row in await connection.execute(select(ACES))}

    def apply(self, events: Sequence[Event], changes: Changes) -> None:
        """Fold events into row changes."""
        requests, handlers = self._requests, self._handlers
        for event in events:
            body = event.body
            if event.is_input:
                requests.asked(event, changes)
                continue
            link = requests.answered(event, changes)
            if isinstance(body, table.BetsPlaced):
                self._bets_placed(event, body, link.partner if link else event.partner, changes)
            elif isinstance(body, InputFailed):
                if link is not None:
                    self._path_failed(event, body, changes)
            else:
                handler = handlers.get(type(body))
                if handler is not None:
                    handler(event, body, changes)

    # ---- rounds --------------------------------------------------------------------------------

    def _table_opened(self, event: Event, body: table.TableOpened, changes: Changes) -> None:
        del event
        table_id, ace = body.spec.table_id, body.spec.rule_set.two_cards.ace
        if ace or table_id in self._aces:
            self._aces[table_id] = ace
            changes[ACES].save((table_id,), {"table_id": table_id, "ace": ace})

    def _round_opened(self, event: Event, body: table.RoundOpened, changes: Changes) -> None:
        window_us = body.closes_after_ms * 1000
        key = position_key(event.position)
        self._running[body.round_id] = {
            "round_id": body.round_id,
            "table_id": body.table_id,
            "number": body.number,
            "shoe_id": body.shoe_id,
            "round_in_shoe": body.round_in_shoe,
            "state": partner_v1.ROUND_STATE_BETTING,
            "suspended": False,
            "open_time_us": event.time_us,
            "close_time_us": event.time_us + window_us if window_us else None,
            "cards": b"",
            "seats": None,
            "result": None,
            "void_reason": table.ROUND_REASON_UNSPECIFIED,
            "ace": self._aces.get(body.table_id, 0),
            "opened": key,
            "changed": key,
        }
        self._change_round(event, body.round_id, changes)

    def _change_round(
        self, event: Event, round_id: str, changes: Changes, **values: object
    ) -> None:
        row = self._running.get(round_id)
        if row is None:
            return
        row.update(values, changed=position_key(event.position))
        changes[ROUNDS].save((round_id,), dict(row))

    def _betting_ended_us(self, event: Event, round_id: str) -> int | None:
        """When betting ended: now, if it was open until now."""
        row = self._running.get(round_id)
        if row is None or row["state"] == partner_v1.ROUND_STATE_BETTING:
            return event.time_us
        ended_us: int | None = row["close_time_us"]
        return ended_us

    def _betting_closed(self, event: Event, body: table.BettingClosed, changes: Changes) -> None:
        ended_us = self._betting_ended_us(event, body.round_id)
        state = partner_v1.ROUND_STATE_DEALING
        self._change_round(event, body.round_id, changes, state=state, close_time_us=ended_us)

    def _round_suspended(self, event: Event, body: table.RoundSuspended, changes: Changes) -> None:
        row = self._running.get(body.round_id)
        if row is not None and row["state"] == partner_v1.ROUND_STATE_BETTING:
            row["close_time_us"] = None  # The window begins anew when the round goes on.
        self._change_round(event, body.round_id, changes, suspended=True)

    def _round_resumed(self, event: Event, body: table.RoundResumed, changes: Changes) -> None:
        row = self._running.get(body.round_id)
        if row is not None and body.closes_after_ms:
            row["close_time_us"] = event.time_us + body.closes_after_ms * 1000
        self._change_round(event, body.round_id, changes, suspended=False)

    def _cards_dealt(self, event: Event, body: shoe.CardsDealt, changes: Changes) -> None:
        row = self._running.get(body.round_id)
        if row is not None:
            # Serialised messages that are joined are one message with the lists joined.
            more = partner_v1.Round(cards=told_cards(body)).SerializeToString()
            self._change_round(event, body.round_id, changes, cards=row["cards"] + more)
            if any(card.hand >= rules.HAND_DEALER for card in body.cards):
                self._seats_changed(event, body, changes)

    def _outcome_changed(self, event: Event, body: Any, changes: Changes) -> None:
        """A spin or a roll, or something that was corrected."""
        row = self._running.get(body.round_id)
        if row is None:
            return
        view = partner_v1.Round.FromString(row["cards"])
        follow_outcome(view, body)
        self._change_round(event, body.round_id, changes, cards=view.SerializeToString())
        if row["seats"] is not None:
            self._seats_changed(event, body, changes)

    def _seats_changed(self, event: Event, body: Any, changes: Changes) -> None:
        """Blackjack: who has which hand, and whose turn it is."""
        row = self._running.get(body.round_id)
        if row is None or (row["seats"] is None and not row["cards"]):
            return
        view = partner_v1.Round(state=row["state"])
        view.MergeFromString(row["seats"] or b"")
        view.cards.extend(laid_out(row["cards"]))
        follow_seats(view, body)
        shown = partner_v1.Round(seats=view.seats)
        for name in ("dealer", "turn", "hole_look"):
            if view.HasField(name):
                getattr(shown, name).CopyFrom(getattr(view, name))
        seats = shown.SerializeToString() or None
        if seats != row["seats"]:
            self._change_round(event, body.round_id, changes, seats=seats)

    def _result_accepted(self, event: Event, body: table.ResultAccepted, changes: Changes) -> None:
        self._change_round(
            event,
            body.round_id,
            changes,
            state=partner_v1.ROUND_STATE_PAYING,
            result=body.result.SerializeToString(),
        )
        self._seats_changed(event, body, changes)

    def _round_voided(self, event: Event, body: table.RoundVoided, changes: Changes) -> None:
        self._change_round(
            event,
            body.round_id,
            changes,
            close_time_us=self._betting_ended_us(event, body.round_id),
            state=partner_v1.ROUND_STATE_RETURNING,
            suspended=False,
            void_reason=body.reason,
        )
        self._seats_changed(event, body, changes)

    def _round_closed(self, event: Event, body: table.RoundClosed, changes: Changes) -> None:
        paid = body.end == table.ROUND_END_PAID
        state = partner_v1.ROUND_STATE_PAID if paid else partner_v1.ROUND_STATE_RETURNED
        self._change_round(event, body.round_id, changes, state=state)
        self._running.pop(body.round_id, None)

    # ---- bets ----------------------------------------------------------------------------------

    def _action_taken(self, event: Event, body: table.ActionTaken, changes: Changes) -> None:
        """A further stake is a bet like any other; it is on once it is reserved."""
        self._seats_changed(event, body, changes)
        if body.HasField("extra"):
            placed = table.BetsPlaced(
                request_id=body.request_id,
                account_id=body.account_id,
                table_id=body.table_id,
                round_id=body.round_id,
                currency_code=body.currency_code,
                bets=[body.extra],
            )
            self._bets_placed(event, placed, body.partner_id, changes)

    def _bets_placed(
        self, event: Event, body: table.BetsPlaced, partner: str, changes: Changes
    ) -> None:
        key = position_key(event.position)
        bets = changes[BETS]
        for number, bet in enumerate(body.bets):
            bets.save(
                (bet.bet_id,),
                {
                    "bet_id": bet.bet_id,
                    "partner": partner,
                    "account_id": body.account_id,
                    "table_id": body.table_id,
                    "round_id": body.round_id,
                    "request_id": body.request_id,
                    "bet": bet.bet,
                    "position": bet.position,
                    "announced": bet.announced,
                    "line": "",
                    "stake_minor": bet.stake_minor,
                    "currency_code": body.currency_code,
                    "state": partner_v1.BET_STATE_PENDING,
                    "outcome": settlement.OUTCOME_UNSPECIFIED,
                    "payout_minor": 0,
                    "commission_minor": 0,
                    "place_time_us": event.time_us,
                    "placed": key,
                    "number": number,
                    "changed": key,
                    "correction": None,
                },
            )

    def _path_failed(self, event: Event, body: InputFailed, changes: Changes) -> None:
        """A bet whose path failed is not on."""
        placing = _PLACING.get(body.input_type)
        if placing is not None:
            placed: Any = placing.FromString(body.input_body)  # either has bets
            for bet in placed.bets:
                self._bet_refused(event, bet.bet_id, changes)
        elif body.input_type == _ACTION:
            taken = table.ActionTaken.FromString(body.input_body)
            self._bet_refused(event, taken.extra.bet_id, changes)

    def _bets_refused(self, event: Event, body: limits.BetsRefused, changes: Changes) -> None:
        for bet_id in body.bet_ids:
            self._bet_refused(event, bet_id, changes)

    def _stake_declined(self, event: Event, body: wallet.StakeDeclined, changes: Changes) -> None:
        for bet in body.bets:
            self._bet_refused(event, bet.bet_id, changes)

    def _bet_refused(self, event: Event, bet_id: str, changes: Changes) -> None:
        changed = position_key(event.position)
        values = {"state": partner_v1.BET_STATE_REFUSED, "changed": changed}
        changes[BETS].update((bet_id,), values)

    def _stake_reserved(self, event: Event, body: wallet.StakeReserved, changes: Changes) -> None:
        changed, bets = position_key(event.position), changes[BETS]
        state = partner_v1.BET_STATE_ACCEPTED
        for bet in body.bets:
            bets.update((bet.bet_id,), {"state": state, "changed": changed})
        if is_further(body):
            self._seats_changed(event, body, changes)

    def _stake_returned(self, event: Event, body: wallet.StakeReturned, changes: Changes) -> None:
        changed, bets = position_key(event.position), changes[BETS]
        state = _RETURNED.get(body.reason, partner_v1.BET_STATE_WITHDRAWN)
        for bet in body.bets:
            bets.update(
                (bet.bet_id,),
                {"state": state, "payout_minor": bet.stake_minor, "changed": changed},
            )

    def _bets_settled(self, event: Event, body: settlement.BetsSettled, changes: Changes) -> None:
        changed, bets = position_key(event.position), changes[BETS]
        for bet in body.bets:
            bets.update(
                (bet.bet_id,),
                {
                    "state": partner_v1.BET_STATE_SETTLED,
                    "outcome": bet.outcome,
                    "payout_minor": bet.payout_minor,
                    "commission_minor": bet.commission_minor,
                    "line": bet.line,
                    "changed": changed,
                },
            )


def _corrected(event: Event, body: Any, changes: Changes) -> None:
    keep_correction(event, body, changes, CORRECTIONS, CORRECTED_ROUNDS, BETS)
