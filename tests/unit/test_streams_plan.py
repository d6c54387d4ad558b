"""What `sabot streams` would do about a stream: it adds and strengthens, and takes nothing away."""

from __future__ import annotations

from typing import Any

import pytest

from services.cli.streams import SAFE, What, plan, plan_bucket
from services.kernel.object_store import bucket_definition
from services.kernel.shared_snapshots import snapshot_bucket
from services.kernel.streams import stream_definition

CELL = "main"
WANTED = stream_definition(CELL, replicas=3, max_bytes=10_000)


def planned(
    config: dict[str, Any], *, may_create: bool = False, max_bytes: int | None = None
) -> Any:
    return plan(config, CELL, replicas=3, max_bytes=max_bytes, may_create=may_create)


def test_a_stream_as_it_must_be_needs_nothing() -> None:
    found = planned(WANTED)
    assert (found.what, found.changes, found.refused) == (What.NOTHING, (), ())


def test_a_missing_stream_is_made_only_on_the_word_that_there_never_was_one() -> None:
    assert planned({}).what is What.REFUSE
    assert "--create" in planned({}).refused[0]
    made = planned({}, may_create=True, max_bytes=10_000)
    assert (made.what, made.config) == (What.CREATE, WANTED)


@pytest.mark.parametrize(
    "have",
    [
        {"num_replicas": 1},
        {"max_age": 60_000_000_000},
        {"max_msgs": 5},
        {"max_msgs_per_subject": 5},
        {"discard": "old"},
        {"deny_delete": False},
        {"deny_purge": False},
        {"allow_rollup_hdrs": True},
        {"allow_direct": True},
    ],
    ids=lambda have: next(iter(have)),
)
def test_what_keeps_at_least_as_much_is_changed(have: dict[str, Any]) -> None:
    found = planned({**WANTED, **have})
    assert (found.what, found.refused) == (What.UPDATE, ())
    assert [change.split(" ")[0] for change in found.changes] == list(have)
    assert found.config == WANTED


@pytest.mark.parametrize(
    "have",
    [
        {"num_replicas": 5},
        {"subjects": ["sabot.main.table.in"]},
        {"retention": "interest"},
        {"storage": "memory"},
        {"max_msg_size": -1},
        {"compression": "s2"},
        {"sealed": True},
        {"mirror": {"name": "other"}},
        {"subject_transform": {"src": "a", "dest": "b"}},
    ],
    ids=lambda have: next(iter(have)),
)
def test_whatever_else_differs_is_refused_and_nothing_is_done(have: dict[str, Any]) -> None:
    found = planned({**WANTED, **have, "discard": "old"})
    assert (found.what, found.config) == (What.REFUSE, None)
    assert [refusal.split(" ")[0] for refusal in found.refused] == list(have)


@pytest.mark.parametrize(
    ("have", "wanted", "what"),
    [
        (10_000, 20_000, What.UPDATE),
        (10_000, 10_000, What.NOTHING),
        (10_000, 5_000, What.REFUSE),
        (-1, 5_000, What.REFUSE),
        (10_000, None, What.NOTHING),
    ],
)
def test_room_may_only_grow(have: int, wanted: int | None, what: What) -> None:
    found = planned({**WANTED, "max_bytes": have}, max_bytes=wanted)
    assert found.what is what
    if what is What.UPDATE:
        assert found.config is not None
        assert found.config["max_bytes"] == wanted


def test_every_setting_that_may_be_changed_is_one_of_the_definition() -> None:
    assert SAFE.keys() <= WANTED.keys()


# ---- the bucket of snapshots -------------------------------------------------------------------

BUCKET = bucket_definition(snapshot_bucket(CELL), replicas=3, max_bytes=10_000)


@pytest.mark.parametrize(
    ("have", "what"),
    [
        ({}, What.NOTHING),
        ({"num_replicas": 1}, What.UPDATE),
        ({"deny_delete": False}, What.UPDATE),
        ({"storage": "memory"}, What.REFUSE),
        ({"deny_purge": True}, What.REFUSE),
    ],
)
def test_a_bucket_becomes_what_it_must_be_where_the_server_lets_it(
    have: dict[str, Any], what: What
) -> None:
    found = plan_bucket({**BUCKET, **have}, CELL, replicas=3, max_bytes=10_000)
    assert found.what is what
    assert [words.split(" ")[0] for words in (*found.changes, *found.refused)][: len(have)] == [
        *have
    ]
