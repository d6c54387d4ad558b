"""What settlement's projection answers: `services.settlement.queries`, by SQL."""

from __future__ import annotations

from sqlalchemy import exists, select, tuple_

from sabot.settlement.v1.events_pb2 import BetsSettled, RoundSettled
from services.kernel.projection_reads import ProjectionReads
from services.settlement.projection import SETTLED_ROUNDS, SETTLEMENTS

MAX_PAGE = 500
"""Accounts of a page at most. Whoever puts them into one message minds its size: one may hold 500
bets of about 80 bytes."""


class SqlSettlementQueries(ProjectionReads):
    """Reads of the projection. Every method may raise ProjectionUnavailable."""

    async def settlement(
        self, round_id: str, partner: str | None, limit: int, after: tuple[str, str] | None
    ) -> list[BetsSettled] | None:
        """How accounts were settled in a round, by (partner, account), of one partner only where
        named, and only those after the pair `after`. None where no such round was settled."""
        row = SETTLEMENTS.c
        query = (
            select(row.partner, row.account_id, row.body)
            .where(row.round_id == round_id)
            .order_by(row.partner, row.account_id, row.position)
            .limit(min(limit, MAX_PAGE))
        )
        if partner is not None:
            query = query.where(row.partner == partner)
        if after is not None:
            query = query.where(tuple_(row.partner, row.account_id) > tuple_(*after))
        async with self._projector.connect() as connection:
            rows = (await connection.execute(query)).all()
            if not rows:
                known = select(
                    exists().where(SETTLED_ROUNDS.c.round_id == round_id)
                    | exists().where(row.round_id == round_id)
                )
                return [] if (await connection.execute(known)).scalar() else None
        return [BetsSettled.FromString(one.body) for one in rows]

    async def round_settled(self, round_id: str) -> RoundSettled | None:
        """The marker of a round that is settled whole, or None."""
        rows = await self._rows(select(SETTLED_ROUNDS).where(SETTLED_ROUNDS.c.round_id == round_id))
        if not rows:
            return None
        row = rows[0]
        return RoundSettled(
            table_id=row["table_id"],
            round_id=row["round_id"],
            accounts=row["accounts"],
            bets=row["bets"],
            rule_set_hash=row["rule_set_hash"],
        )
