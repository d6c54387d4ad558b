"""`sabot rng-report`: the statistical proof of what shoes, wheels and dice are drawn from.

It draws as the custodian does: from the same generator, watched in the same way, by the same
functions. What it finds is judged by services.rng; docs/randomness.md tells how to read it.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from services.games.cards import CARDS_PER_DECK, pack
from services.rng.findings import CONFIDENCE, Finding, Verdict, judged
from services.rng.games import DICE, dice_findings, wheel_findings
from services.rng.plot import picture
from services.rng.shuffles import Shuffles
from services.shoe.custodian import system_generator
from services.shoe.domain.order import orders_of, unranked
from services.shoe.generator import Generator
from services.shoe.tossing import drawn_dice, drawn_number

DECKS = 8
"""Of every shoe that is dealt."""
RAW_FORMAT = 1
SYSTEM = "the operating system's generator"


class Sizes(NamedTuple):
    """How much is drawn."""

    shoes: int
    spins: int
    rolls: int


@dataclass(frozen=True, slots=True)
class Sources:
    """Where outcomes come from."""

    shoe: Callable[[], Sequence[int]]
    """The places of the unshuffled pack, in dealing order."""
    spin: Callable[[], int]
    """A pocket, 0 to 36."""
    roll: Callable[[], Sequence[int]]
    """Three faces, 1 to 6."""


@dataclass(frozen=True, slots=True)
class Samples:
    """What was drawn."""

    shuffles: Shuffles
    spins: bytes
    faces: bytes
    """0 to 5, the three of a roll in a row."""


def sources_of(generator: Generator, decks: int = DECKS) -> Sources:
    """As the custodian draws."""
    cards = decks * CARDS_PER_DECK
    return Sources(
        shoe=lambda: unranked(generator.below(orders_of(cards)), cards),
        spin=lambda: drawn_number(generator.below),
        roll=lambda: drawn_dice(generator.below),
    )


def ranks(decks: int = DECKS) -> list[int]:
    """The rank of the card at each place of the unshuffled pack, numbered as they first come."""
    numbers: dict[str, int] = {}
    return [numbers.setdefault(card[0], len(numbers)) for card in pack(decks)]


def drawn(
    sources: Sources,
    sizes: Sizes,
    *,
    decks: int = DECKS,
    raw: TextIO | None = None,
    tell: Callable[[str], None] = lambda _what: None,
) -> Samples:
    """Draw samples; every number also goes into `raw`, in its order."""
    shuffles = Shuffles(ranks(decks), sizes.shoes)
    tell(f"drawing {sizes.shoes:,} shoes")
    for _ in range(sizes.shoes):
        order = sources.shoe()
        shuffles.add(order)
        if raw is not None:
            raw.write(f"shoe {' '.join(map(str, order))}\n")
    tell(f"drawing {sizes.spins:,} spins")
    spins = bytes(sources.spin() for _ in range(sizes.spins))
    tell(f"drawing {sizes.rolls:,} rolls")
    faces = bytes(face - 1 for _ in range(sizes.rolls) for face in sources.roll())
    if raw is not None:
        raw.writelines(f"spin {spin}\n" for spin in spins)
        for start in range(0, len(faces), DICE):
            raw.write(f"roll {' '.join(str(face + 1) for face in faces[start : start + DICE])}\n")
    return Samples(shuffles, spins, faces)


def examined(samples: Samples) -> Verdict:
    """All tests of the samples, judged together."""
    return judged(
        [
            *samples.shuffles.findings(),
            *wheel_findings(samples.spins),
            *dice_findings(samples.faces),
        ]
    )


def run_rng_report(
    sizes: Sizes, *, seed: int | None, as_json: bool, raw: Path | None, plot: Path | None
) -> int:
    """Draw, examine and tell; the exit code: 0 where everything passed.

    Raises GeneratorFailed, and OSError where a file cannot be written."""
    began = time.monotonic()
    if seed is None:
        generator, source = system_generator(), SYSTEM
    else:
        generator = Generator(random.Random(seed).randbytes)  # noqa: S311 - said so in the report
        source = f"a generator seeded by {seed}, NOT {SYSTEM}"
    with ExitStack() as files:
        file = None
        if raw is not None:
            file = files.enter_context(raw.open("w", encoding="ascii"))
            file.write(raw_header(sizes, source))
        canvas = None if plot is None else files.enter_context(plot.open("w", encoding="utf-8"))
        samples = drawn(sources_of(generator), sizes, raw=file, tell=_tell)
        _tell("testing")
        verdict = examined(samples)
        if canvas is not None:
            canvas.write(_picture(samples, source))
    _tell("")
    seconds = time.monotonic() - began
    if as_json:
        print(json.dumps(report_json(verdict, sizes, source, seed, seconds), ensure_ascii=False))
    else:
        print(report_text(verdict, sizes, source, seconds))
    return 0 if verdict.passed else 1


def _picture(samples: Samples, source: str) -> str:
    counted = samples.shuffles
    return picture(
        counted.cells, counted.cards, counted.orders, samples.spins, samples.faces, source
    )


def _tell(what: str) -> None:
    """What goes on, on a terminal only; nothing wipes the line."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{what and what + ' …'}")
        sys.stderr.flush()


