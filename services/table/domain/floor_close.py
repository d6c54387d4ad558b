"""How betting closes at a table on the floor (docs/adr: the order of events around late bets).

There the wheel turns and the cards lie whatever the log says, and a bettor may have seen them. So
order is necessary, but not enough: a bet that an edge took later than the dealer's call was made is
late, whichever stands first in the log. In answer to the close, in this order:

1. `BetsWithdrawn{late}` for each account with late bets, in the order in which accounts came to the
   round;
2. `BetsWithdrawn` for each withdrawal that was noted and made in time, in the order of their
   making; one made later has no effect, nor has one that limits refuse (rule LIM-8): each is asked
   for once;
3. `BettingClosed`;
4. `RoundSuspended`, where an outcome came before the call, or a device told an impossible time.

As many bets go in one step as the behaviour in force at it says, and a withdrawal is never split;
from the first event of the first step on no bet is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from google.protobuf.message import Message

from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import bet_pb2
from sabot.table.v1 import events_pb2 as table
from services.games.steps import step_bets
from services.kernel.event import Answers, Event, Unfinished
from services.table.domain.floor_state import WHOLE_SINCE, FloorRound
from services.table.domain.state import Phase, PlacedBet, Round, TableState, running_round

AHEAD_US = 1_000_000
"""How far a device's clock may be ahead of the edge's, as an edge's may be of the log's."""


def close_by_call(event: Event, running: Round, body: table.CloseBetting) -> Answers:
    """An operator's or a device's call. Where the time that it tells cannot be, betting closes all
    the same; but who was late nobody can tell, so the round stands still for a supervisor."""
    close = table.BettingClose(source=table.SOURCE_OPERATOR)
    if body.told_when_voided:
        close.request_id = body.request_id
    at_floor = running.at_floor
    if at_floor is not None and body.device_time_us:
        if _can_be(at_floor, body.device_time_us, event.edge_us):
            close.cut_off_us = body.device_time_us
        else:
            close.suspends = table.ROUND_REASON_EQUIPMENT
    return _closing_step(event, body.table_id, running, close)


def close_by_timer(event: Event, table_id: str, running: Round) -> Answers:
    """The window has ended: by the order of the log alone (rule ROU-7)."""
    close = table.BettingClose(source=table.SOURCE_TIMER)
    return _closing_step(event, table_id, running, close)


def decide_fault(state: TableState, event: Event, body: floor.FloorFaultFound) -> Answers:
    """Something that the floor told cannot be right: the round stands still. An outcome that came
    while bets were taken is itself the call."""
    running = running_round(state, body.table_id, body.round_id)
    if running is None or running.phase not in (Phase.BETTING, Phase.DEALING):
        return ()
    early = body.fault == floor.FLOOR_FAULT_EARLY_OUTCOME
    at_floor = running.at_floor
    betting = running.phase is Phase.BETTING
    if early and betting and at_floor is not None and at_floor.closing is None:
        close = table.BettingClose(
            source=table.SOURCE_OUTCOME, suspends=table.ROUND_REASON_EARLY_OUTCOME
        )
        if _can_be(at_floor, body.happened_us, event.time_us):
            close.cut_off_us = body.happened_us
        return _closing_step(event, body.table_id, running, close)
    if running.suspended:
        return ()
    return (_suspended(body.table_id, running, _REASONS[body.fault]),)


_REASONS: dict[int, table.RoundReason.ValueType] = {
    floor.FLOOR_FAULT_IMPOSSIBLE_CARD: table.ROUND_REASON_INTEGRITY,
    floor.FLOOR_FAULT_CONTRADICTION: table.ROUND_REASON_EQUIPMENT,
    floor.FLOOR_FAULT_EARLY_OUTCOME: table.ROUND_REASON_EARLY_OUTCOME,
    floor.FLOOR_FAULT_CENSUS: table.ROUND_REASON_INTEGRITY,
    floor.FLOOR_FAULT_CARD_OUT_OF_TURN: table.ROUND_REASON_EARLY_OUTCOME,
}


def go_on_closing(state: TableState, event: Event, body: table.BetsWithdrawn) -> Answers:
    """The next step, unless the round was voided meanwhile: then every stake goes back anyway, and
    whoever made the call is told."""
    running = running_round(state, body.table_id, body.round_id)
    if not body.HasField("close"):
        return ()
    if running is None or running.phase is not Phase.BETTING:
        return _cut_short(body)
    return _closing_step(event, body.table_id, running, body.close)


def _cut_short(body: table.BetsWithdrawn) -> Answers:
    if not body.close.request_id:
        return ()
    return (
        table.OrderRejected(
            request_id=body.close.request_id,
            table_id=body.table_id,
            round_id=body.round_id,
            refusal=table.REFUSAL_ROUND_VOIDED,
        ),
    )


def _closing_step(
    event: Event, table_id: str, running: Round, close: table.BettingClose
) -> Answers:
    """As much of the close as fits one step; see the module."""
    answers: list[Message] = []
    room = step_bets(event.behaviour)
    for one in _returns(table_id, running, close):
        whole = event.behaviour >= WHOLE_SINCE and not one.late
        more = len(one.bets) - room
        if not room or (whole and more > 0 and answers):
            return Unfinished(answers)
        if more > 0 and not whole:
            del one.bets[room:]
        answers.append(one)
        room -= min(room, len(one.bets))
        if more > 0:
            return Unfinished(answers)
    answers.append(
        table.BettingClosed(
            table_id=table_id,
            round_id=running.round_id,
            source=close.source,
            cut_off_us=close.cut_off_us,
        )
    )
    if close.suspends and not running.suspended:
        answers.append(_suspended(table_id, running, close.suspends))
    return answers


def _returns(
    table_id: str, running: Round, close: table.BettingClose
) -> Iterator[table.BetsWithdrawn]:
    """Every bet that is still to be returned as betting closes, account by account."""
    at_floor = running.at_floor
    if at_floor is None:
        return
    cut_off_us = close.cut_off_us
    returned: set[str] = set()
    for (partner, account_id), account in running.accounts.items():
        late = [
            bet_id
            for bet_id in account.live
            if cut_off_us and at_floor.edge_us.get(bet_id, 0) > cut_off_us
        ]
        if late:
            returned.update(late)
            yield _withdrawn(table_id, running, close, (partner, account_id), account.live, late)
    for noted in at_floor.noted:
        if cut_off_us and noted.edge_us > cut_off_us:
            continue
        live = running.accounts[noted.partner, noted.account_id].live
        asked = [one for one in noted.bet_ids if one in live and one not in returned]
        if asked:
            returned.update(asked)
            back = _withdrawn(
                table_id, running, close, (noted.partner, noted.account_id), live, asked
            )
            back.request_id = noted.request_id
            back.late = False
            yield back


def _withdrawn(
    table_id: str,
    running: Round,
    close: table.BettingClose,
    who: tuple[str, str],
    live: dict[str, PlacedBet],
    bet_ids: Sequence[str],
) -> table.BetsWithdrawn:
    partner, account_id = who
    return table.BetsWithdrawn(
        account_id=account_id,
        table_id=table_id,
        round_id=running.round_id,
        bets=[bet_of(bet_id, live[bet_id]) for bet_id in bet_ids],
        partner_id=partner,
        close=close,
        late=True,
    )


def bet_of(bet_id: str, held: PlacedBet) -> bet_pb2.Bet:
    """A booked bet as it is told."""
    return bet_pb2.Bet(
        bet_id=bet_id,
        bet=held.bet,
        stake_minor=held.stake_minor,
        position=held.position,
        announced=held.announced,
    )


def _can_be(at_floor: FloorRound, told_us: int, taken_us: int) -> bool:
    """Whether a device's time lies between the round's opening and the telling of it."""
    return at_floor.opened_us - AHEAD_US <= told_us <= taken_us + AHEAD_US


def _suspended(
    table_id: str, running: Round, reason: table.RoundReason.ValueType
) -> table.RoundSuspended:
    return table.RoundSuspended(table_id=table_id, round_id=running.round_id, reason=reason)
