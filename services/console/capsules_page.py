"""Capsules: an incident as one file, packed from the log, and opened again from anybody's file."""

from __future__ import annotations

import asyncio
import re
import tempfile
from pathlib import Path
from typing import Any

from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from services.cli.capsule import make_capsule
from services.cli.capsule_open import Opened, open_capsule
from services.cli.capsule_read import read_capsule
from services.cli.find import event_json
from services.cli.incident_span import Wanted
from services.console.web import Refusal, Visit, change, page
from services.kernel.tokens import Role

MOST_BYTES = 64 * 1024 * 1024
"""Of a capsule that is opened here; a round's has a few hundred kilobytes. For greater ones there
is `sabot capsule open`."""
SHOWN_EVENTS = 1000
PACKERS = (Role.SUPERVISOR, Role.AUDITOR)
_PARTNER = re.compile(r"([a-z0-9][a-z0-9-]{0,31})?")
_packing = asyncio.Semaphore(2)
"""Packing and opening fold states: two at a time leave the pages their turn."""


async def index(visit: Visit) -> Response:
    """Where a file is opened."""
    return visit.page("capsules.html")


async def pack(visit: Visit) -> Response:
    """A round as a capsule; with `?partner=` one with nothing of others' accounts in it."""
    round_id, partner = visit.path("round_id"), visit.query("partner")
    if not _PARTNER.fullmatch(partner):
        raise Refusal(404, "refused.nothing", asked=partner[:40])
    archive = visit.desk.archive
    folder = Path(tempfile.mkdtemp(prefix="sabot-capsule-"))
    path = folder / "capsule"
    try:
        async with _packing:
            await make_capsule(
                await archive.log(),
                Wanted(round_id=round_id, partner=partner),
                path,
                archive.data,
                archive.accepted(),
            )
    except BaseException:
        _remove(folder)
        raise
    name = f"{round_id}{f'-{partner}' if partner else ''}.capsule"
    return FileResponse(
        path,
        media_type="application/octet-stream",
        filename=name,
        background=BackgroundTask(_remove, folder),
    )


async def open_file(visit: Visit) -> Response:
    """Check a capsule, decide its entries again and show what happened."""
    folder = Path(tempfile.mkdtemp(prefix="sabot-capsule-"))
    try:
        path = folder / "capsule"
        await _receive(visit, path)
        async with _packing:
            opened = await asyncio.to_thread(_opened, path, visit.desk.archive.cell)
    finally:
        _remove(folder)
    return visit.page("part_capsule.html", **_facts(opened))


async def _receive(visit: Visit, path: Path) -> None:
    """The file of the request's body. Raises Refusal."""
    size = 0
    with path.open("wb") as file:
        async for part in visit.request.stream():
            size += len(part)
            if size > MOST_BYTES:
                raise Refusal(413, "refused.too_large")
            file.write(part)


def _opened(path: Path, cell: str) -> Opened:
    """Of this cell only: another one's is refused, so that nobody takes it for ours."""
    return open_capsule(read_capsule(path), cell=cell)


def _facts(opened: Opened) -> dict[str, Any]:
    about = opened.capsule.about
    events = [event_json(one) for one in opened.events[:SHOWN_EVENTS]]
    return {
        "about": about,
        "faults": opened.faults,
        "right": opened.right,
        "answers": opened.answers,
        "differences": opened.differences,
        "digests": opened.digests,
        "playthroughs": opened.playthroughs,
        "events": events,
        "whole": len(opened.events),
        "seal": opened.capsule.seal,
    }


def _remove(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink(missing_ok=True)
    folder.rmdir()


ROUTES = [
    Route("/capsules", page(index, *PACKERS)),
    Route("/capsules/of/{round_id}", page(pack, *PACKERS, reads="capsules")),
    Route("/capsules/open", change(open_file, *PACKERS), methods=["POST"]),
]
