"""States as bytes. Pure: the same state always gives the same bytes, so their SHA-256 names it.

A state is dataclasses, named tuples, tuples, lists, dicts, deques, numbers, strings, bytes, enums,
None and protobuf messages, all declared by type hints. A field with the metadata `snapshot: False`
says something of the process, not of the log, and is left out. It is written as JSON by position,
without names: `schema` of the core says which shape that is, and a snapshot of another schema is
not read."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
import types
import typing
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from json.encoder import encode_basestring_ascii
from operator import attrgetter
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from services.kernel.entry import encode_body
from services.kernel.event import Core
from services.kernel.reader import ReaderState
from services.kernel.replica import ReplicaState

DIGEST_BYTES = 32
KEPT = 3
"""Newest sets that are kept, however large: the last may have been taken just before a crash and
not be named in the log yet."""
KEPT_BYTES = 512 * 1024 * 1024
"""Older ones are kept beside them while all take no more than this, spread over the log: what
happened long ago is looked at from the one before it. They are copies, so a disk need not hold
more."""

Encode = Callable[[Any], str]
"""A value as JSON text, piece by piece: one call for a whole state would be a second's work of a
large one in which no other thread of the process gets its turn."""
Decode = Callable[[Any], Any]
"""A value from what JSON gave."""


class SnapshotUnusable(Exception):
    """A snapshot of another schema or service, or damaged: fold the log instead."""


@dataclass(slots=True)
class Snapshot:
    """A replica at one place of the log."""

    service: str
    schema: int
    reader: ReaderState
    replica: ReplicaState[Any]

    @property
    def sequence(self) -> int:
        """All entries up to this one are folded in."""
        return self.reader.sequence


class StateCodec:
    """Turns values into JSON and back, by their declared types."""

    def __init__(self) -> None:
        self._cache: dict[Any, tuple[Encode, Decode]] = {}

    def dumps(self, declared: Any, value: Any) -> bytes:
        """A value as bytes."""
        return self._codec(declared, {})[0](value).encode()

    def loads(self, declared: Any, raw: bytes) -> Any:
        """A value from its bytes. Raises SnapshotUnusable."""
        try:
            return self._codec(declared, {})[1](json.loads(raw))
        except (ValueError, TypeError, KeyError, IndexError) as error:
            raise SnapshotUnusable("the snapshot is not of this shape") from error

    def _codec(self, declared: Any, variables: Mapping[Any, Any]) -> tuple[Encode, Decode]:
        declared = variables.get(declared, declared)
        key = (declared, tuple(sorted(variables.items(), key=str)))
        known = self._cache.get(key)
        if known is not None:
            return known
        later: list[tuple[Encode, Decode]] = []
        # A type may contain itself: what is being built is reached through this.
        self._cache[key] = _through(later)
        codec = self._build(declared, variables)
        later.append(codec)
        self._cache[key] = codec
        return codec

    def _build(self, declared: Any, variables: Mapping[Any, Any]) -> tuple[Encode, Decode]:
        origin = typing.get_origin(declared)
        arguments = typing.get_args(declared)
        if declared in _PLAIN:
            return _exactly(declared)
        if declared is bytes:
            return (lambda value: f'"{value.hex()}"'), bytes.fromhex
        if origin in (typing.Union, types.UnionType):
            return self._optional(arguments, variables)
        if origin in (list, deque):
            encode, decode = self._codec(arguments[0], variables)
            made: Any = origin
            return (
                lambda value: _list([encode(item) for item in value]),
                lambda raw: made(decode(item) for item in raw),
            )
        if origin is tuple:
            return self._tuple(arguments, variables)
        if origin is dict:
            return self._dict(arguments, variables)
        if dataclasses.is_dataclass(origin or declared):
            return self._fields(origin or declared, arguments)
        if isinstance(declared, type):
            if issubclass(declared, Enum):
                texts = {one: json.dumps(one.value) for one in declared}
                return texts.__getitem__, declared
            if issubclass(declared, Message):
                return self._message()
            if issubclass(declared, tuple) and hasattr(declared, "_fields"):
                return self._named_tuple(declared)
        raise TypeError(f"a state cannot hold {declared!r}")

    def _optional(
        self, arguments: tuple[Any, ...], variables: Mapping[Any, Any]
    ) -> tuple[Encode, Decode]:
        inner = [argument for argument in arguments if argument is not type(None)]
        if len(inner) != 1 or len(arguments) != 2:
            raise TypeError(f"a state cannot hold one of {arguments!r}")
        encode, decode = self._codec(inner[0], variables)
        # A value stands in a list of its own, so that None inside None stays apart.
        return (
            lambda value: "null" if value is None else f"[{encode(value)}]",
            lambda raw: None if raw is None else decode(raw[0]),
        )

    def _tuple(
        self, arguments: tuple[Any, ...], variables: Mapping[Any, Any]
    ) -> tuple[Encode, Decode]:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            encode, decode = self._codec(arguments[0], variables)
            return (
                lambda value: _list([encode(item) for item in value]),
                lambda raw: tuple(decode(item) for item in raw),
            )
        codecs = [self._codec(argument, variables) for argument in arguments]
        return (
            _each([codec[0] for codec in codecs]),
            lambda raw: tuple(codec[1](item) for codec, item in zip(codecs, raw, strict=True)),
        )

    def _dict(
        self, arguments: tuple[Any, ...], variables: Mapping[Any, Any]
    ) -> tuple[Encode, Decode]:
        key_encode, key_decode = self._codec(arguments[0], variables)
        encode, decode = self._codec(arguments[1], variables)
        return (
            lambda value: _list(
                [f"[{key_encode(key)},{encode(item)}]" for key, item in value.items()]
            ),
            lambda raw: {key_decode(key): decode(item) for key, item in raw},
        )

    def _fields(self, made: Any, arguments: tuple[Any, ...]) -> tuple[Encode, Decode]:
        hints = typing.get_type_hints(made)
        parameters = getattr(made, "__parameters__", ())
        variables = dict(zip(parameters, arguments, strict=False))
        names = [one.name for one in dataclasses.fields(made) if one.metadata.get("snapshot", True)]
        codecs = [self._codec(hints[name], variables) for name in names]
        fields = _fields_of(names)
        each = _each([codec[0] for codec in codecs])
        pairs = list(zip(names, codecs, strict=True))
        return (
            lambda value: each(fields(value)),
            lambda raw: made(
                **{name: codec[1](item) for (name, codec), item in zip(pairs, raw, strict=True)}
            ),
        )

    def _named_tuple(self, made: Any) -> tuple[Encode, Decode]:
        hints = typing.get_type_hints(made)
        codecs = [self._codec(hints[name], {}) for name in made._fields]
        return (
            _each([codec[0] for codec in codecs]),
            lambda raw: made(*(codec[1](item) for codec, item in zip(codecs, raw, strict=True))),
        )

    def _message(self) -> tuple[Encode, Decode]:
        def decode(raw: Any) -> Message:
            made = GetMessageClass(descriptor_pool.Default().FindMessageTypeByName(raw[0]))
            return made.FromString(bytes.fromhex(raw[1]))

        return (
            lambda value: f'["{value.DESCRIPTOR.full_name}","{encode_body(value).hex()}"]',
            decode,
        )


def _through(later: list[tuple[Encode, Decode]]) -> tuple[Encode, Decode]:
    """A codec that is known only later."""

    def encode(value: Any) -> str:
        return later[0][0](value)

    def decode(raw: Any) -> Any:
        return later[0][1](raw)

    return encode, decode


def _exactly(declared: type) -> tuple[Encode, Decode]:
    """A type that JSON has itself."""
    write = _PLAIN[declared]

    def encode(value: Any) -> str:
        if type(value) is not declared:
            raise TypeError(f"{value!r} is not {declared.__name__}")
        return write(value)

    def decode(raw: Any) -> Any:
        if type(raw) is not declared:
            raise TypeError(f"{raw!r} is not {declared.__name__}")
        return raw

    return encode, decode


_PLAIN: Mapping[Any, Encode] = {
    int: int.__repr__,
    str: encode_basestring_ascii,
    bool: lambda value: "true" if value else "false",
    type(None): lambda _: "null",
}


def _list(items: Sequence[str]) -> str:
    return f"[{','.join(items)}]"


def _each(encodes: Sequence[Encode]) -> Encode:
    """As many values as there are encodings, each by its own."""

    def encode(values: Any) -> str:
        return _list([one(value) for one, value in zip(encodes, values, strict=True)])

    return encode


def _fields_of(names: Sequence[str]) -> Callable[[Any], Sequence[Any]]:
    """Reads these fields of an object: several at once is the quickest."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: [getattr(value, name) for name in names]


