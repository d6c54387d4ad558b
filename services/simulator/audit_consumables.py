"""The auditor's check of packs, wheels and dice: each is received once, is in one place, and is not
used again once it is destroyed, or while it is rejected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sabot.shoe.v1 import events_pb2 as shoe
from sabot.shoe.v1 import floor_events_pb2 as floor
from services.simulator.facts import Fact, Findings

CARDS = floor.CONSUMABLE_KIND_CARDS


@dataclass(slots=True)
class One:
    """A consumable."""

    kind: int
    decks: int
    table_id: str = ""
    """Where it is in use; empty: stored."""
    shoe_id: str = ""
    rejected: bool = False
    destroyed: bool = False


class ConsumableAuditor:
    """See the module."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.known: dict[str, One] = {}
        self._deals: set[str] = set()
        """Shoes that are not over."""

    def see(self, fact: Fact) -> None:
        """Take the next event."""
        body: Any = fact.body
        match body:
            case floor.ConsumableRegistered():
                self.findings.check(
                    body.consumable_id not in self.known,
                    fact.place,
                    f"{body.consumable_id} is received twice",
                )
                self.findings.check(
                    (body.kind == CARDS) is bool(body.decks),
                    fact.place,
                    f"{body.consumable_id} has {body.decks} decks",
                )
                self.known[body.consumable_id] = One(body.kind, body.decks)
            case floor.ConsumableMoved():
                self._moved(fact, body)
            case shoe.ShoeOpened():
                if body.packs:
                    self._filled(fact, body)
            case shoe.ShoeClosed():
                self._deals.discard(body.shoe_id)
            case _:
                pass

    def _filled(self, fact: Fact, body: shoe.ShoeOpened) -> None:
        packs = [self.known[name] for name in body.packs]
        right = all(
            one.kind == CARDS
            and not (one.rejected or one.destroyed)
            and one.table_id in ("", body.table_id)
            and not self._in_shoe(one)
            for one in packs
        )
        decks = sum(one.decks for one in packs)
        self.findings.check(
            right and len(set(body.packs)) == len(packs) and 52 * decks == body.cards,
            fact.place,
            f"{body.shoe_id} is filled with {list(body.packs)}",
        )
        self._deals.add(body.shoe_id)

    def _in_shoe(self, one: One) -> bool:
        return bool(one.table_id) and one.shoe_id in self._deals

    def _moved(self, fact: Fact, body: floor.ConsumableMoved) -> None:
        one = self.known[body.consumable_id]
        name = floor.Movement.Name(body.movement)
        into_shoe = body.movement == floor.MOVEMENT_PUT_INTO_USE and bool(body.shoe_id)
        self.findings.check(
            not one.destroyed and (into_shoe or not self._in_shoe(one)),
            fact.place,
            f"{body.consumable_id}, {one}, is moved: {name}",
        )
        right = True
        match body.movement:
            case floor.MOVEMENT_PUT_INTO_USE:
                right = not one.rejected and (into_shoe or not one.table_id)
                one.table_id, one.shoe_id = body.table_id, body.shoe_id or one.shoe_id
            case floor.MOVEMENT_TAKEN_OUT:
                right, one.table_id = bool(one.table_id), ""
            case floor.MOVEMENT_INSPECTED:
                one.rejected = False
            case floor.MOVEMENT_DESTROYED:
                one.destroyed = True
            case _:
                one.rejected, one.table_id = True, ""
        self.findings.check(right, fact.place, f"{body.consumable_id} may not be moved so: {name}")
        kind = floor.ConsumableKind.Name(body.kind)
        self.findings.check(one.kind == body.kind, fact.place, f"{body.consumable_id} is a {kind}")
        self.findings.reach(f"consumable: {name}")
