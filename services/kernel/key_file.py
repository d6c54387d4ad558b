"""The operator's keys, in a file that only its owner may read, made at the first run."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from services.kernel.private_file import exposed

KEY_BYTES = 32


class KeyFileUnusable(Exception):
    """The key file cannot be used. The message says why; it holds no key."""


@dataclass(frozen=True, slots=True)
class KeyRing:
    """Keys by id; old ones stay as long as something is left that they were used for."""

    keys: Mapping[str, bytes]
    current: str
    """Which one is used from now on."""

    def __repr__(self) -> str:
        return f"KeyRing(ids={sorted(self.keys)}, current={self.current!r})"


def load_or_create_keys(
    path: Path,
    draw: Callable[[int], bytes],
    name: Callable[[bytes], str] | None = None,
) -> KeyRing:
    """The key ring in a file, made at the first run: `{"current": id, "keys": {id: hex digits}}`.

    `name`: what a key is called; None: by chance. Only its owner may have access to the file. Of
    processes that make it at once, one wins. Raises KeyFileUnusable, and what `draw` raises where a
    key must be made.
    """
    if not path.exists():
        _create_keys(path, draw, name)
    return load_keys(path)


def load_keys(path: Path) -> KeyRing:
    """The key ring in a file that is there. Raises KeyFileUnusable."""
    if not path.exists():
        raise KeyFileUnusable(f"{path}: there is no such key file")
    if exposed(path.stat()):
        raise KeyFileUnusable(f"{path} may be read by others than its owner: chmod 600 it")
    try:
        stored = json.loads(path.read_text())
        keys = {str(key_id): bytes.fromhex(key) for key_id, key in stored["keys"].items()}
        current = str(stored["current"])
    except (ValueError, TypeError, KeyError, AttributeError):
        # Without the cause: it could quote the file.
        raise KeyFileUnusable(f"{path} is no key file") from None
    if current not in keys or any(len(key) != KEY_BYTES for key in keys.values()):
        raise KeyFileUnusable(f"{path}: every key has {KEY_BYTES} bytes, and one is current")
    return KeyRing(keys, current)


def _create_keys(
    path: Path, draw: Callable[[int], bytes], name: Callable[[bytes], str] | None
) -> None:
    key_id = "" if name else draw(4).hex()
    key = draw(KEY_BYTES)
    key_id = name(key) if name else key_id
    text = json.dumps({"current": key_id, "keys": {key_id: key.hex()}}, indent=2)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}.{key_id}")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        # A link never replaces what another process put there: what a lost key sealed is lost.
        path.hardlink_to(fresh)
    except FileExistsError:
        pass
    finally:
        fresh.unlink()
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
