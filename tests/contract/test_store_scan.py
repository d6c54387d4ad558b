"""The raw scan of real stores: healthy ones pass, one flipped bit is named."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from services.kernel.log import LogMessage
from services.kernel.store_scan import StoreDamaged, StoreMissing, has_store, scan_store
from tests.contract.places import PATIENCE_S, JetStreamPlace, reading, take

pytestmark = pytest.mark.asyncio(loop_scope="session")

ENTRIES = 9


async def fill(place: JetStreamPlace, entries: int, size: int = 40) -> list[LogMessage]:
    """Inputs and answers in turn; what a client reads back."""
    log = await place.client()
    last = 0
    for number in range(entries):
        payload = b"%06d" % number + b"x" * size
        if number % 3 == 2:
            subject, expected = f"sabot.{place.cell}.alpha.in", None
        else:
            subject, expected = f"sabot.{place.cell}.beta.out", last
        sequence = await log.append(subject, payload, expected=expected, wait_s=PATIENCE_S)
        last = last if expected is None else sequence
    async with reading(log, 0) as read:
        return await take(read, entries)


async def stopped_store(place: JetStreamPlace, to: Path, *, kill: bool) -> Path:
    """A copy of the store as the server leaves it."""
    server = place.cluster.servers[0]
    await (server.kill() if kill else server.stop())
    copy = to / place.store_folder().name
    place.copy_store(copy)
    await server.start()
    return copy


def records(folder: Path) -> list[tuple[Path, int, int]]:
    """Where each record begins and how long it is, by the scanner's own documentation."""
    found = []
    for block in sorted((folder / "msgs").glob("*.blk"), key=lambda path: int(path.stem)):
        data = block.read_bytes()
        offset = 0
        while offset < len(data):
            size = struct.unpack_from("<I", data, offset)[0] & ~(1 << 31)
            found.append((block, offset, size))
            offset += size
    return found


def damage(
    folder: Path, change: Callable[[bytearray], None], block: Path, hash_after: int = 0
) -> StoreDamaged:
    """What the scan of a changed store says; the store is put back afterwards."""
    whole = block.read_bytes()
    changed = bytearray(whole)
    change(changed)
    block.write_bytes(changed)
    try:
        with pytest.raises(StoreDamaged) as damaged:
            list(scan_store(folder, hash_after=hash_after))
    finally:
        block.write_bytes(whole)
    return damaged.value


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
async def test_a_healthy_store_holds_exactly_what_a_client_reads(
    on_single: JetStreamPlace, tmp_path: Path, kill: bool
) -> None:
    read = await fill(on_single, ENTRIES)
    folder = await stopped_store(on_single, tmp_path, kill=kill)
    assert has_store(folder)
    assert list(scan_store(folder)) == read
    assert list(scan_store(folder, hash_after=0)) == read


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
async def test_a_flipped_bit_is_found_and_its_sequence_named(
    on_single: JetStreamPlace, tmp_path: Path, kill: bool
) -> None:
    await fill(on_single, ENTRIES)
    folder = await stopped_store(on_single, tmp_path, kill=kill)
    places = records(folder)
    assert len(places) == ENTRIES
    numbers = 22 * 8  # lengths, sequence, time: every bit; of the rest each fifth will do
    for index in (0, ENTRIES // 2, ENTRIES - 1):
        block, offset, size = places[index]
        for bit in (*range(numbers), *range(numbers, size * 8, 5)):

            def flip(data: bytearray, bit: int = bit, offset: int = offset) -> None:
                data[offset + bit // 8] ^= 1 << bit % 8

            damaged = damage(folder, flip, block, hash_after=index)
            assert damaged.sequence == index + 1, (bit, damaged)


async def test_a_cut_tail_is_torn_and_a_cut_middle_is_not(
    on_single: JetStreamPlace, tmp_path: Path
) -> None:
    read = await fill(on_single, ENTRIES)
    folder = await stopped_store(on_single, tmp_path, kill=True)
    places = records(folder)
    block, offset, size = places[-1]
    for left in (1, 10, size - 1):

        def cut(data: bytearray, left: int = left) -> None:
            del data[offset + left :]

        torn = damage(folder, cut, block)
        assert (torn.sequence, torn.torn) == (ENTRIES, True)
    _, middle, size = places[4]

    def take_out(data: bytearray) -> None:
        del data[middle : middle + size]

    gap = damage(folder, take_out, block)
    assert (gap.sequence, gap.torn) == (5, False)
    # A tail that ends with a whole record shows nothing by itself: the witness knows better.
    block.write_bytes(block.read_bytes()[:offset])
    assert list(scan_store(folder, hash_after=0)) == read[:-1]


async def test_a_store_of_several_blocks_is_read_whole_and_a_lost_block_is_named(
    on_single: JetStreamPlace, tmp_path: Path
) -> None:
    place = JetStreamPlace(on_single.cluster, f"{on_single.cell}b")
    await place.make()
    try:
        read = await fill(place, 120, size=150_000)  # blocks have 8 MB
        folder = await stopped_store(place, tmp_path, kill=False)
    finally:
        await place.close()
    places = records(folder)
    blocks = sorted({block for block, _, _ in places}, key=lambda path: int(path.stem))
    assert len(blocks) >= 3
    assert list(scan_store(folder, hash_after=115)) == read
    firsts = [[block for block, _, _ in places].index(block) + 1 for block in blocks]
    blocks[1].rename(folder / "aside")
    with pytest.raises(StoreDamaged) as damaged:
        list(scan_store(folder))
    assert damaged.value.sequence == firsts[1]
    (folder / "aside").rename(blocks[1])
    # One bit in the middle of the store, and a scan that checks hashes only later: it passes here
    # and is the chain's to find; checked, it is named.
    block, offset, size = places[59]
    data = bytearray(block.read_bytes())
    data[offset + size - 20] ^= 1
    block.write_bytes(data)
    assert len(list(scan_store(folder, hash_after=118))) == 120
    with pytest.raises(StoreDamaged) as damaged:
        list(scan_store(folder, hash_after=59))
    assert damaged.value.sequence == 60


async def test_removed_entries_are_holes_also_to_the_scan(
    on_single: JetStreamPlace, tmp_path: Path
) -> None:
    place = JetStreamPlace(on_single.cluster, f"{on_single.cell}d")
    await place.make(deny=False)
    try:
        await fill(place, ENTRIES)
        await place.punch(5)
        folder = await stopped_store(place, tmp_path, kill=False)
    finally:
        await place.close()
    with pytest.raises(StoreDamaged) as damaged:
        list(scan_store(folder, hash_after=0))
    assert damaged.value.sequence in {5, ENTRIES + 1}
    assert "5 is marked as removed" in str(damaged.value) or "erased" in str(damaged.value)


async def test_no_store_is_not_an_empty_one(tmp_path: Path) -> None:
    assert not has_store(tmp_path)
    with pytest.raises(StoreMissing):
        list(scan_store(tmp_path / "SABOT_none"))
    await asyncio.sleep(0)


async def test_nats_06_another_payload_at_990_is_named(
    on_single: JetStreamPlace, tmp_path: Path
) -> None:
    await fill(on_single, 1000, size=4)
    folder = await stopped_store(on_single, tmp_path, kill=True)
    block, offset, size = records(folder)[989]
    data = bytearray(block.read_bytes())
    data[offset + size - 9] ^= 4  # the payload's last byte
    block.write_bytes(data)
    with pytest.raises(StoreDamaged, match="sequence 990: the record does not fit its hash"):
        list(scan_store(folder, hash_after=980))
