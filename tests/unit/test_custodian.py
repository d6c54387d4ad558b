"""The custodian: what it tells, when, and that nobody else can open a shoe."""

from __future__ import annotations

import random
import stat
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from sabot.shoe.v1 import events_pb2 as shoe
from services.games.cards import pack
from services.kernel.event import Position
from services.kernel.key_file import KeyFileUnusable, KeyRing, load_or_create_keys
from services.shoe.custodian import (
    Custodian,
)
from services.shoe.domain.core import CORE
from services.shoe.domain.state import ShoeState
from services.shoe.generator import Generator
from tests.unit.deciding import Deciding
from tests.unit.shoe_facts import (
    S1,
    TABLE_CLOSED,
    called,
    closed,
    round_opened,
    table_opened,
    voided,
)

SECOND_US = 1_000_000
RING = KeyRing({"k1": bytes(range(32)), "k2": bytes(32)}, "k1")


def seeded(seed: int) -> Callable[[int], bytes]:
    return random.Random(seed).randbytes


def custodian(seed: int = 1, cell: str = "c1", keys: KeyRing = RING) -> Custodian:
    return Custodian(cell, keys, Generator(seeded(seed)))


def fresh() -> Deciding[ShoeState]:
    return Deciding(CORE, careful=False).given(table_opened())


def ready(by: Custodian) -> Deciding[ShoeState]:
    """A shoe that this custodian drew, its first card shown."""
    game = fresh()
    game.given(*by.poll(game.state, 0, True)).given(*by.poll(game.state, 0, True))
    return game


def test_from_the_seal_to_the_whole_shoe() -> None:
    keeper = custodian()
    game = fresh()
    [seal] = keeper.poll(game.state, 0, True)
    game.when(seal).then_only(shoe.ShoeOpened)
    [shown] = keeper.poll(game.state, 0, True)
    game.when(shown).then_only(shoe.CardsBurned)
    assert keeper.poll(game.state, 0, True) == []
    game.given(round_opened(1), called(1))
    [four] = keeper.poll(game.state, 0, True)
    game.when(four).then_only(shoe.CardsDealt)
    game.given(closed(1), TABLE_CLOSED)
    [whole] = keeper.poll(game.state, 0, True)
    game.when(whole).then_only(shoe.ShoeRevealed)
    assert isinstance(whole, shoe.RevealShoe)
    assert Counter(one.card for one in whole.cards) == Counter(pack(8))
    assert keeper.poll(game.state, 0, True) == []


def test_what_is_lost_is_told_again_the_same_after_two_seconds() -> None:
    keeper = custodian()
    game = fresh()
    [seal] = keeper.poll(game.state, 0, True)
    assert keeper.poll(game.state, 2 * SECOND_US - 1, True) == []
    assert keeper.poll(game.state, 2 * SECOND_US, True) == [seal]
    assert keeper.poll(game.state, 3 * SECOND_US, True) == []
    assert keeper.poll(game.state, 4 * SECOND_US, True) == [seal]


def test_a_standby_waits_a_second_longer() -> None:
    keeper = custodian()
    game = fresh()
    assert keeper.poll(game.state, 0, False) == []
    assert keeper.poll(game.state, SECOND_US - 1, False) == []
    [seal] = keeper.poll(game.state, SECOND_US, False)
    assert keeper.poll(game.state, 4 * SECOND_US - 1, False) == []
    assert keeper.poll(game.state, 4 * SECOND_US, False) == [seal]
    game.given(seal)
    assert keeper.poll(game.state, 5 * SECOND_US, False) == []
    assert len(keeper.poll(game.state, 6 * SECOND_US, False)) == 1


def test_after_a_restart_another_custodian_goes_on_with_the_sealed_shoe() -> None:
    game = ready(custodian(1))
    game.given(round_opened(1), called(1))
    assert custodian(2).poll(game.state, 0, True) == custodian(1).poll(game.state, 0, True)
    game.when(*custodian(2).poll(game.state, 0, True)).then_only(shoe.CardsDealt)


def test_of_two_custodians_the_first_seal_stands_and_both_open_it() -> None:
    one, two = custodian(1), custodian(2)
    game = fresh()
    [first], [second] = one.poll(game.state, 0, True), two.poll(game.state, 0, True)
    assert first != second
    game.given(first, second)
    [shown], [same] = one.poll(game.state, 0, True), two.poll(game.state, 0, True)
    assert shown == same


def test_a_call_that_moved_on_is_opened_where_it_stands_now() -> None:
    keeper = custodian()
    game = ready(keeper)
    game.given(round_opened(1), called(1))
    [late] = keeper.poll(game.state, 0, True)
    game.given(voided(1), closed(1), round_opened(2), called(2))
    [early] = keeper.poll(game.state, 0, True)
    game.when(late).then_only(shoe.CardsBurned)
    [again] = keeper.poll(game.state, 0, True)
    assert isinstance(early, shoe.OpenCards)
    assert isinstance(again, shoe.OpenCards)
    assert again.cards[0].index == early.cards[0].index + 4
    game.when(again).then_only(shoe.CardsDealt)


