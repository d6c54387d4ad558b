"""What everyone may see of rounds of blackjack on the floor: where cards and looks come from, and
what was corrected; live and by the projection the same (VIS-1, VIS-3). The events are those of the
rounds in tests/playthroughs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sabot.partner.v1 import partner_service_pb2 as partners
from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as floor
from services.cli.replay import verify
from services.events import event_types
from services.kernel.event import Event, Position
from services.kernel.memory_log import MemoryLog
from services.kernel.projections import Projector
from services.kernel.reader import LogReader, ReadEntry
from services.kernel.recovery import entries_until
from services.simulator.virtual_time import run_virtual
from services.table import round_view
from services.table.projection import TableProjection
from services.table.projection_queries import SqlTableQueries
from services.table.seats_view import is_further
from tests.playthroughs.test_floor_blackjack import STORIES, happened
from tests.unit.test_seats_view import Told, done, followed, hands

DEVICE, MANUAL = shoes.CARD_SOURCE_DEVICE, shoes.CARD_SOURCE_MANUAL
WAIT_S = 60.0
ROUNDS = {name: f"bj-{number}" for number, name in enumerate(STORIES, 1)}


@pytest.fixture(scope="module")
def told() -> Told:
    async def main() -> list[ReadEntry]:
        store, rounds = await happened()
        assert rounds == ROUNDS
        log = MemoryLog(store)
        verified = await verify(log)
        assert verified.right, verified.line()
        last = (await log.info(wait_s=5.0)).last_sequence
        reader = LogReader(log.cell, event_types())
        return [entry async for some in entries_until(log, reader, last) for entry in some]

    return Told(run_virtual(main()))


def events_of(told: Told, name: str) -> list[Event]:
    return told.events(ROUNDS[f"floor-blackjack-{name}"])


def upto(events: list[Event], kind: type) -> partners.Round:
    """The view as the first event of this kind has been seen."""
    for place, event in enumerate(events):
        if isinstance(event.body, kind):
            return followed(events[: place + 1])
    raise AssertionError(f"no {kind.__name__}")


def test_bettors_see_what_was_entered_by_hand(told: Told) -> None:
    view = followed(events_of(told, "looked-at"))
    by_hand = {card.card for card in view.cards if card.source == MANUAL}
    assert by_hand == {"TC", "5D"}
    assert {card.source for card in view.cards} == {MANUAL, DEVICE}
    assert view.hole_look == partners.HoleLook(blackjack=False, source=DEVICE)
    looked = followed(events_of(told, "look-contradicted"))
    assert looked.hole_look == partners.HoleLook(blackjack=False, source=MANUAL)
    assert not followed(events_of(told, "out-of-turn")).HasField("hole_look")


def test_a_corrected_card_changes_its_hand(told: Told) -> None:
    events = events_of(told, "misread-in-a-split-hand")
    before, after = upto(events, floor.CardCorrected), followed(events)
    assert before.corrected
    for view in (before, after):
        assert hands(view.seats[0])[1] == "9C 5S 5H = 19"
    assert before.turn.turn == 4  # It stays open.
    assert done(after.seats[0])[-1] == (4, 2, "stand", False)


def test_a_recalled_turn_is_nobodys() -> None:
    view = partners.Round(state=partners.ROUND_STATE_DEALING)
    at: dict[str, Any] = {"table_id": "t1", "round_id": "t1-1"}

    def follow(*bodies: object) -> None:
        for body in bodies:
            event = Event(Position(1, 1, 0), "rules", False, body, None, "", "", 0, 1)  # type: ignore[arg-type]  # each is a message
            round_view.follow(view, event, 0)

    follow(
        rules.ActionCalled(turn=1, seat=2, hand=1, **at),
        rules.SideBetDecided(seat=2, bet="perfect_pairs", line="mixed", **at),
        rules.DrawRecalled(**at),
    )
    assert view.turn.turn == 1
    follow(
        rules.DrawRecalled(turn=1, **at),
        rules.SideBetDecided(seat=2, bet="perfect_pairs", line="perfect", **at),
    )
    assert not view.HasField("turn")
    assert [(one.bet, one.line) for one in view.seats[0].side_bets] == [
        ("perfect_pairs", "perfect")
    ]


def test_a_card_that_is_not_played_is_not_the_dealers() -> None:
    at: dict[str, Any] = {"table_id": "t1", "round_id": "t1-1"}
    view = partners.Round(state=partners.ROUND_STATE_DEALING)
    cards = [("6D", rules.HAND_DEALER), ("5D", rules.HAND_HOLE), ("7H", rules.HAND_DEALER)]
    bodies = (
        shoes.CardsDealt(
            cards=[
                shoes.DealtCard(index=place, card=card, hand=hand)
                for place, (card, hand) in enumerate(cards)
            ],
            **at,
        ),
        floor.CardCorrected(index=0, card="TD", **at),
        rules.HandsCorrected(
            cards=[
                rules.CardInHand(index=0, hand=rules.HAND_DEALER),
                rules.CardInHand(index=1, hand=rules.HAND_HOLE),
                rules.CardInHand(index=2),
            ],
            **at,
        ),
    )
    for body in bodies:
        round_view.follow(view, Event(Position(1, 1, 0), "", False, body, None, "", "", 0, 1), 0)
    assert list(view.dealer.cards) == ["TD", "5D"]


@pytest.mark.parametrize("name", STORIES)
def test_events_that_come_again_change_nothing(told: Told, name: str) -> None:
    events = told.events(ROUNDS[name])
    for count in range(1, len(events) + 1):
        view = followed(events[:count])
        for back in range(1, count):
            again = partners.Round()
            again.CopyFrom(view)
            for event in events[back:count]:
                round_view.follow(again, event, 0)
            again.state, again.suspended = view.state, view.suspended
            assert again == view, (count, back)


async def test_the_projection_shows_the_same(told: Told, tmp_path: Path) -> None:
    url = f"sqlite+aiosqlite:///{tmp_path / 'table'}.db"
    fed: list[ReadEntry] = []

    async def log(after_sequence: int) -> AsyncIterator[tuple[int, bytes, list[Event]]]:
        for entry in fed:
            if entry.sequence > after_sequence:
                yield entry.sequence, entry.head, entry.events

    projector = Projector(TableProjection(), url, log)
    assert await projector.start(wait_s=WAIT_S)
    checked = 0
    for entry in told.entries:
        fed.append(entry)
        projector.feed(entry.sequence, entry.head, entry.events)
        asked = {
            getattr(event.body, "round_id", "")
            for event in entry.events
            if type(event.body) in round_view.CHANGES or is_further(event.body)
        }
        for round_id in sorted(asked - {""}):
            queries = SqlTableQueries(projector)
            assert await queries.reached(Position(1, entry.sequence, 0), WAIT_S)
            found = await queries.round(round_id)
            assert found is not None
            view = followed(
                [one for one in told.events(round_id) if one.position[1] <= entry.sequence]
            )
            for name in ("dealer", "turn", "hole_look", "corrected"):
                assert getattr(found, name) == getattr(view, name), (round_id, name)
            assert list(found.seats) == list(view.seats)
            assert list(found.cards) == list(view.cards)
            checked += 1
    assert checked > 100
    await projector.close()
