"""The table lets a paid round be corrected: one supervisor proposes, another approves, audit
confirms (INC-3)."""

from __future__ import annotations

from typing import Any

import pytest

from sabot.audit.v1 import correction_events_pb2 as audit
from sabot.log.v1 import events_pb2 as log
from sabot.rules.v1 import events_pb2 as rules
from sabot.settlement.v1 import correction_events_pb2 as settlement
from sabot.table.v1 import correction_events_pb2 as corrections
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import spec_pb2
from sabot.wallet.v1 import correction_events_pb2 as wallet
from services.games import catalogue
from services.games.told_results import completed
from services.table.domain import paid_rounds
from services.table.domain.core import CORE
from services.table.domain.state import TableState
from tests.unit.correction_facts import C1, VOID
from tests.unit.deciding import Deciding, Fact, by, request_id
from tests.unit.table_facts import (
    R1,
    R2,
    RESULT,
    T,
    accepted,
    betting,
    close_betting,
    open_round,
    open_table,
    paid,
    resolved,
    shoe_opened,
    shoe_started,
    spec,
)

DANA, SAM, ALEX = "operator:dana", "operator:sam", "operator:alex"
DAY_US = 24 * 3600 * 1_000_000
Outcome = corrections.CorrectedOutcome
RIGHT = Outcome(
    result=completed(
        rules.Result(
            baccarat=rules.BaccaratResult(player_cards=["6S", "KD"], banker_cards=["7H", "TC"])
        )
    )
)


def asked(body: Any, number: int, actor: str, at_us: int | None = None) -> Fact:
    body.request_id = request_id(number, at_us or 0)
    body.request_hash = f"{number} {body}".encode()
    return by(body, partner="", actor=actor, at_us=at_us)


def propose(
    number: int = 30,
    outcome: Outcome = RIGHT,
    round_id: str = R1,
    table_id: str = T,
    actor: str = DANA,
    at_us: int | None = None,
) -> Fact:
    body = corrections.ProposeCorrection(
        table_id=table_id,
        round_id=round_id,
        outcome=outcome,
        reason=table.ROUND_REASON_MISREAD,
        reference="INC-7",
        dry_run=bytes(32),
    )
    return asked(body, number, actor, at_us)


def approve(number: int = 31, name: str = C1, actor: str = SAM, at_us: int | None = None) -> Fact:
    return asked(corrections.ApproveCorrection(correction_id=name), number, actor, at_us)


def proposed(
    name: str = C1, outcome: Outcome = RIGHT, version: int = 1, round_id: str = R1
) -> corrections.CorrectionProposed:
    return corrections.CorrectionProposed(
        correction_id=name,
        table_id=T,
        round_id=round_id,
        outcome=outcome,
        reason=table.ROUND_REASON_MISREAD,
        reference="INC-7",
        dry_run=bytes(32),
        version=version,
    )


def corrected(
    name: str = C1, outcome: Outcome = RIGHT, version: int = 1
) -> corrections.ResultCorrected:
    return corrections.ResultCorrected(
        correction_id=name,
        table_id=T,
        round_id=R1,
        outcome=outcome,
        version=version,
        reason=table.ROUND_REASON_MISREAD,
        reference="INC-7",
        proposed_by=DANA,
        approved_by=SAM,
    )


def rejected(
    refusal: table.Refusal.ValueType, number: int, round_id: str = "", table_id: str = ""
) -> table.OrderRejected:
    return table.OrderRejected(
        request_id=request_id(number), table_id=table_id, round_id=round_id, refusal=refusal
    )


def no(refusal: table.Refusal.ValueType, number: int, round_id: str = R1, table_id: str = T) -> Any:
    """A proposal is refused."""
    return rejected(refusal, number, round_id, table_id)


def over() -> Deciding[TableState]:
    """A round is paid."""
    return betting().given(close_betting(), resolved(), paid())


def confirmed(name: str = C1) -> Fact:
    return by(audit.FactsConfirmed(correction_id=name, table_id=T, round_id=R1), partner="")


