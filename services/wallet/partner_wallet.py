"""The shell that calls seamless partners' wallets, and tells the log what came back.

It acts on orders that were read back from the log. After any crash it finds them in the wallet's
state and makes the same calls again, by the same transaction ids. The replica that wrote the
wallet's last answers calls; another one only when nothing came back for a while. Two callers do no
harm, since a transaction moves money once.
"""

from __future__ import annotations

import asyncio
import random
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, Protocol

from google.protobuf.message import Message

from sabot.wallet.v1 import seamless_events_pb2 as seamless
from sabot.wallet.v1.partner_profile_pb2 import PartnerProfile
from services.kernel.entry import position_of
from services.kernel.event import Event
from services.kernel.measures import Measure
from services.kernel.recovery import AnyReplica
from services.kernel.telemetry import Metrics
from services.kernel.telemetry_names import (
    PARTNER_BREAKER,
    PARTNER_CALL_SECONDS,
    PARTNER_CALLS,
    PARTNER_MOVEMENTS,
    PARTNER_OLDEST_SECONDS,
    AlarmKind,
)
from services.wallet.domain.seamless_confirming import is_called
from services.wallet.domain.seamless_corrections import is_correction
from services.wallet.domain.seamless_debits import proto_of
from services.wallet.domain.seamless_state import Movement, MovementKind, SeamlessState
from services.wallet.partner_calls import PartnerCaller
from services.wallet.partner_lanes import DEFAULT_CONCURRENCY, Lanes
from services.wallet.partner_replies import METHODS, Verdict, reply_of

ACTOR = "system:partnerwallets"
LOOK_S = 0.1
"""How often the heard orders are looked at, if nothing wakes the shell."""
SCAN_S = 0.5
"""How often all movements are: those of before a start, and those that another replica leaves."""
STANDBY_S, DUE_STANDBY_S = 1.2, 5.0
"""How long a replica that does not lead waits before it calls: for stakes, which a round waits for
(longer than a usual call may take, so that a slow wallet is not called twice as often), and for
what has time. Where anything else happens in the cell, a dead leader is followed at once."""
AGAIN_S = 2.0
"""What was told and is still not decided is called again after this: its entry may be lost."""
PAUSE_S, DUE_PAUSE_S = (0.1, 0.5), (0.2, 30.0)
"""Between two calls for a stake, and for what has time, at first and at most; it doubles, less up
to half by chance, so that a wallet that is back is not flooded."""
REFUSED_S = 5.0
"""The least pause after a credit was refused: people must do something."""
TELL_EVERY = 8
"""So many calls without a usable answer are told as one: the log need not hold each."""
OVERDUE_S = 30.0
"""A credit or rollback that waits for longer is an alarm."""
MAX_BALANCES = 20_000
"""Accounts whose last told balance is kept, the one longest unused goes first."""

_ORDERS: frozenset[type[Message]] = frozenset(
    (
        seamless.DebitOrdered,
        seamless.CreditOrdered,
        seamless.RollbackOrdered,
        seamless.MovementRetried,
    )
)


class Cell(Protocol):
    """What the shell needs of its process, `services.kernel.process.Process`."""

    @property
    def ready(self) -> bool:
        """Whether this process is at the head of the log."""
        ...

    @property
    def log_time_us(self) -> int:
        """Log time here."""
        ...

    def state(self, service: str) -> Any:
        """The state of a service here."""
        ...

    def replica(self, service: str) -> AnyReplica:
        """The replica of a service here."""
        ...

    def follow(self, listener: Callable[[list[Event]], None]) -> Callable[[], None]:
        """Hear the events of each entry; returns what ends it."""
        ...

    def tell(
        self, service: str, body: Message, actor: str, partner: str = "", traceparent: str = ""
    ) -> None:
        """Append an input."""
        ...

    def alarm(self, kind: AlarmKind, facts: dict[str, Any]) -> None:
        """Tell an operator."""
        ...


class _Told(NamedTuple):
    """What was last told of a movement that goes on."""

    outcome: int
    problem: str
    reason: int


