"""What the clients of a shared server can be asked.

Lives here: reading it off the capabilities that a client declared, and comparing a request with it. Must not: choose
whom to ask (`questions`). Called by `opening` and `questions`.

"Both parties MUST only use capabilities that were successfully negotiated" (lifecycle, Operation). A shared server was
told that all of them are there, so what a client lacks is told here.
"""

from __future__ import annotations

from typing import Any, Final

ASKED: Final = {"roots/list": "roots", "sampling/createMessage": "sampling", "elicitation/create": "elicitation"}
"""The capability that a client has to have declared to be asked this."""

_PARTS: Final = {"roots": (), "sampling": ("tools",), "elicitation": ("form", "url")}


def read_declared(capabilities: Any) -> frozenset[str]:
    """Give what a client can be asked: names of capabilities, and of parts such as `sampling.tools`.

    Args:
        capabilities: As they came in the params of `initialize`.
    """
    found: set[str] = set()
    for name, parts in _PARTS.items():
        declared = capabilities.get(name) if isinstance(capabilities, dict) else None
        if isinstance(declared, dict):
            found.add(name)
            found.update(f"{name}.{part}" for part in parts if part in declared)
            if name == "elicitation" and not declared:
                found.add("elicitation.form")  # an empty one means forms (2025-11-25/client/elicitation, Capabilities)
    return frozenset(found)


def find_missing(method: str, params: dict[str, Any], declared: frozenset[str]) -> str | None:
    """Give what a client lacks to be asked this; None when it can be asked."""
    name = ASKED.get(method)
    if name is None or name not in declared:
        return name
    needed = name
    if name == "sampling" and "tools" in params:
        needed = "sampling.tools"
    elif name == "elicitation" and (mode := params.get("mode", "form")) in ("form", "url"):
        needed = f"elicitation.{mode}"
    return None if needed in declared else needed
