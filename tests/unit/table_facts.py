"""The facts that the table's tests speak of: one baccarat table `t1` of partner `acme`."""

from __future__ import annotations

from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1 import events_pb2 as log
from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.table.v1 import bet_pb2, spec_pb2
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.games.catalogue import baccarat_1
from services.table.domain.core import CORE
from services.table.domain.state import TableState
from tests.unit.deciding import OPERATOR, Deciding, Fact, by, request_id

T = "t1"
R1 = "t1-1"
R2 = "t1-2"
S1 = "t1-s1"
S2 = "t1-s2"
WINDOW_MS = 15_000
PAUSE_MS = 5_000


def spec(window_ms: int = 0, pause_ms: int = 0, table_id: str = T) -> spec_pb2.TableSpec:
    limit = {"min_minor": 100, "max_minor": 1_000_000, "step_minor": 100}
    return spec_pb2.TableSpec(
        table_id=table_id,
        currency_code="EUR",
        rule_set=baccarat_1(),
        limits=[spec_pb2.BetLimit(bet=bet, **limit) for bet in ("banker", "player", "tie")],
        pacing=spec_pb2.Pacing(betting_window_ms=window_ms, pause_ms=pause_ms),
    )


def order(
    body: table.OpenTable
    | table.CloseTable
    | table.OpenRound
    | table.CloseBetting
    | table.SuspendRound
    | table.ResumeRound
    | table.VoidRound,
    number: int,
    at_us: int | None = None,
) -> Fact:
    """An operator's order with its request id and hash."""
    body.request_id = request_id(number)
    body.request_hash = str(number).encode()
    return by(body, partner="", actor=OPERATOR, at_us=at_us)


def open_table(number: int = 1, of: spec_pb2.TableSpec | None = None) -> Fact:
    return order(table.OpenTable(spec=of or spec()), number)


def opened(revision: int = 1, of: spec_pb2.TableSpec | None = None) -> table.TableOpened:
    return table.TableOpened(spec=of or spec(), revision=revision)


def shoe_opened(shoe_id: str = S1, number: int = 1) -> Fact:
    return by(
        shoe.ShoeOpened(table_id=T, shoe_id=shoe_id, number=number, cards=416, cut_at=409),
        partner="",
    )


def shoe_started(shoe_id: str = S1, at_us: int | None = None) -> Fact:
    return by(
        shoe.CardsBurned(
            table_id=T, shoe_id=shoe_id, face_down=7, reason=shoe.BURN_REASON_SHOE_START
        ),
        partner="",
        at_us=at_us,
    )


def cards_burned_late(
    reason: shoe.BurnReason.ValueType = shoe.BURN_REASON_ROUND_OVER, shoe_id: str = S1
) -> Fact:
    return by(shoe.CardsBurned(table_id=T, shoe_id=shoe_id, reason=reason), partner="")


def open_round(number: int = 2) -> Fact:
    return order(table.OpenRound(table_id=T, source=table.SOURCE_OPERATOR), number)


def timer_opens(number: int, at_us: int | None = None) -> Fact:
    return by(
        table.OpenRound(table_id=T, source=table.SOURCE_TIMER, number=number),
        partner="",
        actor="system:timer",
        at_us=at_us,
    )


def round_opened(
    number: int = 1,
    *,
    shoe_id: str = S1,
    in_shoe: int | None = None,
    window_ms: int = 0,
    revision: int = 1,
) -> table.RoundOpened:
    return table.RoundOpened(
        table_id=T,
        round_id=f"{T}-{number}",
        number=number,
        shoe_id=shoe_id,
        round_in_shoe=number if in_shoe is None else in_shoe,
        closes_after_ms=window_ms,
        revision=revision,
    )


def place(
    request: str = "q1",
    *bets: tuple[str, int],
    round_id: str = R1,
    account: str = "ann",
    table_id: str = T,
    currency: str = "EUR",
    request_hash: bytes = b"h",
) -> table.PlaceBets:
    return table.PlaceBets(
        request_id=request,
        request_hash=request_hash,
        account_id=account,
        table_id=table_id,
        round_id=round_id,
        currency_code=currency,
        bets=[bet_pb2.Bet(bet=bet, stake_minor=stake) for bet, stake in bets or [("player", 500)]],
    )


