"""Bearer tokens: only their digests are kept, and only in a file that nobody else can read."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from services.kernel import tokens
from services.kernel.tokens import (
    BadTokenFile,
    Caller,
    Role,
    Tokens,
    add_token,
    create_demo_tokens,
    digest_of,
    made_caller,
    read_tokens,
    write_tokens,
)

DIGEST = digest_of("secret")
DEVICE = {"operator": "wheel-7", "roles": ["device"]}


def written(path: Path, content: object, mode: int = 0o600) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    path.chmod(mode)
    return path


def test_a_token_finds_its_partner_and_nobody_else(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    anna = Caller(operator="anna", roles=frozenset({Role.DEALER, Role.SUPERVISOR}))
    write_tokens(path, {"one": Caller(partner="north"), "two": anna})
    assert path.stat().st_mode & 0o777 == 0o600
    known = Tokens(path)
    north = known.caller("one")
    assert north is not None
    assert (north.partner, north.operator, north.actor) == ("north", "", "partner:north")
    assert known.caller("two") == anna
    assert anna.actor == "operator:anna"
    assert known.caller("three") is None
    assert known.caller("") is None
    assert "one" not in path.read_text()


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o660])
def test_a_file_that_others_can_read_or_write_is_refused(tmp_path: Path, mode: int) -> None:
    path = written(tmp_path / "tokens.json", {DIGEST: {"partner": "north"}}, mode)
    with pytest.raises(BadTokenFile, match="chmod 600"):
        read_tokens(path)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ([], "one JSON object"),
        ("7", "one JSON object"),
        ({"secret": {"partner": "north"}}, "no SHA-256"),
        ({DIGEST.upper(): {"partner": "north"}}, "no SHA-256"),
        ({DIGEST: "north"}, "must be an object"),
        ({DIGEST: {}}, "needs `partner` or `operator`"),
        ({DIGEST: {"partner": "North"}}, "needs `partner` or `operator`"),
        ({DIGEST: {"partner": "n\n"}}, "needs `partner` or `operator`"),
        ({DIGEST: {"partner": "north", "roles": ["dealer"]}}, "nothing but"),
        ({DIGEST: {"operator": "anna"}}, "a list `roles`"),
        ({DIGEST: {**DEVICE, "table": ["t1"]}}, "'table' is nothing that an operator has"),
        ({DIGEST: {**DEVICE, "tables": []}}, "one id or more"),
        ({DIGEST: {**DEVICE, "tables": "t1"}}, "one id or more"),
        ({DIGEST: {**DEVICE, "tables": ["T1"]}}, "'T1' in `tables` is no id"),
        ({DIGEST: {**DEVICE, "devices": [7]}}, "7 in `devices` is no id"),
        (
            {DIGEST: {"operator": "dana", "roles": ["dealer"], "devices": ["wheel-7"]}},
            "for the role device",
        ),
        ({DIGEST: {"operator": "anna", "roles": []}}, "needs a role"),
        ({DIGEST: {"operator": "anna", "roles": ["owner"]}}, "'owner' is no role"),
        ({DIGEST: {"operator": "anna", "roles": [["dealer"]]}}, "is no role"),
        (f'{{"{DIGEST}":{{"partner":"a"}},"{DIGEST}":{{"partner":"b"}}}}', "stands there twice"),
        (f'{{"{DIGEST}":{{"partner":"a","partner":"b"}}}}', "a key stands there twice"),
    ],
)
def test_a_file_that_cannot_be_used_says_why_in_one_line(
    tmp_path: Path, content: object, told: str
) -> None:
    path = written(tmp_path / "tokens.json", content)
    with pytest.raises(BadTokenFile) as caught:
        read_tokens(path)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadTokenFile, match="No such file"):
        Tokens(tmp_path / "none.json")


def test_a_changed_file_is_read_again_and_a_bad_one_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tokens.json"
    write_tokens(path, {"one": Caller(partner="north")})
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    known = Tokens(path)
    write_tokens(path, {"two": Caller(partner="south")})
    assert known.caller("one") is not None
    clock[0] += tokens.LOOK_EVERY_S
    assert known.caller("one") is None
    assert known.caller("two") is not None
    written(path, "{")
    clock[0] += tokens.LOOK_EVERY_S
    assert known.caller("two") is not None
    path.unlink()
    clock[0] += tokens.LOOK_EVERY_S
    assert known.caller("two") is not None


def test_the_demonstrations_tokens_are_made_once(tmp_path: Path) -> None:
    path, clear = tmp_path / "tokens.json", tmp_path / "demo.json"
    assert create_demo_tokens(path, clear)
    assert path.stat().st_mode & 0o777 == clear.stat().st_mode & 0o777 == 0o600
    told = json.loads(clear.read_text())
    known = Tokens(path)
    for actor, token in told.items():
        caller = known.caller(token)
        assert caller is not None
        assert caller.actor == actor
        assert len(token) >= 43
    assert {"partner:north", "partner:south"} < set(told)
    before = path.read_bytes(), clear.read_bytes()
    assert not create_demo_tokens(path, clear)
    assert (path.read_bytes(), clear.read_bytes()) == before


def test_a_later_demonstrations_new_callers_come_into_files_of_an_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, clear = tmp_path / "tokens.json", tmp_path / "demo.json"
    with monkeypatch.context() as earlier:
        earlier.setattr(tokens, "DEMO_CALLERS", tokens.DEMO_CALLERS[:-2])
        create_demo_tokens(path, clear)
    before = json.loads(clear.read_text())
    assert not create_demo_tokens(path, clear)
    told = json.loads(clear.read_text())
    assert told.keys() - before.keys() == {"operator:wheel-7", "operator:scanner-1"}
    assert before.items() <= told.items()
    known = Tokens(path)
    device = known.caller(told["operator:wheel-7"])
    assert device is not None
    assert device.roles == {Role.DEVICE}
    north = known.caller(told["partner:north"])
    assert north is not None
    assert north.partner == "north"


@pytest.mark.parametrize("change", ["revoked", "other roles", "added", "no clear file"])
def test_nobody_comes_into_a_file_that_an_operator_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    path, clear = tmp_path / "tokens.json", tmp_path / "demo.json"
    with monkeypatch.context() as earlier:
        earlier.setattr(tokens, "DEMO_CALLERS", tokens.DEMO_CALLERS[:-2])
        create_demo_tokens(path, clear)
    facts = json.loads(path.read_text())
    dealer = next(digest for digest, who in facts.items() if who.get("operator") == "dana")
    if change == "revoked":
        del facts[dealer]
    elif change == "other roles":
        facts[dealer]["roles"] = ["auditor"]
    elif change == "added":
        facts[DIGEST] = {"partner": "west"}
    else:
        clear.unlink()
    written(path, facts)
    before = path.read_bytes()
    assert not create_demo_tokens(path, clear)
    assert path.read_bytes() == before


# ---- what a token is bound to ------------------------------------------------------------------


def test_a_device_speaks_for_itself_unless_its_token_names_others(tmp_path: Path) -> None:
    path = written(
        tmp_path / "tokens.json",
        {
            digest_of("alone"): DEVICE,
            digest_of("hub"): {**DEVICE, "devices": ["shoe-1", "shoe-2"], "tables": ["t1"]},
            digest_of("dana"): {"operator": "dana", "roles": ["dealer"], "tables": ["t1", "t2"]},
        },
    )
    known = Tokens(path)
    alone, hub, dana = (known.caller(name) for name in ("alone", "hub", "dana"))
    assert alone is not None
    assert hub is not None
    assert dana is not None
    assert alone.speaks_for == {"wheel-7"}
    assert hub.speaks_for == {"shoe-1", "shoe-2"}
    assert dana.speaks_for == frozenset()
    assert [alone.reaches(one) for one in ("t1", "t2")] == [True, True]
    assert [hub.reaches(one) for one in ("t1", "t2")] == [True, False]
    assert [dana.reaches(one) for one in ("t1", "t2", "t3")] == [True, True, False]
    again = tmp_path / "again.json"
    write_tokens(again, {"hub": hub, "dana": dana, "alone": alone})
    assert set(read_tokens(again).values()) == {alone, hub, dana}


def test_a_token_is_added_to_a_file(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    caller = made_caller({**DEVICE, "tables": ["t1"]})
    add_token(path, "first", Caller(partner="north"))
    add_token(path, "second", caller)
    known = Tokens(path)
    assert known.caller("first") == Caller(partner="north")
    assert known.caller("second") == caller
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(BadTokenFile, match="is no role"):
        made_caller({"operator": "x", "roles": ["owner"]})


def test_a_demonstration_of_before_has_its_devices_bound(tmp_path: Path) -> None:
    path, clear = tmp_path / "tokens.json", tmp_path / "demo.json"
    create_demo_tokens(path, clear)
    bound = read_tokens(path)
    unbound = {
        digest.hex(): {
            key: value
            for key, value in tokens.entry_of(caller).items()
            if key not in ("devices", "tables")
        }
        for digest, caller in bound.items()
    }
    written(path, unbound)
    create_demo_tokens(path, clear)
    assert read_tokens(path) == bound
    changed = dict(unbound)
    digest = next(one for one, who in changed.items() if who.get("operator") == "wheel-7")
    changed[digest] = {**DEVICE, "tables": ["elsewhere"]}
    written(path, changed)
    create_demo_tokens(path, clear)  # An operator has changed it: it stays.
    assert json.loads(path.read_text()) == changed
