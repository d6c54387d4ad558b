"""What the audit measures: whether all that is recorded follows, the books, and the seals' age."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from services.audit.domain.core import AuditState
from services.audit.ledger_check import LedgerCheck
from services.audit.returns import Returns
from services.audit.sealer import Sealer
from services.kernel.measures import Measure
from services.kernel.process import Process
from services.kernel.shared_snapshots import OUTCOMES, Outcome
from services.kernel.telemetry import Metrics
from services.kernel.telemetry_names import (
    AUDIT_DIFFERENCES,
    AUDIT_UNFOLLOWED,
    BOOKS_UNBALANCED,
    SEAL_AGE_SECONDS,
    SNAPSHOTS_SHARED,
)
from services.wallet.domain.state import sums

BOOKS_EVERY_S = 30.0
"""Between two sums over all accounts: with a hundred thousand of them one takes some ten
milliseconds, in which the process does nothing else."""


class SealAge:
    """For how long entries have waited for a seal, by this process's monotonic clock."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer
        self._sealed = 0
        self._since_s: float | None = None

    def look(self, state: AuditState, now: float) -> float:
        """Seconds; 0 where all that is worth a seal has it. What was sealed meanwhile begins the
        time anew: only a sealer that stands still lets it grow."""
        sealed = state.seal.size if state.seal else 0
        # A tree that cannot grow hides what came since.
        if self._sealer.worth <= sealed and not self._sealer.problems:
            self._since_s = None
        elif self._since_s is None or sealed != self._sealed:
            self._since_s = now
        self._sealed = sealed
        return 0.0 if self._since_s is None else now - self._since_s


def measure_audit(
    process: Process,
    sealer: Sealer,
    check: LedgerCheck,
    returns: Returns,
    shared: Mapping[Outcome, int],
    observed: int,
    metrics: Metrics,
) -> Measure:
    """`shared`: what came of the snapshots that were due in the cell's bucket, counted. `observed`:
    how many services the audit decides again."""
    differences = metrics.gauge(AUDIT_DIFFERENCES)
    unfollowed = metrics.gauge(AUDIT_UNFOLLOWED)
    unbalanced = metrics.gauge(BOOKS_UNBALANCED)
    seal_age = metrics.gauge(SEAL_AGE_SECONDS)
    look_at_returns = returns.measure(metrics)
    age = SealAge(sealer)
    books_at_s = float("-inf")
    told = 0
    sharings = metrics.counter(SNAPSHOTS_SHARED)
    for outcome in OUTCOMES:
        sharings.labels(outcome)
    counted: Counter[str] = Counter()

    def measure(now: float) -> None:
        nonlocal books_at_s, told
        if check.first is not None and check.found > told:
            told = check.found
            first = check.first
            facts = {
                "position": str(first.position),
                "type": first.event_type,
                "legs": first.told,
                "entries": check.found,
            }
            process.alarm("books_unbalanced", facts)
        for outcome, times in shared.items():
            sharings.labels(outcome).inc(times - counted[outcome])
            counted[outcome] = times
        look_at_returns(now)
        differences.set(process.folding.difference_count)
        unfollowed.set(observed - len(process.folding.observers))
        seal_age.set(age.look(process.state("audit"), now))
        wallet = process.observer("wallet")
        if wallet is not None and now - books_at_s >= BOOKS_EVERY_S:
            books_at_s = now
            unbalanced.set(sum(1 for minor in sums(wallet.state.core).values() if minor))

    return measure
