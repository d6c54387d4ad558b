"""A simulated partner that holds its accounts' money: the example's books, and a wallet that loses
calls and answers, repeats and delays them, contradicts itself, and is away for a while.

Its money is real: whatever its wallet answers, its books are those of the example, so at the end
both sides must agree on every account to the minor unit.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.message import Message

from sabot.partnerwallet.v1 import conventions_pb2 as conventions
from sabot.wallet.v1 import partner_profile_pb2 as profiles
from sabot.wallet.v1 import seamless_events_pb2 as seamless
from sabot.wallet.v1.partner_profile_pb2 import PartnerProfile
from services.partner_wallet_example.book import Book, DoneBefore, IdInUse
from services.simulator.asking import Callers, hashed
from services.simulator.fleet import Fleet
from services.wallet.domain.seamless_state import (
    Movement,
    MovementKind,
    MovementStanding,
    SeamlessState,
)
from services.wallet.partner_calls import deadline_s
from services.wallet.partner_replies import Verdict, request_of, verdict_of, verdict_of_status

PARTNER = "cello"
CURRENCY = "EUR"
OPENED = (40, 300, 2_000, 9_000)
"""What accounts may have there in the beginning: some too little for a bet."""
DEADLINE_MS = 400
LOOK_S = 0.25
"""How often the operator looks at the list of stuck money."""
MENDED_S = 1.0
"""How long a person takes to ask the partner about a movement."""
AWAY_S = (0.5, 6.0)
"""How long its wallet is away: also longer than a round waits."""
PRESENT_S = (3.0, 25.0)
LATE_S = (0.5, 5.0)
"""How late a call arrives that was given up."""
ENDS = (
    seamless.PartnerProfileSet,
    seamless.SeamlessOrderRejected,
    seamless.MovementConfirmed,
    seamless.MovementRetried,
    seamless.MovementWrittenOff,
)


class SimulatedPartner:
    """A `PartnerCaller` for every machine of the fleet. `counts`: what went wrong, how often."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.counts: Counter[str] = Counter()
        self.sound = False
        """Nothing goes wrong any more."""
        self.conventions = conventions.WalletConventions(
            repeats=rng.choice(
                (
                    conventions.REPEAT_CONVENTION_FIRST_ANSWER,
                    conventions.REPEAT_CONVENTION_ALREADY_EXISTS,
                )
            ),
            settled_rollbacks=conventions.SETTLED_ROLLBACK_CONVENTION_REFUSED,
            overdraws=rng.choice(
                (
                    conventions.OVERDRAW_CONVENTION_DECLINED,
                    conventions.OVERDRAW_CONVENTION_TAKEN,
                )
            ),
        )
        self.book = Book(Path(":memory:"), self.conventions)
        self.opened: dict[str, int] = {}
        self.profile = profiles.PartnerProfile(
            mode=profiles.WALLET_MODE_SEAMLESS,
            address="127.0.0.1:7600",
            plaintext=True,
            debit_per_bet=rng.random() < 0.4,
            end_of_round=rng.random() < 0.5,
            reversal_after_settlement=rng.random() < 0.5,
            conventions=self.conventions,
            deadline_ms=DEADLINE_MS,
            concurrency=rng.choice((1, 4, 64)),
        )
        self._away = False
        self._late: set[asyncio.Task[None]] = set()

    def open(self, account_id: str) -> None:
        """An account, with some money or too little."""
        self.opened[account_id] = self.rng.choice(OPENED)
        self.book.open_account(account_id, CURRENCY, self.opened[account_id])

    def moved(self) -> dict[str, int]:
        """What each account has more by its books, minor units."""
        rows = self.book.rows("SELECT account_id, balance_minor FROM accounts")
        return {account_id: minor - self.opened[account_id] for account_id, minor in rows}

    def knows(self, transaction_id: str) -> bool:
        """Whether its books have carried a movement out."""
        found = self.book.rows(
            "SELECT 1 FROM movements WHERE transaction_id = ? AND outcome = 1", transaction_id
        )
        return bool(found)

    async def come_and_go(self) -> None:
        """Be away now and then."""
        while not self.sound:
            await asyncio.sleep(self.rng.uniform(*PRESENT_S))
            self._away = not self.sound
            self.counts["partner's wallet away"] += self._away
            await asyncio.sleep(self.rng.uniform(*AWAY_S))
            self._away = False

    async def mend(self) -> None:
        """From now on nothing goes wrong, and what was late arrives."""
        self.sound = True
        self._away = False
        while self._late:
            await asyncio.wait(tuple(self._late))

    # ---- the calls -------------------------------------------------------------------------------

    async def carry_out(
        self, partner: str, profile: PartnerProfile, transaction_id: str, movement: Movement
    ) -> Verdict:
        """See `services.wallet.partner_calls.PartnerCaller`."""
        del partner
        rng, wait_s = self.rng, deadline_s(profile)
        if self._away:
            await asyncio.sleep(rng.choice((0.001, wait_s)))
            return _unknown("UNAVAILABLE")
        await asyncio.sleep(rng.uniform(0.001, 0.08))
        fate = 1.0 if self.sound else rng.random()
        if fate < 0.06:
            return await self._count("partner's call lost", wait_s)
        if fate < 0.10:
            late = self._arrive(transaction_id, movement, rng.uniform(*LATE_S))
            task = asyncio.get_running_loop().create_task(late)
            self._late.add(task)
            task.add_done_callback(self._late.discard)
            return await self._count("partner's call late", wait_s)
        verdict, response = self._decided(profile, transaction_id, movement)
        if fate < 0.17:
            return await self._count("partner's answer lost", wait_s)
        if fate < 0.20:
            self.counts["partner's call repeated"] += 1
            return self._decided(profile, transaction_id, movement)[0]
        if fate < 0.23:
            return await self._count("partner's wallet broke", 0.001, "INTERNAL")
        if fate < 0.25 and response is not None:
            self.counts["partner contradicts itself"] += 1
            response.transaction_id = "another"
            return verdict_of(transaction_id, movement, response)
        await asyncio.sleep(rng.uniform(0.0, 0.04))
        return verdict

    async def balance(
        self, partner: str, profile: PartnerProfile, account_id: str
    ) -> tuple[str, int] | None:
        """See `services.wallet.partner_calls.PartnerCaller`."""
        del partner, profile
        await asyncio.sleep(self.rng.uniform(0.001, 0.02))
        account = self.book.account(account_id)
        if self._away or account is None:
            return None
        return account.currency_code, account.balance_minor

    async def close(self) -> None:
        """One machine ends; the partner does not."""

    async def _count(self, what: str, wait_s: float, problem: str = "DEADLINE_EXCEEDED") -> Verdict:
        self.counts[what] += 1
        await asyncio.sleep(wait_s)
        return _unknown(problem)

    async def _arrive(self, transaction_id: str, movement: Movement, after_s: float) -> None:
        await asyncio.sleep(after_s)
        self._decided(self.profile, transaction_id, movement)

    def _decided(
        self, profile: PartnerProfile, transaction_id: str, movement: Movement
    ) -> tuple[Verdict, Any]:
        """What the books decide, and the answer as it would be sent, where there is one."""
        decide: dict[MovementKind, Callable[[Any], Message]] = {
            MovementKind.DEBIT: self.book.debit,
            MovementKind.CREDIT: self.book.credit,
            MovementKind.ROLLBACK: self.book.rollback,
        }
        kind = movement.kind
        try:
            response = decide[kind](request_of(transaction_id, movement))
        except DoneBefore:
            return verdict_of_status(profile, kind, grpc.StatusCode.ALREADY_EXISTS), None
        except IdInUse:
            return verdict_of_status(profile, kind, grpc.StatusCode.FAILED_PRECONDITION), None
        return verdict_of(transaction_id, movement, response), response


