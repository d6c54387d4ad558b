"""The operators' view of risk: live odds (VIS-4), and kinds of bet that close for a round."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from fractions import Fraction
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from sabot.limits.v1 import events_pb2 as limits
from sabot.limits.v1 import limits_service_pb2
from sabot.log.v1 import entry_pb2
from sabot.log.v1 import events_pb2 as log
from sabot.partner.v1 import partner_service_pb2
from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2, rules_service_pb2
from sabot.settlement.v1 import settlement_service_pb2
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.shoe.v1 import shoe_service_pb2
from sabot.table.v1 import bet_pb2, odds_service_pb2, spec_pb2
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import risk_events_pb2 as risk
from sabot.wallet.v1 import wallet_service_pb2
from services.games import catalogue
from services.games.cards import CARDS
from services.kernel.errors import Refused
from services.kernel.event import Position
from services.kernel.grpc_server import Server
from services.kernel.tokens import Caller, Role
from services.limits.domain.core import CORE as LIMITS
from services.limits.domain.state import LimitsState
from services.odds.compositions import fresh
from services.odds.enumeration import odds_of
from services.odds.outcomes import text_of
from services.simulator.inline import Inline
from services.table.domain.core import CORE as TABLE
from services.table.domain.state import Table, TableState
from services.table.odds_servicer import OddsServicer
from services.table.risk import AGAIN_US, STANDBY_US, Risk
from tests.unit.deciding import START_US, Deciding, by
from tests.unit.fake_edge import FakeEdge
from tests.unit.front import SAM
from tests.unit.table_facts import (
    R1,
    S1,
    S2,
    T,
    close_betting,
    open_round,
    open_table,
    shoe_opened,
    spec,
    suspend,
    void,
)

LINE = 985
"""Per mille: Player and Banker return more, Tie less."""
FIRST = "7D"
"""The shown card."""


def with_line(rule_set: rule_set_pb2.RuleSet | None = None, line: int = LINE) -> spec_pb2.TableSpec:
    of = spec()
    of.max_return_per_mille = line
    if rule_set is not None:
        of.rule_set.CopyFrom(rule_set)
        limit = {"min_minor": 100, "max_minor": 1_000_000, "step_minor": 100}
        del of.limits[:]
        of.limits.extend(spec_pb2.BetLimit(bet=one.bet, **limit) for one in rule_set.bets)
    return of


def started(shoe_id: str = S1, first: str = FIRST) -> Any:
    return by(
        shoe.CardsBurned(
            table_id=T,
            shoe_id=shoe_id,
            opened=[shoe.Card(index=0, card=first)],
            face_down=7,
            reason=shoe.BURN_REASON_SHOE_START,
        ),
        partner="",
    )


def dealt(*cards: str, shoe_id: str = S1, hand: int = rules.HAND_PLAYER, first: int = 8) -> Any:
    told = [
        shoe.DealtCard(index=index, card=card, hand=rules.Hand.ValueType(hand))
        for index, card in enumerate(cards, first)
    ]
    return by(shoe.CardsDealt(table_id=T, shoe_id=shoe_id, round_id=R1, cards=told), partner="")


def betting(of: spec_pb2.TableSpec | None = None) -> Deciding[TableState]:
    """The first round of a shoe takes bets."""
    return Deciding(TABLE).given(
        open_table(of=of or with_line()), shoe_opened(), started(), open_round()
    )


def at(log_: Deciding[TableState]) -> Table:
    return log_.state.tables[T]


def seen(log_: Deciding[TableState]) -> list[str]:
    return list(at(log_).seen.values())


def closing(
    *bets: tuple[str, str], table_id: str = T, round_id: str = R1, unseen: int = 415
) -> risk.CloseBets:
    return risk.CloseBets(
        table_id=table_id,
        round_id=round_id,
        unseen_cards=unseen,
        bets=[risk.LiveReturn(bet=bet, rtp=rtp) for bet, rtp in bets or [("player", "99/100")]],
    )


def closed(*bets: tuple[str, str], unseen: int = 415) -> risk.BetsClosed:
    return risk.BetsClosed(
        table_id=T,
        round_id=R1,
        unseen_cards=unseen,
        bets=[risk.LiveReturn(bet=bet, rtp=rtp) for bet, rtp in bets or [("player", "99/100")]],
        max_return_per_mille=LINE,
    )


def ignored(reason: log.IgnoredReason.ValueType) -> log.InputIgnored:
    return log.InputIgnored(reason=reason)


# ---- what a table has shown of its shoe --------------------------------------------------------


def test_vis_4_what_was_shown_is_seen_what_was_burned_is_not() -> None:
    game = betting().given(close_betting(), dealt("AS", "TD", "AS"))
    assert (at(game).shoe_cards, seen(game)) == (416, [FIRST, "AS", "TD", "AS"])
    late = shoe.CardsBurned(
        table_id=T,
        shoe_id=S1,
        opened=[shoe.Card(index=20, card="KC")],
        reason=shoe.BURN_REASON_ROUND_OVER,
    )
    game.given(by(late, partner=""), dealt("QC", shoe_id=S2))
    assert seen(game) == [FIRST, "AS", "TD", "AS"]


def test_vis_4_a_hole_card_is_seen_once_it_is_turned_over() -> None:
    game = betting().given(close_betting(), dealt("", hand=rules.HAND_HOLE))
    assert seen(game) == [FIRST]
    game.given(dealt("9C", hand=rules.HAND_HOLE))
    assert seen(game) == [FIRST, "9C"]


def test_the_first_card_of_a_shoe_on_the_floor_is_seen_before_its_burn() -> None:
    shown = floor.FirstCardShown(table_id=T, shoe_id=S1, card="9H", burn=9)
    burned = shoe.CardsBurned(
        table_id=T,
        shoe_id=S1,
        opened=[shoe.Card(index=0, card="9H")],
        face_down=9,
        reason=shoe.BURN_REASON_SHOE_START,
    )
    game = Deciding(TABLE).given(open_table(of=with_line()), shoe_opened())
    game.given(by(shown, partner=""), by(burned, partner=""))
    assert seen(game) == ["9H"]


def test_a_card_that_was_misread_is_another_one() -> None:
    game = betting().given(close_betting(), dealt("AS", "TD"))
    # The last is held for its call, and read as a card that was dealt before.
    for index, read_as, card in ((9, "TD", "KH"), (10, "AS", "3C")):
        game.given(
            by(
                floor.CardCorrected(
                    table_id=T, shoe_id=S1, round_id=R1, index=index, card=card, read_as=read_as
                ),
                partner="",
            )
        )
    assert seen(game) == [FIRST, "AS", "KH"]


def test_a_new_shoe_has_shown_nothing() -> None:
    over = shoe.ShoeClosed(table_id=T, shoe_id=S1, next_number=2)
    game = betting().given(void(), dealt("AS"), by(over, partner=""))
    assert (at(game).shoe_cards, seen(game)) == (0, [])
    game.given(shoe_opened(S2, 2), started(S2, "AH"))
    assert (at(game).shoe_cards, seen(game)) == (416, ["AH"])


# ---- CloseBets in the table's core -------------------------------------------------------------


def test_kinds_over_the_line_are_closed_for_the_round() -> None:
    bets = ("banker", "9894/10000"), ("player", "987/1000")
    game = betting().when(closing(*bets)).then(closed(*bets))
    running = at(game).running
    assert running is not None
    assert running.closed_bets == ["banker", "player"]
    game.when(closing()).then(ignored(log.IGNORED_REASON_ALREADY_DONE))


def test_a_suspended_round_that_may_take_bets_again_closes_them_too() -> None:
    betting().given(suspend()).when(closing()).then(closed())


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (closing(table_id="t9"), log.IGNORED_REASON_UNKNOWN),
        (closing(round_id="t1-2"), log.IGNORED_REASON_UNKNOWN),
        (closing(round_id="t2-1"), log.IGNORED_REASON_UNKNOWN),
        (closing(("zebra", "99/100")), log.IGNORED_REASON_IMPOSSIBLE),
        (closing(("player", "985/1000")), log.IGNORED_REASON_IMPOSSIBLE),
        (closing(("player", "99/100"), ("tie", "8/10")), log.IGNORED_REASON_IMPOSSIBLE),
        (closing(("player", "0.99")), log.IGNORED_REASON_IMPOSSIBLE),
        (closing(("player", "99/")), log.IGNORED_REASON_IMPOSSIBLE),
        (closing(("player", "99/0")), log.IGNORED_REASON_IMPOSSIBLE),
        (closing(("player", f"{'9' * 81}/1")), log.IGNORED_REASON_IMPOSSIBLE),
    ],
    ids=lambda each: "" if isinstance(each, int) else str(each).replace("\n", " ")[:60],
)
def test_what_cannot_be_is_ignored(body: Message, reason: log.IgnoredReason.ValueType) -> None:
    betting().when(body).then(ignored(reason))


def test_a_round_that_takes_no_bets_closes_none() -> None:
    betting().given(close_betting()).when(closing()).then(ignored(log.IGNORED_REASON_NOT_NOW))
    betting().given(void()).when(closing()).then(ignored(log.IGNORED_REASON_NOT_NOW))


def test_a_table_without_a_line_closes_nothing() -> None:
    betting(spec()).when(closing()).then(ignored(log.IGNORED_REASON_IMPOSSIBLE))


# ---- limits ------------------------------------------------------------------------------------


def placed(request: str, bet: str, position: str = "") -> table.BetsPlaced:
    return table.BetsPlaced(
        request_id=request,
        account_id="ann",
        table_id=T,
        round_id=R1,
        currency_code="EUR",
        bets=[bet_pb2.Bet(bet_id=request, bet=bet, stake_minor=500, position=position)],
    )


def book(of: spec_pb2.TableSpec) -> Deciding[LimitsState]:
    opened = table.RoundOpened(table_id=T, round_id=R1, number=1, round_in_shoe=1)
    return Deciding(LIMITS).given(
        by(table.TableOpened(spec=of, revision=1), service="table", partner=""),
        by(opened, service="table", partner=""),
    )


def refusal(game: Deciding[LimitsState]) -> list[int]:
    [answer] = game.answers
    assert isinstance(answer, limits.BetsRefused)
    return [one.limit for one in answer.violations]


def test_a_closed_bet_is_refused_and_what_came_before_stands() -> None:
    game = book(with_line()).when(placed("b1", "player")).then_only(limits.BetsApproved)
    game.given(by(closed(("player", "99/100")), service="table", partner=""))
    game.when(placed("b2", "player"))
    assert refusal(game) == [limits.LIMIT_BET_CLOSED]
    game.when(placed("b3", "tie")).then_only(limits.BetsApproved)
    game.given(by(table.BettingClosed(table_id=T, round_id=R1), service="table", partner=""))
    assert [*game.state.books[R1].holdings[("acme", "ann")].bets] == ["b1", "b3"]


def test_closed_insurance_is_refused_at_its_stage() -> None:
    of = with_line(catalogue.blackjack())
    game = book(of).given(placed("b1", "main", "1"))
    game.given(by(closed(("insurance", "101/100")), service="table", partner=""))
    insured = table.ActionTaken(
        table_id=T,
        round_id=R1,
        account_id="ann",
        seat=1,
        action=rules.ACTION_INSURE,
        extra=bet_pb2.Bet(bet_id="b2", bet="insurance", stake_minor=250, position="1"),
    )
    game.when(by(insured, service="table"))
    assert refusal(game)[0] == limits.LIMIT_BET_CLOSED


# ---- the shell that asks for it ----------------------------------------------------------------


class Later(Executor):
    """Works only when it is told to."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.waiting.append(lambda: future.set_result(fn(*args, **kwargs)))
        return future


