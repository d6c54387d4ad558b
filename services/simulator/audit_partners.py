"""The auditor's check of a seamless partner: stakes stand behind debits that were ordered and
taken, nothing is paid for a stake that was not taken, everything is confirmed in the end, and the
partner's own books say the same of every account.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from sabot.wallet.v1 import correction_events_pb2 as corrections
from sabot.wallet.v1 import events_pb2 as wallet
from sabot.wallet.v1 import seamless_events_pb2 as seamless
from services.simulator.facts import Fact, Findings, Place

Owner = tuple[str, str]
"""(partner, account)"""


@dataclass(slots=True)
class Ordered:
    """A movement that was ordered."""

    kind: str
    owner: Owner
    round_id: str
    minor: int
    due: bool = False
    """Whether it is on the ledger as due to the partner."""
    taken: Place | None = None
    """A debit's: where its stakes were reserved."""
    ended: Place | None = None
    """Where it was decided, confirmed or written off."""
    cancelled: bool = False


class PartnersAuditor:
    """See the module."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.ordered: dict[str, Ordered] = {}
        self.moved: Counter[Owner] = Counter()
        """By account: what it has more at the partner, as our log says."""
        self.confirmed = 0

    def see(self, fact: Fact) -> None:
        """Take the next event."""
        body, place = fact.body, fact.place
        match body:
            case seamless.DebitOrdered():
                self._order(place, "debit", body)
            case seamless.CreditOrdered():
                self._order(place, "credit", body)
                self._named(place, body)
            case seamless.RollbackOrdered():
                self._order(place, "rollback", body)
                self._cancelled(place, body)
            case wallet.StakeReserved():
                self._reserved(place, fact.partner, body)
            case wallet.StakeDeclined():
                self._declined(place, body)
            case seamless.MovementConfirmed():
                one = self._end(place, body.transaction_id)
                if one is not None:
                    due = one.minor if one.due else 0
                    self.findings.check(
                        body.amount_minor == due, place, f"{body.amount_minor} confirmed of {due}"
                    )
                    self.moved[one.owner] += body.amount_minor
                    self.confirmed += 1
            case seamless.MovementWrittenOff() | corrections.CorrectionDebitDeclined():
                self._end(place, body.transaction_id)
            case corrections.ReceivableSettled():
                if body.at_partner:
                    one = self._end(place, body.transaction_id)
                    if one is not None:
                        self.moved[one.owner] -= body.amount_minor
            case _:
                pass

    def _order(
        self,
        place: Place,
        kind: str,
        body: seamless.DebitOrdered | seamless.CreditOrdered | seamless.RollbackOrdered,
    ) -> None:
        name = body.transaction_id
        self.findings.check(name not in self.ordered, place, f"transaction {name} is given twice")
        due = body.booked if isinstance(body, seamless.RollbackOrdered) else kind == "credit"
        owner = (body.partner_id, body.account_id)
        self.ordered[name] = Ordered(kind, owner, body.round_id, body.amount_minor, due)

    def _reserved(self, place: Place, partner: str, body: wallet.StakeReserved) -> None:
        if not body.transaction_ids:
            return
        owner = (partner, body.account_id)
        stakes = sum(bet.stake_minor for bet in body.bets)
        debits = 0
        for name in body.transaction_ids:
            one = self._end(place, name)
            if one is None:
                continue
            same = (one.kind, one.owner, one.round_id) == ("debit", owner, body.round_id)
            self.findings.check(
                same and not one.cancelled, place, f"{name} is no debit for stakes of {owner}"
            )
            one.taken = place
            debits += one.minor
        self.findings.check(
            stakes == debits, place, f"stakes of {stakes} stand behind debits of {debits}"
        )
        self.moved[owner] -= stakes

    def _declined(self, place: Place, body: wallet.StakeDeclined) -> None:
        """What is off is waited for no longer; whoever may have taken it is told to cancel it, but
        for the partner that declined it itself."""
        if not body.HasField("waiting_since"):
            return
        bets = {bet.bet_id for bet in body.bets}
        self.findings.check(bets, place, "no bets are declined")

    def _named(self, place: Place, body: seamless.CreditOrdered) -> None:
        """Nothing is paid but for debits that were taken, of the same account and round."""
        owner = (body.partner_id, body.account_id)
        self.findings.check(
            body.debit_transaction_ids, place, f"{body.transaction_id} is paid for no stake"
        )
        for name in body.debit_transaction_ids:
            one = self.ordered.get(name)
            fits = (
                one is not None
                and one.kind == "debit"
                and one.taken is not None
                and not one.cancelled
                and (one.owner, one.round_id) == (owner, body.round_id)
            )
            self.findings.check(
                fits, place, f"{body.transaction_id} pays for {name}, which is {one}"
            )

    def _cancelled(self, place: Place, body: seamless.RollbackOrdered) -> None:
        one = self.ordered.get(body.debit_transaction_id)
        fits = one is not None and one.kind == "debit" and not one.cancelled
        self.findings.check(
            fits, place, f"{body.debit_transaction_id} is rolled back, and is {one}"
        )
        if one is not None:
            self.findings.check(
                (one.taken is not None) == body.booked and one.minor == body.amount_minor,
                place,
                f"{body.debit_transaction_id} is rolled back otherwise than taken",
            )
            one.cancelled = True

    def _end(self, place: Place, name: str) -> Ordered | None:
        one = self.ordered.get(name)
        self.findings.check(one is not None, place, f"transaction {name} was never ordered")
        if one is not None:
            self.findings.check(one.ended is None, place, f"{name} ended at {one.ended} already")
            one.ended = place
        return one

    def finish(self, place: Place, books: Mapping[Owner, int]) -> None:
        """The log ends here. `books`: what each account has more by the partner's own."""
        for name, one in self.ordered.items():
            self.findings.check(
                one.kind == "debit" or one.ended is not None,
                place,
                f"{one.kind} {name} of {one.minor} was never confirmed",
            )
        for owner in {**books, **self.moved}:
            here, there = self.moved[owner], books.get(owner, 0)
            self.findings.check(
                here == there,
                place,
                f"{owner[0]}/{owner[1]} moved by {there} in its partner's books, by {here} in ours",
            )
