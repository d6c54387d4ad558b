"""What a case is, and lists of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from services.certify.kit import Kit

Work = Callable[["Kit"], Awaitable[None]]
InTwoHalves = Callable[["Kit"], AsyncGenerator[None]]


class State(Enum):
    """What became of a case."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_TRIED = "not tried"


@dataclass(frozen=True, slots=True)
class Case:
    """One thing that a wallet must do right."""

    name: str
    title: str
    work: Work | None = None
    """Raises Fault where the wallet does it wrong, NotTried where it cannot be tried."""
    halves: InTwoHalves | None = None
    """Yields once, where the wallet is restarted."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a case, and why where it did not pass."""

    case: Case
    state: State
    why: str = ""


class NotTried(Exception):
    """Something is missing to try a case; the message says what."""


class NotReady(Exception):
    """The wallet cannot be tried at all; the message says why."""


class CaseList(list[Case]):
    """Cases in the order in which they run; those with a restart run after all others."""

    def case(self, name: str) -> Callable[[Work], Work]:
        """Add a case; its docstring is its title."""

        def added(work: Work) -> Work:
            self.append(Case(name, _title(work), work=work))
            return work

        return added

    def restarted(self, name: str) -> Callable[[InTwoHalves], InTwoHalves]:
        """Add a case during which the wallet is restarted, where it yields."""

        def added(halves: InTwoHalves) -> InTwoHalves:
            self.append(Case(name, _title(halves), halves=halves))
            return halves

        return added


def _title(work: Callable[..., object]) -> str:
    return " ".join((work.__doc__ or "").partition("\n\n")[0].split()).removesuffix(".")
