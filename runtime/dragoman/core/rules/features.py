"""The features of the protocol, and what becomes of each where client and server are of different eras.

Lives here: the table, with the sentences that people read. Must not: decide which row applies (`explain`).

Which revision has a feature is never said here, but looked up: a feature is named after the methods, capabilities or
facts that make it. A test holds the table against the methods of every revision, so a new one cannot be forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final, Literal, NamedTuple

import dragoman_spec
from dragoman.core.rules.names import OLDER
from dragoman_spec.protocol import Facts
from dragoman_spec.record import record


class Status(Enum):
    """What becomes of a feature.

    Attributes:
        WORKS: It is passed on.
        EMULATED: The proxy does something else that comes to the same.
        LOST: It is not there for whoever wants it.
    """

    WORKS = "works"
    EMULATED = "emulated"
    LOST = "lost"


class Fate(NamedTuple):
    """What becomes of a feature, and why."""

    status: Status
    why: str


def works(why: str) -> Fate:
    """Say that it is passed on."""
    return Fate(Status.WORKS, why)


def emulated(why: str) -> Fate:
    """Say what is done instead."""
    return Fate(Status.EMULATED, why)


def lost(why: str) -> Fate:
    """Say why it is not there."""
    return Fate(Status.LOST, why)


@record
class Feature:
    """One row.

    Attributes:
        name: For people.
        starts: Who begins to use it: where that side does not have it, there is nothing to explain.
        alike: What becomes of it where both sides have it and are of one era.
        to_stateless: The same between a client with a handshake and a per-request server.
        to_session: The reverse.
        lacks: What becomes of it where only the side that starts it has it.
        methods: Those that it is made of, in any revision.
        exists: Whether a revision has it; by default, whether it has one of the methods.
        over_http: Which side has to be reached over Streamable HTTP for it to exist; None for no matter.
    """

    name: str
    starts: Literal["client", "server"]
    alike: Fate
    to_stateless: Fate | None = None
    to_session: Fate | None = None
    lacks: Fate | None = None
    methods: tuple[str, ...] = ()
    exists: Callable[[Facts], bool] | None = None
    over_http: Literal["client", "server"] | None = None

    def is_in(self, revision: str) -> bool:
        """Whether a revision has it."""
        if self.exists is not None:
            return self.exists(dragoman_spec.facts(revision))
        package = dragoman_spec.load(revision)
        return any(method in package.METHODS or method in package.INPUT_METHODS for method in self.methods)


def _by_capability(*paths: str) -> Callable[[Facts], bool]:
    """A revision has it if it names one of these capabilities."""
    return lambda facts: any(path in facts.client_capabilities | facts.server_capabilities for path in paths)


def _with_handshake(facts: Facts) -> bool:
    return facts.era == "handshake"


CONTENTS: Final = "contents of messages"
ROOTS: Final = "roots"
STATE: Final = "state of a session"
TASKS: Final = "tasks of tools"

_PASSED: Final = works("It is passed on.")
_REQUESTS: Final = works("Requests and answers are passed on.")
_STAMPED: Final = works("Each request repeats what the client said in `initialize`.")
_SESSION: Final = works("The proxy opens a session at the server when the first request needs it.")
_CONVERTED: Final = works("They are converted step by step; the page of each step lists what it leaves out.")
UNCHANGED: Final = works("They pass as the same bytes.")
_TO_ITS_CLIENT: Final = works("The request is passed on to the client that made the call.")
_ASKED: Final = emulated(
    "The question in the server's result becomes a request to the client; then the call is tried again."
)
_PARKED: Final = emulated(
    "The server's request becomes a question in a task or a result, and its call waits (`--questions` has other ways)."
)
PROMOTED: Final = emulated("A call in the middle of which the server asks something becomes a task of the proxy.")
"""What becomes of tasks at a server with a handshake that has none, for a client that declares the extension."""

UNASKABLE: Final = lost("The client's revision has no such request, and the server gets an error.")
"""What becomes of a question of a server with a handshake that the client cannot be asked."""

CALL_FAILS: Final = lost(
    "The client's revision has no such request: the call fails, and its answer contains the question."
)
"""The same where the question is a result of the server, which nobody waits for there."""

_APART: Final = works("They are split, and answered as arrays.")
_KEPT: Final = works("The proxy keeps what the client has not read yet.")

FEATURES: Final[tuple[Feature, ...]] = (
    Feature(
        "opening",
        "client",
        works("Each side is answered in its own revision."),
        emulated("`initialize` is answered from what the server says of itself in `server/discover`."),
        emulated("`server/discover` is answered from the handshake that the proxy makes with the server."),
        methods=("initialize", "notifications/initialized", "server/discover"),
    ),
    Feature(
        CONTENTS,
        "client",
        _CONVERTED,
        _CONVERTED,
        _CONVERTED,
        exists=lambda facts: facts.revision in dragoman_spec.REVISIONS,
    ),
    Feature("tools", "client", _REQUESTS, _STAMPED, _SESSION, methods=("tools/list", "tools/call")),
    Feature("prompts", "client", _REQUESTS, _STAMPED, _SESSION, methods=("prompts/list", "prompts/get")),
    Feature(
        "resources",
        "client",
        _REQUESTS,
        _STAMPED,
        _SESSION,
        methods=("resources/list", "resources/templates/list", "resources/read"),
    ),
    Feature("completion", "client", _REQUESTS, _STAMPED, _SESSION, methods=("completion/complete",)),
    Feature(
        "progress",
        "client",
        works("It is passed on under the client's own token."),
        works("It is passed on during the request that it belongs to."),
        works("It is passed on during the request that it belongs to."),
        methods=("notifications/progress",),
    ),
    Feature(
        "cancellation",
        "client",
        works("It is passed on under the server's own id."),
        emulated("Over HTTP the stream of the request is closed; over stdio it is passed on."),
        emulated("A stream that the client closes cancels the request at the server; over stdio it is passed on."),
        methods=("notifications/cancelled",),
    ),
    Feature(
        "log messages of a request",
        "client",
        works("They are passed on, at the level that the client set and above."),
        emulated("Each request carries the level that the client set."),
        emulated("The server has the most verbose level that a request wants; each request gets its own and above."),
        methods=("logging/setLevel", "notifications/message"),
        exists=_by_capability("logging"),
    ),
    Feature(
        "log messages outside of requests",
        "server",
        works("They are passed on."),
        lacks=lost("A per-request client is sent only what belongs to a request of its own."),
        exists=_with_handshake,
    ),
    Feature(
        "changes of lists",
        "server",
        works("Notifications are passed on."),
        emulated("The proxy opens a listen stream for the client, and passes on the notifications."),
        emulated("What the server's session says goes to the client's listen stream."),
        methods=(
            "notifications/tools/list_changed",
            "notifications/prompts/list_changed",
            "notifications/resources/list_changed",
        ),
    ),
    Feature(
        "changes of resources",
        "client",
        works("Subscriptions and notifications are passed on."),
        emulated(
            "All subscriptions of the client become one listen stream; the next is opened before the last is closed."
        ),
        emulated("Listen streams become subscriptions at the server, each resource once for all of them."),
        methods=(
            "resources/subscribe",
            "resources/unsubscribe",
            "notifications/resources/updated",
            "subscriptions/listen",
            "notifications/subscriptions/acknowledged",
        ),
    ),
    Feature(
        "elicitation by form",
        "server",
        _TO_ITS_CLIENT,
        _ASKED,
        _PARKED,
        UNASKABLE,
        methods=("elicitation/create",),
    ),
    Feature(
        "elicitation by URL",
        "server",
        _TO_ITS_CLIENT,
        _ASKED,
        emulated("The URL becomes a question in a result; where the server refused the call for it, nothing waits."),
        UNASKABLE,
        methods=("notifications/elicitation/complete",),
        exists=_by_capability("elicitation.url"),
    ),
    Feature("sampling", "server", _TO_ITS_CLIENT, _ASKED, _PARKED, UNASKABLE, methods=("sampling/createMessage",)),
    Feature(
        "tools in sampling",
        "server",
        _TO_ITS_CLIENT,
        _ASKED,
        _PARKED,
        UNASKABLE,
        exists=_by_capability("sampling.tools"),
    ),
    Feature(ROOTS, "server", _TO_ITS_CLIENT, _ASKED, _PARKED, UNASKABLE, methods=("roots/list",)),
    Feature(
        "changes of roots",
        "client",
        _PASSED,
        lacks=lost("A per-request server asks for roots when it needs them, and is not told of changes."),
        methods=("notifications/roots/list_changed",),
    ),
    Feature(
        "questions outside of requests",
        "server",
        works("The request is passed on to the client."),
        lacks=lost("A per-request client is asked only in answer to a request of its own."),
        exists=_with_handshake,
    ),
    Feature("ping", "client", _PASSED, lacks=emulated("The proxy answers it."), methods=("ping",)),
    Feature(
        TASKS,
        "client",
        works("They are passed on."),
        emulated(f"A task of the extension becomes one of {OLDER}; `tasks/result` is answered by polling."),
        emulated(f"A task of {OLDER} becomes one of the extension, and so does a call that asks something."),
        lost("The server's revision does not have them, and the client is told so."),
        methods=("tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "notifications/tasks/status"),
        exists=_by_capability("tasks", "extensions"),
    ),
    Feature(
        "tasks of clients",
        "server",
        works("They are passed on."),
        lacks=lost("The client's revision does not run tasks for its server, and the server is told so."),
        exists=_by_capability("tasks.requests.sampling", "tasks.requests.elicitation"),
    ),
    Feature("arrays of messages", "client", _APART, lacks=_APART, exists=lambda facts: facts.batches),
    Feature(
        STATE,
        "server",
        works("Each client has a session of its own."),
        lacks=emulated(
            "The proxy keeps a session for each caller, and ends it when the caller has been silent for long."
        ),
        exists=_with_handshake,
    ),
    Feature(
        "streams that can be resumed",
        "client",
        _KEPT,
        lacks=_KEPT,
        exists=lambda facts: "event" in facts.headers,
        over_http="client",
    ),
    Feature(
        "advice to caches",
        "server",
        _PASSED,
        lacks=lost("The client's revision has no place for it."),
        exists=lambda facts: bool(facts.cacheable),
    ),
    Feature(
        "extensions",
        "server",
        works("They are passed on."),
        lacks=works("They are passed on."),
        exists=lambda facts: "extensions" in facts.server_capabilities,
    ),
    Feature(
        "headers that repeat the request",
        "server",
        works("They are checked where they come in, and made anew of what goes out."),
        lacks=works("They are made of what goes out, for clients that have never heard of them too."),
        exists=lambda facts: "method" in facts.headers,
        over_http="server",
    ),
)
