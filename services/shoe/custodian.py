"""The custodian of virtual shoes, wheels and dice: the only code of the fleet that draws.

It looks at the shoe core's state, so after any crash it goes on where the log stands. A shoe is one
number, drawn below the count of all its orders; it is logged sealed before anyone can bet on it, so
a crash loses no shoe, and whoever has the operator's keys can open its cards, one by one as they
are called. Two custodians do no harm: the first seal in the log stands, and both open the same
cards.

What it draws comes from a generator that is watched (`services.shoe.generator`): if that fails, no
shoe is drawn here any more. Those that are sealed go on; to open them nothing is drawn.

A sealed order is `nonce (12) | ChaCha20-Poly1305(version (1) | secret of the salts (32) | number)`,
bound to cell, table and shoe.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from google.protobuf.message import Message

from sabot.log.v1 import entry_pb2
from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.table.v1 import events_pb2 as tables
from services.games.blackjack import is_blackjack
from services.games.cards import CARDS_PER_DECK
from services.kernel.event import Position
from services.kernel.key_file import KeyRing
from services.shoe.domain.commitments import SALT_BYTES, commitment
from services.shoe.domain.order import order_of, orders_of
from services.shoe.domain.state import Shoe, ShoeState
from services.shoe.domain.wanted import (
    CardsWanted,
    LookWanted,
    RevealWanted,
    SealWanted,
    TossWanted,
    Wanted,
    wanted,
)
from services.shoe.generator import Generator, GeneratorFailed, word_bytes
from services.shoe.tossing import tossed

STANDBY_US = 1_000_000
"""How much later a replica acts that did not write the shoe's last answers."""
AGAIN_US = 2_000_000
"""What was told and is still wanted is told again after this: its entry may be lost."""
MAX_UNSEALED = 1_000
"""Opened seals kept in memory, about 40 KiB each; the one longest unused goes first."""

NONCE_BYTES = 12
SECRET_BYTES = 32
VERSION = b"\x01"
"""Of the sealed bytes' shape."""

GENERATOR = "generator"
"""What the problem of a failed generator concerns; no shoe's id is the same."""


class SealBroken(Exception):
    """A sealed order cannot be opened, or is not what was committed to."""

    def __init__(self, shoe_id: str, why: str) -> None:
        super().__init__(why)
        self.shoe_id = shoe_id


def system_generator() -> Generator:
    """The operating system's generator, tested."""
    return Generator(secrets.token_bytes)


@dataclass(frozen=True, slots=True)
class Unsealed:
    """A shoe as its custodian knows it."""

    order: tuple[str, ...]
    """All cards in dealing order."""
    secret: bytes

    def salt(self, index: int) -> bytes:
        """The salt of a card's commitment: it tells nothing of the others'."""
        return hmac.digest(self.secret, index.to_bytes(4, "big"), sha256)[:SALT_BYTES]

    def card(self, index: int) -> shoes.Card:
        """A card, opened."""
        return shoes.Card(index=index, card=self.order[index], salt=self.salt(index))

    def commitments(self, shoe_id: str) -> bytes:
        """What is published of all cards."""
        return b"".join(
            commitment(self.salt(index), shoe_id, index, card)
            for index, card in enumerate(self.order)
        )

    def __repr__(self) -> str:
        return f"Unsealed({len(self.order)} cards)"


