"""The auditor's check of corrections: two persons, facts that stand in the log, one new settlement
by the round's own rules, and differences that balance (rules INC-3, INC-4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sabot.audit.v1 import correction_events_pb2 as audit
from sabot.settlement.v1 import correction_events_pb2 as settlements
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.table.v1 import correction_events_pb2 as corrections
from sabot.wallet.v1 import correction_events_pb2 as wallet
from services.simulator.audit_judge import Due, due
from services.simulator.audit_money import BetRecord, MoneyAuditor
from services.simulator.facts import Fact, Findings, Place

Owner = tuple[str, str]


@dataclass(slots=True)
class Course:
    """A correction, as far as it has come."""

    proposed: corrections.CorrectionProposed
    proposed_by: str
    approved_by: str = ""
    confirmed: bool = False
    stands: bool = False
    closed: bool = False
    accounts: int = 0
    posted: int = 0


class CorrectionsAuditor:
    """See the module. `money`: the ledger and the bets that it knows."""

    def __init__(self, findings: Findings, money: MoneyAuditor) -> None:
        self.findings = findings
        self.money = money
        self._courses: dict[str, Course] = {}
        self._stands: dict[Place, tuple[str, Any]] = {}
        """What stands where, of the log's answers: service and body."""
        self._recalled: dict[str, list[settlements.RecalledFact]] = {}
        self._versions: dict[str, int] = {}
        """By round, its outcome in force."""
        self._in_force: dict[str, Due] = {}
        """By bet, what it came to by corrections."""
        self._due: dict[tuple[str, Owner], settlements.BetsCorrected] = {}

    def see(self, fact: Fact) -> None:
        """Take the next event."""
        body, place = fact.body, fact.place
        if not fact.is_input:
            self._stands[place] = (fact.service, body)
        match body:
            case corrections.CorrectionProposed():
                known = body.correction_id in self._courses
                self.findings.check(not known, place, f"{body.correction_id} is proposed twice")
                self._courses[body.correction_id] = Course(body, fact.actor)
            case corrections.CorrectionApproved():
                self._approved(fact, body)
            case settlements.RecallFacts():
                self._recalled.setdefault(body.correction_id, []).extend(body.facts)
            case audit.FactsConfirmed():
                self._courses[body.correction_id].confirmed = True
                for told in self._recalled.pop(body.correction_id):
                    self._true(place, told)
            case corrections.ResultCorrected():
                self._stands_now(fact, body)
            case settlements.BetsCorrected():
                self._settled_again(place, body)
            case settlements.RoundCorrected():
                one = self._courses[body.correction_id]
                self.findings.check(
                    one.accounts == body.accounts, place, f"{body.correction_id}: other accounts"
                )
            case wallet.CorrectionPosted():
                self._posted(place, body)
            case wallet.CorrectionsPosted():
                one = self._courses[body.correction_id]
                self.findings.check(
                    one.posted == one.accounts, place, f"{body.correction_id} is posted in part"
                )
            case wallet.ReceivableSettled():
                if body.at_partner:
                    self.money.post(
                        place,
                        ("external", body.partner_id, "", -body.amount_minor),
                        ("receivable", body.partner_id, body.account_id, body.amount_minor),
                    )
            case corrections.CorrectionClosed():
                self._closed(place, body)
            case _:
                pass

    def _approved(self, fact: Fact, body: corrections.CorrectionApproved) -> None:
        one = self._courses[body.correction_id]
        name = body.correction_id
        self.findings.check(
            one.proposed_by != fact.actor, fact.place, f"{name} is approved by its proposer"
        )
        self.findings.check(not one.approved_by, fact.place, f"{name} is approved twice")
        one.approved_by = fact.actor

    def _true(self, place: Place, told: settlements.RecalledFact) -> None:
        """A fact that was confirmed stands where it is said to."""
        at = (told.position.sequence, told.position.index)
        service, body = self._stands.get(at, ("", None))
        same = body is not None and (
            service == told.type.split(".")[1]
            and str(body.DESCRIPTOR.full_name) == told.type
            and body.SerializeToString(deterministic=True) == told.body
        )
        self.findings.check(same, place, f"{told.type} at {at} is confirmed, and is not there")

    def _stands_now(self, fact: Fact, body: corrections.ResultCorrected) -> None:
        one = self._courses[body.correction_id]
        version = self._versions.get(body.round_id, 0) + 1
        self.findings.check(
            one.approved_by and one.confirmed and not one.stands and not one.closed,
            fact.place,
            f"{body.correction_id} stands without approval or facts, or twice",
        )
        self.findings.check(
            (body.version, body.outcome) == (version, one.proposed.outcome),
            fact.place,
            f"{body.correction_id} stands as another one than was proposed",
        )
        one.stands = True
        self._versions[body.round_id] = body.version

    def _settled_again(self, place: Place, body: settlements.BetsCorrected) -> None:
        """By the rules in the round's own `TableOpened`, against what was in force."""
        one = self._courses[body.correction_id]
        round_ = self.money.rounds[body.round_id]
        owner = (body.partner_id, body.account_id)
        outcome = one.proposed.outcome
        self.findings.check(one.stands, place, f"{body.correction_id} is settled before it stands")
        on = {
            bet.bet_id: bet
            for bet in round_.bets.values()
            if bet.owner == owner and bet.settled is not None
        }
        told = {bet.after.bet_id: bet for bet in body.bets}
        self.findings.check(told.keys() == on.keys(), place, f"{owner}: other bets are corrected")
        payout = commission = 0
        for bet_id, bet in told.items():
            record = on.get(bet_id)
            if record is None or round_.opened is None or round_.result is None:
                continue
            rule_set = round_.opened.spec.rule_set
            first = due(rule_set, round_.result, record.bet, record.position, record.stake)
            was = self._in_force.get(bet_id, first)
            now = (
                _void(record)
                if outcome.voided
                else due(rule_set, outcome.result, record.bet, record.position, record.stake)
            )
            pair = (_due_of(bet.before), _due_of(bet.after))
            self.findings.check(
                pair == (was, now), place, f"bet {bet_id} is corrected {pair}, due is {(was, now)}"
            )
            self._in_force[bet_id] = now
            payout += now.payout - was.payout
            commission += now.commission - was.commission
        self.findings.check(
            (body.payout_delta_minor, body.commission_delta_minor) == (payout, commission),
            place,
            f"{owner} changes by {body.payout_delta_minor}, due is {payout}",
        )
        one.accounts += 1
        self._due[body.correction_id, owner] = body

    def _posted(self, place: Place, body: wallet.CorrectionPosted) -> None:
        owner = (body.partner_id, body.account_id)
        told = self._due.pop((body.correction_id, owner), None)
        self._courses[body.correction_id].posted += 1
        self.findings.check(
            told is not None
            and (told.payout_delta_minor, told.commission_delta_minor)
            == (body.payout_delta_minor, body.commission_delta_minor),
            place,
            f"{owner} is posted {body.payout_delta_minor} without such a correction",
        )
        cash = self.money.balances["cash", *owner]
        paid, kept = body.payout_delta_minor, body.commission_delta_minor
        # What a seamless partner's account gives back is owed until its wallet has taken it.
        short = max(0, -paid) if body.due else max(0, -paid - cash)
        self.findings.check(
            body.receivable_minor == short,
            place,
            f"{owner} with {cash} gives {-paid} back and owes {body.receivable_minor}",
        )
        self.money.post(
            place,
            ("corrections", body.partner_id, "", -(paid + kept)),
            (
                ("due", body.partner_id, "", paid + body.receivable_minor)
                if body.due
                else ("cash", *owner, paid + body.receivable_minor)
            ),
            ("receivable", *owner, -body.receivable_minor),
            ("commission", body.partner_id, "", kept),
        )

    def _closed(self, place: Place, body: corrections.CorrectionClosed) -> None:
        one = self._courses[body.correction_id]
        self.findings.check(not one.closed, place, f"{body.correction_id} ends twice")
        posted = body.end == corrections.CORRECTION_END_POSTED
        self.findings.check(
            posted == one.stands,
            place,
            f"{body.correction_id} stands: {one.stands}, ends {body.end}",
        )
        one.closed = True

    def finish(self, place: Place) -> None:
        """The log ends here: what was approved came to its end."""
        for name, one in self._courses.items():
            self.findings.check(
                one.closed or not one.approved_by, place, f"{name} was approved and has no end"
            )


def _void(record: BetRecord) -> Due:
    return Due(settlement.OUTCOME_VOIDED, 0, record.stake, 0)


def _due_of(bet: settlement.SettledBet) -> Due:
    return Due(bet.outcome, bet.profit_minor, bet.payout_minor, bet.commission_minor)