class PartnerWallets:
    """See the module. `chance`: uniform from 0 to 1, for the pauses."""

    def __init__(
        self, caller: PartnerCaller, *, chance: Callable[[], float] = random.random
    ) -> None:
        self._caller = caller
        self._chance = chance
        self._lanes: dict[str, Lanes] = {}
        self._active: dict[str, asyncio.Task[None]] = {}
        self._kicks: dict[str, asyncio.Event] = {}
        self._told: dict[str, float] = {}
        """When the last word on a movement was told that is still in the state."""
        self._seen: dict[str, float] = {}
        """Since when a movement is known whose calls are another replica's."""
        self._traces: dict[str, str] = {}
        self._heard: list[str] = []
        self._wake = asyncio.Event()
        self._scan_at = 0.0
        self._balances: OrderedDict[tuple[str, str], int | None] = OrderedDict()
        self._calls_of: dict[tuple[str, str], int] = {}
        """Calls under way by account."""
        self._mixed: set[tuple[str, str]] = set()
        """Accounts of which several are, or just were."""
        self._overdue: set[str] = set()
        self._metrics: _Measured | None = None

    def measure(self, cell: Cell, metrics: Metrics) -> Measure:
        """What is measured of the calls."""
        measured = self._metrics = _Measured(metrics)

        def measure(_now: float) -> None:
            state: SeamlessState = cell.state("wallet").seamless
            measured.set(state, cell.log_time_us, self._lanes)

        return measure

    async def run(self, cell: Cell) -> None:
        """Until cancelled."""
        unfollow = cell.follow(self._hear)
        self._scan_at = 0.0
        try:
            while True:
                if cell.ready:
                    self._look(cell)
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        await self._wake.wait()
                self._wake.clear()
        finally:
            unfollow()
            tasks = list(self._active.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._caller.close()

    # ---- what is to be done ----------------------------------------------------------------------

    def _hear(self, events: list[Event]) -> None:
        for event in events:
            if type(event.body) in _ORDERS:
                order: Any = event.body
                self._heard.append(order.transaction_id)
                if event.traceparent:
                    self._traces[order.transaction_id] = event.traceparent
                if isinstance(event.body, seamless.MovementRetried):
                    self._told.pop(order.transaction_id, None)
                    kick = self._kicks.get(order.transaction_id)
                    if kick is not None:
                        kick.set()
                self._wake.set()

    def _look(self, cell: Cell) -> None:
        state: SeamlessState = cell.state("wallet").seamless
        leading = cell.replica("wallet").leading
        now = _now()
        heard, self._heard = self._heard, []
        if leading:
            for transaction in heard:
                movement = state.movements.get(transaction)
                if movement is not None and is_called(movement):
                    self._start(cell, transaction, leading)
        if now >= self._scan_at:
            self._scan_at = now + SCAN_S
            self._scan(cell, state, leading, now)
            self._complain(cell, state)

    def _scan(self, cell: Cell, state: SeamlessState, leading: bool, now: float) -> None:
        pending = cell.replica("wallet").state.pending
        answered = position_of(pending[0].proto.cause) if pending else None
        for known in (self._told, self._seen, self._traces):
            for transaction in [one for one in known if one not in state.movements]:
                del known[transaction]
        for transaction, movement in state.movements.items():
            if transaction in self._active or not is_called(movement):
                continue
            if answered is not None and movement.asked_by >= answered:
                continue  # Its order is not in the log yet.
            if now - self._told.get(transaction, now - AGAIN_S) < AGAIN_S:
                continue
            since = self._seen.setdefault(transaction, now)
            standby_s = STANDBY_S if _is_stake(movement) else DUE_STANDBY_S
            if leading or now - since >= standby_s:
                self._seen[transaction] = now
                self._start(cell, transaction, leading)

    def _complain(self, cell: Cell, state: SeamlessState) -> None:
        """A partner whose movements wait for too long is an alarm, once."""
        late = _waiting(state, cell.log_time_us)
        overdue = {partner for partner, (_, oldest_s, _) in late.items() if oldest_s > OVERDUE_S}
        for partner in sorted(overdue - self._overdue):
            count, oldest_s, last = late[partner]
            facts = {"partner": partner, "count": count, "oldest_s": int(oldest_s), "last": last}
            cell.alarm("movements_overdue", facts)
        self._overdue = overdue

    def _start(self, cell: Cell, transaction: str, leading: bool) -> None:
        if transaction in self._active:
            return
        task = asyncio.get_running_loop().create_task(self._carry(cell, transaction, leading))
        self._active[transaction] = task
        self._kicks[transaction] = asyncio.Event()
        task.add_done_callback(lambda _: self._ended(transaction))

    def _ended(self, transaction: str) -> None:
        self._active.pop(transaction, None)
        self._kicks.pop(transaction, None)

    # ---- one movement ----------------------------------------------------------------------------

    async def _carry(self, cell: Cell, transaction: str, leading: bool) -> None:
        """Call for a movement until its end is known. A replica that does not lead calls once."""
        pause_s = 0.0
        calls = 0
        told: _Told | None = None
        while True:
            movement = _called(cell, transaction)
            if movement is None or (leading and not cell.replica("wallet").leading):
                return
            verdict = await self._call(cell, transaction)
            if verdict is None:
                return
            calls += 1
            ends = _ends(movement.kind, verdict)
            now_told = _Told(verdict.outcome, verdict.problem, verdict.reason)
            if ends or now_told != told or calls >= TELL_EVERY:
                asked_by = proto_of(movement.asked_by)
                reply = reply_of(transaction, movement, asked_by, verdict, calls)
                trace = self._traces.get(transaction, "")
                cell.tell("wallet", reply, ACTOR, movement.partner, trace)
                told, calls = now_told, 0
            if ends or not leading:
                self._told[transaction] = _now()
                return
            least_s, most_s = PAUSE_S if _is_stake(movement) else DUE_PAUSE_S
            if verdict.outcome == seamless.REPLY_OUTCOME_DECLINED:
                least_s = REFUSED_S
            pause_s = min(max(2 * pause_s, least_s), most_s)
            await self._pause(transaction, pause_s * (1 - self._chance() / 2))

    async def _pause(self, transaction: str, wait_s: float) -> None:
        """Unless an operator will not have it."""
        kick = self._kicks[transaction]
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await kick.wait()
        kick.clear()

    async def _call(self, cell: Cell, transaction: str) -> Verdict | None:
        """One call, when the partner may be called; None where it is not needed any more."""
        movement = _called(cell, transaction)
        if movement is None:
            return None
        partner = movement.partner
        profile: PartnerProfile = cell.state("wallet").seamless.profiles[partner]
        lanes = self._lanes_of(partner, profile)
        async with lanes.place(urgent=_is_stake(movement)) as trying:
            if _called(cell, transaction) is None:
                return None
            began = _now()
            with self._counted(partner, movement.account_id):
                try:
                    verdict = await self._checked(partner, profile, transaction, movement)
                except Exception as error:  # noqa: BLE001 - told as unknown, and tried again
                    problem = type(error).__name__
                    verdict = Verdict(seamless.REPLY_OUTCOME_UNKNOWN, problem)
            if verdict.outcome == seamless.REPLY_OUTCOME_UNKNOWN:
                lanes.breaker.failed(trying)
            else:
                lanes.breaker.answered()
        if self._metrics is not None:
            self._metrics.ended(partner, METHODS[movement.kind], verdict, _now() - began)
        return verdict

    def _lanes_of(self, partner: str, profile: PartnerProfile) -> Lanes:
        concurrency = profile.concurrency or DEFAULT_CONCURRENCY
        lanes = self._lanes.get(partner)
        if lanes is None or lanes.concurrency != concurrency:
            lanes = self._lanes[partner] = Lanes(concurrency, _now)
        return lanes

    # ---- what the wallet says of the balance -----------------------------------------------------

    @contextmanager
    def _counted(self, partner: str, account_id: str) -> Iterator[None]:
        key = (partner, account_id)
        self._calls_of[key] = self._calls_of.get(key, 0) + 1
        if self._calls_of[key] > 1:
            # Which of several told the balance last, nobody knows.
            self._mixed.add(key)
            self._balances[key] = None
        try:
            yield
        finally:
            self._calls_of[key] -= 1
            if not self._calls_of[key]:
                del self._calls_of[key]
                self._mixed.discard(key)

    async def _checked(
        self, partner: str, profile: PartnerProfile, transaction: str, movement: Movement
    ) -> Verdict:
        """Call, and compare what a taken debit leaves with what there was before: a wallet that
        says yes and takes nothing would have winnings paid for stakes that nobody staked."""
        key = (partner, movement.account_id)
        debits = _is_stake(movement)
        if debits and key not in self._balances:
            told = await self._caller.balance(partner, profile, movement.account_id)
            fits = told is not None and told[0] == movement.currency_code
            self._balances[key] = told[1] if told is not None and fits else None
        before = self._balances.get(key)
        verdict = await self._caller.carry_out(partner, profile, transaction, movement)
        alone = key not in self._mixed
        after = verdict.balance_minor
        if (
            debits
            and alone
            and verdict.outcome == seamless.REPLY_OUTCOME_DONE
            and not verdict.duplicate
            and before is not None
            and after == before
        ):
            verdict = Verdict(seamless.REPLY_OUTCOME_CONTRADICTORY, "BALANCE_UNCHANGED")
        if alone:
            self._balances[key] = after
            self._balances.move_to_end(key)
            if len(self._balances) > MAX_BALANCES:
                self._balances.popitem(last=False)
        return verdict


class _Measured:
    """The metrics of the calls."""

    def __init__(self, metrics: Metrics) -> None:
        self._calls = metrics.counter(PARTNER_CALLS)
        self._seconds = metrics.histogram(PARTNER_CALL_SECONDS)
        self._movements = metrics.gauge(PARTNER_MOVEMENTS)
        self._oldest = metrics.gauge(PARTNER_OLDEST_SECONDS)
        self._breaker = metrics.gauge(PARTNER_BREAKER)

    def ended(self, partner: str, method: str, verdict: Verdict, seconds: float) -> None:
        """A call came to its end."""
        name = seamless.ReplyOutcome.Name(verdict.outcome)
        outcome = name.removeprefix("REPLY_OUTCOME_").lower()
        self._calls.labels(partner, method, outcome).inc()
        self._seconds.labels(partner, method).observe(seconds)

    def set(self, state: SeamlessState, time_us: int, lanes: dict[str, Lanes]) -> None:
        """How it stands."""
        waiting = _waiting(state, time_us)
        for partner in state.profiles:
            count, oldest_s, _ = waiting.get(partner, (0, 0.0, ""))
            self._movements.labels(partner).set(count)
            self._oldest.labels(partner).set(oldest_s)
            is_open = partner in lanes and lanes[partner].breaker.is_open
            self._breaker.labels(partner).set(is_open)


def _waiting(state: SeamlessState, time_us: int) -> dict[str, tuple[int, float, str]]:
    """By partner: how many movements are not confirmed, how long the oldest has waited, and what
    its last call came to."""
    found: dict[str, tuple[int, float, str]] = {}
    for movement in state.movements.values():  # The oldest first.
        count, oldest_s, last = found.get(
            movement.partner,
            (0, max(0, time_us - movement.ordered_us) / 1e6, movement.last_reason),
        )
        found[movement.partner] = (count + 1, oldest_s, last)
    return found


def _called(cell: Cell, transaction: str) -> Movement | None:
    """A movement that the wallet must still be called for."""
    state: SeamlessState = cell.state("wallet").seamless
    movement = state.movements.get(transaction)
    return movement if movement is not None and is_called(movement) else None


def _is_stake(movement: Movement) -> bool:
    """Whether it is a debit that a round waits for."""
    return movement.kind is MovementKind.DEBIT and not is_correction(movement)


def _ends(kind: MovementKind, verdict: Verdict) -> bool:
    """Whether no further call is made: a credit that was refused may be taken later."""
    if verdict.outcome == seamless.REPLY_OUTCOME_DECLINED:
        return kind is not MovementKind.CREDIT
    return verdict.outcome != seamless.REPLY_OUTCOME_UNKNOWN


def _now() -> float:
    return asyncio.get_running_loop().time()
