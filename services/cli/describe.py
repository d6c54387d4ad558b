"""An event's body in a few words, for one line of a playthrough."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from google.protobuf.message import Message

from sabot.audit.v1 import contest_events_pb2 as contests
from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1 import events_pb2 as logs
from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from sabot.settlement.v1 import correction_events_pb2 as settled_again
from sabot.settlement.v1 import events_pb2 as settlements
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as shoe_floor
from sabot.table.v1 import bet_pb2
from sabot.table.v1 import correction_events_pb2 as corrections
from sabot.table.v1 import events_pb2 as tables
from sabot.table.v1 import floor_events_pb2 as floor
from sabot.table.v1 import risk_events_pb2 as risk
from sabot.wallet.v1 import events_pb2 as wallets
from sabot.wallet.v1 import seamless_events_pb2 as seamless
from services.cli.readable import enum_name, readable_message
from services.games.blackjack import is_blackjack, total
from services.games.registry import ACES
from services.games.roulette import colour
from services.games.sicbo import is_triple
from services.games.two_cards import Winner, dealt
from services.odds.outcomes import per_cent

LEFT_OUT = frozenset(
    {
        *("table_id", "round_id", "request_hash", "asked_by"),
        *("blackjack_on_floor", "told_when_voided", "compared_when_over", "waits_for_held"),
    }
)
"""Fields that the rest of the line says already, or nobody reads; and what every input says since
some release."""


def describe(body: Message) -> str:
    """See the module. What has no words of its own here is told field by field."""
    match body:
        case tables.PlaceBets() | tables.BetsPlaced() | floor.WithdrawalNoted():
            return f"{body.account_id}: {_bets(body.bets)} ({_request(body)})"
        case tables.BetsWithdrawn():
            why = _request(body) if body.request_id else "late"
            return f"{body.account_id}: {_bets(body.bets)} ({why})"
        case tables.WithdrawBets():
            which = ", ".join(body.bet_ids) or "all"
            return f"{body.account_id}: {which} (request {body.request_id})"
        case limits.BetsApproved() | limits.WithdrawalApproved() | wallets.StakeReserved():
            return f"{body.account_id}: {_bets(body.bets)}"
        case wallets.StakeReturned():
            return f"{body.account_id}: {_bets(body.bets) or 'nothing'} ({_enum(body, 'reason')})"
        case wallets.StakeDeclined():
            return f"{body.account_id}: {_enum(body, 'decline')}, {_bets(body.bets)}"
        case tables.BetsRejected() | tables.WithdrawalRejected():
            return f"{body.account_id}: {_enum(body, 'refusal')} (request {body.request_id})"
        case limits.BetsRefused() | limits.WithdrawalRefused():
            return f"{body.account_id}: {'; '.join(map(_violation, body.violations))}"
        case wallets.PayoutPosted():
            kept = f", commission {body.commission_minor}" if body.commission_minor else ""
            return f"{body.account_id}: stake {body.stake_minor}, payout {body.payout_minor}{kept}"
        case (
            seamless.DebitOrdered()
            | seamless.CreditOrdered()
            | seamless.RollbackOrdered()
            | seamless.RecordReply()
            | seamless.MovementConfirmed()
        ):
            return _at_partner(body)
        case settlements.BetsSettled():
            return f"{body.account_id}: {', '.join(map(_settled, body.bets))}"
        case settlements.RoundSettled():
            return f"{body.bets} bets of {body.accounts} accounts"
        case shoes.OpenCards():
            cards = ", ".join(f"#{one.index} {one.card}" for one in body.cards)
            return f"{body.shoe_id}: {cards} (asked by {_position(body.asked_by)})"
        case shoes.CardsDealt():
            return ", ".join(
                f"{_enum(one, 'hand').lower()} {one.card or 'face down'}" for one in body.cards
            )
        case shoes.CardsBurned():
            opened = ", ".join(one.card for one in body.opened) or "none"
            return f"{opened} opened, {body.face_down} face down ({_enum(body, 'reason')})"
        case shoes.CheckHole() | shoe_floor.RecordPeek() | shoes.HoleChecked():
            return _look(body)
        case rules.HoleCalled():
            return f"{_enum(body, 'purpose').lower()} at {body.up_card}"
        case rules.InsuranceOffered():
            stakes = zip(body.seats, body.stakes_minor, strict=False)
            told = ", ".join(f"seat {seat} for {minor}" for seat, minor in stakes)
            return f"turn {body.turn}: {told}"
        case rules.ActionCalled():
            return f"turn {body.turn}: {_turn(body)}"
        case rules.SideBetDecided():
            return f"seat {body.seat}, {body.bet}: {body.line or 'lost'}"
        case risk.CloseBets():
            return f"{_returns(body)} (asked by {_position(body.asked_by)})"
        case risk.BetsClosed():
            return f"{_returns(body)}; the line is {body.max_return_per_mille} per mille"
        case tables.Act():
            extra = f" {body.extra_minor}" if body.extra_minor else ""
            return f"{body.account_id}: turn {body.turn}, {_acts(body)}{extra} ({_request(body)})"
        case tables.ActionTaken():
            extra = f" {body.extra.stake_minor} [{body.extra.bet_id}]" if body.extra.bet else ""
            who = _request(body) if body.request_id else "its time is over"
            return f"{body.account_id}: turn {body.turn}, {_acts(body)}{extra} ({who})"
        case tables.ActionRejected():
            where = f"turn {body.turn}, seat {body.seat}"
            return f"{body.account_id}: {where}: {_enum(body, 'refusal')} ({_request(body)})"
        case rules.DrawCalled():
            hands = ", ".join(_value(body, "hands", hand).lower() for hand in body.hands)
            return f"a card for {hands} (after {body.called_before})"
        case rules.HandsCorrected():
            now = (f"#{one.index} {_enum(one, 'hand').lower()}" for one in body.cards)
            return f"now {', '.join(now).replace('unspecified', 'of no hand')}"
        case rules.RoundResolved() | tables.ResultAccepted():
            return _result(body.result)
        case tables.RoundOpened():
            return _opened(body)
        case settled_again.BetsCorrected():
            return f"{body.account_id}: {', '.join(map(_corrected, body.bets))}"
        case settled_again.RecallFacts():
            return f"{body.correction_id}, step {body.step}: {len(body.facts)} facts"
        case corrections.ResultCorrected():
            came = "voided" if body.outcome.voided else _result(body.outcome.result)
            return f"{came} ({body.correction_id}, outcome {body.version}, {_enum(body, 'reason')})"
        case logs.InputFailed():
            return f"{body.input_type}: {body.error}"
        case _:
            return _contest(body) or fields_of(body)


def fields_of(body: Message) -> str:
    """A message field by field."""
    told = readable_message(body)
    parts = []
    for name, value in told.items():
        if name in LEFT_OUT:
            continue
        field: Any = body.DESCRIPTOR.fields_by_name[name]
        text = _bare(field, value) if field.enum_type and not field.is_repeated else str(value)
        parts.append(f"{name} {_short(text)}")
    asked_by = told.get("asked_by")
    if asked_by:
        parts.append(f"asked by {asked_by}")
    return ", ".join(parts)


def _short(text: str) -> str:
    return text if len(text) <= 64 else f"{text[:16]}..."


def _bets(bets: Iterable[bet_pb2.Bet]) -> str:
    return ", ".join(
        f"{one.bet} {one.stake_minor}{_at(one.position)}"
        + (f" of {one.announced}" if one.announced else "")
        + (f" [{one.bet_id}]" if one.bet_id else "")
        for one in bets
    )


def _opened(body: tables.RoundOpened) -> str:
    window = f"{body.closes_after_ms} ms" if body.closes_after_ms else "by call"
    which = str(body.number)
    if body.shoe_id:
        which = f"{body.round_in_shoe} of shoe {body.shoe_id}"
    return f"round {which}; betting closes: {window}"


def _at(position: str) -> str:
    return f" at {position}" if position else ""


def _look(body: shoes.CheckHole | shoe_floor.RecordPeek | shoes.HoleChecked) -> str:
    told = "a blackjack" if body.blackjack else "no blackjack"
    source = f"source {_enum(body, 'source')}"
    match body:
        case shoes.CheckHole():
            return (
                f"{body.shoe_id}: #{body.index} makes {told} (asked by {_position(body.asked_by)})"
            )
        case shoe_floor.RecordPeek():
            device = f", device {body.device}" if body.device else ""
            return f"{body.shoe_id}: it makes {told} ({_request(body)}, {source}{device})"
        case _:
            return told if body.source == shoes.CARD_SOURCE_VIRTUAL else f"{told} ({source})"


def _at_partner(
    body: seamless.DebitOrdered
    | seamless.CreditOrdered
    | seamless.RollbackOrdered
    | seamless.RecordReply
    | seamless.MovementConfirmed,
) -> str:
    """What a partner's wallet is asked for, what it said, and what that ends."""
    if isinstance(body, seamless.RecordReply):
        return _reply(body)
    if isinstance(body, seamless.MovementConfirmed):
        who = f" ({_request(body)}: {body.reason})" if body.request_id else ""
        return f"{body.account_id}: {body.amount_minor} [{body.transaction_id[:8]}]{who}"
    of = ""
    if isinstance(body, seamless.RollbackOrdered):
        of = f" of {body.debit_transaction_id[:8]}"
    elif isinstance(body, seamless.CreditOrdered) and body.debit_transaction_ids:
        of = f" for {', '.join(one[:8] for one in body.debit_transaction_ids)}"
    what = f"{body.amount_minor} {_enum(body, 'reason')}"
    return f"{body.account_id}: {what} [{body.transaction_id[:8]}]{of}"


