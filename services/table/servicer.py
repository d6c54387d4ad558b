"""PartnerService: what partners see and do at tables."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from google.protobuf.timestamp_pb2 import Timestamp

from sabot.partner.v1 import partner_service_pb2 as partners
from sabot.rules.v1 import events_pb2 as rules
from sabot.table.v1 import bet_pb2
from sabot.table.v1 import events_pb2 as tables
from services.kernel.ask import ask, await_position
from services.kernel.call import (
    EVERY_ROLE,
    EVERY_ROLE_AND_DEVICES,
    Call,
    fill_page,
    open_token,
    position_from_text,
    position_message,
    request_hash,
    rpc,
    seal_token,
)
from services.kernel.edge import Edge
from services.kernel.errors import (
    INVALID_REQUEST,
    PAGE_TOKEN_INVALID,
    RESUME_TOKEN_INVALID,
    FieldViolation,
    Refused,
)
from services.kernel.event import Position
from services.refusals.limits import open_to_partners
from services.refusals.table import (
    NO_ROADS,
    REQUEST_NOT_FOUND,
    ROUND_NOT_FOUND,
    SHOE_NOT_PLAYED,
    TABLE_NOT_FOUND,
)
from services.refusals.wallet import DECISION_FAILED, MIXED_CURRENCIES
from services.table.answers import (
    ACTED,
    PLACED,
    STAKED,
    WITHDRAWN,
    acted,
    facts_of,
    placed,
    withdrawn,
)
from services.table.domain.state import TableState
from services.table.queries import TableQueries
from services.table.roads import drawn
from services.table.watch import LiveBets, LiveTables

TABLES_PAGE = 50
"""Tables of a page where the caller does not say."""
BETS_PAGE = 100
"""Bets of a page where the caller does not say."""
_LAST_SECOND = 253_402_300_799
"""The end of the year 9999, the latest that a Timestamp may say."""

LAG_S = 2.0
"""How long a query waits for its projection before it says that something does not exist."""


_WITH_STAKE = frozenset((rules.ACTION_DOUBLE, rules.ACTION_SPLIT, rules.ACTION_INSURE))
"""Actions that are on once their stake is."""


class PartnerServicer:
    """The partners' front door at the tables."""

    def __init__(
        self, edge: Edge, queries: TableQueries, live_tables: LiveTables, live_bets: LiveBets
    ) -> None:
        self._edge = edge
        self._queries = queries
        self._tables = live_tables
        self._bets = live_bets

    def drain(self) -> None:
        """End all streams: their callers go on at another server."""
        self._tables.close()
        self._bets.close()

    # ---- tables and rounds ---------------------------------------------------------------------

    @rpc(partners=True, roles=EVERY_ROLE_AND_DEVICES)
    async def list_tables(
        self, request: partners.ListTablesRequest, call: Call
    ) -> partners.ListTablesResponse:
        """The open tables, by id."""
        del call
        limit = request.page_size or TABLES_PAGE
        scope = ("ListTables", self._edge.cell)
        after = open_token(request.page_token, scope, 1)[0] if request.page_token else ""
        ids = [table_id for table_id in self._tables.ids() if table_id > after]
        shown = await asyncio.gather(*map(self._tables.table, ids[: limit + 1]))
        found = [table for table in shown if table is not None]
        count = fill_page(found, limit, lambda table: table.ByteSize())
        response = partners.ListTablesResponse(tables=found[:count])
        if count < len(found):
            response.next_page_token = seal_token(scope, found[count - 1].spec.table_id)
        return response

    @rpc(partners=True, roles=EVERY_ROLE_AND_DEVICES)
    async def get_table(
        self, request: partners.GetTableRequest, call: Call
    ) -> partners.GetTableResponse:
        """One table."""
        del call
        table = await self._tables.table(request.table_id)
        if table is None:
            raise Refused(TABLE_NOT_FOUND, {"table_id": request.table_id})
        return partners.GetTableResponse(table=table)

    @rpc(partners=True, roles=EVERY_ROLE_AND_DEVICES)
    async def watch_table(
        self, request: partners.WatchTableRequest, call: Call
    ) -> AsyncIterator[partners.WatchTableResponse]:
        """A table as it changes."""
        del call
        table_id = request.table_id
        if await self._tables.table(table_id) is None:
            raise Refused(TABLE_NOT_FOUND, {"table_id": table_id})
        resume = _resume(request.resume_token, self._tables.scope(table_id))
        async for message in self._tables.watch(table_id, resume):
            yield message

    @rpc(partners=True, roles=EVERY_ROLE_AND_DEVICES)
    async def get_round(
        self, request: partners.GetRoundRequest, call: Call
    ) -> partners.GetRoundResponse:
        """A round, past or running."""
        if request.HasField("at_least"):
            await await_position(self._queries.reached, request.at_least, call)
        position = self._queries.position
        found = await self._queries.round(request.round_id)
        if found is None and await self._queries.reached(self._edge.position, call.wait_s(LAG_S)):
            # It may have opened since the projection last looked; this process knows.
            position = self._queries.position
            found = await self._queries.round(request.round_id)
        if found is None:
            raise Refused(ROUND_NOT_FOUND, {"round_id": request.round_id})
        return partners.GetRoundResponse(round=found, position=position_message(position))

    @rpc(partners=True, roles=EVERY_ROLE)
    async def get_roads(
        self, request: partners.GetRoadsRequest, call: Call
    ) -> partners.GetRoadsResponse:
        """The roads of a shoe, past or in use."""
        if request.HasField("at_least"):
            await await_position(self._queries.reached, request.at_least, call)
        shoe_id = request.shoe_id
        if request.WhichOneof("of") == "table_id":
            table = await self._tables.table(request.table_id)
            if table is None:
                raise Refused(TABLE_NOT_FOUND, {"table_id": request.table_id})
            if table.HasField("roads"):
                return partners.GetRoadsResponse(roads=table.roads, position=table.position)
            if not self._tables.have_roads(request.table_id):
                raise Refused(NO_ROADS, {"table_id": request.table_id})
            shoe_id = table.round.shoe_id
        position = self._queries.position
        rounds = await self._queries.rounds_of_shoe(shoe_id)
        if not rounds and await self._queries.reached(self._edge.position, call.wait_s(LAG_S)):
            # Its first round may have opened since the projection last looked.
            position = self._queries.position
            rounds = await self._queries.rounds_of_shoe(shoe_id)
        if not rounds:
            raise Refused(SHOE_NOT_PLAYED, {"shoe_id": shoe_id})
        if not self._tables.have_roads(rounds[0].table_id):
            raise Refused(NO_ROADS, {"table_id": rounds[0].table_id})
        results = [one.road for one in rounds if one.HasField("road")]
        return partners.GetRoadsResponse(
            roads=drawn(shoe_id, results), position=position_message(position)
        )

    # ---- bets ----------------------------------------------------------------------------------

    @rpc(partners=True, deadline=True, busy=True)
    async def place_bets(
        self, request: partners.PlaceBetsRequest, call: Call
    ) -> partners.PlaceBetsResponse:
        """Bets of one account, all or none."""
        currencies = {bet.stake.currency_code for bet in request.bets}
        if len(currencies) > 1:
            raise Refused(MIXED_CURRENCIES, {"currencies": ", ".join(sorted(currencies))})
        body = tables.PlaceBets(
            request_id=request.request_id,
            account_id=request.account_id,
            table_id=request.table_id,
            round_id=request.round_id,
            currency_code=currencies.pop(),
            bets=[
                bet_pb2.Bet(bet=bet.bet, stake_minor=bet.stake.minor_units, position=bet.position)
                for bet in request.bets
            ],
        )
        body.request_hash = request_hash(body)
        if request.HasField("client_send_time"):
            # Evidence, and no part of what is asked: a repeat is sent at another time.
            body.client_time_us = _microseconds(request.client_send_time)
        told = await ask(
            self._edge,
            self._queries,
            "table",
            body,
            call,
            partner=call.partner(),
            until=PLACED,
            failed=DECISION_FAILED,
        )
        state: TableState = self._edge.state("table")
        one = state.tables.get(request.table_id)
        rules = None if one is None else one.spec
        return placed(told, _bet_facts(request), rules, body.bets)

    @rpc(partners=True, deadline=True, busy=True)
    async def act(self, request: partners.ActRequest, call: Call) -> partners.ActResponse:
        """What a seat of blackjack does at its turn."""
        body = tables.Act(
            request_id=request.request_id,
            account_id=request.account_id,
            table_id=request.table_id,
            round_id=request.round_id,
            seat=request.seat,
            turn=request.turn,
            action=request.action,
            extra_minor=request.extra.minor_units,
            currency_code=request.extra.currency_code,
        )
        body.request_hash = request_hash(body)
        if request.HasField("client_send_time"):
            body.client_time_us = _microseconds(request.client_send_time)
        told = await ask(
            self._edge,
            self._queries,
            "table",
            body,
            call,
            partner=call.partner(),
            until=STAKED if request.action in _WITH_STAKE else ACTED,
            failed=DECISION_FAILED,
        )
        seat = self._tables.seat(request.table_id, request.round_id, request.seat)
        return acted(told, _bet_facts(request), seat, request.extra.minor_units)

    @rpc(partners=True, deadline=True)
    async def withdraw_bets(
        self, request: partners.WithdrawBetsRequest, call: Call
    ) -> partners.WithdrawBetsResponse:
        """Bets taken back while the window is open."""
        body = tables.WithdrawBets(
            request_id=request.request_id,
            account_id=request.account_id,
            table_id=request.table_id,
            round_id=request.round_id,
            bet_ids=request.bet_ids,
        )
        body.request_hash = request_hash(body)
        told = await ask(
            self._edge,
            self._queries,
            "table",
            body,
            call,
            partner=call.partner(),
            until=WITHDRAWN,
            failed=DECISION_FAILED,
        )
        return withdrawn(told, _bet_facts(request))

    @rpc(partners=True)
    async def watch_bets(
        self, request: partners.WatchBetsRequest, call: Call
    ) -> AsyncIterator[partners.WatchBetsResponse]:
        """What becomes of the partner's bets."""
        partner = call.partner()
        resume = _resume(request.resume_token, self._bets.scope(partner))
        async for message in self._bets.watch(partner, resume):
            yield message

    @rpc(partners=True, roles=EVERY_ROLE)
    async def list_bets(
        self, request: partners.ListBetsRequest, call: Call
    ) -> partners.ListBetsResponse:
        """Bets, newest first: the partner's, or all for an operator."""
        if request.HasField("at_least"):
            await await_position(self._queries.reached, request.at_least, call)
        partner = call.caller.partner or None
        limit = request.page_size or BETS_PAGE
        scope = ("ListBets", partner or "", request.account_id, request.round_id)
        before = open_token(request.page_token, scope, 1)[0] if request.page_token else None
        position = self._queries.position
        try:
            found = await self._queries.bets(
                partner, request.account_id or None, request.round_id or None, limit + 1, before
            )
        except ValueError as error:  # a key that no page ended with
            raise Refused(PAGE_TOKEN_INVALID) from error
        count = fill_page(found, limit, lambda each: each[1].ByteSize())
        response = partners.ListBetsResponse(
            bets=[bet for _, bet in found[:count]], position=position_message(position)
        )
        if count < len(found):
            response.next_page_token = seal_token(scope, found[count - 1][0])
        return response

    @rpc(partners=True, roles=EVERY_ROLE)
    async def get_request(
        self, request: partners.GetRequestRequest, call: Call
    ) -> partners.GetRequestResponse:
        """What became of an earlier request of the caller's own."""
        if request.HasField("at_least"):
            await await_position(self._queries.reached, request.at_least, call)
        position = self._queries.position
        found = await self._queries.request(call.caller.actor, request.round_id, request.request_id)
        if found is None:
            facts = {
                "request_id": request.request_id,
                "position": f"{position.segment}/{position.sequence}",
            }
            raise Refused(REQUEST_NOT_FOUND, facts)
        asked_at, outcome = found
        if call.caller.partner and outcome.HasField("refused"):
            kept = open_to_partners(outcome.refused.violations)
            del outcome.refused.violations[:]
            outcome.refused.violations.extend(kept)
        return partners.GetRequestResponse(
            outcome=outcome,
            request_position=position_message(asked_at),
            position=position_message(position),
        )


def _bet_facts(
    request: partners.PlaceBetsRequest | partners.ActRequest | partners.WithdrawBetsRequest,
) -> dict[str, str | int]:
    return facts_of(
        request_id=request.request_id,
        table_id=request.table_id,
        round_id=request.round_id,
        account_id=request.account_id,
    )


def _resume(token: str, scope: tuple[str, ...]) -> Position | None:
    if not token:
        return None
    text = open_token(token, scope, 1, RESUME_TOKEN_INVALID)[0]
    return position_from_text(text, RESUME_TOKEN_INVALID)


def _microseconds(time: Timestamp) -> int:
    if not 0 <= time.seconds <= _LAST_SECOND or not 0 <= time.nanos < 1_000_000_000:
        told = FieldViolation("client_send_time", "timestamp.range", "is not a time since 1970")
        raise Refused(INVALID_REQUEST, fields=[told])
    return time.seconds * 1_000_000 + time.nanos // 1000
