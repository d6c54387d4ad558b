"""Proofs that entries stand under a seal: made from the tree that audit keeps, or from the log."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from google.protobuf.message import DecodeError

from sabot.audit.v1 import events_pb2 as audit
from services.audit.domain.tree import (
    HASH_BYTES,
    Nodes,
    ProofWrong,
    Tree,
    check_inclusion,
    inclusion,
    leaf_hash,
    root,
)
from services.audit.seal_keys import is_signed_by, key_id_of, signed_text
from services.kernel.entry import NotUnderstood, decode_entry, first_head, next_head
from services.kernel.log import Log, LogMessage

SEALED = str(audit.LogSealed.DESCRIPTOR.full_name)


class Proof(NamedTuple):
    """That an entry is among those that a seal covers."""

    sequence: int
    path: tuple[bytes, ...]


def seals_in(message: LogMessage) -> Iterator[audit.LogSealed]:
    """The seals that an entry of a log holds."""
    if not message.subject.endswith(".audit.out") or SEALED.encode() not in message.payload:
        return
    try:
        entry = decode_entry(message.payload)
    except NotUnderstood:
        return
    for proto in entry.events:
        if proto.type == SEALED:
            with suppress(DecodeError):
                yield audit.LogSealed.FromString(proto.body)


async def first_seal_over(log: Log, sequence: int, last: int) -> audit.LogSealed | None:
    """The first seal that covers an entry; None: there is none yet. It stands behind the entry."""
    if sequence >= last:
        return None
    messages = log.read(sequence)
    try:
        async for batch in messages:
            for message in batch:
                for seal in seals_in(message):
                    if seal.size >= sequence:
                        return seal
                if message.sequence >= last:
                    return None
            await asyncio.sleep(0)
    finally:
        await messages.aclose()  # type: ignore[attr-defined]  # an async generator, by its contract
    return None


def seal_faults(cell: str, seal: audit.LogSealed, trusted: frozenset[bytes]) -> list[str]:
    """What is wrong with a seal by itself. `trusted`: keys of which one must have signed it; empty:
    any."""
    faults: list[str] = []
    text = signed_text(cell, seal.size, seal.root, seal.head)
    if not is_signed_by(seal.public_key, seal.signature, text):
        faults.append("the seal is not signed by its key")
    if key_id_of(seal.public_key) != seal.key_id:
        faults.append("the seal names another key than it holds")
    if trusted and seal.public_key not in trusted:
        faults.append(f"the seal is signed by the key {seal.key_id}, which is not trusted")
    return faults


def proof_fault(proof: Proof, head: bytes, seal: audit.LogSealed) -> str:
    """What is wrong with a proof; empty where it holds. `head`: the chain hash at the entry."""
    leaf = leaf_hash(proof.sequence, head)
    try:
        check_inclusion(leaf, proof.sequence - 1, seal.size, proof.path, seal.root)
    except ProofWrong:
        return f"entry {proof.sequence} is not among those that the seal covers"
    return ""


class FiledNodes:
    """The tree that audit keeps in files, to be read only: a fleet may be writing it."""

    def __init__(self, folder: Path) -> None:
        self._levels = [
            os.open(path, os.O_RDONLY) for path in sorted(folder.glob("level-*")) if path.is_file()
        ]

    def node(self, level: int, index: int) -> bytes:
        """See `Nodes`; short where it is not there."""
        if level >= len(self._levels):
            return b""
        return os.pread(self._levels[level], HASH_BYTES, index * HASH_BYTES)

    def close(self) -> None:
        """Let go of the files."""
        for file in self._levels:
            os.close(file)


@contextmanager
def kept_tree(data: Path | None, seal: audit.LogSealed) -> Iterator[Nodes | None]:
    """The kept tree whose root is the seal's; None where there is none."""
    folder = data / "seals" if data is not None else None
    for one in sorted(folder.iterdir()) if folder is not None and folder.is_dir() else []:
        nodes = FiledNodes(one)
        try:
            if root(nodes, seal.size) == seal.root:
                yield nodes
                return
        finally:
            nodes.close()
    yield None


async def tree_of(log: Log, size: int, progress: Callable[[int], None]) -> Tree:
    """The tree over the first entries, from their bytes."""
    tree, head = Tree(), first_head(log.cell)
    messages = log.read(0)
    try:
        async for batch in messages:
            for message in batch:
                head = next_head(
                    head, message.sequence, message.subject, message.headers, message.payload
                )
                tree.append(leaf_hash(message.sequence, head))
                if tree.size == size:
                    return tree
            progress(tree.size)
            await asyncio.sleep(0)
    finally:
        await messages.aclose()  # type: ignore[attr-defined]  # an async generator, by its contract
    return tree


def proof_of(nodes: Nodes, sequence: int, size: int) -> Proof:
    """The proof of one entry among the first `size`."""
    return Proof(sequence, tuple(inclusion(nodes, sequence - 1, size)))
