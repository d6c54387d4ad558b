"""Exact odds: what every bet returns, by enumeration, as fractions.

No core imports this package: it stands beside them, and every fate it counts is told by the same
pure functions that settlement pays by.
"""
