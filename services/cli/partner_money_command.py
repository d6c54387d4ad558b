"""The verbs `receivables …` and `partner-profile …`: what accounts owe after corrections, and how a
partner's money is kept."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from services.cli.commands import EXIT_CODES, RIGHT, WRONG, AsJson, dump, run
from services.cli.movements_command import HERE, Address, Roots, TokenFile, token_of

if TYPE_CHECKING:
    from sabot.wallet.v1.partner_profile_pb2 import PartnerProfile
    from sabot.wallet.v1.receivable_service_pb2 import Receivable

MAX_MINOR = 10**12
"""The most that a call takes."""
Reason = Annotated[str, typer.Option(metavar="TEXT", help="Why; it is kept in the log.")]
PartnerId = Annotated[str, typer.Argument(metavar="PARTNER", help="The partner.")]


class Policy(Enum):
    """What is done where an account cannot give back."""

    RECEIVABLE = "receivable"
    NEGATIVE_BALANCE = "negative-balance"


def register(app: typer.Typer) -> None:
    """Add the verbs to the command."""
    receivables = typer.Typer(
        help="What accounts could not give back when rounds were corrected.",
        epilog=EXIT_CODES,
        no_args_is_help=True,
    )
    receivables.command("list", epilog=EXIT_CODES)(list_receivables)
    receivables.command("settle", epilog=EXIT_CODES)(settle_receivable)
    receivables.command("policy", epilog=EXIT_CODES)(set_policy)
    app.add_typer(receivables, name="receivables")
    profile = typer.Typer(
        help="How a partner's money is kept: here, or in a wallet of its own.",
        epilog=EXIT_CODES,
        no_args_is_help=True,
    )
    profile.command("show", epilog=EXIT_CODES)(show_profile)
    profile.command("set", epilog=EXIT_CODES)(set_profile)
    app.add_typer(profile, name="partner-profile")


def list_receivables(
    partner: Annotated[str, typer.Option(metavar="ID", help="Of this partner only.")] = "",
    address: Address = HERE,
    token_file: TokenFile = None,
    root_certificates: Roots = None,
    as_json: AsJson = False,
) -> None:
    """The accounts that owe, or whose balance is below zero. The exit code is 0 where there are
    none."""
    owing = run(_owing(address, token_of(token_file), root_certificates, partner))
    if as_json:
        dump([_plain(one) for one in owing])
    else:
        from services.games.currencies import decimal

        for one in owing:
            owed, left = (
                f"{decimal(amount.minor_units, amount.currency_code)} {amount.currency_code}"
                for amount in (one.owed, one.available)
            )
            print(f"{one.partner_id}/{one.account_id} owes {owed}, has {left}")
    raise typer.Exit(WRONG if owing else RIGHT)


def settle_receivable(
    partner: PartnerId,
    account: Annotated[str, typer.Argument(metavar="ACCOUNT", help="The account that owes.")],
    minor: Annotated[
        int,
        typer.Argument(metavar="MINOR", min=1, max=MAX_MINOR, help="How much, in minor units."),
    ],
    currency: Annotated[str, typer.Argument(metavar="CODE", help="The account's currency.")],
    reason: Reason,
    address: Address = HERE,
    token_file: TokenFile = None,
    root_certificates: Roots = None,
) -> None:
    """An account pays of what it owes, out of its balance; a seamless partner's has paid there."""
    from sabot.money.v1.money_pb2 import Money
    from sabot.wallet.v1 import receivable_service_pb2 as receivables
    from services.cli.uuid7 import uuid7

    request = receivables.SettleReceivableRequest(
        request_id=uuid7(),
        partner_id=partner,
        account_id=account,
        amount=Money(currency_code=currency, minor_units=minor),
        reason=reason,
    )
    token = token_of(token_file)
    told = run(_order(address, token, root_certificates, "SettleReceivable", request))
    print(f"{partner}/{account} has paid {minor} minor units: in the log at {told}")


