"""Drills: what operators are promised to see of a failure, they see."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.cli.drill import DRILLS, run_drill


@pytest.mark.timeout(400)
async def test_a_killed_service_is_alarmed_and_nothing_is_lost(tmp_path: Path) -> None:
    said: list[str] = []
    seen = await run_drill(
        DRILLS["service-killed"], tmp_path / "data", whole=False, say=said.append
    )
    assert seen.right, said
    assert "docs/runbooks/process-down.md" in said[1]
    assert said[-1].startswith("verified: ")
    assert ", 0 differences" in said[-1]


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", DRILLS)
async def test_every_drill_fires_its_alert_and_recovers(name: str, tmp_path: Path) -> None:
    seen = await run_drill(DRILLS[name], tmp_path / "data")
    assert seen.right, seen.steps
    assert seen.alert_after_s >= seen.rule.for_s
