"""`sabot conformance`: what it finds, what it refuses to read, and that nothing goes unchecked."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.cli.conformance import RIGHT, USAGE, WRONG, run_conformance
from services.conformance.case_files import BadCase, Fields, Place
from services.conformance.parsing import parsed
from services.conformance.runner import differences_of
from services.games.cards import is_card

HERE = Place("cases.jsonl", 1)
CONFORMANCE = Path(__file__).parents[1] / "conformance"
NATURAL: dict[str, Any] = {
    "id": "X-1",
    "game": "baccarat",
    "mode": "commission",
    "cards": ["9S", "KH", "KD", "2C"],
    "expected_outcome": {"player_total": 9, "banker_total": 2, "winner": "player"},
    "bets": [
        {
            "account": "A",
            "bet": "player",
            "stake": 100,
            "result": "win",
            "profit": 100,
            "return": 200,
        },
        {
            "account": "B",
            "bet": "banker",
            "stake": 50,
            "result": "lose",
            "profit": -50,
            "return": 0,
        },
    ],
    "total_stake": 150,
    "total_return": 200,
    "total_profit": 50,
}
VOIDED: dict[str, Any] = {
    **NATURAL,
    "void": True,
    "bets": [
        {**bet, "result": "void", "profit": 0, "return": bet["stake"]} for bet in NATURAL["bets"]
    ],
    "total_return": 150,
    "total_profit": 0,
}
SPIN: dict[str, Any] = {
    "id": "X-2",
    "game": "roulette",
    "number": 17,
    "expected_outcome": {"number": 17, "colour": "black"},
    "bets": [
        {
            "account": "A",
            "bet": "split",
            "numbers": [20, 17],
            "stake": 10,
            "result": "win",
            "profit": 170,
            "return": 180,
        }
    ],
    "total_stake": 10,
    "total_return": 180,
    "total_profit": 170,
}
BURN: dict[str, Any] = {
    "id": "X-3",
    "game": "baccarat_shoe_start",
    "first_card": "QH",
    "expected_burn": 10,
}
REQUEST: dict[str, Any] = {
    "id": "X-4",
    "game": "baccarat",
    "table": {"limits": {"default": {"min": 10, "max": 100}}, "player_banker": "exclusive"},
    "accepted": [{"account": "A", "bet": "player", "stake": 60}],
    "request": [{"account": "A", "bet": "player", "stake": 41}],
    "expect": "reject",
    "reason": "STAKE_ABOVE_MAX",
}


def found(case: dict[str, Any]) -> list[str]:
    """What differs, without where."""
    return [f"{one.what}: {one.got}" for one in differences_of(parsed(Fields(HERE, case)))]


def changed(case: dict[str, Any], change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    other = copy.deepcopy(case)
    change(other)
    return other


@pytest.mark.parametrize("case", [NATURAL, VOIDED, SPIN, BURN, REQUEST], ids=lambda one: one["id"])
def test_what_is_right_passes(case: dict[str, Any]) -> None:
    assert found(case) == []


# ---- whatever a case expects is checked --------------------------------------------------------


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all that is neither an object nor a list."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, (*path, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from leaves(inner, (*path, index))
    else:
        yield path


OTHER_RESULTS = {"win": "lose", "lose": "win", "void": "push"}


def other(value: Any) -> Any:
    """Another value of its kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if is_card(value):
        return "3C" if value != "3C" else "4C"
    return OTHER_RESULTS.get(value, f"not {value}")


def handed(case_id: str) -> dict[str, Any]:
    """A case of the files by its id."""
    for file in ("rounds.jsonl", "own_cases.jsonl"):
        for line in (CONFORMANCE / file).read_text().splitlines():
            case: dict[str, Any] = json.loads(line)
            if case["id"] == case_id:
                return case
    raise AssertionError(case_id)


OTHERS = [handed(case_id) for case_id in ("R-0613", "R-0568", "O-0040", "O-0072", "O-0080")]
"""Side bets and insurance; a split; an announced bet; an account at two seats; all of it voided."""
EXPECTED = ("result", "profit", "return", "expected_burn", "kind")
CHECKED = [
    (case, path)
    for case in (NATURAL, VOIDED, SPIN, BURN, *OTHERS)
    for path in leaves(case)
    if path[-1] in EXPECTED
    or str(path[-1]).startswith("total")
    or (path[0] == "expected_outcome" and "void" not in case)
    or (path[0] == "expected_seats" and "cards" in path)
]


