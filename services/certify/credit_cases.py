"""Cases about credits: what is owed is given once, and nothing for a stake that was not taken."""

from __future__ import annotations

from sabot.partnerwallet.v1 import partner_wallet_service_pb2 as wallet
from services.certify.calling import FAILED_PRECONDITION, INVALID_ARGUMENT, Fault
from services.certify.cases import CaseList
from services.certify.debit_cases import GREATEST_MINOR, LEAST_MINOR
from services.certify.kit import Account, Kit

CASES = CaseList()

BEYOND_FLOATS = 2**53 + 1
"""The least amount that floating-point numbers of 64 bits cannot hold."""


async def staked(kit: Kit, minor: int = 500) -> wallet.DebitRequest:
    """A debit that was taken."""
    request = kit.debit(minor)
    await kit.taken(request)
    return request


@CASES.case("credit")
async def credit(kit: Kit) -> None:
    """Winnings are given: the balance is more by exactly them."""
    stake = await staked(kit)
    async with kit.moves(987):
        await kit.credited(kit.credit(987, stake))


@CASES.case("credit-repeated")
async def credit_repeated(kit: Kit) -> None:
    """A repeated credit gives its amount once."""
    stake = await staked(kit)
    async with kit.moves(987):
        first = await kit.credited(kit.credit(987, stake))
        for _ in range(3):
            await kit.repeated(first)


@CASES.case("credit-other-amount")
async def credit_other_amount(kit: Kit) -> None:
    """An id that is used again for another credit is refused."""
    stake = await staked(kit)
    async with kit.moves(987):
        first = kit.credit(987, stake)
        await kit.credited(first)
        other = wallet.CreditRequest()
        other.CopyFrom(first)
        other.amount.minor_units = 988
        await kit.status(other, FAILED_PRECONDITION)


@CASES.case("credit-nothing")
async def credit_nothing(kit: Kit) -> None:
    """The end of a round that pays nothing is noted, and moves nothing."""
    stake = await staked(kit)
    async with kit.moves(0):
        ended = kit.credit(0, stake, reason=wallet.CREDIT_REASON_ROUND_ENDED)
        first = await kit.credited(ended)
        await kit.repeated(first)


@CASES.case("credit-for-several")
async def credit_for_several(kit: Kit) -> None:
    """A credit may name several debits of its round."""
    first = await staked(kit, 100)
    second = kit.debit(200, round_id=first.round_id)
    await kit.taken(second)
    async with kit.moves(600):
        await kit.credited(kit.credit(600, first, second))


@CASES.case("credit-without-debit")
async def credit_without_debit(kit: Kit) -> None:
    """Nothing is paid for a stake that never came."""
    async with kit.moves(0):
        await kit.refused(kit.credit(500, kit.debit(500)), wallet.CREDIT_REFUSAL_DEBIT_NOT_TAKEN)


@CASES.case("credit-of-declined")
async def credit_of_declined(kit: Kit) -> None:
    """Nothing is paid for a stake that was declined."""
    async with kit.moves(0):
        stake = kit.debit(await kit.balance() + 1)
        await kit.declined(stake)
        await kit.refused(kit.credit(500, stake), wallet.CREDIT_REFUSAL_DEBIT_NOT_TAKEN)


@CASES.case("credit-of-rolled-back")
async def credit_of_rolled_back(kit: Kit) -> None:
    """Nothing is paid for a stake that was rolled back."""
    async with kit.moves(0):
        stake = await staked(kit)
        await kit.rolled_back(kit.rollback(stake))
        await kit.refused(kit.credit(500, stake), wallet.CREDIT_REFUSAL_DEBIT_NOT_TAKEN)


@CASES.case("credit-of-another-account")
async def credit_of_another_account(kit: Kit) -> None:
    """Nothing is paid to one account for the stake of another."""
    stake = await staked(kit)
    async with kit.moves(0), kit.moves(0, kit.other):
        foreign = kit.credit(500, stake, account=kit.other)
        await kit.refused(foreign, wallet.CREDIT_REFUSAL_DEBIT_NOT_TAKEN)
    kit.remember(stake)


@CASES.case("credit-of-another-round")
async def credit_of_another_round(kit: Kit) -> None:
    """Nothing is paid in one round for the stake of another."""
    stake = await staked(kit)
    async with kit.moves(0):
        foreign = kit.credit(500, stake)
        foreign.round_id = kit.new_round()
        await kit.refused(foreign, wallet.CREDIT_REFUSAL_DEBIT_NOT_TAKEN)
    kit.remember(stake)


@CASES.case("credit-refused-not-for-good")
async def credit_refused_not_for_good(kit: Kit) -> None:
    """A refused credit is taken once what was wrong is mended."""
    stake = kit.debit(500)
    async with kit.moves(200):
        owed = kit.credit(700, stake)
        await kit.refused(owed, wallet.CREDIT_REFUSAL_DEBIT_NOT_TAKEN)
        await kit.taken(stake)
        await kit.credited(owed)


@CASES.case("credit-unknown-account")
async def credit_unknown_account(kit: Kit) -> None:
    """A credit to an account that there is not is refused."""
    stake = await staked(kit)
    nobody = Account(kit.new_id(), kit.main.currency_code)
    await kit.refused(kit.credit(500, stake, account=nobody), wallet.CREDIT_REFUSAL_ACCOUNT_UNKNOWN)
    kit.remember(stake)


