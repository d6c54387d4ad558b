"""What is switched off: no new bets are taken and no new rounds open for it. Rounds that run are
played to their end; their withdrawals and actions, settlement and payouts go on.

Everything, a game and a version of rules stop tables: neither bets nor rounds. A partner and an
account stop bets.
"""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.message import Message

from sabot.rules.v1 import rule_set_pb2
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import switch_events_pb2 as orders
from sabot.table.v1 import switch_pb2 as switches
from services.kernel.event import Event
from services.table.domain.state import SwitchedOff, SwitchKey, Table, TableState

MAX_SWITCHES = 10_000
"""Switches that are off at once: whoever needs more switches off a partner or a game."""
HASH_BYTES = 32

ALL: SwitchKey = (switches.SWITCH_SCOPE_ALL, "", "")


def key_of(switch: switches.Switch) -> SwitchKey:
    """What tells one switch from another."""
    match switch.scope:
        case switches.SWITCH_SCOPE_GAME:
            return (switch.scope, str(switch.game), "")
        case switches.SWITCH_SCOPE_RULE_SET:
            return (switch.scope, switch.rule_set_hash.hex(), "")
        case switches.SWITCH_SCOPE_PARTNER:
            return (switch.scope, switch.partner_id, "")
        case switches.SWITCH_SCOPE_ACCOUNT:
            return (switch.scope, switch.partner_id, switch.account_id)
        case _:
            return (switch.scope, "", "")


def switch_of(key: SwitchKey) -> switches.Switch:
    """The switch of a key."""
    scope, name, account_id = key
    switch = switches.Switch(scope=switches.SwitchScope.ValueType(scope), account_id=account_id)
    if scope == switches.SWITCH_SCOPE_GAME:
        switch.game = rule_set_pb2.Game.ValueType(int(name))
    elif scope == switches.SWITCH_SCOPE_RULE_SET:
        switch.rule_set_hash = bytes.fromhex(name)
    elif scope in (switches.SWITCH_SCOPE_PARTNER, switches.SWITCH_SCOPE_ACCOUNT):
        switch.partner_id = name
    return switch


def fault_of(switch: switches.Switch) -> str:
    """What is wrong with a switch that is asked for; empty: nothing."""
    scopes = switches.SwitchScope.values()
    if not switch.scope or switch.scope not in scopes:
        return "what is to be switched is not named"
    if switch != switch_of(key_of(switch)):
        return "it names more than one thing"
    match switch.scope:
        case switches.SWITCH_SCOPE_GAME:
            known = bool(switch.game) and switch.game in rule_set_pb2.Game.values()
            return "" if known else "the game is not known"
        case switches.SWITCH_SCOPE_RULE_SET:
            whole = len(switch.rule_set_hash) == HASH_BYTES
            return "" if whole else "the hash of a rule set has 32 bytes"
        case switches.SWITCH_SCOPE_PARTNER:
            return "" if switch.partner_id else "the partner is not named"
        case switches.SWITCH_SCOPE_ACCOUNT:
            named = switch.partner_id and switch.account_id
            return "" if named else "the account and its partner are not named"
        case _:
            return ""


def table_off(state: TableState, one: Table) -> switches.Switch | None:
    """What stops a table, the widest first; None: nothing."""
    return _first(state, _of_table(one)) if state.switches else None


def bets_off(
    state: TableState, one: Table, partner: str, account_id: str
) -> switches.Switch | None:
    """What stops an account's bets at a table, the widest first; None: nothing."""
    if not state.switches:
        return None
    return table_off(state, one) or _first(state, _of_account(partner, account_id))


def _of_table(one: Table) -> Iterator[SwitchKey]:
    rule_set = one.spec.rule_set
    yield ALL
    yield (switches.SWITCH_SCOPE_GAME, str(rule_set.game), "")
    yield (switches.SWITCH_SCOPE_RULE_SET, rule_set.hash.hex(), "")


def _of_account(partner: str, account_id: str) -> Iterator[SwitchKey]:
    yield (switches.SWITCH_SCOPE_PARTNER, partner, "")
    yield (switches.SWITCH_SCOPE_ACCOUNT, partner, account_id)


def _first(state: TableState, keys: Iterator[SwitchKey]) -> switches.Switch | None:
    found = next((key for key in keys if key in state.switches), None)
    return None if found is None else switch_of(found)


def decide_switch(state: TableState, body: orders.SetSwitch) -> Message:
    """Order of refusals: BAD_SWITCH, SWITCH_UNCHANGED, TOO_MANY_SWITCHES."""
    fault = fault_of(body.switch)
    if fault:
        return _refused(body, table.REFUSAL_BAD_SWITCH, fault)
    if (key_of(body.switch) in state.switches) == body.off:
        return _refused(body, table.REFUSAL_SWITCH_UNCHANGED)
    if body.off and len(state.switches) >= MAX_SWITCHES:
        return _refused(body, table.REFUSAL_TOO_MANY_SWITCHES)
    return orders.SwitchSet(switch=body.switch, off=body.off, reason=body.reason)


def _refused(
    body: orders.SetSwitch, refusal: table.Refusal.ValueType, detail: str = ""
) -> table.OrderRejected:
    return table.OrderRejected(
        request_id=body.request_id, refusal=refusal, detail=detail, off=body.switch
    )


def note_switch(state: TableState, event: Event, body: orders.SwitchSet) -> None:
    """Something is off, or on again. Part of evolve."""
    key = key_of(body.switch)
    if body.off:
        state.switches[key] = SwitchedOff(body.reason, event.actor, event.time_us)
    else:
        state.switches.pop(key, None)
