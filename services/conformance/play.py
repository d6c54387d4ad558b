"""A table at which a case is played: accounts, bets, orders, and what the log says of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from google.protobuf.message import Message

from sabot.limits.v1 import events_pb2 as limits
from sabot.rules.v1 import events_pb2 as rules
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.table.v1 import bet_pb2, spec_pb2
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.conformance.cases import Laid
from services.conformance.cell import Cell
from services.conformance.croupier import Croupier
from services.conformance.rules import CURRENCY, TABLE_ID
from services.games.money import MAX_STAKE_MINOR
from services.kernel.event import Event
from services.shoe.domain.wanted import Wanted, wanted
from services.wallet.domain.state import WalletState

PARTNER = "conformance"
DEPOSIT_MINOR = 500_000_000_000_000
"""What every account begins with: half of the greatest balance."""
STAKE_RANGE = "stake.range"
"""What the edge calls a stake that is none."""
MOST_STEPS = 1_000
"""Inputs of one round; more, and it does not end."""

M = TypeVar("M", bound=Message)


class RoundStuck(Exception):
    """A round does not go on, or not as it should. The message says where it stands."""


class Refusal(Exception):
    """Something was refused. `reasons`: the names of all that it breaks."""

    def __init__(self, reasons: Iterable[str]) -> None:
        self.reasons = tuple(reasons)
        super().__init__(", ".join(self.reasons))


class Play:
    """See the module. The table is open when it is made."""

    def __init__(self, spec: spec_pb2.TableSpec, croupier: Croupier) -> None:
        self.cell = Cell()
        self.croupier = croupier
        self.log: list[Event] = []
        self.round_id = ""
        self._requests = 0
        self._accounts: dict[str, None] = {}
        self.tell("table", table.OpenTable(request_id=self._uuid(), spec=spec))
        self._expect(table.TableOpened)
        self.deal(lambda _: True)

    # ---- the log -------------------------------------------------------------------------------

    def tell(self, service: str, body: Message, *, partner: str = "") -> list[Event]:
        """Append an input; what followed it."""
        told = self.cell.tell(service, body, partner=partner)
        self.log.extend(told)
        return told

    def all_of(self, kind: type[M]) -> list[M]:
        """Every event of a kind, in order."""
        return [event.body for event in self.log if isinstance(event.body, kind)]

    def last_of(self, kind: type[M]) -> M | None:
        """The last event of a kind."""
        for event in reversed(self.log):
            if isinstance(event.body, kind):
                return event.body
        return None

    def _expect(self, kind: type[M]) -> M:
        """The last order must have been obeyed."""
        found = self.last_of(kind)
        if found is None:
            rejected = self.last_of(table.OrderRejected)
            why = "nothing was said"
            if rejected is not None:
                refusal = table.Refusal.Name(rejected.refusal)
                why = f"{refusal} {rejected.detail}".rstrip()
            raise RoundStuck(f"no {kind.__name__}: {why}")
        return found

    # ---- orders --------------------------------------------------------------------------------

    def open_round(self) -> None:
        """The next round takes bets."""
        self.tell(
            "table",
            table.OpenRound(
                request_id=self._uuid(), table_id=TABLE_ID, source=table.SOURCE_OPERATOR
            ),
        )
        opened = self._expect(table.RoundOpened)
        if opened.round_id == self.round_id:
            raise RoundStuck(f"no round after {self.round_id}")
        self.round_id = opened.round_id

    def close_betting(self) -> None:
        """No more bets."""
        self.tell(
            "table",
            table.CloseBetting(
                request_id=self._uuid(),
                table_id=TABLE_ID,
                round_id=self.round_id,
                source=table.SOURCE_OPERATOR,
            ),
        )
        self._expect(table.BettingClosed)

    def suspend(self) -> None:
        """The round stands still."""
        self.tell(
            "table",
            table.SuspendRound(
                request_id=self._uuid(),
                table_id=TABLE_ID,
                round_id=self.round_id,
                reason=table.ROUND_REASON_DEALER_ERROR,
            ),
        )
        self._expect(table.RoundSuspended)

    def void(self) -> None:
        """The round does not count."""
        self.tell(
            "table",
            table.VoidRound(
                request_id=self._uuid(),
                table_id=TABLE_ID,
                round_id=self.round_id,
                reason=table.ROUND_REASON_DEALER_ERROR,
            ),
        )
        self._expect(table.RoundVoided)

    # ---- bets ----------------------------------------------------------------------------------

    def place(self, account: str, laid: Sequence[Laid]) -> list[bet_pb2.Bet]:
        """One request of an account; the bets that are on. Raises Refusal.

        A stake above all limits never comes to the cores: the edge refuses it (`BetRequest`)."""
        self.open_account(account)
        if any(abs(bet.stake) > MAX_STAKE_MINOR for bet in laid):
            raise Refusal([STAKE_RANGE])
        body = table.PlaceBets(
            request_id=self._request(),
            account_id=account,
            table_id=TABLE_ID,
            round_id=self.round_id,
            currency_code=CURRENCY,
            bets=[
                bet_pb2.Bet(bet=bet.bet, stake_minor=bet.stake, position=bet.position)
                for bet in laid
            ],
        )
        for event in self.tell("table", body, partner=PARTNER):
            match event.body:
                case wallet.StakeReserved():
                    return list(event.body.bets)
                case _:
                    _refused(event.body)
        raise RoundStuck(f"a request of {account} has no outcome")

    def act(
        self,
        account: str,
        seat: int,
        turn: int,
        action: rules.Action.ValueType,
        extra_minor: int = 0,
    ) -> None:
        """An account acts at a seat of blackjack. Raises Refusal."""
        if abs(extra_minor) > MAX_STAKE_MINOR:
            raise Refusal([STAKE_RANGE])
        body = table.Act(
            request_id=self._request(),
            account_id=account,
            table_id=TABLE_ID,
            round_id=self.round_id,
            seat=seat,
            turn=turn,
            action=action,
            extra_minor=extra_minor,
        )
        taken: table.ActionTaken | None = None
        for event in self.tell("table", body, partner=PARTNER):
            match event.body:
                case table.ActionTaken():
                    taken = event.body
                    if not taken.HasField("extra"):
                        return
                case wallet.StakeReserved():
                    return
                case _:
                    _refused(event.body)
        raise RoundStuck(f"the action of seat {seat} has no outcome")

    def withdraw(self, account: str, bet_ids: Sequence[str]) -> None:
        """An account takes bets back. Raises Refusal."""
        body = table.WithdrawBets(
            request_id=self._request(),
            account_id=account,
            table_id=TABLE_ID,
            round_id=self.round_id,
            bet_ids=bet_ids,
        )
        for event in self.tell("table", body, partner=PARTNER):
            match event.body:
                case wallet.StakeReturned():
                    return
                case _:
                    _refused(event.body)
        raise RoundStuck(f"a withdrawal of {account} has no outcome")

    def open_account(self, account: str) -> None:
        """An account with money enough, unless it is there."""
        if account in self._accounts:
            return
        self._accounts[account] = None
        for body in (
            wallet.OpenAccount(request_id=self._uuid(), account_id=account, currency_code=CURRENCY),
            wallet.Deposit(
                request_id=self._uuid(),
                account_id=account,
                currency_code=CURRENCY,
                amount_minor=DEPOSIT_MINOR,
            ),
        ):
            self.tell("wallet", body, partner=PARTNER)
        if self.balance(account) != DEPOSIT_MINOR:
            raise RoundStuck(f"account {account} has not got its money")

    def accounts(self) -> list[str]:
        """Every account that bet, in the order of its first bet."""
        return list(self._accounts)

    def booked(self) -> list[tuple[str, bet_pb2.Bet]]:
        """Every bet of the round that is on, or was, with its account."""
        return [
            (body.account_id, bet)
            for body in self.all_of(wallet.StakeReserved)
            if body.round_id == self.round_id
            for bet in body.bets
        ]

    def balance(self, account: str) -> int:
        """What an account can bet, minor units."""
        state: WalletState = self.cell.states["wallet"]
        return state.accounts[PARTNER, account].available_minor

    # ---- dealing -------------------------------------------------------------------------------

    def deal(self, may: Callable[[Wanted], bool]) -> None:
        """Give what is asked for, until nothing is or the next may not be given."""
        for _ in range(MOST_STEPS):
            told = next(
                (
                    body
                    for wish in wanted(self.cell.states["shoe"])
                    if may(wish) and (body := self.croupier.told(wish)) is not None
                ),
                None,
            )
            if told is None:
                return
            self.tell("shoe", told)
        raise RoundStuck(f"round {self.round_id} asks for ever more")

    def question(self, answered: int) -> rules.InsuranceOffered | rules.ActionCalled | None:
        """The turn of blackjack that is given, if it is behind the one that was answered last."""
        for event in reversed(self.log):
            body = event.body
            if isinstance(body, rules.InsuranceOffered | rules.ActionCalled):
                return body if body.turn > answered else None
        return None

    def result(self) -> table.ResultAccepted | None:
        """The running round's result."""
        found = self.last_of(table.ResultAccepted)
        return found if found is not None and found.round_id == self.round_id else None

    def closed(self) -> bool:
        """Whether the round is over and its money where it belongs."""
        found = self.last_of(table.RoundClosed)
        return found is not None and found.round_id == self.round_id

    def settled(self) -> dict[str, settlement.SettledBet]:
        """The settled bets of the round, by bet id."""
        return {
            bet.bet_id: bet
            for body in self.all_of(settlement.BetsSettled)
            if body.round_id == self.round_id
            for bet in body.bets
        }

    def returned(self) -> dict[str, int]:
        """The stakes that went back because the round was voided, by bet id."""
        return {
            bet.bet_id: bet.stake_minor
            for body in self.all_of(wallet.StakeReturned)
            if body.round_id == self.round_id and body.reason == wallet.RETURN_REASON_VOIDED
            for bet in body.bets
        }

    # ---- ids -----------------------------------------------------------------------------------

    def _uuid(self) -> str:
        """A UUIDv7 of this moment of the log."""
        self._requests += 1
        millis = f"{self.cell.time_us // 1000:012x}"
        return f"{millis[:8]}-{millis[8:]}-7000-8000-{self._requests:012x}"

    def _request(self) -> str:
        self._requests += 1
        return f"r{self._requests}"


def _refused(body: Message) -> None:
    """Raise what an event refuses, if it does."""
    match body:
        case table.BetsRejected() | table.WithdrawalRejected() | table.ActionRejected():
            raise Refusal([table.Refusal.Name(body.refusal)])
        case limits.BetsRefused() | limits.WithdrawalRefused():
            raise Refusal([limits.Limit.Name(one.limit) for one in body.violations])
        case wallet.StakeDeclined():
            raise Refusal([wallet.Decline.Name(body.decline)])
        case _:
            pass
