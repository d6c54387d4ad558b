"""Corrections in a whole cell in memory, with the shells that recall facts and look them up: what
happens on the way, what a false fact leads to, and what is seen of one afterwards."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from google.protobuf.message import Message

from sabot.audit.v1 import correction_events_pb2 as audit
from sabot.log.v1 import events_pb2 as logs
from sabot.rules.v1 import events_pb2 as rules
from sabot.settlement.v1 import correction_events_pb2 as settlements
from sabot.settlement.v1 import events_pb2 as settled
from sabot.table.v1 import correction_events_pb2 as corrections
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import correction_events_pb2 as wallet
from services.audit.domain.core import AuditState
from services.audit.fact_checker import FactChecker
from services.cli.capsule import make_capsule
from services.cli.capsule_open import lines, open_capsule, verdict
from services.cli.capsule_read import read_capsule
from services.cli.export import export_log
from services.cli.fleet import CELL
from services.cli.incident_span import Wanted
from services.cli.partner_view import may_see
from services.cli.playthrough import playthrough
from services.cli.replay import verify
from services.cli.verify_export import verify as verify_file
from services.events import event_types
from services.kernel.entry import position_proto
from services.kernel.event import Event, Position
from services.kernel.memory_log import MemoryLog, MemoryStore
from services.kernel.reader import LogReader
from services.kernel.recovery import read_message
from services.settlement.domain.facts import NOTHING_YET, digest_with
from services.settlement.previewing import preview
from services.settlement.queries import Fact
from services.settlement.recaller import STEP_BYTES, STEP_FACTS, Recaller, steps_of
from services.simulator.log_facts import facts_in
from services.simulator.virtual_time import run_virtual
from tests.fleet.small_cell import ORDERED, PARTNER, SmallCell, memory_cell
from tests.histories.history import fold
from tests.unit.test_export import with_start, without
from tests.unit.test_what_if import demo_spec

SAM, ROSA = "operator:sam", "operator:rosa"
VOID = corrections.CorrectedOutcome(voided=True)
ANSWERS = frozenset(
    {corrections.CorrectionProposed, corrections.CorrectionApproved, table.OrderRejected}
)
Change = Callable[[Fact], Fact]


class Correcting:
    """A cell with the shells of corrections. `change`: what settlement's projection makes of a
    fact; `blindly`: audit believes whatever it is told."""

    def __init__(self, change: Change = lambda fact: fact, *, blindly: bool = False) -> None:
        self.change = change
        self.recaller = Recaller()
        self.recaller.facts_of = self._facts
        self.checker = Blind() if blindly else FactChecker()
        self.cell: SmallCell
        self.store: MemoryStore

    async def _facts(self, round_id: str, position: Position) -> Sequence[Fact]:
        del position
        return [self.change(fact) for fact in facts_in(self.store.entries(), round_id)]

    @asynccontextmanager
    async def running(self) -> Any:
        shells: list[Any] = [self.recaller, self.checker]
        async with memory_cell(shells=shells) as (self.cell, self.store):
            loop = asyncio.get_running_loop()
            work = [loop.create_task(one.run(self.cell.process)) for one in shells]
            try:
                yield self
            finally:
                for task in work:
                    task.cancel()
                await asyncio.gather(*work, return_exceptions=True)

    async def paid_round(self, accounts: int = 2) -> str:
        """A round of roulette with a bet on 17 and one on red for each account."""
        await self.cell.open_table(demo_spec("roulette", "wheel"))
        for number in range(accounts):
            await self.cell.open_account(f"a{number:04}", 100_000)
        round_id = await self.cell.open_round("wheel")
        for number in range(accounts):
            bets = (("straight", 17, 100), ("straight", 20, 200))
            await self.cell.bet_at(round_id, f"a{number:04}", *bets)
        await self.cell.close_betting(round_id)
        return round_id

    def other(self, round_id: str) -> corrections.CorrectedOutcome:
        """A number that did not come: 17, or else 20."""
        accepted = next(
            body for body in self.bodies(table.ResultAccepted) if body.round_id == round_id
        )
        number = 20 if accepted.result.roulette.number == 17 else 17
        result = rules.Result(roulette=rules.RouletteResult(number=number))
        return corrections.CorrectedOutcome(result=result)

    async def propose(self, round_id: str, outcome: corrections.CorrectedOutcome) -> str:
        """By the dry run that settlement's projection gives."""
        facts = await self._facts(round_id, self.cell.process.position)
        dry, _ = preview(round_id, outcome, facts, 0, 500)
        body = corrections.ProposeCorrection(
            table_id=round_id.rpartition("-")[0],
            round_id=round_id,
            outcome=outcome,
            reason=table.ROUND_REASON_MISREAD,
            reference="INC-1",
            dry_run=dry.dry_run,
        )
        told: Any = (await self.cell.submit("table", body, ANSWERS, SAM)).event.body
        return str(told.correction_id)

    async def correct(
        self, round_id: str, outcome: corrections.CorrectedOutcome
    ) -> corrections.CorrectionEnd.ValueType:
        name = await self.propose(round_id, outcome)

        async def approve() -> None:
            body = corrections.ApproveCorrection(correction_id=name)
            await self.cell.submit("table", body, ANSWERS, ROSA)

        def closes(event: Event) -> bool:
            body = event.body
            return isinstance(body, corrections.CorrectionClosed) and body.correction_id == name

        closed: Any = (await self.cell.event(closes, approve)).body
        end: corrections.CorrectionEnd.ValueType = closed.end
        return end

    def bodies(self, *kinds: type[Message]) -> list[Any]:
        """What stands in the log of these kinds, in order."""
        return [event.body for event in self.events() if isinstance(event.body, kinds)]

    def events(self) -> list[Event]:
        """All of the log, copies of entries left out."""
        reader = LogReader(CELL, event_types())
        entries = [read_message(reader, message) for message in self.store.entries()]
        return [event for entry in entries for event in entry.events]

    def balances(self) -> dict[str, int]:
        state = self.cell.process.state("wallet")
        return {who[1]: one.available_minor for who, one in state.accounts.items()}


