"""`sabot what-if`: a round's inputs once more, over the states before it, with something changed.

Nothing is written: the cores run over states in memory. Every input of the cell from the round's
beginning to its end is given again, in order; cards, spins and dice come from the log, or from what
was changed. A timer is asked of the states, since it names what set it; what a partner's wallet
said goes to the movement that has its place now.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from google.protobuf.message import Message

from sabot.log.v1 import events_pb2 as logs
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import events_pb2 as tables
from sabot.table.v1 import spec_pb2
from sabot.table.v1.correction_events_pb2 import CorrectedOutcome
from services.cli.cell_states import core_states, pending_answers, states_before
from services.cli.correct import options_of
from services.cli.incident_span import Span, Wanted, locate
from services.cli.known_draws import CardUnknown, Draws, committed_to, draws_of
from services.cli.known_replies import Replies, overdue_debit
from services.cli.outcome import Difference, Outcome, differences, outcome_of
from services.conformance.cell import CORES, Cell, DecisionFailed
from services.games.blackjack import is_blackjack
from services.kernel.event import Event, Position
from services.kernel.log import Log
from services.kernel.recovery import entries_until
from services.shoe.domain.wanted import CardsWanted, wanted
from services.table.domain.timers import timers_wanted

MOST_STEPS = 1_000
"""Draws and turns that a round may still take at its end; more, and it does not end."""
OPERATOR = "operator:what-if"
DRAWS = (
    shoes.OpenCards,
    shoes.CheckHole,
    shoes.SealShoe,
    shoes.RevealShoe,
)
GOES_ON = (tables.Act, tables.TimeOutTurn, tables.OpenRound)
"""Inputs before which a table's cards are dealt, whatever the log says of when."""


class WhatIfRefused(Exception):
    """It cannot be told what would be."""


@dataclass(frozen=True, slots=True)
class Change:
    """What shall be otherwise; one of these."""

    spec: Callable[[spec_pb2.TableSpec], spec_pb2.TableSpec] | None = None
    """Other rules."""
    cards: Mapping[int, str] = field(default_factory=dict[int, str])
    """Other cards in the round's shoe, by index."""
    closing: Position | None = None
    """Betting closes behind this event."""
    number: int | None = None
    """What the wheel shows."""
    dice: tuple[int, ...] = ()

    @property
    def is_of_rules(self) -> bool:
        """Whether it is none of what came out."""
        return self.spec is not None or self.closing is not None


@dataclass(slots=True)
class WhatIf:
    """What was, and what would have been."""

    round_id: str
    recorded: Outcome
    would_be: Outcome
    differences: list[Difference]
    notes: list[str]
    correction: str = ""
    """The command that proposes to make it so; empty where no correction can."""

    def json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "round": self.round_id,
            "recorded": {"result": self.recorded.result, "end": self.recorded.end},
            "would_be": {"result": self.would_be.result, "end": self.would_be.end},
            "differences": [one.json() for one in self.differences],
            "notes": self.notes,
            "correction": self.correction or None,
        }


async def what_if(
    log: Log,
    round_id: str,
    change: Change,
    data: Path | None = None,
    accepted: Mapping[int, bytes] | None = None,
    progress: Callable[[int, int, int], None] = lambda _done, _all, _events: None,
) -> WhatIf:
    """Play a round again. Raises RoundUnknown, WhatIfRefused, CardUnknown, RulesRefused, LogBroken,
    LogUnavailable."""
    last = (await log.info(wait_s=5.0)).last_sequence
    span = await locate(log, Wanted(round_id=round_id), last, data)
    states = await states_before(log, span.first, data, accepted, progress)
    pending = pending_answers(states.replicas, states.reader.state.behaviour)
    recorded: list[Event] = []
    # What was decided before and recorded within it is part of both.
    async for entries in entries_until(log, states.reader, span.last):
        recorded += [event for entry in entries for event in entry.events]
        await asyncio.sleep(0)
    draws = await draws_of(log, last, accepted)
    cores = {core.service for core in CORES}
    kept = {name: one for name, one in core_states(states.replicas).items() if name in cores}
    again = _Again(Cell(kept, span.first - 1), round_id, recorded, draws, change, span)
    try:
        again.play(pending)
    except DecisionFailed as failed:
        raise WhatIfRefused(str(failed)) from failed
    was, would_be = outcome_of(recorded, round_id), outcome_of(again.told, round_id)
    proposal = "" if change.is_of_rules else _proposal(round_id, was, again.told)
    return WhatIf(round_id, was, would_be, differences(was, would_be), again.notes, proposal)


