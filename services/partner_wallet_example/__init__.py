"""A partner's wallet, small enough to start one's own from. Nothing of a cell is in it."""
