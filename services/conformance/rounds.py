"""Rounds of every game but blackjack: played, and held against what the case expects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.table.v1 import bet_pb2
from services.conformance.cases import (
    BurnCase,
    ExpectedBet,
    Findings,
    Money,
    RoundCase,
    Rules,
)
from services.conformance.croupier import SHOWN, Croupier
from services.conformance.play import DEPOSIT_MINOR, Play, Refusal, RoundStuck
from services.conformance.rules import spec_of
from services.games import roulette, sicbo, two_cards
from services.games.baccarat import is_natural
from services.games.cards import rank_of

BURNING = (rule_set_pb2.GAME_BACCARAT,)
"""Games whose shoes begin with a shown card and a burn (rule BAC-2)."""

RESULTS: Mapping[int, str] = {
    settlement.OUTCOME_WON: "win",
    settlement.OUTCOME_LOST: "lose",
    settlement.OUTCOME_PUSHED: "push",
    settlement.OUTCOME_HALF_LOST: "half_lose",
}
VOID = "void"


def play_round(case: RoundCase, findings: Findings) -> None:
    """Play a round and note every difference. Raises what stops it: NotOffered, ImpossibleCards,
    RoundStuck, DecisionFailed."""
    spec = spec_of(case.rules)
    croupier = Croupier(
        case.cards,
        spec.rule_set.decks,
        shown=SHOWN if spec.rule_set.game in BURNING else "",
        number=case.number,
        dice=case.dice,
    )
    play = Play(spec, croupier)
    play.open_round()
    laid = _lay(case, play, findings)
    play.close_betting()
    finish(play, void=case.void)
    found = money_of(play)
    for expected, bets in laid:
        _compare(expected, bets, found, findings)
    if not case.void:
        _check_outcome(case.outcome, spec.rule_set, play, findings)
    check_totals(case.totals, [bet for _, bets in laid for bet in bets], found, findings)
    check_balances(play, found, findings)


def finish(play: Play, *, void: bool) -> None:
    """Deal the case's cards, spin or dice, to the end of the round. Raises RoundStuck.

    A round to be voided is suspended before the last of them, which is then still taken; otherwise
    it would have its result."""
    croupier = play.croupier
    if void:
        play.deal(lambda wish: croupier.has(wish) and not croupier.is_last(wish))
        play.suspend()
        play.deal(croupier.has)
        play.void()
    else:
        play.deal(croupier.has)
    if not play.closed():
        raise RoundStuck(f"the round does not end: {croupier.left()}")
    if not void and croupier.unused():
        raise RoundStuck(f"the round ended with {croupier.left()}")


def play_burn(case: BurnCase, findings: Findings) -> None:
    """Begin a shoe and note how many cards are burned."""
    spec = spec_of(Rules("baccarat"))
    play = Play(spec, Croupier((), spec.rule_set.decks, shown=case.first_card))
    burned = play.last_of(shoes.CardsBurned)
    if burned is None:
        raise RoundStuck("no card is burned")
    findings.check("shown card", case.first_card, burned.opened[0].card)
    findings.check("burned cards", case.burn, burned.face_down)


# ---- bets --------------------------------------------------------------------------------------


def _lay(
    case: RoundCase, play: Play, findings: Findings
) -> list[tuple[ExpectedBet, list[bet_pb2.Bet]]]:
    """Place the bets: one request an account, an announced bet by itself. Returns each with the
    bets that are booked for it; one that is refused is noted, and is booked as none."""
    together: dict[str, list[ExpectedBet]] = {}
    alone: list[ExpectedBet] = []
    for bet in case.bets:
        if bet.parts:
            alone.append(bet)
        else:
            together.setdefault(bet.laid.account, []).append(bet)
    requests = list(together.items())
    requests += [(bet.laid.account, [bet]) for bet in alone]
    laid: list[tuple[ExpectedBet, list[bet_pb2.Bet]]] = []
    for account, bets in requests:
        try:
            booked = play.place(account, [bet.laid for bet in bets])
        except Refusal as refusal:
            for bet in bets:
                findings.note(bet.laid.shown, "on", f"refused: {refusal}")
            continue
        if len(bets) == 1:
            laid.append((bets[0], booked))
        else:
            laid.extend((bet, [one]) for bet, one in zip(bets, booked, strict=True))
    return laid


def money_of(play: Play) -> dict[str, Money]:
    """What became of every bet of the round, by bet id."""
    found = {
        bet_id: Money(RESULTS[bet.outcome], bet.stake_minor, bet.profit_minor, bet.payout_minor)
        for bet_id, bet in play.settled().items()
    }
    for bet_id, stake in play.returned().items():
        found[bet_id] = Money(VOID, stake, 0, stake)
    return found


def _compare(
    expected: ExpectedBet,
    bets: list[bet_pb2.Bet],
    found: Mapping[str, Money],
    findings: Findings,
) -> None:
    if expected.parts:
        findings.check(
            f"parts of {expected.laid.shown}",
            [(part.laid.bet, part.laid.position, part.laid.stake) for part in expected.parts],
            [(bet.bet, bet.position, bet.stake_minor) for bet in bets],
        )
        for part, bet in zip(expected.parts, bets, strict=False):
            check_money(part.laid.shown, part.money, found.get(bet.bet_id), findings)
    whole = [money for bet in bets if (money := found.get(bet.bet_id)) is not None]
    if len(whole) != len(bets):
        findings.note(expected.laid.shown, told(expected.money), "neither settled nor returned")
    elif expected.parts:
        check_money(expected.laid.shown, expected.money, _sum(whole), findings)
    else:
        check_money(expected.laid.shown, expected.money, whole[0], findings)


def _sum(parts: list[Money]) -> Money:
    """An announced bet as a whole: it wins or loses by its profit."""
    profit = sum(part.profit for part in parts)
    if all(part.result == VOID for part in parts):
        result = VOID
    else:
        result = "win" if profit > 0 else "lose" if profit < 0 else "push"
    stake, returned = sum(part.stake for part in parts), sum(part.returned for part in parts)
    return Money(result, stake, profit, returned)


def check_money(what: str, expected: Money, got: Money | None, findings: Findings) -> None:
    """Note where a stake came to something else than expected."""
    if got is None:
        findings.note(what, told(expected), "neither settled nor returned")
    elif got != expected:
        findings.note(what, told(expected), told(got))


def told(money: Money) -> str:
    """For a difference."""
    return f"{money.result} {money.profit:+} on {money.stake}, return {money.returned}"


def check_totals(
    expected: Money, bets: list[bet_pb2.Bet], found: Mapping[str, Money], findings: Findings
) -> None:
    """The sums over all bets that are on."""
    moneys = [found[bet.bet_id] for bet in bets if bet.bet_id in found]
    findings.check("total stake", expected.stake, sum(bet.stake_minor for bet in bets))
    findings.check("total profit", expected.profit, sum(money.profit for money in moneys))
    findings.check("total return", expected.returned, sum(money.returned for money in moneys))


def check_balances(play: Play, found: Mapping[str, Money], findings: Findings) -> None:
    """The wallet must have moved what was settled: no more, and nothing twice."""
    profits = dict.fromkeys(play.accounts(), 0)
    for account, bet in play.booked():
        profits[account] += found[bet.bet_id].profit if bet.bet_id in found else 0
    for account, profit in profits.items():
        findings.check(
            f"balance of {account}", f"{profit:+}", f"{play.balance(account) - DEPOSIT_MINOR:+}"
        )


# ---- the outcome -------------------------------------------------------------------------------


def _check_outcome(
    expected: Mapping[str, Any],
    rule_set: rule_set_pb2.RuleSet,
    play: Play,
    findings: Findings,
) -> None:
    accepted = play.result()
    if accepted is None:
        raise RoundStuck("the round has no result")
    check_facts(expected, facts_of(accepted.result, rule_set), findings)


def check_facts(
    expected: Mapping[str, Any], facts: Mapping[str, object], findings: Findings
) -> None:
    """Every expected fact must be known, and be so."""
    for name, value in expected.items():
        if name in facts:
            findings.check(name, value, facts[name])
        else:
            findings.note(name, str(value), "nothing: the fact is not known")


def facts_of(result: rules.Result, rule_set: rule_set_pb2.RuleSet) -> dict[str, object]:
    """What a result says, by the names of the case files."""
    facts = _FACTS.get(result.WhichOneof("game") or "")
    return {} if facts is None else facts(result, rule_set)


def _baccarat(result: rules.Result, _: rule_set_pb2.RuleSet) -> dict[str, object]:
    one = result.baccarat
    player, banker = list(one.player_cards), list(one.banker_cards)
    return {
        "player_cards": player,
        "banker_cards": banker,
        "player_total": one.player_total,
        "banker_total": one.banker_total,
        "winner": rules.BaccaratWinner.Name(one.winner).removeprefix("BACCARAT_WINNER_").lower(),
        "player_natural": is_natural(player),
        "banker_natural": is_natural(banker),
        "player_pair": rank_of(player[0]) == rank_of(player[1]),
        "banker_pair": rank_of(banker[0]) == rank_of(banker[1]),
    }


def _roulette(result: rules.Result, _: rule_set_pb2.RuleSet) -> dict[str, object]:
    number = result.roulette.number
    return {"number": number, "colour": roulette.colour(number)}


def _sicbo(result: rules.Result, _: rule_set_pb2.RuleSet) -> dict[str, object]:
    dice = tuple(result.sicbo.dice)
    return {"total": sum(dice), "triple": sicbo.is_triple(dice)}


def _two_cards(
    first: str, second: str, names: tuple[str, str, str], rule_set: rule_set_pb2.RuleSet
) -> dict[str, object]:
    low = rule_set.two_cards.ace == rule_set_pb2.ACE_RANK_LOW
    cards = two_cards.dealt(first, second, two_cards.Ace.LOW if low else two_cards.Ace.HIGH)
    return {"winner": names[cards.winner.value - 1], "suited": cards.suited}


_FACTS: Mapping[str, Callable[[rules.Result, rule_set_pb2.RuleSet], dict[str, object]]] = {
    "baccarat": _baccarat,
    "roulette": _roulette,
    "sicbo": _sicbo,
    "dragon_tiger": lambda result, rule_set: _two_cards(
        result.dragon_tiger.dragon_card,
        result.dragon_tiger.tiger_card,
        ("dragon", "tiger", "tie"),
        rule_set,
    ),
    "football_studio": lambda result, rule_set: _two_cards(
        result.football_studio.home_card,
        result.football_studio.away_card,
        ("home", "away", "draw"),
        rule_set,
    ),
}
