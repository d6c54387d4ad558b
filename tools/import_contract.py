"""An import-linter contract that names what may be imported instead of what may not.

A list of forbidden modules forgets what is added later; a list of allowed ones cannot.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import cast

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class OnlyContract(Contract):
    """Modules that import only themselves and what is allowed.

    - source_modules: packages or modules, with `*` for any one name.
    - allowed_modules: packages or modules that they may import, with `*` within a name.
    - internal_only: judge imports within this project alone.
    """

    type_name = "only"

    source_modules = fields.SetField(subfield=fields.StringField())
    allowed_modules = fields.SetField(subfield=fields.StringField())
    internal_only = fields.BooleanField(required=False, default=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: ARG002  # the interface's
        """Every import of a source module that is not allowed breaks the contract."""
        # The linter puts the configured values where the class names their fields.
        sources = cast("set[str]", self.source_modules)
        everything_allowed = cast("set[str]", self.allowed_modules)
        internal_only = cast("bool", self.internal_only)
        broken = []
        for module in sorted(graph.modules):
            homes = [home for source in sources if (home := within(module, source))]
            if not homes or graph.is_module_squashed(module):
                continue
            for imported in sorted(graph.find_modules_directly_imported_by(module)):
                if internal_only and graph.is_module_squashed(imported):
                    continue
                if any(within(imported, home) for home in homes):
                    continue
                if not any(within(imported, allowed) for allowed in everything_allowed):
                    broken.append((module, imported))
        unknown = sorted(
            source
            for source in sources
            if not any(within(module, source) for module in graph.modules)
        )
        return ContractCheck(
            kept=not broken and not unknown, metadata={"broken": broken, "unknown": unknown}
        )

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Say which import of which module it was."""
        for source in check.metadata["unknown"]:
            output.print_error(f"- no module fits {source}")
        for module, imported in check.metadata["broken"]:
            output.print_error(f"- {module} may not import {imported}")


def within(module: str, pattern: str) -> str | None:
    """The package or module fitting `pattern` that `module` is or lies in, if there is one."""
    names, wanted = module.split("."), pattern.split(".")
    if len(names) < len(wanted) or not all(map(fnmatchcase, names, wanted)):
        return None
    return ".".join(names[: len(wanted)])
