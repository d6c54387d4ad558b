"""Rounds as the console replays them, and what it tallies, over a recorded log of all games."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from sabot.rules.v1 import events_pb2 as rules
from sabot.settlement.v1 import events_pb2 as settlements
from sabot.table.v1 import events_pb2 as tables
from sabot.wallet.v1 import events_pb2 as wallets
from services.cli.playthrough import Playthrough, cards_of, playthrough_from
from services.cli.skim import SkimmedEntry
from services.console.history import MARK_EVERY
from services.console.history import History as Followed
from services.console.replayed import PAID, RETURNED, picture_at
from services.events import event_types
from services.games.catalogue import PUBLISHED
from services.kernel.event import Event
from services.kernel.recovery import read_message
from services.odds.tally import returns_of
from tests.histories.history import HERE, load

RECORDED = HERE / "0002-all-games.jsonl.gz"
FLOOR = HERE / "0003-floor-blackjack.jsonl.gz"
GAMES = {RECORDED: 8, FLOOR: 2}
"""Rounds looked at: one or more of each game; dealt by hand at blackjack, one that was voided."""


@cache
def followed(path: Path = RECORDED) -> tuple[list[Event], Followed]:
    """Every event, and what the console keeps of them."""
    recorded, types = load(path), event_types()
    history = Followed(recorded.cell, types, {})
    reader = history._reader
    events: list[Event] = []
    for message in recorded.messages:
        reader.times = ()
        read = read_message(reader, message)
        entry = SkimmedEntry(read, message.payload, reader.times, reader.state.behaviour)
        entry.decode(types)
        events += read.events
        history.take(entry)
    return events, history


@cache
def some_rounds(path: Path = RECORDED) -> dict[str, Playthrough]:
    """A round of each table that is over, and all that were voided."""
    events, history = followed(path)
    chosen: dict[str, str] = {}
    for note in history.rounds.values():
        if note.last:
            chosen[f"{note.table_id} {note.voided}"] = note.round_id
    return {one: playthrough_from(events, one, {}, {}) for one in chosen.values()}


@pytest.mark.parametrize("path", GAMES)
def test_at_its_end_a_replayed_round_is_what_was_paid(path: Path) -> None:
    assert len(some_rounds(path)) >= GAMES[path]
    for round_id, found in some_rounds(path).items():
        shown = [one.event for one in found.shown]
        picture = picture_at(shown, len(shown) - 1)
        bodies = [event.body for event in shown]
        paid = sum(b.payout_minor for b in bodies if isinstance(b, wallets.PayoutPosted))
        voided = any(isinstance(body, tables.RoundVoided) for body in bodies)
        assert picture.state == (RETURNED if voided else PAID), round_id
        assert picture.payouts_minor == paid, round_id
        settled = [b for b in bodies if isinstance(b, settlements.BetsSettled)]
        stakes = sum(bet.stake_minor for body in settled for bet in body.bets)
        assert picture.stakes_minor == stakes, round_id
        results = [b for b in bodies if isinstance(b, rules.RoundResolved)]
        if results and not voided:
            of_result = Counter(cards_of(results[-1]))
            assert Counter(one.card for one in picture.cards if one.card) == of_result, round_id


@pytest.mark.parametrize("path", GAMES)
def test_before_its_events_a_replayed_round_is_empty_and_only_grows(path: Path) -> None:
    for found in some_rounds(path).values():
        shown = [one.event for one in found.shown]
        first = picture_at(shown, 0)
        assert (first.cards, first.tosses, first.bets) == ([], [], {})
        seen = [len(picture_at(shown, index).bets) for index in range(0, len(shown), 7)]
        assert seen == sorted(seen)


@pytest.mark.parametrize("path", GAMES)
def test_the_index_holds_every_round_from_what_opened_it_to_its_end(path: Path) -> None:
    events, history = followed(path)
    opened = {
        event.body.round_id: event.cause.sequence
        for event in events
        if isinstance(event.body, tables.RoundOpened) and event.cause is not None
    }
    assert {note.round_id: note.first for note in history.rounds.values()} == opened
    ends = {
        event.body.round_id: event.position.sequence
        for event in events
        if isinstance(event.body, tables.RoundClosed)
    }
    assert {note.round_id: note.last for note in history.rounds.values() if note.last} == ends


def test_tallies_are_the_settlements_and_each_round_is_one_sample() -> None:
    events, history = followed()
    bets: Counter[tuple[bytes, str]] = Counter()
    rounds: dict[tuple[bytes, str], set[str]] = {}
    for event in events:
        if isinstance(event.body, settlements.BetsSettled):
            for bet in event.body.bets:
                name = f"{bet.bet}_{bet.position}" if bet.bet == "total" else bet.bet
                bets[event.body.rule_set_hash, name] += 1
                rounds.setdefault((event.body.rule_set_hash, name), set()).add(event.body.round_id)
    told = {
        (digest, name): tally
        for digest, by_bet in history.tallies.tallies.items()
        for name, tally in by_bet.items()
    }
    assert {key: tally.bets for key, tally in told.items()} == dict(bets)
    assert {key: tally.samples for key, tally in told.items()} == {
        key: len(found) for key, found in rounds.items()
    }
    for (digest, name), tally in told.items():
        rule_set = history.tallies.rule_sets[digest]
        kind = "total" if name.startswith("total_") else name
        offer = next(one for one in rule_set.bets if one.bet == kind)
        assert tally.fates.keys() <= returns_of(rule_set, offer).keys(), name


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_every_bet_has_the_returns_of_its_fates(name: tuple[str, int]) -> None:
    rule_set = PUBLISHED[name].default
    for offer in rule_set.bets:
        found = returns_of(rule_set, offer)
        assert found["lost"] == 0
        assert max(found.values()) > 1, offer.bet


def test_from_a_mark_a_round_is_read_as_from_the_beginning() -> None:
    """Positions, balances before and after, and the rules that governed it."""
    events, history = followed()
    assert len(history.kept.marks) >= 3
    for round_id, whole in some_rounds().items():
        note = history.rounds[round_id]
        mark = history.mark_before(note.first)
        assert mark is not None
        behind = [event for event in events if event.position.sequence > mark.sequence]
        found = playthrough_from(behind, round_id, mark.ledger, history.opened_at(mark))
        assert found.shown == whole.shown
        assert found.governed_by == whole.governed_by
    used = {id(history.mark_before(note.first)) for note in history.rounds.values()}
    assert len(used) >= 3


def test_a_round_that_is_not_there_has_hardly_any_of_the_log_read() -> None:
    """Else whoever may look could keep a console busy by addresses of rounds that are none."""
    _, history = followed()
    for note in history.rounds.values():
        assert history.mark_of(note.round_id) == history.mark_before(note.first)
    ahead = history.mark_of("nowhere-1")
    assert ahead is not None
    assert 0 < history.sequence - ahead.sequence <= 2 * MARK_EVERY


def test_a_round_that_was_left_out_is_looked_for_in_the_whole_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("services.console.history.MOST_ROUNDS", 3)
    followed.cache_clear()
    try:
        _, history = followed()
    finally:
        followed.cache_clear()
    assert len(history.rounds) == 3
    assert history.mark_of("nowhere-1") is None
