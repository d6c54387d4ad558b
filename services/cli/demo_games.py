"""The tables of the demonstration, one for each game, and what its accounts bet there: over a few
rounds every kind of bet."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sabot.partner.v1 import partner_service_pb2 as partner
from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from sabot.table.v1 import spec_pb2
from services.cli import demo_lines
from services.cli.demo_seats import main_minor, seat_of
from services.games import catalogue, roulette, sicbo
from services.games.blackjack import Peek
from services.games.odds import whole_step
from services.games.registry import may_lose_half
from services.games.rule_sets import commission_of, lines_of

CURRENCY = "EUR"
ACCOUNTS = 30
"""Of all partners together."""
WINDOW_MS = 1_200
PAUSE_MS = 400
ACTION_MS = 1_500
"""Time for an action at the blackjack table."""
FLOOR_CUT_DEPTH = 356
"""Cards behind the cut card of the shoe on the floor: about ten rounds are dealt before it."""
MIN_MINOR, MAX_MINOR = 100, 100_000
SIDE_MAX_MINOR = 20_000
STAKES_MINOR = (100, 200, 500, 1_000, 2_000, 5_000)
SIDE_STAKES_MINOR = (100, 200, 500)
MAIN_BETS = frozenset({"banker", "banker_no_commission", "player", "main"})
"""Bets with the table's high maximum."""


class Wager(NamedTuple):
    """A bet to place."""

    bet: str
    stake_minor: int
    position: str = ""


Wagering = Callable[[int, partner.Round], Sequence[Wager]]
"""What an account, by its number from 0, bets in a round."""


class DemoTable(NamedTuple):
    """A table of the demonstration."""

    table_id: str
    rule_set: rule_set_pb2.RuleSet
    wagers: Wagering
    shown: Callable[[rules.Result], str]
    """A result in one line."""
    origin: spec_pb2.OutcomeOrigin.ValueType = spec_pb2.OUTCOME_ORIGIN_UNSPECIFIED
    """On the floor: a simulator tells what comes out (demo_floor.py)."""

    def spec(self) -> spec_pb2.TableSpec:
        """What governs it."""
        return spec_pb2.TableSpec(
            table_id=self.table_id,
            currency_code=CURRENCY,
            rule_set=self.rule_set,
            limits=[_limit(self.rule_set, offer) for offer in self.rule_set.bets],
            pacing=spec_pb2.Pacing(
                betting_window_ms=WINDOW_MS, pause_ms=PAUSE_MS, action_ms=ACTION_MS
            ),
            origin=self.origin,
        )


def _limit(rule_set: rule_set_pb2.RuleSet, offer: rule_set_pb2.BetOffer) -> spec_pb2.BetLimit:
    """Minimum 1.00; steps that leave no fraction of a cent (rule MON-4)."""
    commission = commission_of(offer)
    step = max(whole_step(odds, commission) for odds in lines_of(offer).values())
    if may_lose_half(rule_set, offer.bet):
        step = max(step, 2)
    most = MAX_MINOR if offer.bet in MAIN_BETS else SIDE_MAX_MINOR
    return spec_pb2.BetLimit(bet=offer.bet, min_minor=MIN_MINOR, max_minor=most, step_minor=step)


def _pick(kinds: Sequence[str], number: int, opened: partner.Round) -> str:
    """Another kind for each account and round, so that all have their turn."""
    return kinds[(number + 7 * opened.number) % len(kinds)]


def _stake(most: Sequence[int] = STAKES_MINOR) -> int:
    return random.choice(most)  # noqa: S311 - bettors, not draws


def _baccarat(rule_set: rule_set_pb2.RuleSet) -> Wagering:
    sides = [offer for offer in rule_set.bets if offer.bet not in ("player", *_BANKERS)]

    def wagers(number: int, opened: partner.Round) -> list[Wager]:
        bankers = [bet for bet in _BANKERS if any(o.bet == bet for o in rule_set.bets)]
        found = [Wager(_pick(["player", *bankers], number, opened), _stake())]
        still = [
            offer.bet
            for offer in sides
            if not offer.until_round or opened.round_in_shoe <= offer.until_round
        ]
        if number % 2:
            found.append(Wager(_pick(still, number, opened), _stake(SIDE_STAKES_MINOR)))
        return found

    return wagers


