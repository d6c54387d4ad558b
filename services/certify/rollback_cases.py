"""Cases about rollbacks: a debit that is cancelled has no effect, whenever it comes."""

from __future__ import annotations

from sabot.partnerwallet.v1 import conventions_pb2 as conventions
from sabot.partnerwallet.v1 import partner_wallet_service_pb2 as wallet
from services.certify.calling import FAILED_PRECONDITION, Fault
from services.certify.cases import CaseList
from services.certify.credit_cases import staked
from services.certify.kit import Account, Kit

CASES = CaseList()


@CASES.case("rollback")
async def rollback(kit: Kit) -> None:
    """A debit is rolled back: all that it took is there again."""
    async with kit.moves(0):
        stake = await staked(kit)
        answer = await kit.rolled_back(kit.rollback(stake))
        if not answer.told.returned:
            raise Fault("money went back, but `returned` is not set")


@CASES.case("rollback-repeated")
async def rollback_repeated(kit: Kit) -> None:
    """A repeated rollback gives back once."""
    async with kit.moves(0):
        stake = await staked(kit)
        first = await kit.rolled_back(kit.rollback(stake))
        for _ in range(3):
            await kit.repeated(first)


@CASES.case("rollback-twice")
async def rollback_twice(kit: Kit) -> None:
    """A second rollback of a debit, under another id, is done and gives nothing."""
    async with kit.moves(0):
        stake = await staked(kit)
        await kit.rolled_back(kit.rollback(stake))
        second = await kit.rolled_back(kit.rollback(stake))
        if second.told.returned:
            raise Fault("the second rollback has `returned` set")


@CASES.case("rollback-before-debit")
async def rollback_before_debit(kit: Kit) -> None:
    """A rollback overtakes its debit: it is done, and the debit declined."""
    async with kit.moves(0):
        late = kit.debit(500)
        early = await kit.rolled_back(kit.rollback(late))
        if early.told.returned:
            raise Fault("there was nothing to give back, but `returned` is set")
        await kit.declined(late, wallet.DEBIT_DECLINE_ROLLED_BACK)
        await kit.declined(late, wallet.DEBIT_DECLINE_ROLLED_BACK)
        await kit.repeated(early)
        await kit.rolled_back(kit.rollback(late))


@CASES.case("debit-after-rollback")
async def debit_after_rollback(kit: Kit) -> None:
    """A debit that was taken and rolled back is declined when it comes again."""
    async with kit.moves(0):
        stake = await staked(kit)
        await kit.rolled_back(kit.rollback(stake))
        await kit.declined(stake, wallet.DEBIT_DECLINE_ROLLED_BACK)


@CASES.case("rollback-of-declined")
async def rollback_of_declined(kit: Kit) -> None:
    """The rollback of a declined debit is done and gives nothing."""
    async with kit.moves(0):
        stake = kit.debit(await kit.balance() + 1)
        await kit.declined(stake)
        answer = await kit.rolled_back(kit.rollback(stake))
        if answer.told.returned:
            raise Fault("there was nothing to give back, but `returned` is set")


@CASES.case("rollback-unknown-account")
async def rollback_unknown_account(kit: Kit) -> None:
    """A debit of an account that there is not can be rolled back too."""
    nobody = Account(kit.new_id(), kit.main.currency_code)
    late = kit.debit(500, account=nobody)
    await kit.rolled_back(kit.rollback(late))
    await kit.declined(late, wallet.DEBIT_DECLINE_ROLLED_BACK)


@CASES.case("rollback-mismatch")
async def rollback_mismatch(kit: Kit) -> None:
    """A rollback that names another amount is refused, and the debit stands."""
    async with kit.moves(-500):
        stake = await staked(kit)
        for minor in (499, 501):
            wrong = kit.rollback(stake, minor=minor)
            answer = await kit.caller.call(wrong)
            if str(answer) != "REFUSED MISMATCH":
                raise Fault(f"Rollback of {minor} instead of 500: {answer}, not REFUSED MISMATCH")
        await kit.repeated(await kit.caller.call(stake))


@CASES.case("rollback-other-content")
async def rollback_other_content(kit: Kit) -> None:
    """An id that is used again for the rollback of another debit is refused."""
    async with kit.moves(-700):
        first, second = await staked(kit, 500), await staked(kit, 700)
        cancelled = kit.rollback(first)
        await kit.rolled_back(cancelled)
        other = kit.rollback(second, transaction_id=cancelled.transaction_id)
        await kit.status(other, FAILED_PRECONDITION)
    kit.remember(second)


@CASES.case("rollback-id-of-debit")
async def rollback_id_of_debit(kit: Kit) -> None:
    """The debit's own id is no id for its rollback."""
    async with kit.moves(-500):
        stake = await staked(kit)
        await kit.status(
            kit.rollback(stake, transaction_id=stake.transaction_id), FAILED_PRECONDITION
        )
    kit.remember(stake)


@CASES.case("rollback-after-settlement")
async def rollback_after_settlement(kit: Kit) -> None:
    """A rollback after a credit is refused, or gives the stake back."""
    stake = await staked(kit, 500)
    await kit.credited(kit.credit(800, stake))
    before = await kit.balance()
    late = kit.rollback(stake)
    answer = await kit.call(late)
    changed = await kit.balance() - before
    if str(answer) == "REFUSED ALREADY_SETTLED" and changed == 0:
        kit.settled_rollbacks = conventions.SETTLED_ROLLBACK_CONVENTION_REFUSED
        again = await kit.call(late)
        if str(again) != str(answer):
            raise Fault(f"the same rollback is {answer} and then {again}")
    elif str(answer) == "DONE" and changed == 500:
        kit.settled_rollbacks = conventions.SETTLED_ROLLBACK_CONVENTION_DONE
        await kit.repeated(answer)
    else:
        raise Fault(f"Rollback after a credit: {answer}, and the balance changed by {changed}")
    if await kit.balance() - before != changed:
        raise Fault("a repeat of the rollback moved money")


@CASES.case("overdraw")
async def overdraw(kit: Kit) -> None:
    """A correction above the balance is declined, or makes the balance negative."""
    balance = await kit.balance()
    more = kit.debit(balance + 300, reason=wallet.DEBIT_REASON_CORRECTION)
    answer = await kit.call(more)
    changed = await kit.balance() - balance
    if str(answer) == "TAKEN" and changed == -(balance + 300):
        kit.overdraws = conventions.OVERDRAW_CONVENTION_TAKEN
        await kit.declined(kit.debit(1), wallet.DEBIT_DECLINE_INSUFFICIENT_FUNDS)
        await kit.rolled_back(kit.rollback(more))
    elif str(answer) in {"DECLINED INSUFFICIENT_FUNDS", "DECLINED OTHER"} and changed == 0:
        kit.overdraws = conventions.OVERDRAW_CONVENTION_DECLINED
    else:
        raise Fault(f"Debit above the balance: {answer}, and the balance changed by {changed}")