def _reply(body: seamless.RecordReply) -> str:
    """What came back."""
    whys = ("debit_decline", "credit_refusal", "rollback_refusal")
    told = [_enum(body, why) for why in whys if getattr(body, why)]
    why = "".join(f" {one}" for one in (*told, body.problem) if one)
    again = f", {body.calls} calls" if body.calls > 1 else ""
    return f"{body.account_id}: {_enum(body, 'outcome')}{why} [{body.transaction_id[:8]}]{again}"


def _request(body: Any) -> str:
    return f"request {body.request_id}"


def _acts(body: tables.Act | tables.ActionTaken) -> str:
    """Which hand does what."""
    hand = " hand 2" if isinstance(body, tables.ActionTaken) and body.hand == 2 else ""
    return f"seat {body.seat}{hand}: {_enum(body, 'action').lower()}"


def _turn(body: rules.ActionCalled) -> str:
    actions = ", ".join(_value(body, "actions", action).lower() for action in body.actions)
    told = f"seat {body.seat} hand {body.hand} may {actions}"
    if body.max_double_minor:
        told += f"; a double takes 1 to {body.max_double_minor}"
    if body.split_minor:
        told += f"; a split takes {body.split_minor}"
    return f"{told}; advice: {_enum(body, 'advice').lower()}"


