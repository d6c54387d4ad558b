"""The facts that tests of the floor speak of: table `t1`, whose outcomes are told; packs, shoes,
cards, spins and dice, each told with a request id of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.protobuf.message import Message

from sabot.log.v1 import events_pb2 as log
from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import floor_events_pb2 as orders
from sabot.table.v1 import spec_pb2
from sabot.wallet.v1 import events_pb2 as wallet
from services.games import catalogue
from services.shoe.domain.core import CORE as SHOE
from services.shoe.domain.state import ShoeState
from tests.unit.deciding import START_US, Deciding, Fact, by, request_id

T, S1, S2, R1, R2 = "t1", "t1-s1", "t1-s2", "t1-1", "t1-2"
PACKS = tuple(f"pack-{number}" for number in range(1, 9))
PLAYER, BANKER = rules.HAND_PLAYER, rules.HAND_BANKER
FOUR = (PLAYER, BANKER, PLAYER, BANKER)
DEVICE, MANUAL = shoes.CARD_SOURCE_DEVICE, shoes.CARD_SOURCE_MANUAL
SCANNER = "operator:scanner-1"
SENSOR = "operator:wheel-7"


class Telling:
    """Makes each order another request, unless the test says which it is."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, body: Any, number: int | None = None, actor: str = SCANNER) -> Fact:
        self.count += 1
        body.request_id = request_id(1000 + self.count if number is None else number)
        body.request_hash = str(body).encode()
        return by(body, partner="", actor=actor)


tell = Telling()


def floor_spec(
    rule_set: rule_set_pb2.RuleSet | None = None,
    origin: spec_pb2.OutcomeOrigin.ValueType = spec_pb2.OUTCOME_ORIGIN_FLOOR,
) -> spec_pb2.TableSpec:
    return spec_pb2.TableSpec(
        table_id=T,
        currency_code="EUR",
        rule_set=rule_set or catalogue.baccarat(),
        origin=origin,
        pacing=spec_pb2.Pacing(),
    )


def table_opened(
    rule_set: rule_set_pb2.RuleSet | None = None,
    origin: spec_pb2.OutcomeOrigin.ValueType = spec_pb2.OUTCOME_ORIGIN_FLOOR,
    table_id: str = T,
) -> Fact:
    spec = floor_spec(rule_set, origin)
    spec.table_id = table_id
    return by(table.TableOpened(spec=spec, revision=1), partner="")


# ---- what dealers and devices tell -------------------------------------------------------------


def register(
    consumable_id: str,
    kind: floor.ConsumableKind.ValueType = floor.CONSUMABLE_KIND_CARDS,
    decks: int = 1,
) -> Fact:
    return tell(
        floor.RegisterConsumable(
            consumable_id=consumable_id, kind=kind, decks=decks, remark="lot 7"
        ),
        actor="operator:dana",
    )


def move(
    consumable_id: str,
    movement: floor.Movement.ValueType,
    table_id: str = "",
    number: int | None = None,
) -> Fact:
    return tell(
        floor.MoveConsumable(
            consumable_id=consumable_id, movement=movement, table_id=table_id, reason="as planned"
        ),
        number,
        actor="operator:dana",
    )


def load(number: int = 1, packs: Sequence[str] = PACKS, decks: int = 8, table_id: str = T) -> Fact:
    return tell(
        floor.LoadShoe(table_id=table_id, number=number, decks=decks, packs=packs),
        actor="operator:dana",
    )


def card(
    text: str,
    round_id: str = R1,
    *,
    index: int | None = None,
    source: shoes.CardSource.ValueType = DEVICE,
    shoe_id: str = S1,
    at_us: int = 0,
    number: int | None = None,
    table_id: str = T,
) -> Fact:
    device = "scanner-1" if source == DEVICE else ""
    body = floor.RecordCard(
        table_id=table_id,
        shoe_id=shoe_id,
        round_id=round_id,
        card=text,
        source=source,
        device=device,
        device_time_us=START_US + at_us if at_us else 0,
    )
    if index is not None:
        body.index = index
    return tell(body, number)


def burn(
    face_down: int = 0,
    *cards: str,
    reason: shoes.BurnReason.ValueType = shoes.BURN_REASON_SHOE_START,
    shoe_id: str = S1,
) -> Fact:
    return tell(
        floor.RecordBurn(
            table_id=T,
            shoe_id=shoe_id,
            reason=reason,
            face_down=face_down,
            cards=cards,
            source=MANUAL,
        )
    )


