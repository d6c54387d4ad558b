"""`sabot rng-report`: perfect sources pass as often as is promised, biased ones are found, and what
is told, drawn and exported is what was tested."""

from __future__ import annotations

import inspect
import json
import random
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from math import comb
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from sabot.log.v1 import entry_pb2
from sabot.shoe.v1 import events_pb2 as shoes
from services.cli import rng_report
from services.cli.main import app
from services.cli.main import rng_report as rng_report_command
from services.cli.rng_report import Samples, Sizes, Sources, drawn, examined, ranks, sources_of
from services.games.cards import pack
from services.games.sicbo import ROLLS
from services.kernel.event import Position
from services.rng.findings import Finding, Verdict
from services.rng.plot import band, colour
from services.rng.shuffles import Shuffles
from services.rng.tails import binomial_tails
from services.shoe import generator
from services.shoe.domain.order import below, orders_of, unranked
from services.shoe.domain.state import TossKind
from services.shoe.domain.wanted import TossWanted
from services.shoe.generator import Generator, word_bytes
from services.shoe.tossing import tossed
from tests.unit.test_generator import stuck

Words = Callable[[], int]
LEAST = Sizes(100, 5_000, 5_000)
BATCH = 4_096


def bytes_of(chance: random.Random) -> Words:
    """Bytes one at a time, quickly."""

    def numbers() -> Iterator[int]:
        while True:
            yield from chance.randbytes(BATCH)

    return numbers().__next__


def word_of(byte: Words, size: int) -> int:
    return int.from_bytes(bytes(byte() for _ in range(size)), "big")


def fair(byte: Words, decks: int = 1, reduced: Callable[[int, int, Words], int] = below) -> Sources:
    """By `below` of unwatched bytes: a watched generator would stop where tests shall find."""
    cards = 52 * decks
    orders = orders_of(cards)
    size = word_bytes(orders)
    return Sources(
        shoe=lambda: unranked(reduced(orders, 8 * size, lambda: word_of(byte, size)), cards),
        spin=lambda: reduced(37, 8, byte),
        roll=lambda: ROLLS[reduced(216, 8, byte)],
    )


def verdict_of(sources: Sources, sizes: Sizes, decks: int = 1) -> Verdict:
    return examined(drawn(sources, sizes, decks=decks))


# ---- perfect sources ---------------------------------------------------------------------------


def findings_of_seed(seed: int) -> Verdict:
    return verdict_of(fair(bytes_of(random.Random(seed))), LEAST)


def rarer_than(share: float, hits: int, trials: int) -> float:
    """How likely so many hits are, or more."""
    return binomial_tails(hits, trials, share)[1]


COARSE = {"repeats", "greatest", "birthdays", "unmoved", "agreeing", "coupons"}
"""Tests of small counts: few values can come, so a p-value is as small as it says or less often."""


def check_calibration(verdicts: Sequence[Verdict]) -> None:
    """At 99 % one run in a hundred fails at the most. The p-values of each test are as small as
    they say, not more often and, the coarse ones apart, not more seldom either."""
    runs = len(verdicts)
    failed = sum(not verdict.passed for verdict in verdicts)
    assert rarer_than(0.01, failed, runs) > 0.001, f"{failed} of {runs} failed"
    by_name: dict[str, list[Finding]] = {}
    for verdict in verdicts:
        for finding in verdict.findings:
            by_name.setdefault(finding.name, []).append(finding)
    for name, findings in by_name.items():
        for share in (0.01, 0.05, 0.5):
            hits = sum(finding.p <= share for finding in findings)
            assert rarer_than(share, hits, runs) > 1e-5, f"{name}: {hits} of {runs} at {share}"
            if name.partition(".")[2] not in COARSE:
                fewer = rarer_than(1 - share, runs - hits, runs)
                assert fewer > 1e-5, f"{name}: only {hits} of {runs} at {share}"


def test_perfect_sources_pass_as_often_as_is_promised() -> None:
    check_calibration([findings_of_seed(seed) for seed in range(200)])


@pytest.mark.long
@pytest.mark.timeout(2400)
def test_perfect_sources_pass_as_often_as_is_promised_in_three_thousand_runs() -> None:
    check_calibration([findings_of_seed(seed) for seed in range(1_000, 4_000)])


