"""The shell that ends the wait for partners' answers to debits: a slow partner holds no round.

It looks at the wallet core's state, so after any crash it goes on where the log stands. Two
replicas' timers do no harm: the core takes the first and ignores the rest."""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.message import Message

from sabot.wallet.v1 import seamless_events_pb2 as seamless
from services.kernel.event import Position
from services.kernel.shells import ForPartner
from services.wallet.domain.seamless_debits import proto_of
from services.wallet.domain.state import WalletState

STANDBY_US = 1_000_000
"""How much later a replica acts that did not write the wallet's last answers."""
AGAIN_US = 2_000_000
"""A timer that was told and is still wanted is told again after this: its entry may be lost."""
LOOK_US = 50_000
"""Between two looks at all debits that are under way, of which there may be thousands."""


class DebitTimers:
    """See the module; a `services.kernel.shells.Shell`."""

    service = "wallet"
    wakes: frozenset[type[Message]] = frozenset()
    since = 1

    def __init__(self) -> None:
        self._told: dict[tuple[str, Position], int] = {}
        self._looked_us = 0
        self.problems: dict[str, str] = {}

    def poll(
        self, state: WalletState, now_us: int, leading: bool, answered: Position | None = None
    ) -> Sequence[ForPartner]:
        """One timer for each request whose time is over, those told within the last two seconds
        apart. What sets a timer is another service's answer, so it is in the log: `answered` does
        not matter."""
        del answered
        if 0 <= now_us - self._looked_us < LOOK_US:
            return ()
        self._looked_us = now_us
        wait_us = 0 if leading else STANDBY_US
        due: list[ForPartner] = []
        told: dict[tuple[str, Position], int] = {}
        for money in state.seamless.rounds.values():
            for pending in money.pending.values():
                transaction = pending.transactions[0]
                movement = state.seamless.movements[transaction]
                if movement.due_us is None or movement.due_us + wait_us > now_us:
                    continue
                key = (transaction, movement.due_by)
                last_us = self._told.get(key)
                if last_us is None or last_us + AGAIN_US <= now_us:
                    over = seamless.TimeOutDebit(
                        transaction_id=transaction, asked_by=proto_of(movement.due_by)
                    )
                    due.append(ForPartner(over, pending.partner))
                    last_us = now_us
                told[key] = last_us
        self._told = told
        return due
