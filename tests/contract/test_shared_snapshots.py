"""Snapshots in a bucket of a real server: what is stored is read back or not believed, of two
writers one goes on, what is full or away stops nobody, a start begins from what the log names."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import nats
import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from services.audit.snapshots import Snapshots
from services.cli.cores import CORES
from services.cli.snapshots import Built, built, checked
from services.events import event_types
from services.kernel.event import Core
from services.kernel.host import clock_us
from services.kernel.jetstream import JetStreamLog
from services.kernel.object_store import (
    CHUNK_BYTES,
    ObjectBucket,
    ObjectDamaged,
    StoreAway,
    StoreFull,
    StoreRaced,
    bucket_definition,
    bucket_stream,
    chunk_subject,
)
from services.kernel.offered_snapshots import Offered
from services.kernel.process import Process
from services.kernel.shared_snapshots import (
    KEPT_SHARED,
    ROOM_LEFT,
    SharedSnapshots,
    snapshot_bucket,
    snapshot_names,
)
from services.kernel.snapshot import SnapshotFolder, StateCodec, digest, state_digest
from services.kernel.telemetry_names import SNAPSHOTS_AWAY, SNAPSHOTS_NONE
from services.wallet.domain.core import CORE as WALLET
from tests.contract.places import JetStreamPlace, ask
from tests.fleet.small_cell import SmallCell

pytestmark = pytest.mark.asyncio(loop_scope="session")

RAW = bytes(range(256)) * (3 * CHUNK_BYTES // 256) + b"the rest"
OTHER = b"another" * CHUNK_BYTES
ROOM = 64 * 1024 * 1024


class Bucket:
    """A cell on one server with a bucket, and clients of both."""

    def __init__(self, place: JetStreamPlace, log: JetStreamLog) -> None:
        self.place, self.log = place, log
        self.name = snapshot_bucket(place.cell)
        self.objects = ObjectBucket(log.connection, self.name, consumer_prefix="test")
        self.shared = SharedSnapshots(self.objects)

    async def make(self, max_bytes: int = ROOM) -> None:
        wanted = bucket_definition(self.name, replicas=1, max_bytes=max_bytes)
        told = await self.ask(f"STREAM.CREATE.{wanted['name']}", wanted)
        assert {key: told["config"].get(key) for key in wanted} == wanted

    async def ask(self, what: str, body: object = None) -> Any:
        told = await ask(self.log.connection, what, body)
        assert "error" not in told, told
        return told

    async def messages(self) -> int:
        told = await self.ask(f"STREAM.INFO.{bucket_stream(self.name)}")
        return int(told["state"]["messages"])

    async def damage(self, name: str) -> None:
        """Somebody writes a piece in place of those that belong there."""
        subject = chunk_subject(self.name, name)
        rollup = {"Nats-Rollup": "sub"}
        await self.log.connection.request(subject, b"damage", headers=rollup, wait_s=5.0)


@pytest_asyncio.fixture(loop_scope="session")
async def bucket(on_single: JetStreamPlace) -> Bucket:
    """Made, and empty."""
    made = Bucket(on_single, await on_single.client())
    await made.make()
    return made


# ---- objects -----------------------------------------------------------------------------------


async def test_an_object_is_read_as_it_was_stored_and_replaced_whole(bucket: Bucket) -> None:
    assert await bucket.objects.find("a.0") is None
    await bucket.objects.put("a.0", RAW, {"sequence": "7"})
    one = await bucket.objects.find("a.0")
    assert one is not None
    assert (one.size, one.chunks, dict(one.facts)) == (len(RAW), 4, {"sequence": "7"})
    assert await bucket.objects.get(one) == RAW
    await bucket.objects.put("a.0", OTHER, {})
    other = await bucket.objects.find("a.0")
    assert other is not None
    assert await bucket.objects.get(other) == OTHER
    assert await bucket.messages() == other.chunks + 1, "nothing is left of the old one"
    with pytest.raises(ObjectDamaged):
        await bucket.objects.get(one)


async def test_any_client_of_the_object_store_reads_it(bucket: Bucket) -> None:
    await bucket.objects.put("a.0", RAW, {"sequence": "7"})
    admin = bucket.place.cluster.admin
    client = await nats.connect(
        bucket.place.cluster.client_urls,
        user=admin.user,
        password=admin.password,
        inbox_prefix=admin.inbox_prefix,
    )
    store = await client.jetstream().object_store(bucket.name)
    assert (await store.get("a.0")).data == RAW
    assert [one.name for one in await store.list()] == ["a.0"]
    await store.put("b.0", OTHER)
    await client.close()
    one = await bucket.objects.find("b.0")
    assert one is not None
    assert await bucket.objects.get(one) == OTHER


async def test_of_two_writers_of_one_object_one_goes_on(bucket: Bucket) -> None:
    told = await asyncio.gather(
        *(bucket.objects.put("a.0", raw, {}) for raw in (RAW, OTHER)), return_exceptions=True
    )
    assert [type(one) for one in told if one is not None] == [StoreRaced]
    one = await bucket.objects.find("a.0")
    assert one is not None
    assert await bucket.objects.get(one) == (RAW if told[0] is None else OTHER)


async def test_pieces_that_are_not_the_object_s_are_not_it(bucket: Bucket) -> None:
    await bucket.objects.put("a.0", RAW, {})
    one = await bucket.objects.find("a.0")
    assert one is not None
    await bucket.damage("a.0")
    for read in (one, replace(one, chunks=1)):
        with pytest.raises(ObjectDamaged):
            await bucket.objects.get(read)
    await bucket.objects.put("a.0", RAW, {})
    again = await bucket.objects.find("a.0")
    assert again is not None
    assert await bucket.objects.get(again) == RAW


async def test_a_bucket_that_is_away_or_full_is_told_at_once(on_single: JetStreamPlace) -> None:
    small = Bucket(on_single, await on_single.client())
    for asking in (small.objects.find("a.0"), small.objects.put("a.0", RAW, {})):
        with pytest.raises(StoreAway, match="is not there"):
            await asking
    with pytest.raises(StoreAway):
        await small.objects.room()
    await small.make(3 * CHUNK_BYTES)
    with pytest.raises(StoreFull):
        await small.objects.put("a.0", RAW, {})


# ---- snapshots ---------------------------------------------------------------------------------


def told_of(told: list[str]) -> Any:
    return lambda service, why: told.append(f"{service}: {why}")


async def test_the_newest_are_kept_and_nothing_grows(bucket: Bucket) -> None:
    told: list[str] = []
    old, other = replace(WALLET, schema=1), replace(WALLET, schema=2)
    for number in range(1, 9):
        for core in (old, other) if number > 4 else (old,):
            raw = {"wallet": b"%d" % number}
            assert await bucket.shared.store([core], number, raw, "b", told_of(told)) == "stored"
    found = await bucket.shared.listed(["wallet"])
    assert {(one.schema, one.sequence) for one in found} == {
        (schema, number) for schema in (1, 2) for number in (6, 7, 8)
    }
    assert len(found) == 2 * KEPT_SHARED == len(snapshot_names("wallet"))
    assert await bucket.messages() == 2 * len(found)
    for core, number in ((old, 10), (other, 9)):
        assert await bucket.shared.store([core], number, {"wallet": b""}, "b", told_of(told)) == (
            "stored"
        )
    assert {(one.schema, one.sequence) for one in await bucket.shared.listed(["wallet"])} == {
        *((1, number) for number in (7, 8, 10)),
        *((2, number) for number in (7, 8, 9)),
    }, "what the release before took meanwhile is not the build's to replace"
    assert told == []


async def test_a_full_bucket_keeps_what_it_has_and_whoever_stores_goes_on(
    on_single: JetStreamPlace,
) -> None:
    small = Bucket(on_single, await on_single.client())
    await small.make(ROOM_LEFT + 2 * len(OTHER))
    told: list[str] = []

    async def store(sequence: int, raw: bytes) -> str:
        return await small.shared.store([WALLET], sequence, {"wallet": raw}, "b", told_of(told))

    assert await store(1, OTHER) == "stored"
    assert await store(2, 2 * OTHER) == "full"
    assert len(told) == 1
    assert "do not fit" in told[0]
    (one,) = await small.shared.listed(["wallet"])
    assert (one.sequence, await small.shared.load(one)) == (1, OTHER)


# ---- starts ------------------------------------------------------------------------------------


@asynccontextmanager
async def playing(bucket: Bucket) -> AsyncGenerator[SmallCell, None]:
    """A cell on the bucket's log that has played a few rounds."""
    log = await bucket.place.client()
    cell = SmallCell(log, clock_us, writer="playing")
    await cell.start()
    await cell.open_table()
    await cell.open_account("anna", 1_000_000)
    await cell.play(2, ["anna"])
    try:
        yield cell
    finally:
        await cell.stop()


