"""The catalogue of errors: what a caller may be told, how, and whether asking again helps.

Every error that leaves a server is a `Reason` of the catalogue: this module's own, which any
service may give, and those of `services.refusals`, which speak of tables, bets and money. A
`Refused` carries a reason with its facts through the code; `status_of` makes the google.rpc.Status
that goes out. docs/errors.md is generated from the same reasons.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc import error_details_pb2  # type: ignore[import-untyped] # ships no types
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped] # the same

DOMAIN = "sabot"
"""The domain of every ErrorInfo."""
LANGUAGES = ("en", "fr")
"""The languages that texts exist in. Where they differ, English prevails (rule VIS-6)."""
FRENCH_NOTE = " (Seul le texte anglais fait foi.)"
"""Every French text says so."""
MAX_STATUS_BYTES = 7 * 1024
"""A status travels in the call's trailing metadata, which clients take up to 8 KiB by default."""
MAX_VIOLATIONS = 16
"""Violations told one by one, or fewer where they are long; how many there were is told as well."""
MAX_FACT_CHARS = 100
"""Facts and descriptions are cut to this: ids are shorter, and the status stays small."""
MAX_TEXT_CHARS = 300
"""Texts are cut to this: three of them, one escaped, leave half of a status to its details."""


class Retry(Enum):
    """Whether sending the same request again helps."""

    NEVER = "never"
    SAME_ID = "at once, with the same request id"
    LATER = "after the delay of RetryInfo, with the same request id"


@dataclass(frozen=True, slots=True)
class Reason:
    """One entry of the catalogue. Texts may name facts in braces, the same ones in both."""

    name: str
    """UPPER_SNAKE; ErrorInfo's reason. For ever."""
    code: grpc.StatusCode
    retry: Retry
    english: str
    french: str
    retry_ms: int = 0
    """With `Retry.LATER`: the delay, milliseconds."""


class FieldViolation(NamedTuple):
    """What is wrong with one field of a request."""

    field: str
    rule: str
    description: str


class BrokenRule(NamedTuple):
    """One of several rules that a request breaks, with the facts of its text: the arithmetic."""

    reason: Reason
    subject: str
    facts: Mapping[str, str | int]


NO_FACTS: Mapping[str, str | int] = MappingProxyType({})


class Refused(Exception):
    """A request is refused for a reason of the catalogue.

    `facts` fill the texts and go out as ErrorInfo's metadata; `fields` go out as BadRequest,
    `broken` as PreconditionFailure.
    """

    def __init__(
        self,
        reason: Reason,
        facts: Mapping[str, str | int] = NO_FACTS,
        *,
        fields: Sequence[FieldViolation] = (),
        broken: Sequence[BrokenRule] = (),
    ) -> None:
        super().__init__(reason.name)
        self.reason = reason
        self.fields = fields
        self.broken = broken
        self.facts = {name: _cut(str(value), MAX_FACT_CHARS) for name, value in facts.items()}

    def text(self, language: str) -> str:
        """The reason's text with its facts."""
        french = language == "fr"
        if self.broken:
            told = "; ".join(_text(rule.reason, french, rule.facts) for rule in self.broken)
        else:
            told = _text(self.reason, french, self.facts)
        return _cut(told, MAX_TEXT_CHARS) + (FRENCH_NOTE if french else "")


class PassedOn(Exception):
    """Another server's error, to be told as it came."""

    def __init__(self, code: grpc.StatusCode, message: str, details: bytes | None) -> None:
        super().__init__(code.name)
        self.code = code
        self.message = message
        self.details = details
        """The serialised google.rpc.Status, where there is one."""


def status_of(refused: Refused, language: str = "en") -> Status:
    """The google.rpc.Status of a refusal: ErrorInfo, then what else is known. Both languages are
    told, the caller's first."""
    violations = MAX_VIOLATIONS
    while True:
        status = _status(refused, language, violations)
        # The text goes out a second time, escaped: three bytes for each that is not plain.
        size = status.ByteSize() + 3 * len(status.message.encode())
        if size <= MAX_STATUS_BYTES or not violations:
            return status
        violations //= 2


