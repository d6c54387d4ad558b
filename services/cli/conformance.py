"""`sabot conformance`: case files played through the fleet's cores, and every difference told."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from services.conformance.cases import Difference
from services.conformance.runner import BadFiles, Report, read_cases, run

RIGHT, WRONG, USAGE = 0, 1, 2


def run_conformance(files: Sequence[Path], *, as_json: bool = False) -> int:
    """Print each difference and the sum; the exit code."""
    try:
        cases = read_cases(files)
    except BadFiles as bad:
        for problem in bad.problems:
            print(f"sabot: {problem}", file=sys.stderr)
        return USAGE
    report = run(cases)
    if as_json:
        print(json.dumps(_json(report), ensure_ascii=False))
    else:
        for difference in report.differences:
            print(difference)
        print(report.line())
    return WRONG if report.failed else RIGHT


def _json(report: Report) -> dict[str, Any]:
    return {
        "passed": report.passed,
        "failed": report.failed,
        "differences": [_difference(one) for one in report.differences],
        "line": report.line(),
    }


def _difference(one: Difference) -> dict[str, Any]:
    told = asdict(one)
    place = told.pop("place")
    return {**place, **told}