class Started:
    """A process of some cores that began as a service's does, beside one that plays."""

    def __init__(
        self, bucket: Bucket, log: JetStreamLog, folder: Path, cores: Sequence[Core[Any]]
    ) -> None:
        self.alarms: list[tuple[str, Mapping[str, Any]]] = []
        self.offered = Offered(
            SnapshotFolder(folder),
            bucket.shared,
            cores,
            log=log,
            types=event_types(),
            accepted=None,
            alarm=self._alarm,
        )
        self.process = Process(
            log=log,
            types=event_types(),
            cores=(),
            observed=cores,
            writer="started",
            build="test",
            clock=clock_us,
            alarm=self._alarm,
        )

    def _alarm(self, kind: str, facts: Mapping[str, Any]) -> None:
        self.alarms.append((kind, facts))

    async def start(self) -> int:
        """The entry that it began from."""
        await self.offered.look()
        await self.process.start(self.offered.sets())
        await self.process.stop()
        assert self.process.folding.difference_count == 0
        return self.process.started_from


async def started(bucket: Bucket, folder: Path, cores: Sequence[Core[Any]] = CORES) -> Started:
    return Started(bucket, await bucket.place.client(), folder, cores)


async def test_a_start_without_a_folder_begins_from_the_newest_that_the_log_bears_out(
    bucket: Bucket, tmp_path: Path
) -> None:
    async with playing(bucket) as cell:
        first = await built(bucket.log, bucket.shared, [], again=False)
        assert (first.differences, len(first.services)) == (0, len(CORES))
        await cell.play(1, ["anna"])
        assert await built(bucket.log, bucket.shared, [], again=False) == Built(
            first.sequence, first.services, 0
        ), "there is one to begin from"
        second = await built(bucket.log, bucket.shared, [], again=True)
        assert second.sequence > first.sequence > 0
        await cell.play(1, ["anna"])
        assert [each.problem for each in await checked(bucket.log, bucket.shared, [])] == [""] * (
            2 * len(CORES)
        )

        for cores in ([WALLET], CORES):
            one = await started(bucket, tmp_path, cores)
            assert await one.start() == second.sequence
            assert one.offered.origin(second.sequence) == "bucket"
            assert one.alarms == []
            codec = StateCodec()
            for core in cores:
                observer = one.process.observer(core.service)
                assert observer is not None
                now = state_digest(codec, core, observer.state.core)
                assert now == state_digest(codec, core, cell.process.state(core.service))

        (newest, _) = await bucket.shared.listed(["wallet"])
        await bucket.damage(newest.stored.name)
        one = await started(bucket, tmp_path, [WALLET])
        assert await one.start() == first.sequence, "an older one"
        assert [kind for kind, _ in one.alarms] == ["snapshot_unusable"]
        wrong = [each for each in await checked(bucket.log, bucket.shared, []) if each.problem]
        assert [each.one for each in wrong] == [newest]

        one = await started(bucket, tmp_path, [replace(WALLET, schema=WALLET.schema + 1)])
        with capture_logs() as lines:
            assert await one.start() == 0, "of another shape: the whole log"
        assert [line["event"] for line in lines] == [SNAPSHOTS_NONE]


