"""What `sabot bench` compares with: the same PlaceBets as one SQL transaction per request.

SQLite in WAL mode with `synchronous=FULL`, so that a bet that was answered survives a power cut, as
Sabot's does. The checks are the same: token, deadline, the protos' rules, the request id with its
hash, round, currency, bets offered, limits, opposite sides, account, funds. Then the stake is
reserved and written into a double-entry journal. No metrics, no traces, no history for auditors.
Statements run in the event loop itself: in a thread of their own each of them would wait for the
interpreter's lock twice.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from pathlib import Path
from typing import Any, cast

import grpc

from sabot.log.v1.entry_pb2 import Position
from sabot.partner.v1 import partner_service_pb2 as partners
from sabot.table.v1 import bet_pb2
from services.cli.bench_child import arguments, say, until_stopped
from services.cli.bench_load import (
    ACCOUNTS,
    CURRENCY,
    DEPOSIT_MINOR,
    LIMIT_MINOR,
    PARTNER,
    PLACE_BETS,
    TABLE,
    account,
)
from services.kernel import event_loop
from services.kernel.checks import checker
from services.kernel.errors import Refused
from services.kernel.tokens import Tokens

ROUNDS = 200
"""Rounds that are open from the start: one for each slice of a run, and more."""
MAX_BETS = 500
"""Of an account in a round, as at a table."""
OPPOSITE = {"player": "banker", "banker": "player"}

SCHEMA = """
CREATE TABLE accounts (
  partner TEXT, account_id TEXT, currency_code TEXT NOT NULL, standing TEXT NOT NULL,
  available_minor INTEGER NOT NULL CHECK (available_minor >= 0),
  reserved_minor INTEGER NOT NULL CHECK (reserved_minor >= 0),
  PRIMARY KEY (partner, account_id)
) WITHOUT ROWID;
CREATE TABLE rounds (
  round_id TEXT PRIMARY KEY, table_id TEXT NOT NULL, currency_code TEXT NOT NULL,
  state TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE limits (
  table_id TEXT, bet TEXT, min_minor INTEGER, max_minor INTEGER, step_minor INTEGER,
  PRIMARY KEY (table_id, bet)
) WITHOUT ROWID;
CREATE TABLE holdings (
  round_id TEXT, partner TEXT, account_id TEXT, bet TEXT,
  stake_minor INTEGER NOT NULL, bets INTEGER NOT NULL,
  PRIMARY KEY (round_id, partner, account_id, bet)
) WITHOUT ROWID;
CREATE TABLE requests (
  partner TEXT, round_id TEXT, request_id TEXT, hash BLOB NOT NULL, answer BLOB,
  PRIMARY KEY (partner, round_id, request_id)
) WITHOUT ROWID;
CREATE TABLE bets (
  number INTEGER PRIMARY KEY, partner TEXT NOT NULL, account_id TEXT NOT NULL,
  round_id TEXT NOT NULL, request_id TEXT NOT NULL, bet TEXT NOT NULL,
  stake_minor INTEGER NOT NULL, placed_us INTEGER NOT NULL
);
CREATE TABLE journal (
  entry INTEGER PRIMARY KEY, kind TEXT NOT NULL, round_id TEXT, request_id TEXT,
  time_us INTEGER NOT NULL
);
CREATE TABLE postings (
  entry INTEGER, line INTEGER, partner TEXT, account_id TEXT, book TEXT,
  currency_code TEXT NOT NULL, amount_minor INTEGER NOT NULL,
  PRIMARY KEY (entry, line)
) WITHOUT ROWID;
"""


class Refusal(Exception):
    """The bets are not on."""

    def __init__(self, code: grpc.StatusCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Book:
    """The database and what is done with it."""

    def __init__(self, path: Path) -> None:
        """Make it, with accounts that have money, one table and its open rounds."""
        self._sql = sqlite3.connect(path, isolation_level=None, cached_statements=64)
        self._sql.execute("PRAGMA journal_mode=WAL")
        self._sql.execute("PRAGMA synchronous=FULL")
        self._sql.executescript(SCHEMA)
        self._sql.execute("BEGIN")
        self._sql.executemany(
            "INSERT INTO accounts VALUES (?, ?, ?, 'open', ?, 0)",
            [(PARTNER, account(number), CURRENCY, DEPOSIT_MINOR) for number in range(ACCOUNTS)],
        )
        self._sql.executemany(
            "INSERT INTO rounds VALUES (?, ?, ?, 'betting')",
            [(f"{TABLE}-{number}", TABLE, CURRENCY) for number in range(1, ROUNDS + 1)],
        )
        self._sql.executemany(
            "INSERT INTO limits VALUES (?, ?, 100, ?, ?)",
            [(TABLE, bet, LIMIT_MINOR, 20) for bet in ("banker", "player", "tie")],
        )
        self._sql.execute("COMMIT")

    def place(self, partner: str, request: partners.PlaceBetsRequest) -> bytes:
        """Take bets, all or none, durably. Raises Refusal."""
        self._sql.execute("BEGIN IMMEDIATE")
        try:
            answer = self._place(partner, request, time.time_ns() // 1000)
            self._sql.execute("COMMIT")
        except BaseException:
            self._sql.execute("ROLLBACK")
            raise
        return answer

    def total_minor(self) -> int:
        """All postings: 0."""
        (total,) = self._sql.execute(
            "SELECT coalesce(sum(amount_minor), 0) FROM postings"
        ).fetchone()
        return int(total)

    def money(self, partner: str, account_id: str) -> tuple[int, int]:
        """An account's available and reserved minor units."""
        available, reserved = self._sql.execute(
            "SELECT available_minor, reserved_minor FROM accounts"
            " WHERE partner = ? AND account_id = ?",
            (partner, account_id),
        ).fetchone()
        return int(available), int(reserved)

    def close(self) -> None:
        """Let go of the file."""
        self._sql.close()

    def _place(self, partner: str, request: partners.PlaceBetsRequest, now_us: int) -> bytes:
        key = (partner, request.round_id, request.request_id)
        digest = _hash(request)
        taken = self._sql.execute(
            "INSERT INTO requests VALUES (?, ?, ?, ?, NULL) ON CONFLICT DO NOTHING", (*key, digest)
        )
        if not taken.rowcount:
            return self._replayed(key, digest)
        total = self._judge(partner, request)
        self._reserve(partner, request, total)
        answer = partners.PlaceBetsResponse(
            bets=self._write_bets(partner, request, now_us),
            position=Position(segment=1, sequence=self._post(partner, request, total, now_us)),
        ).SerializeToString()
        self._sql.execute(
            "UPDATE requests SET answer = ? WHERE partner = ? AND round_id = ? AND request_id = ?",
            (answer, *key),
        )
        return answer

    def _replayed(self, key: tuple[str, str, str], digest: bytes) -> bytes:
        first, raw = self._sql.execute(
            "SELECT hash, answer FROM requests"
            " WHERE partner = ? AND round_id = ? AND request_id = ?",
            key,
        ).fetchone()
        if first != digest:
            raise Refusal(grpc.StatusCode.ALREADY_EXISTS, "REQUEST_ID_REUSED")
        answer = partners.PlaceBetsResponse.FromString(raw)
        answer.replayed = True
        return answer.SerializeToString()

    def _judge(self, partner: str, request: partners.PlaceBetsRequest) -> int:
        """The stakes in all. Raises Refusal."""
        found = self._sql.execute(
            "SELECT table_id, currency_code, state FROM rounds WHERE round_id = ?",
            (request.round_id,),
        ).fetchone()
        if found is None or found[0] != request.table_id:
            raise Refusal(grpc.StatusCode.NOT_FOUND, "ROUND_NOT_FOUND")
        if found[2] != "betting":
            raise Refusal(grpc.StatusCode.FAILED_PRECONDITION, "BETTING_CLOSED")
        if any(bet.stake.currency_code != found[1] for bet in request.bets):
            raise Refusal(grpc.StatusCode.INVALID_ARGUMENT, "CURRENCY_MISMATCH")
        limits = {
            row[0]: row[1:]
            for row in self._sql.execute(
                "SELECT l.bet, l.min_minor, l.max_minor, l.step_minor,"
                " coalesce(h.stake_minor, 0), coalesce(h.bets, 0)"
                " FROM limits l LEFT JOIN holdings h ON h.round_id = ? AND h.partner = ?"
                " AND h.account_id = ? AND h.bet = l.bet WHERE l.table_id = ?",
                (request.round_id, partner, request.account_id, request.table_id),
            )
        }
        added: dict[str, int] = {}
        for bet in request.bets:
            if bet.bet not in limits:
                raise Refusal(grpc.StatusCode.INVALID_ARGUMENT, "UNKNOWN_BET")
            added[bet.bet] = added.get(bet.bet, 0) + bet.stake.minor_units
        if sum(row[4] for row in limits.values()) + len(request.bets) > MAX_BETS:
            raise Refusal(grpc.StatusCode.FAILED_PRECONDITION, "TOO_MANY_BETS")
        for name, stake in added.items():
            least, most, step, held, _ = limits[name]
            if not least <= held + stake <= most or (held + stake) % step:
                raise Refusal(grpc.StatusCode.FAILED_PRECONDITION, "STAKE_LIMIT")
            other = OPPOSITE.get(name)
            if other is not None and (other in added or limits[other][3]):
                raise Refusal(grpc.StatusCode.FAILED_PRECONDITION, "OPPOSITE_SIDES")
        return sum(added.values())

    def _reserve(self, partner: str, request: partners.PlaceBetsRequest, total: int) -> None:
        found = self._sql.execute(
            "SELECT standing, currency_code, available_minor FROM accounts"
            " WHERE partner = ? AND account_id = ?",
            (partner, request.account_id),
        ).fetchone()
        if found is None:
            raise Refusal(grpc.StatusCode.NOT_FOUND, "ACCOUNT_NOT_FOUND")
        if found[0] != "open":
            raise Refusal(grpc.StatusCode.FAILED_PRECONDITION, "ACCOUNT_CLOSED")
        if found[1] != request.bets[0].stake.currency_code:
            raise Refusal(grpc.StatusCode.FAILED_PRECONDITION, "CURRENCY_MISMATCH")
        if found[2] < total:
            raise Refusal(grpc.StatusCode.FAILED_PRECONDITION, "INSUFFICIENT_FUNDS")
        self._sql.execute(
            "UPDATE accounts SET available_minor = available_minor - ?,"
            " reserved_minor = reserved_minor + ? WHERE partner = ? AND account_id = ?",
            (total, total, partner, request.account_id),
        )

    def _write_bets(
        self, partner: str, request: partners.PlaceBetsRequest, now_us: int
    ) -> list[bet_pb2.Bet]:
        placed: list[bet_pb2.Bet] = []
        owner = (partner, request.account_id)
        for bet in request.bets:
            stake = bet.stake.minor_units
            number = self._sql.execute(
                "INSERT INTO bets VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)",
                (*owner, request.round_id, request.request_id, bet.bet, stake, now_us),
            ).lastrowid
            self._sql.execute(
                "INSERT INTO holdings VALUES (?, ?, ?, ?, ?, 1) ON CONFLICT DO UPDATE"
                " SET stake_minor = stake_minor + excluded.stake_minor, bets = bets + 1",
                (request.round_id, *owner, bet.bet, stake),
            )
            bet_id = f"{request.round_id}.{number}"
            placed.append(bet_pb2.Bet(bet_id=bet_id, bet=bet.bet, stake_minor=stake))
        return placed

    def _post(
        self, partner: str, request: partners.PlaceBetsRequest, total: int, now_us: int
    ) -> int:
        """Available → reserved; the journal's entry."""
        entry = self._sql.execute(
            "INSERT INTO journal VALUES (NULL, 'reserve', ?, ?, ?)",
            (request.round_id, request.request_id, now_us),
        ).lastrowid
        owner = (partner, request.account_id)
        self._sql.execute(
            "INSERT INTO postings VALUES (?, 1, ?, ?, 'available', ?, ?),"
            " (?, 2, ?, ?, 'reserved', ?, ?)",
            (entry, *owner, CURRENCY, -total, entry, *owner, CURRENCY, total),
        )
        return entry or 0


def _hash(request: partners.PlaceBetsRequest) -> bytes:
    """Of what is asked; when it was sent is no part of it."""
    asked = partners.PlaceBetsRequest()
    asked.CopyFrom(request)
    asked.ClearField("client_send_time")
    return hashlib.sha256(asked.SerializeToString(deterministic=True)).digest()


class _Handlers(grpc.GenericRpcHandler):
    """PlaceBets as bytes in, bytes out, like the kernel's server."""

    def __init__(self, book: Book, tokens: Tokens) -> None:
        self._book = book
        self._tokens = tokens
        self._check = checker(partners.PlaceBetsRequest)

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        if handler_call_details.method != PLACE_BETS:
            return None
        return grpc.unary_unary_rpc_method_handler(self._place_bets)

    async def _place_bets(self, raw: bytes, context: grpc.aio.ServicerContext[Any, Any]) -> bytes:
        try:
            partner = self._partner(context)
            request = cast("partners.PlaceBetsRequest", self._check(raw))
            return self._book.place(partner, request)
        except Refusal as refusal:
            await context.abort(refusal.code, str(refusal))
        except Refused as refused:
            await context.abort(refused.reason.code, refused.reason.name)

    def _partner(self, context: grpc.aio.ServicerContext[Any, Any]) -> str:
        """Who calls. Raises Refusal."""
        authorization = ""
        for key, value in context.invocation_metadata() or ():
            if key == "authorization":
                authorization = str(value)
        caller = self._tokens.caller(authorization.removeprefix("Bearer "))
        if caller is None or not caller.partner:
            raise Refusal(grpc.StatusCode.UNAUTHENTICATED, "TOKEN_UNKNOWN")
        left_s = cast("float | None", context.time_remaining())  # the stubs forget None
        if left_s is None:
            raise Refusal(grpc.StatusCode.INVALID_ARGUMENT, "DEADLINE_REQUIRED")
        return caller.partner


async def _main(database: Path, token_file: Path) -> None:
    book = Book(database)
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((_Handlers(book, Tokens(token_file)),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    say(address=f"127.0.0.1:{port}")
    await until_stopped()
    await server.stop(None)
    book.close()


if __name__ == "__main__":
    told_database, told_tokens = arguments(("DATABASE", "TOKEN_FILE"))
    event_loop.run(_main(Path(told_database), Path(told_tokens)))