def asked(game: Deciding[TableState], shell: Risk | None = None, **options: Any) -> list[Message]:
    """What a shell asks for at once."""
    one = shell or Risk(Inline())
    return list(one.poll(game.state, START_US, True, **options))


def test_a_round_that_opens_closes_what_returns_more_than_the_line() -> None:
    game = betting()
    [body] = asked(game)
    assert isinstance(body, risk.CloseBets)
    assert (body.table_id, body.round_id, body.unseen_cards) == (T, R1, 415)
    exact = {
        one.bet: one.rtp
        for one in odds_of(catalogue.baccarat_1(), fresh(8).without([FIRST]))
        if one.rtp > Fraction(LINE, 1000)
    }
    assert {one.bet: one.rtp for one in body.bets} == {
        bet: text_of(rtp) for bet, rtp in exact.items()
    }
    assert list(exact) == ["banker", "player"]
    opened_by = game.log[-1].position
    assert body.asked_by == entry_pb2.Position(
        segment=opened_by.segment, sequence=opened_by.sequence
    )
    game.when(body).then_only(risk.BetsClosed)
    assert asked(game) == []


def test_odds_change_with_the_shoe() -> None:
    """With nothing but nines and kings left, ties are many."""
    game = betting(with_line(line=1_000))
    assert asked(game) == []
    gone = [
        card
        for card, copies in zip(CARDS, fresh(8).counts, strict=True)
        for _ in range(copies)
        if card[0] not in "9K"
    ]
    at(game).seen = dict(enumerate(gone))
    [body] = asked(game)
    assert isinstance(body, risk.CloseBets)
    assert [one.bet for one in body.bets] == ["tie"]
    assert body.unseen_cards == 64


