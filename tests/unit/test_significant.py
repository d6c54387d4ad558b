"""What is significant: large amounts by thresholds, what edges tell, the index, and its pages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message

from sabot.audit.v1 import audit_service_pb2 as audits
from sabot.audit.v1 import significant_events_pb2 as significant
from sabot.log.v1 import events_pb2 as log
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.table.v1 import events_pb2 as tables
from sabot.wallet.v1 import correction_events_pb2 as wallet_corrections
from sabot.wallet.v1 import events_pb2 as wallet
from services.audit.domain import significant as core_of_it
from services.audit.domain.core import CORE, AuditState
from services.audit.significance import RECORD, SIGNIFICANT, SignificantIndex, significance_of
from services.audit.watchman import STOOD_STILL_US, Watchman
from services.events import event_types
from services.kernel.entry import KERNEL_ANSWERS
from services.kernel.event import Event, Position
from services.kernel.notices import GATHER_US, MOST, NoticeKind, Notices
from tests.unit.deciding import Deciding, by

DAY_US = core_of_it.DAY_US
RULES = bytes(32)


def thresholds(
    table_id: str = "", currency_code: str = "EUR", **minor: int
) -> significant.Thresholds:
    told = significant.Thresholds(table_id=table_id, currency_code=currency_code)
    for name, value in minor.items():
        setattr(told, f"{name}_minor", value)
    return told


def ordered(table_id: str = "", **minor: int) -> Any:
    return by(
        significant.SetThresholds(
            thresholds=thresholds(table_id, "EUR", **minor), reason="licence"
        ),
        partner="",
        actor="operator:sam",
    )


def settled(
    *bets: tuple[int, int],
    table_id: str = "t1",
    account_id: str = "ann",
    currency_code: str = "EUR",
    number: int = 1,
) -> settlement.BetsSettled:
    """`bets`: stake and profit of each."""
    return settlement.BetsSettled(
        partner_id="acme",
        account_id=account_id,
        table_id=table_id,
        round_id=f"{table_id}-{number}",
        currency_code=currency_code,
        bets=[
            settlement.SettledBet(
                bet_id=f"{table_id}-{number}-{place}",
                stake_minor=stake,
                profit_minor=profit,
                payout_minor=max(0, stake + profit),
            )
            for place, (stake, profit) in enumerate(bets)
        ],
    )


def kinds(game: Deciding[AuditState]) -> list[tuple[str, int, int]]:
    return [
        (significant.LargeKind.Name(one.kind).removeprefix("LARGE_KIND_"), one.minor,
         one.threshold_minor)
        for body in game.answers if isinstance(body, significant.LargeAmountsFound)
        for one in body.amounts
    ]  # fmt: skip


# ---- the core ----------------------------------------------------------------------------------


def test_without_thresholds_nothing_is_large_and_nothing_is_kept() -> None:
    game = Deciding(CORE).when(settled((10**12, 10**12))).then()
    assert game.state.significance.days == {}


def test_thresholds_are_set_by_an_operator_and_stand_in_the_log() -> None:
    wanted = thresholds(round_win=500)
    Deciding(CORE).when(ordered(round_win=500)).then(
        significant.ThresholdsSet(thresholds=wanted, reason="licence")
    )


def test_each_amount_is_held_against_its_own_threshold_to_the_unit() -> None:
    game = Deciding(CORE).given(ordered(bet_win=100, round_win=250, bet_stake=60, round_stake=150))
    game.when(settled((59, 99), (59, 99))).then()
    game.when(settled((60, -60))).then(
        significant.LargeAmountsFound(
            partner_id="acme", account_id="ann", table_id="t1", round_id="t1-1",
            currency_code="EUR",
            amounts=[
                significant.LargeAmount(
                    kind=significant.LARGE_KIND_BET_STAKE, bet_id="t1-1-0", minor=60,
                    threshold_minor=60,
                )
            ],
        )
    )  # fmt: skip
    game.when(settled((50, 100)))
    assert kinds(game) == [("BET_WIN", 100, 100)]
    game.when(settled((59, 99), (59, 99), (32, 52)))
    assert kinds(game) == [("ROUND_WIN", 250, 250), ("ROUND_STAKE", 150, 150)]
    game.when(settled((59, 99), (59, 99), (31, -31)))
    assert kinds(game) == [], "a win is what is won less what is lost"


def test_a_tables_own_thresholds_stand_in_place_of_all_others() -> None:
    game = Deciding(CORE).given(ordered(round_win=100), ordered("vip", round_win=1000))
    game.when(settled((10, 100), table_id="t2"))
    assert kinds(game) == [("ROUND_WIN", 100, 100)]
    game.when(settled((10, 999), table_id="vip")).then()
    game.when(settled((10, 1000), table_id="vip"))
    assert kinds(game) == [("ROUND_WIN", 1000, 1000)]
    game.when(settled((10, 10**6), currency_code="USD")).then()
    game.given(ordered())
    game.when(settled((10, 100), table_id="t2")).then()


def test_a_day_is_summed_over_rounds_and_tables_told_once_and_begins_at_midnight() -> None:
    game = Deciding(CORE).given(ordered(day_stake=100, day_win=50))
    game.when(settled((60, 20))).then()
    game.when(settled((60, 20), account_id="ben")).then()
    game.when(settled((40, 20), table_id="t2"))
    assert kinds(game) == [("DAY_STAKE", 100, 100)]
    game.when(settled((5, 10)))
    assert kinds(game) == [("DAY_WIN", 50, 50)]
    game.when(settled((500, 500))).then()
    game.when(by(settled((60, 20)), at_us=DAY_US)).then()
    game.when(by(settled((40, 20)), at_us=DAY_US + 1))
    assert kinds(game) == [("DAY_STAKE", 100, 100)]
    assert list(game.state.significance.days) == [("acme", "ann", "EUR")]


def test_there_is_room_for_so_many_thresholds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_of_it, "MAX_THRESHOLDS", 2)
    game = Deciding(CORE).given(ordered("a"), ordered("b"))
    game.when(ordered("c")).then(log.InputIgnored(reason=log.IGNORED_REASON_IMPOSSIBLE))
    game.when(ordered("a", round_win=7)).then(
        significant.ThresholdsSet(thresholds=thresholds("a", round_win=7), reason="licence")
    )


def test_what_an_edge_tells_raises_an_alarm_but_for_reads() -> None:
    refused = significant.NoteEvents(kind=significant.NOTED_KIND_FAILED_SIGN_IN, count=3)
    Deciding(CORE).when(by(refused, partner="")).then(significant.EventsNoted(noted=refused))
    read = significant.NoteEvents(kind=significant.NOTED_KIND_READ, subject="operator:ada", count=1)
    Deciding(CORE).when(by(read, partner="")).then(significant.ReadsNoted(noted=read))
    assert CORE.alarms[significant.EventsNoted] == "events_noted"
    assert CORE.alarms[significant.LargeAmountsFound] == "large_amounts"
    assert significant.ReadsNoted not in CORE.alarms


# ---- what is noticed ---------------------------------------------------------------------------


def test_what_another_services_process_noticed_is_told_like_ones_own() -> None:
    told: list[tuple[log.CallKind.ValueType, significant.NotedKind.ValueType, type[Message]]] = [
        (log.CALL_KIND_TOKEN_UNKNOWN, significant.NOTED_KIND_FAILED_SIGN_IN,
         significant.EventsNoted),
        (log.CALL_KIND_READ, significant.NOTED_KIND_READ, significant.ReadsNoted),
    ]  # fmt: skip
    for kind, noted, answer in told:
        facts: dict[str, Any] = {
            "subject": "operator:ada", "method": "GetBalance", "count": 3,
            "first_us": 7, "last_us": 9,
        }  # fmt: skip
        body = log.NoteCalls(kind=kind, **facts)
        note = significant.NoteEvents(kind=noted, **facts)
        Deciding(CORE).when(by(body, partner="", service="wallet")).then(answer(noted=note))


def test_alike_notices_are_one_and_nobody_can_flood_the_log() -> None:
    now = [1_000]
    notices = Notices(lambda: now[0])
    for number in range(10_000):
        now[0] += 1
        notices.seen(NoticeKind.REFUSED, f"name-{number}", f"method-{number}", 1)
    notices.read("operator:ada", "GetBalance")
    assert notices.take(1_001 + GATHER_US - 1) == []
    found = notices.take(1_001 + GATHER_US)
    refused = [one for one in found if one.kind is NoticeKind.REFUSED]
    assert len(refused) == MOST + 1
    assert sum(one.count for one in refused) == 10_000
    assert (refused[-1].method, refused[-1].count) == ("", 10_000 - MOST)
    assert (refused[-1].first_us, refused[-1].last_us) == (1_000 + MOST + 1, 11_000)
    assert [one.subject for one in found if one.kind is NoticeKind.READ] == ["operator:ada"]
    assert notices.take(now[0] + 10 * GATHER_US) == []


def test_who_tries_every_method_without_a_token_is_one_notice() -> None:
    notices = Notices(lambda: 1_000)
    notices.refused("Play")
    notices.refused("Play")
    [one] = notices.take(1_000 + GATHER_US)
    assert (one.method, one.count) == ("Play", 2)
    for number in range(100):
        notices.refused(f"method-{number}")
    [one] = notices.take(1_000 + GATHER_US)
    assert (one.subject, one.method, one.count) == ("", "", 100)


def watchman(tmp_path: Path, started_us: int = 0) -> tuple[Watchman, list[int]]:
    index = SignificantIndex(tmp_path / "index")
    index.started_us = started_us
    monotonic = [5_000]
    return Watchman(Notices(lambda: 0), index, lambda: monotonic[0]), monotonic


def test_a_clock_that_was_set_is_told_by_how_much_either_way(tmp_path: Path) -> None:
    one, monotonic = watchman(tmp_path)
    state = AuditState()
    assert one.poll(state, 100_000_000, True) == []
    monotonic[0] += 50_000
    assert one.poll(state, 100_050_000 + 999_999, True) == [], "it was adjusted"
    (told,) = one.poll(state, 105_000_000, True)
    assert isinstance(told, significant.NoteEvents)
    assert (told.kind, told.step_us) == (significant.NOTED_KIND_CLOCK_STEPPED, 3_950_001)
    assert one.poll(state, 105_000_000, True) == []
    (told,) = one.poll(state, 100_000_000, True)
    assert isinstance(told, significant.NoteEvents)
    assert told.step_us == -5_000_000


@pytest.mark.parametrize(
    ("before_us", "told"), [(0, 0), (10**15, 1), (10**15 + 1, 0), (10**15 - 5, 1)]
)
def test_a_start_after_a_stop_tells_how_long_it_was_at_most(
    tmp_path: Path, before_us: int, told: int
) -> None:
    now_us = 10**15 + STOOD_STILL_US
    one, _ = watchman(tmp_path, before_us)
    found = one.poll(AuditState(), now_us, False)
    assert len(found) == told
    for each in found:
        assert isinstance(each, significant.NoteEvents)
        assert each.kind == significant.NOTED_KIND_UNAVAILABLE
        assert (each.first_us, each.last_us) == (before_us, now_us)
    assert one.poll(AuditState(), now_us, False) == []


# ---- the index ---------------------------------------------------------------------------------


def entry(sequence: int, *bodies: Any, salt: bytes = b"") -> tuple[int, bytes, list[Event]]:
    events = [
        Event(Position(1, sequence, index), "table", False, body, None, "acme", "operator:sam",
              1_000 * sequence, 1)
        for index, body in enumerate(bodies)
    ]  # fmt: skip
    return sequence, (salt + b"%032d" % sequence)[:32], events


def reading(entries: list[tuple[int, bytes, list[Event]]]) -> Any:
    async def read(after: int) -> AsyncIterator[tuple[int, bytes, list[Event]]]:
        for one in entries:
            if one[0] > after:
                yield one

    return read


VOID = tables.RoundVoided(table_id="t1", round_id="t1-1")
BET = tables.BetsPlaced(table_id="t1", round_id="t1-1")


def places(index: SignificantIndex) -> list[tuple[int, int, int]]:
    return [
        (place.position.sequence, place.position.index, place.time_us)
        for _, place in index.places(0)
    ]


def test_the_index_is_the_same_however_often_it_is_begun_anew(tmp_path: Path) -> None:
    def bodies(number: int) -> list[Any]:
        return [VOID, BET, VOID] if number % 3 == 0 else [BET]

    entries = [entry(number, *bodies(number)) for number in range(1, 31)]
    whole = SignificantIndex(tmp_path / "whole")
    asyncio.run(whole.catch_up(reading(entries)))
    expected = [(n, at, 1_000 * n) for n in range(3, 31, 3) for at in (0, 2)]
    assert places(whole) == expected
    assert whole.started_us == 30_000
    for cut in range(whole.size * RECORD.size + 1):
        path = tmp_path / f"cut-{cut}"
        path.write_bytes((tmp_path / "whole").read_bytes()[:cut])
        one = SignificantIndex(path)
        asyncio.run(one.catch_up(reading(entries[:20])))
        for each in entries[15:]:
            one.feed(*each)  # What it has is passed over.
        assert places(one) == expected, cut
        one.close()


def test_an_index_of_another_or_of_a_longer_log_is_made_anew(tmp_path: Path) -> None:
    for other in (
        [entry(number, VOID, salt=b"other") for number in range(1, 9)],
        [entry(number, VOID) for number in range(1, 5)],
        [],
    ):
        path = tmp_path / f"index-{len(other)}"
        one = SignificantIndex(path)
        asyncio.run(one.catch_up(reading([entry(number, VOID) for number in range(1, 9)])))
        one.close()
        again = SignificantIndex(path)
        asyncio.run(again.catch_up(reading(other)))
        assert places(again) == [(number, 0, 1_000 * number) for number, *_ in other]
        again.close()


def test_a_long_time_without_anything_is_not_read_again(tmp_path: Path) -> None:
    one = SignificantIndex(tmp_path / "index")
    asyncio.run(one.catch_up(reading([entry(number, BET) for number in range(1, 12_001)])))
    assert places(one) == []
    assert one.size == 2
    asked: list[int] = []

    def read(after: int) -> Any:
        asked.append(after)
        return reading([entry(number, BET) for number in range(1, 12_001)])(after)

    one.close()
    again = SignificantIndex(tmp_path / "index")
    asyncio.run(again.catch_up(read))
    assert asked == [9_999]


def test_every_kind_is_of_some_event_and_every_event_is_one_of_the_log() -> None:
    named = {*SIGNIFICANT.values(), *(
        kind for noted in significant.NotedKind.values()
        if (kind := significance_of(
            significant.EventsNoted(noted=significant.NoteEvents(kind=noted)))) is not None
    )}  # fmt: skip
    assert named == set(audits.Significance.values()) - {0}
    types = event_types()
    for body_type in SIGNIFICANT:
        assert str(body_type.DESCRIPTOR.full_name) in types
    owed = wallet_corrections.CorrectionPosted(receivable_minor=5)
    assert significance_of(owed) == audits.SIGNIFICANCE_MONEY
    assert significance_of(wallet_corrections.CorrectionPosted()) is None
    assert significance_of(wallet.StakeReserved()) is None
    assert log.InputFailed in KERNEL_ANSWERS


def test_the_page_names_every_event_and_kind() -> None:
    page = (Path(__file__).parents[2] / "docs/significant-events.md").read_text()
    for body_type in SIGNIFICANT:
        assert f"`{body_type.DESCRIPTOR.name}`" in page
    for name in audits.Significance.keys():  # noqa: SIM118 - an enum wrapper, no dict
        if name != "SIGNIFICANCE_UNSPECIFIED":
            assert f"| `{name.removeprefix('SIGNIFICANCE_').lower()}` |" in page
