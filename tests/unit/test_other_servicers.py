"""The servicers of wallet, limits, rules, shoe, settlement and audit."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import starmap
from typing import Any

import pytest
from google.protobuf.message import Message

from sabot.audit.v1 import audit_service_pb2 as audits
from sabot.limits.v1 import events_pb2 as limits
from sabot.limits.v1 import limits_service_pb2
from sabot.log.v1 import entry_pb2
from sabot.log.v1 import events_pb2 as log
from sabot.money.v1.money_pb2 import Money
from sabot.partner.v1 import partner_service_pb2 as partners
from sabot.rules.v1 import rule_set_pb2
from sabot.rules.v1 import rules_service_pb2 as rules
from sabot.settlement.v1 import correction_events_pb2 as settled_again
from sabot.settlement.v1 import events_pb2 as settled
from sabot.settlement.v1 import settlement_service_pb2 as settlements
from sabot.shoe.v1 import shoe_service_pb2 as shoes
from sabot.table.v1 import bet_pb2
from sabot.wallet.v1 import events_pb2 as events
from sabot.wallet.v1 import wallet_service_pb2 as wallets
from services.audit.servicer import AuditServicer
from services.games.catalogue import all_rule_sets
from services.kernel.call import Call, position_message
from services.kernel.errors import Refused
from services.kernel.event import Position
from services.kernel.grpc_server import method_name
from services.kernel.tokens import Caller, Role
from services.limits.domain.state import LimitsState, StakeLimits, TableLimits
from services.limits.servicer import LimitsServicer
from services.rules.servicer import RulesServicer
from services.settlement.queries import Fact
from services.settlement.servicer import SettlementServicer
from services.shoe.domain.state import OpenedCard, Shoe, ShoeState
from services.shoe.servicer import ShoeServicer
from services.wallet.domain.state import Account, Standing, WalletState
from services.wallet.servicer import WalletServicer
from tests.unit.fake_edge import FakeEdge, FakeQueries, unopened_books

UUID7 = "01890a5d-ac96-774b-bcce-b302099a8057"
NORTH = Call(Caller(partner="north"))
SOUTH = Call(Caller(partner="south"))
SAM = Call(Caller(operator="sam", roles=frozenset({Role.SUPERVISOR})))
EUROS = Money(currency_code="EUR", minor_units=2500)
ACCOUNT: dict[str, Any] = {"request_id": UUID7, "account_id": "a-1"}
OWNED: dict[str, Any] = {**ACCOUNT, "partner_id": "south"}
AMOUNT: dict[str, Any] = {"currency_code": "EUR", "amount_minor": 2500}

# ---- wallet ------------------------------------------------------------------------------------

REQUESTS: list[tuple[Message, Call, str, Message, Message]] = [
    (
        wallets.OpenAccountRequest(**ACCOUNT, currency_code="EUR"),
        NORTH,
        "north",
        events.OpenAccount(**ACCOUNT, currency_code="EUR"),
        events.AccountOpened(),
    ),
    (
        wallets.CloseAccountRequest(**ACCOUNT),
        NORTH,
        "north",
        events.CloseAccount(**ACCOUNT),
        events.AccountClosed(),
    ),
    (
        wallets.BlockAccountRequest(**OWNED),
        SAM,
        "south",
        events.BlockAccount(**ACCOUNT),
        events.AccountBlocked(),
    ),
    (
        wallets.UnblockAccountRequest(**OWNED),
        SAM,
        "south",
        events.UnblockAccount(**ACCOUNT),
        events.AccountUnblocked(),
    ),
    (
        wallets.DepositRequest(**ACCOUNT, amount=EUROS),
        NORTH,
        "north",
        events.Deposit(**ACCOUNT, **AMOUNT),
        events.FundsDeposited(),
    ),
    (
        wallets.WithdrawRequest(**ACCOUNT, amount=EUROS),
        NORTH,
        "north",
        events.Withdraw(**ACCOUNT, **AMOUNT),
        events.FundsWithdrawn(),
    ),
]
EACH_REQUEST = pytest.mark.parametrize(
    ("request_", "call", "partner", "input_", "answer"),
    REQUESTS,
    ids=[type(each[0]).__name__ for each in REQUESTS],
)


def wallet(*answers: Message | Exception) -> tuple[WalletServicer, FakeEdge, FakeQueries]:
    state = WalletState()
    state.accounts["north", "a-1"] = Account("EUR", Standing.BLOCKED, 900, 100)
    edge = FakeEdge(answers=list(answers), states={"wallet": state})
    queries = FakeQueries()
    return WalletServicer(edge, queries, unopened_books()), edge, queries


def send(servicer: WalletServicer, request: Message, call: Call) -> Any:
    name = method_name(type(request).__name__.removesuffix("Request"))
    return getattr(servicer, name)(request, call)


@EACH_REQUEST
async def test_a_request_about_an_account_is_appended_and_its_answer_told(
    request_: Message, call: Call, partner: str, input_: Message, answer: Message
) -> None:
    servicer, edge, _ = wallet(answer)
    told = await send(servicer, request_, call)
    assert told.position == position_message(edge.position)
    assert not told.replayed
    (asked,) = edge.submitted
    assert (asked.service, asked.partner, asked.actor) == ("wallet", partner, call.caller.actor)
    assert asked.until == {type(answer), events.AccountRequestDeclined}
    assert len(asked.body.request_hash) == 32
    asked.body.ClearField("request_hash")
    assert asked.body == input_


@EACH_REQUEST
async def test_a_request_that_is_declined_repeated_or_failed_is_told(
    request_: Message, call: Call, partner: str, input_: Message, answer: Message
) -> None:
    for refusal, reason in (
        (events.AccountRequestDeclined(decline=events.DECLINE_ACCOUNT_CLOSED), "ACCOUNT_CLOSED"),
        (events.AccountRequestDeclined(decline=events.DECLINE_FAILED), "DECISION_FAILED"),
        (log.InputFailed(), "INPUT_FAILED"),
        (log.InputNoted(), "UNEXPECTED_OUTCOME"),
    ):
        servicer, _, _ = wallet(refusal)
        with pytest.raises(Refused) as caught:
            await send(servicer, request_, call)
        assert caught.value.reason.name == reason
        assert caught.value.text("fr")
    repeated = log.RequestRepeated(first=entry_pb2.Position(segment=1, sequence=4))
    servicer, _, queries = wallet(repeated)
    field = next(
        field.name
        for field in partners.RequestOutcome.DESCRIPTOR.fields
        if field.message_type is not None
        and field.message_type.full_name == answer.DESCRIPTOR.full_name
    )
    content: dict[str, Any] = {field: answer}
    outcome = partners.RequestOutcome(**content)
    queries.outcomes[Position(1, 4, 0)] = [outcome]
    assert (await send(servicer, request_, call)).replayed


async def test_an_operators_request_for_another_partners_account_is_another_request() -> None:
    hashes = set()
    for partner in ("north", "south"):
        servicer, edge, _ = wallet(events.AccountBlocked())
        request = wallets.BlockAccountRequest(**{**OWNED, "partner_id": partner})
        await servicer.block_account(request, SAM)
        hashes.add(edge.submitted[0].body.request_hash)
    assert len(hashes) == 2


async def test_a_balance_is_the_cores_own_and_only_ones_own() -> None:
    servicer, edge, _ = wallet()
    request = wallets.GetBalanceRequest(account_id="a-1")
    request.at_least.segment, request.at_least.sequence = 1, 10
    found = await servicer.get_balance(request, NORTH)
    assert (found.available.minor_units, found.reserved.minor_units) == (900, 100)
    assert found.available.currency_code == found.reserved.currency_code == "EUR"
    assert found.state == wallets.ACCOUNT_STATE_BLOCKED
    assert found.position == position_message(edge.position)
    told = []
    for account in ("a-1", "a-2"):
        with pytest.raises(Refused) as caught:
            await servicer.get_balance(wallets.GetBalanceRequest(account_id=account), SOUTH)
        told.append((caught.value.reason, caught.value.text("en").replace(account, "")))
    assert told[0] == told[1]
    request.at_least.sequence = 11
    with pytest.raises(Refused) as caught:
        await servicer.get_balance(request, NORTH)
    assert caught.value.reason.name == "POSITION_NOT_REACHED"


# ---- limits ------------------------------------------------------------------------------------


def limits_servicer() -> LimitsServicer:
    rule_set = rule_set_pb2.RuleSet(game=rule_set_pb2.GAME_BACCARAT)
    table = TableLimits(1, rule_set, {"player": StakeLimits(100, 1000, 100)})
    return LimitsServicer(FakeEdge(states={"limits": LimitsState(tables={"t1": table})}))


async def test_the_limits_of_a_table_are_told() -> None:
    found = await limits_servicer().get_limits(
        limits_service_pb2.GetLimitsRequest(table_id="t1"), NORTH
    )
    assert [(each.bet, each.min_minor, each.max_minor) for each in found.limits] == [
        ("player", 100, 1000)
    ]


async def test_bets_are_judged_without_being_placed() -> None:
    request = limits_service_pb2.CheckBetsRequest(
        account_id="a-1", table_id="t1", bets=[bet_pb2.BetRequest(bet="player", stake=EUROS)]
    )
    found = await limits_servicer().check_bets(request, NORTH)
    assert [each.limit for each in found.violations] == [limits.LIMIT_BOOK_CLOSED]
    request.bets.add(bet="tie").stake.currency_code = "USD"
    with pytest.raises(Refused) as caught:
        await limits_servicer().check_bets(request, NORTH)
    assert caught.value.reason.name == "MIXED_CURRENCIES"


@pytest.mark.parametrize("method", ["get_limits", "check_bets"])
async def test_no_table_no_limits(method: str) -> None:
    kind: Any = {
        "get_limits": limits_service_pb2.GetLimitsRequest,
        "check_bets": limits_service_pb2.CheckBetsRequest,
    }[method]
    with pytest.raises(Refused) as caught:
        await getattr(limits_servicer(), method)(kind(table_id="t9"), NORTH)
    assert caught.value.reason.name == "TABLE_NOT_FOUND"


# ---- rules and shoe ----------------------------------------------------------------------------


async def test_rule_sets_are_told_one_by_one_and_all() -> None:
    servicer = RulesServicer()
    every = await servicer.list_rule_sets(rules.ListRuleSetsRequest(), NORTH)
    assert list(every.rule_sets) == list(all_rule_sets())
    for one in every.rule_sets:
        request = rules.GetRuleSetRequest(rule_set_id=one.rule_set_id)
        assert (await servicer.get_rule_set(request, NORTH)).rule_set == one
    with pytest.raises(Refused) as caught:
        await servicer.get_rule_set(rules.GetRuleSetRequest(rule_set_id="keno"), NORTH)
    assert caught.value.reason.name == "RULE_SET_NOT_FOUND"


async def test_vis_3_a_shoe_tells_what_lay_open_and_no_secret() -> None:
    shoe = Shoe(
        shoe_id="t1-s1",
        table_id="t1",
        decks=8,
        cards=416,
        cut_at=409,
        rounds_after_cut=0,
        commitments=b"c" * 32 * 416,
        sealed_order=b"the secret order",
        key_id="k1",
        asked_by=Position(1, 1, 0),
        gone=10,
        opened={
            9: OpenedCard("TD", b"t" * 16, shown=True),
            8: OpenedCard("4C", b"burned" + b"b" * 10),
            0: OpenedCard("7S", b"s" * 16, shown=True),
        },
    )
    servicer = ShoeServicer(FakeEdge(states={"shoe": ShoeState(shoes={"t1-s1": shoe})}))
    found = await servicer.get_shoe(shoes.GetShoeRequest(shoe_id="t1-s1"), NORTH)
    assert [(card.index, card.card) for card in found.opened] == [(0, "7S"), (9, "TD")]
    assert found.root == hashlib.sha256(shoe.commitments).digest()
    assert (found.cards, found.gone, found.cut_at) == (416, 10, 409)
    assert b"secret" not in found.SerializeToString()
    assert b"burned" not in found.SerializeToString()
    with pytest.raises(Refused) as caught:
        await servicer.get_shoe(shoes.GetShoeRequest(shoe_id="t1-s2"), NORTH)
    assert caught.value.reason.name == "SHOE_NOT_FOUND"


# ---- settlement and audit ----------------------------------------------------------------------


class Settled:
    """Round t1-7, settled for four accounts of two partners."""

    position = Position(1, 1000, 0)

    def __init__(self) -> None:
        rows = [("north", "a"), ("north", "b"), ("south", "a"), ("south", "c")]
        self.accounts = list(
            starmap(lambda p, a: settled.BetsSettled(partner_id=p, account_id=a), rows)
        )

    async def reached(self, position: Position, wait_s: float) -> bool:
        del wait_s
        return position <= self.position

    async def settlement(
        self, round_id: str, partner: str | None, limit: int, after: tuple[str, str] | None
    ) -> Sequence[settled.BetsSettled] | None:
        if round_id != "t1-7":
            return None
        return [
            each
            for each in self.accounts
            if partner in {None, each.partner_id}
            and (after is None or (each.partner_id, each.account_id) > after)
        ][:limit]

    async def corrections(
        self, round_id: str, accounts: Sequence[tuple[str, str]]
    ) -> Sequence[settled_again.BetsCorrected]:
        return [
            settled_again.BetsCorrected(round_id=round_id, partner_id=partner, account_id=account)
            for partner, account in accounts
            if account == "a"
        ]

    async def facts(self, round_id: str) -> Sequence[Fact]:
        del round_id
        return ()


@pytest.mark.parametrize(("call", "count"), [(NORTH, 2), (SOUTH, 2), (SAM, 4)])
async def test_a_settlement_is_paged_and_partners_see_their_own(call: Call, count: int) -> None:
    servicer = SettlementServicer(Settled(), lambda: Settled.position)
    request = settlements.GetSettlementRequest(round_id="t1-7", page_size=1)
    seen = []
    while True:
        page = await servicer.get_settlement(request, call)
        seen += [(each.partner_id, each.account_id) for each in page.accounts]
        again = [(each.partner_id, each.account_id) for each in page.corrections]
        assert again == [who for who in seen[-1:] if who[1] == "a"]
        if not page.next_page_token:
            break
        request.page_token = page.next_page_token
    assert len(seen) == len(set(seen)) == count
    if call.caller.partner:
        assert {partner for partner, _ in seen} == {call.caller.partner}


async def test_no_round_no_settlement() -> None:
    with pytest.raises(Refused) as caught:
        await SettlementServicer(Settled(), lambda: Settled.position).get_settlement(
            settlements.GetSettlementRequest(round_id="t1-8"), NORTH
        )
    assert caught.value.reason.name == "ROUND_NOT_FOUND"


async def test_the_audits_report_is_for_auditors() -> None:
    class Report:
        def report(self) -> audits.GetAuditResponse:
            return audits.GetAuditResponse(answers=7)

    nothing: Any = None
    servicer = AuditServicer(Report(), nothing, nothing, nothing, nothing)
    assert (await servicer.get_audit(audits.GetAuditRequest(), SAM)).answers == 7
    access = servicer.get_audit.__sabot_access__  # type: ignore[attr-defined]  # set by @rpc
    assert (access.partners, access.roles) == (False, {Role.AUDITOR})
