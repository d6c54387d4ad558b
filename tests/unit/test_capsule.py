"""A capsule replays its round without the log; what is changed in it is named; a partner's holds
nothing of others and stands under the same seal."""

from __future__ import annotations

import io
import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sabot.log.v1 import entry_pb2
from sabot.log.v1 import events_pb2 as logs
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.table.v1 import events_pb2 as tables
from services.audit.snapshots import Snapshots
from services.audit.tree_file import TreeFile
from services.cli.capsule import make_capsule
from services.cli.capsule_file import LENGTHS, MAGIC, NotACapsule, Part, read_parts, write_parts
from services.cli.capsule_open import (
    Opened,
    lines,
    open_capsule,
    verdict,
)
from services.cli.capsule_read import CapsuleRefused, read_capsule
from services.cli.cores import CORES
from services.cli.incident_span import NothingToKeep, Wanted
from services.cli.inspect_state import state_at
from services.cli.moments import Moment, parse_position
from services.cli.playthrough import RoundUnknown, playthrough
from services.kernel.entry import decode_entry, first_head, next_head
from services.kernel.memory_log import MemoryLog, MemoryStore
from services.kernel.reader import LogBroken
from services.kernel.snapshot import SnapshotFolder
from services.simulator.virtual_time import run_virtual
from tests.fleet.patched_settlement import PatchedBuild
from tests.fleet.small_cell import memory_cell, spec
from tests.unit.test_export import FORGER, OWNER, Listening, seal


class Past(NamedTuple):
    """A sealed log of three rounds of two partners at t1 and one at t2; a snapshot behind the
    first; a last round that no seal covers."""

    store: MemoryStore
    data: Path


def sealed(data: Path) -> Past:
    """Play it."""

    async def main() -> Past:
        async with memory_cell() as (cell, store):
            tree = TreeFile(data / "seals" / "fleet")
            cell.process.add_listener(Listening(tree))
            for table_id in ("t1", "t2"):
                await cell.open_table(spec(table_id))
            for partner in ("acme", "other"):
                await cell.open_account("ann", 100_000, partner=partner)
            for number in range(3):
                round_id = await cell.open_round("t1")
                await cell.bet(round_id, "ann", ("player", 500))
                await cell.bet(round_id, "ann", ("banker", 300), partner="other")
                await cell.close_betting(round_id)
                if number == 0:
                    await cell.until(lambda: cell.process.between_entries, "nothing is half-way")
                    Snapshots(SnapshotFolder(data / "snapshots")).take(cell.process)
            await seal(cell, tree, OWNER)
            await cell.play(1, ["ann"], "t2")
            tree.close()
        return Past(store, data)

    return run_virtual(main())


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Past:
    return sealed(tmp_path_factory.mktemp("data"))


def made(past: Past, path: Path, *, data: bool = True, **wanted: Any) -> Path:
    async def main() -> None:
        folder = past.data if data else None
        await make_capsule(MemoryLog(past.store), Wanted(**wanted), path, folder)

    run_virtual(main())
    return path


