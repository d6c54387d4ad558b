"""Faults of partners' wallets, as changes of the example's text, and the cases that must find them.

Each is a fault that somebody's wallet has had: a check that was left out, a column too short, a
read that was stale, state that was kept in memory.
"""

from __future__ import annotations

import importlib
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from services import partner_wallet_example
from tests.contract.partner_wallets import RunningWallet

EXAMPLE = Path(partner_wallet_example.__file__).parent
STALE_S = 0.2


@dataclass(frozen=True, slots=True)
class Fault:
    """What is changed in which module, and what certification must say of it."""

    name: str
    module: str
    changes: tuple[tuple[str, str], ...]
    cases: frozenset[str]


@contextmanager
def planted(fault: Fault, folder: Path) -> Iterator[RunningWallet]:
    """A wallet like the example, but for the fault."""
    package = "wallet_" + fault.name.replace("-", "_")
    copy = folder / "planted" / package
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for path in copy.glob("*.py"):
        text = path.read_text()
        if path.stem == fault.module:
            for old, new in fault.changes:
                assert text.count(old) == 1, f"{fault.name}: {text.count(old)} times {old!r}"
                text = text.replace(old, new)
        path.write_text(text.replace("services.partner_wallet_example", package))
    sys.path.insert(0, str(copy.parent))
    try:
        wallet = RunningWallet(folder)
        wallet.book_type = importlib.import_module(f"{package}.book").Book
        wallet.guard_type = importlib.import_module(f"{package}.guard").Guard
        wallet.servicer_type = importlib.import_module(f"{package}.servicer").PartnerWallet
        yield wallet
    finally:
        sys.path.remove(str(copy.parent))
        for name in [one for one in sys.modules if one.partition(".")[0] == package]:
            del sys.modules[name]


def _fault(name: str, module: str, old: str, new: str, *cases: str) -> Fault:
    return Fault(name, module, ((old, new),), frozenset(cases))


def _also(fault: Fault, old: str, new: str) -> Fault:
    return Fault(fault.name, fault.module, (*fault.changes, (old, new)), fault.cases)


_FIRST = 'known = self._known("Debit", request)'
_CREDIT_CHECK = """        if account.currency_code != request.amount.currency_code:
            return wallet.CREDIT_REFUSAL_CURRENCY
"""
_DEBIT_CHECK = """        if account.currency_code != request.amount.currency_code:
            return wallet.DEBIT_DECLINE_CURRENCY
"""
_MOVE = "            (moved_minor, request.account_id),\n"


def _checked_before(check: str, condition: str, answer: str) -> str:
    return f"        if {condition}:\n            return wallet.{answer}\n{check}"