@pytest.mark.long
@pytest.mark.timeout(2400)
def test_shoes_of_eight_decks_pass_as_often_as_is_promised() -> None:
    def verdict(seed: int) -> Verdict:
        return verdict_of(
            fair(bytes_of(random.Random(seed)), decks=8), LEAST._replace(shoes=200), 8
        )

    check_calibration([verdict(seed) for seed in range(300)])


# ---- biased sources ----------------------------------------------------------------------------


def modulo(bound: int, word_bits: int, word: Words) -> int:
    """Prefers small results: 256 is 6 times 37 and 34 more, and 216 and 40 more."""
    return word() % bound


def test_a_reduction_by_modulo_is_found() -> None:
    sources = fair(bytes_of(random.Random(1)), reduced=modulo)
    assert_found(verdict_of(sources, Sizes(100, 60_000, 20_000)), "wheel.pockets", "dice.rolls")


def swap_with_any(chance: random.Random, cards: int) -> list[int]:
    """The shuffle of RNG-01: 27 ways to 6 orders."""
    order = list(range(cards))
    for place in range(cards):
        other = chance.randrange(cards)
        order[place], order[other] = order[other], order[place]
    return order


def leaving_the_last(chance: random.Random, cards: int) -> list[int]:
    """One shoe in twenty-five keeps its last card where it was."""
    order = chance.sample(range(cards), cards)
    if chance.random() < 0.04:
        last = order.index(cards - 1)
        order[last], order[-1] = order[-1], order[last]
    return order


def riffled(chance: random.Random, cards: int) -> list[int]:
    """Seven riffles, as many as one deck needs; eight decks need more."""
    order = list(range(cards))
    for _ in range(7):
        cut = sum(chance.random() < 0.5 for _ in range(cards))
        left, right = order[:cut], order[cut:]
        order = []
        while left or right:
            pile = left if chance.random() * (len(left) + len(right)) < len(left) else right
            order.append(pile.pop(0))
    return order


def one_deck_at_a_time(chance: random.Random, cards: int) -> list[int]:
    """Each half shuffled alone."""
    half = cards // 2
    low, high = list(range(half)), list(range(half, cards))
    chance.shuffle(low)
    chance.shuffle(high)
    return low + high


SHUFFLES: dict[str, tuple[Callable[[random.Random, int], list[int]], int, int, str]] = {
    "swap with any": (swap_with_any, 1, 1_000, "positions"),
    "swap with any, eight decks": (swap_with_any, 8, 400, "positions"),
    "leaving the last": (leaving_the_last, 8, 400, "greatest"),
    "riffled": (riffled, 8, 100, "neighbours"),
    "one deck at a time": (one_deck_at_a_time, 2, 100, "correlation"),
}


@pytest.mark.parametrize("name", SHUFFLES)
def test_a_shuffle_that_is_not_uniform_is_found(name: str) -> None:
    shuffle, decks, shoes, test = SHUFFLES[name]
    chance = random.Random(2)
    found = failing_shuffles(lambda: shuffle(chance, 52 * decks), decks, shoes)
    assert f"shuffle.{test}" in found


def failing_shuffles(shoe: Callable[[], Sequence[int]], decks: int, shoes: int) -> set[str]:
    """Which tests fail, the wheel and the dice being fair."""
    others = fair(bytes_of(random.Random(3)))
    sources = Sources(shoe=shoe, spin=others.spin, roll=others.roll)
    verdict = verdict_of(sources, LEAST._replace(shoes=shoes), decks)
    names = {finding.name for finding in verdict.failed}
    assert all(name.startswith("shuffle.") for name in names)
    return names


def test_a_shoe_that_is_dealt_again_is_found() -> None:
    chance = random.Random(4)
    shoes = [chance.sample(range(416), 416) for _ in range(119)]
    again = iter([*shoes, shoes[7]])
    assert "shuffle.repeats" in failing_shuffles(lambda: next(again), 8, 120)


def test_a_shoe_that_is_the_one_before_but_cut_is_found() -> None:
    """One in five is not shuffled, only cut once."""
    chance = random.Random(5)
    before = chance.sample(range(416), 416)

    def shoe() -> list[int]:
        nonlocal before
        if chance.random() < 0.2:
            cut = chance.randrange(416)
            before = before[cut:] + before[:cut]
        else:
            before = chance.sample(range(416), 416)
        return before

    assert "shuffle.birthdays" in failing_shuffles(shoe, 8, 300)


