"""What the audit service is made of."""

from __future__ import annotations

from sabot.audit.v1 import audit_service_pb2
from services.audit.accepting import Accepting
from services.audit.auditor import Auditor
from services.audit.contesting import Contesting
from services.audit.domain.core import CORE
from services.audit.fact_checker import FactChecker
from services.audit.ledger_check import LedgerCheck
from services.audit.measures import measure_audit
from services.audit.returns import Returns
from services.audit.seal_keys import load_or_create_signer
from services.audit.sealer import Sealer
from services.audit.seals import Seals
from services.audit.servicer import AuditServicer
from services.audit.significance import SignificantIndex
from services.audit.significant_list import SignificantEvents
from services.audit.snapshots import Snapshots
from services.audit.tree_file import TreeFile
from services.audit.watchman import Watchman
from services.kernel.host import Parts, Served, clock_us
from services.kernel.notices import Notices
from services.kernel.process import Process
from services.kernel.projections import Projector
from services.kernel.settings import ServiceSettings
from services.kernel.snapshot import SnapshotFolder
from services.kernel.telemetry import Metrics
from services.limits.domain.core import CORE as LIMITS
from services.rules.domain.core import CORE as RULES
from services.settlement.domain.core import CORE as SETTLEMENT
from services.shoe.domain.core import CORE as SHOE
from services.table.domain.core import CORE as TABLE
from services.wallet.domain.core import CORE as WALLET

OBSERVED = (TABLE, LIMITS, WALLET, SHOE, RULES, SETTLEMENT)
"""The cores that audit decides again."""


def parts(settings: ServiceSettings) -> Parts:
    """Deciding everything again, snapshots, seals, facts that are looked up, settlements that
    are contested, and what is significant."""
    snapshots = Snapshots(SnapshotFolder(settings.data / "snapshots"))
    signer = load_or_create_signer(settings.seal_key_file or settings.data / "seal_keys.json")
    check = LedgerCheck()
    sealer = Sealer(settings.cell, TreeFile(settings.data / "seals" / settings.name), signer)
    checker = FactChecker()
    contesting = Contesting()
    notices = Notices(clock_us)
    index = SignificantIndex(settings.data / "significant" / settings.name)
    returns = Returns(settings.data / "returns" / f"{settings.name}.json")
    watchman = Watchman(notices, index)

    def serve(process: Process, projector: Projector | None, metrics: Metrics) -> Served:
        del projector, metrics
        service = audit_service_pb2.DESCRIPTOR.services_by_name["AuditService"]
        seals = Seals(process, sealer.tree)
        events = SignificantEvents(index, lambda: process.log, process)
        accepting = Accepting(sealer.tree.head, lambda: process.log, process)
        audit = Auditor(process, check)
        return [(service, AuditServicer(audit, seals, events, notices, accepting))]

    return Parts(
        core=CORE,
        serve=serve,
        observed=OBSERVED,
        shells=[sealer, checker, watchman, contesting],
        listeners=[sealer, check, index, returns],
        notices=notices,
        background=[snapshots.run, checker.run, contesting.run],
        measure=lambda process, metrics: measure_audit(
            process, sealer, check, returns, snapshots.outcomes, len(OBSERVED), metrics
        ),
    )
