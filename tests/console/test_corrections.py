"""A round that a patched build paid wrongly, in a browser: the alarm comes up on pages that are
open, the bet is marked in the round's timeline, and two supervisors repair it; and what is refused.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from services.cli.uuid7 import uuid7
from tests.console.conftest import Demo, Visit, Visitor, visiting

pytestmark = pytest.mark.timeout(300)

STOP_S = 20
WRONG = "expected won 360.00 EUR, recorded won 370.00 EUR"
SHOW = {"en": "Show what would change", "fr": "Montrer ce qui changerait"}
DIFFERENCES = {"en": "Differences by account", "fr": "Différences par compte"}


@dataclass
class Planted:
    """A fleet whose build of settlement is wrong until it is mended."""

    process: subprocess.Popen[str]
    demo: Demo
    visit: Visit

    def play(self) -> str:
        """A round that a number wins; its id."""
        round_id: str = self.asked("play")["round"]
        return round_id

    def mend(self) -> None:
        """The right build is back."""
        self.asked("mend")

    def asked(self, line: str) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        return said(self.process)


def said(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, "the fleet ended"
    told: dict[str, Any] = json.loads(line)
    return told


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Planted]:
    data = tmp_path_factory.mktemp("planted") / "data"
    with (data.parent / "lines").open("w") as lines:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.console.planted_fleet", data],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=lines,
            text=True,
            start_new_session=True,
        )
    try:
        told = said(process)
        demo = Demo(
            told["console"],
            told["fleet"],
            "",
            data,
            json.loads((data / "console_passwords.json").read_text()),
            json.loads((data / "tokens.json").read_text()),
        )
        yield Planted(process, demo, visiting(browser, demo, {}))
    finally:
        assert process.stdin is not None
        process.stdin.close()  # which ends it in order
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()


def dry_run(page: Page, language: str = "en") -> None:
    page.get_by_role("button", name=SHOW[language]).click()
    expect(page.locator("#h-differences")).to_have_text(DIFFERENCES[language])


def propose(page: Page, reference: str, reason: str = "") -> str:
    """What the dry run has shown; the correction's id."""
    if reason:
        page.locator("select[name=reason]").select_option(reason)
    page.get_by_label("Reference").fill(reference)
    page.get_by_role("button", name="Propose").click()
    link = page.locator("#proposed .done a")
    expect(link).to_have_text(re.compile(r"correction-\d+"))
    return link.inner_text()


def approve_again(one: Visitor, correction_id: str) -> tuple[int, str]:
    """A form of that approval, sent by hand: its status, and what the page says."""
    token = json.loads(one.page.locator("body").get_attribute("hx-headers") or "{}")
    answer = one.page.request.post(
        f"{one.demo.address}/corrections/approve",
        headers={**token, "hx-request": "true", "sec-fetch-site": "same-origin"},
        form={"correction_id": correction_id, "request_id": uuid7()},
    )
    return answer.status, answer.text()


def test_a_wrong_payout_comes_up_live_is_corrected_by_two_people_and_is_over(
    planted: Planted,
) -> None:
    visit = planted.visit
    with visit("vera") as vera, visit("sam") as sam, visit("rosa") as rosa:
        rosa.expected.append("status of 40")
        sam.expected.append("status of 40")
        round_id = comes_up_live(planted, vera)
        leads_to_the_bet(sam, round_id)
        first = dry_run_and_proposal(sam)
        another_person_approves(sam, rosa, first)
        expect(vera.page.locator("#contests [role=alert]")).to_have_count(0)
        is_over(sam, vera, round_id)
        nothing_left(sam, round_id)
        stale(sam, rosa, round_id)


def comes_up_live(planted: Planted, vera: Visitor) -> str:
    """Where somebody just looks: round, bet, expected and recorded; no account. The round."""
    vera.open("/")
    expect(vera.page.locator(".lobby tbody")).to_contain_text("floor-wheel")
    expect(vera.page.locator("#contests")).to_be_empty()
    round_id = planted.play()
    planted.mend()
    alarm = vera.page.locator("#contests [role=alert]")
    expect(alarm).to_contain_text(WRONG)
    expect(alarm).to_contain_text(round_id)
    expect(alarm.locator("code")).to_have_text(re.compile(rf"{round_id}\.\d"))
    expect(alarm).not_to_contain_text("ann")
    vera.check()
    vera.shot("contested-lobby-en")
    return round_id


