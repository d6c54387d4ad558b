"""The watched generator: what each test finds, how seldom it is wrong, and that a custodian whose
generator fails seals nothing and says so."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable
from fractions import Fraction
from math import comb, exp, lgamma, log
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from google.protobuf.message import Message

from sabot.rules.v1 import rule_set_pb2
from sabot.shoe.v1 import events_pb2 as shoe
from services.games import catalogue
from services.games.cards import pack
from services.kernel.key_file import load_or_create_keys
from services.kernel.shells import Shells
from services.shoe import generator as module
from services.shoe.custodian import GENERATOR, Custodian, system_generator
from services.shoe.domain.core import CORE
from services.shoe.domain.order import orders_of, unranked
from services.shoe.generator import (
    BLOCK,
    LEAST_UNEVEN,
    MOST_UNEVEN,
    PIECE,
    REMEMBERED,
    SAME_IN_A_ROW,
    SAME_IN_A_WINDOW,
    START_DRAW,
    START_DRAWS,
    WINDOW,
    Generator,
    GeneratorFailed,
    Stream,
    word_bytes,
)
from tests.unit.deciding import Deciding
from tests.unit.shoe_facts import called, closed, round_opened
from tests.unit.test_custodian import RING, custodian, fresh, ready, seeded
from tests.unit.test_tosses import opened, roll_called, spin_called
from tests.unit.test_tosses import round_opened as toss_round_opened

Source = Callable[[int], bytes]
START = START_DRAW * START_DRAWS
SECOND_US = 1_000_000


# ---- sources that are broken -------------------------------------------------------------------


def stuck(size: int) -> bytes:
    return b"\x07" * size


def stuck_high(size: int) -> bytes:
    """Above every limit: a draw by rejection alone would never end."""
    return b"\xff" * size


def counting() -> Source:
    numbers = itertools.count()
    return lambda size: bytes(next(numbers) % 256 for _ in range(size))


def too_even() -> Source:
    """All values once, in any order, and again: as even as nothing that is drawn."""
    chance = random.Random(11)
    shuffles = (chance.sample(range(256), 256) for _ in itertools.count())
    numbers = itertools.chain.from_iterable(shuffles)
    return lambda size: bytes(itertools.islice(numbers, size))


def beginning_anew(size: int) -> bytes:
    """As after a fork, or from a machine's image: every draw begins as the one before."""
    return random.Random(4).randbytes(size)


def repeating(period: int, seed: int = 5) -> Source:
    """Good bytes, again and again."""
    numbers = itertools.cycle(random.Random(seed).randbytes(period))
    return lambda size: bytes(itertools.islice(numbers, size))


