"""Cases about debits: taken or declined, once, and whatever the form of what is asked."""

from __future__ import annotations

from sabot.partnerwallet.v1 import partner_wallet_service_pb2 as wallet
from sabot.table.v1.bet_pb2 import Bet
from services.certify.calling import FAILED_PRECONDITION, INVALID_ARGUMENT, Fault
from services.certify.cases import CaseList
from services.certify.kit import Account, Kit

CASES = CaseList()

GREATEST_MINOR = 2**63 - 1
LEAST_MINOR = -(2**63)
MOST_BETS = 1000


@CASES.case("debit")
async def debit(kit: Kit) -> None:
    """A stake is taken: the balance is less by exactly it."""
    async with kit.moves(-1234):
        await kit.taken(kit.debit(1234))


@CASES.case("debit-of-all")
async def debit_of_all(kit: Kit) -> None:
    """All that there is can be staked."""
    balance = await kit.balance()
    async with kit.moves(-balance):
        await kit.taken(kit.debit(balance))


@CASES.case("debit-of-more")
async def debit_of_more(kit: Kit) -> None:
    """One minor unit more than there is cannot."""
    async with kit.moves(0):
        await kit.declined(
            kit.debit(await kit.balance() + 1), wallet.DEBIT_DECLINE_INSUFFICIENT_FUNDS
        )


@CASES.case("debit-units")
async def debit_units(kit: Kit) -> None:
    """Amounts are whole minor units in every currency: JPY has no decimals, KWD three."""
    for account in kit.accounts:
        async with kit.moves(-1, account):
            await kit.taken(kit.debit(1, account=account))
        async with kit.moves(-1001, account):
            await kit.taken(kit.debit(1001, account=account))


@CASES.case("debit-repeated")
async def debit_repeated(kit: Kit) -> None:
    """A repeated debit takes its amount once."""
    async with kit.moves(-500):
        first = await kit.taken(kit.debit(500))
        for _ in range(3):
            await kit.repeated(first)


@CASES.case("debit-declined-for-good")
async def debit_declined_for_good(kit: Kit) -> None:
    """A declined debit stays declined when there is money by then."""
    balance = await kit.balance()
    async with kit.moves(0):
        stake = kit.debit(balance)
        await kit.taken(stake)
        late = kit.debit(500)
        await kit.declined(late, wallet.DEBIT_DECLINE_INSUFFICIENT_FUNDS)
        await kit.rolled_back(kit.rollback(stake))
        await kit.declined(late, wallet.DEBIT_DECLINE_INSUFFICIENT_FUNDS)


@CASES.case("debit-other-amount")
async def debit_other_amount(kit: Kit) -> None:
    """An id that is used again for another amount is refused."""
    async with kit.moves(-500):
        first = kit.debit(500)
        await kit.taken(first)
        other = wallet.DebitRequest()
        other.CopyFrom(first)
        other.amount.minor_units = 501
        other.bets[0].stake_minor = 501
        await kit.status(other, FAILED_PRECONDITION)
        # What is there stays what it was.
        await kit.repeated(await kit.caller.call(first))


@CASES.case("debit-other-account")
async def debit_other_account(kit: Kit) -> None:
    """An id that is used again for another account is refused."""
    async with kit.moves(-500), kit.moves(0, kit.other):
        first = kit.debit(500)
        await kit.taken(first)
        other = kit.debit(500, account=kit.other, transaction_id=first.transaction_id)
        answer = await kit.caller.call(other)
        if answer.status is not FAILED_PRECONDITION:
            raise Fault(f"Debit: {answer}, and not FAILED_PRECONDITION")


@CASES.case("debit-other-content")
async def debit_other_content(kit: Kit) -> None:
    """An id that is used again for another round or other bets is refused."""
    async with kit.moves(-500):
        first = kit.debit(500)
        await kit.taken(first)
        others = {name: wallet.DebitRequest() for name in ("round_id", "reason", "bets")}
        for other in others.values():
            other.CopyFrom(first)
        others["round_id"].round_id = kit.new_round()
        others["reason"].reason = wallet.DEBIT_REASON_FURTHER_STAKE
        others["bets"].bets[0].bet = "player"
        for changed, other in others.items():
            answer = await kit.caller.call(other)
            if answer.status is not FAILED_PRECONDITION:
                raise Fault(f"Debit with another `{changed}`: {answer}, not FAILED_PRECONDITION")


@CASES.case("debit-id-of-a-credit")
async def debit_id_of_a_credit(kit: Kit) -> None:
    """The id of a credit is no id for a debit."""
    async with kit.moves(0):
        stake = kit.debit(500)
        await kit.taken(stake)
        credit = kit.credit(500, stake)
        await kit.credited(credit)
        other = kit.debit(500, transaction_id=credit.transaction_id)
        answer = await kit.caller.call(other)
        if answer.status is not FAILED_PRECONDITION:
            raise Fault(f"Debit: {answer}, and not FAILED_PRECONDITION")