def leads_to_the_bet(sam: Visitor, round_id: str) -> None:
    """And where somebody looks for it: it leads to the wrong answer, and that to the correction."""
    page = sam.page
    sam.open("/health-of-fleet")
    expect(page.locator("#contests [role=alert]")).to_contain_text(WRONG)
    sam.check()
    page.locator("#contests").get_by_role("link", name=round_id, exact=True).click()
    row = page.locator(".events tr.contested")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("BetsSettled")
    expect(row.locator(".expected")).to_have_text("won 360.00 EUR")
    expect(row.locator(".recorded")).to_have_text("won 370.00 EUR")
    expect(page.locator(".events")).to_contain_text("SettlementContested")
    sam.check()
    sam.shot("contested-round-en")
    page.get_by_role("link", name=f"Correct {round_id}").click()


def dry_run_and_proposal(sam: Visitor) -> str:
    page = sam.page
    expect(page.get_by_label("The same result, settled again by the rules")).to_be_checked()
    dry_run(page)
    differences = page.locator("#dry-run tbody tr")
    expect(differences).to_have_count(1)
    expect(differences).to_contain_text("ann")
    expect(differences.locator("td.number").first).to_have_text("-10.00")
    sam.check()
    sam.shot("dry-run-en", whole=True)
    return propose(page, "INC-7")


def another_person_approves(sam: Visitor, rosa: Visitor, first: str) -> None:
    """Whoever proposed it cannot; another person can, by the keyboard alone, and once."""
    page = sam.page
    page.locator("#proposed a").click()
    mine = page.locator(f"#{first}")
    expect(mine).to_contain_text("proposed")
    expect(mine).to_contain_text("Another supervisor must approve it")
    expect(mine.get_by_role("button")).to_have_count(0)
    status, told = approve_again(sam, first)
    assert (status, "cannot approve it" in told) == (403, True)
    rosa.open("/corrections")
    theirs = rosa.page.locator(f"#{first}")
    expect(theirs).to_contain_text("operator:sam")
    rosa.check()
    rosa.shot("corrections-en")
    theirs.get_by_role("button", name="Approve").focus()
    rosa.page.keyboard.press("Enter")
    expect(rosa.page.locator("#told .done")).to_contain_text("The correction is approved")
    for one in (rosa.page, page):
        expect(one.locator(f"#{first} .head .tag")).to_have_text("posted")
        expect(one.locator("#contests")).to_be_empty()
    status, told = approve_again(rosa, first)
    assert (status, "is done" in told) == (409, True)


def is_over(sam: Visitor, vera: Visitor, round_id: str) -> None:
    """The bet stays marked as repaired, the account has what it won, and the books balance."""
    page = sam.page
    sam.open(f"/rounds/{round_id}")
    expect(page.locator(".events tr.contested")).to_contain_text("repaired")
    expect(page.locator("#contests .done")).to_be_visible()
    sam.open("/accounts/north/ann")
    expect(page.locator("main")).to_contain_text("1,350.00")
    vera.open("/accounts")
    expect(vera.page.locator("tfoot")).to_contain_text("balanced")


def nothing_left(sam: Visitor, round_id: str) -> None:
    """The same once more changes nothing, and is told so."""
    page = sam.page
    sam.open(f"/corrections/round/{round_id}")
    expect(page.get_by_label("The same result")).to_have_count(0)
    page.get_by_label("Another result").check()
    for typed, told in (
        ("17", "has come to this already"),
        ("37", "This is no result of the game"),
        ("a card", "This is no result of the game"),
    ):
        page.get_by_label("Result, such as").fill(typed)
        page.get_by_role("button", name=SHOW["en"]).click()
        expect(page.locator("#dry-run .refused")).to_contain_text(told)


