"""Who may do what on the log's servers: one table, from which every server's users are made.

| user | may append to | besides |
|---|---|---|
| another service's own | that service's inputs and answers | reads the cell and its own snapshots |
| `audit` | as every service | reads the cell, reads and writes all snapshots |
| `snapshots` | audit's inputs, all: they name snapshots | as audit |
| `fleet` | every service's | reads the whole cell |
| `tools` | nothing | reads the whole cell |
| `console`, `prove`, `backup` | nothing | reads the whole cell |
| `admin` | nothing | asks for, makes and updates the cell's stream and its snapshots' |

Reading means: asking how far the stream is, and consumers of one's own by a closed list of names.
Snapshots are objects of a bucket, of a closed list of names too (see `shared_snapshots`).
Everybody listens to an inbox of their own alone. Nobody may delete or purge a stream or a message,
read another's consumer, or move a leader: what is not named here is refused by the server. Who
writes snapshots takes old ones away by a roll-up, in their bucket alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from services.kernel.jetstream_read import consumer_names
from services.kernel.object_store import (
    ask_subject,
    bucket_stream,
    bucket_subjects,
    chunk_subject,
    reader_names,
)
from services.kernel.shared_snapshots import (
    snapshot_bucket,
    snapshot_chunks,
    snapshot_subjects,
)
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
    appends_inputs: tuple[str, ...] = ()
    """Those to whose inputs alone it may."""
    snapshots_of: tuple[str, ...] = ()
    """The services whose snapshots it may read."""
    writes_snapshots: bool = False
    """Whether it may read and write every service's."""
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


NAMES_SNAPSHOTS = "audit"
"""The service in whose inputs the log names snapshots, and which takes them."""

MAKER = NatsUser(ADMIN, reads=False, makes_stream=True)
WHOLE_FLEET = NatsUser(FLEET, appends=(EVERY_SERVICE,))
READER = NatsUser(TOOLS)
PAGES = NatsUser("console")
PROOF = NatsUser("prove")
"""Who decides the whole history again every night."""
BACKUP = NatsUser("backup")
"""Who copies the log every night. Each has consumers of its own, so none waits for another's."""
SNAPSHOTS = NatsUser("snapshots", appends_inputs=(NAMES_SNAPSHOTS,), writes_snapshots=True)
"""Who builds the snapshots of a release before it rolls."""


def service_users(services: Sequence[str]) -> tuple[NatsUser, ...]:
    """The users of services that run each in processes of their own."""
    return tuple(
        NatsUser(
            service,
            appends=(service,),
            snapshots_of=() if service == NAMES_SNAPSHOTS else (service,),
            writes_snapshots=service == NAMES_SNAPSHOTS,
        )
        for service in services
    )


def cluster_users(services: Sequence[str]) -> tuple[NatsUser, ...]:
    """All users of a cluster of servers, on which no fleet runs in one process and no folder holds
    credentials for tools."""
    return (MAKER, *service_users(services), PAGES, PROOF, BACKUP, SNAPSHOTS)


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
    for service in user.appends_inputs:
        publish.append(stream_subjects(cell)[0].replace("*", service))
    publish += _of_snapshots(user, cell)
    return {
        "publish": {"allow": publish},
        "subscribe": {"allow": [f"{user.inbox_prefix}.>"]},
    }


def _of_snapshots(user: NatsUser, cell: str) -> list[str]:
    """What a user may ask of the bucket of snapshots, and write into it. A consumer's filter is
    part of what it asks for, so that pieces of others cannot be read."""
    bucket = snapshot_bucket(cell)
    stream = bucket_stream(bucket)
    publish: list[str] = []
    chunks = [snapshot_chunks(cell, service) for service in user.snapshots_of]
    told = [one for service in user.snapshots_of for one in snapshot_subjects(cell, service)]
    if user.makes_stream:
        publish += [f"$JS.API.STREAM.{verb}.{stream}" for verb in ("INFO", *MAKER_VERBS)]
    if user.writes_snapshots:
        publish += [f"$JS.API.STREAM.INFO.{stream}", *bucket_subjects(bucket)]
        chunks = [chunk_subject(bucket, "*.*")]
        told = [chunk_subject(bucket, "*.*"), f"$O.{bucket}.M.*"]
    publish += [ask_subject(bucket, one) for one in told]
    if chunks:
        for name in reader_names(user.consumer_prefix):
            publish += [f"$JS.API.CONSUMER.CREATE.{stream}.{name}.{one}" for one in chunks]
            publish += [f"$JS.API.CONSUMER.{verb}.{stream}.{name}" for verb in READER_VERBS[1:]]
    return publish
