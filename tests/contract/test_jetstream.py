"""What only a real server shows: its files, its users, its configuration, its consumers."""

from __future__ import annotations

import asyncio
import json
import random
import signal
from pathlib import Path

import pytest

from services.kernel import jetstream_read, preflight, streams
from services.kernel.embedded import Cluster
from services.kernel.held_ports import HeldPorts
from services.kernel.jetstream import JetStreamLog
from services.kernel.log import AppendRefused, AppendUnknown, FenceLost, LogUnavailable
from services.kernel.nats_connection import NatsConnection
from services.kernel.nats_process import NatsProcess
from tests.contract.conftest import Clusters
from tests.contract.places import PATIENCE_S, JetStreamPlace, ask, reading, take

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def append(log: JetStreamLog, payload: bytes, expected: int | None = None) -> int:
    kind = "in" if expected is None else "out"
    subject = f"sabot.{log.cell}.alpha.{kind}"
    return await log.append(subject, payload, expected=expected, wait_s=PATIENCE_S)


async def older_copy(place: JetStreamPlace, to: Path) -> None:
    """Stop the server, copy the store, go on."""
    server = place.cluster.servers[0]
    await server.stop()
    place.copy_store(to)
    await server.start()


async def put_back(place: JetStreamPlace, copy: Path) -> None:
    server = place.cluster.servers[0]
    await server.stop()
    place.restore_store(copy)
    await server.start()


async def test_nats_06_a_log_that_comes_back_shorter_is_noticed_and_named(
    on_single: JetStreamPlace, tmp_path: Path
) -> None:
    log = await on_single.client()
    for number in range(970):
        await append(log, b"%d" % number, number)
    await older_copy(on_single, tmp_path / "copy")
    reader = await on_single.client()
    async with reading(reader, 0) as entries:
        await take(entries, 970)
        for number in range(970, 1000):
            await append(log, b"%d" % number, number)
        await take(entries, 30)
        await put_back(on_single, tmp_path / "copy")
        with pytest.raises(LogUnavailable, match=r"ends at sequence 970, but 1000 was read"):
            await anext(entries)
    # A writer that has folded up to 1000 sees a lower sequence: rolled back, not overtaken.
    with pytest.raises(FenceLost) as lost:
        await append(log, b"next", 1000)
    assert lost.value.last_sequence == 970


async def test_nats_06_a_log_that_was_rolled_back_and_has_grown_again_is_noticed_too(
    on_single: JetStreamPlace, tmp_path: Path
) -> None:
    link = await on_single.flaky_client()
    writer = await on_single.client()
    for number in range(5):
        await append(writer, b"%d" % number, number)
    await older_copy(on_single, tmp_path / "copy")
    async with reading(link.log, 0) as entries:
        for number in range(5, 8):
            await append(writer, b"%d" % number, number)
        await take(entries, 8)
        link.cut_off()
        await put_back(on_single, tmp_path / "copy")
        for number in range(5, 10):
            await append(writer, b"other %d" % number, number)
        link.heal()
        with pytest.raises(LogUnavailable, match="sequence 8 is another entry than was read"):
            await anext(entries)


async def test_an_entry_missing_at_the_very_end_is_noticed_in_a_quiet_log(
    on_single: JetStreamPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jetstream_read, "PULL_EXPIRES_S", 0.6)
    place = JetStreamPlace(on_single.cluster, f"{on_single.cell}e")
    await place.make(deny=False)
    try:
        log = await place.client()
        for number in range(3):
            await append(log, b"%d" % number)
        await place.punch(3)
        async with reading(log, 0) as entries:
            await take(entries, 2)
            with pytest.raises(LogUnavailable, match="sequence 3 is missing"):
                await anext(entries)
    finally:
        await place.close()


async def test_a_reader_survives_the_loss_of_its_consumer(on_single: JetStreamPlace) -> None:
    log = await on_single.client()
    admin = await on_single.connect()
    async with reading(log, 0) as entries:
        for number in range(3):
            await append(log, b"%d" % number)
            assert (await anext(entries)).payload == b"%d" % number
            stream = streams.stream_name(log.cell)
            names = (await ask(admin, f"CONSUMER.NAMES.{stream}", None))["consumers"]
            for name in names:
                await ask(admin, f"CONSUMER.DELETE.{stream}.{name}", None)
        await append(log, b"after all")
        assert (await anext(entries)).payload == b"after all"
    await admin.close()