@pytest.mark.parametrize(
    ("case", "path"), CHECKED, ids=[f"{case['id']}-{path}" for case, path in CHECKED]
)
def test_no_expectation_goes_unchecked(case: dict[str, Any], path: tuple[Any, ...]) -> None:
    def change(one: dict[str, Any]) -> None:
        at: Any = one
        for name in path[:-1]:
            at = at[name]
        at[path[-1]] = other(at[path[-1]])

    assert found(changed(case, change))


def test_a_request_answered_otherwise_is_told() -> None:
    accepted = changed(REQUEST, lambda one: one.update(expect="accept", reason=None))
    assert found(accepted) == ["the request: refused: LIMIT_ABOVE_MAXIMUM"]
    wrong_reason = changed(REQUEST, lambda one: one.update(reason="STAKE_BELOW_MIN"))
    assert found(wrong_reason) == ["the reason: LIMIT_ABOVE_MAXIMUM"]
    fits = changed(REQUEST, lambda one: one["request"][0].update(stake=40))
    assert found(fits) == ["the request: accepted"]


def test_an_unknown_reason_is_content_with_any_refusal() -> None:
    assert found(changed(REQUEST, lambda one: one.update(reason="SOME_WORD"))) == []


def test_the_accepted_bets_must_be_so() -> None:
    [told] = found(changed(REQUEST, lambda one: one["accepted"][0].update(stake=9)))
    assert "what was accepted before is refused: LIMIT_BELOW_MINIMUM" in told


def test_a_refused_bet_is_told() -> None:
    told = found(changed(SPIN, lambda one: one["bets"][0].update(numbers=[1, 36])))
    assert told[0] == "split 1-36 of A: refused: REFUSAL_NOT_ON_LAYOUT"


@pytest.mark.parametrize(
    ("cards", "told"),
    [
        (["9S", "KH", "KD"], "9S KH KD left"),
        (["9S", "KH", "KD", "2C", "3C"], "the round ended with 3C left"),
    ],
)
def test_the_rules_take_exactly_the_cards_of_the_case(cards: list[str], told: str) -> None:
    [difference] = found(changed(NATURAL, lambda one: one.update(cards=cards)))
    assert told in difference


def test_cards_that_no_shoe_holds_are_a_failure() -> None:
    [told] = found(changed(NATURAL, lambda one: one.update(cards=["9S"] * 9)))
    assert "ImpossibleCards: 8 decks hold no further 9S" in told


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"game": "sicbo", "paytable": "reno", "dice": [1, 2, 3]}, "no rule set sicbo_reno"),
        (
            {
                "game": "sicbo",
                "paytable": "macau",
                "dice": [1, 2, 3],
                "paytable_values": {"double": 9},
            },
            "sicbo_macau: double pays 8:1 and cannot pay 9:1",
        ),
    ],
)
def test_what_no_table_offers_is_a_failure(change: dict[str, Any], told: str) -> None:
    case = {name: value for name, value in NATURAL.items() if name not in {"cards", "mode"}}
    case["bets"] = []
    [difference] = found({**case, **change})
    assert "NotOffered: " in difference
    assert told in difference


def test_a_field_that_nobody_knows_is_a_failure() -> None:
    def change(one: dict[str, Any]) -> None:
        one["bets"][1]["colour"] = "red"
        one["weather"] = "fine"

    told = found(changed(NATURAL, change))
    assert [each.split(":")[0] for each in told] == ["weather", "bets[1].colour"]


def test_a_fact_that_nobody_knows_is_a_failure() -> None:
    def change(one: dict[str, Any]) -> None:
        one["expected_outcome"]["dealer"] = "Ann"

    assert found(changed(NATURAL, change)) == ["dealer: nothing: the fact is not known"]


# ---- files -------------------------------------------------------------------------------------


def write(path: Path, *lines: object) -> Path:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text(text + "\n")
    return path


EXPECTED_160 = "expected win +160 on 10, return 180; got win +170 on 10, return 180"


def test_it_closes_with_the_sum_and_says_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = changed(SPIN, lambda one: one["bets"][0].update(profit=160))
    file = write(tmp_path / "a.jsonl", NATURAL, "", wrong)
    assert run_conformance([file]) == WRONG
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        f"{file}:3: X-2: split 20-17 of A: {EXPECTED_160}",
        "1 passed, 1 failed",
    ]
    assert run_conformance([write(tmp_path / "b.jsonl", NATURAL, SPIN)]) == RIGHT
    assert capsys.readouterr().out == "2 passed, 0 failed\n"


