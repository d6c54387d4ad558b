"""What the table's projection answers: `services.table.queries`, by SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from sqlalchemy import RowMapping, select, tuple_

from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1.entry_pb2 import Position as PositionProto
from sabot.log.v1.events_pb2 import InputFailed
from sabot.money.v1.money_pb2 import Money
from sabot.partner.v1.partner_service_pb2 import (
    BET_STATE_LATE,
    BET_STATE_SETTLED,
    BET_STATE_VOIDED,
    BET_STATE_WITHDRAWN,
    PlacedBet,
    RequestOutcome,
    Round,
    RoundCorrection,
)
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.kernel.databases import position_key, position_of_key
from services.kernel.event import Position
from services.kernel.request_rows import oneof_fields
from services.table.correction_queries import CorrectedRounds
from services.table.projection import BETS, REQUESTS, ROUNDS
from services.table.roads import mark_road
from services.table.round_view import laid_out

MAX_PAGE = 1_000
"""Rows of a page at most, whatever is asked for: some hundred KiB, far below gRPC's 4 MiB."""

_PAID_BACK = (BET_STATE_SETTLED, BET_STATE_VOIDED, BET_STATE_WITHDRAWN, BET_STATE_LATE)
_OUTCOMES = oneof_fields(RequestOutcome, "outcome")
_FAILED = str(InputFailed.DESCRIPTOR.full_name)
_STAKING = {str(body.DESCRIPTOR.full_name) for body in (table.PlaceBets, table.Act)}
_FAILING: dict[str, type[Message]] = {
    str(body.DESCRIPTOR.full_name): body
    for body in (
        table.PlaceBets,
        table.BetsPlaced,
        limits.BetsApproved,
        table.Act,
        table.ActionTaken,
        table.WithdrawBets,
        table.BetsWithdrawn,
        limits.WithdrawalApproved,
        wallet.OpenAccount,
        wallet.CloseAccount,
        wallet.BlockAccount,
        wallet.UnblockAccount,
        wallet.Deposit,
        wallet.Withdraw,
        wallet.DepositRequested,
        limits.DepositApproved,
        limits.DepositRefused,
    )
}


class BadPageKey(ValueError):
    """A page key that no page ended with."""


