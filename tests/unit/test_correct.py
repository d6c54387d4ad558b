"""`sabot correct`: what a round shall have come to, as options and back, and what is printed."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from sabot.rules.v1 import events_pb2 as rules
from sabot.settlement.v1 import settlement_service_pb2 as settlements
from sabot.table.v1 import correction_events_pb2 as events
from sabot.table.v1 import correction_service_pb2 as corrections
from sabot.table.v1 import events_pb2 as tables
from services.cli.correct import (
    REASONS,
    BadOutcome,
    Told,
    correction_line,
    money,
    options_of,
    outcome_of,
    preview_lines,
)
from services.cli.main import app

SAID = [
    (Told(void=True), "--void"),
    (Told(roulette=0), "--roulette 0"),
    (Told(roulette=20), "--roulette 20"),
    (Told(sicbo="1,2,3"), "--sicbo 1,2,3"),
    (Told(baccarat="6S,KD/7H,TC"), "--baccarat 6S,KD/7H,TC"),
    (Told(dragon_tiger="7S/8H"), "--dragon-tiger 7S/8H"),
    (Told(football_studio="7S/8H"), "--football-studio 7S/8H"),
]


@pytest.mark.parametrize(("told", "options"), SAID, ids=[options for _, options in SAID])
def test_an_outcome_is_said_by_options_and_said_back(told: Told, options: str) -> None:
    assert options_of(outcome_of(told)) == options


@pytest.mark.parametrize(
    "told",
    [
        Told(),
        Told(void=True, roulette=1),
        Told(sicbo="1,2,x"),
        Told(baccarat="6S,KD"),
        Told(dragon_tiger="7S,8S/8H"),
        Told(football_studio="7S"),
    ],
)
def test_what_is_not_said_plainly_is_not_understood(told: Told) -> None:
    with pytest.raises(BadOutcome):
        outcome_of(told)


def test_a_blackjack_result_has_no_options() -> None:
    result = rules.Result(blackjack=rules.BlackjackResult())
    assert options_of(events.CorrectedOutcome(result=result)) == ""


def test_amounts_have_their_sign_and_their_currencys_digits() -> None:
    assert [money(minor, "EUR") for minor in (-36_005, 0, 7)] == ["-360.05", "0.00", "+0.07"]
    assert money(-5, "JPY") == "-5"
    assert money(5, "KWD") == "+0.005"


def test_a_dry_run_is_told_account_by_account() -> None:
    dry = settlements.PreviewCorrectionResponse(
        table_id="t1",
        in_force=outcome_of(Told(roulette=17)),
        outcome=outcome_of(Told(roulette=20)),
        version=1,
        dry_run=b"\x01" * 32,
        currency_code="EUR",
        accounts=1,
        payout_delta_minor=-36_000,
        commission_delta_minor=-5,
        differences=[
            settlements.AccountDifference(
                partner_id="north",
                account_id="a",
                payout_delta_minor=-36_000,
                commission_delta_minor=-5,
            )
        ],
    )
    assert list(preview_lines("t1-9", dry)) == [
        "round t1-9 at t1: roulette 17 → roulette 20 (outcome 1)",
        "  north/a -360.00, commission -0.05",
        "1 accounts, payouts -360.00, commission -0.05 EUR",
        f"dry run {'01' * 32}; nothing was changed",
    ]


def test_a_correction_is_told_in_a_line() -> None:
    one = corrections.Correction(
        correction_id="correction-3",
        table_id="t1",
        round_id="t1-9",
        outcome=events.CorrectedOutcome(voided=True),
        reason=tables.ROUND_REASON_DISPUTE,
        reference="INC-7",
        state=corrections.CORRECTION_STATE_REJECTED,
        fault="CORRECTION_FAULT_NOT_PAID",
        proposed_by="operator:sam",
        approved_by="operator:rosa",
    )
    assert correction_line(one) == (
        "correction-3 rejected (not_paid): round t1-9 → void, dispute, INC-7, proposed by "
        "operator:sam, approved by operator:rosa"
    )


def test_a_reason_is_one_of_the_closed_list() -> None:
    assert "misread" in REASONS
    assert "unspecified" not in REASONS
    words = ["correct", "propose", "t1-1", "--void", "--reference", "x", "--reason", "whim"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert "the reasons are" in done.output.replace("\n", " ")
