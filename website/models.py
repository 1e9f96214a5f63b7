"""The models of each revision, a page for a revision: each definition with its fields, and each method."""

from __future__ import annotations

from typing import Any, Final

import dragoman_spec
from website.api import FOLDER, cell

WIDE: Final = 88
"""A longer statement stands on several lines, as formatters do it."""

HEAD: Final = """\
---
search:
  exclude: true
---

# Models of {revision}

What [`dragoman_spec.{module}`](../python-api.md) has. `Opt` is a field that may be absent; then it is `None`.

## Methods

| method | |
|---|---|
"""


def render(packages: Any) -> dict[str, str]:
    """Return the pages by their places in the site."""
    found = {}
    for revision in dragoman_spec.REVISIONS:
        module = f"v{revision.replace('-', '_')}"
        models = packages["dragoman_spec"][module]["models"]
        lines = [HEAD.format(revision=revision, module=module)]
        for name, method in dragoman_spec.load(revision).METHODS.items():
            senders = " and ".join(sorted(method.sender))
            form = f"{method.kind} of the {senders}"
            carried = [f"`{method.params}`"] if method.params else []
            if method.results:
                carried.append("→ " + " or ".join(f"`{result}`" for result in method.results))
            lines.append(f"| `{name}` | {cell(method.summary)}<br>*{form}*: {' '.join(carried) or 'no params'} |\n")
        lines.append("\n")
        for name, model in models.members.items():
            if not model.is_alias and not name.startswith("_") and model.docstring:
                lines += definition(name, model)
        found[f"{FOLDER}/{module}.md"] = "".join(lines)
    return found


def definition(name: str, model: Any) -> list[str]:
    """Return what is said of one definition."""
    says = model.docstring.value.split("\n\n")[0]
    lines = [f"## {name}\n\n{says}\n\n"]
    if not model.is_class:
        return [*lines, f"```python\n{alias_of(name, str(model.value))}\n```\n\n"]
    fields = [one for one in model.members.values() if one.is_attribute and one.annotation and one.docstring]
    if fields:
        lines.append("| field | |\n|---|---|\n")
    for one in fields:
        kind, alias = unwrap(str(one.annotation))
        wire = f" On the wire: `{alias}`." if alias else ""
        lines.append(f"| `{one.name}: {cell(kind)}` | {cell(one.docstring.value)}{wire} |\n")
    return [*lines, "\n"]


def alias_of(name: str, value: str) -> str:
    """Return the statement that names a type, an arm a line if one line is too long."""
    kind = value.removeprefix(f"TypeAliasType({name!r}, ").removesuffix(")").removeprefix("typing.")
    kind = arguments(kind.removeprefix("Annotated["))[0] if kind.startswith("Annotated[") else kind
    line = f"type {name} = {kind}"
    if len(line) <= WIDE:
        return line
    if kind.startswith("Literal["):
        return f"type {name} = Literal[\n" + "".join(f"    {one},\n" for one in arguments(kind[8:-1])) + "]"
    return f"type {name} = (\n    " + "\n    | ".join(arguments(kind, " | ")) + "\n)"


def arguments(text: str, between: str = ", ") -> list[str]:
    """Return the parts of a text of types that stand side by side, not those within brackets."""
    found, depth, begin = [], 0, 0
    for place, sign in enumerate(text):
        depth += (sign in "[(") - (sign in "])")
        if not depth and text.startswith(between, place):
            found.append(text[begin:place])
            begin = place + len(between)
    return [*found, text[begin:]]


def unwrap(annotation: str) -> tuple[str, str]:
    """Return the type within `Annotated[TYPE, Field(alias='NAME')]`, and the name."""
    annotation = annotation.removeprefix("typing.")
    if not annotation.startswith("Annotated["):
        return annotation, ""
    kind, _, more = annotation.removeprefix("Annotated[").rpartition(", Field(")
    _, _, alias = more.partition("alias=")
    return kind or annotation, alias.strip("'\")]").split("'")[0].split('"')[0]
