"""A running fleet attests what it is made of; a change that nobody ordered is an alarm and a
significant event, and the command finds it.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import grpc
import pytest
from typer.testing import CliRunner

from sabot.audit.v1 import audit_service_pb2 as audits
from sabot.audit.v1 import audit_service_pb2_grpc as audits_grpc
from sabot.audit.v1 import events_pb2 as audit
from sabot.log.v1 import events_pb2 as log
from services.cli.main import app
from services.kernel import attesting
from services.kernel.call_again import CALL_AGAIN
from services.kernel.tokens import add_token, made_caller, new_token
from tests.fleet.clients import AGAIN_S, PATIENCE_S
from tests.fleet.ledger import read_events
from tests.fleet.running import Inside, inside
from tests.fleet.test_metrics import until


async def attested(running: Inside) -> list[log.Attest]:
    return [one.body for one in await read_events(running.log) if isinstance(one.body, log.Attest)]


async def test_a_change_that_nobody_ordered_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attesting, "LOOK_US", 100_000)
    data = tmp_path / "data"
    async with inside(data) as running:
        metrics = running.fleet.host.watch.metrics.registry

        def alarms() -> float:
            labels = {"kind": "attestation_changed"}
            return metrics.get_sample_value("sabot_alarms_total", labels) or 0.0

        stub: Any
        async with grpc.aio.insecure_channel(running.fleet.address, CALL_AGAIN) as channel:
            stub = audits_grpc.AuditServiceStub(channel)
            by = {
                "metadata": (("authorization", f"Bearer {running.fleet.tokens['operator:ada']}"),),
                "timeout": PATIENCE_S,
            }

            # given a fleet that attested at its start, and again when it was asked
            async with asyncio.timeout(PATIENCE_S):
                while not await attested(running):  # noqa: ASYNC110 - in the log, no event
                    await asyncio.sleep(AGAIN_S)
            order = await stub.AskAttestation(
                audits.AskAttestationRequest(reason="the regulator's visit"), **by
            )
            assert order.position.sequence > 0
            async with asyncio.timeout(PATIENCE_S):
                while (await attested(running))[-1].reason != log.ATTEST_REASON_ASKED:  # noqa: ASYNC110 - in the log, no event
                    await asyncio.sleep(AGAIN_S)
            first, *_, last = await attested(running)
            assert first.reason == log.ATTEST_REASON_STARTED
            assert first.parts == last.parts
            assert alarms() == 0

            # when somebody lets another caller in
            eve = made_caller({"operator": "eve", "roles": ["supervisor"]})
            add_token(data / "tokens.hashed.json", new_token(), eve)
            await until(lambda: alarms() == 1)

            # then it is told as a significant event, and what changed
            page = await stub.ListSignificantEvents(
                audits.ListSignificantEventsRequest(significance=audits.SIGNIFICANCE_ATTESTATION),
                **by,
            )
            known, changed = page.events
            assert known.event_type == "sabot.audit.v1.AttestationTaken"
            told = audit.AttestationChanged.FromString(changed.body)
            assert list(told.changed) == ["callers"]
            assert told.attested.process == "fleet"

    # and everybody can read it from the log afterwards, and compare
    result = await asyncio.to_thread(
        CliRunner().invoke, app, ["attest", "--data", str(data), "--check", "--json"]
    )
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [one["reason"] for one in found["processes"]] == ["changed"]
    assert found["differences"] == []
    monkeypatch.setattr("services.cli.attested.code_digest", lambda: bytes(32))
    result = await asyncio.to_thread(
        CliRunner().invoke, app, ["attest", "--data", str(data), "--check"]
    )
    assert result.exit_code == 1
    assert "is not what this command runs from" in result.stdout
