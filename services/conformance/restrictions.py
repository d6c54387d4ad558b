"""Requests that must be accepted or refused: asked in the round of the shoe that the case names,
after the bets that it calls accepted."""

from __future__ import annotations

from collections.abc import Sequence

from sabot.rules.v1 import rule_set_pb2
from sabot.table.v1 import bet_pb2
from services.conformance.cases import Findings, Laid, RequestCase
from services.conformance.croupier import SHOWN, Croupier
from services.conformance.play import STAKE_RANGE, Play, Refusal, RoundStuck
from services.conformance.rules import spec_of

OPPOSITE = frozenset({"LIMIT_OPPOSITE_SIDES"})
ACTION = frozenset({"REFUSAL_ACTION_NOT_ALLOWED", "REFUSAL_NOT_YOUR_TURN"})
AMOUNT = frozenset({"REFUSAL_BAD_EXTRA_STAKE", STAKE_RANGE})
REASONS: dict[str, frozenset[str]] = {
    "STAKE_BELOW_MIN": frozenset({"LIMIT_BELOW_MINIMUM"}),
    "STAKE_ABOVE_MAX": frozenset({"LIMIT_ABOVE_MAXIMUM", STAKE_RANGE}),
    "STAKE_STEP": frozenset({"LIMIT_STAKE_STEP"}),
    "PLAYER_BANKER_CONFLICT": OPPOSITE,
    "BIG_SMALL_CONFLICT": OPPOSITE,
    "ODD_EVEN_CONFLICT": OPPOSITE,
    "DRAGON_TIGER_CONFLICT": OPPOSITE,
    "HOME_AWAY_CONFLICT": OPPOSITE,
    "PLAYER_BANKER_DIFFERENCE": frozenset({"LIMIT_DIFFERENCE"}),
    "SIDE_BET_UNAVAILABLE": frozenset({"LIMIT_SIDE_BET_CLOSED"}),
    "ROULETTE_COVERAGE": frozenset({"LIMIT_COVERAGE"}),
    "INVALID_BET": frozenset({"REFUSAL_UNKNOWN_BET", "REFUSAL_NOT_ON_LAYOUT"}),
    "NOT_WHOLE_CHIPS": frozenset({"REFUSAL_NOT_WHOLE_CHIPS"}),
    "ACCOUNT_MAX": frozenset({"LIMIT_ACCOUNT_MAXIMUM"}),
    "EXPOSURE": frozenset({"LIMIT_EXPOSURE"}),
    "SIDE_BET_WITHOUT_MAIN": frozenset({"LIMIT_NO_MAIN_BET", "REFUSAL_SEAT_TAKEN"}),
    "SEAT_TAKEN": frozenset({"REFUSAL_SEAT_TAKEN"}),
    "DOUBLE_AMOUNT": AMOUNT,
    "INSURANCE_AMOUNT": AMOUNT,
    "DOUBLE_NOT_ALLOWED": ACTION,
    "SPLIT_NOT_ALLOWED": ACTION,
}
"""By the reason of a case: the refusals of which one must be told. The words are the case files'
own; one that does not stand here is content with any refusal."""
MAX_ROUNDS = 101
"""Of four cards each, before the cut card of a shoe of baccarat."""


def play_request(case: RequestCase, findings: Findings) -> None:
    """Ask, and note where the answer is another one. Raises what stops it."""
    spec = spec_of(case.rules, case.limits)
    burns = spec.rule_set.game == rule_set_pb2.GAME_BACCARAT
    before = case.round_in_shoe - 1
    if before and not (burns and before < MAX_ROUNDS):
        raise RoundStuck(f"round {case.round_in_shoe} of a shoe cannot be reached in this game")
    croupier = Croupier((), spec.rule_set.decks, shown=SHOWN if burns else "", rounds_before=before)
    play = Play(spec, croupier)
    for _ in range(before):
        play.open_round()
        play.close_betting()
        play.deal(lambda _: True)
    play.open_round()
    held = _accepted(play, case)
    try:
        if case.withdraw:
            for account, bets in _by_account(case.withdraw).items():
                play.withdraw(account, [_bet_id(bet, held.get(account, [])) for bet in bets])
        for account, bets in _by_account(case.request).items():
            play.place(account, bets)
    except Refusal as refusal:
        check_answer(findings, refusal, expected=case.expected, reason=case.reason)
    else:
        check_answer(findings, None, expected=case.expected, reason=case.reason)


def check_answer(
    findings: Findings, refusal: Refusal | None, *, expected: bool, reason: str | None
) -> None:
    """Note where a request was answered otherwise than expected."""
    wanted = "accepted" if expected else f"refused: {reason or 'for any reason'}"
    if refusal is None:
        findings.check("the request", wanted, "accepted")
    elif expected:
        findings.note("the request", wanted, f"refused: {refusal}")
    elif reason in REASONS and not REASONS[reason].intersection(refusal.reasons):
        findings.note("the reason", f"one of {', '.join(sorted(REASONS[reason]))}", str(refusal))


def _accepted(play: Play, case: RequestCase) -> dict[str, list[bet_pb2.Bet]]:
    """The bets that are on before the request, by account."""
    held: dict[str, list[bet_pb2.Bet]] = {}
    for account, bets in _by_account(case.accepted).items():
        try:
            held[account] = play.place(account, bets)
        except Refusal as refusal:
            raise RoundStuck(f"what was accepted before is refused: {refusal}") from None
    return held


def _by_account(bets: Sequence[Laid]) -> dict[str, list[Laid]]:
    found: dict[str, list[Laid]] = {}
    for bet in bets:
        found.setdefault(bet.account, []).append(bet)
    return found


def _bet_id(wanted: Laid, held: list[bet_pb2.Bet]) -> str:
    """The id of a bet that is on, each taken once."""
    for bet in held:
        if (bet.bet, bet.position, bet.stake_minor) == (
            wanted.bet,
            wanted.position,
            wanted.stake,
        ):
            held.remove(bet)
            return bet.bet_id
    raise RoundStuck(f"{wanted.shown} is not on")
