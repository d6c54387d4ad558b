"""What is asked of significant events: pages of them, read from the log where they stand; and the
order by which thresholds are set."""

from __future__ import annotations

from collections.abc import Callable

from google.protobuf.timestamp_pb2 import Timestamp

from sabot.audit.v1 import audit_service_pb2 as audits
from sabot.audit.v1 import significant_events_pb2 as significant
from sabot.log.v1 import events_pb2 as logs
from services.audit.significance import Place, SignificantIndex
from services.kernel.ask import append
from services.kernel.call import (
    PAGE_BYTES,
    Call,
    open_token,
    position_message,
    request_hash,
    seal_token,
)
from services.kernel.edge import Edge
from services.kernel.errors import PAGE_TOKEN_INVALID, Refused
from services.kernel.log import Log
from services.kernel.log_places import events_at
from services.refusals.audit import TOO_MANY_THRESHOLDS

PAGE = 100
"""Events of a page where the caller does not say."""
_ENDS = frozenset({significant.ThresholdsSet, logs.InputIgnored})


class SignificantEvents:
    """See the module. `log`, `edge`: of this process."""

    def __init__(self, index: SignificantIndex, log: Callable[[], Log], edge: Edge) -> None:
        self._index = index
        self._log = log
        self._edge = edge

    async def page(
        self, request: audits.ListSignificantEventsRequest
    ) -> audits.ListSignificantEventsResponse:
        """A page. Raises Refused, LogUnavailable."""
        asked = audits.ListSignificantEventsRequest()
        asked.CopyFrom(request)
        asked.ClearField("page_token")
        asked.ClearField("page_size")
        scope = ("ListSignificantEvents", request_hash(asked).hex())
        at = 0
        if request.page_token:
            (told,) = open_token(request.page_token, scope, 1)
            if not told.isdigit() or len(told) > 18 or int(told) > self._index.size:
                raise Refused(PAGE_TOKEN_INVALID)  # Of an index that was made anew since.
            at = int(told)
        wanted, more = self._wanted(request, at, request.page_size or PAGE)
        response = audits.ListSignificantEventsResponse()
        stored = await events_at(self._log(), [place.position for _, place in wanted])
        size = 0
        for after, place in wanted:
            one = stored.get(place.position)
            if one is not None:
                size += len(one.event.body)
                if size > PAGE_BYTES and response.events:
                    more = True
                    break
                response.events.append(
                    audits.SignificantEvent(
                        position=position_message(place.position),
                        log_time=_time(place.time_us),
                        significance=place.kind,
                        event_type=one.event.type,
                        body=one.event.body,
                        actor=one.event.actor,
                        partner_id=one.event.partner,
                    )
                )
            at = after
        if more:
            response.next_page_token = seal_token(scope, str(at))
        return response

    def _wanted(
        self, request: audits.ListSignificantEventsRequest, at: int, limit: int
    ) -> tuple[list[tuple[int, Place]], bool]:
        """The places of a page, and whether there are more."""
        start_us = request.start_time.ToMicroseconds() if request.HasField("start_time") else 0
        end_us = request.end_time.ToMicroseconds() if request.HasField("end_time") else None
        wanted: list[tuple[int, Place]] = []
        for after, place in self._index.places(at):
            if end_us is not None and place.time_us >= end_us:
                break
            if place.time_us < start_us or request.significance not in {0, place.kind}:
                continue
            if len(wanted) == limit:
                return wanted, True
            wanted.append((after, place))
        return wanted, False

    async def set_thresholds(
        self, request: audits.SetThresholdsRequest, call: Call
    ) -> audits.SetThresholdsResponse:
        """Have the log say it. Raises Refused, NotTaken, OutcomeUnknown."""
        body = significant.SetThresholds(thresholds=request.thresholds, reason=request.reason)
        told = await append(self._edge, "audit", body, call, until=_ENDS)
        if isinstance(told.event.body, logs.InputIgnored):
            raise Refused(TOO_MANY_THRESHOLDS)
        return audits.SetThresholdsResponse(position=position_message(told.event.position))

    async def ask_attestation(
        self, request: audits.AskAttestationRequest, call: Call
    ) -> audits.AskAttestationResponse:
        """Have the log ask every process. Raises NotTaken, OutcomeUnknown."""
        body = logs.AskAttestation(reason=request.reason)
        until = frozenset({logs.InputNoted})
        told = await append(self._edge, "audit", body, call, until=until)
        return audits.AskAttestationResponse(position=position_message(told.event.position))


def _time(time_us: int) -> Timestamp:
    told = Timestamp()
    told.FromMicroseconds(time_us)
    return told
