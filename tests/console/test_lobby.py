"""Signing in, the lobby and a table, in a browser."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest
from playwright.sync_api import expect

from tests.console.conftest import TABLES, Demo, Visit

pytestmark = pytest.mark.timeout(300)

TITLES = {"en": "Tables", "fr": "Tables"}
STATES = {"en": "takes bets", "fr": "prend les mises"}


def test_nobody_comes_in_without_a_password(visit: Visit) -> None:
    with visit() as nobody:
        nobody.expected.append("status of 401")
        nobody.open("/tables/demo-1")
        page = nobody.page
        expect(page).to_have_url(re.compile(r"/sign-in\?next=/tables/demo-1$"))
        nobody.check()
        nobody.shot("sign-in")
        page.fill("input[name=name]", "sam")
        page.fill("input[name=password]", "wrong")
        page.click("button.main")
        expect(page.get_by_role("alert")).to_have_text("Name or password is wrong.")
        page.fill("input[name=password]", nobody.demo.passwords["sam"])
        page.click("button.main")
        expect(page).to_have_url(re.compile("/tables/demo-1$"))


@pytest.mark.parametrize("language", ["en", "fr"])
def test_the_lobby_shows_every_table_and_moves(visit: Visit, language: str) -> None:
    with visit("vera", language=language) as vera:
        page = vera.page
        expect(page).to_have_title(f"{TITLES[language]} · Sabot")
        expect(page.locator("html")).to_have_attribute("lang", language)
        expect(page.locator("tbody tr")).to_have_count(TABLES.count(",") + 1)
        row = page.locator("tr", has=page.get_by_role("link", name="demo-1", exact=True))
        # Rows stream: a round that is seen to take bets is seen to be another one later.
        expect(row.get_by_text(STATES[language])).to_be_visible()
        number = row.locator("td a").inner_text()
        expect(row.locator("td a")).not_to_have_text(number)
        vera.check()
        vera.shot(f"lobby-{language}")


@pytest.mark.parametrize("language", ["en", "fr"])
def test_a_table_shows_cards_shoe_roads_and_money_live(visit: Visit, language: str) -> None:
    with visit("vera", language=language) as vera:
        page = vera.page
        page.get_by_role("link", name="demo-1", exact=True).click()
        expect(page.locator(".hand.player .card").first).to_be_visible()
        expect(page.locator("svg.road").first).to_be_visible()
        expect(page.locator("svg.progress")).to_be_visible()
        expect(page.locator(".bets tbody th").first).to_have_text(re.compile("north|south"))
        vera.check()
        vera.shot(f"table-{language}")
        # A viewer is not led to the dealer's page.
        expect(page.locator("a[href$='/floor']")).to_have_count(0)


def test_it_is_read_on_a_phone_and_by_daylight(visit: Visit) -> None:
    with visit("sam", scheme="light", width=390, height=844) as sam:
        page = sam.page
        expect(page.locator("tbody tr")).to_have_count(TABLES.count(",") + 1)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        sam.check()
        sam.shot("lobby-phone")
        sam.open("/tables/demo-1")
        expect(page.locator(".hand.player .card").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        sam.check()
        sam.shot("table-phone", whole=True)


@pytest.mark.parametrize("path", ["/tables/nowhere", "/tables/%3Cb%3E", "/no-such-page"])
def test_what_is_not_there_is_refused_clearly(visit: Visit, path: str) -> None:
    with visit("ada") as ada:
        ada.expected.append("status of 404")
        ada.open(path)
        expect(ada.page.get_by_role("alert")).to_contain_text("There is no")
        assert "Traceback" not in ada.page.content()
        ada.check()


def test_what_a_browser_keeps_for_others_is_no_way_in(visit: Visit) -> None:
    with visit("sam") as sam:
        headers = {"origin": "http://elsewhere.example", "sec-fetch-site": "cross-site"}
        answer = sam.page.request.post(sam.demo.address + "/sign-out", headers=headers)
        assert answer.status == 403
        answer = sam.page.request.post(
            sam.demo.address + "/sign-out",
            headers={"sec-fetch-site": "same-origin"},
            form={"csrf": "guessed"},
        )
        assert answer.status == 403
        sam.open("/")
        expect(sam.page).to_have_title("Tables · Sabot")


def test_locked_by_hand_it_opens_again_for_the_same_person_only(visit: Visit) -> None:
    with visit("sam", afresh=True) as sam:
        sam.expected.append(r"\[object Event\]")  # its live page ends with the session
        page = sam.page
        page.get_by_role("button", name="Lock").click()
        expect(page).to_have_title("Locked · Sabot")
        sam.check()
        sam.open("/tables/demo-1")
        expect(page).to_have_url(re.compile("/unlock"))
        page.fill("input[name=password]", sam.demo.passwords["sam"])
        page.click("button.main")
        expect(page).to_have_url(re.compile("/tables/demo-1$"))
        page.get_by_role("button", name="Sign out").click()
        expect(page).to_have_url(re.compile("/sign-in"))


def test_left_alone_a_page_locks_itself(visit: Visit, demo: Demo) -> None:
    """With two seconds instead of five minutes, at a console of its own over the same fleet."""
    environment = {
        **os.environ,
        "SABOT_DATA": str(demo.data),
        "SABOT_CONSOLE_FLEET": demo.fleet,
        "SABOT_CONSOLE_PORT": "0",
        "SABOT_CONSOLE_IDLE_S": "2",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "services.console"], env=environment, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())["console"]
        with visit() as sam:
            sam.expected.append(r"\[object Event\]")  # its live page ends with the session
            page = sam.page
            page.goto(f"{address}/sign-in?next=/tables/demo-1")
            page.fill("input[name=name]", "sam")
            page.fill("input[name=password]", demo.passwords["sam"])
            page.click("button.main")
            page.wait_for_url(re.compile(r"/unlock\?next=(/|%2F)tables(/|%2F)demo-1$"))
            page.fill("input[name=password]", demo.passwords["sam"])
            page.click("button.main")
            page.wait_for_url(re.compile("/tables/demo-1$"))
    finally:
        process.terminate()
        process.communicate()