def cut_card(shoe_id: str = S1) -> Fact:
    return tell(floor.RecordCutCard(table_id=T, shoe_id=shoe_id, source=MANUAL))


def spin(
    number: int,
    *,
    attempt: int = 1,
    turns: int = 5,
    direction: shoes.SpinDirection.ValueType = shoes.SPIN_DIRECTION_AGAINST,
    round_id: str = R1,
    at_us: int = 0,
    source: shoes.CardSource.ValueType = DEVICE,
    request: int | None = None,
    table_id: str = T,
) -> Fact:
    body = shoes.RecordSpin(
        table_id=table_id,
        round_id=round_id,
        attempt=attempt,
        number=number,
        turns=turns,
        direction=direction,
        source=source,
        device="wheel-7" if source == DEVICE else "",
        device_time_us=START_US + at_us if at_us else 0,
    )
    return tell(body, request, SENSOR)


def roll(*dice: int, attempt: int = 1, round_id: str = R1, request: int | None = None) -> Fact:
    body = shoes.RecordDice(
        table_id=T, round_id=round_id, attempt=attempt, dice=dice, source=MANUAL
    )
    return tell(body, request, "operator:dana")


def no_spin(attempt: int = 1, round_id: str = R1, table_id: str = T) -> Fact:
    return tell(
        floor.DeclareNoSpin(table_id=table_id, round_id=round_id, attempt=attempt, remark="x"),
        actor="operator:dana",
    )


def remaining(*cards: str, last: bool = True, shoe_id: str = S1, table_id: str = T) -> Fact:
    return tell(
        floor.RecordRemaining(
            table_id=table_id, shoe_id=shoe_id, cards=cards, last=last, source=DEVICE, device="s"
        )
    )


# ---- what comes of it --------------------------------------------------------------------------


def dealt(
    index: int,
    text: str,
    hand: rules.Hand.ValueType,
    round_id: str = R1,
    source: shoes.CardSource.ValueType = DEVICE,
) -> shoes.CardsDealt:
    return shoes.CardsDealt(
        table_id=T,
        shoe_id=S1,
        round_id=round_id,
        cards=[shoes.DealtCard(index=index, card=text, hand=hand)],
        source=source,
        device="scanner-1" if source == DEVICE else "",
    )


def burned(
    first: int,
    *cards: str,
    reason: shoes.BurnReason.ValueType,
    face_down: int = 0,
    source: shoes.CardSource.ValueType = DEVICE,
) -> shoes.CardsBurned:
    return shoes.CardsBurned(
        table_id=T,
        shoe_id=S1,
        opened=[shoes.Card(index=first + more, card=one) for more, one in enumerate(cards)],
        face_down=face_down,
        reason=reason,
        source=source,
        device="scanner-1" if source == DEVICE else "",
    )


def held(index: int, text: str, round_id: str = R1) -> floor.OutcomeHeld:
    return floor.OutcomeHeld(
        table_id=T,
        shoe_id=S1,
        round_id=round_id,
        index=index,
        card=text,
        source=DEVICE,
        device="scanner-1",
    )


def fault(
    what: floor.FloorFault.ValueType,
    told: str,
    *,
    before: str = "",
    happened_us: int = 0,
    round_id: str = R1,
    shoe_id: str = S1,
    source: shoes.CardSource.ValueType = DEVICE,
    device: str = "scanner-1",
) -> floor.FloorFaultFound:
    return floor.FloorFaultFound(
        table_id=T,
        shoe_id=shoe_id,
        round_id=round_id,
        fault=what,
        told=told,
        told_before=before,
        happened_us=happened_us,
        source=source,
        device=device,
    )


def rejected(fact: Fact, refusal: floor.FloorRefusal.ValueType, pack: str = "") -> Message:
    """The refusal of what was told: it names what that named."""
    body: Any = fact.body
    names = set(body.DESCRIPTOR.fields_by_name)
    named = {
        name: getattr(body, name)
        for name in ("table_id", "shoe_id", "round_id", "consumable_id")
        if name in names
    }
    if pack:
        named["consumable_id"] = pack
    return floor.FloorRejected(request_id=body.request_id, refusal=refusal, **named)


