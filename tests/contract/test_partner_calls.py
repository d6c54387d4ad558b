"""Calls to a partner's real gRPC server: the example's wallet, and one that answers nonsense."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from sabot.partnerwallet.v1 import partner_wallet_service_pb2 as partner_wallet
from sabot.partnerwallet.v1 import partner_wallet_service_pb2_grpc as partner_wallet_grpc
from sabot.wallet.v1 import seamless_events_pb2 as seamless
from sabot.wallet.v1.partner_profile_pb2 import PartnerProfile
from services.kernel.call_tokens import load_or_create_call_keys, signer_of
from services.kernel.event import Position
from services.wallet.domain.seamless_state import Movement, MovementKind
from services.wallet.partner_calls import GrpcPartnerCaller
from services.wallet.partner_replies import Verdict
from tests.contract.partner_wallets import CELL, CONTRARY, PARTNER, RunningWallet, running
from tests.contract.places import PATIENCE_S
from tests.unit.seamless_facts import profile
from tests.unit.wallet_facts import bets

DONE = seamless.REPLY_OUTCOME_DONE
DECLINED = seamless.REPLY_OUTCOME_DECLINED
UNKNOWN = seamless.REPLY_OUTCOME_UNKNOWN
CONTRADICTORY = seamless.REPLY_OUTCOME_CONTRADICTORY
PATIENT_MS = 10_000
"""The longest that a profile may say: a busy machine is no answer that did not come."""


def movement(
    kind: MovementKind,
    minor: int = 100,
    *,
    account: str = "ann",
    reason: int = 1,
    debits: tuple[str, ...] = (),
) -> Movement:
    return Movement(
        kind,
        PARTNER,
        account,
        "t1",
        "t1-1",
        "EUR",
        minor,
        reason,
        bets(("b1", "tie", minor)),
        Position(1, 3, 0),
        1_700_000_000_123_456,
        debits=list(debits),
    )


@asynccontextmanager
async def caller_of(keys: Path) -> AsyncIterator[GrpcPartnerCaller]:
    caller = GrpcPartnerCaller(signer_of(load_or_create_call_keys(keys), CELL))
    try:
        yield caller
    finally:
        await caller.close()


@pytest.fixture
async def wallet(tmp_path: Path) -> AsyncIterator[RunningWallet]:
    async with running(RunningWallet(tmp_path)) as one:
        one.book.open_account("ann", "EUR", 1_000)
        yield one


async def test_movements_are_carried_out_once(wallet: RunningWallet) -> None:
    told = profile(address=wallet.address, deadline_ms=PATIENT_MS)
    async with caller_of(wallet.keys) as caller:
        assert await caller.balance(PARTNER, told, "ann") == ("EUR", 1_000)
        assert await caller.balance(PARTNER, told, "nobody") is None
        debit = movement(MovementKind.DEBIT, 300)
        first = await caller.carry_out(PARTNER, told, "d1", debit)
        assert (first.outcome, first.balance_minor, first.duplicate) == (DONE, 700, False)
        assert first.partner_transaction_id
        again = await caller.carry_out(PARTNER, told, "d1", debit)
        assert (again.outcome, again.balance_minor, again.duplicate) == (DONE, 700, True)
        credit = movement(MovementKind.CREDIT, 50, debits=("d1",))
        assert (await caller.carry_out(PARTNER, told, "c1", credit)).balance_minor == 750
        await wallet.restart()
        assert (await _until_answered(caller, told, "c1", credit)).duplicate
        refused = await caller.carry_out(
            PARTNER, told, "r1", movement(MovementKind.ROLLBACK, 300, debits=("d1",))
        )
        assert (refused.outcome, refused.reason) == (
            DECLINED,
            partner_wallet.ROLLBACK_REFUSAL_ALREADY_SETTLED,
        )
    assert await asyncio.to_thread(wallet.book.account, "ann")


async def test_refusals_come_with_their_reason(wallet: RunningWallet) -> None:
    told = profile(address=wallet.address, deadline_ms=PATIENT_MS)
    async with caller_of(wallet.keys) as caller:
        poor = await caller.carry_out(PARTNER, told, "d1", movement(MovementKind.DEBIT, 5_000))
        assert (poor.outcome, poor.reason) == (
            DECLINED,
            partner_wallet.DEBIT_DECLINE_INSUFFICIENT_FUNDS,
        )
        unfounded = movement(MovementKind.CREDIT, 100, debits=("d9",))
        refused = await caller.carry_out(PARTNER, told, "c1", unfounded)
        assert (refused.outcome, refused.reason) == (
            DECLINED,
            partner_wallet.CREDIT_REFUSAL_DEBIT_NOT_TAKEN,
        )
        # An id that was another call's: nothing of it can be so.
        clash = await caller.carry_out(PARTNER, told, "d1", movement(MovementKind.DEBIT, 7))
        assert (clash.outcome, clash.problem) == (CONTRADICTORY, "ID_OF_ANOTHER_CALL")


async def test_wal_04_a_rollback_of_an_unknown_debit_is_done_and_remembered(
    wallet: RunningWallet,
) -> None:
    told = profile(address=wallet.address, deadline_ms=PATIENT_MS)
    async with caller_of(wallet.keys) as caller:
        rollback = movement(MovementKind.ROLLBACK, 400, debits=("d1",))
        assert (await caller.carry_out(PARTNER, told, "r1", rollback)).outcome == DONE
        late = await caller.carry_out(PARTNER, told, "d1", movement(MovementKind.DEBIT, 400))
        assert (late.outcome, late.reason) == (
            DECLINED,
            partner_wallet.DEBIT_DECLINE_ROLLED_BACK,
        )
        for _ in range(2):
            assert (await caller.carry_out(PARTNER, told, "r1", rollback)).outcome == DONE
        assert await caller.balance(PARTNER, told, "ann") == ("EUR", 1_000)


async def test_a_repeat_as_a_status_is_what_the_profile_says(tmp_path: Path) -> None:
    async with running(RunningWallet(tmp_path, CONTRARY)) as one, caller_of(one.keys) as caller:
        one.book.open_account("ann", "EUR", 1_000)
        debit = movement(MovementKind.DEBIT)
        told = profile(address=one.address, conventions=CONTRARY, deadline_ms=PATIENT_MS)
        assert (await caller.carry_out(PARTNER, told, "d1", debit)).outcome == DONE
        again = await caller.carry_out(PARTNER, told, "d1", debit)
        assert (again.outcome, again.duplicate) == (DONE, True)
        other = profile(address=one.address, deadline_ms=PATIENT_MS)
        unexpected = await caller.carry_out(PARTNER, other, "d1", debit)
        assert (unexpected.outcome, unexpected.problem) == (CONTRADICTORY, "ALREADY_EXISTS")


async def test_a_wallet_that_does_not_know_our_key_says_nothing_about_money(
    wallet: RunningWallet, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    async with caller_of(tmp_path / "other" / "keys.json") as caller:
        told = profile(address=wallet.address, deadline_ms=PATIENT_MS)
        verdict = await caller.carry_out(PARTNER, told, "d1", movement(MovementKind.DEBIT))
        assert verdict.outcome == UNKNOWN
        assert verdict.problem in {"UNAUTHENTICATED", "PERMISSION_DENIED"}


async def test_nobody_there_is_unknown(tmp_path: Path) -> None:
    async with caller_of(tmp_path / "keys.json") as caller:
        told = profile(address="127.0.0.1:1", deadline_ms=500)
        verdict = await caller.carry_out(PARTNER, told, "d1", movement(MovementKind.DEBIT))
        assert verdict.outcome == UNKNOWN
        assert verdict.problem in {"UNAVAILABLE", "DEADLINE_EXCEEDED"}
        assert await caller.balance(PARTNER, told, "ann") is None


# ---- nonsense ----------------------------------------------------------------------------------

Answer = Callable[[partner_wallet.DebitRequest, Any], Awaitable[partner_wallet.DebitResponse]]


class Nonsense(partner_wallet_grpc.PartnerWalletServiceServicer):
    """Answers a debit as a test says; nothing else is asked of it."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    async def Debit(self, request: Any, context: Any) -> Any:  # noqa: N802 - gRPC's name
        return await self._answer(request, context)

    async def Credit(self, request: Any, context: Any) -> Any:  # noqa: ARG002, N802 - gRPC's
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, "it answers debits alone")

    async def Rollback(self, request: Any, context: Any) -> Any:  # noqa: ARG002, N802 - gRPC's
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, "it answers debits alone")

    async def GetBalance(self, request: Any, context: Any) -> Any:  # noqa: ARG002, N802 - gRPC's
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, "it answers debits alone")


