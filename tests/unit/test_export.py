"""An export is checked by one file that needs no part of Sabot; what is changed in it is named."""

from __future__ import annotations

import ast
import io
import sys
from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from sabot.audit.v1 import events_pb2 as audit
from sabot.log.v1 import events_pb2 as log
from services.audit.domain.tree import Tree, leaf_hash, root
from services.audit.seal_keys import Signer, signed_text, signer_of
from services.audit.tree_file import TreeFile
from services.cli import verify_export
from services.cli.export import NothingToExport, descriptors, export_log
from services.cli.verify_export import (
    ENTRY,
    FIELDS,
    HASH_BYTES,
    LENGTH,
    MAGIC,
    Begun,
    CheckpointUnusable,
    NotAnExport,
    Past,
    read_entries,
    read_start,
    verify,
)
from services.kernel.event import Event
from services.kernel.memory_log import MemoryLog, MemoryStore
from services.simulator.virtual_time import run_virtual
from tests.fleet.small_cell import SmallCell, memory_cell

OWNER, FORGER = signer_of(bytes(range(32))), signer_of(b"f" * 32)
SEALS = frozenset({audit.LogSealed, log.InputIgnored})
END_BYTES = ENTRY.size + HASH_BYTES


class Export(NamedTuple):
    """An export, and where each of its entries begins."""

    raw: bytes
    start: int
    """Where the first entry begins."""
    entries: list[tuple[int, int]]
    """Offset and length of each."""


async def seal(cell: SmallCell, tree: TreeFile, signer: Signer) -> None:
    """Sign what the tree has, and have it in the log."""
    size = tree.size
    top, head = root(tree, size), tree.head(size)
    body = audit.SealLog(
        size=size,
        root=top,
        head=head,
        signature=signer.key.sign(signed_text(cell.process.cell, size, top, head)),
        key_id=signer.key_id,
        public_key=signer.public_key,
    )
    told = await cell.submit("audit", body, SEALS, "system:sealer")
    assert isinstance(told.event.body, audit.LogSealed)


class Listening:
    """Keeps the tree of a cell."""

    def __init__(self, tree: TreeFile) -> None:
        self._tree = tree

    def feed(self, sequence: int, head: bytes, events: list[Event]) -> None:
        del events
        assert sequence == self._tree.size + 1
        self._tree.append(head)


@lru_cache(maxsize=4)
def exported(folder: Path, signer: Signer = OWNER, seed: int = 1) -> Export:
    """A log of two rounds with a seal after each and a few entries behind the last."""
    path = folder / f"{signer.key_id}-{seed}.export"

    async def main() -> None:
        async with memory_cell(seed) as (cell, _):
            tree = TreeFile(folder / f"tree-{signer.key_id}-{seed}")
            cell.process.add_listener(Listening(tree))
            # What the process folded at its start, before it was listened to.
            assert cell.process.position.sequence == 0
            await cell.open_table()
            await cell.open_account("ann", 1_000_000)
            for _ in range(2):
                await cell.play(1, ["ann"])
                await seal(cell, tree, signer)
            await cell.play(1, ["ann"])
            await export_log(cell.process.log, path, lambda _: None)

    run_virtual(main())
    raw = path.read_bytes()
    start = len(MAGIC)
    for _ in range(2):
        (size,) = LENGTH.unpack_from(raw, start)
        start += LENGTH.size + size
    start += HASH_BYTES
    entries: list[tuple[int, int]] = []
    at = start
    while at < len(raw) - END_BYTES:
        _, *lengths = ENTRY.unpack_from(raw, at)
        size = ENTRY.size + sum(lengths) + 32
        entries.append((at, size))
        at += size
    return Export(raw, start, entries)


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Export:
    return exported(tmp_path_factory.mktemp("export"))


def faults(raw: bytes, *trusted: Signer) -> list[tuple[int, str]]:
    return verify(io.BytesIO(raw), frozenset(one.public_key for one in trusted)).faults


def test_a_whole_export_is_right(export: Export) -> None:
    found = verify(io.BytesIO(export.raw), frozenset({OWNER.public_key}))
    assert found.right
    assert (found.entries, found.seals) == (len(export.entries), 2)
    assert 0 < found.sealed < found.entries
    assert found.keys == {OWNER.key_id: OWNER.public_key}


