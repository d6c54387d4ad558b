"""TLS to a real server: by whose certificate it is trusted, for which name, and that nothing is
said in plain text."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
import trustme

from services.kernel.held_ports import HOST, HeldPorts
from services.kernel.log import LogUnavailable
from services.kernel.nats_connection import NatsConnection
from services.kernel.nats_process import NatsProcess
from tests.contract.places import PATIENCE_S

WAIT_S = 0.5
"""For what is refused: an attempt at a server takes milliseconds, and they are made for so long."""


@dataclass
class Place:
    """A server that speaks TLS alone, and whom one may trust."""

    url: str
    authority: Path
    another: Path

    def connection(self, url: str = "", authority: Path | None = None) -> NatsConnection:
        return NatsConnection(
            [url or self.url],
            name="test",
            user="table",
            password="word",  # noqa: S106 - of a test
            authority=authority or self.authority,
        )


def made(folder: Path, authority: trustme.CA, name: str, held: HeldPorts) -> NatsProcess:
    """A server with a certificate of that name."""
    folder.mkdir()
    issued = authority.issue_cert(name)
    chain, key = folder / "tls.crt", folder / "tls.key"
    chain.write_bytes(b"".join(part.bytes() for part in issued.cert_chain_pems))
    issued.private_key_pem.write_to_path(key)
    tls = {"cert_file": str(chain), "key_file": str(key), "timeout": 5}
    users = {"users": [{"user": "table", "password": "word"}]}
    client, monitor = held.numbers
    return NatsProcess(
        folder, {"tls": tls, "authorization": users}, client_port=client, monitor_port=monitor
    )


def encrypted(server: NatsProcess) -> str:
    return server.client_url.replace("nats://", "tls://")


@pytest_asyncio.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    authority, another = trustme.CA(), trustme.CA()
    for name, one in (("authority", authority), ("another", another)):
        one.cert_pem.write_to_path(tmp_path / name)
    with HeldPorts(2) as held:
        server = made(tmp_path / "server", authority, HOST, held)
        await server.start()
        try:
            yield Place(encrypted(server), tmp_path / "authority", tmp_path / "another")
        finally:
            await server.stop()


async def refused(connection: NatsConnection) -> str:
    with pytest.raises(LogUnavailable) as told:
        await connection.open(wait_s=WAIT_S)
    return str(told.value)


async def test_whom_one_trusts_is_spoken_to(place: Place) -> None:
    connection = place.connection()
    await connection.open(wait_s=PATIENCE_S)
    assert connection.is_connected
    assert connection.max_payload > 0
    await connection.close()


async def test_another_authority_s_server_is_not(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    told = await refused(place.connection(authority=place.another))
    assert "no connection to NATS" in told
    assert "certificate verify failed" in told
    warned = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    assert len(warned) == 1, "operators hear of it at once, and once"
    assert "certificate verify failed" in warned[0]


async def test_nor_is_a_server_of_another_name(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "authority")
    with HeldPorts(2) as held:
        server = made(tmp_path / "server", authority, "elsewhere.example", held)
        await server.start()
        try:
            trusted = tmp_path / "authority"
            place = Place(encrypted(server), trusted, trusted)
            assert "mismatch" in await refused(place.connection())
        finally:
            await server.stop()


async def test_who_is_told_of_no_tls_trusts_nobody(place: Place) -> None:
    assert "certificate verify failed" in await refused(
        place.connection(place.url.replace("tls://", "nats://"))
    )


async def test_the_server_takes_no_plain_text(place: Place) -> None:
    reader, writer = await asyncio.open_connection(HOST, urlsplit(place.url).port)
    async with asyncio.timeout(PATIENCE_S):
        assert json.loads((await reader.readline()).removeprefix(b"INFO "))["tls_required"]
        writer.write(b'CONNECT {"user": "table", "pass": "word"}\r\nPING\r\n')
        try:
            said = await reader.read()
        except ConnectionError:
            said = b""
    assert b"PONG" not in said
    writer.close()


async def test_a_server_without_tls_is_told_no_password(place: Place) -> None:
    """Whoever stands in between may say that there is none."""
    heard: list[bytes] = []

    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"server_id": "x", "max_payload": 1048576, "auth_required": true}\r\n')
        heard.append(await reader.read(100))
        writer.close()

    server = await asyncio.start_server(plain, HOST)
    port = server.sockets[0].getsockname()[1]
    connection = place.connection(f"tls://{HOST}:{port}")
    told = await refused(connection)
    server.close()
    assert "offers no TLS" in told
    assert b"".join(heard) == b""


def test_a_cluster_is_one_or_the_other(place: Place) -> None:
    with pytest.raises(ValueError, match="not one cluster"):
        NatsConnection([place.url, "nats://a:1"], name="test")
