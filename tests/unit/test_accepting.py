"""An acceptance names the chain hash of its entry, or is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from sabot.audit.v1 import audit_service_pb2 as audits
from sabot.log.v1 import entry_pb2
from sabot.log.v1 import events_pb2 as logs
from services.audit.accepting import Accepting
from services.audit.tree_file import TreeFile
from services.kernel.entry import position_proto
from services.kernel.errors import POSITION_NOT_REACHED, Refused
from services.kernel.event import Position
from services.kernel.memory_log import MemoryLog, MemoryStore
from services.simulator.virtual_time import run_virtual
from tests.unit.fake_edge import FakeEdge
from tests.unit.front import SAM


def test_an_entry_that_was_not_read_yet_is_refused(tmp_path: Path) -> None:
    """The log has it, the process's tree does not: it would be accepted by no hash at all."""
    store = MemoryStore("main", lambda: 0)
    entry = entry_pb2.Entry(events=[entry_pb2.Event(type="t")])
    store.store("sabot.main.table.out", entry.SerializeToString(), None)
    tree, edge = TreeFile(tmp_path), FakeEdge([logs.InputNoted()])
    accepting = Accepting(tree.head, lambda: MemoryLog(store), edge)
    request = audits.AcceptDifferenceRequest(
        position=position_proto(Position(1, 1, 0)), reason="known"
    )

    async def main() -> None:
        with pytest.raises(Refused) as caught:
            await accepting.accept(request, SAM)
        assert caught.value.reason is POSITION_NOT_REACHED
        assert not edge.submitted
        tree.append(bytes(range(32)))
        await accepting.accept(request, SAM)

    run_virtual(main())
    assert [one.body.head for one in edge.submitted] == [bytes(range(32))]
    tree.close()