def invalidated(reason: shoes.InvalidReason.ValueType, attempt: int = 1) -> shoes.SpinInvalidated:
    return shoes.SpinInvalidated(table_id=T, round_id=R1, attempt=attempt, reason=reason)


def spun(
    number: int, attempt: int = 1, source: shoes.CardSource.ValueType = DEVICE
) -> shoes.WheelSpun:
    return shoes.WheelSpun(
        table_id=T,
        round_id=R1,
        attempt=attempt,
        number=number,
        source=source,
        device="wheel-7" if source == DEVICE else "",
    )


# ---- what other services say -------------------------------------------------------------------


def round_opened(number: int = 1, shoe_id: str = S1) -> table.RoundOpened:
    return table.RoundOpened(
        table_id=T, round_id=f"{T}-{number}", number=number, shoe_id=shoe_id, round_in_shoe=number
    )


def betting_closed(number: int = 1, cut_off_us: int = 0) -> table.BettingClosed:
    at = START_US + cut_off_us if cut_off_us else 0
    return table.BettingClosed(table_id=T, round_id=f"{T}-{number}", cut_off_us=at)


def sealed(number: int = 1) -> wallet.StakesSealed:
    return wallet.StakesSealed(table_id=T, round_id=f"{T}-{number}")


def called(
    *hands: rules.Hand.ValueType, number: int = 1, before: int = 0, shoe_id: str = S1
) -> rules.DrawCalled:
    return rules.DrawCalled(
        table_id=T,
        round_id=f"{T}-{number}",
        shoe_id=shoe_id,
        called_before=before,
        hands=hands or FOUR,
    )


def spin_called(attempt: int = 1) -> rules.SpinCalled:
    return rules.SpinCalled(table_id=T, round_id=R1, attempt=attempt)


def roll_called(attempt: int = 1) -> rules.RollCalled:
    return rules.RollCalled(table_id=T, round_id=R1, attempt=attempt)


def resolved(number: int = 1) -> rules.RoundResolved:
    return rules.RoundResolved(table_id=T, round_id=f"{T}-{number}")


def voided(number: int = 1) -> table.RoundVoided:
    return table.RoundVoided(table_id=T, round_id=f"{T}-{number}")


def closed(number: int = 1) -> table.RoundClosed:
    return table.RoundClosed(table_id=T, round_id=f"{T}-{number}")


def correction(index: int, text: str, request: int = 1) -> orders.CardCorrectionOrdered:
    return orders.CardCorrectionOrdered(
        request_id=request_id(request),
        table_id=T,
        round_id=R1,
        shoe_id=S1,
        index=index,
        card=text,
        reason=table.ROUND_REASON_MISREAD,
    )


def outcome_correction(
    *numbers: int, attempt: int = 1, request: int = 1
) -> orders.OutcomeCorrectionOrdered:
    return orders.OutcomeCorrectionOrdered(
        request_id=request_id(request),
        table_id=T,
        round_id=R1,
        attempt=attempt,
        numbers=numbers,
        reason=table.ROUND_REASON_MISREAD,
    )


def correction_rejected(
    refusal: floor.FloorRefusal.ValueType, request: int = 1
) -> floor.FloorRejected:
    return floor.FloorRejected(
        request_id=request_id(request), table_id=T, round_id=R1, refusal=refusal
    )


# ---- places to begin at ------------------------------------------------------------------------


def packed() -> Deciding[ShoeState]:
    """A baccarat table that awaits its first shoe, and eight packs in the store."""
    log_ = Deciding(SHOE, careful=False).given(table_opened())
    return log_.given(*(register(pack) for pack in PACKS))


def loaded() -> Deciding[ShoeState]:
    """The packs are in the shoe; its first card is awaited."""
    return packed().given(load())


def ready(first: str = "7H") -> Deciding[ShoeState]:
    """A shoe that deals: after a 7, its next card is the ninth."""
    value = {"A": 1, "T": 10, "J": 10, "Q": 10, "K": 10}.get(first[0]) or int(first[0])
    return loaded().given(card(first, ""), burn(value))


def dealing(first: str = "7H") -> Deciding[ShoeState]:
    """A round whose stakes are sealed and whose first four cards are called."""
    return ready(first).given(round_opened(), betting_closed(), sealed(), called())


IGNORED = log.InputIgnored