class SqlTableQueries(CorrectedRounds):
    """Reads of the projection. Every method may raise ProjectionUnavailable."""

    async def round(self, round_id: str) -> Round | None:
        """A round as everyone may see it, or None."""
        rows = await self._rows(select(ROUNDS).where(ROUNDS.c.round_id == round_id))
        return (await self._shown(rows))[0] if rows else None

    async def rounds_of_shoe(self, shoe_id: str) -> list[Round]:
        """Every round that was dealt from a shoe, or is being, in order; none: no such shoe."""
        query = select(ROUNDS).where(ROUNDS.c.shoe_id == shoe_id).order_by(ROUNDS.c.opened)
        return await self._shown(await self._rows(query.limit(MAX_PAGE)))

    async def _shown(self, rows: Sequence[RowMapping]) -> list[Round]:
        """Rounds with what they have come to by corrections."""
        if not rows:
            return []
        corrected = await self.corrected([row["round_id"] for row in rows])
        return [_round(row, corrected.get(row["round_id"])) for row in rows]

    async def rounds(
        self, limit: int, before: str | None = None, table_id: str | None = None
    ) -> list[tuple[str, Round]]:
        """Rounds with the key that each is paged by, newest first; only those older than the key
        `before` where given. Raises BadPageKey."""
        query = select(ROUNDS).order_by(ROUNDS.c.opened.desc()).limit(min(limit, MAX_PAGE))
        if table_id is not None:
            query = query.where(ROUNDS.c.table_id == table_id)
        if before is not None:
            query = query.where(ROUNDS.c.opened < _numbers(before, 1)[0])
        rows = await self._rows(query)
        shown = await self._shown(rows)
        return [(str(row["opened"]), one) for row, one in zip(rows, shown, strict=True)]

    async def bets(
        self,
        partner: str | None,
        account: str | None,
        round_id: str | None,
        limit: int,
        before_key: str | None,
    ) -> list[tuple[str, PlacedBet]]:
        """Bets with the key that each is paged by, newest first: of one partner (None: of all), of
        one account and of one round where named; only those older than `before_key` where given.
        Raises BadPageKey."""
        bet = BETS.c
        query = select(BETS).order_by(bet.placed.desc(), bet.number.desc())
        if partner is not None:
            query = query.where(bet.partner == partner)
        if account is not None:
            query = query.where(bet.account_id == account)
        if round_id is not None:
            query = query.where(bet.round_id == round_id)
        if before_key is not None:
            placed, number = _numbers(before_key, 2)
            query = query.where(tuple_(bet.placed, bet.number) < tuple_(placed, number))
        rows = await self._rows(query.limit(min(limit, MAX_PAGE)))
        return [(f"{row['placed']}.{row['number']}", _bet(row)) for row in rows]

    async def bets_after(
        self, partner: str, position: Position, limit: int
    ) -> tuple[list[PlacedBet], Position]:
        """A partner's bets whose present standing was logged after `position`, by that position.

        About `limit` of them, yet never only some of those that one event changed. Also: up to
        where this tells all: the last bet's position where more remain, else how far the projection
        is.
        """
        upto = max(self.position, position)
        bet = BETS.c
        ordered = (
            select(BETS).where(bet.partner == partner).order_by(bet.changed, bet.placed, bet.number)
        )
        # A bet that changes again meanwhile is left to the next page.
        between = ordered.where(
            bet.changed > position_key(position), bet.changed <= position_key(upto)
        )
        rows = await self._rows(between.limit(min(limit, MAX_PAGE)))
        if len(rows) < min(limit, MAX_PAGE):
            return [_bet(row) for row in rows], upto
        last: int = rows[-1]["changed"]
        whole = [row for row in rows if row["changed"] != last]
        whole += await self._rows(ordered.where(bet.changed == last))
        return [_bet(row) for row in whole], position_of_key(last)

    async def request(
        self, scope: str, round_id: str, request_id: str
    ) -> tuple[Position, RequestOutcome] | None:
        """Where a request stands in the log and what became of it; None where there is none.

        `scope`: who asked, as in the event's `actor` (`partner:<id>` or `operator:<id>`).
        `round_id`: of bets and withdrawals of bets; empty for every other request, the wallet's
        ones included.
        """
        rows = await self._rows(REQUESTS.by_id(scope, round_id, request_id))
        return (position_of_key(rows[0]["position"]), _outcome(rows[0])) if rows else None

    async def outcome_at(self, position: Position) -> RequestOutcome | None:
        """What became of the input at this position: `pending` while nothing has; None where no
        request of a partner or operator stands there."""
        rows = await self._rows(REQUESTS.by_position(position))
        return _outcome(rows[0]) if rows else None


def _numbers(key: str, count: int) -> list[int]:
    """The numbers of a page key. Raises BadPageKey."""
    parts = key.split(".")
    digits = all(part.isascii() and part.isdecimal() and len(part) < 20 for part in parts)
    if len(parts) != count or not digits or any(int(part) >= 1 << 63 for part in parts):
        raise BadPageKey(key)
    return [int(part) for part in parts]


