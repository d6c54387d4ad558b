"""LedgerService: journal, statements, trial balance, and what two sides compare."""

from __future__ import annotations

from sabot.log.v1.entry_pb2 import Position as PositionMessage
from sabot.wallet.v1 import ledger_service_pb2 as ledgers
from services.kernel.ask import await_position
from services.kernel.call import (
    EVERY_ROLE,
    Call,
    fill_page,
    open_token,
    position_message,
    position_of,
    rpc,
    seal_token,
)
from services.kernel.databases import position_of_key
from services.kernel.edge import Edge
from services.kernel.errors import (
    INVALID_REQUEST,
    PAGE_TOKEN_INVALID,
    PERMISSION_DENIED,
    FieldViolation,
    Refused,
)
from services.kernel.event import Position
from services.kernel.projections import END_OF_ENTRY
from services.wallet.books import (
    AsOf,
    Books,
    as_of,
    digest_answer,
    entry_message,
)
from services.wallet.periods import Period

ENTRIES_PAGE = 100
"""Entries of a page where the caller does not say."""
LAG_S = 2.0
"""How long an answer waits for the projection to have all that this process has read."""
LAST_INDEX = 1023
"""As the index of a key: the end of the entry."""
MAX_KEY_DIGITS = 19
"""Of a key in a page token: 63 bits have no more."""


class LedgerServicer:
    """Partners see what is theirs; operators name whose books they mean."""

    def __init__(self, edge: Edge, books: Books) -> None:
        self._edge = edge
        self._queries = books.queries
        self._books = books

    @rpc(partners=True, roles=EVERY_ROLE)
    async def list_journal(
        self, request: ledgers.ListJournalRequest, call: Call
    ) -> ledgers.ListJournalResponse:
        """A partner's journal."""
        partner = _whose(request.partner_id, call)
        days = request.days.SerializeToString(deterministic=True).hex()
        scope = ("ListJournal", partner, request.account_id, request.round_id, days)
        at, after = await self._page(request.page_token, scope, request, call)
        limit = request.page_size or ENTRIES_PAGE
        rows, more = await self._books.journal(partner, request, at, after, limit)
        entries = [entry_message(row) for row in rows]
        count = fill_page(entries, limit, lambda entry: entry.ByteSize())
        response = ledgers.ListJournalResponse(
            entries=entries[:count], position=position_message(at.position)
        )
        if more or count < len(entries):
            response.next_page_token = _token(scope, at, rows[count - 1].key)
        return response

    @rpc(partners=True, roles=EVERY_ROLE)
    async def get_statement(
        self, request: ledgers.GetStatementRequest, call: Call
    ) -> ledgers.GetStatementResponse:
        """An account's statement."""
        partner = _whose(request.partner_id, call)
        days = request.days.SerializeToString(deterministic=True).hex()
        scope = ("GetStatement", partner, request.account_id, days)
        at, after = await self._page(request.page_token, scope, request, call)
        limit = request.page_size or ENTRIES_PAGE
        response, rows, more = await self._books.statement(partner, request, at, after, limit)
        entries = [entry_message(row) for row in rows]
        count = fill_page(entries, limit, lambda entry: entry.ByteSize())
        response.entries.extend(entries[:count])
        if more or count < len(entries):
            response.next_page_token = _token(scope, at, rows[count - 1].key)
        return response

    @rpc(roles=EVERY_ROLE)
    async def get_trial_balance(
        self, request: ledgers.GetTrialBalanceRequest, call: Call
    ) -> ledgers.GetTrialBalanceResponse:
        """The trial balance."""
        at = await self._now(call)
        if request.HasField("at"):
            await await_position(self._queries.reached, request.at, call)
            at = as_of(position_of(request.at), at.over_us)
        return await self._books.trial_balance(at)

    @rpc(partners=True, roles=EVERY_ROLE)
    async def get_reconciliation(
        self, request: ledgers.GetReconciliationRequest, call: Call
    ) -> ledgers.GetReconciliationResponse:
        """A period's totals."""
        partner = _whose(request.partner_id, call)
        at = await self._at_least(request, call)
        fresh = request.HasField("at_least")
        return await self._books.reconciliation(partner, request, at, fresh=fresh)

    @rpc(partners=True, roles=EVERY_ROLE)
    async def get_digest(
        self, request: ledgers.GetDigestRequest, call: Call
    ) -> ledgers.GetDigestResponse:
        """A digest, and what is below it."""
        partner = _whose(request.partner_id, call)
        at = await self._at_least(request, call)
        try:
            period = Period(request.from_time.ToMicroseconds(), request.to_time.ToMicroseconds())
        except ValueError as error:
            told = FieldViolation("from_time", "timestamp.range", "is no time")
            raise Refused(INVALID_REQUEST, fields=[told]) from error
        fresh = request.HasField("at_least")
        position, tree = await self._books.tree(
            partner, request.currency_code, period, at, fresh=fresh
        )
        response = digest_answer(tree, request.prefix)
        response.position.CopyFrom(position_message(position))
        return response

    # ---- where an answer stands ----------------------------------------------------------------

    async def _now(self, call: Call) -> AsOf:
        """As far as the projection is, once it has all that this process has read."""
        position, time_us = self._edge.position, self._edge.log_time_us
        caught_up = await self._queries.reached(position, call.wait_s(LAG_S))
        return as_of(self._queries.position, time_us if caught_up else 0)

    async def _at_least(
        self, request: ledgers.GetReconciliationRequest | ledgers.GetDigestRequest, call: Call
    ) -> AsOf:
        if request.HasField("at_least"):
            await await_position(self._queries.reached, request.at_least, call)
        return await self._now(call)

    async def _page(
        self,
        token: str,
        scope: tuple[str, ...],
        request: ledgers.ListJournalRequest | ledgers.GetStatementRequest,
        call: Call,
    ) -> tuple[AsOf, int]:
        """What the answer stands for, and the key that its page begins behind. All pages stand for
        what the first one does."""
        if request.HasField("at_least"):
            at_least: PositionMessage = request.at_least
            await await_position(self._queries.reached, at_least, call)
        at = await self._now(call)
        if not token:
            return at, -1
        end, after, over = (_key(part) for part in open_token(token, scope, 3))
        return AsOf(end, _position(end), over), after


def _whose(named: str, call: Call) -> str:
    """Whose books are asked for. Raises Refused."""
    own = call.caller.partner
    if own:
        if named not in ("", own):
            raise Refused(PERMISSION_DENIED, {"method": call.method, "allowed": own})
        return own
    if not named:
        told = FieldViolation("partner_id", "partner.named", "operators name a partner")
        raise Refused(INVALID_REQUEST, fields=[told])
    return named


def _token(scope: tuple[str, ...], at: AsOf, after: int) -> str:
    return seal_token(scope, str(at.end), str(after), str(at.over_us))


def _position(end: int) -> Position:
    """The last position before a key."""
    found = position_of_key(end - 1)
    return found._replace(index=END_OF_ENTRY) if found.index == LAST_INDEX else found


def _key(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > MAX_KEY_DIGITS:
        raise Refused(PAGE_TOKEN_INVALID)
    return int(text)
