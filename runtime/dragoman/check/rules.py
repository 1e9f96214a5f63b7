"""The rules that a server is held against, each with a sentence and a page of the specification.

Lives here: the table. Must not: find out whether a rule is kept (`listening`, `visit` and those that it calls).

A rule that has no page for an era does not hold in it. `must` is what the specification says with MUST, or by its
schema; `should` is everything else: what it recommends, and what is a defect by any reading.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from dragoman_spec import facts, load
from dragoman_spec.protocol import Era

Level = Literal["must", "should"]
Wires = Literal["any", "stdio", "http"]

SPECIFICATION: Final = "https://modelcontextprotocol.io/specification"

BASE: Final = ("basic", "basic")
OPENING: Final = ("basic/lifecycle", "basic/versioning")
SHAKEN: Final = ("basic/lifecycle", None)
DISCOVER: Final = (None, "server/discover")
VERSIONS: Final = (None, "basic/versioning")
META: Final = (None, "basic")
LISTEN: Final = (None, "basic/patterns/subscriptions")
TRANSPORTS: Final = ("basic/transports", "basic/transports/streamable-http")
SESSIONS: Final = ("basic/transports", None)
NO_SESSIONS: Final = (None, "basic/transports/streamable-http")
PIPE: Final = ("basic/transports", "basic/transports/stdio")
PROGRESS: Final = ("basic/utilities/progress", "basic/patterns/progress")
PAGES: Final = ("server/utilities/pagination", "server/utilities/pagination")
LOGGING: Final = ("server/utilities/logging", "server/utilities/logging")
COMPLETION: Final = ("server/utilities/completion", "server/utilities/completion")
TOOLS: Final = ("server/tools", "server/tools")
RESOURCES: Final = ("server/resources", "server/resources")
PROMPTS: Final = ("server/prompts", "server/prompts")


@dataclass(frozen=True, slots=True)
class CheckRule:
    """What a server has to do.

    Attributes:
        name: What reports call it.
        level: How strong the specification puts it.
        says: The rule, as a sentence.
        pages: Its page in revisions that open with a handshake, and in those without; None where it does not hold.
        over: The transport that it is about.
        when: Whether it holds in a revision of those eras.
    """

    name: str
    level: Level
    says: str
    pages: tuple[str | None, str | None]
    over: Wires = "any"
    when: Callable[[str], bool] = lambda revision: True

    def page(self, era: Era) -> str | None:
        """Return the path of its page."""
        return self.pages[0 if era == "handshake" else 1]


_rule: Final = CheckRule


def _http(
    name: str,
    level: Level,
    says: str,
    pages: tuple[str | None, str | None],
    when: Callable[[str], bool] = lambda revision: True,
) -> CheckRule:
    return CheckRule(name, level, says, pages, "http", when)


def _unbatched(revision: str) -> bool:
    return not facts(revision).batches


def _named(revision: str) -> bool:
    """Whether a revision says what tools may be called: those since there are icons do."""
    return "Icon" in load(revision).DEFINITIONS


def _output(revision: str) -> bool:
    return "output_schema" in load(revision).Tool.model_fields


def _names_revision(revision: str) -> bool:
    """Whether requests over HTTP have a header that names their revision."""
    return "revision" in facts(revision).headers


_ALL: Final = (
    # What is said has to be right.
    _rule("result-model", "must", "A result is valid in the revision's schema.", BASE),
    _rule("error-model", "must", "An error response is valid in the revision's schema.", BASE),
    _rule("notification-model", "must", "A notification is valid in the revision's schema.", BASE),
    _rule("request-model", "must", "A request of the server is valid in the revision's schema.", (BASE[0], None)),
    # JSON-RPC.
    _rule("stdout-messages", "must", "Nothing but messages is written to stdout.", PIPE, "stdio"),
    _rule("frame-shape", "must", "A message is a request, a response or a notification of JSON-RPC.", BASE),
    _rule("jsonrpc-version", "must", 'Each message says "jsonrpc": "2.0".', BASE),
    _rule("result-or-error", "must", "A response has a result or an error, and not both.", BASE),
    _rule("one-member", "must", "No member of a message appears twice.", BASE),
    _rule("answer-id", "must", "A response has the id of a request, in the same type.", BASE),
    _rule("answer-once", "must", "A request is answered once.", BASE),
    _rule("answered", "must", "A request is answered.", BASE),
    _rule("notification-silence", "must", "A notification is not answered.", BASE),
    _rule("no-batches", "must", "A message is not an array, where the revision has no batches.", BASE, when=_unbatched),
    _rule("request-id-fresh", "must", "The server does not use the id of a request again.", (BASE[0], None)),
    _rule("method-known", "must", "The server sends only methods that the revision lets a server send.", BASE),
    _rule("no-requests", "must", "The server sends no requests.", (None, "basic/patterns/mrtr")),
    _rule("unknown-method", "must", "A method that does not exist is answered with the error -32601.", BASE),
    _rule("in-time", "should", "The server answers soon enough for the check to end.", BASE),
    _rule("flood", "should", "The server does not send messages by the thousand that nobody asked for.", LOGGING),
    _rule("alive", "must", "The server does not end while a client talks to it.", BASE),
    _rule("ends-with-input", "should", "The server exits when its input is closed.", PIPE, "stdio"),
    # How a session opens.
    _rule("revision-known", "must", "The server answers `initialize` with a revision that there is.", SHAKEN),
    _rule("revision-answered", "must", "A revision that does not exist is answered with another.", SHAKEN),
    _rule("quiet-before-open", "should", "Before the session is open, the server asks nothing but `ping`.", SHAKEN),
    _rule("ping", "must", "`ping` is answered with an empty result.", ("basic/utilities/ping", None)),
    _rule("discover-revision", "must", "`server/discover` names the revision that it is asked in.", DISCOVER),
    _rule("discover-name", "should", "`server/discover` says the server's name.", DISCOVER),
    _rule("meta-required", "must", "A request without its metadata is refused with the error -32602.", META),
    _rule("revision-refused", "must", "A revision that does not exist is refused with the error for that.", VERSIONS),
    # Capabilities.
    _rule("declared-answers", "must", "What the server declares it answers.", OPENING),
    _rule("answers-declared", "must", "What the server answers it declares.", OPENING),
    _rule("notices-declared", "must", "The server notifies only of what it has declared.", OPENING),
    _rule("client-declared", "must", "The server asks only for what the client has declared.", OPENING),
    # Lists.
    _rule("pages-end", "should", "The pages of a list come to an end.", PAGES),
    _rule("cursor-new", "should", "Each page has another cursor than those before.", PAGES),
    _rule("cursor-checked", "should", "A cursor that does not exist is refused with the error -32602.", PAGES),
    _rule("list-order", "should", "A list that has not changed is the same each time.", PAGES),
    _rule("tool-unique", "should", "No two tools have one name.", TOOLS),
    _rule("prompt-unique", "should", "No two prompts have one name.", PROMPTS),
    _rule("resource-unique", "should", "No two resources have one URI.", RESOURCES),
    _rule("template-unique", "should", "No two templates are the same.", RESOURCES),
    # What is listed.
    _rule("tool-name", "should", "A tool's name has 1 to 128 letters, digits, `_`, `-`, `.`.", TOOLS, when=_named),
    _rule("input-schema", "must", "The input schema of a tool is a JSON Schema.", TOOLS),
    _rule("output-schema", "must", "The output schema of a tool is a JSON Schema.", TOOLS, when=_output),
    _rule("tool-hints", "should", "A tool that only reads is not said to destroy.", TOOLS),
    _rule("mirrored-arguments", "must", "A header that repeats an argument can be one.", (None, TOOLS[1])),
    _rule("argument-unique", "should", "No two arguments of a prompt have one name.", PROMPTS),
    _rule("uri", "must", "The URI of a resource is absolute.", RESOURCES),
    _rule("uri-template", "must", "The URI template of a resource is one of RFC 6570.", RESOURCES),
    _rule("mime-type", "should", "A MIME type has a type and a subtype.", RESOURCES),
    _rule("base64", "must", "Binary data is base64.", RESOURCES),
    # What is asked for.
    _rule("tool-missing", "should", "A tool that does not exist is refused with the error -32602.", TOOLS),
    _rule("prompt-missing", "should", "A prompt that does not exist is refused with the error -32602.", PROMPTS),
    _rule("prompt-arguments", "should", "A prompt without a required argument is refused with -32602.", PROMPTS),
    _rule("prompt-get", "should", "A prompt that is listed and needs no arguments can be got.", PROMPTS),
    _rule(
        "resource-missing", "should", "A resource that does not exist is refused with the error for that.", RESOURCES
    ),
    _rule("resource-read", "should", "A resource that is listed can be read.", RESOURCES),
    _rule("structured-output", "must", "A tool with an output schema gives what fits it.", TOOLS, when=_output),
    _rule("structured-text", "should", "Structured content comes with its text, too.", TOOLS, when=_output),
    _rule("completion-limit", "must", "A completion has at most 100 values.", COMPLETION),
    _rule("log-level-checked", "should", "A log level that does not exist is refused with the error -32602.", LOGGING),
    _rule("log-level-kept", "should", "No log message comes below the level that was set.", LOGGING),
    _rule("log-asked-for", "must", "No log message comes that the request did not ask for.", (None, LOGGING[1])),
    _rule("progress-token", "must", "Progress names a token that a request under way has given.", PROGRESS),
    _rule("progress-grows", "must", "Progress grows with each notification.", PROGRESS),
    _rule("subscription-acknowledged", "must", "A subscription begins with what it covers.", LISTEN),
    # HTTP.
    _http("http-content-type", "must", "A request is answered with JSON or an event stream.", TRANSPORTS),
    _http("http-accepted", "must", "A notification is answered with 202 and no body.", SESSIONS),
    _http("http-get", "must", "GET is answered with an event stream or 405.", SESSIONS),
    _http("http-origin", "must", "A foreign Origin is refused.", TRANSPORTS),
    _http("http-session-id", "must", "The id of a session is made of visible ASCII.", SESSIONS),
    _http("http-session-needed", "should", "Without the id of its session, a request gets 400.", SESSIONS),
    _http("http-session-unknown", "should", "A session that does not exist is answered with 404.", SESSIONS),
    _http("http-session-ended", "must", "A session that was ended is answered with 404.", SESSIONS),
    _http("http-no-session", "must", "The server gives no session ids.", NO_SESSIONS),
    _http("http-revision", "must", "A revision that does not exist gets 400.", TRANSPORTS, _names_revision),
    _http("http-broken-body", "must", "A body that is not JSON gets an error status.", TRANSPORTS),
    _http("http-unknown-method", "must", "A method that does not exist gets 404.", NO_SESSIONS),
    _http("http-headers-match", "must", "Headers that contradict the body get 400 and -32020.", NO_SESSIONS),
    _http("http-meta-status", "must", "A request without its metadata gets 400.", META),
)  # fmt: skip

RULES: Final[Mapping[str, CheckRule]] = MappingProxyType({rule.name: rule for rule in _ALL})
"""All rules by their names, in the order of reports."""

_OWN_PAGES: Final[Mapping[str, tuple[str | None, str | None]]] = MappingProxyType(
    {
        "tools": TOOLS,
        "resources": RESOURCES,
        "prompts": PROMPTS,
        "completion": COMPLETION,
        "logging": LOGGING,
        "message": LOGGING,
        "progress": PROGRESS,
        "cancelled": ("basic/utilities/cancellation", "basic/patterns/cancellation"),
        "initialize": (OPENING[0], None),
        "ping": ("basic/utilities/ping", None),
        "server": (None, "server/discover"),
        "subscriptions": (None, "basic/patterns/subscriptions"),
        "roots": ("client/roots", "client/roots"),
        "sampling": ("client/sampling", "client/sampling"),
        "elicitation": ("client/elicitation", "client/elicitation"),
        "tasks": ("basic/utilities/tasks", None),
    }
)
"""The page of each feature, by the first part of its methods."""


def page_of(rule: CheckRule, revision: str, era: Era, method: str | None) -> str:
    """Return the address of the page that says the rule: of a model it is the page of its method.

    Args:
        rule: Which holds in this era.
        revision: Whose page.
        era: Of that revision.
        method: What the message is about, if that is known.
    """
    path = rule.page(era)
    if rule.name.endswith("-model") and method is not None:
        own = _OWN_PAGES.get(method.removeprefix("notifications/").partition("/")[0], (None, None))
        path = own[0 if era == "handshake" else 1] or path
    return f"{SPECIFICATION}/{revision}/{path}"
