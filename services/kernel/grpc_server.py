"""The gRPC server of every service.

A servicer's methods are wrapped once, when they are added: authentication, deadline, checks of the
request, trace, metrics and errors are one function around each method, which costs the hot path a
third of what a chain of interceptors does. The bytes of requests are read in here too, so that a
malformed one is answered from the catalogue like everything else.
"""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast

import grpc
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health, health_pb2_grpc
from grpc_reflection.v1alpha import reflection
from opentelemetry.sdk.trace import Span
from opentelemetry.trace import SpanKind, Status, StatusCode

from services.kernel import errors, telemetry
from services.kernel.call import Access, Call
from services.kernel.checks import checker
from services.kernel.edge import EdgeBusy, LogIsFull, NotTaken, OutcomeUnknown
from services.kernel.grpc_accept import Accepting
from services.kernel.health_calls import Health
from services.kernel.health_port import HealthPort
from services.kernel.log import LogUnavailable
from services.kernel.notices import Notices
from services.kernel.projections import ProjectionUnavailable
from services.kernel.telemetry_names import (
    ATTRIBUTE_STATUS,
    RPC_BROKE,
    RPC_REFUSALS,
    RPC_SECONDS,
    RPCS,
    RPCS_RUNNING,
    SERVER_DRAINING,
    SERVER_NOT_READY,
    SERVER_READY,
    SERVER_STARTED,
    SERVER_STOPPED,
)
from services.kernel.tokens import Caller

MAX_REQUEST_BYTES = 1024 * 1024
"""Far above the largest request that the protos allow; larger ones get RESOURCE_EXHAUSTED."""
MAX_RESPONSE_BYTES = 4 * 1024 * 1024
"""What clients take by default. Pages end well below (`call.PAGE_BYTES`)."""
MAX_RUNNING = 4096
"""Calls and streams at once; more are answered RESOURCE_EXHAUSTED at once instead of piling up."""
MAX_STREAMS_A_CONNECTION = 1024
"""Calls at once on one connection: four busy partner servers fill a server, no single one does."""
MIN_PING_S = 10
"""Clients may ping this often, calls or not; grpc's default answers pings under 5 min by GOAWAY."""
CONNECTION_AGE_S = 1800
"""Connections end after this, so that clients spread over new servers; streams resume by token."""
CONNECTION_AGE_GRACE_S = 60
"""Then calls that still run have so long."""
WHOSE = frozenset({"account_id", "partner_id"})
"""Fields of a request that say whose data it asks for."""
MAX_METADATA_BYTES = 16 * 1024
"""Of a request's metadata: tokens and trace context are a few hundred bytes."""

OPTIONS: Sequence[tuple[str, int]] = (
    ("grpc.so_reuseport", 0),  # a second server on one port is a mistake, not a share
    ("grpc.max_receive_message_length", MAX_REQUEST_BYTES),
    ("grpc.max_send_message_length", MAX_RESPONSE_BYTES),
    ("grpc.max_concurrent_streams", MAX_STREAMS_A_CONNECTION),
    ("grpc.max_metadata_size", MAX_METADATA_BYTES),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", MIN_PING_S * 1000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.max_connection_age_ms", CONNECTION_AGE_S * 1000),
    ("grpc.max_connection_age_grace_ms", CONNECTION_AGE_GRACE_S * 1000),
)

_Context = grpc.aio.ServicerContext[Any, Any]
_Unary = Callable[[Message, Call], Awaitable[Message]]
_Stream = Callable[[Message, Call], AsyncIterator[Message]]


class CallerSource(Protocol):
    """Knows callers by their tokens, as `services.kernel.tokens.Tokens` does."""

    def caller(self, token: str) -> Caller | None:
        """Whose token it is, or None."""
        ...


@dataclass(frozen=True, slots=True)
class Watch:
    """What a server is measured and traced by."""

    metrics: telemetry.Metrics = field(default_factory=telemetry.Metrics)
    tracing: telemetry.Tracing = field(
        default_factory=lambda: telemetry.Tracing(service="untraced")
    )
    notices: Notices | None = None
    """Counts refused tokens, and reads of others' data."""


