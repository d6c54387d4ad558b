"""Which events of the log are significant, and where they stand: an index in a file, made from the
log and made anew where it does not fit. What they say is read from the log itself.

A record is 32 bytes: sequence (8), index (4), kind (4), log time (8), the beginning of the chain
hash at the entry (8). A record of kind 0 says only that everything up to there was looked at.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

from google.protobuf.message import Message

from sabot.audit.v1 import audit_service_pb2 as audits
from sabot.audit.v1 import contest_events_pb2 as contests
from sabot.audit.v1 import correction_events_pb2 as facts
from sabot.audit.v1 import events_pb2 as audit_events
from sabot.audit.v1 import significant_events_pb2 as significant
from sabot.limits.v1 import protection_events_pb2 as protection
from sabot.log.v1 import events_pb2 as logs
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import correction_events_pb2 as corrections
from sabot.table.v1 import events_pb2 as tables
from sabot.table.v1 import floor_events_pb2 as table_floor
from sabot.table.v1 import switch_events_pb2 as switches
from sabot.wallet.v1 import correction_events_pb2 as wallet_corrections
from sabot.wallet.v1 import events_pb2 as wallet
from sabot.wallet.v1 import seamless_events_pb2 as seamless
from services.kernel.event import Event, Position
from services.kernel.projections import ReadEvents
from services.kernel.reader import SEGMENT

RECORD = struct.Struct(">QIIQ8s")
READ_AT_ONCE = 4_096
"""Records."""
COVERED_EVERY = 5_000
"""Entries without a significant one, after which it is noted that they were looked at."""

Kind: TypeAlias = audits.Significance.ValueType
SIGNIFICANT: dict[type[Message], Kind] = {
    audit_events.AttestationTaken: audits.SIGNIFICANCE_ATTESTATION,
    audit_events.AttestationChanged: audits.SIGNIFICANCE_ATTESTATION,
    significant.LargeAmountsFound: audits.SIGNIFICANCE_LARGE_AMOUNT,
    significant.ReadsNoted: audits.SIGNIFICANCE_READ,
    tables.RoundVoided: audits.SIGNIFICANCE_VOID,
    corrections.CorrectionProposed: audits.SIGNIFICANCE_CORRECTION,
    corrections.CorrectionApproved: audits.SIGNIFICANCE_CORRECTION,
    corrections.ResultCorrected: audits.SIGNIFICANCE_CORRECTION,
    corrections.CorrectionClosed: audits.SIGNIFICANCE_CORRECTION,
    table_floor.CardCorrectionOrdered: audits.SIGNIFICANCE_CORRECTION,
    table_floor.OutcomeCorrectionOrdered: audits.SIGNIFICANCE_CORRECTION,
    floor.CardCorrected: audits.SIGNIFICANCE_CORRECTION,
    floor.OutcomeCorrected: audits.SIGNIFICANCE_CORRECTION,
    tables.TableOpened: audits.SIGNIFICANCE_PARAMETERS,
    switches.SwitchSet: audits.SIGNIFICANCE_PARAMETERS,
    protection.LimitsSet: audits.SIGNIFICANCE_PARAMETERS,
    seamless.PartnerProfileSet: audits.SIGNIFICANCE_PARAMETERS,
    wallet_corrections.ShortfallPolicySet: audits.SIGNIFICANCE_PARAMETERS,
    significant.ThresholdsSet: audits.SIGNIFICANCE_PARAMETERS,
    logs.ActivateBehaviour: audits.SIGNIFICANCE_PARAMETERS,
    seamless.MovementDisputed: audits.SIGNIFICANCE_MONEY,
    seamless.MovementRefused: audits.SIGNIFICANCE_MONEY,
    seamless.MovementWrittenOff: audits.SIGNIFICANCE_MONEY,
    wallet_corrections.CorrectionDebitDeclined: audits.SIGNIFICANCE_MONEY,
    wallet_corrections.ReceivableSettled: audits.SIGNIFICANCE_MONEY,
    logs.AcceptLog: audits.SIGNIFICANCE_INTEGRITY,
    logs.InputFailed: audits.SIGNIFICANCE_INTEGRITY,
    logs.RetryInput: audits.SIGNIFICANCE_INTEGRITY,
    facts.FactsRefuted: audits.SIGNIFICANCE_INTEGRITY,
    contests.SettlementContested: audits.SIGNIFICANCE_INTEGRITY,
    wallet.AccountBlocked: audits.SIGNIFICANCE_ACCOUNT,
    wallet.AccountUnblocked: audits.SIGNIFICANCE_ACCOUNT,
    wallet.AccountClosed: audits.SIGNIFICANCE_ACCOUNT,
    protection.AccountExcluded: audits.SIGNIFICANCE_ACCOUNT,
    protection.ExclusionLifted: audits.SIGNIFICANCE_ACCOUNT,
    protection.AccountDescribed: audits.SIGNIFICANCE_ACCOUNT,
}
"""By type, why it is; what depends on more than the type, `significance_of` knows."""
_NOTED: dict[significant.NotedKind.ValueType, Kind] = {
    significant.NOTED_KIND_FAILED_SIGN_IN: audits.SIGNIFICANCE_FAILED_SIGN_IN,
    significant.NOTED_KIND_UNAVAILABLE: audits.SIGNIFICANCE_UNAVAILABLE,
    significant.NOTED_KIND_CLOCK_STEPPED: audits.SIGNIFICANCE_CLOCK,
}


def significance_of(body: Message) -> Kind | None:
    """Why an event is significant; None: it is not."""
    if isinstance(body, significant.EventsNoted):
        return _NOTED.get(body.noted.kind)
    if isinstance(body, wallet_corrections.CorrectionPosted):
        return audits.SIGNIFICANCE_MONEY if body.receivable_minor > 0 else None
    return SIGNIFICANT.get(type(body))


class Place(NamedTuple):
    """Where a significant event stands."""

    position: Position
    kind: Kind
    time_us: int
    """Log time."""


class SignificantIndex:
    """See the module; a `services.kernel.host.CaughtUp`. `path`: its file, which one process of a
    name has."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self._size = os.fstat(self._file).st_size // RECORD.size
        self._last = 0
        """The last entry that was looked at."""
        self.started_us = 0
        """Log time at the end of the log that this process found; 0: it was empty."""
        os.ftruncate(self._file, self._size * RECORD.size)

    @property
    def size(self) -> int:
        """How many records there are."""
        return self._size

    async def catch_up(self, read: ReadEvents) -> None:
        """Take all entries that it lacks, before the process starts."""
        if self._size:
            sequence, _, _, _, head = self._record(self._size - 1)
            # An entry may have been written in part: it is looked at again.
            while self._size and self._record(self._size - 1)[0] == sequence:
                self._size -= 1
            if await self._take(read, sequence - 1, (sequence, head)):
                return
            self._size = 0  # It was of another log.
        os.ftruncate(self._file, self._size * RECORD.size)
        await self._take(read, 0, None)

    async def _take(self, read: ReadEvents, after: int, first: tuple[int, bytes] | None) -> bool:
        """Take what stands behind an entry; whether that begins with `first`: its sequence and the
        beginning of its chain hash."""
        begins = first is None
        entries = read(after)
        try:
            async for sequence, head, events in entries:
                if not begins and (sequence, bytes(head[:8])) != first:
                    return False
                begins = True
                self.feed(sequence, head, events)
                for event in events[-1:]:
                    self.started_us = event.time_us
        finally:
            await entries.aclose()  # type: ignore[attr-defined]  # an async generator
        return begins

    def feed(self, sequence: int, head: bytes, events: list[Event]) -> None:
        """The next entry of the log."""
        if sequence <= self._last:
            return
        found = b""
        for event in events:
            kind = significance_of(event.body)
            if kind is not None:
                found += RECORD.pack(
                    sequence, event.position.index, kind, event.time_us, bytes(head[:8])
                )
        if not found and events and sequence - self._covered() >= COVERED_EVERY:
            found = RECORD.pack(sequence, 0, 0, events[-1].time_us, bytes(head[:8]))
        if found:
            os.pwrite(self._file, found, self._size * RECORD.size)
            self._size += len(found) // RECORD.size
        self._last = sequence

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)

    def places(self, at: int) -> Iterator[tuple[int, Place]]:
        """The events from a record on, each with the record behind it."""
        while at < self._size:
            count = min(READ_AT_ONCE, self._size - at)
            raw = os.pread(self._file, count * RECORD.size, at * RECORD.size)
            for sequence, index, kind, time_us, _ in RECORD.iter_unpack(raw):
                at += 1
                if kind:
                    yield at, Place(Position(SEGMENT, sequence, index), kind, time_us)

    def _covered(self) -> int:
        return self._record(self._size - 1)[0] if self._size else 0

    def _record(self, at: int) -> tuple[int, int, int, int, bytes]:
        sequence, index, kind, time_us, head = RECORD.unpack(
            os.pread(self._file, RECORD.size, at * RECORD.size)
        )
        return sequence, index, kind, time_us, head
