"""Cases about who calls: only the cell, for this very call, now; and what balances tell."""

from __future__ import annotations

import base64
import hmac
import json
import time
from hashlib import sha256

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sabot.partnerwallet.v1 import partner_wallet_service_pb2 as wallet
from services.certify.calling import NOT_FOUND, STRANGER, Fault, Token
from services.certify.cases import CaseList
from services.certify.credit_cases import staked
from services.certify.kit import Kit
from services.kernel.call_tokens import CallSigner

CASES = CaseList()

EXPIRED_S = -120
"""Two minutes ago: more than any two clocks may differ."""
LONG_LIFE_S = 3600


async def _stranger(kit: Kit, *tokens: Token) -> None:
    """Calls with such tokens do nothing, and leave nothing behind. Raises Fault."""
    async with kit.moves(0):
        for token in tokens:
            request = kit.debit(500)
            await kit.status(request, *STRANGER, token=token)
            # Nothing is remembered: the cell's own call is the first.
            answer = await kit.taken(request)
            if answer.told.duplicate:
                raise Fault("the refused call counts as the first")
            await kit.rolled_back(kit.rollback(request))


@CASES.case("token-missing")
async def token_missing(kit: Kit) -> None:
    """A call without a token is refused."""
    await _stranger(kit, Token(absent=True))


@CASES.case("token-no-token")
async def token_no_token(kit: Kit) -> None:
    """A call with something else instead of a token is refused."""
    some = ("Bearer", "Bearer ", "Bearer x.y.z", "Basic bm9ydGg6bm9ydGg=", "Bearer null")
    await _stranger(kit, *(Token(whole=one) for one in some))


@CASES.case("token-of-another-key")
async def token_of_another_key(kit: Kit) -> None:
    """A token that another key signed is refused, whatever key it names."""
    own = kit.caller.signer
    other = CallSigner(Ed25519PrivateKey.generate(), "0123456789abcdef", own.issuer)
    await _stranger(kit, Token(signer=other), Token(signer=other, key_id=own.key_id))


@CASES.case("token-unsigned")
async def token_unsigned(kit: Kit) -> None:
    """A token without a signature, or signed with the public key, is refused."""
    # Both are told by their header to be checked in a way that anyone can meet.
    key = kit.caller.signer.key.public_key().public_bytes_raw()
    for algorithm, secret in (("none", b""), ("HS256", key), ("HS256", _text(key).encode())):
        request = kit.debit(500)
        now_s = int(time.time())
        header = {"alg": algorithm, "typ": "JWT", "kid": kit.caller.signer.key_id}
        claims = {
            "iss": kit.caller.signer.issuer,
            "aud": kit.caller.audience,
            "sub": request.account_id,
            "method": "Debit",
            "transaction_id": request.transaction_id,
            "iat": now_s,
            "exp": now_s + 30,
        }
        text = ".".join(_text(json.dumps(one).encode()) for one in (header, claims))
        signature = hmac.digest(secret, text.encode(), sha256) if secret else b""
        token = Token(whole=f"Bearer {text}.{_text(signature)}")
        async with kit.moves(0):
            await kit.status(request, *STRANGER, token=token)


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


@CASES.case("token-expired")
async def token_expired(kit: Kit) -> None:
    """A token of two minutes ago is refused."""
    await _stranger(kit, Token({"iat": EXPIRED_S - 30, "exp": EXPIRED_S}))


@CASES.case("token-of-long-life")
async def token_of_long_life(kit: Kit) -> None:
    """A token that claims to live for an hour, or for ever, is refused."""
    await _stranger(kit, Token({"exp": LONG_LIFE_S}), Token({"exp": None}), Token({"iat": None}))


@CASES.case("token-for-another-partner")
async def token_for_another_partner(kit: Kit) -> None:
    """A token for another partner, or for none, is refused."""
    other = f"{kit.caller.audience}-2"
    await _stranger(kit, Token({"aud": other}), Token({"aud": None}))


@CASES.case("token-of-another-cell")
async def token_of_another_cell(kit: Kit) -> None:
    """A token that names another cell, or none, is refused."""
    other = f"{kit.caller.signer.issuer}-2"
    await _stranger(kit, Token({"iss": other}), Token({"iss": None}))


@CASES.case("token-for-another-method")
async def token_for_another_method(kit: Kit) -> None:
    """A token for another method is refused."""
    some = ("Rollback", "GetBalance", "debit", None)
    await _stranger(kit, *(Token({"method": one}) for one in some))


@CASES.case("token-for-another-call")
async def token_for_another_call(kit: Kit) -> None:
    """A token for another transaction is refused."""
    some = (kit.new_id(), "", None)
    await _stranger(kit, *(Token({"transaction_id": one}) for one in some))


@CASES.case("token-for-another-account")
async def token_for_another_account(kit: Kit) -> None:
    """A token for another account is refused."""
    some = (kit.other.account_id, None)
    await _stranger(kit, *(Token({"sub": one}) for one in some))


@CASES.case("token-of-every-method")
async def token_of_every_method(kit: Kit) -> None:
    """Credit, Rollback and GetBalance ask for the token too."""
    stake = await staked(kit)
    async with kit.moves(0):
        for request in (
            kit.credit(900, stake),
            kit.rollback(stake),
            wallet.GetBalanceRequest(account_id=kit.main.account_id),
        ):
            await kit.status(request, *STRANGER, token=Token(absent=True))
            await kit.status(request, *STRANGER, token=Token({"method": "Debit"}))
    kit.remember(stake)


@CASES.case("balance-unknown-account")
async def balance_unknown_account(kit: Kit) -> None:
    """The balance of an account that there is not is NOT_FOUND."""
    await kit.status(wallet.GetBalanceRequest(account_id=kit.new_id()), NOT_FOUND)
