"""What a partner may be shown of a log (VIS-1 to VIS-4): of every type of event that there is."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from sabot.audit.v1 import events_pb2 as audit
from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1 import events_pb2 as log
from sabot.rules.v1 import events_pb2 as rules
from sabot.settlement.v1 import events_pb2 as settlements
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as floor_shoes
from sabot.table.v1 import events_pb2 as tables
from sabot.table.v1 import floor_events_pb2 as floor_tables
from sabot.wallet.v1 import events_pb2 as wallets
from services.cli.partner_view import OPEN_TO_ALL, REPLIES, may_see
from services.events import event_types
from services.kernel.event import Event, Position

TYPES = event_types()
NORTH, SOUTH = "north", "south"


def event(body: Message, partner: str = "") -> Event:
    return Event(
        position=Position(1, 1, 0),
        service="table",
        is_input=False,
        body=body,
        cause=None,
        partner=partner,
        actor="",
        time_us=0,
        behaviour=1,
    )


def every_type() -> list[type[Message]]:
    files: tuple[Any, ...] = (audit, limits, log, rules, settlements, shoes, floor_shoes)
    files += (tables, floor_tables, wallets)
    kinds = [
        GetMessageClass(descriptor)
        for file in files
        for descriptor in file.DESCRIPTOR.message_types_by_name.values()
        if descriptor is not log.AttestedPart.DESCRIPTOR  # a part of an event, none itself
    ]
    assert all(kind.DESCRIPTOR.full_name in TYPES for kind in kinds)
    return kinds


def test_what_names_nobody_and_is_not_listed_is_shown_to_nobody() -> None:
    for body in [kind() for kind in every_type()]:
        fields = body.DESCRIPTOR.fields_by_name
        if type(body) in OPEN_TO_ALL | REPLIES or "account_id" in fields:
            continue
        assert not may_see(NORTH, event(body), TYPES), type(body)
        assert not may_see(NORTH, event(body, NORTH), TYPES), type(body)


@pytest.mark.parametrize(
    "body",
    [
        rules.InsuranceOffered(seats=[1, 2]),
        rules.ActionCalled(seat=1, max_double_minor=500),
        shoes.CardsBurned(),
        shoes.OpenCards(),
        shoes.RevealShoe(),
        tables.PlaceBets(account_id="ann"),
        wallets.PayoutPosted(account_id="ann", partner_id=SOUTH),
    ],
    ids=lambda body: str(body.DESCRIPTOR.name),
)
def test_stakes_hidden_cards_and_others_accounts_are_not_shown(body: Message) -> None:
    """Not even where the partner itself set it off: the last seat's action does, for all seats."""
    assert not may_see(NORTH, event(body), TYPES)
    if "account_id" not in body.DESCRIPTOR.fields_by_name:
        assert not may_see(NORTH, event(body, NORTH), TYPES)


def test_nothing_open_to_all_holds_an_account_or_a_stake() -> None:
    for kind in OPEN_TO_ALL:
        names = set(kind.DESCRIPTOR.fields_by_name)
        assert not {name for name in names if "account" in name or "stake" in name}, kind


def test_its_own_accounts_and_what_lies_open_are_shown() -> None:
    assert may_see(NORTH, event(tables.PlaceBets(account_id="ann"), NORTH), TYPES)
    paid = wallets.PayoutPosted(account_id="ann", partner_id=NORTH)
    assert may_see(NORTH, event(paid), TYPES)
    assert may_see(NORTH, event(shoes.CardsDealt()), TYPES)
    assert not may_see(NORTH, event(shoes.CardsDealt(), SOUTH), TYPES)


def test_a_failure_is_shown_as_what_failed_is() -> None:
    def failed(body: Message) -> log.InputFailed:
        return log.InputFailed(
            input_type=body.DESCRIPTOR.full_name, input_body=body.SerializeToString()
        )

    mine = tables.PlaceBets(account_id="ann")
    assert may_see(NORTH, event(failed(mine), NORTH), TYPES)
    assert not may_see(NORTH, event(failed(mine)), TYPES)
    assert not may_see(NORTH, event(failed(rules.InsuranceOffered()), NORTH), TYPES)
