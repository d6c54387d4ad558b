"""The reasons that speak of seamless partners' money: profiles and unconfirmed movements."""

from __future__ import annotations

from collections.abc import Mapping

import grpc

from sabot.wallet.v1 import seamless_events_pb2 as seamless
from services.kernel import errors
from services.kernel.errors import Reason, Refused, Retry

_Code = grpc.StatusCode

BAD_PROFILE = Reason(
    "BAD_PROFILE",
    _Code.INVALID_ARGUMENT,
    Retry.NEVER,
    "The partner's profile cannot be used: {detail}.",
    "Le profil du partenaire est inutilisable : {detail}.",
)
MONEY_UNDER_WAY = Reason(
    "MONEY_UNDER_WAY",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "How the partner's money is kept cannot change now: {detail}.",
    "La tenue de l'argent du partenaire ne peut pas changer maintenant : {detail}.",
)
MOVEMENT_NOT_FOUND = Reason(
    "MOVEMENT_NOT_FOUND",
    _Code.NOT_FOUND,
    Retry.NEVER,
    "The partner has no unconfirmed movement {transaction_id}.",
    "Le partenaire n'a pas de mouvement {transaction_id} sans confirmation.",
)
MOVEMENT_STILL_DECIDING = Reason(
    "MOVEMENT_STILL_DECIDING",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The round still waits for the debit {transaction_id}; it is taken, declined or rolled back by"
    " itself.",
    "La manche attend encore le débit {transaction_id} ; il sera prélevé, refusé ou annulé de"
    " lui-même.",
)
MOVEMENT_NOT_REFUSED = Reason(
    "MOVEMENT_NOT_REFUSED",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The partner has not refused {transaction_id}: it may have carried it out, or may still.",
    "Le partenaire n'a pas refusé {transaction_id} : il l'a peut-être exécuté, ou peut encore le"
    " faire.",
)

REASONS = (
    BAD_PROFILE,
    MONEY_UNDER_WAY,
    MOVEMENT_NOT_FOUND,
    MOVEMENT_STILL_DECIDING,
    MOVEMENT_NOT_REFUSED,
)

REFUSALS: Mapping[int, Reason] = {
    seamless.SEAMLESS_REFUSAL_REQUEST_ID_REUSED: errors.REQUEST_ID_REUSED,
    seamless.SEAMLESS_REFUSAL_REQUEST_EXPIRED: errors.REQUEST_EXPIRED,
    seamless.SEAMLESS_REFUSAL_REQUEST_ID_AHEAD: errors.REQUEST_ID_AHEAD,
    seamless.SEAMLESS_REFUSAL_BAD_PROFILE: BAD_PROFILE,
    seamless.SEAMLESS_REFUSAL_MONEY_UNDER_WAY: MONEY_UNDER_WAY,
    seamless.SEAMLESS_REFUSAL_UNKNOWN_MOVEMENT: MOVEMENT_NOT_FOUND,
    seamless.SEAMLESS_REFUSAL_STILL_DECIDING: MOVEMENT_STILL_DECIDING,
    seamless.SEAMLESS_REFUSAL_NOT_REFUSED: MOVEMENT_NOT_REFUSED,
}
"""Every `sabot.wallet.v1.SeamlessRefusal` but the unspecified one."""


def rejected(body: seamless.SeamlessOrderRejected, transaction_id: str = "") -> Refused:
    """The refusal that tells of it."""
    facts = {
        "request_id": body.request_id,
        "transaction_id": transaction_id,
        "detail": body.detail,
    }
    return Refused(REFUSALS.get(body.refusal, errors.UNEXPECTED_OUTCOME), facts)