def raw_header(sizes: Sizes, source: str) -> str:
    """The first lines of a raw file; docs/randomness.md describes the others."""
    return (
        f"# sabot rng-report, raw format {RAW_FORMAT}\n"
        f"# drawn from {source}\n"
        f"# {sizes.shoes} shoes of {DECKS * CARDS_PER_DECK} cards, then {sizes.spins} spins, "
        f"then {sizes.rolls} rolls\n"
    )


# ---- what is told ------------------------------------------------------------------------------


def report_text(verdict: Verdict, sizes: Sizes, source: str, seconds: float) -> str:
    """The report for a person; its last line is the verdict."""
    lines = [
        f"drawn from {source}:",
        (
            f"{sizes.shoes:,} shoes of {DECKS} decks, {sizes.spins:,} spins of a wheel, "
            f"{sizes.rolls:,} rolls of three dice; {seconds:.1f} s"
        ),
        "",
        (
            f"{'test':<20}{'what is looked at':<38}{'statistic':>14}{'freedom':>9}"
            f"{'p':>11}{'adjusted':>11}"
        ),
    ]
    for finding, adjusted in zip(verdict.findings, verdict.adjusted, strict=True):
        freedom = "" if finding.freedom is None else f"{finding.freedom:,}"
        mark = "  FAIL" if finding in verdict.failed else ""
        lines.append(
            f"{finding.name:<20}{finding.about:<38}{finding.statistic:>14,.2f}{freedom:>9}"
            f"{_share(finding.p):>11}{_share(adjusted):>11}{mark}"
        )
    return "\n".join([*lines, "", _last_line(verdict)])


def _share(p: float) -> str:
    return f"{p:.4f}" if p >= 0.0001 else f"{p:.1e}"


def _last_line(verdict: Verdict) -> str:
    together = f"{len(verdict.findings)} tests judged together at {CONFIDENCE:.0%}"
    if verdict.passed:
        return f"PASS: {together}; the least adjusted p-value is {min(verdict.adjusted):.4f}"
    names = ", ".join(finding.name for finding in verdict.failed)
    return f"FAIL: {together}; failed: {names}"


def report_json(
    verdict: Verdict, sizes: Sizes, source: str, seed: int | None, seconds: float
) -> dict[str, Any]:
    """The same for programs."""
    return {
        "passed": verdict.passed,
        "confidence": CONFIDENCE,
        "source": source,
        "seed": seed,
        "shoes": sizes.shoes,
        "spins": sizes.spins,
        "rolls": sizes.rolls,
        "seconds": round(seconds, 3),
        "tests": [
            _finding_json(finding, adjusted, finding in verdict.failed)
            for finding, adjusted in zip(verdict.findings, verdict.adjusted, strict=True)
        ],
        "line": _last_line(verdict),
    }


def _finding_json(finding: Finding, adjusted: float, failed: bool) -> dict[str, Any]:
    return {
        "name": finding.name,
        "about": finding.about,
        "statistic": finding.statistic,
        "freedom": finding.freedom,
        "p": finding.p,
        "adjusted": adjusted,
        "failed": failed,
    }
