"""What settlement answers: what every account is paid, in steps (rules BAC-20, BAC-21, BAC-24).

`ResultAccepted` begins; the last `BetsSettled` of an unfinished step, read back, goes on. A round
without bets is settled too: the wallet's `RoundPaid` waits for `RoundSettled`.
"""

from __future__ import annotations

from itertools import islice
from typing import assert_never, cast

from google.protobuf.message import Message

from sabot.rules.v1 import rule_set_pb2
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.games.baccarat_bets import Dealt, dealt, judge
from services.games.money import Rounding, Verdict, settled
from services.games.odds import Odds
from services.games.rule_sets import commission_of, odds_of, rounding_of
from services.kernel.event import Answers, Event, InvariantViolated, Unfinished
from services.settlement.domain.events import Folded
from services.settlement.domain.state import STEP_BETS, Round, SettlementState, running_round

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
                bets=[paying.bet(bet_id, *bet) for bet_id, bet in bets.items()],
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
    """What the bets of a decided round are paid: each kind is judged once, each stake divided once
    (rule MON-1)."""

    def __init__(self, running: Round) -> None:
        rule_set = running.rule_set
        if rule_set.game != rule_set_pb2.GAME_BACCARAT:
            raise InvariantViolated(f"{running.round_id}: game {rule_set.game} has no settlement")
        self._round_id = running.round_id
        self._hands = _hands(running)
        self._rounding: Rounding = rounding_of(rule_set)
        self._offers = {offer.bet: offer for offer in rule_set.bets}
        self._judged: dict[str, tuple[Verdict, Odds, Odds]] = {}

    def bet(self, bet_id: str, bet: str, stake_minor: int) -> settlement.SettledBet:
        """One bet, settled."""
        found = self._judged.get(bet)
        if found is None:
            found = self._judged[bet] = self._judge(bet_id, bet)
        verdict, pays, commission = found
        money = settled(stake_minor, verdict, pays, self._rounding, commission)
        return settlement.SettledBet(
            bet_id=bet_id,
            bet=bet,
            stake_minor=stake_minor,
            outcome=_OUTCOMES[verdict],
            profit_minor=money.profit_minor,
            payout_minor=money.payout_minor,
            commission_minor=money.commission_minor,
        )

    def _judge(self, bet_id: str, bet: str) -> tuple[Verdict, Odds, Odds]:
        offer = self._offers.get(bet)
        if offer is None:
            raise InvariantViolated(
                f"{bet_id}: {bet!r} is no bet of the rules that govern {self._round_id}"
            )
        judged = judge(bet, self._hands)
        return judged.verdict, judged.pays or odds_of(offer), commission_of(offer)


def _hands(running: Round) -> Dealt:
    """The cards of the accepted result, with the totals worked out anew.

    Settlement does not take the winner's word for it: a result that contradicts its own cards is a
    bug upstream, and nothing is paid on it."""
    result = running.result
    if result is None or not result.HasField("baccarat"):
        raise InvariantViolated(f"{running.round_id}: no baccarat result to settle by")
    told = result.baccarat
    hands = dealt(told.player_cards, told.banker_cards)
    if (told.player_total, told.banker_total, told.winner) != (
        hands.player_total,
        hands.banker_total,
        hands.winner.value,
    ):
        raise InvariantViolated(f"{running.round_id}: the result contradicts its cards")
    return hands
