"""What a corrected outcome makes of every account's bets (rule INC-3): the bets are settled again
under the rules that stood in the round's `TableOpened` (rule INC-4), and the differences counted.

The same function makes the dry run and the correction itself. What a dry run showed is bound by its
digest: over the facts, the outcome, and every account's difference.

A round may be settled again to the result that it has: where a build settled it wrongly, the
differences are what it paid wrongly. Where it paid rightly there is nothing to correct.

Blackjack is not settled by another result: bettors have acted on the cards that they were shown,
and nobody can say what they would have done on others. Such a round can be voided.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from sabot.rules.v1 import rule_set_pb2
from sabot.settlement.v1 import correction_events_pb2 as corrections
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.table.v1 import correction_events_pb2 as table_corrections
from services.games.bets import ResultUnusable
from services.games.registry import judging
from services.kernel.event import NEWEST_BEHAVIOUR, InvariantViolated
from services.settlement.domain.facts import Facts, SettledAccount
from services.settlement.domain.paying import Paying

Fault = corrections.CorrectionFault
SETTLES_AGAIN = 2
"""The behaviour from which on a round may be settled again to the result that it has."""


class AccountDifference(NamedTuple):
    """What a correction changes for an account."""

    partner_id: str
    account_id: str
    bets: list[corrections.CorrectedBet]
    payout_delta_minor: int
    commission_delta_minor: int
    debits: list[str]
    """The seamless partner's debits that paid the stakes."""


def fault_of(
    facts: Facts,
    version: int,
    outcome: table_corrections.CorrectedOutcome,
    behaviour: int = NEWEST_BEHAVIOUR,
) -> corrections.CorrectionFault.ValueType | None:
    """Why a round with these facts cannot come to `outcome`; None where it can. Order: facts that
    are missing, an outcome that changes nothing, a game that is only voided, a result that is
    none. `behaviour`: in force; before the second the same outcome was never settled again."""
    if not facts.count:
        return Fault.CORRECTION_FAULT_NOT_PAID
    if not facts.is_whole or facts.version + 1 != version or facts.rule_set is None:
        return Fault.CORRECTION_FAULT_FACTS_INCOMPLETE
    if outcome == facts.outcome and (
        behaviour < SETTLES_AGAIN or not _settled_otherwise(facts, outcome)
    ):
        return Fault.CORRECTION_FAULT_NOTHING_TO_CORRECT
    if outcome.voided:
        return None
    if facts.rule_set.game == rule_set_pb2.GAME_BLACKJACK:
        return Fault.CORRECTION_FAULT_NOT_CORRECTABLE
    try:
        judging(facts.rule_set, outcome.result)
    except ResultUnusable:
        return Fault.CORRECTION_FAULT_BAD_RESULT
    return None


def _settled_otherwise(facts: Facts, outcome: table_corrections.CorrectedOutcome) -> bool:
    """Whether a build settled the outcome in force in another way than the rules do: some bet came
    to something else. What older builds told less of, such as its pay line, is no such thing."""
    if outcome.voided:
        paying = None
    elif facts.rule_set is None or facts.rule_set.game == rule_set_pb2.GAME_BLACKJACK:
        return False
    else:
        paying = Paying("", facts.rule_set, outcome.result)
    for who, account in facts.accounts.items():
        found = _difference(who, account, paying)
        for bet in () if found is None else found.bets:
            if _amounts(bet.before) != _amounts(bet.after):
                return True
    return False


def _amounts(bet: settlement.SettledBet) -> tuple[int, int, int, int]:
    return bet.outcome, bet.profit_minor, bet.payout_minor, bet.commission_minor


def differences(
    facts: Facts,
    round_id: str,
    outcome: table_corrections.CorrectedOutcome,
    first: int = 0,
) -> Iterator[tuple[int, AccountDifference]]:
    """Every account whose bets come to something else, with its number among all accounts of the
    round, from account number `first` on. An account of which nothing changes is left out; one
    whose changes cancel out is not."""
    if facts.rule_set is None:
        raise InvariantViolated(f"{round_id}: settled again without its rules")
    paying = None if outcome.voided else Paying(round_id, facts.rule_set, outcome.result)
    for who, account in islice(facts.accounts.items(), first, None):
        found = _difference(who, account, paying)
        if found is not None:
            yield account.number, found


def _difference(
    who: tuple[str, str], account: SettledAccount, paying: Paying | None
) -> AccountDifference | None:
    changed = False
    payout = commission = 0
    bets: list[corrections.CorrectedBet] = []
    for before in account.bets:
        if paying is None:
            after = _voided(before)
        else:
            after = paying.bet(before.bet_id, before.bet, before.position, before.stake_minor)
        changed = changed or after != before
        payout += after.payout_minor - before.payout_minor
        commission += after.commission_minor - before.commission_minor
        bets.append(corrections.CorrectedBet(before=before, after=after))
    if not changed:
        return None
    return AccountDifference(who[0], who[1], bets, payout, commission, account.debits)


def _voided(before: settlement.SettledBet) -> settlement.SettledBet:
    return settlement.SettledBet(
        bet_id=before.bet_id,
        bet=before.bet,
        position=before.position,
        stake_minor=before.stake_minor,
        outcome=settlement.OUTCOME_VOIDED,
        payout_minor=before.stake_minor,
    )


def dry_run_digest(
    facts: Facts, round_id: str, outcome: table_corrections.CorrectedOutcome
) -> bytes:
    """What binds a proposal to its dry run, 32 bytes."""
    digest = hashlib.sha256(facts.digest)
    digest.update(outcome.SerializeToString(deterministic=True))
    for number, one in differences(facts, round_id, outcome):
        line = f"{number} {one.payout_delta_minor} {one.commission_delta_minor}\n"
        digest.update(line.encode())
    return digest.digest()
