"""Every service's servicer fits its proto: all methods, right types, right callers; and the front
door passes the wallet's calls on as they are."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from types import NoneType
from typing import Any, get_type_hints

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message_factory import GetMessageClass

from sabot.audit.v1 import audit_service_pb2
from sabot.limits.v1 import limits_service_pb2
from sabot.money.v1.money_pb2 import Money
from sabot.partner.v1 import partner_service_pb2
from sabot.rules.v1 import rules_service_pb2
from sabot.settlement.v1 import settlement_service_pb2
from sabot.shoe.v1 import floor_service_pb2, shoe_service_pb2
from sabot.table.v1 import correction_service_pb2, odds_service_pb2, operator_service_pb2
from sabot.wallet.v1 import (
    events_pb2,
    ledger_service_pb2,
    receivable_service_pb2,
    wallet_service_pb2,
)
from services.audit.servicer import AuditServicer
from services.kernel.call import EVERY_ROLE, EVERY_ROLE_AND_DEVICES, MAX_WAIT_S, Access
from services.kernel.edge import EdgeBusy
from services.kernel.grpc_server import Server, method_name
from services.kernel.tokens import Caller, Role
from services.limits.servicer import LimitsServicer
from services.rules.servicer import RulesServicer
from services.settlement.servicer import SettlementServicer
from services.shoe.floor_servicer import FloorServicer
from services.shoe.servicer import ShoeServicer
from services.table.correction_servicer import CorrectionServicer
from services.table.front_door import LedgerFrontDoor, ReceivableFrontDoor, WalletFrontDoor
from services.table.limits_front_door import LimitsFrontDoor
from services.table.odds_servicer import OddsServicer
from services.table.operator_servicer import TableOperatorServicer
from services.table.servicer import PartnerServicer
from services.wallet.domain.state import WalletState
from services.wallet.ledger_servicer import LedgerServicer
from services.wallet.receivable_servicer import ReceivableServicer
from services.wallet.servicer import WalletServicer
from tests.unit.fake_edge import FakeEdge, FakeQueries, unopened_books

CALL_S = 20.0
"""The deadline of a call, below the longest that a call waits."""
UUID7 = "01890a5d-ac96-774b-bcce-b302099a8057"
SERVED: list[tuple[Any, str, type]] = [
    (partner_service_pb2, "PartnerService", PartnerServicer),
    (operator_service_pb2, "TableOperatorService", TableOperatorServicer),
    (odds_service_pb2, "OddsService", OddsServicer),
    (wallet_service_pb2, "WalletService", WalletServicer),
    (wallet_service_pb2, "WalletService", WalletFrontDoor),
    (ledger_service_pb2, "LedgerService", LedgerServicer),
    (ledger_service_pb2, "LedgerService", LedgerFrontDoor),
    (limits_service_pb2, "LimitsService", LimitsServicer),
    (limits_service_pb2, "LimitsService", LimitsFrontDoor),
    (rules_service_pb2, "RulesService", RulesServicer),
    (shoe_service_pb2, "ShoeService", ShoeServicer),
    (floor_service_pb2, "FloorService", FloorServicer),
    (settlement_service_pb2, "SettlementService", SettlementServicer),
    (correction_service_pb2, "CorrectionService", CorrectionServicer),
    (receivable_service_pb2, "ReceivableService", ReceivableServicer),
    (receivable_service_pb2, "ReceivableService", ReceivableFrontDoor),
    (audit_service_pb2, "AuditService", AuditServicer),
]
METHODS = [
    pytest.param(servicer, method, id=f"{servicer.__name__}.{method.name}")
    for module, name, servicer in SERVED
    for method in module.DESCRIPTOR.services_by_name[name].methods
]
ROLES_NAMED = {
    "ListSignificantEvents": {Role.AUDITOR},
    "SetThresholds": {Role.SUPERVISOR},
    "AcceptDifference": {Role.SUPERVISOR},
    "OpenTable": {Role.SUPERVISOR},
    "CloseTable": {Role.SUPERVISOR},
    "OpenRound": {Role.DEALER, Role.SUPERVISOR},
    "CloseBetting": {Role.DEALER, Role.SUPERVISOR, Role.DEVICE},
    "SuspendRound": {Role.DEALER, Role.SUPERVISOR},
    "ResumeRound": {Role.SUPERVISOR},
    "VoidRound": {Role.SUPERVISOR},
    "CorrectCard": {Role.SUPERVISOR},
    "CorrectOutcome": {Role.SUPERVISOR},
    "ActivateBehaviour": {Role.SUPERVISOR},
    "GetBehaviour": set(EVERY_ROLE),
    "RetryInput": {Role.SUPERVISOR},
    "SetSwitch": {Role.SUPERVISOR},
    "ListSwitches": set(EVERY_ROLE),
    "LiftExclusion": {Role.SUPERVISOR},
    "BlockAccount": {Role.SUPERVISOR},
    "UnblockAccount": {Role.SUPERVISOR},
    "GetAudit": {Role.AUDITOR},
    "NoteSeen": {Role.CONSOLE},
    "GetLiveOdds": {Role.SUPERVISOR, Role.AUDITOR},
    "GetFloor": set(EVERY_ROLE_AND_DEVICES),
    "LoadShoe": {Role.DEALER, Role.SUPERVISOR},
    "RecordCard": {Role.DEALER, Role.SUPERVISOR, Role.DEVICE},
    "RecordFaceDown": {Role.DEALER, Role.SUPERVISOR, Role.DEVICE},
    "RecordPeek": {Role.DEALER, Role.SUPERVISOR, Role.DEVICE},
    "RecordBurn": {Role.DEALER, Role.SUPERVISOR, Role.DEVICE},
    "RecordCutCard": {Role.DEALER, Role.SUPERVISOR, Role.DEVICE},
    "RecordSpin": {Role.DEALER, Role.SUPERVISOR, Role.DEVICE},
    "RecordDice": {Role.DEALER, Role.SUPERVISOR, Role.DEVICE},
    "DeclareNoSpin": {Role.DEALER, Role.SUPERVISOR},
    "RecordRemaining": {Role.DEALER, Role.SUPERVISOR, Role.DEVICE},
    "RegisterConsumable": {Role.DEALER, Role.SUPERVISOR},
    "MoveConsumable": {Role.DEALER, Role.SUPERVISOR},
    "ListConsumables": set(EVERY_ROLE),
    "ListMovements": set(EVERY_ROLE),
    "GetOrder": set(EVERY_ROLE_AND_DEVICES),
    "GetTrialBalance": set(EVERY_ROLE),
    "GetExposure": set(EVERY_ROLE),
    "PreviewCorrection": {Role.SUPERVISOR, Role.AUDITOR},
    "ProposeCorrection": {Role.SUPERVISOR},
    "ApproveCorrection": {Role.SUPERVISOR},
    "GetCorrection": set(EVERY_ROLE),
    "ListCorrections": set(EVERY_ROLE),
    "AskAttestation": {Role.AUDITOR},
    "SetShortfallPolicy": {Role.SUPERVISOR},
    "SettleReceivable": {Role.SUPERVISOR},
}
"""Methods that only operators may call, with the roles that the protos name."""


@pytest.mark.parametrize(("servicer", "method"), METHODS)
def test_a_method_takes_and_gives_what_its_proto_says(
    servicer: type, method: MethodDescriptor
) -> None:
    served = getattr(servicer, method_name(method.name))
    hints = get_type_hints(served)
    answer = GetMessageClass(method.output_type)
    assert hints["request"] is GetMessageClass(method.input_type)
    if method.server_streaming:
        assert hints["return"] == AsyncIterator[answer]  # type: ignore[valid-type]  # by descriptor
        assert inspect.isasyncgenfunction(served)
    else:
        assert hints["return"] is answer
        assert inspect.iscoroutinefunction(served)


@pytest.mark.parametrize(("servicer", "method"), METHODS)
def test_a_method_is_open_to_whom_its_proto_says(servicer: type, method: MethodDescriptor) -> None:
    access: Access = getattr(servicer, method_name(method.name)).__sabot_access__
    if servicer in {WalletFrontDoor, LedgerFrontDoor, LimitsFrontDoor}:
        assert access.partners  # the service behind says who may
        assert access.roles == EVERY_ROLE
    elif servicer is ReceivableFrontDoor:
        assert access.partners == (method.name == "ListReceivables")
        assert access.roles == EVERY_ROLE
    elif method.name in ROLES_NAMED:
        assert not access.partners
        assert access.roles == ROLES_NAMED[method.name]
    else:
        assert access.partners
    changes = {field.name for field in method.input_type.fields} & {"request_id"}
    asks = method.name in {"GetRequest", "GetOrder"}
    kernel = method.name in {"ActivateBehaviour", "RetryInput"}
    assert access.deadline == (kernel or bool(changes) != asks)


# ---- the front door ----------------------------------------------------------------------------


class Callers:
    def caller(self, token: str) -> Caller | None:
        known = {
            "n": Caller(partner="north"),
            "s": Caller(operator="sam", roles=frozenset({Role.SUPERVISOR})),
        }
        return known.get(token)


WALLET: ServiceDescriptor = wallet_service_pb2.DESCRIPTOR.services_by_name["WalletService"]
LEDGER: ServiceDescriptor = ledger_service_pb2.DESCRIPTOR.services_by_name["LedgerService"]


class Doors:
    """A wallet behind a front door, both real servers."""

    def __init__(self) -> None:
        self.edge = FakeEdge(states={"wallet": WalletState()})
        self.wallet = Server(Callers())
        self.wallet.add(WALLET, WalletServicer(self.edge, FakeQueries(), unopened_books()))
        self.wallet.add(LEDGER, LedgerServicer(self.edge, unopened_books()))
        self.front = Server(Callers())

    async def start(self) -> None:
        behind = self.wallet.listen("127.0.0.1:0")
        await self.wallet.start()
        self.inner = grpc.aio.insecure_channel(f"127.0.0.1:{behind}")
        self.front.add(WALLET, WalletFrontDoor(self.inner))
        self.front.add(LEDGER, LedgerFrontDoor(self.inner))
        port = self.front.listen("127.0.0.1:0")
        await self.front.start()
        self.channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}")

    async def call(
        self, name: str, request: Any, bearer: str = "n", service: str = "WalletService"
    ) -> Any:
        method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = self.channel.unary_unary(
            f"/sabot.wallet.v1.{service}/{name}"
        )
        metadata = (("authorization", f"Bearer {bearer}"), ("accept-language", "fr"))
        return await method(request.SerializeToString(), timeout=CALL_S, metadata=metadata)

    async def stop(self) -> None:
        await self.channel.close()
        await self.front.stop(0)
        await self.inner.close()
        await self.wallet.stop(0)


@pytest.fixture
async def doors() -> AsyncIterator[Doors]:
    found = Doors()
    await found.start()
    yield found
    await found.stop()


def deposit() -> wallet_service_pb2.DepositRequest:
    amount = Money(currency_code="EUR", minor_units=500)
    return wallet_service_pb2.DepositRequest(request_id=UUID7, account_id="a-1", amount=amount)


async def test_the_front_door_passes_a_call_on_as_the_caller_made_it(doors: Doors) -> None:
    doors.edge.answers.append(events_pb2.FundsDeposited())
    answer = wallet_service_pb2.DepositResponse.FromString(await doors.call("Deposit", deposit()))
    assert answer.position.sequence == doors.edge.position.sequence
    (asked,) = doors.edge.submitted
    assert asked.actor == "partner:north"
    assert 0.0 < asked.wait_s < (CALL_S + MAX_WAIT_S) / 2, "gRPC rounds what is left"


async def test_the_front_door_passes_calls_of_the_ledger_on(doors: Doors) -> None:
    days = ledger_service_pb2.LocalDays(
        first_date="2026-01-01", last_date="2026-01-01", time_zone="UTC"
    )
    named: dict[str, Any] = {"partner_id": "south", "currency_code": "EUR"}
    times: dict[str, Any] = {"from_time": {"seconds": 1}, "to_time": {"seconds": 2}}
    for request in (
        ledger_service_pb2.ListJournalRequest(partner_id="south"),
        ledger_service_pb2.GetStatementRequest(partner_id="south", account_id="a", days=days),
        ledger_service_pb2.GetReconciliationRequest(**named, days=days),
        ledger_service_pb2.GetDigestRequest(**named, **times),
    ):
        name = type(request).__name__.removesuffix("Request")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await doors.call(name, request, service="LedgerService")
        assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED, name
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await doors.call(
            "GetTrialBalance", ledger_service_pb2.GetTrialBalanceRequest(), service="LedgerService"
        )
    assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED


async def test_the_front_door_passes_an_error_on_as_it_came(doors: Doors) -> None:
    declined = events_pb2.AccountRequestDeclined(decline=events_pb2.DECLINE_BALANCE_TOO_LARGE)
    doors.edge.answers += [declined, EdgeBusy("x")]
    for code in (grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.RESOURCE_EXHAUSTED):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await doors.call("Deposit", deposit())
        assert caught.value.code() is code
        details = dict(caught.value.trailing_metadata())["grpc-status-details-bin"]
        assert b"Seul le texte anglais fait foi" in bytes(details)


async def test_the_wallet_itself_says_who_may(doors: Doors) -> None:
    request = wallet_service_pb2.BlockAccountRequest(
        request_id=UUID7, account_id="a-1", partner_id="north"
    )
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await doors.call("BlockAccount", request, bearer="n")
    assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
    doors.edge.answers.append(events_pb2.AccountBlocked())
    assert await doors.call("BlockAccount", request, bearer="s")


async def test_every_method_is_passed_on(doors: Doors) -> None:
    for method in WALLET.methods:
        name = method_name(method.name)
        assert getattr(WalletFrontDoor, name) is not NoneType
    request = wallet_service_pb2.GetBalanceRequest(account_id="a-1")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await doors.call("GetBalance", request)
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


async def test_a_wallet_that_is_away_leaves_the_outcome_open(doors: Doors) -> None:
    await doors.wallet.stop(0)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await doors.call("Deposit", deposit())
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    details = dict(caught.value.trailing_metadata())["grpc-status-details-bin"]
    assert b"UPSTREAM_UNAVAILABLE" in bytes(details)
