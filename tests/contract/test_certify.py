"""The certification kit: the example passes all of it, in every convention."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from sabot.partnerwallet.v1 import conventions_pb2 as conventions
from sabot.wallet.v1.partner_profile_pb2 import PartnerProfile
from services.certify.calling import Caller
from services.certify.cases import State
from services.certify.kit import Account
from services.certify.run import Report, certify
from services.kernel.call_tokens import load_or_create_call_keys, signer_of
from tests.contract.broken_wallets import (
    AcceptsForeignTokens,
    AcceptsTokensOfOtherCalls,
    CreditsTwiceAfterRestart,
    DebitsTwiceAtOnce,
    DecidesDeclinedDebitsAgain,
    ForgetsTombstones,
    GivesBackTwice,
)
from tests.contract.partner_wallets import CELL, CONTRARY, PARTNER, USUAL, RunningWallet, running

ACCOUNTS = [Account("kit-eur", "EUR"), Account("kit-jpy", "JPY"), Account("kit-kwd", "KWD")]
BLOCKED = Account("kit-blocked", "EUR")


async def certified(one: RunningWallet, only: Collection[str] = ()) -> Report:
    """The report on a wallet."""
    async with running(one):
        for account in (*ACCOUNTS, BLOCKED):
            one.book.open_account(account.account_id, account.currency_code, 1_000_000)
        one.book.block_account(BLOCKED.account_id)
        signer = signer_of(load_or_create_call_keys(one.keys), CELL)
        caller = Caller(one.address, signer, PARTNER, 5.0, None)
        profile = PartnerProfile(address=one.address, plaintext=True)
        try:
            return await certify(caller, profile, ACCOUNTS, BLOCKED, one.restart, only=only)
        finally:
            await caller.close()


@pytest.mark.parametrize("kinds", [USUAL, CONTRARY], ids=["usual", "contrary"])
async def test_the_example_passes_every_case(
    kinds: conventions.WalletConventions, tmp_path: Path
) -> None:
    report = await certified(RunningWallet(tmp_path, kinds))
    assert [one for one in report.verdicts if one.state is not State.PASSED] == []
    assert report.certified
    assert len(report.verdicts) >= 40
    assert report.conventions == kinds
    assert report.profile.conventions == kinds
    assert report.profile.reversal_after_settlement


@pytest.mark.parametrize(
    ("broken", "cases"),
    [
        (DebitsTwiceAtOnce, {"debit-at-once"}),
        (
            ForgetsTombstones,
            {"rollback-before-debit", "rollback-unknown-account", "restart-tombstone"},
        ),
        (CreditsTwiceAfterRestart, {"restart-credit"}),
        (AcceptsForeignTokens, {"token-of-another-key", "token-unsigned"}),
    ],
)
async def test_a_broken_wallet_is_found_out_by_name(
    broken: type[RunningWallet], cases: set[str], tmp_path: Path
) -> None:
    report = await certified(broken(tmp_path))
    failed = {one.case.name: one.why for one in report.verdicts if one.state is State.FAILED}
    assert cases <= failed.keys(), failed
    assert all(failed.values())
    assert report.count(State.PASSED) > 80
    assert not report.certified


@pytest.mark.parametrize(
    ("broken", "cases"),
    [
        (
            AcceptsTokensOfOtherCalls,
            {"token-for-another-method", "token-for-another-call", "token-for-another-account"},
        ),
        (DecidesDeclinedDebitsAgain, {"debit-declined-for-good"}),
        (GivesBackTwice, {"rollback-repeated", "rollback-at-once", "restart-rollback"}),
    ],
)
async def test_a_case_that_is_tried_alone_finds_its_fault(
    broken: type[RunningWallet], cases: set[str], tmp_path: Path
) -> None:
    report = await certified(broken(tmp_path), only={*cases, "debit"})
    failed = {one.case.name for one in report.verdicts if one.state is State.FAILED}
    assert failed == cases
    assert report.count(State.PASSED) == 1
    assert not report.certified


async def test_what_cannot_be_tried_is_said_and_nothing_is_certified(tmp_path: Path) -> None:
    report = await certified(RunningWallet(tmp_path), only={"debit", "restart-debit"})
    assert (report.count(State.PASSED), report.certified) == (2, False)
