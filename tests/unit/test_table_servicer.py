"""PartnerService: what it appends, and what its callers are told."""

from __future__ import annotations

import hashlib
import time
from typing import Any

import pytest
from google.protobuf.message import Message

from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1 import entry_pb2
from sabot.log.v1 import events_pb2 as log
from sabot.money.v1.money_pb2 import Money
from sabot.partner.v1 import partner_service_pb2 as partners
from sabot.table.v1 import bet_pb2
from sabot.table.v1 import events_pb2 as tables
from sabot.table.v1 import floor_events_pb2 as orders
from sabot.wallet.v1 import events_pb2 as wallets
from services.kernel import ask
from services.kernel.call import Call, position_message
from services.kernel.edge import OutcomeUnknown
from services.kernel.errors import Refused
from services.kernel.event import Position
from services.table.answers import PLACED, WITHDRAWN
from tests.unit.front import BETS, FIRST, NORTH, REPEATED, SAM, SOUTH, Door, table_state


def place(**change: Any) -> partners.PlaceBetsRequest:
    content: dict[str, Any] = {
        "request_id": "r-1",
        "account_id": "a-1",
        "table_id": "t1",
        "round_id": "t1-7",
        "bets": [
            bet_pb2.BetRequest(
                bet=bet.bet, stake=Money(currency_code="EUR", minor_units=bet.stake_minor)
            )
            for bet in BETS
        ],
    }
    return partners.PlaceBetsRequest(**{**content, **change})


def withdraw(**change: Any) -> partners.WithdrawBetsRequest:
    content: dict[str, Any] = {
        "request_id": "r-2",
        "account_id": "a-1",
        "table_id": "t1",
        "round_id": "t1-7",
        "bet_ids": ["t1-7.1"],
    }
    return partners.WithdrawBetsRequest(**{**content, **change})


# ---- PlaceBets and WithdrawBets ----------------------------------------------------------------


async def test_bets_are_appended_as_asked_and_the_reservation_is_told() -> None:
    door = Door(wallets.StakeReserved(bets=BETS))
    request = place()
    request.client_send_time.FromMicroseconds(1_700_000_000_123_456)
    answer = await door.partner.place_bets(request, NORTH)
    assert list(answer.bets) == BETS
    assert answer.position == position_message(door.edge.position)
    assert not answer.replayed
    (asked,) = door.edge.submitted
    assert (asked.service, asked.partner, asked.actor) == ("table", "north", "partner:north")
    assert asked.until == PLACED
    assert asked.body.client_time_us == 1_700_000_000_123_456
    assert asked.body.currency_code == "EUR"
    assert [(bet.bet_id, bet.bet, bet.stake_minor) for bet in asked.body.bets] == [
        ("", "player", 500),
        ("", "tie", 100),
    ]


async def test_the_hash_covers_all_that_is_asked_and_not_the_clients_clock() -> None:
    changes: list[dict[str, Any]] = [
        {},
        {"account_id": "a-2"},
        {"table_id": "t2"},
        {"round_id": "t1-8"},
        {"request_id": "r-9"},
        {"bets": list(place().bets)[::-1]},
        {"bets": list(place().bets)[:1]},
    ]
    hashes = []
    for change in changes:
        door = Door(wallets.StakeReserved())
        await door.partner.place_bets(place(**change), NORTH)
        hashes.append(door.edge.submitted[0].body.request_hash)
    assert len(set(hashes)) == len(changes)
    door = Door(wallets.StakeReserved())
    late = place()
    late.client_send_time.FromSeconds(5)
    await door.partner.place_bets(late, NORTH)
    body = door.edge.submitted[0].body
    assert body.request_hash == hashes[0]
    bare = tables.PlaceBets()
    bare.CopyFrom(body)
    bare.ClearField("request_hash")
    bare.ClearField("client_time_us")
    content = bare.SerializeToString(deterministic=True)
    kind = b"sabot.table.v1.PlaceBets"
    assert body.request_hash == hashlib.sha256(kind + b"\0" + content).digest()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (wallets.StakeDeclined(decline=wallets.DECLINE_INSUFFICIENT_FUNDS), "INSUFFICIENT_FUNDS"),
        (wallets.StakeDeclined(decline=wallets.DECLINE_UNKNOWN_ACCOUNT), "ACCOUNT_NOT_FOUND"),
        (wallets.StakeDeclined(), "UNEXPECTED_OUTCOME"),
        (
            limits.BetsRefused(violations=[limits.Violation(limit=limits.LIMIT_ABOVE_MAXIMUM)]),
            "ABOVE_MAXIMUM",
        ),
        (tables.BetsRejected(refusal=tables.REFUSAL_BETTING_CLOSED), "BETTING_CLOSED"),
        (tables.BetsRejected(refusal=tables.REFUSAL_REQUEST_EXPIRED), "REQUEST_EXPIRED"),
        (tables.BetsRejected(refusal=tables.REFUSAL_REQUEST_ID_REUSED), "REQUEST_ID_REUSED"),
        (log.InputFailed(), "DECISION_FAILED"),
        (log.InputIgnored(reason=log.IGNORED_REASON_UNKNOWN), "INPUT_IGNORED"),
        (log.InputNoted(), "UNEXPECTED_OUTCOME"),
    ],
)
async def test_whatever_refuses_bets_is_told(answer: Message, reason: str) -> None:
    with pytest.raises(Refused) as caught:
        await Door(answer).partner.place_bets(place(), NORTH)
    assert caught.value.reason.name == reason
    assert caught.value.text("en")
    assert caught.value.text("fr")


