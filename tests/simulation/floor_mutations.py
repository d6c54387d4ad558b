"""Faults in what the floor tells and in how betting closes there that are planted in the product to
see whether the simulation finds them. See `mutations`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sabot.shoe.v1 import events_pb2 as shoe
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import events_pb2 as table
from services.kernel.event import Event
from services.rules.domain import corrections as rules_corrections
from services.rules.domain import decide as rules_decide
from services.rules.domain import evolve as rules_evolve
from services.shoe.domain import (
    census,
    consumables,
    floor_cards,
    floor_evolve,
    floor_orders,
    floor_tosses,
    tosses,
)
from services.shoe.domain import corrections as shoe_corrections
from services.shoe.domain import decide as shoe_decide
from services.shoe.domain import evolve as shoe_evolve
from services.shoe.domain.state import Shoe, ShoeState
from services.simulator.releases import BASE, Cores
from services.table.domain import decide as table_decide
from services.table.domain import evolve as table_evolve
from services.table.domain import evolve_floor, floor_close
from services.table.domain.floor_state import Noted
from services.table.domain.state import Round
from tests.simulation.mutations import Mutation

CLOCK_US = 200_000
CARD_GAMES = ("floor_baccarat", "floor_dragon_tiger")
TOSS_GAMES = ("floor_roulette", "floor_sicbo")

# ---- no more bets ------------------------------------------------------------------------------


def lets_late_bets_stand(patch: pytest.MonkeyPatch) -> Cores:
    """What was taken after the call is returned as betting closes."""
    returns = floor_close._returns

    def in_time(*args: Any) -> Iterator[table.BetsWithdrawn]:
        return (one for one in returns(*args) if not one.late)

    patch.setattr(floor_close, "_returns", in_time)
    return BASE


def takes_bets_in_time_for_late(patch: pytest.MonkeyPatch) -> Cores:
    """A bet is as late as its own edge says, no later."""

    def later(running: Round, body: table.BetsPlaced) -> None:
        if running.at_floor is not None:
            for bet in body.bets:
                running.at_floor.edge_us[bet.bet_id] = body.edge_time_us + CLOCK_US

    patch.setattr(table_evolve, "note_placed", later)
    return BASE


def obeys_late_withdrawals(patch: pytest.MonkeyPatch) -> Cores:
    """A withdrawal that was made after the call has no effect."""

    def at_once(*fields: Any) -> Noted:
        return Noted(*fields)._replace(edge_us=0)

    patch.setattr(evolve_floor, "Noted", at_once)
    return BASE


def believes_every_clock(patch: pytest.MonkeyPatch) -> Cores:
    """A device's time of the call lies between the round's opening and its telling."""
    patch.setattr(floor_close, "_can_be", lambda *_: True)
    return BASE


def forgets_withdrawals_that_wait(patch: pytest.MonkeyPatch) -> Cores:
    """A withdrawal in time takes effect as betting closes."""
    returns = floor_close._returns

    def late_only(*args: Any) -> Iterator[table.BetsWithdrawn]:
        return (one for one in returns(*args) if one.late)

    patch.setattr(floor_close, "_returns", late_only)
    return BASE


# ---- what comes too early ----------------------------------------------------------------------


def lets_an_early_outcome_count(patch: pytest.MonkeyPatch) -> Cores:
    """What came before every stake was certain counts only once a supervisor has looked."""
    decide_fault = floor_close.decide_fault

    def but_early(state: Any, event: Event, body: floor.FloorFaultFound) -> Any:
        early = body.fault == floor.FLOOR_FAULT_EARLY_OUTCOME
        return () if early else decide_fault(state, event, body)

    patch.setattr(table_decide, "decide_fault", but_early)
    return BASE


def takes_the_close_for_the_seal(patch: pytest.MonkeyPatch) -> Cores:
    """Stakes are certain with `StakesSealed`, not as betting closes."""
    follow_round = floor_evolve.follow_round

    def sealed_early(state: ShoeState, body: Any) -> None:
        follow_round(state, body)
        if isinstance(body, table.BettingClosed):
            at = state.tables.get(body.table_id)
            if at is not None and at.round_id == body.round_id:
                at.at_floor.sealed = True

    patch.setattr(shoe_evolve, "follow_round", sealed_early)
    return BASE


def lets_faults_pass(patch: pytest.MonkeyPatch) -> Cores:
    """A round in which something cannot be right stands still."""
    decide_fault = floor_close.decide_fault

    def early_only(state: Any, event: Event, body: floor.FloorFaultFound) -> Any:
        early = body.fault == floor.FLOOR_FAULT_EARLY_OUTCOME
        return decide_fault(state, event, body) if early else ()

    patch.setattr(table_decide, "decide_fault", early_only)
    return BASE


# ---- wheels and dice ---------------------------------------------------------------------------


def counts_a_void_spin(patch: pytest.MonkeyPatch) -> Cores:
    """A spin with too few turns, or with the wheel, is spun again (rule ROU-6)."""
    patch.setattr(tosses, "invalid_by", lambda _body: None)
    patch.setattr(floor_tosses, "invalid_by", lambda _body: None)
    return BASE


def lets_a_second_reading_stand(patch: pytest.MonkeyPatch) -> Cores:
    """A second reading of what is told must agree; it never takes its place."""
    once_more = floor_tosses._once_more

    def stands(body: Any, known: list[int]) -> Any:
        if tosses.numbers_of(body) == known:
            return once_more(body, known)
        return [tosses.came_to(body)]

    patch.setattr(floor_tosses, "_once_more", stands)
    return BASE


def voids_a_spin_that_stands(patch: pytest.MonkeyPatch) -> Cores:
    """A spin that has its outcome cannot be declared void."""
    answer = floor_tosses.answer_no_spin

    def always(state: ShoeState, body: floor.DeclareNoSpin) -> Any:
        at = state.tables.get(body.table_id)
        toss = at.toss if at is not None else None
        known = toss.numbers if toss is not None else []
        if toss is not None:
            toss.numbers = []
        answers = answer(state, body)
        if toss is not None:
            toss.numbers = known
        return answers

    patch.setattr(floor_orders, "answer_no_spin", always)
    return BASE


def settles_what_was_misread(patch: pytest.MonkeyPatch) -> Cores:
    """What was corrected is what is settled: rules have to hear of it."""
    follow = rules_corrections.follow_correction

    def but_tosses(running: Any, body: Any) -> None:
        if not isinstance(body, floor.OutcomeCorrected):
            follow(running, body)
        else:
            running.resolved = False

    patch.setattr(rules_evolve, "follow_correction", but_tosses)
    return BASE


# ---- cards -------------------------------------------------------------------------------------


def gives_a_card_too_many(patch: pytest.MonkeyPatch) -> Cores:
    """A shoe has as many of a card as it has decks."""
    patch.setattr(floor_cards, "given", lambda *_: 0)
    return BASE


def takes_a_second_reading_for_the_next_card(patch: pytest.MonkeyPatch) -> Cores:
    """A card that is read twice is one card."""
    answer = floor_cards.answer_card

    def whatever_its_place(state: ShoeState, event: Event, body: floor.RecordCard) -> Any:
        named = floor.RecordCard()
        named.CopyFrom(body)
        named.ClearField("index")
        return answer(state, event, named)

    patch.setattr(floor_orders, "answer_card", whatever_its_place)
    return BASE


def keeps_hands_after_a_correction(patch: pytest.MonkeyPatch) -> Cores:
    """After a correction the rules say again whose each card is."""
    patch.setattr(
        rules_decide, "hands_by_the_rules", lambda _game, running: [one for one, _ in running.cards]
    )
    return BASE


def deals_what_was_held_for_a_void_round(patch: pytest.MonkeyPatch) -> Cores:
    """Cards that no call has taken are burned with their round."""
    patch.setattr(shoe_decide, "burn_held", lambda *_: [])
    return BASE


def deals_on_after_the_cut_card(patch: pytest.MonkeyPatch) -> Cores:
    """The round before or during which the cut card comes out is the last (rule BAC-3)."""
    answer = floor_cards.answer_cut_card

    def one_more(state: ShoeState, body: floor.RecordCutCard) -> Any:
        answers = answer(state, body)
        for one in answers:
            if isinstance(one, shoe.CutCardReached):
                one.rounds_left += 1
        return answers

    patch.setattr(floor_orders, "answer_cut_card", one_more)
    return BASE


def burns_as_many_as_the_dealer_says(patch: pytest.MonkeyPatch) -> Cores:
    """As many cards are burned as the first card says (rule BAC-2)."""
    patch.setattr(floor_cards, "_is_burn", lambda *_: True)
    return BASE


def corrects_cards_of_other_rounds(patch: pytest.MonkeyPatch) -> Cores:
    """A correction is one of the running round."""
    patch.setattr(shoe_corrections, "_of_round", lambda *_: True)
    return BASE


# ---- the count and the packs -------------------------------------------------------------------


def counts_no_card_that_was_dealt(patch: pytest.MonkeyPatch) -> Cores:
    """The count is of all cards, dealt ones too."""
    told = census._told

    def aside(one: Shoe) -> Any:
        counted = told(one)
        counted.subtract(list(counted)[:1])
        return counted

    patch.setattr(census, "_told", aside)
    return BASE


def fills_a_shoe_with_rejected_packs(patch: pytest.MonkeyPatch) -> Cores:
    """A pack that was rejected is inspected before it is used again."""
    fault = consumables._fault_of_pack

    def lenient(*args: Any) -> Any:
        found = fault(*args)
        return None if found == floor.FLOOR_REFUSAL_NOT_INSPECTED else found

    patch.setattr(consumables, "_fault_of_pack", lenient)
    return BASE


def moves_packs_out_of_a_shoe(patch: pytest.MonkeyPatch) -> Cores:
    """A pack in a shoe that still deals is left alone."""
    patch.setattr(consumables, "_deals", lambda *_: False)
    return BASE


FLOOR_MUTATIONS: dict[str, Mutation] = {
    install.__name__: Mutation(install, sign, games, *rounds)
    for install, sign, games, *rounds in (
        (lets_late_bets_stand, "and stays on", TOSS_GAMES),
        (takes_bets_in_time_for_late, "goes back at the cut-off", TOSS_GAMES),
        (obeys_late_withdrawals, "goes back at the cut-off", TOSS_GAMES, 20),
        (believes_every_clock, "by what was told at 0", TOSS_GAMES),
        (forgets_withdrawals_that_wait, "in time, and stays on", TOSS_GAMES, 20),
        (lets_an_early_outcome_count, "nobody looked at", TOSS_GAMES),
        (takes_the_close_for_the_seal, "before the stakes are certain", TOSS_GAMES),
        (lets_faults_pass, "nobody looked at", CARD_GAMES),
        (counts_a_void_spin, "and stood at", ("floor_roulette",)),
        (lets_a_second_reading_stand, "and stood at", TOSS_GAMES),
        (voids_a_spin_that_stands, "INVALID_REASON_DECLARED", TOSS_GAMES, 20),
        (settles_what_was_misread, "the result of", TOSS_GAMES),
        (gives_a_card_too_many, "in all", CARD_GAMES),
        (takes_a_second_reading_for_the_next_card, "was not told so", CARD_GAMES),
        (keeps_hands_after_a_correction, "is not that of its cards", ("floor_baccarat",), 20),
        (deals_what_was_held_for_a_void_round, "to a hand that is not next", CARD_GAMES, 20),
        (deals_on_after_the_cut_card, "behind its last round", ("floor_dragon_tiger",), 20),
        (burns_as_many_as_the_dealer_says, "burns", ("floor_baccarat",)),
        (corrects_cards_of_other_rounds, "instead of", CARD_GAMES, 20),
        (counts_no_card_that_was_dealt, "the count of", CARD_GAMES, 20),
        (fills_a_shoe_with_rejected_packs, "is filled with", CARD_GAMES, 20),
        (moves_packs_out_of_a_shoe, "is moved", CARD_GAMES, 20),
    )
}