def stale(sam: Visitor, rosa: Visitor, round_id: str) -> None:
    """Two proposals of one round: once one is posted, the other is not of this round any more."""
    page = sam.page
    page.get_by_label("Result, such as").fill("20")
    dry_run(page)
    second = propose(page, "INC-8", "ROUND_REASON_MISREAD")
    rosa.open(f"/corrections/round/{round_id}")
    rosa.page.get_by_label("Void: every stake goes back").check()
    dry_run(rosa.page)
    third = propose(rosa.page, "INC-9", "ROUND_REASON_DISPUTE")
    rosa.open("/corrections")
    rosa.page.locator(f"#{second}").get_by_role("button", name="Approve").click()
    expect(rosa.page.locator(f"#{second} .head .tag")).to_have_text("posted")
    expect(rosa.page.locator(f"#{third} .head .tag")).to_have_text("stale")
    sam.open("/corrections")
    expect(page.locator(f"#{third} button")).to_have_count(0)
    status, told = approve_again(sam, third)
    assert (status, "corrected since the dry run" in told) == (409, True)
    sam.check()
    sam.shot("corrections-stale-en", whole=True)


def test_in_french_on_a_phone_by_daylight(planted: Planted) -> None:
    round_id = planted.play()  # by the right build
    with planted.visit("sam", language="fr", scheme="light", width=390, height=844) as sam:
        page = sam.page
        for path in ("/corrections", "/health-of-fleet", f"/corrections/round/{round_id}"):
            sam.open(path)
            expect(page.locator("main h1")).to_be_visible()
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
            sam.check()
        page.get_by_label("Annulée").check()
        dry_run(page, "fr")
        expect(page.locator("#dry-run tbody tr")).to_have_count(3)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        sam.check()
        sam.shot("phone-dry-run-fr", whole=True)
        sam.open("/corrections")
        expect(page.locator("main")).to_contain_text("dépassée")
        sam.shot("phone-corrections-fr")


PAGES = (
    ("vera", "/corrections/round/floor-wheel-1", "supervisor, auditor"),
    ("dana", "/corrections/round/floor-wheel-1", "supervisor, auditor"),
    ("sam", "/corrections/round/nowhere-1", "there is no round nowhere-1"),
    ("sam", "/corrections/round/floor-wheel-999999", "there is no round"),
    ("sam", "/corrections?page=zzz", "page token"),
)
SYSTEM: dict[str, str] = {"reason": "ROUND_REASON_SYSTEM"}
ORDERS: tuple[tuple[str, str, dict[str, str], int], ...] = (
    ("vera", "approve", {"correction_id": "correction-1"}, 403),
    ("ada", "approve", {"correction_id": "correction-1"}, 403),
    ("sam", "approve", {"correction_id": "correction-99"}, 404),
    ("sam", "approve", {"correction_id": "<script>"}, 400),
    ("sam", "round/nowhere-1/dry-run", {"what": "void"}, 404),
    ("sam", "round/floor-wheel-1/dry-run", {"what": "again?"}, 400),
    ("sam", "round/floor-wheel-1/propose", SYSTEM, 400),
    (
        "sam",
        "round/floor-wheel-1/propose",
        {**SYSTEM, "reference": "x", "outcome": "zz", "dry_run": "00"},
        400,
    ),
    (
        "sam",
        "round/floor-wheel-1/propose",
        {**SYSTEM, "reference": "x", "outcome": "", "dry_run": ""},
        400,
    ),
    ("dana", "round/floor-wheel-1/propose", {}, 403),
)


@pytest.mark.parametrize("name", ["vera", "dana", "ada", "sam"])
def test_what_is_not_there_and_whoever_may_not_is_refused_clearly(
    planted: Planted, name: str
) -> None:
    with planted.visit(name) as one:
        one.expected.append("status of 40")
        for who, path, told in PAGES:
            if who == name:
                one.open(path)
                expect(one.page.get_by_role("alert")).to_contain_text(told)
                assert "Traceback" not in one.page.content()
        one.open("/corrections")
        for who, path, form, status in ORDERS:
            if who == name:
                assert posted(one, path, form) == (status, True), path


def posted(one: Visitor, path: str, form: dict[str, str]) -> tuple[int, bool]:
    """A form sent by hand: its status, and whether it was refused in words."""
    token = json.loads(one.page.locator("body").get_attribute("hx-headers") or "{}")
    answer = one.page.request.post(
        f"{one.demo.address}/corrections/{path}",
        headers={**token, "hx-request": "true", "sec-fetch-site": "same-origin"},
        form={**form},
    )
    text = answer.text()
    return answer.status, 'class="refused"' in text and "Traceback" not in text
