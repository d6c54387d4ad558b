"""What the audit contests, as pages show it: wherever somebody looks, not only where they look for
it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from sabot.audit.v1 import contest_events_pb2 as audits
from sabot.settlement.v1 import events_pb2 as settlements
from services.console.contests import Contest
from services.console.web import Visit

MOST_SHOWN = 20
"""Accounts in the alarm itself; it says how many more there are."""
LOOK_EVERY_S = 0.25


def contests_shown(visit: Visit, round_id: str = "") -> dict[str, Any]:
    """The accounts whose settlement is still to be repaired; with a round all of its contests, and
    which of them are open."""
    contests = visit.desk.archive.history.contests
    found = contests.of_round(round_id) if round_id else contests.open()
    shown = [_shown(one, is_open=contests.is_open(one)) for one in found[:MOST_SHOWN]]
    # Whose they are is told where a round is read, which the audit notes, and not on every page.
    return {
        "shown": shown,
        "more": max(0, len(found) - MOST_SHOWN),
        "accounts": bool(round_id),
    }


def _shown(one: Contest, *, is_open: bool) -> dict[str, Any]:
    told = one.told
    return {
        "round_id": told.round_id,
        "partner_id": told.partner_id,
        "account_id": told.account_id,
        "position": str(one.answer),
        "sequence": one.answer.sequence,
        "currency": told.currency_code,
        "correction_id": told.correction_id,
        "time_us": one.time_us,
        "open": is_open,
        "bets": [_bet(bet) for bet in told.bets],
    }


def _bet(bet: audits.ContestedBet) -> dict[str, Any]:
    either = bet.expected if bet.HasField("expected") else bet.recorded
    return {
        "bet_id": bet.bet_id,
        "bet": either.bet,
        "position": either.position,
        "expected": _came_to(bet.expected) if bet.HasField("expected") else None,
        "recorded": _came_to(bet.recorded) if bet.HasField("recorded") else None,
    }


def _came_to(bet: settlements.SettledBet) -> tuple[str, int]:
    return settlements.Outcome.Name(bet.outcome), bet.payout_minor


def contests_by_position(visit: Visit, round_id: str) -> dict[str, list[dict[str, Any]]]:
    """Of a round, by where the wrong answer stands."""
    found: dict[str, list[dict[str, Any]]] = {}
    contests = visit.desk.archive.history.contests
    for one in contests.of_round(round_id):
        shown = _shown(one, is_open=contests.is_open(one))
        found.setdefault(shown["position"], []).append(shown)
    return found


async def follow_contests(visit: Visit) -> AsyncIterator[tuple[str, str]]:
    """What is contested, as it changes."""
    contests = visit.desk.archive.history.contests
    version = -1
    while True:
        if contests.version != version:
            version = contests.version
            yield "contests", visit.render("part_contests.html", contested=contests_shown(visit))
        await asyncio.sleep(LOOK_EVERY_S)
