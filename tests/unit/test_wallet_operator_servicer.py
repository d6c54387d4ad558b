"""WalletOperatorService: orders become inputs, and what is stuck is shown with what is safe."""

from __future__ import annotations

from typing import Any

import pytest

from sabot.partnerwallet.v1 import partner_wallet_service_pb2 as partner_wallet
from sabot.wallet.v1 import partner_profile_pb2 as profiles
from sabot.wallet.v1 import seamless_events_pb2 as seamless
from sabot.wallet.v1 import wallet_operator_service_pb2 as operators
from services.cli.movements import told
from services.kernel.call import Call
from services.kernel.errors import Refused
from services.kernel.tokens import Caller, Role
from services.wallet.operator_servicer import WalletOperatorServicer
from tests.unit.deciding import request_id
from tests.unit.fake_edge import FakeEdge, FakeQueries
from tests.unit.seamless_facts import (
    T_US,
    Game,
    approved_at,
    ids,
    movement,
    on,
    profile,
    reply,
    seamless_partner,
    unknown,
)
from tests.unit.wallet_facts import BOOK_CLOSED, settled, withdrawal

SAM = Call(Caller(operator="sam", roles=frozenset({Role.SUPERVISOR})))
TIE = ("b1", "tie", 100)


def stuck() -> tuple[Game, dict[str, str]]:
    """One of everything: a credit without an answer, a refused and a disputed one, a refused
    rollback, a debit that is waited for."""
    game = seamless_partner("a1", "a2", "a3", "a4", "a5")
    names: dict[str, str] = {}
    for number, account in enumerate(("a1", "a2", "a3", "a4")):
        on(game, f"r{number}", (f"b{number}", "tie", 100), account=account)
    (names["rollback"],) = ids(game.when(_withdrawn("a4", "b3")), seamless.RollbackOrdered)
    game.given(BOOK_CLOSED)
    for number, account in enumerate(("a1", "a2", "a3")):
        bet = (f"b{number}", "tie", 100, 800, 0)
        (names[account],) = ids(game.when(settled(bet, account=account)), seamless.CreditOrdered)
    game.given(
        unknown(game, names["a1"]),
        reply(
            game,
            names["a2"],
            seamless.REPLY_OUTCOME_DECLINED,
            credit_refusal=partner_wallet.CREDIT_REFUSAL_ACCOUNT_UNKNOWN,
        ),
        reply(game, names["a3"], seamless.REPLY_OUTCOME_CONTRADICTORY, problem="MALFORMED"),
        reply(
            game,
            names["rollback"],
            seamless.REPLY_OUTCOME_DECLINED,
            rollback_refusal=partner_wallet.ROLLBACK_REFUSAL_ALREADY_SETTLED,
        ),
    )
    return game, names


def _withdrawn(account: str, bet_id: str) -> Any:
    body = withdrawal("w", (bet_id, "tie", 100))
    body.account_id = account
    return body


def servicer_of(game: Game, *answers: Any) -> tuple[WalletOperatorServicer, FakeEdge]:
    edge = FakeEdge(answers=list(answers), states={"wallet": game.state})
    edge.log_time_us = game.time_us
    return WalletOperatorServicer(edge, FakeQueries()), edge


async def listed(
    servicer: WalletOperatorServicer, **asked: Any
) -> operators.ListUnresolvedResponse:
    return await servicer.list_unresolved(operators.ListUnresolvedRequest(**asked), SAM)


async def test_the_list_tells_what_is_known_and_what_is_safe() -> None:
    game, names = stuck()
    servicer, edge = servicer_of(game)
    found = await listed(servicer)
    assert [one.transaction_id for one in found.movements] == [
        names["rollback"],
        names["a2"],
        names["a3"],
    ], "what only waits for an answer is not stuck yet"
    edge.log_time_us += T_US
    found = await listed(servicer)
    shown = {one.transaction_id: one for one in found.movements}
    assert (found.total, len(shown)) == (4, 4)
    waiting = shown[names["a1"]]
    assert (waiting.kind, waiting.amount.minor_units, waiting.reason) == (
        operators.MOVEMENT_KIND_CREDIT,
        900,
        "WINNINGS",
    )
    assert (waiting.last_outcome, waiting.last_reason, waiting.calls, waiting.retrying) == (
        seamless.REPLY_OUTCOME_UNKNOWN,
        "DEADLINE_EXCEEDED",
        1,
        True,
    )
    assert list(waiting.safe_actions) == [
        seamless.MOVEMENT_ACTION_RETRY,
        seamless.MOVEMENT_ACTION_MARK_DONE,
    ]
    assert shown[names["a2"]].last_reason == "ACCOUNT_UNKNOWN"
    assert shown[names["a3"]].last_reason == "MALFORMED"
    refused = shown[names["rollback"]]
    assert (refused.last_reason, refused.retrying) == ("ALREADY_SETTLED", False)
    assert refused.safe_actions[0] == seamless.MOVEMENT_ACTION_MARK_DONE
    assert len({one.advice for one in found.movements}) == 4
    # What the command prints of it.
    line = told(refused)
    assert "rollback 1.00 EUR WITHDRAWN  acme/a4  t1-1" in line
    assert "called no more" in line
    assert "declined ALREADY_SETTLED" in line
    assert "mark-done, write-off, retry" in line


