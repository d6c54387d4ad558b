"""What settlement answers: what every account is paid, in steps.

`ResultAccepted` begins; the last `BetsSettled` of an unfinished step, read back, goes on. A round
without bets is settled too: the wallet's `RoundPaid` waits for `RoundSettled`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import assert_never, cast

from google.protobuf.message import Message

from sabot.log.v1 import events_pb2 as log
from sabot.settlement.v1 import correction_events_pb2 as corrections
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.table.v1 import correction_events_pb2 as table_corrections
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.games.steps import step_bets
from services.kernel.event import Answers, Event, InvariantViolated, Unfinished
from services.settlement.domain.decide_corrections import correct_step, decide_recall
from services.settlement.domain.events import Folded
from services.settlement.domain.paying import Paying
from services.settlement.domain.state import (
    Round,
    SettlementState,
    StakedBet,
    running_round,
)


def decide(state: SettlementState, event: Event) -> Answers:
    """What settlement answers to an event that it has just folded, or to its own step."""
    body = cast("Folded | settlement.BetsSettled | corrections.BetsCorrected", event.body)
    match body:
        case table.ResultAccepted() | settlement.BetsSettled():
            running = running_round(state, body.table_id, body.round_id)
            if running is None or running.result is None or running.voided or running.done:
                return ()
            if event.retried and body.round_id in state.void_orders.values():
                # A round whose settlement failed may be voided. The order to void it stands before
                # this retry: the table decides it first, and perhaps has.
                raise InvariantViolated(f"{body.round_id}: the order to void it is not decided")
            return _step(body.table_id, running)
        case corrections.RecallFacts() | corrections.EndRecall():
            return decide_recall(state, event, body)
        case table_corrections.ResultCorrected() | corrections.BetsCorrected():
            return correct_step(state, body.correction_id)
        case (
            wallet.StakeReserved()
            | wallet.StakeReturned()
            | table.TableOpened()
            | table.RoundOpened()
            | table.RoundVoided()
            | table.RoundClosed()
            | table.VoidRound()
            | table.OrderRejected()
            | log.RequestRepeated()
            | table_corrections.CorrectionApproved()
            | table_corrections.CorrectionClosed()
        ):
            return ()
        case _:
            assert_never(body)


def _step(table_id: str, running: Round) -> Answers:
    """The next accounts, as many as a step takes; `RoundSettled` behind the last one.

    They are decided by `running.behaviour`: that of the round's `ResultAccepted`, whatever has been
    activated since. An account is never split, so one with more bets than a step holds (at most
    500) is a step of its own."""
    paying = Paying(running.round_id, running.rule_set, running.result)
    answers: list[Message] = []
    most, bets_in_step = step_bets(running.behaviour), 0
    for who, bets in islice(running.stakes.items(), running.accounts_settled, None):
        if answers and bets_in_step + len(bets) > most:
            return Unfinished(answers)
        bets_in_step += len(bets)
        answers.append(
            settlement.BetsSettled(
                partner_id=who[0],
                account_id=who[1],
                table_id=table_id,
                round_id=running.round_id,
                currency_code=running.currency_code,
                bets=[
                    paying.bet(bet_id, bet.bet, bet.position, bet.stake_minor)
                    for bet_id, bet in bets.items()
                ],
                rule_set_hash=running.rule_set.hash,
                transaction_ids=_debits_of(bets),
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


def _debits_of(bets: Mapping[str, StakedBet]) -> list[str]:
    """The seamless partner's debits behind an account's bets, each once; none elsewhere."""
    return list(dict.fromkeys(bet.transaction_id for bet in bets.values() if bet.transaction_id))
