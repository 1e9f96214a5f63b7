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
        return [*lines, f"`{cell(str(model.value))}`\n\n"]
    fields = [one for one in model.members.values() if one.is_attribute and one.annotation and one.docstring]
    if fields:
        lines.append("| field | |\n|---|---|\n")
    for one in fields:
        kind, alias = unwrap(str(one.annotation))
        wire = f" On the wire: `{alias}`." if alias else ""
        lines.append(f"| `{one.name}: {cell(kind)}` | {cell(one.docstring.value)}{wire} |\n")
    return [*lines, "\n"]


def unwrap(annotation: str) -> tuple[str, str]:
    """Return the type within `Annotated[TYPE, Field(alias='NAME')]`, and the name."""
    if not annotation.startswith("Annotated["):
        return annotation, ""
    kind, _, more = annotation.removeprefix("Annotated[").rpartition(", Field(")
    _, _, alias = more.partition("alias=")
    return kind or annotation, alias.strip("'\")]").split("'")[0].split('"')[0]