class Blind(FactChecker):
    """Audit's shell, broken: it tells what settlement told."""

    def poll(
        self, state: AuditState, now_us: int, leading: bool, answered: Position | None = None
    ) -> Sequence[Message]:
        del now_us, leading, answered
        return [
            audit.ConfirmFacts(
                correction_id=name,
                count=one.recalled.count,
                digest=one.recalled.digest,
                asked_by=position_proto(one.asked_by),
            )
            for name, one in state.asked.items()
        ]


def doubled(fact: Fact) -> Fact:
    """A fact with twice the stakes, as somebody who may write to a projection would have it."""
    if fact.type != "sabot.settlement.v1.BetsSettled":
        return fact
    body = settled.BetsSettled.FromString(fact.body)
    for bet in body.bets:
        bet.stake_minor *= 2
    return fact._replace(body=body.SerializeToString(deterministic=True))


def test_a_correction_and_its_undoing_leave_every_account_as_it_was() -> None:
    one = Correcting()

    async def main() -> None:
        async with one.running():
            round_id = await one.paid_round()
            paid = one.balances()
            first = corrections.CorrectedOutcome(result=one.bodies(table.ResultAccepted)[0].result)
            other = one.other(round_id)
            assert await one.correct(round_id, other) == corrections.CORRECTION_END_POSTED
            stake = 100 if other.result.roulette.number == 17 else 200
            gained = one.balances()["a0000"] - paid["a0000"]
            assert gained >= 36 * stake - 36 * 200
            assert await one.correct(round_id, VOID) == corrections.CORRECTION_END_POSTED
            assert one.balances() == dict.fromkeys(paid, 100_000)
            assert await one.correct(round_id, first) == corrections.CORRECTION_END_POSTED
            assert one.balances() == paid
            await one.cell.process.drain(5.0)
            live = one.cell.digests()
            verified = await verify(MemoryLog(one.store))
        assert verified.right, verified.line()
        assert fold(CELL, one.store.entries()).digests() == live

    run_virtual(main())
    assert len(one.bodies(table.ResultAccepted)) == 1


def test_facts_that_a_projection_has_wrong_are_refuted_and_nothing_moves() -> None:
    one = Correcting(doubled)

    async def main() -> None:
        async with one.running():
            round_id = await one.paid_round()
            paid = one.balances()
            end = await one.correct(round_id, one.other(round_id))
            assert end == corrections.CORRECTION_END_REFUTED
            assert one.balances() == paid
            alarms = [facts for kind, facts in one.cell.alarms if kind == "facts_refuted"]
            assert len(alarms) == 1
            # With its facts right again the same correction goes through.
            one.change = lambda fact: fact
            end = await one.correct(round_id, one.other(round_id))
            assert end == corrections.CORRECTION_END_POSTED

    run_virtual(main())
    assert len(one.bodies(audit.FactsRefuted)) == len(one.bodies(audit.FactsConfirmed)) == 1