@CASES.case("debit-unknown-account")
async def debit_unknown_account(kit: Kit) -> None:
    """A debit of an account that there is not is declined."""
    nobody = Account(kit.new_id(), kit.main.currency_code)
    await kit.declined(kit.debit(500, account=nobody), wallet.DEBIT_DECLINE_ACCOUNT_UNKNOWN)


@CASES.case("debit-blocked-account")
async def debit_blocked_account(kit: Kit) -> None:
    """A blocked account stakes nothing."""
    async with kit.moves(0, kit.blocked):
        await kit.declined(
            kit.debit(100, account=kit.blocked), wallet.DEBIT_DECLINE_ACCOUNT_BLOCKED
        )


@CASES.case("debit-other-currency")
async def debit_other_currency(kit: Kit) -> None:
    """A debit in another currency is declined, whatever it is worth."""
    code = "CHF" if kit.main.currency_code != "CHF" else "EUR"
    async with kit.moves(0):
        await kit.declined(kit.debit(100, currency_code=code), wallet.DEBIT_DECLINE_CURRENCY)


@CASES.case("debit-zero")
async def debit_zero(kit: Kit) -> None:
    """A debit of nothing is no debit."""
    await kit.status(kit.debit(0), INVALID_ARGUMENT)


@CASES.case("debit-negative")
async def debit_negative(kit: Kit) -> None:
    """A negative debit is no credit."""
    async with kit.moves(0):
        for minor in (-1, -500, LEAST_MINOR):
            await kit.status(kit.debit(minor), INVALID_ARGUMENT)


@CASES.case("debit-greatest")
async def debit_greatest(kit: Kit) -> None:
    """The greatest amount of 64 bits is declined, and does not wrap."""
    async with kit.moves(0):
        await kit.declined(
            kit.debit(GREATEST_MINOR),
            wallet.DEBIT_DECLINE_INSUFFICIENT_FUNDS,
            wallet.DEBIT_DECLINE_LIMIT,
        )


@CASES.case("debit-without-reason")
async def debit_without_reason(kit: Kit) -> None:
    """A debit without a reason is none."""
    async with kit.moves(0):
        await kit.status(kit.debit(500, reason=wallet.DEBIT_REASON_UNSPECIFIED), INVALID_ARGUMENT)


@CASES.case("debit-without-id")
async def debit_without_id(kit: Kit) -> None:
    """A debit without a transaction id is none."""
    async with kit.moves(0):
        await kit.status(kit.debit(500, transaction_id=""), INVALID_ARGUMENT)


@CASES.case("debit-bad-ids")
async def debit_bad_ids(kit: Kit) -> None:
    """Ids with spaces, of other alphabets or too long are not taken."""
    async with kit.moves(0):
        for bad in (f"{kit.new_id()} x", f"{kit.new_id()}é", kit.new_id().ljust(129, "x")):
            await kit.status(kit.debit(500, transaction_id=bad), INVALID_ARGUMENT)


@CASES.case("debit-longest-ids")
async def debit_longest_ids(kit: Kit) -> None:
    """Ids of 128 characters that differ in the last are two."""
    stem = kit.new_id().ljust(127, "x")
    async with kit.moves(-300):
        first = await kit.taken(kit.debit(100, transaction_id=f"{stem}1"))
        await kit.taken(kit.debit(200, transaction_id=f"{stem}2"))
        await kit.repeated(first)


@CASES.case("debit-case-of-ids")
async def debit_case_of_ids(kit: Kit) -> None:
    """Ids that differ only in capital letters are two."""
    stem = kit.new_id()
    async with kit.moves(-300):
        await kit.taken(kit.debit(100, transaction_id=f"{stem}a"))
        await kit.taken(kit.debit(200, transaction_id=f"{stem}A"))


@CASES.case("debit-many-bets")
async def debit_many_bets(kit: Kit) -> None:
    """A request of a thousand bets is taken."""
    request = kit.debit(MOST_BETS)
    request.ClearField("bets")
    request.bets.extend(
        Bet(bet_id=f"{request.transaction_id}-{number}", bet="straight", stake_minor=1,
            position=str(number % 37), announced="voisins")
        for number in range(MOST_BETS)
    )  # fmt: skip
    async with kit.moves(-MOST_BETS):
        first = await kit.taken(request)
        await kit.repeated(first)


@CASES.case("debit-further-stake")
async def debit_further_stake(kit: Kit) -> None:
    """A further stake in the same round is a debit of its own."""
    round_id = kit.new_round()
    async with kit.moves(-300):
        await kit.taken(kit.debit(100, round_id=round_id))
        await kit.taken(kit.debit(200, round_id=round_id, reason=wallet.DEBIT_REASON_FURTHER_STAKE))
