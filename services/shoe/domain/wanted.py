"""What the state awaits from the custodian, now. It follows from the state alone, so after a crash
nothing needs to be remembered."""

from __future__ import annotations

from dataclasses import dataclass

from services.kernel.event import Position
from services.shoe.domain.hole import hidden_in
from services.shoe.domain.state import Hole, Shoe, ShoeState, Standing, TossKind, shoe_id_of


@dataclass(frozen=True, slots=True)
class SealWanted:
    """A shoe shall be drawn and sealed."""

    table_id: str
    shoe_id: str
    number: int
    decks: int
    asked_by: Position


@dataclass(frozen=True, slots=True)
class CardsWanted:
    """The next cards shall be opened; for no round: the shown card."""

    table_id: str
    shoe_id: str
    round_id: str
    first: int
    """Index of the first."""
    count: int
    asked_by: Position


@dataclass(frozen=True, slots=True)
class LookWanted:
    """A hole card shall be looked at."""

    table_id: str
    shoe_id: str
    round_id: str
    index: int
    up_card: str
    """The dealer's open card."""
    asked_by: Position


@dataclass(frozen=True, slots=True)
class RevealWanted:
    """A shoe that is over shall be laid open."""

    table_id: str
    shoe_id: str
    asked_by: Position


@dataclass(frozen=True, slots=True)
class TossWanted:
    """A wheel shall be spun, or dice rolled, by the generator."""

    table_id: str
    round_id: str
    attempt: int
    kind: TossKind
    asked_by: Position


Wanted = SealWanted | CardsWanted | LookWanted | RevealWanted | TossWanted
"""`asked_by`: the event that asks. Where an answer of `shoe` itself asks (`ShoeOpened`,
`ShoeClosed`) it is that answer's cause: the same place in every replica, decided or read back."""


def wanted(state: ShoeState) -> list[Wanted]:
    """All that is awaited, table by table."""
    wishes: list[Wanted] = [
        SealWanted(
            table.table_id,
            shoe_id_of(table.table_id, table.awaited_number),
            table.awaited_number,
            table.decks,
            table.awaited_by,
        )
        for table in state.tables.values()
        if table.awaited_number
        and table.seal is None
        and table.awaited_by is not None
        and not table.floor
    ]
    wishes.extend(
        TossWanted(
            table.table_id,
            table.toss.round_id,
            table.toss.attempt,
            table.toss.kind,
            table.toss.asked_by,
        )
        for table in state.tables.values()
        if table.toss is not None
        and not table.toss.numbers
        and not table.voided
        and not table.floor
    )
    for shoe in state.shoes.values():
        if shoe.floor is not None:
            continue  # The floor tells what comes out of it.
        if shoe.standing is Standing.CLOSED:
            wishes.append(RevealWanted(shoe.table_id, shoe.shoe_id, shoe.asked_by))
        elif shoe.standing is Standing.SEALED:
            wishes.append(CardsWanted(shoe.table_id, shoe.shoe_id, "", 0, 1, shoe.asked_by))
        elif shoe.call is not None:
            wishes.append(
                CardsWanted(
                    shoe.table_id,
                    shoe.shoe_id,
                    shoe.call.round_id,
                    shoe.gone,
                    len(shoe.call.hands) - hidden_in(shoe.call.hands),
                    shoe.call.asked_by,
                )
            )
        elif shoe.hole is not None:
            wishes.extend(_of_hole(shoe, shoe.hole))
    return wishes


def _of_hole(shoe: Shoe, hole: Hole) -> list[Wanted]:
    """A look that was called and not told, or the card itself."""
    if hole.opened:
        return []
    if hole.reveal_asked_by is not None:
        return [
            CardsWanted(
                shoe.table_id, shoe.shoe_id, hole.round_id, hole.index, 1, hole.reveal_asked_by
            )
        ]
    if hole.peek_asked_by is None or hole.looked_at is not None:
        return []
    return [
        LookWanted(
            shoe.table_id,
            shoe.shoe_id,
            hole.round_id,
            hole.index,
            hole.up_card,
            hole.peek_asked_by,
        )
    ]
