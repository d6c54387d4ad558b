"""The playthrough of a round: every event of it, with balances before and after.

An event belongs to a round where it names it, where it answers an event that belongs to it, and
where an event that belongs to it answers it. So an operator's call, the start of the shoe, late
timers, repeats and retries are all found, and other rounds never are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from types import MappingProxyType
from typing import Any

from google.protobuf.message import Message

from sabot.log.v1 import events_pb2 as logs
from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.table.v1 import events_pb2 as tables
from sabot.table.v1 import spec_pb2
from services.cli.describe import describe, describe_result, fields_of
from services.cli.readable import readable_message
from services.events import event_types
from services.kernel.entry import EventTypes, NotUnderstood, position_of
from services.kernel.event import Event, Position
from services.kernel.log import Log
from services.kernel.reader import LogReader
from services.kernel.recovery import entries_until
from services.wallet.domain.postings import Posting, postings

COLUMNS = (10, 10, 15, 18, 14, 18)
"""Least widths: position, cause, time, actor, subject, event."""


class RoundUnknown(Exception):
    """The log has no such round."""


@dataclass(frozen=True, slots=True)
class Moved:
    """One leg of a journal entry, with the balance that it changed."""

    posting: Posting
    before_minor: int

    @property
    def after_minor(self) -> int:
        return self.before_minor + self.posting.minor


@dataclass(frozen=True, slots=True)
class Shown:
    """An event of the round."""

    event: Event
    moved: tuple[Moved, ...] = ()


@dataclass(slots=True)
class Playthrough:
    """A round as the log tells it."""

    round_id: str
    shown: list[Shown] = field(default_factory=list[Shown])
    governed_by: tables.TableOpened | None = None
    """The rules that stood when it opened."""
    governed_at: Position | None = None

    def text(self) -> str:
        """For people; the same log always gives the same text."""
        return "\n".join((*self._head(), *self._rows())) + "\n"

    def json(self) -> list[dict[str, Any]]:
        """For programs: one object an event."""
        return [_json(one) for one in self.shown]

    def _head(self) -> Iterable[str]:
        yield f"round {self.round_id}"
        opened = self.governed_by
        if opened is not None:
            spec, rule_set = opened.spec, opened.spec.rule_set
            at = f" of {self.governed_at}" if self.governed_at else ""
            yield (
                f"  table {spec.table_id}, {spec.currency_code} in minor units; rules "
                f"{rule_set.rule_set_id} v{rule_set.version} ({rule_set.hash.hex()[:16]}), "
                f"revision {opened.revision}{at}"
            )
            yield from _choices(spec)
        for one in self.shown:
            body = one.event.body
            if isinstance(body, tables.ResultAccepted):
                yield f"  {self._result(body)}"
            elif isinstance(body, tables.RoundVoided):
                yield f"  voided: {describe(body)}"
        yield f"  {len(self.shown)} events; times are log times, UTC"
        yield ""

    def _result(self, body: tables.ResultAccepted) -> str:
        if self.governed_by is None:
            return describe(body)
        return describe_result(body.result, self.governed_by.spec.rule_set)

    def _rows(self) -> Iterable[str]:
        rows = [_cells(one.event) for one in self.shown]
        widths = [
            max(least, *(len(row[place]) for row in rows)) for place, least in enumerate(COLUMNS)
        ]
        names = ("position", "cause", "time", "actor", "subject", "event", "details")
        yield _row(names, widths)
        day = ""
        for row, one in zip(rows, self.shown, strict=True):
            when = _when(one.event.time_us)
            if when.strftime("%Y-%m-%d") != day:
                day = when.strftime("%Y-%m-%d")
                yield f"-- {day} --"
            yield _row(row, widths)
            ledgers = [moved.posting.ledger_account for moved in one.moved]
            wide = max((len(name) for name in ledgers), default=0)
            for name, moved in zip(ledgers, one.moved, strict=True):
                yield (
                    f"{'':{sum(widths[:2]) + 4}}  {name:{wide}}  {moved.before_minor} -> "
                    f"{moved.after_minor}  ({moved.posting.minor:+})"
                )


async def playthrough(
    log: Log,
    round_id: str,
    accepted: Mapping[int, bytes] | None = None,
    progress: Callable[[int, int, int], None] | None = None,
    until: int = 0,
) -> Playthrough:
    """Read a round out of a log, up to entry `until`; 0: to its end. Raises RoundUnknown,
    LogBroken, LogUnavailable."""
    last = until or (await log.info(wait_s=5.0)).last_sequence
    reader = LogReader(log.cell, _types(), accepted=accepted)
    search = _Search(round_id)
    events = 0
    async for entries in entries_until(log, reader, last):
        for entry in entries:
            events += len(entry.events)
            for event in entry.events:
                search.take(event)
        if progress is not None:
            progress(reader.state.sequence, last, events)
        await asyncio.sleep(0)
    return search.found()


def playthrough_from(
    events: Iterable[Event],
    round_id: str,
    ledger: Mapping[str, int] | None,
    opened: Mapping[str, tables.TableOpened],
) -> Playthrough:
    """A round out of some events that begin before it. `ledger`: the balances before them, None:
    they are not known and not shown; `opened`: by table, the rules that stood before them.

    Raises RoundUnknown."""
    search = _Search(round_id, ledger, opened)
    for event in events:
        search.take(event)
    return search.found()


class _Search:
    """Sees every event once, in order."""

    def __init__(
        self,
        round_id: str,
        ledger: Mapping[str, int] | None = MappingProxyType({}),
        opened: Mapping[str, tables.TableOpened] = MappingProxyType({}),
    ) -> None:
        self._round_id = round_id
        self._shown: dict[Position, Shown] = {}
        self._nameless: dict[Position, Event] = {}
        """Events that name no round, in case one of the round answers them."""
        self._ledger: dict[str, int] | None = None if ledger is None else dict(ledger)
        self._rules: dict[str, tuple[Position | None, tables.TableOpened]] = {
            table_id: (None, one) for table_id, one in opened.items()
        }
        self._opened = False
        self._governed: tuple[Position | None, tables.TableOpened] | None = None

    def take(self, event: Event) -> None:
        moved = self._post(event)
        body: Any = event.body
        if isinstance(body, tables.TableOpened):
            self._rules[body.spec.table_id] = (event.position, body)
        elif isinstance(body, tables.RoundOpened) and body.round_id == self._round_id:
            self._opened = True
            self._governed = self._rules.get(body.table_id)
        named = _round_of(body)
        if named == self._round_id or (not named and self._answers(event)):
            self._shown[event.position] = Shown(event, moved)
            self._bring_cause(event)
        elif not named and not isinstance(body, shoes.RevealShoe | shoes.SealShoe):
            self._nameless[event.position] = event

    def found(self) -> Playthrough:
        if not self._opened:
            raise RoundUnknown(f"there is no round {self._round_id} in this log")
        shown = [self._shown[position] for position in sorted(self._shown)]
        position, opened = self._governed or (None, None)
        return Playthrough(self._round_id, shown, opened, position)

    def _answers(self, event: Event) -> bool:
        if event.cause is not None:
            return event.cause in self._shown
        body = event.body
        return isinstance(body, logs.RetryInput) and position_of(body.position) in self._shown

    def _bring_cause(self, event: Event) -> None:
        """What the round's event answers belongs to it, and what that answers too."""
        cause = event.cause
        while cause is not None and cause in self._nameless:
            caused = self._nameless.pop(cause)
            self._shown[cause] = Shown(caused)
            cause = caused.cause

    def _post(self, event: Event) -> tuple[Moved, ...]:
        if event.is_input or event.service != "wallet" or self._ledger is None:
            return ()
        moved = []
        for posting in postings(event.body, event.partner):
            name = posting.ledger_account
            moved.append(Moved(posting, self._ledger.get(name, 0)))
            self._ledger[name] = moved[-1].after_minor
        return tuple(moved)


