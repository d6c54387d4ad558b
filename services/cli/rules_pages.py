"""`sabot rules`: the rule sets of this build, for people and for programs."""

from __future__ import annotations

from typing import Any

from google.protobuf.json_format import MessageToDict

from sabot.rules.v1 import rule_set_pb2
from services.games.catalogue import all_rule_sets
from services.rules.pages.page import WORDS, page

LANGUAGES = tuple(WORDS)


class UnknownRuleSet(LookupError):
    """There is no such rule set; the message names those that there are."""


def rule_set(rule_set_id: str) -> rule_set_pb2.RuleSet:
    """A rule set by its id; `sicbo` means the usual one of its kind. Raises UnknownRuleSet."""
    known = {one.rule_set_id: one for one in all_rule_sets()}
    found = known.get(_USUAL.get(rule_set_id, rule_set_id))
    if found is None:
        raise UnknownRuleSet(f"no rule set {rule_set_id!r}; there are {', '.join(known)}")
    return found


_USUAL = {"sicbo": "sicbo_atlantic_city"}


def page_of(rule_set_id: str, language: str) -> str:
    """The page of a rule set. Raises UnknownRuleSet."""
    return page(rule_set(rule_set_id), language)


def listed() -> list[str]:
    """One line for each rule set."""
    return [
        f"{one.rule_set_id:22} version {one.version}  {len(one.bets):2} bets  {one.hash.hex()}"
        for one in all_rule_sets()
    ]


def as_json(rule_set_id: str) -> Any:
    """A rule set as protobuf's JSON. Raises UnknownRuleSet."""
    return MessageToDict(rule_set(rule_set_id), preserving_proto_field_name=True)