def encode_snapshot(codec: StateCodec, core: Core[Any], snapshot: Snapshot) -> bytes:
    """A snapshot as bytes."""
    return codec.dumps(
        tuple[str, int, ReaderState, ReplicaState[core.state_type]],  # type: ignore[name-defined]  # the state's own type
        (snapshot.service, snapshot.schema, snapshot.reader, snapshot.replica),
    )


def is_snapshot_of(core: Core[Any], raw: bytes) -> bool:
    """Whether bytes begin as a snapshot of a core, of the schema that it has now."""
    return raw.startswith(f'["{core.service}",{core.schema},'.encode())


def decode_snapshot(codec: StateCodec, core: Core[Any], raw: bytes) -> Snapshot:
    """A snapshot from its bytes. Raises SnapshotUnusable."""
    if not is_snapshot_of(core, raw):
        raise SnapshotUnusable(f"not a snapshot of {core.service}, schema {core.schema}")
    service, schema, reader, replica = codec.loads(
        tuple[str, int, ReaderState, ReplicaState[core.state_type]],  # type: ignore[name-defined]  # the state's own type
        raw,
    )
    return Snapshot(service, schema, reader, replica)


_CODEC = StateCodec()
"""Kept, since it learns each type once: that takes longer than decoding a small state."""