def test_a_removed_entry_two_exchanged_ones_and_an_added_one_are_named(export: Export) -> None:
    raw, spots = export.raw, export.entries
    number = len(spots) // 2
    (first, size), (second, other) = spots[number], spots[number + 1]
    removed = raw[:first] + raw[first + size :]
    assert faults(removed)[0] == (number + 1, f"missing: the file goes on with entry {number + 2}")
    exchanged = (
        raw[:first] + raw[second : second + other] + raw[first:second] + raw[second + other :]
    )
    assert faults(exchanged)[0][0] == number + 1
    twice = raw[:second] + raw[first : first + size] + raw[second:]
    assert faults(twice)[0][0] == number + 2


def test_a_tail_that_was_cut_off_shows_by_what_the_last_seal_covers(export: Export) -> None:
    """Whole entries may be missing at the end: the newest seal that one knows says how many."""
    whole = verify(io.BytesIO(export.raw))
    at, _ = export.entries[10]
    head = export.raw[at - HASH_BYTES : at]
    cut = verify(io.BytesIO(export.raw[:at] + bytes(ENTRY.size) + head))
    assert cut.right
    assert (cut.entries, cut.sealed) == (10, 0)
    assert whole.sealed > cut.entries
    with pytest.raises(NotAnExport, match="cut: its end is missing, or the entry after 10"):
        verify(io.BytesIO(export.raw[:at]))
    with pytest.raises(NotAnExport, match="ends within the entry after 10"):
        verify(io.BytesIO(export.raw[: at + 5]))


def test_a_fork_that_was_signed_again_is_found_by_its_key(tmp_path: Path) -> None:
    fork = exported(tmp_path, FORGER, 2).raw
    assert verify(io.BytesIO(fork)).right  # By itself it is in order: only the key tells.
    told = faults(fork, OWNER)
    assert len(told) == 2
    assert all("which is not trusted" in what for _, what in told)


def test_a_tampered_seal_is_found(export: Export) -> None:
    """Even where whoever tampered chained all that follows anew."""
    for old, new, words in (
        (OWNER.public_key, bytes(32), "names another key than it holds"),
        (OWNER.public_key, FORGER.public_key, "is not signed by its key"),
        (OWNER.key_id.encode(), FORGER.key_id.encode(), "names another key than it holds"),
    ):
        raw = bytearray(export.raw[: export.start])
        head = verify_export.first_head("main")
        with io.BytesIO(export.raw[export.start :]) as file:
            for entry in read_entries(file, marked=True):
                one = entry._replace(payload=entry.payload.replace(old, new))
                head = verify_export.next_head(head, one)
                lengths = (len(one.subject), len(one.headers), len(one.payload))
                raw += ENTRY.pack(one.sequence, *lengths)
                raw += one.subject + one.headers + one.payload + head
        raw += bytes(ENTRY.size) + head
        told = faults(bytes(raw), OWNER)
        assert any(words in what for _, what in told)
        # What was chained anew is at odds with what the answers and the seals after it commit to.
        assert any("another log" in what or "another chain hash" in what for _, what in told)


