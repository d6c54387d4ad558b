"""The facts that tests of blackjack speak of: table `t1`, its round `t1-1`, shoe `t1-s1`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.table.v1 import bet_pb2, spec_pb2
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.games.catalogue import blackjack
from tests.unit.deciding import Fact, by
from tests.unit.table_facts import R1, S1, T

PLACE: dict[str, Any] = {"table_id": T, "round_id": R1}
PLAY, INSURANCE = bet_pb2.STAGE_PLAY, bet_pb2.STAGE_INSURANCE
ANN, BEN = "ann", "ben"


def seat_hand(seat: int, hand: int = 1) -> rules.Hand.ValueType:
    """The number of a seat's hand."""
    return rules.Hand.ValueType(10 * hand + seat)


D, H = rules.HAND_DEALER, rules.HAND_HOLE


def spec(
    rule_set: rule_set_pb2.RuleSet | None = None,
    *,
    action_ms: int = 0,
    window_ms: int = 0,
    policy: spec_pb2.TimeoutPolicy.ValueType = spec_pb2.TIMEOUT_POLICY_UNSPECIFIED,
) -> spec_pb2.TableSpec:
    """A table of blackjack."""
    rule_set = rule_set or blackjack()
    return spec_pb2.TableSpec(
        table_id=T,
        currency_code="EUR",
        rule_set=rule_set,
        limits=[
            spec_pb2.BetLimit(bet=offer.bet, min_minor=1, max_minor=1_000_000, step_minor=1)
            for offer in rule_set.bets
        ],
        pacing=spec_pb2.Pacing(betting_window_ms=window_ms, pause_ms=1_000, action_ms=action_ms),
        timeout_policy=policy,
    )


def opened(rule_set: rule_set_pb2.RuleSet | None = None) -> table.TableOpened:
    return table.TableOpened(spec=spec(rule_set), revision=1)


def round_opened() -> table.RoundOpened:
    return table.RoundOpened(number=1, shoe_id=S1, round_in_shoe=1, revision=1, **PLACE)


def bet(bet_id: str, kind: str, stake: int, seat: int) -> bet_pb2.Bet:
    return bet_pb2.Bet(bet_id=bet_id, bet=kind, stake_minor=stake, position=str(seat))


def reserved(
    account: str,
    *bets: bet_pb2.Bet,
    stage: bet_pb2.Stage.ValueType = bet_pb2.STAGE_UNSPECIFIED,
    request: str = "r",
) -> Fact:
    """Stakes of an account of partner `acme` are on."""
    return by(
        wallet.StakeReserved(
            request_id=request,
            account_id=account,
            currency_code="EUR",
            bets=bets,
            stage=stage,
            **PLACE,
        )
    )


def sealed(stage: bet_pb2.Stage.ValueType = bet_pb2.STAGE_UNSPECIFIED) -> wallet.StakesSealed:
    return wallet.StakesSealed(stage=stage, **PLACE)


def dealt(first: int, *cards: tuple[str, int]) -> shoe.CardsDealt:
    """(card, hand), from this place in the shoe on; an empty card lies face down."""
    return shoe.CardsDealt(
        shoe_id=S1,
        cards=[
            shoe.DealtCard(index=first + place, card=card, hand=rules.Hand.ValueType(hand))
            for place, (card, hand) in enumerate(cards)
        ],
        **PLACE,
    )


def hole_checked(yes: bool) -> shoe.HoleChecked:
    return shoe.HoleChecked(shoe_id=S1, blackjack=yes, source=shoe.CARD_SOURCE_VIRTUAL, **PLACE)


def drawn(before: int, *hands: int) -> rules.DrawCalled:
    return rules.DrawCalled(
        shoe_id=S1,
        called_before=before,
        hands=[rules.Hand.ValueType(hand) for hand in hands],
        **PLACE,
    )


def hole_called(purpose: rules.HolePurpose.ValueType, up_card: str) -> rules.HoleCalled:
    return rules.HoleCalled(shoe_id=S1, purpose=purpose, up_card=up_card, **PLACE)


def peek(up_card: str) -> rules.HoleCalled:
    return hole_called(rules.HOLE_PURPOSE_PEEK, up_card)


def reveal(up_card: str) -> rules.HoleCalled:
    return hole_called(rules.HOLE_PURPOSE_REVEAL, up_card)


HIT, STAND = rules.ACTION_HIT, rules.ACTION_STAND
DOUBLE, SPLIT = rules.ACTION_DOUBLE, rules.ACTION_SPLIT
INSURE, DECLINE = rules.ACTION_INSURE, rules.ACTION_DECLINE_INSURANCE


def turn(
    number: int,
    seat: int,
    actions: Sequence[rules.Action.ValueType] = (HIT, STAND),
    *,
    hand: int = 1,
    stake: int = 0,
    advice: rules.Action.ValueType = STAND,
) -> rules.ActionCalled:
    """`stake`: of a double at most, and of a split, where they are allowed."""
    return rules.ActionCalled(
        turn=number,
        seat=seat,
        hand=hand,
        actions=actions,
        max_double_minor=stake if DOUBLE in actions else 0,
        split_minor=stake if SPLIT in actions else 0,
        advice=advice,
        **PLACE,
    )


def offered(number: int, *seats: int, stake: int = 50) -> rules.InsuranceOffered:
    """`stake`: of each insurance."""
    return rules.InsuranceOffered(
        seats=seats, turn=number, stakes_minor=[stake] * len(seats), **PLACE
    )


def taken(
    number: int,
    seat: int,
    action: rules.Action.ValueType,
    *,
    hand: int = 1,
    account: str = ANN,
    request: str = "act",
    extra: bet_pb2.Bet | None = None,
    source: table.Source.ValueType = table.SOURCE_UNSPECIFIED,
) -> table.ActionTaken:
    return table.ActionTaken(
        request_id="" if source else request,
        account_id=account,
        partner_id="acme",
        seat=seat,
        hand=hand,
        turn=number,
        action=action,
        extra=extra,
        currency_code="EUR" if extra else "",
        source=source,
        **PLACE,
    )


def side_bet(seat: int, kind: str, line: str) -> rules.SideBetDecided:
    return rules.SideBetDecided(seat=seat, bet=kind, line=line, **PLACE)


def resolved(dealer: str, *seats: tuple[int, Sequence[rules.BlackjackHand]]) -> rules.RoundResolved:
    return rules.RoundResolved(result=result(dealer, *seats), **PLACE)


def result(dealer: str, *seats: tuple[int, Sequence[rules.BlackjackHand]]) -> rules.Result:
    return rules.Result(
        blackjack=rules.BlackjackResult(
            seats=[rules.BlackjackSeat(seat=seat, hands=hands) for seat, hands in seats],
            dealer_cards=dealer.split(),
        )
    )


def hand(text: str, *, split: bool = False, doubled: bool = False) -> rules.BlackjackHand:
    return rules.BlackjackHand(cards=text.split(), split=split, doubled=doubled)
