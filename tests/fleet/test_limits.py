"""Limits, exclusions and switches in a real fleet with a real nats-server, through the public calls
(rules LIM-6, LIM-7)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2  # type: ignore[import-untyped] # ships no types
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped] # the same
from typer.testing import CliRunner

from sabot.limits.v1 import events_pb2 as limits
from sabot.limits.v1 import limits_service_pb2 as service
from sabot.limits.v1 import limits_service_pb2_grpc
from sabot.limits.v1 import protection_events_pb2 as protection
from sabot.money.v1.money_pb2 import Money
from sabot.partner.v1 import partner_service_pb2 as partner
from sabot.table.v1 import bet_pb2, switch_pb2
from sabot.wallet.v1 import wallet_service_pb2 as wallets
from services.cli.main import app
from services.cli.uuid7 import uuid7
from tests.fleet.clients import PATIENCE_S, Partner, RefusedError, money, reason_of, table_spec
from tests.fleet.running import Inside, inside, on_one_server

DAY_S = 86_400


class Support:
    """A partner's support, and the operators' supervisor."""

    def __init__(self, here: Inside, north: Partner) -> None:
        self.north = north
        channel = north.servers.channel
        self.calls: Any = limits_service_pb2_grpc.LimitsServiceStub(channel)
        self.boss: Any = (("authorization", f"Bearer {here.fleet.tokens['operator:sam']}"),)

    async def set_limit(
        self, kind: protection.LimitKind.ValueType, maximum: int, *, boss: bool = False
    ) -> service.SetLimitsResponse:
        """A limit of account a1 for a day."""
        request = service.SetLimitsRequest(
            request_id=uuid7(),
            scope=limits.SCOPE_ACCOUNT,
            scope_id="a1",
            partner_id="north",
            currency_code="EUR",
            limits=[protection.LimitSetting(kind=kind, window_s=DAY_S, maximum=maximum)],
            reason="asked for by its holder",
        )
        metadata = self.boss if boss else self.north.metadata
        told: service.SetLimitsResponse
        told = await self.calls.SetLimits(request, metadata=metadata, timeout=PATIENCE_S)
        return told

    async def exclude(self) -> None:
        request = service.ExcludeRequest(
            request_id=uuid7(),
            account_id="a1",
            kind=protection.EXCLUSION_KIND_EXCLUSION,
            reason="asked for by its holder",
        )
        await self.calls.Exclude(request, metadata=self.north.metadata, timeout=PATIENCE_S)

    async def protection(self) -> service.GetProtectionResponse:
        request = service.GetProtectionRequest(account_id="a1")
        told: service.GetProtectionResponse
        told = await self.calls.GetProtection(
            request, metadata=self.north.metadata, timeout=PATIENCE_S
        )
        return told


async def refusal(call: Any) -> tuple[str, dict[str, str]]:
    """Why a call is refused, with the facts."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    error = caught.value
    metadata = dict(error.trailing_metadata())
    status = Status.FromString(metadata["grpc-status-details-bin"])
    info = error_details_pb2.ErrorInfo()
    status.details[0].Unpack(info)
    return reason_of(error), dict(info.metadata)


async def test_lim_7_deposits_limits_exclusion_and_what_support_sees(tmp_path: Path) -> None:
    async with inside(tmp_path) as here:
        boss, north = here.operator(), here.partner("north")
        await boss.open_table(table_spec())
        await north.open_account("a1", 1_000)
        await north.open_account("a2", 1_000)
        support = Support(here, north)
        # The first deposit counts, though the limit comes only now.
        await support.set_limit(protection.LIMIT_KIND_DEPOSIT, 1_500)
        over = wallets.DepositRequest(request_id=uuid7(), account_id="a1", amount=money(501))
        for _ in range(2):  # The same request again has the same answer.
            why, facts = await refusal(
                north.wallet.Deposit(over, metadata=north.metadata, timeout=PATIENCE_S)
            )
            assert why == "DEPOSIT_LIMIT"
            assert facts["room_minor"] == "500"
            assert facts["scope"] == "ACCOUNT"
        await north.deposit("a1", 500)
        await north.deposit("a2", 5_000)
        assert (await north.balance("a1"))[0] == 1_500
        looser = support.set_limit(protection.LIMIT_KIND_DEPOSIT, 9_000)
        assert (await refusal(looser))[0] == "LIMIT_LOOSENS"
        told = await support.set_limit(protection.LIMIT_KIND_DEPOSIT, 9_000, boss=True)
        assert told.HasField("looser_from")

        # A stake that is on when its account is excluded is played out.
        await support.set_limit(protection.LIMIT_KIND_LOSS, 400)
        round_id = await boss.open_round("t1")
        assert (await north.place("a1", round_id, ("player", 300))).refused == ""
        assert (await north.place("a1", round_id, ("player", 120))).refused == "LOSS_LIMIT"
        await support.exclude()
        assert (await north.place("a1", round_id, ("player", 100))).refused == "EXCLUDED"
        assert (await north.place("a2", round_id, ("player", 100))).refused == ""
        with pytest.raises(RefusedError) as caught:
            await north.deposit("a1", 100)
        assert caught.value.reason == "EXCLUDED"
        out = wallets.WithdrawRequest(request_id=uuid7(), account_id="a1", amount=money(700))
        await north.wallet.Withdraw(out, metadata=north.metadata, timeout=PATIENCE_S)
        seen = await support.protection()
        assert seen.exclusion == protection.EXCLUSION_KIND_EXCLUSION
        assert seen.at_stake_minor == 300
        used = {(one.kind, one.window_s): one for one in seen.windows}
        deposits = used[protection.LIMIT_KIND_DEPOSIT, DAY_S]
        assert (deposits.used, deposits.left, deposits.limit.loosens) == (1_500, 0, True)
        assert used[protection.LIMIT_KIND_LOSS, DAY_S].left == 100
        await boss.close_betting(round_id)
        await north.round_in("t1", partner.ROUND_STATE_PAID)
        seen = await support.protection()
        assert seen.at_stake_minor == 0
        await here.ledger()


