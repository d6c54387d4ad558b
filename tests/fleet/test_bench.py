"""`sabot bench`: that it measures, and that what it compares with does the job. No figure is
judged: a test machine has other things to do."""

from __future__ import annotations

import json
import re
from pathlib import Path

import grpc
import pytest
import structlog
from typer.testing import CliRunner

from sabot.partner.v1 import partner_service_pb2 as partners
from services.cli.bench import CALLED, IN_FLIGHT, OTHERS, run_bench
from services.cli.bench_echo import ANSWER
from services.cli.bench_load import ACCOUNTS, DEPOSIT_MINOR, PARTNER, TABLE, bets_request, quantile
from services.cli.bench_sql import MAX_BETS, Book, Refusal
from services.cli.main import app

ROUND = f"{TABLE}-1"


def test_everything_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_bench(as_json=True, seconds=0.3, folder=tmp_path) == 0
    told = json.loads(capsys.readouterr().out)
    assert set(told) == {*CALLED, *OTHERS, "ratios"}
    for name in CALLED:
        assert set(told[name]) == {str(count) for count in IN_FLIGHT}
        for figure in told[name].values():
            assert set(figure) == {"per_s", "p50_ms", "p99_ms"}
            assert figure["per_s"] > 0
            assert 0 < figure["p50_ms"] <= figure["p99_ms"]
    assert told["log_only_per_s"] > 0
    assert told["recovery_events_per_s"] > 0
    assert told["peak_rss_mib"] > 10
    assert told["seamless_per_s"] > 0
    games = {
        "baccarat", "blackjack", "roulette", "sicbo", "dragon_tiger", "football_studio"
    }  # fmt: skip
    for name in ("settled_bets_per_s", "core_rounds_per_s"):
        assert set(told[name]) == games
        assert min(told[name].values()) > 0
    assert told["live_odds_ms"] > 0
    assert set(told["settle_seconds"]) == {"20", "200"}
    assert min(told["settle_seconds"].values()) > 0
    assert told["other_table_p99_ms"] > 0
    assert told["other_table_p99_ms_voided"] > 0
    assert set(told["redecide_events_per_s"]) == {"1", "2"}
    assert min(told["redecide_events_per_s"].values()) > 0
    assert told["verify_export_vs_hash"] > 1
    assert 0 < told["capsule_seconds"] < 60
    assert told["replay_rss_mib"] > 10
    assert set(told["ratios"]) == {"place_bets/echo", "place_bets/sql"}
    assert not list(tmp_path.iterdir()), "what was measured on is removed again"


def test_what_cannot_be_measured_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_bench(as_json=True, only=["echo", "luck"]) == 2
    assert "luck cannot be measured" in capsys.readouterr().err


def test_what_bets_cost_is_measured_and_is_what_the_guide_says(tmp_path: Path) -> None:
    room, bets_a_day, bets_a_round = 1 << 30, 1_000_000, 10
    plan = ("--bets-a-day", str(bets_a_day), "--bets-a-round", str(bets_a_round), "--room", "1")
    folder = ("--folder", str(tmp_path / "capacity"))
    logging_before = structlog.get_config()["logger_factory"]
    done = CliRunner().invoke(app, ["capacity", "--quick", "--json", *plan, *folder])
    assert done.exit_code == 0, done.output
    assert structlog.get_config()["logger_factory"] is logging_before, "others log here as well"
    told = json.loads(done.output)
    a_round, a_bet = told["log"]["a_round"], told["log"]["a_bet"]
    assert told["bytes_a_day"] == pytest.approx(bets_a_day * (a_bet + a_round / bets_a_round))
    assert told["days"] == pytest.approx(room / told["bytes_a_day"])
    guide = (Path(__file__).parents[2] / "docs/capacity.md").read_text()
    for what, found in (
        ("log, a bet that comes alone", a_bet),
        ("log, an account and its first deposit", told["log_an_account"]),
        ("the server's folder", told["disk"]),
    ):
        said = re.search(rf"^\| {what} \| ([0-9.,]+)", guide, re.MULTILINE)
        assert said is not None, what
        assert found == pytest.approx(float(said[1].replace(",", "")), rel=0.25), what
    assert 0 < told["log_together_a_bet"] < a_bet
    assert told["database"]["a_bet"] > 0
    assert list(told["memory_mib"]) == ["fleet"]
    assert not list(tmp_path.iterdir()), "what was measured on is removed again"


