"""The audit's watch over returns: a bet that falls otherwise than its rules reckon is found, one
that falls as they do is not, and a start goes on where the last one ended.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path

from google.protobuf.message import Message

from sabot.settlement.v1 import events_pb2 as settlement
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import spec_pb2
from services.audit.returns import LOOKS_AT_ONCE, Returns
from services.games.catalogue import baccarat
from services.kernel.event import Event, Position
from services.kernel.telemetry import Metrics

RULES = baccarat()
LABELS = {"rules": f"{RULES.rule_set_id}@{RULES.version}", "bet": "player"}
FATES = (settlement.OUTCOME_WON, settlement.OUTCOME_LOST, settlement.OUTCOME_PUSHED)
FAIR, RIGGED = (0.446247, 0.458597, 0.095156), (0.40, 0.50, 0.10)

Entries = list[tuple[int, bytes, list[Event]]]


def event(body: Message, sequence: int) -> Event:
    return Event(Position(1, sequence, 0), "settlement", False, body, None, "", "", 0, 1)


def log(rounds: int, chances: tuple[float, ...], first: int = 2) -> Entries:
    """A table of baccarat, and rounds with a bet on Player by two accounts each: one sample."""
    chance = random.Random(first)
    entries: Entries = []
    if first == 2:
        opened = table.TableOpened(spec=spec_pb2.TableSpec(table_id="t1", rule_set=RULES))
        entries.append((1, b"\1", [event(opened, 1)]))
    for number, fate in enumerate(chance.choices(FATES, chances, k=rounds)):
        back = {FATES[0]: 200, FATES[1]: 0, FATES[2]: 100}[fate]
        bet = settlement.SettledBet(
            bet_id="b", bet="player", stake_minor=100, outcome=fate, payout_minor=back
        )
        sequence = first + number
        bodies: list[Message] = [
            settlement.BetsSettled(
                account_id=account, round_id=f"t1-{sequence}", rule_set_hash=RULES.hash, bets=[bet]
            )
            for account in ("anna", "ben")
        ]
        bodies.append(settlement.RoundSettled(round_id=f"t1-{sequence}"))
        entries.append(
            (sequence, sequence.to_bytes(4, "big"), [event(one, sequence) for one in bodies])
        )
    return entries


def told(returns: Returns) -> tuple[float | None, float | None, float | None]:
    """Deviation and whether it is outside, after enough looks."""
    metrics = Metrics()
    measure = returns.measure(metrics)
    for now in range(1 + 1 // LOOKS_AT_ONCE):
        measure(float(now))
    value = metrics.registry.get_sample_value
    return (
        value("sabot_return_deviation", LABELS),
        value("sabot_return_outside", LABELS),
        value("sabot_return_deviation", LABELS | {"bet": "banker"}),
    )


def fed(path: Path, entries: Entries) -> Returns:
    returns = Returns(path)
    for one in entries:
        returns.feed(*one)
    return returns


async def caught_up(path: Path, entries: Entries) -> tuple[Returns, int]:
    """A start on a log, and how many entries it read."""
    read = 0

    async def reader(after: int) -> AsyncIterator[tuple[int, bytes, list[Event]]]:
        nonlocal read
        for one in entries:
            if one[0] > after:
                read += 1
                yield one

    returns = Returns(path)
    await returns.catch_up(reader)
    return returns, read


def test_a_fair_bet_is_within_its_limits_and_a_rigged_one_is_not(tmp_path: Path) -> None:
    deviation, outside, other = told(fed(tmp_path / "a", log(5000, FAIR)))
    assert deviation is not None
    assert abs(deviation) < 0.05
    assert (outside, other) == (0, None)
    deviation, outside, _ = told(fed(tmp_path / "b", log(5000, RIGGED)))
    assert deviation is not None
    assert -0.15 < deviation < -0.05
    assert outside == 1


async def test_a_start_goes_on_and_another_log_is_counted_anew(tmp_path: Path) -> None:
    path, entries = tmp_path / "returns.json", log(3000, FAIR)
    fed(path, entries).close()
    more = log(500, FAIR, first=len(entries) + 1)
    returns, read = await caught_up(path, entries + more)
    assert read == len(more) + 1, "the last entry that it knew, to see that this is its log"
    assert told(returns) == told(fed(tmp_path / "whole", entries + more))

    other = [(sequence, b"another" + head, events) for sequence, head, events in log(3000, RIGGED)]
    returns, _ = await caught_up(path, other)
    assert told(returns) == told(fed(tmp_path / "other", other))
    path.write_text("{")
    returns, _ = await caught_up(path, other)
    assert told(returns) == told(fed(tmp_path / "other-again", other))


async def test_a_file_of_another_log_leaves_nothing_due(tmp_path: Path) -> None:
    path = tmp_path / "returns.json"
    fed(path, log(50, FAIR)).close()
    returns, _ = await caught_up(path, log(0, FAIR))
    assert told(returns) == (None, None, None)


def test_a_fate_that_the_rules_do_not_know_is_outside(tmp_path: Path) -> None:
    entries = log(50, FAIR)
    settled = entries[-1][2][0].body
    assert isinstance(settled, settlement.BetsSettled)
    for place, (line, outcome) in enumerate(
        (("by_13", settlement.OUTCOME_WON), ("", settlement.OUTCOME_VOIDED))
    ):
        settled.bets[0].line, settled.bets[0].outcome = line, outcome
        assert told(fed(tmp_path / f"returns-{place}.json", entries)) == (None, 1, None)