def posted(name: str = C1) -> Fact:
    return by(wallet.CorrectionsPosted(correction_id=name, table_id=T, round_id=R1), partner="")


def test_one_proposes_another_approves_and_audit_confirms() -> None:
    game = over().when(propose()).then(proposed())
    game.when(approve()).then_only(corrections.CorrectionApproved)
    game.when(confirmed()).then(corrected())
    game.when(posted()).then_only(corrections.CorrectionClosed)
    closed = game.answers[0]
    assert isinstance(closed, corrections.CorrectionClosed)
    assert closed.end == corrections.CORRECTION_END_POSTED
    assert not game.state.corrections.open
    game.when(confirmed()).then()
    game.when(posted()).then()


def test_proposals_are_refused_in_order() -> None:
    game = betting()
    bad = Outcome(result=rules.Result(roulette=rules.RouletteResult(number=20)))
    unknown = propose(40, bad, round_id="t9-1", table_id="t9")
    game.when(unknown).then(no(table.REFUSAL_UNKNOWN_TABLE, 40, "t9-1", "t9"))
    game.when(propose(41, bad, R2)).then(no(table.REFUSAL_UNKNOWN_ROUND, 41, R2))
    game.when(propose(42, bad)).then(no(table.REFUSAL_ROUND_RUNNING, 42))
    game.given(close_betting(), resolved(), paid())
    game.when(propose(43, bad)).then(no(table.REFUSAL_BAD_RESULT, 43))
    game.when(propose(44, Outcome())).then(no(table.REFUSAL_BAD_RESULT, 44))
    short = rules.BaccaratResult(player_cards=["2S", "KD"], banker_cards=["7H", "TC"])
    game.when(propose(45, Outcome(result=rules.Result(baccarat=short)))).then(
        no(table.REFUSAL_BAD_RESULT, 45)
    )
    game.given(propose(), approve())
    game.when(propose(46, VOID)).then(no(table.REFUSAL_CORRECTION_PENDING, 46))
    game.given(confirmed(), posted())
    game.when(propose(47)).then(no(table.REFUSAL_NOTHING_TO_CORRECT, 47))
    game.when(propose(48, VOID)).then(proposed("correction-2", VOID, 2))


def test_totals_that_a_proposal_tells_are_worked_out_anew() -> None:
    told = Outcome()
    told.CopyFrom(RIGHT)
    told.result.baccarat.player_total = 9
    told.result.baccarat.winner = rules.BACCARAT_WINNER_PLAYER
    over().when(propose(outcome=told)).then(proposed())


def test_another_result_of_blackjack_is_refused_and_a_void_is_not() -> None:
    of = spec()
    of.rule_set.CopyFrom(catalogue.blackjack())
    limit = {"min_minor": 100, "max_minor": 1_000, "step_minor": 2}
    del of.limits[:]
    of.limits.extend(spec_pb2.BetLimit(bet=one.bet, **limit) for one in of.rule_set.bets)
    game = Deciding(CORE).given(open_table(of=of), shoe_opened(), shoe_started())
    assert game.state.tables[T].shoe_ready
    game.given(open_round(), close_betting())
    result = rules.Result(blackjack=rules.BlackjackResult(dealer_cards=["9S", "9D"]))
    game.given(rules.RoundResolved(table_id=T, round_id=R1, result=result), paid())
    game.when(propose(50, Outcome(result=result))).then(no(table.REFUSAL_NOT_CORRECTABLE, 50))
    game.when(propose(51, VOID)).then(proposed(outcome=VOID))


