"""The facts that the tests of restrictions speak of: table `t1` of any game, partner `acme`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sabot.limits.v1 import events_pb2 as limits
from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2 as rule_sets
from sabot.table.v1 import bet_pb2, spec_pb2
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.games import (
    baccarat_bets,
    blackjack_bets,
    roulette,
    sicbo,
    two_cards,
)
from services.games.bets import Pays
from services.games.catalogue import baccarat
from services.games.odds import EVENS
from services.games.rule_sets import offers
from services.limits.domain.core import CORE
from services.limits.domain.state import LimitsState
from tests.unit.deciding import Deciding, Fact, by

T, R = "t1", "t1-1"

Wager = tuple[str, str, str, int]
"""(bet id, kind, position, stake)."""


def rule_set(
    game: rule_sets.Game.ValueType,
    pays: Mapping[str, Pays],
    ace: rule_sets.AceRank.ValueType = rule_sets.ACE_RANK_UNSPECIFIED,
) -> rule_sets.RuleSet:
    made = rule_sets.RuleSet(
        game=game, bets=offers(pays), rounding=rule_sets.ROUNDING_DOWN, decks=8
    )
    if ace:
        made.two_cards.ace = ace
    return made


BACCARAT = baccarat()
EZ = rule_sets.RuleSet(
    game=rule_sets.GAME_BACCARAT,
    bets=offers(
        {
            "banker": EVENS,
            **{bet: baccarat_bets.PAYS[bet] for bet in ("dragon_7", "panda_8", "player", "tie")},
        }
    ),
    rounding=rule_sets.ROUNDING_DOWN,
    decks=8,
    baccarat=rule_sets.BaccaratOptions(ez=True),
)
BLACKJACK = rule_set(rule_sets.GAME_BLACKJACK, blackjack_bets.PAYS)
BLACKJACK.blackjack.peek = rule_sets.PEEK_ACE_ONLY
BLACKJACK.blackjack.doubles = True
ROULETTE = rule_set(rule_sets.GAME_ROULETTE, roulette.PAYS)
SICBO = rule_set(rule_sets.GAME_SICBO, sicbo.PAYS)
DRAGON_TIGER = rule_set(
    rule_sets.GAME_DRAGON_TIGER, two_cards.DRAGON_TIGER_PAYS, rule_sets.ACE_RANK_LOW
)
FOOTBALL_STUDIO = rule_set(
    rule_sets.GAME_FOOTBALL_STUDIO, two_cards.FOOTBALL_STUDIO_PAYS, rule_sets.ACE_RANK_HIGH
)


def spec(
    rules_of: rule_sets.RuleSet,
    *,
    low: int = 100,
    high: int = 1_000_000,
    step: int = 1,
    by_bet: Mapping[str, tuple[int, int]] | None = None,
    **restrictions: int,
) -> spec_pb2.TableSpec:
    """`by_bet`: minimum and maximum of single kinds. `restrictions`: fields of `Restrictions`."""
    own = by_bet or {}
    return spec_pb2.TableSpec(
        table_id=T,
        currency_code="EUR",
        rule_set=rules_of,
        limits=[
            spec_pb2.BetLimit(
                bet=offer.bet,
                min_minor=own.get(offer.bet, (low, high))[0],
                max_minor=own.get(offer.bet, (low, high))[1],
                step_minor=step,
            )
            for offer in rules_of.bets
        ],
        restrictions=spec_pb2.Restrictions(**restrictions),
    )


def round_open(of: spec_pb2.TableSpec, *, in_shoe: int = 1) -> Deciding[LimitsState]:
    return Deciding(CORE).given(
        table.TableOpened(spec=of, revision=1),
        table.RoundOpened(table_id=T, round_id=R, revision=1, round_in_shoe=in_shoe),
    )


def bet(wager: Wager) -> bet_pb2.Bet:
    bet_id, kind, position, stake = wager
    return bet_pb2.Bet(bet_id=bet_id, bet=kind, position=position, stake_minor=stake)


def _about(request: str, account: str) -> dict[str, Any]:
    return {"request_id": request, "account_id": account, "table_id": T, "round_id": R}


def placed(request: str, *wagers: Wager, account: str = "ann") -> table.BetsPlaced:
    return table.BetsPlaced(
        **_about(request, account), currency_code="EUR", bets=[bet(one) for one in wagers]
    )


def approved(
    request: str,
    *wagers: Wager,
    account: str = "ann",
    stage: bet_pb2.Stage.ValueType = bet_pb2.STAGE_UNSPECIFIED,
) -> limits.BetsApproved:
    return limits.BetsApproved(
        **_about(request, account),
        currency_code="EUR",
        bets=[bet(one) for one in wagers],
        stage=stage,
    )


def refused(
    request: str,
    bet_ids: list[str],
    *violations: limits.Violation,
    account: str = "ann",
    stage: bet_pb2.Stage.ValueType = bet_pb2.STAGE_UNSPECIFIED,
) -> limits.BetsRefused:
    return limits.BetsRefused(
        **_about(request, account), bet_ids=bet_ids, violations=violations, stage=stage
    )


def reserved(request: str, *wagers: Wager, account: str = "ann") -> wallet.StakeReserved:
    return wallet.StakeReserved(
        **_about(request, account), currency_code="EUR", bets=[bet(one) for one in wagers]
    )


def declined(request: str, *wagers: Wager, account: str = "ann") -> wallet.StakeDeclined:
    return wallet.StakeDeclined(
        **_about(request, account),
        bets=[bet(one) for one in wagers],
        decline=wallet.DECLINE_INSUFFICIENT_FUNDS,
    )


def returned(request: str, *wagers: Wager, account: str = "ann") -> Fact:
    return by(
        wallet.StakeReturned(
            **_about(request, account),
            currency_code="EUR",
            bets=[bet(one) for one in wagers],
            reason=wallet.RETURN_REASON_WITHDRAWN,
            partner_id="acme",
        )
    )


def withdrawn(request: str, *wagers: Wager, account: str = "ann") -> table.BetsWithdrawn:
    return table.BetsWithdrawn(**_about(request, account), bets=[bet(one) for one in wagers])


def withdrawal(request: str, *wagers: Wager) -> limits.WithdrawalApproved:
    return limits.WithdrawalApproved(**_about(request, "ann"), bets=[bet(one) for one in wagers])


def withdrawal_refused(
    request: str, bet_ids: list[str], *violations: limits.Violation
) -> limits.WithdrawalRefused:
    return limits.WithdrawalRefused(
        **_about(request, "ann"), bet_ids=bet_ids, violations=violations
    )


EXTRAS = {
    "double": rules.ACTION_DOUBLE,
    "split": rules.ACTION_SPLIT,
    "insurance": rules.ACTION_INSURE,
}


def action(request: str, extra: Wager, account: str = "ann") -> table.ActionTaken:
    """A seat doubles, splits or insures."""
    return table.ActionTaken(
        **_about(request, account),
        partner_id="acme",
        seat=int(extra[2]),
        hand=1,
        turn=2,
        action=EXTRAS[extra[1]],
        extra=bet(extra),
        currency_code="EUR",
    )


BETTING_CLOSED = table.BettingClosed(table_id=T, round_id=R)
INSURANCE_CLOSED = table.InsuranceClosed(table_id=T, round_id=R)
ROUND_VOIDED = table.RoundVoided(table_id=T, round_id=R)
ROUND_CLOSED = table.RoundClosed(table_id=T, round_id=R)


def on(game: Deciding[LimitsState], request: str, *wagers: Wager, account: str = "ann") -> None:
    """These bets are placed, approved and reserved."""
    game.when(placed(request, *wagers, account=account)).then_only(limits.BetsApproved)
    game.given(reserved(request, *wagers, account=account))


# ---- violations --------------------------------------------------------------------------------


def below(bet: str, position: str, would_be: int, allowed: int = 100) -> limits.Violation:
    return limits.Violation(
        limit=limits.LIMIT_BELOW_MINIMUM,
        bet=bet,
        position=position,
        allowed_minor=allowed,
        would_be_minor=would_be,
    )


def above(bet: str, position: str, would_be: int, allowed: int) -> limits.Violation:
    return limits.Violation(
        limit=limits.LIMIT_ABOVE_MAXIMUM,
        bet=bet,
        position=position,
        allowed_minor=allowed,
        would_be_minor=would_be,
    )


def off_step(bet: str, position: str, would_be: int, step: int) -> limits.Violation:
    return limits.Violation(
        limit=limits.LIMIT_STAKE_STEP,
        bet=bet,
        position=position,
        allowed_minor=step,
        would_be_minor=would_be,
    )


def opposite(bet: str, would_be: int, against: str) -> limits.Violation:
    return limits.Violation(
        limit=limits.LIMIT_OPPOSITE_SIDES, bet=bet, would_be_minor=would_be, against=against
    )


def side_bet_closed(bet: str, until_round: int, in_shoe: int) -> limits.Violation:
    return limits.Violation(
        limit=limits.LIMIT_SIDE_BET_CLOSED,
        bet=bet,
        allowed_count=until_round,
        would_be_count=in_shoe,
    )


def no_main(bet: str, position: str, would_be: int) -> limits.Violation:
    return limits.Violation(
        limit=limits.LIMIT_NO_MAIN_BET,
        bet=bet,
        position=position,
        would_be_minor=would_be,
        against="main",
    )


def difference(heavier: str, lighter: str, would_be: int, allowed: int) -> limits.Violation:
    return limits.Violation(
        limit=limits.LIMIT_DIFFERENCE,
        bet=heavier,
        against=lighter,
        allowed_minor=allowed,
        would_be_minor=would_be,
    )


def coverage(would_be: int, allowed: int = 34) -> limits.Violation:
    return limits.Violation(
        limit=limits.LIMIT_COVERAGE, allowed_count=allowed, would_be_count=would_be, of_count=37
    )


def account_maximum(would_be: int, allowed: int) -> limits.Violation:
    return limits.Violation(
        limit=limits.LIMIT_ACCOUNT_MAXIMUM, allowed_minor=allowed, would_be_minor=would_be
    )


def exposure(would_be: int, allowed: int) -> limits.Violation:
    return limits.Violation(
        limit=limits.LIMIT_EXPOSURE, allowed_minor=allowed, would_be_minor=would_be
    )


def plain(limit: limits.Limit.ValueType) -> limits.Violation:
    return limits.Violation(limit=limit)
