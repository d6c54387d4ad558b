"""The auditor's own picture of shoes that were filled by hand, and of rounds dealt from them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from sabot.rules.v1 import rule_set_pb2
from sabot.shoe.v1 import floor_events_pb2 as floor
from services.simulator.facts import Place

PACK = frozenset(rank + suit for rank in "A23456789TJQK" for suit in "SHDC")
MOST_HELD = 6
NEVER: Place = (1 << 40, 0)


@dataclass(slots=True)
class HandShoe:
    """A shoe that was filled by hand."""

    shoe_id: str
    table_id: str
    decks: int
    rule_set: rule_set_pb2.RuleSet
    """In force when it was filled."""
    gone: int = 0
    known: dict[int, str] = field(default_factory=dict)
    """By place: the card as the log has it."""
    held: list[floor.OutcomeHeld] = field(default_factory=list)
    begun: bool = False
    """Whether its start is over (rule BAC-2)."""
    cut: bool = False
    more_rounds: int = 0
    """Once the cut card is out: rounds that may still begin."""
    closed: bool = False
    counted: Counter[str] | None = None

    @property
    def next(self) -> int:
        """The place of the card that comes out next."""
        return self.gone + len(self.held)

    def given(self, card: str) -> int:
        """How many of a card it has given, as the log has it."""
        return sum(known == card for known in self.known.values())


@dataclass(slots=True)
class Call:
    """Cards that rules called."""

    at: Place
    hands: list[int]
    """Those that have no card yet."""
    recalled: Place = NEVER
    """Whose card was told before this still gets it: the shoe decides in the order of the log."""


@dataclass(slots=True)
class CardRound:
    """A round at a table with such a shoe."""

    table_id: str
    rule_set: rule_set_pb2.RuleSet
    opened: Place
    sealed: Place = NEVER
    closed: Place = NEVER
    voided: Place = NEVER
    resolved: Place = NEVER
    """The last result by rules, unless something was corrected since."""
    cut_off: tuple[Place, int] = (NEVER, 0)
    calls: list[Call] = field(default_factory=list)
    cards: dict[int, int] = field(default_factory=dict)
    """By place in the shoe: the hand it was dealt to."""
    shoe_id: str = ""
    corrected: bool = False
    hole: int | None = None
    """The place of the hole card, while it lies face down."""
    to_look: Place = NEVER
    """When a look at it was called, and when its turning over."""
    to_turn: Place = NEVER
    looked: bool | None = None

    def awaited(self, cause: Place) -> list[int]:
        """The hands of the first call that an event at `cause` may still answer; empty: none."""
        return next((one.hands for one in self.calls if one.hands and cause < one.recalled), [])


def may_refuse(one: HandShoe, told: floor.RecordCard, refusal: int) -> bool:
    """Whether a card is rightly refused for this reason, as the shoe stands."""
    place = one.next
    index = told.index if told.HasField("index") else place
    seated = one.rule_set.game == rule_set_pb2.GAME_BLACKJACK
    return {
        floor.FLOOR_REFUSAL_IMPOSSIBLE: told.card not in PACK,
        floor.FLOOR_REFUSAL_ALREADY_RECORDED: one.known.get(index) == told.card,
        floor.FLOOR_REFUSAL_OUT_OF_ORDER: index > place or index not in one.known,
        floor.FLOOR_REFUSAL_BURN_AWAITED: not one.begun and one.gone == 1,
        floor.FLOOR_REFUSAL_SHOE_EMPTY: place >= 52 * one.decks,
        floor.FLOOR_REFUSAL_TOO_MANY_CARDS: len(one.held) >= MOST_HELD,
        floor.FLOOR_REFUSAL_PLACE_NOT_NAMED: seated
        and not (told.round_id and told.HasField("index")),
        floor.FLOOR_REFUSAL_FACE_DOWN: seated,
        floor.FLOOR_REFUSAL_CARDS_HELD: bool(one.held and told.round_id),
        floor.FLOOR_REFUSAL_REQUEST_EXPIRED: True,
        floor.FLOOR_REFUSAL_REQUEST_ID_AHEAD: True,
        floor.FLOOR_REFUSAL_REQUEST_ID_REUSED: True,
    }.get(floor.FloorRefusal.ValueType(refusal), False)