def test_a_shoe_that_keeps_some_cards_of_the_one_before_is_found() -> None:
    chance = random.Random(6)
    before = chance.sample(range(416), 416)

    def shoe() -> list[int]:
        nonlocal before
        kept = dict.fromkeys(chance.sample(range(416), 3))
        left = [place for at, place in enumerate(before) if at not in kept]
        chance.shuffle(left)
        before = [before[at] if at in kept else left.pop() for at in range(416)]
        return before

    assert "shuffle.agreeing" in failing_shuffles(shoe, 8, 100)


def loaded(chance: random.Random) -> Callable[[], int]:
    """One pocket is 1.2 times as wide as each other."""
    weights = [1.0] * 37
    weights[17] = 1.2
    return lambda: chance.choices(range(37), weights)[0]


def sticky(chance: random.Random) -> Callable[[], int]:
    """One spin in thirty repeats the third before it."""
    last = [0, 1, 2]

    def spin() -> int:
        pocket = last[0] if chance.random() < 1 / 30 else chance.randrange(37)
        last[:] = [*last[1:], pocket]
        return pocket

    return spin


def too_fair(chance: random.Random) -> Callable[[], int]:
    """Every pocket once in 37 spins: no gambler could complain, and none should play."""

    def numbers() -> Iterator[int]:
        while True:
            yield from chance.sample(range(37), 37)

    return numbers().__next__


def drifting(chance: random.Random) -> Callable[[], int]:
    """The next spin is near the last one a little more often."""
    last = 0

    def spin() -> int:
        nonlocal last
        near = chance.random() < 0.03
        last = (last + chance.randrange(-3, 4)) % 37 if near else chance.randrange(37)
        return last

    return spin


WHEELS: dict[str, tuple[Callable[[random.Random], Callable[[], int]], int, str]] = {
    "one pocket of 1.2": (loaded, 60_000, "pockets"),
    "sticky": (sticky, 20_000, "recurrence"),
    "too fair": (too_fair, 20_000, "pockets"),
    "drifting": (drifting, 60_000, "correlation"),
}


@pytest.mark.parametrize("name", WHEELS)
def test_a_wheel_that_is_not_fair_is_found(name: str) -> None:
    wheel, spins, test = WHEELS[name]
    others = fair(bytes_of(random.Random(7)))
    sources = Sources(shoe=others.shoe, spin=wheel(random.Random(8)), roll=others.roll)
    verdict = verdict_of(sources, LEAST._replace(spins=spins))
    assert_found(verdict, f"wheel.{test}")
    assert all(finding.name.startswith("wheel.") for finding in verdict.failed)


@pytest.mark.parametrize(("often", "rolls"), [(0.1, 5_000), (0.02, 50_000)])
def test_a_die_that_repeats_the_one_beside_it_is_found(often: float, rolls: int) -> None:
    chance = random.Random(9)

    def roll() -> tuple[int, ...]:
        first, second, third = chance.choices(range(1, 7), k=3)
        return first, first if chance.random() < often else second, third

    others = fair(bytes_of(random.Random(10)))
    sources = Sources(shoe=others.shoe, spin=others.spin, roll=roll)
    verdict = verdict_of(sources, LEAST._replace(rolls=rolls))
    assert_found(verdict, "dice.equal", "dice.interplay")


def test_a_generator_that_repeats_its_output_after_a_period_is_found() -> None:
    """After 15 KB, good as they are: each of the three finds its own stretches again. The period is
    one of whole shoes; of others, shoes are cut anew and differ, and the watched generator alone
    would stop."""
    numbers = cycle(random.Random(11).randbytes(517 * word_bytes(orders_of(52))))
    sizes = Sizes(1_000, 20_000, 20_000)
    verdict = verdict_of(fair(numbers.__next__), sizes)
    assert_found(verdict, "shuffle.repeats", "wheel.repeats", "dice.repeats")