async def test_mixed_currencies_never_reach_the_log() -> None:
    door = Door()
    request = place()
    request.bets[1].stake.currency_code = "USD"
    with pytest.raises(Refused) as caught:
        await door.partner.place_bets(request, NORTH)
    assert caught.value.reason.name == "MIXED_CURRENCIES"
    assert caught.value.facts["currencies"] == "EUR, USD"
    assert not door.edge.submitted


@pytest.mark.parametrize(("seconds", "nanos"), [(-1, 0), (2**62, 0), (0, -1), (0, 10**9)])
async def test_a_client_time_that_is_none_never_reaches_the_log(seconds: int, nanos: int) -> None:
    door = Door()
    request = place()
    request.client_send_time.seconds = seconds
    request.client_send_time.nanos = nanos
    with pytest.raises(Refused) as caught:
        await door.partner.place_bets(request, NORTH)
    assert [field.field for field in caught.value.fields] == ["client_send_time"]
    assert not door.edge.submitted


async def test_an_unknown_outcome_goes_up_as_it_is() -> None:
    with pytest.raises(OutcomeUnknown):
        await Door(OutcomeUnknown("x")).partner.place_bets(place(), NORTH)


async def test_a_withdrawal_is_appended_and_the_stakes_told() -> None:
    door = Door(wallets.StakeReturned(bets=BETS[:1]))
    answer = await door.partner.withdraw_bets(withdraw(), NORTH)
    assert list(answer.bets) == BETS[:1]
    (asked,) = door.edge.submitted
    assert asked.until == WITHDRAWN
    assert list(asked.body.bet_ids) == ["t1-7.1"]
    assert len(asked.body.request_hash) == 32


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (
            limits.WithdrawalRefused(
                violations=[limits.Violation(limit=limits.LIMIT_BELOW_MINIMUM)]
            ),
            "BELOW_MINIMUM",
        ),
        (tables.WithdrawalRejected(refusal=tables.REFUSAL_NO_SUCH_BET), "BET_NOT_FOUND"),
        (log.InputFailed(), "DECISION_FAILED"),
        (log.InputNoted(), "UNEXPECTED_OUTCOME"),
    ],
)
async def test_whatever_refuses_a_withdrawal_is_told(answer: Message, reason: str) -> None:
    with pytest.raises(Refused) as caught:
        await Door(answer).partner.withdraw_bets(withdraw(), NORTH)
    assert caught.value.reason.name == reason


# ---- repeats -----------------------------------------------------------------------------------


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask, "REPEAT_POLL_S", 0.0)


async def test_a_repeat_gets_the_first_outcome_even_if_that_is_still_to_come(
    no_pause: None,
) -> None:
    door = Door(REPEATED)
    pending = partners.RequestOutcome(pending=True)
    done = partners.RequestOutcome(reserved=wallets.StakeReserved(bets=BETS))
    door.queries.outcomes[FIRST] = [pending, pending, done]
    answer = await door.partner.place_bets(place(), NORTH)
    assert answer.replayed
    assert list(answer.bets) == BETS
    assert answer.position == position_message(door.queries.position)


