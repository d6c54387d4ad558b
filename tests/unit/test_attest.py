"""What processes attest: when, what of, and what audit says of it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from google.protobuf.message import Message
from pydantic import SecretStr

from sabot.audit.v1 import events_pb2 as audit
from sabot.log.v1 import entry_pb2
from sabot.log.v1 import events_pb2 as log
from services.audit.domain.attestations import MAX_PROCESSES
from services.audit.domain.core import CORE, AuditState
from services.cli.attested import TYPE, Attested, differences, last_attested
from services.cli.failures import in_one_line
from services.kernel import attesting
from services.kernel.attesting import AGAIN_US, DAY_US, LOOK_US, PLACES, Attestor, setting_digests
from services.kernel.event import UNLOGGED, Event, Position
from services.kernel.memory_log import MemoryLog, MemoryStore
from services.kernel.reader import LogBroken
from services.kernel.settings import ServiceSettings
from services.kernel.shells import Shells
from services.simulator.virtual_time import run_virtual

CODE = b"c" * 32
SECOND = 1_000_000


def logged(body: Message, position: Position, service: str) -> Event:
    return Event(position, service, True, body, None, "", "", 0, 1)


def attestor(path: Path, **settings: object) -> Attestor:
    return Attestor(
        process="table",
        build="sabot-1",
        service="table",
        settings=ServiceSettings(token_file=path / "tokens.json").model_copy(update=settings),
        code=CODE,
        rules=lambda state: state.rules,
    )


def asked() -> Event:
    return logged(log.AskAttestation(reason="a visit"), Position(1, 9, 0), "audit")


def told(one: Attestor, state: object, now_us: int) -> list[log.Attest]:
    found = one.poll(state, now_us, False, None)
    assert all(isinstance(body, log.Attest) for body in found)
    one.hear([logged(body, Position(1, 10, 0), "table") for body in found])
    return list(found)  # type: ignore[arg-type]  # as asserted


# ---- the shell -----------------------------------------------------------------------------------


def test_it_attests_at_the_start_once_a_day_when_asked_and_on_change(tmp_path: Path) -> None:
    one, state = attestor(tmp_path), SimpleNamespace(rules=[("t1", b"r")])
    (first,) = told(one, state, SECOND)
    assert first.reason == log.ATTEST_REASON_STARTED
    assert [part.name for part in first.parts] == sorted(part.name for part in first.parts)
    assert told(one, state, SECOND + LOOK_US) == []
    (day,) = told(one, state, SECOND + DAY_US)
    assert day.reason == log.ATTEST_REASON_DAY
    assert day.parts == first.parts

    one.hear([asked()])
    (ordered,) = told(one, state, SECOND + DAY_US + 1)
    assert (ordered.reason, ordered.parts) == (log.ATTEST_REASON_ASKED, first.parts)
    assert told(one, state, SECOND + DAY_US + 2) == [], "once for each order"

    now_us = 2 * DAY_US
    state.rules.append(("t2", b"r"))
    (tmp_path / "tokens.json").write_text("{}")
    assert told(one, state, SECOND + DAY_US + 3) == [], "what can change is looked at now and then"
    (changed,) = told(one, state, now_us)
    assert changed.reason == log.ATTEST_REASON_CHANGED
    assert moved(first, changed) == {"rules", "callers"}
    one.code = b"d" * 32
    (again,) = told(one, state, now_us + LOOK_US)
    assert moved(changed, again) == {"code"}


def test_what_is_not_read_back_is_told_again(tmp_path: Path) -> None:
    """The log was full: what nobody waits for is dropped then."""
    one, state = attestor(tmp_path), SimpleNamespace(rules=[])

    def reasons(now_us: int) -> list[Any]:
        found: Any = one.poll(state, now_us, False, None)
        return [body.reason for body in found]

    assert reasons(SECOND) == [log.ATTEST_REASON_STARTED]
    one.hear([asked()])
    assert reasons(SECOND + LOOK_US) == [], "it may be on its way"
    later_us = SECOND + AGAIN_US
    again: Any
    (again,) = one.poll(state, later_us, False, None)
    assert again.reason == log.ATTEST_REASON_STARTED
    one.hear([logged(again, Position(1, 10, 0), "table")])
    assert reasons(later_us + 1) == [], "which answers the order too"

    one.hear([asked()])
    assert reasons(later_us + 2) == [log.ATTEST_REASON_ASKED]
    assert reasons(later_us + 2 + AGAIN_US) == [log.ATTEST_REASON_ASKED]


def test_a_file_that_cannot_be_read_is_a_problem_and_no_end(tmp_path: Path) -> None:
    one, state = attestor(tmp_path), SimpleNamespace(rules=[])
    tokens = tmp_path / "tokens.json"
    tokens.mkdir()  # Nobody can read that as a file, not even root.
    assert told(one, state, SECOND) == []
    assert "Is a directory" in one.problems["callers"]
    tokens.rmdir()
    assert told(one, state, SECOND + 1) == [], "it is looked at now and then"
    (first,) = told(one, state, SECOND + LOOK_US)
    assert first.reason == log.ATTEST_REASON_STARTED
    assert one.problems == {}


def test_nothing_is_attested_where_an_older_release_may_come_back(tmp_path: Path) -> None:
    """A build that knows behaviour 1 alone takes a log with an attestation for broken."""
    said: list[Any] = []
    state = SimpleNamespace(core=SimpleNamespace(rules=[]), pending=())
    in_force = [1]
    here: Any = SimpleNamespace(leading=True, state=state)
    shells = Shells(
        [attestor(tmp_path)],
        replica=lambda _service: here,
        tell=lambda *what: said.append(what),
        may_act=lambda: True,
        clock=lambda: SECOND,
        alarm=lambda kind, facts: pytest.fail(f"{kind}: {facts}"),
        behaviour=lambda _service: in_force[0],
    )
    shells._poll()
    assert said == []
    in_force[0] = 2
    shells._poll()
    assert [(service, actor) for service, _, actor, _ in said] == [("table", "system:attestor")]


def moved(before: log.Attest, after: log.Attest) -> set[str]:
    old = {part.name: part.digest for part in before.parts}
    return {part.name for part in after.parts if old[part.name] != part.digest}


def test_every_setting_is_attested_or_a_place() -> None:
    names = {name.removeprefix("setting.") for name in setting_digests(ServiceSettings())}
    assert ServiceSettings.model_fields.keys() >= PLACES
    assert names == (ServiceSettings.model_fields.keys() - PLACES) | {"tls", "postgresql"}


def test_other_settings_have_other_digests_and_other_places_the_same() -> None:
    one = setting_digests(ServiceSettings())
    places = {"port": 7, "data": Path("/elsewhere"), "name": "wallet-2", "nats_user": "wallet"}
    assert setting_digests(ServiceSettings().model_copy(update=places)) == one
    other = setting_digests(ServiceSettings().model_copy(update={"log_replicas": 3}))
    assert {name for name in one if one[name] != other[name]} == {"setting.log_replicas"}
    secret = SecretStr("postgresql+asyncpg://sabot:hunter2@db/sabot")
    there = setting_digests(ServiceSettings().model_copy(update={"database_url": secret}))
    assert {name for name in one if one[name] != there[name]} == {"setting.postgresql"}
    elsewhere = SecretStr("postgresql+asyncpg://sabot:other@db2/sabot")
    assert there == setting_digests(
        ServiceSettings().model_copy(update={"database_url": elsewhere})
    )


def test_the_codes_digest_is_of_names_and_contents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        (folder / "kernel").mkdir(parents=True)
        (folder / "kernel/a.py").write_text("a = 1\n")
        (folder / "b.json").write_text("{}")
    (there / "kernel/__pycache__").mkdir()
    (there / "kernel/__pycache__/a.pyc").write_bytes(b"made")

    def digest(folder: Path) -> bytes:
        monkeypatch.setattr(attesting, "PACKAGES", {"services": [str(folder)]})
        return attesting.code_digest()

    same = digest(here)
    assert digest(there) == same
    (there / "kernel/a.py").write_text("a = 2\n")
    assert digest(there) != same
    (there / "kernel/a.py").write_text("a = 1\n")
    (there / "b.json").rename(there / "c.json")
    assert digest(there) != same


# ---- audit ---------------------------------------------------------------------------------------


def attest(process: str = "table", of: str = "table", /, **parts: bytes) -> log.Attest:
    return log.Attest(
        process=process,
        service=of,
        parts=[log.AttestedPart(name=name, digest=parts[name]) for name in sorted(parts)],
    )


def said(state: AuditState, body: log.Attest) -> list[object]:
    """What audit answers; its answers are folded."""
    event = logged(body, Position(1, 5, 0), "table")
    CORE.evolve(state, event)
    answers = CORE.decide(state, event)
    assert isinstance(answers, (list, tuple))
    for answer in answers:
        CORE.evolve(state, logged(answer, UNLOGGED, "audit"))
    return list(answers)


def test_audit_says_what_is_new_and_alarms_what_nobody_ordered() -> None:
    state = AuditState()
    first = attest(code=b"1", rules=b"1")
    assert said(state, first) == [audit.AttestationTaken(attested=first)]
    assert said(state, first) == []
    rules = attest(code=b"1", rules=b"2")
    assert said(state, rules) == [audit.AttestationTaken(attested=rules, changed=["rules"])]
    code = attest(code=b"2", rules=b"3")
    assert said(state, code) == [audit.AttestationChanged(attested=code, changed=["code", "rules"])]
    more = attest(code=b"2", rules=b"3", callers=b"1")
    assert said(state, more) == [audit.AttestationChanged(attested=more, changed=["callers"])]
    assert said(state, code) == [audit.AttestationChanged(attested=code, changed=["callers"])]
    other = attest("wallet", "wallet", code=b"7")
    assert said(state, other) == [audit.AttestationTaken(attested=other)], "another service"
    pod = attest("table-7c9f", code=b"2", rules=b"3")
    assert said(state, pod) == [audit.AttestationTaken(attested=pod)], "the same, by a new name"
    release = attest("table-9d2b", code=b"3", rules=b"3")
    assert said(state, release) == [audit.AttestationChanged(attested=release, changed=["code"])]
    assert CORE.alarms[audit.AttestationChanged] == "attestation_changed"
    assert audit.AttestationTaken not in CORE.alarms


def test_those_that_attested_longest_ago_are_forgotten() -> None:
    state = AuditState()
    for number in range(MAX_PROCESSES + 1):
        said(state, attest(f"pod-{number}", code=b"1"))
    assert len(state.attested) == MAX_PROCESSES
    (again,) = said(state, attest("pod-0", code=b"1"))
    assert isinstance(again, audit.AttestationTaken)


# ---- the command's comparison --------------------------------------------------------------------


def test_processes_are_compared_with_one_another_and_with_the_code_here() -> None:
    here = attesting.code_digest()

    def of(**processes: log.Attest) -> list[str]:
        return differences({name: Attested("1/1/0", "", body) for name, body in processes.items()})

    one = {"code": here, "setting.cell": b"main", "setting.log_level": b"INFO"}
    assert of(a=attest("a", **one), b=attest("b", **(one | {"setting.log_level": b"DEBUG"}))) == []
    (code,) = of(a=attest("a", **one), b=attest("b", **(one | {"code": b"x"})))
    assert code.startswith("code 78 is not what this command runs from")
    assert code.endswith(": b")
    (cell,) = of(a=attest("a", **one), b=attest("b", **(one | {"setting.cell": b"test"})))
    assert cell.startswith("setting.cell differs")


@pytest.mark.parametrize(
    "payload",
    [
        b"\xff" + TYPE.encode(),
        entry_pb2.Entry(events=[entry_pb2.Event(type=TYPE, body=b"\xff")]).SerializeToString(),
    ],
    ids=["entry", "body"],
)
def test_an_entry_that_cannot_be_read_is_said_in_one_line(payload: bytes) -> None:
    store = MemoryStore("main", lambda: 0)
    store.store("sabot.main.audit.in", payload, None)

    async def main() -> None:
        await last_attested(MemoryLog(store))

    with pytest.raises(LogBroken) as broken:
        run_virtual(main())
    assert str(in_one_line(broken.value)).startswith("the log is damaged: entry 1: ")
    # Where an operator has accepted that, the others are told.
    assert run_virtual(last_attested(MemoryLog(store), {1: b"head"})) == {}
