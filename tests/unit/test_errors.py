"""The catalogue of errors: complete, in two languages, and what docs/errors.md says."""

from __future__ import annotations

import string
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from google.rpc import error_details_pb2  # type: ignore[import-untyped]  # ships no types
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # the same

from sabot.limits.v1 import events_pb2 as limits
from sabot.limits.v1 import protection_events_pb2 as protection
from sabot.shoe.v1 import floor_events_pb2 as floors
from sabot.table.v1 import events_pb2 as tables
from sabot.wallet.v1 import events_pb2 as wallets
from sabot.wallet.v1 import seamless_events_pb2 as seamless
from services.cli.errors_doc import SECTIONS, document
from services.kernel import errors
from services.kernel.errors import BrokenRule, FieldViolation, Reason, Refused, Retry, status_of
from services.refusals import floor as floor_refusals
from services.refusals import seamless as seamless_refusals
from services.refusals.limits import ABOVE_MAXIMUM, LIMITS, ORDERS
from services.refusals.limits import refused as limits_refused
from services.refusals.table import REFUSALS
from services.refusals.table import refused as table_refused
from services.refusals.wallet import DECLINES, declined

ROOT = Path(__file__).parents[2]
CATALOGUE = list(chain.from_iterable(SECTIONS.values()))
FACTS: dict[str, str | int] = {
    "request_id": "r-1",
    "table_id": "t1",
    "round_id": "t1-7",
    "account_id": "a-1",
    "detail": "no limits for tie",
}
DETAILS = {
    kind.DESCRIPTOR.full_name: kind
    for kind in (
        error_details_pb2.ErrorInfo,
        error_details_pb2.BadRequest,
        error_details_pb2.PreconditionFailure,
        error_details_pb2.RetryInfo,
        error_details_pb2.LocalizedMessage,
    )
}
TRAILER_BYTES = 8 * 1024
"""What clients take by default."""


def details(status: Status) -> list[Any]:
    found = []
    for packed in status.details:
        message = DETAILS[packed.TypeName()]()
        assert packed.Unpack(message)
        found.append(message)
    return found


def info(status: Status) -> Any:
    return details(status)[0]


def names(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name}


def test_reasons_are_unique_and_upper_snake() -> None:
    found = [reason.name for reason in CATALOGUE]
    assert len(found) == len(set(found))
    assert all(name.replace("_", "").isalpha() and name.isupper() for name in found)


@pytest.mark.parametrize("reason", CATALOGUE, ids=lambda reason: reason.name)
def test_vis_6_each_reason_has_both_languages_with_the_same_facts(reason: Reason) -> None:
    assert reason.english
    assert reason.french
    assert reason.english != reason.french
    assert names(reason.english) == names(reason.french)
    facts = dict.fromkeys(names(reason.english), "x")
    refused = Refused(reason, facts)
    assert refused.text("fr").endswith(errors.FRENCH_NOTE)
    assert (reason.retry is Retry.LATER) == (reason.retry_ms > 0)


@pytest.mark.parametrize(
    ("enum", "mapping"),
    [
        (tables.Refusal, REFUSALS),
        (limits.Limit, LIMITS),
        (wallets.Decline, DECLINES),
        (floors.FloorRefusal, floor_refusals.REFUSALS),
        (protection.OrderRefusal, ORDERS),
        (seamless.SeamlessRefusal, seamless_refusals.REFUSALS),
    ],
    ids=["Refusal", "Limit", "Decline", "FloorRefusal", "OrderRefusal", "SeamlessRefusal"],
)
def test_each_value_that_a_core_may_refuse_with_is_mapped(
    enum: Any, mapping: dict[int, Reason]
) -> None:
    assert set(mapping) == set(enum.values()) - {0}
    assert {reason.name for reason in mapping.values()} <= {reason.name for reason in CATALOGUE}


@pytest.mark.parametrize("refusal", REFUSALS)
def test_the_facts_of_the_table_fill_every_text_of_its_refusals(refusal: int) -> None:
    refused = table_refused(refusal, FACTS)
    assert status_of(refused).message
    unknown = {name for name, value in refused.facts.items() if value == "?"}
    assert unknown <= names(refused.reason.english)


