"""Bad input over the wire: each gets a clear error of the catalogue, and the service goes on.

What is malformed never reaches the log: its last sequence stays. What is well formed and refused is
an input like any other, and stands there with its answer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message

from sabot.money.v1.money_pb2 import Money
from sabot.partner.v1 import partner_service_pb2 as partner
from sabot.table.v1 import bet_pb2
from sabot.table.v1 import operator_service_pb2 as operators
from sabot.wallet.v1 import wallet_service_pb2 as wallets
from services.cli.errors_doc import SECTIONS
from services.cli.uuid7 import uuid7
from tests.fleet.clients import PATIENCE_S, Operator, Partner, money, reason_of, table_spec
from tests.fleet.running import Inside, inside

C = grpc.StatusCode
CATALOGUE = {reason.name for reasons in SECTIONS.values() for reason in reasons}
MAX_INT64 = (1 << 63) - 1
PLACE = "/sabot.partner.v1.PartnerService/PlaceBets"
TABLES = "/sabot.table.v1.TableOperatorService/"
WALLET = "/sabot.wallet.v1.WalletService/"
PARTNER = "/sabot.partner.v1.PartnerService/"
LIST = PARTNER + "ListBets"
TRACES_OF_CODE = ("Traceback", "Error(", "Exception", "services/", ".py", "object at 0x")


@dataclass(frozen=True)
class Hall:
    """An open round with an account at the table."""

    running: Inside
    north: Partner
    dealer: Operator
    round_id: str

    async def told(
        self, path: str, request: bytes | Message, *, who: Any = None, **options: Any
    ) -> tuple[grpc.StatusCode, str]:
        """Code and reason of the catalogue that a call is answered with."""
        raw = request if isinstance(request, bytes) else request.SerializeToString()
        caller = who or self.north
        call: Any = caller.servers.channel.unary_unary(path)
        options = {"metadata": caller.metadata, "timeout": PATIENCE_S} | options
        try:
            await call(raw, **options)
        except grpc.aio.AioRpcError as error:
            text = str(error.details())
            assert not any(trace in text for trace in TRACES_OF_CODE), text
            return error.code(), reason_of(error)
        return C.OK, ""


@asynccontextmanager
async def hall(folder: Path) -> AsyncIterator[Hall]:
    async with inside(folder / "data") as running:
        north, dealer = running.partner("north"), running.operator()
        await dealer.open_table(table_spec("t1"))
        await north.open_account("anna", 100_00)
        yield Hall(running, north, dealer, await dealer.open_round("t1"))


def bets(round_id: str, *wagers: tuple[str, int], **other: Any) -> partner.PlaceBetsRequest:
    fields: dict[str, Any] = {
        "request_id": uuid7(),
        "account_id": "anna",
        "table_id": "t1",
        "round_id": round_id,
        "bets": [
            bet_pb2.BetRequest(bet=bet, stake=money(minor))
            for bet, minor in wagers or [("player", 100)]
        ],
    }
    return partner.PlaceBetsRequest(**fields | other)


def in_money(code: str, minor: int = 100) -> list[bet_pb2.BetRequest]:
    return [bet_pb2.BetRequest(bet="player", stake=Money(currency_code=code, minor_units=minor))]


def malformed(h: Hall) -> dict[str, Callable[[], Awaitable[tuple[grpc.StatusCode, str]]]]:
    """Requests that are none, by what is wrong with them."""
    at = h.round_id
    suspend = operators.SuspendRoundRequest(request_id=uuid7(), table_id="t1", round_id=at)
    suspend_99 = operators.SuspendRoundRequest(
        request_id=uuid7(), table_id="t1", round_id=at, reason=99  # type: ignore[arg-type] # the point
    )  # fmt: skip
    deposit = wallets.DepositRequest(request_id=uuid7(), account_id="anna")
    # minor_units as a double (wire type 1) instead of an integer: no field of Money.
    fraction = b"\x0a\x03EUR\x11\x00\x00\x00\x00\x00\x00\xf8\x3f"
    fractional = bets(at, bets=[]).SerializeToString() + _field(
        5, b"\x0a\x06player" + _field(2, fraction)
    )
    requests: dict[str, tuple[str, bytes | Message]] = {
        "a stake of zero": (PLACE, bets(at, ("player", 0))),
        "a negative stake": (PLACE, bets(at, ("player", -100))),
        "a stake above all": (PLACE, bets(at, ("player", MAX_INT64))),
        "a stake of 1.5": (PLACE, fractional),
        "no bets": (PLACE, bets(at, bets=[])),
        "33 bets": (PLACE, bets(at, *[("player", 100)] * 33)),
        "a bet without a kind": (PLACE, bets(at, ("", 100))),
        "a bet without a stake": (PLACE, bets(at, bets=[bet_pb2.BetRequest(bet="player")])),
        "no currency": (PLACE, bets(at, bets=in_money("EURO"))),
        "two currencies": (PLACE, bets(at, bets=in_money("EUR") + in_money("USD"))),
        "an account that is not ASCII": (PLACE, bets(at, account_id="änna")),
        "control characters in an id": (PLACE, bets(at, request_id="a\x00b\n")),
        "an id of 65": (PLACE, bets(at, request_id="x" * 65)),
        "no request id": (PLACE, bets(at, request_id="")),
        "bytes that are no message": (PLACE, b"\xff\xff\xff"),
        "a text that is no UTF-8": (PLACE, _field(1, b"\xc3\x28")),
        "a reason that is missing": (TABLES + "SuspendRound", suspend),
        "a reason that there is not": (TABLES + "SuspendRound", suspend_99),
        "a deposit of nothing": (WALLET + "Deposit", deposit),
        "a deposit of 1.5": (WALLET + "Deposit", deposit.SerializeToString() + _field(3, fraction)),
        "a withdrawal of 1.5": (
            WALLET + "Withdraw",
            wallets.WithdrawRequest(request_id=uuid7(), account_id="anna").SerializeToString()
            + _field(3, fraction),
        ),
        "a request id that is no UUIDv7": (
            WALLET + "Deposit",
            wallets.DepositRequest(request_id="1", account_id="anna", amount=money(1)),
        ),
        "a page of -1": (LIST, partner.ListBetsRequest(page_size=-1)),
        "a page of 10**9": (LIST, partner.ListBetsRequest(page_size=10**9)),
        "a page token that is none": (LIST, partner.ListBetsRequest(page_token="?")),  # noqa: S106 - no secret
    }  # fmt: skip

    def call(path: str, request: bytes | Message) -> Callable[[], Awaitable[Any]]:
        return lambda: h.told(path, request, who=h.dealer if path.startswith(TABLES) else None)

    return {what: call(*each) for what, each in requests.items()}


def _field(number: int, content: bytes) -> bytes:
    """A length-delimited field, on the wire."""
    return bytes([number << 3 | 2, len(content)]) + content


async def test_what_is_malformed_never_reaches_the_log(tmp_path: Path) -> None:
    async with hall(tmp_path) as h:
        before = await h.running.last_sequence()
        wrong = []
        for what, call in malformed(h).items():
            code, reason = await call()
            if code is not C.INVALID_ARGUMENT or reason not in CATALOGUE:
                wrong.append((what, code.name, reason))
        place = bets(h.round_id)
        others = {
            "5 MiB": (await h.told(PLACE, b"\x0a" * (5 << 20)), C.RESOURCE_EXHAUSTED, ""),
            "no deadline": (
                await h.told(PLACE, place, timeout=None), C.INVALID_ARGUMENT, "DEADLINE_REQUIRED",
            ),
            "no token": (
                await h.told(PLACE, place, metadata=()), C.UNAUTHENTICATED, "TOKEN_MISSING",
            ),
            "an unknown token": (
                await h.told(PLACE, place, metadata=(("authorization", "Bearer none"),)),
                C.UNAUTHENTICATED, "TOKEN_UNKNOWN",
            ),
            "an operator's bet": (
                await h.told(PLACE, place, who=h.dealer), C.PERMISSION_DENIED, "PERMISSION_DENIED",
            ),
            "a partner's order": (
                await h.told(
                    TABLES + "OpenRound",
                    operators.OpenRoundRequest(request_id=uuid7(), table_id="t1"),
                ),
                C.PERMISSION_DENIED, "PERMISSION_DENIED",
            ),
            "a method that there is not": (
                await h.told(PARTNER + "WinAlways", b""), C.UNIMPLEMENTED, "",
            ),
        }  # fmt: skip
        wrong += [
            (what, got[0].name, got[1])
            for what, (got, code, reason) in others.items()
            if got != (code, reason)
        ]
        assert wrong == []
        assert await h.running.last_sequence() == before
        # The service goes on, on the same channel.
        assert (await h.north.place("anna", h.round_id, ("player", 40_00))).bets
        assert await h.north.balance("anna") == (60_00, 40_00)


async def test_what_is_well_formed_and_refused_stands_in_the_log(tmp_path: Path) -> None:
    async with hall(tmp_path) as h:
        at, reused = h.round_id, uuid7()
        assert await h.told(PLACE, bets(at, ("player", 1_00), request_id=reused)) == (C.OK, "")
        refused: Sequence[tuple[str, partner.PlaceBetsRequest, grpc.StatusCode, str]] = (
            ("no such table", bets(at, table_id="t9"), C.NOT_FOUND, "TABLE_NOT_FOUND"),
            ("no such round", bets("t1-99"), C.NOT_FOUND, "ROUND_NOT_FOUND"),
            ("no such bet", bets(at, ("dragon", 100)), C.INVALID_ARGUMENT, "BET_NOT_OFFERED"),
            ("no such account", bets(at, account_id="nobody"), C.NOT_FOUND, "ACCOUNT_NOT_FOUND"),
            ("not its currency", bets(at, bets=in_money("USD")), C.INVALID_ARGUMENT,
             "CURRENCY_MISMATCH"),
            ("too little", bets(at, ("tie", 80)), C.FAILED_PRECONDITION, "BELOW_MINIMUM"),
            ("too much", bets(at, ("player", 9_999_00)), C.FAILED_PRECONDITION, "ABOVE_MAXIMUM"),
            ("not in steps", bets(at, ("player", 1_01)), C.FAILED_PRECONDITION, "STAKE_STEP"),
            ("both sides", bets(at, ("banker", 1_00)), C.FAILED_PRECONDITION, "OPPOSITE_SIDES"),
            ("more than there is", bets(at, ("player", 500_00)), C.FAILED_PRECONDITION,
             "INSUFFICIENT_FUNDS"),
            ("another body", bets(at, ("player", 2_00), request_id=reused), C.ALREADY_EXISTS,
             "REQUEST_ID_REUSED"),
        )  # fmt: skip
        wrong = []
        for what, request, code, reason in refused:
            before = await h.running.last_sequence()
            got = await h.told(PLACE, request)
            if got != (code, reason):
                wrong.append((what, got[0].name, got[1]))
            if await h.running.last_sequence() < before + 2:
                wrong.append((what, "is not in the log with its answer", ""))
        assert wrong == []

        # Another partner's account is one that there is not, word by word.
        south = h.running.partner("south")
        errors = []
        for account in ("anna", "nobody"):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await south.wallet.GetBalance(
                    wallets.GetBalanceRequest(account_id=account),
                    metadata=south.metadata, timeout=PATIENCE_S,
                )  # fmt: skip
            errors.append((caught.value.code(), str(caught.value.details()).replace(account, "")))
        assert errors[0] == errors[1]

        await h.dealer.close_betting(at)
        late = await h.told(PLACE, bets(at))
        assert late in {
            (C.FAILED_PRECONDITION, "BETTING_CLOSED"),
            (C.FAILED_PRECONDITION, "REQUEST_EXPIRED"),
        }
        await h.north.round_in("t1", partner.ROUND_STATE_PAID)
        ledger = await h.running.ledger()
        assert ledger.at_rest() == []
        assert [stake for _, _, stake in ledger.stakes.values()] == [1_00]