def _contest(body: Message) -> str:
    """What the audit contests; empty where it is something else."""
    if isinstance(body, contests.SettlementContested):
        body = body.contest
    if not isinstance(body, contests.ContestSettlement):
        return ""
    told = (
        f"expected {_settled(bet.expected) if bet.HasField('expected') else 'nothing'}, "
        f"recorded {_settled(bet.recorded) if bet.HasField('recorded') else 'nothing'}"
        for bet in body.bets
    )
    return f"{body.account_id} at {_position(body.answer)}: {'; '.join(told)}"


def _corrected(bet: settled_again.CorrectedBet) -> str:
    return f"{_settled(bet.before)} → {_settled(bet.after)}"


def _settled(one: settlements.SettledBet) -> str:
    kept = f", commission {one.commission_minor}" if one.commission_minor else ""
    return (
        f"{one.bet} {one.stake_minor}{_at(one.position)} {_enum(one, 'outcome').lower()}"
        f"{f' ({one.line})' if one.line else ''} -> {one.payout_minor}{kept} [{one.bet_id}]"
    )


def _returns(body: risk.CloseBets | risk.BetsClosed) -> str:
    told = ", ".join(f"{one.bet} {per_cent(Fraction(one.rtp))} %" for one in body.bets)
    return f"with {body.unseen_cards} cards unseen these return: {told}"