async def test_what_the_log_does_not_name_or_that_is_of_another_log_is_not_believed(
    bucket: Bucket, tmp_path: Path
) -> None:
    async with playing(bucket) as cell:
        right = await built(bucket.log, bucket.shared, ["wallet"], again=False)
        await cell.play(1, ["anna"])
        (one,) = await bucket.shared.listed(["wallet"])
        raw = await bucket.shared.load(one)
        forged = raw.replace(b"anna", b"emma")
        assert forged != raw
        facts = dict(one.stored.facts) | {"digest": digest(forged).hex()}
        await bucket.objects.put(one.stored.name, forged, facts)
        told: list[str] = []
        ahead = await bucket.shared.store([WALLET], 10**6, {"wallet": raw}, "b", told_of(told))
        assert ahead == "stored", "of a log that had gone further, before one was put back"
        problems = [each.problem for each in await checked(bucket.log, bucket.shared, [])]
        assert problems[0].startswith("the log ends at entry")
        assert problems[1:] == ["the log does not name it"]

        found = await started(bucket, tmp_path, [WALLET])
        assert await found.start() == 0
        ((kind, about),) = found.alarms
        assert (kind, about["sequence"]) == ("snapshot_unknown", right.sequence)
        observer = found.process.observer("wallet")
        assert observer is not None
        assert "emma" not in str(observer.state.core)
        again = await built(bucket.log, bucket.shared, ["wallet"], again=False)
        assert again.bytes > 0, "what nobody can begin from is no reason not to build"
        assert {each.sequence for each in await bucket.shared.listed(["wallet"])} == {
            right.sequence,
            again.sequence,
        }, "what was ahead of the log goes first"


