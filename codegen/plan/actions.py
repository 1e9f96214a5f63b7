"""What the actions of `codegen/support` declare about themselves, read from their source.

An action is a function under `@action(…)`; its keyword-only arguments are what an entry's `with` may say. Read, not
imported: the generator must run where `generated/` is missing. Must not live here: which entry asks for which action.
Called by its neighbours and by `write`.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

SUPPORT = Path(__file__).parents[1] / "support"
"""Where the modules of `dragoman_spec` stand that are the same for every input."""

MODULES = {"actions": "do", "frames": "frames", "mcp": "mcp", "scalars": "scalars", "schemas": "schemas"}
"""Where actions are, and what generated steps call these modules."""

CHECK = "check"
"""The argument in which the generator hands an action the predicate of the target type."""


@dataclass(frozen=True, slots=True)
class Declared:
    """One action: what it is called on, what it takes, and what the planner has to know of it.

    `on` is `value`, `frame` or `error`; the rest is as `dragoman_spec.actions.action` says.
    """

    name: str
    module: str
    on: str
    arguments: frozenset[str]
    needed: frozenset[str]
    facts: Mapping[str, Any] = field(default_factory=dict)
    says: str = ""
    """The first sentence of its docstring."""

    def has(self, fact: str) -> bool:
        """Whether the action declares a fact: `changes`, `gone`, `fresh`, `checked`, `refuses`."""
        return bool(self.facts.get(fact))


@cache
def declared_actions() -> dict[str, Declared]:
    """Every action by the name that entries have for it: `text-block` is `text_block`."""
    found: dict[str, Declared] = {}
    for file, module in MODULES.items():
        tree = ast.parse((SUPPORT / f"{file}.py").read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                calls = [decorator for decorator in node.decorator_list if isinstance(decorator, ast.Call)]
                found |= dict(_declared(node, call, module) for call in calls if ast.unparse(call.func) == "action")
    return dict(sorted(found.items()))


def action(name: str) -> Declared | None:
    """The declaration of an action, or `None` where there is no action of that name."""
    return declared_actions().get(name)


def declares(name: str, fact: str) -> bool:
    """Whether there is an action of a name, and it declares a fact."""
    found = action(name)
    return found is not None and found.has(fact)


def _declared(node: ast.FunctionDef, decorator: ast.Call, module: str) -> tuple[str, Declared]:
    facts = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in decorator.keywords}
    taken = node.args.kwonlyargs
    needed = {argument.arg for argument, default in zip(taken, node.args.kw_defaults, strict=True) if default is None}
    name = node.name.replace("_", "-")
    arguments = frozenset(argument.arg for argument in taken) - {CHECK}
    on = str(ast.literal_eval(decorator.args[0]))
    says = " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())
    return name, Declared(name, module, on, arguments, frozenset(needed) - {CHECK}, facts, says)
