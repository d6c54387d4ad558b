"""`sabot export`: a log as one file that anyone can check without Sabot (see `verify_export`)."""

from __future__ import annotations

import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from sabot.audit.v1 import correction_events_pb2 as audit_corrections
from sabot.audit.v1 import events_pb2 as audit
from sabot.log.v1 import entry_pb2
from sabot.settlement.v1 import correction_events_pb2 as settlement_corrections
from services.cli.verify_export import ENTRY, HASH_BYTES, LENGTH, MAGIC
from services.kernel.entry import canonical_headers, first_head, next_head
from services.kernel.log import Log, LogMessage


class NothingToExport(Exception):
    """The log is empty."""


async def export_log(log: Log, path: Path, progress: Callable[[int], None]) -> tuple[int, bytes]:
    """Write all entries that the log has now; the last sequence and the chain hash there.

    The file appears whole or not at all. Raises NothingToExport, LogUnavailable."""
    last = (await log.info(wait_s=5.0)).last_sequence
    if not last:
        raise NothingToExport("the log is empty")
    head = first_head(log.cell)
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        with fresh.open("wb") as file:
            start_export(file, log.cell)
            done = False
            async for batch in log.read(0):
                for message in batch:
                    head = write_entry(file, head, message)
                    done = message.sequence >= last
                    if done:
                        break
                progress(batch[-1].sequence)
                if done:
                    break
            end_export(file, head)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    return last, head


def write_entry(file: BinaryIO, head: bytes, message: LogMessage) -> bytes:
    """Write the entry after the one with the chain hash `head`; its own chain hash."""
    headers = canonical_headers(message.headers)
    subject = message.subject.encode()
    head = next_head(head, message.sequence, message.subject, message.headers, message.payload)
    lengths = (len(subject), len(headers), len(message.payload))
    file.write(ENTRY.pack(message.sequence, *lengths))
    file.write(subject + headers + message.payload + head)
    return head


def start_export(file: BinaryIO, cell: str) -> None:
    """Write what goes before the entries."""
    parts = (cell.encode(), descriptors())
    start = MAGIC + b"".join(LENGTH.pack(len(part)) + part for part in parts)
    file.write(start + sha256(start).digest())


def end_export(file: BinaryIO, head: bytes) -> None:
    """Write what goes behind them. `head`: the chain hash of the last; empty: there is none."""
    file.write(bytes(ENTRY.size) + (head or bytes(HASH_BYTES)))


RECALLED = frozenset({"RecalledFact", "RecallFacts", "FactsRecalled"})
"""Messages of settlement's that a verifier reads."""


def descriptors() -> bytes:
    """The messages that a verifier reads, with all that they build on, as a `FileDescriptorSet`."""
    files: dict[str, FileDescriptorProto] = {}

    def add(file: FileDescriptor) -> None:
        for other in file.dependencies:
            add(other)
        if file.name not in files:
            proto = FileDescriptorProto()
            file.CopyToProto(proto)
            files[file.name] = proto

    add(entry_pb2.DESCRIPTOR)
    add(audit.DESCRIPTOR)
    add(audit_corrections.DESCRIPTOR)
    recalled = FileDescriptorProto()
    settlement_corrections.DESCRIPTOR.CopyToProto(recalled)
    # Of this file only what tells of recalled facts: the rest builds on most of all protos, which
    # every verifier would have to read.
    kept = [one for one in recalled.message_type if one.name in RECALLED]
    del recalled.message_type[:], recalled.enum_type[:], recalled.dependency[:]
    recalled.message_type.extend(kept)
    recalled.dependency.append(entry_pb2.DESCRIPTOR.name)
    files[recalled.name] = recalled
    return FileDescriptorSet(file=files.values()).SerializeToString(deterministic=True)