def test_no_secret_leaves_before_the_answer_that_asks_is_read_back() -> None:
    keeper = custodian()
    game = fresh()
    asked_at = game.last.position
    assert keeper.poll(game.state, 0, True, answered=asked_at) == []
    [seal] = keeper.poll(game.state, 0, True, answered=after(asked_at))
    game.given(seal)
    sealed_at = game.last.position
    assert keeper.poll(game.state, 0, True, answered=sealed_at) == []
    [shown] = keeper.poll(game.state, 0, True, answered=after(sealed_at))
    game.given(shown, round_opened(1), called(1))
    # A call is another service's answer: it is in the log.
    assert len(keeper.poll(game.state, 0, True, answered=sealed_at)) == 1


def after(position: Position) -> Position:
    return position._replace(sequence=position.sequence + 1)


# ---- seals -------------------------------------------------------------------------------------


def problem(keeper: Custodian, game: Deciding[ShoeState]) -> str:
    game.given(round_opened(1), called(1))
    assert keeper.poll(game.state, 0, True) == []
    return keeper.problems[S1]


def test_a_seal_is_bound_to_its_cell() -> None:
    assert "does not open" in problem(custodian(cell="c2"), ready(custodian()))


def test_a_seal_is_bound_to_its_table_and_shoe() -> None:
    game = ready(custodian())
    game.state.shoes[S1].table_id = "t2"
    assert "does not open" in problem(custodian(), game)


def test_a_changed_seal_does_not_open() -> None:
    game = ready(custodian())
    kept = game.state.shoes[S1]
    kept.sealed_order = kept.sealed_order[:-1] + bytes([kept.sealed_order[-1] ^ 1])
    assert "does not open" in problem(custodian(), game)
    assert "does not open" in problem_of_short(game)


def problem_of_short(game: Deciding[ShoeState]) -> str:
    game.state.shoes[S1].sealed_order = b"short"
    keeper = custodian()
    assert keeper.poll(game.state, 0, True) == []
    return keeper.problems[S1]


def test_a_seal_by_a_key_that_is_not_held() -> None:
    other = KeyRing({"k2": bytes(32)}, "k2")
    assert "k1, not held here" in problem(custodian(keys=other), ready(custodian()))


def test_a_sealed_order_that_is_not_the_committed_one() -> None:
    keeper = custodian()
    game = fresh()
    [seal], [other] = keeper.poll(game.state, 0, True), custodian(2).poll(game.state, 0, True)
    assert isinstance(seal, shoe.SealShoe)
    assert isinstance(other, shoe.SealShoe)
    seal.sealed_order = other.sealed_order
    game.given(seal)
    assert custodian(3).poll(game.state, 0, True) == []
    third = custodian(3)
    third.poll(game.state, 0, True)
    assert "not the committed one" in third.problems[S1]


def test_an_old_key_opens_what_it_sealed() -> None:
    game = ready(custodian())
    game.given(round_opened(1), called(1))
    turned = custodian(keys=KeyRing(RING.keys, "k2"))
    assert len(turned.poll(game.state, 0, True)) == 1
    [seal] = turned.poll(fresh().state, 0, True)
    assert isinstance(seal, shoe.SealShoe)
    assert seal.key_id == "k2"


def test_a_problem_ends_with_its_shoe() -> None:
    game = ready(custodian())
    keeper = custodian(cell="c2")
    problem(keeper, game)
    game.given(closed(1), TABLE_CLOSED)
    game.given(*custodian().poll(game.state, 0, True))
    keeper.poll(game.state, 0, True)
    assert keeper.problems == {}


def test_nothing_sealed_tells_the_order() -> None:
    game = fresh()
    [seal] = custodian().poll(game.state, 0, True)
    assert isinstance(seal, shoe.SealShoe)
    assert len(seal.sealed_order) == 12 + 1 + 32 + 379 + 16
    assert len({seal.commitments[at : at + 32] for at in range(0, 416 * 32, 32)}) == 416
    assert "k1" in repr(RING)
    assert bytes(range(32)).hex() not in repr(RING)


# ---- keys --------------------------------------------------------------------------------------


def test_keys_are_made_once_for_their_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "shoe.json"
    ring = load_or_create_keys(path, seeded(1))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [len(key) for key in ring.keys.values()] == [32]
    again = load_or_create_keys(path, seeded(1))
    assert (again.keys, again.current) == (ring.keys, ring.current)
    assert [one.name for one in path.parent.iterdir()] == ["shoe.json"]


def test_of_two_makers_of_a_key_file_one_wins(tmp_path: Path) -> None:
    path = tmp_path / "shoe.json"
    inner: list[KeyRing] = []

    def draw(size: int) -> bytes:
        if not inner:
            inner.append(load_or_create_keys(path, seeded(2)))
        return bytes(size)

    outer = load_or_create_keys(path, draw)
    assert (outer.keys, outer.current) == (inner[0].keys, inner[0].current)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"current": "a", "keys": {}}',
        '{"current": "a", "keys": {"a": "00"}}',
        '{"current": "a", "keys": {"a": "zz"}}',
        '{"current": "a", "keys": ["a"]}',
    ],
)
def test_a_key_file_that_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "shoe.json"
    path.touch(mode=0o600)
    path.write_text(text)
    with pytest.raises(KeyFileUnusable):
        load_or_create_keys(path, seeded(1))


def test_a_key_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "shoe.json"
    load_or_create_keys(path, seeded(1))
    path.chmod(0o640)
    with pytest.raises(KeyFileUnusable, match="chmod 600"):
        load_or_create_keys(path, seeded(1))
