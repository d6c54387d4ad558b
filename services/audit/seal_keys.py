"""The keys that sign the log's heads, and what they sign: Ed25519 (RFC 8032)."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)

from services.kernel.key_file import load_or_create_keys


class Signer(NamedTuple):
    """The key that signs now."""

    key: Ed25519PrivateKey
    public_key: bytes
    key_id: str


def load_or_create_signer(path: Path) -> Signer:
    """The current key of a file, made at the first run. Raises KeyFileUnusable."""
    ring = load_or_create_keys(path, _generated, _named)
    return signer_of(ring.keys[ring.current])


def signer_of(secret: bytes) -> Signer:
    """A key from its 32 secret bytes."""
    key = Ed25519PrivateKey.from_private_bytes(secret)
    public_key = key.public_key().public_bytes_raw()
    return Signer(key, public_key, key_id_of(public_key))


def key_id_of(public_key: bytes) -> str:
    """What a key is called: the beginning of its public half's digest."""
    return sha256(public_key).hexdigest()[:16]


def signed_text(cell: str, size: int, root: bytes, head: bytes) -> bytes:
    """What a seal signs. A line each, so that no two heads share a text."""
    return f"sabot log head v1\n{cell}\n{size}\n{root.hex()}\n{head.hex()}\n".encode()


def is_signed_by(public_key: bytes, signature: bytes, text: bytes) -> bool:
    """Whether a key signed a text."""
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, text)
    except (InvalidSignature, ValueError):
        return False
    return True


def _generated(size: int) -> bytes:
    """A new secret key; keys of this kind have 32 bytes."""
    return Ed25519PrivateKey.generate().private_bytes_raw()[:size]


def _named(secret: bytes) -> str:
    return signer_of(secret).key_id
