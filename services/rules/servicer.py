"""RulesService: the rule sets that tables may be opened with."""

from __future__ import annotations

from collections.abc import Iterable

from sabot.rules.v1 import rule_set_pb2
from sabot.rules.v1 import rules_service_pb2 as rules
from services.games.catalogue import all_rule_sets
from services.games.rule_set_faults import rule_set_faults
from services.kernel.call import EVERY_ROLE, Call, rpc
from services.kernel.errors import Refused
from services.refusals.table import BAD_RULE_SET, RULE_SET_NOT_FOUND
from services.rules.pages.page import page

ENGLISH = "en"
MAX_DETAIL = 2000
"""Characters of what is wrong with a rule set: enough for a person to begin with."""


class RulesServicer:
    """Answers from the rule sets of this build."""

    def __init__(self, rule_sets: Iterable[rule_set_pb2.RuleSet] | None = None) -> None:
        known = all_rule_sets() if rule_sets is None else rule_sets
        self._rule_sets = {rule_set.rule_set_id: rule_set for rule_set in known}

    @rpc(partners=True, roles=EVERY_ROLE)
    async def get_rule_set(
        self, request: rules.GetRuleSetRequest, call: Call
    ) -> rules.GetRuleSetResponse:
        """One rule set."""
        del call
        found = self._rule_sets.get(request.rule_set_id)
        if found is None:
            raise Refused(RULE_SET_NOT_FOUND, {"rule_set_id": request.rule_set_id})
        return rules.GetRuleSetResponse(rule_set=found)

    @rpc(partners=True, roles=EVERY_ROLE)
    async def list_rule_sets(
        self, request: rules.ListRuleSetsRequest, call: Call
    ) -> rules.ListRuleSetsResponse:
        """All of them, by id."""
        del request, call
        return rules.ListRuleSetsResponse(
            rule_sets=[rule_set for _, rule_set in sorted(self._rule_sets.items())]
        )

    @rpc(partners=True, roles=EVERY_ROLE)
    async def get_rules_page(
        self, request: rules.GetRulesPageRequest, call: Call
    ) -> rules.GetRulesPageResponse:
        """A rule set for people."""
        del call
        if request.WhichOneof("of") == "rule_set":
            rule_set = request.rule_set
            faults = rule_set_faults(rule_set)
            if faults:
                raise Refused(BAD_RULE_SET, {"detail": "; ".join(faults)[:MAX_DETAIL]})
        else:
            found = self._rule_sets.get(request.rule_set_id)
            if found is None:
                raise Refused(RULE_SET_NOT_FOUND, {"rule_set_id": request.rule_set_id})
            rule_set = found
        language = request.language or ENGLISH
        return rules.GetRulesPageResponse(
            text=page(rule_set, language), language=language, rule_set_hash=rule_set.hash
        )