_BANKERS = ("banker", "banker_no_commission")


def _roulette(number: int, opened: partner.Round) -> list[Wager]:
    """One bet on the layout; every fourth account announces one."""
    announced = [*roulette.ANNOUNCED, roulette.NEIGHBOURS]
    if number % 4 == 0:
        bet = announced[(number // 4 + opened.number) % len(announced)]
        if bet == roulette.NEIGHBOURS:
            place = f"{random.choice(roulette.NUMBERS)}-2"  # noqa: S311 - bettors, not draws
            return [Wager(bet, 5 * 100, place)]
        chips = sum(part.chips for part in roulette.ANNOUNCED[bet])
        return [Wager(bet, chips * 100)]
    bet = _pick(list(roulette.PLACES), number, opened)
    position = random.choice(list(roulette.PLACES[bet]))  # noqa: S311 - bettors, not draws
    return [Wager(bet, _stake(SIDE_STAKES_MINOR), position)]


def _sicbo(number: int, opened: partner.Round) -> list[Wager]:
    bet = _pick(list(sicbo.PLACES), number, opened)
    position = random.choice(sicbo.PLACES[bet])  # noqa: S311 - bettors, not draws
    return [Wager(bet, _stake(SIDE_STAKES_MINOR), position)]


def _one_of(*kinds: str) -> Wagering:
    def wagers(number: int, opened: partner.Round) -> list[Wager]:
        return [Wager(_pick(kinds, number, opened), _stake(SIDE_STAKES_MINOR))]

    return wagers


def _blackjack(number: int, opened: partner.Round) -> list[Wager]:
    """A main bet at the account's seat, and in turns a side bet beside it."""
    seat = seat_of(number, opened, ACCOUNTS)
    if not seat:
        return []
    found = [Wager("main", main_minor(number, opened), str(seat))]
    beside = ("", "perfect_pairs", "21_plus_3")[(number + opened.number) % 3]
    if beside:
        found.append(Wager(beside, _stake(SIDE_STAKES_MINOR), str(seat)))
    return found


def baccarat_table(table_id: str) -> DemoTable:
    """Punto banco with everything."""
    rule_set = catalogue.baccarat()
    return DemoTable(table_id, rule_set, _baccarat(rule_set), demo_lines.baccarat)


def every_table() -> list[DemoTable]:
    """One table of each game and variant."""
    ez = catalogue.baccarat_ez()
    return [
        baccarat_table("demo-1"),
        DemoTable("demo-ez", ez, _baccarat(ez), demo_lines.baccarat),
        DemoTable("demo-blackjack", catalogue.blackjack(), _blackjack, demo_lines.blackjack),
        DemoTable("demo-roulette", catalogue.roulette(), _roulette, demo_lines.roulette),
        DemoTable("demo-sicbo", catalogue.sicbo(), _sicbo, demo_lines.sicbo),
        DemoTable("demo-macau", catalogue.sicbo("macau"), _sicbo, demo_lines.sicbo),
        DemoTable(
            "demo-dragon",
            catalogue.dragon_tiger(),
            _one_of("dragon", "tiger", "tie", "suited_tie"),
            demo_lines.dragon_tiger,
        ),
        DemoTable(
            "demo-football",
            catalogue.football_studio(),
            _one_of("home", "away", "draw"),
            demo_lines.football_studio,
        ),
        *floor_tables(),
    ]


def floor_tables() -> list[DemoTable]:
    """A wheel and shoes whose outcomes are told. The shoes' cut cards stand early, so that they are
    counted and filled anew within the demonstration."""
    floor = spec_pb2.OUTCOME_ORIGIN_FLOOR
    short = catalogue.baccarat(cut_depth=FLOOR_CUT_DEPTH)
    looked_at = catalogue.blackjack(peek=Peek.BOTH, cut_depth=FLOOR_CUT_DEPTH)
    return [
        DemoTable("floor-wheel", catalogue.roulette(), _roulette, demo_lines.roulette, floor),
        DemoTable("floor-shoe", short, _baccarat(short), demo_lines.baccarat, floor),
        DemoTable("floor-blackjack", looked_at, _blackjack, demo_lines.blackjack, floor),
    ]