@pytest.mark.long
async def test_limits_are_reached_at_the_partners_one_endpoint(tmp_path: Path) -> None:
    """Each service is a process of its own; the front door passes on what is asked of limits."""
    async with on_one_server(tmp_path) as running:
        north = running.partner("north")
        await north.open_account("a1", 1_000)
        calls: Any = limits_service_pb2_grpc.LimitsServiceStub(north.servers.channel)
        more: dict[str, Any] = {"metadata": north.metadata, "timeout": PATIENCE_S}
        request = service.ExcludeRequest(
            request_id=uuid7(),
            account_id="a1",
            kind=protection.EXCLUSION_KIND_COOL_OFF,
            term_s=DAY_S,
            reason="asked for by its holder",
        )
        told = await calls.Exclude(request, **more)
        again = await calls.Exclude(request, **more)
        assert (again.until, again.replayed) == (told.until, True)
        with pytest.raises(RefusedError) as caught:
            await north.deposit("a1", 100)
        assert caught.value.reason == "COOLING_OFF"
        seen = await calls.GetProtection(service.GetProtectionRequest(account_id="a1"), **more)
        assert seen.exclusion == protection.EXCLUSION_KIND_COOL_OFF


WRONG_AMOUNTS = [
    ("zero", money(0), "INVALID_REQUEST"),
    ("negative", money(-5), "INVALID_REQUEST"),
    ("too much", money(10**13), "INVALID_REQUEST"),
    ("foreign", Money(currency_code="USD", minor_units=5), "CURRENCY_MISMATCH"),
    ("no currency", Money(minor_units=5), "INVALID_REQUEST"),
]


async def test_money_in_and_out_that_cannot_be_is_refused(tmp_path: Path) -> None:
    """Fractions cannot even be said: amounts are whole minor units."""
    async with inside(tmp_path) as here:
        north = here.partner("north")
        await north.open_account("a1", 1_000)
        more: dict[str, Any] = {"metadata": north.metadata, "timeout": PATIENCE_S}
        for name, amount, why in WRONG_AMOUNTS:
            pay_in = wallets.DepositRequest(request_id=uuid7(), account_id="a1", amount=amount)
            assert (await refusal(north.wallet.Deposit(pay_in, **more)))[0] == why, name
            out = wallets.WithdrawRequest(request_id=uuid7(), account_id="a1", amount=amount)
            assert (await refusal(north.wallet.Withdraw(out, **more)))[0] == why, name
        too_much = wallets.WithdrawRequest(request_id=uuid7(), account_id="a1", amount=money(1_001))
        told = await refusal(north.wallet.Withdraw(too_much, **more))
        assert told[0] == "INSUFFICIENT_FUNDS"
        nobody = wallets.DepositRequest(request_id=uuid7(), account_id="a9", amount=money(5))
        assert (await refusal(north.wallet.Deposit(nobody, **more)))[0] == "ACCOUNT_NOT_FOUND"
        from_nobody = wallets.WithdrawRequest(request_id=uuid7(), account_id="a9", amount=money(5))
        assert (await refusal(north.wallet.Withdraw(from_nobody, **more)))[0] == "ACCOUNT_NOT_FOUND"
        assert await north.balance("a1") == (1_000, 0)
        await here.ledger()


async def sabot(*words: str) -> str:
    done = await asyncio.to_thread(CliRunner().invoke, app, list(words))
    assert done.exit_code == 0, done.output
    return str(done.output)


async def test_a_game_is_switched_off_and_on_by_the_command(tmp_path: Path) -> None:
    async with inside(tmp_path) as here:
        boss, north = here.operator(), here.partner("north")
        await boss.open_table(table_spec())
        await north.open_account("a1", 1_000)
        round_id = await boss.open_round("t1")
        assert (await north.place("a1", round_id, ("player", 300))).refused == ""
        at = ("--address", here.fleet.address, "--data", str(tmp_path))
        told = await sabot("switch", "off", "game:baccarat", "--reason", "an inquiry", *at)
        assert told == "game:baccarat is off\n"
        told = await sabot("switch", "list", *at)
        assert told.startswith("game:baccarat is off since 20")
        assert told.endswith("UTC by operator:sam: an inquiry\n")
        bet = partner.PlaceBetsRequest(
            request_id=uuid7(),
            account_id="a1",
            table_id="t1",
            round_id=round_id,
            bets=[bet_pb2.BetRequest(bet="player", stake=money(100))],
        )
        why, facts = await refusal(
            north.bets.PlaceBets(bet, metadata=north.metadata, timeout=PATIENCE_S)
        )
        assert (why, facts["switch"]) == ("SWITCHED_OFF", "GAME BACCARAT")
        listed = await north.bets.ListTables(
            partner.ListTablesRequest(), metadata=north.metadata, timeout=PATIENCE_S
        )
        assert listed.tables[0].switched_off == switch_pb2.SWITCH_SCOPE_GAME
        # The round that runs is played out; another one does not open.
        await boss.close_betting(round_id)
        await north.round_in("t1", partner.ROUND_STATE_PAID)
        with pytest.raises(RefusedError, match="SWITCHED_OFF"):
            await boss.open_round("t1")
        await sabot("switch", "on", "game:baccarat", "--reason", "cleared", *at)
        assert await sabot("switch", "list", *at) == "nothing is off\n"
        assert await boss.open_round("t1")
        await here.ledger()
