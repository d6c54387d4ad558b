"""The wallet's calls at the partners' one endpoint, where the wallet runs in another process:
passed on as they came, with what is left of their deadline, and answered as the wallet answers.
"""

from __future__ import annotations

import time
from typing import TypeVar

import grpc
from google.protobuf.message import Message

from sabot.wallet.v1 import ledger_service_pb2 as ledgers
from sabot.wallet.v1 import receivable_service_pb2 as receivables
from sabot.wallet.v1 import wallet_operator_service_pb2 as operators
from sabot.wallet.v1 import wallet_service_pb2 as wallets
from sabot.wallet.v1.ledger_service_pb2_grpc import LedgerServiceStub
from sabot.wallet.v1.receivable_service_pb2_grpc import ReceivableServiceStub
from sabot.wallet.v1.wallet_operator_service_pb2_grpc import WalletOperatorServiceStub
from sabot.wallet.v1.wallet_service_pb2_grpc import WalletServiceStub
from services.kernel.call import EVERY_ROLE, Call, rpc
from services.kernel.errors import (
    BUSY,
    OUTCOME_UNKNOWN,
    UPSTREAM_UNAVAILABLE,
    PassedOn,
    Refused,
)

_Request = TypeVar("_Request", bound=Message)
_Response = TypeVar("_Response", bound=Message)

DETAILS = "grpc-status-details-bin"
"""Where a google.rpc.Status travels."""


class WalletFrontDoor:
    """WalletService over a channel to the wallet. Who may call what is the wallet's to say: it gets
    the caller's own token."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._wallet = WalletServiceStub(channel)

    @rpc(partners=True, roles=EVERY_ROLE, deadline=True)
    async def open_account(
        self, request: wallets.OpenAccountRequest, call: Call
    ) -> wallets.OpenAccountResponse:
        """Passed on."""
        return await pass_on(self._wallet.OpenAccount, request, call)

    @rpc(partners=True, roles=EVERY_ROLE, deadline=True)
    async def close_account(
        self, request: wallets.CloseAccountRequest, call: Call
    ) -> wallets.CloseAccountResponse:
        """Passed on."""
        return await pass_on(self._wallet.CloseAccount, request, call)

    @rpc(partners=True, roles=EVERY_ROLE, deadline=True)
    async def block_account(
        self, request: wallets.BlockAccountRequest, call: Call
    ) -> wallets.BlockAccountResponse:
        """Passed on."""
        return await pass_on(self._wallet.BlockAccount, request, call)

    @rpc(partners=True, roles=EVERY_ROLE, deadline=True)
    async def unblock_account(
        self, request: wallets.UnblockAccountRequest, call: Call
    ) -> wallets.UnblockAccountResponse:
        """Passed on."""
        return await pass_on(self._wallet.UnblockAccount, request, call)

    @rpc(partners=True, roles=EVERY_ROLE, deadline=True)
    async def deposit(self, request: wallets.DepositRequest, call: Call) -> wallets.DepositResponse:
        """Passed on."""
        return await pass_on(self._wallet.Deposit, request, call)

    @rpc(partners=True, roles=EVERY_ROLE, deadline=True)
    async def withdraw(
        self, request: wallets.WithdrawRequest, call: Call
    ) -> wallets.WithdrawResponse:
        """Passed on."""
        return await pass_on(self._wallet.Withdraw, request, call)

    @rpc(partners=True, roles=EVERY_ROLE)
    async def get_balance(
        self, request: wallets.GetBalanceRequest, call: Call
    ) -> wallets.GetBalanceResponse:
        """Passed on."""
        return await pass_on(self._wallet.GetBalance, request, call)


class LedgerFrontDoor:
    """LedgerService over a channel to the wallet."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._ledger = LedgerServiceStub(channel)

    @rpc(partners=True, roles=EVERY_ROLE)
    async def list_journal(
        self, request: ledgers.ListJournalRequest, call: Call
    ) -> ledgers.ListJournalResponse:
        """Passed on."""
        return await pass_on(self._ledger.ListJournal, request, call)

    @rpc(partners=True, roles=EVERY_ROLE)
    async def get_statement(
        self, request: ledgers.GetStatementRequest, call: Call
    ) -> ledgers.GetStatementResponse:
        """Passed on."""
        return await pass_on(self._ledger.GetStatement, request, call)

    @rpc(partners=True, roles=EVERY_ROLE)
    async def get_trial_balance(
        self, request: ledgers.GetTrialBalanceRequest, call: Call
    ) -> ledgers.GetTrialBalanceResponse:
        """Passed on."""
        return await pass_on(self._ledger.GetTrialBalance, request, call)

    @rpc(partners=True, roles=EVERY_ROLE)
    async def get_reconciliation(
        self, request: ledgers.GetReconciliationRequest, call: Call
    ) -> ledgers.GetReconciliationResponse:
        """Passed on."""
        return await pass_on(self._ledger.GetReconciliation, request, call)

    @rpc(partners=True, roles=EVERY_ROLE)
    async def get_digest(
        self, request: ledgers.GetDigestRequest, call: Call
    ) -> ledgers.GetDigestResponse:
        """Passed on."""
        return await pass_on(self._ledger.GetDigest, request, call)


