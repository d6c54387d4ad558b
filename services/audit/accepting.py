"""A difference that a supervisor accepts on purpose: the log says so, and proofs count it apart."""

from __future__ import annotations

from collections.abc import Callable

from sabot.audit.v1 import audit_service_pb2 as audits
from sabot.log.v1 import events_pb2 as logs
from services.kernel.ask import append
from services.kernel.call import Call, position_message
from services.kernel.edge import Edge
from services.kernel.entry import position_of
from services.kernel.errors import POSITION_NOT_REACHED, Refused
from services.kernel.log import Log
from services.kernel.log_places import events_at
from services.kernel.reader import SEGMENT
from services.refusals.audit import ANSWER_NOT_FOUND

_ENDS = frozenset({logs.InputNoted})


class Accepting:
    """See the module. `head_of`: the chain hash at an entry that this process has read, empty at
    one that it has not; `log`, `edge`: of this process."""

    def __init__(self, head_of: Callable[[int], bytes], log: Callable[[], Log], edge: Edge) -> None:
        self._head_of = head_of
        self._log = log
        self._edge = edge

    async def accept(
        self, request: audits.AcceptDifferenceRequest, call: Call
    ) -> audits.AcceptDifferenceResponse:
        """Have the log say it. Whether the answer follows is not looked at: one that does is no
        difference, accepted or not. Raises Refused, LogUnavailable, NotTaken, OutcomeUnknown."""
        at = position_of(request.position)
        stored = (await events_at(self._log(), [at])).get(at) if at.segment == SEGMENT else None
        if stored is None or not stored.subject.endswith(".out"):
            raise Refused(ANSWER_NOT_FOUND, {"position": str(at)})
        head = self._head_of(at.sequence)
        if not head:
            # The log is ahead of this process; an acceptance without a head would match no answer.
            raise Refused(POSITION_NOT_REACHED, {"at_least": str(at)})
        body = logs.AcceptLog(
            sequence=at.sequence,
            head=head,
            reason=request.reason,
            difference=request.position,
        )
        told = await append(self._edge, "audit", body, call, until=_ENDS)
        return audits.AcceptDifferenceResponse(position=position_message(told.event.position))
