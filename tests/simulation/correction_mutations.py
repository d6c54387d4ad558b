"""Faults that are planted in corrections of paid rounds, to see whether they are found."""

from __future__ import annotations

from typing import Any

import pytest

from sabot.table.v1 import events_pb2 as table
from services.kernel.event import Event
from services.settlement.domain import correcting
from services.simulator.releases import BASE, Cores
from services.table.domain import paid_rounds
from services.wallet.domain import corrections as wallet_corrections
from tests.simulation.mutations import Mutation


def lets_one_person_correct(patch: pytest.MonkeyPatch) -> Cores:
    """Whoever proposed a correction may approve it."""
    approved = paid_rounds._approved

    def by_anybody(state: Any, event: Event, body: Any) -> Any:
        found = approved(state, event, body)
        if found != table.REFUSAL_SAME_PERSON:
            return found
        return approved(state, event._replace(actor="operator:anybody"), body)

    patch.setattr(paid_rounds, "_approved", by_anybody)
    return BASE


def forgets_commission_when_it_corrects(patch: pytest.MonkeyPatch) -> Cores:
    """A corrected bet is told with the commission that it had before."""
    difference = correcting._difference

    def without(who: Any, account: Any, paying: Any) -> Any:
        found = difference(who, account, paying)
        if found is None or not found.commission_delta_minor:
            return found
        for bet in found.bets:
            bet.after.commission_minor = bet.before.commission_minor
        return found._replace(commission_delta_minor=0)

    patch.setattr(correcting, "_difference", without)
    return BASE


def gives_away_what_is_owed(patch: pytest.MonkeyPatch) -> Cores:
    """What an account gives back is a receivable, however much it has."""
    shortfall = wallet_corrections._shortfall

    def all_of_it(state: Any, partner: str, account: Any, delta_minor: int) -> int:
        shortfall(state, partner, account, delta_minor)
        return max(0, -delta_minor)

    patch.setattr(wallet_corrections, "_shortfall", all_of_it)
    return BASE


MUTATIONS: dict[str, Mutation] = {
    install.__name__: Mutation(install, sign, tuple(games))
    for install, sign, *games in (
        (lets_one_person_correct, "is approved by its proposer"),
        (forgets_commission_when_it_corrects, "is corrected", "baccarat"),
        (gives_away_what_is_owed, "gives"),
    )
}
