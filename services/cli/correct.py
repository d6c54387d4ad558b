"""`sabot correct`: corrections of paid rounds, by the calls of a running fleet."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc

from sabot.log.v1 import entry_pb2
from sabot.rules.v1 import events_pb2 as rules
from sabot.settlement.v1 import settlement_service_pb2 as settlements
from sabot.settlement.v1 import settlement_service_pb2_grpc
from sabot.table.v1 import correction_events_pb2 as events
from sabot.table.v1 import correction_service_pb2 as corrections
from sabot.table.v1 import correction_service_pb2_grpc
from sabot.table.v1 import events_pb2 as tables
from services.cli.odds_live import NotTold
from services.cli.uuid7 import uuid7
from services.games.currencies import EXPONENTS
from services.kernel.call_again import CALL_AGAIN

CALL_S = 20.0
"""For one call: a dry run of a round of ten thousand accounts takes some seconds."""
WAIT_S = 60.0
"""How long an approved correction is waited for."""
LOOK_S = 0.2
PAGE = 500
GOING = (
    corrections.CORRECTION_STATE_PROPOSED,
    corrections.CORRECTION_STATE_APPROVED,
    corrections.CORRECTION_STATE_POSTING,
)
"""States that something may still follow."""
POSTED = corrections.CORRECTION_STATE_POSTED
REASONS = {
    name.removeprefix("ROUND_REASON_").lower(): tables.RoundReason.Value(name)
    for name in tables.RoundReason.keys()  # noqa: SIM118 - an enum wrapper, no dict
    if name != "ROUND_REASON_UNSPECIFIED"
}


class BadOutcome(Exception):
    """What a round shall have come to is not said in a way that is understood."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a round shall have come to, as the command has it. Exactly one is set."""

    baccarat: str = ""
    roulette: int | None = None
    sicbo: str = ""
    dragon_tiger: str = ""
    football_studio: str = ""
    void: bool = False


def outcome_of(told: Told) -> events.CorrectedOutcome:
    """As the calls have it. Raises BadOutcome."""
    said = [one for one in (told.baccarat, told.sicbo, told.dragon_tiger) if one]
    said += [told.football_studio] if told.football_studio else []
    count = len(said) + (told.roulette is not None) + told.void
    if count != 1:
        raise BadOutcome(
            "say one of --baccarat, --roulette, --sicbo, --dragon-tiger, "
            "--football-studio and --void"
        )
    if told.void:
        return events.CorrectedOutcome(voided=True)
    result = rules.Result()
    if told.roulette is not None:
        result.roulette.number = told.roulette
        result.roulette.SetInParent()
    elif told.sicbo:
        try:
            result.sicbo.dice.extend(int(face) for face in told.sicbo.split(","))
        except ValueError as error:
            raise BadOutcome("dice are told as 1,2,3") from error
    elif told.baccarat:
        player, banker = _hands(told.baccarat)
        result.baccarat.player_cards.extend(player)
        result.baccarat.banker_cards.extend(banker)
    elif told.dragon_tiger:
        (dragon,), (tiger,) = _hands(told.dragon_tiger, 1)
        result.dragon_tiger.dragon_card, result.dragon_tiger.tiger_card = dragon, tiger
    else:
        (home,), (away,) = _hands(told.football_studio, 1)
        result.football_studio.home_card, result.football_studio.away_card = home, away
    return events.CorrectedOutcome(result=result)


def _hands(text: str, cards: int = 0) -> tuple[list[str], list[str]]:
    hands = [[card.strip() for card in hand.split(",")] for hand in text.split("/")]
    if len(hands) != 2 or (cards and any(len(hand) != cards for hand in hands)):
        raise BadOutcome("hands are told as 6S,KD/7H,TC: the first one's cards, then the other's")
    return hands[0], hands[1]


def options_of(outcome: events.CorrectedOutcome) -> str:
    """The options of the command that say this outcome; empty where none do."""
    if outcome.voided:
        return "--void"
    result = outcome.result
    match result.WhichOneof("game"):
        case "baccarat":
            hands = (result.baccarat.player_cards, result.baccarat.banker_cards)
            return "--baccarat " + "/".join(",".join(hand) for hand in hands)
        case "roulette":
            return f"--roulette {result.roulette.number}"
        case "sicbo":
            return "--sicbo " + ",".join(map(str, result.sicbo.dice))
        case "dragon_tiger":
            two = result.dragon_tiger
            return f"--dragon-tiger {two.dragon_card}/{two.tiger_card}"
        case "football_studio":
            pair = result.football_studio
            return f"--football-studio {pair.home_card}/{pair.away_card}"
        case _:
            return ""


