"""A server with a bit of everything, in any revision."""

from __future__ import annotations

import asyncio
from typing import Any

import dragoman_spec
from dragoman.errors import McpError
from dragoman.server import Context, Server

NOTE = "notes://one"
NOTICES = (
    "notifications/message",
    "notifications/tools/list_changed",
    "notifications/resources/updated",
)


def make(revision: str) -> Server:
    """Make it."""
    v = dragoman_spec.load(revision)
    server = Server("rooms", "2", revision=revision, instructions="Knock.", notifies=NOTICES)
    not_found = next((code for code, name in v.ERROR_CODES.items() if name == "RESOURCE_NOT_FOUND"), -32602)

    def first_page(params: Any) -> None:
        if params is not None and params.cursor is not None:
            raise McpError(-32602, "there is one page")

    @server.on("tools/list")
    def list_tools(params: Any, context: Context) -> dict[str, Any]:
        first_page(params)
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("count", "ask", "hang")]}

    @server.on(v.CallToolRequest)
    async def call(params: Any, context: Context) -> Any:
        match params.name:
            case "count":
                for number in range(1, 4):
                    context.progress(number, 3)
                context.log("info", {"counted": 3})
                return {"content": [{"type": "text", "text": "3"}]}
            case "ask":
                answer = await context.ask({"method": "roots/list"})
                again = await context.ask({"method": "roots/list"})
                text = f"{len(answer.roots)} and {len(again.roots)} roots"
                return v.CallToolResult(content=[v.TextContent(text=text)])
            case "hang":
                await asyncio.Event().wait()
            case "fail":
                raise RuntimeError("a secret")
            case "odd":
                return {"content": [{"type": "text"}]}
        raise McpError(-32602, f"there is no tool {params.name}")

    @server.on("resources/list")
    def list_resources(params: Any, context: Context) -> dict[str, Any]:
        first_page(params)
        return {"resources": [{"uri": NOTE, "name": "one"}]}

    @server.on("resources/templates/list")
    def list_templates(params: Any, context: Context) -> dict[str, Any]:
        first_page(params)
        return {"resourceTemplates": []}

    @server.on(v.ReadResourceRequest)
    def read(params: Any, context: Context) -> dict[str, Any]:
        if params.uri != NOTE:
            raise McpError(not_found, "there is no such note")
        return {"contents": [{"uri": NOTE, "text": "hello"}]}

    return server
