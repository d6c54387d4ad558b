"""One server and one cluster for all contract tests; a cell of its own for each test."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from services.kernel.embedded import Cluster
from tests.contract.places import JetStreamPlace, MemoryPlace, Place

CELLS = itertools.count(1)

MakePlace = Callable[..., Awaitable[Place]]


class Clusters:
    """One server and one cluster of three, each started when it is first wanted."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: dict[int, Cluster] = {}

    async def of(self, size: int) -> Cluster:
        if size not in self._running:
            cluster = Cluster(self._folder / f"of{size}", size=size)
            await cluster.start()
            self._running[size] = cluster
        return self._running[size]

    async def stop(self) -> None:
        for cluster in self._running.values():
            await cluster.stop()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def clusters(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Clusters, None]:
    """Real servers, durable on every append."""
    running = Clusters(tmp_path_factory.mktemp("clusters"))
    yield running
    await running.stop()


@pytest_asyncio.fixture(loop_scope="session", params=["memory", "single", "triple"])
async def make_place(
    request: pytest.FixtureRequest, clusters: Clusters
) -> AsyncGenerator[MakePlace, None]:
    """Makes a log of the kind; `max_bytes` limits it, `deny=False` lets entries be deleted."""
    places: list[Place] = []

    async def make(*, max_bytes: int = -1, deny: bool = True) -> Place:
        cell = f"cell{next(CELLS)}"
        place: Place
        if request.param == "memory":
            place = MemoryPlace(cell, bytes_max=max_bytes)
        else:
            size = 1 if request.param == "single" else 3
            on_servers = JetStreamPlace(await clusters.of(size), cell)
            await on_servers.make(max_bytes=max_bytes, deny=deny)
            place = on_servers
        places.append(place)
        return place

    yield make
    for place in places:
        await place.close()


@pytest_asyncio.fixture(loop_scope="session")
async def place(make_place: MakePlace) -> Place:
    """An empty log."""
    return await make_place()


@pytest_asyncio.fixture(loop_scope="session")
async def on_single(clusters: Clusters) -> AsyncGenerator[JetStreamPlace, None]:
    """An empty log on one server, for what has to do with its files."""
    place = JetStreamPlace(await clusters.of(1), f"cell{next(CELLS)}")
    await place.make()
    yield place
    await place.close()
