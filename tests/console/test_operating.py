"""Switches, limits, what protects an account, and significant events, in a browser."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from services.cli.uuid7 import uuid7
from tests.console.conftest import Visit, Visitor

pytestmark = pytest.mark.timeout(300)

REASON = "<i>asked</i> by its partner"
ACCOUNT = "/accounts/north/north-09"
"""One of few bets, of which nothing else is asked."""


def post(one: Visitor, path: str, form: dict[str, Any]) -> tuple[int, str]:
    """A form of one's own making, from the page that is open."""
    token = one.page.evaluate(
        "JSON.parse(document.body.getAttribute('hx-headers'))['x-csrf-token']"
    )
    headers = {"sec-fetch-site": "same-origin", "x-csrf-token": token, "hx-request": "true"}
    answer = one.page.request.post(one.demo.address + path, headers=headers, form=form)
    return answer.status, answer.text()


def done(page: Page, text: str) -> None:
    expect(page.locator("#told .done")).to_contain_text(text)


def test_an_account_is_switched_off_and_on_again_with_reasons(visit: Visit) -> None:
    with visit("sam") as sam, visit("vera", language="fr", scheme="light", width=375) as vera:
        page = sam.page
        sam.open("/switches")
        vera.open("/switches")
        form = page.locator("form[data-order='switch-off SWITCH_SCOPE_ACCOUNT']")
        form.locator("input[name=partner]").fill("north")
        form.locator("input[name=account]").fill("north-09")
        form.locator("input[name=reason]").fill(REASON)
        form.locator("input[name=sure]").check()
        form.get_by_role("button").click()
        done(page, "It is switched off.")
        for one in (page, vera.page):
            off = one.locator("section", has_text="north-09").first
            expect(off).to_contain_text(REASON)
            expect(off).to_contain_text("operator:sam")
        sam.check()
        sam.shot("switches", whole=True)
        vera.check()
        vera.shot("switches-phone-fr", whole=True)
        assert vera.page.evaluate("document.documentElement.scrollWidth") <= 375
        assert vera.page.locator("form.order").count() == 0, "who sees may not switch"
        on = page.locator("form[data-order^=switch-on]").first
        on.locator("input[name=reason]").fill("cleared")
        on.get_by_role("button").click()
        done(page, "It is on again.")
        expect(vera.page.locator("main")).to_contain_text("Rien n'est coupé")
        for wrong in (
            {"scope": "SWITCH_SCOPE_GAME", "game": "GAME_UNSPECIFIED"},
            {"scope": "SWITCH_SCOPE_RULE_SET", "rules": "zz"},
            {"scope": "all"},
        ):
            about = {"request_id": uuid7(), "off": "yes", "sure": "yes", "reason": "x"}
            assert post(sam, "/switches/set", about | wrong)[0] == 400
        assert post(vera, "/switches/set", {"scope": "SWITCH_SCOPE_ALL"})[0] == 403


def test_a_limit_and_an_exclusion_are_set_and_seen_as_support_sees_them(visit: Visit) -> None:
    with visit("sam") as sam:
        page = sam.page
        sam.open(ACCOUNT)
        page.get_by_role("link", name="Protection").click()
        expect(page.get_by_text("may play")).to_be_visible()
        form = page.locator("form[data-order=set-limit]")
        form.locator("select[name=kind]").select_option("LIMIT_KIND_LOSS")
        form.locator("select[name=window]").select_option("86400")
        form.locator("input[name=maximum]").fill("1234.50")
        form.locator("input[name=reason]").fill(REASON)
        form.get_by_role("button").click()
        done(page, "The limit is set.")
        form = page.locator("form[data-order=exclude]")
        form.locator("select[name=kind]").select_option("EXCLUSION_KIND_COOL_OFF")
        form.locator("input[name=days]").fill("1")
        form.locator("input[name=reason]").fill(REASON)
        form.get_by_role("button").click()
        done(page, "The account is kept away.")
        sam.open(f"{ACCOUNT}/protection")
        expect(page.locator(".facts")).to_contain_text("break")
        row = page.locator("tr", has_text="losses").first
        expect(row).to_contain_text("1,234.50 EUR")
        expect(row).to_contain_text("1 d")
        sam.check()
        sam.shot("protection", whole=True)
        sam.open("/limits?table=demo-1&partner=north&account=north-09")
        expect(page.locator("main table")).to_contain_text("1,234.50 EUR")
        sam.check()
        sam.shot("limits")
        for wrong, told in (
            ({"kind": "LIMIT_KIND_LOSS", "maximum": "1.234", "window": "86400"}, "digits"),
            ({"kind": "LIMIT_KIND_LOSS", "maximum": "-5", "window": "86400"}, "digits"),
            ({"kind": "LIMIT_KIND_STAKE", "maximum": "5", "window": "0"}, "window"),
            ({"kind": "LIMIT_KIND_ODD"}, "whose"),
        ):
            about = {"request_id": uuid7(), "scope": "SCOPE_ACCOUNT", "scope_id": "north-09"}
            about |= {"partner": "north", "currency": "EUR", "reason": "x"}
            status, text = post(sam, "/limits/set", about | wrong)
            assert (status, told in text) == (400, True), wrong


def test_a_wrong_password_and_a_page_read_are_significant_events(visit: Visit) -> None:
    with visit("ada", language="fr") as ada, visit() as nobody:
        answer = nobody.page.request.post(
            ada.demo.address + "/sign-in",
            headers={"sec-fetch-site": "same-origin"},
            form={"name": "rosa", "password": "guessed", "next": "/"},
        )
        assert answer.status == 401
        ada.open(f"/rounds/{ada.demo.round_id}")
        ada.open("/events")
        page = ada.page
        rows = page.locator(".events tbody tr")
        wrong = rows.filter(has_text="console/sign-in").filter(has_text="operator:rosa")
        expect(wrong.first).to_contain_text("connexion échouée")
        changed = rows.filter(has_text="TableOpened").filter(has_text="demo-1: baccarat v")
        expect(changed.first).to_contain_text("paramètres")
        read = rows.filter(has_text="console/rounds").filter(has_text="operator:ada")
        expect(read.first).to_contain_text("lecture")
        ada.check()
        ada.shot("events-fr")
        page.locator("select[name=kind]").select_option("SIGNIFICANCE_PARAMETERS")
        page.locator(".dates button").click()
        expect(rows.filter(has_text="TableOpened").first).to_be_visible()
        expect(rows.filter(has_text="EventsNoted")).to_have_count(0)


@pytest.mark.parametrize(
    ("name", "path", "told"),
    [
        ("sam", "/events", "auditor"),
        ("ada", "/events?kind=odd", "no such page"),
        ("ada", "/events?from=0000-01-01", "Give two days"),
        ("vera", "/accounts/north/nobody/protection", "has no account nobody"),
        ("vera", "/accounts/NORTH/x/protection", "has no account x"),
        ("vera", "/limits?table=nowhere", "There is no table nowhere"),
        ("vera", "/limits?account=north-01", "has no account north-01"),
    ],
)
def test_what_is_not_there_is_refused(visit: Visit, name: str, path: str, told: str) -> None:
    with visit(name) as one:
        one.expected.append(re.escape("status of 40"))
        one.open(path)
        expect(one.page.get_by_role("alert")).to_contain_text(told)
        assert "Traceback" not in one.page.content()
