"""Requests and what became of them, as rows: part of a service's projection.

A request is an input with a request id. Its outcome is found by following causes: the input is
answered by its service, that answer perhaps by the next service, and so on to the answer that is
nobody's input any more. Where something outside is asked meanwhile, the outcome names what it was
asked for (`waiting_since`). What waits for an answer is a *link*; links stand in a table too, so
that a restart in the middle of a chain goes on with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from google.protobuf.message import Message
from sqlalchemy import (
    Boolean,
    Column,
    Index,
    LargeBinary,
    MetaData,
    Select,
    SmallInteger,
    String,
    Table,
    Text,
    select,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from sabot.log.v1.events_pb2 import InputFailed, RequestRepeated, RetryInput
from services.kernel.databases import KeyInteger, position_key, position_of_key
from services.kernel.event import Event, Position, waiting_since
from services.kernel.row_changes import Changes

TAKEN = 0
PENDING = 1
REFUSED = 2
"""Ranks of rows with the same id: at most one was taken; one that is pending may yet be; a refusal
counts only where there is nothing else (such as an id that came early, or again with another
body)."""


@dataclass(frozen=True, slots=True)
class RequestKinds:
    """Which inputs are requests, and how their outcomes are found."""

    scopes: Mapping[type[Message], str]
    """Inputs, with the name of the field that narrows the scope of their ids; empty: none does."""
    onward: Mapping[type[Message], str]
    """Answers that are not the outcome yet, with the service that answers them."""
    refusals: frozenset[type[Message]]
    """Outcomes that leave the request id free or say that another request holds it."""
    ends: Callable[[Message], bool] = lambda _: False
    """Whether an answer of a type in `onward` is the outcome all the same."""
    steps: Callable[[Message], bool] = lambda _: False
    """Whether an answer is a step on the way: the outcome is another answer of the same service, to
    the same cause or to that answer."""


class Link(NamedTuple):
    """An event that waits for the answer that matters to a request."""

    request: int
    """Key of the position of the request."""
    service: str
    """Who answers it."""
    partner: str
    """The partner of the request; a retry's answers name none themselves."""
    retry_of: int | None
    """Where it is an operator's retry: the key of what failed."""
    failed: bool
    """Whether its answer was `InputFailed`; it stays for a retry."""


class RequestTables(NamedTuple):
    """The two tables of requests, and how rows are found in them."""

    requests: Table
    links: Table

    def by_id(self, actor: str, scope: str, request_id: str) -> Select[tuple[object, ...]]:
        """Selects the row that stands for an id."""
        row = self.requests.c
        return (
            select(self.requests)
            .where(row.actor == actor, row.scope == scope, row.request_id == request_id)
            .order_by(row.rank, row.position)
            .limit(1)
        )

    def by_position(self, position: Position) -> Select[tuple[object, ...]]:
        """Selects the request at a position."""
        return select(self.requests).where(self.requests.c.position == position_key(position))


def request_tables(metadata: MetaData) -> RequestTables:
    """The tables `requests` and `request_links` of a projection."""
    requests = Table(
        "requests",
        metadata,
        Column("position", KeyInteger, primary_key=True, autoincrement=False),
        Column("actor", Text, nullable=False),
        Column("partner", Text, nullable=False),
        Column("scope", Text, nullable=False),
        Column("request_id", Text, nullable=False),
        Column("rank", SmallInteger, nullable=False),
        Column("input_type", Text, nullable=False),
        Column("outcome_type", Text),
        Column("outcome_body", LargeBinary),
        Column("outcome_position", KeyInteger),
        Index("requests_by_id", "actor", "scope", "request_id"),
    )
    links = Table(
        "request_links",
        metadata,
        Column("position", KeyInteger, primary_key=True, autoincrement=False),
        Column("request", KeyInteger, nullable=False),
        Column("service", String(64), nullable=False),
        Column("partner", Text, nullable=False),
        Column("retry_of", KeyInteger),
        Column("failed", Boolean, nullable=False),
    )
    return RequestTables(requests, links)