async def test_nats_04_a_reader_that_was_stopped_for_long_goes_on_and_gets_nothing_twice(
    on_single: JetStreamPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jetstream_read, "INACTIVE_S", 0.2)
    monkeypatch.setattr(jetstream_read, "PULL_EXPIRES_S", 0.5)
    log, feed = await on_single.client(), await on_single.client()
    credited = []
    async with reading(log, 0) as entries:
        for number in range(10):
            await append(feed, b"20.00")
            credited.append((await anext(entries)).sequence)
            if number == 4:
                # Paused beyond all of the server's patience; nothing is acknowledged by reading,
                # so there is nothing that could be given to somebody else meanwhile.
                await asyncio.sleep(1.5)
    assert credited == list(range(1, 11))


async def test_many_readers_come_and_go_without_using_up_the_names(
    on_single: JetStreamPlace,
) -> None:
    log = await on_single.client()
    await append(log, b"x")
    for _ in range(2 * jetstream_read.CONSUMER_SLOTS):
        async with reading(log, 0) as entries:
            await anext(entries)


async def test_reading_where_there_is_no_stream_says_so(
    clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jetstream_read, "SHORTER_GRACE_S", 0.2)
    place = JetStreamPlace(await clusters.of(1), "nowhere")
    log = await place.client()
    async with reading(log, 0) as entries:
        with pytest.raises(LogUnavailable, match="no stream SABOT_nowhere"):
            await anext(entries)
    with pytest.raises(LogUnavailable, match="stream not found"):
        await log.info(wait_s=PATIENCE_S)
    with HeldPorts(1) as nobody, pytest.raises(LogUnavailable, match="no connection"):
        await JetStreamLog.connect(
            [f"nats://127.0.0.1:{nobody.numbers[0]}"],
            "nowhere",
            name="x",
            consumer_prefix="x",
            wait_s=0.3,
        )
    await place.close()


async def test_an_entry_above_what_the_server_takes_does_not_harm_the_connection(
    on_single: JetStreamPlace,
) -> None:
    log = await on_single.client()
    connected = log.connection
    assert connected.max_payload >= 1024 * 1024
    with pytest.raises(AppendRefused):
        await append(log, b"x" * (connected.max_payload + 1))
    assert await append(log, b"still here") == 1
    assert connected.is_connected


async def test_the_definition_has_no_deviation_from_itself_and_each_other_one_is_named(
    on_single: JetStreamPlace,
) -> None:
    admin = await on_single.connect()
    config = await streams.find_stream(admin, on_single.cell, wait_s=PATIENCE_S)
    await admin.close()
    assert streams.deviations(config, on_single.cell, replicas=1, max_bytes=-1) == []
    weaker = {
        "discard": "old",
        "max_age": 2 * 86400 * 10**9,
        "max_msgs": 1000,
        "max_msgs_per_subject": 1,
        "num_replicas": 3,
        "deny_delete": False,
        "deny_purge": False,
        "storage": "memory",
        "retention": "workqueue",
        "subjects": ["sabot.>"],
        "compression": "s2",
        "max_msg_size": -1,
        "allow_rollup_hdrs": True,
        "sealed": True,
        "persist_mode": "async",
        "mirror": {"name": "other"},
        "allow_msg_ttl": True,
        "no_ack": True,
        "max_bytes": 5,
    }
    for key, value in weaker.items():
        found = streams.deviations(config | {key: value}, on_single.cell, replicas=1, max_bytes=-1)
        assert len(found) == 1
        assert found[0].startswith(f"{key} is ")


