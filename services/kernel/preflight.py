"""Whether the log is as strong as it must be: asked of every server, before bets and ever after.

JetStream's own default acknowledges what a power cut still takes away, and an operator can weaken a
stream or a server at any time without the fleet noticing. The servers' monitoring tells.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from services.kernel.nats_process import http_get
from services.kernel.streams import deviations, stream_name

MONITOR_PATH = "/jsz?config=1&streams=1&accounts=1"
"""Server configuration and every stream's, in one answer."""

MONITOR_PORT = 8222
"""NATS's usual port for monitoring, where a URL names none."""


@dataclass(frozen=True, slots=True)
class Preflight:
    """What was found."""

    problems: tuple[str, ...]
    """In words; while there is one, no bets may be taken: the log is weaker than it must be, or
    nobody can tell."""
    warnings: tuple[str, ...]
    """In words; an alarm, but the log still keeps what it acknowledges: a replica is away."""


async def check_log(
    monitor_urls: Sequence[str],
    cell: str,
    *,
    replicas: int,
    max_bytes: int | None = None,
    wait_s: float = 2.0,
) -> Preflight:
    """Ask every server's monitoring (`http://host:port`) about itself and about the cell's stream.

    `max_bytes` is compared where it is given. A server that does not answer in `wait_s` seconds is
    a warning while a majority of the replicas answers.
    """
    answers = await asyncio.gather(*(_ask(url, wait_s) for url in monitor_urls))
    problems: list[str] = []
    warnings: list[str] = []
    silent = keepers = 0
    for url, answer in zip(monitor_urls, answers, strict=True):
        if isinstance(answer, str):
            silent += 1
            warnings.append(f"{url} {answer}")
            continue
        problems += [f"{url}: {problem}" for problem in server_problems(answer)]
        stream = _stream(answer, stream_name(cell))
        if stream is None:
            continue
        keepers += 1
        found = deviations(stream["config"], cell, replicas=replicas, max_bytes=max_bytes)
        problems += [f"{url}: stream {stream_name(cell)}: {deviation}" for deviation in found]
        warnings += [f"{url}: {warning}" for warning in _replica_warnings(stream)]
    if silent == len(monitor_urls):
        problems.append("no server of the log tells how it is configured")
    elif keepers <= replicas // 2:
        problems.append(
            f"{keepers} servers are seen to keep the stream {stream_name(cell)}, "
            f"of {replicas} replicas"
        )
    elif keepers < replicas:
        warnings.append(f"only {keepers} of {replicas} replicas of {stream_name(cell)} are seen")
    return Preflight(tuple(problems), tuple(warnings))


def server_problems(answer: Mapping[str, Any]) -> list[str]:
    """What about a server's own configuration makes the log weaker, in words."""
    if answer.get("disabled"):
        return ["JetStream is switched off"]
    if not answer.get("config", {}).get("sync_always"):
        return ['sync_interval is not "always": a power cut loses what was acknowledged']
    return []


async def _ask(url: str, wait_s: float) -> dict[str, Any] | str:
    """A server's answer, or in words why there is none."""
    parts = urlsplit(url)
    if parts.scheme != "http" or parts.hostname is None:
        return "is no address of a monitoring endpoint (http://host:port)"
    port = parts.port or MONITOR_PORT
    try:
        status, body = await http_get(parts.hostname, port, MONITOR_PATH, wait_s=wait_s)
        answer: dict[str, Any] = json.loads(body)
    except (OSError, TimeoutError, EOFError, ValueError) as error:
        return f"does not answer: {str(error) or type(error).__name__}"
    return answer if status == 200 else f"answers {status}"


def _stream(answer: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    for account in answer.get("account_details") or ():
        for stream in account.get("stream_detail") or ():
            if stream["name"] == name:
                found: Mapping[str, Any] = stream
                return found
    return None


def _replica_warnings(stream: Mapping[str, Any]) -> list[str]:
    cluster = stream.get("cluster", {})
    replicas = cluster.get("replicas") or ()
    if not cluster.get("leader"):
        return [f"{stream['name']} has no leader just now"]
    if any(replica.get("name") == cluster["leader"] for replica in replicas):
        return []  # a follower's list of the others; only the leader knows how far they are
    return [
        f"the replica on {replica.get('name')} is {'away' if replica.get('offline') else 'behind'}"
        for replica in replicas
        if not replica.get("current")
    ]
