"""Rule sets as data: how they are built, named and checked, and what opening a table warns of."""

from __future__ import annotations

import hashlib

from sabot.rules.v1 import rule_set_pb2
from sabot.table.v1 import spec_pb2
from services.games.cards import CARDS_PER_DECK
from services.games.currencies import EXPONENTS
from services.games.money import MAX_STAKE_MINOR, Rounding
from services.games.odds import NO_COMMISSION, Odds, whole_step

BACCARAT = "baccarat"
BACCARAT_VERSION = 1
DEFAULT_DECKS = 8
DEFAULT_CUT_DEPTH = 7
MAX_DECKS = 8
MIN_CUT_DEPTH = 6
"""A round takes at most six cards, and the last round begins before the cut card (rule BAC-3)."""
MIN_CUT_DEPTH_ROUND_AFTER = 12
"""Two rounds' worth, where one more follows the round of the cut card (rule BAC-3)."""
CARDS_BEFORE_CUT = 12
"""A shoe's start may take eleven cards (rule BAC-2); at least one is left for the first round."""
MAX_TIE_PAYS = 1000
"""Tie is configurable (rule BAC-24); a greater number is a slip of the pen."""
MAX_WINDOW_MS = 600_000
"""Ten minutes: longer, and an operator should close betting."""

_ROUNDINGS = {
    Rounding.DOWN: rule_set_pb2.ROUNDING_DOWN,
    Rounding.HALF_EVEN: rule_set_pb2.ROUNDING_HALF_EVEN,
    Rounding.HALF_UP: rule_set_pb2.ROUNDING_HALF_UP,
}
_ROUNDINGS_BACK = {number: rounding for rounding, number in _ROUNDINGS.items()}


def hash_of(rule_set: rule_set_pb2.RuleSet) -> bytes:
    """SHA-256 of a rule set with its hash left empty."""
    bare = rule_set_pb2.RuleSet()
    bare.CopyFrom(rule_set)
    bare.ClearField("hash")
    return hashlib.sha256(bare.SerializeToString(deterministic=True)).digest()


def baccarat(
    *,
    tie_pays: int = 8,
    rounding: Rounding = Rounding.DOWN,
    decks: int = DEFAULT_DECKS,
    cut_depth: int = DEFAULT_CUT_DEPTH,
    rounds_after_cut: int = 0,
) -> rule_set_pb2.RuleSet:
    """Punto banco with Player, Banker at 5 % commission, and Tie (rules BAC-20, BAC-21, BAC-24)."""
    evens = rule_set_pb2.Odds(numerator=1, denominator=1)
    rule_set = rule_set_pb2.RuleSet(
        rule_set_id=BACCARAT,
        version=BACCARAT_VERSION,
        game=rule_set_pb2.GAME_BACCARAT,
        bets=[
            rule_set_pb2.BetOffer(
                bet="banker",
                pays=evens,
                commission=rule_set_pb2.Odds(numerator=1, denominator=20),
            ),
            rule_set_pb2.BetOffer(bet="player", pays=evens),
            rule_set_pb2.BetOffer(
                bet="tie", pays=rule_set_pb2.Odds(numerator=tie_pays, denominator=1)
            ),
        ],
        rounding=_ROUNDINGS[rounding],
        decks=decks,
        cut_depth=cut_depth,
        rounds_after_cut=rounds_after_cut,
    )
    rule_set.hash = hash_of(rule_set)
    return rule_set


def all_rule_sets() -> tuple[rule_set_pb2.RuleSet, ...]:
    """The newest version of each rule set with its default options, by id."""
    return (baccarat(),)


def rounding_of(rule_set: rule_set_pb2.RuleSet) -> Rounding:
    """How a rule set decides fractions of a minor unit."""
    return _ROUNDINGS_BACK[rule_set.rounding]


def odds_of(offer: rule_set_pb2.BetOffer) -> Odds:
    """What a win pays before commission."""
    return Odds(offer.pays.numerator, offer.pays.denominator)


def line_of(offer: rule_set_pb2.BetOffer, line: str) -> Odds | None:
    """What a win by this pay line pays before commission; None where the offer has no such line."""
    if not line:
        return odds_of(offer) if offer.HasField("pays") else None
    for one in offer.lines:
        if one.line == line:
            return Odds(one.pays.numerator, one.pays.denominator)
    return None


def commission_of(offer: rule_set_pb2.BetOffer) -> Odds:
    """The commission on the winnings."""
    if not offer.HasField("commission"):
        return NO_COMMISSION
    return Odds(offer.commission.numerator, offer.commission.denominator)


def rule_set_faults(rule_set: rule_set_pb2.RuleSet) -> list[str]:
    """What is wrong with a rule set, in words; empty: nothing."""
    known = (BACCARAT, BACCARAT_VERSION, rule_set_pb2.GAME_BACCARAT)
    if (rule_set.rule_set_id, rule_set.version, rule_set.game) != known:
        return [f"there is no rule set {rule_set.rule_set_id!r} version {rule_set.version}"]
    faults = [*_bet_faults(rule_set), *_shoe_faults(rule_set)]
    if rule_set.rounding not in _ROUNDINGS_BACK:
        faults.append("the rounding is not one of down, half even, half up")
    if not faults and rule_set.hash != hash_of(rule_set):
        faults.append("the hash is not that of the rule set")
    return faults


