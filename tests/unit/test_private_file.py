"""Who else may read a file with secrets."""

from __future__ import annotations

import os

import pytest

from services.kernel.private_file import exposed

OWN, OTHER = 10001, 10002


def found(mode: int, uid: int) -> os.stat_result:
    return os.stat_result((0o100000 | mode, 1, 1, 1, uid, 0, 1, 0, 0, 0))


@pytest.mark.parametrize(
    ("mode", "uid", "is_exposed"),
    [
        (0o600, OWN, False),
        (0o400, OWN, False),
        (0o640, OWN, True),
        (0o440, OWN, True),
        (0o604, OWN, True),
        (0o440, 0, False),  # a secret's volume, mounted for a group of the process
        (0o640, 0, False),
        (0o460, 0, True),
        (0o444, 0, True),
        (0o440, OTHER, True),
    ],
)
def test_a_file_is_for_its_owner_and_a_mounted_one_for_its_group(
    mode: int, uid: int, is_exposed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: OWN)
    assert exposed(found(mode, uid)) is is_exposed


def test_root_s_own_file_is_for_root_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert exposed(found(0o440, 0))
    assert not exposed(found(0o600, 0))
