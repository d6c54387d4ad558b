"""Tokens with which a cell shows who it is when it calls another's service: JWTs signed with EdDSA.

A token is good for one call: it names whom it is for, the method, the transaction and the account,
and lives for less than a minute (RFC 7519, RFC 8037). Whoever is called checks it with the public
keys that `public_keys` writes as a JSON Web Key Set (RFC 7517).
"""

from __future__ import annotations

import base64
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from services.kernel.key_file import KeyRing, load_or_create_keys

ALGORITHM = "EdDSA"
MAX_LIFETIME_S = 60
"""No token may live longer: one that is caught is worth nothing a minute later."""
LIFETIME_S = 30
"""Of a token: enough for a slow call and for clocks that differ by some seconds."""


class CallSigner(NamedTuple):
    """The key that signs now, what it is called, and which cell signs with it."""

    key: Ed25519PrivateKey
    key_id: str
    issuer: str

    def token(
        self,
        audience: str,
        method: str,
        transaction_id: str,
        account_id: str,
        now_s: int,
        lifetime_s: int = LIFETIME_S,
    ) -> str:
        """A token for one call; `transaction_id` is empty where the method has none.

        `now_s`: seconds since 1970.
        """
        claims = {
            "iss": self.issuer,
            "aud": audience,
            "sub": account_id,
            "method": method,
            "transaction_id": transaction_id,
            "iat": now_s,
            "exp": now_s + min(lifetime_s, MAX_LIFETIME_S),
        }
        return jwt.encode(claims, self.key, algorithm=ALGORITHM, headers={"kid": self.key_id})


def load_or_create_call_keys(path: Path) -> KeyRing:
    """The keys of a file, made at the first run. Raises KeyFileUnusable."""
    return load_or_create_keys(path, _generated, key_id_of)


def signer_of(ring: KeyRing, issuer: str) -> CallSigner:
    """Whoever signs with the current key of a ring."""
    key = Ed25519PrivateKey.from_private_bytes(ring.keys[ring.current])
    return CallSigner(key, ring.current, issuer)


def key_id_of(secret: bytes) -> str:
    """What a key is called: the beginning of its public half's digest."""
    return sha256(_public(secret)).hexdigest()[:16]


def public_keys(ring: KeyRing) -> dict[str, Any]:
    """The public halves of all keys as a JSON Web Key Set, old ones too."""
    return {
        "keys": [
            {
                "kty": "OKP",
                "crv": "Ed25519",
                "x": base64.urlsafe_b64encode(_public(secret)).decode().rstrip("="),
                "kid": key_id,
                "alg": ALGORITHM,
                "use": "sig",
            }
            for key_id, secret in sorted(ring.keys.items())
        ]
    }


def _public(secret: bytes) -> bytes:
    return Ed25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


def _generated(size: int) -> bytes:
    """A new secret key; keys of this kind have 32 bytes."""
    return Ed25519PrivateKey.generate().private_bytes_raw()[:size]
