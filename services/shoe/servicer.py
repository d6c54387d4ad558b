"""ShoeService: the shoes in use, as much of them as may be known (rule VIS-3)."""

from __future__ import annotations

import hashlib

from sabot.shoe.v1 import events_pb2 as events
from sabot.shoe.v1 import shoe_service_pb2 as shoes
from services.kernel.call import EVERY_ROLE_AND_DEVICES, Call, position_message, rpc
from services.kernel.edge import Edge
from services.kernel.errors import Refused
from services.refusals.table import SHOE_NOT_FOUND
from services.shoe.domain.state import ShoeState


class ShoeServicer:
    """Answers from the core's state: a shoe is known from its seal until it has been laid open."""

    def __init__(self, edge: Edge) -> None:
        self._edge = edge

    @rpc(partners=True, roles=EVERY_ROLE_AND_DEVICES)
    async def get_shoe(self, request: shoes.GetShoeRequest, call: Call) -> shoes.GetShoeResponse:
        """A shoe's commitments, and the cards that lay open so far with what proves them."""
        del call
        state: ShoeState = self._edge.state("shoe")
        shoe = state.shoes.get(request.shoe_id)
        if shoe is None:
            raise Refused(SHOE_NOT_FOUND, {"shoe_id": request.shoe_id})
        opened = [
            events.Card(index=index, card=card.card, salt=card.salt)
            for index, card in sorted(shoe.opened.items())
            if card.shown
        ]
        return shoes.GetShoeResponse(
            shoe_id=shoe.shoe_id,
            table_id=shoe.table_id,
            cards=shoe.cards,
            gone=shoe.gone,
            cut_at=shoe.cut_at,
            root=hashlib.sha256(shoe.commitments).digest() if shoe.commitments else b"",
            commitments=shoe.commitments,
            opened=opened,
            position=position_message(self._edge.position),
        )
