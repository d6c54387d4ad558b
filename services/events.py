"""All event types of a cell's log: every reader of a log must know them all."""

from __future__ import annotations

from google.protobuf.message_factory import GetMessageClass

from sabot.audit.v1 import contest_events_pb2 as audit_contests
from sabot.audit.v1 import correction_events_pb2 as audit_corrections
from sabot.audit.v1 import events_pb2 as audit
from sabot.audit.v1 import significant_events_pb2 as audit_significant
from sabot.limits.v1 import events_pb2 as limits
from sabot.limits.v1 import protection_events_pb2 as protection
from sabot.rules.v1 import events_pb2 as rules
from sabot.settlement.v1 import correction_events_pb2 as settlement_corrections
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.shoe.v1 import floor_events_pb2 as shoe_floor
from sabot.table.v1 import correction_events_pb2 as table_corrections
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import floor_events_pb2 as table_floor
from sabot.table.v1 import risk_events_pb2 as table_risk
from sabot.table.v1 import switch_events_pb2 as table_switches
from sabot.wallet.v1 import correction_events_pb2 as wallet_corrections
from sabot.wallet.v1 import events_pb2 as wallet
from sabot.wallet.v1 import seamless_events_pb2 as wallet_seamless
from services.kernel.entry import EventTypes

SERVICES = ("table", "limits", "wallet", "shoe", "rules", "settlement", "audit")
"""The services of a fleet, in the order of a bet's path."""


def event_types() -> EventTypes:
    """Every message of every service's `events.proto`, and of the files beside them."""
    tables = (table, table_floor, table_risk, table_corrections, table_switches)
    shoes = (shoe, shoe_floor)
    wallets = (wallet, wallet_seamless, wallet_corrections)
    others = (rules, settlement, settlement_corrections, audit, audit_corrections)
    audits = (audit_significant, audit_contests)
    modules = (*tables, limits, protection, *wallets, *shoes, *others, *audits)
    return EventTypes(
        GetMessageClass(descriptor)
        for module in modules
        for descriptor in module.DESCRIPTOR.message_types_by_name.values()
    )
