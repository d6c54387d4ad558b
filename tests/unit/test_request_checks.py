"""What every request is held against before a servicer sees it, beside the rules of its proto."""

from __future__ import annotations

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from sabot.shoe.v1 import floor_service_pb2 as floors
from sabot.table.v1 import operator_service_pb2 as operators
from sabot.wallet.v1 import ledger_service_pb2 as ledgers
from services.kernel.checks import checker
from services.kernel.errors import INVALID_REQUEST, Refused

FIRST, LAST = (
    Timestamp(seconds=-62_135_596_800),
    Timestamp(seconds=253_402_300_799, nanos=999_999_999),
)
NO_TIMES = [
    Timestamp(seconds=2**63 - 1),
    Timestamp(seconds=-(2**63)),
    Timestamp(seconds=FIRST.seconds - 1),
    Timestamp(seconds=LAST.seconds + 1),
    Timestamp(seconds=1, nanos=-1),
    Timestamp(seconds=1, nanos=1_000_000_000),
]
REQUEST_ID = "01a22e67-ab58-7dae-9f7e-c828cf124ab9"


def told_card(time: Timestamp) -> floors.RecordCardRequest:
    return floors.RecordCardRequest(
        request_id=REQUEST_ID, table_id="t", shoe_id="s", card="AS", device_time=time
    )


def refused_fields(request: floors.RecordCardRequest | ledgers.GetDigestRequest) -> list[str]:
    with pytest.raises(Refused) as refused:
        checker(type(request))(request.SerializeToString())
    assert refused.value.reason is INVALID_REQUEST
    assert {field.rule for field in refused.value.fields} == {"timestamp.range"}
    return [field.field for field in refused.value.fields]


@pytest.mark.parametrize("time", NO_TIMES, ids=str)
def test_a_time_that_cannot_be_is_refused_by_its_field(time: Timestamp) -> None:
    assert refused_fields(told_card(time)) == ["device_time"]
    both = ledgers.GetDigestRequest(currency_code="EUR", from_time=time, to_time=time)
    assert refused_fields(both) == ["from_time", "to_time"]


@pytest.mark.parametrize("time", [FIRST, Timestamp(), LAST], ids=str)
def test_every_time_that_can_be_goes_through(time: Timestamp) -> None:
    told = told_card(time)
    assert checker(floors.RecordCardRequest)(told.SerializeToString()) == told
    assert time.ToMicroseconds() >= FIRST.ToMicroseconds()


def test_a_time_that_is_not_said_is_none() -> None:
    order = operators.CloseBettingRequest(request_id=REQUEST_ID, table_id="t", round_id="r")
    assert checker(operators.CloseBettingRequest)(order.SerializeToString()) == order