async def test_a_repeat_of_what_was_refused_is_refused_the_same_way() -> None:
    door = Door(REPEATED)
    refused = limits.BetsRefused(violations=[limits.Violation(limit=limits.LIMIT_STAKE_STEP)])
    door.queries.outcomes[FIRST] = [partners.RequestOutcome(refused=refused)]
    with pytest.raises(Refused) as caught:
        await door.partner.place_bets(place(), NORTH)
    assert caught.value.reason.name == "STAKE_STEP"


@pytest.mark.parametrize("away", [True, False])
async def test_a_repeat_whose_first_outcome_cannot_be_read_stays_unknown(
    no_pause: None, monkeypatch: pytest.MonkeyPatch, away: bool
) -> None:
    monkeypatch.setattr("services.kernel.call.MAX_WAIT_S", 0.05)
    door = Door(REPEATED)
    door.queries.away = away
    hurried = Call(NORTH.caller, deadline=time.monotonic() + 0.1)
    with pytest.raises(Refused) as caught:
        await door.partner.place_bets(place(), hurried)
    assert caught.value.reason.name == "OUTCOME_UNKNOWN"


# ---- queries -----------------------------------------------------------------------------------


async def test_tables_are_listed_page_by_page_and_closed_ones_are_not() -> None:
    door = Door()
    for table_id in ("t2", "t3", "t4"):
        door.state.tables[table_id] = table_state(running=False, number=0, table_id=table_id)
    door.state.tables["t3"].is_open = False
    first = await door.partner.list_tables(partners.ListTablesRequest(page_size=2), NORTH)
    assert [table.spec.table_id for table in first.tables] == ["t1", "t2"]
    rest = partners.ListTablesRequest(page_size=2, page_token=first.next_page_token)
    last = await door.partner.list_tables(rest, NORTH)
    assert [table.spec.table_id for table in last.tables] == ["t4"]
    assert not last.next_page_token


async def test_a_table_shows_its_round_from_the_projection() -> None:
    door = Door()
    door.queries.rounds["t1-7"] = partners.Round(round_id="t1-7", number=7, round_in_shoe=2)
    request = partners.GetTableRequest(table_id="t1")
    table = (await door.partner.get_table(request, NORTH)).table
    assert table.round.round_in_shoe == 2
    assert (table.revision, table.open) == (3, True)
    assert table.server_time.seconds > 0


async def test_a_table_is_shown_without_its_projection_too() -> None:
    door = Door()
    door.queries.away = True
    table = (await door.partner.get_table(partners.GetTableRequest(table_id="t1"), SAM)).table
    assert (table.round.round_id, table.round.state) == ("t1-7", partners.ROUND_STATE_DEALING)


@pytest.mark.parametrize(
    ("method", "request_", "reason"),
    [
        ("get_table", partners.GetTableRequest(table_id="t9"), "TABLE_NOT_FOUND"),
        ("get_round", partners.GetRoundRequest(round_id="t9-1"), "ROUND_NOT_FOUND"),
        ("get_request", partners.GetRequestRequest(request_id="r-9"), "REQUEST_NOT_FOUND"),
    ],
)
async def test_what_is_not_there_is_not_found(method: str, request_: Message, reason: str) -> None:
    with pytest.raises(Refused) as caught:
        await getattr(Door().partner, method)(request_, NORTH)
    assert caught.value.reason.name == reason
    assert caught.value.reason.code.name == "NOT_FOUND"


async def test_another_partners_request_is_not_found_in_the_same_words() -> None:
    door = Door()
    outcome = partners.RequestOutcome(pending=True)
    door.queries.requests["partner:north", "t1-7", "r-1"] = (Position(1, 4, 0), outcome)
    request = partners.GetRequestRequest(request_id="r-1", round_id="t1-7")
    found = await door.partner.get_request(request, NORTH)
    assert found.outcome.pending
    assert found.request_position.sequence == 4
    told = []
    for known in (True, False):
        if not known:
            door.queries.requests.clear()
        with pytest.raises(Refused) as caught:
            await door.partner.get_request(request, SOUTH)
        told.append((caught.value.reason, caught.value.text("en"), caught.value.facts))
    assert told[0] == told[1]


