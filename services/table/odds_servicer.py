"""OddsService: what every bet returns at the live composition. Operators only (rule VIS-4)."""

from __future__ import annotations

import asyncio

from sabot.table.v1 import odds_service_pb2 as proto
from services.kernel.call import Call, position_message, rpc
from services.kernel.edge import Edge
from services.kernel.errors import Refused
from services.kernel.tokens import Role
from services.odds.compositions import CardImpossible, TooFewCards
from services.odds.outcomes import BetOdds, text_of
from services.refusals.table import NO_ODDS, SHOE_NOT_FOUND
from services.table.domain.state import TableState
from services.table.live_odds import left_at

_RISK = (Role.SUPERVISOR, Role.AUDITOR)
"""Who may know what helps to predict cards; no partner, and no dealer at a table."""


class OddsServicer:
    """Answers from the table core's state; what takes long is worked out beside the loop."""

    def __init__(self, edge: Edge) -> None:
        self._edge = edge

    @rpc(roles=_RISK)
    async def get_live_odds(
        self, request: proto.GetLiveOddsRequest, call: Call
    ) -> proto.GetLiveOddsResponse:
        """The odds of every bet at what is left of a shoe."""
        del call
        state: TableState = self._edge.state("table")
        shoe_id, position = request.shoe_id, self._edge.position
        table = next((one for one in state.tables.values() if one.shoe_id == shoe_id), None)
        if table is None:
            raise Refused(SHOE_NOT_FOUND, {"shoe_id": shoe_id})
        table_id = table.spec.table_id
        try:
            left = left_at(table)
            told = await asyncio.to_thread(left.odds)
        except (CardImpossible, TooFewCards) as error:
            raise Refused(NO_ODDS, {"shoe_id": shoe_id, "detail": str(error)}) from error
        return proto.GetLiveOddsResponse(
            shoe_id=shoe_id,
            table_id=table_id,
            rule_set_id=left.rule_set.rule_set_id,
            unseen_cards=left.unseen_cards,
            bets=map(_message, told),
            position=position_message(position),
        )


def _message(one: BetOdds) -> proto.BetOdds:
    return proto.BetOdds(
        bet=one.bet,
        outcomes=[
            proto.BetOutcome(
                name=outcome.name,
                pays=text_of(outcome.pays),
                probability=text_of(outcome.probability),
            )
            for outcome in one.outcomes
        ],
        rtp=text_of(one.rtp),
        edge=text_of(one.edge),
        positions=one.positions,
    )
