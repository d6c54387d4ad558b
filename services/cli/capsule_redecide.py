"""A capsule's entries decided again: every answer that does not follow is named, and what stands
behind it is compared too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from sabot.log.v1 import entry_pb2
from services.cli.cores import BY_SERVICE
from services.cli.differences import differences_in
from services.kernel.event import Core
from services.kernel.reader import LogBroken, ReadEntry
from services.kernel.recovery import AnyReplica
from services.kernel.replica import Diverged, Replica
from services.kernel.snapshot import StateCodec, decode_snapshot, state_digest

MAX_ENTRIES = 20
"""Entries of a service with differences until it is taken for another build, and left. Each is
folded anew from the states on."""


class Redeciding:
    """See the module. `states`: snapshots just before the first entry, by service; `faults`: where
    what is wrong is named."""

    def __init__(self, states: Mapping[str, bytes], faults: list[str]) -> None:
        self._states = states
        self._faults = faults
        self._codec = StateCodec()
        self._entries: list[ReadEntry] = []
        self._after: dict[str, int] = {}
        self._differing: dict[str, int] = {}
        self._left = 0
        """Answers compared by replicas that are no more."""
        self.differences = 0
        self._replicas = {name: self._begin(BY_SERVICE[name]) for name in states}

    def _begin(self, core: Core[Any]) -> AnyReplica:
        taken = decode_snapshot(self._codec, core, self._states[core.service])
        self._after[core.service] = taken.sequence
        return Replica(core, writer="capsule", state=taken.replica)

    @property
    def answers(self) -> int:
        """Recorded answers that were compared."""
        return self._left + sum(one.answers_compared for one in self._replicas.values())

    def digests(self) -> dict[str, str]:
        """What the states come to, by service; without those that could not be followed."""
        return {
            name: state_digest(self._codec, one.core, one.state.core)
            for name, one in self._replicas.items()
        }

    def take(self, entry: ReadEntry) -> None:
        """Decide the next entry. Raises LogBroken and BehaviourUnknown."""
        self._entries.append(entry)
        for name, replica in list(self._replicas.items()):
            try:
                replica.read(entry, 0.0)
            except Diverged as diverged:
                for one in differences_in(diverged):
                    self.differences += 1
                    self._faults.append(f"entry {entry.sequence}: {one}")
                self._left += replica.answers_compared + len(diverged.told)
                self._follow_record(name)

    def _follow_record(self, name: str) -> None:
        """Go on with what is recorded instead of what was decided."""
        del self._replicas[name]
        count = self._differing[name] = self._differing.get(name, 0) + 1
        try:
            if count < MAX_ENTRIES:
                self._replicas[name] = self._recorded(BY_SERVICE[name])
                return
            why = f"{count} of its entries differ"
        except (Diverged, LogBroken) as error:
            why = str(error)
        self._faults.append(f"{name} is not decided again any further: {why}")

    def _recorded(self, core: Core[Any]) -> AnyReplica:
        replica = self._begin(core)
        after = self._after[core.service]
        recorded: deque[entry_pb2.Event] = deque()
        for entry in self._entries:
            if entry.service == core.service and not entry.is_input:
                recorded.extend(one for one in entry.protos if one.cause.sequence > after)
        for entry in self._entries:
            replica.read(entry, 0.0, recorded or None)
        replica.answers_compared = 0
        return replica
