"""The wallet's declines, and the reasons that speak of accounts and money."""

from __future__ import annotations

from collections.abc import Mapping

import grpc

from sabot.wallet.v1 import events_pb2 as wallet
from services.kernel import errors
from services.kernel.errors import Reason, Refused, Retry
from services.refusals.corrections import NOT_OWED

_Code = grpc.StatusCode

ACCOUNT_NOT_FOUND = Reason(
    "ACCOUNT_NOT_FOUND",
    _Code.NOT_FOUND,
    Retry.NEVER,
    "There is no account {account_id}.",
    "Il n'existe pas de compte {account_id}.",
)
ACCOUNT_CLOSED = Reason(
    "ACCOUNT_CLOSED",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The account {account_id} is closed.",
    "Le compte {account_id} est fermé.",
)
ACCOUNT_BLOCKED = Reason(
    "ACCOUNT_BLOCKED",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The account {account_id} is blocked.",
    "Le compte {account_id} est bloqué.",
)
ACCOUNT_EXISTS = Reason(
    "ACCOUNT_EXISTS",
    _Code.ALREADY_EXISTS,
    Retry.NEVER,
    "The account {account_id} was opened before; its id cannot be used again.",
    "Le compte {account_id} a déjà été ouvert ; son identifiant ne peut pas resservir.",
)
ACCOUNT_NOT_EMPTY = Reason(
    "ACCOUNT_NOT_EMPTY",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The account {account_id} still holds money or reserved stakes.",
    "Le compte {account_id} contient encore de l'argent ou des mises réservées.",
)
NOT_BLOCKED = Reason(
    "NOT_BLOCKED",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The account {account_id} is not blocked.",
    "Le compte {account_id} n'est pas bloqué.",
)
CURRENCY_MISMATCH = Reason(
    "CURRENCY_MISMATCH",
    _Code.INVALID_ARGUMENT,
    Retry.NEVER,
    "The amount is in another currency than the account or the table.",
    "Le montant n'est pas dans la devise du compte ou de la table.",
)
MIXED_CURRENCIES = Reason(
    "MIXED_CURRENCIES",
    _Code.INVALID_ARGUMENT,
    Retry.NEVER,
    "All stakes of a request must be in one currency; there are {currencies}.",
    "Toutes les mises d'une requête doivent être dans une seule devise ; il y a {currencies}.",
)
INSUFFICIENT_FUNDS = Reason(
    "INSUFFICIENT_FUNDS",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The available balance of {account_id} is too small.",
    "Le solde disponible de {account_id} est insuffisant.",
)
BALANCE_TOO_LARGE = Reason(
    "BALANCE_TOO_LARGE",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The account {account_id} may not hold so much.",
    "Le compte {account_id} ne peut pas contenir autant.",
)
STAKES_SEALED = Reason(
    "STAKES_SEALED",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The stakes of this round are final.",
    "Les mises de cette manche sont définitives.",
)
TOO_MANY_ACCOUNTS = Reason(
    "TOO_MANY_ACCOUNTS",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The partner has as many accounts as it may.",
    "Le partenaire a atteint son nombre maximal de comptes.",
)
BALANCE_AT_PARTNER = Reason(
    "BALANCE_AT_PARTNER",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The partner holds the money of {account_id} itself: nothing is paid in or out here.",
    "Le partenaire détient lui-même l'argent de {account_id} : rien n'est versé ni retiré ici.",
)
DEPOSIT_REFUSED = Reason(
    "DEPOSIT_REFUSED",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "Limits refuse the deposit into {account_id}.",
    "Des limites refusent le dépôt sur {account_id}.",
)
PARTNER_LIMIT = Reason(
    "PARTNER_LIMIT",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The partner's wallet declined the stakes: a limit of the partner's.",
    "Le portefeuille du partenaire a refusé les mises : une limite du partenaire.",
)
PARTNER_DECLINED = Reason(
    "PARTNER_DECLINED",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The partner's wallet declined the stakes.",
    "Le portefeuille du partenaire a refusé les mises.",
)
PARTNER_UNANSWERED = Reason(
    "PARTNER_UNANSWERED",
    _Code.ABORTED,
    Retry.NEVER,
    "The partner's wallet has not answered in time. The bets are not on; what it may have taken"
    " goes back.",
    "Le portefeuille du partenaire n'a pas répondu à temps. Les paris n'ont pas lieu ; ce qu'il a"
    " pu prélever est rendu.",
)
PARTNER_OVERDUE = Reason(
    "PARTNER_OVERDUE",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The partner's wallet leaves too many movements unconfirmed; no stakes are asked of it.",
    "Le portefeuille du partenaire laisse trop de mouvements sans confirmation ; aucune mise ne lui"
    " est demandée.",
)
PARTNER_CONTRADICTS = Reason(
    "PARTNER_CONTRADICTS",
    _Code.ABORTED,
    Retry.NEVER,
    "The partner's wallet answered what cannot be. The bets are not on; what it may have taken goes"
    " back, and operators are alarmed.",
    "Le portefeuille du partenaire a donné une réponse impossible. Les paris n'ont pas lieu ; ce"
    " qu'il a pu prélever est rendu et les opérateurs sont alertés.",
)
WITHDRAWN_EARLY = Reason(
    "WITHDRAWN_EARLY",
    _Code.ABORTED,
    Retry.NEVER,
    "The bets were withdrawn before the partner's wallet had answered.",
    "Les paris ont été retirés avant la réponse du portefeuille du partenaire.",
)
DECISION_FAILED = Reason(
    "DECISION_FAILED",
    _Code.INTERNAL,
    Retry.NEVER,
    "A fault kept the request from being decided. It counts as declined, no money moved, and"
    " operators are alarmed.",
    "Une panne a empêché de traiter la requête. Elle compte comme refusée, aucun argent n'a été"
    " déplacé et les opérateurs sont alertés.",
)

