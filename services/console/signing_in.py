"""Signing in and out, locking, and what a person chooses for the browser."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from services.console.people import SignedIn, TooManyTries
from services.console.texts import LANGUAGES
from services.console.web import (
    COOKIE,
    LANGUAGE_COOKIE,
    SECURE_COOKIE,
    THEME_COOKIE,
    Refusal,
    Visit,
    change,
    form_of,
    is_of_ours,
    open_page,
    page,
    visit_of,
)
from services.kernel import telemetry
from services.kernel.telemetry_names import CONSOLE_SIGN_IN, CONSOLE_SIGN_IN_FAILED

YEAR_S = 365 * 24 * 3600
MOST_PASSWORD = 200
MOST_CHECKS = 8
"""Passwords that are stretched at once: each takes 32 MiB and a tenth of a second."""
THEMES = ("auto", "dark", "light")


class _Checks:
    """Passwords that are being stretched in this process."""

    running = 0


def _safe_next(asked: str) -> str:
    """Where to go then: a page of ours, else the lobby."""
    if asked.startswith("/") and not asked.startswith(("//", "/\\", "/sign-in", "/unlock")):
        return asked
    return "/"


async def show_sign_in(visit: Visit) -> Response:
    """The form; whoever is signed in is sent on."""
    if visit.session is not None and not visit.session.locked:
        return RedirectResponse("/", 303)
    return visit.page("sign_in.html", next=_safe_next(visit.query("next")), problem="", name="")


async def sign_in(visit: Visit) -> Response:
    """A name and a password."""
    visit.form = await form_of(visit.request)
    if not is_of_ours(visit.request):
        raise Refusal(403, "refused.csrf")
    name, then = visit.form.get("name", ""), _safe_next(visit.form.get("next", ""))
    who, problem = await _checked(visit, name)
    if who is None:
        return visit.page("sign_in.html", 401, next=then, problem=problem, name=name)
    secure = visit.desk.settings.secure
    kept = SECURE_COOKIE if secure else COOKIE
    # Whoever was signed in here is not any more; the new session has a cookie of its own.
    visit.desk.sessions.end(visit.request.cookies.get(kept, ""))
    cookie, _ = visit.desk.sessions.begin(who)
    answer = RedirectResponse(then, 303)
    answer.set_cookie(
        kept,
        cookie,
        path="/",
        secure=secure,
        httponly=True,
        samesite="strict",
    )
    return answer


async def _checked(visit: Visit, name: str) -> tuple[SignedIn | None, str]:
    """Whose password it is, or what to say."""
    logger = telemetry.logger()
    if _Checks.running >= MOST_CHECKS:
        raise Refusal(503, "refused.busy")
    password = visit.form.get("password", "")[:MOST_PASSWORD]
    try:
        _Checks.running += 1
        try:
            who = await asyncio.to_thread(visit.desk.people.sign_in, name, password)
        finally:
            _Checks.running -= 1
    except TooManyTries as error:
        logger.warning(CONSOLE_SIGN_IN_FAILED, operator=name[:40], why="too many tries")
        visit.desk.telling.failed(visit.desk.people.known(name))
        return None, visit.words("sign_in.wait", seconds=int(error.wait_s) + 1)
    if who is None:
        logger.warning(CONSOLE_SIGN_IN_FAILED, operator=name[:40], why="wrong")
        visit.desk.telling.failed(visit.desk.people.known(name))
        return None, visit.words("sign_in.wrong")
    logger.info(CONSOLE_SIGN_IN, operator=who.name)
    return who, ""


async def sign_out(visit: Visit) -> Response:
    """The session ends."""
    secure = visit.desk.settings.secure
    name = SECURE_COOKIE if secure else COOKIE
    visit.desk.sessions.end(visit.request.cookies.get(name, ""))
    answer = RedirectResponse("/sign-in", 303)
    answer.delete_cookie(name, path="/", secure=secure, httponly=True, samesite="strict")
    return answer


async def lock(visit: Visit) -> Response:
    """Locked by hand."""
    visit.desk.sessions.lock(visit.who)
    return RedirectResponse("/unlock", 303)


async def show_unlock(visit: Visit) -> Response:
    """The password is asked for again."""
    if visit.session is None:
        return RedirectResponse("/sign-in", 303)
    if not visit.session.locked:
        return RedirectResponse(_safe_next(visit.query("next")), 303)
    return visit.page("unlock.html", next=_safe_next(visit.query("next")), problem="")


async def unlock(visit: Visit) -> Response:
    """By the same person alone."""
    visit.form = await form_of(visit.request)
    if not is_of_ours(visit.request):
        raise Refusal(403, "refused.csrf")
    session = visit.session
    if session is None:
        return RedirectResponse("/sign-in", 303)
    then = _safe_next(visit.form.get("next", ""))
    who, problem = await _checked(visit, session.name)
    if who is None:
        return visit.page("unlock.html", 401, next=then, problem=problem)
    visit.desk.sessions.unlock(session, who)
    return RedirectResponse(then, 303)


async def active(visit: Visit) -> Response:
    """A key or a touch: the page says so now and then."""
    del visit
    return Response(status_code=204)


async def choose(request: Request) -> Response:
    """Language and colours, kept by the browser."""
    visit = visit_of(request)
    answer = RedirectResponse(_safe_next(visit.query("next")), 303)
    language, theme = visit.query("language"), visit.query("theme")
    for name, value, known in (
        (LANGUAGE_COOKIE, language, LANGUAGES),
        (THEME_COOKIE, theme, THEMES),
    ):
        if value in known:
            answer.set_cookie(
                name,
                value,
                max_age=YEAR_S,
                path="/",
                samesite="strict",
                secure=visit.desk.settings.secure,
                httponly=True,
            )
    return answer


ROUTES = [
    Route("/sign-in", open_page(show_sign_in)),
    Route("/sign-in", open_page(sign_in), methods=["POST"]),
    Route("/sign-out", change(sign_out), methods=["POST"]),
    Route("/lock", change(lock), methods=["POST"]),
    Route("/unlock", open_page(show_unlock)),
    Route("/unlock", open_page(unlock), methods=["POST"]),
    Route("/active", page(active)),
    Route("/choose", choose),
]
