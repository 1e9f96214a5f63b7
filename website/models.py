"""The models of each revision, a page for a revision: each definition with its fields, and each method."""

from __future__ import annotations

from typing import Any, Final

import dragoman_spec
from website.api import FOLDER, cell

HEAD: Final = """\
---
search:
  exclude: true
---

# Models of {revision}

What [`dragoman_spec.{module}`](../python-api.md) has. Absent fields are `None`; names are those of Python, and a name
on the wire that differs stands beside it.

## Methods

| method | kind | who sends it | params | result | |
|---|---|---|---|---|---|
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
            result = " or ".join(f"`{name}`" for name in method.results)
            params = f"`{method.params}`" if method.params else ""
            lines.append(f"| `{name}` | {method.kind} | {senders} | {params} | {result} | {cell(method.summary)} |\n")
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
        return [*lines, f"`{cell(str(model.value))}`\n\n"]
    fields = [one for one in model.members.values() if one.is_attribute and one.annotation and one.docstring]
    if fields:
        lines.append("| field | type | |\n|---|---|---|\n")
    for one in fields:
        kind, alias = unwrap(str(one.annotation))
        shown = f"`{one.name}`" + (f", `{alias}`" if alias else "")
        lines.append(f"| {shown} | `{cell(kind)}` | {cell(one.docstring.value)} |\n")
    return [*lines, "\n"]


def unwrap(annotation: str) -> tuple[str, str]:
    """Return the type within `Annotated[TYPE, Field(alias='NAME')]`, and the name."""
    if not annotation.startswith("Annotated["):
        return annotation, ""
    kind, _, more = annotation.removeprefix("Annotated[").rpartition(", Field(")
    _, _, alias = more.partition("alias=")
    return kind or annotation, alias.strip("'\")]").split("'")[0].split('"')[0]
