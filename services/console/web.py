"""What every page has in common: who asks, in which language, and how it is refused."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote

from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse

from services.cli.capsule_file import NotACapsule
from services.cli.capsule_read import CapsuleRefused
from services.cli.find import NothingFound
from services.cli.incident_span import NothingToKeep
from services.cli.inspect_state import PositionUnknown
from services.cli.log_source import NoLog
from services.cli.playthrough import RoundUnknown
from services.console.calls import Calls, NotDone
from services.console.desk import Desk
from services.console.sessions import MOST_STREAMS, Session, same
from services.console.texts import Texts, language_of, texts
from services.kernel import telemetry
from services.kernel.log import LogUnavailable
from services.kernel.reader import LogBroken
from services.kernel.telemetry_names import CONSOLE_FAILED
from services.kernel.tokens import Role

COOKIE, SECURE_COOKIE = "sabot-session", "__Host-sabot-session"
LANGUAGE_COOKIE, THEME_COOKIE = "sabot-language", "sabot-theme"
MOST_FORM_BYTES = 64 * 1024
"""Of a form: the longest holds a remark of 500 signs and the cards of a shoe."""
BEAT_S = 10.0
"""A live page hears something at least so often, so that both ends know of each other."""

NAV: tuple[tuple[Any, ...], ...] = (
    ("/", "nav.lobby"),
    ("/rounds", "nav.rounds"),
    ("/accounts", "nav.accounts"),
    ("/money", "nav.money"),
    ("/limits", "nav.limits"),
    ("/switches", "nav.switches"),
    ("/returns", "nav.returns"),
    ("/health-of-fleet", "nav.health"),
    ("/corrections", "nav.corrections"),
    ("/events", "nav.events", Role.AUDITOR),
    ("/capsules", "nav.capsules", Role.SUPERVISOR, Role.AUDITOR),
)
"""Pages that every page leads to: address, name, and the roles that they are for, if not for
all."""

NOT_THERE: tuple[type[Exception], ...] = (
    RoundUnknown,
    NothingFound,
    NothingToKeep,
    PositionUnknown,
)
NOT_USABLE: tuple[type[Exception], ...] = (NotACapsule, CapsuleRefused)
NOT_NOW: tuple[type[Exception], ...] = (LogUnavailable, LogBroken, NoLog, OSError)
_PASSING = frozenset({503, 504})
"""What may be over in a moment: such a page comes again by itself."""
_STATUS = {
    "INVALID_ARGUMENT": 400,
    "UNAUTHENTICATED": 403,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "ALREADY_EXISTS": 409,
    "FAILED_PRECONDITION": 409,
    "RESOURCE_EXHAUSTED": 503,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}


class Refusal(Exception):
    """A page is refused; `key` names the message that says why."""

    def __init__(self, status: int, key: str, **facts: object) -> None:
        super().__init__(key)
        self.status = status
        self.key = key
        self.facts = facts


@dataclass(slots=True)
class Visit:
    """One request of a browser."""

    request: Request
    desk: Desk
    session: Session | None
    words: Texts
    form: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def who(self) -> Session:
        """Whoever is signed in. Only pages that need nobody are shown without."""
        if self.session is None:
            raise Refusal(401, "refused.session")
        return self.session

    @property
    def calls(self) -> Calls:
        """Calls to the fleet as this person."""
        return Calls(self.desk.fleet, self.who.token, self.words.language)

    def path(self, name: str) -> str:
        """A part of the address."""
        return str(self.request.path_params[name])

    def query(self, name: str) -> str:
        """A question's part; empty where it is missing."""
        return self.request.query_params.get(name, "").strip()

    @property
    def partly(self) -> bool:
        """Whether a part of a page is asked for, to be put into the one that is open."""
        return "hx-request" in self.request.headers

    def render(self, template: str, **facts: object) -> str:
        """A template as text."""
        return self.desk.templates.get_template(template).render(
            t=self.words,
            language=self.words.language,
            session=self.session,
            theme=self.request.cookies.get(THEME_COOKIE, "auto"),
            here=self.request.url.path,
            Role=Role,
            nav=[
                (path, key)
                for path, key, *roles in NAV
                if not roles or (self.session is not None and self.session.may(*roles))
            ],
            **facts,
        )

    def page(self, template: str, status: int = 200, **facts: object) -> HTMLResponse:
        """A template as an answer."""
        return HTMLResponse(self.render(template, **facts), status)