async def test_nats_05_a_stream_that_an_operator_weakened_is_refused(
    on_single: JetStreamPlace,
) -> None:
    admin = await on_single.connect()
    config = await streams.find_stream(admin, on_single.cell, wait_s=PATIENCE_S)
    weaker = config | {"discard": "old", "max_age": 2 * 86400 * 10**9, "max_bytes": 10**6}
    answer = await ask(admin, f"STREAM.UPDATE.{streams.stream_name(on_single.cell)}", weaker)
    assert "error" not in answer
    with pytest.raises(streams.StreamUnfit) as unfit:
        await streams.require_stream(admin, on_single.cell, replicas=1, may_create=True)
    assert [words.split()[0] for words in unfit.value.deviations] == ["discard", "max_age"]
    urls = on_single.cluster.monitor_urls
    found = await preflight.check_log(urls, on_single.cell, replicas=1, wait_s=PATIENCE_S)
    assert len(found.problems) == 2
    assert "discard" in found.problems[0]
    assert "max_age" in found.problems[1]
    await admin.close()


async def test_a_stream_is_never_made_where_one_must_be(on_single: JetStreamPlace) -> None:
    admin = await on_single.connect()
    with pytest.raises(streams.StreamMissing):
        await streams.require_stream(admin, "lost", replicas=1, may_create=False)
    assert await streams.find_stream(admin, "lost", wait_s=PATIENCE_S) == {}
    created = await streams.require_stream(
        admin, on_single.cell, replicas=1, may_create=True, max_bytes=10
    )
    assert not created
    await admin.close()
    with pytest.raises(ValueError, match="no cell"):
        streams.stream_name("a.b")


async def test_preflight_passes_one_server_and_three(clusters: Clusters) -> None:
    for size in (1, 3):
        place = JetStreamPlace(await clusters.of(size), f"preflight{size}")
        await place.make()
        urls = place.cluster.monitor_urls
        async with asyncio.timeout(PATIENCE_S):  # a new replica may be behind for a moment
            while True:
                found = await preflight.check_log(
                    urls, place.cell, replicas=size, wait_s=PATIENCE_S
                )
                assert found.problems == ()
                if not found.warnings:
                    break
                await asyncio.sleep(0.1)
        missing = await preflight.check_log(urls, "nowhere", replicas=size, wait_s=PATIENCE_S)
        assert len(missing.problems) == 1
        await place.close()


async def test_preflight_one_replica_away_warns_two_away_is_a_problem(
    clusters: Clusters,
) -> None:
    place = JetStreamPlace(await clusters.of(3), "away")
    await place.make()
    servers, urls = place.cluster.servers, place.cluster.monitor_urls
    await servers[0].kill()
    found = await preflight.check_log(urls, place.cell, replicas=3, wait_s=PATIENCE_S)
    assert found.problems == ()
    assert any("does not answer" in warning for warning in found.warnings)
    await servers[1].kill()
    found = await preflight.check_log(urls, place.cell, replicas=3, wait_s=PATIENCE_S)
    assert len(found.problems) == 1
    await servers[2].kill()
    found = await preflight.check_log(urls, place.cell, replicas=3, wait_s=PATIENCE_S)
    assert found.problems == ("no server of the log tells how it is configured",)
    for server in servers:
        await server.spawn()
    await asyncio.gather(*(server.wait_up() for server in servers))
    await place.close()


@pytest.mark.parametrize("interval", [None, "2m", "1s"])
async def test_nats_06_preflight_refuses_a_server_that_does_not_sync_always(
    tmp_path: Path, interval: str | None
) -> None:
    jet = {"store_dir": str(tmp_path / "nats")}
    if interval is not None:
        jet["sync_interval"] = interval
    held = HeldPorts(2)
    client_port, monitor_port = held.numbers
    server = NatsProcess(
        tmp_path, {"jetstream": jet}, client_port=client_port, monitor_port=monitor_port
    )
    await server.start()
    try:
        connection = NatsConnection([server.client_url], name="test")
        await connection.open(wait_s=PATIENCE_S)
        assert await streams.require_stream(connection, "weak", replicas=1, may_create=True)
        await connection.close()
        found = await preflight.check_log(
            [server.monitor_url], "weak", replicas=1, wait_s=PATIENCE_S
        )
        assert len(found.problems) == 1
        assert "sync_interval" in found.problems[0]
    finally:
        await server.stop()
        held.release()