STALE_MOVEMENTS = Fault(
    "stale-movements",
    "book",
    (
        (
            '        row = self._sql.execute(\n            "SELECT number, kind',
            (
                "        import time\n"
                '        seen = self.__dict__.setdefault("seen", {})\n'
                "        now = time.monotonic()\n"
                f"        if transaction_id in seen and now - seen[transaction_id] < {STALE_S}:\n"
                "            return None\n"
                "        row = self._sql.execute(\n"
                '            "SELECT number, kind'
            ),
        ),
        (
            "        return Movement(*row) if row else None",
            (
                "        if row is None:\n"
                "            seen[transaction_id] = now\n"
                "        return Movement(*row) if row else None"
            ),
        ),
        ('"INSERT INTO movements', '"INSERT OR IGNORE INTO movements'),
        (
            '"INSERT INTO credited_debits VALUES',
            '"INSERT OR IGNORE INTO credited_debits VALUES',
        ),
    ),
    frozenset({"debit-at-once", "credit-at-once", "rollback-at-once"}),
)
"""Whether a call came before is asked of a copy of the books that lags behind."""
LOOKS_THEN_TAKES = _fault(
    "looks-then-takes", "servicer",
    "        return await self._decided(self._book.debit, request, context)\n",
    "        new = self._book._movement(request.transaction_id) is None\n"
    "        await asyncio.sleep(0.005)\n"
    "        def take(request):\n"
    "            if new:\n"
    "                self._book._sql.execute(\n"
    '                    "UPDATE movements SET transaction_id = transaction_id || number"\n'
    '                    " WHERE transaction_id = ?", (request.transaction_id,))\n'
    "            return self._book.debit(request)\n"
    "        return await self._decided(take, request, context)\n",
    "debit-at-once",
)  # fmt: skip
"""Whether a debit came before is asked first, and it is taken in a second step."""
NO_TOMBSTONES = _fault(
    "no-tombstones", "book",
    "        return found.fetchone() is not None\n",
    "        return found.fetchone() is not None and self._movement(debit_id) is not None\n",
    "rollback-before-debit", "rollback-unknown-account", "restart-tombstone",
    "debit-and-rollback-cross", "debit-cancelled-rolled-back",
)  # fmt: skip
"""The rollback of a debit that did not come yet is done, and forgotten."""
FORGETS_AT_RESTART = _fault(
    "forgets-at-restart", "book",
    "executescript(SCHEMA)", 'executescript(SCHEMA + "DELETE FROM movements;")',
    "restart-debit", "restart-credit", "restart-rollback", "restart-declined",
    "restart-other-content", "restart-under-way",
)  # fmt: skip
"""Which calls there were is as good as kept in memory: each is carried out again."""
NO_SIGNATURE = _fault(
    "no-signature", "guard",
    'options={"require": CLAIMS}',
    'options={"require": CLAIMS, "verify_signature": False, "verify_exp": True, '
    '"verify_aud": True, "verify_iss": True}',
    "token-of-another-key", "token-unsigned",
)  # fmt: skip
"""What a token says is read and believed, whoever signed it."""

