"""What everyone may see of a round of blackjack: live, by the projection, and again by either after
the other (VIS-1, VIS-3). The events are those of the rounds in tests/playthroughs."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from google.protobuf.json_format import MessageToDict

from sabot.partner.v1 import partner_service_pb2 as partners
from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.table.v1 import bet_pb2
from sabot.table.v1 import events_pb2 as tables
from sabot.wallet.v1 import events_pb2 as wallets
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
from services.table.seats_view import follow_seats, is_further
from tests.playthroughs.test_blackjack import STORIES, happened
from tests.unit.projecting import url_of

WAIT_S = 60.0
ROUNDS = {name: f"{story.spec.table_id}-1" for name, story in STORIES.items()}


class Told(NamedTuple):
    """The log of all stories."""

    entries: list[ReadEntry]

    def events(self, round_id: str) -> list[Event]:
        """What changes the view of a round, from its opening on."""
        return [
            event
            for entry in self.entries
            for event in entry.events
            if getattr(event.body, "round_id", "") == round_id
            and (type(event.body) in round_view.CHANGES or is_further(event.body))
        ]


@pytest.fixture(scope="module")
def told() -> Told:
    async def main() -> list[ReadEntry]:
        log = MemoryLog(await happened())
        last = (await log.info(wait_s=5.0)).last_sequence
        reader = LogReader(log.cell, event_types())
        return [entry async for some in entries_until(log, reader, last) for entry in some]

    return Told(run_virtual(main()))


def followed(events: list[Event]) -> partners.Round:
    """The view after these events."""
    first = events[0].body
    assert isinstance(first, tables.RoundOpened)
    view = round_view.opened(first, events[0].time_us)
    for event in events[1:]:
        round_view.follow(view, event, 0)
    return view


def after(events: list[Event], turn: int) -> partners.Round:
    """The view as the turn of this number is open."""
    for place, event in enumerate(events):
        called = isinstance(event.body, rules.ActionCalled | rules.InsuranceOffered)
        if called and event.body.turn == turn:  # type: ignore[attr-defined]  # both have one
            return followed(events[: place + 1])
    raise AssertionError(f"there was no turn {turn}")


def hands(seat: partners.Seat) -> list[str]:
    return [f"{' '.join(hand.cards)} = {hand.total}" for hand in seat.hands]


def done(seat: partners.Seat) -> list[tuple[int, int, str, bool]]:
    return [
        (one.turn, one.hand, rules.Action.Name(one.action)[7:].lower(), one.by_system)
        for one in seat.actions
    ]


def test_a_turn_is_shown_with_all_that_is_allowed(told: Told) -> None:
    view = after(told.events("splits-1"), 1)
    assert [seat.seat for seat in view.seats] == [2, 5]
    assert [hands(seat) for seat in view.seats] == [["AS AH = 12"], ["KD TD = 20"]]
    assert list(view.dealer.cards) == ["6C"]
    assert (view.turn.turn, list(view.turn.seats), view.turn.hand) == (1, [2], 1)
    assert list(view.turn.actions) == [1, 2, 3, 4]


def test_a_split_is_shown_once_its_stake_is_on(told: Told) -> None:
    view = after(told.events("splits-1"), 3)
    assert hands(view.seats[0]) == ["AS KH = 21", "AH 5S = 16"]
    assert not view.seats[0].hands[0].blackjack
    assert hands(view.seats[1]) == ["KD 7D = 17", "TD 6H = 16"]
    assert done(view.seats[1]) == [(2, 1, "split", False)]
    assert (list(view.turn.seats), view.turn.hand, list(view.turn.actions)) == ([5], 1, [1, 2])


def test_a_double_is_shown_and_one_that_is_refused_is_not(told: Told) -> None:
    view = followed(told.events("doubles-1"))
    first, second, third = view.seats
    assert first.hands[0].doubled
    assert done(first) == [(1, 1, "double", False)]
    assert done(second) == [(2, 1, "hit", False), (3, 1, "stand", True)]
    assert done(third) == [(4, 1, "stand", False)]
    assert not view.HasField("turn")


def test_an_offer_is_open_for_those_who_have_not_answered(told: Told) -> None:
    events = told.events("naturals-1")
    view = after(events, 1)
    assert list(view.turn.seats) == [1, 3, 7]
    assert view.seats[0].hands[0].blackjack
    assert [(one.bet, one.line) for one in view.seats[0].side_bets] == [
        ("21_plus_3", ""),
        ("perfect_pairs", ""),
    ]
    further = [place for place, event in enumerate(events) if is_further(event.body)]
    assert list(followed(events[: further[0] + 1]).turn.seats) == [3, 7]
    assert list(followed(events[: further[1] + 1]).turn.seats) == [7]
    whole = followed(events)
    assert [done(seat) for seat in whole.seats] == [
        [(1, 0, "insure", False)],
        [(1, 0, "insure", False)],
        [(1, 0, "decline_insurance", False)],
    ]
    assert list(whole.dealer.cards) == ["AD", "KC"]
    assert whole.dealer.blackjack


def test_insurance_that_is_on_is_shown_though_its_time_was_over_before() -> None:
    place: dict[str, Any] = {"table_id": "t1", "round_id": "t1-1"}
    view = partners.Round(state=partners.ROUND_STATE_DEALING)
    extra = bet_pb2.Bet(bet_id="t1-1.3", bet="insurance", position="2", stake_minor=50)
    insured = wallets.StakeReserved(bets=[extra], stage=bet_pb2.STAGE_INSURANCE, **place)
    for body in (
        rules.InsuranceOffered(seats=[1, 2], turn=1, stakes_minor=[50, 50], **place),
        tables.ActionTaken(seat=2, turn=1, action=rules.ACTION_INSURE, extra=extra, **place),
        tables.InsuranceClosed(**place),
        insured,
        rules.ActionCalled(turn=2, seat=1, hand=1, actions=[rules.ACTION_HIT], **place),
        insured,
    ):
        follow_seats(view, body)
    assert [(seat.seat, done(seat)) for seat in view.seats] == [(2, [(1, 0, "insure", False)])]
    assert (view.turn.turn, list(view.turn.seats)) == (2, [1])


def test_vis_3_nobody_sees_the_hole_card_before_it_is_turned_over(told: Told) -> None:
    for name, round_id in ROUNDS.items():
        events = told.events(round_id)
        hole = ""
        for event in events:
            body = event.body
            if isinstance(body, shoes.CardsDealt) and body.cards[-1].hand == rules.HAND_HOLE:
                hole = body.cards[-1].card or hole
        if name == "voided-mid-hand":
            hole = "6C"  # It was never turned over.
        for count in range(1, len(events) + 1):
            shown = json.dumps(MessageToDict(followed(events[:count])))
            turned = any(
                isinstance(one.body, shoes.CardsDealt)
                and one.body.cards[-1].hand == rules.HAND_HOLE
                and one.body.cards[-1].card
                for one in events[:count]
            )
            if hole and not turned:
                assert f'"{hole}"' not in shown, (round_id, count)


def test_vis_1_nothing_of_accounts_and_stakes_is_shown(told: Told) -> None:
    for round_id in ROUNDS.values():
        view = followed(told.events(round_id))
        view.ClearField("open_time")
        view.ClearField("close_time")
        shown = str(view)
        for secret in ("ann", "ben", "cid", "acme", "1000", "2000", "minor"):
            assert secret not in shown


@pytest.mark.parametrize("name", STORIES)
def test_events_that_come_again_change_nothing(told: Told, name: str) -> None:
    """A view from the projection may be ahead of the events that a server missed: whatever tail of
    what it knows comes again, it ends the same."""
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


@pytest.mark.parametrize("restart", [False, True])
async def test_the_projection_shows_the_same(told: Told, tmp_path: Path, restart: bool) -> None:
    """After every entry, also by a projection that begins anew each time."""
    url = url_of(tmp_path, "table")

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
            upto = [one for one in told.events(round_id) if one.position[1] <= entry.sequence]
            view = followed(upto)
            assert list(found.seats) == list(view.seats)
            assert found.dealer == view.dealer
            assert found.turn == view.turn
            assert list(found.cards) == list(view.cards)
            checked += 1
            if restart and checked % 7 == 0:
                await projector.close()
                projector = Projector(TableProjection(), url, log)
                assert await projector.start(wait_s=WAIT_S)
    assert checked > 100
    await projector.close()


async def test_get_request_knows_every_action(told: Told, tmp_path: Path) -> None:
    """Those that were taken, that waited for a stake, and that were refused by table, limits or
    wallet; further stakes are bets like any other."""

    async def log(after_sequence: int) -> AsyncIterator[tuple[int, bytes, list[Event]]]:
        for entry in told.entries:
            if entry.sequence > after_sequence:
                yield entry.sequence, entry.head, entry.events

    url = url_of(tmp_path, "table")
    projector = Projector(TableProjection(), url, log)
    assert await projector.start(wait_s=WAIT_S)
    for entry in told.entries:
        projector.feed(entry.sequence, entry.head, entry.events)
    queries = SqlTableQueries(projector)
    assert await queries.reached(Position(1, told.entries[-1].sequence, 0), WAIT_S)
    outcomes: dict[str, int] = {}
    for entry in told.entries:
        for event in entry.events:
            if isinstance(event.body, tables.Act):
                body = event.body
                found = await queries.request(event.actor, body.round_id, body.request_id)
                assert found is not None
                position, outcome = found
                assert position == event.position
                name = outcome.WhichOneof("outcome") or ""
                outcomes[name] = outcomes.get(name, 0) + 1
    assert outcomes == {
        "action_taken": 8,
        "reserved": 8,
        "action_rejected": 6,
        "declined": 1,
        "refused": 1,
    }
    bets = await queries.bets("acme", None, "doubles-1", 100, None)
    assert sorted((bet.bet, bet.place, bet.stake.minor_units, bet.state) for _, bet in bets) == [
        ("double", "1", 250, partners.BET_STATE_SETTLED),
        ("double", "2", 900, partners.BET_STATE_REFUSED),
        ("double", "3", 2_000, partners.BET_STATE_REFUSED),
        ("main", "1", 1_000, partners.BET_STATE_SETTLED),
        ("main", "2", 900, partners.BET_STATE_SETTLED),
        ("main", "3", 2_000, partners.BET_STATE_SETTLED),
    ]
    voided = await queries.bets("acme", None, "voided-1", 100, None)
    assert {bet.state for _, bet in voided} == {partners.BET_STATE_VOIDED}
    assert {bet.bet for _, bet in voided} == {"main", "perfect_pairs", "insurance", "split"}
    await projector.close()
