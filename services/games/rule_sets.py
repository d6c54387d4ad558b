"""Rule sets as data: how they are built and named, and how they are read."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from sabot.rules.v1 import rule_set_pb2
from services.games.bets import Pays
from services.games.money import Rounding
from services.games.odds import NO_COMMISSION, Odds

ROUNDINGS = {
    Rounding.DOWN: rule_set_pb2.ROUNDING_DOWN,
    Rounding.HALF_EVEN: rule_set_pb2.ROUNDING_HALF_EVEN,
    Rounding.HALF_UP: rule_set_pb2.ROUNDING_HALF_UP,
}
ROUNDINGS_BACK = {number: rounding for rounding, number in ROUNDINGS.items()}


def hash_of(rule_set: rule_set_pb2.RuleSet) -> bytes:
    """SHA-256 of a rule set with its hash left empty."""
    bare = rule_set_pb2.RuleSet()
    bare.CopyFrom(rule_set)
    bare.ClearField("hash")
    return hashlib.sha256(bare.SerializeToString(deterministic=True)).digest()


def named(rule_set: rule_set_pb2.RuleSet) -> rule_set_pb2.RuleSet:
    """The same rule set, with the hash that it has now."""
    rule_set.hash = hash_of(rule_set)
    return rule_set


def offers(
    paytable: Mapping[str, Pays],
    *,
    commission: Mapping[str, Odds] | None = None,
    until_round: Mapping[str, int] | None = None,
    edges: Mapping[str, str] | None = None,
) -> list[rule_set_pb2.BetOffer]:
    """The bets of a paytable as a rule set holds them, by bet id; pay lines by line id."""
    found: list[rule_set_pb2.BetOffer] = []
    for bet, pays in sorted(paytable.items()):
        offer = rule_set_pb2.BetOffer(
            bet=bet,
            until_round=(until_round or {}).get(bet, 0),
            edge=(edges or {}).get(bet, ""),
        )
        if isinstance(pays, dict):
            offer.lines.extend(
                rule_set_pb2.PayLine(line=line, pays=odds_proto(odds))
                for line, odds in sorted(pays.items())
            )
        else:
            offer.pays.CopyFrom(odds_proto(pays))
        if commission and bet in commission:
            offer.commission.CopyFrom(odds_proto(commission[bet]))
        found.append(offer)
    return found


def odds_proto(odds: Odds) -> rule_set_pb2.Odds:
    """Odds as a rule set holds them."""
    return rule_set_pb2.Odds(numerator=odds.numerator, denominator=odds.denominator)


def rounding_of(rule_set: rule_set_pb2.RuleSet) -> Rounding:
    """How a rule set decides fractions of a minor unit."""
    return ROUNDINGS_BACK[rule_set.rounding]


def odds_of(offer: rule_set_pb2.BetOffer) -> Odds:
    """What a win pays before commission, where all wins pay the same."""
    return Odds(offer.pays.numerator, offer.pays.denominator)


def lines_of(offer: rule_set_pb2.BetOffer) -> dict[str, Odds]:
    """What each way of winning pays before commission; the only one has no id."""
    if not offer.lines:
        return {"": odds_of(offer)}
    return {one.line: Odds(one.pays.numerator, one.pays.denominator) for one in offer.lines}


def line_of(offer: rule_set_pb2.BetOffer, line: str) -> Odds | None:
    """What a win by this pay line pays before commission; None where the offer has no such line."""
    return lines_of(offer).get(line)


def commission_of(offer: rule_set_pb2.BetOffer) -> Odds:
    """The commission on the winnings."""
    if not offer.HasField("commission"):
        return NO_COMMISSION
    return Odds(offer.commission.numerator, offer.commission.denominator)
