"""What is published of a sealed card before it is dealt, and how an opened one is held to it."""

from __future__ import annotations

from hashlib import sha256

SALT_BYTES = 16
COMMITMENT_BYTES = 32


def commitment(salt: bytes, shoe_id: str, index: int, card: str) -> bytes:
    """SHA-256 over salt, shoe, index (four bytes, big-endian) and the card's two characters."""
    return sha256(salt + shoe_id.encode() + index.to_bytes(4, "big") + card.encode()).digest()


def committed(commitments: bytes, index: int) -> bytes:
    """The commitment of one card, of all of them joined."""
    return commitments[index * COMMITMENT_BYTES : (index + 1) * COMMITMENT_BYTES]


def root(commitments: bytes) -> bytes:
    """What stands for all commitments of a shoe: SHA-256 over them."""
    return sha256(commitments).digest()
