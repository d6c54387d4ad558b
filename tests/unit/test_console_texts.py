"""The console's words: both languages whole, every word used, every enum that is shown named."""

from __future__ import annotations

import re
import string
from pathlib import Path

import pytest

import services.console
from sabot.audit.v1 import audit_service_pb2 as audits
from sabot.limits.v1 import events_pb2 as limit_events
from sabot.limits.v1 import protection_events_pb2 as protection
from sabot.partner.v1 import partner_service_pb2 as partners
from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from sabot.table.v1 import events_pb2 as tables
from sabot.table.v1 import switch_pb2 as switches
from sabot.wallet.v1 import ledger_service_pb2 as ledgers
from sabot.wallet.v1 import seamless_events_pb2 as seamless
from sabot.wallet.v1 import wallet_operator_service_pb2 as unresolved
from services.console.people import ROLES
from services.console.texts import LANGUAGES, language_of, read_messages, texts
from services.games.catalogue import PUBLISHED

HERE = Path(services.console.__file__).parent
ENUMS = (
    partners.RoundState,
    partners.BetState,
    rules.Hand,
    rule_set_pb2.Game,
    tables.RoundReason,
    ledgers.LedgerKind,
    ledgers.EntryKind,
    unresolved.MovementKind,
    seamless.MovementAction,
    seamless.ReplyOutcome,
    switches.SwitchScope,
    limit_events.Scope,
    protection.LimitKind,
    protection.ExclusionKind,
    audits.Significance,
)


def facts_of(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_both_languages_have_the_same_messages_with_the_same_facts() -> None:
    english, french = (read_messages(language) for language in LANGUAGES)
    assert english.keys() == french.keys()
    for key, text in english.items():
        assert facts_of(text) == facts_of(french[key]), key
        assert text.strip()
        assert french[key].strip()


def used_keys() -> tuple[set[str], set[str]]:
    """Keys that pages and code name, and beginnings of keys that they make up."""
    text = "".join(
        path.read_text() for path in [*HERE.glob("templates/*.html"), *HERE.glob("*.py")]
    )
    whole = set(re.findall(r"""["']([a-z_]+\.[a-zA-Z_0-9-]+)["']""", text))
    begun = set(re.findall(r"""["']([a-z_]+\.[a-z_]*)(?:["'] ?~|\{)""", text))
    return whole, begun


def test_every_message_is_used_and_every_one_that_is_used_is_there() -> None:
    messages = read_messages("en")
    whole, begun = used_keys()
    unused = {
        key
        for key in messages
        if key not in whole
        and not key.startswith("word.")
        and not any(key.startswith(one) for one in begun)
    }
    assert not unused
    sections = {key.partition(".")[0] for key in messages}
    missing = {
        key
        for key in whole
        if key.partition(".")[0] in sections
        and key not in messages
        and not key.endswith(("_", ".", ".html", ".py", ".css", ".js"))
    }
    assert not missing


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_word_of_the_protos_that_is_shown_has_one(language: str) -> None:
    messages = read_messages(language)
    shown = {
        name
        for enum in ENUMS
        for name in enum.DESCRIPTOR.values_by_name
        if not name.endswith("_UNSPECIFIED")
    }
    shown |= {role.value for role in ROLES}
    for published in PUBLISHED.values():
        for offer in published.default.bets:
            shown |= {offer.bet, *(line.line for line in offer.lines)}
    assert not {name for name in shown if f"word.{name}" not in messages}


def test_words_that_nobody_knows_are_shown_as_they_stand() -> None:
    assert texts("fr").of("some_new_bet") == "some new bet"


@pytest.mark.parametrize(
    ("cookie", "accepted", "language"),
    [
        ("fr", "en", "fr"),
        ("de", "fr-CA,fr;q=0.9,en;q=0.8", "fr"),
        ("", "de, en;q=0.5, fr;q=0.1", "en"),
        ("", "", "en"),
    ],
)
def test_a_person_chooses_the_language_else_the_browser(
    cookie: str, accepted: str, language: str
) -> None:
    assert language_of(cookie, accepted) == language
