"""Methods that the runtime has to do with itself, by name: what it relays it need not know.

Which revision has which method is in the tables of `dragoman_spec`. A method that a newer revision has under another
name is known here by its first one (`first_name`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from dragoman_spec import REVISIONS, facts, load

INITIALIZED: Final = "notifications/initialized"
PING: Final = "ping"
CANCELLED: Final = "notifications/cancelled"
PROGRESS: Final = "notifications/progress"

LIST_TOOLS: Final = "tools/list"
CALL_TOOL: Final = "tools/call"
TOOLS_CHANGED: Final = "notifications/tools/list_changed"

SUBSCRIBE: Final = "resources/subscribe"
UNSUBSCRIBE: Final = "resources/unsubscribe"
UPDATED: Final = "notifications/resources/updated"

SET_LEVEL: Final = "logging/setLevel"
LOG: Final = "notifications/message"

ROOTS: Final = "roots/list"
ELICITATION: Final = "elicitation/create"
ELICITED: Final = "notifications/elicitation/complete"

COMPLETE: Final = "completion/complete"

LISTEN: Final = "subscriptions/listen"
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"

TASK_STATUS: Final = "notifications/tasks/status"

REPEATABLE: Final = frozenset(
    {
        *("initialize", "server/discover", INITIALIZED, PING, CANCELLED, SET_LEVEL, COMPLETE),
        *(LIST_TOOLS, "prompts/list", "prompts/get", "resources/list", "resources/templates/list", "resources/read"),
        *(SUBSCRIBE, UNSUBSCRIBE, LISTEN, "notifications/roots/list_changed"),
        *("tasks/get", "tasks/list", "tasks/result", "tasks/cancel"),
        None,  # responses: a server that has had one knows its id no more
    }
)
"""What a server may be sent twice, by its meaning: it reads, or the second time changes nothing more."""

FIRST_NAMES: Final[Mapping[str | None, Mapping[str, str]]] = {
    revision: {new: old for old, new in facts(revision).renamed.items()}
    for revision in REVISIONS
    if facts(revision).renamed
}
"""The first names of methods that have another one there, by revision and the name that they have."""


def first_name(revision: str | None, method: str) -> str:
    """Return the name by which the runtime knows a method of a revision."""
    return FIRST_NAMES[revision].get(method, method) if revision in FIRST_NAMES else method


NOTICES: Final = "notifications/"
"""What the names of notifications begin with, in every revision; no request is called so."""


def needs_id(method: str) -> bool:
    """Whether some revision has a request of this name: without an id, it is not a notification either."""
    return not method.startswith(NOTICES) and method in _names_of_requests()


@cache
def _names_of_requests() -> frozenset[str]:
    methods = (method for revision in REVISIONS for method in load(revision).METHODS.values())
    return frozenset(method.name for method in methods if method.kind == "request")
