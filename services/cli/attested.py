"""What the processes of a log attested, read from it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import DecodeError

from sabot.log.v1 import events_pb2
from services.cli.moments import written
from services.kernel.attesting import CALLERS, CODE, SETTING, code_digest
from services.kernel.entry import NotUnderstood, decode_entry
from services.kernel.log import Log, LogMessage
from services.kernel.reader import LogBroken

TYPE = str(events_pb2.Attest.DESCRIPTOR.full_name)
SHORT = 12
"""Hex digits that people are shown of a digest."""
MAY_DIFFER = frozenset({f"{SETTING}drain_s", f"{SETTING}log_level", f"{SETTING}trace_ratio"})
"""Settings in which processes of one cell may well differ."""


@dataclass(frozen=True, slots=True)
class Attested:
    """A process's last attestation."""

    position: str
    time: str
    """When it was taken, by its process's clock."""
    body: events_pb2.Attest

    @property
    def parts(self) -> dict[str, str]:
        """Digests by name, in hex."""
        return {part.name: part.digest.hex() for part in self.body.parts}

    def told(self) -> dict[str, Any]:
        """For programs."""
        return {
            "process": self.body.process,
            "build": self.body.build,
            "reason": _reason(self.body),
            "position": self.position,
            "time": self.time,
            "parts": self.parts,
        }


async def last_attested(
    log: Log, accepted: Mapping[int, bytes] | None = None
) -> dict[str, Attested]:
    """The last attestation of every process, by name. `accepted`: entries that are passed over
    where they cannot be read, with the chain hash there. Raises LogBroken."""
    last = (await log.info(wait_s=5.0)).last_sequence
    found: dict[str, Attested] = {}
    needle = TYPE.encode()
    if not last:
        return found
    messages = log.read(0)
    try:
        async for batch in messages:
            for message in batch:
                if needle not in message.payload:
                    continue
                for index, time_us, body in _attests_in(message, accepted or {}):
                    place = f"1/{message.sequence}/{index}"
                    found[body.process] = Attested(place, written(time_us), body)
            if batch[-1].sequence >= last:
                break
    finally:
        await messages.aclose()  # type: ignore[attr-defined]  # an async generator, by its contract
    return dict(sorted(found.items()))


def _attests_in(
    message: LogMessage, accepted: Mapping[int, bytes]
) -> list[tuple[int, int, events_pb2.Attest]]:
    """Index, time and body of each."""
    try:
        return [
            (index, event.time_us, events_pb2.Attest.FromString(event.body))
            for index, event in enumerate(decode_entry(message.payload).events)
            if event.type == TYPE
        ]
    except (DecodeError, NotUnderstood) as error:
        if message.sequence in accepted:
            return []
        raise LogBroken(message.sequence, str(error)) from error


def lines_of(found: Mapping[str, Attested]) -> Iterator[str]:
    """For people: a line a process."""
    for name, one in found.items():
        parts = one.parts
        shown = "  ".join(
            f"{part} {parts[part][:SHORT]}" for part in (CODE, CALLERS, "rules") if part in parts
        )
        yield f"{name}  {one.body.build}  {one.time}  {one.position}  {_reason(one.body)}  {shown}"


def differences(found: Mapping[str, Attested]) -> list[str]:
    """In words, where processes differ, and which run other code than this command does."""
    wrong = []
    by_part: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, one in found.items():
        for part, digest in one.parts.items():
            by_part[part][digest].append(name)
    here = code_digest().hex()
    for digest, names in by_part.pop(CODE, {}).items():
        if digest != here:
            wrong.append(
                f"code {digest[:SHORT]} is not what this command runs from ({here[:SHORT]}): "
                f"{', '.join(names)}"
            )
    for part, digests in sorted(by_part.items()):
        if part not in MAY_DIFFER and len(digests) > 1:
            told = "; ".join(f"{digest[:SHORT]} {', '.join(of)}" for digest, of in digests.items())
            wrong.append(f"{part} differs: {told}")
    return wrong


def _reason(body: events_pb2.Attest) -> str:
    return events_pb2.AttestReason.Name(body.reason).removeprefix("ATTEST_REASON_").lower()
