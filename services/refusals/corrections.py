"""Reasons that speak of corrections of rounds that were paid."""

from __future__ import annotations

from collections.abc import Mapping

import grpc

from sabot.settlement.v1 import correction_events_pb2 as settlement
from services.kernel.errors import Reason, Retry

_Code = grpc.StatusCode

CORRECTION_NOT_FOUND = Reason(
    "CORRECTION_NOT_FOUND",
    _Code.NOT_FOUND,
    Retry.NEVER,
    "There is no such correction.",
    "Il n'existe pas de telle correction.",
)
CORRECTION_OVER = Reason(
    "CORRECTION_OVER",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The correction is done, was rejected, or waited too long for its approval.",
    "La correction est faite, a été rejetée, ou a attendu trop longtemps son approbation.",
)
ALREADY_APPROVED = Reason(
    "ALREADY_APPROVED",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The correction is approved already.",
    "La correction est déjà approuvée.",
)
SAME_PERSON = Reason(
    "SAME_PERSON",
    _Code.PERMISSION_DENIED,
    Retry.NEVER,
    "Whoever proposed the correction cannot approve it.",
    "La personne qui a proposé la correction ne peut pas l'approuver.",
)
DRY_RUN_STALE = Reason(
    "DRY_RUN_STALE",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The round was corrected since the dry run; preview it again.",
    "La manche a été corrigée depuis l'essai ; refaites l'essai.",
)
SAME_OUTCOME = Reason(
    "SAME_OUTCOME",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The round {round_id} has come to this already.",
    "La manche {round_id} a déjà cette issue.",
)
BAD_RESULT = Reason(
    "BAD_RESULT",
    _Code.INVALID_ARGUMENT,
    Retry.NEVER,
    "No round of the game at table {table_id} can come to this result.",
    "Aucune manche du jeu de la table {table_id} ne peut avoir ce résultat.",
)
TOO_MANY_CORRECTIONS = Reason(
    "TOO_MANY_CORRECTIONS",
    _Code.RESOURCE_EXHAUSTED,
    Retry.NEVER,
    "As many corrections are open as there may be; ask again with a new request id once one is"
    " over.",
    "Le nombre maximal de corrections en cours est atteint ; redemandez avec un autre identifiant"
    " quand l'une sera terminée.",
)
ROUND_NOT_PAID = Reason(
    "ROUND_NOT_PAID",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The round {round_id} was never paid: there is nothing to correct.",
    "La manche {round_id} n'a jamais été payée : il n'y a rien à corriger.",
)
FACTS_INCOMPLETE = Reason(
    "FACTS_INCOMPLETE",
    _Code.UNAVAILABLE,
    Retry.LATER,
    "Not all of the round's facts are to be read here now.",
    "Les faits de la manche ne peuvent pas tous être lus ici pour le moment.",
    retry_ms=2000,
)
NOT_OWED = Reason(
    "NOT_OWED",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The account {account_id} does not owe so much.",
    "Le compte {account_id} ne doit pas autant.",
)

REASONS = (
    CORRECTION_NOT_FOUND,
    CORRECTION_OVER,
    ALREADY_APPROVED,
    SAME_PERSON,
    DRY_RUN_STALE,
    SAME_OUTCOME,
    BAD_RESULT,
    TOO_MANY_CORRECTIONS,
    ROUND_NOT_PAID,
    FACTS_INCOMPLETE,
    NOT_OWED,
)

FAULTS: Mapping[int, Reason] = {
    settlement.CORRECTION_FAULT_NOT_PAID: ROUND_NOT_PAID,
    settlement.CORRECTION_FAULT_FACTS_INCOMPLETE: FACTS_INCOMPLETE,
    settlement.CORRECTION_FAULT_DIGEST_DIFFERS: FACTS_INCOMPLETE,
    settlement.CORRECTION_FAULT_BAD_RESULT: BAD_RESULT,
    settlement.CORRECTION_FAULT_NOTHING_TO_CORRECT: SAME_OUTCOME,
    settlement.CORRECTION_FAULT_DRY_RUN_STALE: DRY_RUN_STALE,
}
"""Every `sabot.settlement.v1.CorrectionFault` but the unspecified one and NOT_CORRECTABLE, whose
reason stands with those of tables."""
