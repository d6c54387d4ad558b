"""The auditor's check of limits: every request for bets is judged a second time by what the log
shows (rules LIM-1 to LIM-5), and what stands when the stakes are sealed keeps every limit (rule
LIM-8).

Naive: whenever it is asked, it looks at all bets of the account from the beginning.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1 import events_pb2 as logs
from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from sabot.table.v1 import bet_pb2, spec_pb2
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.simulator.audit_judge import due, numbers_of
from services.simulator.audit_protection import OF_ACCOUNTS
from services.simulator.facts import Fact, Findings, Place

APPROVAL = str(limits.BetsApproved.DESCRIPTOR.full_name)
USUAL_NUMBERS = 34
"""Of the wheel, where a table says nothing else (rule LIM-3)."""
OPPOSITE = {
    rule_set_pb2.GAME_BACCARAT: (("player", "banker"), ("player", "banker_no_commission")),
    rule_set_pb2.GAME_SICBO: (("big", "small"), ("odd", "even")),
    rule_set_pb2.GAME_DRAGON_TIGER: (("dragon", "tiger"),),
    rule_set_pb2.GAME_FOOTBALL_STUDIO: (("home", "away"),),
}
BANKERS = ("banker", "banker_no_commission")
FURTHER = ("double", "split", "insurance")
"""Blackjack's bets of an action."""
NEEDS_MAIN = frozenset(("perfect_pairs", "21_plus_3", *FURTHER))
UNJUDGED = frozenset((limits.LIMIT_BOOK_CLOSED, limits.LIMIT_FAILED))
"""What says nothing of the bets."""

Spot = tuple[str, str]
"""(bet, position)"""


class Broken(NamedTuple):
    """A limit that a request breaks."""

    limit: int
    bet: str = ""
    position: str = ""
    against: str = ""


class Sum(NamedTuple):
    """Its arithmetic."""

    allowed: int
    would_be: int


@dataclass(slots=True)
class Held:
    """An approved bet, as limits must see it at each place of the log."""

    spot: Spot
    stake: int
    approved: Place
    """The cause of its approval: from there on it counts."""
    reserved: Place | None = None
    leaving: Place | None = None
    """The cause of the approval of its withdrawal."""
    off: Place | None = None

    def counts(self, at: Place) -> bool:
        """Whether it counted against maxima when limits decided what stood at `at`."""
        return self.approved < at and not (self.off is not None and self.off < at)

    def covers(self, at: Place) -> bool:
        """Whether it covered a raise then."""
        on = self.reserved is not None and self.reserved < at
        return on and not (self.leaving is not None and self.leaving < at) and self.counts(at)

    @property
    def on(self) -> bool:
        """Whether its stake is reserved, as the log stands."""
        return self.reserved is not None and self.off is None


