"""What a process measures of itself, and that it is what alerts are to hear of."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sabot.audit.v1 import events_pb2 as audit
from services.audit.domain.core import AuditState
from services.audit.ledger_check import LedgerCheck
from services.audit.measures import BOOKS_EVERY_S, SealAge, measure_audit
from services.audit.returns import Returns
from services.audit.sealer import Sealer
from services.kernel import host
from services.kernel.event import Position
from services.kernel.log import LogInfo
from services.kernel.measures import measure_process
from services.kernel.room import Room
from services.kernel.telemetry import Metrics
from services.kernel.telemetry_names import ALARM_KINDS
from services.shoe.custodian import GENERATOR, Custodian
from services.shoe.measures import measure_custodian
from services.wallet.domain.state import WalletState


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def test_every_kind_of_alarm_is_counted_from_the_start_and_grows() -> None:
    metrics = Metrics()
    alarms = host.Alarms(metrics)
    assert {value(metrics, "sabot_alarms_total", kind=kind) for kind in ALARM_KINDS} == {0}
    alarms("log_weak", {"found": ["sync_interval"]})
    grown = [kind for kind in ALARM_KINDS if value(metrics, "sabot_alarms_total", kind=kind)]
    assert grown == ["log_weak"]


def test_a_process_tells_how_it_stands_to_the_log() -> None:
    room = Room()
    appending: Any = SimpleNamespace(fence_losses={}, unknown={}, on_stored=None)
    replica = SimpleNamespace(unanswered_since=None)
    process: Any = SimpleNamespace(
        started_from=5,
        ready=False,
        oldest_unanswered_s=1.5,
        position=Position(1, 42, 0),
        log_end=SimpleNamespace(room=room, heard_s=0.2, clock_off_s=-0.1),
        appending=appending,
        folding=SimpleNamespace(replicas={"wallet": replica}),
        read_counts={},
    )
    projector: Any = SimpleNamespace(lag=7, error=None)
    metrics = Metrics()
    measure = measure_process(process, {"wallet": projector}, metrics)
    measure(0.0)
    assert value(metrics, "sabot_ready") == 0
    assert value(metrics, "sabot_unanswered_seconds") == 1.5
    assert value(metrics, "sabot_log_entry") == 42
    assert value(metrics, "sabot_projection_lag_entries", service="wallet") == 7
    assert value(metrics, "sabot_projection_stopped", service="wallet") == 0
    assert value(metrics, "sabot_fence_losses_total", service="wallet") == 0

    room.told(LogInfo(1, 42, 0, bytes_used=800, bytes_max=1000))
    process.ready = True
    projector.error = ValueError("a bug")
    appending.fence_losses["wallet"] = 3
    appending.unknown["wallet", "answer"] = 2
    process.read_counts["wallet", True] = [4, 40]
    replica.unanswered_since = 0.25
    appending.on_stored("wallet", "answer", 0.004)
    measure(1.0)
    measure(2.0)
    assert value(metrics, "sabot_ready") == 1
    assert value(metrics, "sabot_log_bytes") == 800
    assert value(metrics, "sabot_log_bytes_max") == 1000
    assert value(metrics, "sabot_projection_stopped", service="wallet") == 1
    assert value(metrics, "sabot_fence_losses_total", service="wallet") == 3
    assert value(metrics, "sabot_log_lag_entries") == 0
    assert value(metrics, "sabot_log_heard_seconds") == 0.2
    assert value(metrics, "sabot_clock_offset_seconds") == -0.1
    assert value(metrics, "sabot_answers_waiting_seconds", service="wallet") == 1.75
    answers = {"service": "wallet", "kind": "answer"}
    assert value(metrics, "sabot_appends_unknown_total", **answers) == 2
    assert value(metrics, "sabot_append_seconds_count", **answers) == 1
    inputs = {"service": "wallet", "kind": "input"}
    assert value(metrics, "sabot_log_entries_total", **inputs) == 4
    assert value(metrics, "sabot_log_events_total", **inputs) == 40


@pytest.mark.parametrize(
    ("problems", "failed", "shoes"),
    [({}, 0, 0), ({GENERATOR: "stuck"}, 1, 0), ({GENERATOR: "stuck", "t1-s1": "no key"}, 1, 1)],
)
def test_the_custodian_tells_a_failed_generator_from_a_lost_key(
    problems: dict[str, str], failed: int, shoes: int
) -> None:
    custodian = Custodian.__new__(Custodian)
    custodian.problems = problems
    metrics = Metrics()
    measure_custodian(custodian, metrics)(0.0)
    assert value(metrics, "sabot_generator_failed") == failed
    assert value(metrics, "sabot_shoes_without_key") == shoes


def sealer(worth: int) -> Sealer:
    made = Sealer.__new__(Sealer)
    made.worth, made.problems = worth, {}
    return made


def sealed(size: int) -> AuditState:
    return AuditState(seal=audit.LogSealed(size=size), sealed_us=1)


def test_a_seals_age_grows_only_while_no_seal_comes() -> None:
    asked = sealer(worth=10)
    age = SealAge(asked)
    assert age.look(sealed(10), 0.0) == 0
    asked.worth = 12
    assert [age.look(sealed(10), now) for now in (100.0, 120.0)] == [0, 20]
    asked.worth = 15
    assert age.look(sealed(12), 130.0) == 0
    assert age.look(sealed(15), 131.0) == 0
    assert age.look(AuditState(), 200.0) == 0
    assert age.look(AuditState(), 230.0) == 30


def test_a_tree_that_cannot_grow_lets_the_seal_age() -> None:
    asked = sealer(worth=10)
    asked.problems["tree"] = "no room"
    age = SealAge(asked)
    assert [age.look(sealed(10), now) for now in (0.0, 90.0)] == [0, 90]


def test_the_audit_tells_differences_and_books_that_do_not_sum_to_zero(tmp_path: Path) -> None:
    state = WalletState()
    observers = {"wallet": SimpleNamespace(state=SimpleNamespace(core=state))}
    process: Any = SimpleNamespace(
        folding=SimpleNamespace(difference_count=0, observers=observers),
        state=lambda _: sealed(1),
        observer=observers.get,
    )
    metrics = Metrics()
    check, returns = LedgerCheck(), Returns(tmp_path / "returns.json")
    measure = measure_audit(process, sealer(1), check, returns, {"stored": 2}, 1, metrics)
    measure(0.0)
    assert value(metrics, "sabot_audit_unfollowed") == 0
    assert value(metrics, "sabot_books_unbalanced") == 0
    assert value(metrics, "sabot_snapshots_shared_total", outcome="stored") == 2
    state.ledgers["house", "acme", "EUR"] = 5
    process.folding.difference_count = 2
    measure(BOOKS_EVERY_S - 1)
    assert value(metrics, "sabot_books_unbalanced") == 0
    measure(BOOKS_EVERY_S)
    assert value(metrics, "sabot_audit_differences") == 2
    assert value(metrics, "sabot_books_unbalanced") == 1
    del observers["wallet"]
    measure(BOOKS_EVERY_S + 1)
    assert value(metrics, "sabot_audit_unfollowed") == 1