async def test_without_the_bucket_a_start_reads_the_log_and_says_so(
    on_single: JetStreamPlace, tmp_path: Path
) -> None:
    none = Bucket(on_single, await on_single.client())
    async with playing(none):
        one = await started(none, tmp_path, [WALLET])
        with capture_logs() as lines:
            assert await one.start() == 0
        assert [line["event"] for line in lines] == [SNAPSHOTS_AWAY]


async def test_projections_read_on_from_a_snapshot_too(bucket: Bucket, tmp_path: Path) -> None:
    async with playing(bucket) as cell:
        made = await built(bucket.log, bucket.shared, ["wallet"], again=False)
        await cell.play(1, ["anna"])
        one = await started(bucket, tmp_path, [WALLET])
        state = await one.offered.reader_before(made.sequence)
        assert state is not None
        assert state.sequence == made.sequence
        assert await one.offered.reader_before(made.sequence - 1) is None
        whole = {sequence: head async for sequence, head, _ in one.offered.read(0)}
        later = {sequence: head async for sequence, head, _ in one.offered.read(made.sequence)}
        assert later
        assert later == {key: head for key, head in whole.items() if key > made.sequence}
        assert await one.start() == made.sequence
        assert await one.offered.reader_before(made.sequence) is not None
        assert one.offered._loaded is None, "no states are held in memory from the start on"


async def test_audit_shares_what_it_takes_and_another_s_is_enough(
    bucket: Bucket, tmp_path: Path
) -> None:
    async with playing(bucket) as cell:
        shell = Snapshots(SnapshotFolder(tmp_path), every_entries=10)
        running = asyncio.create_task(shell.run(cell.process))
        assert cell.process.shared is None
        await cell.play(2, ["anna"])
        await cell.until(lambda: bool(SnapshotFolder(tmp_path).sequences()), "one is taken")
        assert shell.outcomes == {}, "in the folder alone"
        cell.process.shared = bucket.shared
        await cell.play(2, ["anna"])
        await cell.until(lambda: shell.outcomes["stored"] > 0, "one is stored")
        running.cancel()
        found = await checked(bucket.log, bucket.shared, [])
        assert found
        assert [each.problem for each in found if each.problem] == []
        taken = {each.one.sequence for each in found}
        assert taken <= set(SnapshotFolder(tmp_path).sequences())

        replica = Snapshots(SnapshotFolder(tmp_path / "other"), every_entries=10_000)
        unfollow = cell.process.follow(replica._hear)
        for each in found:
            replica._named[each.one.service, each.one.sequence] = each.one.digest
        sequence = await replica.take_aside(cell.process)
        assert await replica._share(cell.process, bucket.shared, sequence)
        unfollow()
        assert dict(replica.outcomes) == {"present": 1}
        assert {each.sequence for each in await bucket.shared.listed(["wallet"])} <= taken
        await bucket.ask(f"STREAM.DELETE.{bucket_stream(bucket.name)}")
        assert not await shell._share(cell.process, bucket.shared, max(taken))
        assert shell.outcomes["away"] == 1, "it is offered again later"
        assert json.dumps(cell.alarms) == "[]"
