"""The pages of docs/rules say what the product pays: their tables against the paytables."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from services.games import baccarat_bets, roulette, sicbo, two_cards
from services.games.bets import Pays

PAGES = Path(__file__).parents[2] / "docs" / "rules"


def rows_of(page: str) -> list[list[str]]:
    """The cells of all tables, the empty ones too."""
    lines = (PAGES / f"{page}.md").read_text().splitlines()
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if "|" in line]


def paid(page: str, column: int) -> dict[str, list[str]]:
    """What the page says of each bet, in its order; a row without an id goes on with the last."""
    found: dict[str, list[str]] = {}
    bet = ""
    for cells in rows_of(page):
        if len(cells) <= column or " to 1" not in cells[column]:
            continue
        bet = cells[2].strip("`") or bet
        found.setdefault(bet, []).append(cells[column].split(",")[0])
    return found


def paytable(pays: dict[str, Pays]) -> dict[str, list[str]]:
    return {
        bet: [
            f"{odds.numerator} to {odds.denominator}"
            for odds in (one.values() if isinstance(one, dict) else [one])
        ]
        for bet, one in pays.items()
    }


@pytest.mark.parametrize(
    ("page", "pays"),
    [
        ("roulette", roulette.PAYS),
        ("dragon_tiger", two_cards.DRAGON_TIGER_PAYS),
        ("football_studio", two_cards.FOOTBALL_STUDIO_PAYS),
    ],
)
def test_a_page_says_what_each_bet_pays(page: str, pays: dict[str, Pays]) -> None:
    column = 5 if page == "roulette" else 4
    assert paid(page, column) == paytable(pays)


@pytest.mark.parametrize(("column", "table"), list(enumerate(sicbo.PAYTABLES, start=5)))
def test_sic_2_the_page_has_both_paytables(column: int, table: str) -> None:
    expected = paytable(sicbo.PAYTABLES[table])
    # On the page totals stand in pairs, and a single's dice in their order.
    assert expected["total"][:7] == expected["total"][:6:-1]
    expected["total"] = expected["total"][:7]
    expected["single"].sort()
    assert paid("sicbo", column) == expected


def test_rou_4_the_page_has_the_parts_of_every_announced_bet() -> None:
    rows = {cells[1].strip("`"): cells[2:] for cells in rows_of("roulette") if len(cells) == 4}
    for bet, parts in roulette.ANNOUNCED.items():
        chips, text = rows[bet]
        assert int(chips) == sum(part.chips for part in parts)
        # Each kind once, in the plural where it has several.
        kinds = list(dict.fromkeys(part.bet for part in parts))
        told: list[str] = []
        for kind in kinds:
            of_kind = [part for part in parts if part.bet == kind]
            double = " (2 chips)" if of_kind[0].chips == 2 else ""
            places = ", ".join(part.position for part in of_kind)
            told.append(f"{kind}{'s' if len(of_kind) > 1 else ''} {places}{double}")
        assert text == "; ".join(told)
    assert rows["neighbours"][0] == "2n + 1"


def test_rou_2_the_page_has_the_wheel_and_the_red_numbers() -> None:
    text = " ".join((PAGES / "roulette.md").read_text().split())
    assert ", ".join(map(str, roulette.WHEEL)) in text
    *red, last = sorted(roulette.RED)
    assert f"Red are {', '.join(map(str, red))} and {last}" in text


def test_rou_1_the_page_counts_the_positions() -> None:
    counts = {
        cells[2].strip("`"): int(cells[4].split(":")[0])
        for cells in rows_of("roulette")
        if len(cells) == 6 and cells[2].startswith("`")
    }
    assert counts == {bet: len(places) for bet, places in roulette.PLACES.items()}


def test_the_page_of_baccarat_names_every_bet_with_what_it_pays_and_its_last_round() -> None:
    told: dict[str, tuple[str, str]] = {}
    for cells in rows_of("baccarat"):
        if len(cells) == 6 and cells[0].startswith("**BAC-"):
            for bet in re.findall(r"`([a-z0-9_]+)`", cells[2]):
                known = "banker_ez" if cells[0] == "**BAC-23**" else bet
                told[known] = (cells[4], cells[5])
    assert told.keys() == baccarat_bets.PAYS.keys()
    for bet, (pays, last) in told.items():
        assert last == str(baccarat_bets.UNTIL_ROUND.get(bet, ""))
        odds = baccarat_bets.PAYS[bet]
        for one in odds.values() if isinstance(odds, dict) else [odds]:
            assert re.search(rf"\b{one.numerator}\b", pays), (bet, one)
            assert one.denominator == 1 or f"{one.numerator} to {one.denominator}" in pays
