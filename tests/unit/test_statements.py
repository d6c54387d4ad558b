"""Statements of capsules: what an account owes is part of them."""

from __future__ import annotations

from typing import Any

from sabot.wallet.v1 import correction_events_pb2 as corrections
from services.cli.statements import advanced, ledger_of, statements
from services.wallet.domain.core import evolve
from services.wallet.domain.state import WalletState
from tests.unit.ledger_facts import some_money


def test_what_an_account_owes_is_told() -> None:
    made = some_money()
    at: dict[str, Any] = {"partner_id": "north", "account_id": "a", "currency_code": "EUR"}
    taken = corrections.CorrectionPosted(
        **at, table_id="t1", round_id="t1-1", payout_delta_minor=-10_000, receivable_minor=675
    )
    event = made.log.add("wallet", taken, made.log.events[-1])
    events = made.log.events
    state = WalletState()
    for one in events:
        if one.service == "wallet":
            evolve(state, one)
    told = ledger_of(state)
    assert told["receivable:north:a:EUR"] == -675
    assert "receivable:south:a:EUR" not in told
    assert {name: minor for name, minor in advanced({}, events).items() if minor} == {
        name: minor for name, minor in told.items() if minor
    }
    before = advanced({}, events[:-1])
    (statement,) = statements(before, [event], [("north", "a")])
    assert statement.after["receivable:north:a:EUR"] == -675
    assert [line["minor"] for line in statement.lines] == [-9_325, -675]
