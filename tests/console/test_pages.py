"""The console's other pages in a browser: accounts, stuck money, returns, health, capsules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.console.conftest import Visit

pytestmark = pytest.mark.timeout(300)

WORDS = {
    "en": {
        "accounts": "Accounts",
        "balanced": "balanced",
        "stake": "stake",
        "money": "Stuck money",
        "nothing": "Nothing is stuck",
        "returns": "Returns",
        "verdict": "within|OUTSIDE",  # which, is chance: one bet in a hundred is outside
        "health": "Health",
        "serving": "serving",
        "capsules": "Capsules",
        "check": "Check and open",
        "right": "All of it holds",
        "wrong": "damaged",
    },
    "fr": {
        "accounts": "Comptes",
        "balanced": "équilibré",
        "stake": "enjeu",
        "money": "Argent bloqué",
        "nothing": "Rien n'est bloqué",
        "returns": "Retours",
        "verdict": "dedans|DEHORS",
        "health": "État",
        "serving": "en service",
        "capsules": "Capsules",
        "check": "Vérifier et ouvrir",
        "right": "Tout est juste",
        "wrong": "damaged",
    },
}
LANGUAGES = pytest.mark.parametrize("language", ["en", "fr"])


@LANGUAGES
def test_books_balance_and_an_account_tells_its_journal(visit: Visit, language: str) -> None:
    words = WORDS[language]
    with visit("vera", language=language) as vera:
        page = vera.page
        page.get_by_role("link", name=words["accounts"], exact=True).click()
        expect(page.locator("tfoot")).to_contain_text(words["balanced"])
        expect(page.locator("tfoot")).to_contain_text("0.00 EUR")
        vera.check()
        vera.shot(f"accounts-{language}")
        page.fill("input[name=partner]", "north")
        page.fill("input[name=account]", "north-01")
        page.locator("main form button").first.click()
        expect(page.locator(".events")).to_contain_text(words["stake"])
        expect(page.locator(".chart canvas")).to_be_visible()
        vera.check()
        vera.shot(f"account-{language}")


@LANGUAGES
def test_what_is_stuck_and_what_bets_returned(visit: Visit, language: str) -> None:
    words = WORDS[language]
    with visit("sam", language=language) as sam:
        page = sam.page
        page.get_by_role("link", name=words["money"], exact=True).click()
        expect(page.get_by_text(words["nothing"])).to_be_visible()
        sam.check()
        sam.shot(f"money-{language}")
        page.get_by_role("link", name=words["returns"], exact=True).click()
        page.get_by_role("link", name=re.compile("roulette")).click()
        row = page.locator(".returns tbody tr").first
        expect(row).to_contain_text("97.2973 %")
        expect(row).to_contain_text(re.compile(words["verdict"]))
        samples = row.locator("td").first.inner_text()
        sam.check()
        sam.shot(f"returns-{language}")
        expect(row.locator("td").first).not_to_have_text(samples)  # it counts on


@LANGUAGES
def test_health_tells_services_seals_and_to_auditors_the_audit(visit: Visit, language: str) -> None:
    words = WORDS[language]
    with visit("ada", language=language) as ada:
        page = ada.page
        page.get_by_role("link", name=words["health"], exact=True).click()
        expect(page.get_by_text(words["serving"], exact=True)).to_have_count(7)
        read = page.locator("[data-read]").get_attribute("data-read") or ""
        expect(page.locator(f"[data-read='{read}']")).to_have_count(0)
        expect(page.locator("#pace canvas")).to_be_visible()
        decided = "Answers decided again" if language == "en" else "Réponses redécidées"
        expect(page.get_by_text(decided)).to_be_visible()
        ada.check()
        ada.shot(f"health-{language}")


def test_a_capsule_is_packed_opened_and_a_damaged_one_refused(visit: Visit, tmp_path: Path) -> None:
    words = WORDS["en"]
    with visit("ada") as ada:
        ada.expected += ["status of 422", "status of 404"]
        page = ada.page
        ada.open(f"/rounds/{ada.demo.round_id}")
        with page.expect_download() as coming:
            page.get_by_role("link", name="Pack a capsule").click()
        packed = tmp_path / coming.value.suggested_filename
        coming.value.save_as(packed)
        assert packed.name == f"{ada.demo.round_id}.capsule"
        page.get_by_role("link", name=words["capsules"], exact=True).click()
        ada.check()
        page.set_input_files("input[type=file]", packed)
        page.get_by_role("button", name=words["check"]).click()
        expect(page.locator("#opened .done")).to_contain_text(words["right"])
        expect(page.locator("#opened pre")).to_contain_text("ResultAccepted")
        ada.check()
        ada.shot("capsule", whole=True)
        # One bit more or less: refused by the part that holds it.
        raw = bytearray(packed.read_bytes())
        raw[len(raw) // 2] ^= 1
        damaged = tmp_path / "damaged.capsule"
        damaged.write_bytes(raw)
        for file in (damaged, Path(__file__)):
            page.set_input_files("input[type=file]", file)
            page.get_by_role("button", name=words["check"]).click()
            expect(page.locator("#opened .refused")).to_be_visible()
            assert "Traceback" not in page.content()
        ada.open("/capsules/of/nowhere-1")
        expect(page.get_by_role("alert")).to_contain_text("there is no round nowhere-1")


def test_a_partners_capsule_holds_nothing_of_others(visit: Visit) -> None:
    with visit("ada") as ada:
        answer = ada.page.request.get(
            f"{ada.demo.address}/capsules/of/{ada.demo.round_id}", params={"partner": "north"}
        )
        assert answer.status == 200
        body = answer.body()
        assert b"north-01" in body
        assert b"south-" not in body


@pytest.mark.parametrize(
    ("name", "path", "told"),
    [
        ("vera", "/capsules", "supervisor, auditor"),
        ("dana", "/capsules/of/demo-1-1", "supervisor, auditor"),
        ("vera", "/accounts/north/nobody", "has no account nobody"),
        ("vera", "/accounts/north/north-01?from=never", "Give two days"),
        ("vera", "/accounts/north/north-01?from=2026-02-02&to=2026-01-01", "Give two days"),
        ("vera", "/accounts/north/north-01?page=zzz", "page token"),
        ("vera", "/returns?rules=0000", "No table here went by the rules 0000"),
    ],
)
def test_roles_and_ids_that_are_not_there_are_refused_clearly(
    visit: Visit, name: str, path: str, told: str
) -> None:
    with visit(name) as one:
        one.expected.append("status of 40")
        one.open(path)
        expect(one.page.get_by_role("alert")).to_contain_text(told)
        assert "Traceback" not in one.page.content()


def test_pages_are_read_on_a_phone_by_daylight(visit: Visit) -> None:
    with visit("ada", scheme="light", width=390, height=844) as ada:
        for path in (
            f"/rounds/{ada.demo.round_id}",
            "/returns",
            "/health-of-fleet",
            "/accounts/north/north-01",
        ):
            ada.open(path)
            expect(ada.page.locator("main table").first).to_be_visible()
            assert ada.page.evaluate("document.documentElement.scrollWidth") <= 390, path
            ada.check()
            ada.shot(f"phone-{path.split('/')[1]}")
