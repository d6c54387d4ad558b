"""What an operator must look at: a log line and a count, by a closed list of kinds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from services.kernel import telemetry
from services.kernel.telemetry_names import ALARM, ALARM_KINDS, ALARMS, AlarmKind


class Alarms:
    """Raises alarms. The name of each kind is that of its page in docs/runbooks."""

    def __init__(self, metrics: telemetry.Metrics) -> None:
        self._log = telemetry.logger()
        self._counted = metrics.counter(ALARMS)
        for kind in ALARM_KINDS:
            self._counted.labels(kind)  # at 0 from the start, so that it is seen to grow

    def __call__(self, kind: AlarmKind, facts: Mapping[str, Any]) -> None:
        """Raise one."""
        self._counted.labels(kind).inc()
        self._log.error(ALARM, kind=kind, **facts)
