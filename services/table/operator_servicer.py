"""TableOperatorService: operators' orders at tables, and what operators may tell the cell."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from google.protobuf.message import Message

from sabot.log.v1 import events_pb2 as log
from sabot.rules.v1 import rule_set_pb2
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import events_pb2 as tables
from sabot.table.v1 import floor_events_pb2 as orders
from sabot.table.v1 import operator_service_pb2 as operators
from sabot.table.v1 import spec_pb2
from sabot.table.v1 import switch_events_pb2 as switches
from services.games.blackjack_bets import FURTHER_STAKES
from services.games.money import MAX_STAKE_MINOR
from services.games.rule_set_faults import rule_set_faults
from services.kernel.ask import Told, ask
from services.kernel.call import EVERY_ROLE, Call, position_message, position_of, request_hash, rpc
from services.kernel.edge import Edge
from services.kernel.errors import (
    BEHAVIOUR_NOT_POSSIBLE,
    INPUT_NOT_FAILED,
    Refused,
)
from services.kernel.tokens import Role
from services.odds.declared import faults
from services.refusals.floor import EVERY_TABLE, NOTHING_TO_CORRECT, check_table
from services.refusals.table import BAD_TABLE_SPEC
from services.table.answers import facts_of, obeyed
from services.table.domain.events import ANSWERS
from services.table.domain.state import TableState
from services.table.domain.switches import switch_of
from services.table.queries import TableQueries

MAX_DETAIL = 2000
"""Characters of what is wrong with a rule set: enough for a person to begin with."""
_DEALERS = (Role.DEALER, Role.SUPERVISOR)
_SUPERVISORS = (Role.SUPERVISOR,)
_CALLERS = (Role.DEALER, Role.SUPERVISOR, Role.DEVICE)
"""Who may say that there are no more bets: a table's own sensor too."""
_KERNEL_ANSWERS: frozenset[type[Message]] = frozenset((log.InputIgnored, log.RequestRepeated))
_Response = TypeVar("_Response", bound=Message)


@dataclass(frozen=True, slots=True)
class _Order(Generic[_Response]):
    """An order: the table's input, its answer where it is obeyed, and the response that tells so.
    Fields of one name are the same in request and input, and in answer and response."""

    body: type[Message]
    answer: type[Message]
    response: type[_Response]
    refusals: tuple[type[Message], ...] = ()
    """Answers of other services that refuse what the table has let pass."""
    since: str = ""
    """A field that every edge sets since orders are decided so; no part of the request."""


_OPEN_TABLE = _Order(
    tables.OpenTable,
    tables.TableOpened,
    operators.OpenTableResponse,
    since="blackjack_on_floor",
)
_CLOSE_TABLE = _Order(tables.CloseTable, tables.TableClosed, operators.CloseTableResponse)
_OPEN_ROUND = _Order(tables.OpenRound, tables.RoundOpened, operators.OpenRoundResponse)
_CLOSE_BETTING = _Order(
    tables.CloseBetting,
    tables.BettingClosed,
    operators.CloseBettingResponse,
    since="told_when_voided",
)
_SUSPEND = _Order(tables.SuspendRound, tables.RoundSuspended, operators.SuspendRoundResponse)
_RESUME = _Order(tables.ResumeRound, tables.RoundResumed, operators.ResumeRoundResponse)
_VOID = _Order(tables.VoidRound, tables.RoundVoided, operators.VoidRoundResponse)
_SET_SWITCH = _Order(switches.SetSwitch, switches.SwitchSet, operators.SetSwitchResponse)
_CORRECT_CARD = _Order(
    orders.CorrectCard, floor.CardCorrected, operators.CorrectCardResponse, (floor.FloorRejected,)
)
_CORRECT_OUTCOME = _Order(
    orders.CorrectOutcome,
    floor.OutcomeCorrected,
    operators.CorrectOutcomeResponse,
    (floor.FloorRejected,),
)


