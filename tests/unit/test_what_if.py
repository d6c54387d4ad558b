"""`sabot what-if`: without a change a round comes to what it came to; with one, to what the games'
rules say, and all differences sum to zero with the house."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from sabot.log.v1 import entry_pb2
from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import events_pb2 as tables
from sabot.table.v1 import spec_pb2
from sabot.wallet.v1 import events_pb2 as wallets
from services.cli.cell_states import pending_answers
from services.cli.cores import CORES
from services.cli.demo_games import every_table
from services.cli.known_draws import CardUnknown
from services.cli.outcome import difference_lines
from services.cli.playthrough import RoundUnknown
from services.cli.rule_change import RulesRefused, changed_spec
from services.cli.what_if import Change, WhatIf, WhatIfRefused, what_if
from services.events import event_types
from services.kernel.event import Event, Position
from services.kernel.memory_log import MemoryLog, MemoryStore
from services.kernel.reader import LogReader
from services.kernel.recovery import entries_until
from services.kernel.replica import Pending, Replica
from services.simulator.virtual_time import run_virtual
from tests.fleet.small_cell import SmallCell, memory_cell, spec
from tests.playthroughs.test_blackjack import spec as seats

ROUNDS = ("t1-1", "t1-2", "seats-1", "roulette-1", "sicbo-1", "clock-1", "clock-2", "t1-3")


class Past(NamedTuple):
    store: MemoryStore
    events: list[Event]


def demo_spec(game: str, table_id: str) -> spec_pb2.TableSpec:
    """A table of the demonstration whose betting an operator closes."""
    found = next(
        one.spec() for one in every_table() if one.spec().rule_set.WhichOneof("options") == game
        or (game in one.rule_set.rule_set_id)
    )  # fmt: skip
    found.table_id = table_id
    found.pacing.betting_window_ms = 0
    return found


@pytest.fixture(scope="module")
def past() -> Past:
    """Rounds of four games, one of them by the clock, whose events lie between one another."""

    async def main() -> Past:
        async with memory_cell() as (cell, store):
            for account in ("ann", "ben"):
                await cell.open_account(account, 1_000_000)
            await cell.open_account("ann", 1_000_000, partner="other")
            await cell.open_table(spec("t1"))
            await cell.open_table(spec("clock", window_ms=400, pause_ms=200))
            await cell.bet("clock-1", "ben", ("player", 200))
            await cell.open_table(demo_spec("roulette", "roulette"))
            await cell.open_table(demo_spec("sicbo", "sicbo"))
            await cell.open_table(seats("seats"))
            for _ in range(2):
                one = await cell.open_round("t1")
                await cell.bet(one, "ann", ("player", 500))
                await cell.bet(one, "ben", ("banker", 400), ("tie", 100))
                await cell.bet(one, "ann", ("tie", 300), partner="other")
                await cell.close_betting(one)
            seated, wheel, cage = (
                await cell.open_round("seats"),
                await cell.open_round("roulette"),
                await cell.open_round("sicbo"),
            )
            await cell.bet_at(seated, "ann", ("main", 1, 1_000))
            await cell.bet_at(seated, "ben", ("main", 3, 700))
            await cell.bet_at(wheel, "ann", ("straight", 17, 200))
            await cell.bet(wheel, "ben", ("red", 300))
            await cell.bet(cage, "ann", ("small", 200))
            await cell.close_betting(wheel)
            await cell.close_betting(cage)
            await cell.close_betting(seated)
            one = await cell.open_round("t1")
            await cell.bet(one, "ann", ("player", 1_000))
            await cell.order(
                tables.VoidRound(
                    table_id="t1", round_id=one, reason=tables.ROUND_REASON_DEALER_ERROR
                )
            )
        log = MemoryLog(store)
        last = (await log.info(wait_s=1.0)).last_sequence
        events: list[Event] = []
        async for some in entries_until(log, LogReader(log.cell, event_types()), last):
            events += [event for entry in some for event in entry.events]
        return Past(store, events)

    return run_virtual(main())


def asked(past: Past, round_id: str, change: Change) -> WhatIf:
    async def main() -> WhatIf:
        return await what_if(MemoryLog(past.store), round_id, change)

    found = run_virtual(main())
    sums: dict[str, int] = {}
    for one in found.differences:
        sums[one.key[2]] = sums.get(one.key[2], 0) + one.minor
    assert not any(sums.values())
    told = difference_lines(found.differences)
    assert told[len(found.differences) + 1 :] == [f"sum {currency}: 0" for currency in sums]
    return found


def would_be(found: WhatIf) -> dict[str, int]:
    """What each account, or a partner's house, would have won."""
    return {"/".join(one.key[:2]): one.would_be.net_minor for one in found.differences}


def dealt(past: Past, round_id: str) -> dict[int, list[int]]:
    """The indexes of the cards that a round got, by hand, in order."""
    found: dict[int, list[int]] = {}
    for event in past.events:
        if isinstance(event.body, shoes.CardsDealt) and event.body.round_id == round_id:
            for card in event.body.cards:
                found.setdefault(card.hand, []).append(card.index)
    return found


