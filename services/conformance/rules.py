"""From what a case says of its rules to a rule set of the catalogue, and to a table under it."""

from __future__ import annotations

from sabot.rules.v1 import rule_set_pb2
from sabot.table.v1 import spec_pb2
from services.conformance.cases import Limits, Rules
from services.games.catalogue import all_rule_sets
from services.games.money import MAX_STAKE_MINOR, Rounding
from services.games.odds import Odds
from services.games.rule_set_faults import table_faults
from services.games.rule_sets import ROUNDINGS, lines_of, named, odds_proto

TABLE_ID = "t1"
CURRENCY = "EUR"
ANYTHING = Limits({"default": (1, MAX_STAKE_MINOR)}, max_difference=MAX_STAKE_MINOR)
"""The limits of a table where any stake may be placed, and Player and Banker together: rounds do
not say what their tables allow, only that nobody breaks it."""

_ACES = {"low": rule_set_pb2.ACE_RANK_LOW, "high": rule_set_pb2.ACE_RANK_HIGH}
_PEEKS = {
    "ace_only": rule_set_pb2.PEEK_ACE_ONLY,
    "both": rule_set_pb2.PEEK_BOTH,
    "none": rule_set_pb2.PEEK_NONE,
}
_ROUNDINGS = {
    "down": Rounding.DOWN,
    "half_even": Rounding.HALF_EVEN,
    "half_up": Rounding.HALF_UP,
}


class NotOffered(Exception):
    """No table of this product plays by what the case asks for."""


def rule_set_of(rules: Rules) -> rule_set_pb2.RuleSet:
    """The rule set that a case is played by. Raises NotOffered."""
    by_id = {one.rule_set_id: one for one in all_rule_sets()}
    default = by_id.get(rules.rule_set_id)
    if default is None:
        raise NotOffered(f"there is no rule set {rules.rule_set_id}")
    for option, told, ours in rules.must_be:
        if told != ours:
            raise NotOffered(f"{option} is {ours!r} and cannot be {told!r}")
    rule_set = rule_set_pb2.RuleSet()
    rule_set.CopyFrom(default)
    if rules.tie_pays is not None:
        _pay(rule_set, "tie", rules.tie_pays)
    if rules.suited_tie_pays is not None:
        _pay(rule_set, "suited_tie", rules.suited_tie_pays)
    if rules.ace is not None:
        rule_set.two_cards.ace = _ACES[rules.ace]
    if rules.peek is not None:
        rule_set.blackjack.peek = _PEEKS[rules.peek]
    if rules.one_card_to_split_aces is not None:
        rule_set.blackjack.one_card_on_split_aces = rules.one_card_to_split_aces
    if rules.la_partage:
        rule_set.roulette.la_partage = True
    if rules.decks is not None:
        rule_set.decks = rules.decks
    if rule_set != default:
        for offer in rule_set.bets:
            offer.edge = ""  # It is declared of the published rules alone.
    if rules.rounding is not None:
        rule_set.rounding = ROUNDINGS[_ROUNDINGS[rules.rounding]]
    for bet, line, pays in rules.must_pay:
        _must_pay(rule_set, bet, line, pays)
    return named(rule_set)


def spec_of(rules: Rules, limits: Limits = ANYTHING) -> spec_pb2.TableSpec:
    """A table as the case describes it. Raises NotOffered."""
    rule_set = rule_set_of(rules)
    restrictions = spec_pb2.Restrictions(
        max_account_minor=limits.max_account, max_exposure_minor=limits.max_exposure
    )
    if rule_set.game == rule_set_pb2.GAME_BACCARAT:
        restrictions.max_difference_minor = limits.max_difference
    elif rule_set.game == rule_set_pb2.GAME_ROULETTE:
        restrictions.max_numbers = limits.max_numbers
    spec = spec_pb2.TableSpec(
        table_id=TABLE_ID,
        currency_code=CURRENCY,
        rule_set=rule_set,
        limits=[_limit(limits, offer.bet) for offer in rule_set.bets],
        pacing=spec_pb2.Pacing(),
        restrictions=restrictions,
    )
    faults = table_faults(spec)
    if faults:
        raise NotOffered("; ".join(faults))
    return spec


def _limit(limits: Limits, bet: str) -> spec_pb2.BetLimit:
    low, high = limits.by_bet.get(bet, limits.by_bet["default"])
    return spec_pb2.BetLimit(bet=bet, min_minor=low, max_minor=high, step_minor=limits.step)


def _pay(rule_set: rule_set_pb2.RuleSet, bet: str, pays: int) -> None:
    """Let a bet pay so much to one."""
    for offer in rule_set.bets:
        if offer.bet == bet:
            offer.pays.CopyFrom(odds_proto(Odds(pays, 1)))
            return
    raise NotOffered(f"{rule_set.rule_set_id} has no bet {bet}")


def _must_pay(rule_set: rule_set_pb2.RuleSet, bet: str, line: str, pays: int) -> None:
    for offer in rule_set.bets:
        if offer.bet == bet:
            ours = lines_of(offer).get(line)
            if ours != Odds(pays, 1):
                raise NotOffered(
                    f"{rule_set.rule_set_id}: {bet} {line}".rstrip()
                    + f" pays {ours} and cannot pay {pays}:1"
                )
            return
    raise NotOffered(f"{rule_set.rule_set_id} has no bet {bet}")
