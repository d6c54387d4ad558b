"""Audit's shell that names wrong settlements: of every answer of settlement that does not follow,
which bets of which account were settled otherwise than the rules give, what was expected and what
recorded. Each is an alarm at once, and told to the log, where it stays until somebody reads it.

The answer that does not follow is compared with all that its entry records, since the audit folds
the service's record anew behind it and takes the rest as it stands. A difference of which more than
`MAX_DIFFERENCES` came before is counted, and not named here.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from google.protobuf.message import Message

from sabot.audit.v1 import contest_events_pb2 as contests
from sabot.log.v1 import entry_pb2
from sabot.settlement.v1 import correction_events_pb2 as corrections
from sabot.settlement.v1 import events_pb2 as settlements
from services.audit.domain.contested import key_of
from services.audit.domain.core import AuditState
from services.games.currencies import EXPONENTS
from services.kernel.entry import position_of, position_proto
from services.kernel.event import Position
from services.kernel.process import Process
from services.kernel.replica import Diverged
from services.kernel.shells import ForPartner

LOOK_S = 0.05
"""How often it looks for new differences."""
AGAIN_US = 600_000_000
"""After so long what does not stand in the log is told again: it may have been full."""
MOST_BETS = 200
"""Bets of an account in one contest: more than a layout has places."""
_SETTLED = str(settlements.BetsSettled.DESCRIPTOR.full_name)
_CORRECTED = str(corrections.BetsCorrected.DESCRIPTOR.full_name)


class _Account(NamedTuple):
    """What an answer says of an account."""

    round_id: str
    partner_id: str
    account_id: str
    correction_id: str


class _Told(NamedTuple):
    table_id: str
    currency_code: str
    bets: dict[str, settlements.SettledBet]
    """By bet id."""


_Accounts = dict[_Account, list[tuple[_Told, entry_pb2.Event]]]
"""By account, what is said of it: once, unless something is wrong."""


class Contesting:
    """See the module; a `services.kernel.shells.Shell` with background work."""

    service = "audit"
    wakes: frozenset[type[Message]] = frozenset()
    since = 2

    def __init__(self) -> None:
        self.problems: dict[str, str] = {}
        self._waiting: deque[contests.ContestSettlement] = deque()
        self._told: deque[tuple[int, contests.ContestSettlement]] = deque()
        """What is not known to stand in the log, and when it was told."""
        self._seen = 0

    def poll(
        self, state: AuditState, now_us: int, leading: bool, answered: Position | None = None
    ) -> Sequence[Message | ForPartner]:
        """What was found, to append now. Every replica of audit finds it, and the first that tells
        is believed: what is known is ignored."""
        del leading, answered
        while self._told and now_us - self._told[0][0] >= AGAIN_US:
            _, one = self._told.popleft()
            if key_of(one) not in state.contested:
                self._waiting.append(one)
        told = [ForPartner(one, one.partner_id) for one in self._waiting]
        self._told += ((now_us, one) for one in self._waiting)
        self._waiting.clear()
        return told

    async def run(self, process: Process) -> None:
        """Look at each difference that the observers find. Until cancelled."""
        while True:
            found = process.folding.differences
            for one in found[self._seen :]:
                self._seen += 1
                for contest in contests_of(one):
                    process.alarm("settlement_contested", facts_of(contest))
                    self._waiting.append(contest)
            await asyncio.sleep(LOOK_S)


def facts_of(contest: contests.ContestSettlement) -> dict[str, object]:
    """A contest as an alarm's facts."""
    facts: dict[str, object] = {
        "position": str(position_of(contest.answer)),
        "table_id": contest.table_id,
        "round_id": contest.round_id,
        "partner_id": contest.partner_id,
        "account_id": contest.account_id,
        "bets": [told(bet, contest.currency_code) for bet in contest.bets],
    }
    if contest.correction_id:
        facts["correction_id"] = contest.correction_id
    return facts


def told(bet: contests.ContestedBet, currency_code: str) -> str:
    """A contested bet in words: `t1-7-2 tie: expected won 9.00, recorded won 10.00 EUR`."""
    expected = _amount(bet, "expected", currency_code)
    recorded = _amount(bet, "recorded", currency_code)
    either = bet.expected if bet.HasField("expected") else bet.recorded
    place = f"{either.bet} {either.position}".strip()
    return f"{bet.bet_id} {place}: expected {expected}, recorded {recorded} {currency_code}"


def _amount(bet: contests.ContestedBet, side: str, currency_code: str) -> str:
    if not bet.HasField(side):  # type: ignore[arg-type]  # one of two names, both fields of it
        return "nothing"
    found: settlements.SettledBet = getattr(bet, side)
    name = settlements.Outcome.Name(found.outcome).removeprefix("OUTCOME_").lower()
    kept = f", commission {_major(found.commission_minor, currency_code)}"
    payout = _major(found.payout_minor, currency_code)
    return f"{name.replace('_', ' ')} {payout}" + (kept if found.commission_minor else "")


def _major(minor: int, currency_code: str) -> str:
    digits = EXPONENTS.get(currency_code, 2)
    whole, rest = divmod(abs(minor), 10**digits)
    return ("-" if minor < 0 else "") + str(whole) + (f".{rest:0{digits}}" if digits else "")