Work = Callable[[Visit], Awaitable[Response]]
Live = Callable[[Visit], AsyncIterator[tuple[str, str]]]
"""Yields names of places in the page and what now stands there."""
Endpoint = Callable[[Request], Awaitable[Response]]
_SHOWN = 200
"""The status of a page that shows what was asked for."""


def open_page(work: Work) -> Endpoint:
    """A page that needs nobody signed in."""

    async def endpoint(request: Request) -> Response:
        visit = visit_of(request)
        return await _done(visit, work)

    return endpoint


def page(work: Work, *roles: Role, reads: str = "") -> Endpoint:
    """A page for whoever is signed in; with `roles`, for those who have one of them. `reads`: the
    kind of page, where it shows from the log what belongs to accounts: audit is told."""

    async def endpoint(request: Request) -> Response:
        visit = visit_of(request)
        away = _sent_away(visit)
        if away is not None:
            return away
        visit.desk.sessions.touch(visit.who)
        answer = await _done(visit, work, roles)
        if reads and answer.status_code == _SHOWN:
            visit.desk.telling.read(visit.who.name, reads)
        return answer

    return endpoint


def change(work: Work, *roles: Role) -> Endpoint:
    """What changes something: only from a page of ours, by its token."""

    async def endpoint(request: Request) -> Response:
        visit = visit_of(request)
        away = _sent_away(visit)
        if away is not None:
            return away
        visit.desk.sessions.touch(visit.who)

        async def checked(visit: Visit) -> Response:
            visit.form = await form_of(request)
            token = request.headers.get("x-csrf-token") or visit.form.get("csrf", "")
            if not is_of_ours(request) or not same(token, visit.who.csrf):
                raise Refusal(403, "refused.csrf")
            return await work(visit)

        return await _done(visit, checked, roles)

    return endpoint


_LIVE_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


def live(work: Live, *roles: Role, reads: str = "") -> Endpoint:
    """A stream of parts of a page, as server-sent events. It ends with the session. `reads`: as of
    a page, told once for each stream."""

    async def endpoint(request: Request) -> Response:
        visit = visit_of(request)
        if visit.session is None or visit.session.locked:
            # A page that had no stream when its session ended hears of it now.
            return Response(
                event("locked", ""), media_type="text/event-stream", headers=_LIVE_HEADERS
            )
        if roles and not visit.session.may(*roles):
            return Response(status_code=204)  # which tells a browser not to come again
        if visit.session.streams >= MOST_STREAMS:
            return Response(status_code=503)
        if reads:
            visit.desk.telling.read(visit.session.name, reads)
        return StreamingResponse(
            _events(visit, work),
            media_type="text/event-stream",
            headers=_LIVE_HEADERS,
        )

    return endpoint


# ---- who asks ----------------------------------------------------------------------------------


def visit_of(request: Request) -> Visit:
    """Who asks, in which language."""
    desk: Desk = request.app.state.desk
    cookie = request.cookies.get(SECURE_COOKIE if desk.settings.secure else COOKIE, "")
    language = language_of(
        request.cookies.get(LANGUAGE_COOKIE, ""), request.headers.get("accept-language", "")
    )
    return Visit(request, desk, desk.sessions.find(cookie) if cookie else None, texts(language))


def _sent_away(visit: Visit) -> Response | None:
    """Where to send somebody who is not signed in, or whose session is locked."""
    if visit.session is not None and not visit.session.locked:
        return None
    where = "/sign-in" if visit.session is None else "/unlock"
    asked = visit.request.url.path
    if visit.request.method == "GET" and not visit.partly:
        where += f"?next={quote(asked, safe='/')}"
    if visit.partly:
        return Response(status_code=204, headers={"hx-redirect": where})
    return RedirectResponse(where, 303)


