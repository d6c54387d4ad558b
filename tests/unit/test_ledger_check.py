"""The audit looks at every journal entry, and names the first that does not sum to zero."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sabot.wallet.v1 import events_pb2 as wallets
from services.audit.auditor import Auditor
from services.audit.domain.core import AuditState
from services.audit.ledger_check import LedgerCheck, unbalanced
from services.audit.measures import measure_audit
from services.audit.returns import Returns
from services.audit.sealer import Sealer
from services.kernel.telemetry import Metrics
from services.wallet.domain import postings as postings_module
from services.wallet.domain.postings import Kind, Posting
from services.wallet.domain.state import WalletState
from tests.unit.ledger_facts import some_money
from tests.unit.projection_log import HandMadeLog

payout = postings_module._payout


def without_commission(body: wallets.PayoutPosted) -> tuple[Posting, ...]:
    """The planted fault: what is kept stands on no account."""
    return tuple(leg for leg in payout(body) if leg.kind is not Kind.COMMISSION)


def looked_at(log: HandMadeLog) -> LedgerCheck:
    check = LedgerCheck()
    for entry in log.entries:
        check.feed(*entry)
    return check


def test_books_that_are_right_have_no_bad_entry() -> None:
    made = some_money()
    check = looked_at(made.log)
    assert check.first is None
    assert (check.entries, check.found) == (len(made.lines), 0)


def test_a_planted_unbalanced_posting_is_found_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings_module, "_payout", without_commission)
    made = some_money()
    check = looked_at(made.log)
    bad = [event for event in made.log.events if unbalanced(event)]
    assert [type(event.body).__name__ for event in bad] == ["PayoutPosted"]
    assert check.found == 1
    assert check.first is not None
    assert check.first.position == bad[0].position
    assert check.first.event_type == "sabot.wallet.v1.PayoutPosted"
    assert check.first.told == [
        "reserved:north:a:EUR -600",
        "house:north:EUR +600",
        "house:north:EUR -1000",
        "cash:north:a:EUR +975",
    ]


def test_an_alarm_and_the_report_name_the_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(postings_module, "_payout", without_commission)
    check = looked_at(some_money().log)
    alarms: list[tuple[str, dict[str, Any]]] = []
    process: Any = SimpleNamespace(
        folding=SimpleNamespace(
            difference_count=0,
            observers={},
            observed=(9, b"h"),
            answers_compared=1,
            differences=[],
        ),
        state=lambda _: AuditState(),
        observer={"wallet": SimpleNamespace(state=SimpleNamespace(core=WalletState()))}.get,
        alarm=lambda kind, facts: alarms.append((kind, facts)),
    )
    sealer = Sealer.__new__(Sealer)
    sealer.worth, sealer.problems = 0, {}
    measure = measure_audit(
        process, sealer, check, Returns(tmp_path / "returns.json"), {}, 0, Metrics()
    )
    for now in (0.0, 1.0):
        measure(now)
    ((kind, facts),) = alarms
    assert kind == "books_unbalanced"
    assert check.first is not None
    assert facts["position"] == str(check.first.position)
    assert facts["type"] == "sabot.wallet.v1.PayoutPosted"
    assert facts["legs"] == check.first.told
    report = Auditor(process, check).report()
    assert not report.balanced
    assert report.unbalanced_entries == 1
    assert report.first_unbalanced.position.sequence == check.first.position.sequence
    assert list(report.first_unbalanced.legs) == check.first.told
    assert Auditor(process, LedgerCheck()).report().balanced