def bet(number: int, account: str = "a-1") -> partners.PlacedBet:
    return partners.PlacedBet(
        bet_id=f"t1-7.{number}",
        account_id=account,
        round_id="t1-7",
        position=entry_pb2.Position(segment=1, sequence=100 + number),
    )


async def test_bets_are_paged_whole_and_only_ones_own() -> None:
    door = Door()
    for number in range(25, 0, -1):
        owner = "north" if number % 5 else "south"
        door.queries.placed.append((str(number), owner, bet(number)))
    seen: list[str] = []
    token = ""
    while True:
        request = partners.ListBetsRequest(page_size=7, page_token=token)
        page = await door.partner.list_bets(request, NORTH)
        seen += [each.bet_id for each in page.bets]
        token = page.next_page_token
        if not token:
            break
    assert seen == [f"t1-7.{number}" for number in range(25, 0, -1) if number % 5]
    everything = await door.partner.list_bets(partners.ListBetsRequest(page_size=500), SAM)
    assert len(everything.bets) == 25
    nothing = await door.partner.list_bets(partners.ListBetsRequest(account_id="a-9"), NORTH)
    assert not nothing.bets


async def test_grpc_03_a_page_ends_before_it_is_too_large() -> None:
    door = Door()
    for number in range(400, 0, -1):
        large = bet(number)
        large.account_id = "x" * 5000
        door.queries.placed.append((str(number), "north", large))
    request = partners.ListBetsRequest(page_size=400)
    seen = 0
    while True:
        page = await door.partner.list_bets(request, NORTH)
        assert page.ByteSize() < 2 * 1024 * 1024
        seen += len(page.bets)
        if not page.next_page_token:
            break
        request.page_token = page.next_page_token
    assert seen == 400


@pytest.mark.parametrize("token", ["x", "AAAA", "A" * 400, "é", "....", "AAAAAAAAAAAAAAAA"])
async def test_a_page_token_of_ones_own_making_is_refused(token: str) -> None:
    with pytest.raises(Refused) as caught:
        await Door().partner.list_bets(partners.ListBetsRequest(page_token=token), NORTH)
    assert caught.value.reason.name == "PAGE_TOKEN_INVALID"


async def test_a_page_token_is_good_for_its_own_query_only() -> None:
    door = Door()
    for number in range(9, 0, -1):
        door.queries.placed.append((str(number), "north", bet(number)))
    token = (
        await door.partner.list_bets(partners.ListBetsRequest(page_size=2), NORTH)
    ).next_page_token
    for request, call in (
        (partners.ListBetsRequest(page_token=token), SOUTH),
        (partners.ListBetsRequest(page_token=token, account_id="a-1"), NORTH),
    ):
        with pytest.raises(Refused):
            await door.partner.list_bets(request, call)


async def test_a_query_waits_for_the_position_it_asks_for() -> None:
    door = Door()
    door.queries.rounds["t1-7"] = partners.Round(round_id="t1-7", number=7)
    request = partners.GetRoundRequest(round_id="t1-7")
    request.at_least.sequence = 1000
    request.at_least.segment = 1
    found = await door.partner.get_round(request, NORTH)
    assert found.position == position_message(door.queries.position)
    request.at_least.sequence = 2**64 - 1
    with pytest.raises(Refused) as caught:
        await door.partner.get_round(request, NORTH)
    assert caught.value.reason.name == "POSITION_NOT_REACHED"


async def test_a_withdrawal_on_the_floor_takes_effect_as_betting_closes() -> None:
    noted = orders.WithdrawalNoted(request_id="w-1", account_id="a-1", bets=BETS)
    door = Door(noted)
    request = partners.WithdrawBetsRequest(
        request_id="w-1", account_id="a-1", table_id="t1", round_id="t1-7"
    )
    told = await door.partner.withdraw_bets(request, NORTH)
    assert told.at_close
    assert list(told.bets) == BETS
    [asked] = door.edge.submitted
    assert orders.WithdrawalNoted in asked.until
