"""Writes `services/cli/alert_rules.json`: the alerts of `deploy/prometheus/alerts.yml` as `sabot
drill` reads them, which is installed without that file and without a reader of YAML.
"""

from __future__ import annotations

import json
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
RULES = ROOT / "deploy/prometheus/alerts.yml"
WRITTEN = ROOT / "services/cli/alert_rules.json"


def alert_rules() -> str:
    """The file's content."""
    groups = yaml.safe_load(RULES.read_text())["groups"]
    found = {
        rule["alert"]: {
            "expr": " ".join(rule["expr"].split()),
            "for": rule["for"],
            "runbook": rule["annotations"]["runbook"],
        }
        for group in groups
        for rule in group["rules"]
        if "alert" in rule
    }
    return json.dumps(found, indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    WRITTEN.write_text(alert_rules())
