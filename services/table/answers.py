"""What the answers to partners' requests and operators' orders are to their callers: a response, or
a refusal from the catalogue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from google.protobuf.message import Message

from sabot.limits.v1 import events_pb2 as limits
from sabot.partner.v1 import partner_service_pb2 as partners
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import bet_pb2
from sabot.table.v1 import events_pb2 as tables
from sabot.table.v1 import floor_events_pb2 as orders
from sabot.table.v1.spec_pb2 import TableSpec
from sabot.wallet.v1 import events_pb2 as wallets
from services.kernel.ask import Told
from services.kernel.call import position_message
from services.kernel.errors import UNEXPECTED_OUTCOME, Refused
from services.refusals.floor import rejected as floor_refused
from services.refusals.limits import Asked
from services.refusals.limits import refused as limits_refused
from services.refusals.table import REFUSALS, switch_text, wrong_bet
from services.refusals.table import refused as table_refused
from services.refusals.wallet import declined
from services.table.domain.booking import booked

Facts = Mapping[str, str | int]

PLACED: Final[frozenset[type[Message]]] = frozenset(
    (wallets.StakeReserved, wallets.StakeDeclined, limits.BetsRefused, tables.BetsRejected)
)
"""What ends the path of PlaceBets."""
ACTED: Final[frozenset[type[Message]]] = frozenset((tables.ActionTaken, tables.ActionRejected))
"""What ends the path of an action that takes no further stake."""
STAKED: Final[frozenset[type[Message]]] = frozenset(
    (wallets.StakeReserved, wallets.StakeDeclined, limits.BetsRefused, tables.ActionRejected)
)
"""What ends the path of a double, a split and insurance."""
WITHDRAWN: Final[frozenset[type[Message]]] = frozenset(
    (
        wallets.StakeReturned,
        limits.WithdrawalRefused,
        tables.WithdrawalRejected,
        orders.WithdrawalNoted,
    )
)
"""What ends the path of WithdrawBets."""


def facts_of(
    *,
    request_id: str = "",
    table_id: str = "",
    round_id: str = "",
    account_id: str = "",
    detail: str = "",
) -> dict[str, str | int]:
    """The facts that the texts of refusals may name."""
    return {
        "request_id": request_id,
        "table_id": table_id,
        "round_id": round_id,
        "account_id": account_id,
        "detail": detail,
    }


def placed(
    told: Told, facts: Facts, rules: TableSpec | None, bets: Sequence[bet_pb2.Bet]
) -> partners.PlaceBetsResponse:
    """The response to PlaceBets. Raises Refused. `rules`, of the table where it is known, and the
    `bets` that were asked for say which of them is wrong, and what room is left."""
    match told.body:
        case wallets.StakeReserved():
            return partners.PlaceBetsResponse(
                bets=told.body.bets,
                position=position_message(told.position),
                replayed=told.replayed,
            )
        case wallets.StakeDeclined():
            raise declined(told.body.decline, facts)
        case limits.BetsRefused():
            raise limits_refused(told.body.violations, facts, _asked(rules, bets))
        case tables.BetsRejected():
            raise _rejected(told.body, facts, rules, bets)
        case _:
            raise Refused(UNEXPECTED_OUTCOME)


def _rejected(
    body: tables.BetsRejected,
    facts: Facts,
    rules: TableSpec | None,
    bets: Sequence[bet_pb2.Bet],
) -> Refused:
    if body.HasField("off"):
        return table_refused(body.refusal, {**facts, "switch": switch_text(body.off)})
    if rules is not None and body.refusal in _OF_A_BET:
        offered = [offer.bet for offer in rules.rule_set.bets]
        for bet in bets:
            if booked(rules.rule_set, offered, [bet]) == body.refusal:
                return wrong_bet(
                    REFUSALS[body.refusal], rules.rule_set.game, bet.bet, bet.position, facts
                )
    return table_refused(body.refusal, facts)


_OF_A_BET = frozenset(
    {tables.REFUSAL_UNKNOWN_BET, tables.REFUSAL_NOT_ON_LAYOUT, tables.REFUSAL_NOT_WHOLE_CHIPS}
)
"""Refusals of a request for one of its bets."""


def _asked(rules: TableSpec | None, bets: Sequence[bet_pb2.Bet]) -> Asked:
    """What a request would have staked, place by place."""
    if rules is None:
        return {}
    found: dict[tuple[str, str], int] = {}
    parts = booked(rules.rule_set, [offer.bet for offer in rules.rule_set.bets], bets)
    if isinstance(parts, list):
        for part in parts:
            place = (part.bet, part.position)
            found[place] = found.get(place, 0) + part.stake_minor
    return found


def acted(
    told: Told, facts: Facts, seat: partners.Seat | None, extra_minor: int = 0
) -> partners.ActResponse:
    """The response to Act, with the seat as it is shown. Raises Refused. `extra_minor`: the further
    stake that was asked for, where the caller named it."""
    response = partners.ActResponse(
        seat=seat, position=position_message(told.position), replayed=told.replayed
    )
    match told.body:
        case tables.ActionTaken():
            return response
        case wallets.StakeReserved():
            response.extra.CopyFrom(told.body.bets[0])
            return response
        case wallets.StakeDeclined():
            raise declined(told.body.decline, facts)
        case limits.BetsRefused():
            asked: Asked = {("double", ""): extra_minor} if extra_minor else {}
            raise limits_refused(told.body.violations, facts, asked)
        case tables.ActionRejected():
            raise table_refused(told.body.refusal, facts)
        case _:
            raise Refused(UNEXPECTED_OUTCOME)


def withdrawn(told: Told, facts: Facts) -> partners.WithdrawBetsResponse:
    """The response to WithdrawBets. Raises Refused."""
    match told.body:
        case wallets.StakeReturned():
            return partners.WithdrawBetsResponse(
                bets=told.body.bets,
                position=position_message(told.position),
                replayed=told.replayed,
            )
        case orders.WithdrawalNoted():
            return partners.WithdrawBetsResponse(
                bets=told.body.bets,
                position=position_message(told.position),
                replayed=told.replayed,
                at_close=True,
            )
        case limits.WithdrawalRefused():
            raise limits_refused(told.body.violations, facts)
        case tables.WithdrawalRejected():
            raise table_refused(told.body.refusal, facts)
        case _:
            raise Refused(UNEXPECTED_OUTCOME)


def obeyed(told: Told, answer: type[Message], facts: Facts) -> None:
    """Check that an order was answered by `answer`. Raises Refused."""
    match told.body:
        case tables.OrderRejected():
            more = {"detail": told.body.detail}
            if told.body.HasField("off"):
                more["switch"] = switch_text(told.body.off)
            raise table_refused(told.body.refusal, {**facts, **more})
        case floor.FloorRejected():
            raise floor_refused(told.body)
        case answer():
            return
        case _:
            raise Refused(UNEXPECTED_OUTCOME)
