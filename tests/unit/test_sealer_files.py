"""The sealer's files: a disk without room holds nothing else up, and nothing stays open."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tests.unit.test_seals import fed, sealer_of


def test_a_tree_that_cannot_be_written_is_told_and_raises_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealer = sealer_of(tmp_path)
    fed(sealer, 1, 5)
    assert sealer.problems == {}

    def full(_file: int, _data: bytes, _offset: int) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    fed(sealer, 6, 6)
    assert sealer.problems == {"tree": "the tree cannot be written: No space left on device"}
    monkeypatch.undo()
    fed(sealer, 7, 7)
    assert list(sealer.problems) == ["tree"], "it has a gap now"
    sealer.close()

    again = sealer_of(tmp_path)
    assert again.tree.size == 5
    fed(again, 6, 7)
    assert again.problems == {}
    again.close()


def test_nothing_stays_open(tmp_path: Path) -> None:
    def mine() -> list[str]:
        found = []
        for handle in Path("/proc/self/fd").iterdir():
            try:
                found.append(str(handle.readlink()))
            except OSError:
                continue  # the listing's own
        return [path for path in found if path.startswith(str(tmp_path))]

    sealer = sealer_of(tmp_path)
    fed(sealer, 1, 9)
    assert len(mine()) > 1
    sealer.close()
    assert mine() == []
