"""Cases about calls that cross, are repeated at once, or whose caller goes away; and restarts."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import suppress

import grpc

from sabot.partnerwallet.v1 import conventions_pb2 as conventions
from sabot.partnerwallet.v1 import partner_wallet_service_pb2 as wallet
from services.certify.calling import OK, Answer, Fault, Request
from services.certify.cases import CaseList
from services.certify.credit_cases import staked
from services.certify.kit import Kit

CASES = CaseList()

AT_ONCE = 50
"""Calls of one transaction at once: more than any wallet works at in one moment."""
TIMES = 3
"""A race is not lost every time."""
PAIRS = 20
IMPATIENCE_S = (0.0, 0.0005, 0.001, 0.002, 0.004, 0.008)
"""After how long a caller goes away: before, while and after the wallet decides."""
TENTHS = 20
"""Stakes of a tenth of the balance each, at once: ten too many."""
BETTORS = 4
BETS_UNDER_WAY = 500
BETS_BEFORE = 10
BET_PAUSE_S = 0.005
"""Debits while the wallet is restarted: some are under way when it goes, few are sent in all."""


@CASES.case("debit-at-once")
async def debit_at_once(kit: Kit) -> None:
    """The same debit fifty times at once takes its amount once."""
    for _ in range(TIMES):
        async with kit.moves(-500):
            await _all_once(kit, kit.debit(500))


@CASES.case("credit-at-once")
async def credit_at_once(kit: Kit) -> None:
    """The same credit fifty times at once gives its amount once."""
    for _ in range(TIMES):
        stake = await staked(kit)
        async with kit.moves(900):
            await _all_once(kit, kit.credit(900, stake))


@CASES.case("rollback-at-once")
async def rollback_at_once(kit: Kit) -> None:
    """The same rollback fifty times at once gives back once."""
    for _ in range(TIMES):
        async with kit.moves(0):
            stake = await staked(kit)
            await _all_once(kit, kit.rollback(stake))


async def _all_once(kit: Kit, request: Request) -> None:
    """One of many equal calls is the first, the others are its repeats. Raises Fault."""
    answers = await asyncio.gather(*(kit.call(request) for _ in range(AT_ONCE)))
    firsts = [one for one in answers if one.status is OK and not one.told.duplicate]
    if len(firsts) != 1 or firsts[0].told.outcome != 1:  # TAKEN, CREDITED, DONE
        seen = Counter(str(one) for one in answers)
        raise Fault(f"of {AT_ONCE} equal calls {len(firsts)} were told to be the first: {seen}")
    for again in answers:
        if again is not firsts[0]:
            kit.is_repeat(firsts[0], again)


@CASES.case("rollbacks-at-once")
async def rollbacks_at_once(kit: Kit) -> None:
    """Twenty rollbacks of one debit at once give back once."""
    async with kit.moves(0):
        stake = await staked(kit)
        answers = await asyncio.gather(
            *(kit.rolled_back(kit.rollback(stake)) for _ in range(PAIRS))
        )
        returned = sum(one.told.returned for one in answers)
        if returned != 1:
            raise Fault(f"{returned} of {PAIRS} rollbacks say that they gave money back")


@CASES.case("overdraw-at-once")
async def overdraw_at_once(kit: Kit) -> None:
    """Twenty stakes of a tenth of the balance at once: ten are taken."""
    balance = await kit.balance()
    tenth = balance // 10
    async with kit.moves(-10 * tenth):
        stakes = [kit.debit(tenth) for _ in range(TENTHS)]
        answers = Counter(str(one) for one in await asyncio.gather(*map(kit.call, stakes)))
        if answers != {"TAKEN": 10, "DECLINED INSUFFICIENT_FUNDS": TENTHS - 10}:
            raise Fault(f"the answers are {dict(answers)}")


@CASES.case("different-at-once")
async def different_at_once(kit: Kit) -> None:
    """Different debits and credits at once all count."""
    stakes = [await staked(kit, 100) for _ in range(PAIRS)]
    async with kit.moves(PAIRS * (150 - 30)):
        await asyncio.gather(
            *(kit.credited(kit.credit(150, stake)) for stake in stakes),
            *(kit.taken(kit.debit(30)) for _ in stakes),
        )


@CASES.case("debit-and-rollback-cross")
async def debit_and_rollback_cross(kit: Kit) -> None:
    """A debit and its rollback at once: in the end nothing is taken."""
    async with kit.moves(0):
        stakes = [kit.debit(500) for _ in range(PAIRS)]
        for number, stake in enumerate(stakes):
            both: list[Request] = [stake, kit.rollback(stake)]
            if number % 2:
                both.reverse()
            answers = {type(one.request): str(one) for one in
                       await asyncio.gather(*map(kit.call, both))}  # fmt: skip
            if answers[wallet.RollbackRequest] != "DONE":
                raise Fault(f"Rollback beside its debit: {answers[wallet.RollbackRequest]}")
            if answers[wallet.DebitRequest] not in {"TAKEN", "DECLINED ROLLED_BACK"}:
                raise Fault(f"Debit beside its rollback: {answers[wallet.DebitRequest]}")
        for stake in stakes:
            await kit.declined(stake, wallet.DEBIT_DECLINE_ROLLED_BACK)


async def _gone_away(kit: Kit, request: Request, patience_s: float) -> None:
    """A call whose caller goes away."""
    kit.remember(request)
    call = kit.caller.start(request)
    await asyncio.sleep(patience_s)
    call.cancel()
    with suppress(asyncio.CancelledError, grpc.aio.AioRpcError):
        await call


async def _whole(kit: Kit, request: Request) -> None:
    """A call that may have been carried out before: it is done afterwards. Raises Fault."""
    answer = await kit.call(request)
    if answer.status is not OK:
        kit.is_repeat(_done(request), answer)
    elif answer.told.outcome != 1:  # TAKEN, CREDITED, DONE
        raise Fault(f"after its caller went away, the call again: {answer}")
    elif answer.told.duplicate:
        kit.observe(conventions.REPEAT_CONVENTION_FIRST_ANSWER)


def _done(request: Request) -> Answer:
    """What the lost answer of a call that was carried out must have been."""
    kinds = {
        wallet.DebitRequest: wallet.DebitResponse(outcome=wallet.DEBIT_OUTCOME_TAKEN),
        wallet.CreditRequest: wallet.CreditResponse(outcome=wallet.CREDIT_OUTCOME_CREDITED),
        wallet.RollbackRequest: wallet.RollbackResponse(outcome=wallet.ROLLBACK_OUTCOME_DONE),
    }
    return Answer(request, OK, kinds[type(request)])


@CASES.case("debit-cancelled")
async def debit_cancelled(kit: Kit) -> None:
    """A debit whose caller went away, and comes again, is taken once."""
    async with kit.moves(-100 * len(IMPATIENCE_S)):
        for patience_s in IMPATIENCE_S:
            request = kit.debit(100)
            await _gone_away(kit, request, patience_s)
            await _whole(kit, request)


@CASES.case("credit-cancelled")
async def credit_cancelled(kit: Kit) -> None:
    """A credit whose caller went away, and comes again, is given once."""
    stakes = [await staked(kit, 100) for _ in IMPATIENCE_S]
    async with kit.moves(130 * len(IMPATIENCE_S)):
        for stake, patience_s in zip(stakes, IMPATIENCE_S, strict=True):
            request = kit.credit(130, stake)
            await _gone_away(kit, request, patience_s)
            await _whole(kit, request)


@CASES.case("debit-cancelled-rolled-back")
async def debit_cancelled_rolled_back(kit: Kit) -> None:
    """A debit whose caller went away is rolled back, come what may."""
    async with kit.moves(0):
        for patience_s in IMPATIENCE_S:
            request = kit.debit(100)
            await _gone_away(kit, request, patience_s)
            await kit.rolled_back(kit.rollback(request))
            await kit.declined(request, wallet.DEBIT_DECLINE_ROLLED_BACK)


@CASES.case("rollback-cancelled")
async def rollback_cancelled(kit: Kit) -> None:
    """A rollback whose caller went away, and comes again, gives back once."""
    async with kit.moves(0):
        for patience_s in IMPATIENCE_S:
            request = kit.rollback(await staked(kit, 100))
            await _gone_away(kit, request, patience_s)
            await _whole(kit, request)


# ---- while the wallet is restarted ---------------------------------------------------------------


@CASES.restarted("restart-debit")
async def restart_debit(kit: Kit) -> AsyncGenerator[None]:
    """A debit from before a restart is taken once."""
    first = await kit.taken(kit.debit(500))
    kit.forget()
    yield
    async with kit.moves(0):
        await kit.repeated(first)


@CASES.restarted("restart-declined")
async def restart_declined(kit: Kit) -> AsyncGenerator[None]:
    """A debit that was declined before a restart stays declined."""
    all_of_it = kit.debit(await kit.balance())
    await kit.taken(all_of_it)
    late = kit.debit(500)
    await kit.declined(late, wallet.DEBIT_DECLINE_INSUFFICIENT_FUNDS)
    await kit.rolled_back(kit.rollback(all_of_it))
    yield
    async with kit.moves(0):
        await kit.declined(late, wallet.DEBIT_DECLINE_INSUFFICIENT_FUNDS)


@CASES.restarted("restart-credit")
async def restart_credit(kit: Kit) -> AsyncGenerator[None]:
    """A credit from before a restart is given once."""
    stake = await staked(kit)
    first = await kit.credited(kit.credit(900, stake))
    yield
    async with kit.moves(0):
        await kit.repeated(first)


@CASES.restarted("restart-rollback")
async def restart_rollback(kit: Kit) -> AsyncGenerator[None]:
    """A rollback from before a restart gives back once."""
    stake = await staked(kit)
    first = await kit.rolled_back(kit.rollback(stake))
    yield
    async with kit.moves(0):
        await kit.repeated(first)
        await kit.rolled_back(kit.rollback(stake))
        await kit.declined(stake, wallet.DEBIT_DECLINE_ROLLED_BACK)


@CASES.restarted("restart-tombstone")
async def restart_tombstone(kit: Kit) -> AsyncGenerator[None]:
    """A debit that was rolled back before it came, and comes after a restart."""
    late = kit.debit(500)
    await kit.rolled_back(kit.rollback(late))
    yield
    async with kit.moves(0):
        await kit.declined(late, wallet.DEBIT_DECLINE_ROLLED_BACK)


@CASES.restarted("restart-other-content")
async def restart_other_content(kit: Kit) -> AsyncGenerator[None]:
    """An id from before a restart, used again for another amount."""
    first = kit.debit(500)
    await kit.taken(first)
    kit.forget()
    yield
    async with kit.moves(0):
        other = kit.debit(501, transaction_id=first.transaction_id)
        await kit.status(other, grpc.StatusCode.FAILED_PRECONDITION)
        kit.forget()


@CASES.restarted("restart-balance")
async def restart_balance(kit: Kit) -> AsyncGenerator[None]:
    """What an account has is the same after a restart."""
    # Without the first account: others of these cases move its money meanwhile.
    for account in kit.accounts[1:]:
        await kit.taken(kit.debit(7, account=account))
    kit.forget()
    before = {account: await kit.balance(account) for account in kit.accounts[1:]}
    yield
    for account, minor in before.items():
        after = await kit.balance(account)
        if after != minor:
            raise Fault(f"{account.account_id} had {minor} before and has {after} afterwards")


@CASES.restarted("restart-under-way")
async def restart_under_way(kit: Kit) -> AsyncGenerator[None]:
    """Debits that a restart interrupts are taken once when they come again."""
    # The last case to begin and the first to go on: nothing else moves money meanwhile.
    before = await kit.balance()
    sent: list[wallet.DebitRequest] = []
    under_way = asyncio.Event()

    async def bet() -> None:
        for number in range(BETS_UNDER_WAY):
            sent.append(kit.debit(1))
            with suppress(Fault):
                if (await kit.caller.call(sent[-1])).status is not OK:
                    return
            if number == BETS_BEFORE:
                under_way.set()
            await asyncio.sleep(BET_PAUSE_S)

    bettors = [asyncio.create_task(bet()) for _ in range(BETTORS)]
    try:
        await under_way.wait()
        yield
    finally:
        for task in bettors:
            task.cancel()
        await asyncio.gather(*bettors, return_exceptions=True)
    for request in sent:
        await _whole(kit, request)
    kit.forget()
    changed = await kit.balance() - before
    if changed != -len(sent):
        raise Fault(f"{len(sent)} debits of 1 changed the balance by {changed}")
