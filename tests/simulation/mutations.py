"""Faults that are planted in the product to see whether the simulation finds them.

Each is a slip that somebody might make. It is installed for one test, all over the fleet; the
auditor decides again with the same cores, so it is found by what it does, not by being different.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from sabot.limits.v1 import events_pb2 as limits
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.games.money import Rounding
from services.kernel.edge import Outcome
from services.kernel.event import Answers, Core, Event, Position
from services.kernel.log import AppendUnknown, FenceLost
from services.kernel.memory_log import MemoryLog
from services.kernel.process import Process
from services.kernel.reader import LogReader
from services.kernel.requests import RequestIds
from services.kernel.snapshot import Snapshot
from services.kernel.witness import MemoryWitness
from services.limits.domain import core as limits_core
from services.limits.domain.state import Book, HeldBet, cover, hold
from services.settlement.domain import paying as settlement_paying
from services.shoe.domain import evolve as shoe_evolve
from services.shoe.domain import hole_on_floor
from services.simulator.releases import BASE, Cores
from services.table.domain import decide_bets
from services.table.domain.state import Phase, Round
from services.wallet.domain import core as wallet_core
from services.wallet.domain.stakes import drop

FLOOR_BLACKJACK = "floor_blackjack"
Install = Callable[[pytest.MonkeyPatch], Cores]


@dataclass(frozen=True, slots=True)
class Mutation:
    """A planted fault, and words by which the auditor must name it."""

    install: Install
    sign: str
    games: tuple[str, ...] = ()
    """What the tables play in the seeds in which it is looked for; empty: whatever they draw."""
    rounds: int = 8
    """Of each of these seeds, at least."""


def _changed(service: str, **changes: Any) -> Cores:
    return {**BASE, service: dataclasses.replace(BASE[service], **changes)}


def settles_twice_after_a_crash(patch: pytest.MonkeyPatch) -> Cores:
    """A process that starts sends settlement's last entry once more, behind the right fence."""
    start = Process.start

    async def start_and_send_again(self: Process, *args: Any) -> None:
        await start(self, *args)
        replica = self.folding.replicas.get("settlement")
        log = self.log
        assert isinstance(log, MemoryLog)
        last = [one for one in log.store.entries() if one.subject.endswith("settlement.out")]
        if replica is not None and last:
            with suppress(FenceLost, AppendUnknown):
                await log.append(
                    last[-1].subject,
                    last[-1].payload,
                    expected=replica.state.out_sequence,
                    wait_s=2.0,
                )

    patch.setattr(Process, "start", start_and_send_again)
    return BASE


def takes_a_late_bet(patch: pytest.MonkeyPatch) -> Cores:
    """The table still takes bets while cards are dealt."""
    window_refusal = decide_bets._window_refusal

    def later(running: Round) -> Any:
        return None if running.phase is Phase.DEALING else window_refusal(running)

    patch.setattr(decide_bets, "_window_refusal", later)
    return BASE


def skips_the_fence(patch: pytest.MonkeyPatch) -> Cores:
    """Answers are appended whatever stands there."""
    append = MemoryLog.append

    async def unfenced(
        self: MemoryLog, subject: str, payload: bytes, *, expected: int | None, wait_s: float
    ) -> int:
        del expected
        return await append(self, subject, payload, expected=None, wait_s=wait_s)

    patch.setattr(MemoryLog, "append", unfenced)
    return BASE


def voids_by_a_second_path(patch: pytest.MonkeyPatch) -> Cores:
    """The wallet acts on the table's `RoundVoided`, not on limits' marker behind the last bet."""
    core: Core[Any] = BASE["wallet"]

    def seen(event: Event) -> Event | None:
        body = event.body
        if isinstance(body, table.RoundVoided):
            marker = limits.BookVoided(table_id=body.table_id, round_id=body.round_id)
            return event._replace(body=marker)
        return None if isinstance(body, limits.BookVoided) else event

    def evolve(state: Any, event: Event) -> None:
        event_or_none = seen(event)
        if event_or_none is not None:
            core.evolve(state, event_or_none)

    def decide(state: Any, event: Event) -> Answers:
        event_or_none = seen(event)
        return core.decide(state, event_or_none) if event_or_none is not None else ()

    folds = core.folds | {table.RoundVoided}
    return _changed("wallet", folds=folds, evolve=evolve, decide=decide)


def covers_by_a_stake_not_yet_reserved(patch: pytest.MonkeyPatch) -> Cores:
    """A raise may stand on a bet that the wallet may still decline."""

    def hold_and_cover(book: Book, owner: tuple[str, str], bet_id: str, held: HeldBet) -> None:
        hold(book, owner, bet_id, held)
        cover(book.holdings[owner], bet_id)

    patch.setattr(limits_core, "hold", hold_and_cover)
    return BASE


def prunes_an_id_too_early(patch: pytest.MonkeyPatch) -> Cores:
    """Request ids are forgotten after two seconds, and taken for new."""
    use = RequestIds.use

    def use_and_forget(
        self: RequestIds,
        scope: str,
        request_id: str,
        request_hash: bytes,
        position: Position,
        time_us: int,
    ) -> None:
        while self.ages and self.ages[0][0] + 2_000_000 < time_us:
            _, old_scope, old_id = heapq.heappop(self.ages)
            self.used.pop((old_scope, old_id), None)
        use(self, scope, request_id, request_hash, position, time_us)

    patch.setattr(RequestIds, "use", use_and_forget)
    return BASE


def takes_a_copy_for_new(patch: pytest.MonkeyPatch) -> Cores:
    """An entry of inputs that was sent twice is taken twice."""
    is_copy = LogReader._is_copy

    def never(self: LogReader, *args: Any) -> bool:
        is_copy(self, *args)
        return False

    patch.setattr(LogReader, "_is_copy", never)
    return BASE