def _time(time_us: int) -> Timestamp:
    return Timestamp(seconds=time_us // 1_000_000, nanos=time_us % 1_000_000 * 1_000)


def _round(row: RowMapping, correction: RoundCorrection | None) -> Round:
    found = Round(
        round_id=row["round_id"],
        table_id=row["table_id"],
        number=row["number"],
        shoe_id=row["shoe_id"],
        round_in_shoe=row["round_in_shoe"],
        state=row["state"],
        suspended=row["suspended"],
        open_time=_time(row["open_time_us"]),
        void_reason=row["void_reason"],
    )
    if row["close_time_us"] is not None:
        found.close_time.CopyFrom(_time(row["close_time_us"]))
    outcomes = Round.FromString(row["cards"])
    found.cards.extend(laid_out(row["cards"]))
    found.tosses.extend(outcomes.tosses)
    found.corrected = outcomes.corrected
    found.MergeFromString(row["seats"] or b"")
    if correction is not None:
        found.correction.CopyFrom(correction)
    if row["result"] is not None:
        found.result.MergeFromString(row["result"])
        mark_road(found, row["ace"])
    return found


def _bet(row: RowMapping) -> PlacedBet:
    segment, sequence, index = position_of_key(row["changed"])
    currency_code = row["currency_code"]
    found = PlacedBet(
        bet_id=row["bet_id"],
        account_id=row["account_id"],
        table_id=row["table_id"],
        round_id=row["round_id"],
        request_id=row["request_id"],
        bet=row["bet"],
        place=row["position"],
        announced=row["announced"],
        line=row["line"],
        stake=Money(currency_code=currency_code, minor_units=row["stake_minor"]),
        state=row["state"],
        outcome=row["outcome"],
        place_time=_time(row["place_time_us"]),
        position=PositionProto(segment=segment, sequence=sequence, index=index),
    )
    if row["state"] in _PAID_BACK:
        found.payout.currency_code = currency_code
        found.payout.minor_units = row["payout_minor"]
    if row["state"] == BET_STATE_SETTLED:
        found.commission.currency_code = currency_code
        found.commission.minor_units = row["commission_minor"]
    if row["correction"] is not None:
        found.correction.MergeFromString(row["correction"])
    return found


def _outcome(row: RowMapping) -> RequestOutcome:
    name = row["outcome_type"]
    if name is None:
        return RequestOutcome(pending=True)
    if name == _FAILED:
        return _failed(row, InputFailed.FromString(row["outcome_body"]))
    outcome = RequestOutcome()
    field = _OUTCOMES.get(name)
    if field is not None:
        message = getattr(outcome, field)
        message.MergeFromString(row["outcome_body"])
        message.SetInParent()
    return outcome


def _failed(row: RowMapping, failed: InputFailed) -> RequestOutcome:
    """A request whose decision failed, wherever on its path, is refused."""
    failing = _FAILING.get(failed.input_type)
    if failing is None:
        return RequestOutcome()  # an operator's order at a table: nothing is set
    body: Any = failing.FromString(failed.input_body)  # one of the types above
    if not row["scope"]:
        return RequestOutcome(
            account_declined=wallet.AccountRequestDeclined(
                request_id=row["request_id"],
                account_id=body.account_id,
                decline=wallet.DECLINE_FAILED,
            )
        )
    if isinstance(body, table.Act):
        rejected = table.ActionRejected(
            request_id=body.request_id,
            account_id=body.account_id,
            table_id=body.table_id,
            round_id=body.round_id,
            seat=body.seat,
            turn=body.turn,
            refusal=table.REFUSAL_FAILED,
        )
        return RequestOutcome(action_rejected=rejected)
    refused: dict[str, Any] = {
        "request_id": row["request_id"],
        "account_id": body.account_id,
        "table_id": body.table_id,
        "round_id": body.round_id,
        "bet_ids": _bet_ids(body),
        "violations": [limits.Violation(limit=limits.LIMIT_FAILED)],
    }
    if row["input_type"] in _STAKING:
        return RequestOutcome(refused=limits.BetsRefused(**refused))
    return RequestOutcome(withdrawal_refused=limits.WithdrawalRefused(**refused))


def _bet_ids(body: Any) -> list[str]:
    if isinstance(body, table.WithdrawBets):
        return list(body.bet_ids)
    if isinstance(body, table.ActionTaken):
        return [body.extra.bet_id]
    return [bet.bet_id for bet in body.bets if bet.bet_id]
