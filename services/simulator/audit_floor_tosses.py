"""The auditor's check of spins and rolls that are told from the floor: the first that counts
stands, a void one is spun again, none is taken before its call, and what was corrected is what
counts.

What the shoe decided in answer to an event is judged by what stood before that event.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.simulator.facts import Fact, Findings, Place

NEVER: Place = (1 << 40, 0)
LEAST_TURNS = 3
Toss = shoe.RecordSpin | shoe.RecordDice


@dataclass(slots=True)
class TossRound:
    """A round of a wheel or of dice."""

    sealed: Place = NEVER
    voided: Place = NEVER
    closed: Place = NEVER
    cut_off: tuple[Place, int] = (NEVER, 0)
    calls: dict[int, Place] = field(default_factory=dict)
    """By attempt."""
    spins: bool = False
    """Whether it is a wheel that is called for, once something is."""
    void: set[int] = field(default_factory=set)
    """Attempts that do not count."""
    held: floor.OutcomeHeld | None = None
    attempt: int = 0
    """Which one stands."""
    numbers: list[int] = field(default_factory=list)
    """What it showed, as it was corrected."""
    told: bool = False
    """Whether the floor told it."""
    corrected: bool = False


def numbers_of(told: Toss) -> list[int]:
    """What was told."""
    return [told.number] if isinstance(told, shoe.RecordSpin) else list(told.dice)


def void_by(told: Toss) -> int:
    """Why it does not count by what was told of it (rule ROU-6); 0: it does."""
    if isinstance(told, shoe.RecordDice):
        return shoe.INVALID_REASON_UNSPECIFIED
    if told.direction == shoe.SPIN_DIRECTION_WITH:
        return shoe.INVALID_REASON_WRONG_DIRECTION
    few = told.turns < LEAST_TURNS
    return shoe.INVALID_REASON_TOO_FEW_TURNS if few else shoe.INVALID_REASON_UNSPECIFIED


class FloorTossAuditor:
    """See the module."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.rounds: dict[str, TossRound] = {}
        self._told: dict[Place, Toss] = {}
        self._declared: dict[Place, floor.DeclareNoSpin] = {}
        self._early: set[Place] = set()

    def see(self, fact: Fact) -> None:
        """Take the next event."""
        body: Any = fact.body
        match body:
            case shoe.RecordSpin() | shoe.RecordDice() if body.request_id:
                self._told[fact.place] = body
            case floor.DeclareNoSpin():
                self._declared[fact.place] = body
            case table.RoundOpened():
                self.rounds[body.round_id] = TossRound()
            case floor.FloorRejected():
                self._refused(fact, body)
            case _:
                one = self.rounds.get(getattr(body, "round_id", ""))
                if one is not None and not fact.is_input:
                    self._goes_on(fact, one)

    def _goes_on(self, fact: Fact, one: TossRound) -> None:
        body: Any = fact.body
        match body:
            case wallet.StakesSealed() if not body.stage:
                one.sealed = fact.place
            case table.BettingClosed():
                one.cut_off = (fact.place, body.cut_off_us)
            case table.RoundVoided():
                one.voided = fact.place
            case table.RoundClosed():
                one.closed = fact.place
            case rules.SpinCalled() | rules.RollCalled():
                self._called(fact, one, body.attempt)
            case floor.FloorFaultFound() if fact.cause in self._told:
                self._fault(fact, one, body)
            case floor.OutcomeHeld() if fact.cause in self._told:
                self._held(fact, one, body)
            case shoe.SpinInvalidated():
                self._void(fact, one, body)
            case shoe.WheelSpun() if body.source != shoe.CARD_SOURCE_VIRTUAL:
                self._stands(fact, one, [body.number])
            case shoe.DiceRolled() if body.source != shoe.CARD_SOURCE_VIRTUAL:
                self._stands(fact, one, list(body.dice))
            case floor.OutcomeCorrected():
                self._corrected(fact, one, body)
            case table.ResultAccepted():
                self._result(fact, one, body)
            case _:
                pass

    def _called(self, fact: Fact, one: TossRound, attempt: int) -> None:
        """One after the other, the next only where the last does not count."""
        self.findings.check(
            attempt == len(one.calls) + 1 and all(call in one.void for call in one.calls),
            fact.place,
            f"toss {attempt} of {fact.body.round_id} is called, void are {sorted(one.void)}",
        )
        one.calls[attempt] = fact.place
        one.spins = isinstance(fact.body, rules.SpinCalled)
        if attempt > 1:
            self.findings.reach("spun or rolled again")

    # ---- what is told --------------------------------------------------------------------------

    def _open(self, one: TossRound, attempt: int, at: Place) -> bool:
        """Whether a toss was awaited at a place of the log."""
        called = one.calls.get(attempt, NEVER) < at
        runs = min(one.voided, one.closed) > at
        return called and runs and attempt not in one.void and not one.attempt

    def _held(self, fact: Fact, one: TossRound, body: floor.OutcomeHeld) -> None:
        """It came before its call: the first one waits for it."""
        told = self._told[fact.cause]
        self.findings.check(
            one.held is None
            and not any(call < fact.cause for call in one.calls.values())
            and (told.attempt, numbers_of(told), void_by(told), told.source, told.device)
            == (body.attempt, list(body.numbers), body.invalid, body.source, body.device)
            and body.attempt == 1,
            fact.place,
            f"{body.round_id} holds {list(body.numbers)}",
        )
        self._not_early(fact, one, told)
        one.held = body
        self.findings.reach("toss held")

    def _stands(self, fact: Fact, one: TossRound, numbers: list[int]) -> None:
        """The first toss that counts, told or held, and no other."""
        body, told, held = fact.body, self._told.get(fact.cause), one.held
        if told is not None:
            right = self._open(one, body.attempt, fact.cause) and (
                told.round_id, told.attempt, numbers_of(told), told.source, told.device, 0,
            ) == (
                body.round_id, body.attempt, numbers, body.source, body.device, void_by(told),
            )  # fmt: skip
            self._not_early(fact, one, told)
        else:
            right = (
                held is not None
                and one.calls.get(body.attempt) == fact.cause
                and not one.attempt
                and (held.attempt, list(held.numbers), held.invalid, held.source, held.device)
                == (body.attempt, numbers, 0, body.source, body.device)
            )
            self.findings.reach("held toss taken by its call")
        self.findings.check(
            right, fact.place, f"{body.round_id} shows {numbers}, and stood at {one.numbers} before"
        )
        possible = range(37) if len(numbers) == 1 else range(1, 7)
        self.findings.check(
            len(numbers) in (1, 3) and all(number in possible for number in numbers),
            fact.place,
            f"{body.round_id} shows {numbers}",
        )
        one.attempt, one.numbers, one.told = body.attempt, numbers, True
        by_hand = body.source == shoe.CARD_SOURCE_MANUAL
        self.findings.reach("toss by a dealer's entry" if by_hand else "toss by a sensor")

    def _not_early(self, fact: Fact, one: TossRound, told: Toss) -> None:
        closed, cut_off_us = one.cut_off
        too_soon = closed < fact.cause and 0 < told.device_time_us < cut_off_us
        early = one.sealed > fact.cause or (
            too_soon and told.attempt in one.calls and one.calls[told.attempt] < fact.cause
        )
        self.findings.check(
            early == (fact.cause in self._early),
            fact.place,
            f"a toss of {fact.body.round_id} comes before the stakes are certain: {early}; told "
            f"to be early: {not early}",
        )
        if early:
            self.findings.reach("early toss")

    def _void(self, fact: Fact, one: TossRound, body: shoe.SpinInvalidated) -> None:
        told, declared = self._told.get(fact.cause), self._declared.get(fact.cause)
        if declared is not None:
            right = body.reason == shoe.INVALID_REASON_DECLARED and (
                declared.attempt == body.attempt
            )
            right = right and self._open(one, body.attempt, fact.cause)
            self.findings.reach("toss declared void")
        elif told is not None:
            right = self._open(one, body.attempt, fact.cause) and body.reason == void_by(told) != 0
        else:
            held = one.held
            right = held is not None and one.calls.get(body.attempt) == fact.cause
            right = right and held is not None and held.invalid == body.reason != 0
            self.findings.reach("held toss is void")
        self.findings.check(
            right and body.attempt not in one.void,
            fact.place,
            f"toss {body.attempt} of {body.round_id} is void: "
            f"{shoe.InvalidReason.Name(body.reason)}",
        )
        self.findings.reach(f"void: {shoe.InvalidReason.Name(body.reason)}")
        one.void.add(body.attempt)

    # ---- what was wrong ------------------------------------------------------------------------

    def _fault(self, fact: Fact, one: TossRound, body: floor.FloorFaultFound) -> None:
        told = self._told[fact.cause]
        if body.fault == floor.FLOOR_FAULT_EARLY_OUTCOME:
            self._early.add(fact.cause)
            return
        known = one.numbers or (list(one.held.numbers) if one.held is not None else [])
        self.findings.check(
            body.fault == floor.FLOOR_FAULT_CONTRADICTION
            and bool(known)
            and numbers_of(told) != known,
            fact.place,
            f"{numbers_of(told)} contradicts {known}, it is said",
        )
        self.findings.reach("toss contradicted")

    def _corrected(self, fact: Fact, one: TossRound, body: floor.OutcomeCorrected) -> None:
        self.findings.check(
            one.attempt == body.attempt
            and list(body.read_as) == one.numbers != list(body.numbers)
            and one.voided > fact.cause,
            fact.place,
            f"{body.round_id} is corrected from {list(body.read_as)} to {list(body.numbers)}",
        )
        one.numbers = list(body.numbers)
        one.corrected = True
        self.findings.reach("toss corrected")

    def _result(self, fact: Fact, one: TossRound, body: table.ResultAccepted) -> None:
        if not one.told:
            return
        told = body.result
        is_spin = told.WhichOneof("game") == "roulette"
        shown = [told.roulette.number] if is_spin else list(told.sicbo.dice)
        self.findings.check(
            shown == one.numbers,
            fact.place,
            f"the result of {body.round_id} is {shown}, not {one.numbers}",
        )
        self.findings.reach("corrected toss settled" if one.corrected else "round of told tosses")

    def _refused(self, fact: Fact, body: floor.FloorRejected) -> None:
        """No toss is refused that is awaited."""
        told = self._told.get(fact.cause)
        one = self.rounds.get(body.round_id)
        if told is None or one is None:
            return
        about_id = (
            floor.FLOOR_REFUSAL_REQUEST_EXPIRED,
            floor.FLOOR_REFUSAL_REQUEST_ID_AHEAD,
            floor.FLOOR_REFUSAL_REQUEST_ID_REUSED,
            floor.FLOOR_REFUSAL_NOT_ON_FLOOR,
        )
        possible = range(37) if isinstance(told, shoe.RecordSpin) else range(1, 7)
        strange = not all(number in possible for number in numbers_of(told))
        strange = strange or len(numbers_of(told)) not in (1, 3)
        known = one.numbers or (list(one.held.numbers) if one.held is not None else [])
        right = (
            body.refusal in about_id
            or (body.refusal == floor.FLOOR_REFUSAL_IMPOSSIBLE and strange)
            or (body.refusal == floor.FLOOR_REFUSAL_ALREADY_RECORDED and numbers_of(told) == known)
            or (
                body.refusal == floor.FLOOR_REFUSAL_NOT_CALLED
                and not (
                    self._open(one, told.attempt, fact.cause)
                    and isinstance(told, shoe.RecordSpin) == one.spins
                )
            )
        )
        self.findings.check(
            right,
            fact.place,
            f"{numbers_of(told)} of {body.round_id} is refused as "
            f"{floor.FloorRefusal.Name(body.refusal)}",
        )