class RequestRows:
    """Folds requests and their outcomes into their tables."""

    def __init__(self, tables: RequestTables, kinds: RequestKinds) -> None:
        self.requests, self.links = tables
        self._kinds = kinds
        self._pending: dict[Position, Link] = {}
        self._stepped: dict[int, list[Position]] = {}
        """By request: the links of one that is answered in steps."""

    async def load(self, connection: AsyncConnection) -> None:
        """Take the links from their table."""
        rows = await connection.execute(select(self.links))
        self._pending = {
            position_of_key(row.position): Link(
                row.request, row.service, row.partner, row.retry_of, row.failed
            )
            for row in rows
        }
        waiting: dict[int, list[Position]] = {}
        for position, link in self._pending.items():
            waiting.setdefault(link.request, []).append(position)
        self._stepped = {request: at for request, at in waiting.items() if len(at) > 1}

    def asked(self, event: Event, changes: Changes) -> None:
        """Take an input: perhaps a request, or an operator's retry of something that failed."""
        body_type = type(event.body)
        scope = self._kinds.scopes.get(body_type)
        if scope is None:
            if isinstance(event.body, RetryInput):
                self._retried(event, event.body, changes)
            return
        request_id = getattr(event.body, "request_id")  # noqa: B009  # every request has one
        if not request_id:
            return  # A timer's order: nobody asks for its outcome.
        key = position_key(event.position)
        changes[self.requests].insert(
            (key,),
            {
                "position": key,
                "actor": event.actor,
                "partner": event.partner,
                "scope": getattr(event.body, scope) if scope else "",
                "request_id": request_id,
                "rank": PENDING,
                "input_type": body_type.DESCRIPTOR.full_name,
                "outcome_type": None,
                "outcome_body": None,
                "outcome_position": None,
            },
        )
        self._link(event.position, Link(key, event.service, event.partner, None, False), changes)

    def answered(self, event: Event, changes: Changes) -> Link | None:
        """Take an answer; the link that it answers, if it is part of a request's chain."""
        since = waiting_since(event.body)
        cause = event.cause if since is None else since
        link = self._pending.get(cause) if cause is not None else None
        if cause is None or link is None or link.service != event.service or link.failed:
            return None
        if since is not None and since == event.cause:
            return link  # What comes of it is decided outside; the outcome names this cause again.
        body = event.body
        body_type = type(body)
        if self._kinds.steps(body):
            self._stepped.setdefault(link.request, []).extend((cause, event.position))
            self._link(event.position, link, changes)
            return link
        if body_type is InputFailed and link.retry_of is None:
            self._link(cause, link._replace(failed=True), changes)
        else:
            self._unlink(cause, changes)
            if link.retry_of is not None and body_type is not InputFailed:
                self._unlink(position_of_key(link.retry_of), changes)
        if body_type is RequestRepeated:
            changes[self.requests].delete((link.request,))
            return link
        onward = self._kinds.onward.get(body_type)
        if onward is not None and not self._kinds.ends(body):
            self._link(
                event.position, Link(link.request, onward, link.partner, None, False), changes
            )
            return link
        if body_type is not InputFailed:
            for position in self._stepped.pop(link.request, ()):
                self._unlink(position, changes)
        refused = body_type is InputFailed or body_type in self._kinds.refusals
        changes[self.requests].update(
            (link.request,),
            {
                "rank": REFUSED if refused else TAKEN,
                "outcome_type": body_type.DESCRIPTOR.full_name,
                "outcome_body": body.SerializeToString(),
                "outcome_position": position_key(event.position),
            },
        )
        return link

    def _retried(self, event: Event, body: RetryInput, changes: Changes) -> None:
        failed = Position(body.position.segment, body.position.sequence, body.position.index)
        link = self._pending.get(failed)
        if link is not None and link.failed:
            again = link._replace(retry_of=position_key(failed), failed=False)
            self._link(event.position, again, changes)

    def _link(self, position: Position, link: Link, changes: Changes) -> None:
        self._pending[position] = link
        key = position_key(position)
        row = {
            "position": key,
            "request": link.request,
            "service": link.service,
            "partner": link.partner,
            "retry_of": link.retry_of,
            "failed": link.failed,
        }
        if link.failed:
            changes[self.links].save((key,), row)
        else:
            changes[self.links].insert((key,), row)

    def _unlink(self, position: Position, changes: Changes) -> None:
        if self._pending.pop(position, None) is not None:
            changes[self.links].delete((position_key(position),))


def oneof_fields(message: type[Message], oneof: str) -> dict[str, str]:
    """The message fields of a oneof, by the full name of their type."""
    fields = message.DESCRIPTOR.oneofs_by_name[oneof].fields
    return {
        str(field.message_type.full_name): str(field.name)
        for field in fields
        if field.message_type is not None
    }
