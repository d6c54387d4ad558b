"""Fixtures that test modules of this folder ask for by name."""

from tests.unit.projecting import on_both, postgres

__all__ = ["on_both", "postgres"]
