"""All event types of a cell's log: every reader of a log must know them all."""

from __future__ import annotations

from google.protobuf.message_factory import GetMessageClass

from sabot.audit.v1 import events_pb2 as audit
from sabot.limits.v1 import events_pb2 as limits
from sabot.rules.v1 import events_pb2 as rules
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.shoe.v1 import floor_events_pb2 as shoe_floor
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import floor_events_pb2 as table_floor
from sabot.wallet.v1 import events_pb2 as wallet
from services.kernel.entry import EventTypes

SERVICES = ("table", "limits", "wallet", "shoe", "rules", "settlement", "audit")
"""The services of a fleet, in the order of a bet's path."""


def event_types() -> EventTypes:
    """Every message of every service's `events.proto`, and of `floor_events.proto`."""
    modules = (table, table_floor, limits, wallet, shoe, shoe_floor, rules, settlement, audit)
    return EventTypes(
        GetMessageClass(descriptor)
        for module in modules
        for descriptor in module.DESCRIPTOR.message_types_by_name.values()
    )
