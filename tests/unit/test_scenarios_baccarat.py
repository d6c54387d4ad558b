"""Scenarios of baccarat from public reports, through the cores: bets, cards, settlement, wallet.

The pure functions by themselves stand in test_games.py.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from sabot.settlement.v1 import events_pb2 as settlement
from sabot.table.v1 import spec_pb2
from services.conformance.cases import Laid, Rules
from services.conformance.croupier import SHOWN, Croupier
from services.conformance.play import DEPOSIT_MINOR, Play
from services.conformance.rules import spec_of
from services.games.rule_set_faults import table_warnings
from services.wallet.domain.state import sums


def played(cards: str, bets: Mapping[str, Mapping[str, int]], rules: Rules) -> Play:
    """A round of these cards with these bets, stakes in minor units by account and bet."""
    spec = spec_of(rules)
    play = Play(spec, Croupier(cards.split(), spec.rule_set.decks, shown=SHOWN))
    play.open_round()
    for account, stakes in bets.items():
        laid = [Laid(account, bet, "", stake, bet) for bet, stake in stakes.items()]
        assert len(play.place(account, laid)) == len(laid)
    for account, stakes in bets.items():
        assert play.balance(account) == DEPOSIT_MINOR - sum(stakes.values())
    play.close_betting()
    play.deal(play.croupier.has)
    assert play.closed()
    assert not play.croupier.unused()
    assert sums(play.cell.states["wallet"]) == {"EUR": 0}
    return play


def net(play: Play, account: str) -> int:
    return play.balance(account) - DEPOSIT_MINOR


def settled(play: Play, account: str) -> list[settlement.BetsSettled]:
    return [one for one in play.all_of(settlement.BetsSettled) if one.account_id == account]


BACCARAT = Rules("baccarat")
TIE_AT_SIX = "6H 6D KS QC"


def test_bac_02_a_tie_gives_player_and_banker_back() -> None:
    play = played(
        TIE_AT_SIX,
        {
            "a": {"player": 2500, "tie": 200},
            "b": {"banker": 2000},
            "c": {"banker_no_commission": 2000},
        },
        BACCARAT,
    )
    assert (net(play, "a"), net(play, "b"), net(play, "c")) == (1600, 0, 0)
    payouts = {one.bet_id: one.payout_minor for one in play.settled().values()}
    assert sum(payouts.values()) == 4300 + 2000 + 2000


WON_WITH_NINE = "TH 9D 7S KC"
POLICIES = {
    "down": [0, 9, 14, 28, 1900],
    "half_up": [1, 10, 14, 29, 1900],
    "half_even": [1, 10, 14, 28, 1900],
}


@pytest.mark.parametrize("policy", POLICIES)
def test_bac_03_commission_is_rounded_once_a_bet_by_the_tables_policy(policy: str) -> None:
    stakes = dict(zip("abcde", [1, 10, 15, 30, 2000], strict=True))
    rules = Rules("baccarat", rounding=policy)
    play = played(
        WON_WITH_NINE, {account: {"banker": stake} for account, stake in stakes.items()}, rules
    )
    assert [net(play, account) for account in stakes] == POLICIES[policy]
    for account, stake in stakes.items():
        [told] = settled(play, account)
        [bet] = told.bets
        assert bet.profit_minor + bet.commission_minor == stake
        assert bet.payout_minor == stake + bet.profit_minor
        # The rule set that the settlement names holds the policy.
        assert told.rule_set_hash == spec_of(rules).rule_set.hash
    assert (
        spec_of(rules).rule_set.hash
        != spec_of(
            Rules("baccarat", rounding="down" if policy != "down" else "half_up")
        ).rule_set.hash
    )


THIRTIES = {"down": 28_000, "half_up": 29_000, "half_even": 28_000}


@pytest.mark.parametrize("policy", THIRTIES)
def test_bac_03_a_thousand_wins_of_30(policy: str) -> None:
    bets = {f"a{number}": {"banker": 30} for number in range(1000)}
    play = played(WON_WITH_NINE, bets, Rules("baccarat", rounding=policy))
    assert sum(net(play, account) for account in bets) == THIRTIES[policy]


BANKER_SIX = "TH 6D 2S KC 3H"
"""Player draws to five; Banker stands on six."""
BANKER_SEVEN_OF_THREE = "2H 2S TD KD TC 5C"
HALF_OF_505 = {"down": 252, "half_up": 253, "half_even": 252}


@pytest.mark.parametrize("policy", HALF_OF_505)
def test_bac_03_half_pay_on_six(policy: str) -> None:
    play = played(
        BANKER_SIX,
        {"a": {"banker_no_commission": 505}, "b": {"banker_no_commission": 2000}},
        Rules("baccarat", rounding=policy),
    )
    assert net(play, "a") == HALF_OF_505[policy]
    assert net(play, "b") + 2000 == 3000


def test_bac_03_credits_of_2000() -> None:
    play = played(WON_WITH_NINE, {"a": {"banker": 2000}}, BACCARAT)
    assert net(play, "a") + 2000 == 3900
    play = played(BANKER_SEVEN_OF_THREE, {"a": {"banker": 2000}}, Rules("baccarat_ez"))
    assert net(play, "a") == 0


def test_bac_03_opening_a_table_warns_of_profits_that_round_to_nothing() -> None:
    warned = " ".join(table_warnings(spec_of(BACCARAT)))
    assert "banker: with a stake step of 1" in warned
    assert "a step of 20 makes them whole" in warned
    spec = spec_pb2.TableSpec()
    spec.CopyFrom(spec_of(BACCARAT))
    for limit in spec.limits:
        limit.step_minor = 20
    assert table_warnings(spec) == []


STAKES = {
    "player": 1000,
    "player_pair": 200,
    "either_pair": 300,
    "perfect_pair": 100,
    "player_bonus": 400,
}


@pytest.mark.parametrize(
    ("cards", "credit"),
    [
        ("7H KD 7H KS 2C 6D", 7800),
        ("7H KD 7D KS 2C 6D", 5200),
        ("7H KD 7H KD 2C 6D", 7800),
    ],
)
def test_bac_04_side_bets_settle_on_their_own_and_pairs_pay_once(cards: str, credit: int) -> None:
    """Six each after both drew, no natural: the main bet is pushed, the Bonus is lost."""
    play = played(cards, {"a": STAKES}, BACCARAT)
    assert net(play, "a") + sum(STAKES.values()) == credit
    bonus = next(bet for bet in play.settled().values() if bet.bet == "player_bonus")
    assert bet_is_lost(bonus)


def bet_is_lost(bet: settlement.SettledBet) -> bool:
    return bet.outcome == settlement.OUTCOME_LOST and bet.payout_minor == 0
