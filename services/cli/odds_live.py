"""The odds at what is left of a shoe that stands at a table of a running fleet."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import grpc

from sabot.table.v1 import odds_service_pb2, odds_service_pb2_grpc
from services.cli.odds import GAMES, OddsRefused
from services.cli.secret_files import secret_in, sendable
from services.kernel.call_again import CALL_AGAIN
from services.odds.outcomes import BetOdds, Outcome

WAIT_S = 10.0
"""For a running fleet's answer; blackjack's main bet takes most of a second."""


class NotTold(Exception):
    """A running fleet does not tell the odds of a shoe; the message says why, in one line."""


@dataclass(frozen=True, slots=True)
class Live:
    """What a running fleet told."""

    rules: str
    unseen_cards: int
    odds: tuple[BetOdds, ...]


def token_of(path: Path, operator: str) -> str:
    """The token in a file: of this operator, where it holds several by actor, as the demonstration
    leaves them. Raises NotTold, SecretUnusable, OSError."""
    text = path.read_text(errors="replace").strip()
    if not text.startswith("{"):
        return secret_in(path)
    try:
        found = json.loads(text).get(f"operator:{operator}")
    except ValueError as error:
        raise NotTold(f"{path}: no JSON: {error}") from error
    if not isinstance(found, str):
        raise NotTold(f"{path} has no token of operator {operator}")
    return sendable(found, str(path))


async def live(game: str, shoe_id: str, address: str, token: str) -> Live:
    """The odds at what is left of a shoe that stands at a table of a running fleet. Raises NotTold,
    OddsRefused."""
    if game not in GAMES:
        raise OddsRefused(f"the games are {', '.join(GAMES)}")
    async with grpc.aio.insecure_channel(address, CALL_AGAIN) as channel:
        try:
            told = await odds_service_pb2_grpc.OddsServiceStub(channel).GetLiveOdds(
                odds_service_pb2.GetLiveOddsRequest(shoe_id=shoe_id),
                timeout=WAIT_S,
                metadata=(("authorization", f"Bearer {token}"),),
            )
        except grpc.aio.AioRpcError as error:
            raise NotTold(f"{address}: {error.code().name}: {error.details()}") from error
    if rules_game(told.rule_set_id) != game:
        raise NotTold(f"shoe {shoe_id} is one of {told.rule_set_id}, not of {game}")
    return Live(told.rule_set_id, told.unseen_cards, tuple(map(_of_message, told.bets)))


def rules_game(rule_set_id: str) -> str:
    """The game that a rule set is of."""
    return next((game for game in GAMES if rule_set_id.startswith(game)), "")


def _of_message(one: odds_service_pb2.BetOdds) -> BetOdds:
    outcomes = tuple(
        Outcome(outcome.name, Fraction(outcome.pays), Fraction(outcome.probability))
        for outcome in one.outcomes
    )
    return BetOdds(one.bet, one.bet, one.positions, outcomes)
