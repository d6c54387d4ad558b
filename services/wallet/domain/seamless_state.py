"""What the wallet keeps of seamless partners: movements that they have not confirmed yet, and the
debits behind the stakes of running rounds.

A movement is one debit, credit or rollback that a partner's wallet must carry out. It stays until
its end is known: a debit until its round has decided about it, a credit or rollback until the
partner has confirmed it, or an operator has resolved it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

from sabot.table.v1 import bet_pb2 as bets
from sabot.wallet.v1.partner_profile_pb2 import WALLET_MODE_SEAMLESS, PartnerProfile
from services.kernel.event import UNLOGGED, Position


class MovementKind(IntEnum):
    """What a partner's wallet is asked for. The numbers are those of wallet.v1.MovementKind."""

    DEBIT = 1
    CREDIT = 2
    ROLLBACK = 3


class MovementStanding(IntEnum):
    """How far along a movement is."""

    ASKED = 1
    """The wallet is called until it answers."""
    TAKEN = 2
    """A debit of a request with several: the others are waited for."""
    REFUSED = 3
    """The wallet said no. A debit's request is declined by then; a credit is asked for again, for a
    refusal is not remembered; a rollback's refusal is final."""
    DISPUTED = 4
    """The wallet said what cannot be: it is not called again before an operator says so."""


@dataclass(slots=True)
class Movement:
    """One movement that a partner's wallet has not confirmed. Amounts in minor units."""

    kind: MovementKind
    partner: str
    account_id: str
    table_id: str
    round_id: str
    currency_code: str
    amount_minor: int
    reason: int
    """partnerwallet.v1.DebitReason, CreditReason or RollbackReason."""
    bets: list[bets.Bet]
    asked_by: Position
    """What is answered by the order: inputs about the movement name it."""
    ordered_us: int
    """Log time of the order."""
    debits: list[str] = field(default_factory=list[str])
    """A credit's or rollback's: what it refers to."""
    standing: MovementStanding = MovementStanding.ASKED
    round_ended: bool = False
    booked: bool = False
    """Whether its amount is on the ledger as due to the partner."""
    rule_set_hash: bytes = b""
    due_us: int | None = None
    """A debit's: when it is declined, log time; None while betting is open."""
    due_by: Position = UNLOGGED
    """What set that time."""
    decided_by: Position = UNLOGGED
    """The reply that its standing follows from."""
    retries: int = 0
    """How often an operator had it called again."""
    last_outcome: int = 0
    """wallet.v1.ReplyOutcome of the last reply."""
    last_reason: str = ""
    last_us: int = 0
    calls: int = 0


@dataclass(slots=True)
class Leaving:
    """Bets of a pending request that are to go back once it is on: a withdrawal of a part of it."""

    request_id: str
    late: bool
    """On the floor: they came too late."""
    bet_ids: list[str]


@dataclass(slots=True)
class PendingStake:
    """A request whose debits are under way. It is on once all of them are taken."""

    request_id: str
    partner: str
    account_id: str
    currency_code: str
    stage: int
    bets: list[bets.Bet] = field(default_factory=list[bets.Bet])
    """In the request's order."""
    transactions: list[str] = field(default_factory=list[str])
    """Its debits: one, or one for each bet."""
    leaving: list[Leaving] = field(default_factory=list[Leaving])


@dataclass(slots=True)
class Debit:
    """A debit behind stakes that are on, or that went back by credits."""

    partner: str
    account_id: str
    currency_code: str
    amount_minor: int
    bets: list[bets.Bet]
    named: bool = False
    """Whether a credit has named it: then it is not rolled back any more."""


@dataclass(slots=True)
class RoundMoney:
    """What a round has at seamless partners."""

    table_id: str
    pending: dict[Position, PendingStake] = field(default_factory=dict[Position, PendingStake])
    """By the approval that asked; oldest first."""
    debits: dict[str, Debit] = field(default_factory=dict[str, Debit])
    """By transaction, oldest first."""


@dataclass(slots=True)
class SeamlessState:
    """All that the wallet keeps of seamless partners."""

    profiles: dict[str, PartnerProfile] = field(default_factory=dict[str, PartnerProfile])
    """By partner; one without is a transfer partner."""
    movements: dict[str, Movement] = field(default_factory=dict[str, Movement])
    """By transaction, oldest first."""
    open: dict[str, int] = field(default_factory=dict[str, int])
    """By partner: how many movements it has there. Never an entry of zero."""
    rounds: dict[str, RoundMoney] = field(default_factory=dict[str, RoundMoney])
    """By round, from its first debit to its end."""
    written_off: dict[str, str] = field(default_factory=dict[str, str])
    """Transactions that operators wrote off, each with its partner: one that is confirmed all the
    same is an alarm."""


def is_seamless(state: SeamlessState, partner: str) -> bool:
    """Whether a partner holds the money of its accounts itself."""
    profile = state.profiles.get(partner)
    return profile is not None and profile.mode == WALLET_MODE_SEAMLESS
