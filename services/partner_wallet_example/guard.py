"""Who calls: the token of a call, checked against the cell's published keys and the request."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jwt

LEEWAY_S = 5
"""How far the cell's clock may be from this one."""
LONGEST_LIFE_S = 60
"""A token that claims to live longer is none of the cell's."""
CLAIMS = ["iss", "aud", "sub", "method", "transaction_id", "iat", "exp"]
SCHEME = "Bearer "


class Guard:
    """Lets calls of one cell for one partner in."""

    def __init__(self, keys: Path, cell: str, partner: str) -> None:
        """`keys`: the file with the cell's JSON Web Key Set. Raises OSError, jwt.PyJWKSetError."""
        self._path = keys
        self._cell = cell
        self._partner = partner
        self._keys = self._read()

    def refuses(
        self,
        metadata: Iterable[tuple[str, str | bytes]] | None,
        method: str,
        transaction_id: str,
        account_id: str,
    ) -> str | None:
        """Why a call does not come in; None: it does."""
        sent = [value for key, value in metadata or () if key == "authorization"]
        if len(sent) != 1 or not isinstance(sent[0], str) or not sent[0].startswith(SCHEME):
            return "one bearer token is needed"
        token = sent[0].removeprefix(SCHEME)
        try:
            claims = self._claims(token)
        except jwt.PyJWTError as error:
            return f"the token is not good: {error}"
        if claims["exp"] - claims["iat"] > LONGEST_LIFE_S:
            return "the token lives too long"
        call = {"sub": account_id, "method": method, "transaction_id": transaction_id}
        for claim, wanted in call.items():
            if claims[claim] != wanted:
                return f"the token is for another call: {claim}"
        return None

    def _claims(self, token: str) -> dict[str, Any]:
        """What a token says. Raises PyJWTError where it is not the cell's or not of now."""
        key_id = jwt.get_unverified_header(token).get("kid")
        known = {key.key_id: key for key in self._keys.keys}
        if key_id not in known:
            # The cell may have a new key.
            self._keys = self._read()
            known = {key.key_id: key for key in self._keys.keys}
            if key_id not in known:
                raise jwt.InvalidKeyError("signed by no key that is known")
        return jwt.decode(
            token,
            known[key_id].key,
            # Named here, never taken from the token.
            algorithms=["EdDSA"],
            audience=self._partner,
            issuer=self._cell,
            leeway=LEEWAY_S,
            options={"require": CLAIMS},
        )

    def _read(self) -> jwt.PyJWKSet:
        return jwt.PyJWKSet.from_json(self._path.read_text())
