"""The facts of a closed round, as they are brought back for a correction: in the log's order, each
with its place, none left out.

They come one after the other, and each is checked against those before it. `RoundSettled` and every
`RoundCorrected` say how many accounts stood before them, so that a fact that is missing is noticed;
whether each is what the log says, audit looks up.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from google.protobuf.message import DecodeError, Message

from sabot.rules.v1 import rule_set_pb2
from sabot.settlement.v1 import correction_events_pb2 as corrections
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.table.v1 import correction_events_pb2 as table_corrections
from sabot.table.v1 import events_pb2 as table
from services.kernel.event import UNLOGGED, Position

NOTHING_YET = bytes(32)
"""The digest of no facts."""

KINDS: tuple[type[Message], ...] = (
    table.TableOpened,
    table.RoundOpened,
    table.ResultAccepted,
    settlement.BetsSettled,
    settlement.RoundSettled,
    table_corrections.ResultCorrected,
    corrections.BetsCorrected,
    corrections.RoundCorrected,
)
"""What is recalled of a round."""
BY_NAME: dict[str, type[Message]] = {str(kind.DESCRIPTOR.full_name): kind for kind in KINDS}


def digest_with(digest: bytes, position: Position, kind: str, body: bytes) -> bytes:
    """The digest of facts with one more at their end."""
    place = b"%d/%d/%d" % position
    more = (digest, b"%d " % len(place), place, b"%d " % len(kind), kind.encode(), body)
    return hashlib.sha256(b"".join(more)).digest()


@dataclass(slots=True)
class SettledAccount:
    """An account's bets of the round, as they are settled by now."""

    number: int
    """Its place among the accounts of the round, from 0."""
    bets: list[settlement.SettledBet] = field(default_factory=list[settlement.SettledBet])
    debits: list[str] = field(default_factory=list[str])
    """The seamless partner's debits that paid them."""


@dataclass(slots=True)
class Facts:
    """What the facts so far come to."""

    count: int = 0
    digest: bytes = NOTHING_YET
    last: Position = UNLOGGED
    fault: str = ""
    """What does not fit; empty: so far all does."""
    revision: int = 0
    rule_set: rule_set_pb2.RuleSet | None = None
    currency_code: str = ""
    is_opened: bool = False
    outcome: table_corrections.CorrectedOutcome | None = None
    """What the round came to by now."""
    version: int = 0
    """Which outcome of the round that is; 0: the original one."""
    accounts: dict[tuple[str, str], SettledAccount] = field(
        default_factory=dict[tuple[str, str], SettledAccount]
    )
    """By (partner, account), in order of settlement."""
    is_settled: bool = False
    corrected: int | None = None
    """Accounts so far of the correction that is being recalled; None: none is."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing, and nothing did not fit."""
        return self.is_settled and self.corrected is None and not self.fault


def take(
    facts: Facts, table_id: str, round_id: str, position: Position, kind: str, body: bytes
) -> None:
    """One more fact. It must not fail on anything: what does not fit is kept as a fault."""
    facts.count += 1
    facts.digest = digest_with(facts.digest, position, kind, body)
    known = BY_NAME.get(kind)
    if facts.fault:
        return
    if known is None:
        facts.fault = f"{kind} is no fact of a round"
        return
    if position <= facts.last:
        facts.fault = f"{position} does not stand behind {facts.last}"
        return
    facts.last = position
    try:
        message = known.FromString(body)
    except DecodeError:
        facts.fault = f"{position} cannot be read"
        return
    if not _fits(facts, table_id, round_id, message):
        facts.fault = f"{kind} at {position} does not fit what was recalled before it"


def _fits(facts: Facts, table_id: str, round_id: str, body: Message) -> bool:
    """Fold a fact; whether it may stand here."""
    match body:
        case table.TableOpened():
            if facts.rule_set is not None or body.spec.table_id != table_id:
                return False
            facts.rule_set = body.spec.rule_set
            facts.currency_code = body.spec.currency_code
            facts.revision = body.revision
        case table.RoundOpened():
            fits = facts.rule_set is not None and body.revision == facts.revision
            if not fits or facts.is_opened or body.round_id != round_id:
                return False
            facts.is_opened = True
        case table.ResultAccepted():
            if not facts.is_opened or facts.outcome is not None or body.round_id != round_id:
                return False
            facts.outcome = table_corrections.CorrectedOutcome(result=body.result)
        case settlement.BetsSettled():
            who = (body.partner_id, body.account_id)
            fits = facts.outcome is not None and not facts.is_settled
            if not fits or who in facts.accounts or body.round_id != round_id:
                return False
            facts.accounts[who] = SettledAccount(
                len(facts.accounts), list(body.bets), list(body.transaction_ids)
            )
        case settlement.RoundSettled():
            bets = sum(len(one.bets) for one in facts.accounts.values())
            counted = (body.accounts, body.bets) == (len(facts.accounts), bets)
            if facts.outcome is None or facts.is_settled or not counted:
                return False
            if body.round_id != round_id:
                return False
            facts.is_settled = True
        case _:
            return body.round_id == round_id and _fits_correction(facts, body)  # type: ignore[attr-defined]  # each of KINDS that is left names its round
    return True


def _fits_correction(facts: Facts, body: Message) -> bool:
    match body:
        case table_corrections.ResultCorrected():
            if not facts.is_settled or facts.corrected is not None:
                return False
            if body.version != facts.version + 1:
                return False
            facts.outcome = body.outcome
            facts.version = body.version
            facts.corrected = 0
        case corrections.BetsCorrected():
            account = facts.accounts.get((body.partner_id, body.account_id))
            if facts.corrected is None or account is None or body.version != facts.version:
                return False
            if account.bets != [bet.before for bet in body.bets]:
                return False
            account.bets = [bet.after for bet in body.bets]
            facts.corrected += 1
        case corrections.RoundCorrected():
            if facts.corrected != body.accounts or body.version != facts.version:
                return False
            facts.corrected = None
        case _:
            return False
    return True
