"""Faults that are planted in what we do with a partner's own wallet, to see whether the auditor
finds them by the partner's books."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from sabot.wallet.v1 import events_pb2 as wallet
from sabot.wallet.v1 import seamless_events_pb2 as seamless
from services.simulator.releases import BASE, Cores
from services.wallet import partner_wallet
from services.wallet.domain import seamless_confirming, seamless_debits, seamless_returns, stakes
from services.wallet.domain.seamless_state import MovementKind
from services.wallet.partner_replies import Verdict, reply_of
from tests.simulation.mutations import Mutation


def takes_silence_for_yes(patch: pytest.MonkeyPatch) -> Cores:
    """A debit whose answer did not come was taken, surely."""

    def hopeful(
        transaction_id: str, movement: Any, asked_by: Any, verdict: Verdict, calls: int
    ) -> seamless.RecordReply:
        silent = verdict.outcome == seamless.REPLY_OUTCOME_UNKNOWN
        if silent and movement.kind is MovementKind.DEBIT:
            verdict = Verdict(seamless.REPLY_OUTCOME_DONE)
        return reply_of(transaction_id, movement, asked_by, verdict, calls)

    patch.setattr(partner_wallet, "reply_of", hopeful)
    return BASE


def rolls_nothing_back(patch: pytest.MonkeyPatch) -> Cores:
    """What was declined is forgotten: the partner will know."""
    decline = seamless_debits.decline_request

    def declined_only(*about: Any, **more: Any) -> list[Any]:
        return [one for one in decline(*about, **more) if isinstance(one, wallet.StakeDeclined)]

    for module in (seamless_debits, seamless_returns, stakes):
        patch.setattr(module, "decline_request", declined_only)
    return BASE


def gives_every_try_an_id_of_its_own(patch: pytest.MonkeyPatch) -> Cores:
    """A call that is made again is another call."""
    checked = partner_wallet.PartnerWallets._checked
    tries = itertools.count(1)

    async def anew(
        self: Any, partner: str, profile: Any, transaction: str, movement: Any
    ) -> Verdict:
        return await checked(self, partner, profile, f"{transaction}-{next(tries)}", movement)

    patch.setattr(partner_wallet.PartnerWallets, "_checked", anew)
    return BASE


def forgets_what_is_not_confirmed(patch: pytest.MonkeyPatch) -> Cores:
    """A credit or rollback without an answer counts as done."""
    decide = seamless_confirming.decide_reply

    def done(state: Any, event: Any, body: seamless.RecordReply) -> Any:
        movement = state.movements.get(body.transaction_id)
        owed = movement is not None and movement.kind is not MovementKind.DEBIT
        if owed and body.outcome == seamless.REPLY_OUTCOME_UNKNOWN:
            hopeful = seamless.RecordReply()
            hopeful.CopyFrom(body)
            hopeful.outcome = seamless.REPLY_OUTCOME_DONE
            return decide(state, event, hopeful)
        return decide(state, event, body)

    patch.setattr("services.wallet.domain.core.decide_reply", done)
    return BASE


SEAMLESS_MUTATIONS: dict[str, Mutation] = {
    install.__name__: Mutation(install, "in its partner's books")
    for install in (
        takes_silence_for_yes,
        rolls_nothing_back,
        gives_every_try_an_id_of_its_own,
        forgets_what_is_not_confirmed,
    )
}
