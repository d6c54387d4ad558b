"""What partners' wallets answered in a log, for a replay that orders the same movements elsewhere.

A movement's id follows from where the log orders it, so in a replay it has another one. Here it is
found by what it is for: whose it is, of which round and request, and which of those in order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from google.protobuf.message import Message

from sabot.wallet.v1 import seamless_events_pb2 as seamless
from services.kernel.entry import position_proto
from services.kernel.event import Event, Position
from services.wallet.domain.seamless_state import SeamlessState

ORDERS = (seamless.DebitOrdered, seamless.CreditOrdered, seamless.RollbackOrdered)
ABOUT_ORDERS = (seamless.RecordReply, seamless.TimeOutDebit, seamless.ResolveMovement)

_Key = tuple[str, ...]


class ForPartner(NamedTuple):
    """An input about a partner's movement."""

    body: Message
    partner: str
    due_us: int
    """Log time from which it holds; 0: at once."""


class _Orders:
    """Movements by what they are for."""

    def __init__(self) -> None:
        self.by_key: dict[_Key, tuple[str, Position]] = {}
        """The transaction, and what its order answers."""
        self.by_id: dict[str, _Key] = {}
        self._counted: Counter[_Key] = Counter()

    def note(self, event: Event) -> None:
        """Take an order; of other events nothing."""
        body: Any = event.body
        if event.cause is None or not isinstance(body, ORDERS):
            return
        what = body.request_id if isinstance(body, seamless.DebitOrdered) else str(body.reason)
        where = (type(body).__name__, body.partner_id, body.account_id, body.round_id, what)
        self._counted[where] += 1
        key = (*where, str(self._counted[where]))
        self.by_key[key] = (body.transaction_id, event.cause)
        self.by_id[body.transaction_id] = key


class Replies:
    """See the module. `recorded`: all events of the span that is played again."""

    def __init__(self, recorded: Iterable[Event]) -> None:
        self._log, self._replay = _Orders(), _Orders()
        self._unasked: set[str] = set()
        """Debits of the replay that the log never ordered."""
        for event in recorded:
            self._log.note(event)

    def again(self, body: Any, state: SeamlessState) -> Any:
        """An input of the log as it must read in the replay; None: it is about a movement that is
        not ordered there. What was ordered before the span has the id that it had."""
        key = self._log.by_id.get(body.transaction_id) if isinstance(body, ABOUT_ORDERS) else None
        if key is None:
            return body
        if key not in self._replay.by_key:
            return None
        transaction, asked_by = self._replay.by_key[key]
        given = type(body)()
        given.CopyFrom(body)
        given.transaction_id = transaction
        if isinstance(body, seamless.TimeOutDebit):
            movement = state.movements.get(transaction)
            asked_by = asked_by if movement is None else movement.due_by
        if not isinstance(body, seamless.ResolveMovement):
            given.asked_by.CopyFrom(position_proto(asked_by))
        return given

    def follow(self, events: Iterable[Event]) -> list[ForPartner]:
        """Take what the replay ordered. Returns replies to debits for which the log has no order:
        nobody asked the partner, so they count as taken."""
        taken: list[ForPartner] = []
        for event in events:
            self._replay.note(event)
            body = event.body
            if not isinstance(body, seamless.DebitOrdered) or event.cause is None:
                continue
            if self._replay.by_id[body.transaction_id] in self._log.by_key:
                continue
            self._unasked.add(body.transaction_id)
            reply = seamless.RecordReply(
                transaction_id=body.transaction_id,
                asked_by=position_proto(event.cause),
                table_id=body.table_id,
                round_id=body.round_id,
                account_id=body.account_id,
                outcome=seamless.REPLY_OUTCOME_DONE,
            )
            taken.append(ForPartner(reply, body.partner_id, 0))
        return taken

    def notes(self) -> list[str]:
        """What must be said of that."""
        if not self._unasked:
            return []
        return [f"{len(self._unasked)} stakes that partners were never asked for count as taken"]


def overdue_debit(state: SeamlessState, round_id: str) -> ForPartner | None:
    """The timer of a round's oldest request that its partner has not answered, where one is set."""
    money = state.rounds.get(round_id)
    for pending in () if money is None else money.pending.values():
        transaction = pending.transactions[0]
        movement = state.movements[transaction]
        if movement.due_us is not None:
            over = seamless.TimeOutDebit(
                transaction_id=transaction, asked_by=position_proto(movement.due_by)
            )
            return ForPartner(over, pending.partner, movement.due_us)
    return None