async def test_the_list_comes_in_pages_and_by_partner() -> None:
    game, _ = stuck()
    servicer, edge = servicer_of(game)
    edge.log_time_us += T_US
    first = await listed(servicer, page_size=3)
    assert (len(first.movements), first.total) == (3, 4)
    second = await listed(servicer, page_size=3, page_token=first.next_page_token)
    assert (len(second.movements), second.next_page_token) == (1, "")
    names = [one.transaction_id for one in (*first.movements, *second.movements)]
    assert len(set(names)) == 4
    assert not (await listed(servicer, partner_id="north")).movements
    with pytest.raises(Refused) as refused:
        await listed(servicer, partner_id="acme", page_token=first.next_page_token)
    assert refused.value.reason.name == "PAGE_TOKEN_INVALID"


async def test_a_debit_is_shown_while_it_is_fresh_where_that_is_asked_for() -> None:
    game = seamless_partner()
    (debit,) = ids(game.when(approved_at("r1", TIE)), seamless.DebitOrdered)
    servicer, _ = servicer_of(game)
    assert not (await listed(servicer)).movements
    (shown,) = (await listed(servicer, fresh=True)).movements
    assert (shown.transaction_id, shown.kind, shown.reason) == (
        debit,
        operators.MOVEMENT_KIND_DEBIT,
        "STAKE",
    )
    assert not shown.HasField("last_reply_time")
    assert "nothing came back yet" in told(shown)


async def test_orders_are_inputs_about_the_partner_and_refusals_are_told() -> None:
    game, names = stuck()
    credit = movement(game, names["a2"])
    done = seamless.MovementConfirmed(transaction_id=names["a2"], amount_minor=900)
    refusal = seamless.SeamlessOrderRejected(
        request_id=request_id(2), refusal=seamless.SEAMLESS_REFUSAL_NOT_REFUSED
    )
    servicer, edge = servicer_of(game, done, refusal)
    request = operators.ResolveMovementRequest(
        request_id=request_id(1),
        partner_id=credit.partner,
        transaction_id=names["a2"],
        action=seamless.MOVEMENT_ACTION_MARK_DONE,
        reason="paid by hand, their ref 17",
    )
    assert not (await servicer.resolve_movement(request, SAM)).replayed
    (told_of,) = edge.submitted
    assert (told_of.service, told_of.partner, told_of.actor) == ("wallet", "acme", "operator:sam")
    assert told_of.body.reason == "paid by hand, their ref 17"
    assert len(told_of.body.request_hash) == 32
    with pytest.raises(Refused) as refused:
        await servicer.resolve_movement(request, SAM)
    assert refused.value.reason.name == "MOVEMENT_NOT_REFUSED"
    assert names["a2"] in refused.value.text("en")


async def test_a_profile_is_set_and_told() -> None:
    game = seamless_partner(end_of_round=True)
    servicer, edge = servicer_of(
        game,
        seamless.PartnerProfileSet(partner_id="acme"),
        seamless.SeamlessOrderRejected(
            refusal=seamless.SEAMLESS_REFUSAL_BAD_PROFILE, detail="a convention is not known"
        ),
    )
    request = operators.SetPartnerProfileRequest(
        request_id=request_id(1), partner_id="acme", profile=profile(), reason="certified"
    )
    await servicer.set_partner_profile(request, SAM)
    assert edge.submitted[0].body.profile == profile()
    with pytest.raises(Refused) as refused:
        await servicer.set_partner_profile(request, SAM)
    assert "a convention is not known" in refused.value.text("en")
    asked = operators.GetPartnerProfileRequest(partner_id="acme")
    assert (await servicer.get_partner_profile(asked, SAM)).profile.end_of_round
    asked.partner_id = "north"
    told_of = (await servicer.get_partner_profile(asked, SAM)).profile
    assert told_of == profiles.PartnerProfile(mode=profiles.WALLET_MODE_TRANSFER)
