"""Case files: one JSON object a line, read field by field, so that what is missing or strange is
told with its file and line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MAX_FILE_BYTES = 64 * 1024 * 1024
"""Far above any collection of cases; a greater file is not one."""
MAX_NUMBER = 10**15
"""Above all money of a case, and far inside 64 bits."""
MAX_ASKED = 10**30
"""Of a stake that is asked for, which nobody has to take."""
MAX_LISTED = 1_000
"""Above all that stands in lists: pockets, dice, odds."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a case stands."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class BadCase(Exception):
    """A case that cannot be understood, or a file that cannot be read. Says where and why."""

    def __init__(self, place: Place | str, why: str) -> None:
        super().__init__(f"{place}: {why}")


class Fields:
    """An object of a case file. `path` says where in its case it stands, empty for the case.

    Every read is remembered, so that what nobody reads is known: what a case expects must not be
    passed over because it is spelt in another way.
    """

    def __init__(self, place: Place, values: dict[str, Any], path: str = "") -> None:
        self.place = place
        self.path = path
        self._values = values
        self._read: set[str] = set()
        self._within: list[Fields] = []

    def has(self, name: str) -> bool:
        """Whether the field is there and not null."""
        self._read.add(name)
        return self._values.get(name) is not None

    def text(self, name: str) -> str:
        """A text that is not empty."""
        value = self._value(name)
        if not isinstance(value, str) or not value:
            raise self.bad(name, "is no text")
        return value

    def number(self, name: str, low: int = -MAX_NUMBER, high: int = MAX_NUMBER) -> int:
        """A whole number within these bounds."""
        value = self._value(name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.bad(name, "is no whole number")
        if not low <= value <= high:
            raise self.bad(name, f"is {value}; it must be {low} to {high}")
        return value

    def yes(self, name: str) -> bool:
        """True or false; false where it is absent."""
        self._read.add(name)
        value = self._values.get(name, False)
        if not isinstance(value, bool):
            raise self.bad(name, "is neither true nor false")
        return value

    def choice(self, name: str, *choices: str) -> str:
        """One of these texts."""
        value = self.text(name)
        if value not in choices:
            raise self.bad(name, f"is {value!r}; it must be one of {', '.join(choices)}")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts."""
        found = self._list(name)
        if not all(isinstance(each, str) for each in found):
            raise self.bad(name, "is no list of texts")
        return tuple(found)

    def numbers(self, name: str, low: int = -MAX_LISTED) -> tuple[int, ...]:
        """A list of whole numbers, none below this."""
        found = self._list(name)
        if not all(isinstance(each, int) and not isinstance(each, bool) for each in found):
            raise self.bad(name, "is no list of whole numbers")
        if not all(low <= each <= MAX_LISTED for each in found):
            raise self.bad(name, f"holds a number that is not {low} to {MAX_LISTED}")
        return tuple(found)

    def objects(self, name: str) -> list[Fields]:
        """A list of objects."""
        found: list[Fields] = []
        for index, each in enumerate(self._list(name)):
            path = f"{self._named(name)}[{index}]"
            if not isinstance(each, dict):
                raise BadCase(self.place, f"{path} is no object")
            found.append(Fields(self.place, each, path))
        self._within.extend(found)
        return found

    def inner(self, name: str) -> Fields:
        """An object."""
        value = self._value(name)
        if not isinstance(value, dict):
            raise self.bad(name, "is no object")
        found = Fields(self.place, value, self._named(name))
        self._within.append(found)
        return found

    def names(self) -> tuple[str, ...]:
        """The names of all its fields."""
        return tuple(self._values)

    def raw(self, name: str) -> object:
        """Whatever stands there."""
        value: object = self._value(name)
        return value

    def lists_of_texts(self, name: str) -> tuple[tuple[str, ...], ...]:
        """A list of lists of texts."""
        found = self._list(name)
        for each in found:
            if not isinstance(each, list) or not all(isinstance(one, str) for one in each):
                raise self.bad(name, "is no list of lists of texts")
        return tuple(map(tuple, found))

    def values(self, name: str) -> dict[str, Any]:
        """An object as it stands, whatever is in it."""
        value = self._value(name)
        if not isinstance(value, dict):
            raise self.bad(name, "is no object")
        return value

    def unread(self, *notes: str) -> tuple[str, ...]:
        """The fields here and within that nobody read, but for those named, which are notes."""
        here = [self._named(name) for name in self._values if name not in {*self._read, *notes}]
        return (*here, *(name for inner in self._within for name in inner.unread()))

    def bad(self, name: str, why: str) -> BadCase:
        """What is wrong with a field."""
        return BadCase(self.place, f"{self._named(name)} {why}")

    def _named(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def _value(self, name: str) -> Any:
        self._read.add(name)
        if name not in self._values:
            raise BadCase(self.place, f"missing field {self._named(name)!r}")
        return self._values[name]

    def _list(self, name: str) -> list[Any]:
        value = self._value(name)
        if not isinstance(value, list):
            raise self.bad(name, "is no list")
        return value


def read_objects(path: Path) -> Iterator[Fields | BadCase]:
    """The objects of a case file, and what is wrong with lines that are none."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            yield BadCase(str(path), f"the file is over {MAX_FILE_BYTES} bytes")
            return
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except OSError as error:
        yield BadCase(str(path), error.strerror or str(error))
        return
    except UnicodeDecodeError as error:
        yield BadCase(str(path), f"no UTF-8 at byte {error.start}")
        return
    if not any(map(str.strip, lines)):
        yield BadCase(str(path), "there is no case in it")
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield _object(Place(str(path), number), line)


def _object(place: Place, line: str) -> Fields | BadCase:
    try:
        values = json.loads(line)
    except json.JSONDecodeError as error:
        return BadCase(place, f"no JSON: {error.msg} at column {error.colno}")
    except (RecursionError, ValueError) as error:  # nested too deeply, or a number of many digits
        return BadCase(place, f"no JSON: {type(error).__name__}")
    return Fields(place, values) if isinstance(values, dict) else BadCase(place, "no JSON object")
