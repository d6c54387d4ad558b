"""The auditor's check of drawn wheels and dice: each round has one outcome, called after the stakes
were sealed; the first toss in the log stands, and whatever is told later changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sabot.log.v1 import events_pb2 as logs
from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.simulator.facts import Fact, Findings, Place

Toss = shoe.RecordSpin | shoe.RecordDice


@dataclass(slots=True)
class Call:
    """A spin or a roll that was called."""

    at: Place
    kind: type[Toss]
    first: Place | None = None
    """The first toss behind it: the one that stands."""
    answered: bool = False


class TossAuditor:
    """See the module. `numbers`: by round, what the wheel or the dice showed."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.numbers: dict[str, list[int]] = {}
        self._calls: dict[tuple[str, int], Call] = {}
        """By round and attempt."""
        self._tosses: dict[Place, Toss] = {}
        self._told: set[str] = set()
        """Rounds whose outcome the floor told: they have an auditor of their own."""
        self._sealed: set[str] = set()
        self._voided: set[str] = set()

    def see(self, fact: Fact) -> None:
        """Take the next event."""
        body: Any = fact.body
        match body:
            case wallet.StakesSealed():
                self._sealed.add(body.round_id)
            case table.RoundVoided():
                self._voided.add(body.round_id)
            case rules.SpinCalled():
                self._called(fact, shoe.RecordSpin)
            case rules.RollCalled():
                self._called(fact, shoe.RecordDice)
            case shoe.RecordSpin() | shoe.RecordDice() if not body.request_id:
                self._tossed(fact, body)
            case shoe.WheelSpun() | shoe.DiceRolled() if body.source != shoe.CARD_SOURCE_VIRTUAL:
                self._told.add(body.round_id)
            case shoe.WheelSpun():
                self._stands(fact, [body.number])
                self.numbers[body.round_id] = [body.number]
            case shoe.DiceRolled():
                self._stands(fact, list(body.dice))
                self.numbers[body.round_id] = list(body.dice)
            case logs.InputIgnored() if fact.cause in self._tosses:
                self._ignored(fact)
            case table.ResultAccepted() if body.round_id not in self._told:
                self._result(fact, body)
            case _:
                pass

    def _called(self, fact: Fact, kind: type[Toss]) -> None:
        round_id, attempt = fact.body.round_id, fact.body.attempt
        self.findings.check(
            round_id in self._sealed and (round_id, attempt) not in self._calls,
            fact.place,
            f"toss {attempt} of {round_id} is called before the seal or twice",
        )
        self._calls[round_id, attempt] = Call(fact.place, kind)

    def _tossed(self, fact: Fact, body: Toss) -> None:
        """A toss is told: by the custodian only on the ground of a call in the log."""
        self._tosses[fact.place] = body
        call = self._calls.get((body.round_id, body.attempt))
        if body.source == shoe.CARD_SOURCE_VIRTUAL:
            asked_by = (body.asked_by.sequence, body.asked_by.index)
            self.findings.check(
                call is not None and call.at == asked_by,
                fact.place,
                f"toss {body.attempt} of {body.round_id} is drawn, but not called at {asked_by}",
            )
        if call is not None and call.first is None and body.round_id not in self._voided:
            call.first = fact.place

    def _stands(self, fact: Fact, numbers: list[int]) -> None:
        body = fact.body
        told = self._tosses.get(fact.cause)
        call = self._calls.get((body.round_id, body.attempt))
        if told is None or call is None:
            self.findings.add(fact.place, f"{body.round_id} has an outcome that nobody told")
            return
        shown = [told.number] if isinstance(told, shoe.RecordSpin) else list(told.dice)
        kind = shoe.WheelSpun if call.kind is shoe.RecordSpin else shoe.DiceRolled
        self.findings.check(
            call.first == fact.cause
            and isinstance(body, kind)
            and (told.round_id, told.attempt) == (body.round_id, body.attempt)
            and (shown, told.source, told.device) == (numbers, body.source, body.device),
            fact.place,
            f"{body.round_id} shows {numbers}, but the first toss stands at {call.first}",
        )
        possible = range(1, 7) if isinstance(body, shoe.DiceRolled) else range(37)
        right = len(numbers) == (3 if isinstance(body, shoe.DiceRolled) else 1)
        self.findings.check(
            right and all(number in possible for number in numbers),
            fact.place,
            f"{body.round_id} shows {numbers}",
        )
        call.answered = True

    def _ignored(self, fact: Fact) -> None:
        """A toss without effect is no called one, or one too many."""
        told = self._tosses[fact.cause]
        call = self._calls.get((told.round_id, told.attempt))
        self.findings.check(
            call is None or call.first != fact.cause,
            fact.place,
            f"toss {told.attempt} of {told.round_id} is ignored, but it was the first",
        )

    def _result(self, fact: Fact, body: table.ResultAccepted) -> None:
        told = body.result
        match told.WhichOneof("game"):
            case "roulette":
                shown = [told.roulette.number]
            case "sicbo":
                shown = list(told.sicbo.dice)
            case _:
                return
        self.findings.check(
            self.numbers.get(body.round_id) == shown,
            fact.place,
            f"the result of {body.round_id} is {shown}, not {self.numbers.get(body.round_id)}",
        )