def test_nothing_closes_without_a_line_or_a_round() -> None:
    assert asked(betting(spec())) == []
    assert asked(Deciding(TABLE).given(open_table(of=with_line()), shoe_opened(), started())) == []
    assert asked(betting().given(close_betting())) == []


def test_a_game_without_cards_closes_what_always_returns_more() -> None:
    of = with_line(catalogue.roulette(la_partage=True), line=980)
    game = Deciding(TABLE).given(open_table(of=of), open_round())
    [body] = asked(game)
    assert isinstance(body, risk.CloseBets)
    assert [one.bet for one in body.bets] == ["black", "even", "high", "low", "odd", "red"]
    assert {one.rtp for one in body.bets} == {"73/74"}
    assert body.unseen_cards == 0


def test_a_round_that_is_not_in_the_log_yet_is_left_alone() -> None:
    game = betting()
    opened_by = game.log[-1].position
    assert asked(game, answered=opened_by) == []
    assert len(asked(game, answered=Position(1, opened_by.sequence + 1, 0))) == 1


def test_the_loop_does_not_wait_for_odds() -> None:
    game, later = betting(), Later()
    shell = Risk(later)
    assert asked(game, shell) == []
    assert asked(game, shell) == []
    assert len(later.waiting) == 1
    later.waiting[0]()
    assert len(asked(game, shell)) == 1


