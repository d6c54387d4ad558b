"""Recorded answers that do not follow, for people and programs."""

from __future__ import annotations

import json
from typing import Any

from services.cli.readable import readable_message
from services.events import event_types
from services.kernel.replica import Diverged


def difference_line(difference: Diverged) -> str:
    """A recorded answer that does not follow: where, to what, and both versions."""
    told = difference_json(difference)
    return (
        f"difference at {told['position']}: {told['service']} answered {told['cause']} with "
        f"{json.dumps(told['recorded'])}; expected {json.dumps(told['expected'])}"
    )


def difference_json(difference: Diverged) -> dict[str, Any]:
    """The same for programs; `expected` is null where there should be no answer."""
    types = event_types()

    def shown(proto: Any) -> Any:
        if proto is None:
            return None
        return {
            **readable_message(proto),
            "body": readable_message(types.decode(proto.type, proto.body)),
            "note": None,
        }

    return {
        "position": str(difference.position),
        "service": difference.service,
        "cause": readable_message(difference.recorded.cause),
        "expected": shown(difference.expected),
        "recorded": shown(difference.recorded),
    }
