"""Requests that are no requests: each is told as such, and none reaches a servicer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from google.protobuf import json_format

from sabot.money.v1.money_pb2 import Money
from sabot.partner.v1 import partner_service_pb2 as partners
from sabot.table.v1 import bet_pb2
from sabot.table.v1 import events_pb2 as tables
from sabot.table.v1 import operator_service_pb2 as operators
from sabot.wallet.v1 import wallet_service_pb2 as wallets
from tests.contract.serving import (
    DEPOSIT,
    LIST_BETS,
    OPEN_TABLE,
    PLACE,
    UUID7,
    VOID,
    Served,
    accepts,
    fields_of,
    place,
    serving,
)


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with serving() as found:
        yield found


# ---- what is malformed -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "garbage", [b"\xff", b"\x0a\xff\x01", b"\x00" * 100, b"{}", b"\x0a\x02\xc3\x28"]
)
async def test_garbage_is_told_as_such_and_the_server_lives(served: Served, garbage: bytes) -> None:
    error, info = await served.refused(PLACE, garbage)
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert info.reason == "MALFORMED_REQUEST"
    served.partner.does["place_bets"] = accepts
    assert await served.call(PLACE, place().SerializeToString())


async def test_grpc_03_a_request_of_5_mib_is_refused_and_the_server_lives(served: Served) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await served.call(PLACE, b"\x0a" + b"x" * (5 * 1024 * 1024))
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    served.partner.does["place_bets"] = accepts
    assert await served.call(PLACE, place().SerializeToString())
    assert len(served.partner.seen) == 1


@pytest.mark.parametrize("page_size", [-1, -(2**31), 501, 10**9, 2**31 - 1])
async def test_grpc_03_page_sizes_out_of_range_are_refused(served: Served, page_size: int) -> None:
    request = partners.ListBetsRequest(page_size=page_size)
    error, info = await served.refused(LIST_BETS, request.SerializeToString())
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert info.reason == "INVALID_REQUEST"
    assert fields_of(error) == {"page_size"}


@pytest.mark.parametrize("page_size", [0, 1, 500])
async def test_grpc_03_page_sizes_in_range_are_served(served: Served, page_size: int) -> None:
    served.partner.does["list_bets"] = lambda _request, _call: partners.ListBetsResponse()
    await served.call(LIST_BETS, partners.ListBetsRequest(page_size=page_size).SerializeToString())
    assert served.partner.seen[0][0].page_size == page_size


@pytest.mark.parametrize(
    ("change", "field_name"),
    [
        ({"request_id": ""}, "request_id"),
        ({"request_id": "r" * 65}, "request_id"),
        ({"request_id": "r\n"}, "request_id"),
        ({"request_id": "r 1"}, "request_id"),
        ({"request_id": "r\x00"}, "request_id"),
        ({"request_id": "\u202er"}, "request_id"),
        ({"account_id": "Zoë"}, "account_id"),
        ({"account_id": "a\x7f"}, "account_id"),
        ({"table_id": "T1"}, "table_id"),
        ({"table_id": "-t"}, "table_id"),
        ({"table_id": "t" * 33}, "table_id"),
        ({"round_id": "t1/7"}, "round_id"),
        ({"round_id": "t1-7\n"}, "round_id"),
        ({"bets": []}, "bets"),
        ({"bets": [bet_pb2.BetRequest(bet="player")]}, "bets[0].stake"),
    ],
)
async def test_what_a_proto_forbids_never_reaches_a_servicer(
    served: Served, change: dict[str, Any], field_name: str
) -> None:
    error, info = await served.refused(PLACE, place(**change).SerializeToString())
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert info.reason == "INVALID_REQUEST"
    assert fields_of(error) == {field_name}
    assert not served.partner.seen


@pytest.mark.parametrize(
    ("bet", "currency", "minor", "fields"),
    [
        ("", "EUR", 500, {"bets[0].bet"}),
        ("Player", "EUR", 500, {"bets[0].bet"}),
        ("player", "eur", 500, {"bets[0].stake.currency_code"}),
        ("player", "", 500, {"bets[0].stake.currency_code"}),
        ("player", "EUR", 0, {"bets[0].stake"}),
        ("player", "EUR", -1, {"bets[0].stake"}),
        ("player", "EUR", 10**12 + 1, {"bets[0].stake"}),
        ("player", "EUR", 2**63 - 1, {"bets[0].stake"}),
        ("player", "EUR", -(2**63), {"bets[0].stake"}),
    ],
)
async def test_a_bet_that_is_none_names_its_field(
    served: Served, bet: str, currency: str, minor: int, fields: set[str]
) -> None:
    stake = Money(currency_code=currency, minor_units=minor)
    request = place(bets=[bet_pb2.BetRequest(bet=bet, stake=stake)])
    error, _ = await served.refused(PLACE, request.SerializeToString())
    assert fields_of(error) == fields


async def test_too_many_bets_are_refused(served: Served) -> None:
    error, _ = await served.refused(PLACE, place(bets=list(place().bets) * 33).SerializeToString())
    assert fields_of(error) == {"bets"}


# ---- GRPC-04 -----------------------------------------------------------------------------------


def test_grpc_04_an_int64_survives_json_as_a_string() -> None:
    money = Money(currency_code="EUR", minor_units=9007199254740993)
    text = json_format.MessageToJson(money)
    assert '"9007199254740993"' in text
    assert json_format.Parse(text, Money()) == money


@pytest.mark.parametrize(
    ("written", "minor"), [("123", 123), ('"123"', 123), ('"1.0"', 1), ("1e2", 100)]
)
def test_grpc_04_json_that_means_a_whole_number_is_one(written: str, minor: int) -> None:
    try:
        money = json_format.Parse(f'{{"minorUnits": {written}}}', Money())
    except json_format.ParseError:
        # A library may be stricter than the format; then the caller is told, and no amount changes.
        assert written == '"1.0"'
    else:
        assert money.minor_units == minor


@pytest.mark.parametrize("written", ["1.5", '"1.5"', '""', '"x"', "true", "9223372036854775808"])
def test_grpc_04_json_that_is_no_whole_number_is_refused(written: str) -> None:
    with pytest.raises(json_format.ParseError):
        json_format.Parse(f'{{"minorUnits": {written}}}', Money())


def test_grpc_04_an_unknown_enum_name_is_refused_in_json() -> None:
    with pytest.raises(json_format.ParseError):
        json_format.Parse('{"reason": "NOPE"}', operators.VoidRoundRequest())


def test_grpc_04_zero_of_every_enum_is_unspecified() -> None:
    for module in (partners, operators, tables, wallets):
        for enum in module.DESCRIPTOR.enum_types_by_name.values():
            assert enum.values_by_number[0].name.endswith("_UNSPECIFIED"), enum.full_name


@pytest.mark.parametrize("reason", [None, 0, 999, -1])
async def test_grpc_04_an_enum_missing_zero_or_unknown_is_invalid(
    served: Served, reason: int | None
) -> None:
    request = operators.VoidRoundRequest(request_id=UUID7, table_id="t1", round_id="t1-7")
    if reason is not None:
        request.reason = reason  # type: ignore[assignment]  # what a newer client might send
    error, info = await served.refused(VOID, request.SerializeToString(), bearer="s-token")
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert info.reason == "INVALID_REQUEST"
    assert fields_of(error) == {"reason"}
    assert not served.operator.seen


async def test_grpc_04_an_unknown_enum_is_found_deep_in_a_message(served: Served) -> None:
    request = operators.OpenTableRequest(request_id=UUID7)
    request.spec.table_id = "t1"
    request.spec.rule_set.game = 999  # type: ignore[assignment]  # what a newer client might send
    error, _ = await served.refused(OPEN_TABLE, request.SerializeToString(), bearer="s-token")
    assert "spec.rule_set.game" in fields_of(error)


@pytest.mark.parametrize("bet", [None, "", "0", "999"])
async def test_grpc_04_a_bet_without_a_kind_is_never_a_bet_on_player(
    served: Served, bet: str | None
) -> None:
    served.partner.does["place_bets"] = accepts
    stake = Money(currency_code="EUR", minor_units=500)
    request = place(bets=[bet_pb2.BetRequest(bet=bet or "", stake=stake)])
    if bet:  # a kind like any other, which no table offers: the table's core says so
        await served.call(PLACE, request.SerializeToString())
        assert served.partner.seen[0][0].bets[0].bet == bet
        return
    error, _ = await served.refused(PLACE, request.SerializeToString())
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert fields_of(error) == {"bets[0].bet"}


async def test_grpc_04_an_amount_unset_is_not_zero(served: Served) -> None:
    request = wallets.DepositRequest(request_id=UUID7, account_id="a-1")
    error, _ = await served.refused(DEPOSIT, request.SerializeToString())
    assert fields_of(error) == {"amount"}
    request.amount.currency_code = "EUR"
    error, _ = await served.refused(DEPOSIT, request.SerializeToString())
    assert fields_of(error) == {"amount"}
