"""The Merkle tree of a log against a naive one, and against forged proofs (RFC 6962)."""

from __future__ import annotations

from hashlib import sha256

import pytest

from services.audit.domain.tree import (
    EMPTY_ROOT,
    ProofWrong,
    Tree,
    check_consistency,
    check_inclusion,
    consistency,
    inclusion,
    leaf_hash,
    node_hash,
    root,
)

SIZES = 70
"""Every shape up to two full levels and more."""
LEAVES = [leaf_hash(number + 1, bytes([number]) * 32) for number in range(SIZES)]


def naive(leaves: list[bytes]) -> bytes:
    """MTH as the RFC writes it."""
    if not leaves:
        return sha256().digest()
    if len(leaves) == 1:
        return leaves[0]
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return sha256(b"\x01" + naive(leaves[:split]) + naive(leaves[split:])).digest()


def grown(size: int) -> Tree:
    tree = Tree()
    for leaf in LEAVES[:size]:
        tree.append(leaf)
    return tree


TREE = grown(SIZES)
ROOTS = [naive(LEAVES[:size]) for size in range(SIZES + 1)]


def test_the_roots_are_those_of_the_definition() -> None:
    assert [root(TREE, size) for size in range(SIZES + 1)] == ROOTS
    assert ROOTS[0] == EMPTY_ROOT
    assert [root(grown(size), size) for size in (1, 7, 64)] == [ROOTS[1], ROOTS[7], ROOTS[64]]
    assert TREE.size == SIZES


def test_the_trees_of_the_rfcs_test_data() -> None:
    """The eight inputs that certificate transparency's implementations share."""
    inputs = [
        bytes.fromhex(text)
        for text in (
            "", "00", "10", "2021", "3031", "40414243", "5051525354555657",
            "606162636465666768696a6b6c6d6e6f",
        )
    ]  # fmt: skip
    tree = Tree()
    for data in inputs:
        tree.append(sha256(b"\x00" + data).digest())
    assert root(tree, 1).hex().startswith("6e340b9cffb37a98")
    assert root(tree, 2).hex().startswith("fac54203e7cc696c")
    assert root(tree, 8).hex() == (
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"
    )


def test_every_leaf_is_proven_in_every_tree() -> None:
    for size in range(1, SIZES + 1):
        for index in range(size):
            check_inclusion(LEAVES[index], index, size, inclusion(TREE, index, size), ROOTS[size])


def test_every_tree_is_proven_to_have_grown_out_of_every_smaller_one() -> None:
    for size in range(1, SIZES + 1):
        for old in range(1, size + 1):
            proof = consistency(TREE, old, size)
            check_consistency(old, ROOTS[old], size, ROOTS[size], proof)


def test_a_forged_inclusion_is_found() -> None:
    for size in (1, 2, 6, 7, 33, 64, 70):
        for index in range(size):
            proof = inclusion(TREE, index, size)
            forged = [
                (LEAVES[(index + 1) % SIZES], index, size, proof, ROOTS[size]),
                (LEAVES[index], index, size, proof, ROOTS[size - 1]),
                (LEAVES[index], index, size, [*proof, b"\0" * 32], ROOTS[size]),
                (LEAVES[index], size, size, proof, ROOTS[size]),
            ]
            forged += [
                (
                    LEAVES[index],
                    index,
                    size,
                    [*proof[:at], b"\1" * 32, *proof[at + 1 :]],
                    ROOTS[size],
                )
                for at in range(len(proof))
            ]
            if proof:
                forged.append((LEAVES[index], index, size, proof[:-1], ROOTS[size]))
            for one in forged:
                with pytest.raises(ProofWrong):
                    check_inclusion(*one)


def test_a_tree_that_did_not_grow_is_found() -> None:
    """A fork: from leaf 20 on another log."""
    fork = grown(20)
    for number in range(20, SIZES):
        fork.append(leaf_hash(number + 1, b"other" * 6))
    for old in range(21, SIZES):
        for size in (old, old + 1, SIZES):
            if size > SIZES:
                continue
            with pytest.raises(ProofWrong):
                check_consistency(
                    old, ROOTS[old], size, root(fork, size), consistency(fork, old, size)
                )
            with pytest.raises(ProofWrong):
                check_consistency(
                    old, root(fork, old), size, ROOTS[size], consistency(TREE, old, size)
                )
    with pytest.raises(ProofWrong):
        check_consistency(5, ROOTS[5], 9, ROOTS[9], consistency(TREE, 5, 9)[:-1])
    with pytest.raises(ProofWrong):
        check_consistency(5, ROOTS[5], 9, ROOTS[9], [])
    with pytest.raises(ProofWrong):
        check_consistency(0, EMPTY_ROOT, 9, ROOTS[9], [])


def test_a_leaf_is_no_node() -> None:
    """What makes second preimages useless: leaves and nodes are hashed apart."""
    left, right = LEAVES[:2]
    assert node_hash(left, right) != sha256(b"\x00" + left + right).digest()


def test_what_there_is_no_proof_of() -> None:
    for index, size in ((-1, 5), (5, 5), (0, 0)):
        with pytest.raises(ValueError, match="no leaf"):
            inclusion(TREE, index, size)
    for old, size in ((0, 5), (6, 5)):
        with pytest.raises(ValueError, match="no tree"):
            consistency(TREE, old, size)
