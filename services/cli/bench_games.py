"""What the games themselves take, without a log: odds, settlement, and rounds through the cores.

- `live_odds_ms`: the exact returns of all baccarat bets at one composition of a shoe, each time
  another one; milliseconds, the median.
- `core_rounds_per_s`: whole rounds, from their opening until their money is home, through the six
  cores of a round, with one bet or one seat of each of a few accounts; by game.
- `settled_bets_per_s`: bets that settlement's core decides, of many accounts that all staked on
  every place of the layout; by game.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import count
from statistics import median

from google.protobuf.message import Message

from sabot.log.v1 import entry_pb2
from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.table.v1 import bet_pb2, spec_pb2
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.cli.bench_load import BenchFailed
from services.conformance.cases import Laid, Rules
from services.conformance.croupier import SALT, Croupier
from services.conformance.play import PARTNER, Play
from services.conformance.rules import CURRENCY, TABLE_ID, spec_of
from services.games import catalogue, roulette, sicbo
from services.games.blackjack import SEATS
from services.games.blackjack_bets import FURTHER_STAKES
from services.games.cards import pack
from services.kernel.event import NEWEST_BEHAVIOUR, UNLOGGED, Event, Position, Unfinished
from services.odds.compositions import fresh
from services.odds.enumeration import odds_of
from services.settlement.domain.core import CORE as SETTLEMENT
from services.settlement.domain.state import SettlementState
from services.shoe.domain.state import TossKind
from services.shoe.domain.wanted import RevealWanted, SealWanted, TossWanted, Wanted

RULE_SETS: Mapping[str, str] = {
    "baccarat": catalogue.BACCARAT,
    "blackjack": catalogue.BLACKJACK,
    "roulette": catalogue.ROULETTE,
    "sicbo": f"{catalogue.SICBO}_atlantic_city",
    "dragon_tiger": catalogue.DRAGON_TIGER,
    "football_studio": catalogue.FOOTBALL_STUDIO,
}
"""By game: the rule set that it is measured with."""
ACCOUNTS = 10
"""That bet in each round; at blackjack one for each seat."""
STAKE_MINOR = 1_000
SETTLED_ACCOUNTS = 200
"""Of a round that is settled."""
LEAST_COMPOSITIONS = 20
"""However short the measurement."""
STRIDE = 157
"""From card to card of a measured shoe; it has no divisor in common with eight decks, so that every
card comes once, in an order that looks like none."""


def live_odds_ms(seconds: float) -> float:
    """The median of all that fits in the time."""
    rule_set = catalogue.baccarat()
    order = _order(fresh(rule_set.decks).total, 0)
    odds_of(rule_set)  # what is written down once for all compositions
    took_s: list[float] = []
    end = time.perf_counter() + seconds
    while len(took_s) < LEAST_COMPOSITIONS or time.perf_counter() < end:
        seen = order[: len(took_s) % (len(order) // 2)]
        left = fresh(rule_set.decks).without(seen)
        began = time.perf_counter()
        for one in odds_of(rule_set, left):
            _ = one.rtp
        took_s.append(time.perf_counter() - began)
    return round(1000 * median(took_s), 3)


def core_rounds_per_s(game: str, seconds: float) -> float:
    """Rounds of a game. Raises BenchFailed where one does not end."""
    rounds = _Rounds(game)
    rounds.play_one()
    played, began = 0, time.perf_counter()
    while (took_s := time.perf_counter() - began) < seconds or not played:
        rounds.play_one()
        played += 1
    return round(played / took_s, 1)


def settled_bets_per_s(game: str, seconds: float) -> float:
    """Bets of a game, settled by a result that was really dealt."""
    rounds = _Rounds(game)
    accepted = rounds.play_one()
    rule_set = rounds.spec.rule_set
    bets, took_s = 0, 0.0
    while took_s < seconds:
        state = _staked(rounds.spec, accepted, _places(rule_set))
        began = time.perf_counter()
        bets += _settle(state, accepted)
        took_s += time.perf_counter() - began
    return round(bets / took_s, 1)


# ---- rounds ------------------------------------------------------------------------------------


def _order(cards: int, shoe: int) -> list[str]:
    """All cards of a shoe, each shoe in another order."""
    every = pack(cards // 52)
    return [every[(STRIDE * index + shoe) % cards] for index in range(cards)]


class Dealer(Croupier):
    """Deals shoe after shoe, and spins and rolls for ever."""

    def __init__(self, decks: int) -> None:
        super().__init__((), decks)
        self._shoes, self._tosses = count(1), count(1)
        self._orders: dict[str, tuple[str, ...]] = {}

    def told(self, wish: Wanted) -> Message | None:
        match wish:
            case SealWanted():
                self.order = tuple(_order(len(self.order), next(self._shoes)))
                self._orders[wish.shoe_id] = self.order
            case RevealWanted():
                return shoes.RevealShoe(
                    table_id=wish.table_id,
                    shoe_id=wish.shoe_id,
                    cards=[
                        shoes.Card(index=index, card=card, salt=SALT)
                        for index, card in enumerate(self._orders.pop(wish.shoe_id))
                    ],
                    asked_by=entry_pb2.Position(
                        segment=wish.asked_by.segment,
                        sequence=wish.asked_by.sequence,
                        index=wish.asked_by.index,
                    ),
                )
            case TossWanted(kind=TossKind.SPIN):
                self._number = STRIDE * next(self._tosses) % len(roulette.NUMBERS)
            case TossWanted():
                self._dice = sicbo.ROLLS[STRIDE * next(self._tosses) % len(sicbo.ROLLS)]
            case _:
                pass
        return super().told(wish)


class _Rounds:
    """A table of a game, round after round."""

    def __init__(self, game: str) -> None:
        self.spec = spec_of(Rules(RULE_SETS[game]))
        self._play = Play(self.spec, Dealer(self.spec.rule_set.decks))
        self._places = _places(self.spec.rule_set)
        self._seats = self.spec.rule_set.game == rule_set_pb2.GAME_BLACKJACK
        self._next = count()

    def play_one(self) -> table.ResultAccepted:
        """A round; its result. Raises BenchFailed."""
        play = self._play
        play.log.clear()
        play.open_round()
        if self._seats:
            self._sit()
        else:
            places = self._offered()
            for account in range(ACCOUNTS):
                bet, position = places[next(self._next) % len(places)]
                play.place(_account(account), [_laid(account, bet, position)])
        play.close_betting()
        play.deal(lambda _: True)
        while (question := play.question(self._answered())) is not None:
            self._answer(question)
            play.deal(lambda _: True)
        result = play.result()
        if result is None or not play.closed():
            raise BenchFailed(f"round {play.round_id} of {self.spec.rule_set.rule_set_id} stands")
        return result

    def _offered(self) -> list[tuple[str, str]]:
        """The places of the bets that are not closed in this round of the shoe."""
        opened = self._play.last_of(table.RoundOpened)
        number = 0 if opened is None else opened.round_in_shoe
        until = {one.bet: one.until_round for one in self.spec.rule_set.bets}
        return [place for place in self._places if not 0 < until[place[0]] < number]

    def _sit(self) -> None:
        for seat in range(1, SEATS + 1):
            self._play.place(
                _account(seat),
                [_laid(seat, bet, place) for bet, place in self._places if place == str(seat)],
            )

    def _answered(self) -> int:
        """The last turn that was answered in this round."""
        turns = [event.body.turn for event in self._play.log if isinstance(event.body, table.Act)]
        return max(turns, default=0)

    def _answer(self, question: rules.InsuranceOffered | rules.ActionCalled) -> None:
        """As the system advises; nobody is insured."""
        if isinstance(question, rules.ActionCalled):
            seat, turn = question.seat, question.turn
            self._play.act(_account(seat), seat, turn, question.advice)
        else:
            for seat in question.seats:
                declined = rules.ACTION_DECLINE_INSURANCE
                self._play.act(_account(seat), seat, question.turn, declined)


def _account(number: int) -> str:
    return f"account-{number}"


def _laid(account: int, bet: str, position: str) -> Laid:
    return Laid(_account(account), bet, position, STAKE_MINOR, bet)


def _places(rule_set: rule_set_pb2.RuleSet) -> list[tuple[str, str]]:
    """Every bet that may be placed, with each of its positions."""
    match rule_set.game:
        case rule_set_pb2.GAME_ROULETTE:
            return [(bet, place) for bet, places in roulette.PLACES.items() for place in places]
        case rule_set_pb2.GAME_SICBO:
            return [(bet, place) for bet, places in sicbo.PLACES.items() for place in places]
        case rule_set_pb2.GAME_BLACKJACK:
            bets = [one.bet for one in rule_set.bets if one.bet not in FURTHER_STAKES]
            # The main bet before those that need it.
            bets.sort(key=lambda bet: bet != "main")
            return [(bet, str(seat)) for seat in range(1, SEATS + 1) for bet in bets]
        case _:
            return [(one.bet, "") for one in rule_set.bets]


# ---- settlement --------------------------------------------------------------------------------


def _staked(
    spec: spec_pb2.TableSpec, accepted: table.ResultAccepted, places: Sequence[tuple[str, str]]
) -> SettlementState:
    """What settlement knows when a result comes."""
    state = SETTLEMENT.initial()
    opened = table.RoundOpened(table_id=TABLE_ID, round_id=accepted.round_id, number=1)
    for body in (table.TableOpened(spec=spec, revision=1), opened):
        SETTLEMENT.evolve(state, _event(body))
    for account in range(SETTLED_ACCOUNTS):
        reserved = wallet.StakeReserved(
            account_id=_account(account),
            table_id=TABLE_ID,
            round_id=accepted.round_id,
            currency_code=CURRENCY,
            bets=[
                bet_pb2.Bet(
                    bet_id=f"{accepted.round_id}.{account}.{number}",
                    bet=bet,
                    position=position,
                    stake_minor=STAKE_MINOR,
                )
                for number, (bet, position) in enumerate(places)
            ],
        )
        SETTLEMENT.evolve(state, _event(reserved))
    return state


def _settle(state: SettlementState, accepted: table.ResultAccepted) -> int:
    """Settle a round to its end; how many bets were. Raises BenchFailed."""
    event = _event(accepted)
    SETTLEMENT.evolve(state, event)
    bets = 0
    while True:
        decided = SETTLEMENT.decide(state, event)
        answers = decided.answers if isinstance(decided, Unfinished) else decided
        for body in answers:
            event = _event(body)
            SETTLEMENT.evolve(state, event)
            if isinstance(body, settlement.BetsSettled):
                bets += len(body.bets)
        if not isinstance(decided, Unfinished):
            break
    if not isinstance(event.body, settlement.RoundSettled) or event.body.bets != bets or not bets:
        raise BenchFailed(f"round {accepted.round_id} was not settled")
    return bets


def _event(body: Message) -> Event:
    return Event(
        position=UNLOGGED,
        service="",
        is_input=False,
        body=body,
        cause=Position(1, 1, 0),
        partner=PARTNER,
        actor="",
        time_us=0,
        behaviour=NEWEST_BEHAVIOUR,
    )
