"""Writes tests/k8s/third_party anew: strict JSON schemas of custom resources, out of packages that
hold their types.

    python tools/custom_resource_schemas.py FOLDER

FOLDER holds, unpacked, what `npm pack` brings of each package of `PACKAGES`. Of each kind that the
manifests use every field is taken, with its type, whether it must be there, and for texts and
numbers with a name of their own their patterns and bounds. What no field is named for is refused.
Types of Kubernetes itself, where a kind borrows them, are left open.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

OUT = Path(__file__).parents[1] / "tests/k8s/third_party"
PACKAGES = {
    "gateway-api": (
        "gateway.networking.k8s.io/v1/Gateway",
        "gateway.networking.k8s.io/v1/GRPCRoute",
        "gateway.networking.k8s.io/v1/BackendTLSPolicy",
    ),
    "cloudnative-pg": ("postgresql.cnpg.io/v1/Cluster",),
    "prometheus-operator": ("monitoring.coreos.com/v1/PodMonitor",),
}
"""By package (`@kubernetes-models/…`), the kinds that are taken of it."""
PLAIN = {"string": "string", "number": "number", "boolean": "boolean", "null": "null"}
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
IMPORT = re.compile(r'^import \{ (.+?) \} from "(.+?)";$', re.MULTILINE)
INTERFACE = re.compile(r"export interface I(\w+)(?: extends ([\w, ]+))? (\{.*?\n\})", re.DOTALL)
ALIAS = re.compile(r"export type I(\w+) = (.+?);\nexport", re.DOTALL)
TOKEN = re.compile(r'"[^"]*"|[\w.]+|\[key: string\]|[{}<>|;:?]')
BOUND = re.compile(
    r'schemaPath:"#/(pattern|minLength|maxLength|minimum|maximum)",keyword:"\w+",'
    r'params:\{(?:comparison:"..",)?(?:limit:(\d+)|pattern:("(?:[^"\\]|\\.)*"))\}'
)

Schema = dict[str, Any]


@dataclass
class Package:
    """One package's types, read as they are met."""

    home: Path
    definitions: dict[str, Schema] = field(default_factory=dict[str, Schema])

    def reference(self, path: Path) -> Schema:
        """A type by the file that declares it."""
        name = str(path.relative_to(self.home).with_suffix("").with_suffix(""))
        if name not in self.definitions:
            self.definitions[name] = {}  # a type may contain itself
            self.definitions[name] = self._declared(path)
        return {"$ref": f"#/$defs/{name.replace('/', '~1')}"}

    def _declared(self, path: Path) -> Schema:
        text = COMMENT.sub("", path.read_text())
        known: dict[str, Path | None] = {}
        for names, source in IMPORT.findall(text):
            for one in names.split(", "):
                here = source.startswith(".")
                found = (path.parent / source.removesuffix(".js")).with_suffix(".d.ts")
                known[one] = found.resolve() if here else None
        interface = INTERFACE.search(text)
        if interface is None:
            alias = ALIAS.search(text)
            if alias is None:
                raise ValueError(f"{path} declares no type")
            return Types(self, known, alias.group(2)).union() | self._bounds(text)
        parents = [one.strip() for one in (interface.group(2) or "").split(",") if one.strip()]
        schema = Types(self, known, interface.group(3)).union()
        for parent in parents:
            inherited = known[parent]
            if inherited is not None:
                self.reference(inherited)
                name = str(inherited.relative_to(self.home).with_suffix("").with_suffix(""))
                more = self.definitions[name]
                schema["properties"] = more["properties"] | schema["properties"]
                schema["required"] = [*more["required"], *schema["required"]]
        return schema

    def _bounds(self, text: str) -> Schema:
        """Of a named text or number, by the package's own check of it."""
        names = re.findall(r"export type \{ .*?\w+ as (\w+) \};", text)
        check = self.home / "_schemas" / f"{names[-1].removeprefix('I')}.js"
        if not check.exists():
            check = self.home / "_schemas" / f"{names[-1]}.js"
        found: Schema = {}
        for keyword, limit, pattern in BOUND.findall(check.read_text()):
            found[keyword] = int(limit) if limit else json.loads(pattern)
        return found


class Types:
    """Reads TypeScript's types as far as these packages use them."""

    def __init__(self, package: Package, known: dict[str, Path | None], text: str) -> None:
        self._package = package
        self._known = known
        self._tokens = TOKEN.findall(text)
        self._at = 0

    def _next(self) -> str:
        self._at += 1
        return str(self._tokens[self._at - 1])

    def _expect(self, sign: str) -> None:
        if not self._is(sign):
            raise ValueError(f"{sign} is missing behind {self._tokens[: self._at][-5:]}")

    def _is(self, sign: str) -> bool:
        here = self._at < len(self._tokens) and self._tokens[self._at] == sign
        self._at += here
        return here

    def union(self) -> Schema:
        """One type, or several of which any will do."""
        any_of = [self._one()]
        while self._is("|"):
            any_of.append(self._one())
        if len(any_of) == 1:
            return any_of[0]
        if all("const" in one for one in any_of):
            return {"enum": [one["const"] for one in any_of]}
        return {"anyOf": any_of}

    def _one(self) -> Schema:
        word = self._next()
        if word == "{":
            return self._object()
        if word.startswith('"'):
            return {"const": word.strip('"')}
        if word == "Array":
            self._expect("<")
            items = self.union()
            self._expect(">")
            return {"type": "array", "items": items}
        if word in PLAIN:
            return {"type": PLAIN[word]}
        if word == "any":
            return {}
        target = self._known[word]
        return {} if target is None else self._package.reference(target)

    def _object(self) -> Schema:
        properties: Schema = {}
        required: list[str] = []
        values: Schema | bool = False
        while not self._is("}"):
            name = self._next()
            optional = self._is("?")
            self._expect(":")
            told = self.union()
            self._is(";")
            if name == "[key: string]":
                values = told
                continue
            properties[name.strip('"')] = told
            if not optional:
                required.append(name.strip('"'))
        return {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": values,
        }


def main(folder: Path) -> None:
    """Write a schema for each kind, and the package's licence and name beside them."""
    for package, kinds in PACKAGES.items():
        (home,) = (one.parent for one in folder.glob(f"*{package}*/package/package.json"))
        into = OUT / package
        shutil.rmtree(into, ignore_errors=True)
        into.mkdir(parents=True)
        shutil.copy(home / "LICENSE", into / "LICENSE")
        about = json.loads((home / "package.json").read_text())
        for kind in kinds:
            read = Package(home.resolve())
            top = read.reference((home / f"{kind}.d.ts").resolve())
            whole = read.definitions[kind]
            whole["properties"].pop("status", None)  # nobody writes it down
            used: set[str] = set()
            _reached(whole, read.definitions, used)
            schema = {
                "$comment": f"written by tools/custom_resource_schemas.py from {about['name']} "
                f"{about['version']}",
                **top,
                "$defs": {name: read.definitions[name] for name in sorted(used | {kind})},
            }
            path = into / f"{Path(kind).name}.json"
            path.write_text(json.dumps(schema, indent=1, sort_keys=True) + "\n")


def _reached(node: Any, definitions: dict[str, Schema], used: set[str]) -> None:
    if isinstance(node, dict):
        told = node.get("$ref")
        if isinstance(told, str):
            name = told.removeprefix("#/$defs/").replace("~1", "/")
            if name not in used:
                used.add(name)
                _reached(definitions[name], definitions, used)
        for each in node.values():
            _reached(each, definitions, used)
    elif isinstance(node, list):
        for each in node:
            _reached(each, definitions, used)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