async def test_nats_06_every_server_that_this_project_starts_syncs_always(
    clusters: Clusters,
) -> None:
    for size in (1, 3):
        for server in (await clusters.of(size)).servers:
            config = json.loads((server.folder / "nats.conf").read_text())
            assert config["jetstream"]["sync_interval"] == "always"


async def test_a_client_that_the_server_turns_away_for_a_while_comes_back(
    tmp_path: Path,
) -> None:
    """nats-py closes a client for good when its user is refused; a fleet must outlive that."""
    cluster = Cluster(tmp_path, size=1)
    await cluster.start()
    place = JetStreamPlace(cluster, "away")
    await place.make()
    log = await place.client()
    server = cluster.servers[0]
    config = server.folder / "nats.conf"
    right = config.read_text()
    async with reading(log, 0) as entries:
        await append(log, b"before")
        assert (await anext(entries)).payload == b"before"
        await server.stop()
        config.write_text(right.replace(cluster.admin.password, "another"))
        await server.start()
        with pytest.raises(AppendUnknown):
            await log.append("sabot.away.alpha.in", b"lost", expected=None, wait_s=1.0)
        await server.stop()
        config.write_text(right)
        await server.start()
        await append(log, b"after")
        assert (await anext(entries)).payload == b"after"
    await place.close()
    await cluster.stop()


async def test_a_server_that_hangs_is_an_unknown_outcome_and_goes_on_afterwards(
    on_single: JetStreamPlace,
) -> None:
    log = await on_single.client()
    server = on_single.cluster.servers[0]
    async with reading(log, 0) as entries:
        await append(log, b"1", 0)
        await anext(entries)
        server.send_signal(signal.SIGSTOP)
        try:
            with pytest.raises(AppendUnknown):
                await log.append(f"sabot.{log.cell}.alpha.out", b"2", expected=1, wait_s=0.3)
            with pytest.raises(LogUnavailable):
                await log.info(wait_s=0.3)
        finally:
            server.send_signal(signal.SIGCONT)
        # It was on its way: the same bytes, sent again, stand already.
        with pytest.raises(FenceLost) as lost:
            await append(log, b"2", 1)
        assert lost.value.last_sequence == 2
        assert (await anext(entries)).payload == b"2"


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.parametrize("size", [1, 3])
async def test_twenty_kills_under_load_lose_and_double_nothing(
    clusters: Clusters, size: int
) -> None:
    place = JetStreamPlace(await clusters.of(size), f"kills{size}")
    await place.make()
    writer, reader = await place.client(), await place.client()
    done, progress = asyncio.Event(), asyncio.Event()
    count = 0
    subject = f"sabot.{place.cell}.alpha.out"

    async def store(payload: bytes, last: int) -> int:
        """Send until it is known to stand; nobody else writes here."""
        while True:
            try:
                return await writer.append(subject, payload, expected=last, wait_s=1.0)
            except AppendUnknown:
                continue
            except FenceLost as lost:
                if lost.last_sequence is not None:
                    return lost.last_sequence

    async def write() -> None:
        last = 0
        while not done.is_set():
            last = await store(b"%d" % last, last)
        await store(b"end", last)

    async def kill() -> None:
        rng = random.Random(size)
        for number in range(20):
            # Under load: the log goes on between two kills, for longer or shorter.
            enough = count + rng.randint(1, 200)
            while count < enough:
                progress.clear()
                await progress.wait()
            leader = await place.leader()
            server = rng.choice(place.cluster.servers) if number % 2 else leader
            await server.kill()
            await server.start()
        done.set()

    async with asyncio.TaskGroup() as group:
        group.create_task(write())
        group.create_task(kill())
        async with reading(reader, 0) as entries:
            while (entry := await anext(entries)).payload != b"end":
                assert (entry.sequence, entry.payload) == (count + 1, b"%d" % count)
                count += 1
                progress.set()
    assert count > 100
    assert (await reader.info(wait_s=PATIENCE_S)).last_sequence == count + 1
    await place.close()
