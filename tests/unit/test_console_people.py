"""Who may sign in to the console: passwords, sealed tokens, wrong tries, sessions that lock."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner

from services.cli.main import app
from services.console.people import (
    FREE_TRIES,
    BadPeopleFile,
    People,
    SignedIn,
    TooManyTries,
    add_person,
    create_demo_people,
    new_password,
)
from services.console.sessions import LIFE_S, MOST_SESSIONS, Sessions
from services.kernel.tokens import Role

DEALER = frozenset({Role.DEALER})


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def path(tmp_path: Path) -> Path:
    add_person(tmp_path / "people.json", "dana", DEALER, "open sesame", "the-bearer-token")
    return tmp_path / "people.json"


def test_a_password_opens_the_token_and_the_file_alone_opens_nothing(path: Path) -> None:
    people = People(path)
    assert people.sign_in("dana", "open sesame") == SignedIn("dana", DEALER, "the-bearer-token")
    assert people.sign_in("dana", "open sesam") is None
    assert people.sign_in("nobody", "open sesame") is None
    text = path.read_text()
    assert "open sesame" not in text
    assert "the-bearer-token" not in text
    assert b"the-bearer-token".hex() not in text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_sealed_token_is_bound_to_its_name(path: Path) -> None:
    told = json.loads(path.read_text())
    path.write_text(json.dumps({"sam": told["dana"]}))
    assert People(path).sign_in("sam", "open sesame") is None


@pytest.mark.parametrize("content", ["", "[]", '{"dana": {}}', '{"dana": {"roles": ["device"]}}'])
def test_a_file_that_is_none_is_said_to_be_so_without_its_content(path: Path, content: str) -> None:
    path.write_text(content)
    with pytest.raises(BadPeopleFile, match=r"is no file of people$"):
        People(path)


def test_a_file_that_others_may_read_is_not_used(path: Path) -> None:
    path.chmod(0o644)
    with pytest.raises(BadPeopleFile, match="others may read it"):
        People(path)


def test_wrong_passwords_cost_a_pause_that_doubles(path: Path) -> None:
    clock = Clock()
    people = People(path, clock)
    for _ in range(FREE_TRIES):
        assert people.sign_in("dana", "wrong") is None
    with pytest.raises(TooManyTries):
        people.sign_in("dana", "open sesame")
    clock.now += 1.1
    assert people.sign_in("dana", "wrong") is None
    clock.now += 1.1
    with pytest.raises(TooManyTries):
        people.sign_in("dana", "open sesame")
    clock.now += 1.0
    assert people.sign_in("dana", "open sesame") is not None
    assert people.sign_in("dana", "wrong") is None  # and it begins anew


def test_the_demonstrations_people_are_made_once(tmp_path: Path) -> None:
    path, clear = tmp_path / "people.json", tmp_path / "clear.json"
    roles = {"dana": DEALER, "vera": frozenset({Role.VIEWER})}
    tokens = {"operator:dana": "one"}
    first = create_demo_people(path, clear, roles, tokens)
    assert list(first) == ["dana"]  # vera has no token
    tokens["operator:vera"] = "two"
    second = create_demo_people(path, clear, roles, tokens)
    assert second["dana"] == first["dana"]
    signed_in = People(path).sign_in("vera", second["vera"])
    assert signed_in is not None
    assert signed_in.token == tokens["operator:vera"]
    assert stat.S_IMODE(clear.stat().st_mode) == 0o600
    clear.unlink()
    assert create_demo_people(path, clear, roles, tokens) == {}  # an operator's own now


def test_made_passwords_differ_and_are_readable() -> None:
    made = {new_password() for _ in range(50)}
    assert len(made) == 50
    assert all(len(one) == 19 and not set(one) & set("01ilo") for one in made)


# ---- sessions ----------------------------------------------------------------------------------

DANA = SignedIn("dana", DEALER, "token")


def test_a_session_locks_after_idle_minutes_and_forgets_the_token() -> None:
    clock = Clock()
    sessions = Sessions(300, clock)
    cookie, session = sessions.begin(DANA)
    clock.now += 299
    assert sessions.find(cookie) is session
    assert not session.locked
    sessions.touch(session)
    clock.now += 301
    assert not sessions.is_live(session)
    found = sessions.find(cookie)
    assert found is not None
    sessions.touch(found)  # whoever comes by does not open it
    assert (found.locked, found.token) == (True, "")
    sessions.unlock(session, DANA)
    assert sessions.is_live(session)


def test_a_session_ends_with_the_shift_and_at_sign_out() -> None:
    clock = Clock()
    sessions = Sessions(LIFE_S * 2, clock)
    cookie, session = sessions.begin(DANA)
    sessions.end(cookie)
    assert sessions.find(cookie) is None
    assert not sessions.is_live(session)
    cookie, _ = sessions.begin(DANA)
    clock.now += LIFE_S + 1
    assert sessions.find(cookie) is None


def test_sessions_are_bounded() -> None:
    clock = Clock()
    sessions = Sessions(300, clock)
    first, _ = sessions.begin(DANA)
    for _ in range(MOST_SESSIONS):
        clock.now += 0.01
        sessions.begin(DANA)
    assert sessions.find(first) is None


# ---- the command -------------------------------------------------------------------------------


def test_an_operator_is_let_in_by_the_command_and_nothing_secret_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "people.json"
    words = ["console-person", "anna", "--role", "dealer", "--file", str(path)]
    shown = CliRunner().invoke(app, words, input="the-token\nlong enough password\n")
    assert shown.exit_code == 0
    assert shown.output == f"{path}: anna may sign in as dealer\n"
    assert People(path).sign_in("anna", "long enough password") == SignedIn(
        "anna", DEALER, "the-token"
    )
    for told in ("the-token\nshort\n", "\nlong enough password\n"):
        assert CliRunner().invoke(app, words, input=told).exit_code == 2
    words[words.index("dealer")] = "device"
    assert CliRunner().invoke(app, words, input="the-token\nlong enough password\n").exit_code == 2
