"""What the table service is made of."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import grpc
from google.protobuf.descriptor import ServiceDescriptor

from sabot.limits.v1 import limits_service_pb2
from sabot.partner.v1 import partner_service_pb2
from sabot.table.v1 import correction_service_pb2, odds_service_pb2, operator_service_pb2
from sabot.wallet.v1 import (
    ledger_service_pb2,
    receivable_service_pb2,
    wallet_operator_service_pb2,
    wallet_service_pb2,
)
from services.kernel.host import Parts, Served
from services.kernel.process import Process
from services.kernel.projections import Projector
from services.kernel.settings import ServiceSettings
from services.kernel.telemetry import Metrics
from services.table.correction_queries import CorrectionQueries
from services.table.correction_servicer import CorrectionServicer
from services.table.domain.core import CORE
from services.table.domain.state import TableState
from services.table.front_door import (
    LedgerFrontDoor,
    ReceivableFrontDoor,
    WalletFrontDoor,
    WalletOperatorFrontDoor,
)
from services.table.limits_front_door import LimitsFrontDoor
from services.table.odds_servicer import OddsServicer
from services.table.operator_servicer import TableOperatorServicer
from services.table.projection import TableProjection
from services.table.projection_queries import SqlTableQueries
from services.table.risk import Risk
from services.table.servicer import PartnerServicer
from services.table.timers import Timers
from services.table.watch import LiveBets, LiveTables


def parts(settings: ServiceSettings) -> Parts:
    """Tables, rounds and the partners' front door. With a wallet's address it passes calls about
    accounts on to it; without one, the wallet is served by this process itself."""

    def serve(process: Process, projector: Projector | None, metrics: Metrics) -> Served:
        if projector is None:
            raise RuntimeError("the table's shell needs its projection")
        queries = SqlTableQueries(projector)
        partner = PartnerServicer(
            process,
            queries,
            LiveTables(process, queries, metrics),
            LiveBets(process, queries, metrics),
        )
        served: list[tuple[ServiceDescriptor, object]] = [
            (partner_service_pb2.DESCRIPTOR.services_by_name["PartnerService"], partner),
            (
                operator_service_pb2.DESCRIPTOR.services_by_name["TableOperatorService"],
                TableOperatorServicer(process, queries),
            ),
            (
                correction_service_pb2.DESCRIPTOR.services_by_name["CorrectionService"],
                CorrectionServicer(process, queries, CorrectionQueries(projector)),
            ),
            (
                odds_service_pb2.DESCRIPTOR.services_by_name["OddsService"],
                OddsServicer(process),
            ),
        ]
        if settings.wallet_address:
            channel = grpc.aio.insecure_channel(settings.wallet_address)
            served += [
                (
                    wallet_service_pb2.DESCRIPTOR.services_by_name["WalletService"],
                    WalletFrontDoor(channel),
                ),
                (
                    ledger_service_pb2.DESCRIPTOR.services_by_name["LedgerService"],
                    LedgerFrontDoor(channel),
                ),
                (
                    receivable_service_pb2.DESCRIPTOR.services_by_name["ReceivableService"],
                    ReceivableFrontDoor(channel),
                ),
                (
                    wallet_operator_service_pb2.DESCRIPTOR.services_by_name[
                        "WalletOperatorService"
                    ],
                    WalletOperatorFrontDoor(channel),
                ),
            ]
        if settings.limits_address:
            served.append(
                (
                    limits_service_pb2.DESCRIPTOR.services_by_name["LimitsService"],
                    LimitsFrontDoor(grpc.aio.insecure_channel(settings.limits_address)),
                )
            )
        return served

    risk = Risk(ThreadPoolExecutor(max_workers=1, thread_name_prefix="odds"))
    return Parts(
        core=CORE, serve=serve, shells=[Timers(), risk], projection=TableProjection(), rules=_rules
    )


def _rules(state: TableState) -> list[tuple[str, bytes]]:
    """Which rule set is in force at which table."""
    return [(table_id, table.spec.rule_set.hash) for table_id, table in state.tables.items()]
