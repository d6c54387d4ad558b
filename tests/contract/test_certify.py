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
from services.certify.run import CASES, Report, certify
from services.cli import demo_seamless
from services.kernel.call_tokens import load_or_create_call_keys, signer_of
from tests.contract.partner_wallets import CELL, CONTRARY, PARTNER, USUAL, RunningWallet, running
from tests.contract.places import PATIENCE_S
from tests.contract.wallet_faults import (
    FAULTS,
    FORGETS_AT_RESTART,
    LOOKS_THEN_TAKES,
    NO_SIGNATURE,
    NO_TOMBSTONES,
    Fault,
    planted,
)

ACCOUNTS = [Account("kit-eur", "EUR"), Account("kit-jpy", "JPY"), Account("kit-kwd", "KWD")]
BLOCKED = Account("kit-blocked", "EUR")


async def certified(one: RunningWallet, only: Collection[str] = ()) -> Report:
    """The report on a wallet."""
    async with running(one):
        for account in (*ACCOUNTS, BLOCKED):
            one.book.open_account(account.account_id, account.currency_code, 1_000_000)
        one.book.block_account(BLOCKED.account_id)
        signer = signer_of(load_or_create_call_keys(one.keys), CELL)
        caller = Caller(one.address, signer, PARTNER, PATIENCE_S, None)
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
    "fault",
    [LOOKS_THEN_TAKES, NO_TOMBSTONES, FORGETS_AT_RESTART, NO_SIGNATURE],
    ids=lambda fault: fault.name,
)
async def test_a_broken_wallet_is_found_out_by_name(fault: Fault, tmp_path: Path) -> None:
    with planted(fault, tmp_path) as wallet:
        report = await certified(wallet)
    failed = {one.case.name: one.why for one in report.verdicts if one.state is State.FAILED}
    assert fault.cases <= failed.keys(), failed
    assert all(failed.values())
    assert report.count(State.PASSED) > len(CASES) - 10
    assert not report.certified


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
async def test_each_fault_fails_its_cases(fault: Fault, tmp_path: Path) -> None:
    with planted(fault, tmp_path) as wallet:
        report = await certified(wallet, only=fault.cases)
    failed = {one.case.name for one in report.verdicts if one.state is State.FAILED}
    assert failed == fault.cases


def test_the_demonstration_has_the_profile_that_certification_tells() -> None:
    assert demo_seamless.profile("127.0.0.1:1").conventions == USUAL
    assert demo_seamless.profile("127.0.0.1:1").reversal_after_settlement


def test_there_is_a_fault_for_every_case() -> None:
    assert {name for fault in FAULTS for name in fault.cases} == {one.name for one in CASES}
