"""What a process writes: answers of its replicas behind the fence, inputs of its edges by their
count. One append at a time on each subject, and the same bytes until it is known what stands there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from google.protobuf.message import Message

from sabot.log.v1 import entry_pb2
from services.kernel.edge import EdgeNotReady, LogIsFull
from services.kernel.entry import encode_body
from services.kernel.input_writer import InputAppend, InputWriter
from services.kernel.log import AppendRefused, AppendUnknown, FenceLost, Log, LogFull
from services.kernel.outcomes import Alarm, Submitted
from services.kernel.reader import ReadEntry
from services.kernel.recovery import AnyReplica
from services.kernel.replica import Append
from services.kernel.tasks import Tasks
from services.kernel.telemetry_names import AlarmKind

APPEND_WAIT_S = 2.0
"""How long one sending of an append waits for its acknowledgement before it is sent again."""
RESEND_PAUSE_S = 0.05
"""Between two sendings of the same append, so that a server that is down is not flooded."""
SILENT_S = 20.0
"""An append without an answer for so long is an alarm, and again after as long: more than the
election of a new leader takes. From then until there is an answer no calls are taken."""
FULL_S = 5.0
"""A log that refused inputs for want of room is taken to be full for so long, unless something is
stored: then the next call finds out."""
REFUSED_PAUSE_S = 0.5
"""Before answers are offered again to a log that refused them (full)."""
INPUT, ANSWER = "input", "answer"
"""Of an append, as metrics name it."""
InFront = tuple[Callable[[], Message | None], str]
"""What goes in front of an input, if anything does then, and who gives it."""
LOG_IS_FULL = "the log is full"
GATHER_SHARE = 4
"""An append starts at once when it carries this part of what callers wait for: a bet takes four
appends one after another, so that is what one of them can meet."""
GATHER_S = 0.006
"""Else it waits so long for more. Measured with 128 callers: the waiting costs less than the small
entries did, and bets are confirmed sooner for it."""


class Appending:
    """See the module. `callers`: how many callers wait in this process. `advice`: what an operator
    does about a log that takes nothing."""

    def __init__(
        self,
        *,
        log: Log,
        writer: str,
        build: str,
        clock: Callable[[], int],
        alarm: Alarm,
        tasks: Tasks,
        callers: Callable[[], int],
        advice: str = "",
    ) -> None:
        self._log = log
        self._writer = writer
        self._build = build
        self._clock = clock
        self._alarm = alarm
        self._tasks = tasks
        self._callers = callers
        self._advice = {"do": advice} if advice else {}
        self._inputs: dict[str, InputWriter[Submitted]] = {}
        self._kicks: dict[str, asyncio.Event] = {}
        self._in_front: dict[str, InFront] = {}
        self._full: set[str] = set()
        """Subjects whose answers wait for room in the log: they are offered again until there is
        some, or another replica's stand there."""
        self._refused_at: float | None = None
        """When inputs were refused for want of room; None: something was stored since."""
        self._silent: set[str] = set()
        """Subjects whose append waits for an answer, for so long that it was an alarm."""
        self.fence_losses: dict[str, int] = {}
        """How often another replica's answers stood where these were to stand, by service."""
        self.unknown: dict[tuple[str, str], int] = {}
        """How many sendings had no answer, by service and `input` or `answer`."""
        self.on_stored: Callable[[str, str, float], None] | None = None
        """Told of every append that the log has: service, `input` or `answer`, seconds."""

    def problem(self, now: float) -> str:
        """Why the log takes nothing, as far as is known; empty where it does."""
        if self._silent:
            return "the log takes no append"
        if self._full or (self._refused_at is not None and now - self._refused_at < FULL_S):
            return LOG_IS_FULL
        return ""

    # ---- answers -------------------------------------------------------------------------------

    def start_answering(self, replica: AnyReplica) -> None:
        """Append what a replica decides, from now on."""
        kick = self._kicks[replica.core.service] = asyncio.Event()
        self._tasks.spawn(_answers(replica.core.service), self._answer_loop(replica, kick))

    async def stop_answering(self, service: str) -> None:
        """Append no more of what the replica of a service decides."""
        await self._tasks.cancel(_answers(service))

    def look(self, replica: AnyReplica) -> None:
        """A replica has read: there may be something to append."""
        if replica.ready_at() is not None:
            self._kicks[replica.core.service].set()

    async def _answer_loop(self, replica: AnyReplica, kick: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        while True:
            ready_at = replica.ready_at()
            if ready_at is None:
                await kick.wait()
                kick.clear()
                continue
            delay = ready_at - loop.time()
            if delay > 0:
                await asyncio.sleep(delay)
                continue
            await self._gather(replica.waiting)
            append = replica.next_append()
            if append is not None:
                await self._send_answers(replica, append)

    async def _send_answers(self, replica: AnyReplica, append: Append) -> None:
        service = replica.core.service
        subject = f"sabot.{self._log.cell}.{service}.out"
        began = told_at = asyncio.get_running_loop().time()
        try:
            while replica.in_flight is append:
                try:
                    sequence = await self._log.append(
                        subject, append.payload, expected=append.expected, wait_s=APPEND_WAIT_S
                    )
                except FenceLost as lost:
                    self._count_loss(service)
                    now = asyncio.get_running_loop().time()
                    replica.fence_lost(append, lost.last_sequence, now)
                except AppendUnknown as why:
                    self._count_unknown(service, ANSWER)
                    told_at = self._tell_silence(subject, told_at, why)
                    await asyncio.sleep(RESEND_PAUSE_S)
                except AppendRefused as refused:
                    self._silent.discard(subject)
                    if isinstance(refused, LogFull):
                        self._full.add(subject)
                    self._tell_refusal("answers_refused", subject, refused)
                    await asyncio.sleep(REFUSED_PAUSE_S)
                else:
                    self._refused_at = None
                    self._tell_stored(service, ANSWER, began)
                    replica.stored(append, sequence)
        finally:
            self._silent.discard(subject)
            self._full.discard(subject)

    # ---- inputs --------------------------------------------------------------------------------

    def put(
        self,
        service: str,
        body: Message,
        token: Submitted,
        *,
        partner: str = "",
        actor: str,
        traceparent: str = "",
    ) -> None:
        """Let an input wait for the next append. Its time is taken here and now."""
        event = self._input(body, actor)
        event.partner = partner
        if traceparent:
            event.note.traceparent = traceparent
        writer = self._inputs.get(service)
        if writer is None:
            writer = self._inputs[service] = InputWriter(self._writer)
            self._kicks[_inputs(service)] = asyncio.Event()
            self._tasks.spawn(_inputs(service), self._input_loop(service, writer))
        writer.put(event, token)
        self._kicks[_inputs(service)].set()

    def _input(self, body: Message, actor: str) -> entry_pb2.Event:
        event = entry_pb2.Event(
            type=str(body.DESCRIPTOR.full_name),
            body=encode_body(body),
            actor=actor,
            time_us=self._clock(),
        )
        event.note.build = self._build
        return event

    def put_in_front(self, service: str, body: Callable[[], Message | None], actor: str) -> None:
        """Let what `body` says then, if it says anything, go in front of this process's next input
        of a service. Where the log refuses that, in front of the next one after it."""
        self._in_front[service] = (body, actor)

    def _place_in_front(self, service: str, writer: InputWriter[Submitted]) -> InFront | None:
        """Put what goes in front of the service's next append, if anything does; it."""
        in_front = self._in_front.pop(service, None)
        body = None if in_front is None else in_front[0]()
        if in_front is None or body is None:
            return None
        writer.put_first(self._input(body, in_front[1]), Submitted(None, frozenset()))
        return in_front

    def in_front(self, service: str) -> Message | None:
        """What would go in front of this process's next input of a service now."""
        waiting = self._in_front.get(service)
        return None if waiting is None else waiting[0]()

    def seen(self, entry: ReadEntry) -> list[Submitted]:
        """An entry of inputs was read: the tokens of its events, if this process wrote it."""
        writer = self._inputs.get(entry.service)
        if writer is None or entry.writer != writer.writer:
            return []
        append = writer.seen(entry.counter)
        if append is None:
            return []
        self._kicks[_inputs(entry.service)].set()
        return append.tokens

    def wrote(self, entry: ReadEntry) -> bool:
        """Whether this process wrote an entry."""
        writer = self._inputs.get(entry.service) if entry.is_input else None
        return entry.writer == (self._writer if writer is None else writer.writer)

    def unread(self) -> bool:
        """Whether an input of this process has not been read back yet."""
        return any(len(writer) for writer in self._inputs.values())

    def forsake(self, error: Exception) -> None:
        """Tell every caller whose input was not read back that nobody will know."""
        for writer in self._inputs.values():
            _fail(writer.forsake(), error)

    async def _input_loop(self, service: str, writer: InputWriter[Submitted]) -> None:
        kick = self._kicks[_inputs(service)]
        while True:
            if not writer.waiting():
                await kick.wait()
                kick.clear()
                continue
            await self._gather(writer.waiting)
            in_front = self._place_in_front(service, writer)
            append = writer.next_append(self._clock())
            if append is None:
                continue
            stored = await self._send_inputs(service, writer, append)
            if in_front is not None and not stored:
                self._in_front[service] = in_front

    async def _send_inputs(
        self, service: str, writer: InputWriter[Submitted], append: InputAppend[Submitted]
    ) -> bool:
        """Send an append until it is known what became of it; whether it stands in the log."""
        subject = f"sabot.{self._log.cell}.{service}.in"
        began = told_at = asyncio.get_running_loop().time()
        try:
            while writer.in_flight is append:
                try:
                    await self._log.append(
                        subject, append.payload, expected=None, wait_s=APPEND_WAIT_S
                    )
                except AppendUnknown as why:
                    append.maybe_stored = True
                    self._count_unknown(service, INPUT)
                    told_at = self._tell_silence(subject, told_at, why)
                    await asyncio.sleep(RESEND_PAUSE_S)
                except AppendRefused as refused:
                    self._silent.discard(subject)
                    lost = writer.refused(append)
                    if lost is None:
                        await asyncio.sleep(REFUSED_PAUSE_S)
                        continue
                    self._refuse(subject, lost, refused)
                    return False
                else:
                    self._refused_at = None
                    self._tell_stored(service, INPUT, began)
                    writer.stored(append)
            return True
        finally:
            self._silent.discard(subject)

    def _refuse(self, subject: str, lost: list[Submitted], refused: AppendRefused) -> None:
        """Tell the callers of inputs that the log refused."""
        self._tell_refusal("inputs_refused", subject, refused)
        if isinstance(refused, LogFull):
            self._refused_at = asyncio.get_running_loop().time()
            _fail(lost, LogIsFull(LOG_IS_FULL))
        else:
            _fail(lost, EdgeNotReady("the log refused the input"))

    # ---- what the log says ---------------------------------------------------------------------

    def _count_loss(self, service: str) -> None:
        self.fence_losses[service] = self.fence_losses.get(service, 0) + 1

    def _count_unknown(self, service: str, kind: str) -> None:
        self.unknown[service, kind] = self.unknown.get((service, kind), 0) + 1

    def _tell_stored(self, service: str, kind: str, began: float) -> None:
        if self.on_stored is not None:
            self.on_stored(service, kind, asyncio.get_running_loop().time() - began)

    def _tell_refusal(self, kind: AlarmKind, subject: str, refused: AppendRefused) -> None:
        advice = self._advice if isinstance(refused, LogFull) else {}
        self._alarm(kind, {"subject": subject, "why": str(refused), **advice})

    def _tell_silence(self, subject: str, told_at: float, why: AppendUnknown) -> float:
        """A server that takes no append for long is for a person to see. `told_at`: when the
        sending began, or an alarm was last raised; the same from now on."""
        now = asyncio.get_running_loop().time()
        if now - told_at < SILENT_S:
            return told_at
        self._silent.add(subject)
        self._alarm("log_does_not_answer", {"subject": subject, "why": str(why), **self._advice})
        return now

    async def _gather(self, waiting: Callable[[], int]) -> None:
        """Under load, let more events come together before an append: each entry costs every
        process of the cell about as much as ten events. At rest nothing is held back."""
        if waiting() < self._callers() // GATHER_SHARE:
            await asyncio.sleep(GATHER_S)


def _fail(tokens: list[Submitted], error: Exception) -> None:
    for token in tokens:
        if token.future is not None and not token.future.done():
            token.future.set_exception(error)


def _answers(service: str) -> str:
    return f"{service}.out"


def _inputs(service: str) -> str:
    return f"{service}.in"
