"""Damage to a data folder's log: it is found and named, nothing is served, nothing is written.

The stores are real: one whose fleet stopped in order, and one whose fleet and server were killed.
"""

from __future__ import annotations

import asyncio
import random
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from services.cli.fleet import CELL, embedded_log
from services.cli.log_source import check_folder
from services.cli.main import app
from services.kernel.embedded import stream_folder
from services.kernel.store_check import StoreNotTheLog
from services.kernel.streams import StreamMissing
from tests.fleet.stores import (
    Damage,
    Record,
    contents,
    copied,
    flip,
    msgs,
    play,
    play_and_kill,
    records,
)

ROUNDS = 2
ENDS = ("stopped", "killed")


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """By how it ended: a data folder with a healthy log."""
    base = tmp_path_factory.mktemp("stores")
    play(base / "stopped", ROUNDS)
    play_and_kill(base / "killed", ROUNDS)
    return {end: base / end for end in ENDS}


def sabot(*arguments: str) -> Result:
    """The command, in this process."""
    return CliRunner().invoke(app, list(arguments))


def start(data: Path) -> None:
    """What starting a fleet does first."""

    async def main() -> None:
        async with embedded_log(data):
            pass

    asyncio.run(main())


def chosen(data: Path) -> list[Record]:
    """First, middle and last, of inputs and of answers, and of all."""
    every = records(data)
    picked: dict[int, Record] = {}
    for kind in ("", ".in", ".out"):
        some = [one for one in every if one.subject.endswith(kind)]
        for one in (some[0], some[len(some) // 2], some[-1]):
            picked[one.sequence] = one
    return [picked[sequence] for sequence in sorted(picked)]


def assert_refused(data: Path, sequence: int) -> None:
    """Neither verified nor started; the position is named; the store stays as it is."""
    before = contents(data)
    verified = sabot("replay", "--data", str(data), "--verify")
    assert verified.exit_code == 1, verified.output
    assert "verified:" not in verified.stdout
    assert f"entry {sequence}: " in verified.stderr
    assert "Traceback" not in verified.output
    with pytest.raises(StoreNotTheLog) as refused:
        start(data)
    assert refused.value.sequence == sequence
    assert contents(data) == before


@pytest.mark.parametrize("end", ENDS)
def test_a_healthy_store_is_verified_and_starts(
    stores: dict[str, Path], tmp_path: Path, end: str
) -> None:
    data = copied(stores[end], tmp_path / end)
    before = contents(data)
    verified = sabot("replay", "--data", str(data), "--verify")
    assert verified.exit_code == 0, verified.output
    assert verified.stdout.splitlines()[-1].startswith(f"verified: {ROUNDS} rounds, 4 bets, ")
    assert verified.stdout.endswith("0 differences, accounts sum to 0\n")
    assert contents(data) == before
    play(data, 1)
    again = sabot("replay", "--data", str(data), "--verify")
    assert again.stdout.splitlines()[-1].startswith(f"verified: {ROUNDS + 1} rounds, 6 bets, ")


def flips(data: Path, bits_a_part: int, seed: int) -> list[tuple[Record, str, int, int]]:
    """Bits to flip: of every part of the chosen records; of lengths the most."""
    chance = random.Random(seed)
    found = []
    for record in chosen(data):
        for part, (begin, end) in record.parts.items():
            bits = [(place, bit) for place in range(begin, end) for bit in range(8)]
            count = 4 * bits_a_part if "length" in part else bits_a_part
            for place, bit in chance.sample(bits, min(count, len(bits))):
                found.append((record, part, place, bit))
    return found


def check_flips(data: Path, bits_a_part: int, seed: int) -> None:
    """Each flipped bit alone is found by both checks, and named by its entry."""
    for record, part, place, bit in flips(data, bits_a_part, seed):
        whole = record.block.read_bytes()
        flip(record.block, place, bit)
        told = f"entry {record.sequence} of {record.subject}, {part}, byte {place}, bit {bit}"
        try:
            for hash_all in (False, True):
                with pytest.raises(StoreNotTheLog) as found:
                    check_folder(data, CELL, hash_all=hash_all)
                assert found.value.sequence == record.sequence, (told, found.value)
        except pytest.fail.Exception:
            pytest.fail(f"not seen: {told}")
        finally:
            record.block.write_bytes(whole)


@pytest.mark.parametrize("end", ENDS)
def test_a_flipped_bit_anywhere_in_an_entry_is_found_and_named(
    stores: dict[str, Path], tmp_path: Path, end: str
) -> None:
    check_flips(copied(stores[end], tmp_path / end), bits_a_part=1, seed=1)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("end", ENDS)
def test_many_flipped_bits_are_found_and_named(
    stores: dict[str, Path], tmp_path: Path, end: str
) -> None:
    check_flips(copied(stores[end], tmp_path / end), bits_a_part=32, seed=2)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("part", ["payload", "time", "length", "hash", "headers"])
def test_a_fleet_and_the_command_refuse_a_flipped_bit(
    stores: dict[str, Path], tmp_path: Path, end: str, part: str
) -> None:
    for kind in ("first", "middle", "last"):
        data = copied(stores[end], tmp_path / end)
        some = [one for one in records(data) if part in one.parts]
        record = {"first": some[0], "middle": some[len(some) // 2], "last": some[-1]}[kind]
        flip(record.block, record.parts[part][0], 3)
        assert_refused(data, record.sequence)


def cut_at_a_record(data: Path) -> int:
    last = records(data)[-1]
    last.block.write_bytes(last.block.read_bytes()[: last.offset])
    return last.sequence


def cut_within_a_record(data: Path) -> int:
    last = records(data)[-1]
    last.block.write_bytes(last.block.read_bytes()[: last.offset + last.size // 2])
    return last.sequence


def cut_in_the_middle(data: Path) -> int:
    one = records(data)[20]
    one.block.write_bytes(one.block.read_bytes()[: one.offset])
    return one.sequence


def remove_the_block(data: Path) -> int:
    for block in msgs(data).iterdir():
        block.unlink()
    return 1


def remove_the_stream(data: Path) -> int:
    shutil.rmtree(stream_folder(data, CELL))
    return 1


def remove_the_server_s_folder(data: Path) -> int:
    shutil.rmtree(data / "nats")
    return 1


def remove_the_description(data: Path) -> int:
    """Without it the server would not find the stream, though every entry is there."""
    (stream_folder(data, CELL) / "meta.inf").unlink()
    return 1


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(
    "damage",
    [
        remove_the_description,
        cut_at_a_record,
        cut_within_a_record,
        cut_in_the_middle,
        remove_the_block,
        remove_the_stream,
        remove_the_server_s_folder,
    ],
)
def test_what_is_missing_is_named(
    stores: dict[str, Path], tmp_path: Path, end: str, damage: Damage
) -> None:
    data = copied(stores[end], tmp_path / end)
    assert_refused(data, damage(data))


@pytest.mark.parametrize("end", ENDS)
def test_an_older_copy_is_refused(stores: dict[str, Path], tmp_path: Path, end: str) -> None:
    data = copied(stores[end], tmp_path / end)
    older = copied(data, tmp_path / "older")
    last = records(older)[-1].sequence
    play(data, 1)
    shutil.rmtree(data / "nats")
    shutil.copytree(older / "nats", data / "nats")
    assert_refused(data, last + 1)


def test_another_log_of_the_same_length_is_refused(stores: dict[str, Path], tmp_path: Path) -> None:
    data = copied(stores["stopped"], tmp_path / "stopped")
    shutil.rmtree(data / "nats")
    shutil.copytree(stores["killed"] / "nats", data / "nats")
    before = contents(data)
    with pytest.raises(StoreNotTheLog):
        start(data)
    assert sabot("replay", "--data", str(data), "--verify").exit_code == 1
    assert contents(data) == before


def test_no_stream_is_made_where_one_was(stores: dict[str, Path], tmp_path: Path) -> None:
    """Even with every witness gone: the folder remembers that it held a log."""
    data = copied(stores["stopped"], tmp_path / "stopped")
    shutil.rmtree(data / "nats")
    shutil.rmtree(data / "witness")
    with pytest.raises(StreamMissing):
        start(data)
    assert sabot("replay", "--data", str(data), "--verify").exit_code == 1


def test_an_append_that_was_never_acknowledged_may_be_torn(
    stores: dict[str, Path], tmp_path: Path
) -> None:
    """A fleet was killed in the middle of a write: what is half there never counted."""
    for kept in (3, 21, 40, 60):
        data = copied(stores["killed"], tmp_path / "killed")
        last = records(data)[-1]
        whole = last.block.read_bytes()
        torn = bytearray(whole[last.offset : last.offset + last.size])
        torn[4:12] = (last.sequence + 1).to_bytes(8, "little")
        last.block.write_bytes(whole + torn[:kept])
        assert sabot("replay", "--data", str(data), "--verify").exit_code == 0
    goes_on(data)


def goes_on(data: Path) -> None:
    play(data, 1)
    again = sabot("replay", "--data", str(data), "--verify")
    assert again.exit_code == 0
    assert again.stdout.splitlines()[-1].startswith(f"verified: {ROUNDS + 1} rounds")


def test_a_file_that_the_power_left_longer_than_what_was_written_is_read(
    stores: dict[str, Path], tmp_path: Path
) -> None:
    """Its end is zeros; within a block, or where the witness has read on, they are damage."""
    data = copied(stores["killed"], tmp_path / "killed")
    before, last = records(data)[-2:]
    whole = last.block.read_bytes()
    begun = bytearray(whole[last.offset : last.offset + last.size])
    begun[4:12] = (last.sequence + 1).to_bytes(8, "little")
    half = bytes(begun[: last.size // 2]).ljust(last.size, b"\0")
    for end in (bytes(7), bytes(300), bytes(4096), half, half + bytes(700)):
        last.block.write_bytes(whole + end)
        done = sabot("replay", "--data", str(data), "--verify")
        assert done.exit_code == 0, done.stderr
    zeros = bytes(before.size)
    last.block.write_bytes(whole[: before.offset] + zeros + whole[before.offset + before.size :])
    assert_refused(data, before.sequence)
    last.block.write_bytes(whole[: last.offset] + bytes(last.size))
    assert_refused(data, last.sequence)
    last.block.write_bytes(whole + half + whole[last.offset : last.offset + last.size])
    assert_refused(data, last.sequence + 1)
    last.block.write_bytes(whole + half + bytes(4096))
    goes_on(data)


@pytest.mark.parametrize("which", [-1, 30])
def test_a_whole_record_with_a_greater_length_is_not_taken_for_torn(
    stores: dict[str, Path], tmp_path: Path, which: int
) -> None:
    """Even where no witness is left to say that more was there."""
    data = copied(stores["killed"], tmp_path / "killed")
    shutil.rmtree(data / "witness")
    record = records(data)[which]
    begin = record.parts["length"][0]
    for place, bit in ((begin + 1, 7), (begin + 2, 0), (begin + 2, 4)):
        whole = record.block.read_bytes()
        flip(record.block, place, bit)
        with pytest.raises(StoreNotTheLog, match="length") as found:
            check_folder(data, CELL)
        assert found.value.sequence == record.sequence
        record.block.write_bytes(whole)
    arbitrary = bytearray(whole)
    arbitrary[begin : begin + 3] = b"\x11\x22\x33"
    record.block.write_bytes(arbitrary)
    with pytest.raises(StoreNotTheLog) as found:
        check_folder(data, CELL)
    assert found.value.sequence == record.sequence
