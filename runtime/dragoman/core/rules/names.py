"""What the bridge takes from the tables of `dragoman_spec`, and the few names of extensions that no table has.

Lives here: looking up, once. Must not: decide anything. Called by the modules of the bridge.

The bridge stands between two neighbours: the oldest revision of the per-request era, and the one with a handshake
from which the step into it leads. What lies beyond either is for the steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import dragoman_spec
from dragoman_spec import HANDSHAKE_REVISIONS, PER_REQUEST_REVISIONS, facts
from dragoman_spec.revisions import steps_between

NEWER: Final = PER_REQUEST_REVISIONS[0]
"""The side of the bridge where each request speaks for itself."""

OLDER: Final = steps_between(HANDSHAKE_REVISIONS[0], NEWER)[-1][0]
"""The side of the bridge with a handshake."""

FACTS: Final = facts(NEWER)
OLDER_FACTS: Final = facts(OLDER)

DISCOVER: Final = FACTS.lifecycle["discover"]
"""The method by which a server without a handshake says what it is."""

META_VERSION: Final = FACTS.request_meta["protocolVersion"]
META_CLIENT_INFO: Final = FACTS.request_meta["clientInfo"]
META_CLIENT_CAPABILITIES: Final = FACTS.request_meta["clientCapabilities"]
META_LOG_LEVEL: Final = FACTS.request_meta["logLevel"]
META_SERVER_INFO: Final = FACTS.result_meta["serverInfo"]
META_SUBSCRIPTION_ID: Final = FACTS.notification_meta["subscriptionId"]

_CODES: Final = {name: code for code, name in dragoman_spec.load(NEWER).ERROR_CODES.items()}
_OLDER_CODES: Final = {
    name: code for older in HANDSHAKE_REVISIONS for code, name in dragoman_spec.load(older).ERROR_CODES.items()
}
"""Of all revisions with a handshake: a newer one of them need not name each again."""

_OF_A_HOP: Final = {
    code: name
    for revision in PER_REQUEST_REVISIONS
    for code, name in dragoman_spec.load(revision).ERROR_CODES.items()
    if name in ("HEADER_MISMATCH", "MISSING_REQUIRED_CLIENT_CAPABILITY", "UNSUPPORTED_PROTOCOL_VERSION")
}


def name_of_hop_error(code: object) -> str | None:
    """Return the name of an error that is about one hop, in any revision without a handshake; None for all others."""
    return _OF_A_HOP.get(code) if isinstance(code, int) else None


HEADER_MISMATCH: Final = _CODES["HEADER_MISMATCH"]
MISSING_CLIENT_CAPABILITY: Final = _CODES["MISSING_REQUIRED_CLIENT_CAPABILITY"]
UNSUPPORTED_VERSION: Final = _CODES["UNSUPPORTED_PROTOCOL_VERSION"]
URL_ELICITATION_REQUIRED: Final = _OLDER_CODES["URL_ELICITATION_REQUIRED"]

TASKS_EXTENSION: Final = "io.modelcontextprotocol/tasks"

TASK_METHODS: Final[Mapping[str, str]] = MappingProxyType(
    {"tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId"}
)
"""The methods of the tasks extension, and the param that names what each is about."""
