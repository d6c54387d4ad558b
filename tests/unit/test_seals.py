"""Signed heads: when the sealer signs, what the core takes, and proofs that hold against a seal."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sabot.audit.v1 import audit_service_pb2 as audits
from sabot.audit.v1 import events_pb2 as audit
from sabot.log.v1 import events_pb2 as log
from sabot.shoe.v1 import events_pb2 as shoes
from services.audit.domain.core import CORE, AuditState
from services.audit.domain.tree import Tree, check_consistency, check_inclusion, leaf_hash, root
from services.audit.seal_keys import (
    is_signed_by,
    load_or_create_signer,
    signed_text,
    signer_of,
)
from services.audit.sealer import AGAIN_US, EVERY_US, STANDBY_US, Sealer
from services.audit.seals import Seals
from services.audit.servicer import AuditServicer
from services.audit.tree_file import TreeFile
from services.kernel.entry import first_head
from services.kernel.errors import Refused
from services.kernel.event import Event, Position
from services.kernel.key_file import KeyFileUnusable
from tests.unit.deciding import Deciding
from tests.unit.front import NORTH

CELL = "c1"
SIGNER = signer_of(bytes(range(32)))
S_US = 1_000_000


def head_of(sequence: int) -> bytes:
    return sequence.to_bytes(32, "big")


def events(*bodies: Any) -> list[Event]:
    found: list[Any] = [_Heard(body) for body in bodies]
    return found


class _Heard:
    """What the sealer looks at of an event."""

    def __init__(self, body: Any) -> None:
        self.body = body


def sealer_of(folder: Path, signer: Any = SIGNER) -> Sealer:
    return Sealer(CELL, TreeFile(folder), signer)


def fed(sealer: Sealer, first: int, last: int, *bodies: Any) -> None:
    for sequence in range(first, last + 1):
        sealer.feed(sequence, head_of(sequence), events(*bodies or (shoes.OpenCards(),)))


def sealed(size: int, top: bytes = b"r", head: bytes = b"h") -> audit.LogSealed:
    return audit.LogSealed(size=size, root=top, head=head, signature=b"s", key_id="k")


def seal(size: int, top: bytes = b"r", head: bytes = b"h") -> audit.SealLog:
    return audit.SealLog(size=size, root=top, head=head, signature=b"s", key_id="k")


# ---- the core ----------------------------------------------------------------------------------


def ignored(reason: log.IgnoredReason.ValueType) -> log.InputIgnored:
    return log.InputIgnored(reason=reason)


def grown(entries: int) -> Deciding[AuditState]:
    """A log with so many events that change nothing."""
    return Deciding(CORE).given(*(seal(10_000) for _ in range(entries)))


def test_a_seal_is_taken_if_it_covers_more_than_the_last() -> None:
    played = grown(20)
    played.when(seal(5)).then(sealed(5))
    assert played.state.seal == sealed(5)
    played.when(seal(9)).then(sealed(9))
    played.when(seal(5)).then(ignored(log.IGNORED_REASON_NOT_NOW))
    played.when(seal(9)).then(ignored(log.IGNORED_REASON_ALREADY_DONE))


def test_a_second_root_over_the_same_entries_contradicts() -> None:
    played = grown(20).given(seal(9))
    played.when(seal(9, top=b"other")).then(ignored(log.IGNORED_REASON_CONTRADICTS))
    played.when(seal(9, head=b"other")).then(ignored(log.IGNORED_REASON_CONTRADICTS))


def test_entries_that_are_not_there_cannot_be_sealed() -> None:
    grown(3).when(seal(99)).then(ignored(log.IGNORED_REASON_IMPOSSIBLE))
    grown(3).when(seal(0)).then(ignored(log.IGNORED_REASON_IMPOSSIBLE))


# ---- the shell ---------------------------------------------------------------------------------


def test_it_signs_within_a_minute_of_the_last_seal_while_the_log_grows(tmp_path: Path) -> None:
    sealer, state = sealer_of(tmp_path), AuditState()
    fed(sealer, 1, 3)
    assert not sealer.poll(state, 100 * S_US, True)
    assert not sealer.poll(state, 100 * S_US + EVERY_US - 1, True)
    [told] = sealer.poll(state, 100 * S_US + EVERY_US, True)
    assert isinstance(told, audit.SealLog)
    assert (told.size, told.head, told.root) == (3, head_of(3), root(sealer.tree, 3))
    text = signed_text(CELL, told.size, told.root, told.head)
    assert is_signed_by(told.public_key, told.signature, text)
    assert not is_signed_by(told.public_key, told.signature, text + b"x")
    assert not is_signed_by(b"\0" * 32, told.signature, text)
    assert not sealer.poll(state, 100 * S_US + EVERY_US + AGAIN_US - 1, True)
    state.seal, state.sealed_us = sealed(3), 170 * S_US
    fed(sealer, 4, 4)
    assert not sealer.poll(state, 170 * S_US + EVERY_US - 1, True)
    assert sealer.poll(state, 170 * S_US + EVERY_US, True)
    assert EVERY_US + STANDBY_US + AGAIN_US < 60 * S_US


def test_a_quiet_log_stays_quiet(tmp_path: Path) -> None:
    """Entries that only seals made are not worth another."""
    sealer, state = sealer_of(tmp_path), AuditState()
    fed(sealer, 1, 3)
    fed(sealer, 4, 5, seal(3), sealed(3))
    state.seal, state.sealed_us = sealed(3), S_US
    assert not sealer.poll(state, 3600 * S_US, True)
    fed(sealer, 6, 6)
    assert sealer.poll(state, 3600 * S_US, True)


def test_a_shoes_end_is_sealed_at_once(tmp_path: Path) -> None:
    sealer, state = sealer_of(tmp_path), AuditState(sealed(1), 100 * S_US)
    fed(sealer, 1, 2)
    assert not sealer.poll(state, 101 * S_US, True)
    fed(sealer, 3, 3, shoes.ShoeClosed())
    assert sealer.poll(state, 101 * S_US, True)


def test_a_replica_that_did_not_write_waits_a_little_longer(tmp_path: Path) -> None:
    sealer, state = sealer_of(tmp_path), AuditState(sealed(1), 100 * S_US)
    fed(sealer, 1, 2)
    assert not sealer.poll(state, 100 * S_US + EVERY_US, False)
    assert sealer.poll(state, 100 * S_US + EVERY_US + STANDBY_US, False)


def test_without_a_key_nothing_is_signed(tmp_path: Path) -> None:
    sealer = sealer_of(tmp_path, None)
    fed(sealer, 1, 3)
    assert not sealer.poll(AuditState(), 3600 * S_US, True)


# ---- the tree in files -------------------------------------------------------------------------


def test_the_files_hold_the_tree(tmp_path: Path) -> None:
    file, tree = TreeFile(tmp_path), Tree()
    for sequence in range(1, 101):
        file.append(head_of(sequence))
        tree.append(leaf_hash(sequence, head_of(sequence)))
        assert root(file, sequence) == root(tree, sequence)
    file.close()
    again = TreeFile(tmp_path)
    assert again.size == 100
    assert root(again, 100) == root(tree, 100)
    assert again.holds(57, head_of(57))
    assert not again.holds(57, head_of(58))
    assert not again.holds(101, head_of(101))


@pytest.mark.parametrize("level", [0, 1, 3, 6])
def test_a_file_that_was_cut_is_completed(tmp_path: Path, level: int) -> None:
    """A crash may lose the end of any of them."""
    file = TreeFile(tmp_path)
    for sequence in range(1, 101):
        file.append(head_of(sequence))
    whole = root(file, 100)
    file.close()
    cut = tmp_path / f"level-{level:02}"
    cut.write_bytes(cut.read_bytes()[:-33])
    again = TreeFile(tmp_path)
    for sequence in range(again.size + 1, 101):
        again.append(head_of(sequence))
    assert root(again, 100) == whole


async def test_the_tree_catches_up_and_forgets_another_log(tmp_path: Path) -> None:
    sealer = sealer_of(tmp_path)

    async def read(after: int) -> AsyncIterator[tuple[int, bytes, list[Event]]]:
        for sequence in range(after + 1, 31):
            yield sequence, head_of(sequence), events(shoes.OpenCards())

    await sealer.catch_up(read)
    assert sealer.tree.size == 30
    fed(sealer, 25, 30)  # A process that starts from a snapshot feeds some again.
    assert sealer.tree.size == 30
    sealer.feed(20, b"o" * 32, events(shoes.OpenCards()))
    assert sealer.tree.size == 20
    assert sealer.tree.head(20) == b"o" * 32
    sealer.feed(40, head_of(40), [])
    assert "ends at entry 20" in sealer.problems["tree"]
    assert not sealer.poll(AuditState(), 3600 * S_US, True)


# ---- proofs ------------------------------------------------------------------------------------


class _Cell:
    """A process with a seal, as far as the calls look at it."""

    cell = CELL

    def __init__(self, size: int) -> None:
        self._state = AuditState(sealed(size), 1, Position(1, size + 1, 0))

    def state(self, service: str) -> AuditState:
        assert service == "audit"
        return self._state


def calls(folder: Path, size: int) -> tuple[AuditServicer, TreeFile]:
    tree = TreeFile(folder)
    for sequence in range(1, size + 3):
        tree.append(head_of(sequence))
    process: Any = _Cell(size)
    nothing: Any = None
    return AuditServicer(nothing, Seals(process, tree), nothing, nothing, nothing), tree


async def test_partners_prove_entries_and_growth_against_seals(tmp_path: Path) -> None:
    servicer, tree = calls(tmp_path, 40)
    told = await servicer.get_seal(audits.GetSealRequest(), NORTH)
    assert (told.seal.size, told.position.sequence) == (40, 41)
    for sequence in (1, 2, 17, 40):
        proof = await servicer.prove_entry(
            audits.ProveEntryRequest(sequence=sequence, size=40), NORTH
        )
        before = first_head(CELL) if sequence == 1 else head_of(sequence - 1)
        assert (proof.previous_head, proof.head) == (before, head_of(sequence))
        leaf = leaf_hash(sequence, proof.head)
        check_inclusion(leaf, sequence - 1, 40, proof.path, root(tree, 40))
        several = audits.ProveEntriesRequest(sequences=[7, sequence], size=40)
        assert (await servicer.prove_entries(several, NORTH)).proofs[1] == proof
    growth = await servicer.prove_growth(audits.ProveGrowthRequest(old_size=13, size=40), NORTH)
    check_consistency(13, root(tree, 13), 40, root(tree, 40), growth.path)


@pytest.mark.parametrize(
    ("sequence", "size", "reason"), [(5, 4, "NO_SUCH_PROOF"), (1, 41, "NOT_SEALED")]
)
async def test_what_is_not_sealed_is_not_proven(
    tmp_path: Path, sequence: int, size: int, reason: str
) -> None:
    servicer, _ = calls(tmp_path, 40)
    with pytest.raises(Refused) as entry:
        await servicer.prove_entry(audits.ProveEntryRequest(sequence=sequence, size=size), NORTH)
    with pytest.raises(Refused) as growth:
        await servicer.prove_growth(audits.ProveGrowthRequest(old_size=sequence, size=size), NORTH)
    assert (entry.value.reason.name, growth.value.reason.name) == (reason, reason)


# ---- keys --------------------------------------------------------------------------------------


def test_the_key_is_made_once_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "seal_keys.json"
    signer = load_or_create_signer(path)
    assert load_or_create_signer(path).public_key == signer.public_key
    assert len(signer.key_id) == 16
    path.chmod(0o644)
    with pytest.raises(KeyFileUnusable):
        load_or_create_signer(path)
