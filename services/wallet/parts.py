"""What the wallet service is made of."""

from __future__ import annotations

from sabot.wallet.v1 import ledger_service_pb2, receivable_service_pb2, wallet_service_pb2
from services.kernel.host import Parts, Served
from services.kernel.process import Process
from services.kernel.projections import Projector
from services.kernel.settings import ServiceSettings
from services.kernel.telemetry import Metrics
from services.wallet.books import Books
from services.wallet.domain.core import CORE
from services.wallet.ledger_queries import SqlLedgerQueries
from services.wallet.ledger_servicer import LedgerServicer
from services.wallet.projection import WalletProjection
from services.wallet.projection_queries import SqlWalletQueries
from services.wallet.receivable_servicer import ReceivableServicer
from services.wallet.servicer import WalletServicer


def parts(settings: ServiceSettings) -> Parts:
    """Accounts and their money."""
    del settings

    def serve(process: Process, projector: Projector | None, metrics: Metrics) -> Served:
        del metrics
        if projector is None:
            raise RuntimeError("the wallet's shell needs its projection")
        books = Books(SqlLedgerQueries(projector))
        accounts = wallet_service_pb2.DESCRIPTOR.services_by_name["WalletService"]
        ledger = ledger_service_pb2.DESCRIPTOR.services_by_name["LedgerService"]
        queries = SqlWalletQueries(projector)
        owed = receivable_service_pb2.DESCRIPTOR.services_by_name["ReceivableService"]
        return [
            (accounts, WalletServicer(process, queries, books)),
            (owed, ReceivableServicer(process, queries)),
            (ledger, LedgerServicer(process, books)),
        ]

    return Parts(core=CORE, serve=serve, projection=WalletProjection())