def test_facts_that_audit_believed_are_found_out_by_replay_and_by_an_export(tmp_path: Path) -> None:
    one = Correcting(doubled, blindly=True)
    file = tmp_path / "log.export"

    async def main() -> None:
        async with one.running():
            round_id = await one.paid_round()
            end = await one.correct(round_id, one.other(round_id))
            assert end == corrections.CORRECTION_END_POSTED
            verified = await verify(MemoryLog(one.store))
            await export_log(MemoryLog(one.store), file, lambda _: None)
        assert not verified.right
        assert "recalled facts are untrue" in verified.line()

    run_virtual(main())
    for name in ("RecallFacts", "FactsRecalled", "FactsConfirmed"):
        # Whoever forges the file leaves it out of the descriptors, so that nobody looks.
        forged = with_start(file.read_bytes(), without(name))
        assert any(
            what.startswith("the descriptors do not have its ") and what.endswith(f".{name}")
            for _, what in verify_file(io.BytesIO(forged)).faults
        )
    faults = verify_file(io.BytesIO(file.read_bytes())).faults
    assert {what for _, what in faults} == {
        "a correction rests on sabot.settlement.v1.BetsSettled here, untrue"
    }
    assert {sequence for sequence, _ in faults} == {
        event.position.sequence
        for event in one.events()
        if isinstance(event.body, settled.BetsSettled)
    }


def test_a_true_correction_is_right_in_an_export(tmp_path: Path) -> None:
    one = Correcting()
    file = tmp_path / "log.export"

    async def main() -> None:
        async with one.running():
            round_id = await one.paid_round()
            assert await one.correct(round_id, VOID) == corrections.CORRECTION_END_POSTED
            await export_log(MemoryLog(one.store), file, lambda _: None)

    run_virtual(main())
    assert verify_file(io.BytesIO(file.read_bytes())).faults == []


def test_other_tables_bets_come_in_between_the_steps_of_a_correction() -> None:
    one = Correcting()

    async def main() -> None:
        async with one.running():
            round_id = await one.paid_round(accounts=330)
            await one.cell.open_account("other", 100_000)
            await one.cell.open_table()
            running = await one.cell.open_round("t1")
            name = await one.propose(round_id, VOID)
            body = corrections.ApproveCorrection(correction_id=name)

            async def bet_meanwhile() -> None:
                await one.cell.submit("table", body, ANSWERS, ROSA)
                while not one.cell.process.state("settlement").recalls[name].behaviour:  # noqa: ASYNC110 - the log brings it
                    await asyncio.sleep(0.001)
                for _ in range(20):
                    await one.cell.bet(running, "other", ("player", 100))

            def closes(event: Event) -> bool:
                return isinstance(event.body, corrections.CorrectionClosed)

            await one.cell.event(closes, bet_meanwhile)

    run_virtual(main())
    events = one.events()
    corrected = [
        event.position for event in events if isinstance(event.body, settlements.BetsCorrected)
    ]
    assert len(corrected) == 330
    entries = sorted({position.sequence for position in corrected})
    assert len(entries) >= 3
    between = [
        event
        for event in events
        if isinstance(event.body, table.PlaceBets)
        and entries[0] < event.position.sequence < entries[-1]
    ]
    assert between
    assert len(one.bodies(wallet.CorrectionPosted)) == 330


def test_wal_05_three_orders_to_void_and_copies_of_them_return_the_stakes_once() -> None:
    one = Correcting()

    async def main() -> None:
        async with one.running():
            cell = one.cell
            await cell.open_table()
            await cell.open_account("ann", 20_000)
            round_id = await cell.open_round()
            await cell.bet(round_id, "ann", ("player", 5_000), ("tie", 1_000))
            assert one.balances() == {"ann": 14_000}
            voids = [
                table.VoidRound(table_id="t1", round_id=round_id, reason=table.ROUND_REASON_DISPUTE)
                for _ in range(3)
            ]
            await cell.over(
                round_id,
                lambda: asyncio.gather(
                    *(cell.submit("table", body, ORDERED, SAM) for body in voids)
                ),
            )
            assert one.balances() == {"ann": 20_000}
            await deliver_again(one.store, "VoidRound", 2)
            await cell.process.drain(5.0)
            assert one.balances() == {"ann": 20_000}
            verified = await verify(MemoryLog(one.store))
        assert verified.right, verified.line()

    run_virtual(main())
    assert len(one.bodies(table.RoundVoided)) == 1
    assert not one.bodies(logs.InputFailed)