class Custodian:
    """See the module; a `services.kernel.shells.Shell`.

    - cell: whose log it is; part of what a seal is bound to.
    - keys: the operator's.
    - generator: the operating system's; tests put a seeded one here.
    """

    service = "shoe"
    wakes: frozenset[type[Message]] = frozenset(
        {
            tables.TableOpened,
            shoes.ShoeOpened,
            rules.DrawCalled,
            rules.HoleCalled,
            rules.SpinCalled,
            rules.RollCalled,
            shoes.CardsBurned,
            shoes.ShoeClosed,
        }
    )
    since = 1

    def __init__(self, cell: str, keys: KeyRing, generator: Generator) -> None:
        self._cell = cell
        self._keys = keys
        self._generator = generator
        self._seen_us: dict[Wanted, int] = {}
        """When a wish was first seen."""
        self._told_us: dict[Wanted, int] = {}
        """When it was last told."""
        self._seals: dict[SealWanted, shoes.SealShoe] = {}
        """What was drawn for a shoe that does not stand yet: told again, it is the same."""
        self._tosses: dict[TossWanted, Message] = {}
        """What was drawn for a call that is not answered yet: told again, it is the same."""
        self._unsealed: dict[str, Unsealed] = {}
        self._looked_at: set[str] = set()
        """Shoes whose seal was opened here once, or cannot be."""
        self.problems: dict[str, str] = {}
        """Why the cards of a shoe cannot be opened here, by shoe id, and why nothing is drawn: an
        operator must know."""
        self._tell_of_generator()

    def poll(
        self, state: ShoeState, now_us: int, leading: bool, answered: Position | None = None
    ) -> Sequence[Message]:
        """The inputs to append now.

        `answered`: the shoe's answers to what stands before this position have been read back;
        None: all of them. No secret leaves on the ground of an answer that is not in the log yet.
        """
        told: list[Message] = []
        wishes = wanted(state)
        self._forget(wishes, state)
        self._look_ahead(state)
        wait_us = 0 if leading else STANDBY_US
        for wish in wishes:
            if answered is not None and wish.asked_by >= answered and not _is_called(wish):
                continue
            seen_us = self._seen_us.setdefault(wish, now_us)
            last_us = self._told_us.get(wish)
            due_us = seen_us if last_us is None else last_us + AGAIN_US
            if due_us + wait_us > now_us:
                continue
            try:
                told.append(self._granted(state, wish))
            except SealBroken as problem:
                # The other shoes go on; another custodian may have the key.
                self.problems[problem.shoe_id] = str(problem)
            except GeneratorFailed:
                # What is sealed goes on; another custodian may have a sound generator.
                self._tell_of_generator()
            self._told_us[wish] = now_us
        return told

    def _look_ahead(self, state: ShoeState) -> None:
        """Open the seal of each shoe that stands before its cards are called: a key that was lost
        must be known while no round has closed its bets. One good seal a poll, since each takes
        some milliseconds."""
        for shoe in state.shoes.values():
            if shoe.floor is not None or shoe.shoe_id in self._looked_at:
                continue
            try:
                self._unseal(shoe)
            except SealBroken as problem:
                self.problems[shoe.shoe_id] = str(problem)
            else:
                return

    def _tell_of_generator(self) -> None:
        if self._generator.problem:
            self.problems[GENERATOR] = self._generator.problem

    def _forget(self, wishes: list[Wanted], state: ShoeState) -> None:
        """What is no longer wanted has come true, here or elsewhere."""
        self._seen_us = {wish: self._seen_us[wish] for wish in wishes if wish in self._seen_us}
        self._told_us = {wish: self._told_us[wish] for wish in wishes if wish in self._told_us}
        self._seals = {wish: seal for wish, seal in self._seals.items() if wish in self._seen_us}
        self._tosses = {wish: toss for wish, toss in self._tosses.items() if wish in self._seen_us}
        for known in (self._unsealed, self.problems):
            for about in [one for one in known if one not in state.shoes and one != GENERATOR]:
                del known[about]
        self._looked_at &= state.shoes.keys()

    def _granted(self, state: ShoeState, wish: Wanted) -> Message:
        match wish:
            case SealWanted():
                if self._generator.problem:
                    # What it drew before and what does not stand yet is not told again either.
                    raise GeneratorFailed(self._generator.problem)
                seal = self._seals.get(wish)
                if seal is None:
                    seal = self._seals[wish] = self._seal(wish)
                return seal
            case CardsWanted():
                shoe = self._unseal(state.shoes[wish.shoe_id])
                return shoes.OpenCards(
                    table_id=wish.table_id,
                    shoe_id=wish.shoe_id,
                    round_id=wish.round_id,
                    cards=[shoe.card(wish.first + more) for more in range(wish.count)],
                    source=shoes.CARD_SOURCE_VIRTUAL,
                    asked_by=_position(wish.asked_by),
                )
            case LookWanted():
                card = self._unseal(state.shoes[wish.shoe_id]).order[wish.index]
                return shoes.CheckHole(
                    table_id=wish.table_id,
                    shoe_id=wish.shoe_id,
                    round_id=wish.round_id,
                    index=wish.index,
                    blackjack=is_blackjack((wish.up_card, card)),
                    source=shoes.CARD_SOURCE_VIRTUAL,
                    asked_by=_position(wish.asked_by),
                )
            case TossWanted():
                if self._generator.problem:
                    raise GeneratorFailed(self._generator.problem)
                toss = self._tosses.get(wish)
                if toss is None:
                    asked_by = _position(wish.asked_by)
                    toss = self._tosses[wish] = tossed(wish, asked_by, self._generator.below)
                return toss
            case RevealWanted():
                shoe = self._unseal(state.shoes[wish.shoe_id])
                return shoes.RevealShoe(
                    table_id=wish.table_id,
                    shoe_id=wish.shoe_id,
                    cards=[shoe.card(index) for index in range(len(shoe.order))],
                    asked_by=_position(wish.asked_by),
                )

    def _seal(self, wish: SealWanted) -> shoes.SealShoe:
        """Draw a shoe and seal it. Raises GeneratorFailed."""
        orders = orders_of(wish.decks * CARDS_PER_DECK)
        number = self._generator.below(orders)
        secret = self._generator.draw(SECRET_BYTES)
        nonce = self._generator.draw(NONCE_BYTES)
        sealed = ChaCha20Poly1305(self._keys.keys[self._keys.current]).encrypt(
            nonce,
            VERSION + secret + number.to_bytes(word_bytes(orders), "big"),
            self._bound_to(wish.table_id, wish.shoe_id),
        )
        drawn = Unsealed(tuple(order_of(number, wish.decks)), secret)
        return shoes.SealShoe(
            table_id=wish.table_id,
            shoe_id=wish.shoe_id,
            number=wish.number,
            decks=wish.decks,
            commitments=drawn.commitments(wish.shoe_id),
            sealed_order=nonce + sealed,
            key_id=self._keys.current,
            asked_by=_position(wish.asked_by),
        )

    def _unseal(self, shoe: Shoe) -> Unsealed:
        """A shoe that stands in the log, whoever sealed it. Raises SealBroken."""
        self._looked_at.add(shoe.shoe_id)
        known = self._unsealed.pop(shoe.shoe_id, None)
        if known is None:
            known = self._opened(shoe)
            if len(self._unsealed) >= MAX_UNSEALED:
                del self._unsealed[next(iter(self._unsealed))]
        self._unsealed[shoe.shoe_id] = known
        self.problems.pop(shoe.shoe_id, None)
        return known

    def _opened(self, shoe: Shoe) -> Unsealed:
        key = self._keys.keys.get(shoe.key_id)
        if key is None:
            raise SealBroken(
                shoe.shoe_id, f"shoe {shoe.shoe_id} is sealed by key {shoe.key_id}, not held here"
            )
        nonce, sealed = shoe.sealed_order[:NONCE_BYTES], shoe.sealed_order[NONCE_BYTES:]
        try:
            plain = ChaCha20Poly1305(key).decrypt(
                nonce, sealed, self._bound_to(shoe.table_id, shoe.shoe_id)
            )
        except (InvalidTag, ValueError):
            raise SealBroken(
                shoe.shoe_id, f"the seal of shoe {shoe.shoe_id} does not open by key {shoe.key_id}"
            ) from None
        secret, number = plain[1 : 1 + SECRET_BYTES], plain[1 + SECRET_BYTES :]
        if plain[:1] != VERSION or len(secret) != SECRET_BYTES:
            raise SealBroken(shoe.shoe_id, f"the seal of shoe {shoe.shoe_id} is of another version")
        try:
            order = order_of(int.from_bytes(number, "big"), shoe.decks)
        except ValueError:
            raise SealBroken(
                shoe.shoe_id, f"the seal of shoe {shoe.shoe_id} holds no order"
            ) from None
        opened = Unsealed(tuple(order), secret)
        if opened.commitments(shoe.shoe_id) != shoe.commitments:
            raise SealBroken(
                shoe.shoe_id, f"the sealed order of shoe {shoe.shoe_id} is not the committed one"
            )
        return opened

    def _bound_to(self, table_id: str, shoe_id: str) -> bytes:
        """Associated data: ids hold no line breaks, so no two shoes share it."""
        return f"sabot shoe\n{self._cell}\n{table_id}\n{shoe_id}".encode()


def _is_called(wish: Wanted) -> bool:
    """Whether another service's answer asks: that is in the log, or it would not be known."""
    if isinstance(wish, LookWanted | TossWanted):
        return True
    return isinstance(wish, CardsWanted) and bool(wish.round_id)


def _position(position: Position) -> entry_pb2.Position:
    return entry_pb2.Position(
        segment=position.segment, sequence=position.sequence, index=position.index
    )
