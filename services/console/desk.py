"""What all pages of a console share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from services.console import shown
from services.console.archive import Archive
from services.console.calls import Fleet
from services.console.people import People
from services.console.sessions import Sessions
from services.console.settings import ConsoleSettings
from services.console.telling import Telling

TEMPLATES = Path(__file__).parent / "templates"


@dataclass(slots=True)
class Desk:
    """See the module."""

    settings: ConsoleSettings
    fleet: Fleet
    people: People
    sessions: Sessions
    archive: Archive
    telling: Telling
    templates: Environment


def templates() -> Environment:
    """Templates that escape everything, and break where something is missing."""
    found = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters.update(
        money=shown.money,
        card=shown.card,
        clock=shown.clock,
        moment=shown.moment,
        count=shown.count,
        enum=shown.enum,
    )
    return found