PERIOD_TOO_LARGE = Reason(
    "PERIOD_TOO_LARGE",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The period has more than {most} transactions; ask for a shorter one.",
    "La période compte plus de {most} transactions ; demandez-en une plus courte.",
)

REASONS = (
    PERIOD_TOO_LARGE,
    ACCOUNT_NOT_FOUND,
    ACCOUNT_CLOSED,
    ACCOUNT_BLOCKED,
    ACCOUNT_EXISTS,
    ACCOUNT_NOT_EMPTY,
    NOT_BLOCKED,
    CURRENCY_MISMATCH,
    MIXED_CURRENCIES,
    INSUFFICIENT_FUNDS,
    BALANCE_TOO_LARGE,
    STAKES_SEALED,
    TOO_MANY_ACCOUNTS,
    DEPOSIT_REFUSED,
    BALANCE_AT_PARTNER,
    PARTNER_LIMIT,
    PARTNER_DECLINED,
    PARTNER_UNANSWERED,
    PARTNER_OVERDUE,
    PARTNER_CONTRADICTS,
    WITHDRAWN_EARLY,
    DECISION_FAILED,
)

DECLINES: Mapping[int, Reason] = {
    wallet.DECLINE_REQUEST_ID_REUSED: errors.REQUEST_ID_REUSED,
    wallet.DECLINE_REQUEST_EXPIRED: errors.REQUEST_EXPIRED,
    wallet.DECLINE_REQUEST_ID_AHEAD: errors.REQUEST_ID_AHEAD,
    wallet.DECLINE_UNKNOWN_ACCOUNT: ACCOUNT_NOT_FOUND,
    wallet.DECLINE_ACCOUNT_CLOSED: ACCOUNT_CLOSED,
    wallet.DECLINE_ACCOUNT_BLOCKED: ACCOUNT_BLOCKED,
    wallet.DECLINE_ACCOUNT_EXISTS: ACCOUNT_EXISTS,
    wallet.DECLINE_CURRENCY_MISMATCH: CURRENCY_MISMATCH,
    wallet.DECLINE_INSUFFICIENT_FUNDS: INSUFFICIENT_FUNDS,
    wallet.DECLINE_BALANCE_TOO_LARGE: BALANCE_TOO_LARGE,
    wallet.DECLINE_ACCOUNT_NOT_EMPTY: ACCOUNT_NOT_EMPTY,
    wallet.DECLINE_NOT_BLOCKED: NOT_BLOCKED,
    wallet.DECLINE_STAKES_SEALED: STAKES_SEALED,
    wallet.DECLINE_FAILED: DECISION_FAILED,
    wallet.DECLINE_TOO_MANY_ACCOUNTS: TOO_MANY_ACCOUNTS,
    wallet.DECLINE_LIMITS: DEPOSIT_REFUSED,
    wallet.DECLINE_BALANCE_AT_PARTNER: BALANCE_AT_PARTNER,
    wallet.DECLINE_PARTNER_LIMIT: PARTNER_LIMIT,
    wallet.DECLINE_PARTNER_DECLINED: PARTNER_DECLINED,
    wallet.DECLINE_PARTNER_UNANSWERED: PARTNER_UNANSWERED,
    wallet.DECLINE_PARTNER_OVERDUE: PARTNER_OVERDUE,
    wallet.DECLINE_PARTNER_CONTRADICTS: PARTNER_CONTRADICTS,
    wallet.DECLINE_WITHDRAWN: WITHDRAWN_EARLY,
    wallet.DECLINE_NOT_OWED: NOT_OWED,
}
"""Every `sabot.wallet.v1.Decline` but the unspecified one."""


def declined(decline: int, facts: Mapping[str, str | int]) -> Refused:
    """The refusal that tells of a decline. `facts` must name `account_id` and `request_id`."""
    return Refused(DECLINES.get(decline, errors.UNEXPECTED_OUTCOME), facts)
