"""A round as everyone may see it, followed event by event (rule VIS-1). Nothing of accounts,
partners or stakes is in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from sabot.partner.v1 import partner_service_pb2 as partners
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.table.v1 import correction_events_pb2 as corrections
from sabot.table.v1 import events_pb2 as tables
from services.kernel.event import Event
from services.table.correction_rows import round_correction
from services.table.domain.state import Phase, Round, Table
from services.table.outcome_view import OUTCOME_CHANGES, follow_outcome, told_cards
from services.table.roads import mark_road
from services.table.seats_view import SEAT_CHANGES, follow_seats

CHANGES: frozenset[type[Message]] = frozenset(
    (
        tables.RoundOpened,
        tables.BettingClosed,
        tables.RoundSuspended,
        tables.RoundResumed,
        tables.ResultAccepted,
        tables.RoundVoided,
        tables.RoundClosed,
        corrections.ResultCorrected,
        shoes.CardsDealt,
        *OUTCOME_CHANGES,
        *SEAT_CHANGES,
    )
)
"""The events that change what is seen of a round; each names its table and round."""

_STATES = {
    Phase.BETTING: partners.ROUND_STATE_BETTING,
    Phase.DEALING: partners.ROUND_STATE_DEALING,
    Phase.PAYING: partners.ROUND_STATE_PAYING,
    Phase.VOIDED: partners.ROUND_STATE_RETURNING,
}


def timestamp(time_us: int) -> Timestamp:
    """Log time as it goes out."""
    return Timestamp(seconds=time_us // 1_000_000, nanos=time_us % 1_000_000 * 1_000)


def opened(body: tables.RoundOpened, time_us: int) -> partners.Round:
    """A round at its opening."""
    view = partners.Round(
        round_id=body.round_id,
        table_id=body.table_id,
        number=body.number,
        shoe_id=body.shoe_id,
        round_in_shoe=body.round_in_shoe,
        state=partners.ROUND_STATE_BETTING,
        open_time=timestamp(time_us),
    )
    if body.closes_after_ms:
        view.close_time.CopyFrom(timestamp(time_us + body.closes_after_ms * 1000))
    return view


def follow(view: partners.Round, event: Event, ace: int) -> None:
    """Change a view by an event of its round. Doing it twice is doing it once. `ace`: where the ace
    stands by the round's rules, a `sabot.rules.v1.AceRank`."""
    _follow_round(view, event, ace)
    if isinstance(event.body, tables.BettingClosed) and not view.HasField("dealer"):
        del view.seats[:]  # Those that were held; the deal shows who plays.
    follow_outcome(view, event.body)
    follow_seats(view, event.body)


def _follow_round(view: partners.Round, event: Event, ace: int) -> None:
    body = event.body
    match body:
        case tables.BettingClosed():
            _betting_ended(view, event.time_us)
            view.state = partners.ROUND_STATE_DEALING
        case tables.RoundSuspended():
            view.suspended = True
            if view.state == partners.ROUND_STATE_BETTING:
                view.ClearField("close_time")  # the window begins anew when the round goes on
        case tables.RoundResumed():
            view.suspended = False
            if body.closes_after_ms:
                ends_us = event.time_us + body.closes_after_ms * 1000
                view.close_time.CopyFrom(timestamp(ends_us))
        case tables.ResultAccepted():
            view.state = partners.ROUND_STATE_PAYING
            view.result.CopyFrom(body.result)
            mark_road(view, ace)
        case tables.RoundVoided():
            _betting_ended(view, event.time_us)
            view.state = partners.ROUND_STATE_RETURNING
            view.suspended = False
            view.void_reason = body.reason
            view.ClearField("road")
        case tables.RoundClosed():
            paid = body.end == tables.ROUND_END_PAID
            view.state = partners.ROUND_STATE_PAID if paid else partners.ROUND_STATE_RETURNED
        case corrections.ResultCorrected():
            view.correction.CopyFrom(round_correction(event, body))
            mark_road(view, ace)
        case shoes.CardsDealt():
            show_cards(view, told_cards(body))
        case _:
            pass  # Not in CHANGES: it shows nothing new.


def show_time(view: partners.Round, running: Round | None) -> None:
    """When the time of the open turn is over, which the table's core alone knows."""
    if not view.HasField("turn"):
        return
    view.turn.ClearField("due_time")
    turn = running.turn if running is not None and running.round_id == view.round_id else None
    if turn is not None and turn.number == view.turn.turn and turn.due_us is not None:
        view.turn.due_time.CopyFrom(timestamp(turn.due_us))


def laid_out(raw: bytes) -> Sequence[shoes.DealtCard]:
    """The cards of serialised rounds that hold nothing else, joined in the order of the log."""
    joined = partners.Round.FromString(raw).cards
    hidden = {card.index: card for card in joined if not card.card}
    if not hidden:
        return joined
    found: list[shoes.DealtCard] = []
    for card in joined:
        face_down = hidden.get(card.index)
        if card.card and face_down is not None:
            face_down.CopyFrom(card)
        else:
            found.append(card)
    return found


def show_cards(view: partners.Round, cards: Iterable[shoes.DealtCard]) -> None:
    """Lay cards out; a hole card that is turned over takes its own place."""
    shown = {card.index: card for card in view.cards}
    for card in cards:
        lies = shown.get(card.index)
        if lies is None:
            view.cards.append(card)
            shown[card.index] = view.cards[-1]
        elif card.card:
            lies.CopyFrom(card)


def from_state(table: Table, running: Round) -> partners.Round:
    """What the table's core alone knows of its running round: no cards, no time of its opening."""
    view = partners.Round(
        round_id=running.round_id,
        table_id=table.spec.table_id,
        number=running.number,
        shoe_id=running.shoe_id,
        round_in_shoe=table.shoe_rounds,
        state=_STATES[running.phase],
        suspended=running.suspended,
    )
    if running.phase is Phase.BETTING and running.closes_at_us is not None:
        view.close_time.CopyFrom(timestamp(running.closes_at_us))
    return view


def _betting_ended(view: partners.Round, time_us: int) -> None:
    if view.state == partners.ROUND_STATE_BETTING:
        view.close_time.CopyFrom(timestamp(time_us))
