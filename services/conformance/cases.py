"""Cases as they are played: what was laid, what was dealt, and what must come of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from services.conformance.case_files import Place


@dataclass(frozen=True, slots=True)
class Rules:
    """Which rule set a case is played by, and what it says about it. None: nothing."""

    rule_set_id: str
    tie_pays: int | None = None
    suited_tie_pays: int | None = None
    ace: str | None = None
    peek: str | None = None
    one_card_to_split_aces: bool | None = None
    decks: int | None = None
    la_partage: bool | None = None
    rounding: str | None = None
    must_pay: tuple[tuple[str, str, int], ...] = ()
    """(bet, pay line, profit to one): what the rule set must say."""
    must_be: tuple[tuple[str, Any, Any], ...] = ()
    """(option, what the case says, what this product has): options that cannot be chosen."""


@dataclass(frozen=True, slots=True)
class Money:
    """What a stake must come to."""

    result: str
    stake: int
    profit: int
    returned: int
    exact: Fraction | None = field(default=None, compare=False)
    """The profit before rounding, where it is no whole minor unit; of a case."""


@dataclass(frozen=True, slots=True)
class Laid:
    """A bet of the betting window."""

    account: str
    bet: str
    """By the product's name."""
    position: str
    stake: int
    shown: str
    """How differences call it."""


@dataclass(frozen=True, slots=True)
class ExpectedBet:
    """A bet and what must come of it; of an announced bet also what must come of its parts."""

    laid: Laid
    money: Money
    parts: tuple[ExpectedBet, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """What all cases have."""

    place: Place
    case_id: str
    unread: tuple[str, ...]
    """Fields that nobody knows: such a case fails, since something of it would not be checked."""


@dataclass(frozen=True, slots=True)
class RoundCase(Case):
    """A round, of any game but blackjack."""

    rules: Rules
    void: bool
    bets: tuple[ExpectedBet, ...]
    outcome: dict[str, Any]
    totals: Money
    cards: tuple[str, ...] = ()
    number: int | None = None
    dice: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class BurnCase(Case):
    """The start of a shoe of baccarat."""

    first_card: str
    burn: int


@dataclass(frozen=True, slots=True)
class ExpectedHand:
    """A hand of blackjack and what must come of it, its double included."""

    money: Money
    cards: tuple[str, ...]
    total: int | None


@dataclass(frozen=True, slots=True)
class ExpectedSide:
    """Insurance or a side bet and what must come of it."""

    money: Money
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class SeatCase:
    """A seat of blackjack: what its account does, and what must come of it."""

    seat: int
    account: str
    laid: tuple[Laid, ...]
    insurance: int
    """0: declined."""
    actions: tuple[str, ...]
    hand_actions: tuple[tuple[str, ...], ...]
    """After a split."""
    hands: tuple[ExpectedHand, ...]
    sides: dict[str, ExpectedSide]
    """By bet id."""
    totals: Money


@dataclass(frozen=True, slots=True)
class BlackjackCase(Case):
    """A round of blackjack."""

    rules: Rules
    void: bool
    shoe: tuple[str, ...]
    seats: tuple[SeatCase, ...]
    outcome: dict[str, Any]
    totals: Money


@dataclass(frozen=True, slots=True)
class Limits:
    """What a table allows."""

    by_bet: dict[str, tuple[int, int]]
    """(minimum, maximum) by the product's bet id; `default` for the rest."""
    max_difference: int = 0
    max_numbers: int = 0
    step: int = 1
    max_account: int = 0
    max_exposure: int = 0
    """0: none of these."""


@dataclass(frozen=True, slots=True)
class RequestCase(Case):
    """A request that must be accepted or refused."""

    rules: Rules
    limits: Limits
    round_in_shoe: int
    accepted: tuple[Laid, ...]
    request: tuple[Laid, ...]
    withdraw: tuple[Laid, ...]
    """Instead of a request: those of the accepted bets that are asked back."""
    expected: bool
    """Whether it is accepted."""
    reason: str | None


@dataclass(frozen=True, slots=True)
class ActionCase(Case):
    """An action of blackjack that must be accepted or refused."""

    rules: Rules
    limits: Limits
    cards: tuple[str, ...]
    up_card: str
    main: int
    from_split: bool
    insured: int
    action: str
    expected: bool
    reason: str | None


AnyCase = RoundCase | BurnCase | BlackjackCase | RequestCase | ActionCase


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a case came out otherwise than expected."""

    place: Place
    case_id: str
    what: str
    """The bet, or what else differs."""
    expected: str
    got: str

    def __str__(self) -> str:
        return (
            f"{self.place}: {self.case_id}: {self.what}: expected {self.expected}; got {self.got}"
        )


@dataclass(slots=True)
class Findings:
    """What is found while a case is played."""

    case: Case
    differences: list[Difference] = field(default_factory=list)

    def check(self, what: str, expected: object, got: object) -> None:
        """Note a difference, if there is one."""
        if expected != got:
            self.note(what, str(expected), str(got))

    def note(self, what: str, expected: str, got: str) -> None:
        """Note a difference."""
        self.differences.append(Difference(self.case.place, self.case.case_id, what, expected, got))