def _bet_faults(rule_set: rule_set_pb2.RuleSet) -> list[str]:
    published = {offer.bet: offer for offer in baccarat().bets}
    names = [offer.bet for offer in rule_set.bets]
    if names != list(published):
        unknown = sorted(set(names) - set(published))
        if unknown:
            return [f"unknown bets: {', '.join(unknown)}"]
        return [f"the bets must be {', '.join(published)}, in this order"]
    faults: list[str] = []
    for offer in rule_set.bets:
        odds, usual = odds_of(offer), odds_of(published[offer.bet])
        if offer.bet == "tie":
            if odds.denominator != 1 or not 1 <= odds.numerator <= MAX_TIE_PAYS:
                faults.append(f"tie pays {odds}; it must be 1:1 to {MAX_TIE_PAYS}:1")
        elif odds != usual:
            faults.append(f"{offer.bet} pays {odds}; it must be {usual}")
        if commission_of(offer) != commission_of(published[offer.bet]):
            faults.append(f"the commission of {offer.bet} is not that of the rule set")
    return faults


def _shoe_faults(rule_set: rule_set_pb2.RuleSet) -> list[str]:
    """Rule BAC-3."""
    faults: list[str] = []
    decks, depth = rule_set.decks, rule_set.cut_depth
    if not 1 <= decks <= MAX_DECKS:
        return [f"a shoe of {decks} decks; it must be 1 to {MAX_DECKS}"]
    if depth < MIN_CUT_DEPTH:
        faults.append(f"cut depth {depth} is under {MIN_CUT_DEPTH}")
    if depth > decks * CARDS_PER_DECK - CARDS_BEFORE_CUT:
        faults.append(f"cut depth {depth} leaves no card for the first round")
    if rule_set.rounds_after_cut > 1:
        faults.append(
            f"{rule_set.rounds_after_cut} rounds after the cut card; at most 1 may follow"
        )
    elif rule_set.rounds_after_cut == 1 and MIN_CUT_DEPTH <= depth < MIN_CUT_DEPTH_ROUND_AFTER:
        faults.append(
            f"a round after the cut card takes a cut depth of {MIN_CUT_DEPTH_ROUND_AFTER} or more"
        )
    return faults


def table_faults(spec: spec_pb2.TableSpec) -> list[str]:
    """What does not fit together in what shall govern a table, in words; empty: nothing."""
    faults = rule_set_faults(spec.rule_set)
    if spec.currency_code not in EXPONENTS:
        faults.append(f"{spec.currency_code} is no currency of ISO 4217")
    offered = [offer.bet for offer in spec.rule_set.bets]
    limited = [limit.bet for limit in spec.limits]
    missing = [bet for bet in offered if bet not in limited]
    strange = [bet for bet in limited if bet not in offered]
    if missing:
        faults.append(f"no limit for {', '.join(missing)}")
    if strange:
        faults.append(f"limits for bets that are not offered: {', '.join(strange)}")
    if limited != sorted(limited) or len(limited) != len(frozenset(limited)):
        faults.append("the limits must be by bet id in ascending order, one for each")
    for limit in spec.limits:
        faults.extend(_limit_faults(limit))
    if not spec.HasField("pacing"):
        faults.append("the pacing is missing")
    if spec.pacing.betting_window_ms > MAX_WINDOW_MS or spec.pacing.pause_ms > MAX_WINDOW_MS:
        faults.append(f"the betting window and the pause are at most {MAX_WINDOW_MS} ms")
    return faults


def _limit_faults(limit: spec_pb2.BetLimit) -> list[str]:
    faults: list[str] = []
    low, high, step = limit.min_minor, limit.max_minor, limit.step_minor
    if low < 1 or step < 1:
        faults.append(f"{limit.bet}: minimum and step are at least 1")
    if high > MAX_STAKE_MINOR:
        faults.append(f"{limit.bet}: the maximum is over {MAX_STAKE_MINOR}")
    if low > high:
        faults.append(f"{limit.bet}: minimum {low} is over maximum {high}")
    elif step >= 1 and high // step * step < low:
        faults.append(f"{limit.bet}: no multiple of step {step} lies between {low} and {high}")
    return faults


def table_warnings(spec: spec_pb2.TableSpec) -> list[str]:
    """Bets whose profit may be no whole minor unit, with the step that mends it (rule MON-4)."""
    steps = {limit.bet: limit.step_minor for limit in spec.limits}
    warnings: list[str] = []
    for offer in spec.rule_set.bets:
        whole = whole_step(odds_of(offer), commission_of(offer))
        step = steps.get(offer.bet, 1)
        if step % whole:
            warnings.append(
                f"{offer.bet}: with a stake step of {step} some profits are no whole minor unit "
                f"and are rounded; a step of {whole} makes them whole"
            )
    return warnings
