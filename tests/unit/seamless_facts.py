"""The facts that tests of seamless wallets speak of: partner `acme` holds its accounts' money."""

from __future__ import annotations

from typing import Any

from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1 import entry_pb2
from sabot.partnerwallet.v1 import conventions_pb2 as conventions
from sabot.table.v1 import bet_pb2
from sabot.wallet.v1 import events_pb2 as wallet
from sabot.wallet.v1 import partner_profile_pb2 as profiles
from sabot.wallet.v1 import seamless_events_pb2 as seamless
from services.kernel.event import Position
from services.wallet.domain.core import CORE
from services.wallet.domain.seamless_debits import ANSWER_US
from services.wallet.domain.seamless_state import Movement
from services.wallet.domain.state import WalletState, sums
from tests.unit.deciding import START_US, Deciding, Fact, by, request_id
from tests.unit.wallet_facts import SUPERVISOR, A, R, T, bets, open_account

Game = Deciding[WalletState]
T_US = ANSWER_US

CONVENTIONS = conventions.WalletConventions(
    repeats=conventions.REPEAT_CONVENTION_FIRST_ANSWER,
    settled_rollbacks=conventions.SETTLED_ROLLBACK_CONVENTION_REFUSED,
    overdraws=conventions.OVERDRAW_CONVENTION_DECLINED,
)
TRANSFER = profiles.PartnerProfile(mode=profiles.WALLET_MODE_TRANSFER)


def profile(**changed: Any) -> profiles.PartnerProfile:
    """A seamless profile on this machine."""
    told = profiles.PartnerProfile(
        mode=profiles.WALLET_MODE_SEAMLESS,
        address="127.0.0.1:7600",
        plaintext=True,
        conventions=CONVENTIONS,
    )
    for name, value in changed.items():
        if name == "conventions":
            told.conventions.CopyFrom(value)
        else:
            setattr(told, name, value)
    return told


def order(body: seamless.SetPartnerProfile | seamless.ResolveMovement, number: int) -> Fact:
    """An operator's order with its id and hash; the partner stands in the header."""
    body.request_id = request_id(number)
    body.request_hash = str(body).encode()
    body.reason = body.reason or "as agreed"
    return by(body, actor=SUPERVISOR)


def set_profile(number: int, told: profiles.PartnerProfile) -> Fact:
    return order(seamless.SetPartnerProfile(profile=told), number)


def resolve(number: int, transaction_id: str, action: seamless.MovementAction.ValueType) -> Fact:
    body = seamless.ResolveMovement(transaction_id=transaction_id, action=action)
    return order(body, number)


def seamless_partner(*accounts: str, **changed: Any) -> Game:
    """Acme is seamless, its accounts are open."""
    game = Deciding(CORE).given(set_profile(9_500, profile(**changed)))
    for number, account in enumerate(accounts or (A,)):
        game.given(open_account(9_000 + number, account))
    return game


def ids(game: Game, kind: type[Any]) -> list[str]:
    """The transactions of a kind of order that the last event was answered with."""
    return [str(one.transaction_id) for one in game.answers if isinstance(one, kind)]


def debit_of(game: Game) -> str:
    """The one debit that was just ordered."""
    (one,) = ids(game, seamless.DebitOrdered)
    return one


def movement(game: Game, transaction_id: str) -> Movement:
    return game.state.seamless.movements[transaction_id]


def reply(
    game: Game,
    transaction_id: str,
    outcome: seamless.ReplyOutcome.ValueType = seamless.REPLY_OUTCOME_DONE,
    *,
    partner: str = "acme",
    asked_by: Position | None = None,
    round_id: str = R,
    **told: Any,
) -> Fact:
    """What acme's wallet said about a movement, however long ago that was ordered."""
    known = game.state.seamless.movements.get(transaction_id)
    if asked_by is None:
        asked_by = known.asked_by if known is not None else Position(1, 1, 0)
    body = seamless.RecordReply(
        transaction_id=transaction_id,
        asked_by=entry_pb2.Position(
            segment=asked_by.segment, sequence=asked_by.sequence, index=asked_by.index
        ),
        table_id=T,
        round_id=round_id,
        account_id=A if known is None else known.account_id,
        outcome=outcome,
        calls=1,
        **told,
    )
    return by(body, partner=partner, actor="system:partnerwallets")


def declined_by_partner(game: Game, transaction_id: str, why: int) -> Fact:
    return reply(game, transaction_id, seamless.REPLY_OUTCOME_DECLINED, debit_decline=why)


def unknown(game: Game, transaction_id: str, problem: str = "DEADLINE_EXCEEDED") -> Fact:
    return reply(game, transaction_id, seamless.REPLY_OUTCOME_UNKNOWN, problem=problem)


def timeout(game: Game, transaction_id: str, *, early_us: int = 0, partner: str = "acme") -> Fact:
    """The timer of a debit, at the time when it is due."""
    known = movement(game, transaction_id)
    due_us = known.due_us or 0
    body = seamless.TimeOutDebit(
        transaction_id=transaction_id,
        asked_by=entry_pb2.Position(
            segment=known.due_by.segment,
            sequence=known.due_by.sequence,
            index=known.due_by.index,
        ),
    )
    return by(
        body,
        partner=partner,
        actor="system:debittimers",
        at_us=max(0, due_us - early_us - START_US),
    )


def on(game: Game, request: str, *wagers: tuple[str, str, int], account: str = A) -> list[str]:
    """Bets that acme's wallet has taken: their debits."""
    game.given()
    game.when(approved_at(request, *wagers, account=account))
    debits = ids(game, seamless.DebitOrdered)
    for one in debits:
        game.when(reply(game, one))
    return debits


def approved_at(
    request: str,
    *wagers: tuple[str, str, int],
    account: str = A,
    stage: bet_pb2.Stage.ValueType = bet_pb2.STAGE_UNSPECIFIED,
) -> limits.BetsApproved:
    return limits.BetsApproved(
        request_id=request,
        account_id=account,
        table_id=T,
        round_id=R,
        currency_code="EUR",
        bets=bets(*wagers),
        stage=stage,
    )


def ledger(game: Game, kind: str) -> int:
    """A ledger account of acme's in EUR."""
    return game.state.ledgers.get((kind, "acme", "EUR"), 0)


def balanced(game: Game) -> bool:
    """Whether every currency sums to zero, and no account of acme's holds cash here."""
    cash = [one.available_minor for one in game.state.accounts.values()]
    return not any(sums(game.state).values()) and not any(cash)


def rejected(number: int, refusal: seamless.SeamlessRefusal.ValueType, detail: str = "") -> Any:
    return seamless.SeamlessOrderRejected(
        request_id=request_id(number), refusal=refusal, detail=detail
    )


def reserved_minor(game: Game, account: str = A) -> int:
    return game.state.accounts["acme", account].reserved_minor


DECLINE = wallet.Decline
