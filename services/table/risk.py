"""The shell that closes kinds of bet whose exact return is over a table's line.

When a round opens at a table with a line (`TableSpec.max_return_per_mille`) it works out what every
bet returns at what is left of the shoe, beside the loop, and asks the core to close those over the
line. It looks at the core's state, so after any crash it goes on where the log stands; the core
takes the first of several replicas and ignores the rest. Bets that came in before stand."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor, Future
from fractions import Fraction

from google.protobuf.message import Message

from sabot.log.v1 import entry_pb2
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import risk_events_pb2 as risk
from services.kernel.event import Position
from services.odds.compositions import CardImpossible, TooFewCards
from services.odds.outcomes import text_of
from services.table.domain.risk import PER_MILLE
from services.table.domain.state import Phase, Round, Table, TableState
from services.table.live_odds import Left, left_at

STANDBY_US = 1_000_000
"""How much later a replica acts that did not write the table's last answers."""
AGAIN_US = 2_000_000
"""What was told and is not in the state is told again after this: its entry may be lost."""


class _Watched:
    """A round at a table with a line."""

    def __init__(self, since_us: int) -> None:
        self.since_us = since_us
        self.found: Future[risk.CloseBets | None] | None = None
        self.told_us: int | None = None


class Risk:
    """See the module; a `services.kernel.shells.Shell`."""

    service = "table"
    wakes: frozenset[type[Message]] = frozenset({table.RoundOpened})
    since = 1

    def __init__(self, executor: Executor) -> None:
        """`executor`: where odds are worked out."""
        self._executor = executor
        self._watched: dict[str, _Watched] = {}
        self.problems: dict[str, str] = {}

    def poll(
        self, state: TableState, now_us: int, leading: bool, answered: Position | None = None
    ) -> Sequence[Message]:
        """What shall close, as soon as it is worked out. `answered`: rounds that opened in answer
        to what stands there or later are not in the log yet."""
        told: list[Message] = []
        watched: dict[str, _Watched] = {}
        self.problems = {}
        for table_id, one in state.tables.items():
            running = one.running
            if running is None or not _is_open_to_risk(one, running):
                continue
            if answered is not None and running.opened_by >= answered:
                continue
            before = self._watched.get(running.round_id)
            this = watched[running.round_id] = before or _Watched(now_us)
            closing = self._closing(table_id, one, running, this)
            wait_us = 0 if leading else STANDBY_US
            if closing is None or now_us < this.since_us + wait_us:
                continue
            if this.told_us is None or this.told_us + AGAIN_US <= now_us:
                this.told_us = now_us
                told.append(closing)
        self._watched = watched
        return told

    def _closing(
        self, table_id: str, one: Table, running: Round, this: _Watched
    ) -> risk.CloseBets | None:
        """What shall close; None while it is not known, and where nothing shall. That there are no
        odds is a problem, which an operator must look at."""
        if this.found is None:
            try:
                left = left_at(one)
            except CardImpossible as error:
                self.problems[table_id] = f"no odds: {error}"
                return None
            line = Fraction(one.spec.max_return_per_mille, PER_MILLE)
            this.found = self._executor.submit(
                _over, table_id, running.round_id, running.opened_by, left, line
            )
        if not this.found.done():
            return None
        try:
            return this.found.result()
        except TooFewCards as error:
            self.problems[table_id] = f"no odds: {error}"
            return None


def _is_open_to_risk(one: Table, running: Round) -> bool:
    """Whether bets of a round may be closed, and none is yet."""
    line = one.spec.max_return_per_mille
    return bool(line) and running.phase is Phase.BETTING and not running.closed_bets


def _over(
    table_id: str, round_id: str, opened_by: Position, left: Left, line: Fraction
) -> risk.CloseBets | None:
    """Close the kinds whose return is over the line; None where there are none."""
    returns: dict[str, Fraction] = {}
    for one in left.odds():
        returns[one.kind] = max(returns.get(one.kind, one.rtp), one.rtp)
    over = [
        risk.LiveReturn(bet=bet, rtp=text_of(rtp))
        for bet, rtp in sorted(returns.items())
        if rtp > line
    ]
    if not over:
        return None
    return risk.CloseBets(
        table_id=table_id,
        round_id=round_id,
        unseen_cards=left.unseen_cards,
        bets=over,
        ends_offer="insurance" in returns and returns["insurance"] > line,
        asked_by=entry_pb2.Position(
            segment=opened_by.segment, sequence=opened_by.sequence, index=opened_by.index
        ),
    )