def _proposal(round_id: str, was: Outcome, told: list[Event]) -> str:
    """How to have a paid round corrected to what would have come of it. Only its result may be
    another one: its bets and its rules are those that stood (rules INC-3, INC-4)."""
    result = next(
        (
            one.body.result
            for one in told
            if isinstance(one.body, tables.ResultAccepted) and one.body.round_id == round_id
        ),
        None,
    )
    if was.end != "paid" or result is None:
        return ""
    options = options_of(CorrectedOutcome(result=result))
    if not options:
        return ""
    return f"sabot correct propose {round_id} {options} --reason misread --reference TEXT"


class _Again:
    """Plays the inputs of a span again."""

    def __init__(
        self,
        cell: Cell,
        round_id: str,
        recorded: list[Event],
        draws: Draws,
        change: Change,
        span: Span,
    ) -> None:
        self.told: list[Event] = []
        self.notes: list[str] = []
        self._cell = cell
        self._round_id = round_id
        self._draws = draws
        self._change = change
        self._span = span
        self._inputs = [event for event in recorded if event.is_input]
        opened = [
            event
            for event in recorded
            if isinstance(event.body, tables.RoundOpened) and event.body.round_id == round_id
        ]
        if not opened:
            raise WhatIfRefused(f"round {round_id} opened before anything that can be played again")
        body: Any = opened[0].body
        self._opened_at = opened[0].position
        self._table_id: str = body.table_id
        self._shoe_id: str = body.shoe_id
        cell.behaviour = recorded[0].behaviour
        cell.time_us = recorded[0].time_us
        self._requests = 0
        self._replies = Replies(recorded)

    # ---- the course of it ----------------------------------------------------------------------

    def play(self, pending: list[tuple[Event, bool]]) -> None:
        """Give every input again, and what else the round needs to end."""
        self._prepare()
        # First, since what was decided before may open the round.
        if self._change.spec is not None:
            self._change_rules(self._change.spec)
        if pending:
            self._take(self._cell.follow(pending))
        closing = self._change.closing
        for place, event in enumerate(self._inputs):
            if closing is not None and event.position > closing:
                self._close(event.time_us)
                closing = None
            self._give(event, self._inputs[place + 1 :])
        if closing is not None:
            self._close(self._cell.time_us)
        self._end()
        self.notes += self._replies.notes()

    def _prepare(self) -> None:
        """Put other cards, numbers and dice where they are drawn."""
        change, draws = self._change, self._draws
        self._refuse_what_is_not_of_this_game()
        if change.cards:
            draws.put(self._shoe_id, change.cards)
            shoe = self._cell.states["shoe"].shoes.get(self._shoe_id)
            if shoe is not None and shoe.commitments:
                gone = [index for index in change.cards if index in shoe.opened]
                if gone:
                    raise WhatIfRefused(
                        f"card #{gone[0]} left the shoe before round {self._round_id}"
                    )
                shoe.commitments = committed_to(shoe.commitments, self._shoe_id, change.cards)
        for key in [key for key in (*draws.spins, *draws.rolls) if key[0] == self._round_id]:
            if change.number is not None:
                draws.spins[key] = change.number
            if change.dice:
                draws.rolls[key] = change.dice
        closing = change.closing
        if closing is not None and not (
            self._opened_at <= closing and closing.sequence <= self._span.last
        ):
            raise WhatIfRefused(
                f"betting can close behind {self._opened_at}, where round {self._round_id} opened, "
                f"and before its end in entry {self._span.last}; not behind {closing}"
            )

    def _refuse_what_is_not_of_this_game(self) -> None:
        change, draws = self._change, self._draws
        if change.cards and not self._shoe_id:
            raise WhatIfRefused(f"round {self._round_id} is not dealt from a shoe")
        if change.number is not None and not _has(draws.spins, self._round_id):
            raise WhatIfRefused(f"no wheel was spun in round {self._round_id}")
        if change.dice and not _has(draws.rolls, self._round_id):
            raise WhatIfRefused(f"no dice were rolled in round {self._round_id}")

    def _change_rules(self, changed: Callable[[spec_pb2.TableSpec], spec_pb2.TableSpec]) -> None:
        table = self._cell.states["table"].tables.get(self._table_id)
        if table is None:
            raise WhatIfRefused(f"table {self._table_id} opens together with its round")
        before = len(self.told)
        order = tables.OpenTable(
            request_id=self._uuid(), spec=changed(table.spec), blackjack_on_floor=True
        )
        self._take(self._cell.tell("table", order, actor=OPERATOR, at_us=self._cell.time_us))
        for event in self.told[before:]:
            body = event.body
            if isinstance(body, tables.OrderRejected):
                why = tables.Refusal.Name(body.refusal).removeprefix("REFUSAL_")
                raise WhatIfRefused(f"the table does not take these rules: {why} {body.detail}")

    def _close(self, time_us: int) -> None:
        """Betting closes here and not where it did."""
        order = tables.CloseBetting(
            request_id=self._uuid(),
            table_id=self._table_id,
            round_id=self._round_id,
            source=tables.SOURCE_OPERATOR,
        )
        self._take(self._cell.tell("table", order, actor=OPERATOR, at_us=time_us, edge_us=time_us))

    def _give(self, event: Event, rest: list[Event]) -> None:
        body: Any = event.body
        table_id = str(getattr(body, "table_id", ""))
        if event.service == "audit" or isinstance(body, logs.RetryInput):
            return
        if isinstance(body, logs.ActivateBehaviour):
            self._cell.behaviour = max(self._cell.behaviour, event.behaviour)
            return
        if self._is_closing(body):
            return
        if isinstance(body, DRAWS) or _is_virtual_toss(body):
            self._deal(table_id, once=True)
        else:
            given = self._timer(body) if _is_timer(body) else self._floor(body)
            if given is not None:
                given = self._replies.again(given, self._cell.states["wallet"].seamless)
            if given is not None:
                self._take(
                    self._cell.tell(
                        event.service,
                        given,
                        partner=event.partner,
                        actor=event.actor,
                        at_us=event.time_us,
                        edge_us=event.edge_us,
                    )
                )
        following = next(
            (one for one in rest if str(getattr(one.body, "table_id", "")) == table_id), None
        )
        if table_id and following is not None and isinstance(following.body, GOES_ON):
            self._deal(table_id)

    def _is_closing(self, body: Message) -> bool:
        """Whether it closes the round's betting, which is to close elsewhere."""
        return (
            self._change.closing is not None
            and isinstance(body, tables.CloseBetting)
            and body.round_id == self._round_id
        )

    def _timer(self, recorded: Message) -> Message | None:
        """The timer that the states wait for in the place of a recorded one, if there is one."""
        told: Any = recorded
        for timer in timers_wanted(self._cell.states["table"]):
            if type(timer.body) is type(told) and timer.body.table_id == told.table_id:
                return timer.body
        return None

    def _floor(self, body: Any) -> Message:
        """What came from the floor, with what shall be otherwise."""
        change = self._change
        match body:
            case shoes.RecordSpin() if body.round_id == self._round_id:
                if change.number is not None:
                    body = _copy(body)
                    body.number = change.number
            case shoes.RecordDice() if body.round_id == self._round_id:
                if change.dice:
                    body = _copy(body)
                    body.dice[:] = change.dice
            case floor.RecordCard() if body.shoe_id == self._shoe_id:
                shoe = self._cell.states["shoe"].shoes.get(body.shoe_id)
                index = body.index if body.HasField("index") else shoe.gone if shoe else -1
                if index in change.cards:
                    body = _copy(body)
                    body.card = change.cards[index]
            case floor.RecordPeek() if body.shoe_id == self._shoe_id and change.cards:
                looked = self._looked_on_floor(body)
                if looked is not None:
                    body = _copy(body)
                    body.blackjack = looked
            case _:
                pass
        given: Message = body
        return given

    def _looked_on_floor(self, body: floor.RecordPeek) -> bool | None:
        """What a look would have told of the hole card, as that is or shall be; None: it is not
        known, since it was never turned over."""
        shoe = self._cell.states["shoe"].shoes.get(body.shoe_id)
        if shoe is None or shoe.hole is None or shoe.floor is None or shoe.floor.up_at is None:
            return None
        index = shoe.hole.index
        turned = self._change.cards.get(index) or next(
            (
                str(one.body.card)
                for one in self._inputs
                if isinstance(one.body, floor.RecordCard)
                and (one.body.shoe_id, one.body.index) == (body.shoe_id, index)
            ),
            "",
        )
        return is_blackjack((shoe.opened[shoe.floor.up_at].card, turned)) if turned else None

    # ---- dealing -------------------------------------------------------------------------------

    def _deal(self, table_id: str, *, once: bool = False) -> bool:
        """Give what is asked for at a table: the next draw, or all. Whether there was any."""
        dealt = False
        for _ in range(1 if once else MOST_STEPS):
            told = next(
                (
                    body
                    for wish in wanted(self._cell.states["shoe"])
                    if wish.table_id == table_id
                    and (body := self._told(wish, table_id)) is not None
                ),
                None,
            )
            if told is None:
                break
            answered = self._cell.tell("shoe", told, actor="system:custodian", at_us=0)
            ignored = [one for one in answered if isinstance(one.body, logs.InputIgnored)]
            if ignored:
                raise WhatIfRefused(f"the shoe does not take it: {_words(told)}")
            self._take(answered)
            dealt = True
        return dealt

    def _told(self, wish: Any, table_id: str) -> Message | None:
        try:
            return self._draws.told(wish)
        except CardUnknown:
            # Other tables go on behind the end of the round, as far as it is known how.
            if table_id != self._table_id or not isinstance(wish, CardsWanted):
                return None
            if wish.round_id != self._round_id:
                return None
            raise

    def _end(self) -> None:
        """Let the round come to its end: draws that the log did not need, turns that nobody
        takes."""
        late = 0
        for _ in range(MOST_STEPS):
            table = self._cell.states["table"].tables[self._table_id]
            running = table.running
            if running is None or running.round_id != self._round_id:
                break
            if self._deal(self._table_id):
                continue
            if debit := overdue_debit(self._cell.states["wallet"].seamless, self._round_id):
                body, partner, due_us = debit
                self._take(
                    self._cell.tell(
                        "wallet", body, partner=partner, actor="system:timers", at_us=due_us
                    )
                )
                continue
            over = next(
                (
                    one
                    for one in timers_wanted(self._cell.states["table"])
                    if isinstance(one.body, tables.TimeOutTurn)
                    and one.body.round_id == self._round_id
                ),
                None,
            )
            if over is None:
                self.notes.append("the round would not have ended by then")
                break
            late += 1
            self._take(
                self._cell.tell("table", over.body, actor="system:timers", at_us=over.due_us)
            )
        if late:
            self.notes.append(f"{late} turns that nobody took in the log would have timed out")

    # ---- small things --------------------------------------------------------------------------

    def _take(self, events: list[Event]) -> None:
        self.told += events
        for body, partner, at_us in self._replies.follow(events):
            self._take(
                self._cell.tell("wallet", body, partner=partner, actor=OPERATOR, at_us=at_us)
            )

    def _uuid(self) -> str:
        """A UUIDv7 of this moment of the log."""
        self._requests += 1
        millis = f"{self._cell.time_us // 1000:012x}"
        return f"{millis[:8]}-{millis[8:]}-7000-8000-{self._requests:012x}"


def _has(known: Mapping[tuple[str, int], Any], round_id: str) -> bool:
    return any(key[0] == round_id for key in known)


def _is_virtual_toss(body: Message) -> bool:
    return (
        isinstance(body, shoes.RecordSpin | shoes.RecordDice)
        and body.source == shoes.CARD_SOURCE_VIRTUAL
    )


def _is_timer(body: Message) -> bool:
    if isinstance(body, tables.OpenRound | tables.CloseBetting):
        return body.source == tables.SOURCE_TIMER
    return isinstance(body, tables.TimeOutTurn)


def _copy(body: Any) -> Any:
    again = type(body)()
    again.CopyFrom(body)
    return again


def _words(body: Any) -> str:
    if isinstance(body, shoes.OpenCards):
        return ", ".join(f"#{card.index} {card.card}" for card in body.cards)
    return type(body).__name__