def _status(refused: Refused, language: str, violations: int) -> Status:
    reason = refused.reason
    told_facts = {name: value for name, value in refused.facts.items() if value}
    info = error_details_pb2.ErrorInfo(reason=reason.name, domain=DOMAIN, metadata=told_facts)
    details: list[Message] = [info]
    if refused.fields:
        details.append(_bad_request(refused.fields[:violations]))
        info.metadata["violations"] = str(len(refused.fields))
    if refused.broken:
        details.append(_precondition_failure(refused.broken[:violations]))
        info.metadata["violations"] = str(len(refused.broken))
    if reason.retry is Retry.LATER:
        delay = Duration(nanos=reason.retry_ms % 1000 * 1_000_000, seconds=reason.retry_ms // 1000)
        details.append(error_details_pb2.RetryInfo(retry_delay=delay))
    for told in sorted(LANGUAGES, key=lambda each: each != language):
        localised = error_details_pb2.LocalizedMessage(locale=told, message=refused.text(told))
        details.append(localised)
    status = Status(code=number_of(reason.code), message=refused.text("en"))
    for detail in details:
        status.details.add().Pack(detail)
    return status


def _bad_request(fields: Sequence[FieldViolation]) -> error_details_pb2.BadRequest:
    bad = error_details_pb2.BadRequest()
    for field in fields:
        bad.field_violations.add(
            field=_cut(field.field, MAX_FACT_CHARS),
            reason=field.rule.upper().replace(".", "_"),
            description=_cut(field.description, MAX_FACT_CHARS),
        )
    return bad


def _precondition_failure(broken: Sequence[BrokenRule]) -> error_details_pb2.PreconditionFailure:
    failure = error_details_pb2.PreconditionFailure()
    for rule in broken:
        failure.violations.add(
            type=rule.reason.name,
            subject=_cut(rule.subject, MAX_FACT_CHARS),
            description=_cut(_text(rule.reason, False, rule.facts), MAX_FACT_CHARS),
        )
    return failure


def _text(reason: Reason, french: bool, facts: Mapping[str, str | int]) -> str:
    return (reason.french if french else reason.english).format_map(facts)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def number_of(code: grpc.StatusCode) -> int:
    """A status code's number."""
    number: int = code.value[0]
    return number


_Code = grpc.StatusCode

MALFORMED_REQUEST = Reason(
    "MALFORMED_REQUEST",
    _Code.INVALID_ARGUMENT,
    Retry.NEVER,
    "The request's bytes are no {message}.",
    "Les octets de la requête ne forment pas un {message}.",
)
INVALID_REQUEST = Reason(
    "INVALID_REQUEST",
    _Code.INVALID_ARGUMENT,
    Retry.NEVER,
    "The request is not valid: see the fields listed.",
    "La requête n'est pas valable : voir les champs indiqués.",
)
DEADLINE_REQUIRED = Reason(
    "DEADLINE_REQUIRED",
    _Code.INVALID_ARGUMENT,
    Retry.NEVER,
    "{method} needs a deadline.",
    "{method} exige un délai d'expiration.",
)
TOKEN_MISSING = Reason(
    "TOKEN_MISSING",
    _Code.UNAUTHENTICATED,
    Retry.NEVER,
    "The metadata `authorization` must hold `Bearer` and a token.",
    "La métadonnée `authorization` doit contenir `Bearer` et un jeton.",
)
TOKEN_UNKNOWN = Reason(
    "TOKEN_UNKNOWN",
    _Code.UNAUTHENTICATED,
    Retry.NEVER,
    "The token is not known here.",
    "Le jeton est inconnu ici.",
)
PERMISSION_DENIED = Reason(
    "PERMISSION_DENIED",
    _Code.PERMISSION_DENIED,
    Retry.NEVER,
    "{method} is for {allowed} only.",
    "{method} est réservé à : {allowed}.",
)
OUTCOME_UNKNOWN = Reason(
    "OUTCOME_UNKNOWN",
    _Code.UNAVAILABLE,
    Retry.SAME_ID,
    "It is not known yet what becomes of the request; it may take effect. Send the same request"
    " again with the same request id, or ask GetRequest.",
    "On ne sait pas encore ce que devient la requête ; elle peut prendre effet. Renvoyez la même"
    " requête avec le même identifiant, ou interrogez GetRequest.",
)
NOT_READY = Reason(
    "NOT_READY",
    _Code.UNAVAILABLE,
    Retry.LATER,
    "This server takes no requests at the moment; nothing was done.",
    "Ce serveur n'accepte pas de requêtes en ce moment ; rien n'a été fait.",
    retry_ms=500,
)
BUSY = Reason(
    "BUSY",
    _Code.RESOURCE_EXHAUSTED,
    Retry.LATER,
    "Requests are coming in faster than they are decided; nothing was done.",
    "Les requêtes arrivent plus vite qu'elles ne sont traitées ; rien n'a été fait.",
    retry_ms=1000,
)
LOG_FULL = Reason(
    "LOG_FULL",
    _Code.RESOURCE_EXHAUSTED,
    Retry.LATER,
    "The log has no room for further requests; nothing was done.",
    "Le journal n'a plus de place pour de nouvelles requêtes ; rien n'a été fait.",
    retry_ms=30_000,
)
POSITION_NOT_REACHED = Reason(
    "POSITION_NOT_REACHED",
    _Code.UNAVAILABLE,
    Retry.LATER,
    "This server has not read the log up to {at_least} yet.",
    "Ce serveur n'a pas encore lu le journal jusqu'à {at_least}.",
    retry_ms=500,
)
READ_UNAVAILABLE = Reason(
    "READ_UNAVAILABLE",
    _Code.UNAVAILABLE,
    Retry.LATER,
    "What was asked for cannot be read at the moment.",
    "Ce qui est demandé ne peut pas être lu en ce moment.",
    retry_ms=1000,
)
REQUEST_EXPIRED = Reason(
    "REQUEST_EXPIRED",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The request {request_id} comes too late to be decided. If it was sent before, GetRequest says"
    " what became of it; this call changed nothing.",
    "La requête {request_id} arrive trop tard pour être traitée. Si elle a déjà été envoyée,"
    " GetRequest dit ce qu'il en est advenu ; cet appel n'a rien changé.",
)
REQUEST_ID_REUSED = Reason(
    "REQUEST_ID_REUSED",
    _Code.ALREADY_EXISTS,
    Retry.NEVER,
    "The request id {request_id} was used before with other content; the first request stands.",
    "L'identifiant de requête {request_id} a déjà servi avec un autre contenu ; la première requête"
    " demeure.",
)
REQUEST_ID_AHEAD = Reason(
    "REQUEST_ID_AHEAD",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The time in the request id {request_id} is more than a minute ahead: check the clock.",
    "L'heure contenue dans l'identifiant {request_id} a plus d'une minute d'avance : vérifiez"
    " l'horloge.",
)
INPUT_FAILED = Reason(
    "INPUT_FAILED",
    _Code.INTERNAL,
    Retry.NEVER,
    "A fault kept the request from being decided; it has had no effect so far and operators are"
    " alarmed. Ask GetRequest before sending it anew.",
    "Une panne a empêché de traiter la requête ; elle est sans effet à ce jour et les opérateurs"
    " sont alertés. Interrogez GetRequest avant de la renvoyer.",
)
INPUT_IGNORED = Reason(
    "INPUT_IGNORED",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The order has no effect: {ignored}.",
    "L'ordre est sans effet : {ignored}.",
)
BEHAVIOUR_NOT_POSSIBLE = Reason(
    "BEHAVIOUR_NOT_POSSIBLE",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "Behaviour {behaviour} cannot be activated: {in_force} is in force, and this build knows "
    "behaviours up to {known}.",
    "Le comportement {behaviour} ne peut pas être activé : {in_force} est en vigueur, et cette "
    "version les connaît jusqu'à {known}.",
)
INPUT_NOT_FAILED = Reason(
    "INPUT_NOT_FAILED",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "Nothing failed at {failed}: there is nothing to decide again.",
    "Rien n'a échoué à la position {failed} : il n'y a rien à décider de nouveau.",
)
PAGE_TOKEN_INVALID = Reason(
    "PAGE_TOKEN_INVALID",
    _Code.INVALID_ARGUMENT,
    Retry.NEVER,
    "The page token does not belong to this query.",
    "Le jeton de page n'appartient pas à cette recherche.",
)
RESUME_TOKEN_INVALID = Reason(
    "RESUME_TOKEN_INVALID",
    _Code.INVALID_ARGUMENT,
    Retry.NEVER,
    "The resume token does not belong to this stream.",
    "Le jeton de reprise n'appartient pas à ce flux.",
)
UPSTREAM_UNAVAILABLE = Reason(
    "UPSTREAM_UNAVAILABLE",
    _Code.UNAVAILABLE,
    Retry.SAME_ID,
    "The service behind this one did not answer; the request may take effect. Send it again with"
    " the same request id.",
    "Le service situé derrière celui-ci n'a pas répondu ; la requête peut prendre effet."
    " Renvoyez-la avec le même identifiant.",
)
UNEXPECTED_OUTCOME = Reason(
    "UNEXPECTED_OUTCOME",
    _Code.INTERNAL,
    Retry.NEVER,
    "The request was decided in a way that this server cannot tell. Ask GetRequest.",
    "La requête a été traitée d'une façon que ce serveur ne sait pas dire. Interrogez GetRequest.",
)
INTERNAL = Reason(
    "INTERNAL",
    _Code.INTERNAL,
    Retry.SAME_ID,
    "Something broke. Operators find the cause under incident {incident}.",
    "Une erreur interne s'est produite. Les opérateurs en trouvent la cause sous l'incident"
    " {incident}.",
)

REASONS = (
    MALFORMED_REQUEST,
    INVALID_REQUEST,
    DEADLINE_REQUIRED,
    TOKEN_MISSING,
    TOKEN_UNKNOWN,
    PERMISSION_DENIED,
    OUTCOME_UNKNOWN,
    NOT_READY,
    BUSY,
    LOG_FULL,
    POSITION_NOT_REACHED,
    REQUEST_EXPIRED,
    REQUEST_ID_REUSED,
    REQUEST_ID_AHEAD,
    INPUT_FAILED,
    INPUT_IGNORED,
    BEHAVIOUR_NOT_POSSIBLE,
    INPUT_NOT_FAILED,
    PAGE_TOKEN_INVALID,
    RESUME_TOKEN_INVALID,
    UPSTREAM_UNAVAILABLE,
    READ_UNAVAILABLE,
    UNEXPECTED_OUTCOME,
    INTERNAL,
)
"""Those that any service may give."""
