"""A generator of chance that is watched: once it fails a test, it draws nothing any more.

Every byte passes the health tests before any of it is used. At its start a generator shows that
numbers and orders come out of known bytes as they must, and passes the same tests with a first
sample that is thrown away. The repetition count and the adaptive proportion are those of NIST SP
800-90B, sections 4.4.1 and 4.4.2, for bytes of 8 bits of entropy each; the counts of a block and
the pieces that come again are ours. They find what is broken on the way from the operating system
to here: a source that is stuck, a buffer that comes twice, bytes that are not chance. That outcomes
are uniform is shown by `sabot rng-report`; no test of a few thousand bytes could.

By chance a sound source fails one of these tests less than once in 2⁴⁰. There are about ten of them
in a block of 4 KiB, so it fails less than once in 10¹¹ blocks.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable
from hashlib import blake2b, sha256, shake_256
from typing import NoReturn

from services.shoe.domain.order import below, order_of, orders_of, unranked

SAME_IN_A_ROW = 6
"""Bytes: 1 + 40/8 (SP 800-90B, 4.4.1). That five more equal a byte comes once in 2⁴⁰."""
WINDOW = 512
"""Bytes of an adaptive proportion test, as SP 800-90B, 4.4.2 has it for samples of many values."""
SAME_IN_A_WINDOW = 20
"""The first byte of a window is found so often in it less than once in 2⁴⁰ (binomial, exact)."""
BLOCK = 4096
"""Bytes whose counts are judged together: each of 256 values is expected 16 times."""
MOST_UNEVEN = 8160
"""Sum of (count - 16)² over the values, 16 times chi-square with 255 degrees of freedom. So much
comes less than once in 2⁴⁰."""
LEAST_UNEVEN = 1760
"""So little comes less than once in 2⁴⁰: what counts is even, chance is not."""
PIECE = 16
"""Bytes that never come twice: a new piece is one of those remembered once in 2¹¹⁴. No number is
drawn from fewer, so that a source that is stuck or begins anew is found out by a single spin."""
REMEMBERED = 16_384
"""Pieces, about 2.5 MB: those of the last 600 shoes, or of 16,000 spins of a wheel."""
START_DRAW, START_DRAWS = 512, 8
"""The first sample, one block. In several draws, so that a source that begins anew with each is
found out."""

KNOWN_WORDS, KNOWN_NUMBERS = (65_312, 65_535, 65_311, 416, 0), (415, 0, 0)
"""Below 416, of words of 16 bits: the first two are drawn anew (RNG-01)."""
KNOWN_ORDER = (2, 0, 3, 1)
"""Number 13 of the 24 orders of four."""
KNOWN_SHOE = "27ec154f7e98e0de520b8843821baa4b16be9a1b6e70a0c37b9524ca749db147"
"""SHA-256 of the cards, with a space between two, that SHAKE-256 of "sabot" deals from 8 decks."""

_RUN = re.compile(rb"(.)\1{%d}" % (SAME_IN_A_ROW - 1), re.DOTALL)


class GeneratorFailed(RuntimeError):
    """The generator failed a test; it draws no more in this process. The message says which."""


class Generator:
    """See the module.

    - source: gives so many bytes; the operating system's, or for tests a seeded one.
    """

    def __init__(self, source: Callable[[int], bytes]) -> None:
        self._source = source
        self._stream = Stream()
        self.problem = ""
        """The test that it failed; empty: none."""
        try:
            self._start()
        except GeneratorFailed:
            return  # It stays in `problem`, for whoever draws or asks for health.

    def draw(self, size: int) -> bytes:
        """So many bytes. Raises GeneratorFailed."""
        if self.problem:
            raise GeneratorFailed(self.problem)
        try:
            drawn = self._source(size)
        except OSError as error:
            self._fail(f"it cannot be read: {error}")
        if len(drawn) != size:
            self._fail(f"{len(drawn)} bytes came instead of {size}")
        fault = self._stream.fault_with(drawn)
        if fault:
            self._fail(fault)
        return drawn

    def below(self, bound: int) -> int:
        """A uniform integer from 0 to below the bound. Raises GeneratorFailed."""
        size = max(PIECE, word_bytes(bound))
        return below(bound, size * 8, lambda: int.from_bytes(self.draw(size), "big"))

    def _start(self) -> None:
        if not answers_are_known():
            self._fail("known bytes do not give the numbers and orders that they must")
        for _ in range(START_DRAWS):
            self.draw(START_DRAW)

    def _fail(self, why: str) -> NoReturn:
        self.problem = f"the generator of chance failed: {why}"
        raise GeneratorFailed(self.problem)


def word_bytes(bound: int) -> int:
    """Bytes of the shortest word that reaches every number below the bound."""
    return ((bound - 1).bit_length() + 7) // 8


def answers_are_known() -> bool:
    """Whether `below`, `unranked` and `order_of` give for known bytes what they must."""
    words = iter(KNOWN_WORDS)
    numbers = tuple(below(416, 16, words.__next__) for _ in KNOWN_NUMBERS)
    bound = orders_of(416)
    size = word_bytes(bound)
    number = below(bound, size * 8, lambda: int.from_bytes(shake_256(b"sabot").digest(size), "big"))
    shoe = sha256(" ".join(order_of(number, 8)).encode()).hexdigest()
    return numbers == KNOWN_NUMBERS and tuple(unranked(13, 4)) == KNOWN_ORDER and shoe == KNOWN_SHOE


class Stream:
    """The health tests of bytes as they come, over all draws as one stream."""

    def __init__(self) -> None:
        self._end = b""
        """The last bytes, too few to be a run."""
        self._window = bytearray()
        self._block = bytearray()
        self._short = bytearray()
        """Draws that are shorter than a piece, put together."""
        self._known: set[bytes] = set()
        self._oldest: deque[bytes] = deque()

    def fault_with(self, drawn: bytes) -> str:
        """What is wrong with the stream now that these bytes have come; empty: nothing."""
        if self._runs(drawn):
            return f"one byte came {SAME_IN_A_ROW} times in a row"
        if self._prefers(drawn):
            return f"one byte came {SAME_IN_A_WINDOW} times within {WINDOW}"
        if self._is_uneven(drawn):
            return f"the values of {BLOCK} bytes are too uneven, or too even"
        if self._comes_again(drawn):
            return "it repeats what it gave before"
        return ""

    def _runs(self, drawn: bytes) -> bool:
        """The repetition count test."""
        stretch = self._end + drawn
        self._end = stretch[1 - SAME_IN_A_ROW :]
        return _RUN.search(stretch) is not None

    def _prefers(self, drawn: bytes) -> bool:
        """The adaptive proportion test, of windows that are not full yet too."""
        window = self._window
        window += drawn
        while window:
            if window.count(window[0], 0, WINDOW) >= SAME_IN_A_WINDOW:
                return True
            if len(window) < WINDOW:
                break
            del window[:WINDOW]
        return False

    def _is_uneven(self, drawn: bytes) -> bool:
        """Chi-square of a block's values, at both ends."""
        block = self._block
        block += drawn
        while len(block) >= BLOCK:
            counts = Counter(block[:BLOCK])
            del block[:BLOCK]
            uneven = sum((counts[value] - BLOCK // 256) ** 2 for value in range(256))
            if not LEAST_UNEVEN < uneven < MOST_UNEVEN:
                return True
        return False

    def _comes_again(self, drawn: bytes) -> bool:
        """Whether a piece came before. What is remembered are digests: what was drawn is secret."""
        if len(drawn) < PIECE:
            self._short += drawn
            drawn = bytes(self._short)
            if len(drawn) < PIECE:
                return False
            self._short.clear()
        for start in range(0, len(drawn) - PIECE + 1, PIECE):
            piece = blake2b(drawn[start : start + PIECE], digest_size=PIECE).digest()
            if piece in self._known:
                return True
            self._known.add(piece)
            self._oldest.append(piece)
            if len(self._oldest) > REMEMBERED:
                self._known.remove(self._oldest.popleft())
        return False
