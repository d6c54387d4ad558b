"""What the bets of a decided round are paid: each kind and position is judged once, each stake
divided once (rule MON-1)."""

from __future__ import annotations

from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from sabot.settlement.v1 import events_pb2 as settlement
from services.games.bets import Judged, ResultUnusable
from services.games.money import Rounding, Verdict, settled
from services.games.odds import EVENS, Odds
from services.games.registry import judging
from services.games.rule_sets import commission_of, line_of, rounding_of
from services.kernel.event import InvariantViolated

_OUTCOMES = {
    Verdict.WON: settlement.OUTCOME_WON,
    Verdict.LOST: settlement.OUTCOME_LOST,
    Verdict.PUSHED: settlement.OUTCOME_PUSHED,
    Verdict.HALF_LOST: settlement.OUTCOME_HALF_LOST,
}


class Paying:
    """The bets of a round by its rules and its result. Raises InvariantViolated."""

    def __init__(
        self, round_id: str, rule_set: rule_set_pb2.RuleSet, result: rules.Result | None
    ) -> None:
        if result is None:
            raise InvariantViolated(f"{round_id}: no result to settle by")
        try:
            self._judging = judging(rule_set, result)
        except ResultUnusable as fault:
            raise InvariantViolated(f"{round_id}: {fault}") from fault
        self._round_id = round_id
        self._rounding: Rounding = rounding_of(rule_set)
        self._offers = {offer.bet: offer for offer in rule_set.bets}
        self._judged: dict[tuple[str, str], tuple[Judged, Odds, Odds]] = {}

    def bet(self, bet_id: str, bet: str, position: str, stake_minor: int) -> settlement.SettledBet:
        """One bet, settled."""
        place = (bet, position)
        found = self._judged.get(place)
        if found is None:
            found = self._judged[place] = self._judge(bet_id, bet, position)
        judged, pays, commission = found
        money = settled(stake_minor, judged.verdict, pays, self._rounding, commission)
        return settlement.SettledBet(
            bet_id=bet_id,
            bet=bet,
            position=position,
            line=judged.line,
            stake_minor=stake_minor,
            outcome=_OUTCOMES[judged.verdict],
            profit_minor=money.profit_minor,
            payout_minor=money.payout_minor,
            commission_minor=money.commission_minor,
        )

    def _judge(self, bet_id: str, bet: str, position: str) -> tuple[Judged, Odds, Odds]:
        offer = self._offers.get(bet)
        if offer is None:
            raise InvariantViolated(
                f"{bet_id}: {bet!r} is no bet of the rules that govern {self._round_id}"
            )
        judged = self._judging(bet, position)
        pays = EVENS
        if judged.verdict is Verdict.WON:
            found = line_of(offer, judged.line)
            if found is None:
                raise InvariantViolated(f"{bet_id}: {bet} has no line {judged.line!r}")
            pays = found
        return judged, pays, commission_of(offer)