def test_nothing_of_a_long_log_is_kept_but_its_last_entries(
    export: Export, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What speaks of older ones is held against the file, read again: the same is found."""
    whole = verify(io.BytesIO(export.raw))
    spot = export.entries[whole.sealed + 1][0] + 200
    wrong = bytearray(export.raw)
    wrong[spot] ^= 1
    tampered = export.raw.replace(OWNER.public_key, FORGER.public_key)
    before = [verify(io.BytesIO(raw)).faults for raw in (bytes(wrong), tampered)]
    for window, step, at_once in ((1, 1, 1), (4, 2, 1 << 14), (16, 8, 3)):
        monkeypatch.setattr(Past, "WINDOW", window)
        monkeypatch.setattr(Past, "STEP", step)
        monkeypatch.setattr(verify_export._Checks, "AT_ONCE", at_once)
        found = verify(io.BytesIO(export.raw), frozenset({OWNER.public_key}))
        assert found.right
        assert (found.entries, found.seals, found.sealed) == (whole.entries, 2, whole.sealed)
        assert [verify(io.BytesIO(raw)).faults for raw in (bytes(wrong), tampered)] == before
        past = Past("main")
        entries = read_entries(io.BytesIO(export.raw[export.start :]), marked=True)
        heads = [one.head for one in entries]
        tree = Tree()
        for sequence, head in enumerate(heads, start=1):
            past.append(head)
            tree.append(leaf_hash(sequence, head))
            assert not past.has(sequence + 1)
            for size in range(max(1, sequence - window), sequence + 1):
                if past.has(size):
                    assert (past.head(size), past.root(size)) == (heads[size - 1], root(tree, size))
        assert past.has(len(heads)), "the newest is always there"
        assert not past.has(1), "the oldest are not"


# ---- interrupted -------------------------------------------------------------------------------


def interrupted(
    raw: bytes, at: int, monkeypatch: pytest.MonkeyPatch, begun: Begun | None = None
) -> Begun | None:
    """How far a check is that Ctrl-C ends at an entry; None where there is nothing to keep."""
    kept: list[Begun] = []
    whole, count = verify_export.next_head, 0

    def until(head: bytes, entry: Any) -> bytes:
        nonlocal count
        count += 1
        if count == at:
            raise KeyboardInterrupt
        return whole(head, entry)

    with monkeypatch.context() as patch:
        patch.setattr(verify_export, "next_head", until)
        with pytest.raises(KeyboardInterrupt):
            verify(io.BytesIO(raw), begun=begun, keep=lambda one, _now: kept.append(one))
    return kept[-1] if kept else None


def test_a_check_that_is_interrupted_goes_on_and_finds_the_same(
    export: Export, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Past, "WINDOW", 1)
    monkeypatch.setattr(Past, "STEP", 1)
    whole, other = verify(io.BytesIO(export.raw)), exported(tmp_path, OWNER, 2).raw
    last = len(export.entries)
    for at in (2, last // 2, last):
        begun = interrupted(export.raw, at, monkeypatch)
        assert begun is not None
        assert begun.entries == at - 1
        assert interrupted(export.raw, at // 2, monkeypatch, begun) is None, (
            "no further than it was"
        )
        found = verify(io.BytesIO(export.raw), begun=begun)
        assert vars(found) == vars(whole)
        # What it covers is believed of answers alone: chain and seals are checked anew.
        early = export.entries[0][0] + 60
        damaged = bytearray(export.raw)
        damaged[early] ^= 1
        forged = export.raw.replace(OWNER.public_key, FORGER.public_key)
        for raw in (bytes(damaged), forged):
            assert verify(io.BytesIO(raw), begun=begun).faults == faults(raw) != []
        if at > 2:  # The first entry is the same in both.
            with pytest.raises(CheckpointUnusable):
                verify(io.BytesIO(other), begun=begun)
    assert begun is not None
    # What was to be checked against what is not kept any more is checked now.
    heads = [one.head for one in read_entries(io.BytesIO(export.raw[export.start :]), marked=True)]
    assert verify(io.BytesIO(export.raw), begun=begun._replace(late=[(2, 9, heads[1])])).right
    told = verify(io.BytesIO(export.raw), begun=begun._replace(late=[(2, 9, heads[2])])).faults
    assert told == [(9, "it answers another log than this one has at entry 2")]


def test_a_checkpoint_is_of_one_export_and_verifier(
    export: Export, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    file, checkpoint = tmp_path / "file", tmp_path / "checkpoint"
    file.write_bytes(export.raw)

    out = ""

    def check() -> tuple[int, str]:
        nonlocal out
        code = verify_export.check_file(str(file), [], [], str(checkpoint))
        out, err = capsys.readouterr()
        return code, err

    whole, count = verify_export.next_head, 0

    def until(head: bytes, entry: Any) -> bytes:
        nonlocal count
        count += 1
        if count == 40:
            raise KeyboardInterrupt
        return whole(head, entry)

    with monkeypatch.context() as patch:
        patch.setattr(verify_export, "next_head", until)
        with pytest.raises(KeyboardInterrupt):
            check()
    left = checkpoint.read_text()
    for wrong, why in (
        (left[:-2], "it cannot be read"),
        (left.replace('"late"', '"later"'), "it cannot be read"),
        (left.replace('"cell": "main"', '"cell": "other"'), "of another export or verifier"),
        (left.replace('"verifier": "', '"verifier": "0'), "of another export or verifier"),
        (left.replace('"entries": 39', '"entries": 38'), "another chain hash there"),
        (left.replace('"entries": 39', '"entries": 3900'), "the export ends before"),
    ):
        checkpoint.write_text(wrong)
        code, err = check()
        assert (code, why in err, "remove it" in err) == (1, True, True), (why, err)
        assert checkpoint.exists(), "it is its owner's to remove"
    checkpoint.write_text(left)
    assert check() == (0, f"going on from {checkpoint}, which reaches to entry 39\n")
    left_to_it = f"answers up to entry 39: as the call found them that left {checkpoint}\n"
    assert out.startswith(left_to_it), "nobody signs a checkpoint"
    assert not checkpoint.exists()
    assert check() == (0, "")
    assert left_to_it not in out


@pytest.mark.parametrize(
    "raw",
    [b"", b"sabot", b"x" * 100, MAGIC, MAGIC + b"\0\0\0\4main", MAGIC + b"\xff\xff\xff\xff"],
)
def test_what_is_no_export_is_said_so(raw: bytes) -> None:
    with pytest.raises(NotAnExport):
        verify(io.BytesIO(raw))


def test_damaged_descriptors_are_said_so() -> None:
    whole = descriptors()
    for broken in (whole[:50], b"\xff" * 20, b""):
        start = MAGIC + LENGTH.pack(4) + b"main" + LENGTH.pack(len(broken)) + broken
        start += sha256(start).digest()
        with pytest.raises(NotAnExport, match="descriptors"):
            verify(io.BytesIO(start))


def with_start(raw: bytes, descriptors: bytes) -> bytes:
    """An export with other descriptors and the digest that goes with them."""
    own = read_start(io.BytesIO(raw)).descriptors
    start = MAGIC + LENGTH.pack(4) + b"main" + LENGTH.pack(len(descriptors)) + descriptors
    return start + sha256(start).digest() + raw[raw.index(own) + len(own) + HASH_BYTES :]


def changed(change: Callable[[FileDescriptorProto], None]) -> bytes:
    """Descriptors that somebody changed."""
    files = FileDescriptorSet.FromString(descriptors())
    for file in files.file:
        change(file)
    return files.SerializeToString()


def without(*names: str) -> bytes:
    def change(file: FileDescriptorProto) -> None:
        kept = [one for one in file.message_type if one.name not in names]
        del file.message_type[:]
        file.message_type.extend(kept)

    return changed(change)


@pytest.mark.parametrize(
    "field", [one for fields in FIELDS.values() for one in fields], ids=lambda one: one
)
def test_descriptors_that_have_a_field_elsewhere_are_refused(export: Export, field: str) -> None:
    """Nobody signs them, and what stood under the field's true number would not be checked."""
    number = int(field.rpartition(" ")[2])

    def renumbered(file: FileDescriptorProto) -> None:
        for message in file.message_type:
            if field in FIELDS.get(f"{file.package}.{message.name}", ()):
                next(one for one in message.field if one.number == number).number = 99

    with pytest.raises(NotAnExport, match=f"do not have .* with `{field}`"):
        verify(io.BytesIO(with_start(export.raw, changed(renumbered))))


def test_descriptors_with_a_field_among_several_or_of_another_syntax_are_refused(
    export: Export,
) -> None:
    def among(file: FileDescriptorProto) -> None:
        for message in file.message_type:
            if message.name == "Event":
                message.oneof_decl.add(name="one")
                message.field[0].oneof_index = message.field[4].oneof_index = 0

    def older(file: FileDescriptorProto) -> None:
        file.syntax = "proto2"

    for change in (among, older):
        with pytest.raises(NotAnExport, match="descriptors"):
            verify(io.BytesIO(with_start(export.raw, changed(change))))


def test_descriptors_of_before_corrections_are_right_while_there_are_none(export: Export) -> None:
    old = without("FactsConfirmed", "RecalledFact", "RecallFacts", "FactsRecalled")
    assert verify(io.BytesIO(with_start(export.raw, old))).right


def test_an_empty_log_gives_no_export(tmp_path: Path) -> None:
    async def main() -> None:
        empty = MemoryLog(MemoryStore("main", lambda: 1))
        with pytest.raises(NothingToExport):
            await export_log(empty, tmp_path / "file", lambda _: None)

    run_virtual(main())
    assert list(tmp_path.iterdir()) == []


# ---- the verifier by itself --------------------------------------------------------------------


def test_the_verifier_imports_nothing_of_sabot() -> None:
    tree = ast.parse(Path(verify_export.__file__).read_text())
    names = {
        (node.module if isinstance(node, ast.ImportFrom) else alias.name) or ""
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    foreign = {name.split(".")[0] for name in names} - sys.stdlib_module_names
    assert foreign == {"cryptography", "google"}
