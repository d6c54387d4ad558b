"""`sabot certify-wallet`, as it is typed, against the example as a process: over TLS, killed and
started again, with a case that cannot be tried, and where there is nobody."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import trustme
from google.protobuf.json_format import ParseDict
from typer.testing import CliRunner, Result

from sabot.partnerwallet.v1 import conventions_pb2 as conventions
from sabot.wallet.v1.partner_profile_pb2 import WALLET_MODE_SEAMLESS, PartnerProfile
from services.cli.main import app
from services.kernel.held_ports import HeldPorts
from tests.fleet.partner_wallet_process import WalletProcess, opened

OPENED = opened(["kit-eur:EUR:1000000", "kit-kwd:KWD:50000", "kit-blocked:EUR:50000"])
TEST_ACCOUNTS = ("--account", "kit-eur:EUR", "--account", "kit-kwd:KWD")
TIMEOUT_S = 200


def sabot(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, away from any terminal."""
    return subprocess.run(
        [sys.executable, "-m", "services.cli.main", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
        stdin=subprocess.DEVNULL,
    )


def test_a_wallet_behind_tls_is_certified_and_its_profile_told(tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    cert, key, roots = (tmp_path / name for name in ("cert.pem", "key.pem", "roots.pem"))
    issued.cert_chain_pems[0].write_to_path(cert)
    issued.private_key_pem.write_to_path(key)
    authority.cert_pem.write_to_path(roots)
    with WalletProcess(
        tmp_path, *OPENED, "--block", "kit-blocked", "--tls-cert", str(cert),
        "--tls-key", str(key), "--repeats", "already-exists", "--settled-rollbacks", "done",
        "--overdraws", "taken",
    ) as wallet:  # fmt: skip
        done = sabot(
            "certify-wallet", wallet.address, "--partner", "north", "--keys", str(wallet.keys),
            *TEST_ACCOUNTS, "--blocked", "kit-blocked:EUR", "--root-certificates", str(roots),
            "--restart-command", wallet.restart_command, "--json",
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert told["certified"] is True
    assert told["passed"] == len(told["cases"])
    profile = ParseDict(told["profile"], PartnerProfile())
    assert profile.mode == WALLET_MODE_SEAMLESS
    assert profile.address == wallet.address
    assert not profile.plaintext
    assert profile.root_certificates == roots.read_text()
    assert profile.conventions == conventions.WalletConventions(
        repeats=conventions.REPEAT_CONVENTION_ALREADY_EXISTS,
        settled_rollbacks=conventions.SETTLED_ROLLBACK_CONVENTION_DONE,
        overdraws=conventions.OVERDRAW_CONVENTION_TAKEN,
    )


def test_what_is_not_tried_or_fails_is_told_in_words(tmp_path: Path) -> None:
    with WalletProcess(tmp_path, *OPENED) as wallet:
        done = sabot(
            "certify-wallet", wallet.address, "--partner", "north", "--keys", str(wallet.keys),
            *TEST_ACCOUNTS, "--case", "debit", "--case", "debit-blocked-account",
            "--case", "restart-debit",
        )  # fmt: skip
        assert done.returncode == 1, done.stdout + done.stderr
        lines = done.stdout.splitlines()
        assert lines[0].split(maxsplit=2)[:2] == ["passed", "debit"]
        assert "no blocked account is named (--blocked)" in done.stdout
        assert "nobody restarts the wallet" in done.stdout
        assert lines[-1] == "1 passed, 0 failed, 2 not tried: not certified"
        # An account that is not blocked, and a restart that does not happen.
        done = sabot(
            "certify-wallet", wallet.address, "--partner", "north", "--keys", str(wallet.keys),
            *TEST_ACCOUNTS, "--blocked", "kit-blocked:EUR", "--case", "debit-blocked-account",
            "--case", "restart-debit", "--restart-command", "exit 7",
        )  # fmt: skip
        assert done.returncode == 1
        assert "FAILED     debit-blocked-account" in done.stdout
        assert "Debit: TAKEN, and not DECLINED ACCOUNT_BLOCKED" in done.stdout
        assert "the restart command ended with 7" in done.stdout


def here(*arguments: str) -> Result:
    """The command in this process, which has all imported already."""
    return CliRunner().invoke(app, arguments)


def test_at_a_terminal_a_person_is_asked_to_restart_the_wallet(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    with (
        WalletProcess(tmp_path, *OPENED) as wallet,
        subprocess.Popen(
            [sys.executable, "-m", "services.cli.main", "certify-wallet", wallet.address,
             "--partner", "north", "--keys", str(wallet.keys), *TEST_ACCOUNTS,
             "--case", "restart-debit"],
            stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, text=True,
        ) as process,
    ):  # fmt: skip
        os.close(theirs)
        assert b"press Enter" in os.read(ours, 200)
        subprocess.run(["/bin/sh", "-c", wallet.restart_command], check=True)
        os.write(ours, b"\n")
        told, _ = process.communicate(timeout=TIMEOUT_S)
    os.close(ours)
    assert told.startswith("passed     restart-debit"), told
    assert told.splitlines()[-1] == "1 passed, 0 failed, 0 not tried: not certified"


def test_a_wallet_that_cannot_be_tried_is_one_line(tmp_path: Path) -> None:
    keys = ("--keys", str(tmp_path / "call_keys.json"))
    with HeldPorts(1) as held:
        nobody = f"127.0.0.1:{held.numbers[0]}"
        done = here("certify-wallet", nobody, "--partner", "north", *keys, *TEST_ACCOUNTS)
        assert (done.exit_code, done.stdout) == (1, "")
        assert done.stderr == f"sabot: {keys[1]}: there is no such key file\n"
        assert not Path(keys[1]).exists(), "what it made now no wallet could know"
        assert here("wallet-keys", *keys).exit_code == 0
        done = here("certify-wallet", nobody, "--partner", "north", *keys, *TEST_ACCOUNTS)
        assert (done.exit_code, done.stdout) == (1, "")
        assert done.stderr.startswith("sabot: GetBalance of kit-eur: UNAVAILABLE")
        with WalletProcess(tmp_path, *opened(["kit-eur:EUR:99999"])) as wallet:
            done = here(
                "certify-wallet", wallet.address, "--partner", "north", *keys, *TEST_ACCOUNTS
            )
            assert (done.exit_code, done.stdout) == (1, "")
            assert done.stderr == (
                "sabot: kit-eur has 99999 minor units and needs 100000 to be tried with\n"
            )
        for wrong, why in (
            (("localhost", "--partner", "north", *TEST_ACCOUNTS), "HOST:PORT"),
            ((nobody, *TEST_ACCOUNTS), "--partner"),
            ((nobody, "--partner", "north", "--account", "kit-eur:EUR"), "two accounts"),
            ((nobody, "--partner", "north", "--account", "kit-eur"), "ID:CURRENCY"),
            ((nobody, "--partner", "north", *TEST_ACCOUNTS, "--case", "none"), "no case"),
        ):
            shown = here("certify-wallet", *wrong)
            assert shown.exit_code == 2
            assert why in shown.output