class TableOperatorServicer:
    """Every order is an input; the table's core says whether it is obeyed."""

    def __init__(self, edge: Edge, queries: TableQueries) -> None:
        self._edge = edge
        self._queries = queries

    @rpc(roles=_SUPERVISORS, deadline=True)
    async def open_table(
        self, request: operators.OpenTableRequest, call: Call
    ) -> operators.OpenTableResponse:
        """A table under rules, or other rules for an open one. The core cannot enumerate: what the
        rules declare of the bets' edges is checked here. So is what this build does not carry out
        yet: the core's decisions must not change once it does."""
        await asyncio.to_thread(_check_rules, request.spec.rule_set)
        _complete(request.spec)
        return await self._give(_OPEN_TABLE, request, call, request.spec.table_id)

    @rpc(roles=_SUPERVISORS, deadline=True)
    async def close_table(
        self, request: operators.CloseTableRequest, call: Call
    ) -> operators.CloseTableResponse:
        """No further rounds."""
        return await self._give(_CLOSE_TABLE, request, call, request.table_id)

    @rpc(roles=_DEALERS, deadline=True)
    async def open_round(
        self, request: operators.OpenRoundRequest, call: Call
    ) -> operators.OpenRoundResponse:
        """The next round."""
        return await self._give(_OPEN_ROUND, request, call, request.table_id)

    @rpc(roles=_CALLERS, deadline=True)
    async def close_betting(
        self, request: operators.CloseBettingRequest, call: Call
    ) -> operators.CloseBettingResponse:
        """No more bets."""
        return await self._give(
            _CLOSE_BETTING,
            request,
            call,
            request.table_id,
            request.round_id,
            device_time_us=request.device_time.ToMicroseconds(),
        )

    @rpc(roles=_DEALERS, deadline=True)
    async def suspend_round(
        self, request: operators.SuspendRoundRequest, call: Call
    ) -> operators.SuspendRoundResponse:
        """A round stands still."""
        return await self._give(_SUSPEND, request, call, request.table_id, request.round_id)

    @rpc(roles=_SUPERVISORS, deadline=True)
    async def resume_round(
        self, request: operators.ResumeRoundRequest, call: Call
    ) -> operators.ResumeRoundResponse:
        """A suspended round goes on."""
        return await self._give(_RESUME, request, call, request.table_id, request.round_id)

    @rpc(roles=_SUPERVISORS, deadline=True)
    async def void_round(
        self, request: operators.VoidRoundRequest, call: Call
    ) -> operators.VoidRoundResponse:
        """A round does not count."""
        return await self._give(_VOID, request, call, request.table_id, request.round_id)

    @rpc(roles=_SUPERVISORS, deadline=True)
    async def correct_card(
        self, request: operators.CorrectCardRequest, call: Call
    ) -> operators.CorrectCardResponse:
        """A card of a suspended round was misread."""
        check_table(call.caller, request.table_id)
        self._keep_face_down(request.table_id, request.round_id, request.index)
        return await self._give(_CORRECT_CARD, request, call, request.table_id, request.round_id)

    @rpc(roles=_SUPERVISORS, deadline=True)
    async def correct_outcome(
        self, request: operators.CorrectOutcomeRequest, call: Call
    ) -> operators.CorrectOutcomeResponse:
        """A spin or a roll of a suspended round was misread."""
        return await self._give(_CORRECT_OUTCOME, request, call, request.table_id, request.round_id)

    @rpc(roles=_SUPERVISORS, deadline=True)
    async def activate_behaviour(
        self, request: operators.ActivateBehaviourRequest, call: Call
    ) -> operators.ActivateBehaviourResponse:
        """Every service decides by a newer behaviour. One that this build does not have would stop
        every process of the cell, and could not be taken back."""
        in_force, known = self._edge.behaviour, self._edge.known_behaviour
        if not in_force < request.behaviour <= known:
            facts = {"behaviour": request.behaviour, "in_force": in_force, "known": known}
            raise Refused(BEHAVIOUR_NOT_POSSIBLE, facts)
        position = await self._note(log.ActivateBehaviour(behaviour=request.behaviour), call)
        return operators.ActivateBehaviourResponse(position=position_message(position.position))

    @rpc(roles=EVERY_ROLE)
    async def get_behaviour(
        self, request: operators.GetBehaviourRequest, call: Call
    ) -> operators.GetBehaviourResponse:
        """By what services decide."""
        del request, call
        return operators.GetBehaviourResponse(
            in_force=self._edge.behaviour, known=self._edge.known_behaviour
        )

    @rpc(roles=_SUPERVISORS, deadline=True)
    async def retry_input(
        self, request: operators.RetryInputRequest, call: Call
    ) -> operators.RetryInputResponse:
        """An input that failed is decided once more. One that did not would be noted in the log,
        and whoever asked would take it for decided."""
        failed = self._edge.failed_input(position_of(request.failed))
        if failed is None:
            raise Refused(INPUT_NOT_FAILED, {"failed": str(position_of(request.failed))})
        body = log.RetryInput(position=position_message(failed), reason=request.reason)
        told = await self._note(body, call)
        return operators.RetryInputResponse(position=position_message(told.position))

    def _keep_face_down(self, table_id: str, round_id: str, index: int) -> None:
        """What a card of blackjack is that does not lie open is not put into the log (rule VIS-3).
        Raises Refused."""
        state: TableState = self._edge.state("table")
        one = state.tables.get(table_id)
        if one is None or one.running is None or not one.running.seated:
            return
        if one.running.at_floor is not None and index not in one.seen:
            raise Refused(NOTHING_TO_CORRECT, facts_of(table_id=table_id, round_id=round_id))

    @rpc(roles=_SUPERVISORS, deadline=True)
    async def set_switch(
        self, request: operators.SetSwitchRequest, call: Call
    ) -> operators.SetSwitchResponse:
        """Something is off, or on again. It may concern every table."""
        check_table(call.caller, EVERY_TABLE)
        return await self._give(_SET_SWITCH, request, call, "")

    @rpc(roles=EVERY_ROLE)
    async def list_switches(
        self, request: operators.ListSwitchesRequest, call: Call
    ) -> operators.ListSwitchesResponse:
        """What is off."""
        del request, call
        state: TableState = self._edge.state("table")
        response = operators.ListSwitchesResponse(position=position_message(self._edge.position))
        for key, off in state.switches.items():
            told = response.off.add(switch=switch_of(key), reason=off.reason, actor=off.actor)
            told.since.FromMicroseconds(off.since_us)
        return response

    async def _give(
        self,
        order: _Order[_Response],
        request: Message,
        call: Call,
        table_id: str,
        round_id: str = "",
        **more: int,
    ) -> _Response:
        """Give an order and wait until it is obeyed. `more`: what the input says in other words
        than the request. Raises Refused."""
        check_table(call.caller, table_id)
        body: Any = order.body(**_shared(request, order.body), **more)  # each has an id and a hash
        if "source" in order.body.DESCRIPTOR.fields_by_name:
            body.source = tables.SOURCE_OPERATOR
        body.request_hash = request_hash(body)
        if order.since:
            setattr(body, order.since, True)
        until = frozenset((order.answer, tables.OrderRejected, *order.refusals))
        told = await ask(self._edge, self._queries, "table", body, call, partner="", until=until)
        facts = facts_of(request_id=body.request_id, table_id=table_id, round_id=round_id)
        obeyed(told, order.answer, facts)
        return order.response(
            **_shared(told.body, order.response),
            position=position_message(told.position),
            replayed=told.replayed,
        )

    async def _note(self, body: Message, call: Call) -> Told:
        """Put into the log what the kernel itself acts on. Raises Refused. What the table answers
        to it is `InputNoted`, or, to a retry of its own failure, what it decides this time."""
        noted: frozenset[type[Message]] = frozenset((log.InputNoted,))
        until = (noted | ANSWERS) - _KERNEL_ANSWERS
        return await ask(self._edge, self._queries, "table", body, call, partner="", until=until)