@dataclass(frozen=True, slots=True)
class SnapshotSet:
    """Snapshots of several services, all taken at one place of the log."""

    sequence: int
    raw: Mapping[str, bytes]
    """By service."""

    def decode(self, core: Core[Any]) -> Snapshot:
        """The snapshot of one core, a fresh copy each time. Raises SnapshotUnusable."""
        raw = self.raw.get(core.service)
        if raw is None:
            raise SnapshotUnusable(f"there is none of {core.service}")
        snapshot = decode_snapshot(_CODEC, core, raw)
        if snapshot.sequence != self.sequence:
            raise SnapshotUnusable(f"{core.service} was taken at {snapshot.sequence}")
        return snapshot

    def name_of(self, service: str) -> tuple[str, int, bytes]:
        """What `RecordSnapshot` in the log says of one of them."""
        return service, self.sequence, digest(self.raw[service])


def reader_of(raw: bytes) -> ReaderState:
    """The reader's part of a snapshot, whosever it is. Raises SnapshotUnusable."""
    try:
        part = json.dumps(json.loads(raw)[2]).encode()
    except (ValueError, TypeError, IndexError) as error:
        raise SnapshotUnusable("not a snapshot") from error
    state: ReaderState = _CODEC.loads(ReaderState, part)
    return state


class SnapshotFolder:
    """Snapshots as files, `<sequence>/<service>`, each with its digest behind it. They are caches:
    whatever is odd or damaged is passed over."""

    def __init__(self, folder: Path, bytes_max: int = KEPT_BYTES) -> None:
        self._folder = folder
        self._bytes_max = bytes_max

    def save(self, snapshot_set: SnapshotSet) -> None:
        """Write a set, whole or not at all. Where all take too much room, let go of those older
        ones that leave the smallest gaps."""
        part = self._folder / f"{snapshot_set.sequence}.part"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        for service, raw in snapshot_set.raw.items():
            (part / service).write_bytes(raw + digest(raw))
        whole = self._folder / str(snapshot_set.sequence)
        shutil.rmtree(whole, ignore_errors=True)
        part.rename(whole)
        self._make_room()

    def sets(self) -> list[SnapshotSet]:
        """The newest, newest first: what a start looks at."""
        return list(islice(self.older(), KEPT))

    def older(self, before: int | None = None) -> Iterator[SnapshotSet]:
        """All that are there, newest first, or those taken before an entry; each is read when it is
        asked for."""
        return self.at(one for one in self.sequences() if before is None or one < before)

    def at(self, sequences: Iterable[int]) -> Iterator[SnapshotSet]:
        """Those that were taken at these entries and are whole, in that order."""
        for sequence in sequences:
            folder = self._folder / str(sequence)
            try:
                files = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
            except OSError:
                continue
            raw = {name: whole[:-DIGEST_BYTES] for name, whole in files.items()}
            if raw and all(digest(raw[name]) == files[name][-DIGEST_BYTES:] for name in raw):
                yield SnapshotSet(sequence, raw)

    def _make_room(self) -> None:
        kept = self.sequences()
        sizes = {one: self._bytes_of(one) for one in kept}
        while len(kept) > KEPT and sum(sizes[one] for one in kept) > self._bytes_max:
            ends = [*kept, 0]
            worst = min(range(KEPT, len(kept)), key=lambda at: ends[at - 1] - ends[at + 1])
            shutil.rmtree(self._folder / str(kept.pop(worst)), ignore_errors=True)

    def _bytes_of(self, sequence: int) -> int:
        folder = self._folder / str(sequence)
        with suppress(OSError):
            return sum(path.stat().st_size for path in folder.iterdir())
        return 0

    def sequences(self) -> list[int]:
        """Where those that are there were taken, newest first."""
        if not self._folder.is_dir():
            return []
        names = [path.name for path in self._folder.iterdir()]
        return sorted((int(name) for name in names if name.isdigit()), reverse=True)


def digest(raw: bytes) -> bytes:
    """The name of a snapshot in the log: SHA-256 of its bytes."""
    return hashlib.sha256(raw).digest()


def state_digest(codec: StateCodec, core: Core[Any], state: Any) -> str:
    """SHA-256 of a core's state, in hexadecimal: equal states, equal digests."""
    return hashlib.sha256(codec.dumps(core.state_type, state)).hexdigest()
