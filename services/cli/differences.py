"""Recorded answers that do not follow, for people and programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from services.cli.readable import readable_message
from services.events import event_types
from services.kernel.entry import position_of
from services.kernel.replica import Diverged, same_answer


def differences_in(first: Diverged) -> Iterator[Diverged]:
    """All that differs in an entry, from the first difference on. Whoever goes on with the record
    takes the whole entry as it stands, so what is not named here is named nowhere; and each
    position is accepted by itself. An answer that lacks is told at the one in its place, at the
    entry's last where none is."""
    answers = list(first.due)
    places = {(position_of(one.cause), one.index): place for place, one in enumerate(answers)}
    done, at = 0, first.position
    yield first
    for index, recorded in enumerate(first.told):
        at = first.position._replace(index=first.position.index + index)
        place = places.get((position_of(recorded.cause), recorded.index), -1)
        if place < done:
            if index:
                yield Diverged(first.service, at, None, recorded)
            continue
        for one in answers[done:place]:
            if one is not first.expected:
                yield Diverged(first.service, at, one, recorded)
        if (index or place) and not same_answer(answers[place], recorded):
            yield Diverged(first.service, at, answers[place], recorded)
        done = place + 1
    causes = {position_of(one.cause) for one in first.told}
    for one in answers[done:]:
        # Groups stand whole in an entry: what lacks of one does not come later.
        if position_of(one.cause) in causes and one is not first.expected:
            yield Diverged(first.service, at, one, first.told[-1])


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
