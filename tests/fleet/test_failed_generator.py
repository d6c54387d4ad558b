"""The custodian's generator fails between two runs: no shoe is sealed and an operator is told, what
is sealed is played to its end, and a sound generator goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from sabot.partner.v1 import partner_service_pb2 as partner
from services.kernel import telemetry
from services.shoe import parts
from services.shoe.custodian import GENERATOR, Custodian
from services.shoe.generator import Generator, GeneratorFailed
from tests.fleet.clients import table_spec
from tests.fleet.running import NOT_SERVING, SERVING, Inside, inside
from tests.fleet.test_lost_key import Kept, heard, until, until_health

STAKE = 4_00


def custodian(running: Inside) -> Custodian:
    shells = running.fleet.host.process._shells._shells
    [found] = [shell for shell in shells if isinstance(shell, Custodian)]
    return found


def broken() -> Generator:
    """Zeros come."""
    return Generator(bytes)


async def test_a_failed_generator_seals_nothing_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    alarms = heard(monkeypatch)
    monkeypatch.setattr(telemetry, "Metrics", Kept)
    async with inside(data) as running:
        dealer, north = running.operator(), running.partner("north")
        await dealer.open_table(table_spec("t1"))
        await north.open_account("anna", 100_00)
        round_id = await dealer.open_round("t1")
        await until_health(running, "custodian", SERVING)

    with monkeypatch.context() as patch:
        patch.setattr(parts, "system_generator", broken)
        async with inside(data) as running:
            dealer, north = running.operator(), running.partner("north")
            await until(lambda: alarms)
            kind, facts = alarms[0]
            assert (kind, facts["about"]) == ("shell_cannot", GENERATOR)
            assert "the generator of chance failed: one byte came" in facts["why"]
            await until_health(running, "custodian", NOT_SERVING)
            await until_health(running, "", SERVING)
            told = Kept.last.registry.get_sample_value
            assert told("sabot_shell_problems", {"shell": "custodian"}) == 1

            await dealer.open_table(table_spec("t2"))
            await until(lambda: custodian(running)._told_us)
            assert (await north.place("anna", round_id, ("player", STAKE))).bets
            await dealer.close_betting(round_id)
            await north.round_in("t1", partner.ROUND_STATE_PAID)
            assert list(running.fleet.host.process.state("shoe").shoes) == ["t1-s1"]
            assert len(alarms) == 1

    async with inside(data) as running:
        dealer = running.operator()
        assert await dealer.open_round("t2")
        await until_health(running, "custodian", SERVING)
        assert len(alarms) == 1


async def test_without_keys_a_failed_generator_lets_nothing_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "system_generator", broken)
    with pytest.raises(GeneratorFailed, match="one byte came"):
        async with inside(tmp_path / "data"):
            pass
    assert not (tmp_path / "data" / "shoe_keys.json").exists()
