"""Exports and capsules that somebody or something changed: every bit of them is named by its place,
and nothing that a file holds can do more to its reader than to be called wrong."""

from __future__ import annotations

import contextlib
import importlib.metadata
import io
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from typer.testing import CliRunner

from services.cli import verify_export
from services.cli.capsule_file import LENGTHS, NotACapsule, Part, read_parts
from services.cli.capsule_file import MAGIC as CAPSULE
from services.cli.capsule_open import open_capsule
from services.cli.capsule_read import CapsuleRefused, read_capsule
from services.cli.main import app
from services.cli.verify_export import (
    ENTRY,
    HASH_BYTES,
    LENGTH,
    MAGIC,
    OLD_MAGIC,
    Exported,
    NotAnExport,
    Verified,
    read_entries,
    read_start,
    verify,
)
from tests.unit.test_capsule import Past, changed, made, parts_of, sealed
from tests.unit.test_export import END_BYTES, FORGER, OWNER, Export, exported

SPOTS = 400
"""Bits that are tried of a whole file in the short form."""


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Export:
    return exported(tmp_path_factory.mktemp("export"))


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Past:
    return sealed(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def capsule(past: Past, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(past, tmp_path_factory.mktemp("capsule") / "whole", round_id="t1-3")


@pytest.fixture(scope="module")
def partners(past: Past, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("capsule") / "partners"
    return made(past, path, round_id="t1-3", partner="acme")


def checked(raw: bytes, *, trusted: bool = True, known: dict[int, bytes] | None = None) -> Verified:
    keys = frozenset({OWNER.public_key}) if trusted else frozenset[bytes]()
    return verify(io.BytesIO(raw), keys, known)


def flipped(raw: bytes, bit: int) -> bytes:
    changed = bytearray(raw)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def telling(raw: bytes, ends: Iterable[range]) -> list[int]:
    """A bit of every byte, another one from byte to byte, since digests are over all; and every bit
    of the bytes at which something is told of where it ends."""
    bits = {8 * byte + byte % 8 for byte in range(len(raw))}
    return sorted(bits.union(bit for one in ends for bit in range(8 * one.start, 8 * one.stop)))


def some(bits: int) -> list[int]:
    return sorted(random.Random(bits).sample(range(bits), SPOTS))


# ---- exports: bits -----------------------------------------------------------------------------


def place_of(export: Export, byte: int) -> int:
    """The entry that a byte belongs to: 0 for the start, one more than there are for the end."""
    if byte < export.start:
        return 0
    for number, (at, size) in enumerate(export.entries, start=1):
        if byte < at + size:
            return number
    return len(export.entries) + 1


def named(raw: bytes, last: int) -> int:
    """The place that is named, as `place_of` counts; -1: nothing is said."""
    try:
        return next((sequence for sequence, _ in checked(raw).faults), -1)
    except NotAnExport as broken:
        told = re.search(r"the entry after (\d+)|follows entry (\d+)", str(broken))
        if told is not None:
            return int(told.group(1) or told.group(2)) + 1
        return last + 1 if "its end" in str(broken) else 0


def assert_bits_are_named(export: Export, bits: Iterable[int]) -> None:
    last = len(export.entries)
    wrong = {
        bit: got
        for bit in bits
        if (got := named(flipped(export.raw, bit), last)) != place_of(export, bit // 8)
    }
    assert wrong == {}


def test_any_one_bit_of_an_export_is_named_by_its_place(export: Export) -> None:
    """Start, entries and end; every bit of the end."""
    every = 8 * len(export.raw)
    assert_bits_are_named(export, [*some(every), *range(every - 8 * END_BYTES, every)])


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_bit_of_every_byte_of_an_export_is_named_by_its_place(export: Export) -> None:
    size = len(export.raw)
    ends = [range(at, at + ENTRY.size) for at, _ in export.entries]
    told = len(MAGIC) + LENGTH.size + len("main") + LENGTH.size
    ends += [range(told), range(size - END_BYTES, size)]
    assert_bits_are_named(export, telling(export.raw, ends))


# ---- exports: entries --------------------------------------------------------------------------


def test_every_entry_that_is_missing_moved_or_doubled_is_named(export: Export) -> None:
    raw, spots = export.raw, export.entries
    parts = [raw[at : at + size] for at, size in spots]
    start, end = raw[: export.start], raw[-END_BYTES:]

    def first_wrong(entries: list[bytes]) -> int:
        return named(start + b"".join(entries) + end, len(spots))

    for place in range(len(parts)):
        assert first_wrong(parts[:place] + parts[place + 1 :]) == place + 1
        assert first_wrong([*parts[: place + 1], *parts[place:]]) == place + 2
        if place + 1 < len(parts):
            one, other = parts[place : place + 2]
            assert first_wrong([*parts[:place], other, one, *parts[place + 2 :]]) == place + 1


def test_an_export_that_was_cut_anywhere_says_so(export: Export) -> None:
    ends = {at for at, _ in export.entries} | {len(export.raw) - END_BYTES, export.start}
    lengths = sorted({*range(0, len(export.raw), 251), *ends, len(export.raw) - 1})
    for length in lengths:
        got = named(export.raw[:length], len(export.entries))
        assert got == place_of(export, length), length


def test_what_stands_behind_the_end_is_seen(export: Export) -> None:
    at, size = export.entries[-1]
    for more in (b"\0", b"x" * 100, export.raw[at : at + size], export.raw):
        with pytest.raises(NotAnExport, match="added behind the end"):
            checked(export.raw + more)


def test_an_export_of_an_earlier_release_is_read(export: Export) -> None:
    old = OLD_MAGIC + export.raw[len(MAGIC) : export.start - HASH_BYTES]
    old += export.raw[export.start : -END_BYTES]
    assert checked(old).right
    assert checked(old).entries == len(export.entries)
    assert checked(flipped(old, 8 * (len(old) - 1))).faults[0][0] == len(export.entries)


# ---- exports: by whoever knows the format ------------------------------------------------------


def chained(export: Export, change: Callable[[Exported], Exported | None]) -> bytes:
    """An export whose entries somebody changed, left out, and chained anew, with an end."""
    raw = bytearray(export.raw[: export.start])
    head, number = verify_export.first_head("main"), 0
    with io.BytesIO(export.raw) as file:
        for entry in read_entries(file, read_start(file).marked):
            one = change(entry)
            if one is None:
                continue
            number += 1
            one = one._replace(sequence=number)
            head = verify_export.next_head(head, one)
            raw += ENTRY.pack(number, len(one.subject), len(one.headers), len(one.payload))
            raw += one.subject + one.headers + one.payload + head
    return bytes(raw) + bytes(ENTRY.size) + head


def with_start(export: Export, descriptors: bytes) -> bytes:
    """An export with other descriptors and the digest that goes with them."""
    start = MAGIC + LENGTH.pack(4) + b"main" + LENGTH.pack(len(descriptors)) + descriptors
    return start + sha256(start).digest() + export.raw[export.start :]


def head_at(export: Export, number: int) -> bytes:
    at, size = export.entries[number - 1]
    return export.raw[at + size - HASH_BYTES : at + size]


def test_an_entry_that_was_left_out_by_whoever_chained_anew_is_found(export: Export) -> None:
    """What stands behind it commits to another log, until the last seal."""
    assert chained(export, lambda one: one) == export.raw
    for left_out in range(1, checked(export.raw).sealed + 1, 3):

        def change(one: Exported, left_out: int = left_out) -> Exported | None:
            return None if one.sequence == left_out else one

        assert not checked(chained(export, change)).right, left_out


def test_a_log_without_seals_is_vouched_for_by_no_key(export: Export) -> None:
    """Else a forger would leave them out."""
    cut = export.raw[: export.entries[10][0]] + bytes(ENTRY.size) + head_at(export, 10)
    assert checked(cut, trusted=False).right
    assert checked(cut).faults == [(10, "no seal up to here, so no trusted key vouches for it")]


def test_a_known_head_finds_a_fork_that_the_owner_of_the_key_signed(
    export: Export, tmp_path: Path
) -> None:
    fork = exported(tmp_path, OWNER, 2)
    assert checked(fork.raw).right
    last = len(export.entries)
    differs = next(n for n in range(1, last) if head_at(export, n) != head_at(fork, n))
    for at in (differs, 30):
        (fault,) = checked(fork.raw, known={at: head_at(export, at)}).faults
        assert fault == (at, "the log that is known has another chain hash here")
    assert checked(export.raw, known={n: head_at(export, n) for n in (1, 30, last)}).right
    (fault,) = checked(export.raw, known={last + 1: bytes(32)}).faults
    assert fault[0] == last + 1


def test_whatever_an_export_holds_is_right_or_wrong_and_never_breaks_the_verifier(
    export: Export,
) -> None:
    """Payloads and descriptors changed by one who computes every digest anew."""
    chance = random.Random(11)
    descriptors = read_start(io.BytesIO(export.raw)).descriptors
    seals = {n for n, _, size in seal_entries(export)}
    for number in range(400):
        if number % 2:
            broken = flipped(descriptors, chance.randrange(8 * len(descriptors)))
            raw = with_start(export, broken)
        else:
            aimed = chance.choice([*seals, chance.randrange(1, len(export.entries))])

            def change(one: Exported, aimed: int = aimed) -> Exported:
                if one.sequence != aimed:
                    return one
                payload = flipped(one.payload, chance.randrange(8 * len(one.payload)))
                return one._replace(payload=payload)

            raw = chained(export, change)
        try:
            found = checked(raw)
        except NotAnExport:
            continue
        # Chained anew: what is behind the last seal is nobody's word yet.
        assert not found.right or number % 2 or aimed > whole_sealed(export)


def seal_entries(export: Export) -> Iterator[tuple[int, int, int]]:
    for number, (at, size) in enumerate(export.entries, start=1):
        if b"LogSealed" in export.raw[at : at + size]:
            yield number, at, size


def whole_sealed(export: Export) -> int:
    return checked(export.raw).sealed


# ---- capsules ----------------------------------------------------------------------------------


def begins_of(path: Path) -> list[tuple[int, str]]:
    """Where each part of a capsule begins, with its name."""
    begins: list[tuple[int, str]] = []
    at = len(CAPSULE)
    for part in [*parts_of(path), Part("end", bytes(32))]:
        begins.append((at, part.name))
        at += LENGTHS.size + len(part.name.encode()) + len(part.body) + 32
    assert at == path.stat().st_size
    return begins


def before(begins: list[tuple[int, str]], byte: int) -> str:
    """The part before the one that a byte belongs to; empty within the first words of the file."""
    place = sum(begin <= byte for begin, _ in begins) - 1
    if place < 0:
        return ""
    return begins[place - 1][1] if place else "the beginning"


def refusal(raw: bytes) -> str:
    with pytest.raises(NotACapsule) as told:
        list(read_parts(io.BytesIO(raw)))
    return str(told.value)


def assert_capsule_bits_are_named(path: Path, bits: Iterable[int]) -> None:
    raw, begins = path.read_bytes(), begins_of(path)
    for bit in bits:
        part = before(begins, bit // 8)
        said = refusal(flipped(raw, bit))
        assert (f"the part after {part}" if part else "this is no capsule") in said, bit


def test_any_one_bit_of_a_capsule_is_named_by_its_part(capsule: Path, partners: Path) -> None:
    for path in (capsule, partners):
        bits = 8 * path.stat().st_size
        assert_capsule_bits_are_named(path, [*some(bits), *range(bits - 8 * 73, bits, 5)])


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_bit_of_every_byte_of_a_capsule_is_named_by_its_part(
    capsule: Path, partners: Path
) -> None:
    for path in (capsule, partners):
        begins = [range(at, at + LENGTHS.size + len(name)) for at, name in begins_of(path)]
        assert_capsule_bits_are_named(
            path, telling(path.read_bytes(), [range(len(CAPSULE)), *begins])
        )


def test_a_capsule_that_was_cut_or_lengthened_says_so(capsule: Path) -> None:
    raw, begins = capsule.read_bytes(), begins_of(capsule)
    for length in sorted({*range(0, len(raw), 509), *(at for at, _ in begins), len(raw) - 1}):
        part = before(begins, length)
        assert (f"the part after {part}" if part else "no capsule") in refusal(raw[:length])
    for more in (b"\0", raw):
        assert "added behind the end" in refusal(raw + more)


def test_parts_that_were_taken_away_moved_or_doubled_are_seen(capsule: Path) -> None:
    raw, begins = capsule.read_bytes(), begins_of(capsule)
    ends = [*(at for at, _ in begins[1:]), len(raw)]
    parts = [raw[at:end] for (at, _), end in zip(begins, ends, strict=True)]

    def told(of: list[bytes]) -> str:
        return refusal(CAPSULE + b"".join(of))

    for place in range(len(parts) - 1):
        assert "missing, added or moved" in told(parts[:place] + parts[place + 1 :])
        assert "missing, added or moved" in told([*parts[: place + 1], *parts[place:]])
        if place + 2 < len(parts):
            one, other = parts[place : place + 2]
            moved = told([*parts[:place], other, one, *parts[place + 2 :]])
            assert "missing, added or moved" in moved
    assert "ends within the part after" in told(parts[:-1])


def test_parts_of_other_capsules_do_not_fit(past: Past, capsule: Path, tmp_path: Path) -> None:
    """Each is whole by itself, and all digests are computed anew."""
    other = made(past, tmp_path / "other", round_id="t1-2")
    theirs = {part.name: part for part in parts_of(other)}
    same = {part.name for part in parts_of(capsule) if theirs.get(part.name) == part}
    swapped = 0
    for name in theirs.keys() & {part.name for part in parts_of(capsule)} - same:

        def change(part: Part, name: str = name) -> Part:
            return theirs[name] if part.name == name else part

        path = changed(capsule, tmp_path / "file", change)
        swapped += 1
        with contextlib.suppress(NotACapsule, CapsuleRefused):
            assert not open_capsule(read_capsule(path), frozenset({OWNER.public_key})).right, name
    assert swapped >= 2


def break_parts(sources: Iterable[Path], tmp_path: Path, times: int) -> None:
    """Change parts of capsules, each time one of another kind, as one who computes every digest
    anew."""
    chance = random.Random(13)
    for source in sources:
        names = [part.name for part in parts_of(source)]
        kinds = sorted({name.partition(" ")[0] for name in names})
        for number in range(times * len(kinds)):
            kind = kinds[number % len(kinds)]
            aimed = chance.choice([name for name in names if name.partition(" ")[0] == kind])

            def change(part: Part, aimed: str = aimed) -> Part:
                if part.name != aimed:
                    return part
                return Part(part.name, flipped(part.body, chance.randrange(8 * len(part.body))))

            path = changed(source, tmp_path / "file", change)
            done = CliRunner().invoke(
                app, ["capsule", "open", str(path), "--key", OWNER.public_key.hex()]
            )
            assert done.exit_code in {0, 1}, (aimed, done.exception)
            assert done.exception is None or isinstance(done.exception, SystemExit), aimed


def test_whatever_a_capsule_holds_is_right_or_wrong_and_never_breaks_its_reader(
    capsule: Path, partners: Path, tmp_path: Path
) -> None:
    break_parts((capsule, partners), tmp_path, 1)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_whatever_capsules_hold_never_breaks_their_reader(
    capsule: Path, partners: Path, tmp_path: Path
) -> None:
    break_parts((capsule, partners), tmp_path, 100)


# ---- what is no export and no capsule ----------------------------------------------------------


def strange_files(folder: Path) -> list[Path]:
    found = [folder / name for name in ("none", "folder", "empty", "text", "zeros", "lines")]
    found[1].mkdir()
    found[2].write_bytes(b"")
    found[3].write_text("Dear auditor,\nplease find the export attached.\n")
    found[4].write_bytes(bytes(5_000))
    found[5].write_bytes(b"\n" * 300)
    return found


@pytest.mark.parametrize("verb", [["verify-export"], ["capsule", "open"]], ids=" ".join)
def test_a_file_that_is_something_else_gets_one_line(tmp_path: Path, verb: list[str]) -> None:
    for path in strange_files(tmp_path):
        done = CliRunner().invoke(app, [*verb, str(path)])
        assert (done.exit_code, done.stdout) == (1, ""), (path, done.output)
        assert len(done.stderr.splitlines()) == 1, path


def test_a_capsule_is_no_export_and_the_other_way_round(
    capsule: Path, export: Export, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_bytes(export.raw)
    for verb, path in ((["capsule", "open"], file), (["verify-export"], capsule)):
        done = CliRunner().invoke(app, [*verb, str(path)])
        assert done.exit_code == 1
        assert "this is no " in done.stderr


@pytest.mark.parametrize(
    "wrong",
    [("--key", "zz"), ("--key", "00"), ("--head", "7"), ("--head", "x:" + "00" * 32),
     ("--head", "0:" + "00" * 32), ("--head", "7:00")],
)  # fmt: skip
def test_keys_and_heads_that_are_none_are_not_understood(
    export: Export, tmp_path: Path, wrong: tuple[str, str]
) -> None:
    file = tmp_path / "file"
    file.write_bytes(export.raw)
    done = CliRunner().invoke(app, ["verify-export", str(file), *wrong])
    assert (done.exit_code, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1


# ---- the verifier, with what it says that it needs, and nothing else ---------------------------

NEEDED = ("protobuf", "cryptography")
ALONE = """
import runpy, sys
sys.path[:] = [one for one in sys.path if "site-packages" not in one] + [sys.argv[1]]
for name in ("sabot", "services", "grpc", "typer"):
    try:
        __import__(name)
    except ImportError:
        continue
    sys.exit(f"{name} is there")
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def packages(folder: Path) -> Path:
    """A folder with a protobuf runtime, a cryptography library and what these need."""
    folder.mkdir()
    wanted = list(NEEDED)
    for name in wanted:
        try:
            of = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # Needed by another Python or platform.
        needs = [re.match(r"[\w.-]+", one) for one in of.requires or [] if "extra" not in one]
        wanted += [one.group() for one in needs if one and one.group() not in wanted]
        for file in of.files or []:
            whole = Path(str(of.locate_file(file)))
            if ".." in file.parts or not whole.is_file() or file.suffix == ".pyc":
                continue
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).symlink_to(whole)
    return folder


def test_the_verifier_needs_a_protobuf_runtime_and_a_crypto_library_alone(
    export: Export, tmp_path: Path
) -> None:
    there = packages(tmp_path / "packages")
    script, file = tmp_path / "verify_export.py", tmp_path / "log.export"
    script.write_bytes(Path(verify_export.__file__).read_bytes())
    file.write_bytes(export.raw)

    def run(*more: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", ALONE, there, script, file, *more],
            capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path,
            env={name: os.environ[name] for name in ("PATH",)},
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    code, out, err = run("--key", OWNER.public_key.hex())
    assert (code, err, out.splitlines()[-1]) == (0, "", "right")
    code, out, _ = run("--key", FORGER.public_key.hex())
    assert (code, out.splitlines()[-1]) == (1, "WRONG: 2 faults")
    code, _, err = run("--key", "zz")
    assert (code, err) == (2, "a public key is 64 hexadecimal digits\n")
    last = len(export.entries)
    known = f"{last}:{head_at(export, last).hex()}"
    assert run("--head", known)[0] == 0
    code, out, _ = run("--head", f"{last - 1}:{known.partition(':')[2]}")
    assert code == 1
    assert f"entry {last - 1}: " in out
    file.write_bytes(export.raw[:-1])
    code, _, err = run()
    assert (code, len(err.splitlines())) == (1, 1)
    file.unlink()
    assert run()[0] == 1
