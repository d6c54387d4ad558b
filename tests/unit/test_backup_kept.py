"""`sabot backup --keep N`: whole files by their times, the oldest removed, none for nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.cli.backup import BackedUp, BackupRefused
from services.cli.backup_kept import back_up_anew, kept
from services.cli.verify_export import verify
from services.kernel.log import Log
from services.simulator.virtual_time import run_virtual
from tests.unit.test_backup import Beginning, played, whole

NIGHT_US = 86_400_000_000


def nightly(log: Log, folder: Path, night: int, keep: int = 3) -> tuple[Path, BackedUp]:
    now_us = 1_800_000_000_000_000 + night * NIGHT_US
    return run_virtual(back_up_anew(log, folder, keep, now_us, "test", lambda _done, _all: None))


def early() -> Log:
    return Beginning(*played())


def test_each_night_adds_a_file_that_is_whole_and_keeps_the_last_ones(tmp_path: Path) -> None:
    first, was = nightly(early(), tmp_path, 1)
    second, now = nightly(whole(), tmp_path, 2)
    assert now.added == now.entries - was.entries > 0, "of the log only what is new is read"
    for path, found in ((first, was), (second, now)):
        with path.open("rb") as file:
            assert (verify(file).right, path.stat().st_size) == (True, found.size)
        assert path.with_name(f"{path.name}.json").exists()
    for night in range(3, 6):
        nightly(whole(), tmp_path, night)
    left = kept(tmp_path, was.cell)
    assert len(left) == 3
    assert {one.name for one in tmp_path.iterdir()} == {
        name for one in left for name in (one.name, f"{one.name}.json")
    }


def test_a_night_that_was_cut_off_is_gone_on_with(tmp_path: Path) -> None:
    first, _ = nightly(early(), tmp_path, 1)
    unfinished = tmp_path / f"{whole().cell}.unfinished"
    unfinished.write_bytes(first.read_bytes()[:-5])
    second, found = nightly(whole(), tmp_path, 2)
    with second.open("rb") as file:
        assert verify(file).entries == found.entries == played()[0].last_sequence
    assert not unfinished.exists()


def test_a_file_that_has_gone_bad_is_noticed_and_nothing_is_removed(tmp_path: Path) -> None:
    nightly(early(), tmp_path, 1)
    newest, _ = nightly(early(), tmp_path, 2)
    raw = bytearray(newest.read_bytes())
    raw[len(raw) // 2] ^= 1
    newest.write_bytes(raw)
    with pytest.raises(BackupRefused, match=rf"{newest.name}.*damaged at entry"):
        nightly(whole(), tmp_path, 3, keep=1)
    assert len(kept(tmp_path, whole().cell)) == 2
    newest.unlink()
    nightly(whole(), tmp_path, 3, keep=1)
    assert len(kept(tmp_path, whole().cell)) == 1


def test_a_log_that_lost_its_end_takes_no_backup_away(tmp_path: Path) -> None:
    whole_one, _ = nightly(whole(), tmp_path, 1)
    with pytest.raises(BackupRefused, match="the log has lost its end"):
        nightly(early(), tmp_path, 2, keep=1)
    assert kept(tmp_path, whole().cell) == [whole_one]


def test_a_clock_that_went_back_takes_no_backup_away(tmp_path: Path) -> None:
    nightly(whole(), tmp_path, 2)
    with pytest.raises(BackupRefused, match="set the clock right"):
        nightly(whole(), tmp_path, 1, keep=1)


def test_other_files_and_other_cells_are_left_alone(tmp_path: Path) -> None:
    others = [tmp_path / "main-notes.backup", tmp_path / "main-2-20260101T000000.000000Z.backup"]
    for other in others:
        other.write_text("ours")
    for night in range(3):
        nightly(whole(), tmp_path, night, keep=1)
    assert all(other.exists() for other in others)
