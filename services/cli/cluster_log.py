"""The log of a cluster, as a tool reads it: by a user who may read and nothing else.

What says where it is may be handed to another process, which connects by itself.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from services.kernel.log import Log

NatsUrl = Annotated[
    str,
    typer.Option(
        "--nats-url", metavar="URL,…", help="A cluster's log instead: nats://host:port of each."
    ),
]
Cell = Annotated[str, typer.Option(metavar="NAME", help="With --nats-url: the cell.")]
PasswordFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="With --nats-url: a file with that user's password."),
]


@dataclass(frozen=True, slots=True)
class ClusterLog:
    """Where a cluster's log is, and who reads it."""

    urls: tuple[str, ...]
    cell: str
    user: str
    password_file: Path | None
    """None: servers that ask for no password."""

    @asynccontextmanager
    async def connected(self, name: str) -> AsyncIterator[Log]:
        """The log. `name` is shown in the servers' monitoring. Raises LogUnavailable, OSError."""
        from services.cli.secret_files import secret_in
        from services.kernel.jetstream import JetStreamLog
        from services.kernel.nats_users import NatsUser

        known = NatsUser(self.user)
        asks = self.password_file is not None
        log = await JetStreamLog.connect(
            self.urls,
            self.cell,
            name=name,
            consumer_prefix=known.consumer_prefix,
            user=self.user if asks else None,
            password=secret_in(self.password_file) if self.password_file else None,
            inbox_prefix=known.inbox_prefix if asks else "_INBOX",
        )
        try:
            yield log
        finally:
            await log.close()


def urls_of(nats_url: str) -> tuple[str, ...]:
    """The servers of an option's value."""
    return tuple(url.strip() for url in nats_url.split(","))