@pytest.fixture(scope="module")
def file(past: Past, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(past, tmp_path_factory.mktemp("capsule") / "one", round_id="t1-3", data=True)


def opened(path: Path, *trusted: Any) -> Opened:
    return open_capsule(read_capsule(path), frozenset(one.public_key for one in trusted))


def parts_of(path: Path) -> list[Part]:
    with path.open("rb") as raw:
        return list(read_parts(raw))


def changed(path: Path, to: Path, change: Callable[[Part], Part | None]) -> Path:
    """A capsule in which somebody changed parts and computed all digests anew."""
    write_parts(to, [one for part in parts_of(path) if (one := change(part)) is not None])
    return to


# ---- whole ones --------------------------------------------------------------------------------


@pytest.mark.parametrize(("round_id", "named"), [("t1-1", False), ("t1-2", True), ("t1-3", True)])
def test_a_round_is_decided_again_to_the_same_answers_and_digests(
    past: Past, tmp_path: Path, round_id: str, named: bool
) -> None:
    found = opened(made(past, tmp_path / "file", round_id=round_id), OWNER)
    assert found.faults == []
    assert found.capsule.about["named"] is named
    assert found.answers > 10
    assert verdict(found).startswith("right: entries ")
    assert found.digests == found.capsule.about["digests"]

    async def main() -> None:
        log = MemoryLog(past.store)
        last = parse_position(str(found.capsule.about["entries"][1]))
        for service in ("wallet", "table"):
            assert (await state_at(log, service, last)).digest == found.digests[service]
        whole = (await playthrough(log, round_id)).text().splitlines()
        shown = found.playthroughs[0].splitlines()
        begins = next(place for place, line in enumerate(shown) if "RoundOpened" in line)
        assert [line.split() for line in shown[begins:]] == [
            line.split() for line in whole[-len(shown[begins:]) :]
        ]

    run_virtual(main())


def test_statements_say_what_the_accounts_had_and_got(file: Path) -> None:
    capsule = read_capsule(file)
    assert set(capsule.statements) == {"acme/ann", "other/ann"}
    for raw in capsule.statements.values():
        one = json.loads(raw)
        moved = sum(line["minor"] for line in one["lines"])
        assert sum(one["after"].values()) - sum(one["before"].values()) == moved
    assert "statement acme/ann: cash:acme:ann:EUR" in "\n".join(lines(opened(file)))


def test_without_the_kept_tree_proofs_come_from_the_log(past: Past, tmp_path: Path) -> None:
    path = made(past, tmp_path / "file", round_id="t1-2", data=False)
    found = opened(path, OWNER)
    assert found.right
    assert not found.capsule.about["named"]
    kept = read_capsule(made(past, tmp_path / "kept", round_id="t1-2"))
    last = found.capsule.about["incident"][1]
    assert kept.proofs[last] == found.capsule.proofs[last]


def test_a_table_within_a_time(past: Past, tmp_path: Path, file: Path) -> None:
    events = opened(made(past, tmp_path / "a", round_id="t1-2")).events
    times = [event.time_us for event in events if getattr(event.body, "round_id", "") == "t1-2"]
    path = made(
        past, tmp_path / "b", table_id="t1", since=Moment(times[0]), until=Moment(times[-1])
    )
    found = opened(path)
    assert found.right
    assert found.capsule.about["rounds"] == ["t1-2"]
    assert found.playthroughs[0].startswith("round t1-2\n")


def test_what_is_under_no_seal_yet_is_said_so(past: Past, tmp_path: Path) -> None:
    path = made(past, tmp_path / "file", round_id="t2-1")
    found = opened(path)
    assert found.right
    assert "under no seal" in verdict(found)
    assert "no trusted key" in opened(path, OWNER).faults[0]


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        ({"round_id": "t1-9"}, RoundUnknown),
        ({"table_id": "t9", "since": Moment(0), "until": Moment(1 << 60)}, NothingToKeep),
        ({"table_id": "t1", "since": Moment(1 << 60), "until": Moment(1 << 60)}, NothingToKeep),
        ({"round_id": "t1-2", "partner": "nobody"}, NothingToKeep),
    ],
)
def test_nothing_is_made_of_nothing(
    past: Past, tmp_path: Path, wanted: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        made(past, tmp_path / "file", **wanted)
    assert list(tmp_path.iterdir()) == []


# ---- damage and forgery ------------------------------------------------------------------------


def test_any_one_bit_is_named_by_its_part(file: Path) -> None:
    raw = file.read_bytes()
    begins: list[tuple[int, str]] = []
    at = len(MAGIC)
    for part in [*parts_of(file), Part("end", bytes(32))]:
        begins.append((at, part.name))
        at += LENGTHS.size + len(part.name.encode()) + len(part.body) + 32
    assert at == len(raw)
    chance = random.Random(5)
    for place, (begin, name) in enumerate(begins):
        end = begins[place + 1][0] if place + 1 < len(begins) else len(raw)
        spots = {chance.randrange(begin, end) for _ in range(6)} | set(range(begin, begin + 6))
        before = begins[place - 1][1] if place else "the beginning"
        for spot in sorted(spots):
            damaged = bytearray(raw)
            damaged[spot] ^= 1 << chance.randrange(8)
            with pytest.raises(NotACapsule) as told:
                list(read_parts(io.BytesIO(bytes(damaged))))
            assert f"the part after {before}" in str(told.value), (name, spot)
    for spot in range(len(MAGIC)):
        damaged = bytearray(raw)
        damaged[spot] ^= 4
        with pytest.raises(NotACapsule, match="no capsule"):
            list(read_parts(io.BytesIO(bytes(damaged))))


def test_missing_and_added_parts_and_a_cut_file_are_named(file: Path, tmp_path: Path) -> None:
    raw = file.read_bytes()
    for broken, words in (
        (raw[:-1], "ends within"),
        (raw + b"x", "added behind"),
        (b"", "no caps"),
    ):
        path = tmp_path / "file"
        path.write_bytes(broken)
        with pytest.raises(NotACapsule, match=words):
            read_capsule(path)
    whole = read_capsule(file)
    name = f"entry {whole.about['incident'][0] + 1}"
    size = next(len(part.body) for part in parts_of(file) if part.name == name)
    at = raw.index(name.encode()) - LENGTHS.size
    cut = raw[:at] + raw[at + LENGTHS.size + len(name) + size + 32 :]
    (tmp_path / "file").write_bytes(cut)
    with pytest.raises(NotACapsule, match="missing, added or moved"):
        read_capsule(tmp_path / "file")


def flipped(part: Part, bit: int = 77) -> Part:
    body = bytearray(part.body)
    body[bit // 8 % len(body)] ^= 1 << bit % 8
    return Part(part.name, bytes(body))


def flipping(name: str) -> Callable[[Part], Part | None]:
    return lambda part: flipped(part, 8 * 40) if part.name == name else part


def without(kind: str) -> Callable[[Part], Part | None]:
    return lambda part: None if part.name.startswith(kind) else part


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("entry", r"entry \d+: its bytes do not give its chain hash"),
        ("proof", r"entry \d+ is not among those that the seal covers"),
        ("seal", r"seal"),
        ("state wallet", r"state wallet"),
        ("rules t1", r"rules t1: not those"),
        ("statement acme/ann", r"statement acme/ann: not what"),
    ],
)
def test_what_was_forged_with_its_digests_is_named(
    file: Path, tmp_path: Path, kind: str, words: str
) -> None:
    names = [part.name for part in parts_of(file) if part.name.startswith(kind)]

    def change(part: Part) -> Part:
        if part.name != names[-1]:
            return part
        if kind == "rules t1":
            return Part(
                part.name, part.body.replace(b'"max_minor": 100000', b'"max_minor": 100001')
            )
        if kind == "statement acme/ann":
            return Part(part.name, part.body.replace(b'"minor": -500', b'"minor": -400'))
        if kind == "state wallet":
            return Part(part.name, part.body.replace(b"99", b"98", 1))
        return flipped(part, 8 * 40)

    path = changed(file, tmp_path / "file", change)
    try:
        faults = opened(path, OWNER).faults
    except NotACapsule as error:
        faults = [str(error)]
    assert any(re.search(words, fault) for fault in faults), faults


