"""What settlement's projection answers: `services.settlement.queries`, by SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, exists, select, tuple_

from sabot.settlement.v1.correction_events_pb2 import BetsCorrected
from sabot.settlement.v1.events_pb2 import BetsSettled, RoundSettled
from sabot.table.v1.events_pb2 import RoundOpened, TableOpened
from services.kernel.databases import position_of_key
from services.kernel.event import Position
from services.kernel.projection_reads import ProjectionReads
from services.kernel.projections import ProjectionUnavailable
from services.settlement.projection import FACTS, RULES, SETTLED_ROUNDS, SETTLEMENTS
from services.settlement.queries import Fact

MAX_PAGE = 500
"""Accounts of a page at most. Whoever puts them into one message minds its size: one may hold 500
bets of about 80 bytes."""


FACTS_WAIT_S = 10.0
"""How long a projection that is behind is waited for."""
_BETS_CORRECTED = str(BetsCorrected.DESCRIPTOR.full_name)
_BETS_SETTLED = str(BetsSettled.DESCRIPTOR.full_name)
_ROUND_OPENED = str(RoundOpened.DESCRIPTOR.full_name)
_ROUND_SETTLED = str(RoundSettled.DESCRIPTOR.full_name)
_TABLE_OPENED = str(TableOpened.DESCRIPTOR.full_name)


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

    async def corrections(
        self, round_id: str, accounts: Sequence[tuple[str, str]]
    ) -> list[BetsCorrected]:
        """See `SettlementQueries.corrections`."""
        row = FACTS.c
        query = (
            select(row.body)
            .where(row.round_id == round_id, row.type == _BETS_CORRECTED)
            .where(tuple_(row.partner, row.account_id).in_(accounts))
            .order_by(row.position)
        )
        return [BetsCorrected.FromString(one["body"]) for one in await self._rows(query)]

    async def facts(self, round_id: str) -> list[Fact]:
        """See `SettlementQueries.facts`."""
        told = FACTS.c
        query = select(told.position, told.type, told.body).where(told.round_id == round_id)
        found = [Fact(position_of_key(one[0]), one[1], one[2]) for one in await self._pairs(query)]
        opened = next((one for one in found if one.type == _ROUND_OPENED), None)
        if opened is None or not any(one.type == _ROUND_SETTLED for one in found):
            return []
        paid = SETTLEMENTS.c
        settled = select(paid.position, paid.body).where(paid.round_id == round_id)
        found += [
            Fact(position_of_key(one[0]), _BETS_SETTLED, one[1])
            for one in await self._pairs(settled)
        ]
        body = RoundOpened.FromString(opened.body)
        rules = RULES.c
        governing = select(rules.position, rules.body).where(
            rules.table_id == body.table_id, rules.revision == body.revision
        )
        found += [
            Fact(position_of_key(one[0]), _TABLE_OPENED, one[1])
            for one in await self._pairs(governing)
        ]
        return sorted(found)

    async def facts_at(self, round_id: str, position: Position) -> list[Fact]:
        """The same, once the projection has read up to a position."""
        if not await self.reached(position, FACTS_WAIT_S):
            raise ProjectionUnavailable(f"projection settlement has not read up to {position}")
        return await self.facts(round_id)

    async def _pairs(self, query: Select[Any]) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in await self._rows(query)]
