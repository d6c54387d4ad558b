"""Dealer and supervisor at a table on the floor, each in a browser of their own: a shoe is filled,
rounds are dealt by hand, one is suspended, corrected and resumed, one is voided."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from playwright.sync_api import Page, expect

from sabot.shoe.v1 import floor_events_pb2, floor_service_pb2, floor_service_pb2_grpc
from sabot.table.v1 import operator_service_pb2, operator_service_pb2_grpc, spec_pb2
from services.cli.demo_games import every_table
from services.cli.uuid7 import uuid7
from tests.console.conftest import Demo, Visit, Visitor

pytestmark = pytest.mark.timeout(300)

DECKS = 8
REMARK = "<b>a smear</b> on the lens"
FRENCH = ("Remplir le sabot", "Recevoir le paquet", "Ouvrir la manche suivante", "Superviseur")


def call(demo: Demo, who: str, method: Any, request: Any) -> Any:
    metadata = (("authorization", f"Bearer {demo.tokens[f'operator:{who}']}"),)
    return method(request, metadata=metadata, timeout=10)


@pytest.fixture
def by_hand(demo: Demo, table_id: str) -> Iterator[str]:
    """A table of baccarat on the floor, whose rounds are opened and closed by hand."""
    spec = next(one for one in every_table() if one.table_id == "floor-shoe").spec()
    spec.table_id = table_id
    spec.pacing.CopyFrom(spec_pb2.Pacing())
    with grpc.insecure_channel(demo.fleet) as channel:
        floor = floor_service_pb2_grpc.FloorServiceStub(channel)
        for number in range(1, DECKS):
            pack = floor_service_pb2.RegisterConsumableRequest(
                request_id=uuid7(),
                consumable_id=f"{spec.table_id}-{number}",
                kind=floor_events_pb2.CONSUMABLE_KIND_CARDS,
                decks=1,
            )
            call(demo, "dana", floor.RegisterConsumable, pack)
        orders = operator_service_pb2_grpc.TableOperatorServiceStub(channel)
        opening = operator_service_pb2.OpenTableRequest(request_id=uuid7(), spec=spec)
        call(demo, "sam", orders.OpenTable, opening)
        yield spec.table_id
        closing = operator_service_pb2.CloseTableRequest(request_id=uuid7(), table_id=spec.table_id)
        call(demo, "sam", orders.CloseTable, closing)


def deal(page: Page, *cards: str) -> None:
    """Cards, scanned one after the other: the scanner is a keyboard that ends with Enter."""
    for card in cards:
        field = page.locator("form.typed input[name=card]")
        expect(field).to_be_focused()
        index = page.locator("form.typed input[name=index]").input_value()
        field.press_sequentially(card.lower())
        field.press("Enter")
        expect(page.locator(f"form.typed input[name=index][value='{index}']")).to_have_count(0)


def fill_shoe(page: Page, table_id: str) -> None:
    """A pack is missing: it is received, and the shoe filled; its first card says that ten are
    burned."""
    page.fill("input[name=consumable_id]", f"{table_id}-{DECKS}")
    page.get_by_role("button", name="Receive the pack").click()
    expect(page.locator("#told")).to_contain_text("The pack is received.")
    packs = ", ".join(f"{table_id}-{number}" for number in range(1, DECKS + 1))
    page.fill("input[name=packs]", packs)
    page.get_by_role("button", name="Fill the shoe").click()
    deal(page, "ks")
    page.get_by_role("button", name="10 burned face down").click()


def suspend(page: Page) -> None:
    page.locator("summary", has_text="Suspend the round").click()
    suspending = page.locator("form[data-order=suspend]")
    suspending.locator("select").select_option("ROUND_REASON_MISREAD")
    suspending.get_by_role("button").click()


def correct(sam: Visitor, place: int, shot: str) -> None:
    page = sam.page
    page.locator("summary", has_text="Correct what was misread").click()
    correcting = page.locator("form[data-order=correct-card]")
    correcting.locator("select[name=index]").select_option(str(place))
    correcting.locator("input[name=card]").fill("9c")
    correcting.locator("input[name=remark]").fill(REMARK)
    sam.check()
    sam.shot(shot, whole=True)
    correcting.get_by_role("button", name="Correct the card").click()
    expect(page.locator("#told .done")).to_be_visible()


def void(page: Page) -> None:
    page.locator("summary", has_text="Void the round").click()
    voiding = page.locator("form[data-order=void]")
    voiding.locator("select").select_option("ROUND_REASON_EQUIPMENT")
    voiding.get_by_label("Yes: every stake goes back.").check()
    voiding.get_by_role("button").click()
    expect(page.locator("#told")).to_contain_text("The round is voided.")


@pytest.mark.parametrize("table_id", ["by-hand"])
def test_rounds_are_dealt_by_hand_and_supervised_by_somebody_else(
    visit: Visit, by_hand: str
) -> None:
    with visit("dana") as dana, visit("sam") as sam:
        page, over = dana.page, sam.page
        dana.open(f"/tables/{by_hand}/floor")
        fill_shoe(page, by_hand)
        page.get_by_role("button", name="Open the next round").click()
        page.get_by_role("button", name="No more bets").click()
        # A card by its key, the others by the scanner; the third is misread.
        page.get_by_role("button", name="Seven of hearts").click()
        expect(page.locator(".hand.player .card")).to_have_count(1)
        dana.check()
        dana.shot("dealer")
        deal(page, "5d", "2c")
        expect(page.locator(".hand.player .card")).to_have_count(2)
        place = int(page.locator("form.typed input[name=index]").input_value()) - 1
        suspend(page)
        # The dealer has no supervisor's orders; the supervisor, at another browser, has.
        assert page.locator("form[data-order=resume], form[data-order=void]").count() == 0
        sam.open(f"/tables/{by_hand}/floor")
        correct(sam, place, "supervisor")
        over.locator("form[data-order=resume]").get_by_role("button").click()
        expect(over.locator("#told")).to_contain_text("The round goes on.")
        # 7 and 9 are 6, 5 and 8 are 3: Player stands, Banker draws (rule BAC-7).
        deal(page, "8h", "kd")
        expect(page.locator(".hand.player .total")).to_have_text("6")
        page.get_by_role("button", name="Open the next round").click()
        expect(over.locator(f"form[data-order=void] input[value='{by_hand}-2']")).to_be_attached()
        void(over)
        # What was said is told as it was said, and nothing of it became part of the page.
        sam.open(f"/rounds/{by_hand}-1")
        for told in (REMARK, "operator:dana", "operator:sam"):
            expect(over.locator(".events")).to_contain_text(told)


@pytest.mark.parametrize("table_id", ["by-one-hand"])
def test_one_person_is_not_both_in_a_round(visit: Visit, demo: Demo, by_hand: str) -> None:
    with visit("sam") as sam:
        sam.expected.append("status of 40")
        sam.open(f"/tables/{by_hand}/floor")
        page = sam.page
        fill_shoe(page, by_hand)
        page.get_by_role("button", name="Open the next round").click()
        page.get_by_role("button", name="No more bets").click()
        deal(page, "2s")
        expect(page.get_by_text("You deal in this round: somebody else")).to_be_visible()
        # And not by a form of one's own either.
        round_id = page.locator(".round-line a").inner_text()
        headers = {
            "sec-fetch-site": "same-origin",
            "x-csrf-token": page.evaluate(
                "JSON.parse(document.body.getAttribute('hx-headers'))['x-csrf-token']"
            ),
        }
        form = {
            "request_id": uuid7(),
            "round_id": round_id,
            "reason": "ROUND_REASON_EQUIPMENT",
            "sure": "yes",
        }
        address = f"{demo.address}/tables/{by_hand}/orders"
        answer = page.request.post(f"{address}/void", headers=headers, form=form)
        assert answer.status == 403
        assert "two people" in answer.text()
        answer = page.request.post(f"{address}/no-such-order", headers=headers, form=form)
        assert answer.status == 404
        answer = page.request.post(
            f"{address}/card", headers=headers, form={"card": "ZZ", "index": "1"}
        )
        assert answer.status == 400


@pytest.mark.parametrize("table_id", ["a-la-main"])
def test_the_page_is_french_for_who_reads_french(visit: Visit, by_hand: str) -> None:
    with visit("sam", language="fr") as sam:
        sam.open(f"/tables/{by_hand}/floor")
        for told in FRENCH:
            expect(sam.page.locator("main")).to_contain_text(told, ignore_case=True)
        sam.check()
        sam.shot("dealer-fr")


def test_whoever_may_not_is_refused(visit: Visit, demo: Demo) -> None:
    for name in ("vera", "ada"):
        with visit(name) as one:
            one.expected.append("status of 403")
            one.open("/tables/demo-1/floor")
            expect(one.page.get_by_role("alert")).to_contain_text("dealer, supervisor")


def test_a_drawn_table_has_no_cards_to_enter(visit: Visit) -> None:
    with visit("dana") as dana:
        dana.open("/tables/demo-1/floor")
        expect(dana.page.get_by_text("Outcomes of this table are drawn")).to_be_visible()
        assert dana.page.locator("form[data-order=card]").count() == 0
        dana.check()
