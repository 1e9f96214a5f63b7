"""The client of each revision as a type: `client.py` beside its models, and `clients.py`, how one is opened.

What a client can do is a table here; which models go in and come out is read off the schema. Must not live here: how it
is done (`dragoman.client`, whose methods have these names). Called by `regen`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from codegen.names import module_name
from codegen.read.fact_entries import first_name
from codegen.read.facts import Source
from codegen.read.normalise import Normalised
from codegen.read.protocol import MethodEntry
from codegen.write.layout import environment

TEMPLATES = Path(__file__).parents[1] / "templates" / "dragoman_spec"
HANDSHAKE: Final = "handshake"

LISTS: Final = (
    ("tools/list", "tools", "tools"),
    ("resources/list", "resources", "resources"),
    ("resources/templates/list", "templates", "templates of resources"),
    ("prompts/list", "prompts", "prompts"),
    ("tasks/list", "tasks", "tasks"),
)
"""Method, name, and what is listed."""

_COMPLETED: Final = "argument: str, value: str"
CALLS: Final = (
    (
        "tools/call",
        "call",
        "tool: str, arguments: Mapping[str, Any] | None = None",
        "Call a tool. An error of the tool itself is a result whose `is_error` is true.",
    ),
    ("resources/read", "read", "uri: str", "Read a resource."),
    ("prompts/get", "prompt", "name: str, arguments: Mapping[str, str] | None = None", "Get a prompt."),
    (
        "completion/complete",
        "complete_prompt",
        f"prompt: str, {_COMPLETED}",
        "Ask how an argument of a prompt could go on.",
    ),
    (
        "completion/complete",
        "complete_template",
        f"uri: str, {_COMPLETED}",
        "Ask how an argument of a template of resources could go on.",
    ),
)
"""Method, name, arguments, and what it does."""

LONG: Final = ("tools/call", "resources/read", "prompts/get")
"""What may take so long that the server tells how far it is."""

SUBSCRIPTIONS: Final = (
    ("resources/subscribe", "subscribe", "Ask to be told when a resource changes."),
    ("resources/unsubscribe", "unsubscribe", "Ask not to be told any more."),
)

HANDLERS: Final = (
    ("sampling", "sampling/createMessage"),
    ("elicitation", "elicitation/create"),
    ("roots", "roots/list"),
)
"""What a program is asked, by the capability."""

WITHOUT_PARAMS: Final = frozenset({"roots/list"})
"""What is asked without params that say anything."""


def render_clients(sources: Sequence[Source], notice: str) -> dict[str, str]:
    """Render the clients of all revisions.

    Args:
        sources: What is known of each revision, oldest first.
        notice: The first line of each file.

    Returns:
        Unformatted Python by path below `generated/`.
    """
    templates = environment(TEMPLATES)
    output: dict[str, str] = {}
    entries: list[dict[str, Any]] = []
    asked: dict[str, MethodEntry] = {}
    for source in sources:
        methods = {first_name(source.said, entry.name): entry for entry in source.methods}
        asked |= {method: methods[method] for _, method in HANDLERS if method in methods}
        facts: dict[str, Any] = {"revision": source.revision, "module": module_name(source.revision)}
        facts["has_handshake"] = source.era == HANDSHAKE
        template = templates.get_template("client.py.jinja")
        output[f"dragoman_spec/{facts['module']}/client.py"] = template.render(
            notice=notice, **facts, **_client(source, methods)
        )
        # Without a handshake, a client is asked the same, under the same names, but not by requests.
        handlers = [
            (name, None if method in WITHOUT_PARAMS else asked[method].params, asked[method].result)
            for name, method in HANDLERS
            if method in (methods if facts["has_handshake"] else asked)
        ]
        entries.append({"literal": source.revision, "handlers": handlers, **facts})
    modules = [entry["module"] for entry in entries]
    entries += [{**newest, "literal": "any"} for newest in entries[-1:]]
    template = templates.get_template("clients.py.jinja")
    output["dragoman_spec/clients.py"] = template.render(notice=notice, modules=modules, entries=entries)
    return output


def _client(source: Source, methods: Mapping[str, MethodEntry]) -> dict[str, Any]:
    """What the client of a revision can do, and with which models."""
    return {
        "lists": LISTS,
        "calls": CALLS,
        "subscriptions": SUBSCRIPTIONS,
        "long": LONG,
        "items": {method: _item(source.schema, methods[method]) for method, _, _ in LISTS if method in methods},
        "results": {name: entry.result for name, entry in methods.items() if entry.result is not None},
        "progress": methods["notifications/progress"].params,
        "runs_tasks": "tasks/get" in methods or source.era != HANDSHAKE,
        "tells_roots": "notifications/roots/list_changed" in methods,
        "levels": "LoggingLevel" in source.schema.definitions,
    }


def _item(schema: Normalised, entry: MethodEntry) -> str:
    """What a page is a list of: the one member of the result that is an array of a definition."""
    properties = schema.definitions[str(entry.result)]["properties"]
    (found,) = [node["items"]["$ref"] for node in properties.values() if "$ref" in node.get("items", {})]
    return str(found).rpartition("/")[2]
