"""What may be asked of corrections: the table's projection, by SQL."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import RowMapping, select

from sabot.partner.v1.partner_service_pb2 import RoundCorrection
from sabot.settlement.v1.correction_events_pb2 import CorrectionFault
from sabot.table.v1.correction_events_pb2 import CorrectionProposed
from sabot.table.v1.correction_service_pb2 import Correction
from services.kernel.projection_reads import ProjectionReads
from services.table.projection import CORRECTED_ROUNDS, CORRECTIONS

MAX_PAGE = 500
"""Corrections of a page at most: each about half a KiB."""


class CorrectionQueries(ProjectionReads):
    """Reads of the projection. Every method may raise ProjectionUnavailable."""

    async def correction(self, correction_id: str) -> Correction | None:
        """A correction as it stands, or None."""
        row = CORRECTIONS.c.correction_id
        rows = await self._rows(select(CORRECTIONS).where(row == correction_id))
        return _correction(rows[0]) if rows else None

    async def corrections(
        self, round_id: str, limit: int, before: int | None
    ) -> list[tuple[int, Correction]]:
        """Corrections with the key that each is paged by, newest first: of one round where named,
        and only those older than `before`."""
        row = CORRECTIONS.c
        query = select(CORRECTIONS).order_by(row.proposed.desc()).limit(min(limit, MAX_PAGE))
        if round_id:
            query = query.where(row.round_id == round_id)
        if before is not None:
            query = query.where(row.proposed < before)
        return [(one["proposed"], _correction(one)) for one in await self._rows(query)]


class CorrectedRounds(ProjectionReads):
    """What rounds have come to by corrections."""

    async def corrected(self, round_ids: Iterable[str]) -> dict[str, RoundCorrection]:
        """By round; those that were never corrected are left out."""
        row = CORRECTED_ROUNDS.c
        query = select(row.round_id, row.body).where(row.round_id.in_(list(round_ids)))
        return {
            one["round_id"]: RoundCorrection.FromString(one["body"])
            for one in await self._rows(query)
        }


def _correction(row: RowMapping) -> Correction:
    proposed = CorrectionProposed.FromString(row["body"])
    found = Correction(
        correction_id=proposed.correction_id,
        table_id=proposed.table_id,
        round_id=proposed.round_id,
        outcome=proposed.outcome,
        reason=proposed.reason,
        reference=proposed.reference,
        state=row["state"],
        version=proposed.version,
        proposed_by=row["proposed_by"],
        approved_by=row["approved_by"],
        accounts=row["accounts"],
    )
    if row["fault"]:
        found.fault = CorrectionFault.Name(row["fault"])
    found.propose_time.FromMicroseconds(row["propose_time_us"])
    return found
