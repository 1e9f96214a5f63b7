"""A client as people write it, with the default settings of its SDK: `python client.py KIND PLAN TARGET…`.

KIND is `mcp-1`, `mcp-2` or `fastmcp-4`, or `mcp-2-pinned` for a client that speaks nothing but 2026-07-28. PLAN is JSON
with the `calls`, `prompts` and `reads` to try; with `asks`, the client answers questions, too. TARGET is a URL or a
command. Prints for each operation its result or what it raised; which is right is not decided here. Imports nothing of
Dragoman.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio

OPEN_S = 45
OPERATION_S = 20
PINNED = "2026-07-28"


ANSWER = {"color": "red"}


async def answer_person(context: Any, params: Any) -> Any:
    """Answer for the person."""
    from mcp.types import ElicitResult

    return ElicitResult(action="accept", content=ANSWER)


async def answer_model(context: Any, params: Any) -> Any:
    """Answer for the model."""
    from mcp.types import CreateMessageResult, TextContent

    return CreateMessageResult(role="assistant", content=TextContent(type="text", text="hello"), model="tiny")


def answers(asks: bool) -> dict[str, Any]:
    """Return the options by which a client of the SDK answers questions."""
    return {"elicitation_callback": answer_person, "sampling_callback": answer_model} if asks else {}


@contextlib.asynccontextmanager
async def mcp_1(target: list[str], asks: bool) -> AsyncIterator[Any]:
    """Open a session of release 1.x."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamablehttp_client

    by_url = target[0].startswith("http")
    parameters = StdioServerParameters(command=target[0], args=target[1:])
    async with (
        streamablehttp_client(target[0]) if by_url else stdio_client(parameters) as streams,
        ClientSession(streams[0], streams[1], **answers(asks)) as session,
    ):
        session.opened = await session.initialize()
        yield session


@contextlib.asynccontextmanager
async def mcp_2(target: list[str], asks: bool, **options: Any) -> AsyncIterator[Any]:
    """Open a session of release 2.x."""
    from mcp import Client, StdioServerParameters

    where = target[0] if target[0].startswith("http") else StdioServerParameters(command=target[0], args=target[1:])
    async with Client(where, **answers(asks), **options) as client:
        yield client


@contextlib.asynccontextmanager
async def fastmcp_4(target: list[str], asks: bool) -> AsyncIterator[Any]:
    """Open a session of FastMCP, whose methods that return the protocol's results have a name of their own."""
    from fastmcp import Client
    from fastmcp.client.transports import StdioTransport

    async def person(message: str, kind: Any, params: Any, context: Any) -> dict[str, str]:
        return ANSWER

    async def model(messages: Any, params: Any, context: Any) -> str:
        return "hello"

    where = target[0] if target[0].startswith("http") else StdioTransport(command=target[0], args=target[1:])
    answering = {"elicitation_handler": person, "sampling_handler": model} if asks else {}
    async with Client(where, **answering) as client:
        yield client


OPENERS: dict[str, Callable[[list[str], bool], Any]] = {
    "mcp-1": mcp_1,
    "mcp-2": mcp_2,
    "mcp-2-pinned": lambda target, asks: mcp_2(target, asks, mode=PINNED),
    "fastmcp-4": fastmcp_4,
}


def method(client: Any, name: str) -> Callable[..., Awaitable[Any]]:
    """Return the method that gives the protocol's result."""
    found: Callable[..., Awaitable[Any]] = getattr(client, f"{name}_mcp", None) or getattr(client, name)
    return found


async def outcome(operation: Callable[..., Awaitable[Any]], *arguments: Any) -> dict[str, Any]:
    """Perform one operation."""
    try:
        with anyio.fail_after(OPERATION_S):
            found = await operation(*arguments)
    except Exception as error:
        return {"raised": f"{type(error).__name__}: {error}"[:1000]}
    return {"result": found.model_dump(mode="json", by_alias=True, exclude_unset=True)}


async def work(client: Any, plan: dict[str, Any], report: dict[str, Any]) -> None:
    """Perform all operations in their order."""
    listed = ("list_tools", "list_prompts", "list_resources", "list_resource_templates")
    for name in listed:
        report[name.replace("_", " ")] = await outcome(method(client, name))
    for name, arguments in plan.get("calls", {}).items():
        report[f"call {name}"] = await outcome(method(client, "call_tool"), name, arguments)
    for name, arguments in plan.get("prompts", {}).items():
        report[f"get {name}"] = await outcome(method(client, "get_prompt"), name, arguments or None)
    for uri in plan.get("reads", ()):
        report[f"read {uri}"] = await outcome(method(client, "read_resource"), uri)


def describe(client: Any) -> dict[str, Any]:
    """Say what was opened."""
    opened = getattr(client, "opened", client)
    about = getattr(opened, "server_info", None) or getattr(opened, "serverInfo", None)
    capabilities = getattr(opened, "server_capabilities", None) or getattr(opened, "capabilities", None)
    revision = getattr(opened, "protocol_version", None) or getattr(opened, "protocolVersion", None)
    dumped = capabilities.model_dump(mode="json", by_alias=True, exclude_unset=True) if capabilities else {}
    return {"name": getattr(about, "name", None), "capabilities": dumped, "revision": str(revision)}


async def main(kind: str, plan: dict[str, Any], target: list[str]) -> None:
    """Visit, and print the report."""
    report: dict[str, Any] = {}
    try:
        with anyio.CancelScope() as scope:
            scope.deadline = anyio.current_time() + OPEN_S
            async with OPENERS[kind](target, plan.get("asks", False)) as client:
                scope.deadline = float("inf")
                report["open"] = {"result": describe(client)}
                await work(client, plan, report)
        report.setdefault("open", {"raised": f"not open after {OPEN_S} s"})
    except BaseException as error:
        while isinstance(error, BaseExceptionGroup) and error.exceptions:
            error = error.exceptions[0]
        # What is raised on the way out does not undo what was done.
        report.setdefault("open", {"raised": f"{type(error).__name__}: {error}"[:1000]})
    print(json.dumps(report))


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], json.loads(sys.argv[2]), sys.argv[3:])
