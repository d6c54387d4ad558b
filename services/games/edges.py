"""The exact edges of the house that rule sets declare: per unit of the stake, in the first round of
a fresh shoe of eight decks, as fractions in lowest terms. They are enumerated anew at every start,
which refuses where one differs.
"""

from __future__ import annotations

EDGES: dict[str, dict[str, str]] = {}
"""By rule-set id and bet."""
