"""A process without audit tells the log what it noticed of its calls: on its own service's subject,
answered there, and named by audit in another process."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from google.protobuf.message import Message

from sabot.audit.v1 import audit_service_pb2 as audits
from sabot.audit.v1 import significant_events_pb2 as significant
from sabot.log.v1 import events_pb2
from services.audit.domain.core import CORE as AUDIT
from services.audit.servicer import AuditServicer
from services.events import event_types
from services.kernel import host, notices
from services.kernel.event import Event, Position
from services.kernel.memory_log import MemoryLog, MemoryStore
from services.kernel.notices import NoticeKind, Notices
from services.kernel.reader import LogReader
from services.kernel.recovery import entries_until
from services.kernel.tokens import Role
from tests.unit.front import SAM
from tests.unit.test_host_start import serve_nothing, started
from tests.unit.toy import CELL, TABLE

WITHIN_S = 30.0


async def read(store: MemoryStore) -> list[Event]:
    log = MemoryLog(store)
    last = (await log.info(wait_s=1.0)).last_sequence
    reader = LogReader(CELL, event_types())
    return [
        event
        async for entries in entries_until(log, reader, last)
        for entry in entries
        for event in entry.events
    ]


async def until(store: MemoryStore, answer: type[Message], cause: Position | None = None) -> Event:
    async with asyncio.timeout(WITHIN_S):
        while True:
            for event in await read(store):
                if isinstance(event.body, answer) and cause in {None, event.cause}:
                    return event
            await asyncio.sleep(0.02)


def test_another_process_names_what_this_one_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notices, "GATHER_US", 100_000)

    async def main() -> None:
        store = MemoryStore(CELL, host.clock_us)
        audit = host.Parts(AUDIT, serve_nothing, notices=Notices(host.clock_us))
        async with (
            started(store, tmp_path / "a", "one") as one,
            started(store, tmp_path / "b", "two", only=[audit]),
        ):
            seen = one.server.notices
            assert seen is not None
            for _ in range(3):
                seen.refused("sabot.toy.v1.Toys/Play")
            named = await until(store, significant.EventsNoted)
            assert named.service == "audit"
            assert isinstance(named.body, significant.EventsNoted)
            noted = named.body.noted
            assert (noted.kind, noted.count) == (significant.NOTED_KIND_FAILED_SIGN_IN, 3)
            told = await until(store, events_pb2.NoteCalls)
            assert (told.service, told.actor) == (TABLE.service, "system:callwitness")
            assert named.cause == told.position
            answered = await until(store, events_pb2.InputNoted, told.position)
            assert (answered.service, answered.cause) == (TABLE.service, told.position)
        # Who starts anew over that log reads it to its end.
        async with started(store, tmp_path / "c", "another") as another:
            assert another.process.position.sequence >= answered.position.sequence

    asyncio.run(main())


async def test_a_console_tells_what_it_saw_with_a_role_that_opens_nothing_else() -> None:
    now = [1_000]
    seen = Notices(lambda: now[0])
    servicer = AuditServicer(None, None, None, seen, None)  # type: ignore[arg-type]  # not asked here
    for request in (
        audits.NoteSeenRequest(
            kind=significant.NOTED_KIND_FAILED_SIGN_IN, operator_id="sam", page="sign-in", count=4
        ),
        audits.NoteSeenRequest(kind=significant.NOTED_KIND_READ, page="rounds", count=2),
    ):
        await servicer.note_seen(request, SAM)
    found = seen.take(1_000 + notices.GATHER_US)
    assert [(one.kind, one.subject, one.method, one.count) for one in found] == [
        (NoticeKind.REFUSED, "operator:sam", "console/sign-in", 4),
        (NoticeKind.READ, "", "console/rounds", 2),
    ]
    access = servicer.note_seen.__sabot_access__  # type: ignore[attr-defined]  # set by @rpc
    assert (access.partners, access.roles) == (False, {Role.CONSOLE})
    for name in dir(servicer):
        other = getattr(getattr(servicer, name), "__sabot_access__", None)
        assert other is None or name == "note_seen" or Role.CONSOLE not in other.roles
