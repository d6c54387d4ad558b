"""The console as an ASGI application: which page is where, and what guards all of them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.console import (
    accounts_page,
    capsules_page,
    corrections_page,
    events_page,
    finding,
    floor_page,
    health_page,
    lobby,
    protection_page,
    returns_page,
    round_page,
    signing_in,
    switches_page,
    table_page,
    unresolved_page,
)
from services.console.desk import Desk
from services.console.web import Refusal, refused, visit_of

HERE = Path(__file__).parent
POLICY = (
    "default-src 'none'; "
    "script-src 'self'; "
    "style-src 'self'; "
    "img-src 'self'; "
    "connect-src 'self'; "
    "form-action 'self'; "
    "base-uri 'none'; "
    "frame-ancestors 'none'"
)
"""Nothing from elsewhere, nothing inline, in nobody's frame."""
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
LAST_WORDS_S = 1.0
"""At the end, for what audit has not been told yet."""
STRICT_TRANSPORT = "max-age=31536000"
"""With TLS: browsers come by TLS only from then on."""


class Guard:
    """Puts the headers on everything that leaves; what is not a file is kept nowhere."""

    def __init__(self, app: ASGIApp, secure: bool) -> None:
        self._app = app
        self._secure = secure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        kept = str(scope["path"]).startswith(("/static/", "/third_party/"))

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers["cache-control"] = "max-age=60" if kept else "no-store"
                if self._secure:
                    headers["strict-transport-security"] = STRICT_TRANSPORT
            await send(message)

        await self._app(scope, receive, guarded)


async def _not_found(request: Request, error: Exception) -> Response:
    del error
    return refused(visit_of(request), Refusal(404, "refused.page"))


async def _wrong_method(request: Request, error: Exception) -> Response:
    del error
    return refused(visit_of(request), Refusal(405, "refused.page"))


async def _broken(request: Request, error: Exception) -> Response:
    """What broke outside of a page's own work."""
    return refused(visit_of(request), error)


def routes() -> list[BaseRoute]:
    """All pages."""
    return [
        *signing_in.ROUTES,
        *lobby.ROUTES,
        *floor_page.ROUTES,
        *table_page.ROUTES,
        *round_page.ROUTES,
        *finding.ROUTES,
        *accounts_page.ROUTES,
        *protection_page.ROUTES,
        *switches_page.ROUTES,
        *events_page.ROUTES,
        *unresolved_page.ROUTES,
        *returns_page.ROUTES,
        *health_page.ROUTES,
        *capsules_page.ROUTES,
        *corrections_page.ROUTES,
        Mount("/static", StaticFiles(directory=HERE / "static")),
        Mount("/third_party", StaticFiles(directory=HERE / "third_party")),
        Route("/health", _health),
    ]


async def _health(request: Request) -> Response:
    """For probes: the process answers."""
    del request
    return Response("ok\n", media_type="text/plain")


def application(desk: Desk) -> ASGIApp:
    """The console over what its pages share. While it runs it follows the log."""

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        del app
        loop = asyncio.get_running_loop()
        tasks = [
            loop.create_task(desk.archive.follow(), name="history"),
            loop.create_task(desk.telling.run(), name="telling"),
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LAST_WORDS_S):
                    await desk.telling.flush()
            await desk.archive.close()
            await desk.fleet.close()

    app = Starlette(
        routes=routes(),
        exception_handlers={404: _not_found, 405: _wrong_method, Exception: _broken},
        lifespan=lifespan,
    )
    app.state.desk = desk
    return Guard(app, desk.settings.secure)