def test_parts_that_are_left_out_are_missed(file: Path, tmp_path: Path) -> None:
    for kind, words in (
        ("proof", "no proof that it stands"),
        ("state limits", "state limits: not a snapshot"),
        ("rules t2", "rules t2: not those"),
        ("seal", "no trusted key"),
    ):
        path = changed(
            file, tmp_path / "file",
            without(kind),
        )  # fmt: skip
        assert any(words in fault for fault in opened(path, OWNER).faults), kind


def test_another_key_another_cell_another_release_are_refused(file: Path, tmp_path: Path) -> None:
    assert "which is not trusted" in opened(file, FORGER).faults[0]
    with pytest.raises(CapsuleRefused, match="of cell main, not of elsewhere"):
        open_capsule(read_capsule(file), cell="elsewhere")

    def other(**change: Any) -> Path:
        def one(part: Part) -> Part:
            if part.name != "about":
                return part
            return Part("about", json.dumps({**json.loads(part.body), **change}).encode())

        return changed(file, tmp_path / "file", one)

    schemas = {**read_capsule(file).about["schemas"], "wallet": 99}
    with pytest.raises(CapsuleRefused, match=r"another release.* wallet keeps has schema 99"):
        read_capsule(other(schemas=schemas))
    with pytest.raises(CapsuleRefused, match="version 2"):
        read_capsule(other(version=2))
    odds: tuple[dict[str, Any], ...] = (
        {"entries": 5}, {"rounds": None}, {"cell": 7}, {"behaviour": "1"}, {"builds": [7]},
        {"digests": []}, {"named": 1}, {"made_by": None},
    )  # fmt: skip
    for odd in odds:
        with pytest.raises(NotACapsule):
            read_capsule(other(**odd))
    with pytest.raises((NotACapsule, CapsuleRefused)):
        open_capsule(read_capsule(other(cell="elsewhere", head_before="zz")))