FAULTS = (
    LOOKS_THEN_TAKES,
    STALE_MOVEMENTS,
    NO_TOMBSTONES,
    FORGETS_AT_RESTART,
    NO_SIGNATURE,
    # ---- debits
    _fault(
        "takes-nothing", "book",
        "moved = -request.amount.minor_units if taken else 0", "moved = 0",
        "debit", "debit-repeated", "debit-further-stake", "debit-many-bets", "debit-cancelled",
    ),
    _fault(
        "leaves-a-unit", "book",
        "least = LEAST_MINOR if may_overdraw else 0", "least = LEAST_MINOR if may_overdraw else 1",
        "debit-of-all",
    ),
    _fault(
        "lends-a-unit", "book",
        "least = LEAST_MINOR if may_overdraw else 0", "least = LEAST_MINOR if may_overdraw else -1",
        "debit-of-more",
    ),
    _fault(
        "yen-have-cents", "book", _MOVE,
        '            (moved_minor * (100 if request.amount.currency_code == "JPY" else 1),\n'
        "             request.account_id),\n",
        "debit-units",
    ),
    _fault(
        "repeats-are-news", "book",
        "                duplicate=known is not None,\n            )\n\n    def _decline",
        "                duplicate=False,\n            )\n\n    def _decline",
        "debit-repeated", "restart-debit", "debit-at-once",
    ),
    _fault(
        "declined-and-forgotten", "book",
        'number = self._record("Debit", request, moved, outcome, decline)',
        'number = self._record("Debit", request, moved, outcome, decline) if taken else 0',
        "debit-declined-for-good",
    ),
    _fault(
        "ids-without-content", "book",
        "(known.kind, known.content) != (kind, _content(request))", "known.kind != kind",
        "debit-other-amount", "debit-other-account", "debit-other-content",
        "credit-other-amount", "rollback-other-content", "restart-other-content",
    ),
    _fault(
        "ids-by-kind", "book",
        "(known.kind, known.content) != (kind, _content(request))",
        "known.kind == kind and known.content != _content(request)",
        "debit-id-of-a-credit", "rollback-id-of-debit",
    ),
    _fault(
        "no-such-account-is-other", "book",
        "return wallet.DEBIT_DECLINE_ACCOUNT_UNKNOWN", "return wallet.DEBIT_DECLINE_OTHER",
        "debit-unknown-account",
    ),
    _fault(
        "blocks-nobody", "book", "if account.blocked and not correction:", "if False:",
        "debit-blocked-account",
    ),
    _fault("takes-any-currency", "book", _DEBIT_CHECK, "", "debit-other-currency"),
    _fault(
        "reads-anything", "servicer", "protovalidate.validate(request)", "pass",
        "debit-zero", "debit-negative", "debit-without-reason", "debit-without-id",
        "debit-bad-ids", "credit-negative", "credit-amount-and-reason",
    ),
    _fault(
        "wraps", "book",
        "if account.balance_minor - request.amount.minor_units < least:",
        "if (account.balance_minor - request.amount.minor_units) % 2**64 < least:",
        "debit-greatest", "debit-of-more",
    ),
    _fault(
        "ids-too-short", "book",
        'round_id, outcome, refusal FROM movements WHERE transaction_id = ?"',
        'round_id, outcome, refusal FROM movements"\n'
        '            " WHERE substr(transaction_id, 1, 100) = substr(?, 1, 100)"',
        "debit-longest-ids",
    ),
    _fault(
        "ids-without-case", "schema",
        "transaction_id TEXT NOT NULL UNIQUE", "transaction_id TEXT NOT NULL COLLATE NOCASE UNIQUE",
        "debit-case-of-ids",
    ),
    _fault(
        "few-bets", "book", _DEBIT_CHECK,
        _checked_before(_DEBIT_CHECK, "len(request.bets) > 500", "DEBIT_DECLINE_LIMIT"),
        "debit-many-bets",
    ),
    _fault(
        "one-stake-a-round", "book", _DEBIT_CHECK,
        _checked_before(
            _DEBIT_CHECK,
            "request.reason == wallet.DEBIT_REASON_FURTHER_STAKE",
            "DEBIT_DECLINE_OTHER",
        ),
        "debit-further-stake",
    ),
    _fault(
        "answers-for-another", "book",
        "                transaction_id=request.transaction_id,\n"
        "                outcome=wallet.DebitOutcome",
        '                transaction_id="another",\n                outcome=wallet.DebitOutcome',
        "debit",
    ),
    # ---- credits
    _fault(
        "credits-twice", "book",
        'known = self._known("Credit", request)',
        'known = None\n            self._sql.execute("DELETE FROM movements WHERE transaction_id'
        " = ? AND kind = 'Credit'\", (request.transaction_id,))",
        "credit-repeated", "credit-at-once", "restart-credit", "credit-cancelled",
        "credit-other-amount",
    ),
    _fault(
        "credits-half", "book",
        'self._record("Credit", request, request.amount.minor_units, answer.outcome)',
        'self._record("Credit", request, request.amount.minor_units // 2, answer.outcome)',
        "credit", "credit-for-several", "different-at-once", "credit-cancelled",
    ),
    _fault(
        "credits-no-nothing", "book", _CREDIT_CHECK,
        _checked_before(_CREDIT_CHECK, "not request.amount.minor_units", "CREDIT_REFUSAL_OTHER"),
        "credit-nothing",
    ),
    _fault(
        "one-debit-a-credit", "book", _CREDIT_CHECK,
        _checked_before(
            _CREDIT_CHECK, "len(request.debit_transaction_ids) > 1", "CREDIT_REFUSAL_OTHER"
        ),
        "credit-for-several",
    ),
    _fault(
        "pays-for-anything", "book",
        "if not all(self._is_taken(one, request) for one in request.debit_transaction_ids):",
        "if False:",
        "credit-without-debit", "credit-of-declined", "credit-of-rolled-back",
        "credit-of-another-account", "credit-of-another-round",
    ),
    _fault(
        "refused-for-good", "book",
        "answer.refusal = wallet.CreditRefusal.ValueType(refusal)",
        "answer.refusal = wallet.CreditRefusal.ValueType(refusal)\n"
        '                self._record("Credit", request, 0, answer.outcome, refusal)',
        "credit-refused-not-for-good",
    ),
    _fault(
        "credits-nobody", "book",
        "return wallet.CREDIT_REFUSAL_ACCOUNT_UNKNOWN", "return wallet.CREDIT_REFUSAL_OTHER",
        "credit-unknown-account",
    ),
    _fault("gives-any-currency", "book", _CREDIT_CHECK, "", "credit-other-currency"),
    _fault(
        "floats", "book", _MOVE,
        "            (int(float(moved_minor)), request.account_id),\n",
        "credit-beyond-floats",
    ),
    _fault(
        "overflows", "book",
        "if account.balance_minor + request.amount.minor_units > GREATEST_MINOR:\n"
        "            return wallet.CREDIT_REFUSAL_BALANCE_TOO_LARGE",
        "if False:\n            return wallet.CREDIT_REFUSAL_BALANCE_TOO_LARGE",
        "credit-greatest",
    ),
    _fault(
        "returns-whole-or-not", "book",
        "request.amount.minor_units > self._returnable(request)",
        "request.amount.minor_units != self._returnable(request)",
        "return-in-part", "return-whole",
    ),
    _fault(
        "returns-anything", "book",
        "request.amount.minor_units > self._returnable(request)", "False",
        "return-too-much",
    ),
    _fault(
        "corrects-one-way", "book", _CREDIT_CHECK,
        _checked_before(
            _CREDIT_CHECK,
            "request.reason == wallet.CREDIT_REASON_CORRECTION",
            "CREDIT_REFUSAL_OTHER",
        ),
        "correction",
    ),
    _fault(
        "credits-no-blocked", "book", _CREDIT_CHECK,
        _checked_before(_CREDIT_CHECK, "account.blocked", "CREDIT_REFUSAL_OTHER"),
        "credit-blocked-account",
    ),
    # ---- rollbacks
    _fault(
        "gives-half-back", "book",
        "moved = debit.amount_minor", "moved = debit.amount_minor // 2",
        "rollback", "rollback-repeated", "rollback-cancelled",
    ),
    _also(
        _fault(
            "gives-back-twice", "book",
            "if not refusal and not self._is_cancelled(request.debit_transaction_id):",
            "if not refusal:",
            "rollback-twice", "rollbacks-at-once", "restart-rollback",
        ),
        '"INSERT INTO cancelled_debits', '"INSERT OR IGNORE INTO cancelled_debits',
    ),
    _fault(
        "taken-although-rolled-back", "book",
        "if cancelled:\n                    # Whatever",
        "if False:\n                    # Whatever",
        "debit-after-rollback", "debit-and-rollback-cross",
    ),
    _fault(
        "gives-back-what-was-declined", "book",
        "if debit is not None and debit.outcome == wallet.DEBIT_OUTCOME_TAKEN:",
        "if debit is not None:",
        "rollback-of-declined",
    ),
    _fault(
        "no-account-no-rollback", "book",
        "        if debit is None:\n            return wallet.ROLLBACK_REFUSAL_UNSPECIFIED\n",
        "        if self.account(request.account_id) is None:\n"
        "            return wallet.ROLLBACK_REFUSAL_OTHER\n"
        "        if debit is None:\n            return wallet.ROLLBACK_REFUSAL_UNSPECIFIED\n",
        "rollback-unknown-account",
    ),
    _fault(
        "rolls-back-any-amount", "book",
        "return wallet.ROLLBACK_REFUSAL_MISMATCH", "return wallet.ROLLBACK_REFUSAL_UNSPECIFIED",
        "rollback-mismatch",
    ),
    _fault(
        "refuses-and-gives-back", "book",
        "if not refusal and not self._is_cancelled(request.debit_transaction_id):",
        "if not self._is_cancelled(request.debit_transaction_id):",
        "rollback-after-settlement",
    ),
    _also(
        _fault(
            "takes-what-is-there", "book",
            "moved = -request.amount.minor_units if taken else 0",
            "moved = -min(request.amount.minor_units, getattr(self._balance(request.account_id),"
            " 'minor_units', 0)) if taken else 0",
            "overdraw",
        ),
        "least = LEAST_MINOR if may_overdraw else 0",
        "least = LEAST_MINOR if correction else 0",
    ),
    # ---- who calls
    _fault(
        "no-token", "guard", 'return "one bearer token is needed"', "return None",
        "token-missing", "token-no-token", "token-of-every-method",
    ),
    _fault(
        "any-time", "guard",
        'options={"require": CLAIMS}', 'options={"require": CLAIMS, "verify_exp": False}',
        "token-expired",
    ),
    _fault(
        "any-life", "guard",
        'if claims["exp"] - claims["iat"] > LONGEST_LIFE_S:', "if False:",
        "token-of-long-life",
    ),
    _fault(
        "any-partner", "guard",
        'options={"require": CLAIMS}', 'options={"require": CLAIMS, "verify_aud": False}',
        "token-for-another-partner",
    ),
    _fault(
        "any-cell", "guard",
        'options={"require": CLAIMS}', 'options={"require": CLAIMS, "verify_iss": False}',
        "token-of-another-cell",
    ),
    _fault(
        "any-method", "guard", '"method": method, ', "",
        "token-for-another-method", "token-of-every-method",
    ),
    _fault(
        "any-transaction", "guard", ', "transaction_id": transaction_id}', "}",
        "token-for-another-call",
    ),
    _fault(
        "any-account", "guard", '"sub": account_id, ', "",
        "token-for-another-account",
    ),
    _fault(
        "remembers-strangers", "servicer",
        "        if refused:\n",
        "        if refused and isinstance(request, wallet.DebitRequest):\n"
        "            await self._decided(self._book.debit, request, context)\n"
        "        if refused:\n",
        "token-missing", "token-expired",
    ),
    _fault(
        "broken-instead-of-unknown", "servicer",
        "grpc.StatusCode.NOT_FOUND", "grpc.StatusCode.INTERNAL",
        "balance-unknown-account",
    ),
    # ---- calls that cross
    _also(
        _fault(
            "stale-balances", "book",
            '        row = self._sql.execute(\n            "SELECT account_id, currency_code',
            "        import time\n"
            '        seen = self.__dict__.setdefault("balances", {})\n'
            "        now = time.monotonic()\n"
            f"        if account_id in seen and now - seen[account_id][0] < {STALE_S}:\n"
            "            return seen[account_id][1]\n"
            '        row = self._sql.execute(\n            "SELECT account_id, currency_code',
            "overdraw-at-once",
        ),
        "        return Account(row[0], row[1], row[2], bool(row[3])) if row else None",
        "        if row:\n"
        "            seen[account_id] = (now, Account(row[0], row[1], row[2], bool(row[3])))\n"
        "        return seen[account_id][1] if row else None",
    ),
    _also(
        _fault(
            "undoes-for-who-went-away", "servicer",
            "            return await loop.run_in_executor(self._thread, decide, question)\n",
            "            decided = await loop.run_in_executor(self._thread, decide, question)\n"
            "            await asyncio.sleep(0.003)\n"
            "            return decided\n",
            "debit-cancelled", "credit-cancelled", "rollback-cancelled",
            "debit-cancelled-rolled-back",
        ),
        "        except IdInUse as error:\n",
        "        except asyncio.CancelledError:\n"
        "            self._book._sql.execute(\n"
        '                "UPDATE accounts SET balance_minor = balance_minor - coalesce((SELECT"\n'
        '                " moved_minor FROM movements WHERE transaction_id = ?), 0)"\n'
        '                " WHERE account_id = ?",\n'
        "                (getattr(question, 'transaction_id', ''),\n"
        "                 getattr(question, 'account_id', '')))\n"
        "            raise\n"
        "        except IdInUse as error:\n",
    ),
    _fault(
        "balances-of-yesterday", "book",
        "executescript(SCHEMA)",
        'executescript(SCHEMA + "UPDATE accounts SET balance_minor = opened_minor;")',
        "restart-balance",
    ),
)  # fmt: skip
"""All of them; together they fail every case."""