def _shared(message: Message, kind: type[Message]) -> dict[str, Any]:
    """What is set in a message, by the names that another kind has too."""
    names = kind.DESCRIPTOR.fields_by_name
    return {field.name: value for field, value in message.ListFields() if field.name in names}


def _complete(spec: spec_pb2.TableSpec) -> None:
    """A double, a split and insurance have no limits of their own (rules BJ-3, BJ-6, BJ-7), but the
    log's form of a table has a line for each bet: where it is left out, one that allows all."""
    if spec.rule_set.game != rule_set_pb2.GAME_BLACKJACK:
        return
    limited = {limit.bet for limit in spec.limits}
    for offer in spec.rule_set.bets:
        if offer.bet in FURTHER_STAKES and offer.bet not in limited:
            spec.limits.add(bet=offer.bet, min_minor=1, max_minor=MAX_STAKE_MINOR, step_minor=1)
    spec.limits.sort(key=lambda limit: limit.bet)


def _check_rules(rule_set: rule_set_pb2.RuleSet) -> None:
    """What a rule set declares is what its enumeration gives, and all of it can be kept. What else
    is wrong with it the core says. Raises Refused."""
    if rule_set_faults(rule_set):
        return
    wrong = faults(rule_set)
    if wrong:
        raise Refused(BAD_TABLE_SPEC, {"detail": "; ".join(wrong)[:MAX_DETAIL]})
