"""HighwayHash-64 against the first values of its authors' own test vectors."""

from __future__ import annotations

import pytest

from services.kernel.highway import HighwayHash

# Key 00 01 … 1f, data 00 01 … of the given length.
KNOWN = {0: 0x907A56DE22C26E53, 1: 0x7EAB43AAC7CDDD78, 2: 0xB8D0569AB0B53D62}


@pytest.mark.parametrize(("size", "expected"), KNOWN.items())
def test_known_values(size: int, expected: int) -> None:
    hashed = HighwayHash(bytes(range(32))).digest(bytes(range(size)))
    assert int.from_bytes(hashed, "little") == expected


@pytest.mark.parametrize("size", [1, 3, 4, 15, 16, 17, 31, 32, 33, 64, 100])
def test_every_bit_counts(size: int) -> None:
    checksum = HighwayHash(b"k" * 32)
    data = bytes(range(size))
    hashes = {checksum.digest(data)}
    for bit in range(size * 8):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        hashes.add(checksum.digest(bytes(flipped)))
    assert len(hashes) == size * 8 + 1
