"""A paid round settled again (INC-3, INC-4): facts are taken whole or not at all, and what comes of
them is what the dry run showed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from google.protobuf.message import Message

from sabot.log.v1 import entry_pb2
from sabot.log.v1 import events_pb2 as log
from sabot.rules.v1 import events_pb2 as rules
from sabot.settlement.v1 import correction_events_pb2 as corrections
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.table.v1 import correction_events_pb2 as table_corrections
from sabot.table.v1 import events_pb2 as table
from services.games import catalogue
from services.games.told_results import completed
from services.kernel.event import Position
from services.settlement.domain.core import CORE
from services.settlement.domain.correcting import Fault, differences
from services.settlement.domain.facts import NOTHING_YET
from services.settlement.domain.state import SettlementState
from tests.unit.correction_facts import (
    C1,
    VOID,
    approved,
    digest_of,
    dry_run,
    opened,
    paid_round,
    places,
    recalled,
    result_corrected,
    spin,
    taken,
)
from tests.unit.deciding import Deciding, by
from tests.unit.table_facts import R1, T, round_opened

Outcome = table_corrections.CorrectedOutcome


class Recalling:
    """A correction that is approved; `facts` are what the log has."""

    def __init__(
        self,
        facts: Sequence[Message],
        outcome: Outcome,
        *,
        version: int = 1,
        dry: bytes | None = None,
        careful: bool = True,
    ) -> None:
        self.facts = recalled(places(facts))
        self.outcome = outcome
        self.version = version
        if dry is None:
            dry = dry_run(facts, outcome)
        self.game: Deciding[SettlementState] = Deciding(CORE, careful=careful)
        self.game.given(by(approved(outcome, dry, version), partner=""))
        at = self.game.last.position
        self.asked_by = entry_pb2.Position(segment=at.segment, sequence=at.sequence, index=at.index)

    def step(self, number: int, facts: Sequence[corrections.RecalledFact]) -> Message:
        return corrections.RecallFacts(
            correction_id=C1, step=number, facts=facts, asked_by=self.asked_by
        )

    def end(self, count: int | None = None, digest: bytes | None = None) -> Message:
        return corrections.EndRecall(
            correction_id=C1,
            count=len(self.facts) if count is None else count,
            digest=digest_of(self.facts) if digest is None else digest,
            asked_by=self.asked_by,
        )

    def recall(self) -> Deciding[SettlementState]:
        for number, fact in enumerate(self.facts, start=1):
            self.game.given(self.step(number, [fact]))
        return self.game.when(self.end())

    def settle_again(self) -> list[Message]:
        self.recall().then_only(corrections.FactsRecalled)
        body = result_corrected(self.outcome, self.version)
        return self.game.when(by(body, partner="")).answers


def rejected(fault: corrections.CorrectionFault.ValueType) -> corrections.CorrectionRejected:
    return corrections.CorrectionRejected(correction_id=C1, table_id=T, round_id=R1, fault=fault)


def ignored(reason: log.IgnoredReason.ValueType) -> log.InputIgnored:
    return log.InputIgnored(reason=reason)


def test_a_wrong_number_is_settled_again_by_the_right_one() -> None:
    answers = Recalling(paid_round(), spin(20)).settle_again()
    told = {one.account_id: one for one in answers if isinstance(one, corrections.BetsCorrected)}
    assert {who: one.payout_delta_minor for who, one in told.items()} == {
        "a": -36_000,
        "b": 36_000,
        "d": -2_000,
        "e": 2_000,
    }  # C had black, and 17 and 20 are both black: nothing of it changes.
    assert sum(one.payout_delta_minor for one in told.values()) == 0
    bet = told["a"].bets[0]
    assert (bet.before.outcome, bet.after.outcome) == (
        settlement.OUTCOME_WON,
        settlement.OUTCOME_LOST,
    )
    assert told["a"].rule_set_hash == catalogue.roulette().hash
    assert answers[-1] == corrections.RoundCorrected(
        correction_id=C1, table_id=T, round_id=R1, accounts=4, version=1
    )


def test_facts_come_step_by_step_each_once() -> None:
    one = Recalling(paid_round(), spin(20))
    first, second = one.facts[:3], one.facts[3:]
    one.game.when(one.step(1, first)).then(corrections.FactsTaken(correction_id=C1, step=1))
    one.game.when(one.step(1, first)).then(ignored(log.IGNORED_REASON_ALREADY_DONE))
    one.game.when(one.step(3, second)).then(ignored(log.IGNORED_REASON_NOT_NOW))
    one.game.when(one.step(2, second)).then(corrections.FactsTaken(correction_id=C1, step=2))
    one.game.when(one.end()).then_only(corrections.FactsRecalled)
    answer = one.game.answers[0]
    assert isinstance(answer, corrections.FactsRecalled)
    assert (answer.count, answer.digest) == (len(one.facts), digest_of(one.facts))
    # The approval is the log's first event; the repeat and the early one were not taken.
    taken_at = [Position(at.segment, at.sequence, at.index) for at in answer.steps]
    assert taken_at == [Position(1, 2, 0), Position(1, 5, 0)]
    one.game.when(one.end()).then(ignored(log.IGNORED_REASON_ALREADY_DONE))
    one.game.when(one.step(3, [])).then(ignored(log.IGNORED_REASON_ALREADY_DONE))


def test_facts_that_nobody_waits_for_are_ignored() -> None:
    one = Recalling(paid_round(), spin(20))
    stray = corrections.RecallFacts(correction_id="correction-9", step=1)
    one.game.when(stray).then(ignored(log.IGNORED_REASON_UNKNOWN))
    late = corrections.RecallFacts(
        correction_id=C1, step=1, asked_by=entry_pb2.Position(segment=1, sequence=999)
    )
    one.game.when(late).then(ignored(log.IGNORED_REASON_UNKNOWN))
    one.game.when(corrections.EndRecall(correction_id="correction-9")).then(
        ignored(log.IGNORED_REASON_UNKNOWN)
    )


@pytest.mark.parametrize("missing", range(9))
def test_a_fact_that_is_left_out_is_noticed(missing: int) -> None:
    facts = paid_round()
    assert len(facts) == 9
    left = facts[:missing] + facts[missing + 1 :]
    one = Recalling(left, spin(20), dry=bytes(32))
    one.recall().then(rejected(Fault.CORRECTION_FAULT_FACTS_INCOMPLETE))
    assert not one.game.state.recalls


def test_faults_come_in_order() -> None:
    none = Recalling([], spin(20), dry=bytes(32))
    none.game.when(none.end(0, b"")).then(rejected(Fault.CORRECTION_FAULT_NOT_PAID))

    one = Recalling([], spin(17), dry=bytes(32))
    one.game.when(one.end(3)).then(rejected(Fault.CORRECTION_FAULT_DIGEST_DIFFERS))

    facts = paid_round()
    wrong = Recalling(facts, spin(17), dry=bytes(32))
    wrong.game.given(*(wrong.step(n, [fact]) for n, fact in enumerate(wrong.facts, start=1)))
    wrong.game.when(wrong.end(digest=NOTHING_YET)).then(
        rejected(Fault.CORRECTION_FAULT_DIGEST_DIFFERS)
    )

    Recalling(facts, spin(17), version=2, dry=bytes(32)).recall().then(
        rejected(Fault.CORRECTION_FAULT_FACTS_INCOMPLETE)
    )
    Recalling(facts, spin(17), dry=bytes(32)).recall().then(
        rejected(Fault.CORRECTION_FAULT_NOTHING_TO_CORRECT)
    )
    dice = Outcome(result=rules.Result(sicbo=rules.SicboResult(dice=[1, 2, 3])))
    Recalling(facts, dice, dry=bytes(32)).recall().then(rejected(Fault.CORRECTION_FAULT_BAD_RESULT))
    Recalling(facts, spin(20), dry=bytes(32)).recall().then(
        rejected(Fault.CORRECTION_FAULT_DRY_RUN_STALE)
    )


def wrongly_paid(account: str, payout_minor: int) -> list[Message]:
    """The round as a build wrote it that paid an account something else."""
    facts = paid_round()
    for fact in facts:
        if isinstance(fact, settlement.BetsSettled) and fact.account_id == account:
            bet = fact.bets[0]
            bet.payout_minor, bet.profit_minor = payout_minor, payout_minor - bet.stake_minor
            bet.outcome = settlement.OUTCOME_WON if payout_minor else settlement.OUTCOME_LOST
    return facts


@pytest.mark.parametrize(
    ("account", "paid", "difference"), [("a", 37_000, -1_000), ("a", 0, 36_000), ("b", 1, -1)]
)
def test_a_round_that_was_settled_wrongly_is_settled_again_to_the_same_result(
    account: str, paid: int, difference: int
) -> None:
    facts = wrongly_paid(account, paid)
    told = [
        (one.account_id, one.payout_delta_minor)
        for one in Recalling(facts, spin(17)).settle_again()
        if isinstance(one, corrections.BetsCorrected)
    ]
    assert told == [(account, difference)]


def test_before_the_second_behaviour_the_same_result_was_never_settled_again() -> None:
    one = Recalling(wrongly_paid("a", 0), spin(17))
    for number, fact in enumerate(one.facts, start=1):
        one.game.given(one.step(number, [fact]))
    one.game.when(by(one.end(), partner="", behaviour=1)).then(
        rejected(Fault.CORRECTION_FAULT_NOTHING_TO_CORRECT)
    )


def test_what_an_older_build_told_less_of_is_no_difference() -> None:
    facts = paid_round()
    for fact in facts:
        if isinstance(fact, settlement.BetsSettled):
            fact.bets[0].line = "of an older build"
    Recalling(facts, spin(17), dry=bytes(32)).recall().then(
        rejected(Fault.CORRECTION_FAULT_NOTHING_TO_CORRECT)
    )


def test_blackjack_is_voided_but_not_settled_by_another_result() -> None:
    played = rules.Result(blackjack=rules.BlackjackResult(dealer_cards=["9S", "9D"]))
    facts = [
        opened(catalogue.blackjack()),
        round_opened(),
        table.ResultAccepted(table_id=T, round_id=R1, result=played),
        settlement.RoundSettled(table_id=T, round_id=R1),
    ]
    other = Outcome(result=rules.Result(blackjack=rules.BlackjackResult(dealer_cards=["AS", "KD"])))
    Recalling(facts, other, dry=bytes(32)).recall().then(
        rejected(Fault.CORRECTION_FAULT_NOT_CORRECTABLE)
    )
    assert Recalling(facts, VOID).settle_again() == [
        corrections.RoundCorrected(correction_id=C1, table_id=T, round_id=R1, version=1)
    ]


def test_nothing_is_settled_again_before_the_table_says_so() -> None:
    one = Recalling(paid_round(), spin(20))
    one.game.given(one.step(1, one.facts))
    one.game.when(by(result_corrected(spin(20)), partner="")).then()
    one.game.when(one.end()).then_only(corrections.FactsRecalled)


def test_a_correction_that_is_closed_is_forgotten() -> None:
    one = Recalling(paid_round(), spin(20))
    one.recall()
    closed = table_corrections.CorrectionClosed(
        correction_id=C1, end=table_corrections.CORRECTION_END_REFUTED
    )
    one.game.when(by(closed, partner="")).then()
    assert not one.game.state.recalls
    one.game.when(by(result_corrected(spin(20)), partner="")).then()


def test_a_correction_works_against_the_last_one_and_back() -> None:
    facts = paid_round()
    history = list(facts)
    deltas: list[int] = []
    for version, outcome in enumerate((spin(20), VOID, spin(5), spin(17)), start=1):
        again = Recalling(history, outcome, version=version)
        answers = again.settle_again()
        history += [result_corrected(outcome, version), *answers]
        deltas.append(
            sum(
                one.payout_delta_minor
                for one in answers
                if isinstance(one, corrections.BetsCorrected) and one.account_id == "a"
            )
        )
    # 360.00 were paid; then nothing, the stake, nothing, and 360.00 again.
    assert deltas == [-36_000, 1_000, -1_000, 36_000]
    assert {who: one.bets for who, one in taken(history).accounts.items()} == {
        who: one.bets for who, one in taken(facts).accounts.items()
    }


def test_a_void_reverses_wins_and_losses_and_returns_every_stake() -> None:
    answers = Recalling(paid_round(), VOID).settle_again()
    told = [one for one in answers if isinstance(one, corrections.BetsCorrected)]
    assert {one.account_id: one.payout_delta_minor for one in told} == {
        "a": 1_000 - 36_000,
        "b": 1_000,
        "c": 1_000 - 2_000,
        "d": 1_000 - 2_000,
        "e": 1_000,
    }
    for one in told:
        for bet in one.bets:
            assert bet.after.outcome == settlement.OUTCOME_VOIDED
            assert bet.after.payout_minor == bet.after.stake_minor == bet.before.stake_minor
            assert not bet.after.profit_minor
            assert not bet.after.commission_minor


def test_commission_and_half_losses_change_on_their_own() -> None:
    banker = baccarat_result(["6S", "KD"], ["7H", "TC"])
    player = baccarat_result(["8S", "KD"], ["7H", "TC"])
    bets = {"a": [("banker", "", 1_000)], "b": [("player", "", 500), ("tie", "", 100)]}
    facts = paid_round(bets, banker, catalogue.baccarat_1())
    answers = Recalling(facts, player).settle_again()
    told = {one.account_id: one for one in answers if isinstance(one, corrections.BetsCorrected)}
    assert (told["a"].payout_delta_minor, told["a"].commission_delta_minor) == (-1_950, -50)
    assert (told["b"].payout_delta_minor, told["b"].commission_delta_minor) == (1_000, 0)

    tie = Outcome(
        result=rules.Result(dragon_tiger=rules.DragonTigerResult(dragon_card="7S", tiger_card="7H"))
    )
    dragon = Outcome(
        result=rules.Result(dragon_tiger=rules.DragonTigerResult(dragon_card="8S", tiger_card="7H"))
    )
    halved = paid_round({"a": [("dragon", "", 101)]}, tie, catalogue.dragon_tiger())
    answers = Recalling(halved, dragon).settle_again()
    corrected = answers[0]
    assert isinstance(corrected, corrections.BetsCorrected)
    # Half of 101 is lost, 50 went back; 202 are paid.
    assert corrected.payout_delta_minor == 202 - 50
    assert corrected.bets[0].before.outcome == settlement.OUTCOME_HALF_LOST


def baccarat_result(player: list[str], banker: list[str]) -> Outcome:
    told = rules.BaccaratResult(player_cards=player, banker_cards=banker)
    result = completed(rules.Result(baccarat=told))
    assert result is not None
    return Outcome(result=result)


@pytest.mark.parametrize(("behaviour", "in_step", "steps"), [(1, 400, 11), (2, 40, 105)])
def test_a_round_of_many_bets_is_settled_again_in_steps(
    behaviour: int, in_step: int, steps: int
) -> None:
    accounts = 1_050
    bets = {f"a{n:05}": [("red", "", 100), ("straight", "7", 100)] for n in range(accounts)}
    one = Recalling(paid_round(bets), spin(7), careful=False)
    one.game.given(*(one.step(n, [fact]) for n, fact in enumerate(one.facts, start=1)))
    one.game.when(one.end()).then_only(corrections.FactsRecalled)
    one.game.when(by(result_corrected(spin(7)), partner="", behaviour=behaviour))
    sizes = [
        sum(2 * len(body.bets) for body in step if isinstance(body, corrections.BetsCorrected))
        for step in one.game.steps
    ]
    assert max(sizes) == in_step
    assert len(sizes) == steps
    assert sum(sizes) == accounts * 4
    last = one.game.answers[-1]
    assert isinstance(last, corrections.RoundCorrected)
    assert last.accounts == accounts
    assert not one.game.state.recalls


def test_what_the_dry_run_counts_is_what_is_settled() -> None:
    facts = paid_round()
    shown = [one for _, one in differences(taken(facts), R1, spin(20))]
    told = [
        one
        for one in Recalling(facts, spin(20)).settle_again()
        if isinstance(one, corrections.BetsCorrected)
    ]
    assert [(one.account_id, one.payout_delta_minor) for one in shown] == [
        (one.account_id, one.payout_delta_minor) for one in told
    ]


def test_facts_out_of_order_or_of_another_round_are_noticed() -> None:
    facts = paid_round()
    swapped = [*facts[:3], facts[4], facts[3], *facts[5:]]
    assert taken(swapped).is_whole  # Two accounts may stand in any order ...
    early = [*facts[:2], facts[3], facts[2], *facts[4:]]
    assert not taken(early).is_whole  # ... but not before the result.
    other = table.RoundOpened(table_id=T, round_id=f"{T}-2", number=2, revision=1)
    assert not taken([facts[0], other, *facts[2:]]).is_whole
    assert not taken([*facts, facts[-1]]).is_whole
    unknown = log.InputNoted()
    assert "is no fact" in taken([*facts, unknown]).fault