def test_approvals_are_refused_in_order() -> None:
    game = over()
    game.when(approve(60)).then(rejected(table.REFUSAL_UNKNOWN_CORRECTION, 60))
    game.given(propose())
    for number, name in ((61, "correction-2"), (62, "correction-01"), (63, "1"), (64, "")):
        game.when(approve(number, name)).then(rejected(table.REFUSAL_UNKNOWN_CORRECTION, number))
    game.when(approve(65, actor=DANA)).then(rejected(table.REFUSAL_SAME_PERSON, 65))
    game.given(propose(66, VOID, actor=ALEX), approve())
    game.when(approve(67, actor=DANA)).then(rejected(table.REFUSAL_ALREADY_APPROVED, 67))
    game.when(approve(68, "correction-2")).then(rejected(table.REFUSAL_CORRECTION_PENDING, 68))
    game.given(confirmed())
    game.when(approve(69, "correction-2")).then(rejected(table.REFUSAL_DRY_RUN_STALE, 69))
    game.given(posted())
    game.when(approve(70, C1)).then(rejected(table.REFUSAL_CORRECTION_OVER, 70))
    game.when(approve(71, "correction-2")).then(rejected(table.REFUSAL_DRY_RUN_STALE, 71))


def test_a_proposal_waits_for_a_day() -> None:
    game = over().given(propose(at_us=DAY_US))
    game.when(approve(80, actor=DANA, at_us=2 * DAY_US)).then(
        rejected_at(table.REFUSAL_SAME_PERSON, 80, 2 * DAY_US)
    )
    late = 2 * DAY_US + 2_000_000
    game.when(approve(81, at_us=late)).then(rejected_at(table.REFUSAL_CORRECTION_OVER, 81, late))
    game.when(propose(82, VOID, at_us=late)).then(proposed("correction-2", VOID))
    assert list(game.state.corrections.open) == ["correction-2"]


def rejected_at(refusal: table.Refusal.ValueType, number: int, at_us: int) -> table.OrderRejected:
    return table.OrderRejected(request_id=request_id(number, at_us), refusal=refusal)


def test_orders_are_said_once() -> None:
    game = over().given(propose())
    game.when(propose()).then_only(log.RequestRepeated)
    changed = propose(outcome=VOID)
    game.when(changed).then(no(table.REFUSAL_REQUEST_ID_REUSED, 30))
    game.given(approve())
    game.when(approve()).then_only(log.RequestRepeated)


@pytest.mark.parametrize(
    ("told", "end"),
    [
        (settlement.CorrectionRejected(correction_id=C1), corrections.CORRECTION_END_REJECTED),
        (audit.FactsRefuted(correction_id=C1), corrections.CORRECTION_END_REFUTED),
    ],
)
def test_a_correction_that_cannot_be_ends_without_effect(
    told: Any, end: corrections.CorrectionEnd.ValueType
) -> None:
    game = over().given(propose(), approve())
    game.when(by(told, partner="")).then_only(corrections.CorrectionClosed)
    closed = game.answers[0]
    assert isinstance(closed, corrections.CorrectionClosed)
    assert closed.end == end
    assert not game.state.corrections.rounds
    game.when(propose(90)).then(proposed("correction-2"))


def test_nothing_goes_on_before_its_approval() -> None:
    game = over().given(propose())
    game.when(confirmed()).then()
    game.when(posted()).then()
    game.given(approve())
    game.when(posted()).then()
    game.when(confirmed()).then(corrected())
    game.when(confirmed()).then()


def test_no_more_are_open_or_under_way_than_there_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paid_rounds, "MAX_OPEN", 3)
    monkeypatch.setattr(paid_rounds, "MAX_UNDER_WAY", 1)
    game = over().given(
        open_round(100),
        close_betting(101, R2),
        resolved(R2),
        paid(R2),
        propose(),
        propose(110, VOID),
    )
    game.when(propose(111, RIGHT, R2)).then(proposed("correction-3", round_id=R2))
    game.when(propose(112, VOID, R2)).then(no(table.REFUSAL_TOO_MANY_CORRECTIONS, 112, R2))
    game.given(approve(113))
    game.when(approve(114, "correction-3")).then(rejected(table.REFUSAL_TOO_MANY_CORRECTIONS, 114))


def test_the_result_that_was_confirmed_first_stays_as_it_is() -> None:
    game = betting().given(close_betting())
    game.when(resolved()).then(accepted())
    assert RIGHT.result != RESULT
    game.given(paid(), propose(), approve(), confirmed(), posted())
    assert game.state.corrections.rounds[R1].version == 1
    assert game.state.corrections.rounds[R1].outcome == RIGHT