class ReceivableFrontDoor:
    """ReceivableService over a channel to the wallet."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._owed = ReceivableServiceStub(channel)

    @rpc(roles=EVERY_ROLE, deadline=True)
    async def set_shortfall_policy(
        self, request: receivables.SetShortfallPolicyRequest, call: Call
    ) -> receivables.SetShortfallPolicyResponse:
        """Passed on."""
        return await pass_on(self._owed.SetShortfallPolicy, request, call)

    @rpc(roles=EVERY_ROLE, deadline=True)
    async def settle_receivable(
        self, request: receivables.SettleReceivableRequest, call: Call
    ) -> receivables.SettleReceivableResponse:
        """Passed on."""
        return await pass_on(self._owed.SettleReceivable, request, call)

    @rpc(partners=True, roles=EVERY_ROLE)
    async def list_receivables(
        self, request: receivables.ListReceivablesRequest, call: Call
    ) -> receivables.ListReceivablesResponse:
        """Passed on."""
        return await pass_on(self._owed.ListReceivables, request, call)


class WalletOperatorFrontDoor:
    """WalletOperatorService over a channel to the wallet."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._orders = WalletOperatorServiceStub(channel)

    @rpc(roles=EVERY_ROLE, deadline=True)
    async def set_partner_profile(
        self, request: operators.SetPartnerProfileRequest, call: Call
    ) -> operators.SetPartnerProfileResponse:
        """Passed on."""
        return await pass_on(self._orders.SetPartnerProfile, request, call)

    @rpc(roles=EVERY_ROLE)
    async def get_partner_profile(
        self, request: operators.GetPartnerProfileRequest, call: Call
    ) -> operators.GetPartnerProfileResponse:
        """Passed on."""
        return await pass_on(self._orders.GetPartnerProfile, request, call)

    @rpc(roles=EVERY_ROLE)
    async def list_unresolved(
        self, request: operators.ListUnresolvedRequest, call: Call
    ) -> operators.ListUnresolvedResponse:
        """Passed on."""
        return await pass_on(self._orders.ListUnresolved, request, call)

    @rpc(roles=EVERY_ROLE, deadline=True)
    async def resolve_movement(
        self, request: operators.ResolveMovementRequest, call: Call
    ) -> operators.ResolveMovementResponse:
        """Passed on."""
        return await pass_on(self._orders.ResolveMovement, request, call)


async def pass_on(
    method: grpc.aio.UnaryUnaryMultiCallable[_Request, _Response], request: _Request, call: Call
) -> _Response:
    """Call the service behind as the caller called us. Raises PassedOn; Refused where it did not
    answer."""
    metadata = [("authorization", call.authorization), ("accept-language", call.language)]
    if call.traceparent:
        metadata.append(("traceparent", call.traceparent))
    left_s = None if call.deadline is None else max(0.0, call.deadline - time.monotonic())
    try:
        return await method(request, timeout=left_s, metadata=tuple(metadata))
    except grpc.aio.AioRpcError as error:
        details = dict(error.trailing_metadata()).get(DETAILS)
        if isinstance(details, bytes):
            raise PassedOn(error.code(), error.details() or "", details) from error
        match error.code():
            case grpc.StatusCode.DEADLINE_EXCEEDED:
                raise Refused(OUTCOME_UNKNOWN) from error
            case grpc.StatusCode.RESOURCE_EXHAUSTED:
                raise Refused(BUSY) from error
            case _:
                raise Refused(UPSTREAM_UNAVAILABLE) from error