def test_what_repeats_within_the_samples_alone_is_found() -> None:
    """A period so long that the spins see it one and a half times."""
    numbers = cycle(random.Random(12).randbytes(14_000))
    others = fair(bytes_of(random.Random(13)))
    wheel = fair(numbers.__next__)
    sources = Sources(shoe=others.shoe, spin=wheel.spin, roll=others.roll)
    assert_found(verdict_of(sources, LEAST._replace(spins=18_000)), "wheel.repeats")


def assert_found(verdict: Verdict, *names: str) -> None:
    failed = {finding.name for finding in verdict.failed}
    assert not verdict.passed
    assert set(names) <= failed, f"only {failed}"


# ---- the command -------------------------------------------------------------------------------

SMALL = ("--shoes", "100", "--spins", "5000", "--dice", "5000")


def report(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["rng-report", *SMALL, *map(str, arguments)])


def test_a_report_of_the_systems_generator() -> None:
    """Whether it passes is chance: one in a hundred does not, and says so in the same words."""
    done = report("--json")
    told = json.loads(done.stdout)
    assert done.exit_code == (0 if told["passed"] else 1)
    assert (told["source"], told["seed"]) == ("the operating system's generator", None)
    assert (told["shoes"], told["spins"], told["rolls"], told["confidence"]) == (
        100, 5_000, 5_000, 0.99,
    )  # fmt: skip
    assert len(told["tests"]) == 37
    assert all(test["adjusted"] >= test["p"] for test in told["tests"])


def test_a_seeded_report_says_so_and_repeats_itself() -> None:
    done, again = report("--seed", "1"), report("--seed", "1")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "drawn from a generator seeded by 1, NOT the operating system's generator:"
    assert lines[-1].startswith("PASS: 37 tests judged together at 99%; the least adjusted p-value")
    assert lines[2:] == again.stdout.splitlines()[2:]
    assert lines[2:] != report("--seed", "2").stdout.splitlines()[2:]
    names = [line.split(" ")[0] for line in lines[4:-2]]
    assert len(set(names)) == 37


def test_a_report_that_fails_names_what_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rng_report, "unranked", lambda _number, size: [*range(size)])
    done = report("--seed", "1")
    assert done.exit_code == 1
    assert "shuffle.unmoved" in done.stdout.splitlines()[-1]
    assert done.stdout.splitlines()[-1].startswith("FAIL: 37 tests judged together at 99%; failed:")
    assert any(
        line.startswith("shuffle.positions") and line.endswith("  FAIL")
        for line in done.stdout.splitlines()
    )
    told = json.loads(report("--seed", "1", "--json").stdout)
    assert told["passed"] is False
    assert [test["name"] for test in told["tests"] if test["failed"]]


def test_a_generator_that_its_own_tests_stop_is_a_report_of_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rng_report, "system_generator", lambda: Generator(stuck))
    done = report()
    assert done.exit_code == 1
    assert done.stderr.startswith("sabot: the generator of chance failed: one byte came")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("wrong", [("--shoes", "99"), ("--spins", "4999"), ("--dice", "0")])
def test_samples_that_are_too_small_are_refused(wrong: tuple[str, str]) -> None:
    assert CliRunner().invoke(app, ["rng-report", *wrong]).exit_code == 2


def test_the_raw_file_holds_what_was_tested(tmp_path: Path) -> None:
    """Read as docs/randomness.md describes it, it gives the very same findings."""
    raw = tmp_path / "raw.txt"
    told = json.loads(report("--seed", "5", "--json", "--raw", raw).stdout)
    lines = raw.read_text(encoding="ascii").splitlines()
    assert [line for line in lines if line.startswith("#")] == [
        "# sabot rng-report, raw format 1",
        "# drawn from a generator seeded by 5, NOT the operating system's generator",
        "# 100 shoes of 416 cards, then 5000 spins, then 5000 rolls",
    ]
    kinds = Counter(line.split(" ")[0] for line in lines[3:])
    assert kinds == {"shoe": 100, "spin": 5_000, "roll": 5_000}
    shuffles, spins, faces = Shuffles(ranks(), 100), bytearray(), bytearray()
    for line in lines[3:]:
        kind, *numbers = line.split(" ")
        drawn_here = [int(number) for number in numbers]
        match kind:
            case "shoe":
                shuffles.add(drawn_here)
            case "spin":
                spins += bytes(drawn_here)
            case _:
                assert min(drawn_here) >= 1
                faces += bytes(face - 1 for face in drawn_here)
    again = examined(Samples(shuffles, bytes(spins), bytes(faces)))
    assert [(one["name"], one["p"]) for one in told["tests"]] == [
        (finding.name, finding.p) for finding in again.findings
    ]


