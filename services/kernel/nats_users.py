"""Who may do what on the log's servers: one table, from which every server's users are made.

| user | may append to | besides |
|---|---|---|
| a service's own | that service's inputs and answers | reads the whole cell |
| `fleet` | every service's | reads the whole cell |
| `tools` | nothing | reads the whole cell |
| `console`, `prove`, `backup` | nothing | reads the whole cell |
| `admin` | nothing | asks for, makes and updates the cell's stream |

Reading means: asking how far the stream is, and consumers of one's own by a closed list of names.
Everybody listens to an inbox of their own alone. Nobody may delete or purge a stream or a message,
read another's consumer, or move a leader: what is not named here is refused by the server.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from services.kernel.jetstream_read import consumer_names
from services.kernel.streams import stream_name, stream_subjects

ADMIN = "admin"
"""The user that makes the stream."""
FLEET = "fleet"
"""The user of a fleet that runs in one process."""
TOOLS = "tools"
"""The user whose credentials are left in a data folder; it may read and nothing else."""

EVERY_SERVICE = "*"
"""As a subject's token: the subjects of all services."""
READER_VERBS = ("CREATE", "MSG.NEXT", "DELETE")
"""What a reader asks of its own consumers."""
MAKER_VERBS = ("CREATE", "UPDATE")
"""What the maker of a stream asks for. An update may throw entries away, by a limit of age, say: so
only `sabot streams` uses that user, which refuses to."""


@dataclass(frozen=True, slots=True)
class NatsUser:
    """One row of the table."""

    name: str
    appends: tuple[str, ...] = ()
    """The services to whose subjects it may append."""
    reads: bool = True
    """Whether it reads the cell."""
    makes_stream: bool = False

    @property
    def inbox_prefix(self) -> str:
        """Where it may subscribe."""
        return f"_INBOX_{self.name}"

    @property
    def consumer_prefix(self) -> str:
        """What its consumers are called."""
        return self.name


MAKER = NatsUser(ADMIN, reads=False, makes_stream=True)
WHOLE_FLEET = NatsUser(FLEET, appends=(EVERY_SERVICE,))
READER = NatsUser(TOOLS)
PAGES = NatsUser("console")
PROOF = NatsUser("prove")
"""Who decides the whole history again every night."""
BACKUP = NatsUser("backup")
"""Who copies the log every night. Each has consumers of its own, so none waits for another's."""


def service_users(services: Sequence[str]) -> tuple[NatsUser, ...]:
    """The users of services that run each in processes of their own."""
    return tuple(NatsUser(service, appends=(service,)) for service in services)


def cluster_users(services: Sequence[str]) -> tuple[NatsUser, ...]:
    """All users of a cluster of servers, on which no fleet runs in one process and no folder holds
    credentials for tools."""
    return (MAKER, *service_users(services), PAGES, PROOF, BACKUP)


def permissions(user: NatsUser, cell: str) -> dict[str, Any]:
    """A user's rights in a cell, as a server's configuration has them.

    NATS cannot match half a token, so consumers have the closed list of names that `consumer_names`
    gives.
    """
    stream = stream_name(cell)
    publish = [f"$JS.API.STREAM.INFO.{stream}"]
    if user.makes_stream:
        publish += [f"$JS.API.STREAM.{verb}.{stream}" for verb in MAKER_VERBS]
    if user.reads:
        publish += [
            f"$JS.API.CONSUMER.{verb}.{stream}.{consumer}"
            for consumer in consumer_names(user.consumer_prefix)
            for verb in READER_VERBS
        ]
    for service in user.appends:
        publish += [subject.replace("*", service) for subject in stream_subjects(cell)]
    return {
        "publish": {"allow": publish},
        "subscribe": {"allow": [f"{user.inbox_prefix}.>"]},
    }