class Server:
    """One gRPC server: add servicers, then `start`, `set_ready`, and at the end `stop`."""

    def __init__(
        self,
        tokens: CallerSource,
        *,
        watch: Watch | None = None,
        options: Sequence[tuple[str, int]] = OPTIONS,
        max_running: int = MAX_RUNNING,
        probed: HealthPort | None = None,
    ) -> None:
        """`probed`: says on a port of its own whether calls are taken here."""
        self._probed = probed
        self._tokens = tokens
        self._watch = watch or Watch()
        self._log = telemetry.logger()
        self._methods: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}
        self._names: list[str] = []
        self._drains: list[Callable[[], None]] = []
        self._health = Health()
        self._ready: bool | None = None
        self._server = grpc.aio.server(options=options, maximum_concurrent_rpcs=max_running)
        self._server.add_generic_rpc_handlers((_Handlers(self._methods),))
        self._accepting = Accepting(self._server, max_running)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)

    @property
    def notices(self) -> Notices | None:
        """What counts what is noticed of its calls."""
        return self._watch.notices

    def add(self, service: ServiceDescriptor, servicer: object) -> None:
        """Serve a proto's service by a servicer.

        A method that is missing, or does not say who may call it, is a bug and raises TypeError.
        A servicer's `drain`, if it has one, is called when the server stops: it ends streams that
        would otherwise last until they are cut.
        """
        self._names.append(service.full_name)
        drain = getattr(servicer, "drain", None)
        if drain is not None:
            self._drains.append(drain)
        for method in service.methods:
            name = method_name(method.name)
            served = getattr(servicer, name, None)
            access = getattr(served, "__sabot_access__", None)
            if served is None or not isinstance(access, Access):
                raise TypeError(f"{type(servicer).__name__}.{name} is missing, or not marked @rpc")
            if method.client_streaming:
                raise TypeError(f"{method.full_name}: streams of requests are not served")
            wrapped = _Method(method, served, access, self._tokens, self._watch)
            self._methods[wrapped.path] = wrapped.handler()
            if access.busy:
                self._accepting.register(wrapped.path, self._methods[wrapped.path])

    def listen(self, address: str, credentials: grpc.ServerCredentials | None = None) -> int:
        """Take `host:port` (port 0: any free one); the port. RuntimeError where it is taken."""
        if credentials is None:
            return self._server.add_insecure_port(address)
        return self._server.add_secure_port(address, credentials)

    async def start(self) -> None:
        """Serve. Health says NOT_SERVING until `set_ready(True)`."""
        reflected = (*self._names, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(reflected, self._server)
        self.set_ready(False)
        await self._server.start()
        self._accepting.start()
        self._log.info(SERVER_STARTED, services=self._names)

    def set_ready(self, ready: bool) -> None:
        """What health says of every service here."""
        if ready is self._ready:
            return
        if self._ready is not None:
            self._log.info(SERVER_READY if ready else SERVER_NOT_READY)
        self._ready = ready
        for name in ("", *self._names):
            self._health.set(name, ready)
        if self._probed is not None:
            self._probed.set_ready(ready)

    def set_part(self, name: str, well: bool) -> None:
        """What health says of a part of this process that serves no calls, such as `custodian`."""
        self._health.set(name, well)

    async def stop(self, drain_s: float) -> None:
        """Say NOT_SERVING, take no new calls, let running ones finish for `drain_s` seconds."""
        self._log.info(SERVER_DRAINING, drain_s=drain_s)
        self._health.end()
        for drain in self._drains:
            drain()
        self._accepting.stop()
        await self._server.stop(drain_s)
        self._log.info(SERVER_STOPPED)


def tls_credentials(certificate: Path, key: Path) -> grpc.ServerCredentials:
    """A server's TLS from PEM files."""
    return grpc.ssl_server_credentials([(key.read_bytes(), certificate.read_bytes())])


def method_name(name: str) -> str:
    """`PlaceBets` → `place_bets`: what a servicer calls a proto's method."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class _Handlers(grpc.GenericRpcHandler):
    """Finds a method's handler by its path."""

    def __init__(self, methods: Mapping[str, grpc.RpcMethodHandler[Any, Any]]) -> None:
        self._methods = methods

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        return self._methods.get(handler_call_details.method)


class _Method:
    """One method with everything that is the same for all around it."""

    def __init__(
        self,
        method: MethodDescriptor,
        served: Any,  # Any: `_Unary` or `_Stream`, by the proto
        access: Access,
        tokens: CallerSource,
        watch: Watch,
    ) -> None:
        self.name = f"{method.containing_service.full_name}/{method.name}"
        self.path = "/" + self.name
        self._served = served
        self._streams = method.server_streaming
        self._access = access
        self._allowed = _allowed(access)
        self._check = checker(GetMessageClass(method.input_type))
        self._tokens = tokens
        self._tracing = watch.tracing
        self._notices = watch.notices
        self._reads_others = _reads_others(method)
        self._log = telemetry.logger()
        metrics = watch.metrics
        self._seconds = metrics.histogram(RPC_SECONDS).labels(self.name)
        self._running = metrics.gauge(RPCS_RUNNING).labels(self.name)
        self._refusals = metrics.counter(RPC_REFUSALS)
        answered = metrics.counter(RPCS)
        self._answered = {code: answered.labels(self.name, code.name) for code in grpc.StatusCode}

    def handler(self) -> grpc.RpcMethodHandler[Any, Any]:
        """For grpc: bytes in, bytes out."""
        if self._streams:
            return grpc.unary_stream_rpc_method_handler(self._serve_stream)
        return grpc.unary_unary_rpc_method_handler(self._serve_unary)

    async def _serve_unary(self, raw: bytes, context: _Context) -> bytes:
        began = time.perf_counter()
        self._running.inc()
        code = grpc.StatusCode.CANCELLED
        span: Span | None = None
        language = "en"
        try:
            call = self._admit(context)
            language = call.language
            request = self._check(raw)
            span = self._tracing.start(self.name, call.traceparent, kind=SpanKind.SERVER, root=True)
            if span is not None:
                call = _traced(call, span)
            answer: bytes = (await self._served(request, call)).SerializeToString()
            code = grpc.StatusCode.OK
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - everything that is not caught would reach the client as text
            code = self._refuse(context, error, language)
            answer = b""
        finally:
            self._running.dec()
            self._finish(began, code, span)
        if code is not grpc.StatusCode.OK:
            # An answer, even an empty one, would go before the status, and no client's own retry
            # policy takes a call for undone that was answered.
            await context.abort(code, context.details(), context.trailing_metadata())
        return answer

    async def _serve_stream(self, raw: bytes, context: _Context) -> AsyncIterator[bytes]:
        began = time.perf_counter()
        self._running.inc()
        code = grpc.StatusCode.CANCELLED
        span: Span | None = None
        language = "en"
        try:
            call = self._admit(context)
            language = call.language
            request = self._check(raw)
            span = self._tracing.start(self.name, call.traceparent, kind=SpanKind.SERVER, root=True)
            if span is not None:
                call = _traced(call, span)
            async for message in self._served(request, call):
                self._check_still_known(call)
                yield message.SerializeToString()
            code = grpc.StatusCode.OK
        except (asyncio.CancelledError, GeneratorExit):
            raise
        except Exception as error:  # noqa: BLE001 - as above
            code = self._refuse(context, error, language)
        finally:
            self._running.dec()
            self._finish(began, code, span)

    def _admit(self, context: _Context) -> Call:
        """Who calls, and whether they may. Raises Refused."""
        authorization = traceparent = language = ""
        for key, value in context.invocation_metadata() or ():
            if key == "authorization":
                authorization = str(value)
            elif key == "traceparent":
                traceparent = str(value)
            elif key == "accept-language":
                language = str(value)
        if authorization[:7].lower() != "bearer " or len(authorization) == 7:
            raise errors.Refused(errors.TOKEN_MISSING)
        caller = self._tokens.caller(authorization[7:])
        if caller is None:
            if self._notices is not None:
                self._notices.refused(self.name)
            raise errors.Refused(errors.TOKEN_UNKNOWN)
        access = self._access
        if not access.partners if caller.partner else access.roles.isdisjoint(caller.roles):
            raise errors.Refused(
                errors.PERMISSION_DENIED, {"method": self.name, "allowed": self._allowed}
            )
        if self._notices is not None and self._reads_others and caller.operator:
            self._notices.read(caller.actor, self.name)
        left_s = cast("float | None", context.time_remaining())  # the stubs forget None
        if left_s is None and access.deadline:
            raise errors.Refused(errors.DEADLINE_REQUIRED, {"method": self.name})
        return Call(
            caller,
            self.name,
            "fr" if language[:2].lower() == "fr" else "en",
            None if left_s is None else time.monotonic() + left_s,
            telemetry.sampled(traceparent) if traceparent else "",
            authorization,
        )

    def _check_still_known(self, call: Call) -> None:
        """A stream ends with its token. Raises Refused."""
        if self._tokens.caller(call.authorization[7:]) is None:
            raise errors.Refused(errors.TOKEN_UNKNOWN)

    def _refuse(self, context: _Context, error: Exception, language: str) -> grpc.StatusCode:
        """Answer an error from the catalogue."""
        if isinstance(error, errors.PassedOn):
            _answer(context, error.code, error.message, error.details)
            return error.code
        refused = refusal_of(error)
        if refused is None:
            incident = uuid.uuid4().hex
            self._log.error(RPC_BROKE, method=self.name, incident=incident, exc_info=error)
            refused = errors.Refused(errors.INTERNAL, {"incident": incident})
        self._refusals.labels(refused.reason.name).inc()
        status = errors.status_of(refused, language)
        _answer(context, refused.reason.code, status.message, status.SerializeToString())
        return refused.reason.code

    def _finish(self, began: float, code: grpc.StatusCode, span: Span | None) -> None:
        self._answered[code].inc()
        seconds = time.perf_counter() - began
        if span is None:
            self._seconds.observe(seconds)
            return
        self._seconds.observe(seconds, {"trace_id": f"{span.get_span_context().trace_id:032x}"})
        span.set_attribute(ATTRIBUTE_STATUS, errors.number_of(code))
        if code is not grpc.StatusCode.OK:
            span.set_status(Status(StatusCode.ERROR, code.name))
        span.end()


def refusal_of(error: Exception) -> errors.Refused | None:
    """What a caller is told of an error that has a meaning; None for a bug."""
    match error:
        case errors.Refused():
            return error
        case EdgeBusy():
            return errors.Refused(errors.BUSY)
        case LogIsFull():
            return errors.Refused(errors.LOG_FULL)
        case NotTaken():
            return errors.Refused(errors.NOT_READY)
        case OutcomeUnknown():
            return errors.Refused(errors.OUTCOME_UNKNOWN)
        case ProjectionUnavailable() | LogUnavailable():
            return errors.Refused(errors.READ_UNAVAILABLE)
        case _:
            return None


def _answer(context: _Context, code: grpc.StatusCode, message: str, details: bytes | None) -> None:
    context.set_code(code)
    context.set_details(message)
    if details is not None:
        context.set_trailing_metadata((("grpc-status-details-bin", details),))


def _allowed(access: Access) -> str:
    who = ["partners"] if access.partners else []
    who += [f"operators with role {role.value}" for role in sorted(access.roles, key=str)]
    return ", ".join(who) or "nobody"


def _reads_others(method: MethodDescriptor) -> bool:
    """Whether it shows what belongs to a partner or its accounts."""
    reads = method.name.startswith(("Get", "List", "Watch", "Preview"))
    return reads and not WHOSE.isdisjoint(method.input_type.fields_by_name)


def _traced(call: Call, span: Span) -> Call:
    return Call(
        call.caller,
        call.method,
        call.language,
        call.deadline,
        telemetry.traceparent_of(span),
        call.authorization,
    )
