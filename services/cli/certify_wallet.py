"""`sabot certify-wallet`: the kit against a wallet that is somewhere, and its report in words."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import re
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc

from sabot.wallet.v1.partner_profile_pb2 import PartnerProfile
from services.certify.calling import Caller
from services.certify.cases import NotTried, State, Verdict
from services.certify.kit import Account
from services.certify.run import CASES, Report, Restart, certify
from services.kernel.call_tokens import signer_of
from services.kernel.key_file import load_keys

NAME_WIDTH = max(len(one.name) for one in CASES)
STATE_WIDTH = max(len(state.value) for state in State)
_ACCOUNT = re.compile(r"([!-~]{1,64}):([A-Z]{3})")
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9.-]+):([0-9]{1,5})")


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command was asked to do."""

    address: str
    partner: str
    cell: str
    accounts: Sequence[Account]
    blocked: Account | None
    restart_command: str
    root_certificates: Path | None
    deadline_s: float
    cases: Collection[str]


def parse_address(text: str) -> str:
    """An address as it stands. Raises ValueError."""
    if not _ADDRESS.fullmatch(text):
        raise ValueError(f"{text!r} is not HOST:PORT")
    return text


def parse_account(text: str) -> Account:
    """An account from `ID:CURRENCY`. Raises ValueError."""
    found = _ACCOUNT.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not ID:CURRENCY, such as kit-eur:EUR")
    return Account(found[1], found[2])


def known_cases(names: Collection[str]) -> Collection[str]:
    """Names of cases. Raises ValueError where there is no such case."""
    known = {one.name for one in CASES}
    for name in names:
        if name not in known:
            raise ValueError(f"there is no case {name!r}; --list lists them")
    return names


async def certified(asked: Asked, keys: Path, told: Callable[[Verdict], None] | None) -> Report:
    """Run the kit. Raises NotReady, OSError, and KeyFileUnusable: keys that were made only now the
    wallet could not know."""
    host = asked.address.rpartition(":")[0].strip("[]")
    roots = asked.root_certificates.read_bytes() if asked.root_certificates else None
    plaintext = roots is None and is_this_machine(host)
    credentials = None if plaintext else grpc.ssl_channel_credentials(roots)
    signer = signer_of(load_keys(keys), asked.cell)
    caller = Caller(asked.address, signer, asked.partner, asked.deadline_s, credentials)
    profile = PartnerProfile(
        address=asked.address,
        plaintext=plaintext,
        root_certificates=roots.decode() if roots else "",
    )
    try:
        return await certify(
            caller,
            profile,
            asked.accounts,
            asked.blocked,
            _restart(asked.restart_command),
            told or (lambda _verdict: None),
            asked.cases,
        )
    finally:
        await caller.close()


def is_this_machine(host: str) -> bool:
    """Whether calls to it leave this machine not at all."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _restart(command: str) -> Restart | None:
    """Who restarts the wallet: a command, a person at the terminal, or nobody."""
    if command:

        async def by_command() -> None:
            process = await asyncio.create_subprocess_shell(command, stdout=sys.stderr.fileno())
            if code := await process.wait():
                raise NotTried(f"the restart command ended with {code}")

        return by_command
    if sys.stdin.isatty() and sys.stderr.isatty():

        async def by_hand() -> None:
            print("End the wallet now and start it again, then press Enter. ", file=sys.stderr)
            await asyncio.to_thread(sys.stdin.readline)

        return by_hand
    return None


# ---- in words ------------------------------------------------------------------------------------


def print_cases(as_json: bool) -> None:
    """List the cases."""
    if as_json:
        print(json.dumps([{"name": one.name, "title": one.title} for one in CASES]))
        return
    for one in CASES:
        print(f"{one.name:{NAME_WIDTH}}  {one.title}")


def print_verdict(one: Verdict) -> None:
    """A line for a case, and one more for why it did not pass."""
    state = one.state.value if one.state is not State.FAILED else one.state.value.upper()
    print(f"{state:{STATE_WIDTH}}  {one.case.name:{NAME_WIDTH}}  {one.case.title}", flush=True)
    if one.why:
        print(f"{'':{STATE_WIDTH}}    {one.why}", flush=True)


def print_report(report: Report, as_json: bool) -> None:
    """What came of all cases."""
    told = report.json()
    if as_json:
        print(json.dumps(told, ensure_ascii=False))
        return
    print("\nprofile, as SetPartnerProfile takes it:")
    print(json.dumps(told["profile"], indent=2, ensure_ascii=False))
    print(f"\nslowest call {report.slowest_ms} ms")
    print(report.line())
