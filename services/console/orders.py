"""What dealers and supervisors order from a page: each form becomes one call of the fleet's own."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as floor_events
from sabot.shoe.v1 import floor_service_pb2 as floor
from sabot.table.v1 import events_pb2 as tables
from sabot.table.v1 import operator_service_pb2 as operators
from services.console.calls import Calls
from services.console.history import DEALING, SUPERVISING
from services.console.web import Refusal
from services.games.cards import is_card
from services.kernel.tokens import Role

DEALERS = (Role.DEALER, Role.SUPERVISOR)
SUPERVISORS = (Role.SUPERVISOR,)
REASONS = tuple(
    name
    for name in tables.RoundReason.keys()  # noqa: SIM118 - an enum of the protos is no mapping
    if not name.endswith(("_UNSPECIFIED", "_NO_BETS"))
)
"""What a person may give as the reason of an order."""
BURNS = ("BURN_REASON_SHOE_START", "BURN_REASON_DROPPED", "BURN_REASON_PROCEDURE")
MOST_REMARK = 500
_NUMBERS = re.compile(r"\d{1,3}")

Form = Mapping[str, str]
Build = Callable[[str, Form], Message]


@dataclass(frozen=True, slots=True)
class Order:
    """One kind of order."""

    roles: tuple[Role, ...]
    acts_as: str
    """`dealer` or `supervisor` of the round; empty: neither, such as filling a shoe."""
    method: Callable[[Calls], Any]
    build: Build


# ---- what a form says --------------------------------------------------------------------------


def card_of(text: str) -> str:
    """A card as typed or scanned: `TD`, `td`, `10d`. Raises Refusal."""
    card = text.upper().replace("10", "T").strip()
    if not is_card(card):
        raise Refusal(400, "refused.card", card=text[:10])
    return card


def _number(form: Form, name: str, most: int) -> int:
    text = form.get(name, "")
    if _NUMBERS.fullmatch(text) is None or int(text) > most:
        raise Refusal(400, "refused.number", name=name, most=most)
    return int(text)


def _reason(form: Form) -> tables.RoundReason.ValueType:
    name = form.get("reason", "")
    if name not in REASONS:
        raise Refusal(400, "refused.reason")
    return tables.RoundReason.Value(name)


def _remark(form: Form) -> str:
    return form.get("remark", "")[:MOST_REMARK]


def _now() -> Timestamp:
    moment = Timestamp()
    moment.FromNanoseconds(time.time_ns())
    return moment


def _about(table_id: str, form: Form) -> dict[str, Any]:
    return {
        "request_id": form.get("request_id", ""),
        "table_id": table_id,
        "round_id": form.get("round_id", ""),
    }


def _of_shoe(table_id: str, form: Form) -> dict[str, Any]:
    return {
        "request_id": form.get("request_id", ""),
        "table_id": table_id,
        "shoe_id": form.get("shoe_id", ""),
    }


# ---- requests ----------------------------------------------------------------------------------


def _open_round(table_id: str, form: Form) -> Message:
    return operators.OpenRoundRequest(request_id=form.get("request_id", ""), table_id=table_id)


def _close_betting(table_id: str, form: Form) -> Message:
    return operators.CloseBettingRequest(**_about(table_id, form), device_time=_now())


def _suspend(table_id: str, form: Form) -> Message:
    return operators.SuspendRoundRequest(
        **_about(table_id, form), reason=_reason(form), remark=_remark(form)
    )


def _resume(table_id: str, form: Form) -> Message:
    return operators.ResumeRoundRequest(
        **_about(table_id, form), reason=_reason(form), remark=_remark(form)
    )


def _void(table_id: str, form: Form) -> Message:
    if form.get("sure") != "yes":
        raise Refusal(400, "refused.sure")
    return operators.VoidRoundRequest(
        **_about(table_id, form), reason=_reason(form), remark=_remark(form)
    )


def _correct_card(table_id: str, form: Form) -> Message:
    return operators.CorrectCardRequest(
        **_about(table_id, form),
        index=_number(form, "index", 415),
        card=card_of(form.get("card", "")),
        reason=_reason(form),
        remark=_remark(form),
    )


def _correct_outcome(table_id: str, form: Form) -> Message:
    numbers = [int(one) for one in re.findall(r"\d{1,2}", form.get("numbers", ""))]
    if not 1 <= len(numbers) <= 3 or max(numbers) > 36:
        raise Refusal(400, "refused.numbers")
    return operators.CorrectOutcomeRequest(
        **_about(table_id, form),
        attempt=_number(form, "attempt", 999),
        numbers=numbers,
        reason=_reason(form),
        remark=_remark(form),
    )


def _load_shoe(table_id: str, form: Form) -> Message:
    packs = [one for one in re.split(r"[\s,]+", form.get("packs", "")) if one]
    return floor.LoadShoeRequest(
        request_id=form.get("request_id", ""),
        table_id=table_id,
        number=_number(form, "number", 999),
        decks=_number(form, "decks", 8),
        packs=packs,
    )


def _register(table_id: str, form: Form) -> Message:
    del table_id
    return floor.RegisterConsumableRequest(
        request_id=form.get("request_id", ""),
        consumable_id=form.get("consumable_id", ""),
        kind=floor_events.CONSUMABLE_KIND_CARDS,
        decks=_number(form, "decks", 8),
        remark=_remark(form),
    )


def _card(table_id: str, form: Form) -> Message:
    return floor.RecordCardRequest(
        **_of_shoe(table_id, form),
        round_id=form.get("round_id", ""),
        index=_number(form, "index", 415),
        card=card_of(form.get("card", "")),
    )


def _burn(table_id: str, form: Form) -> Message:
    reason = form.get("reason", "")
    if reason not in BURNS:
        raise Refusal(400, "refused.reason")
    return floor.RecordBurnRequest(
        **_of_shoe(table_id, form),
        reason=shoes.BurnReason.Value(reason),
        face_down=_number(form, "face_down", 10),
    )


def _cut_card(table_id: str, form: Form) -> Message:
    return floor.RecordCutCardRequest(**_of_shoe(table_id, form))


def _spin(table_id: str, form: Form) -> Message:
    against = form.get("direction", "against") == "against"
    return floor.RecordSpinRequest(
        **_about(table_id, form),
        attempt=_number(form, "attempt", 999),
        number=_number(form, "number", 36),
        turns=_number(form, "turns", 100),
        direction=shoes.SPIN_DIRECTION_AGAINST if against else shoes.SPIN_DIRECTION_WITH,
    )


def _dice(table_id: str, form: Form) -> Message:
    return floor.RecordDiceRequest(
        **_about(table_id, form),
        attempt=_number(form, "attempt", 999),
        dice=[_number(form, name, 6) for name in ("die_1", "die_2", "die_3")],
    )


def _no_spin(table_id: str, form: Form) -> Message:
    return floor.DeclareNoSpinRequest(
        **_about(table_id, form), attempt=_number(form, "attempt", 999), remark=_remark(form)
    )


def _face_down(table_id: str, form: Form) -> Message:
    return floor.RecordFaceDownRequest(
        **_of_shoe(table_id, form),
        round_id=form.get("round_id", ""),
        index=_number(form, "index", 415),
    )


def _peek(table_id: str, form: Form) -> Message:
    return floor.RecordPeekRequest(
        **_of_shoe(table_id, form),
        round_id=form.get("round_id", ""),
        blackjack=form.get("blackjack") == "yes",
    )


def _remaining(table_id: str, form: Form) -> Message:
    return floor.RecordRemainingRequest(
        **_of_shoe(table_id, form),
        cards=[card_of(one) for one in re.split(r"[\s,]+", form.get("cards", "")) if one],
        last=form.get("last") == "yes",
    )


ORDERS: dict[str, Order] = {
    "open-round": Order(DEALERS, DEALING, lambda to: to.orders.OpenRound, _open_round),
    "close-betting": Order(DEALERS, DEALING, lambda to: to.orders.CloseBetting, _close_betting),
    "suspend": Order(DEALERS, "", lambda to: to.orders.SuspendRound, _suspend),
    "resume": Order(SUPERVISORS, SUPERVISING, lambda to: to.orders.ResumeRound, _resume),
    "void": Order(SUPERVISORS, SUPERVISING, lambda to: to.orders.VoidRound, _void),
    "correct-card": Order(
        SUPERVISORS, SUPERVISING, lambda to: to.orders.CorrectCard, _correct_card
    ),
    "correct-outcome": Order(
        SUPERVISORS, SUPERVISING, lambda to: to.orders.CorrectOutcome, _correct_outcome
    ),
    "load-shoe": Order(DEALERS, "", lambda to: to.floor.LoadShoe, _load_shoe),
    "register": Order(DEALERS, "", lambda to: to.floor.RegisterConsumable, _register),
    "card": Order(DEALERS, DEALING, lambda to: to.floor.RecordCard, _card),
    "face-down": Order(DEALERS, DEALING, lambda to: to.floor.RecordFaceDown, _face_down),
    "peek": Order(DEALERS, DEALING, lambda to: to.floor.RecordPeek, _peek),
    "burn": Order(DEALERS, DEALING, lambda to: to.floor.RecordBurn, _burn),
    "cut-card": Order(DEALERS, DEALING, lambda to: to.floor.RecordCutCard, _cut_card),
    "spin": Order(DEALERS, DEALING, lambda to: to.floor.RecordSpin, _spin),
    "dice": Order(DEALERS, DEALING, lambda to: to.floor.RecordDice, _dice),
    "no-spin": Order(DEALERS, DEALING, lambda to: to.floor.DeclareNoSpin, _no_spin),
    "remaining": Order(DEALERS, "", lambda to: to.floor.RecordRemaining, _remaining),
}
"""By the last part of a form's address."""