def is_of_ours(request: Request) -> bool:
    """Whether a change comes from a page of this console. Browsers say so by themselves."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = request.headers.get("origin", "")
    return origin.partition("://")[2] == request.headers.get("host", "")


async def form_of(request: Request) -> dict[str, str]:
    """The fields of a form, the first of each name; nothing where the body is something else."""
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        return {}
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MOST_FORM_BYTES:
            raise Refusal(413, "refused.too_large")
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=600)
    except ValueError:
        raise Refusal(400, "refused.form") from None
    found: dict[str, str] = {}
    for name, value in pairs:
        found.setdefault(name, value.strip())
    return found


# ---- what is refused ---------------------------------------------------------------------------


async def _done(visit: Visit, work: Work, roles: tuple[Role, ...] = ()) -> Response:
    """A page, or a clear refusal; never a trace of the program."""
    try:
        _require(visit, roles)
        return await work(visit)
    except ClientDisconnect:
        return Response(status_code=499)
    except Exception as error:  # noqa: BLE001 - the edge: everything becomes an answer
        return refused(visit, error)


def _require(visit: Visit, roles: tuple[Role, ...]) -> None:
    if roles and not visit.who.may(*roles):
        told = ", ".join(visit.words.of(role.value) for role in roles)
        raise Refusal(403, "refused.role", roles=told)


def refused(visit: Visit, error: Exception) -> Response:
    """The page that says why not."""
    status, told = told_of(visit.words, error)
    template = "part_refused.html" if visit.partly else "refused.html"
    again = status in _PASSING and visit.request.method == "GET"
    return visit.page(template, status, told=told, again=again)


def told_of(words: Texts, error: Exception) -> tuple[int, str]:
    """An error's HTTP status, and what a person is told."""
    match error:
        case Refusal():
            return error.status, words(error.key, **error.facts)
        case NotDone():
            told = error.texts.get(words.language) or error.texts.get("en")
            if told is None:
                told = words("refused.fleet", code=error.code.name)
            if error.unknown:
                told += " " + words("refused.unknown")
            return _STATUS.get(error.code.name, 500), told
        case _ if isinstance(error, NOT_THERE):
            return 404, str(error)
        case _ if isinstance(error, NOT_USABLE):
            return 422, str(error)
        case _ if isinstance(error, NOT_NOW):
            return 503, words("refused.log", why=str(error))
        case _:
            incident = uuid.uuid4().hex[:12]
            telemetry.logger().error(CONSOLE_FAILED, incident=incident, exc_info=error)
            return 500, words("refused.broken", incident=incident)


# ---- live pages --------------------------------------------------------------------------------


async def _events(visit: Visit, work: Live) -> AsyncIterator[str]:
    session, sessions = visit.who, visit.desk.sessions
    session.streams += 1
    source = work(visit)
    coming: asyncio.Task[tuple[str, str]] | None = None
    try:
        # What was wrong before is over.
        yield "retry: 2000\n\n" + event("trouble", "")
        while True:
            coming = coming or asyncio.ensure_future(anext(source))
            done, _ = await asyncio.wait([coming], timeout=BEAT_S)
            if not sessions.is_live(session):
                yield event("locked", "")
                return
            if not done:
                yield ": still here\n\n"
                continue
            try:
                name, text = coming.result()
            except StopAsyncIteration:
                return
            except Exception as error:  # noqa: BLE001 - told in the page
                _, told = told_of(visit.words, error)
                yield event("trouble", visit.render("part_refused.html", told=told))
                return
            coming = None
            yield event(name, text)
    finally:
        session.streams -= 1
        if coming is not None:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)
        await source.aclose()  # type: ignore[attr-defined]  # an async generator, by its contract


def event(name: str, text: str) -> str:
    """One server-sent event."""
    lines = "".join(f"data: {line}\n" for line in text.splitlines() or [""])
    return f"event: {name}\n{lines}\n"


async def merged(*sources: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """What several sources give, as it comes; it ends with the first that ends or fails."""
    queue: asyncio.Queue[tuple[Any, BaseException | None, bool]] = asyncio.Queue(maxsize=64)

    async def pump(source: AsyncIterator[Any]) -> None:
        try:
            async for item in source:
                await queue.put((item, None, False))
        except Exception as error:  # noqa: BLE001 - raised again by the reader
            await queue.put((None, error, True))
        else:
            await queue.put((None, None, True))

    tasks = [asyncio.ensure_future(pump(source)) for source in sources]
    try:
        while True:
            item, error, over = await queue.get()
            if error is not None:
                raise error
            if over:
                return
            yield item
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
