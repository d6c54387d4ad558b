"""The seals of this process's log, and the proofs against them."""

from __future__ import annotations

from sabot.audit.v1 import audit_service_pb2 as audits
from services.audit.domain.core import AuditState
from services.audit.domain.tree import consistency, inclusion
from services.audit.tree_file import TreeFile
from services.kernel.entry import first_head, position_proto
from services.kernel.process import Process


class Seals:
    """See the module. Only what a seal in the log covers is proven."""

    def __init__(self, process: Process, tree: TreeFile) -> None:
        self._process = process
        self._tree = tree

    def newest(self) -> audits.GetSealResponse:
        """The newest seal; without one where there is none yet."""
        state: AuditState = self._process.state("audit")
        if state.seal is None:
            return audits.GetSealResponse()
        return audits.GetSealResponse(seal=state.seal, position=position_proto(state.position))

    def covers(self, size: int) -> bool:
        """Whether a seal covers so many entries: the newest, or one before it."""
        state: AuditState = self._process.state("audit")
        return state.seal is not None and size <= state.seal.size

    def entry(self, sequence: int, size: int) -> audits.ProveEntryResponse:
        """The proof of an entry among the first `size`; sequence ≤ size, and a seal covers them."""
        tree = self._tree
        before = first_head(self._process.cell) if sequence == 1 else tree.head(sequence - 1)
        return audits.ProveEntryResponse(
            previous_head=before,
            head=tree.head(sequence),
            path=inclusion(tree, sequence - 1, size),
        )

    def growth(self, old_size: int, size: int) -> audits.ProveGrowthResponse:
        """The proof that the older tree is the beginning of the newer; old_size ≤ size, covered."""
        return audits.ProveGrowthResponse(path=consistency(self._tree, old_size, size))
