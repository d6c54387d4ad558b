"""A seamless partner for cells in memory: the example's books, and what tests do to the calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.message import Message

from sabot.partnerwallet.v1 import conventions_pb2 as conventions
from sabot.wallet.v1 import events_pb2 as wallet
from sabot.wallet.v1 import seamless_events_pb2 as seamless
from sabot.wallet.v1.partner_profile_pb2 import PartnerProfile
from services.kernel.memory_log import MemoryStore
from services.partner_wallet_example.book import Book, DoneBefore, IdInUse
from services.wallet.domain.seamless_state import Movement, MovementKind
from services.wallet.partner_replies import (
    METHODS,
    Verdict,
    request_of,
    verdict_of,
    verdict_of_status,
)
from services.wallet.partner_wallet import PartnerWallets
from tests.fleet.small_cell import PARTNER, SmallCell, memory_cell
from tests.unit.seamless_facts import CONVENTIONS, profile

OPENED = 100_000
"""What an account has at the partner in the beginning."""
SUPERVISOR = "operator:super1"

Hook = Callable[[str, Movement], Awaitable[Verdict | None]]
"""Told of a call: (method, movement). A verdict is what comes of it instead; None: it goes on."""


async def nothing(method: str, movement: Movement) -> Verdict | None:
    del method, movement
    return None


class PartnerInMemory:
    """A `PartnerCaller`. `before` and `after`: of the books' decision."""

    def __init__(self, told: conventions.WalletConventions = CONVENTIONS) -> None:
        self.book = Book(Path(":memory:"), told)
        self.before: Hook = nothing
        self.after: Hook = nothing
        self.calls: list[tuple[str, str]] = []
        """(method, transaction), as they came."""
        self.answer_of: Callable[[Any], Any] = lambda response: response

    async def carry_out(
        self, partner: str, profile: PartnerProfile, transaction_id: str, movement: Movement
    ) -> Verdict:
        del partner
        method = METHODS[movement.kind]
        self.calls.append((method, transaction_id))
        instead = await self.before(method, movement)
        if instead is not None:
            return instead
        decide: dict[MovementKind, Callable[[Any], Message]] = {
            MovementKind.DEBIT: self.book.debit,
            MovementKind.CREDIT: self.book.credit,
            MovementKind.ROLLBACK: self.book.rollback,
        }
        try:
            response = decide[movement.kind](request_of(transaction_id, movement))
        except DoneBefore:
            return verdict_of_status(profile, movement.kind, grpc.StatusCode.ALREADY_EXISTS)
        except IdInUse:
            return verdict_of_status(profile, movement.kind, grpc.StatusCode.FAILED_PRECONDITION)
        instead = await self.after(method, movement)
        if instead is not None:
            return instead
        return verdict_of(transaction_id, movement, self.answer_of(response))

    async def balance(
        self, partner: str, profile: PartnerProfile, account_id: str
    ) -> tuple[str, int] | None:
        del partner, profile
        account = self.book.account(account_id)
        return None if account is None else (account.currency_code, account.balance_minor)

    async def close(self) -> None:
        """The books stay open: a shell may end and another begin."""

    def has(self, account_id: str) -> int:
        """What an account has there, minor units."""
        account = self.book.account(account_id)
        assert account is not None
        return account.balance_minor

    def times(self, method: str) -> int:
        """How many calls of a kind came."""
        return sum(1 for one, _ in self.calls if one == method)


def no_answer(problem: str = "DEADLINE_EXCEEDED") -> Verdict:
    return Verdict(seamless.REPLY_OUTCOME_UNKNOWN, problem)


@asynccontextmanager
async def seamless_cell(
    *accounts: str,
    told: conventions.WalletConventions = CONVENTIONS,
    **changed: Any,
) -> AsyncIterator[tuple[SmallCell, PartnerInMemory, MemoryStore]]:
    """A cell whose one partner keeps its accounts' money. Run it under virtual time."""
    async with memory_cell() as (cell, store):
        there = PartnerInMemory(told)
        wallets = PartnerWallets(there, chance=cell.random.random)
        task = asyncio.get_running_loop().create_task(wallets.run(cell.process))
        try:
            await give_order(
                cell,
                seamless.SetPartnerProfile(
                    profile=profile(conventions=told, **changed), reason="as agreed"
                ),
            )
            await cell.open_table()
            for account in accounts or ("ann",):
                opened = wallet.OpenAccount(account_id=account, currency_code="EUR")
                until = frozenset((wallet.AccountOpened,))
                await cell.submit("wallet", opened, until, f"partner:{PARTNER}")
                there.book.open_account(account, "EUR", OPENED)
            yield cell, there, store
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def give_order(
    cell: SmallCell, body: seamless.SetPartnerProfile | seamless.ResolveMovement
) -> Message:
    """An operator's order about the partner; its answer."""
    body.request_id = cell.request_id()
    body.request_hash = body.SerializeToString()
    until: frozenset[type[Message]] = frozenset(
        (
            seamless.PartnerProfileSet,
            seamless.SeamlessOrderRejected,
            seamless.MovementConfirmed,
            seamless.MovementRetried,
            seamless.MovementWrittenOff,
        )
    )
    outcome = await cell.process.submit(
        "wallet", body, partner=PARTNER, actor=SUPERVISOR, until=until, wait_s=30.0
    )
    return outcome.event.body
