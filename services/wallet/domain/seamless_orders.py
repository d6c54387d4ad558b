"""Operators' orders about seamless wallets: how a partner's money is kept, and what becomes of a
movement that the partner has not confirmed.

Order of refusals: the request id (expired or ahead of time, repeated, reused), then what is asked.
"""

from __future__ import annotations

from google.protobuf.message import Message

from sabot.log.v1 import entry_pb2
from sabot.log.v1 import events_pb2 as log
from sabot.wallet.v1 import partner_profile_pb2 as profiles
from sabot.wallet.v1 import seamless_events_pb2 as seamless
from services.kernel.event import Event
from services.kernel.requests import Standing as IdStanding
from services.wallet.domain.seamless_confirming import rejected, resolve
from services.wallet.domain.seamless_state import is_seamless
from services.wallet.domain.state import WalletState

LOOPBACK = frozenset(("127.0.0.1", "[::1]", "localhost"))
"""Where calls may go in plain text: nobody can read them on their way."""
MAX_PORT = 65535
MIN_DEADLINE_MS = 20
"""Shorter than this a wallet far away could never answer."""

SeamlessOrder = seamless.SetPartnerProfile | seamless.ResolveMovement


def use_order_id(state: WalletState, event: Event, body: SeamlessOrder) -> None:
    """Remember an order's id, if this is its first use. Part of evolve."""
    if _standing(state, event, body)[0] is IdStanding.NEW:
        state.requests.use(
            event.actor, body.request_id, body.request_hash, event.position, event.time_us
        )


def answer_order(state: WalletState, event: Event, body: SeamlessOrder) -> Message:
    """Answer one order."""
    standing, first = _standing(state, event, body)
    match standing:
        case IdStanding.REPEATED:
            return log.RequestRepeated(request_id=body.request_id, first=first)
        case IdStanding.REUSED:
            return rejected(body.request_id, seamless.SEAMLESS_REFUSAL_REQUEST_ID_REUSED)
        case IdStanding.EXPIRED if not event.retried:
            return rejected(body.request_id, seamless.SEAMLESS_REFUSAL_REQUEST_EXPIRED)
        case IdStanding.AHEAD if not event.retried:
            return rejected(body.request_id, seamless.SEAMLESS_REFUSAL_REQUEST_ID_AHEAD)
        case _:
            pass
    if isinstance(body, seamless.ResolveMovement):
        return resolve(state.seamless, event, body)
    return _set_profile(state, event, body)


def _standing(
    state: WalletState, event: Event, body: SeamlessOrder
) -> tuple[IdStanding, entry_pb2.Position | None]:
    standing, first = state.requests.standing(
        event.actor, body.request_id, body.request_hash, event.time_us
    )
    if first is None:
        return standing, None
    if first == event.position:
        return IdStanding.NEW, None  # This very order, folded a moment ago.
    return standing, entry_pb2.Position(
        segment=first.segment, sequence=first.sequence, index=first.index
    )


def _set_profile(state: WalletState, event: Event, body: seamless.SetPartnerProfile) -> Message:
    fault = fault_of(body.profile)
    if fault:
        return rejected(body.request_id, seamless.SEAMLESS_REFUSAL_BAD_PROFILE, fault)
    seamless_now = is_seamless(state.seamless, event.partner)
    seamless_then = body.profile.mode == profiles.WALLET_MODE_SEAMLESS
    if seamless_now != seamless_then:
        why = _under_way(state, event.partner)
        if why:
            return rejected(body.request_id, seamless.SEAMLESS_REFUSAL_MONEY_UNDER_WAY, why)
    return seamless.PartnerProfileSet(
        request_id=body.request_id,
        partner_id=event.partner,
        profile=body.profile,
        reason=body.reason,
    )


def fault_of(profile: profiles.PartnerProfile) -> str:
    """What is wrong with a profile, in a few words; empty where nothing is."""
    if profile.mode != profiles.WALLET_MODE_SEAMLESS:
        if profile == profiles.PartnerProfile(mode=profile.mode):
            return ""
        return "a transfer partner has no wallet to describe"
    host, _, port = profile.address.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 1 <= int(port) <= MAX_PORT:
        return "the address is not host:port"
    if profile.plaintext and host not in LOOPBACK:
        return "calls in plain text go to this machine only"
    if profile.plaintext and profile.root_certificates:
        return "calls in plain text check no certificate"
    told = profile.conventions
    if not told.repeats or not told.settled_rollbacks or not told.overdraws:
        return "a convention is not known"
    if 0 < profile.deadline_ms < MIN_DEADLINE_MS:
        return f"the deadline is under {MIN_DEADLINE_MS} ms"
    return ""


def _under_way(state: WalletState, partner: str) -> str:
    """Which money keeps a partner's mode from being changed; empty: none."""
    if state.seamless.open.get(partner):
        return "movements are not confirmed"
    if any(owner == partner for owner, _ in state.deposits):
        return "a deposit is under way"
    for (owner, account_id), account in state.accounts.items():
        if owner == partner and (account.available_minor or account.reserved_minor):
            return f"account {account_id} holds money or stakes"
    return ""
