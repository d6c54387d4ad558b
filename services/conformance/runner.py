"""Runs case files: reads them whole, plays every case, and gathers the differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import assert_never

from services.conformance.actions import play_action
from services.conformance.blackjack import UnknownAction, play_blackjack
from services.conformance.case_files import BadCase, read_objects
from services.conformance.cases import (
    ActionCase,
    AnyCase,
    BlackjackCase,
    BurnCase,
    Difference,
    Findings,
    RequestCase,
    RoundCase,
)
from services.conformance.cell import DecisionFailed
from services.conformance.croupier import ImpossibleCards
from services.conformance.parsing import parsed
from services.conformance.play import Refusal, RoundStuck
from services.conformance.restrictions import play_request
from services.conformance.rounds import play_burn, play_round
from services.conformance.rules import NotOffered

STOPS = (NotOffered, ImpossibleCards, RoundStuck, Refusal, UnknownAction, DecisionFailed)
"""What may keep a case from being played to its end: a failure of the case, with its reason."""


class BadFiles(Exception):
    """Files that cannot be played. `problems`: one line each, with file and line."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


@dataclass(slots=True)
class Report:
    """How the cases came out."""

    passed: int = 0
    failed: int = 0
    differences: list[Difference] = field(default_factory=list)

    def line(self) -> str:
        """The sum of it."""
        return f"{self.passed} passed, {self.failed} failed"


def read_cases(files: Sequence[Path]) -> list[AnyCase]:
    """Every case of the files, understood. Raises BadFiles with all that is wrong in them."""
    cases: list[AnyCase] = []
    problems: list[str] = []
    for file in files:
        for fields in read_objects(file):
            if isinstance(fields, BadCase):
                problems.append(str(fields))
                continue
            try:
                cases.append(parsed(fields))
            except BadCase as bad:
                problems.append(str(bad))
    if problems:
        raise BadFiles(problems)
    return cases


def run(cases: Sequence[AnyCase]) -> Report:
    """Play cases, each at a table of its own."""
    report = Report()
    for case in cases:
        differences = differences_of(case)
        report.differences.extend(differences)
        if differences:
            report.failed += 1
        else:
            report.passed += 1
    return report


def differences_of(case: AnyCase) -> list[Difference]:
    """Play one case; where it came out otherwise than expected."""
    findings = Findings(case)
    for name in case.unread:
        findings.note(name, "a field that is checked", "a field that nobody knows")
    try:
        _play(case, findings)
    except STOPS as stop:
        findings.note("the case", "to be played to its end", f"{type(stop).__name__}: {stop}")
    return findings.differences


def _play(case: AnyCase, findings: Findings) -> None:
    match case:
        case RoundCase():
            play_round(case, findings)
        case BurnCase():
            play_burn(case, findings)
        case BlackjackCase():
            play_blackjack(case, findings)
        case RequestCase():
            play_request(case, findings)
        case ActionCase():
            play_action(case, findings)
        case _:
            assert_never(case)