def _round_of(body: Any) -> str:
    """The round that an event names; empty where it names none."""
    if isinstance(body, logs.InputFailed):
        try:
            return _round_of(_types().decode(body.input_type, body.input_body))
        except NotUnderstood:
            return ""
    return str(getattr(body, "round_id", ""))


@cache
def _types() -> EventTypes:
    return event_types()


def _choices(spec: spec_pb2.TableSpec) -> Iterable[str]:
    """What the table configures of its game, and what it does not let be combined."""
    options = spec.rule_set.WhichOneof("options")
    told = {"options": getattr(spec.rule_set, options)} if options else {}
    for what, message in {**told, "restrictions": spec.restrictions}.items():
        chosen = fields_of(message)
        if chosen:
            yield f"  {what}: {chosen}"


def _cells(event: Event) -> tuple[str, ...]:
    return (
        str(event.position),
        str(event.cause) if event.cause else "-",
        _when(event.time_us).strftime("%H:%M:%S.%f"),
        event.actor,
        f"{event.service}.{'in' if event.is_input else 'out'}",
        type(event.body).__name__,
        describe(event.body),
    )


def _row(cells: Iterable[str], widths: Iterable[int]) -> str:
    *fixed, last = cells
    columns = [f"{cell:{width}}" for cell, width in zip(fixed, widths, strict=True)]
    return "  ".join((*columns, last)).rstrip()


def _when(time_us: int) -> datetime:
    return datetime.fromtimestamp(time_us // 1_000_000, UTC).replace(
        microsecond=time_us % 1_000_000
    )


def _json(one: Shown) -> dict[str, Any]:
    event = one.event
    return {
        "position": str(event.position),
        "cause": str(event.cause) if event.cause else None,
        "time": _when(event.time_us).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "time_us": event.time_us,
        "actor": event.actor,
        "partner": event.partner,
        "subject": f"{event.service}.{'in' if event.is_input else 'out'}",
        "event": type(event.body).__name__,
        "type": str(event.body.DESCRIPTOR.full_name),
        "body": readable_message(event.body),
        "cards": cards_of(event.body),
        "balances": [
            {
                "ledger_account": moved.posting.ledger_account,
                "before_minor": moved.before_minor,
                "after_minor": moved.after_minor,
            }
            for moved in one.moved
        ],
    }


def cards_of(body: Message) -> list[str]:
    """The cards that an event speaks of, in dealing order."""
    match body:
        case shoes.CardsDealt() | shoes.OpenCards():
            return [card.card for card in body.cards if card.card]
        case shoes.CardsBurned():
            return [card.card for card in body.opened]
        case tables.ResultAccepted() | rules.RoundResolved():
            return _cards_of_result(body.result)
        case _:
            return []


def _cards_of_result(result: rules.Result) -> list[str]:
    """The cards that decided a round, hand by hand; none where the game has none."""
    baccarat, blackjack = result.baccarat, result.blackjack
    seats = [card for seat in blackjack.seats for hand in seat.hands for card in hand.cards]
    pairs = (
        result.dragon_tiger.dragon_card,
        result.dragon_tiger.tiger_card,
        result.football_studio.home_card,
        result.football_studio.away_card,
    )
    return [
        *baccarat.player_cards,
        *baccarat.banker_cards,
        *seats,
        *blackjack.dealer_cards,
        *filter(None, pairs),
    ]