async def debited(tmp_path: Path, answer: Answer, deadline_ms: int = PATIENT_MS) -> Verdict:
    """What comes of a debit at such a wallet."""
    server = grpc.aio.server()
    partner_wallet_grpc.add_PartnerWalletServiceServicer_to_server(Nonsense(answer), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with caller_of(tmp_path / "keys.json") as caller:
            told = profile(address=f"127.0.0.1:{port}", deadline_ms=deadline_ms)
            debit = movement(MovementKind.DEBIT)
            return await caller.carry_out(PARTNER, told, "d1", debit)
    finally:
        await server.stop(None)


def taken(**changed: Any) -> partner_wallet.DebitResponse:
    told = {"transaction_id": "d1", "outcome": partner_wallet.DEBIT_OUTCOME_TAKEN, **changed}
    return partner_wallet.DebitResponse(**told)


@pytest.mark.parametrize(
    ("response", "problem"),
    [
        (taken(transaction_id="d2"), "OTHER_TRANSACTION"),
        (taken(transaction_id=""), "MALFORMED"),
        (taken(outcome=0), "MALFORMED"),
        (taken(outcome=77), "MALFORMED"),
        (partner_wallet.DebitResponse(), "MALFORMED"),
        (taken(decline=partner_wallet.DEBIT_DECLINE_LIMIT), "DONE_AND_REFUSED"),
        (taken(balance={"currency_code": "USD", "minor_units": 5}), "OTHER_CURRENCY"),
        (taken(partner_transaction_id="\x07"), "MALFORMED"),
    ],
)
async def test_an_answer_that_does_not_fit_its_call_is_contradictory(
    tmp_path: Path, response: partner_wallet.DebitResponse, problem: str
) -> None:
    async def answer(request: Any, context: Any) -> partner_wallet.DebitResponse:
        del request, context
        return response

    verdict = await debited(tmp_path, answer)
    assert (verdict.outcome, verdict.problem) == (CONTRADICTORY, problem)


@pytest.mark.parametrize(
    ("status", "outcome", "problem"),
    [
        (grpc.StatusCode.INTERNAL, UNKNOWN, "INTERNAL"),
        (grpc.StatusCode.UNIMPLEMENTED, UNKNOWN, "UNIMPLEMENTED"),
        (grpc.StatusCode.NOT_FOUND, UNKNOWN, "NOT_FOUND"),
        (grpc.StatusCode.INVALID_ARGUMENT, DECLINED, "INVALID_ARGUMENT"),
        (grpc.StatusCode.FAILED_PRECONDITION, CONTRADICTORY, "ID_OF_ANOTHER_CALL"),
    ],
)
async def test_a_status_means_what_the_contract_says(
    tmp_path: Path,
    status: grpc.StatusCode,
    outcome: seamless.ReplyOutcome.ValueType,
    problem: str,
) -> None:
    async def answer(request: Any, context: Any) -> partner_wallet.DebitResponse:
        del request
        await context.abort(status, "ann owes us money")
        return partner_wallet.DebitResponse()

    verdict = await debited(tmp_path, answer)
    assert (verdict.outcome, verdict.problem) == (outcome, problem), "and none of its words"


async def test_an_answer_that_does_not_come_is_unknown(tmp_path: Path) -> None:
    async def answer(request: Any, context: Any) -> partner_wallet.DebitResponse:
        del request, context
        await asyncio.Event().wait()
        return partner_wallet.DebitResponse()

    verdict = await debited(tmp_path, answer, deadline_ms=300)
    assert (verdict.outcome, verdict.problem) == (UNKNOWN, "DEADLINE_EXCEEDED")


async def _until_answered(
    caller: GrpcPartnerCaller, told: PartnerProfile, transaction: str, one: Movement
) -> Verdict:
    """A wallet that was restarted is found again."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            verdict = await caller.carry_out(PARTNER, told, transaction, one)
            if verdict.outcome != UNKNOWN:
                return verdict
            await asyncio.sleep(0.05)
