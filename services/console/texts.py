"""The console's words in two languages.

A message file is one flat JSON object; both have the same keys, and the same facts in braces in
each. Enum values of the protos are keys too, by their full names. English prevails (rule VIS-6)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

LANGUAGES = ("en", "fr")
FOLDER = Path(__file__).parent / "messages"


class Texts:
    """The words of one language."""

    def __init__(self, language: str, messages: Mapping[str, str]) -> None:
        self.language = language
        self._messages = messages

    def __call__(self, key: str, **facts: object) -> str:
        """A message with its facts. Raises KeyError: a page names a message that there is not."""
        return self._messages[key].format_map(facts) if facts else self._messages[key]

    def of(self, name: str) -> str:
        """A word of the protos, such as `ROUND_STATE_BETTING` or `player_pair`: as people say it,
        else as it stands, with blanks."""
        known = self._messages.get(f"word.{name}")
        return known if known is not None else name.replace("_", " ")


@cache
def texts(language: str) -> Texts:
    """The words of a language."""
    return Texts(language, read_messages(language))


@cache
def read_messages(language: str) -> Mapping[str, str]:
    """A message file."""
    found: dict[str, str] = json.loads((FOLDER / f"{language}.json").read_text())
    return found


def language_of(cookie: str, accepted: str) -> str:
    """What a person chose, else what the browser asks for first, else English."""
    if cookie in LANGUAGES:
        return cookie
    for part in accepted.split(","):
        language = part.split(";")[0].strip().lower()[:2]
        if language in LANGUAGES:
            return language
    return LANGUAGES[0]
