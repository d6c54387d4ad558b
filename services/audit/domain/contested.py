"""Settlements that audit decided again and came to something else: kept by where the wrong answer
stands and whose it is, so that each is contested once, whoever tells it and however often."""

from __future__ import annotations

from google.protobuf.message import Message

from sabot.audit.v1 import contest_events_pb2 as contests
from sabot.log.v1 import events_pb2 as log

MOST_KEPT = 10_000
"""A build that settles wrongly is stopped long before; the oldest are forgotten, and may be told a
second time."""


def key_of(body: contests.ContestSettlement) -> str:
    """What makes a contest that one and no other."""
    at = body.answer
    where = f"{at.segment}/{at.sequence}/{at.index}"
    return f"{where} {body.round_id} {body.partner_id} {body.account_id}"


def contest(kept: dict[str, int], body: contests.ContestSettlement) -> Message:
    """The answer to a contest.

    Order of reasons to ignore: one that names no bet; one that is known."""
    if not body.bets:
        return log.InputIgnored(reason=log.IGNORED_REASON_IMPOSSIBLE)
    if key_of(body) in kept:
        return log.InputIgnored(reason=log.IGNORED_REASON_ALREADY_DONE)
    return contests.SettlementContested(
        contest=body, table_id=body.table_id, round_id=body.round_id
    )


def keep(kept: dict[str, int], body: contests.SettlementContested, time_us: int) -> None:
    """Part of evolve. `time_us`: log time."""
    kept[key_of(body.contest)] = time_us
    while len(kept) > MOST_KEPT:
        del kept[next(iter(kept))]
