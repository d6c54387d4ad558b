"""Attempts are found in a server's log, whole, once, also when the file is put aside meanwhile."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from services.cli.nats_watch import TOLD_MOST, Attempt, LogWatch, attempt_of
from services.kernel.telemetry_names import AlarmKind

HEAD = (
    '[7] 2026/12/01 01:03:45.317153 [ERR] 10.0.3.4:55308 - cid:12 - "v2:go:any" - "$G/user:table"'
)
APPEND = f'{HEAD} - Publish Violation - Subject "sabot.main.wallet.in"'
LISTEN = f'{HEAD} - Subscription Violation - Subject "_INBOX_wallet.>", Queue: "q", SID 2'
STRANGER = "[7] 2026/12/01 01:03:45.317973 [ERR] 10.0.3.4:55320 - cid:13 - authentication error"
HARMLESS = "[7] 2026/12/01 01:03:43.357197 [WRN] Waiting for routing to be established..."


class Told(list[Mapping[str, Any]]):
    def __call__(self, kind: AlarmKind, facts: Mapping[str, Any]) -> None:
        assert kind == "log_misused"
        self.append(facts)


@pytest.mark.parametrize(
    ("line", "attempt"),
    [
        (APPEND, Attempt("publish", "table", "sabot.main.wallet.in", "10.0.3.4")),
        (LISTEN, Attempt("subscribe", "table", "_INBOX_wallet.>", "10.0.3.4")),
        (STRANGER, Attempt("connect", "", "", "10.0.3.4")),
        (f'{STRANGER} - User "root"', Attempt("connect", "root", "", "10.0.3.4")),
        (
            APPEND.replace("10.0.3.4", "[fd00::4]"),
            Attempt("publish", "table", "sabot.main.wallet.in", "[fd00::4]"),
        ),
        (HARMLESS, None),
    ],
)
def test_a_line_tells_who_tried_what_from_where(line: str, attempt: Attempt | None) -> None:
    assert attempt_of(line) == attempt


@contextmanager
def watch(path: Path) -> Iterator[tuple[LogWatch, Told, io.StringIO]]:
    told, passed_on = Told(), io.StringIO()
    watching = LogWatch(path, told, passed_on)
    yield watching, told, passed_on
    watching.close()


def test_every_line_is_passed_on_and_every_attempt_told_once(tmp_path: Path) -> None:
    path = tmp_path / "nats.log"
    with watch(path) as (watching, told, passed_on):
        watching.look()  # there is no file yet
        with path.open("a") as log:
            log.write(f"{HARMLESS}\n{APPEND}\n{APPEND}\n{LISTEN[:50]}")
            log.flush()
            watching.look()
            assert told == [
                {
                    "what": "publish",
                    "user": "table",
                    "subject": "sabot.main.wallet.in",
                    "from": "10.0.3.4",
                    "times": 2,
                }
            ]
            log.write(f"{LISTEN[50:]}\n")
            log.flush()
            watching.look()
            watching.look()
        assert [one["what"] for one in told] == ["publish", "subscribe"]
        assert passed_on.getvalue().splitlines() == [HARMLESS, APPEND, APPEND, LISTEN]


def test_a_file_that_is_put_aside_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "nats.log"
    with watch(path) as (watching, told, _):
        log = path.open("a")
        log.write(f"{HARMLESS}\n")
        log.flush()
        watching.look()
        path.rename(tmp_path / "nats.log.1")
        log.write(f"{APPEND}\n")
        log.close()
        path.write_text(f"{LISTEN}\n")
        watching.look()
        assert [one["what"] for one in told] == ["publish", "subscribe"]


def test_who_tries_everything_is_counted_and_does_not_drown_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "nats.log"
    tried = [APPEND.replace("wallet", f"wallet{number}") for number in range(500)]
    path.write_text("\n".join(tried) + "\n")
    with watch(path) as (watching, told, _):
        watching.look()
        assert len(told) == TOLD_MOST + 1
        assert told[-1] == {"what": "others", "times": 500 - TOLD_MOST}
