"""What settlement answers: what every account is paid, in steps.

`ResultAccepted` begins; the last `BetsSettled` of an unfinished step, read back, goes on. A round
without bets is settled too: the wallet's `RoundPaid` waits for `RoundSettled`.
"""

from __future__ import annotations

from itertools import islice
from typing import assert_never, cast

from google.protobuf.message import Message

from sabot.settlement.v1 import events_pb2 as settlement
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.games.bets import Judged, ResultUnusable
from services.games.money import Rounding, Verdict, settled
from services.games.odds import EVENS, Odds
from services.games.registry import Judging, judging
from services.games.rule_sets import commission_of, line_of, rounding_of
from services.kernel.event import Answers, Event, InvariantViolated, Unfinished
from services.settlement.domain.events import Folded
from services.settlement.domain.state import (
    STEP_BETS,
    Round,
    SettlementState,
    StakedBet,
    running_round,
)

_OUTCOMES = {
    Verdict.WON: settlement.OUTCOME_WON,
    Verdict.LOST: settlement.OUTCOME_LOST,
    Verdict.PUSHED: settlement.OUTCOME_PUSHED,
    Verdict.HALF_LOST: settlement.OUTCOME_HALF_LOST,
}


def decide(state: SettlementState, event: Event) -> Answers:
    """What settlement answers to an event that it has just folded, or to its own step."""
    body = cast("Folded | settlement.BetsSettled", event.body)
    match body:
        case table.ResultAccepted() | settlement.BetsSettled():
            running = running_round(state, body.table_id, body.round_id)
            if running is None or running.result is None or running.voided or running.done:
                return ()
            return _step(body.table_id, running)
        case (
            wallet.StakeReserved()
            | wallet.StakeReturned()
            | table.TableOpened()
            | table.RoundOpened()
            | table.RoundVoided()
            | table.RoundClosed()
        ):
            return ()
        case _:
            assert_never(body)


def _step(table_id: str, running: Round) -> Answers:
    """The next accounts, as many as a step takes; `RoundSettled` behind the last one.

    There is one behaviour so far. A later one branches here, on `running.behaviour`: that of the
    round's `ResultAccepted`, whatever has been activated since."""
    paying = _Paying(running)
    answers: list[Message] = []
    bets_in_step = 0
    for who, bets in islice(running.stakes.items(), running.accounts_settled, None):
        if answers and bets_in_step + len(bets) > STEP_BETS:
            return Unfinished(answers)
        bets_in_step += len(bets)
        answers.append(
            settlement.BetsSettled(
                partner_id=who[0],
                account_id=who[1],
                table_id=table_id,
                round_id=running.round_id,
                currency_code=running.currency_code,
                bets=[paying.bet(bet_id, bet) for bet_id, bet in bets.items()],
                rule_set_hash=running.rule_set.hash,
            )
        )
    answers.append(
        settlement.RoundSettled(
            table_id=table_id,
            round_id=running.round_id,
            accounts=len(running.stakes),
            bets=sum(map(len, running.stakes.values())),
            rule_set_hash=running.rule_set.hash,
        )
    )
    return answers


class _Paying:
    """What the bets of a decided round are paid: each kind and position is judged once, each stake
    divided once (rule MON-1)."""

    def __init__(self, running: Round) -> None:
        rule_set = running.rule_set
        self._round_id = running.round_id
        self._judging = _judging(running)
        self._rounding: Rounding = rounding_of(rule_set)
        self._offers = {offer.bet: offer for offer in rule_set.bets}
        self._judged: dict[tuple[str, str], tuple[Judged, Odds, Odds]] = {}

    def bet(self, bet_id: str, staked: StakedBet) -> settlement.SettledBet:
        """One bet, settled."""
        place = (staked.bet, staked.position)
        found = self._judged.get(place)
        if found is None:
            found = self._judged[place] = self._judge(bet_id, staked)
        judged, pays, commission = found
        money = settled(staked.stake_minor, judged.verdict, pays, self._rounding, commission)
        return settlement.SettledBet(
            bet_id=bet_id,
            bet=staked.bet,
            position=staked.position,
            line=judged.line,
            stake_minor=staked.stake_minor,
            outcome=_OUTCOMES[judged.verdict],
            profit_minor=money.profit_minor,
            payout_minor=money.payout_minor,
            commission_minor=money.commission_minor,
        )

    def _judge(self, bet_id: str, staked: StakedBet) -> tuple[Judged, Odds, Odds]:
        offer = self._offers.get(staked.bet)
        if offer is None:
            raise InvariantViolated(
                f"{bet_id}: {staked.bet!r} is no bet of the rules that govern {self._round_id}"
            )
        judged = self._judging(staked.bet, staked.position)
        pays = EVENS
        if judged.verdict is Verdict.WON:
            found = line_of(offer, judged.line)
            if found is None:
                raise InvariantViolated(f"{bet_id}: {staked.bet} has no line {judged.line!r}")
            pays = found
        return judged, pays, commission_of(offer)


def _judging(running: Round) -> Judging:
    """How the round's bets are judged: by the result that the table accepted."""
    if running.result is None:
        raise InvariantViolated(f"{running.round_id}: no result to settle by")
    try:
        return judging(running.rule_set, running.result)
    except ResultUnusable as fault:
        raise InvariantViolated(f"{running.round_id}: {fault}") from fault
