"""Tokens for calls to others: what they say, and that only the published key fits them."""

from __future__ import annotations

import json
from pathlib import Path

import jwt
import pytest

from services.kernel.call_tokens import (
    MAX_LIFETIME_S,
    load_or_create_call_keys,
    public_keys,
    signer_of,
)

NOW_S = 1_700_000_000


def test_a_token_says_whom_it_is_for_and_which_call(tmp_path: Path) -> None:
    ring = load_or_create_call_keys(tmp_path / "keys.json")
    token = signer_of(ring, "cell-1").token("north", "Debit", "t-1", "anna", NOW_S)
    published = jwt.PyJWKSet.from_json(json.dumps(public_keys(ring)))
    key = published[jwt.get_unverified_header(token)["kid"]]
    claims = jwt.decode(
        token, key.key, algorithms=["EdDSA"], audience="north", options={"verify_exp": False}
    )
    assert claims == {
        "iss": "cell-1",
        "aud": "north",
        "sub": "anna",
        "method": "Debit",
        "transaction_id": "t-1",
        "iat": NOW_S,
        "exp": NOW_S + 30,
    }


def test_no_token_lives_longer_than_a_minute(tmp_path: Path) -> None:
    signer = signer_of(load_or_create_call_keys(tmp_path / "keys.json"), "cell-1")
    token = signer.token("north", "Debit", "t-1", "anna", NOW_S, lifetime_s=3600)
    claims = jwt.decode(token, options={"verify_signature": False})
    assert claims["exp"] - claims["iat"] == MAX_LIFETIME_S


def test_another_cells_key_does_not_fit(tmp_path: Path) -> None:
    ring = load_or_create_call_keys(tmp_path / "keys.json")
    other = load_or_create_call_keys(tmp_path / "other.json")
    token = signer_of(other, "cell-1").token("north", "Debit", "t-1", "anna", NOW_S)
    published = jwt.PyJWKSet.from_json(json.dumps(public_keys(ring)))
    with pytest.raises(jwt.InvalidSignatureError):
        jwt.decode(token, published.keys[0].key, algorithms=["EdDSA"], audience="north")


def test_the_keys_are_made_once_and_no_secret_is_published(tmp_path: Path) -> None:
    first = load_or_create_call_keys(tmp_path / "keys.json")
    assert load_or_create_call_keys(tmp_path / "keys.json") == first
    written = json.dumps(public_keys(first))
    assert first.current in written
    assert all(secret.hex() not in written for secret in first.keys.values())
    assert '"d"' not in written
