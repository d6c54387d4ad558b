"""What a partner may be shown of a log: its own accounts' events, and what everyone sees at a table
(rules VIS-1 to VIS-4).

What may be shown is listed; a type that is not listed and names no account is shown to nobody. So a
new event stays hidden until somebody has thought about it.
"""

from __future__ import annotations

from google.protobuf.message import Message

from sabot.audit.v1 import events_pb2 as audit
from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1 import events_pb2 as log
from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.table.v1 import events_pb2 as tables
from sabot.wallet.v1 import events_pb2 as wallets
from services.cli.skim import bodies_in
from services.kernel.entry import EventTypes
from services.kernel.event import Event

OPEN_TO_ALL: frozenset[type[Message]] = frozenset(
    {
        audit.LogSealed,
        audit.SealLog,
        limits.BookClosed,
        limits.BookVoided,
        rules.DrawCalled,
        rules.HoleCalled,
        rules.RollCalled,
        rules.RoundResolved,
        rules.SideBetDecided,
        rules.SpinCalled,
        shoes.CardsDealt,
        shoes.CutCardReached,
        shoes.DiceRolled,
        shoes.HoleChecked,
        shoes.SealShoe,
        shoes.ShoeClosed,
        shoes.ShoeOpened,
        shoes.ShoeRanOut,
        shoes.ShoeRevealed,
        shoes.SpinInvalidated,
        shoes.WheelSpun,
        tables.BettingClosed,
        tables.InsuranceClosed,
        tables.ResultAccepted,
        tables.RoundClosed,
        tables.RoundOpened,
        tables.RoundResumed,
        tables.RoundSuspended,
        tables.RoundVoided,
        tables.TableClosed,
        tables.TableOpened,
        wallets.RoundPaid,
        wallets.RoundReturned,
        wallets.StakesSealed,
    }
)
"""What lies open at a table, and marks that hold no stake. Not among them: cards that were burned
or are still to come, what is offered to seats with their stakes, live odds, operators' inputs."""

REPLIES: frozenset[type[Message]] = frozenset(
    {log.InputFailed, log.InputIgnored, log.InputNoted, log.RequestRepeated}
)
"""Answers that name nobody: the header says whose input they answer. What an `InputFailed` holds is
looked at by itself."""


def may_see(partner: str, event: Event, types: EventTypes) -> bool:
    """Whether an event may be shown to a partner. One that another partner set off may not: its
    header would tell whose it was."""
    if event.partner not in ("", partner):
        return False
    return all(_may_show(partner, event.partner, body) for body in bodies_in(event.body, types))


def _may_show(partner: str, set_off_by: str, body: Message) -> bool:
    kind = type(body)
    if kind in OPEN_TO_ALL:
        return True
    if kind in REPLIES:
        return set_off_by == partner
    if isinstance(body, limits.BetsRefused) and any(
        one.limit == limits.LIMIT_EXPOSURE for one in body.violations
    ):
        return False  # Its figures say what others have staked.
    if "account_id" in body.DESCRIPTOR.fields_by_name:
        return (str(getattr(body, "partner_id", "")) or set_off_by) == partner
    return False
