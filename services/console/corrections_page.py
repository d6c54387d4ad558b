"""Corrections of rounds that were paid: a dry run shows every account's difference, one supervisor
proposes it, another approves. What is contested leads here (docs/corrections.md)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import DecodeError
from starlette.responses import Response
from starlette.routing import Route

from sabot.rules.v1 import rule_set_pb2
from sabot.settlement.v1 import settlement_service_pb2 as settlements
from sabot.table.v1 import correction_events_pb2 as events
from sabot.table.v1 import correction_service_pb2 as corrections
from sabot.table.v1 import events_pb2 as tables
from sabot.table.v1.correction_service_pb2_grpc import CorrectionServiceStub
from services.cli.correct import BadOutcome, Told, outcome_of
from services.cli.playthrough import Playthrough
from services.cli.uuid7 import uuid7
from services.console.contested_shown import contests_shown
from services.console.history import DEALING, ORDERS
from services.console.orders import REASONS
from services.console.web import Refusal, Visit, change, live, page
from services.kernel import telemetry
from services.kernel.telemetry_names import CONSOLE_ORDER
from services.kernel.tokens import Role

PAGE = 50
"""Corrections of a page."""
MOST_ACCOUNTS = 500
"""Accounts of a dry run that are shown; all of them are counted, and bound by its digest."""
DRY_RUN_S = 20.0
"""A dry run of a round of ten thousand accounts takes some seconds."""
AGAIN_S = 1.0
MOST_REFERENCE = 100
LOOKERS = (Role.SUPERVISOR, Role.AUDITOR)
"""Who may see what a correction would change."""
NUMBER = re.compile("[0-9]|[12][0-9]|3[0-6]")
STALE = "CORRECTION_FAULT_DRY_RUN_STALE"
FORMS = {
    rule_set_pb2.GAME_BACCARAT: ("baccarat", "6S,KD/7H,TC"),
    rule_set_pb2.GAME_ROULETTE: ("roulette", "17"),
    rule_set_pb2.GAME_SICBO: ("sicbo", "1,2,3"),
    rule_set_pb2.GAME_DRAGON_TIGER: ("dragon_tiger", "7S/8H"),
    rule_set_pb2.GAME_FOOTBALL_STUDIO: ("football_studio", "7S/8H"),
}
"""How a result is typed, by game. Blackjack is only voided: bettors acted on what they saw."""


@dataclass(slots=True)
class OutcomeShown:
    """What a round comes to."""

    voided: bool = False
    text: str = ""
    """A number, or dice."""
    hands: list[list[str]] = field(default_factory=list[list[str]])


def outcome_shown(outcome: events.CorrectedOutcome) -> OutcomeShown:
    """An outcome for a page."""
    result = outcome.result
    match "" if outcome.voided else result.WhichOneof("game"):
        case "":
            return OutcomeShown(voided=True)
        case "roulette":
            return OutcomeShown(text=str(result.roulette.number))
        case "sicbo":
            return OutcomeShown(text=" ".join(map(str, result.sicbo.dice)))
        case "baccarat":
            told = result.baccarat
            return OutcomeShown(hands=[list(told.player_cards), list(told.banker_cards)])
        case "dragon_tiger":
            two = result.dragon_tiger
            return OutcomeShown(hands=[[two.dragon_card], [two.tiger_card]])
        case "football_studio":
            pair = result.football_studio
            return OutcomeShown(hands=[[pair.home_card], [pair.away_card]])
        case _:
            return OutcomeShown(text="?")


# ---- the list ----------------------------------------------------------------------------------


async def _listed(visit: Visit, page_token: str) -> dict[str, Any]:
    stub = visit.desk.fleet.stub("table", CorrectionServiceStub)
    told: corrections.ListCorrectionsResponse = await visit.calls.ask(
        stub.ListCorrections,
        corrections.ListCorrectionsRequest(page_size=PAGE, page_token=page_token),
    )
    return {
        "corrections": [_shown(visit, one) for one in told.corrections],
        "older": told.next_page_token,
        "new_id": uuid7,
    }


def _shown(visit: Visit, one: corrections.Correction) -> dict[str, Any]:
    contests = visit.desk.archive.history.contests
    in_force = contests.in_force.get(one.round_id)
    state = corrections.CorrectionState.Name(one.state)
    waits = one.state == corrections.CORRECTION_STATE_PROPOSED
    overtaken = waits and in_force is not None and in_force.version >= one.version
    return {
        "told": one,
        "outcome": outcome_shown(one.outcome),
        "state": "stale" if overtaken or one.fault == STALE else state,
        "fault": "" if one.fault == STALE else one.fault,
        "reason": tables.RoundReason.Name(one.reason),
        "waits": waits and not overtaken,
        "own": one.proposed_by == f"operator:{visit.who.name}",
        "time_us": one.propose_time.ToMicroseconds(),
    }


async def show(visit: Visit) -> Response:
    """All corrections, newest first, and what is contested."""
    token = visit.query("page")
    facts = await _listed(visit, token)
    facts |= {"contested": contests_shown(visit), "live": not token}
    return visit.page("corrections.html", **facts)


async def follow(visit: Visit) -> AsyncIterator[tuple[str, str]]:
    """The list as it changes; while it is the same, forms stay as they are."""
    last: list[Any] = []
    version = -1
    while True:
        facts = await _listed(visit, "")
        now = [(one["told"].SerializeToString(), one["state"]) for one in facts["corrections"]]
        if now != last:
            last = now
            yield "corrections", visit.render("part_corrections.html", **facts)
        contests = visit.desk.archive.history.contests
        if contests.version != version:
            version = contests.version
            yield "contests", visit.render("part_contests.html", contested=contests_shown(visit))
        await asyncio.sleep(AGAIN_S)


# ---- a round -----------------------------------------------------------------------------------


def _in_force(visit: Visit, found: Playthrough) -> events.CorrectedOutcome | None:
    """What a round has come to; None: nothing that was paid."""
    corrected = visit.desk.archive.history.contests.in_force.get(found.round_id)
    if corrected is not None:
        return corrected.outcome
    for one in found.shown:
        body = one.event.body
        if isinstance(body, tables.ResultAccepted) and not one.event.is_input:
            return events.CorrectedOutcome(result=body.result)
    return None


def _game(found: Playthrough) -> rule_set_pb2.Game.ValueType:
    governed = found.governed_by
    return governed.spec.rule_set.game if governed is not None else rule_set_pb2.GAME_UNSPECIFIED


async def of_round(visit: Visit) -> Response:
    """What the round has come to, and what it may come to instead."""
    round_id = visit.path("round_id")
    found = await visit.desk.archive.playthrough(round_id)
    in_force = _in_force(visit, found)
    if in_force is None:
        raise Refusal(409, "refused.no_result", round=round_id)
    contested = contests_shown(visit, round_id)
    game = _game(found)
    return visit.page(
        "correct_round.html",
        round_id=round_id,
        table_id=found.governed_by.spec.table_id if found.governed_by is not None else "",
        in_force=outcome_shown(in_force),
        contested=contested,
        again=game in FORMS and any(one["open"] for one in contested["shown"]),
        result_like=FORMS[game][1] if game in FORMS else "",
    )


def _asked(visit: Visit, found: Playthrough) -> events.CorrectedOutcome:
    """What a form says that the round shall come to. Raises Refusal."""
    form = visit.form
    match form.get("what", ""):
        case "again":
            in_force = _in_force(visit, found)
            if in_force is not None:
                return in_force
        case "void":
            return events.CorrectedOutcome(voided=True)
        case "result":
            return _typed(form.get("result", ""), found)
        case _:
            pass
    raise Refusal(400, "refused.outcome")


def _typed(text: str, found: Playthrough) -> events.CorrectedOutcome:
    game = _game(found)
    if game not in FORMS:
        raise Refusal(400, "refused.outcome")
    name, like = FORMS[game]
    tidy = text.upper().replace("10", "T") if name not in {"roulette", "sicbo"} else text
    if name == "roulette" and NUMBER.fullmatch(text) is None:
        raise Refusal(400, "refused.result", like=like)
    said: Any = int(text) if name == "roulette" else tidy.replace(" ", "")
    try:
        return outcome_of(Told(**{name: said}))
    except (BadOutcome, ValueError):
        raise Refusal(400, "refused.result", like=like) from None


async def dry_run(visit: Visit) -> Response:
    """What would change, account by account; nothing does."""
    round_id = visit.path("round_id")
    found = await visit.desk.archive.playthrough(round_id)
    calls = visit.calls
    told: settlements.PreviewCorrectionResponse = await calls.ask(
        calls.settlements.PreviewCorrection,
        settlements.PreviewCorrectionRequest(
            round_id=round_id, outcome=_asked(visit, found), page_size=MOST_ACCOUNTS
        ),
        DRY_RUN_S,
    )
    contested = contests_shown(visit, round_id)
    return visit.page(
        "part_dry_run.html",
        round_id=round_id,
        told=told,
        before=outcome_shown(told.in_force),
        after=outcome_shown(told.outcome),
        outcome=told.outcome.SerializeToString(deterministic=True).hex(),
        reasons=REASONS,
        chosen="ROUND_REASON_SYSTEM" if contested["shown"] else "",
        new_id=uuid7,
    )


async def propose(visit: Visit) -> Response:
    """What the dry run has shown is proposed; another person must approve it."""
    form, round_id = visit.form, visit.path("round_id")
    found = await visit.desk.archive.playthrough(round_id)
    _require_no_dealer(visit, found)
    reason = form.get("reason", "")
    if reason not in REASONS:
        raise Refusal(400, "refused.reason")
    if not form.get("reference"):
        raise Refusal(400, "refused.reference")
    outcome = events.CorrectedOutcome()
    try:
        outcome.ParseFromString(bytes.fromhex(form.get("outcome", "")))
        shown = bytes.fromhex(form.get("dry_run", ""))
    except (DecodeError, ValueError):
        raise Refusal(400, "refused.form") from None
    stub = visit.desk.fleet.stub("table", CorrectionServiceStub)
    answer: corrections.ProposeCorrectionResponse = await visit.calls.ask(
        stub.ProposeCorrection,
        corrections.ProposeCorrectionRequest(
            request_id=form.get("request_id", ""),
            table_id=form.get("table_id", ""),
            round_id=round_id,
            outcome=outcome,
            reason=tables.RoundReason.Value(reason),
            reference=form["reference"][:MOST_REFERENCE],
            dry_run=shown,
        ),
    )
    telemetry.logger().info(CONSOLE_ORDER, operator=visit.who.name, order="propose", round=round_id)
    return visit.page("part_proposed.html", correction_id=answer.correction_id)


async def approve(visit: Visit) -> Response:
    """A proposal of somebody else is approved."""
    form = visit.form
    correction_id = form.get("correction_id", "")
    stub = visit.desk.fleet.stub("table", CorrectionServiceStub)
    found: corrections.GetCorrectionResponse = await visit.calls.ask(
        stub.GetCorrection, corrections.GetCorrectionRequest(correction_id=correction_id)
    )
    _require_no_dealer(visit, await visit.desk.archive.playthrough(found.correction.round_id))
    answer: corrections.ApproveCorrectionResponse = await visit.calls.ask(
        stub.ApproveCorrection,
        corrections.ApproveCorrectionRequest(
            request_id=form.get("request_id", ""), correction_id=correction_id
        ),
    )
    telemetry.logger().info(
        CONSOLE_ORDER, operator=visit.who.name, order="approve", correction=correction_id
    )
    at = answer.position
    position = f"{at.segment}/{at.sequence}/{at.index}"
    return visit.page("part_done.html", order="approve", position=position, outcome="")


def _require_no_dealer(visit: Visit, found: Playthrough) -> None:
    """Dealer and supervisor of one round are two people."""
    me = f"operator:{visit.who.name}"
    for one in found.shown:
        event = one.event
        name = str(event.body.DESCRIPTOR.full_name)
        if event.is_input and event.actor == me and ORDERS.get(name) == DEALING:
            raise Refusal(403, "refused.two_people", role=visit.words.of(DEALING))


ROUTES = [
    Route("/corrections", page(show)),
    Route("/corrections/live", live(follow)),
    Route("/corrections/approve", change(approve, Role.SUPERVISOR), methods=["POST"]),
    Route("/corrections/round/{round_id}", page(of_round, *LOOKERS, reads="corrections")),
    Route("/corrections/round/{round_id}/dry-run", change(dry_run, *LOOKERS), methods=["POST"]),
    Route(
        "/corrections/round/{round_id}/propose",
        change(propose, Role.SUPERVISOR),
        methods=["POST"],
    ),
]