def test_the_same_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = changed(BURN, lambda one: one.update(expected_burn=9))
    file = write(tmp_path / "a.jsonl", BURN, wrong)
    assert run_conformance([file], as_json=True) == WRONG
    assert json.loads(capsys.readouterr().out) == {
        "passed": 1,
        "failed": 1,
        "differences": [
            {
                "file": str(file),
                "line": 2,
                "case_id": "X-3",
                "what": "burned cards",
                "expected": "9",
                "got": "10",
            }
        ],
        "line": "1 passed, 1 failed",
    }


def without(case: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in case.items() if key != name}


BAD = [
    ("{", "no JSON: Expecting property name enclosed in double quotes at column 2"),
    ("[1]", "no JSON object"),
    ("[" * 100_000, "no JSON: RecursionError"),
    ({**NATURAL, "game": "craps"}, "game is 'craps'; the games are baccarat, "),
    (without(NATURAL, "game"), "missing field 'game'"),
    (without(NATURAL, "cards"), "missing field 'cards'"),
    (without(NATURAL, "mode"), "missing field 'mode'"),
    (without(NATURAL, "bets"), "missing field 'bets'"),
    (without(NATURAL, "id"), "missing field 'id'"),
    (without(NATURAL, "total_stake"), "missing field 'total_stake'"),
    (without(NATURAL, "expected_outcome"), "missing field 'expected_outcome'"),
    (without(SPIN, "number"), "missing field 'number'"),
    (without(REQUEST, "table"), "missing field 'table'"),
    ({**NATURAL, "cards": ["9S", "1H"]}, "cards holds '1H', which is no card"),
    ({**NATURAL, "cards": "9S"}, "cards is no list"),
    ({**NATURAL, "bets": [7]}, "bets[0] is no object"),
    (
        {**NATURAL, "bets": [without(NATURAL["bets"][0], "stake")]},
        "missing field 'bets[0].stake'",
    ),
    (
        {**NATURAL, "bets": [{**NATURAL["bets"][0], "stake": 1.5}]},
        "bets[0].stake is no whole number",
    ),
    (
        {**NATURAL, "bets": [{**NATURAL["bets"][0], "result": "won"}]},
        "bets[0].result is 'won'; it must be one of win, ",
    ),
    ({**REQUEST, "expect": "maybe"}, "expect is 'maybe'; it must be one of accept, reject"),
    ({**REQUEST, "request": []}, "request asks for nothing"),
    ({**REQUEST, "table": {"limits": {}}}, "missing field 'table.limits.default'"),
]


@pytest.mark.parametrize(("line", "told"), BAD, ids=[told for _, told in BAD])
def test_a_bad_case_is_told_with_its_file_and_line(
    line: object, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "bad.jsonl", NATURAL, line)
    assert run_conformance([file]) == USAGE
    shown = capsys.readouterr()
    assert not shown.out, "nothing is played where something cannot be understood"
    assert shown.err.startswith(f"sabot: {file}:2: {told}")


def test_all_bad_lines_of_all_files_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = write(tmp_path / "1.jsonl", "{", "}"), tmp_path / "2.jsonl"
    empty = write(tmp_path / "3.jsonl", "")
    (tmp_path / "4.jsonl").write_bytes(b"\xff")
    assert run_conformance([one, two, empty, tmp_path / "4.jsonl"]) == USAGE
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(": ", 2)[1] for line in lines] == [
        f"{one}:1",
        f"{one}:2",
        str(two),
        str(empty),
        str(tmp_path / "4.jsonl"),
    ]


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=3),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


@pytest.mark.parametrize("file", ["rounds.jsonl", "restrictions.jsonl"])
@given(data=st.data())
def test_whatever_stands_in_a_case_it_is_understood_or_told(file: str, data: st.DataObject) -> None:
    lines = (CONFORMANCE / file).read_text().splitlines()
    case = json.loads(data.draw(st.sampled_from(lines)))
    path = data.draw(st.sampled_from(list(leaves(case))))
    at: Any = case
    for name in path[:-1]:
        at = at[name]
    if isinstance(at, dict) and data.draw(st.booleans()):
        del at[path[-1]]
    else:
        at[path[-1]] = data.draw(VALUES)
    told = ""
    try:
        parsed(Fields(HERE, case))
    except BadCase as bad:
        told = str(bad)
    assert not told or told.startswith("cases.jsonl:1: ")
