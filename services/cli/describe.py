"""An event's body in a few words, for one line of a playthrough."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from google.protobuf.message import Message

from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1 import events_pb2 as logs
from sabot.rules.v1 import events_pb2 as rules
from sabot.settlement.v1 import events_pb2 as settlements
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.table.v1 import bet_pb2
from sabot.table.v1 import events_pb2 as tables
from sabot.wallet.v1 import events_pb2 as wallets
from services.cli.readable import enum_name, readable_message

LEFT_OUT = frozenset({"table_id", "round_id", "request_hash", "asked_by"})
"""Fields that the rest of the line says already, or nobody reads."""


def describe(body: Message) -> str:
    """See the module. What has no words of its own here is told field by field."""
    match body:
        case tables.PlaceBets() | tables.BetsPlaced() | tables.BetsWithdrawn():
            return f"{body.account_id}: {_bets(body.bets)} (request {body.request_id})"
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
        case settlements.BetsSettled():
            return f"{body.account_id}: {', '.join(map(_settled, body.bets))}"
        case settlements.RoundSettled():
            return f"{body.bets} bets of {body.accounts} accounts"
        case shoes.OpenCards():
            cards = ", ".join(f"#{one.index} {one.card}" for one in body.cards)
            return f"{body.shoe_id}: {cards} (asked by {_position(body.asked_by)})"
        case shoes.CardsDealt():
            return ", ".join(f"{_enum(one, 'hand').lower()} {one.card}" for one in body.cards)
        case shoes.CardsBurned():
            opened = ", ".join(one.card for one in body.opened) or "none"
            return f"{opened} opened, {body.face_down} face down ({_enum(body, 'reason')})"
        case rules.DrawCalled():
            hands = ", ".join(_value(body, "hands", hand).lower() for hand in body.hands)
            return f"a card for {hands} (after {body.called_before})"
        case rules.RoundResolved() | tables.ResultAccepted():
            return _result(body.result)
        case tables.RoundOpened():
            window = f"{body.closes_after_ms} ms" if body.closes_after_ms else "by call"
            return f"round {body.round_in_shoe} of shoe {body.shoe_id}; betting closes: {window}"
        case logs.InputFailed():
            return f"{body.input_type}: {body.error}"
        case _:
            return _fields(body)


def _fields(body: Message) -> str:
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
        f"{one.bet} {one.stake_minor}" + (f" [{one.bet_id}]" if one.bet_id else "") for one in bets
    )


def _settled(one: settlements.SettledBet) -> str:
    kept = f", commission {one.commission_minor}" if one.commission_minor else ""
    return (
        f"{one.bet} {one.stake_minor} {_enum(one, 'outcome').lower()} -> {one.payout_minor}{kept} "
        f"[{one.bet_id}]"
    )


def _violation(one: limits.Violation) -> str:
    told = " ".join(filter(None, (_enum(one, "limit"), one.bet, one.position)))
    if one.against:
        told += f" against {one.against}"
    if one.would_be_count:
        told += f": {one.would_be_count}, allowed {one.allowed_count}"
    elif one.allowed_minor or one.would_be_minor:
        told += f": {one.would_be_minor}, allowed {one.allowed_minor}"
    return told


def _result(result: rules.Result) -> str:
    told = result.baccarat
    winner = _enum(told, "winner").lower()
    return (
        f"player {' '.join(told.player_cards)} = {told.player_total}, "
        f"banker {' '.join(told.banker_cards)} = {told.banker_total}: {winner}"
    )


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
