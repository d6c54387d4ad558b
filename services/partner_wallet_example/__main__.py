"""The example of a partner's wallet, as a process of its own.

It says where it listens in its first line, and ends in order at SIGTERM or Ctrl-C.
"""

from __future__ import annotations

import argparse
import asyncio
import ipaddress
import re
import signal
import sys
from pathlib import Path

import grpc

from sabot.partnerwallet.v1 import conventions_pb2 as conventions
from services.partner_wallet_example.book import Book
from services.partner_wallet_example.guard import Guard
from services.partner_wallet_example.servicer import PartnerWallet

GRACE_S = 5.0
"""How long calls that are on may take at the end: as long as any caller waits for an answer."""
REPEATS = {
    "first-answer": conventions.REPEAT_CONVENTION_FIRST_ANSWER,
    "already-exists": conventions.REPEAT_CONVENTION_ALREADY_EXISTS,
}
SETTLED_ROLLBACKS = {
    "refused": conventions.SETTLED_ROLLBACK_CONVENTION_REFUSED,
    "done": conventions.SETTLED_ROLLBACK_CONVENTION_DONE,
}
OVERDRAWS = {
    "declined": conventions.OVERDRAW_CONVENTION_DECLINED,
    "taken": conventions.OVERDRAW_CONVENTION_TAKEN,
}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="partner_wallet_example", description=__doc__)
    add = parser.add_argument
    add("--listen", default="127.0.0.1:7490", metavar="HOST:PORT", help="port 0: any free one")
    add("--db", type=Path, required=True, metavar="FILE", help="the books, made where missing")
    add("--keys", type=Path, required=True, metavar="FILE", help="the cell's JSON Web Key Set")
    add("--cell", required=True, metavar="NAME", help="the cell that calls")
    add("--partner", required=True, metavar="NAME", help="the partner that this wallet is")
    add("--tls-cert", type=Path, metavar="FILE", help="PEM; needed outside loopback")
    add("--tls-key", type=Path, metavar="FILE", help="PEM")
    add("--open", action="append", default=[], type=_opening, metavar="ID:CURRENCY:MINOR_UNITS",
        help="an account to open, unless it is there; may be repeated")  # fmt: skip
    add("--block", action="append", default=[], metavar="ID", help="an account to block")
    add("--repeats", choices=REPEATS, default="first-answer")
    add("--settled-rollbacks", choices=SETTLED_ROLLBACKS, default="refused")
    add("--overdraws", choices=OVERDRAWS, default="declined")
    return parser.parse_args()


def _opening(text: str) -> tuple[str, str, int]:
    found = re.fullmatch(r"([!-~]{1,64}):([A-Z]{3}):([0-9]{1,18})", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not ID:CURRENCY:MINOR_UNITS")
    return found[1], found[2], int(found[3])


def _credentials(given: argparse.Namespace) -> grpc.ServerCredentials | None:
    """TLS, where there is any. Raises SystemExit where it is missing."""
    if given.tls_cert and given.tls_key:
        return grpc.ssl_server_credentials(
            [(given.tls_key.read_bytes(), given.tls_cert.read_bytes())]
        )
    host = given.listen.rpartition(":")[0].strip("[]")
    try:
        local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    if not local:
        raise SystemExit(f"{host} is not this machine alone: --tls-cert and --tls-key are needed")
    return None


async def serve(given: argparse.Namespace) -> None:
    """Serve until a signal."""
    kinds = conventions.WalletConventions(
        repeats=REPEATS[given.repeats],
        settled_rollbacks=SETTLED_ROLLBACKS[given.settled_rollbacks],
        overdraws=OVERDRAWS[given.overdraws],
    )
    credentials = _credentials(given)
    guard = Guard(given.keys, given.cell, given.partner)
    book = Book(given.db, kinds)
    for account_id, currency_code, balance_minor in given.open:
        book.open_account(account_id, currency_code, balance_minor)
    for account_id in given.block:
        book.block_account(account_id)
    wallet = PartnerWallet(book, guard)
    # Two processes on one port would share the calls between two books.
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    wallet.add_to(server)
    if credentials:
        port = server.add_secure_port(given.listen, credentials)
    else:
        port = server.add_insecure_port(given.listen)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await server.start()
    sys.stdout.write(f"listens on {given.listen.rpartition(':')[0]}:{port}\n")
    sys.stdout.flush()
    await stop.wait()
    await server.stop(GRACE_S)
    wallet.close()
    book.close()


if __name__ == "__main__":
    try:
        asyncio.run(serve(_arguments()))
    except (OSError, RuntimeError, ValueError) as error:
        sys.exit(f"partner_wallet_example: {error}")
