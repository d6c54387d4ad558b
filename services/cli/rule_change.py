"""Another rule set for a table, as a person asks for it: an id, and `option=value` for what shall
differ from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from sabot.rules.v1 import rule_set_pb2
from sabot.table.v1 import spec_pb2
from services.cli.moments import is_number
from services.cli.rules_pages import UnknownRuleSet, rule_set
from services.games.odds import Odds
from services.games.rule_set_faults import table_faults
from services.games.rule_sets import named, odds_proto

YES, NO = frozenset({"yes", "true", "1"}), frozenset({"no", "false", "0"})
OPTIONS = ("baccarat", "blackjack", "roulette", "two_cards")


class RulesRefused(Exception):
    """No table can be opened with what was asked for."""


def changed_spec(
    spec: spec_pb2.TableSpec, rule_set_id: str, options: Sequence[str]
) -> spec_pb2.TableSpec:
    """A table's specification under another rule set. One of the same id begins as the table has
    it. Bets without a limit at the table are not offered. Raises RulesRefused."""
    changed = spec_pb2.TableSpec()
    changed.CopyFrom(spec)
    wanted = changed.rule_set
    if rule_set_id != wanted.rule_set_id:
        try:
            wanted.CopyFrom(rule_set(rule_set_id))
        except UnknownRuleSet as error:
            raise RulesRefused(str(error)) from error
        limited = {limit.bet for limit in spec.limits}
        offered = [offer for offer in wanted.bets if offer.bet in limited]
        del wanted.bets[:]
        wanted.bets.extend(offered)
        kept = [limit for limit in spec.limits if limit.bet in {one.bet for one in offered}]
        del changed.limits[:]
        changed.limits.extend(kept)
    for option in options:
        _change(wanted, option)
    if options:
        for offer in wanted.bets:
            offer.edge = ""  # It is declared of the published rules alone.
    named(wanted)
    faults = table_faults(changed)
    if faults:
        raise RulesRefused("; ".join(faults))
    return changed


def _change(wanted: rule_set_pb2.RuleSet, option: str) -> None:
    name, equals, value = option.partition("=")
    if not equals or not value:
        raise RulesRefused(f"{option!r} is no option; write NAME=VALUE")
    bet = name.removesuffix("_pays")
    for offer in wanted.bets:
        if name != bet and offer.bet == bet and not offer.lines:
            offer.pays.CopyFrom(odds_proto(_odds(value)))
            return
    own = wanted.WhichOneof("options")
    for message in [wanted, *([getattr(wanted, own)] if own else [])]:
        field = message.DESCRIPTOR.fields_by_name.get(name)
        if field is not None and field.message_type is None and not field.is_repeated:
            setattr(message, name, _value(field, value))
            return
    pays = ", ".join(f"{offer.bet}_pays" for offer in wanted.bets if not offer.lines)
    raise RulesRefused(f"{wanted.rule_set_id} has no option {name!r}; {pays}, rounding, … are some")


def _odds(text: str) -> Odds:
    parts = text.split(":")
    if len(parts) > 2 or not all(is_number(part) and int(part) < 1 << 31 for part in parts):
        raise RulesRefused(f"{text!r} are no odds; write 9 or 9:1")
    numerator, denominator = int(parts[0]), int(parts[1]) if len(parts) == 2 else 1
    if not numerator or not denominator:
        raise RulesRefused(f"{text!r} are no odds; write 9 or 9:1")
    return Odds(numerator, denominator)


def _value(field: FieldDescriptor, text: str) -> Any:
    name = field.name
    if field.enum_type is not None:
        values = {one.name: one.number for one in field.enum_type.values if one.number}
        first = field.enum_type.values[0].name.removesuffix("UNSPECIFIED")
        known = {full.removeprefix(first).lower(): number for full, number in values.items()}
        if text.lower() not in known:
            raise RulesRefused(f"{name} is one of {', '.join(known)}, not {text!r}")
        return known[text.lower()]
    if field.type == FieldDescriptor.TYPE_BOOL:
        if text.lower() not in YES | NO:
            raise RulesRefused(f"{name} is yes or no, not {text!r}")
        return text.lower() in YES
    if field.type in {FieldDescriptor.TYPE_UINT32, FieldDescriptor.TYPE_INT32}:
        if not (is_number(text) and int(text) < 1 << 31):
            raise RulesRefused(f"{name} is a number, not {text!r}")
        return int(text)
    raise RulesRefused(f"{name} cannot be chosen")