class Client:
    """The calls, as an operator. Each raises NotTold."""

    def __init__(self, channel: grpc.aio.Channel, address: str, token: str) -> None:
        self._address = address
        self._metadata = (("authorization", f"Bearer {token}"),)
        self._corrections: Any = correction_service_pb2_grpc.CorrectionServiceStub(channel)
        self._settlements: Any = settlement_service_pb2_grpc.SettlementServiceStub(channel)

    async def _call(self, method: Any, request: Any) -> Any:
        try:
            return await method(request, metadata=self._metadata, timeout=CALL_S)
        except grpc.aio.AioRpcError as error:
            told = f"{self._address}: {error.code().name}: {error.details()}"
            raise NotTold(told) from error

    async def preview(
        self, round_id: str, outcome: events.CorrectedOutcome
    ) -> settlements.PreviewCorrectionResponse:
        """The dry run, with every account's difference."""
        asked = settlements.PreviewCorrectionRequest(
            round_id=round_id, outcome=outcome, page_size=PAGE
        )
        whole: settlements.PreviewCorrectionResponse
        whole = page = await self._call(self._settlements.PreviewCorrection, asked)
        while page.next_page_token:
            asked.page_token = page.next_page_token
            page = await self._call(self._settlements.PreviewCorrection, asked)
            if page.dry_run != whole.dry_run:
                raise NotTold(f"round {round_id} was corrected meanwhile")
            whole.differences.extend(page.differences)
        return whole

    async def propose(
        self,
        dry: settlements.PreviewCorrectionResponse,
        round_id: str,
        reason: tables.RoundReason.ValueType,
        reference: str,
    ) -> corrections.ProposeCorrectionResponse:
        """Propose what a dry run has shown."""
        asked = corrections.ProposeCorrectionRequest(
            request_id=uuid7(),
            table_id=dry.table_id,
            round_id=round_id,
            outcome=dry.outcome,
            reason=reason,
            reference=reference,
            dry_run=dry.dry_run,
        )
        told: corrections.ProposeCorrectionResponse
        told = await self._call(self._corrections.ProposeCorrection, asked)
        return told

    async def approve(self, correction_id: str) -> corrections.Correction:
        """Approve, and wait until nothing more follows, for a minute at most."""
        asked = corrections.ApproveCorrectionRequest(
            request_id=uuid7(), correction_id=correction_id
        )
        told = await self._call(self._corrections.ApproveCorrection, asked)
        end = time.monotonic() + WAIT_S
        while True:
            found = await self.correction(correction_id, told.position)
            if found.state not in GOING or time.monotonic() > end:
                return found
            await asyncio.sleep(LOOK_S)

    async def correction(
        self, correction_id: str, at_least: entry_pb2.Position | None = None
    ) -> corrections.Correction:
        """How one stands."""
        asked = corrections.GetCorrectionRequest(correction_id=correction_id, at_least=at_least)
        found: corrections.Correction
        found = (await self._call(self._corrections.GetCorrection, asked)).correction
        return found

    async def listed(self, round_id: str, most: int) -> list[corrections.Correction]:
        """The newest ones, of one round where named."""
        asked = corrections.ListCorrectionsRequest(round_id=round_id, page_size=min(most, 200))
        found: list[corrections.Correction] = []
        while len(found) < most:
            page = await self._call(self._corrections.ListCorrections, asked)
            found += page.corrections
            if not page.next_page_token:
                break
            asked.page_token = page.next_page_token
        return found[:most]


@asynccontextmanager
async def client(address: str, token: str) -> AsyncIterator[Client]:
    """A client of the fleet at an address."""
    async with grpc.aio.insecure_channel(address, CALL_AGAIN) as channel:
        yield Client(channel, address, token)


# ---- what is printed ---------------------------------------------------------------------------


def preview_lines(round_id: str, dry: settlements.PreviewCorrectionResponse) -> Iterator[str]:
    """A dry run for people."""
    now, then = told_of(dry.in_force), told_of(dry.outcome)
    yield f"round {round_id} at {dry.table_id}: {now} → {then} (outcome {dry.version})"
    code = dry.currency_code
    for one in dry.differences:
        line = f"  {one.partner_id}/{one.account_id} {money(one.payout_delta_minor, code)}"
        if one.commission_delta_minor:
            line += f", commission {money(one.commission_delta_minor, code)}"
        yield line
    total = money(dry.payout_delta_minor, code)
    kept = money(dry.commission_delta_minor, code)
    yield f"{dry.accounts} accounts, payouts {total}, commission {kept} {code}"
    yield f"dry run {dry.dry_run.hex()}; nothing was changed"


def correction_line(one: corrections.Correction) -> str:
    """A correction for people."""
    state = corrections.CorrectionState.Name(one.state).removeprefix("CORRECTION_STATE_").lower()
    if one.fault:
        state += f" ({one.fault.removeprefix('CORRECTION_FAULT_').lower()})"
    reason = tables.RoundReason.Name(one.reason).removeprefix("ROUND_REASON_").lower()
    people = one.proposed_by + (f", approved by {one.approved_by}" if one.approved_by else "")
    return (
        f"{one.correction_id} {state}: round {one.round_id} → {told_of(one.outcome)}, {reason}, "
        f"{one.reference}, proposed by {people}"
    )


def told_of(outcome: events.CorrectedOutcome) -> str:
    """An outcome in a few words."""
    return options_of(outcome).removeprefix("--").replace("-", " ", 1) or "as told"


def money(minor: int, currency_code: str) -> str:
    """An amount with its sign, such as `-1234.50`."""
    digits = EXPONENTS.get(currency_code, 0)
    whole, part = divmod(abs(minor), 10**digits)
    text = f"{whole}.{part:0{digits}}" if digits else f"{whole}"
    return ("-" if minor < 0 else "+" if minor else "") + text