@pytest.mark.parametrize("decline", DECLINES)
def test_account_and_request_fill_every_text_of_the_wallets_declines(decline: int) -> None:
    assert status_of(declined(decline, {"request_id": "r", "account_id": "a"})).message


@pytest.mark.parametrize("refusal", floor_refusals.REFUSALS)
def test_every_refusal_of_the_floor_has_the_facts_of_its_text(
    refusal: floors.FloorRefusal.ValueType,
) -> None:
    assert status_of(floor_refusals.rejected(floors.FloorRejected(refusal=refusal))).message


def test_a_fault_is_a_refusal_where_what_was_told_was_not_taken() -> None:
    for fault in floors.FloorFault.values():
        body = floors.FloorFaultFound(fault=fault, told="KS", told_before="KD")
        refused = floor_refusals.faulty(body)
        assert (refused is not None) == (fault in floor_refusals.FAULTS)
        if refused is not None:
            assert "KS" in status_of(refused).message


def test_a_value_that_nobody_knows_is_told_as_such() -> None:
    assert declined(999, {}).reason is errors.UNEXPECTED_OUTCOME
    assert table_refused(999, FACTS).reason is errors.UNEXPECTED_OUTCOME
    assert limits_refused([], FACTS).reason is errors.UNEXPECTED_OUTCOME


def test_lim_6_a_refusal_names_each_broken_limit_with_its_arithmetic() -> None:
    refused = limits_refused(
        [
            limits.Violation(
                limit=limits.LIMIT_BELOW_MINIMUM, bet="player", allowed_minor=100, would_be_minor=50
            ),
            limits.Violation(limit=limits.LIMIT_OPPOSITE_SIDES, bet="player", against="banker"),
        ],
        FACTS,
    )
    status = status_of(refused)
    assert status.message == (
        "total on player would be 50, minimum 100 (minor units); "
        "player may not be held together with banker"
    )
    assert info(status).reason == "BELOW_MINIMUM"
    assert info(status).domain == "sabot"
    assert info(status).metadata["would_be_minor"] == "50"
    assert info(status).metadata["allowed_minor"] == "100"
    failure = details(status)[1]
    assert [(rule.type, rule.subject) for rule in failure.violations] == [
        ("BELOW_MINIMUM", "player"),
        ("OPPOSITE_SIDES", "player"),
    ]


def test_a_delay_goes_out_as_retry_info() -> None:
    status = status_of(Refused(errors.LOG_FULL))
    assert [d.retry_delay.ToMilliseconds() for d in details(status)[1:2]] == [30_000]


def test_the_callers_language_comes_first() -> None:
    def told(language: str) -> list[str]:
        return [
            message.locale for message in details(status_of(Refused(errors.BUSY), language))[2:]
        ]

    assert told("en") == ["en", "fr"]
    assert told("fr") == ["fr", "en"]


def test_the_largest_status_fits_into_a_clients_trailing_metadata() -> None:
    long = "é" * 500
    rule: dict[str, str | int] = {
        "place": long,
        "allowed_minor": 10**12,
        "would_be_minor": 10**12,
        "against": "",
        "whose": f" ({long})",
        "room_minor": 10**12,
    }
    broken = [BrokenRule(ABOVE_MAXIMUM, long, rule)] * 60
    fields = [FieldViolation(long, "string.pattern", long)] * 60
    facts = dict.fromkeys(
        (*FACTS, "place", "would_be_minor", "allowed_minor", "whose", "room_minor"), long
    )
    for refused in (
        Refused(ABOVE_MAXIMUM, facts, broken=broken),
        Refused(errors.INVALID_REQUEST, fields=fields),
    ):
        status = status_of(refused)
        text = len(status.message.encode()) * 3  # as gRPC escapes it at worst
        assert len(status.SerializeToString()) + text < TRAILER_BYTES
        assert info(status).metadata["violations"] == "60"


def test_the_document_is_what_the_catalogue_says() -> None:
    assert (ROOT / "docs/errors.md").read_text() == document(), (
        "run `python -m services.cli.errors_doc`"
    )
