"""Reasons that speak of the log's seals and proofs."""

from __future__ import annotations

import grpc

from services.kernel.errors import Reason, Retry

_Code = grpc.StatusCode

NOT_SEALED = Reason(
    "NOT_SEALED",
    _Code.FAILED_PRECONDITION,
    Retry.LATER,
    "No seal covers {size} entries yet.",
    "Aucun sceau ne couvre encore {size} entrées.",
    retry_ms=10_000,
)
NO_SUCH_PROOF = Reason(
    "NO_SUCH_PROOF",
    _Code.INVALID_ARGUMENT,
    Retry.NEVER,
    "Entry {within} is not among the first {size}.",
    "L'entrée {within} n'est pas parmi les {size} premières.",
)
ANSWER_NOT_FOUND = Reason(
    "ANSWER_NOT_FOUND",
    _Code.NOT_FOUND,
    Retry.NEVER,
    "The log has no answer at {position}.",
    "Le journal n'a pas de réponse en {position}.",
)
TOO_MANY_THRESHOLDS = Reason(
    "TOO_MANY_THRESHOLDS",
    _Code.RESOURCE_EXHAUSTED,
    Retry.NEVER,
    "There are thresholds of as many tables and currencies as can be.",
    "Il y a des seuils pour autant de tables et de devises qu'il peut y en avoir.",
)

REASONS = (ANSWER_NOT_FOUND, NOT_SEALED, NO_SUCH_PROOF, TOO_MANY_THRESHOLDS)
