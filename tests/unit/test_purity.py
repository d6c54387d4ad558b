"""What the linters cannot see: that a core computes the same thing every time, everywhere.

Imports are held by the contracts in pyproject.toml; these tests read the source itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORES = sorted(
    {
        *ROOT.glob("services/*/domain/**/*.py"),
        *ROOT.glob("services/games/**/*.py"),
        ROOT / "services/kernel/event.py",
        ROOT / "services/kernel/requests.py",
    }
)

IMPURE_CALLS = {
    "float": "a float",
    "hash": "a hash that differs from process to process",
    "id": "an address",
    "input": "input",
    "open": "a file",
    "print": "output",
    "round": "rounding that no rule names",
    "eval": "code from data",
    "exec": "code from data",
    "globals": "hidden state",
    "vars": "hidden state",
}


def in_a_core(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Where a core does what it must not, and what that is."""
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=float() | complex()):
                yield node.lineno, "a float"
            case ast.BinOp(op=ast.Div()) | ast.AugAssign(op=ast.Div()):
                yield node.lineno, "a division that yields a float; use // and name the rounding"
            case ast.Call(func=ast.Name(id=name)) if name in IMPURE_CALLS:
                yield node.lineno, IMPURE_CALLS[name]
            case ast.For(iter=source) | ast.comprehension(iter=source) if is_set(source):
                yield source.lineno, "iteration over a set, whose order differs; use sorted"
            case ast.Call(func=ast.Name(id="list" | "tuple" | "enumerate"), args=[source]) if (
                is_set(source)
            ):
                yield source.lineno, "a sequence made of a set, whose order differs; use sorted"
            case ast.Global() | ast.AsyncFunctionDef() | ast.Await():
                yield node.lineno, "hidden state or waiting"
            case _:
                pass


def is_set(node: ast.expr) -> bool:
    """Whether an expression is a set on its face."""
    match node:
        case ast.Set() | ast.SetComp():
            return True
        case ast.Call(func=ast.Name(id="set" | "frozenset")):
            return True
        case _:
            return False


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", CORES, ids=named)
def test_a_core_computes_with_whole_numbers_in_a_fixed_order(path: Path) -> None:
    found = [
        f"{named(path)}:{line}: {what}" for line, what in in_a_core(ast.parse(path.read_text()))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "source",
    [
        "0.95",
        "stake / 2",
        "float(1)",
        "total /= 2",
        "round(total)",
        "for bet in {1, 2}: pass",
        "[bet for bet in set(bets)]",
        "list(frozenset(bets))",
        "hash('banker')",
        "async def decide(): pass",
    ],
)
def test_the_check_finds(source: str) -> None:
    assert list(in_a_core(ast.parse(source)))


@pytest.mark.parametrize("source", ["stake // 2", "for bet in sorted({1, 2}): pass", "1 in {1, 2}"])
def test_the_check_lets_pass(source: str) -> None:
    assert not list(in_a_core(ast.parse(source)))
