"""What is wrong with a rule set, or with all that governs a table; what opening one warns of."""

from __future__ import annotations

from math import lcm

from sabot.rules.v1 import rule_set_pb2
from sabot.table.v1 import spec_pb2
from services.games.blackjack_result import PEEKS_BACK
from services.games.cards import CARDS_PER_DECK
from services.games.catalogue import PUBLISHED, Published
from services.games.currencies import EXPONENTS
from services.games.money import MAX_STAKE_MINOR
from services.games.odds import whole_step
from services.games.registry import ACES, may_lose_half
from services.games.rule_sets import (
    ROUNDINGS_BACK,
    commission_of,
    hash_of,
    lines_of,
)

MAX_DECKS = 8
MAX_PAYS = 1000
"""Where odds are configurable (rule BAC-24); a greater number is a slip of the pen."""
MAX_WINDOW_MS = 600_000
"""Ten minutes: longer, and an operator should close betting."""
HALVES = 2
"""The step of stakes whose halves are whole."""
CARDS_BEFORE_CUT = 12
"""A shoe's start may take eleven cards (rule BAC-2); at least one is left for the first round."""


def rule_set_faults(rule_set: rule_set_pb2.RuleSet) -> list[str]:
    """What is wrong with a rule set, in words; empty: nothing."""
    published = PUBLISHED.get((rule_set.rule_set_id, rule_set.version))
    if published is None or rule_set.game != published.default.game:
        return [f"there is no rule set {rule_set.rule_set_id!r} version {rule_set.version}"]
    faults = [*_bet_faults(rule_set, published), *_shoe_faults(rule_set, published)]
    faults.extend(_option_faults(rule_set, published))
    if rule_set.rounding not in ROUNDINGS_BACK:
        faults.append("the rounding is not one of down, half even, half up")
    if not faults and rule_set.hash != hash_of(rule_set):
        faults.append("the hash is not that of the rule set")
    return faults


def _bet_faults(rule_set: rule_set_pb2.RuleSet, published: Published) -> list[str]:
    usual = {offer.bet: offer for offer in published.default.bets}
    names = [offer.bet for offer in rule_set.bets]
    unknown = sorted(set(names) - set(usual))
    if unknown:
        return [f"unknown bets: {', '.join(unknown)}"]
    if published.all_bets and names != list(usual):
        return [f"the bets must be {', '.join(usual)}, in this order"]
    if not names or names != sorted(set(names)):
        return ["the bets must be by bet id in ascending order, one of each, at least one"]
    faults: list[str] = []
    for offer in rule_set.bets:
        faults.extend(_offer_faults(offer, usual[offer.bet], offer.bet in published.free_pays))
    return faults


def _offer_faults(
    offer: rule_set_pb2.BetOffer, usual: rule_set_pb2.BetOffer, free: bool
) -> list[str]:
    faults: list[str] = []
    lines, usual_lines = lines_of(offer), lines_of(usual)
    if list(lines) != list(usual_lines) or len(offer.lines) != len(usual.lines):
        return [f"the pay lines of {offer.bet} must be {', '.join(usual_lines)}, in this order"]
    for line, odds in lines.items():
        what = f"{offer.bet} {line}".rstrip()
        if free:
            if odds.denominator != 1 or not 1 <= odds.numerator <= MAX_PAYS:
                faults.append(f"{what} pays {odds}; it must be 1:1 to {MAX_PAYS}:1")
        elif odds != usual_lines[line]:
            faults.append(f"{what} pays {odds}; it must be {usual_lines[line]}")
    if commission_of(offer) != commission_of(usual):
        faults.append(f"the commission of {offer.bet} is not that of the rule set")
    if offer.until_round != usual.until_round:
        faults.append(
            f"{offer.bet} is offered until round {offer.until_round}; "
            f"it must be {usual.until_round} (0: always)"
        )
    return faults


def _shoe_faults(rule_set: rule_set_pb2.RuleSet, published: Published) -> list[str]:
    """Rules BAC-3, BJ-15, DT-2."""
    decks, depth = rule_set.decks, rule_set.cut_depth
    if not published.default.decks:
        shoe = (decks, depth, rule_set.rounds_after_cut)
        return [] if shoe == (0, 0, 0) else ["the game has no shoe"]
    if not 1 <= decks <= MAX_DECKS:
        return [f"a shoe of {decks} decks; it must be 1 to {MAX_DECKS}"]
    faults: list[str] = []
    least, least_after = published.min_cut_depth, published.min_cut_depth_round_after
    if depth < least:
        faults.append(f"cut depth {depth} is under {least}")
    if depth > decks * CARDS_PER_DECK - CARDS_BEFORE_CUT:
        faults.append(f"cut depth {depth} leaves no card for the first round")
    if rule_set.rounds_after_cut > 1:
        faults.append(
            f"{rule_set.rounds_after_cut} rounds after the cut card; at most 1 may follow"
        )
    elif rule_set.rounds_after_cut == 1 and least <= depth < least_after:
        faults.append(f"a round after the cut card takes a cut depth of {least_after} or more")
    return faults


def _option_faults(rule_set: rule_set_pb2.RuleSet, published: Published) -> list[str]:
    """A rule set has the options of its game, and those that make another variant are fixed."""
    which = rule_set.WhichOneof("options")
    if which != published.default.WhichOneof("options"):
        return ["the options are not those of the game"]
    if which == "baccarat" and rule_set.baccarat.ez != published.default.baccarat.ez:
        return ["an EZ table is a rule set of its own"]
    if which == "blackjack" and rule_set.blackjack.peek not in PEEKS_BACK.values():
        return ["the peek is not one of ace only, both, none"]
    if which == "two_cards" and rule_set.two_cards.ace not in ACES:
        return ["the ace stands neither low nor high"]
    return []


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
    if spec.pacing.action_ms > MAX_WINDOW_MS:
        faults.append(f"the time for an action is at most {MAX_WINDOW_MS} ms")
    floor = spec.origin == spec_pb2.OUTCOME_ORIGIN_FLOOR
    if floor and spec.rule_set.baccarat.skips_empty_rounds:
        faults.append("rounds without bets are skipped at virtual tables only: a dealer may deal")
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
        commission = commission_of(offer)
        whole = lcm(*(whole_step(odds, commission) for odds in lines_of(offer).values()))
        if may_lose_half(spec.rule_set, offer.bet):
            whole = lcm(whole, HALVES)
        step = steps.get(offer.bet, 1)
        if step % whole:
            warnings.append(
                f"{offer.bet}: with a stake step of {step} some profits are no whole minor unit "
                f"and are rounded; a step of {whole} makes them whole"
            )
    return warnings