def test_a_wrong_answer_in_the_log_is_a_difference(file: Path) -> None:
    """As if the cores of today decided otherwise than those that wrote it."""
    capsule = read_capsule(file)
    wallet = json.loads(capsule.states["wallet"])
    assert wallet[0] == "wallet"
    forged = capsule.states["wallet"].replace(b'"EUR",1,', b'"EUR",2,')
    assert forged != capsule.states["wallet"]
    found = open_capsule(replace(capsule, states={**capsule.states, "wallet": forged}))
    assert found.differences == sum("wallet: the answer at" in one for one in found.faults) > 1
    assert "wallet: the answer at" in found.faults[0]


def test_every_wrong_answer_is_told_and_what_stands_behind_it_is_compared(tmp_path: Path) -> None:
    build = PatchedBuild(lambda _name, _line, pays: pays._replace(numerator=2, denominator=1))
    cores = [build.core if core.service == "settlement" else core for core in CORES]

    async def main() -> None:
        async with memory_cell(cores=cores) as (cell, store):
            await cell.open_table()
            stakes = {"ann": "banker", "bob": "banker", "cem": "player", "dan": "player"}
            for account in stakes:
                await cell.open_account(account, 100_000)
            for build.runs in (True, True, False):
                round_id = await cell.open_round()
                for account, bet in stakes.items():
                    await cell.bet(round_id, account, (bet, 1_000))
                await cell.close_betting(round_id)
            wanted = Wanted(table_id="t1", since=Moment(0), until=Moment(1 << 60))
            await make_capsule(MemoryLog(store), wanted, tmp_path / "file")

    run_virtual(main())
    found = opened(tmp_path / "file")
    wrong = [
        event.position
        for event in found.events
        if isinstance(event.body, settlement.BetsSettled)
        and event.body.round_id != "t1-3"
        and event.body.bets[0].outcome == settlement.OUTCOME_WON
    ]
    assert len(wrong) == 4, "neither was a tie"
    assert len({position.sequence for position in wrong}) == 2, "two accounts in one entry"
    assert [fault for fault in found.faults if "settlement: the answer at" not in fault] == []
    told = [re.findall(r"the answer at (\S+) is", fault)[0] for fault in found.faults]
    assert told == [str(position) for position in wrong]
    assert found.differences == len(wrong)
    recorded = [event for event in found.events if not event.is_input]
    assert found.answers == len(recorded)
    assert found.digests == found.capsule.about["digests"]


