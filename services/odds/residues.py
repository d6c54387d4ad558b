"""Whole numbers of any size in numpy: by what they leave over several primes.

A sum of products too great for 64 bits is worked out once over each prime, where nothing is great,
and put together at the end. The primes are small enough that a product of two leftovers fits 64
bits, and that a leftover times a number of cards, or a sum of many, is exact as a 64-bit float,
whose arithmetic numpy does several at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
"""Whole numbers below 2**53, exact."""

_PRIME_BITS = 31
_FIRST = 2**_PRIME_BITS - 1
"""A prime itself; the others follow below it."""


def primes_for(bound: int) -> tuple[int, ...]:
    """Primes whose product is over `2 * bound`: they tell every number of at most that size,
    positive or negative."""
    found: list[int] = []
    product, candidate = 1, _FIRST
    while product <= 2 * bound:
        if _is_prime(candidate):
            found.append(candidate)
            product *= candidate
        candidate -= 2
    return tuple(found)


def joined(leftovers: Sequence[int], primes: Sequence[int]) -> int:
    """The number nearest to zero that leaves these over its primes."""
    number, product = 0, 1
    for leftover, prime in zip(leftovers, primes, strict=True):
        number += product * ((leftover - number) * pow(product, -1, prime) % prime)
        product *= prime
    return number if 2 * number <= product else number - product


def reduce_(numbers: Floats, prime: int) -> None:
    """What a prime leaves of exact whole numbers, in their place.

    The quotient is far below 2**22, so that its rounding never reaches the next whole number."""
    quotients = numbers / prime
    np.floor(quotients, out=quotients)
    quotients *= prime
    numbers -= quotients


def _is_prime(number: int) -> bool:
    """By Miller and Rabin; these bases are enough for all numbers of 32 bits."""
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in (2, 3, 5, 7):
        power = pow(base, odd, number)
        if power in {1, number - 1}:
            continue
        for _ in range(twos - 1):
            power = power * power % number
            if power == number - 1:
                break
        else:
            return False
    return True
