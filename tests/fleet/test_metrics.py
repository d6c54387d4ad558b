"""What a running fleet tells of itself moves with what it does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from prometheus_client import CollectorRegistry

from sabot.partner.v1 import partner_service_pb2 as partner
from services.games.catalogue import baccarat
from services.kernel.telemetry_names import METRICS
from tests.fleet.clients import AGAIN_S, PATIENCE_S, table_spec
from tests.fleet.running import inside

PLACE = {"method": "sabot.partner.v1.PartnerService/PlaceBets"}
RULES = baccarat()
BILL = {"rules": f"{RULES.rule_set_id}@{RULES.version}", "bet": "player"}


def scraped(registry: CollectorRegistry) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for metric in registry.collect()
        for sample in metric.samples
    }


async def until(seen: Callable[[], bool]) -> None:
    """Gauges are set once a second; a bet's return is looked at a little later."""
    async with asyncio.timeout(PATIENCE_S):
        while not seen():  # noqa: ASYNC110 - figures, no event
            await asyncio.sleep(AGAIN_S)


async def test_every_figure_of_a_fleet_moves_with_what_it_does(tmp_path: Path) -> None:
    async with inside(tmp_path / "data") as running:
        registry = running.fleet.host.watch.metrics.registry

        def value(name: str, **labels: str) -> float:
            return scraped(registry).get((name, frozenset(labels.items())), 0.0)

        dealer, north = running.operator(), running.partner("north")
        spec = table_spec("t1", bets=[offer.bet for offer in RULES.bets])
        spec.rule_set.CopyFrom(RULES)
        await dealer.open_table(spec)
        await north.open_account("anna", 100_00)
        before = scraped(registry)
        round_id = await dealer.open_round("t1")
        await north.place("anna", round_id, ("player", 1_00))
        await north.place("anna", round_id, ("no_such_bet", 1_00))
        await dealer.close_betting(round_id)
        await north.round_in("t1", partner.ROUND_STATE_PAID)
        await until(lambda: ("sabot_return_outside", frozenset(BILL.items())) in scraped(registry))
        last = await running.last_sequence()
        await until(lambda: value("sabot_log_entry") >= last)

        # Rate, errors and duration of calls
        assert value("sabot_rpcs_total", code="OK", **PLACE) >= 1
        assert value("sabot_rpc_refusals_total", reason="BET_NOT_OFFERED") == 1
        assert value("sabot_rpc_seconds_count", **PLACE) >= 2
        # Lag and age of every service, and of what it reads
        assert value("sabot_log_lag_entries") < last
        assert 0 <= value("sabot_log_heard_seconds") < PATIENCE_S
        assert abs(value("sabot_clock_offset_seconds")) < PATIENCE_S
        for service in ("table", "limits", "wallet", "shoe", "rules", "settlement"):
            answers = {"service": service, "kind": "answer"}
            # Entries, events and appends of every service that answered, none of them unknown
            assert value("sabot_log_entries_total", **answers) > 0
            entries = value("sabot_log_entries_total", **answers)
            assert value("sabot_log_events_total", **answers) >= entries
            assert value("sabot_append_seconds_count", **answers) > 0
            assert value("sabot_appends_unknown_total", **answers) == 0
            assert value("sabot_answers_waiting_seconds", service=service) < PATIENCE_S
            assert value("sabot_fence_losses_total", service=service) == 0
        assert value("sabot_append_seconds_count", service="table", kind="input") >= 3
        # The log's room, the books, the seals, the returns
        assert value("sabot_log_bytes") > before["sabot_log_bytes", frozenset()]
        assert ("sabot_books_unbalanced", frozenset()) in scraped(registry)
        assert ("sabot_seal_age_seconds", frozenset()) in scraped(registry)
        assert value("sabot_return_outside", **BILL) == 0
        assert value("sabot_return_deviation", **BILL) != 0

        # Of what is declared, the rest tells of partners' own wallets alone.
        names = {name for name, _ in scraped(registry)}
        silent = {name for name in METRICS if not names & {name, f"{name}_total", f"{name}_count"}}
        assert {name for name in silent if not name.startswith("sabot_partner_")} == set()
