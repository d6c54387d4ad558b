"""What the wallet service is made of."""

from __future__ import annotations

from sabot.wallet.v1 import (
    ledger_service_pb2,
    receivable_service_pb2,
    wallet_operator_service_pb2,
    wallet_service_pb2,
)
from services.kernel.call_tokens import load_or_create_call_keys, signer_of
from services.kernel.host import Parts, Served
from services.kernel.process import Process
from services.kernel.projections import Projector
from services.kernel.settings import ServiceSettings
from services.kernel.telemetry import Metrics
from services.wallet.books import Books
from services.wallet.debit_timers import DebitTimers
from services.wallet.domain.core import CORE
from services.wallet.ledger_queries import SqlLedgerQueries
from services.wallet.ledger_servicer import LedgerServicer
from services.wallet.operator_servicer import WalletOperatorServicer
from services.wallet.partner_calls import GrpcPartnerCaller
from services.wallet.partner_wallet import PartnerWallets
from services.wallet.projection import WalletProjection
from services.wallet.projection_queries import SqlWalletQueries
from services.wallet.receivable_servicer import ReceivableServicer
from services.wallet.servicer import WalletServicer


def parts(settings: ServiceSettings) -> Parts:
    """Accounts and their money, and the calls to partners that hold it themselves. The keys that
    sign these lie in the data folder unless they are mounted elsewhere.

    Raises KeyFileUnusable."""
    keys = load_or_create_call_keys(settings.call_key_file or settings.data / "call_keys.json")
    wallets = PartnerWallets(GrpcPartnerCaller(signer_of(keys, settings.cell)))

    def serve(process: Process, projector: Projector | None, metrics: Metrics) -> Served:
        del metrics
        if projector is None:
            raise RuntimeError("the wallet's shell needs its projection")
        books = Books(SqlLedgerQueries(projector))
        accounts = wallet_service_pb2.DESCRIPTOR.services_by_name["WalletService"]
        ledger = ledger_service_pb2.DESCRIPTOR.services_by_name["LedgerService"]
        queries = SqlWalletQueries(projector)
        orders = wallet_operator_service_pb2.DESCRIPTOR.services_by_name["WalletOperatorService"]
        owed = receivable_service_pb2.DESCRIPTOR.services_by_name["ReceivableService"]
        return [
            (accounts, WalletServicer(process, queries, books)),
            (owed, ReceivableServicer(process, queries)),
            (ledger, LedgerServicer(process, books)),
            (orders, WalletOperatorServicer(process, queries)),
        ]

    return Parts(
        core=CORE,
        serve=serve,
        shells=[DebitTimers()],
        background=[wallets.run],
        measure=wallets.measure,
        projection=WalletProjection(),
    )
