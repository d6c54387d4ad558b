"""Audit's shell that seals the log: it keeps the tree over all entries and signs its root and the
chain hash, every half minute while the log grows, and at every shoe's end.

What only seals added is not sealed again: a quiet log stays quiet.
"""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.message import Message

from sabot.audit.v1 import events_pb2 as audit
from sabot.shoe.v1 import events_pb2 as shoes
from services.audit.domain.core import AuditState
from services.audit.domain.tree import root
from services.audit.seal_keys import Signer, signed_text
from services.audit.tree_file import TreeFile
from services.kernel.event import Event, Position
from services.kernel.projections import ReadEvents

EVERY_US = 30_000_000
"""Between two seals while the log grows. New entries are to be sealed within a minute, and a
replica that takes over needs its time too."""
STANDBY_US = 5_000_000
"""How much longer a replica waits that did not write the last answers."""
AGAIN_US = 5_000_000
"""What was told and is not in the log yet is not told again before this."""
BEHIND = "tree"


class Sealer:
    """See the module; a `services.kernel.shells.Shell` and an `EntryListener`.

    - cell: whose log it is; part of what is signed.
    - signer: None where this process holds no key: it keeps the tree for proofs alone.
    """

    service = "audit"
    wakes: frozenset[type[Message]] = frozenset({shoes.ShoeClosed})
    since = 1

    def __init__(self, cell: str, tree: TreeFile, signer: Signer | None) -> None:
        self.tree = tree
        self._cell = cell
        self._signer = signer
        self._head = b""
        self.worth = 0
        """The last entry that is worth a seal: one that no seal made."""
        self._shoe_over = 0
        """The last entry in which a shoe ended."""
        self._told_us = 0
        self._seen_us = 0
        """When entries without a seal were first seen."""
        self.problems: dict[str, str] = {}

    async def catch_up(self, read: ReadEvents) -> None:
        """Take all entries that the tree lacks, before the process starts."""
        async for sequence, head, events in read(self.tree.size):
            self.feed(sequence, head, events)

    def close(self) -> None:
        """Let go of the tree's files."""
        self.tree.close()

    def feed(self, sequence: int, head: bytes, events: list[Event]) -> None:
        """The next entry of the log. A tree that cannot be written holds nothing else up."""
        try:
            self._grow(sequence, head, events)
        except OSError as error:
            self.problems[BEHIND] = f"the tree cannot be written: {error.strerror or error}"

    def _grow(self, sequence: int, head: bytes, events: list[Event]) -> None:
        tree = self.tree
        if sequence > tree.size + 1:
            self.problems[BEHIND] = (
                f"the tree ends at entry {tree.size} and the log goes on at {sequence}: "
                "start the audit again"
            )
            return
        if sequence <= tree.size:
            if tree.holds(sequence, head):
                self._note(sequence, head, events)
                return
            tree.cut(sequence - 1)  # The cache was of another log.
        tree.append(head)
        self._note(sequence, head, events)

    def _note(self, sequence: int, head: bytes, events: list[Event]) -> None:
        self._head = head
        for event in events:
            body = event.body
            if not isinstance(body, audit.SealLog | audit.LogSealed):
                self.worth = sequence
            if isinstance(body, shoes.ShoeClosed):
                self._shoe_over = sequence

    def poll(
        self, state: AuditState, now_us: int, leading: bool, answered: Position | None = None
    ) -> Sequence[Message]:
        """The seal to append now, if one is due."""
        del answered  # A seal speaks of what has been read back already.
        sealed = state.seal.size if state.seal else 0
        if self._signer is None or self.problems or self.worth <= sealed:
            self._seen_us = 0
            return ()
        if not self._seen_us:
            self._seen_us = now_us
        since_us = max(state.sealed_us, self._seen_us if not sealed else 0)
        at_once = self._shoe_over > sealed
        due_us = self._seen_us if at_once else since_us + EVERY_US
        if not leading:
            due_us += STANDBY_US
        if now_us < due_us or now_us < self._told_us + AGAIN_US:
            return ()
        self._told_us = now_us
        return [self._sealed(self._signer)]

    def _sealed(self, signer: Signer) -> audit.SealLog:
        size = self.tree.size
        top = root(self.tree, size)
        text = signed_text(self._cell, size, top, self._head)
        return audit.SealLog(
            size=size,
            root=top,
            head=self._head,
            signature=signer.key.sign(text),
            key_id=signer.key_id,
            public_key=signer.public_key,
        )
