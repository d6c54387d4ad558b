"""Recorded logs of every release: they fold, nothing differs, and the states are what they were."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from services.cli.cores import CORES
from services.cli.replay import verify
from services.events import event_types
from services.games import steps
from services.games.cards import CARDS
from services.kernel.entry import decode_entry
from services.kernel.event import NEWEST_BEHAVIOUR, Answers, Core, Event
from services.kernel.log import LogMessage
from services.kernel.memory_log import MemoryLog, MemoryStore
from services.kernel.reader import LogBroken, LogReader
from services.kernel.recovery import read_message
from services.kernel.replica import BehaviourUnknown, Diverged
from services.shoe.domain.core import CORE as SHOE
from services.simulator.virtual_time import run_virtual
from tests.fleet.small_cell import virtual_clock
from tests.histories.history import HERE, fold, histories, load
from tests.histories.record import recorded

ROOT = Path(__file__).parents[2]
FIRST = histories()[0]
CROSSING = HERE / "0005-smaller-steps.jsonl.gz"
"""Behaviour 2 comes into force in its midst."""

PRINT = """
import json, sys
from pathlib import Path
from tests.histories.history import fold, load
history = load(Path(sys.argv[1]))
folded = fold(history.cell, history.messages)
print(json.dumps([folded.reader.state.head.hex(), folded.answers, folded.digests()]))
"""


@pytest.mark.parametrize("path", histories(), ids=lambda path: path.name.split(".")[0])
def test_a_history_folds_and_is_decided_again_without_a_difference(path: Path) -> None:
    history = load(path)
    folded = fold(history.cell, history.messages)
    assert folded.reader.state.head.hex() == history.head
    answers = sum(
        len(decode_entry(one.payload).events)
        for one in history.messages
        if one.subject.endswith(".out")
    )
    assert folded.answers == answers
    assert [one.state.pending for one in folded.replicas.values() if one.state.pending] == []
    now = folded.digests()
    for service, (schema, digest) in history.digests.items():
        if now[service][0] == schema:  # a later shape of a state has another digest
            assert now[service][1] == digest, service


@pytest.mark.parametrize("path", histories(), ids=lambda path: path.name.split(".")[0])
def test_a_history_is_verified(path: Path) -> None:
    history = load(path)

    async def main() -> None:
        found = await verify(MemoryLog(stored(history.cell, history.messages)))
        assert found.right
        assert found.rounds == history.rounds
        assert found.line() == (
            f"verified: {found.rounds} rounds, {found.bets} bets, {found.answers} answers "
            "re-decided, 0 differences, accounts sum to 0"
        )

    run_virtual(main())


def stored(cell: str, messages: list[LogMessage]) -> MemoryStore:
    """A memory log that holds these entries."""
    store = MemoryStore(cell, virtual_clock)
    for one in messages:
        fence = one.headers.get("Nats-Expected-Last-Subject-Sequence")
        store.store(one.subject, one.payload, None if fence is None else int(fence))
    return store


def test_evt_02_replay_is_the_same_under_any_hash_seed_time_zone_and_locale() -> None:
    outputs = set()
    for seed, zone, locale in (
        ("0", "UTC", "C"),
        ("1", "Asia/Kathmandu", "tr_TR.UTF-8"),
        ("4711", "America/St_Johns", "de_DE.UTF-8"),
    ):
        environment = {
            **os.environ,
            "PYTHONPATH": f"{ROOT}:{ROOT / 'protos' / 'gen'}",
            "PYTHONHASHSEED": seed,
            "TZ": zone,
            "LC_ALL": locale,
        }
        done = subprocess.run(
            [sys.executable, "-c", PRINT, str(FIRST)],
            env=environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.add(done.stdout)
    assert len(outputs) == 1
    head, _, digests = json.loads(outputs.pop())
    history = load(FIRST)
    assert history.rounds == 200
    assert head == history.head
    here = fold(history.cell, history.messages).digests()
    assert digests == {service: list(digest) for service, digest in here.items()}


def test_evt_02_a_draw_more_in_the_shoe_service_changes_nothing() -> None:
    """Cards come out of the log; a core that would draw has no say in them."""
    history = load(FIRST)
    drawn = []

    def decide(state: Any, event: Event) -> Answers:
        drawn.append(random.choice(CARDS))
        return SHOE.decide(state, event)

    drawing: Core[Any] = dataclasses.replace(SHOE, decide=decide)
    cores = [drawing if core is SHOE else core for core in CORES]
    assert (
        fold(history.cell, history.messages, cores).digests()
        == fold(history.cell, history.messages).digests()
    )
    assert drawn


def live_equals_replayed(seeds: range) -> None:
    for seed in seeds:
        store, live = recorded(rounds=1 + seed % 3, seed=seed)
        assert fold(store.cell, store.entries()).digests() == live, f"seed {seed}"


def test_evt_02_live_states_equal_replayed_ones() -> None:
    live_equals_replayed(range(1, 101))


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_evt_02_live_states_equal_replayed_ones_a_thousand_times() -> None:
    live_equals_replayed(range(1, 1001))


def test_evt_02_another_decision_is_a_difference() -> None:
    """What the other tests rest on: a core of another mind does not pass."""
    history = load(FIRST)

    def decide(state: Any, event: Event) -> Answers:
        return () if event.position.sequence > 2000 else SHOE.decide(state, event)

    other: Core[Any] = dataclasses.replace(SHOE, decide=decide)
    with pytest.raises(Diverged):
        fold(history.cell, history.messages, [other])


def test_evt_04_an_event_of_an_unknown_type_stops_with_its_position() -> None:
    history = load(FIRST)
    middle = len(history.messages) // 2
    message = history.messages[middle]
    while not message.subject.endswith(".in"):
        middle += 1
        message = history.messages[middle]
    entry = decode_entry(message.payload)
    entry.events[0].type = "sabot.wallet.v1.FundsConjured"
    strange = message._replace(payload=entry.SerializeToString(deterministic=True))
    with pytest.raises(LogBroken, match="FundsConjured") as stopped:
        fold(history.cell, [*history.messages[:middle], strange])
    assert stopped.value.sequence == message.sequence


@pytest.mark.parametrize("core", CORES, ids=lambda core: core.service)
def test_a_changed_decision_fails_unless_it_waits_for_a_new_behaviour(core: Core[Any]) -> None:
    """Of any service: it must branch on the behaviour in force, which old logs never had."""
    history = load(HERE / "0004-seamless-corrections-switches.jsonl.gz")
    messages = history.messages[:2000]

    def changed(state: Any, event: Event) -> Answers:
        return () if event.position.sequence > 500 else core.decide(state, event)

    def waiting(state: Any, event: Event) -> Answers:
        return () if event.behaviour > core.behaviour else core.decide(state, event)

    with pytest.raises(Diverged):
        fold(history.cell, messages, [dataclasses.replace(core, decide=changed)])
    later = dataclasses.replace(core, decide=waiting, behaviour=core.behaviour + 1)
    fold(history.cell, messages, [later])


@pytest.mark.parametrize("core", CORES, ids=lambda core: core.service)
def test_a_changed_decision_of_the_newest_behaviour_fails_too(core: Core[Any]) -> None:
    """What has been released under a number is for ever: the next change takes the next one."""
    history = load(CROSSING)

    def changed(state: Any, event: Event) -> Answers:
        return () if event.behaviour == NEWEST_BEHAVIOUR else core.decide(state, event)

    with pytest.raises(Diverged):
        fold(history.cell, history.messages, [dataclasses.replace(core, decide=changed)])


@pytest.mark.parametrize("bets", [(40, 40), (400, 400), (400, 41), (399, 40), (400, 40, 30)])
def test_steps_of_another_size_need_a_new_behaviour(
    bets: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    history = load(CROSSING)
    monkeypatch.setattr(steps, "STEP_BETS", bets)
    if len(bets) > NEWEST_BEHAVIOUR:
        fold(history.cell, history.messages)
        return
    with pytest.raises(Diverged):
        fold(history.cell, history.messages)


def test_a_build_from_before_a_behaviour_reads_up_to_it_and_says_why_no_further() -> None:
    """So it may take over again until then, and must not afterwards."""
    history = load(CROSSING)
    before = [dataclasses.replace(core, behaviour=1) for core in CORES]
    (activated,) = (
        one.sequence
        for one in history.messages
        for proto in decode_entry(one.payload).events
        if proto.type == "sabot.log.v1.ActivateBehaviour"
    )
    fold(history.cell, history.messages[: activated - 1], before)
    why = f"table decides by behaviours up to 1; 2 is in force at entry {activated}"
    with pytest.raises(BehaviourUnknown, match=why):
        fold(history.cell, history.messages, before)


def test_the_history_of_smaller_steps_has_what_it_was_recorded_for() -> None:
    """Of everything that goes in steps: those of either size, and a settlement that crosses."""
    history = load(CROSSING)
    reader = LogReader(history.cell, event_types())
    sizes: dict[tuple[str, int], dict[object, int]] = {}
    told: list[str] = []
    for message in history.messages:
        for event in read_message(reader, message).events:
            body: Any = event.body
            kind = type(body).__name__
            told.append(kind)
            if kind in ("BetsSettled", "BetsCorrected", "StakeReturned", "BetsWithdrawn"):
                step = sizes.setdefault((kind, event.behaviour), {})
                step[event.cause] = step.get(event.cause, 0) + len(body.bets)
    largest = {key: max(step.values()) for key, step in sizes.items()}
    assert largest == {
        ("BetsSettled", 1): 392, ("BetsSettled", 2): 392,
        ("BetsCorrected", 1): 196, ("BetsCorrected", 2): 14,
        ("BetsWithdrawn", 1): 400, ("BetsWithdrawn", 2): 40,
        ("StakeReturned", 1): 400, ("StakeReturned", 2): 40,
    }  # fmt: skip
    assert sorted(sizes["BetsSettled", 2].values()) == [14, 28, 28, 56, 392]
    before = told[: told.index("ActivateBehaviour")]
    assert before.count("ResultAccepted") == before.count("RoundSettled") + 1


def test_the_history_of_corrections_has_what_it_was_recorded_for() -> None:
    history = load(HERE / "0004-seamless-corrections-switches.jsonl.gz")
    kinds = {
        proto.type.rpartition(".")[2]
        for one in history.messages
        for proto in decode_entry(one.payload).events
    }
    assert {
        "DebitOrdered", "CreditOrdered", "MovementConfirmed", "PartnerProfileSet", "SwitchSet",
        "ResultCorrected", "FactsConfirmed", "CorrectionPosted", "RoundCorrected",
        "ThresholdsSet", "LargeAmountsFound", "LogSealed", "HoleChecked",
    } <= kinds  # fmt: skip
