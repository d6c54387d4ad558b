"""What may be asked of the wallet's projection: accounts and requests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import sqlalchemy

from sabot.log.v1 import events_pb2 as logs
from sabot.wallet.v1 import events_pb2 as wallets
from sabot.wallet.v1 import wallet_service_pb2 as wallet_service
from services.kernel.event import Position
from services.kernel.projections import Projector
from services.wallet.projection import ACCOUNTS, WalletProjection
from services.wallet.projection_queries import SqlWalletQueries
from services.wallet.queries import WalletQueries
from tests.unit.projecting import ON_BOTH, url_of
from tests.unit.projection_log import HandMadeLog

pytestmark = ON_BOTH

WAIT_S = 60.0


@pytest.fixture
async def projector(tmp_path: Path) -> AsyncIterator[Projector]:
    log = HandMadeLog()
    one = Projector(WalletProjection(), url_of(tmp_path, "w"), log.read)
    assert await one.start(wait_s=WAIT_S)
    yield one
    await one.close()


async def reading(projector: Projector, log: HandMadeLog) -> SqlWalletQueries:
    """Queries, when everything is in."""
    log.flush()
    for entry in log.entries[projector.position.sequence :]:
        projector.feed(*entry)
    assert await projector.reached(Position(1, len(log.entries), 0), WAIT_S)
    return SqlWalletQueries(projector)


def test_the_queries_are_those_that_the_shell_asks_for(projector: Projector) -> None:
    shell: WalletQueries = SqlWalletQueries(projector)
    assert shell.position == projector.position


@pytest.mark.parametrize(
    ("order", "answer", "state"),
    [
        (wallets.BlockAccount, wallets.AccountBlocked, wallet_service.ACCOUNT_STATE_BLOCKED),
        (wallets.UnblockAccount, wallets.AccountUnblocked, wallet_service.ACCOUNT_STATE_OPEN),
        (wallets.CloseAccount, wallets.AccountClosed, wallet_service.ACCOUNT_STATE_CLOSED),
    ],
)
async def test_how_an_account_stands(
    projector: Projector,
    order: type[wallets.BlockAccount],
    answer: type[wallets.AccountBlocked],
    state: int,
) -> None:
    log = HandMadeLog()
    log.open_account("p", "a", 1_000)
    asked = log.add(
        "wallet", order(request_id="r", account_id="a"), partner="p", actor="operator:ann"
    )
    log.add("wallet", answer(account_id="a"), asked)
    queries = await reading(projector, log)
    async with projector.connect() as connection:
        assert (await connection.execute(sqlalchemy.select(ACCOUNTS.c.state))).scalar() == state
    found = await queries.request("operator:ann", "r")
    assert found is not None
    assert found[0] == asked.position
    assert found[1].WhichOneof("outcome") in {
        *("account_blocked", "account_unblocked", "account_closed"),
    }


async def test_requests_and_their_outcomes(projector: Projector) -> None:
    log = HandMadeLog()
    log.open_account("p", "a", 1_000)
    asked, outcome = log.deposit("p", "a", 10)
    pending = log.add(
        "wallet",
        wallets.Withdraw(request_id="out", account_id="a"),
        partner="p",
        actor="partner:p",
    )
    queries = await reading(projector, log)
    found = await queries.outcome_at(asked.position)
    assert found is not None
    assert found.deposited == outcome.body
    found = await queries.outcome_at(pending.position)
    assert found is not None
    assert found.pending
    assert await queries.outcome_at(outcome.position) is None
    decline = wallets.DECLINE_INSUFFICIENT_FUNDS
    log.add(
        "wallet",
        wallets.AccountRequestDeclined(request_id="out", account_id="a", decline=decline),
        pending,
    )
    queries = await reading(projector, log)
    standing = await queries.request("partner:p", "out")
    assert standing is not None
    assert standing[0] == pending.position
    assert standing[1].account_declined.decline == decline
    assert await queries.request("partner:q", "out") is None


async def test_a_deposit_whose_path_failed_is_declined(projector: Projector) -> None:
    log = HandMadeLog()
    log.open_account("p", "a", 1_000)
    body = wallets.Deposit(request_id="in", account_id="a", currency_code="EUR", amount_minor=5)
    asked = log.add("wallet", body, partner="p", actor="partner:p")
    requested = log.add("wallet", wallets.DepositRequested(request_id="in", account_id="a"), asked)
    log.add(
        "limits",
        logs.InputFailed(
            input_type=requested.body.DESCRIPTOR.full_name,
            input_body=requested.body.SerializeToString(),
        ),
        requested,
    )
    found = await (await reading(projector, log)).outcome_at(asked.position)
    assert found is not None
    assert found.account_declined.decline == wallets.DECLINE_FAILED
    assert found.account_declined.account_id == "a"