def placed(
    request: str = "q1",
    *bets: tuple[str, str, int],
    round_id: str = R1,
    account: str = "ann",
) -> table.BetsPlaced:
    return table.BetsPlaced(
        request_id=request,
        account_id=account,
        table_id=T,
        round_id=round_id,
        currency_code="EUR",
        bets=bets_of(*(bets or (("t1-1.1", "player", 500),))),
    )


def bets_of(*bets: tuple[str, str, int]) -> list[bet_pb2.Bet]:
    return [bet_pb2.Bet(bet_id=one, bet=bet, stake_minor=stake) for one, bet, stake in bets]


def bets_rejected(
    refusal: table.Refusal.ValueType,
    request: str = "q1",
    *,
    round_id: str = R1,
    table_id: str = T,
    account: str = "ann",
) -> table.BetsRejected:
    return table.BetsRejected(
        request_id=request,
        account_id=account,
        table_id=table_id,
        round_id=round_id,
        refusal=refusal,
    )


def withdraw(
    request: str = "w1",
    *bet_ids: str,
    round_id: str = R1,
    account: str = "ann",
    table_id: str = T,
    request_hash: bytes = b"w",
) -> table.WithdrawBets:
    return table.WithdrawBets(
        request_id=request,
        request_hash=request_hash,
        account_id=account,
        table_id=table_id,
        round_id=round_id,
        bet_ids=bet_ids,
    )


def withdrawn(request: str = "w1", *bets: tuple[str, str, int]) -> table.BetsWithdrawn:
    return table.BetsWithdrawn(
        request_id=request, account_id="ann", table_id=T, round_id=R1, bets=bets_of(*bets)
    )


def withdrawal_rejected(
    refusal: table.Refusal.ValueType, request: str = "w1", *, round_id: str = R1, table_id: str = T
) -> table.WithdrawalRejected:
    return table.WithdrawalRejected(
        request_id=request,
        account_id="ann",
        table_id=table_id,
        round_id=round_id,
        refusal=refusal,
    )


def close_betting(number: int = 3, round_id: str = R1, table_id: str = T) -> Fact:
    body = table.CloseBetting(table_id=table_id, round_id=round_id, source=table.SOURCE_OPERATOR)
    return order(body, number)


def timer_closes(timer: int = 1, round_id: str = R1, table_id: str = T) -> Fact:
    return by(
        table.CloseBetting(
            table_id=table_id, round_id=round_id, source=table.SOURCE_TIMER, timer=timer
        ),
        partner="",
        actor="system:timer",
    )


def betting_closed(
    source: table.Source.ValueType = table.SOURCE_OPERATOR, round_id: str = R1
) -> table.BettingClosed:
    return table.BettingClosed(table_id=T, round_id=round_id, source=source)


def suspend(number: int = 4, round_id: str = R1, table_id: str = T) -> Fact:
    return order(
        table.SuspendRound(
            table_id=table_id, round_id=round_id, reason=table.ROUND_REASON_DEALER_ERROR
        ),
        number,
    )


def suspended(
    reason: table.RoundReason.ValueType = table.ROUND_REASON_DEALER_ERROR, round_id: str = R1
) -> table.RoundSuspended:
    return table.RoundSuspended(table_id=T, round_id=round_id, reason=reason)


def resume(number: int = 5, round_id: str = R1, table_id: str = T) -> Fact:
    return order(
        table.ResumeRound(table_id=table_id, round_id=round_id, reason=table.ROUND_REASON_CLEARED),
        number,
    )


def resumed(closes_after_ms: int = 0, timer: int = 0) -> table.RoundResumed:
    return table.RoundResumed(
        table_id=T,
        round_id=R1,
        reason=table.ROUND_REASON_CLEARED,
        closes_after_ms=closes_after_ms,
        timer=timer,
    )


def void(number: int = 6, round_id: str = R1, table_id: str = T) -> Fact:
    return order(
        table.VoidRound(table_id=table_id, round_id=round_id, reason=table.ROUND_REASON_EQUIPMENT),
        number,
    )


def voided(
    reason: table.RoundReason.ValueType = table.ROUND_REASON_EQUIPMENT, round_id: str = R1
) -> table.RoundVoided:
    return table.RoundVoided(table_id=T, round_id=round_id, reason=reason)


def close_table(number: int = 7, table_id: str = T) -> Fact:
    return order(table.CloseTable(table_id=table_id), number)


