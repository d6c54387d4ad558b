"""A run of all cases, and what it says of a wallet."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf.json_format import MessageToDict

from sabot.partnerwallet.v1.conventions_pb2 import WalletConventions
from sabot.wallet.v1.partner_profile_pb2 import WALLET_MODE_SEAMLESS, PartnerProfile
from services.certify import (
    credit_cases,
    crossing_cases,
    debit_cases,
    rollback_cases,
    stranger_cases,
)
from services.certify.calling import Caller, Fault
from services.certify.cases import Case, NotReady, NotTried, State, Verdict, Work
from services.certify.kit import Account, Kit

CASES = (
    *debit_cases.CASES,
    *credit_cases.CASES,
    *rollback_cases.CASES,
    *stranger_cases.CASES,
    *crossing_cases.CASES,
)
CASE_S = 60.0
"""How long one case may take: hundreds of calls, none of them longer than its deadline."""
COMES_BACK_S = 60.0
"""How long a wallet may take to answer again after a restart."""
AGAIN_S = 0.05
LEAST_MAIN_MINOR = 100_000
"""What the first account needs: tenths of it are staked, and some 2,000 further units."""
LEAST_MINOR = 2_000
"""What every other account needs, the blocked one too."""
USUAL_DEADLINE_MS = 1000
"""Of a profile that names none."""
SLOWER = 3
"""A profile's deadline is so many times the slowest call."""

Restart = Callable[[], Awaitable[None]]
Told = Callable[[Verdict], None]


@dataclass(frozen=True, slots=True)
class Report:
    """What a run says of a wallet."""

    address: str
    verdicts: Sequence[Verdict]
    conventions: WalletConventions
    profile: PartnerProfile
    slowest_ms: int

    def count(self, state: State) -> int:
        """How many cases came to this."""
        return sum(one.state is state for one in self.verdicts)

    @property
    def certified(self) -> bool:
        """Whether every case was tried and passed."""
        return self.count(State.PASSED) == len(CASES)

    def line(self) -> str:
        """The sum of it."""
        counts = ", ".join(f"{self.count(state)} {state.value}" for state in State)
        return f"{counts}: {'certified' if self.certified else 'not certified'}"

    def json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "address": self.address,
            "certified": self.certified,
            "passed": self.count(State.PASSED),
            "failed": self.count(State.FAILED),
            "not_tried": self.count(State.NOT_TRIED),
            "cases": [
                {
                    "name": one.case.name,
                    "title": one.case.title,
                    "state": one.state.value,
                    "why": one.why,
                }
                for one in self.verdicts
            ],
            "conventions": MessageToDict(self.conventions),
            "profile": MessageToDict(self.profile),
            "slowest_ms": self.slowest_ms,
            "line": self.line(),
        }


async def certify(
    caller: Caller,
    profile: PartnerProfile,
    accounts: Sequence[Account],
    blocked: Account | None,
    restart: Restart | None,
    told: Told = lambda _verdict: None,
    only: Collection[str] = (),
) -> Report:
    """Run all cases, or `only` these. `profile`: what of it is known before. Raises NotReady.

    `restart` returns when the wallet was ended and started again; it need not take calls yet, and
    raises NotTried where it cannot.
    """
    kit = Kit(caller, accounts, blocked)
    await _ready(kit)
    cases = [one for one in CASES if not only or one.name in only]
    verdicts = []
    for one in cases:
        if one.work is not None:
            verdicts.append(await _tried(kit, one, one.work))
            told(verdicts[-1])
    for verdict in await _restarted(kit, [one for one in cases if one.halves], restart):
        verdicts.append(verdict)
        told(verdict)
    return _report(kit, profile, verdicts)


async def _ready(kit: Kit) -> None:
    """Whether there are the accounts that the cases need. Raises NotReady."""
    blocked = [kit.blocked] if kit.has_blocked else []
    for account in (*kit.accounts, *blocked):
        least = LEAST_MAIN_MINOR if account == kit.main else LEAST_MINOR
        try:
            balance = await kit.balance(account)
        except Fault as fault:
            raise NotReady(str(fault)) from None
        if balance < least:
            raise NotReady(
                f"{account.account_id} has {balance} minor units and needs {least} to be tried with"
            )


async def _tried(kit: Kit, one: Case, work: Work) -> Verdict:
    found = await _judged(one, work(kit))
    await kit.tidy()
    return found


async def _judged(one: Case, work: Awaitable[Any]) -> Verdict:
    """What came of a case, or of a half of one."""
    try:
        async with asyncio.timeout(CASE_S):
            await work
    except Fault as fault:
        return Verdict(one, State.FAILED, str(fault))
    except NotTried as missing:
        return Verdict(one, State.NOT_TRIED, str(missing))
    except TimeoutError:
        return Verdict(one, State.FAILED, f"not over within {CASE_S:g} s")
    return Verdict(one, State.PASSED)


async def _restarted(kit: Kit, cases: Sequence[Case], restart: Restart | None) -> Sequence[Verdict]:
    """All cases with a restart share one; the last that began goes on first."""
    if not cases:
        return []
    if restart is None:
        why = "nobody restarts the wallet (--restart-command, or a terminal to ask at)"
        return [Verdict(one, State.NOT_TRIED, why) for one in cases]
    found: dict[str, Verdict] = {}
    begun: list[tuple[Case, AsyncGenerator[None]]] = []
    for one in cases:
        if one.halves is None:
            continue
        half = one.halves(kit)
        found[one.name] = await _judged(one, anext(half))
        if found[one.name].state is State.PASSED:
            begun.append((one, half))
    verdict: tuple[State, str] | None = None
    try:
        await restart()
    except NotTried as error:
        verdict = State.NOT_TRIED, str(error)
    if not await _comes_back(kit):
        verdict = State.FAILED, f"the wallet did not come back within {COMES_BACK_S:g} s"
    for one, half in reversed(begun):
        if verdict is None:
            found[one.name] = await _judged(one, anext(half, None))
            await kit.tidy()
        else:
            found[one.name] = Verdict(one, *verdict)
        await half.aclose()
    return [found[one.name] for one in cases]


async def _comes_back(kit: Kit) -> bool:
    """Wait for the wallet to answer again; whether it did."""
    try:
        async with asyncio.timeout(COMES_BACK_S):
            while True:
                await kit.caller.connect_again()
                try:
                    await kit.balance()
                except Fault:
                    await asyncio.sleep(AGAIN_S)
                else:
                    return True
    except TimeoutError:
        return False


def _report(kit: Kit, profile: PartnerProfile, verdicts: Sequence[Verdict]) -> Report:
    slowest_ms = math.ceil(kit.caller.slowest_s * 1000)
    conventions = WalletConventions(
        repeats=kit.repeats,
        settled_rollbacks=kit.settled_rollbacks,
        overdraws=kit.overdraws,
    )
    whole = PartnerProfile()
    whole.CopyFrom(profile)
    whole.mode = WALLET_MODE_SEAMLESS
    whole.reversal_after_settlement = bool(kit.corrections)
    whole.conventions.CopyFrom(conventions)
    if slowest_ms * SLOWER > USUAL_DEADLINE_MS:
        whole.deadline_ms = min(slowest_ms * SLOWER, 10_000)
    return Report(profile.address, verdicts, conventions, whole, slowest_ms)
