"""What guards the console, asked without a browser and without a fleet: who comes in, how pages are
answered with, and what is refused. The fleet is away, so every page says so, and none breaks."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from sabot.audit.v1.significant_events_pb2 import NOTED_KIND_READ
from services.console import archive as archive_of
from services.console import finding, signing_in
from services.console import people as people_of
from services.console.app import POLICY, application, routes
from services.console.archive import Archive
from services.console.calls import Fleet
from services.console.desk import Desk, templates
from services.console.history import SUPERVISING
from services.console.people import FREE_TRIES, People, add_person
from services.console.sessions import LIFE_S, Sessions
from services.console.settings import ConsoleSettings
from services.console.telling import Telling
from services.console.web import COOKIE
from services.kernel.log import Log, LogUnavailable
from services.kernel.tokens import Role
from tests.unit.test_console_kept import followed

PASSWORD, OTHER = "right-password", "another-password"
OURS = {"sec-fetch-site": "same-origin"}
NOBODY_THERE = "127.0.0.1:1"
IDLE_S = 300.0


@dataclass
class Answer:
    status: int = 0
    headers: dict[str, list[str]] = field(default_factory=dict)
    body: bytes = b""

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass
class Browser:
    """Sends requests to the application as a server would, and keeps cookies."""

    app: Any
    cookies: dict[str, str] = field(default_factory=dict)

    async def get(self, path: str, **headers: str) -> Answer:
        return await self.send("GET", path, b"", headers)

    async def post(self, path: str, form: dict[str, str], **headers: str) -> Answer:
        about = OURS | {"content-type": "application/x-www-form-urlencoded"} | headers
        return await self.send("POST", path, urlencode(form).encode(), about)

    async def send(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Answer:
        path, _, query = path.partition("?")
        told = {"host": "console"} | {key.replace("_", "-"): headers[key] for key in headers}
        if self.cookies:
            told["cookie"] = "; ".join(f"{key}={value}" for key, value in self.cookies.items())
        scope = {
            "type": "http", "method": method, "path": path, "raw_path": path.encode(),
            "query_string": query.encode(), "scheme": "http", "http_version": "1.1",
            "headers": [(key.encode(), value.encode()) for key, value in told.items()],
            "server": ("console", 80), "client": ("127.0.0.1", 5), "root_path": "",
        }  # fmt: skip
        parts = [body[at : at + 65_536] for at in range(0, len(body), 65_536)] or [b""]
        answer = Answer()

        async def receive() -> dict[str, Any]:
            if not parts:
                await asyncio.Event().wait()  # It stays, and says nothing more.
            part = parts.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(parts)}

        async def send(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                answer.status = message["status"]
                for key, value in message["headers"]:
                    answer.headers.setdefault(key.decode(), []).append(value.decode())
            else:
                answer.body += message.get("body", b"")

        await self.app(scope, receive, send)
        for one in answer.headers.get("set-cookie", ()):
            name, _, rest = one.partition("=")
            self.cookies[name] = rest.partition(";")[0]
        return answer

    async def sign_in(self, name: str, password: str = PASSWORD) -> Answer:
        return await self.post("/sign-in", {"name": name, "password": password, "next": "/"})


@dataclass
class Place:
    """A console."""

    desk: Desk
    app: Any
    now: list[float]

    def browser(self) -> Browser:
        return Browser(self.app)

    async def signed_in(self, name: str = "sam") -> Browser:
        one = self.browser()
        assert (await one.sign_in(name)).status == 303
        return one

    def csrf(self, one: Browser) -> str:
        session = self.desk.sessions.find(one.cookies[COOKIE])
        assert session is not None
        return session.csrf


@pytest.fixture(scope="module")
def people_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("people") / "people.json"
    roles = {"sam": {Role.DEALER, Role.SUPERVISOR}, "ada": {Role.AUDITOR}, "vera": {Role.VIEWER}}
    with pytest.MonkeyPatch.context() as quick:
        quick.setattr(people_of, "N", 1 << 4)
        for name, has in roles.items():
            password = OTHER if name == "ada" else PASSWORD
            add_person(path, name, frozenset(has), password, f"token-of-{name}")
    return path


@pytest.fixture
def place(people_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(people_of, "N", 1 << 4)
    now = [1_000.0]

    def away() -> AbstractAsyncContextManager[Log]:
        raise LogUnavailable("no server answers")

    fleet = Fleet(NOBODY_THERE)
    desk = Desk(
        ConsoleSettings(fleet=NOBODY_THERE),
        fleet,
        People(people_file, lambda: now[0]),
        Sessions(IDLE_S, lambda: now[0]),
        Archive("main", tmp_path, away),
        Telling(fleet, ""),
        templates(),
    )
    return Place(desk, application(desk), now)


def addresses() -> list[str]:
    """Every page, with something in the place of its parts."""
    found = [str(getattr(one, "path", "")) for one in routes()]
    return [
        re.sub(r"\{\w+\}", "x-1", path)
        for path in found
        if path and not path.startswith(("/static", "/third_party", "/sign", "/choose"))
    ]


async def test_whatever_is_away_every_page_says_so_and_shows_no_trace(place: Place) -> None:
    for name in ("sam", "ada"):
        one = place.browser()
        assert (await one.sign_in(name, OTHER if name == "ada" else PASSWORD)).status == 303
        for path in addresses():
            if path.endswith("/live"):
                continue
            answer = await one.get(path)
            assert answer.status in {200, 204, 303, 403, 404, 405, 503, 504}, (path, answer.status)
            assert "Traceback" not in answer.text, path
            if answer.status >= 500:
                assert "data-again" in answer.text, "it comes again by itself"
    garbage = ("/rounds/%00", "/rounds/x?at=" + "9" * 400, "/find?q=%ff%fe", "/rounds/x/at?n=²")
    for path in garbage:
        answer = await one.get(path)
        assert 400 <= answer.status < 505, path
        assert "Traceback" not in answer.text, path


async def test_every_answer_has_the_policy_and_is_kept_nowhere(place: Place) -> None:
    one = await place.signed_in()
    for path in ("/", "/capsules", "/no-such-page", "/sign-in", "/static/console.js", "/health"):
        answer = await one.get(path)
        assert answer.headers["content-security-policy"] == [POLICY], path
        assert answer.headers["x-content-type-options"] == ["nosniff"], path
        kept = answer.headers["cache-control"] == ["max-age=60"]
        assert kept == path.startswith("/static/"), path
    assert "unsafe" not in POLICY
    assert "frame-ancestors 'none'" in POLICY


async def test_a_session_has_a_cookie_that_nobody_chose_before(place: Place) -> None:
    one = place.browser()
    one.cookies[COOKIE] = "chosen-by-somebody-else"
    answer = await one.sign_in("sam")
    (cookie,) = answer.headers["set-cookie"]
    assert "chosen-by-somebody-else" not in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    # Signed in once more, the session of before has ended: a cookie that was copied opens nothing.
    before = Browser(place.app, dict(one.cookies))
    await one.sign_in("sam")
    assert one.cookies != before.cookies
    answer = await before.get("/capsules")
    assert (answer.status, answer.headers["location"]) == (303, ["/sign-in?next=/capsules"])


async def test_nothing_changes_but_from_a_page_of_ours(place: Place) -> None:
    one = await place.signed_in()
    token = place.csrf(one)
    for headers, form in (
        ({"sec_fetch_site": "cross-site"}, {"csrf": token}),
        ({"sec_fetch_site": "same-site"}, {"csrf": token}),
        ({"sec_fetch_site": "none"}, {"csrf": token}),
        ({}, {}),
        ({}, {"csrf": token[:-1]}),
    ):
        for path in ("/lock", "/sign-out", "/switches/set", "/limits/set", "/capsules/open",
                     "/tables/x/orders/void", "/money/resolve"):  # fmt: skip
            answer = await one.post(path, form, **headers)
            assert answer.status == 403, (path, headers)
    # An old browser says where it comes from, and must come from here.
    answer = await one.send("POST", "/lock", b"", {"origin": "http://elsewhere"})
    assert answer.status == 403
    assert (await one.post("/lock", {"csrf": token})).status == 303


async def test_a_session_locks_and_opens_for_its_person_alone(place: Place) -> None:
    one = await place.signed_in()
    session = place.desk.sessions.find(one.cookies[COOKIE])
    assert session is not None
    place.now[0] += IDLE_S - 1
    assert (await one.get("/capsules")).status == 200
    place.now[0] += IDLE_S + 1
    for path in ("/capsules", "/rounds"):
        assert (await one.get(path)).headers["location"] == [f"/unlock?next={path}"]
    assert session.token == "", "it is wiped"
    for late in (one, place.browser()):
        stream = await late.get("/rounds/live")
        assert (stream.status, stream.text) == (200, "event: locked\ndata: \n\n")
    assert (await one.post("/unlock", {"password": OTHER, "next": "/"})).status == 401
    assert (await one.post("/unlock", {"password": PASSWORD, "next": "/"})).status == 303
    assert (await one.get("/capsules")).status == 200
    # And once a shift the name is asked for again, however busy it is.
    for _ in range(int(LIFE_S / IDLE_S) + 1):
        place.now[0] += IDLE_S - 1
        answer = await one.get("/capsules")
    assert answer.headers["location"] == ["/sign-in?next=/capsules"]


async def test_wrong_passwords_are_answered_by_pauses_that_grow(place: Place) -> None:
    one = place.browser()
    for _ in range(FREE_TRIES):
        assert "Name or password is wrong" in (await one.sign_in("sam", "guessed")).text
    answer = await one.sign_in("sam")
    assert answer.status == 401, "the right one is not looked at either"
    assert "Too many wrong passwords" in answer.text
    assert COOKIE not in one.cookies
    assert (await one.sign_in("vera")).status == 303, "others are not held up"
    place.now[0] += 1.5
    assert (await one.sign_in("sam", "guessed")).status == 401
    place.now[0] += 1.5
    assert (await one.sign_in("sam")).status == 401, "the pause has doubled"
    place.now[0] += 1.5
    assert (await one.sign_in("sam")).status == 303


async def test_many_that_sign_in_at_once_do_not_take_all_memory(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signing_in, "MOST_CHECKS", 2)
    browsers = [place.browser() for _ in range(12)]
    answers = await asyncio.gather(*(one.sign_in("sam") for one in browsers))
    statuses = [one.status for one in answers]
    assert set(statuses) == {303, 503}
    assert signing_in._Checks.running == 0


async def test_dealer_and_supervisor_of_one_round_are_two_people(place: Place) -> None:
    one = await place.signed_in()
    form = {"csrf": place.csrf(one), "round_id": "t1-1", "reason": "ROUND_REASON_EQUIPMENT"}
    answer = await one.post("/tables/t1/orders/resume", form)
    assert answer.status == 503
    assert "still reading" in answer.text, "who acts there is not known yet"
    place.desk.archive.reached = True
    actors = place.desk.archive.history.actors
    # Nobody answers: whether it was done is unknown, so it counts.
    assert (await one.post("/tables/t1/orders/resume", form)).status in {503, 504}
    assert actors == {"t1-1": {"operator:sam": SUPERVISING}}
    answer = await one.post("/tables/t1/orders/close-betting", form)
    assert answer.status == 403
    assert "two people" in answer.text
    # One that was never sent claims nothing.
    answer = await one.post("/tables/t1/orders/void", form | {"round_id": "t1-2"})
    assert answer.status == 400
    assert list(actors) == ["t1-1"]


async def test_whoever_follows_a_round_or_moves_through_it_is_told_to_audit(
    place: Place, tmp_path: Path
) -> None:
    """Both show what its page shows."""
    place.desk.telling = telling = Telling(place.desk.fleet, "token-of-the-console")
    one = await place.signed_in("vera")
    async with followed(tmp_path / "log") as (archive, _):
        place.desk.archive = archive
        path = f"/rounds/{next(iter(archive.history.rounds))}"
        assert (await one.get(f"{path}/at?n=0")).status == 200
        assert list(telling._waiting.items()) == [((NOTED_KIND_READ, "vera", "rounds"), 1)]
        telling._waiting.clear()
        following = asyncio.ensure_future(one.get(f"{path}/live"))
        await asyncio.wait([following], timeout=0.1)  # It does not end by itself.
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        assert list(telling._waiting.items()) == [((NOTED_KIND_READ, "vera", "rounds"), 1)]


async def test_a_search_that_takes_too_long_is_given_up_and_not_tried_again(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def all_tables(_: object) -> list[object]:
        return []

    monkeypatch.setattr(finding, "all_tables", all_tables)
    monkeypatch.setattr(archive_of, "SEEK_S", 0.0)
    one = await place.signed_in()
    async with followed(tmp_path / "log") as (archive, _):
        place.desk.archive = archive
        answer = await one.get("/find?q=somebody")
    assert answer.status == 422
    assert "took longer" in answer.text
    assert "data-again" not in answer.text


async def test_what_is_too_large_or_no_form_is_refused(place: Place) -> None:
    one = await place.signed_in()
    csrf = place.csrf(one)
    answer = await one.post("/tables/t1/orders/void", {"csrf": csrf, "remark": "x" * 100_000})
    assert answer.status == 413
    many = {f"field-{number}": "" for number in range(700)}
    assert (await one.post("/tables/t1/orders/void", {"csrf": csrf} | many)).status == 400
    about = OURS | {"x-csrf-token": csrf, "content-type": "application/octet-stream"}
    for body in (b"", b"SABOT", bytes(70_000), b"\x1f\x8b" + bytes(100)):
        answer = await one.send("POST", "/capsules/open", body, about)
        assert answer.status == 422, body[:10]
        assert "Traceback" not in answer.text
    about["hx-request"] = "true"
    huge = await one.send("POST", "/capsules/open", bytes(64 * 1024 * 1024 + 1), about)
    assert (huge.status, json.dumps("too large" in huge.text)) == (413, "true")