def test_an_entry_that_nobody_can_read_and_that_was_accepted_stops_no_capsule(
    tmp_path: Path,
) -> None:
    kept: list[MemoryStore] = []

    async def play() -> None:
        async with memory_cell() as (cell, store):
            kept.append(store)
            await cell.open_table()
            await cell.open_account("ann", 100_000)
            await cell.bet(await cell.open_round(), "ann", ("banker", 500))

    run_virtual(play())
    (store,) = kept
    body = tables.PlaceBets(table_id="t1", round_id="t1-1").SerializeToString() + b"\xff"
    bad = entry_pb2.Event(
        type="sabot.table.v1.PlaceBets", body=body, time_us=1 << 60, partner="acme"
    )
    sealed = entry_pb2.Event(type="sabot.audit.v1.LogSealed", body=b"\xff")
    table = entry_pb2.Entry(writer="bad", counter=1, events=[bad]).SerializeToString()
    seal = entry_pb2.Entry(events=[sealed]).SerializeToString()
    for subject, payload in (("table.in", table), ("audit.out", seal)):
        store.store(f"sabot.main.{subject}", payload, None)
    head, accepted = first_head("main"), dict[int, bytes]()
    for one in store.entries():
        head = next_head(head, one.sequence, one.subject, one.headers, one.payload)
        if one.payload in (table, seal):
            accepted[one.sequence] = head
    wanted = Wanted(table_id="t1", since=Moment(0), until=Moment(1 << 61))

    def make(path: Path, wanted: Wanted, accepted: dict[int, bytes]) -> Path:
        run_virtual(make_capsule(MemoryLog(store), wanted, path, None, accepted))
        return path

    with pytest.raises(LogBroken, match="cannot be decoded"):
        make(tmp_path / "refused", Wanted(round_id="t1-1"), {})
    found = opened(make(tmp_path / "table", wanted, accepted))
    assert found.right, "nothing behind what can be read"
    found = opened(make(tmp_path / "round", Wanted(round_id="t1-1"), accepted))
    assert found.faults == []
    assert found.passed_over == sorted(accepted)
    assert "2 entries that nobody can read were accepted" in verdict(found)
    assert found.events[-1].time_us < 1 << 60, "what is passed over moves no time"
    # Somebody who accepts what can be read accepts nothing.
    for part, left in (("accepted", []), ("accepted", [max(accepted)])):

        def change(one: Part, part: str = part, left: list[int] = left) -> Part:
            if one.name != "about":
                return one
            return Part("about", json.dumps({**json.loads(one.body), part: left}).encode())

        faults = opened(changed(tmp_path / "round", tmp_path / "less", change)).faults
        assert faults
        assert "cannot be decoded" in faults[0]


# ---- partners ----------------------------------------------------------------------------------


def test_a_partners_capsule_holds_nothing_of_others_and_still_verifies(
    past: Past, tmp_path: Path
) -> None:
    path = made(past, tmp_path / "file", round_id="t1-3", partner="other")
    found = opened(path, OWNER)
    assert found.faults == []
    assert "nothing was decided again" in verdict(found)
    raw = path.read_bytes()
    assert b"acme" not in raw.replace(b"small-cell", b"")
    assert b'"other"' in raw
    capsule = found.capsule
    assert set(capsule.statements) == {"other/ann"}
    assert 0 < len(capsule.messages) < len(capsule.heads)
    names = [type(event.body).__name__ for event in found.events]
    assert "CardsDealt" in names
    told = [event["event"] for events in capsule.told.values() for event in events]
    assert (names + told).count("PlaceBets") == 1
    whole = read_capsule(made(past, tmp_path / "whole", round_id="t1-3"))
    assert capsule.heads.items() <= whole.heads.items()
    assert capsule.told
    assert "they are told here and not proven" in "\n".join(lines(found))


