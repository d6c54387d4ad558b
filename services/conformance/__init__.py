"""Case files played through the fleet's cores: `sabot conformance`.

A case says what happened at a table and what every bet must come to. It is played as it would be
in a fleet, by the same cores over one log; only that log stands in memory.
"""