def test_quantiles() -> None:
    hundred = [float(number) for number in range(100, 0, -1)]
    assert quantile(hundred, 0.50) == 50
    assert quantile(hundred, 0.99) == 99
    assert quantile([7.0], 0.99) == 7
    assert quantile([], 0.5) == 0


def test_the_echo_answers_with_as_many_bytes_as_place_bets(tmp_path: Path) -> None:
    book = Book(tmp_path / "sql.db")
    answer = book.place(PARTNER, request(0))
    book.close()
    assert abs(len(answer) - len(ANSWER)) <= 8


def request(number: int) -> partners.PlaceBetsRequest:
    return partners.PlaceBetsRequest.FromString(bets_request(number, ROUND))


class TestBaseline:
    @pytest.fixture
    def book(self, tmp_path: Path) -> Book:
        return Book(tmp_path / "sql.db")

    def test_a_bet_reserves_its_stake_and_the_journal_balances(self, book: Book) -> None:
        asked = request(1)
        told = partners.PlaceBetsResponse.FromString(book.place(PARTNER, asked))
        assert [bet.bet for bet in told.bets] == [bet.bet for bet in asked.bets]
        assert book.money(PARTNER, asked.account_id) == (DEPOSIT_MINOR - 100, 100)
        assert book.total_minor() == 0

    def test_a_repeat_gets_the_first_outcome(self, book: Book) -> None:
        asked = request(1)
        first = partners.PlaceBetsResponse.FromString(book.place(PARTNER, asked))
        asked.client_send_time.GetCurrentTime()  # evidence, no part of what is asked
        again = partners.PlaceBetsResponse.FromString(book.place(PARTNER, asked))
        assert again.replayed
        assert list(again.bets) == list(first.bets)
        assert book.money(PARTNER, asked.account_id)[1] == 100

    def test_a_repeat_with_another_body_is_refused(self, book: Book) -> None:
        asked = request(1)
        book.place(PARTNER, asked)
        asked.bets[0].stake.minor_units += 20
        refused(book, asked, "REQUEST_ID_REUSED")

    def test_limits_sides_accounts_rounds_and_funds_are_checked(self, book: Book) -> None:
        book.place(PARTNER, request(0))  # on Banker

        def changed(reason: str, **changes: str | int) -> None:
            asked = request(0)
            for name, value in changes.items():
                if name == "minor_units":
                    asked.bets[0].stake.minor_units = int(value)
                elif name == "currency_code":
                    asked.bets[0].stake.currency_code = str(value)
                elif name == "bet":
                    asked.bets[0].bet = str(value)
                else:
                    setattr(asked, name, value)
            refused(book, asked, reason)

        changed("OPPOSITE_SIDES", bet="player")
        changed("UNKNOWN_BET", bet="dragon")
        changed("STAKE_LIMIT", minor_units=101)
        changed("STAKE_LIMIT", minor_units=10**10)
        changed("CURRENCY_MISMATCH", currency_code="USD")
        changed("ROUND_NOT_FOUND", round_id="elsewhere-1")
        changed("ACCOUNT_NOT_FOUND", account_id="nobody")

    def test_a_refused_bet_leaves_nothing(self, book: Book) -> None:
        asked = request(0)
        asked.account_id = "nobody"
        refused(book, asked, "ACCOUNT_NOT_FOUND")
        refused(book, asked, "ACCOUNT_NOT_FOUND")  # not even its request id
        assert book.total_minor() == 0

    def test_an_account_has_so_many_bets_in_a_round(self, book: Book) -> None:
        for turn in range(MAX_BETS):
            book.place(PARTNER, request(turn * ACCOUNTS))
        refused(book, request(0), "TOO_MANY_BETS")


def refused(book: Book, asked: partners.PlaceBetsRequest, reason: str) -> None:
    with pytest.raises(Refusal) as refusal:
        book.place(PARTNER, asked)
    assert str(refusal.value) == reason
    assert refusal.value.code is not grpc.StatusCode.OK