def test_a_copy_of_another_partners_input_stands_in_a_partners_capsule_by_its_hash(
    tmp_path: Path,
) -> None:
    """An append of unknown outcome was retried, and landed twice. A copy has no events of which
    any could be another's."""
    copied: list[int] = []

    async def main() -> None:
        async with memory_cell() as (cell, store):
            await cell.open_table()
            for partner in ("acme", "other"):
                await cell.open_account("ann", 100_000, partner=partner)
            round_id = await cell.open_round("t1")
            await cell.bet(round_id, "ann", ("banker", 300), partner="other")
            await cell.bet(round_id, "ann", ("player", 500))
            first = next(
                one
                for one in store.entries()
                if b"table.v1.PlaceBets" in one.payload and b"acme" in one.payload
            )
            copied.extend((first.sequence, store.store(first.subject, first.payload, None)))
            await cell.close_betting(round_id)
            wanted = Wanted(round_id=round_id, partner="other")
            await make_capsule(MemoryLog(store), wanted, tmp_path / "file")

    run_virtual(main())
    capsule = read_capsule(tmp_path / "file")
    assert capsule.heads.keys() >= set(copied)
    assert not capsule.messages.keys() & set(copied)
    assert b"acme" not in (tmp_path / "file").read_bytes()
    assert opened(tmp_path / "file").faults == []


def test_a_partners_capsule_that_was_forged_is_found(past: Past, tmp_path: Path) -> None:
    path = made(past, tmp_path / "file", round_id="t1-3", partner="acme")
    names = [part.name for part in parts_of(path)]
    last_hash = [name for name in names if name.startswith("hash")][-1]
    for kind, words in (
        (last_hash, "its bytes do not give its chain hash"),
        ([name for name in names if name.startswith("entry")][2], "do not give its chain hash"),
        (next(name for name in names if name.startswith("proof")), "not among those"),
    ):
        forged = changed(
            path, tmp_path / "forged",
            flipping(kind),
        )  # fmt: skip
        assert any(words in fault for fault in opened(forged, OWNER).faults), kind

    def less(part: Part) -> Part:
        if part.name != "statement acme/ann":
            return part
        one = json.loads(part.body)
        one["lines"] = []
        return Part(part.name, json.dumps(one).encode())

    forged = changed(path, tmp_path / "forged", less)
    assert any("is missing" in fault for fault in opened(forged).faults)


def test_a_snapshot_of_another_release_is_not_packed(past: Past, tmp_path: Path) -> None:
    """Even of a core whose state a capsule does not look into while it is made."""
    sets = SnapshotFolder(past.data / "snapshots").sets()
    raw = dict(sets[0].raw)
    schema = raw["limits"].split(b",", 2)[1]
    raw["limits"] = raw["limits"].replace(b'["limits",' + schema, b'["limits",99', 1)
    other = past._replace(data=tmp_path / "data")
    SnapshotFolder(other.data / "snapshots").save(replace(sets[0], raw=raw))
    found = opened(made(other, tmp_path / "file", round_id="t1-3"))
    assert found.right
    assert not found.capsule.about["named"]


def test_the_digests_of_snapshots_stand_under_the_seal(past: Past, file: Path) -> None:
    """What names a snapshot is an entry that the seal covers, and the snapshot's bytes give it."""
    capsule = read_capsule(file)
    assert capsule.seal is not None
    (taken,) = SnapshotFolder(past.data / "snapshots").sets()
    named = {taken.name_of(service) for service in taken.raw}
    covered: set[tuple[str, int, bytes]] = set()
    for message in past.store.entries()[: capsule.seal.size]:
        for proto in decode_entry(message.payload).events:
            if proto.type == "sabot.log.v1.RecordSnapshot":
                body = logs.RecordSnapshot.FromString(proto.body)
                covered.add((body.service, body.sequence, body.digest))
    assert len(named) == len(CORES)
    assert named <= covered
