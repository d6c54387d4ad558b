"""Settlement: what every bet is paid, by whose rules, in what order and in what steps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.table.v1 import bet_pb2
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.games import baccarat
from services.games.catalogue import baccarat_1
from services.games.money import Rounding
from services.kernel.event import NEWEST_BEHAVIOUR, InvariantViolated, Unfinished
from services.settlement.domain.core import CORE
from services.settlement.domain.state import SettlementState
from tests.unit.deciding import MAX_BYTES, Deciding, Fact, by
from tests.unit.table_facts import R1, R2, T, bets_of, round_opened, spec, voided

WON, LOST, PUSHED = (
    settlement.OUTCOME_WON,
    settlement.OUTCOME_LOST,
    settlement.OUTCOME_PUSHED,
)
PLAYER_WINS = ("8S KD", "7H TC")
BANKER_WINS = ("2S KD", "7H TC")
TIE = ("8S KD", "8H TC")
Line = tuple[str, str, int, settlement.Outcome.ValueType, int, int, int]


def opened(rule_set: rule_set_pb2.RuleSet | None = None, revision: int = 1) -> table.TableOpened:
    of = spec()
    of.rule_set.CopyFrom(rule_set or baccarat_1())
    return table.TableOpened(spec=of, revision=revision)


def betting(rule_set: rule_set_pb2.RuleSet | None = None) -> Deciding[SettlementState]:
    return Deciding(CORE).given(opened(rule_set), round_opened())


def reserved(
    account: str, *bets: tuple[str, str, int], partner: str = "acme", round_id: str = R1
) -> Fact:
    return by(
        wallet.StakeReserved(
            request_id="q",
            account_id=account,
            table_id=T,
            round_id=round_id,
            currency_code="EUR",
            bets=bets_of(*bets),
        ),
        partner=partner,
    )


def went_back(account: str, *bet_ids: str, partner: str = "acme", void: bool = False) -> Fact:
    return by(
        wallet.StakeReturned(
            account_id=account,
            table_id=T,
            round_id=R1,
            bets=[bet_pb2.Bet(bet_id=bet_id) for bet_id in bet_ids],
            reason=wallet.RETURN_REASON_VOIDED if void else wallet.RETURN_REASON_WITHDRAWN,
            partner_id=partner,
        ),
        partner="" if void else partner,
    )


def accepted(cards: tuple[str, str], round_id: str = R1, behaviour: int = NEWEST_BEHAVIOUR) -> Fact:
    player, banker = (hand.split() for hand in cards)
    result = rules.BaccaratResult(
        player_cards=player,
        banker_cards=banker,
        player_total=baccarat.total(player),
        banker_total=baccarat.total(banker),
        winner=baccarat.winner(player, banker).value,  # type: ignore[arg-type] # the same numbers
    )
    return by(
        table.ResultAccepted(table_id=T, round_id=round_id, result=rules.Result(baccarat=result)),
        partner="",
        behaviour=behaviour,
    )


def settled(
    account: str,
    *lines: Line,
    partner: str = "acme",
    round_id: str = R1,
    rule_set: rule_set_pb2.RuleSet | None = None,
) -> settlement.BetsSettled:
    return settlement.BetsSettled(
        partner_id=partner,
        account_id=account,
        table_id=T,
        round_id=round_id,
        currency_code="EUR",
        bets=[
            settlement.SettledBet(
                bet_id=bet_id,
                bet=bet,
                stake_minor=stake,
                outcome=outcome,
                profit_minor=profit,
                payout_minor=payout,
                commission_minor=commission,
            )
            for bet_id, bet, stake, outcome, profit, payout, commission in lines
        ],
        rule_set_hash=(rule_set or baccarat_1()).hash,
    )


def done(
    accounts: int, bets: int, round_id: str = R1, rule_set: rule_set_pb2.RuleSet | None = None
) -> settlement.RoundSettled:
    return settlement.RoundSettled(
        table_id=T,
        round_id=round_id,
        accounts=accounts,
        bets=bets,
        rule_set_hash=(rule_set or baccarat_1()).hash,
    )


ALL_THREE = (("b1", "player", 2500), ("b2", "banker", 2000), ("b3", "tie", 200))


def test_player_wins() -> None:
    betting().given(reserved("ann", *ALL_THREE)).when(accepted(PLAYER_WINS)).then(
        settled(
            "ann",
            ("b1", "player", 2500, WON, 2500, 5000, 0),
            ("b2", "banker", 2000, LOST, -2000, 0, 0),
            ("b3", "tie", 200, LOST, -200, 0, 0),
        ),
        done(1, 3),
    )


def test_banker_wins_less_five_per_cent() -> None:
    betting().given(reserved("ann", *ALL_THREE)).when(accepted(BANKER_WINS)).then(
        settled(
            "ann",
            ("b1", "player", 2500, LOST, -2500, 0, 0),
            ("b2", "banker", 2000, WON, 1900, 3900, 100),
            ("b3", "tie", 200, LOST, -200, 0, 0),
        ),
        done(1, 3),
    )


def test_a_tie_pays_tie_and_pushes_both_sides() -> None:
    betting().given(reserved("ann", *ALL_THREE)).when(accepted(TIE)).then(
        settled(
            "ann",
            ("b1", "player", 2500, PUSHED, 0, 2500, 0),
            ("b2", "banker", 2000, PUSHED, 0, 2000, 0),
            ("b3", "tie", 200, WON, 1600, 1800, 0),
        ),
        done(1, 3),
    )


def test_a_round_without_bets_is_settled_too() -> None:
    betting().when(accepted(TIE)).then(done(0, 0))


def test_accounts_come_in_order_of_first_reservation_with_their_bets_in_order() -> None:
    log_so_far = betting().given(
        reserved("bob", ("b1", "player", 100)),
        reserved("ann", ("b2", "player", 100)),
        reserved("ann", ("b3", "player", 100), partner="other"),
        reserved("bob", ("b4", "tie", 100)),
    )
    log_so_far.when(accepted(PLAYER_WINS))
    [bob, ann, other, _] = log_so_far.answers
    assert isinstance(bob, settlement.BetsSettled)
    assert [bet.bet_id for bet in bob.bets] == ["b1", "b4"]
    assert isinstance(ann, settlement.BetsSettled)
    assert (ann.partner_id, ann.account_id) == ("acme", "ann")
    assert isinstance(other, settlement.BetsSettled)
    assert (other.partner_id, other.account_id) == ("other", "ann")


def test_withdrawn_bets_are_not_settled() -> None:
    log_so_far = betting().given(
        reserved("ann", ("b1", "player", 100), ("b2", "tie", 100)),
        reserved("bob", ("b3", "player", 100)),
        went_back("ann", "b2"),
        went_back("bob", "b3"),
        went_back("cid", "b9"),
    )
    log_so_far.when(accepted(PLAYER_WINS)).then(
        settled("ann", ("b1", "player", 100, WON, 100, 200, 0)), done(1, 1)
    )


def test_a_voided_round_is_not_settled() -> None:
    log_so_far = betting().given(reserved("ann", ("b1", "player", 100)))
    log_so_far.when(voided()).then()
    log_so_far.when(went_back("ann", "b1", void=True)).then()
    log_so_far.when(accepted(PLAYER_WINS)).then()


def test_a_round_is_settled_once() -> None:
    log_so_far = betting().given(reserved("ann", ("b1", "player", 100)), accepted(PLAYER_WINS))
    log_so_far.when(accepted(BANKER_WINS)).then()


def test_news_of_rounds_that_do_not_run_is_not_answered() -> None:
    nothing: Deciding[SettlementState] = Deciding(CORE)
    nothing.when(round_opened()).then()
    nothing.when(accepted(TIE)).then()
    log_so_far = betting().given(
        table.RoundClosed(table_id=T, round_id=R1, end=table.ROUND_END_PAID)
    )
    assert log_so_far.state.tables[T].running is None
    log_so_far.when(accepted(TIE)).then()
    log_so_far.when(reserved("ann", ("b1", "player", 100))).then()


def test_evt_03_a_round_is_paid_by_the_rules_it_was_played_under() -> None:
    """The rules change between two rounds with the same bet and the same cards."""
    floor, up = baccarat_1(), baccarat_1(tie_pays=9, rounding=Rounding.HALF_UP)
    log_so_far = betting(floor).given(reserved("ann", ("b1", "banker", 30), ("b2", "tie", 10)))
    log_so_far.when(accepted(BANKER_WINS)).then(
        settled(
            "ann",
            ("b1", "banker", 30, WON, 28, 58, 2),
            ("b2", "tie", 10, LOST, -10, 0, 0),
            rule_set=floor,
        ),
        done(1, 2, rule_set=floor),
    )
    log_so_far.given(
        table.RoundClosed(table_id=T, round_id=R1, end=table.ROUND_END_PAID),
        opened(up, 2),
        round_opened(2, revision=2),
        reserved("ann", ("b3", "banker", 30), ("b4", "tie", 10), round_id=R2),
    )
    log_so_far.when(accepted(BANKER_WINS, R2)).then(
        settled(
            "ann",
            ("b3", "banker", 30, WON, 29, 59, 1),
            ("b4", "tie", 10, LOST, -10, 0, 0),
            round_id=R2,
            rule_set=up,
        ),
        done(1, 2, R2, up),
    )


def many(accounts: int, bets: int) -> Deciding[SettlementState]:
    log_so_far = betting()
    log_so_far.careful = False
    return log_so_far.given(
        *(
            reserved(f"a{n}", *((f"b{n}.{k}", "player", 100) for k in range(bets)))
            for n in range(accounts)
        )
    )


EVERY_BEHAVIOUR = pytest.mark.parametrize(("behaviour", "in_step"), [(1, 400), (2, 40)])
"""With the bets of a step under it, which no later build may change."""


@EVERY_BEHAVIOUR
def test_many_bets_are_settled_in_steps_and_no_account_is_split(
    behaviour: int, in_step: int
) -> None:
    log_so_far = many(accounts=104, bets=7).when(accepted(PLAYER_WINS, behaviour=behaviour))
    per_step = in_step // 7
    sizes = [len(step) for step in log_so_far.steps]
    assert sizes == [per_step] * (104 // per_step) + [104 % per_step + 1]
    names = [
        one.account_id for one in log_so_far.answers if isinstance(one, settlement.BetsSettled)
    ]
    assert names == [f"a{n}" for n in range(104)]
    assert log_so_far.answers[-1] == done(104, 728)


@EVERY_BEHAVIOUR
def test_accounts_that_fill_a_step_exactly_need_no_second_one(behaviour: int, in_step: int) -> None:
    last = accepted(PLAYER_WINS, behaviour=behaviour)
    assert [len(step) for step in many(in_step, bets=1).when(last).steps] == [in_step + 1]
    assert [len(step) for step in many(in_step + 1, bets=1).when(last).steps] == [in_step, 2]


@EVERY_BEHAVIOUR
def test_an_account_with_more_bets_than_a_step_is_a_step_of_its_own(
    behaviour: int, in_step: int
) -> None:
    assert in_step < 500
    log_so_far = many(accounts=3, bets=500).when(accepted(PLAYER_WINS, behaviour=behaviour))
    assert [len(step) for step in log_so_far.steps] == [1, 1, 2]


@EVERY_BEHAVIOUR
def test_the_longest_step_fits_an_entry(behaviour: int, in_step: int) -> None:
    """The harness measures every step; here with the longest ids of everything."""
    of = spec(table_id="t" * 32)
    round_id = f"{'t' * 32}-{10**18}"
    log_so_far: Deciding[SettlementState] = Deciding(CORE, careful=False)
    log_so_far.given(
        table.TableOpened(spec=of, revision=1),
        table.RoundOpened(table_id="t" * 32, round_id=round_id, number=10**18),
    )
    for n in range(in_step):
        log_so_far.given(
            by(
                wallet.StakeReserved(
                    account_id=f"{n:064d}",
                    table_id="t" * 32,
                    round_id=round_id,
                    bets=bets_of((f"{round_id}.{100_000 + n}", "banker", 10**12)),
                ),
                partner="p" * 32,
            )
        )
    last = accepted(BANKER_WINS, round_id, behaviour)
    assert isinstance(last.body, table.ResultAccepted)
    last.body.table_id = "t" * 32
    log_so_far.when(by(last.body, partner="p" * 32, actor="o" * 41, behaviour=behaviour))
    assert len(log_so_far.steps[0]) == in_step + 1
    assert MAX_BYTES == 262_144


def test_every_step_is_decided_by_the_behaviour_of_its_result() -> None:
    log_so_far = betting().given(accepted(TIE, behaviour=1))
    running = log_so_far.state.tables[T].running
    assert running is not None
    assert running.behaviour == 1
    log_so_far.given(accepted(TIE, behaviour=2))
    assert running.behaviour == 1


def test_a_settlement_that_began_before_a_new_behaviour_ends_as_it_began() -> None:
    log_so_far = many(accounts=900, bets=1)
    event = log_so_far._event(accepted(PLAYER_WINS, behaviour=1))
    log_so_far.core.evolve(log_so_far.state, event)
    sizes = []
    for _ in range(3):
        step = log_so_far.core.decide(log_so_far.state, event)
        answers = step.answers if isinstance(step, Unfinished) else step
        sizes.append(len(answers))
        for body in answers:
            event = event._replace(body=body, service="settlement", is_input=False, behaviour=2)
            log_so_far.core.evolve(log_so_far.state, event)
    assert sizes == [400, 400, 101]


def test_a_bet_that_the_rules_do_not_know_is_a_bug_that_is_named() -> None:
    log_so_far = betting().given(reserved("ann", ("b1", "dragon_7", 100)))
    with pytest.raises(InvariantViolated, match="'dragon_7' is no bet"):
        log_so_far.when(accepted(TIE))


def test_a_retry_waits_for_an_order_to_void_that_stands_before_it() -> None:
    """Else both the void and the settlement would come of it."""
    log_so_far = betting().given(reserved("ann", ("b1", "dragon_7", 100)))
    with pytest.raises(InvariantViolated, match="is no bet"):
        log_so_far.when(accepted(TIE))
    failed = log_so_far.last
    void = by(table.VoidRound(table_id=T, round_id=R1), partner="")
    other = by(table.VoidRound(table_id=T, round_id=R2), partner="")
    log_so_far.given(other, void)
    asked_at = log_so_far.last.position
    with pytest.raises(InvariantViolated, match="the order to void it is not decided"):
        log_so_far.retry(failed)
    log_so_far.given(replace(by(table.OrderRejected(round_id=R1), partner=""), cause=asked_at))
    with pytest.raises(InvariantViolated, match="is no bet"):
        log_so_far.retry(failed)
    log_so_far.given(void, by(voided(), partner=""))
    assert log_so_far.retry(failed).answers == []


def test_a_result_that_contradicts_its_cards_is_not_paid() -> None:
    log_so_far = betting().given(reserved("ann", ("b1", "player", 100)))
    wrong = accepted(BANKER_WINS)
    assert isinstance(wrong.body, table.ResultAccepted)
    wrong.body.result.baccarat.winner = rules.BACCARAT_WINNER_PLAYER
    with pytest.raises(InvariantViolated, match="contradicts"):
        log_so_far.when(wrong)


def test_a_result_of_no_known_game_is_not_paid() -> None:
    with pytest.raises(InvariantViolated, match="no baccarat result"):
        betting().when(table.ResultAccepted(table_id=T, round_id=R1))
    strange = baccarat_1()
    strange.game = rule_set_pb2.GAME_UNSPECIFIED
    with pytest.raises(InvariantViolated, match="game 0"):
        betting(strange).when(accepted(TIE))


def test_a_settlement_names_the_debits_that_a_seamless_partner_took() -> None:
    one, two = (
        reserved("a1", ("b1", "player", 100), ("b2", "tie", 50)),
        reserved("a1", ("b3", "banker", 10), ("b4", "tie", 10)),
    )
    for fact, debits in ((one, ["d1"]), (two, ["d2", "d3"])):
        assert isinstance(fact.body, wallet.StakeReserved)
        fact.body.transaction_ids.extend(debits)
    log_so_far = betting().given(one, two, reserved("a2", ("b5", "tie", 10)))
    settled = log_so_far.when(accepted(PLAYER_WINS)).answers
    assert [list(getattr(each, "transaction_ids", ())) for each in settled] == [
        ["d1", "d2", "d3"],
        [],
        [],
    ]
