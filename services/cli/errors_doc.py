"""Writes docs/errors.md from the catalogue of errors: `python -m services.cli.errors_doc`."""

from __future__ import annotations

import sys
from pathlib import Path

from services.kernel import errors
from services.kernel.errors import FRENCH_NOTE, Reason, Retry
from services.refusals import audit, corrections, floor, limits, seamless, table, wallet

SECTIONS: dict[str, tuple[Reason, ...]] = {
    "Any service": errors.REASONS,
    "Tables, rounds, bets and shoes": table.REASONS,
    "Limits and restrictions": limits.REASONS,
    "Accounts and money": wallet.REASONS,
    "Money at seamless partners": seamless.REASONS,
    "Corrections of paid rounds": corrections.REASONS,
    "Seals and proofs": audit.REASONS,
    "The floor: cards, wheels, dice and packs": floor.REASONS,
}
"""The whole catalogue, by what its reasons speak of."""

INTRODUCTION = """\
# Errors

<!-- Written by `python -m services.cli.errors_doc` from the catalogue; do not edit. -->

Every error is a canonical gRPC code with a `google.rpc.Status` in the trailing metadata
(`grpc-status-details-bin`). Program against the `reason` of its `ErrorInfo` (domain `sabot`), never
against a text. Beside it there may be:

- in `ErrorInfo.metadata`: the facts that the text names, such as `table_id` or `would_be_minor`;
- `BadRequest`: each field of the request that is not valid, with the rule that it breaks;
- `PreconditionFailure`: each limit that bets would break, with its arithmetic; `ErrorInfo` names
  the first of them;
- `RetryInfo`: how long to wait before the same request may be sent again;
- `LocalizedMessage` in English and in French; the language of the metadata `accept-language` comes
  first. Where the English text and a translation differ, the English text prevails, and every
  French text says so.

What to do, by the column *again*:

- *never*: the same request will be refused again. It changed nothing, unless its text says
  otherwise.
- *same id*: it is not known whether the request takes effect. Send the same request again with the
  same request id until there is an answer, or ask `GetRequest`. Never take a new id: that would be
  a second request.
- *later*: nothing was done. Send it again after the delay of `RetryInfo`; the request id may stay.

Statuses without an `ErrorInfo` come from gRPC itself, on this side or the other:

| code | when | again |
|---|---|---|
| `DEADLINE_EXCEEDED` | the deadline passed first | same id |
| `UNAVAILABLE` | the connection broke, or there is none | same id |
| `CANCELLED` | the caller gave up | same id |
| `RESOURCE_EXHAUSTED` | the request is larger than 1 MiB | never |
| `RESOURCE_EXHAUSTED` | too many calls at once; nothing was done | later |
| `UNIMPLEMENTED` | there is no such method | never |
"""

_AGAIN = {Retry.NEVER: "never", Retry.SAME_ID: "same id", Retry.LATER: "later"}


def document() -> str:
    """The whole of docs/errors.md."""
    parts = [INTRODUCTION]
    for title, reasons in SECTIONS.items():
        parts.append(f"\n## {title}\n\n| reason | code | again | text |\n|---|---|---|---|\n")
        parts += [_row(reason) for reason in sorted(reasons, key=lambda each: each.name)]
    return "".join(parts)


def _row(reason: Reason) -> str:
    again = _AGAIN[reason.retry]
    if reason.retry is Retry.LATER:
        again += f", {reason.retry_ms} ms"
    text = f"{reason.english}<br>*{reason.french}{FRENCH_NOTE}*"
    return f"| `{reason.name}` | `{reason.code.name}` | {again} | {text} |\n"


def main() -> None:
    """Write the document into the tree that this is run in."""
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/errors.md")
    target.write_text(document(), encoding="utf-8")


if __name__ == "__main__":
    main()