def replies_before_reading_back(patch: pytest.MonkeyPatch) -> Cores:
    """A bet is acknowledged once it is sent: it will be accepted, surely."""
    submit = Process.submit

    async def hasty(self: Process, service: str, body: Any, **how: Any) -> Outcome:
        if not isinstance(body, table.PlaceBets):
            return await submit(self, service, body, **how)
        self._admit()
        self.tell(service, body, how["actor"])
        sequence = self.position.sequence
        reserved = wallet.StakeReserved(
            request_id=body.request_id, account_id=body.account_id, round_id=body.round_id
        )
        event = Event(
            Position(1, sequence + 4, 0), "wallet", False, reserved, Position(1, sequence + 3, 0),
            how["partner"], how["actor"], 0, 1,
        )  # fmt: skip
        return Outcome(Position(1, sequence + 1, 0), event)

    patch.setattr(Process, "submit", hasty)
    return BASE


def deals_before_the_seal(patch: pytest.MonkeyPatch) -> Cores:
    """Rules call the first cards once the book is closed: the wallet will be done by then."""
    core: Core[Any] = BASE["rules"]

    def seen(event: Event) -> Event:
        body = event.body
        if isinstance(body, limits.BookClosed):
            sealed = wallet.StakesSealed(table_id=body.table_id, round_id=body.round_id)
            return event._replace(body=sealed)
        return event

    return _changed(
        "rules",
        folds=core.folds | {limits.BookClosed},
        evolve=lambda state, event: core.evolve(state, seen(event)),
        decide=lambda state, event: core.decide(state, seen(event)),
    )


def rounds_a_payout_up(patch: pytest.MonkeyPatch) -> Cores:
    """Halves of a minor unit go to the bettor."""
    patch.setattr(settlement_paying, "rounding_of", lambda _rule_set: Rounding.HALF_UP)
    return BASE


def returns_a_withdrawn_stake_again(patch: pytest.MonkeyPatch) -> Cores:
    """The wallet keeps a stake among those of the round although it went back."""

    def drop_paid_only(state: Any, body: Any) -> None:
        withdrawn = (
            isinstance(body, wallet.StakeReturned) and body.reason == wallet.RETURN_REASON_WITHDRAWN
        )
        if not withdrawn:
            drop(state, body)

    patch.setattr(wallet_core, "drop", drop_paid_only)
    return BASE


def deals_a_burned_card(patch: pytest.MonkeyPatch) -> Cores:
    """Cards that came too late for their round are put back."""
    burn = shoe_evolve._burn

    def burn_at_start_only(state: Any, body: shoe.CardsBurned) -> None:
        if body.reason == shoe.BURN_REASON_SHOE_START:
            burn(state, body)

    patch.setattr(shoe_evolve, "_burn", burn_at_start_only)
    return BASE


def decides_by_more_than_the_log(patch: pytest.MonkeyPatch) -> Cores:
    """What limits say depends on what else this process has done."""
    core: Core[Any] = BASE["limits"]
    counter = itertools.count()

    def decide(state: Any, event: Event) -> Answers:
        answers = core.decide(state, event)
        for body in answers if isinstance(answers, Sequence) else ():
            if isinstance(body, limits.BetsRefused):
                body.violations[0].would_be_minor += next(counter) % 2
        return answers

    return _changed("limits", decide=decide)


def forgets_what_is_in_flight_in_a_snapshot(patch: pytest.MonkeyPatch) -> Cores:
    """A snapshot holds the state, but not the answers that are not read back."""
    snapshots = Process.snapshots

    def without_pending(self: Process) -> list[tuple[Core[Any], Snapshot]]:
        found = snapshots(self)
        return [
            (
                core,
                dataclasses.replace(one, replica=dataclasses.replace(one.replica, pending=deque())),
            )
            for core, one in found
        ]

    patch.setattr(Process, "snapshots", without_pending)
    return BASE


def forgets_its_witness(patch: pytest.MonkeyPatch) -> Cores:
    """A process starts on whatever log it finds."""
    patch.setattr(MemoryWitness, "read", lambda _self: None)
    return BASE


def takes_every_hole_card_for_no_blackjack(patch: pytest.MonkeyPatch) -> Cores:
    """On the floor: a look that told of a blackjack is held against a card that makes one."""
    patch.setattr(hole_on_floor, "is_blackjack", lambda _cards: False)
    return BASE


MUTATIONS: dict[str, Mutation] = {
    install.__name__: Mutation(install, sign, tuple(games))
    for install, sign, *games in (
        (settles_twice_after_a_crash, "is settled twice"),
        (takes_a_late_bet, "takes a late bet"),
        (skips_the_fence, "is answer 0 to"),
        (voids_by_a_second_path, "RoundReturned without BookVoided before it"),
        (covers_by_a_stake_not_yet_reserved, "approved although LIMIT_BELOW_MINIMUM"),
        (prunes_an_id_too_early, "was done at"),
        (takes_a_copy_for_new, "answers a copy of an entry"),
        (replies_before_reading_back, "was acknowledged, but does not stand here"),
        (deals_before_the_seal, "DrawCalled without StakesSealed"),
        (rounds_a_payout_up, "is settled as"),
        (returns_a_withdrawn_stake_again, "wallet cannot decide sabot.settlement.v1.BetsSettled"),
        (deals_a_burned_card, "have left the shoe", "dragon_tiger"),
        (decides_by_more_than_the_log, "differs"),
        (forgets_what_is_in_flight_in_a_snapshot, "decided here: nothing"),
        (forgets_its_witness, "lost its tail"),
        (takes_every_hole_card_for_no_blackjack, "fits the look", FLOOR_BLACKJACK),
    )
}