class SeamlessDesk:
    """The operator who takes the partner on, and resolves what is stuck by what its books say."""

    def __init__(self, fleet: Fleet, callers: Callers, partner: SimulatedPartner) -> None:
        self.fleet = fleet
        self.callers = callers
        self.partner = partner
        self.closing = False
        self.taken_on = asyncio.Event()
        """Its accounts may play: they hold no money here."""

    async def take_on(self) -> None:
        """Set the profile."""
        body = seamless.SetPartnerProfile(profile=self.partner.profile, reason="certified")
        while not isinstance(await self._order(body), seamless.PartnerProfileSet):
            body.ClearField("request_id")
            await asyncio.sleep(LOOK_S)
        self.taken_on.set()

    async def work(self) -> None:
        """Resolve what the wallet does not resolve by itself, until nothing is unconfirmed."""
        while not self.closing or self.unconfirmed():
            await asyncio.sleep(LOOK_S)
            for transaction, movement in self._stuck():
                await asyncio.sleep(MENDED_S)
                done = self.partner.knows(transaction)
                self.callers.asked[f"stuck money: {'mark done' if done else 'retry'}"] += 1
                action = (
                    seamless.MOVEMENT_ACTION_MARK_DONE if done else seamless.MOVEMENT_ACTION_RETRY
                )
                if movement.kind is MovementKind.DEBIT:
                    action = seamless.MOVEMENT_ACTION_RETRY
                body = seamless.ResolveMovement(
                    transaction_id=transaction, action=action, reason="as the partner's books say"
                )
                await self._order(body)

    def unconfirmed(self) -> int:
        """How many movements the partner has not confirmed."""
        state = self._state()
        return 1 if state is None else len(state.movements)

    def _stuck(self) -> Sequence[tuple[str, Movement]]:
        state = self._state()
        return (
            []
            if state is None
            else [
                (transaction, movement)
                for transaction, movement in state.movements.items()
                if movement.standing in (MovementStanding.DISPUTED, MovementStanding.REFUSED)
            ]
        )

    def _state(self) -> SeamlessState | None:
        for machine in self.fleet.hosting("wallet"):
            if machine.process is not None:
                state: SeamlessState = machine.process.state("wallet").seamless
                return state
        return None

    async def _order(self, body: Any) -> Message | None:
        if not body.request_id:
            body.request_id = self.callers.new_id()
        return await self.callers.ask(
            "wallet",
            hashed(body),
            partner=PARTNER,
            actor="operator:oscar",
            until=ENDS,
        )


def _unknown(problem: str) -> Verdict:
    return Verdict(seamless.REPLY_OUTCOME_UNKNOWN, problem)
