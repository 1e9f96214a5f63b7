"""The typed client with real servers of all five revisions: in their own models, and in the newest ones.

Each client of a revision of its own is pinned; over stdio it is the server's own process, over HTTP a server that
listens. What a client gets is held against the types of the revision that it was opened with.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

import dragoman
import dragoman_spec
from dragoman.errors import CapabilityNotSupported, InitializationTimeout, McpError, RemoteProtocolError
from tests.peers.matching import REVISIONS
from tests.peers.visits import HERE, listening_server, native, needs_peers, python_in, server_command

LETTERS = (*REVISIONS, "E")
NEWEST = dragoman_spec.LATEST
TEXT_URI = "file:///home/user/document.txt"
LIMIT_S = 90


def command_of(letter: str) -> list[str]:
    if letter == "E":
        return [python_in("current"), str(HERE / "stateless.py")]
    return server_command(letter)


def revision_of(letter: str) -> str:
    return NEWEST if letter == "E" else REVISIONS[letter]


def visit(letter: str, link: str, revision: str, folder: Path, **more: Any) -> None:
    """Open a client at a server, and use everything that the server has."""
    with contextlib.ExitStack() as stack:
        target: Any = command_of(letter)
        if link == "http":
            target = stack.enter_context(listening_server(target, native("http", letter), folder / "log"))
        asyncio.run(asyncio.wait_for(open_and_use(target, letter, revision, **more), LIMIT_S))


def handlers_for(models: Any, revision: str) -> dict[str, Any]:
    async def roots() -> Any:
        return models.ListRootsResult(roots=[models.Root(uri="file:///srv")])

    async def sample(params: Any) -> Any:
        assert isinstance(params, models.CreateMessageRequestParams)
        return models.CreateMessageResult(role="assistant", model="m", content=models.TextContent(text="sampled"))

    async def fill_in(params: Any) -> Any:
        return models.ElicitResult(action="accept", content={"city": "Paris", "color": "red"})

    asked = dragoman_spec.facts(revision).asked.values()
    return {"roots": roots, "sampling": sample} | ({"elicitation": fill_in} if "elicitation" in asked else {})


async def open_and_use(target: Any, letter: str, revision: str, **more: Any) -> None:
    name = NEWEST if revision == "any" else revision
    models = dragoman_spec.load(name)
    options: Any = {"revision": revision, "timeout_s": 60, **handlers_for(models, name), **more}
    async with dragoman.connect(target, **options) as client:
        assert client.server_revision == revision_of(letter)
        assert client.server_info.name in ("peer", "stateless")
        await use_lists(client, models)
        await use_calls(client, models)
        await use_questions(client, letter)
        await use_changes(client, models)


async def use_lists(client: Any, models: Any) -> None:
    tools = [tool async for tool in client.tools()]
    assert all(type(tool) is models.Tool for tool in tools)
    assert {"echo", "slow", "logs"} <= {tool.name for tool in tools}
    assert (await anext(client.resources())).uri == TEXT_URI  # release 1.6.0 never gets to another page
    assert [template.uri_template async for template in client.templates()] == ["weather://{city}"]
    assert {"greet", "gallery"} <= {prompt.name async for prompt in client.prompts()}
    assert (await client.read(TEXT_URI)).contents[0].text == "Once upon a time"
    prompt = await client.prompt("greet", {"who": "you"})
    assert (type(prompt), prompt.messages[0].content.text) == (models.GetPromptResult, "Hello you")
    with pytest.raises(McpError):
        await client.read("file:///nowhere")
    try:
        completed = await client.complete_prompt("greet", "who", "x")
    except CapabilityNotSupported:  # servers of the first revision have no way to declare it
        return
    assert completed.completion.values[0] == "x-one"


async def use_calls(client: Any, models: Any) -> None:
    told: list[Any] = []
    result = await client.call("echo", {"say": "hello"})
    assert type(result) is models.CallToolResult
    assert "hello" in result.content[0].text
    assert (await client.call("failing")).is_error
    await client.call("slow", {"steps": 3}, progress=told.append)
    assert [type(one) for one in told] == [models.ProgressNotificationParams] * len(told)
    assert [one.progress for one in told][-1:] == [3]
    await client.set_log_level("error")
    logged = client.notifications()
    await client.call("logs")
    async with asyncio.timeout(20):
        assert type(await anext(logged)) is models.LoggingMessageNotification


async def use_questions(client: Any, letter: str) -> None:
    kinds = {"ask_roots": "once" if letter == "E" else "all", "ask_sampling": "text"}
    if letter in "CDE" and "elicitation" in dragoman_spec.facts(client.revision).asked.values():
        kinds["ask_user"] = "form"
    for tool, kind in kinds.items():
        answer = json.loads((await client.call(tool, {"kind": kind})).content[0].text)
        assert any(word in str(answer) for word in ("file:///srv", "sampled", "Paris", "red")), answer


async def use_changes(client: Any, models: Any) -> None:
    if not client.declares("resources.subscribe"):
        return
    async with client.listen(TEXT_URI) as changes, asyncio.timeout(30):
        await client.call("touch", {"uri": TEXT_URI})
        change = await anext(changes)
    assert (type(change), change.params.uri) == (models.ResourceUpdatedNotification, TEXT_URI)


@needs_peers
@pytest.mark.parametrize("link", ["stdio", "http"])
@pytest.mark.parametrize("letter", LETTERS)
def test_a_client_of_the_same_revision(letter: str, link: str, tmp_path: Path) -> None:
    visit(letter, link, revision_of(letter), tmp_path)


@needs_peers
@pytest.mark.parametrize(
    ("letter", "link"), [("A", "stdio"), ("B", "http"), ("C", "http"), ("D", "stdio"), ("E", "http")]
)
def test_a_client_of_any_revision(letter: str, link: str, tmp_path: Path) -> None:
    visit(letter, link, "any", tmp_path)


@needs_peers
@pytest.mark.parametrize(("letter", "revision"), [("D", "2025-06-18"), ("E", "2025-11-25")])
def test_a_pinned_client_of_another_revision_is_told_so(letter: str, revision: str, tmp_path: Path) -> None:
    with pytest.raises(RemoteProtocolError):
        visit(letter, "stdio", revision, tmp_path)


@needs_peers
def test_a_client_without_a_handshake_gives_a_silent_server_up(tmp_path: Path) -> None:
    """Release 1.6 of the Python SDK says nothing to a method that it does not know."""
    with pytest.raises(InitializationTimeout):
        visit("A", "stdio", NEWEST, tmp_path, init_timeout_s=10)
