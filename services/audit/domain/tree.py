"""The Merkle tree over the entries of a log, as RFC 6962 (section 2.1) defines it.

Leaf `n` (from 0) stands for entry `n + 1`. Its data is the entry's sequence and the chain hash
there, which commits to the entry's bytes and to all before it. A proof is a list of hashes; whoever
has a root can check one without the log.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from hashlib import sha256
from typing import Protocol

HASH_BYTES = 32
_SEQUENCE = struct.Struct(">Q")
EMPTY_ROOT = sha256().digest()


class ProofWrong(ValueError):
    """A proof does not lead from what it is about to the root. The message says which."""


class Nodes(Protocol):
    """The hashes of complete subtrees."""

    def node(self, level: int, index: int) -> bytes:
        """The hash over the leaves `index · 2^level` up to below `(index + 1) · 2^level`, which are
        all there."""
        ...


def leaf_hash(sequence: int, head: bytes) -> bytes:
    """The hash of the leaf of an entry with this chain hash."""
    return sha256(b"\x00" + _SEQUENCE.pack(sequence) + head).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash over two subtrees."""
    return sha256(b"\x01" + left + right).digest()


class Tree:
    """A growing tree in memory, 64 bytes a leaf."""

    def __init__(self) -> None:
        self._levels: list[bytearray] = [bytearray()]

    @property
    def size(self) -> int:
        """How many leaves it has."""
        return len(self._levels[0]) // HASH_BYTES

    def append(self, leaf: bytes) -> None:
        """Add the hash of the next leaf."""
        level, node = 0, leaf
        while True:
            row = self._levels[level]
            row += node
            if (len(row) // HASH_BYTES) % 2:
                return
            node = node_hash(bytes(row[-2 * HASH_BYTES : -HASH_BYTES]), node)
            level += 1
            if level == len(self._levels):
                self._levels.append(bytearray())

    def node(self, level: int, index: int) -> bytes:
        """See `Nodes`."""
        at = index * HASH_BYTES
        return bytes(self._levels[level][at : at + HASH_BYTES])


# ---- roots and proofs --------------------------------------------------------------------------


def root(nodes: Nodes, size: int) -> bytes:
    """The root over the first leaves: `MTH(D[0:size])`."""
    return _range(nodes, 0, size) if size else EMPTY_ROOT


def inclusion(nodes: Nodes, index: int, size: int) -> list[bytes]:
    """That leaf `index` is one of the first `size`: `PATH(index, D[size])`.

    Raises ValueError unless 0 ≤ index < size."""
    if not 0 <= index < size:
        raise ValueError(f"no leaf {index} among {size}")
    first, last = 0, size
    path: list[bytes] = []
    while last - first > 1:
        middle = first + _split(last - first)
        if index < middle:
            path.append(_range(nodes, middle, last))
            last = middle
        else:
            path.append(_range(nodes, first, middle))
            first = middle
    path.reverse()
    return path


def consistency(nodes: Nodes, old: int, size: int) -> list[bytes]:
    """That the first `old` leaves are those of an older tree: `PROOF(old, D[size])`.

    Raises ValueError unless 0 < old ≤ size."""
    if not 0 < old <= size:
        raise ValueError(f"no tree of {old} leaves in one of {size}")
    first, last, whole = 0, size, True
    path: list[bytes] = []
    while old != last:
        middle = first + _split(last - first)
        if old <= middle:
            path.append(_range(nodes, middle, last))
            last = middle
        else:
            path.append(_range(nodes, first, middle))
            first, whole = middle, False
    if not whole:
        path.append(_range(nodes, first, last))
    path.reverse()
    return path


def _split(size: int) -> int:
    """The greatest power of two below the size."""
    return 1 << (size - 1).bit_length() - 1


def _range(nodes: Nodes, first: int, last: int) -> bytes:
    """The hash over a range that begins where a subtree does."""
    size = last - first
    if size & (size - 1) == 0:
        level = size.bit_length() - 1
        return nodes.node(level, first >> level)
    middle = first + _split(size)
    return node_hash(_range(nodes, first, middle), _range(nodes, middle, last))


# ---- checking ----------------------------------------------------------------------------------


def check_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes], of: bytes) -> None:
    """Hold a leaf's proof against a root (RFC 9162, 2.1.3.2). Raises ProofWrong."""
    if not 0 <= index < size:
        raise ProofWrong(f"no leaf {index} among {size}")
    at, last, node = index, size - 1, leaf
    for step in proof:
        if last == 0:
            raise ProofWrong(f"the proof of leaf {index} is too long")
        if at % 2 or at == last:
            node = node_hash(step, node)
            while at % 2 == 0 and at:
                at >>= 1
                last >>= 1
        else:
            node = node_hash(node, step)
        at >>= 1
        last >>= 1
    if last or node != of:
        raise ProofWrong(f"leaf {index} is not in this tree of {size}")


def check_consistency(
    old: int, old_root: bytes, size: int, new_root: bytes, proof: Sequence[bytes]
) -> None:
    """Hold a proof that a tree grew out of an older one against both roots (RFC 9162, 2.1.4.2).
    Raises ProofWrong."""
    if not 0 < old <= size:
        raise ProofWrong(f"no tree of {old} leaves in one of {size}")
    if old == size:
        if proof or old_root != new_root:
            raise ProofWrong(f"two trees of {size} leaves differ")
        return
    path = list(proof)
    if old & (old - 1) == 0:
        path.insert(0, old_root)
    if not path:
        raise ProofWrong("the proof is empty")
    at, last = old - 1, size - 1
    while at % 2:
        at >>= 1
        last >>= 1
    one = other = path[0]
    for step in path[1:]:
        if last == 0:
            raise ProofWrong("the proof is too long")
        if at % 2 or at == last:
            one, other = node_hash(step, one), node_hash(step, other)
            while at % 2 == 0 and at:
                at >>= 1
                last >>= 1
        else:
            other = node_hash(other, step)
        at >>= 1
        last >>= 1
    if last or one != old_root or other != new_root:
        raise ProofWrong(f"the tree of {size} leaves did not grow out of that of {old}")
