"""The rule sets of this build: each game's variants, with their options.

A published version never changes: its hash stands in logs. Whoever must change one makes the next
version; the old ones stay, so that old logs are decided again as they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sabot.rules.v1 import rule_set_pb2
from services.games import baccarat_bets, blackjack_bets, two_cards
from services.games import roulette as wheel
from services.games import sicbo as dice
from services.games.baccarat import MAX_CARDS
from services.games.bets import Pays
from services.games.blackjack import MAX_ROUND_CARDS, Peek
from services.games.blackjack_result import PEEKS_BACK
from services.games.edges import EDGES
from services.games.money import Rounding
from services.games.odds import EVENS, Odds
from services.games.rule_sets import ROUNDINGS, named, offers

BACCARAT = "baccarat"
BACCARAT_EZ = "baccarat_ez"
BLACKJACK = "blackjack"
ROULETTE = "roulette"
SICBO = "sicbo"
DRAGON_TIGER = "dragon_tiger"
FOOTBALL_STUDIO = "football_studio"
DECKS = 8
TIE_PAYS = 8
BACCARAT_CUT_DEPTH = 7
BLACKJACK_CUT_DEPTH = 208
"""Half of the shoe (rule BJ-15)."""
TWO_CARD_TIE_PAYS = 11
TWO_CARD_CUT_DEPTH = 7
"""As baccarat (rules DT-2, FS-1); a round takes two cards."""
BANKER_COMMISSION = Odds(1, 20)
EZ_BETS = ("banker", "dragon_7", "panda_8", "player", "tie")
"""All that an EZ table offers (rule BAC-41)."""


def baccarat_1(
    *,
    tie_pays: int = TIE_PAYS,
    rounding: Rounding = Rounding.DOWN,
    decks: int = DECKS,
    cut_depth: int = BACCARAT_CUT_DEPTH,
    rounds_after_cut: int = 0,
) -> rule_set_pb2.RuleSet:
    """Punto banco with Player, Banker at 5 % commission, and Tie, and nothing else (rules BAC-20,
    BAC-21, BAC-24)."""
    paytable: dict[str, Pays] = {"banker": EVENS, "player": EVENS, "tie": Odds(tie_pays, 1)}
    return named(
        rule_set_pb2.RuleSet(
            rule_set_id=BACCARAT,
            version=1,
            game=rule_set_pb2.GAME_BACCARAT,
            bets=offers(paytable, commission={"banker": BANKER_COMMISSION}),
            rounding=ROUNDINGS[rounding],
            decks=decks,
            cut_depth=cut_depth,
            rounds_after_cut=rounds_after_cut,
        )
    )


def baccarat(
    *,
    bets: Iterable[str] | None = None,
    tie_pays: int = TIE_PAYS,
    rounding: Rounding = Rounding.DOWN,
    decks: int = DECKS,
    cut_depth: int = BACCARAT_CUT_DEPTH,
    rounds_after_cut: int = 0,
    skips_empty_rounds: bool = False,
) -> rule_set_pb2.RuleSet:
    """Punto banco with all its side bets; Banker with and without commission, as the bettor chooses
    (rules BAC-20 to BAC-22, BAC-24 to BAC-35, BAC-41).

    `bets`: those that the table offers; None: all."""
    paytable = {
        bet: pays
        for bet, pays in baccarat_bets.PAYS.items()
        if bet not in ("banker_ez", "dragon_7", "panda_8")
    }
    paytable["tie"] = Odds(tie_pays, 1)
    rule_set = rule_set_pb2.RuleSet(
        rule_set_id=BACCARAT,
        version=2,
        game=rule_set_pb2.GAME_BACCARAT,
        bets=offers(
            _chosen(paytable, bets),
            commission={"banker": BANKER_COMMISSION},
            until_round=baccarat_bets.UNTIL_ROUND,
            edges=_edges(BACCARAT, decks, *_tie_if(tie_pays)),
        ),
        rounding=ROUNDINGS[rounding],
        decks=decks,
        cut_depth=cut_depth,
        rounds_after_cut=rounds_after_cut,
        baccarat=rule_set_pb2.BaccaratOptions(skips_empty_rounds=skips_empty_rounds),
    )
    return named(rule_set)


def baccarat_ez(
    *,
    tie_pays: int = TIE_PAYS,
    rounding: Rounding = Rounding.DOWN,
    decks: int = DECKS,
    cut_depth: int = BACCARAT_CUT_DEPTH,
    rounds_after_cut: int = 0,
    skips_empty_rounds: bool = False,
) -> rule_set_pb2.RuleSet:
    """Punto banco where Banker's win with a three-card 7 pushes, with exactly Player, Banker, Tie,
    Dragon 7 and Panda 8 (rules BAC-23, BAC-36, BAC-37, BAC-41)."""
    paytable = {bet: baccarat_bets.PAYS[bet] for bet in EZ_BETS}
    paytable["tie"] = Odds(tie_pays, 1)
    rule_set = rule_set_pb2.RuleSet(
        rule_set_id=BACCARAT_EZ,
        version=1,
        game=rule_set_pb2.GAME_BACCARAT,
        bets=offers(paytable, edges=_edges(BACCARAT_EZ, decks, *_tie_if(tie_pays))),
        rounding=ROUNDINGS[rounding],
        decks=decks,
        cut_depth=cut_depth,
        rounds_after_cut=rounds_after_cut,
        baccarat=rule_set_pb2.BaccaratOptions(ez=True, skips_empty_rounds=skips_empty_rounds),
    )
    return named(rule_set)


def blackjack(
    *,
    peek: Peek = Peek.ACE_ONLY,
    doubles: bool = True,
    one_card_on_split_aces: bool = True,
    rounding: Rounding = Rounding.DOWN,
    decks: int = DECKS,
    cut_depth: int = BLACKJACK_CUT_DEPTH,
    rounds_after_cut: int = 0,
) -> rule_set_pb2.RuleSet:
    """Blackjack for seven seats, with its side bets (rules BJ-1 to BJ-15)."""
    usual = (peek, doubles, one_card_on_split_aces) == (Peek.ACE_ONLY, True, True)
    return named(
        rule_set_pb2.RuleSet(
            rule_set_id=BLACKJACK,
            version=1,
            game=rule_set_pb2.GAME_BLACKJACK,
            bets=offers(
                blackjack_bets.PAYS, edges=_edges(BLACKJACK, decks, *() if usual else ("main",))
            ),
            rounding=ROUNDINGS[rounding],
            decks=decks,
            cut_depth=cut_depth,
            rounds_after_cut=rounds_after_cut,
            blackjack=rule_set_pb2.BlackjackOptions(
                peek=PEEKS_BACK[peek],
                doubles=doubles,
                one_card_on_split_aces=one_card_on_split_aces,
            ),
        )
    )


def roulette(
    *, rounding: Rounding = Rounding.DOWN, la_partage: bool = False
) -> rule_set_pb2.RuleSet:
    """Roulette with one zero, all 157 positions (rules ROU-1 to ROU-5)."""
    edges = {} if la_partage else EDGES.get(ROULETTE, {})
    return named(
        rule_set_pb2.RuleSet(
            rule_set_id=ROULETTE,
            version=1,
            game=rule_set_pb2.GAME_ROULETTE,
            bets=offers(wheel.PAYS, edges=edges),
            rounding=ROUNDINGS[rounding],
            roulette=rule_set_pb2.RouletteOptions(la_partage=la_partage),
        )
    )


def sicbo(
    paytable: str = "atlantic_city", *, rounding: Rounding = Rounding.DOWN
) -> rule_set_pb2.RuleSet:
    """Sic bo by one of the paytables of rule SIC-2: `atlantic_city` or `macau`."""
    rule_set_id = f"{SICBO}_{paytable}"
    return named(
        rule_set_pb2.RuleSet(
            rule_set_id=rule_set_id,
            version=1,
            game=rule_set_pb2.GAME_SICBO,
            bets=offers(dice.PAYTABLES[paytable], edges=EDGES.get(rule_set_id, {})),
            rounding=ROUNDINGS[rounding],
        )
    )


def dragon_tiger(
    *,
    tie_pays: int = TWO_CARD_TIE_PAYS,
    ace_high: bool = False,
    rounding: Rounding = Rounding.DOWN,
    decks: int = DECKS,
    cut_depth: int = TWO_CARD_CUT_DEPTH,
    rounds_after_cut: int = 0,
) -> rule_set_pb2.RuleSet:
    """Dragon tiger (rules DT-1, DT-2); the ace is low unless told otherwise."""
    paytable = {**two_cards.DRAGON_TIGER_PAYS, "tie": Odds(tie_pays, 1)}
    other = () if tie_pays == TWO_CARD_TIE_PAYS else ("tie",)
    return named(
        rule_set_pb2.RuleSet(
            rule_set_id=DRAGON_TIGER,
            version=1,
            game=rule_set_pb2.GAME_DRAGON_TIGER,
            bets=offers(paytable, edges=_edges(DRAGON_TIGER, decks, *other)),
            rounding=ROUNDINGS[rounding],
            decks=decks,
            cut_depth=cut_depth,
            rounds_after_cut=rounds_after_cut,
            two_cards=rule_set_pb2.TwoCardOptions(ace=_ACE[ace_high]),
        )
    )


def football_studio(
    *,
    ace_high: bool = True,
    rounding: Rounding = Rounding.DOWN,
    decks: int = DECKS,
    cut_depth: int = TWO_CARD_CUT_DEPTH,
    rounds_after_cut: int = 0,
) -> rule_set_pb2.RuleSet:
    """Football studio (rule FS-1); the ace is high unless told otherwise."""
    return named(
        rule_set_pb2.RuleSet(
            rule_set_id=FOOTBALL_STUDIO,
            version=1,
            game=rule_set_pb2.GAME_FOOTBALL_STUDIO,
            bets=offers(two_cards.FOOTBALL_STUDIO_PAYS, edges=_edges(FOOTBALL_STUDIO, decks)),
            rounding=ROUNDINGS[rounding],
            decks=decks,
            cut_depth=cut_depth,
            rounds_after_cut=rounds_after_cut,
            two_cards=rule_set_pb2.TwoCardOptions(ace=_ACE[ace_high]),
        )
    )


_ACE = {False: rule_set_pb2.ACE_RANK_LOW, True: rule_set_pb2.ACE_RANK_HIGH}


def _chosen(paytable: Mapping[str, Pays], bets: Iterable[str] | None) -> dict[str, Pays]:
    if bets is None:
        return dict(paytable)
    return {bet: paytable[bet] for bet in bets}


def _tie_if(tie_pays: int) -> tuple[str, ...]:
    return () if tie_pays == TIE_PAYS else ("tie",)


def _edges(rule_set_id: str, decks: int, *other_pays: str) -> dict[str, str]:
    """The exact edges to declare: those of bets that pay as published, from as many decks."""
    if decks != DECKS:
        return {}
    known = EDGES.get(rule_set_id, {})
    return {bet: edge for bet, edge in known.items() if bet not in other_pays}


class Published(NamedTuple):
    """A version of a rule set, and what a table may change in it."""

    default: rule_set_pb2.RuleSet
    free_pays: frozenset[str]
    """Bets whose odds may be chosen."""
    all_bets: bool
    """Whether exactly its bets must be offered; else any of them."""
    min_cut_depth: int
    """Cards behind the cut card with which a last round can always finish."""
    min_cut_depth_round_after: int
    """The same where one more round follows."""


def _published(
    rule_set: rule_set_pb2.RuleSet,
    free_pays: Iterable[str] = (),
    *,
    all_bets: bool = True,
    round_cards: int = 0,
) -> Published:
    """`round_cards`: the most cards that a round takes; the cut card lies at least so deep."""
    return Published(rule_set, frozenset(free_pays), all_bets, round_cards, 2 * round_cards)


PUBLISHED: dict[tuple[str, int], Published] = {
    (one.default.rule_set_id, one.default.version): one
    for one in (
        _published(baccarat_1(), {"tie"}, round_cards=MAX_CARDS),
        _published(baccarat(), {"tie"}, all_bets=False, round_cards=MAX_CARDS),
        _published(baccarat_ez(), {"tie"}, round_cards=MAX_CARDS),
        _published(blackjack(), round_cards=MAX_ROUND_CARDS),
        _published(roulette()),
        *(_published(sicbo(paytable), dice.PAYTABLES[paytable]) for paytable in dice.PAYTABLES),
        _published(dragon_tiger(), {"tie", "suited_tie"}, round_cards=MAX_CARDS),
        _published(football_studio(), {"draw"}, round_cards=MAX_CARDS),
    )
}
"""By id and version."""


def all_rule_sets() -> tuple[rule_set_pb2.RuleSet, ...]:
    """The newest version of each rule set with its default options, by id."""
    newest: dict[str, rule_set_pb2.RuleSet] = {}
    for (rule_set_id, _), one in sorted(PUBLISHED.items()):
        newest[rule_set_id] = one.default
    return tuple(newest.values())
