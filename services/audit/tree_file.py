"""The tree of a log, kept in files so that proofs need no reading of the log: a cache.

One file a level, 32 bytes a node, and one of the chain hashes. It is written without fsync and
checked against the log when it is opened; what does not fit is made anew from the log.
"""

from __future__ import annotations

import os
from pathlib import Path

from services.audit.domain.tree import HASH_BYTES, leaf_hash, node_hash

MAX_LEVELS = 48
"""Of a tree with more leaves than any log will have entries."""


class TreeFile:
    """See the module, and `services.audit.domain.tree.Nodes`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._levels: list[int] = []
        self._sizes: list[int] = []
        for level in range(MAX_LEVELS):
            if not self._path(level).exists():
                break
            self._open(level)
        if not self._levels:
            self._open(0)
        self._heads = os.open(folder / "heads", os.O_RDWR | os.O_CREAT, 0o600)
        self.cut(min(self._sizes[0], os.fstat(self._heads).st_size // HASH_BYTES))

    @property
    def size(self) -> int:
        """How many leaves it has."""
        return self._sizes[0]

    def append(self, head: bytes) -> None:
        """Add the leaf of the next entry, whose chain hash this is."""
        os.pwrite(self._heads, head, self.size * HASH_BYTES)
        level, node = 0, leaf_hash(self.size + 1, head)
        while True:
            if level == len(self._levels):
                self._open(level)
            at = self._sizes[level]
            os.pwrite(self._levels[level], node, at * HASH_BYTES)
            self._sizes[level] = at + 1
            if at % 2 == 0:
                return
            node = node_hash(self.node(level, at - 1), node)
            level += 1

    def node(self, level: int, index: int) -> bytes:
        """See `Nodes`."""
        return os.pread(self._levels[level], HASH_BYTES, index * HASH_BYTES)

    def head(self, sequence: int) -> bytes:
        """The chain hash at an entry; empty where it does not have it yet."""
        return os.pread(self._heads, HASH_BYTES, (sequence - 1) * HASH_BYTES)

    def holds(self, sequence: int, head: bytes) -> bool:
        """Whether the leaf of an entry is there, with this chain hash."""
        return sequence <= self.size and self.head(sequence) == head

    def cut(self, size: int) -> None:
        """Forget all but the first leaves, and what levels above lack is added."""
        self._sizes[0] = size
        os.ftruncate(self._heads, size * HASH_BYTES)
        for level, file in enumerate(self._levels):
            whole = size >> level
            kept = min(self._sizes[level], whole)
            if level:
                for index in range(kept, whole):
                    node = node_hash(
                        self.node(level - 1, 2 * index), self.node(level - 1, 2 * index + 1)
                    )
                    os.pwrite(file, node, index * HASH_BYTES)
                kept = whole
            os.ftruncate(file, kept * HASH_BYTES)
            self._sizes[level] = kept

    def close(self) -> None:
        """Let go of the files."""
        for file in (*self._levels, self._heads):
            os.close(file)
        self._levels.clear()

    def _open(self, level: int) -> None:
        file = os.open(self._path(level), os.O_RDWR | os.O_CREAT, 0o600)
        self._levels.append(file)
        self._sizes.append(os.fstat(file).st_size // HASH_BYTES)

    def _path(self, level: int) -> Path:
        return self._folder / f"level-{level:02}"
