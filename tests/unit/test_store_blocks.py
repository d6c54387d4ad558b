"""The end of a long store is read without its beginning."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.cli.log_source import StoreLog
from services.kernel.store_scan import (
    HASH_BYTES,
    HEAD,
    TOMBSTONE,
    before_bytes,
    before_last_block,
    scan_store,
)
from services.simulator.virtual_time import run_virtual

SUBJECT = b"sabot.main.table.in"
NOT_CHECKED = b"\xff" * HASH_BYTES
"""A checksum, which nobody looks at here; zeros would be none."""
EACH = 4
"""Entries of a block."""
BLOCKS = 3


def record(sequence: int) -> bytes:
    payload = f"entry {sequence}".encode()
    size = HEAD.size + len(SUBJECT) + len(payload) + HASH_BYTES
    return HEAD.pack(size, sequence, 0, len(SUBJECT)) + SUBJECT + payload + NOT_CHECKED


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Three blocks of four entries; their checksums are not looked at here."""
    folder = tmp_path / "SABOT_main"
    (folder / "msgs").mkdir(parents=True)
    for block in range(BLOCKS):
        first = block * EACH + 1
        raw = b"".join(record(first + place) for place in range(EACH))
        (folder / "msgs" / f"{block + 1}.blk").write_bytes(raw)
    return folder


def sequences(folder: Path, after: int) -> list[int]:
    return [message.sequence for message in scan_store(folder, after=after)]


def test_what_stands_behind_a_sequence_is_read(store: Path) -> None:
    for after in range(EACH * BLOCKS + 2):
        assert sequences(store, after) == list(range(after + 1, EACH * BLOCKS + 1))


def test_blocks_before_it_are_not_opened(store: Path) -> None:
    (store / "msgs" / "1.blk").write_bytes(b"damaged")
    assert sequences(store, 5) == list(range(6, 13))
    assert before_last_block(store) == EACH * (BLOCKS - 1)

    async def last() -> int:
        return (await StoreLog(store, "main").info(wait_s=1.0)).last_sequence

    assert run_virtual(last()) == EACH * BLOCKS


def test_a_block_that_begins_with_a_tombstone_is_read_with_the_one_before(store: Path) -> None:
    third = store / "msgs" / "3.blk"
    head = HEAD.unpack(record(0)[: HEAD.size])
    tombstone = HEAD.pack(head[0], TOMBSTONE, 0, head[3]) + record(0)[HEAD.size :]
    third.write_bytes(tombstone + third.read_bytes())
    assert sequences(store, 10) == [11, 12]
    assert before_last_block(store) == EACH


def test_what_holds_some_bytes_is_found_by_its_block(store: Path) -> None:
    """`entry 1` also stands in `entry 10`: it is found no later than where it first is."""
    expected = {"entry 1": 0, "entry 4": 0, "entry 5": 4, "entry 8": 4, "entry 12": 8}
    for text, before in expected.items():
        assert before_bytes(store, text.encode()) == before
    assert before_bytes(store, b"entry 13") is None