def letters() -> Source:
    """Hexadecimal digits instead of bytes."""
    chance = random.Random(6)
    return lambda size: chance.randbytes((size + 1) // 2).hex().encode()[:size]


def one_bit_biased() -> Source:
    """The lowest bit is one three times in four."""
    chance = random.Random(7)
    return lambda size: bytes(
        byte | more & 1
        for byte, more in zip(chance.randbytes(size), chance.randbytes(size), strict=True)
    )


def one_value_preferred() -> Source:
    """One byte in ten is a zero."""
    chance = random.Random(8)
    return lambda size: bytes(
        0 if chance.random() < 0.1 else byte for byte in chance.randbytes(size)
    )


def short(size: int) -> bytes:
    return random.Random(9).randbytes(size - 1)


def unreadable(size: int) -> bytes:
    raise OSError("no such device")


def breaking_after(source: Source, sound: int, seed: int = 3) -> Source:
    """A source that is sound for so many bytes."""
    chance, given = random.Random(seed), 0

    def draw(size: int) -> bytes:
        nonlocal given
        given += size
        return chance.randbytes(size) if given <= sound else source(size)

    return draw


BROKEN: dict[str, tuple[Callable[[], Source], str]] = {
    "stuck": (lambda: stuck, "times in a row"),
    "stuck high": (lambda: stuck_high, "times in a row"),
    "counting": (counting, "repeats what it gave"),
    "too even": (too_even, "too uneven, or too even"),
    "beginning anew": (lambda: beginning_anew, "repeats what it gave"),
    "repeating": (lambda: repeating(1_000), "repeats what it gave"),
    "letters": (letters, f"within {WINDOW}"),
    "one bit biased": (one_bit_biased, "too uneven, or too even"),
    "one value preferred": (one_value_preferred, f"within {WINDOW}"),
    "short": (lambda: short, "511 bytes came instead of 512"),
    "unreadable": (lambda: unreadable, "cannot be read: no such device"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_source_is_found_at_the_start(name: str) -> None:
    make, why = BROKEN[name]
    broken = Generator(make())
    assert why in broken.problem
    for draw in (lambda: broken.draw(16), lambda: broken.below(37)):
        with pytest.raises(GeneratorFailed, match="the generator of chance failed"):
            draw()


def drawn_until_failure(watched: Generator, bound: int, most: int) -> list[int]:
    """What it drew before its source was found out, in so many draws at the most."""
    drawn: list[int] = []
    try:
        while len(drawn) < most:
            drawn.append(watched.below(bound))
    except GeneratorFailed:
        return drawn
    pytest.fail(f"nothing was found in {most} draws")


@pytest.mark.parametrize("name", BROKEN)
def test_a_source_that_breaks_later_is_found_while_it_draws(name: str) -> None:
    """Within two blocks; one that repeats, within 16 periods: its pieces are cut anew each time."""
    make, _ = BROKEN[name]
    watched = Generator(breaking_after(make(), START + 2_000))
    assert not watched.problem
    spins = drawn_until_failure(watched, 37, (2_000 + 2 * BLOCK + PIECE * 1_000) // PIECE)
    assert len(spins) >= 2_000 // PIECE


@pytest.mark.parametrize("name", BROKEN)
def test_shoes_of_a_source_that_breaks_later_are_not_drawn(name: str) -> None:
    make, _ = BROKEN[name]
    watched = Generator(breaking_after(make(), START + 2_000))
    shoes = drawn_until_failure(watched, orders_of(416), 40)
    assert len(shoes) >= 4
    assert len(set(shoes)) == len(shoes)


@pytest.mark.parametrize("source", [stuck, stuck_high, beginning_anew])
def test_a_source_that_gives_nothing_new_does_not_give_two_spins(source: Source) -> None:
    assert len(drawn_until_failure(Generator(breaking_after(source, START)), 37, 10)) <= 1


def test_a_sound_source_draws_on() -> None:
    sound = Generator(seeded(1))
    spins = [sound.below(37) for _ in range(50_000)]
    shoes = {sound.below(orders_of(416)) for _ in range(300)}
    assert (set(spins), len(shoes), sound.problem) == (set(range(37)), 300, "")


def test_what_is_drawn_is_what_the_source_gives() -> None:
    source = seeded(2)
    watched = Generator(seeded(2))
    source(START)
    assert [watched.draw(size) for size in (1, 379, 32, 12)] == [
        source(size) for size in (1, 379, 32, 12)
    ]


def test_a_failure_is_for_good() -> None:
    """What comes behind the fault may be as good as it likes."""
    sound = seeded(1)
    faults = iter([bytes(START_DRAW)])
    broken = Generator(lambda size: next(faults, b"") or sound(size))
    with pytest.raises(GeneratorFailed, match="in a row"):
        broken.draw(16)


def test_the_start_is_quick() -> None:
    """Under 100 ms of a processor, which other processes want too; the best of some."""
    took_s = []
    for _ in range(5):
        began = time.thread_time()
        assert not system_generator().problem
        took_s.append(time.thread_time() - began)
    assert min(took_s) < 0.1


# ---- known answers -----------------------------------------------------------------------------


def prefers_small(bound: int, word_bits: int, word: Callable[[], int]) -> int:
    return word() % bound


def swapped(number: int, size: int) -> list[int]:
    """One to one, but not in dictionary order."""
    return list(reversed(unranked(number, size)))


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("below", prefers_small),
        ("unranked", swapped),
        ("order_of", lambda _number, decks: [*pack(decks)]),
    ],
)
def test_a_reduction_or_an_order_that_is_not_ours_draws_nothing(
    name: str, wrong: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, wrong)
    assert "known bytes" in Generator(seeded(1)).problem


# ---- how seldom a sound source fails -----------------------------------------------------------

RARE = Fraction(1, 2**40)


def test_a_run_is_as_rare_as_is_said() -> None:
    assert Fraction(1, 256 ** (SAME_IN_A_ROW - 1)) <= RARE < Fraction(1, 256 ** (SAME_IN_A_ROW - 2))


def test_a_preferred_value_is_as_rare_as_is_said() -> None:
    """The first byte of a window counts itself; the others are binomial. One less would not do."""

    def at_least(count: int) -> Fraction:
        others = WINDOW - 1
        ways = sum(comb(others, k) * 255 ** (others - k) for k in range(count - 1, others + 1))
        return Fraction(ways, 256**others)

    assert at_least(SAME_IN_A_WINDOW) <= RARE < at_least(SAME_IN_A_WINDOW - 1)


def test_uneven_and_even_blocks_are_as_rare_as_is_said() -> None:
    """A bound that holds, not the approximation by chi-square, which is poor so far out: counts of
    a block are independent Poisson counts, given that they sum to the block (a factor of less than
    2⁸), and for those Chernoff's bound is taken. Counts over 71 come less than once in 2⁷¹."""
    mean, top = BLOCK // 256, 72
    chance = [exp(-mean + k * log(mean) - lgamma(k + 1)) for k in range(top)]
    sums_up = exp(-BLOCK + BLOCK * log(BLOCK) - lgamma(BLOCK + 1))
    assert sums_up > 2**-8

    def bound(threshold: int, tilts: list[float]) -> float:
        """log2 of the chance that the sum of squares passes it."""
        return min(
            256 * log(sum(p * exp(tilt * (k - mean) ** 2) for k, p in enumerate(chance)))
            - tilt * threshold
            for tilt in tilts
        ) / log(2) - log(sums_up) / log(2)

    assert bound(MOST_UNEVEN, [step * 1e-4 for step in range(1, 400)]) < -40
    assert bound(LEAST_UNEVEN, [step * -1e-3 for step in range(1, 200)]) < -40
    over = sum(exp(-mean + k * log(mean) - lgamma(k + 1)) for k in range(top, 4 * top))
    assert 256 * over / sums_up < 2**-60


def test_a_piece_is_forgotten_after_so_many() -> None:
    stream = Stream()
    first = bytes(range(PIECE))
    chance = random.Random(10)
    assert not stream._comes_again(first)
    for _ in range(REMEMBERED - 1):
        assert not stream._comes_again(chance.randbytes(PIECE))
    assert stream._comes_again(first)
    stream = Stream()
    assert not stream._comes_again(first)
    for _ in range(REMEMBERED):
        assert not stream._comes_again(chance.randbytes(PIECE))
    assert not stream._comes_again(first)
    assert len(stream._known) == len(stream._oldest) == REMEMBERED


@pytest.mark.parametrize(("bound", "size"), [(1, 0), (2, 1), (256, 1), (257, 2), (65_536, 2)])
def test_the_shortest_word(bound: int, size: int) -> None:
    assert word_bytes(bound) == size
    assert Generator(seeded(1)).below(bound) < bound


# ---- the custodian -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", BROKEN)
def test_with_a_broken_generator_no_shoe_is_sealed_and_an_operator_is_told(name: str) -> None:
    make, why = BROKEN[name]
    keeper = Custodian("c1", RING, Generator(make()))
    assert why in keeper.problems[GENERATOR], "told before anything is wanted"
    game = fresh()
    for second in range(10):
        assert keeper.poll(game.state, second * SECOND_US, True) == []
    assert why in keeper.problems[GENERATOR]
    assert list(keeper.problems) == [GENERATOR]


def test_a_generator_that_breaks_in_the_middle_of_a_seal() -> None:
    """The number was drawn, the secret of the salts was not."""
    size = word_bytes(orders_of(416))
    keeper = Custodian("c1", RING, Generator(breaking_after(stuck, START + size)))
    assert keeper.problems == {}
    assert keeper.poll(fresh().state, 0, True) == []
    assert "in a row" in keeper.problems[GENERATOR]


def test_a_seal_that_does_not_stand_is_not_told_again_once_the_generator_failed() -> None:
    generator = Generator(breaking_after(stuck, START + 500))
    keeper = Custodian("c1", RING, generator)
    game = fresh()
    assert len(keeper.poll(game.state, 0, True)) == 1
    with pytest.raises(GeneratorFailed):
        generator.draw(100)
    assert keeper.poll(game.state, 10 * SECOND_US, True) == []
    assert GENERATOR in keeper.problems


def test_shoes_that_stand_go_on_without_a_generator() -> None:
    """A round is not left half dealt: opening draws nothing."""
    game = ready(custodian())
    game.given(round_opened(1), called(1))
    keeper = Custodian("c1", RING, Generator(stuck))
    game.when(*keeper.poll(game.state, 0, True)).then_only(shoe.CardsDealt)
    game.given(closed(1))
    assert list(keeper.problems) == [GENERATOR]


@pytest.mark.parametrize(
    ("opening", "call"),
    [(catalogue.roulette(), spin_called()), (catalogue.sicbo(), roll_called())],
    ids=["wheel", "dice"],
)
def test_with_a_broken_generator_no_wheel_is_spun_and_no_dice_are_rolled(
    opening: rule_set_pb2.RuleSet, call: Message
) -> None:
    game = Deciding(CORE).given(opened(opening), toss_round_opened(), call)
    sound = Custodian("c1", RING, Generator(seeded(1)))
    assert len(sound.poll(game.state, 0, True)) == 1
    broken = Custodian("c1", RING, Generator(breaking_after(stuck, START)))
    assert broken.problems == {}
    for second in range(5):
        assert broken.poll(game.state, second * SECOND_US, True) == []
    assert list(broken.problems) == [GENERATOR]


def test_another_custodian_with_a_sound_generator_seals() -> None:
    game = fresh()
    broken = Custodian("c1", RING, Generator(stuck))
    sound = Custodian("c1", RING, Generator(seeded(1)))
    assert broken.poll(game.state, 0, True) == []
    assert sound.poll(game.state, 0, False) == []
    [seal] = sound.poll(game.state, SECOND_US, False)
    game.when(seal).then_only(shoe.ShoeOpened)


def test_a_failed_generator_is_an_alarm_and_no_health() -> None:
    """The kernel's part: what stands in `problems` is an alarm and counts against health."""
    state = SimpleNamespace(core=fresh().state, pending=())
    here: Any = SimpleNamespace(leading=True, state=state)
    alarms: list[tuple[str, Any]] = []
    told: list[Any] = []
    shells = Shells(
        [Custodian("c1", RING, Generator(stuck))],
        replica=lambda _service: here,
        tell=lambda *what: told.append(what),
        may_act=lambda: True,
        clock=lambda: 0,
        alarm=lambda kind, facts: alarms.append((kind, facts)),
        behaviour=lambda _service: 1,
    )
    shells._poll()
    shells._poll()
    [(kind, facts)] = alarms
    assert (kind, facts["about"]) == ("shell_cannot", GENERATOR)
    assert "the generator of chance failed" in facts["why"]
    assert shells.problems() == {"custodian": 1}
    assert told == []


def test_no_key_is_made_by_a_broken_generator(tmp_path: Path) -> None:
    path = tmp_path / "shoe.json"
    with pytest.raises(GeneratorFailed):
        load_or_create_keys(path, Generator(stuck).draw)
    assert list(tmp_path.iterdir()) == []
    ring = load_or_create_keys(path, Generator(seeded(1)).draw)
    assert load_or_create_keys(path, Generator(stuck).draw).current == ring.current, (
        "none is needed"
    )