def hands(past: Past, round_id: str, player: str, banker: str) -> dict[int, str]:
    """A change of the first cards of both hands of baccarat."""
    found = dealt(past, round_id)
    places = found[rules.HAND_PLAYER][:2] + found[rules.HAND_BANKER][:2]
    return dict(zip(places, (*player.split(), *banker.split()), strict=True))


def by_account(found: WhatIf) -> dict[str, int]:
    return {"/".join(one.key[:2]): one.minor for one in found.differences}


@pytest.mark.parametrize("round_id", ROUNDS)
def test_without_a_change_nothing_differs(past: Past, round_id: str) -> None:
    found = asked(past, round_id, Change())
    assert found.would_be == found.recorded
    assert not any(by_account(found).values())
    assert found.notes == []


# ---- other cards, numbers, dice ----------------------------------------------------------------


def test_other_cards_pay_as_the_game_says(past: Past) -> None:
    found = asked(past, "t1-1", Change(cards=hands(past, "t1-1", "9S KS", "2S 3S")))
    assert "winner" not in found.would_be.result
    assert found.would_be.result.endswith(": player")
    assert found.would_be.end == "paid"
    assert would_be(found) == {
        "acme/ann": 500, "acme/ben": -500, "other/ann": -300, "acme/": 0, "other/": 300,
    }  # fmt: skip
    for one in found.differences:
        assert one.minor == one.would_be.net_minor - one.recorded.net_minor


def test_a_card_that_nobody_has_seen_must_be_named(past: Past) -> None:
    """Two hands of four draw a third card each."""
    cards = hands(past, "t1-2", "2S 2H", "2C 2D")
    known = sum(len(places) for places in dealt(past, "t1-2").values())
    assert known < 6
    with pytest.raises(
        CardUnknown, match=r"card #\d+ of shoe t1-s1 is called, .* name it with"
    ) as told:
        asked(past, "t1-2", Change(cards=cards))
    index = int(str(told.value).split("#")[1].split()[0])
    more = {index: "5S", index + 1: "KS"}
    found = asked(past, "t1-2", Change(cards={**cards, **more}))
    assert found.would_be.result.endswith(("player", "banker"))
    assert found.would_be.end == "paid"


def test_a_seat_of_blackjack_with_other_cards(past: Past) -> None:
    places = dealt(past, "seats-1")
    seat, dealer = places[rules.HAND_SEAT_1], places[rules.HAND_DEALER]
    cards = {seat[0]: "AS", seat[1]: "KS", dealer[0]: "6H", 6: "TH", 7: "TC"}
    found = asked(past, "seats-1", Change(cards=cards))
    assert would_be(found)["acme/ann"] == 1_500
    assert found.would_be.end == "paid"


def test_another_number_and_other_dice(past: Past) -> None:
    found = asked(past, "roulette-1", Change(number=17))
    assert found.would_be.result == "number 17, black"
    assert would_be(found) == {"acme/ann": 7_000, "acme/ben": -300, "acme/": -6_700}
    found = asked(past, "sicbo-1", Change(dice=(1, 2, 3)))
    assert found.would_be.result == "dice 1 2 3 = 6"
    assert would_be(found) == {"acme/ann": 200, "acme/": -200}
    assert found.correction == (
        "sabot correct propose sicbo-1 --sicbo 1,2,3 --reason misread --reference TEXT"
    )
    assert would_be(asked(past, "sicbo-1", Change(dice=(1, 1, 1)))) == {
        "acme/ann": -200, "acme/": 200,
    }  # fmt: skip


# ---- another close, other rules ----------------------------------------------------------------


def test_bets_behind_another_close_are_not_on(past: Past) -> None:
    reserved = [
        event
        for event in past.events
        if isinstance(event.body, wallets.StakeReserved) and event.body.round_id == "t1-1"
    ]
    found = asked(past, "t1-1", Change(closing=reserved[0].position))
    stakes = {one.key[:2]: one.would_be.stake_minor for one in found.differences if one.key[1]}
    assert stakes == {("acme", "ann"): 500, ("acme", "ben"): 0, ("other", "ann"): 0}
    assert by_account(found)["acme/ann"] == 0
    assert found.would_be.result == found.recorded.result


def test_other_rules_pay_otherwise(past: Past) -> None:
    tie = hands(past, "t1-1", "9S KS", "9H KH")
    usual = asked(past, "t1-1", Change(cards=tie))
    assert would_be(usual)["other/ann"] == 300 * 8
    change = Change(cards=tie, spec=lambda one: changed_spec(one, "baccarat", ["tie_pays=9"]))
    found = asked(past, "t1-1", change)
    assert would_be(found)["other/ann"] == 300 * 9
    assert would_be(found)["acme/ben"] == 100 * 9
    by_the_clock = Change(spec=lambda one: changed_spec(one, "baccarat", []))
    assert not any(by_account(asked(past, "clock-1", by_the_clock)).values())