def rejected(
    refusal: table.Refusal.ValueType,
    number: int,
    *,
    round_id: str = "",
    table_id: str = T,
    detail: str = "",
) -> table.OrderRejected:
    return table.OrderRejected(
        request_id=request_id(number),
        table_id=table_id,
        round_id=round_id,
        refusal=refusal,
        detail=detail,
    )


RESULT = rules.Result(
    baccarat=rules.BaccaratResult(
        player_cards=["8S", "KD"],
        banker_cards=["7H", "TC"],
        player_total=8,
        banker_total=7,
        winner=rules.BACCARAT_WINNER_PLAYER,
    )
)


def resolved(round_id: str = R1) -> rules.RoundResolved:
    return rules.RoundResolved(table_id=T, round_id=round_id, result=RESULT)


def accepted(round_id: str = R1) -> table.ResultAccepted:
    return table.ResultAccepted(table_id=T, round_id=round_id, result=RESULT)


def paid(round_id: str = R1, at_us: int | None = None) -> Fact:
    return by(wallet.RoundPaid(table_id=T, round_id=round_id), partner="", at_us=at_us)


def returned(round_id: str = R1) -> wallet.RoundReturned:
    return wallet.RoundReturned(table_id=T, round_id=round_id)


def closed(
    number: int = 1,
    *,
    end: table.RoundEnd.ValueType = table.ROUND_END_PAID,
    opens_after_ms: int | None = None,
) -> table.RoundClosed:
    return table.RoundClosed(
        table_id=T,
        round_id=f"{T}-{number}",
        end=end,
        next_number=number + 1,
        opens_after_ms=opens_after_ms,
    )


def refused_by_limits(*bet_ids: str) -> limits.BetsRefused:
    return limits.BetsRefused(
        request_id="q1", account_id="ann", table_id=T, round_id=R1, bet_ids=bet_ids
    )


def withdrawal_refused(*bet_ids: str) -> limits.WithdrawalRefused:
    return limits.WithdrawalRefused(
        request_id="w1", account_id="ann", table_id=T, round_id=R1, bet_ids=bet_ids
    )


def withdrawal_approved(*bets: tuple[str, str, int]) -> limits.WithdrawalApproved:
    return limits.WithdrawalApproved(
        request_id="w1", account_id="ann", table_id=T, round_id=R1, bets=bets_of(*bets)
    )


def declined(*bets: tuple[str, str, int]) -> wallet.StakeDeclined:
    return wallet.StakeDeclined(
        request_id="q1",
        account_id="ann",
        table_id=T,
        round_id=R1,
        bets=bets_of(*bets),
        decline=wallet.DECLINE_INSUFFICIENT_FUNDS,
    )


def cut_card(rounds_left: int = 0, round_id: str = R1, shoe_id: str = S1) -> Fact:
    return by(
        shoe.CutCardReached(
            table_id=T, shoe_id=shoe_id, round_id=round_id, rounds_left=rounds_left
        ),
        partner="",
    )


def ran_out(round_id: str = R1) -> Fact:
    return by(shoe.ShoeRanOut(table_id=T, shoe_id=S1, round_id=round_id), partner="")


def shoe_closed(shoe_id: str = S1, next_number: int = 2) -> Fact:
    return by(shoe.ShoeClosed(table_id=T, shoe_id=shoe_id, next_number=next_number), partner="")


def dealt(round_id: str = R1) -> Fact:
    return by(shoe.CardsDealt(table_id=T, shoe_id=S1, round_id=round_id), partner="")


# ---- tables that were prepared ------------------------------------------------------------------

PACED = spec(WINDOW_MS, PAUSE_MS)
ONE_ROUND = (close_betting(), resolved(), paid())


def ready() -> Deciding[TableState]:
    """A table whose rounds an operator opens, with a shoe that is ready."""
    return Deciding(CORE).given(open_table(), shoe_opened(), shoe_started())


def betting() -> Deciding[TableState]:
    return ready().given(open_round())


def paced() -> Deciding[TableState]:
    """A table with a betting window, in its first round, 3 ms after the start."""
    return Deciding(CORE).given(open_table(of=PACED), shoe_opened(), shoe_started())


def ignored(reason: log.IgnoredReason.ValueType) -> log.InputIgnored:
    return log.InputIgnored(reason=reason)