def contests_of(found: Diverged) -> Iterator[contests.ContestSettlement]:
    """Which settlements a difference concerns, account by account; none where it is another
    service's, or concerns no bet."""
    if found.service != "settlement":
        return
    due, told = _by_cause(found.due), _by_cause(found.told)
    # Answers stand in the order of their causes: what is due to an earlier one never comes.
    last = max(due.keys() & told.keys(), default=None)
    passed = [one for one in due if last is not None and one < last and one not in told]
    left_out = _accounts([answer for one in passed for answer in due[one]])
    said = _accounts(found.told)
    for who, missing in left_out.items():
        if who not in said:
            yield from _left_out(found.position, who, missing)
    for cause, recorded in told.items():
        yield from _compared(due.get(cause, []), recorded, found, left_out)


def _by_cause(answers: Sequence[entry_pb2.Event]) -> dict[Position, list[entry_pb2.Event]]:
    groups: dict[Position, list[entry_pb2.Event]] = {}
    for one in answers:
        groups.setdefault(position_of(one.cause), []).append(one)
    return groups


def _compared(
    expected: Sequence[entry_pb2.Event],
    recorded: Sequence[entry_pb2.Event],
    found: Diverged,
    left_out: _Accounts,
) -> Iterator[contests.ContestSettlement]:
    """What two groups of answers to one cause say otherwise. `left_out`: what is due to causes that
    were passed over, and may stand here."""
    due, said = _accounts(expected), _accounts(recorded)
    owned = {bet_id for each in due.values() for one, _ in each for bet_id in one.bets}
    first = found.position
    index_of = {id(one): found.position.index + at for at, one in enumerate(found.told)}
    for who, there in said.items():
        for due_here, told_here, event in _paired(due.get(who) or left_out.get(who, []), there):
            said_here = told_here
            if due_here is None and expected and expected[-1].continues and who not in due:
                # It may be due in a later step, but not with bets that are another account's.
                bets = {bet_id: bet for bet_id, bet in said_here.bets.items() if bet_id in owned}
                said_here = _Told(said_here.table_id, said_here.currency_code, bets)
            at = first._replace(index=index_of[id(event)])
            contest = _contest(at, who, due_here, said_here)
            if contest is not None:
                yield contest
    common = [number for number, who in enumerate(due) if who in said]
    # Behind the last account of an unfinished step others may come; one that was passed over will
    # not.
    passed = len(due) if not recorded[-1].continues else common[-1] if common else 0
    for number, (who, missing) in enumerate(due.items()):
        if who not in said and number < passed:
            yield from _left_out(first, who, missing)


def _paired(
    due: Sequence[tuple[_Told, entry_pb2.Event]], said: Sequence[tuple[_Told, entry_pb2.Event]]
) -> Iterator[tuple[_Told | None, _Told, entry_pb2.Event]]:
    """Each time that an account is settled, with what was due to it. Who is settled twice is paid
    twice, though one of them be right: that one takes what is due, and nothing is for the other."""
    left = [told for told, _ in due]
    right: dict[int, _Told] = {}
    for place, (told, _) in enumerate(said):
        if told in left:
            left.remove(told)
            right[place] = told
    for place, (told, event) in enumerate(said):
        yield right.get(place) or (left.pop(0) if left else None), told, event


def _left_out(
    at: Position, who: _Account, missing: Sequence[tuple[_Told, entry_pb2.Event]]
) -> Iterator[contests.ContestSettlement]:
    for told, _ in missing:
        contest = _contest(at, who, told, None)
        if contest is not None:
            yield contest


def _accounts(answers: Sequence[entry_pb2.Event]) -> _Accounts:
    """By account, what its bets came to."""
    found: _Accounts = {}
    for one in answers:
        if one.type == _SETTLED:
            settled = settlements.BetsSettled.FromString(one.body)
            who = _Account(settled.round_id, settled.partner_id, settled.account_id, "")
            bets = {bet.bet_id: bet for bet in settled.bets}
            told = _Told(settled.table_id, settled.currency_code, bets)
        elif one.type == _CORRECTED:
            again = corrections.BetsCorrected.FromString(one.body)
            who = _Account(again.round_id, again.partner_id, again.account_id, again.correction_id)
            bets = {bet.after.bet_id: bet.after for bet in again.bets}
            told = _Told(again.table_id, again.currency_code, bets)
        else:
            continue
        found.setdefault(who, []).append((told, one))
    return found


def _contest(
    at: Position, who: _Account, expected: _Told | None, recorded: _Told | None
) -> contests.ContestSettlement | None:
    """The contest of an account's settlement; None where its bets are what they must be."""
    here = expected.bets if expected is not None else {}
    there = recorded.bets if recorded is not None else {}
    bets = [
        contests.ContestedBet(bet_id=bet_id, expected=here.get(bet_id), recorded=there.get(bet_id))
        for bet_id in {**here, **there}
        if here.get(bet_id) != there.get(bet_id)
    ]
    either = expected or recorded
    if not bets or either is None:
        return None
    return contests.ContestSettlement(
        answer=position_proto(at),
        partner_id=who.partner_id,
        account_id=who.account_id,
        table_id=either.table_id,
        round_id=who.round_id,
        currency_code=either.currency_code,
        bets=bets[:MOST_BETS],
        correction_id=who.correction_id,
    )