async def deliver_again(store: MemoryStore, name: str, times: int) -> None:
    """The entries of inputs that hold such an event come to the log again, as after a reply that
    was lost."""
    for message in store.entries():
        if message.subject.endswith(".in") and name.encode() in message.payload:
            for _ in range(times):
                store.store(message.subject, message.payload, None)
    await asyncio.sleep(1.0)


# ---- the shells by themselves ------------------------------------------------------------------


def test_facts_are_recalled_in_steps_that_fit_and_closed_by_their_digest() -> None:
    small = [Fact(Position(1, n, 0), "x.y.Z", b"small") for n in range(1, STEP_FACTS + 2)]
    *steps, end = steps_of(small, Position(1, 9, 0))
    assert [len(step.facts) for step in steps if isinstance(step, settlements.RecallFacts)] == [
        STEP_FACTS,
        1,
    ]
    digest = NOTHING_YET
    for fact in small:
        digest = digest_with(digest, *fact)
    assert isinstance(end, settlements.EndRecall)
    assert (end.count, end.digest) == (len(small), digest)
    large = [Fact(Position(1, n, 0), "x.y.Z", bytes(50_000)) for n in range(1, 6)]
    large.append(Fact(Position(1, 6, 0), "x.y.Z", bytes(130_000)))
    *steps, _ = steps_of(large, Position(1, 9, 0))
    sizes = [step.ByteSize() for step in steps]
    assert all(
        size <= STEP_BYTES or len(step.facts) == 1  # type: ignore[union-attr]  # steps
        for step, size in zip(steps, sizes, strict=True)
    )
    (only,) = steps_of([], Position(1, 9, 0))
    assert isinstance(only, settlements.EndRecall)
    assert (only.count, only.digest) == (0, NOTHING_YET)


def test_a_projection_that_is_away_is_a_problem_and_not_an_end() -> None:
    one = Correcting()

    async def main() -> None:
        async with one.running():
            round_id = await one.paid_round()
            away = Recaller().facts_of
            one.recaller.facts_of, there = away, one.recaller.facts_of
            name = await one.propose(round_id, VOID)
            body = corrections.ApproveCorrection(correction_id=name)
            await one.cell.submit("table", body, ANSWERS, ROSA)
            await one.cell.until(lambda: bool(one.recaller.problems), "it says so")
            assert not one.bodies(settlements.RecallFacts)
            one.recaller.facts_of = there
            open_ = one.cell.process.state("table").corrections.open
            await one.cell.until(lambda: name not in open_, "it is posted")
            assert not one.recaller.problems

    run_virtual(main())
    assert one.bodies(corrections.CorrectionClosed)[0].end == corrections.CORRECTION_END_POSTED


# ---- what incidents' tools make of it ----------------------------------------------------------


def test_a_capsule_that_holds_a_correction_is_decided_again(tmp_path: Path) -> None:
    one = Correcting()
    whole, partners_own = tmp_path / "whole", tmp_path / "own"

    async def main() -> None:
        async with one.running():
            round_id = await one.paid_round()
            assert await one.correct(round_id, VOID) == corrections.CORRECTION_END_POSTED
            log = MemoryLog(one.store)
            await make_capsule(log, Wanted(table_id="wheel"), whole, None)
            await make_capsule(log, Wanted(round_id=round_id), tmp_path / "round", None)
            own = Wanted(table_id="wheel", partner=PARTNER)
            await make_capsule(log, own, partners_own, None)
            played = await playthrough(log, round_id)
        assert "RoundClosed" in played.text()

    run_virtual(main())
    for path in (whole, tmp_path / "round"):
        found = open_capsule(read_capsule(path), frozenset())
        assert found.right, verdict(found)
    shown = open_capsule(read_capsule(partners_own), frozenset())
    told = "\n".join(lines(shown))
    assert "CorrectionPosted" in told or "BetsCorrected" in told, told
    for hidden in (SAM, ROSA, "INC-1"):
        assert hidden not in told


def test_a_partner_is_shown_its_own_accounts_corrections_and_nobody_who_made_them() -> None:
    bets = settlements.BetsCorrected(partner_id="north", account_id="a", round_id="t1-1")
    result = corrections.ResultCorrected(round_id="t1-1", table_id="t1", proposed_by=SAM)
    recall = settlements.RecallFacts(correction_id="correction-1")
    types = event_types()

    def seen(body: Message, partner: str) -> bool:
        event = Event(Position(1, 1, 0), "settlement", False, body, None, "", ROSA, 0, 1)
        return may_see(partner, event, types)

    assert seen(bets, "north")
    assert not seen(bets, "south")
    assert not seen(result, "north")
    assert not seen(recall, "north")