def _violation(one: limits.Violation) -> str:
    told = " ".join(filter(None, (_enum(one, "limit"), one.bet, one.position)))
    if one.against:
        told += f" against {one.against}"
    if one.limit == limits.LIMIT_SIDE_BET_CLOSED:
        told += f": round {one.would_be_count} of the shoe, offered until {one.allowed_count}"
    elif one.would_be_count:
        of = f" of {one.of_count}" if one.of_count else ""
        told += f": {one.would_be_count}{of}, allowed {one.allowed_count}"
    elif one.limit in {limits.LIMIT_OPPOSITE_SIDES, limits.LIMIT_NO_MAIN_BET}:
        told += f": {one.would_be_minor}"
    elif one.allowed_minor or one.would_be_minor:
        told += f": {one.would_be_minor}, allowed {one.allowed_minor}"
    if one.scope:
        told += f" ({' '.join(filter(None, (_enum(one, 'scope'), one.scope_id)))})"
    return told


def describe_result(result: rules.Result, rule_set: rule_set_pb2.RuleSet) -> str:
    """A result in a few words, with who won where that takes the rules to say."""
    game = result.WhichOneof("game")
    ace = ACES.get(rule_set.two_cards.ace)
    if game not in _TWO_CARDS or ace is None:
        return _result(result)
    sides = _TWO_CARDS[game]
    told = getattr(result, game)
    first, second = (getattr(told, f"{side}_card") for side in sides)
    cards = dealt(first, second, ace)
    tie = "a suited tie" if cards.suited and game == "dragon_tiger" else "a tie"
    won = {Winner.FIRST: sides[0], Winner.SECOND: sides[1], Winner.TIE: tie}[cards.winner]
    return f"{_result(result)}: {won}"


_TWO_CARDS = {"dragon_tiger": ("dragon", "tiger"), "football_studio": ("home", "away")}


def _result(result: rules.Result) -> str:
    match result.WhichOneof("game"):
        case "blackjack":
            return _blackjack(result.blackjack)
        case "roulette":
            return f"number {result.roulette.number}, {colour(result.roulette.number)}"
        case "sicbo":
            dice = tuple(result.sicbo.dice)
            triple = ", a triple" if is_triple(dice) else ""
            return f"dice {' '.join(map(str, dice))} = {sum(dice)}{triple}"
        case "dragon_tiger":
            told = result.dragon_tiger
            return f"dragon {told.dragon_card}, tiger {told.tiger_card}"
        case "football_studio":
            shown = result.football_studio
            return f"home {shown.home_card}, away {shown.away_card}"
        case _:
            return _baccarat(result.baccarat)


def _baccarat(told: rules.BaccaratResult) -> str:
    winner = _enum(told, "winner").lower()
    return (
        f"player {' '.join(told.player_cards)} = {told.player_total}, "
        f"banker {' '.join(told.banker_cards)} = {told.banker_total}: {winner}"
    )


def _blackjack(told: rules.BlackjackResult) -> str:
    if not told.seats:
        return "nobody was dealt"
    seats = [f"seat {seat.seat} " + " and ".join(map(_hand, seat.hands)) for seat in told.seats]
    return f"dealer {_counted(told.dealer_cards)}; {'; '.join(seats)}"


def _hand(hand: rules.BlackjackHand) -> str:
    return _counted(hand.cards, split=hand.split) + (" doubled" if hand.doubled else "")


def _counted(cards: Sequence[str], *, split: bool = False) -> str:
    count = "blackjack" if is_blackjack(cards, split=split) else str(total(cards).points)
    return f"{' '.join(cards)} = {count}"


def _position(message: Any) -> str:
    return f"{message.segment}/{message.sequence}/{message.index}"


def _enum(message: Message, name: str) -> str:
    """A field's enum value without what every value of it begins with."""
    return _value(message, name, getattr(message, name))


def _value(message: Message, name: str, number: int) -> str:
    field: Any = message.DESCRIPTOR.fields_by_name[name]  # typed two ways by its stubs
    return _bare(field, enum_name(field, number))


def _bare(field: Any, name: str) -> str:
    first = field.enum_type.values[0].name
    return name.removeprefix(first.removesuffix("UNSPECIFIED"))
