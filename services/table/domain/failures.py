"""Which table a failed decision concerned."""

from __future__ import annotations

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1 import events_pb2 as log
from sabot.rules.v1 import events_pb2 as rules
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.shoe.v1 import floor_events_pb2 as shoe_floor
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import floor_events_pb2 as table_floor
from sabot.wallet.v1 import events_pb2 as wallet


def _types() -> dict[str, type[Message]]:
    files = (limits, rules, settlement, shoe, shoe_floor, table, table_floor, wallet)
    found: dict[str, type[Message]] = {}
    for file in files:
        descriptors: list[Descriptor] = list(file.DESCRIPTOR.message_types_by_name.values())
        for descriptor in descriptors:
            if {"table_id", "spec"} & set(descriptor.fields_by_name):
                found[str(descriptor.full_name)] = GetMessageClass(descriptor)
    return found


_TYPES = _types()
"""Every event that names a table, by full name."""


def accepted_of_failure(failed: log.InputFailed) -> table.ResultAccepted | None:
    """The result whose settlement failed, if that is what failed."""
    if failed.input_type != table.ResultAccepted.DESCRIPTOR.full_name:
        return None
    try:
        return table.ResultAccepted.FromString(failed.input_body)
    except DecodeError:
        return None


def table_of_failure(failed: log.InputFailed) -> str:
    """The table that a failed input or answer names; empty where it names none."""
    body_type = _TYPES.get(failed.input_type)
    if body_type is None:
        return ""
    try:
        body = body_type.FromString(failed.input_body)
    except DecodeError:
        return ""
    if isinstance(body, table.OpenTable | table.TableOpened):
        return body.spec.table_id
    return str(getattr(body, "table_id", ""))
