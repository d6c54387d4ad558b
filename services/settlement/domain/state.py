"""What settlement knows: the rules in force at each table, and the stakes of its running round."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from sabot.table.v1 import correction_events_pb2 as table_corrections
from services.kernel.event import Position
from services.settlement.domain.facts import Facts


class StakedBet(NamedTuple):
    """A reserved bet."""

    bet: str
    stake_minor: int
    position: str = ""
    transaction_id: str = ""
    """The seamless partner's debit that paid it."""


@dataclass(slots=True)
class Round:
    """The round that runs at a table."""

    round_id: str
    rule_set: rule_set_pb2.RuleSet
    currency_code: str
    stakes: dict[tuple[str, str], dict[str, StakedBet]] = field(
        default_factory=dict[tuple[str, str], dict[str, StakedBet]]
    )
    """By (partner, account), in order of first reservation: its bets by bet id.
    Emptied once all are settled."""
    result: rules.Result | None = None
    """Once accepted."""
    behaviour: int = 0
    """In force at `ResultAccepted`; every step of the settlement is decided by it."""
    voided: bool = False
    accounts_settled: int = 0
    done: bool = False


@dataclass(slots=True)
class Table:
    """A table."""

    rule_set: rule_set_pb2.RuleSet
    currency_code: str
    running: Round | None = None


@dataclass(slots=True)
class Recall:
    """A closed round that is to be settled again, from its approval to its last difference."""

    table_id: str
    round_id: str
    outcome: table_corrections.CorrectedOutcome
    version: int
    """Which outcome of the round that is, from 1."""
    dry_run: bytes
    reason: int
    """A `sabot.table.v1.RoundReason`."""
    asked_by: Position
    """Its approval: facts for another one are late."""
    facts: Facts = field(default_factory=Facts)
    steps: list[Position] = field(default_factory=list[Position])
    """The inputs that brought them."""
    is_recalled: bool = False
    """Whether all of them are here, and audit is asked."""
    behaviour: int = 0
    """In force at `ResultCorrected`; every step is decided by it. 0: it has not come."""
    accounts_done: int = 0
    """Accounts of the round that need not be looked at any more."""
    accounts_corrected: int = 0


@dataclass(slots=True)
class SettlementState:
    """Everything the settlement core remembers."""

    tables: dict[str, Table] = field(default_factory=dict[str, Table])
    recalls: dict[str, Recall] = field(default_factory=dict[str, Recall])
    """By correction. The table lets few be under way at a time."""
    void_orders: dict[Position, str] = field(default_factory=dict[Position, str])
    """Orders to void a round with a result that the table has not decided: by input, the round."""


def running_round(state: SettlementState, table_id: str, round_id: str) -> Round | None:
    """The round, if it runs at this table."""
    one = state.tables.get(table_id)
    if one is None or one.running is None or one.running.round_id != round_id:
        return None
    return one.running