# ---- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("round_id", "change", "words"),
    [
        ("t1-1", Change(number=5), "no wheel was spun"),
        ("t1-1", Change(dice=(1, 2, 3)), "no dice were rolled"),
        ("roulette-1", Change(cards={1: "AS"}), "not dealt from a shoe"),
        ("t1-2", Change(cards={0: "AS"}), "card #0 left the shoe before round t1-2"),
        ("t1-1", Change(closing=Position(1, 1, 0)), "betting can close behind"),
        ("t1-1", Change(closing=Position(1, 999_999, 0)), "betting can close behind"),
    ],
)
def test_what_cannot_be_is_refused(past: Past, round_id: str, change: Change, words: str) -> None:
    with pytest.raises(WhatIfRefused, match=words):
        asked(past, round_id, change)


def test_unknown_rounds_and_cards_are_refused(past: Past) -> None:
    with pytest.raises(RoundUnknown):
        asked(past, "t1-99", Change())
    with pytest.raises(CardUnknown, match="has 416 cards, no #500"):
        asked(past, "t1-1", Change(cards={500: "AS"}))


@pytest.mark.parametrize(
    ("rule_set_id", "options", "words"),
    [
        ("poker", [], "no rule set 'poker'"),
        ("baccarat", ["tie_pays"], "is no option"),
        ("baccarat", ["tie_pays=x"], "are no odds"),
        ("baccarat", ["tie_pays=0"], "are no odds"),
        ("baccarat", ["banker_pays=2"], "banker pays"),
        ("baccarat", ["rounding=up"], "rounding is one of down, half_even, half_up"),
        ("baccarat", ["colour=red"], "has no option 'colour'; .*tie_pays"),
        ("baccarat", ["decks=x"], "decks is a number"),
        ("baccarat", ["decks=99"], "decks"),
        ("baccarat", ["hash=00"], "hash cannot be chosen"),
    ],
)
def test_rules_that_no_table_has_are_refused(
    rule_set_id: str, options: list[str], words: str
) -> None:
    with pytest.raises(RulesRefused, match=words):
        changed_spec(spec("t1"), rule_set_id, options)


def test_options_of_a_game_are_chosen_by_name() -> None:
    wheel = demo_spec("roulette", "r")
    changed = changed_spec(wheel, wheel.rule_set.rule_set_id, ["la_partage=yes"])
    assert changed.rule_set.roulette.la_partage
    table = seats("s")
    changed = changed_spec(table, table.rule_set.rule_set_id, ["peek=both", "rounding=down"])
    assert (changed.rule_set.blackjack.peek, table.rule_set.blackjack.peek) == (2, 1)


# ---- from the floor ----------------------------------------------------------------------------


async def spun_on_the_floor(cell: SmallCell, round_id: str, account: str) -> None:
    """A round of roulette whose wheel stands on the floor."""
    await cell.bet_at(round_id, account, ("straight", 17, 200))
    await cell.order(
        tables.CloseBetting(table_id="f1", round_id=round_id, source=tables.SOURCE_OPERATOR)
    )
    wheel = cell.process.state("shoe").tables["f1"]
    await cell.until(lambda: wheel.toss is not None, "the wheel is to be spun")
    spin = shoes.RecordSpin(
        table_id="f1",
        round_id=round_id,
        attempt=1,
        number=5,
        turns=4,
        direction=shoes.SPIN_DIRECTION_AGAINST,
        source=shoes.CARD_SOURCE_DEVICE,
        device="wheel-7",
    )
    told = frozenset({shoes.WheelSpun, shoes.SpinInvalidated, floor.FloorRejected})

    async def spins() -> None:
        await cell.submit("shoe", spin, told, "operator:wheel-7")

    await cell.over(round_id, spins)


def test_another_number_on_the_floor() -> None:
    async def main() -> MemoryStore:
        async with memory_cell() as (cell, store):
            await cell.open_account("ann", 100_000)
            of = demo_spec("roulette", "f1")
            of.origin = spec_pb2.OUTCOME_ORIGIN_FLOOR
            await cell.order(tables.OpenTable(spec=of), "operator:super1")
            await spun_on_the_floor(cell, await cell.open_round("f1"), "ann")
        return store

    past = Past(run_virtual(main()), [])
    same = asked(past, "f1-1", Change())
    assert same.recorded == same.would_be
    assert same.recorded.result == "number 5, red"
    other = asked(past, "f1-1", Change(number=17))
    assert would_be(other) == {"acme/ann": 7_000, "acme/": -7_000}


def test_answers_on_their_way_go_by_the_behaviour_in_force() -> None:
    core = next(one for one in CORES if one.service == "table")
    replica = Replica(core, writer="states")
    body = tables.RoundResumed(table_id="t1", round_id="t1-1")
    proto = entry_pb2.Event(
        type=str(body.DESCRIPTOR.full_name),
        body=body.SerializeToString(),
        cause=entry_pb2.Position(segment=1, sequence=7),
    )
    replica.state.pending.append(Pending(proto, b""))
    ((answer, unfinished),) = pending_answers([replica], 2)
    assert (answer.behaviour, answer.cause, answer.body) == (2, Position(1, 7, 0), body)
    assert not unfinished