def set_policy(
    partner: PartnerId,
    policy: Annotated[Policy, typer.Argument(help="What is done from here on.")],
    reason: Reason,
    address: Address = HERE,
    token_file: TokenFile = None,
    root_certificates: Roots = None,
) -> None:
    """Whether what an account cannot give back is a receivable, or its balance goes below zero."""
    from sabot.wallet.v1 import correction_events_pb2 as corrections
    from sabot.wallet.v1 import receivable_service_pb2 as receivables
    from services.cli.uuid7 import uuid7

    policies = {
        Policy.RECEIVABLE: corrections.SHORTFALL_POLICY_RECEIVABLE,
        Policy.NEGATIVE_BALANCE: corrections.SHORTFALL_POLICY_NEGATIVE_BALANCE,
    }
    request = receivables.SetShortfallPolicyRequest(
        request_id=uuid7(), partner_id=partner, policy=policies[policy], reason=reason
    )
    token = token_of(token_file)
    told = run(_order(address, token, root_certificates, "SetShortfallPolicy", request))
    print(f"{partner}: {policy.value}, in the log at {told}")


def show_profile(
    partner: PartnerId,
    address: Address = HERE,
    token_file: TokenFile = None,
    root_certificates: Roots = None,
) -> None:
    """The profile in force, as JSON; `set` takes it back."""
    dump(_plain(run(_profile(address, token_of(token_file), root_certificates, partner))))


def set_profile(
    partner: PartnerId,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            dir_okay=False,
            help="The whole profile as JSON, as `certify-wallet` and `show` print it.",
        ),
    ],
    reason: Reason,
    address: Address = HERE,
    token_file: TokenFile = None,
    root_certificates: Roots = None,
) -> None:
    """Keep a partner's money by this profile from here on. What FILE leaves out is not kept from
    before."""
    from google.protobuf.json_format import Parse, ParseError

    from sabot.wallet.v1 import wallet_operator_service_pb2 as operators
    from sabot.wallet.v1.partner_profile_pb2 import PartnerProfile
    from services.cli.uuid7 import uuid7

    async def given() -> str:
        text = file.read_text()  # in here, so that what is wrong with it is told as a line
        request = operators.SetPartnerProfileRequest(
            request_id=uuid7(),
            partner_id=partner,
            profile=Parse(text, PartnerProfile()),
            reason=reason,
        )
        token = token_of(token_file)
        return await _order(address, token, root_certificates, "SetPartnerProfile", request)

    try:
        told = run(given())
    except (ParseError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{file} is no profile: {error}", param_hint="FILE") from error
    print(f"{partner}: its profile is in the log at {told}")


# ---- how they do it ----------------------------------------------------------------------------


def _plain(message: Any) -> dict[str, object]:
    from google.protobuf.json_format import MessageToDict

    plain: dict[str, object] = MessageToDict(message, preserving_proto_field_name=True)
    return plain


async def _owing(address: str, token: str, roots: Path | None, partner: str) -> list[Receivable]:
    from sabot.wallet.v1 import receivable_service_pb2 as receivables
    from services.cli import movements

    async with movements.calls(address, token, roots) as (channel, call):
        stub = movements.receivable_stub(channel)
        found: list[Receivable] = []
        page_token = ""
        while True:
            request = receivables.ListReceivablesRequest(partner_id=partner, page_token=page_token)
            page = await stub.ListReceivables(request, **call)
            found += page.receivables
            page_token = page.next_page_token
            if not page_token:
                return found


async def _profile(address: str, token: str, roots: Path | None, partner: str) -> PartnerProfile:
    from sabot.wallet.v1 import wallet_operator_service_pb2 as operators
    from services.cli import movements

    async with movements.service(address, token, roots) as (stub, call):
        request = operators.GetPartnerProfileRequest(partner_id=partner)
        profile: PartnerProfile = (await stub.GetPartnerProfile(request, **call)).profile
        return profile


async def _order(address: str, token: str, roots: Path | None, name: str, request: Any) -> str:
    """Give an order; where the log says that it is obeyed."""
    from services.cli import movements
    from services.kernel.entry import position_of

    async with movements.calls(address, token, roots) as (channel, call):
        of = movements.operator_stub if name == "SetPartnerProfile" else movements.receivable_stub
        told = await getattr(of(channel), name)(request, **call)
    return str(position_of(told.position))
