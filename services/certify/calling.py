"""Calls to a wallet under test: signed as a cell signs them, and every answer looked at."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import grpc
import jwt
import protovalidate

from sabot.partnerwallet.v1 import partner_wallet_service_pb2 as wallet
from sabot.partnerwallet.v1 import partner_wallet_service_pb2_grpc as wallet_grpc
from services.kernel.call_tokens import ALGORITHM, CallSigner

Request = (
    wallet.DebitRequest | wallet.CreditRequest | wallet.RollbackRequest | wallet.GetBalanceRequest
)
OK = grpc.StatusCode.OK
ALREADY_EXISTS = grpc.StatusCode.ALREADY_EXISTS
FAILED_PRECONDITION = grpc.StatusCode.FAILED_PRECONDITION
INVALID_ARGUMENT = grpc.StatusCode.INVALID_ARGUMENT
NOT_FOUND = grpc.StatusCode.NOT_FOUND
STRANGER = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)
"""What a wallet may answer to a token that is not good."""

_METHODS: Mapping[type, str] = {
    wallet.DebitRequest: "Debit",
    wallet.CreditRequest: "Credit",
    wallet.RollbackRequest: "Rollback",
    wallet.GetBalanceRequest: "GetBalance",
}


class Fault(Exception):
    """The wallet did what it must not; the message says what, in one line."""


@dataclass(frozen=True, slots=True)
class Token:
    """A good token, or one with something wrong."""

    claims: Mapping[str, Any] = field(default_factory=dict)
    """What its claims are instead; None takes a claim out."""
    signer: CallSigner | None = None
    """Who signs instead of the cell."""
    key_id: str | None = None
    """What its header says instead of the key's own name."""
    whole: str | None = None
    """All of the metadata's value instead."""
    absent: bool = False
    """No metadata at all."""


GOOD = Token()


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back of a call."""

    request: Request
    status: grpc.StatusCode
    told: Any = None
    """The response, where the status is OK."""
    details: str = ""

    def __str__(self) -> str:
        if self.status is not OK:
            return f"{self.status.name} ({self.details})" if self.details else self.status.name
        if isinstance(self.told, wallet.GetBalanceResponse):
            return f"{self.told.balance.minor_units} {self.told.balance.currency_code}"
        outcome = _name(self.told, "outcome")
        for reason in ("decline", "refusal"):
            if reason in self.told.DESCRIPTOR.fields_by_name and getattr(self.told, reason):
                return f"{outcome} {_name(self.told, reason)}"
        return outcome


def method_of(request: Request) -> str:
    """The method that a request is for."""
    return _METHODS[type(request)]


def _name(message: Any, name: str) -> str:
    """An enum's value without what all values of it begin with: TAKEN."""
    kind = message.DESCRIPTOR.fields_by_name[name].enum_type
    prefix = kind.values_by_number[0].name.removesuffix("UNSPECIFIED")
    number = getattr(message, name)
    known = kind.values_by_number.get(number)
    return known.name.removeprefix(prefix) if known else str(number)


class Caller:
    """One connection to the wallet."""

    def __init__(
        self,
        address: str,
        signer: CallSigner,
        audience: str,
        deadline_s: float,
        credentials: grpc.ChannelCredentials | None,
    ) -> None:
        self.signer = signer
        self.audience = audience
        self.deadline_s = deadline_s
        self.slowest_s = 0.0
        self._address = address
        self._credentials = credentials
        self._channel = self._connected()
        self._stub: wallet_grpc.PartnerWalletServiceAsyncStub
        self._stub = wallet_grpc.PartnerWalletServiceStub(self._channel)

    def _connected(self) -> grpc.aio.Channel:
        if self._credentials:
            return grpc.aio.secure_channel(self._address, self._credentials)
        return grpc.aio.insecure_channel(self._address)

    async def connect_again(self) -> None:
        """A new connection: the old one waits before it tries again."""
        await self._channel.close()
        self._channel = self._connected()
        self._stub = wallet_grpc.PartnerWalletServiceStub(self._channel)

    async def close(self) -> None:
        """Close the connection."""
        await self._channel.close()

    def start(self, request: Request, token: Token = GOOD) -> Any:
        """Begin a call; it may be awaited or cancelled."""
        method: Any = getattr(self._stub, method_of(request))
        return method(request, metadata=self.metadata(request, token), timeout=self.deadline_s)

    async def call(self, request: Request, token: Token = GOOD) -> Answer:
        """Call, and check the form of what comes back. Raises Fault."""
        began = time.monotonic()
        try:
            told = await self.start(request, token)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                raise Fault(
                    f"{method_of(request)} was not answered within {self.deadline_s:g} s"
                ) from None
            return Answer(request, error.code(), None, " ".join((error.details() or "").split()))
        finally:
            self.slowest_s = max(self.slowest_s, time.monotonic() - began)
        answer = Answer(request, OK, told)
        check_form(answer)
        return answer

    def metadata(self, request: Request, token: Token) -> tuple[tuple[str, str], ...]:
        """What goes with a call."""
        if token.absent:
            return ()
        if token.whole is not None:
            return (("authorization", token.whole),)
        transaction_id = getattr(request, "transaction_id", "")
        now_s = int(time.time())
        if token == GOOD:
            method = method_of(request)
            good = self.signer.token(
                self.audience, method, transaction_id, request.account_id, now_s
            )
            return (("authorization", f"Bearer {good}"),)
        signer = token.signer or self.signer
        claims = {
            "iss": self.signer.issuer,
            "aud": self.audience,
            "sub": request.account_id,
            "method": method_of(request),
            "transaction_id": transaction_id,
            "iat": now_s,
            "exp": now_s + 30,
            **{
                name: now_s + value if name in {"iat", "exp"} and value is not None else value
                for name, value in token.claims.items()
            },
        }
        written = jwt.encode(
            {name: value for name, value in claims.items() if value is not None},
            signer.key,
            algorithm=ALGORITHM,
            headers={"kid": signer.key_id if token.key_id is None else token.key_id},
        )
        return (("authorization", f"Bearer {written}"),)


def check_form(answer: Answer) -> None:
    """Whether an answer is about its request and says one thing. Raises Fault."""
    told, request = answer.told, answer.request
    try:
        protovalidate.validate(told)
    except protovalidate.ValidationError as error:
        broken = "; ".join(str(one) for one in error.to_proto().violations) or str(error)
        raise Fault(f"the answer breaks a rule of the proto: {' '.join(broken.split())}") from None
    if isinstance(request, wallet.GetBalanceRequest):
        if told.account_id != request.account_id:
            raise Fault(f"asked for {request.account_id}, answered for {told.account_id}")
        return
    if told.transaction_id != request.transaction_id:
        raise Fault(f"called for {request.transaction_id}, answered for {told.transaction_id}")
    reason = told.decline if isinstance(told, wallet.DebitResponse) else told.refusal
    done = told.outcome == 1  # TAKEN, CREDITED, DONE
    if done and reason:
        raise Fault(f"an answer cannot be both: {answer}")
    if not done and not reason:
        raise Fault(f"{answer} without a reason")
