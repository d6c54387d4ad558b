"""A round's timeline in a browser: events and their grounds, the scrubber, proofs, and what is not
there."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Route, expect

from tests.console.conftest import Visit

pytestmark = pytest.mark.timeout(300)

REPLAY = {"en": "REPLAY", "fr": "REJEU"}
SEALED_MS = 90_000
"""A signed head comes half a minute after what it covers, at the latest."""


@pytest.mark.parametrize("language", ["en", "fr"])
def test_a_timeline_shows_grounds_and_the_scrubber_the_table_then(
    visit: Visit, language: str
) -> None:
    with visit("vera", language=language) as vera:
        page = vera.page
        vera.open(f"/rounds/{vera.demo.round_id}")
        rows = page.locator(".events tbody tr")
        names = rows.locator("td b").all_inner_texts()
        for name in ("RoundOpened", "StakeReserved", "CardsDealt", "ResultAccepted", "RoundPaid"):
            assert name in names
        # Position and cause, time, actor; balances before and after.
        paid = rows.filter(has=page.get_by_text("PayoutPosted", exact=True)).first
        expect(paid.locator("th")).to_contain_text(re.compile(r"1/\d+/\d+"))
        expect(paid.locator(".moved")).to_contain_text(re.compile(r"reserved:.* → "))
        picture = page.locator("#picture")
        expect(picture).to_contain_text(REPLAY[language])
        expect(picture.locator(".card").first).to_be_visible()
        vera.check()
        vera.shot(f"round-{language}")
        # To the first event, by the keyboard alone: no card lies there yet.
        page.locator("#scrubber").focus()
        page.keyboard.press("Home")
        expect(picture.locator(".card")).to_have_count(0)
        expect(picture.locator(".bets .empty")).to_be_visible()
        expect(page.locator("tr.now")).to_have_attribute("data-number", "0")
        # And to an event by its row.
        dealt = names.index("CardsDealt")
        rows.nth(dealt).locator("button.at").click()
        expect(picture.locator(".card").first).to_be_visible()
        expect(page.locator("tr.now")).to_have_attribute("data-number", str(dealt))
        vera.shot(f"round-scrubbed-{language}")


def test_the_browser_checks_every_entry_against_the_signed_head(visit: Visit) -> None:
    with visit("ada") as ada:
        page = ada.page
        ada.open(f"/rounds/{ada.demo.round_id}")
        told = page.locator("#proven")

        def checked() -> bool:
            page.locator("#prove").click()
            expect(told).not_to_be_empty()
            return "Checked by this browser" in told.inner_text()

        for _ in range(SEALED_MS // 1000):
            if checked():
                break
            page.wait_for_timeout(1000)
        expect(told).to_contain_text("stand under the signed head")
        marks = page.locator(".proof").all_inner_texts()
        assert marks
        assert "✗" not in marks
        ada.shot("round-proven")

        # One bit of one entry is changed on its way: exactly that entry is named.
        def damaged(route: Route) -> None:
            answer = route.fetch()
            facts = answer.json()
            payload = facts["entries"][2]["payload"]
            swapped = ("B" if payload[8] == "A" else "A") + payload[9:]
            facts["entries"][2]["payload"] = payload[:8] + swapped
            route.fulfill(response=answer, json=facts)

        page.route("**/proofs", damaged)
        page.locator("#prove").click()
        expect(told).to_contain_text(re.compile(r"do not stand under the signed head: \d+\."))
        expect(page.locator(".proof.wrong").first).to_have_text("✗")
        page.unroute("**/proofs")

        def forged(route: Route) -> None:
            answer = route.fetch()
            facts = answer.json()
            facts["seal"]["size"] += 1
            route.fulfill(response=answer, json=facts)

        page.route("**/proofs", forged)
        page.locator("#prove").click()
        expect(told).to_contain_text("signature of the newest head is wrong")


def test_a_round_that_runs_grows_before_ones_eyes(visit: Visit) -> None:
    with visit("vera") as vera:
        page = vera.page
        page.get_by_role("link", name="demo-1", exact=True).click()
        page.locator(".round-line a").click()
        expect(page).to_have_url(re.compile("/rounds/demo-1-"))
        expect(page.locator(".events")).to_contain_text("RoundClosed")
        expect(page.locator("#picture .card").first).to_be_visible()


def test_rounds_are_listed_and_found(visit: Visit) -> None:
    with visit("vera") as vera:
        page = vera.page
        page.get_by_role("link", name="Rounds", exact=True).click()
        found = vera.demo.round_id
        expect(page.locator("tbody th a").first).to_have_text(re.compile("demo-"))
        vera.check()
        vera.shot("rounds")
        page.keyboard.press("/")
        page.keyboard.type(f"{found}\n")
        expect(page).to_have_url(re.compile(f"/rounds/{found}$"))
        page.keyboard.press("/")
        page.keyboard.type("north-01\n")
        expect(page.locator(".events")).to_contain_text("StakeReserved")
        vera.check()
        vera.shot("found")


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/rounds/nowhere-1", "there is no round nowhere-1"),
        ("/rounds/demo-1-1?at=1/999999999/0", "the log ends at entry"),
        ("/rounds/demo-1-1?at=soon", "soon is no position"),
        ("/rounds/demo-1-1?at=1/1/0", "stands before this round"),
        ("/rounds/demo-1-1/at?n=99999", "This round has no event 99999"),
        ("/rounds/demo-1-1/at?n=-1", "This round has no event"),
        ("/find?q=9/9/9", "9/9/9 is no position"),
        ("/find?q=1/999999999", "no entry 999999999"),
        ("/find?q=nobody-knows", "Nothing in the log is called nobody-knows"),
    ],
)
def test_unknown_rounds_and_positions_are_refused_clearly(
    visit: Visit, path: str, told: str
) -> None:
    with visit("vera") as vera:
        vera.expected.append("status of 40")
        vera.open(path)
        expect(vera.page.get_by_role("alert")).to_contain_text(told)
        assert "Traceback" not in vera.page.content()