@CASES.case("credit-other-currency")
async def credit_other_currency(kit: Kit) -> None:
    """A credit in another currency is refused."""
    stake = await staked(kit)
    code = "CHF" if kit.main.currency_code != "CHF" else "EUR"
    async with kit.moves(0):
        await kit.refused(
            kit.credit(500, stake, currency_code=code), wallet.CREDIT_REFUSAL_CURRENCY
        )
    kit.remember(stake)


@CASES.case("credit-negative")
async def credit_negative(kit: Kit) -> None:
    """A negative credit is no debit."""
    stake = await staked(kit)
    async with kit.moves(0):
        for minor in (-1, LEAST_MINOR):
            await kit.status(kit.credit(minor, stake), INVALID_ARGUMENT)
    kit.remember(stake)


@CASES.case("credit-amount-and-reason")
async def credit_amount_and_reason(kit: Kit) -> None:
    """An amount of 0 is the end of a round, and nothing else is."""
    stake = await staked(kit)
    async with kit.moves(0):
        await kit.status(kit.credit(0, stake), INVALID_ARGUMENT)
        ended = kit.credit(5, stake, reason=wallet.CREDIT_REASON_ROUND_ENDED)
        await kit.status(ended, INVALID_ARGUMENT)
    kit.remember(stake)


@CASES.case("credit-beyond-floats")
async def credit_beyond_floats(kit: Kit) -> None:
    """An amount that no floating-point number holds is given exactly."""
    stake = await staked(kit)
    before = await kit.balance()
    answer = await kit.call(kit.credit(BEYOND_FLOATS, stake))
    if str(answer) == "REFUSED BALANCE_TOO_LARGE":
        kit.remember(stake)
        given = 0
    elif str(answer) == "CREDITED":
        given = BEYOND_FLOATS
    else:
        raise Fault(f"Credit: {answer}")
    changed = await kit.balance() - before
    if changed != given:
        raise Fault(f"{answer}: the balance changed by {changed} and not by {given}")
    if given:
        # Back it goes, so that the account has what it had.
        await kit.taken(kit.debit(BEYOND_FLOATS))
        kit.forget()


@CASES.case("credit-greatest")
async def credit_greatest(kit: Kit) -> None:
    """The greatest amount of 64 bits is refused, and does not wrap."""
    stake = await staked(kit)
    async with kit.moves(0):
        await kit.refused(
            kit.credit(GREATEST_MINOR, stake),
            wallet.CREDIT_REFUSAL_BALANCE_TOO_LARGE,
            wallet.CREDIT_REFUSAL_OTHER,
        )
    kit.remember(stake)


@CASES.case("return-in-part")
async def return_in_part(kit: Kit) -> None:
    """Part of a stake goes back, then the rest is paid."""
    stake = await staked(kit, 500)
    returned = wallet.CREDIT_REASON_STAKE_RETURNED
    async with kit.moves(200 + 900):
        part = kit.credit(200, stake, reason=returned, round_ended=False)
        first = await kit.credited(part)
        await kit.repeated(first)
        await kit.credited(kit.credit(900, stake))


@CASES.case("return-whole")
async def return_whole(kit: Kit) -> None:
    """A stake goes back whole, in two parts."""
    stake = await staked(kit, 500)
    returned = wallet.CREDIT_REASON_STAKE_RETURNED
    async with kit.moves(500):
        await kit.credited(kit.credit(499, stake, reason=returned, round_ended=False))
        await kit.credited(kit.credit(1, stake, reason=returned))


@CASES.case("return-too-much")
async def return_too_much(kit: Kit) -> None:
    """No more stakes go back than were taken."""
    stake = await staked(kit, 500)
    returned = wallet.CREDIT_REASON_STAKE_RETURNED
    async with kit.moves(300):
        await kit.credited(kit.credit(300, stake, reason=returned, round_ended=False))
        await kit.refused(
            kit.credit(201, stake, reason=returned), wallet.CREDIT_REFUSAL_EXCEEDS_DEBITS
        )


@CASES.case("correction")
async def correction(kit: Kit) -> None:
    """Corrections of a settled round give and take, or are refused as a rule."""
    stake = await staked(kit, 500)
    await kit.credited(kit.credit(100, stake))
    before = await kit.balance()
    taken = await kit.call(
        kit.debit(60, round_id=stake.round_id, reason=wallet.DEBIT_REASON_CORRECTION)
    )
    kit.forget()
    given = await kit.call(kit.credit(70, stake, reason=wallet.CREDIT_REASON_CORRECTION))
    answers = (str(taken), str(given))
    if answers not in {("TAKEN", "CREDITED"), ("DECLINED OTHER", "REFUSED OTHER")}:
        raise Fault(f"of the corrections the debit is {taken} and the credit {given}")
    kit.corrections = answers[0] == "TAKEN"
    changed = await kit.balance() - before
    if changed != (10 if kit.corrections else 0):
        raise Fault(f"after -60 and +70 the balance changed by {changed}")
    if kit.corrections:
        await kit.repeated(taken)
        await kit.repeated(given)


@CASES.case("credit-blocked-account")
async def credit_blocked_account(kit: Kit) -> None:
    """A blocked account is credited."""
    account = kit.blocked
    async with kit.moves(0, account):
        debit = kit.debit(10, account=account, reason=wallet.DEBIT_REASON_CORRECTION)
        answer = await kit.call(debit)
        if str(answer) == "DECLINED OTHER":
            # A wallet that takes no corrections has no debit of a blocked account to credit.
            return
        if str(answer) != "TAKEN":
            raise Fault(f"Debit for a correction of a blocked account: {answer}")
        await kit.credited(kit.credit(10, debit))