@dataclass(slots=True)
class Book:
    """A round."""

    spec: spec_pb2.TableSpec
    round_in_shoe: int
    held: defaultdict[tuple[str, str], dict[str, Held]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    """By (partner, account) and bet id."""
    late: set[tuple[str, str]] = field(default_factory=set)
    """Accounts that had late bets returned (docs/adr/0017)."""
    winnings: dict[tuple[str, str, int], list[int]] = field(default_factory=dict)
    """By (bet, position, stake): what it wins in each of the outcomes, once that was asked."""

    @property
    def rule_set(self) -> rule_set_pb2.RuleSet:
        """Its rules."""
        return self.spec.rule_set


class LimitsAuditor:
    """See the module."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.books: dict[str, Book] = {}
        self._specs: dict[tuple[str, int], spec_pb2.TableSpec] = {}
        self._placed: dict[Place, Sequence[bet_pb2.Bet]] = {}

    def see(self, fact: Fact) -> None:
        """Take the next answer."""
        body: Any = fact.body
        if isinstance(body, logs.InputFailed):
            self._failed(fact, body)
        elif isinstance(body, table.TableOpened):
            self._specs[body.spec.table_id, body.revision] = body.spec
        elif isinstance(body, table.RoundOpened):
            spec = self._specs[body.table_id, body.revision]
            self.books[body.round_id] = Book(spec, body.round_in_shoe)
        elif isinstance(body, table.BetsPlaced):
            self._placed[fact.place] = body.bets
        elif isinstance(body, table.ActionTaken) and body.HasField("extra"):
            self._placed[fact.place] = [body.extra]
        elif getattr(body, "round_id", "") in self.books and not fact.is_input:
            self._goes_on(fact, self.books[body.round_id])

    def _goes_on(self, fact: Fact, book: Book) -> None:
        body: Any = fact.body
        owner = (getattr(body, "partner_id", "") or fact.partner, getattr(body, "account_id", ""))
        match body:
            case limits.BetsApproved():
                self._judged(fact, book, owner, [])
                for bet in body.bets:
                    held = Held((bet.bet, bet.position), bet.stake_minor, fact.cause)
                    book.held[owner][bet.bet_id] = held
            case limits.BetsRefused():
                told = [one for one in body.violations if one.limit not in UNJUDGED]
                if len(told) == len(body.violations):
                    told = [one for one in told if one.limit not in OF_ACCOUNTS]
                    self._judged(fact, book, owner, told)
            case limits.WithdrawalApproved():
                for bet in body.bets:
                    book.held[owner][bet.bet_id].leaving = fact.cause
            case wallet.StakeReserved():
                for bet in body.bets:
                    known = book.held[owner].get(bet.bet_id)
                    self.findings.check(
                        known is not None, fact.place, f"bet {bet.bet_id} was never approved"
                    )
                    if known is not None:
                        known.reserved = fact.place
            case table.BetsWithdrawn() if body.late:
                book.late.add(owner)
            case wallet.StakeDeclined() | wallet.StakeReturned():
                self._off(fact, book, owner, body.bets)
            case wallet.StakesSealed() if body.stage == bet_pb2.STAGE_UNSPECIFIED:
                self._sealed(fact, book)
            case _:
                pass

    def _failed(self, fact: Fact, body: logs.InputFailed) -> None:
        """A bet that the wallet could not decide is off."""
        if fact.service == "wallet" and body.input_type == APPROVAL:
            failed = limits.BetsApproved.FromString(body.input_body)
            book = self.books[failed.round_id]
            self._off(fact, book, (fact.partner, failed.account_id), failed.bets)

    @staticmethod
    def _off(fact: Fact, book: Book, owner: tuple[str, str], bets: Iterable[bet_pb2.Bet]) -> None:
        for bet in bets:
            held = book.held[owner].get(bet.bet_id)
            if held is not None:
                held.off = held.off or fact.place

    # ---- requests ------------------------------------------------------------------------------

    def _judged(
        self, fact: Fact, book: Book, owner: tuple[str, str], told: Sequence[limits.Violation]
    ) -> None:
        """Approved bets break nothing; refused ones break all that is told, with its arithmetic.
        (All that is broken must be told, but release 2 tells the first only.)"""
        bets = self._placed.get(fact.cause)
        if bets is None:
            self.findings.add(fact.place, "limits judge bets that were not placed")
            return
        broken = self._broken(book, owner, bets, fact.cause)
        if isinstance(fact.body, limits.BetsApproved):
            for one, by in broken.items():
                self.findings.add(
                    fact.place,
                    f"approved although {limits.Limit.Name(one.limit)} {one.bet} {one.position}: "  # type: ignore[arg-type]  # of the enum
                    f"{by.would_be}, allowed are {by.allowed}",
                )
            return
        for violation in told:
            key = Broken(violation.limit, violation.bet, violation.position, violation.against)
            own = broken.get(key)
            sums = {
                Sum(violation.allowed_minor, violation.would_be_minor),
                Sum(violation.allowed_count, violation.would_be_count),
            }
            if violation.limit == limits.LIMIT_EXPOSURE:
                # Told is what the request adds and the room that is left, not what others staked.
                over = violation.would_be_minor - violation.allowed_minor
                right = own is not None and own.would_be - own.allowed == over > 0
                right = right or not _outcomes(book.rule_set)
            else:
                right = own in sums
            self.findings.check(right, fact.place, f"refused for {key}, but that is {own}")

    def _broken(
        self, book: Book, owner: tuple[str, str], bets: Sequence[bet_pb2.Bet], at: Place
    ) -> dict[Broken, Sum]:
        """All that a request breaks."""
        held = list(book.held[owner].values())
        added: Counter[Spot] = Counter()
        for bet in bets:
            added[bet.bet, bet.position] += bet.stake_minor
        counted = _totals((one for one in held if one.counts(at)), added)
        certain = _totals((one for one in held if one.covers(at)), added)
        if _is_blackjack(book) and all(bet.bet in FURTHER for bet in bets):
            # Stake limits do not hold for it (rule BJ-6), its exposure stands since the main bet.
            found = _without_main(book, added, counted, certain)
        else:
            found = _at_places(book, added, counted, certain)
            found |= _exposure(book, bets, at)
        return found | _together(book, added, counted, certain)

    # ---- what stands ---------------------------------------------------------------------------

    def _sealed(self, fact: Fact, book: Book) -> None:
        """What stands when the stakes are sealed keeps every limit."""
        for owner, held in book.held.items():
            if owner in book.late:
                continue  # Limits may not refuse that late bets go back, whatever is left.
            totals = _totals(one for one in held.values() if one.on)
            found = _at_places(book, totals, totals, totals)
            found |= _together(book, totals, totals, totals)
            for one, by in found.items():
                self.findings.add(
                    fact.place,
                    f"{owner} holds what breaks {limits.Limit.Name(one.limit)} {one.bet} "  # type: ignore[arg-type]  # of the enum
                    f"{one.position}: {by.would_be}, allowed are {by.allowed}",
                )


def _totals(held: Iterable[Held], added: Counter[Spot] | None = None) -> Counter[Spot]:
    totals = Counter(added or {})
    for one in held:
        totals[one.spot] += one.stake
    return totals


def _at_places(
    book: Book, added: Counter[Spot], counted: Counter[Spot], certain: Counter[Spot]
) -> dict[Broken, Sum]:
    """Minimum and step by what is certain, maximum and sides by all that counts (LIM-1, LIM-4),
    closed side bets (LIM-5). Stakes are positive here."""
    by_bet = {limit.bet: limit for limit in book.spec.limits}
    until = {offer.bet: offer.until_round for offer in book.rule_set.bets}
    sides = () if _difference_of(book) else OPPOSITE.get(book.rule_set.game, ())
    found = _without_main(book, added, counted, certain)
    for bet, position in added:
        limit = by_bet[bet]
        sure, total = certain[bet, position], counted[bet, position]
        if sure < limit.min_minor:
            key = Broken(limits.LIMIT_BELOW_MINIMUM, bet, position)
            found[key] = Sum(limit.min_minor, sure)
        if total > limit.max_minor:
            key = Broken(limits.LIMIT_ABOVE_MAXIMUM, bet, position)
            found[key] = Sum(limit.max_minor, total)
        if sure % limit.step_minor:
            key = Broken(limits.LIMIT_STAKE_STEP, bet, position)
            found[key] = Sum(limit.step_minor, sure)
        for pair in sides:
            other = pair[0] if bet == pair[1] else pair[1] if bet == pair[0] else ""
            if other and counted[other, ""]:
                found[Broken(limits.LIMIT_OPPOSITE_SIDES, bet, "", other)] = Sum(0, total)
        if until[bet] and book.round_in_shoe > until[bet]:
            key = Broken(limits.LIMIT_SIDE_BET_CLOSED, bet)
            found[key] = Sum(until[bet], book.round_in_shoe)
    return found


def _is_blackjack(book: Book) -> bool:
    return book.rule_set.game == rule_set_pb2.GAME_BLACKJACK


def _without_main(
    book: Book, added: Counter[Spot], counted: Counter[Spot], certain: Counter[Spot]
) -> dict[Broken, Sum]:
    """Blackjack: what lies at a seat without a main bet that is sure (rule BJ-11). Other games
    have doubles and splits too."""
    if not _is_blackjack(book):
        return {}
    return {
        Broken(limits.LIMIT_NO_MAIN_BET, bet, position, "main"): Sum(0, counted[bet, position])
        for bet, position in added
        if bet in NEEDS_MAIN and not certain["main", position]
    }


def _difference_of(book: Book) -> int:
    is_baccarat = book.rule_set.game == rule_set_pb2.GAME_BACCARAT
    return book.spec.restrictions.max_difference_minor if is_baccarat else 0


def _together(
    book: Book, added: Counter[Spot], counted: Counter[Spot], certain: Counter[Spot]
) -> dict[Broken, Sum]:
    """Rules LIM-2, LIM-3 and the account's maximum of LIM-4."""
    found: dict[Broken, Sum] = {}
    allowed = _difference_of(book)
    banker, sure_banker = (sum(one[bet, ""] for bet in BANKERS) for one in (counted, certain))
    player, sure_player = counted["player", ""], certain["player", ""]
    more = {("player", "banker"): player - sure_banker, ("banker", "player"): banker - sure_player}
    (heavy, light), most = max(more.items(), key=lambda one: one[1])
    if allowed and most > allowed and any(bet in ("player", *BANKERS) for bet, _ in added):
        found[Broken(limits.LIMIT_DIFFERENCE, heavy, "", light)] = Sum(allowed, most)
    if book.rule_set.game == rule_set_pb2.GAME_ROULETTE:
        allowed = book.spec.restrictions.max_numbers or USUAL_NUMBERS
        covered = frozenset[int]().union(*(numbers_of(*spot) for spot in counted))
        if len(covered) > allowed:
            found[Broken(limits.LIMIT_COVERAGE)] = Sum(allowed, len(covered))
    allowed = book.spec.restrictions.max_account_minor
    if allowed and counted.total() > allowed:
        found[Broken(limits.LIMIT_ACCOUNT_MAXIMUM)] = Sum(allowed, counted.total())
    return found


# ---- exposure ----------------------------------------------------------------------------------


def _exposure(book: Book, bets: Sequence[bet_pb2.Bet], at: Place) -> dict[Broken, Sum]:
    """What the house may have to pay above the stakes (LIM-4), outcome by outcome, over all
    accounts; for games whose outcomes can be listed."""
    allowed = book.spec.restrictions.max_exposure_minor
    if not allowed:
        return {}
    on = [
        (*one.spot, one.stake)
        for held in book.held.values()
        for one in held.values()
        if one.counts(at)
    ]
    on += [(bet.bet, bet.position, bet.stake_minor) for bet in bets]
    for one in on:
        if one not in book.winnings:
            book.winnings[one] = [
                max(0, due(book.rule_set, result, *one).profit)
                for result in _outcomes(book.rule_set)
            ]
    most = max(map(sum, zip(*(book.winnings[one] for one in on), strict=True)), default=0)
    return {Broken(limits.LIMIT_EXPOSURE): Sum(allowed, most)} if most > allowed else {}


def _outcomes(rule_set: rule_set_pb2.RuleSet) -> Sequence[rules.Result]:
    """Every way in which a round may end, as far as bets can tell; none where there are too many:
    then the winnings of the settled round are held against the limit."""
    match rule_set.game:
        case rule_set_pb2.GAME_ROULETTE:
            return _SPINS
        case rule_set_pb2.GAME_SICBO:
            return _ROLLS
        case rule_set_pb2.GAME_DRAGON_TIGER:
            return _DRAGONS
        case rule_set_pb2.GAME_FOOTBALL_STUDIO:
            return _HOMES
        case _:
            return ()


_SPINS = [rules.Result(roulette=rules.RouletteResult(number=number)) for number in range(37)]
_FACES = range(1, 7)
_ROLLS = [
    rules.Result(sicbo=rules.SicboResult(dice=(one, two, three)))
    for one in _FACES
    for two in _FACES[one - 1 :]
    for three in _FACES[two - 1 :]
]
"""Dice in ascending order: bets do not ask which die is which."""
_PAIRS = (("9S", "5H"), ("5H", "9S"), ("9S", "9H"), ("9S", "9S"))
_DRAGONS = [
    rules.Result(dragon_tiger=rules.DragonTigerResult(dragon_card=one, tiger_card=other))
    for one, other in _PAIRS
]
_HOMES = [
    rules.Result(football_studio=rules.FootballStudioResult(home_card=one, away_card=other))
    for one, other in _PAIRS
]