def test_the_report_draws_as_the_custodian_does() -> None:
    """The same generator gives the report the same shoes, spins and rolls as a custodian."""
    sources = sources_of(Generator(random.Random(6).randbytes))
    mirror = Generator(random.Random(6).randbytes)
    assert sources.shoe() == unranked(mirror.below(orders_of(416)), 416)
    assert [sources.spin() for _ in range(50)] == [mirror.below(37) for _ in range(50)]
    wishes = [
        TossWanted("t1", f"t1-{number}", 1, TossKind.ROLL, Position(1, 1, 0))
        for number in range(50)
    ]
    told = [tossed(wish, entry_pb2.Position(), mirror.below) for wish in wishes]
    assert [sources.roll() for _ in range(50)] == [
        tuple(one.dice) for one in told if isinstance(one, shoes.RecordDice)
    ]


@pytest.mark.parametrize("option", ["--raw", "--plot"])
def test_a_file_that_cannot_be_written_is_told_before_anything_is_drawn(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rng_report, "drawn", None)
    missing = tmp_path / "missing" / "file"
    done = report(option, missing)
    assert done.exit_code == 1
    assert done.stderr == f"sabot: {missing}: No such file or directory\n"


def test_ranks_are_those_of_the_pack() -> None:
    numbers = ranks()
    assert set(numbers) == set(range(13))
    assert len({(number, card[0]) for number, card in zip(numbers, pack(8), strict=True)}) == 13
    assert set(Counter(numbers).values()) == {32}


def test_the_page_names_every_test_and_the_limits_that_hold() -> None:
    text = (Path(__file__).parents[2] / "docs/randomness.md").read_text(encoding="utf-8")
    for test in json.loads(report("--seed", "1", "--json").stdout)["tests"]:
        assert f"`{test['name'].partition('.')[2]}`" in text, test["name"]
    for limit in (
        f"comes {generator.SAME_IN_A_ROW} times in a row",
        f"window of {generator.WINDOW} is found {generator.SAME_IN_A_WINDOW} times",
        f"of {generator.BLOCK:,} bytes",
        f"last {generator.REMEMBERED:,} pieces of {generator.PIECE} bytes",
        "the format's number (1)",
        "37 tests",
    ):
        assert limit in text
    default = inspect.signature(rng_report_command).parameters
    sizes = [default[name].default for name in ("shoes", "spins", "dice")]
    assert "{:,} shoes, {:,} spins, {:,} rolls".format(*sizes) in text


# ---- the picture -------------------------------------------------------------------------------


def test_the_picture_is_an_svg_of_its_own(tmp_path: Path) -> None:
    plot = tmp_path / "picture.svg"
    assert report("--seed", "7", "--plot", plot).exit_code == 0
    root = ET.fromstring(plot.read_text(encoding="utf-8"))  # noqa: S314 - our own
    tags = Counter(element.tag.rpartition("}")[2] for element in root.iter())
    assert tags["circle"] == 37 + 16
    assert tags["rect"] == 1 + 52 * 52 + 1 + 9 + 37 + 16
    words = " ".join(element.text or "" for element in root.iter() if element.tag.endswith("text"))
    assert "seeded by 7, NOT the operating system's generator" in words
    assert "5,000 spins" in words
    assert "href" not in plot.read_text(encoding="utf-8")


def test_bands_are_exact() -> None:
    """No narrower one has as little outside."""
    trials, chance, outside = 300, 1 / 37, 0.01
    low, high = band(trials, chance, outside)

    def exactly(count: int) -> float:
        return comb(trials, count) * chance**count * (1 - chance) ** (trials - count)

    below_it = sum(exactly(count) for count in range(low))
    above_it = sum(exactly(count) for count in range(high + 1, trials + 1))
    assert below_it <= outside / 2 < below_it + exactly(low)
    assert above_it <= outside / 2 < above_it + exactly(high)


def test_colours() -> None:
    assert (colour(0), colour(4), colour(-9)) == ("#ffffff", "#ff0000", "#0000ff")
    assert colour(2) == "#ff8080"
