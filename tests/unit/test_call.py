"""Tokens and hashes that callers meet."""

from __future__ import annotations

import pytest

from sabot.table.v1 import events_pb2 as tables
from services.kernel.call import position_from_text, request_hash
from services.kernel.errors import RESUME_TOKEN_INVALID, Refused
from services.kernel.event import Position


def test_a_position_comes_back_out_of_its_text() -> None:
    assert position_from_text("1/5/3", RESUME_TOKEN_INVALID) == Position(1, 5, 3)


@pytest.mark.parametrize(
    "text",
    ["", "1/2", "1/2/3/4", "a/2/3", "1/-2/3", "1/9223372036854775808/0", f"1/{'9' * 300}/0",
     "1099511627776/1/0"],
)  # fmt: skip
def test_what_no_log_can_hold_is_no_position(text: str) -> None:
    with pytest.raises(Refused):
        position_from_text(text, RESUME_TOKEN_INVALID)


def test_a_hash_says_what_is_asked_for_too() -> None:
    kinds = (tables.SuspendRound, tables.ResumeRound, tables.VoidRound)
    orders = [kind(request_id="r", table_id="t", round_id="t-1") for kind in kinds]
    assert len({request_hash(order) for order in orders}) == 3
