"""Snapshots: equal states, equal bytes; another shape is refused; what was taken goes on
rightly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from services.events import event_types
from services.kernel.event import Core
from services.kernel.reader import LogReader
from services.kernel.recovery import read_message
from services.kernel.replica import Replica
from services.kernel.snapshot import (
    Snapshot,
    SnapshotFolder,
    SnapshotSet,
    SnapshotUnusable,
    StateCodec,
    decode_snapshot,
    encode_snapshot,
    state_digest,
)
from tests.unit.test_replica import played_log
from tests.unit.toy import CELL, LIMITS, TABLE, Toys


def folded(core: Core[Any], cut: int) -> str:
    """The digest of a core's state after the played log, through a snapshot before message
    `cut`."""
    codec = StateCodec()
    reader = LogReader(CELL, event_types())
    replica: Replica[Any] = Replica(core, writer="n")
    for number, message in enumerate(played_log().messages):
        if number == cut:
            raw = encode_snapshot(
                codec, core, Snapshot(core.service, core.schema, reader.state, replica.state)
            )
            taken = decode_snapshot(codec, core, raw)
            assert encode_snapshot(codec, core, taken) == raw
            reader = LogReader(CELL, event_types(), taken.reader)
            replica = Replica(core, writer="m", state=taken.replica)
        Toys.broken = message.sequence < FIXED_AT
        replica.read(read_message(reader, message), 0.0)
    assert replica.next_append() is None
    return state_digest(codec, core, replica.state.core)


FIXED_AT = 16
"""In the played log the planted bug is gone from the retry on."""


@pytest.mark.parametrize("core", [TABLE, LIMITS], ids=["table", "limits"])
def test_a_snapshot_taken_anywhere_goes_on_to_the_same_state(core: Core[Any]) -> None:
    messages = len(played_log().messages)
    digests = {folded(core, cut) for cut in range(messages + 1)}
    assert len(digests) == 1


def test_another_schema_or_service_and_damage_are_refused() -> None:
    codec = StateCodec()
    reader = LogReader(CELL, event_types())
    raw = encode_snapshot(
        codec, TABLE, Snapshot("table", 1, reader.state, Replica(TABLE, writer="n").state)
    )
    with pytest.raises(SnapshotUnusable):
        decode_snapshot(codec, LIMITS, raw)
    with pytest.raises(SnapshotUnusable):
        decode_snapshot(codec, TABLE, raw.replace(b'"table",1', b'"table",2', 1))
    for cut in range(20, len(raw), 7):
        with pytest.raises(SnapshotUnusable):
            decode_snapshot(codec, TABLE, raw[:cut])


def test_older_sets_are_kept_while_there_is_room_and_lie_all_over_the_log(tmp_path: Path) -> None:
    def taken(at: int) -> SnapshotSet:
        return SnapshotSet(at, {"table": b"t" * 100})

    roomy = SnapshotFolder(tmp_path / "roomy")
    for at in range(100, 3100, 100):
        roomy.save(taken(at))
    assert roomy.sequences() == list(range(3000, 0, -100))
    assert [one.sequence for one in roomy.sets()] == [3000, 2900, 2800]
    assert [one.sequence for one in roomy.older(before=500)] == [400, 300, 200, 100]

    small = SnapshotFolder(tmp_path / "small", bytes_max=8 * 132)
    for at in range(100, 3100, 100):
        small.save(taken(at))
    kept = small.sequences()
    assert kept[:3] == [3000, 2900, 2800]
    assert len(kept) == 8
    gaps = [one - other for one, other in zip(kept, [*kept[1:], 0], strict=True)]
    assert max(gaps) <= 3000 // 3, "no stretch of the log is far from a snapshot before its end"

    none = SnapshotFolder(tmp_path / "none", bytes_max=0)
    for at in range(100, 600, 100):
        none.save(taken(at))
    assert none.sequences() == [500, 400, 300], "the newest are kept, however large"


def test_a_damaged_file_is_passed_over(tmp_path: Path) -> None:
    folder = SnapshotFolder(tmp_path / "snapshots")
    assert folder.sets() == []
    for sequence in range(1, 6):
        folder.save(SnapshotSet(sequence, {"table": b"t%d" % sequence, "limits": b"l"}))
    assert [one.sequence for one in folder.sets()] == [5, 4, 3]
    path = tmp_path / "snapshots" / "5" / "limits"
    path.write_bytes(b"x" + path.read_bytes()[1:])
    (tmp_path / "snapshots" / "4" / "table").write_bytes(b"")
    assert [(one.sequence, dict(one.raw)) for one in folder.sets()] == [
        (at, {"table": b"t%d" % at, "limits": b"l"}) for at in (3, 2, 1)
    ]
