"""From the objects of a case file to cases. Everything is understood before anything is played."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from services.conformance.case_files import MAX_ASKED, MAX_LISTED, BadCase, Fields
from services.conformance.cases import (
    ActionCase,
    AnyCase,
    BlackjackCase,
    BurnCase,
    ExpectedBet,
    ExpectedHand,
    ExpectedSide,
    Laid,
    Limits,
    Money,
    RequestCase,
    RoundCase,
    Rules,
    SeatCase,
)
from services.games.cards import is_card

NOTES = ("basis", "source", "tags", "why", "note", "rule")
"""Fields of a case that say nothing about what is to happen."""
RESULTS = ("win", "lose", "push", "half_lose", "void", "blackjack", "bust")
SIDE_BETS = ("perfect_pairs", "21_plus_3")
ROUNDINGS = ("down", "half_even", "half_up")
MAX_PAYS = 1_000
"""The greatest odds to one."""
FIXED_BLACKJACK: tuple[tuple[str, object], ...] = (
    ("dealer_soft_17", "stand"),
    ("blackjack_pays", "3:2"),
    ("insurance_pays", "2:1"),
    ("max_splits", 1),
    ("double_after_split", False),
)
"""What the rule sets of blackjack do not leave open."""


def parsed(fields: Fields) -> AnyCase:
    """A case. Raises BadCase."""
    game = fields.text("game")
    if fields.has("action"):
        if game != "blackjack":
            raise fields.bad("action", f"is asked for in {game}, which has none")
        return _action(fields)
    if fields.has("request") or fields.has("withdraw"):
        return _request(fields, game)
    parse = _ROUNDS.get(game)
    if parse is None:
        raise fields.bad("game", f"is {game!r}; the games are {', '.join(sorted(_ROUNDS))}")
    return parse(fields)


# ---- what many have ----------------------------------------------------------------------------


def _unread(fields: Fields) -> tuple[str, ...]:
    return fields.unread(*NOTES)


def _money(fields: Fields) -> Money:
    """What a settled bet must come to. Of an inexact profit the default policy gives the floor,
    which is `profit`; what else the case says of it must agree."""
    exact: Fraction | None = None
    profit = fields.number("profit")
    if fields.yes("inexact"):
        exact = _fraction(fields, "profit_exact")
        if exact.denominator == 1 or profit != exact.__floor__():
            raise fields.bad("profit_exact", "is whole, or its floor is not the profit")
        if fields.number("profit_max") != profit + 1:
            raise fields.bad("profit_max", "is not the whole unit above the profit")
    return Money(
        fields.choice("result", *RESULTS),
        fields.number("stake"),
        profit,
        fields.number("return"),
        exact,
    )


def _rounding(fields: Fields) -> str | None:
    return fields.choice("rounding", *ROUNDINGS) if fields.has("rounding") else None


def _fraction(fields: Fields, name: str) -> Fraction:
    try:
        return Fraction(fields.text(name))
    except (ValueError, ZeroDivisionError):
        raise fields.bad(name, "is no fraction") from None


def _totals(fields: Fields) -> Money:
    return Money(
        "",
        fields.number("total_stake"),
        fields.number("total_profit"),
        fields.number("total_return"),
    )


def _cards(fields: Fields, name: str) -> tuple[str, ...]:
    cards = fields.texts(name)
    for card in cards:
        if not is_card(card):
            raise fields.bad(name, f"holds {card!r}, which is no card")
    return cards


def _card(fields: Fields, name: str) -> str:
    card = fields.text(name)
    if not is_card(card):
        raise fields.bad(name, f"is {card!r}, which is no card")
    return card


def _laid(fields: Fields, mode: str = "") -> Laid:
    """A bet as it is laid; its place comes from whichever field names it."""
    told = fields.text("bet")
    position = ""
    if fields.has("numbers"):
        position = "-".join(map(str, fields.numbers("numbers")))
    elif fields.has("values"):
        position = "-".join(map(str, fields.numbers("values")))
    elif fields.has("neighbours"):
        position = f"{fields.number('number')}-{fields.number('neighbours')}"
    else:
        for name in ("index", "value", "seat"):
            if fields.has(name):
                position = str(fields.number(name))
    bet = "banker_no_commission" if (told, mode) == ("banker", "no_commission") else told
    account = fields.text("account")
    shown = f"{told} {position}".rstrip() + f" of {account}"
    stake = fields.number("stake", -MAX_ASKED, MAX_ASKED)
    return Laid(account, bet, position, stake, shown)


def _expected_bet(fields: Fields, mode: str = "") -> ExpectedBet:
    laid = _laid(fields, mode)
    parts: tuple[ExpectedBet, ...] = ()
    if fields.has("parts"):
        parts = tuple(
            ExpectedBet(_part(part, laid.account), _money(part)) for part in fields.objects("parts")
        )
    return ExpectedBet(laid, _money(fields), parts)


def _part(fields: Fields, account: str) -> Laid:
    position = "-".join(map(str, fields.numbers("numbers")))
    bet = fields.text("bet")
    shown = f"{bet} {position} of {account}"
    return Laid(account, bet, position, fields.number("stake"), shown)


def _outcome(fields: Fields, *, void: bool) -> dict[str, Any]:
    """What the round must end with; a voided one may say nothing of it."""
    if void and not fields.has("expected_outcome"):
        return {}
    return fields.values("expected_outcome")


def _round(
    fields: Fields,
    rules: Rules,
    *,
    mode: str = "",
    cards: tuple[str, ...] = (),
    number: int | None = None,
    dice: tuple[int, ...] = (),
) -> RoundCase:
    void = fields.yes("void")
    rules = replace(rules, rounding=_rounding(fields))
    bets = tuple(_expected_bet(bet, mode) for bet in fields.objects("bets"))
    case_id, outcome, totals = fields.text("id"), _outcome(fields, void=void), _totals(fields)
    return RoundCase(
        fields.place,
        case_id,
        _unread(fields),
        rules,
        void,
        bets,
        outcome,
        totals,
        cards,
        number,
        dice,
    )


# ---- rounds ------------------------------------------------------------------------------------


def _baccarat(fields: Fields) -> RoundCase:
    mode = fields.choice("mode", "commission", "no_commission", "ez")
    rules = _baccarat_rules(fields, ez=mode == "ez")
    return _round(fields, rules, mode=mode, cards=_cards(fields, "cards"))


def _baccarat_rules(fields: Fields, *, ez: bool) -> Rules:
    return Rules(
        "baccarat_ez" if ez else "baccarat",
        tie_pays=fields.number("tie_pays", 1, MAX_PAYS) if fields.has("tie_pays") else None,
    )


def _burn(fields: Fields) -> BurnCase:
    card, burn, case_id = (
        _card(fields, "first_card"),
        fields.number("expected_burn"),
        fields.text("id"),
    )
    return BurnCase(fields.place, case_id, _unread(fields), card, burn)


def _roulette(fields: Fields) -> RoundCase:
    number = fields.number("number") if fields.has("number") else None
    if number is None and not fields.yes("void"):
        raise BadCase(fields.place, "missing field 'number'")
    rules = Rules("roulette", la_partage=fields.yes("la_partage"))
    return _round(fields, rules, number=number)


def _sicbo(fields: Fields) -> RoundCase:
    paytable = fields.text("paytable")
    must_pay: list[tuple[str, str, int]] = []
    if fields.has("paytable_values"):
        values = fields.inner("paytable_values")
        for bet in values.names():
            if bet == "total":
                totals = values.inner(bet)
                must_pay.extend(
                    (bet, f"total_{total:0>2}", totals.number(total, 1, MAX_PAYS))
                    for total in totals.names()
                )
            elif bet == "single":
                lines = ("one_die", "two_dice", "three_dice")
                pays = values.numbers(bet, 1)
                if len(pays) != len(lines):
                    raise values.bad(bet, "must say three odds")
                must_pay.extend((bet, line, odds) for line, odds in zip(lines, pays, strict=True))
            else:
                must_pay.append((bet, "", values.number(bet, 1, MAX_PAYS)))
    rules = Rules(f"sicbo_{paytable}", must_pay=tuple(must_pay))
    return _round(fields, rules, dice=fields.numbers("dice", 0))


def _dragon_tiger(fields: Fields) -> RoundCase:
    rules = Rules(
        "dragon_tiger",
        tie_pays=fields.number("tie_pays", 1, MAX_PAYS) if fields.has("tie_pays") else None,
        suited_tie_pays=(
            fields.number("suited_tie_pays", 1, MAX_PAYS) if fields.has("suited_tie_pays") else None
        ),
    )
    return _round(fields, rules, cards=_cards(fields, "cards"))


def _football_studio(fields: Fields) -> RoundCase:
    ace = fields.choice("ace", "high", "low") if fields.has("ace") else None
    return _round(fields, Rules("football_studio", ace=ace), cards=_cards(fields, "cards"))


# ---- blackjack ---------------------------------------------------------------------------------


def _blackjack(fields: Fields) -> BlackjackCase:
    void = fields.yes("void")
    rules = _blackjack_rules(fields.inner("rules")) if fields.has("rules") else Rules("blackjack")
    rules = replace(rules, rounding=_rounding(fields))
    expected = {seat.number("seat"): seat for seat in fields.objects("expected_seats")}
    told = fields.objects("seats")
    if sorted(expected) != sorted(seat.number("seat") for seat in told):
        raise fields.bad("expected_seats", "are not the seats")
    seats = tuple(_seat(seat, expected[seat.number("seat")]) for seat in told)
    case_id, shoe = fields.text("id"), _cards(fields, "shoe")
    outcome, totals = _outcome(fields, void=void), _totals(fields)
    return BlackjackCase(
        fields.place, case_id, _unread(fields), rules, void, shoe, seats, outcome, totals
    )


def _blackjack_rules(fields: Fields) -> Rules:
    must_be = [(name, fields.raw(name), ours) for name, ours in FIXED_BLACKJACK if fields.has(name)]
    peek = fields.choice("peek", "ace_only", "both", "none") if fields.has("peek") else None
    one_card = None
    if fields.has("one_card_to_split_aces"):
        one_card = fields.yes("one_card_to_split_aces")
    return Rules(
        "blackjack",
        peek=peek,
        one_card_to_split_aces=one_card,
        decks=fields.number("decks", 1, MAX_LISTED) if fields.has("decks") else None,
        must_be=tuple(must_be),
    )


def _seat(fields: Fields, expected: Fields) -> SeatCase:
    number, account = fields.number("seat"), fields.text("account")
    laid = tuple(
        Laid(account, bet, str(number), fields.number(bet), f"{bet} at seat {number}")
        for bet in ("main", *SIDE_BETS)
        if fields.has(bet)
    )
    if expected.text("account") != account:
        raise expected.bad("account", f"is not {account}")
    hand_actions = fields.lists_of_texts("hands") if fields.has("hands") else ()
    sides = {
        bet: _side(expected.inner(bet), bet)
        for bet in ("insurance", *SIDE_BETS)
        if expected.has(bet)
    }
    return SeatCase(
        seat=number,
        account=account,
        laid=laid,
        insurance=fields.number("insurance") if fields.has("insurance") else 0,
        actions=fields.texts("actions"),
        hand_actions=hand_actions,
        hands=tuple(_hand(hand) for hand in expected.objects("hands")),
        sides=sides,
        totals=_totals(expected),
    )


def _hand(fields: Fields) -> ExpectedHand:
    fields.choice("bet", "main")
    cards = _cards(fields, "cards") if fields.has("cards") else ()
    total = fields.number("total") if fields.has("total") else None
    return ExpectedHand(_money(fields), cards, total)


def _side(fields: Fields, bet: str) -> ExpectedSide:
    fields.choice("bet", bet)
    kind = fields.text("kind") if fields.has("kind") else None
    return ExpectedSide(_money(fields), kind)


# ---- restrictions ------------------------------------------------------------------------------


def _request(fields: Fields, game: str) -> RequestCase:
    rules = _RULES_OF.get(game)
    if rules is None:
        raise fields.bad("game", f"is {game!r}; the games are {', '.join(sorted(_RULES_OF))}")
    if fields.has("request") == fields.has("withdraw"):
        raise fields.bad("withdraw", "stands beside a request, or neither does")
    table = fields.inner("table")
    mode = fields.choice("mode", "commission", "no_commission") if fields.has("mode") else ""

    def bets(name: str) -> tuple[Laid, ...]:
        if not fields.has(name):
            return ()
        return tuple(_laid(bet, mode) for bet in fields.objects(name))

    accepted, request, withdraw = bets("accepted"), bets("request"), bets("withdraw")
    if not request and not withdraw:
        raise fields.bad("request", "asks for nothing")
    return RequestCase(
        place=fields.place,
        case_id=fields.text("id"),
        rules=rules,
        limits=_limits(table),
        round_in_shoe=fields.number("round_in_shoe", 1) if fields.has("round_in_shoe") else 1,
        accepted=accepted,
        request=request,
        withdraw=withdraw,
        expected=fields.choice("expect", "accept", "reject") == "accept",
        reason=fields.text("reason") if fields.has("reason") else None,
        unread=_unread(fields),
    )


def _limits(fields: Fields) -> Limits:
    told = fields.inner("limits")
    by_bet: dict[str, tuple[int, int]] = {}
    for bet in told.names():
        limit = told.inner(bet)
        by_bet[bet] = (limit.number("min"), limit.number("max"))
    if "default" not in by_bet:
        raise BadCase(fields.place, "missing field 'table.limits.default'")
    max_difference = 0
    if fields.has("player_banker"):
        way = fields.choice("player_banker", "exclusive", "max_difference")
        if way == "max_difference":
            max_difference = fields.number("max_difference")
    max_numbers = 0
    if fields.has("max_coverage"):
        share = _fraction(fields, "max_coverage")
        if not 0 <= share <= 1:
            raise fields.bad("max_coverage", f"is {share}; it must be 0 to 1")
        max_numbers = int(share * fields.number("numbers", 0, MAX_LISTED))
    return Limits(
        by_bet,
        max_difference,
        max_numbers,
        step=fields.number("step") if fields.has("step") else 1,
        max_account=fields.number("max_account", 0) if fields.has("max_account") else 0,
        max_exposure=fields.number("max_exposure", 0) if fields.has("max_exposure") else 0,
    )


def _action(fields: Fields) -> ActionCase:
    state = fields.inner("state")
    rules = _blackjack_rules(fields.inner("rules")) if fields.has("rules") else Rules("blackjack")
    splits_done = state.number("splits_done") if state.has("splits_done") else 0
    from_split = state.yes("from_split") or splits_done > 0
    return ActionCase(
        place=fields.place,
        case_id=fields.text("id"),
        rules=rules,
        limits=_limits(fields.inner("table")),
        cards=_cards(state, "cards"),
        up_card=_card(state, "dealer_up"),
        main=state.number("main"),
        from_split=from_split,
        insured=state.number("insured") if state.has("insured") else 0,
        action=fields.text("action"),
        expected=fields.choice("expect", "accept", "reject") == "accept",
        reason=fields.text("reason") if fields.has("reason") else None,
        unread=_unread(fields),
    )


_ROUNDS: dict[str, Callable[[Fields], AnyCase]] = {
    "baccarat": _baccarat,
    "baccarat_shoe_start": _burn,
    "roulette": _roulette,
    "blackjack": _blackjack,
    "sicbo": _sicbo,
    "dragon_tiger": _dragon_tiger,
    "football_studio": _football_studio,
}
_RULES_OF: dict[str, Rules] = {
    "baccarat": Rules("baccarat"),
    "baccarat_ez": Rules("baccarat_ez"),
    "roulette": Rules("roulette"),
    "blackjack": Rules("blackjack"),
    "sicbo": Rules("sicbo_atlantic_city"),
    "dragon_tiger": Rules("dragon_tiger"),
    "football_studio": Rules("football_studio"),
}
"""By game of a request."""