def test_what_was_told_is_told_again_only_after_a_while() -> None:
    game, shell = betting(), Risk(Inline())
    times = [0, 1, AGAIN_US - 1, AGAIN_US, AGAIN_US + 1]
    told = [len(shell.poll(game.state, START_US + time, True)) for time in times]
    assert told == [1, 0, 0, 1, 0]


def test_a_standby_leaves_it_to_who_leads() -> None:
    game, shell = betting(), Risk(Inline())
    times = [0, STANDBY_US - 1, STANDBY_US]
    assert [len(shell.poll(game.state, START_US + time, False)) for time in times] == [0, 0, 1]


def test_a_shoe_that_has_no_odds_is_a_problem() -> None:
    game, shell = betting(), Risk(Inline())
    at(game).seen = dict.fromkeys(range(9), "AS")
    assert asked(game, shell) == []
    assert shell.problems == {T: "no odds: AS is seen 9 times, there are 8 of it"}
    at(game).seen = dict(enumerate([card for card in CARDS for _ in range(8)][:412]))
    assert asked(game, shell) == []
    assert shell.problems == {T: "no odds: a round of baccarat may take 6 cards, 4 are left"}
    at(game).seen = {}
    # What was worked out for a round stands.
    assert asked(game, Risk(Inline()))
    game.given(close_betting())
    assert asked(game, shell) == []
    assert shell.problems == {}


# ---- OddsService -------------------------------------------------------------------------------


def asking(game: Deciding[TableState], shoe_id: str = S1) -> Any:
    edge = FakeEdge(states={"table": game.state})
    return OddsServicer(edge).get_live_odds(
        odds_service_pb2.GetLiveOddsRequest(shoe_id=shoe_id), SAM
    )


