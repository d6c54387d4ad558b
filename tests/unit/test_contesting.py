"""Wrong settlements are named: round, bet, expected and recorded, whatever is wrong, each once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from google.protobuf.message import Message

from sabot.audit.v1 import contest_events_pb2 as contests
from sabot.log.v1 import entry_pb2
from sabot.log.v1 import events_pb2 as log
from sabot.settlement.v1 import correction_events_pb2 as corrections
from sabot.settlement.v1 import events_pb2 as settlement
from services.audit.contesting import AGAIN_US, Contesting, contests_of, facts_of
from services.audit.domain import contested
from services.audit.domain.core import CORE, AuditState
from services.cli.cores import CORES
from services.kernel.event import Event, Position
from services.kernel.new_log import begin_anew
from services.kernel.replica import Diverged
from services.settlement.domain.core import CORE as SETTLEMENT
from services.simulator.virtual_time import run_virtual
from tests.fleet.patched_settlement import PatchedBuild, one_more
from tests.fleet.small_cell import memory_cell
from tests.unit.deciding import Deciding, by

CAUSE = entry_pb2.Position(segment=1, sequence=8)
LATER = entry_pb2.Position(segment=1, sequence=8, index=1)
FIRST = 3
"""Index in the entry of the first answer that differs."""


def bet(number: int, payout: int, outcome: Any = settlement.OUTCOME_WON) -> settlement.SettledBet:
    return settlement.SettledBet(
        bet_id=f"t1-7-{number}",
        bet="tie",
        stake_minor=100,
        outcome=outcome,
        profit_minor=payout - 100,
        payout_minor=payout,
    )


def settled(account: str, *bets: settlement.SettledBet) -> settlement.BetsSettled:
    return settlement.BetsSettled(
        partner_id="acme",
        account_id=account,
        table_id="t1",
        round_id="t1-7",
        currency_code="EUR",
        bets=bets,
    )


def corrected(account: str, after: settlement.SettledBet) -> corrections.BetsCorrected:
    return corrections.BetsCorrected(
        correction_id="correction-3",
        partner_id="acme",
        account_id=account,
        table_id="t1",
        round_id="t1-7",
        currency_code="EUR",
        bets=[corrections.CorrectedBet(before=bet(1, 0), after=after)],
    )


def answers(
    *bodies: Message, continues: bool = False, cause: entry_pb2.Position = CAUSE
) -> list[entry_pb2.Event]:
    made = [
        entry_pb2.Event(
            type=str(body.DESCRIPTOR.full_name),
            body=body.SerializeToString(deterministic=True),
            cause=cause,
            index=number,
        )
        for number, body in enumerate(bodies)
    ]
    made[-1].continues = continues
    return made


def differs(
    due: Sequence[entry_pb2.Event], told: Sequence[entry_pb2.Event], service: str = "settlement"
) -> list[contests.ContestSettlement]:
    at = Position(1, 9, FIRST)
    return list(contests_of(Diverged(service, at, due[0] if due else None, told[0], due, told)))


def says(found: Sequence[contests.ContestSettlement]) -> list[tuple[str, str, list[Any]]]:
    facts: list[Any] = [facts_of(one) for one in found]
    return [(one["position"], one["account_id"], one["bets"]) for one in facts]


END = settlement.RoundSettled(table_id="t1", round_id="t1-7", accounts=3, bets=3)
ANN, BOB, CEM = (settled(name, bet(n, 900)) for n, name in enumerate(("ann", "bob", "cem"), 1))


def test_a_wrong_payout_names_its_bet_and_both_amounts() -> None:
    wrong = settled("ann", bet(1, 1000), bet(4, 100))
    right = settled("ann", bet(1, 900), bet(4, 100))
    (found,) = differs(answers(right, BOB, END), answers(wrong, BOB, END))
    assert facts_of(found) == {
        "position": "1/9/3",
        "table_id": "t1",
        "round_id": "t1-7",
        "partner_id": "acme",
        "account_id": "ann",
        "bets": ["t1-7-1 tie: expected won 9.00, recorded won 10.00 EUR"],
    }


def test_a_wrong_status_is_named_though_the_amount_is_right() -> None:
    wrong = settled("ann", bet(1, 100, settlement.OUTCOME_WON))
    right = settled("ann", bet(1, 100, settlement.OUTCOME_PUSHED))
    ((_, _, bets),) = says(differs(answers(right, END), answers(wrong, END)))
    assert bets == ["t1-7-1 tie: expected pushed 1.00, recorded won 1.00 EUR"]


def test_every_account_that_an_entry_settles_wrongly_is_named_at_its_place() -> None:
    wrong = answers(settled("ann", bet(1, 0, settlement.OUTCOME_LOST)), BOB, settled("cem"), END)
    assert says(differs(answers(ANN, BOB, CEM, END), wrong)) == [
        ("1/9/3", "ann", ["t1-7-1 tie: expected won 9.00, recorded lost 0.00 EUR"]),
        ("1/9/5", "cem", ["t1-7-3 tie: expected won 9.00, recorded nothing EUR"]),
    ]


def test_a_settlement_that_is_missing_or_too_many_is_named() -> None:
    missing = differs(answers(BOB, CEM, END), answers(CEM, END))
    assert says(missing) == [
        ("1/9/3", "bob", ["t1-7-2 tie: expected won 9.00, recorded nothing EUR"])
    ]
    too_many = differs(answers(CEM, END), answers(BOB, CEM, END))
    assert says(too_many) == [
        ("1/9/3", "bob", ["t1-7-2 tie: expected nothing, recorded won 9.00 EUR"])
    ]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_an_account_that_is_paid_twice_in_an_entry_is_named_though_one_of_them_is_right(
    order: tuple[int, int],
) -> None:
    both = [(settled("ann", bet(1, 1000)), "1000"), (ANN, "900")]
    twice = answers(*(both[place][0] for place in order), BOB, END)
    wrong = FIRST + order.index(0)
    assert says(differs(answers(ANN, BOB, END), twice)) == [
        (f"1/9/{wrong}", "ann", ["t1-7-1 tie: expected nothing, recorded won 10.00 EUR"])
    ]


def test_the_same_settlement_told_twice_is_named_the_second_time() -> None:
    # The first is right, so the difference begins at the second.
    assert says(differs(answers(BOB, END), answers(ANN, BOB, END))) == [
        ("1/9/3", "ann", ["t1-7-1 tie: expected nothing, recorded won 9.00 EUR"])
    ]
    assert len(differs(answers(ANN, BOB, END), answers(settled("ann"), ANN, ANN, BOB, END))) == 1


def test_two_wrong_settlements_of_an_account_leave_nothing_due() -> None:
    one, other = settled("ann", bet(1, 1000)), settled("ann", bet(1, 0))
    assert says(differs(answers(ANN, END), answers(one, other, END))) == [
        ("1/9/3", "ann", ["t1-7-1 tie: expected won 9.00, recorded won 10.00 EUR"]),
        ("1/9/4", "ann", ["t1-7-1 tie: expected nothing, recorded won 0.00 EUR"]),
    ]


def test_what_may_come_in_a_later_step_is_not_missed_yet() -> None:
    due = answers(ANN, BOB, continues=True)
    assert [one[1] for one in says(differs(due, answers(BOB, CEM, continues=True)))] == ["ann"]
    assert differs(due, answers(ANN, CEM, continues=True)) == []


def test_a_bet_of_another_account_is_named_though_more_may_come() -> None:
    due = answers(ANN, BOB, continues=True)
    eve = settled("eve", bet(1, 900), bet(5, 900))
    assert says(differs(due, answers(eve, BOB, continues=True)))[0] == (
        "1/9/3",
        "eve",
        ["t1-7-1 tie: expected nothing, recorded won 9.00 EUR"],
    )


def test_a_settlement_that_is_left_out_whole_names_every_account() -> None:
    passed, other = answers(ANN, BOB, END), settled("cem", bet(3, 900))
    later = answers(other, END, cause=LATER)
    assert says(differs(passed + later, later)) == [
        ("1/9/3", "ann", ["t1-7-1 tie: expected won 9.00, recorded nothing EUR"]),
        ("1/9/3", "bob", ["t1-7-2 tie: expected won 9.00, recorded nothing EUR"]),
    ]


def test_what_is_not_surely_left_out_is_not_named() -> None:
    # Answered elsewhere, and rightly.
    passed, later = answers(ANN, END), answers(CEM, END, cause=LATER)
    elsewhere = answers(ANN, CEM, END, cause=LATER)
    assert differs(passed + later, elsewhere) == []
    # Still to come.
    wrong = answers(settled("ann", bet(1, 800)), END)
    assert [one[1] for one in says(differs(passed + later, wrong))] == ["ann"]
    # An answer that nobody waits for says nothing of what is due.
    assert differs(passed, answers(END, cause=LATER)) == []


def test_a_correction_that_was_settled_wrongly_is_named_with_its_id() -> None:
    done = corrections.RoundCorrected(correction_id="correction-3", round_id="t1-7", accounts=1)
    (found,) = differs(
        answers(corrected("ann", bet(1, 900)), done), answers(corrected("ann", bet(1, 950)), done)
    )
    assert facts_of(found)["correction_id"] == "correction-3"
    assert facts_of(found)["bets"] == ["t1-7-1 tie: expected won 9.00, recorded won 9.50 EUR"]


def test_differences_that_concern_no_bet_are_left_to_their_own_alarm() -> None:
    other = settlement.RoundSettled(table_id="t1", round_id="t1-7", accounts=4, bets=3)
    assert differs(answers(END), answers(other)) == []
    assert differs(answers(ANN), answers(BOB), service="wallet") == []


# ---- the core ----------------------------------------------------------------------------------


def contest(*bets: contests.ContestedBet, account: str = "ann") -> contests.ContestSettlement:
    return contests.ContestSettlement(
        answer=entry_pb2.Position(segment=1, sequence=9, index=3),
        partner_id="acme",
        account_id=account,
        table_id="t1",
        round_id="t1-7",
        currency_code="EUR",
        bets=bets,
    )


WRONG = contests.ContestedBet(bet_id="t1-7-1", expected=bet(1, 900), recorded=bet(1, 1000))


def test_a_contest_stands_once_whoever_tells_it() -> None:
    told = contest(WRONG)
    game: Deciding[AuditState] = Deciding(CORE)
    stands = contests.SettlementContested(contest=told, table_id="t1", round_id="t1-7")
    game.when(by(told, partner="acme", actor="system:contesting")).then(stands)
    known = log.InputIgnored(reason=log.IGNORED_REASON_ALREADY_DONE)
    game.when(by(told, partner="acme", actor="system:contesting")).then(known)
    game.when(by(contest(WRONG, account="bob"), partner="acme")).then_only(
        contests.SettlementContested
    )
    game.when(by(contest(), partner="acme")).then(
        log.InputIgnored(reason=log.IGNORED_REASON_IMPOSSIBLE)
    )


def test_what_is_known_of_contests_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contested, "MOST_KEPT", 2)
    kept: dict[str, int] = {}
    for name in ("ann", "bob", "cem"):
        contested.keep(kept, contests.SettlementContested(contest=contest(account=name)), 5)
    assert [key.rpartition(" ")[2] for key in kept] == ["bob", "cem"]


def test_a_contest_that_is_not_in_the_log_is_told_again() -> None:
    """The log was full: what nobody waits for is dropped then."""
    shell, state = Contesting(), CORE.initial()
    shell._waiting.append(contest(WRONG))

    def told(now_us: int) -> int:
        return len(shell.poll(state, now_us, False))

    assert [told(now) for now in (1, 2, AGAIN_US, AGAIN_US + 1, AGAIN_US + 2)] == [1, 0, 0, 1, 0]
    contested.keep(state.contested, contests.SettlementContested(contest=contest(WRONG)), 5)
    assert told(2 * AGAIN_US + 1) == told(9 * AGAIN_US) == 0


# ---- a cell ------------------------------------------------------------------------------------


def test_a_patched_build_in_a_cell_is_alarmed_of_and_stands_in_the_log() -> None:
    build = PatchedBuild(one_more("banker"))
    cores = [build.core if core.service == "settlement" else core for core in CORES]
    contesting = Contesting()

    async def main() -> None:
        options: Any = {"cores": cores, "observed": [SETTLEMENT], "shells": [contesting]}
        async with memory_cell(**options) as (cell, _):
            begin_anew(cell.process)
            looking = asyncio.create_task(contesting.run(cell.process))
            await cell.open_table()
            for account in ("a", "b"):
                await cell.open_account(account, 100_000)
            found: list[Event] = []
            cell.process.follow(keeping(found))
            wrong = await planted(cell)
            await cell.until(lambda: len(found) == 2, "both are contested")
            alarms = [facts for kind, facts in cell.alarms if kind == "settlement_contested"]
            assert [one["account_id"] for one in alarms] == ["a", "b"]
            for one, event in zip(alarms, found, strict=True):
                assert one["round_id"] == wrong
                assert isinstance(event.body, contests.SettlementContested)
                assert (event.partner, event.body.round_id) == ("acme", wrong)
                (bad,) = event.body.contest.bets
                assert (bad.expected.payout_minor, bad.recorded.payout_minor) == (1_950, 2_900)
                assert bad.bet_id in one["bets"][0]
            # The right build is back: nothing more differs.
            build.runs = False
            await cell.play(3, ["a", "b"])
            assert len(found) == 2
            assert cell.process.folding.difference_count == 1
            looking.cancel()

    run_virtual(main())


def keeping(found: list[Event]) -> Callable[[list[Event]], None]:
    def keep(events: list[Event]) -> None:
        found.extend(one for one in events if isinstance(one.body, contests.SettlementContested))

    return keep


async def planted(cell: Any) -> str:
    """A round of the cell's first shoe, which the bank wins; its id."""
    round_id: str = await cell.open_round()
    for account in ("a", "b"):
        await cell.bet(round_id, account, ("banker", 1_000))
    await cell.close_betting(round_id)
    return round_id
