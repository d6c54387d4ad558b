"""What the console makes of contests: which are still to be repaired, and what repairs them."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.message import Message

from sabot.audit.v1 import contest_events_pb2 as audits
from sabot.log.v1 import entry_pb2
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.table.v1 import correction_events_pb2 as corrections
from sabot.table.v1 import events_pb2 as tables
from services.cli.skim import Skimmed
from services.console import contests as module
from services.console.contests import Contests
from services.console.history import History
from services.events import event_types
from services.kernel.event import Position

PAID = settlement.SettledBet(bet_id="t1-7.1", bet="tie", outcome=settlement.OUTCOME_WON)


def contested(
    account: str = "ann", sequence: int = 9, *, missing: bool = False, correction_id: str = ""
) -> audits.SettlementContested:
    bet = audits.ContestedBet(bet_id="t1-7.1", expected=PAID)
    if not missing:
        bet.recorded.CopyFrom(PAID)
    told = audits.ContestSettlement(
        answer=entry_pb2.Position(segment=1, sequence=sequence),
        partner_id="acme",
        account_id=account,
        table_id="t1",
        round_id="t1-7",
        bets=[bet],
        correction_id=correction_id,
    )
    return audits.SettlementContested(contest=told, table_id="t1", round_id="t1-7")


def closed(
    end: Any = corrections.CORRECTION_END_POSTED, name: str = "correction-1"
) -> corrections.CorrectionClosed:
    return corrections.CorrectionClosed(correction_id=name, round_id="t1-7", end=end)


def kept(*told: audits.SettlementContested) -> Contests:
    found = Contests()
    for one in told:
        found.add(one, 5)
    return found


def take(history: History, sequence: int, body: Message) -> None:
    """An answer stands there in the log."""
    name = str(body.DESCRIPTOR.full_name)
    proto = entry_pb2.Event(type=name, body=body.SerializeToString())
    history._takes[name](Skimmed(Position(1, sequence, 0), "table", False, proto, 5, 1))


def open_accounts(found: Contests) -> list[str]:
    return [one.told.account_id for one in found.open()]


def test_contests_are_open_newest_first_and_each_once() -> None:
    found = kept(contested("ann"), contested("bob"), contested("ann"))
    assert open_accounts(found) == ["bob", "ann"]
    assert [one.told.account_id for one in found.of_round("t1-7")] == ["ann", "bob"]


def test_a_correction_behind_the_wrong_answer_repairs_it_and_none_before_does() -> None:
    found = kept(contested(sequence=9))
    version = found.version
    found.ended(closed(corrections.CORRECTION_END_REJECTED), 20)
    assert (open_accounts(found), found.version) == (["ann"], version)
    found.ended(closed(), 8)
    assert open_accounts(found) == ["ann"]
    found.ended(closed(), 20)
    assert open_accounts(found) == []
    assert found.version > version
    assert len(found.of_round("t1-7")) == 1
    # The audit may have been behind: what it tells of what is repaired already is repaired.
    found.add(contested("bob", 9), 6)
    assert open_accounts(found) == []


def test_a_correction_does_not_repair_what_it_settled_wrongly_itself() -> None:
    found = kept(contested(sequence=15, correction_id="correction-1"))
    found.ended(closed(), 20)
    assert open_accounts(found) == ["ann"]
    found.ended(closed(name="correction-2"), 30)
    assert open_accounts(found) == []


def test_a_void_repairs_and_the_end_of_a_round_only_what_was_left_out() -> None:
    for missing, left in ((True, []), (False, ["ann"])):
        found = kept(contested(missing=missing))
        found.closed("t1-7", 20)
        assert open_accounts(found) == left
        found.voided("t1-7", 30)
        assert open_accounts(found) == []


def test_what_a_round_left_out_is_paid_at_its_end_and_what_was_wrong_stays_so() -> None:
    found = kept(contested("ann", missing=True), contested("bob"))
    found.closed("t1-7", 20)
    assert open_accounts(found) == ["bob"]


@pytest.mark.parametrize(
    ("end", "missing", "left"),
    [
        (tables.RoundVoided(round_id="t1-7"), False, []),
        (tables.RoundVoided(round_id="t1-7"), True, []),
        (tables.RoundClosed(round_id="t1-7"), False, ["ann"]),
        (tables.RoundClosed(round_id="t1-7"), True, []),
    ],
)
def test_what_the_audit_contests_behind_its_repair_is_repaired(
    end: Any, missing: bool, left: list[str]
) -> None:
    """It was away meanwhile: nothing more is said of the round, and the alarm would stay."""
    history = History("main", event_types(), {})
    take(history, 3, tables.RoundOpened(round_id="t1-7"))
    take(history, 12, end)
    take(history, 20, contested(sequence=9, missing=missing))
    assert open_accounts(history.contests) == left
    # What was answered wrongly later it did not repair.
    take(history, 21, contested("bob", 15, missing=missing, correction_id="correction-1"))
    assert open_accounts(history.contests) == ["bob", *left]
    # Nor does it take the place of what repaired that.
    take(history, 30, closed(name="correction-2"))
    take(history, 31, contested("cem", 16, missing=missing))
    assert open_accounts(history.contests) == []


def test_a_corrected_round_is_known_by_what_is_in_force() -> None:
    found = Contests()
    void = corrections.CorrectedOutcome(voided=True)
    found.corrected(corrections.ResultCorrected(round_id="t1-7", outcome=void, version=2))
    assert found.in_force["t1-7"] == module.InForce(2, void)


def test_the_oldest_contests_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CONTESTS", 2)
    assert open_accounts(kept(*map(contested, ("ann", "bob", "cem")))) == ["cem", "bob"]