async def test_vis_4_live_odds_are_those_of_what_nobody_has_seen() -> None:
    game = betting(with_line(catalogue.baccarat()))
    game.given(close_betting(), dealt("AS", "TD", "", "AS"))
    told = await asking(game)
    left = fresh(8).without([FIRST, "AS", "TD", "AS"])
    exact = odds_of(catalogue.baccarat(), left)
    assert (told.shoe_id, told.table_id, told.rule_set_id) == (S1, T, "baccarat")
    assert told.unseen_cards == left.total == 412
    assert [(one.bet, one.rtp, one.edge) for one in told.bets] == [
        (one.bet, text_of(one.rtp), text_of(one.edge)) for one in exact
    ]
    for one, other in zip(told.bets, exact, strict=True):
        assert [(each.name, each.pays, each.probability) for each in one.outcomes] == [
            (each.name, text_of(each.pays), text_of(each.probability)) for each in other.outcomes
        ]
    assert told.position.sequence == 10


async def test_a_shoe_that_stands_nowhere_has_no_live_odds() -> None:
    with pytest.raises(Refused) as refused:
        await asking(betting(), S2)
    assert refused.value.reason.name == "SHOE_NOT_FOUND"


async def test_a_shoe_without_odds_says_why() -> None:
    game = betting()
    at(game).seen = dict.fromkeys(range(9), "AS")
    with pytest.raises(Refused) as refused:
        await asking(game)
    assert refused.value.reason.name == "NO_ODDS"
    assert refused.value.text("en") == (
        "There are no exact odds of shoe t1-s1 now: AS is seen 9 times, there are 8 of it."
    )


class Callers:
    """A partner, a dealer, a supervisor, an auditor, by the token's first letter."""

    def caller(self, token: str) -> Caller | None:
        roles = {"d": Role.DEALER, "s": Role.SUPERVISOR, "a": Role.AUDITOR}
        if token == "p":  # noqa: S105 -- of a test
            return Caller(partner="north")
        return Caller(operator="olga", roles=frozenset({roles[token]})) if token in roles else None


async def test_vis_4_live_odds_are_for_supervisors_and_auditors_alone() -> None:
    server = Server(Callers())
    service = odds_service_pb2.DESCRIPTOR.services_by_name["OddsService"]
    server.add(service, OddsServicer(FakeEdge(states={"table": betting().state})))
    port = server.listen("127.0.0.1:0")
    await server.start()
    request = odds_service_pb2.GetLiveOddsRequest(shoe_id=S1).SerializeToString()
    told: dict[str, str] = {}
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
            "/sabot.table.v1.OddsService/GetLiveOdds"
        )
        for token in ("p", "d", "x", "s", "a"):
            try:
                metadata = (("authorization", f"Bearer {token}"),)
                answer = await method(request, timeout=20, metadata=metadata)
                found = odds_service_pb2.GetLiveOddsResponse.FromString(answer)
                told[token] = f"{len(found.bets)} bets"
            except grpc.aio.AioRpcError as error:
                told[token] = error.code().name
    await server.stop(0)
    assert told == {
        "p": "PERMISSION_DENIED",
        "d": "PERMISSION_DENIED",
        "x": "UNAUTHENTICATED",
        "s": "3 bets",
        "a": "3 bets",
    }


OPEN_TO_PARTNERS = (
    limits_service_pb2,
    partner_service_pb2,
    rules_service_pb2,
    settlement_service_pb2,
    shoe_service_pb2,
    wallet_service_pb2,
)
HIDDEN = ("sabot.table.v1.BetOdds", "sabot.table.v1.LiveReturn", "sabot.table.v1.BetsClosed")


def within(message: Descriptor, known: set[str]) -> Iterator[str]:
    """The names of all messages that a message may hold, itself included."""
    if message.full_name not in known:
        known.add(message.full_name)
        yield message.full_name
        for field in message.fields:
            if field.message_type is not None:
                yield from within(field.message_type, known)


def test_vis_4_nothing_that_partners_are_told_can_hold_live_odds() -> None:
    methods = [
        method
        for module in OPEN_TO_PARTNERS
        for service in module.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    ]
    assert len(methods) > 20
    for method in methods:
        assert not set(within(method.output_type, set())) & set(HIDDEN), method.full_name
