"""Long answers of servers whose requests each speak for themselves: passed undecoded, unless they say what is ours."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any

import orjson
import pytest

from dragoman.core import exact_json
from tests.proxy.test_per_request import asks
from tests.transports.http.stage import Stage, on_loop, serving, within
from tests.transports.http.test_per_request import QUICK, call, posts
from tests.transports.http.test_per_request_relay import TOOLS, begin, play

LONG = "y" * 9000
MANY = ",".join(f'"{number:04}"' for number in range(1500))
"""Strings that are too many for a line to be looked at without its long ones."""

COMPLETE = '"resultType":"complete"'
PLAIN = {"name": "plain", "description": LONG, "inputSchema": {"type": "object"}}


async def opened(stage: Stage, principal: str = "") -> None:
    """The server is known, and has been asked for what needs no list of tools."""
    play(stage, principal)
    first = await begin(stage, asks(1, "prompts/list"))
    stage.server.answer((await stage.server.hear())["id"], resultType="complete", prompts=[])
    await within(first)


async def answered(stage: Stage, text: str, frame: dict[str, Any], **headers: str) -> bytes:
    """Give what a client gets whose server answers with this text, in which `%d` is the id that it has there."""
    asking = posts(stage, frame, **headers)
    stage.server.end.write((text % (await stage.server.hear())["id"]).encode() + b"\n")
    body: bytes = await (await within(asking)).body()
    return body


@pytest.mark.parametrize("filling", [f'"{LONG}"', f"[{MANY}]"])
@pytest.mark.parametrize(
    "says",
    [
        '"resultType":"input_required"',
        '"resultType" : "input\\u005frequired"',
        '"result\\u0054ype":"input_required"',
        '"result\\u0054ype":"\\u0069nput_required"',
        f'{COMPLETE},"resultType":"input_required"',
        f'{COMPLETE},"resultType":"inpu\\u0074_required"',
    ],
)
@on_loop
async def test_a_state_in_a_long_answer_is_bound_to_its_client_however_it_is_spelled(says: str, filling: str) -> None:
    async with serving(QUICK) as stage:
        await opened(stage, "alice")
        text = f'{{"jsonrpc":"2.0","id":%d,"result":{{"filling":{filling},{says},"requestState":"secret"}}}}'
        told = json.loads(await answered(stage, text, asks(2, "prompts/get", name="a")))
        assert (told["id"], told["result"]["resultType"]) == (2, "input_required")
        assert told["result"]["requestState"] != "secret"


@pytest.mark.parametrize("filling", [f'"{LONG}"', f"[{MANY}]"])
@pytest.mark.parametrize(
    "text",
    [
        '{"jsonrpc":"2.0","id":%d,"result":{"filling":FILLING},"id":99,"more":[1,2,3]}',
        '{"jsonrpc":"2.0","id":%d,"result":{"id":7,"filling":FILLING}}',
        '{"jsonrpc":"2.0","id":%d,"result":{"\\"id":7,"id\\"":8,"\\\\":"id","filling":FILLING}}',
        '{"result":{"filling":FILLING,"text":"\\"id\\":5}"},"id":%d,"jsonrpc":"2.0"}',
    ],
)
@on_loop
async def test_a_long_answer_has_the_id_of_its_client_alone(text: str, filling: str) -> None:
    async with serving(QUICK) as stage:
        await opened(stage)
        text = text.replace("FILLING", filling)
        pairs = json.loads(
            await answered(stage, text, asks("mine", "prompts/get", name="a")), object_pairs_hook=lambda p: p
        )
        ids = [value for name, value in pairs if name == "id"]
        assert ids == ["mine"]
        assert dict(dict(pairs)["result"])["filling"] == json.loads(filling)


@pytest.mark.parametrize("size", [97, 1000, 4096])
@on_loop
async def test_a_long_answer_that_comes_in_pieces_is_passed_as_the_bytes_it_is(size: int) -> None:
    async with serving(QUICK) as stage:
        await opened(stage)
        asking = posts(stage, asks(2, "prompts/get", name="a"))
        number = (await stage.server.hear())["id"]
        text = (
            f'{{ "jsonrpc" : "2.0" , "id" : {number} , "result" : {{ {COMPLETE} , "messages" : ["{LONG}", 1.0 ] }} }}'
        )
        for start in range(0, len(text), size):
            stage.server.end.write(text[start : start + size].encode())
        stage.server.end.write(b"\n")
        body = await (await within(asking)).body()
        assert body == text.replace(f'"id" : {number}', '"id" : 2').encode() + b"\n"


@on_loop
async def test_a_long_request_is_decoded_once_and_its_answer_never(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = Counter[str]()

    def count(name: str, original: Any) -> Any:
        def look(text: bytes) -> Any:
            for mark in (b"the request", b"the answer"):
                counts[f"{name} {mark.decode()}"] += mark in text
            return original(text)

        return look

    async with serving(QUICK) as stage:
        await opened(stage)
        monkeypatch.setattr(orjson, "loads", count("decoded", orjson.loads))
        outlined = count("outlined", exact_json.outline)
        for module in ("calls", "envelope", "exact_json", "peek"):
            monkeypatch.setattr(f"dragoman.core.{module}.outline", outlined, raising=False)
        for module in ("http.reading", "lines", "upstream.link"):
            monkeypatch.setattr(f"dragoman.transports.{module}.outline", outlined, raising=False)
        again = asks(3, "prompts/get", name="a", arguments={"mark": "the request", "text": LONG})
        said = asyncio.create_task(
            stage.post(again, **{"mcp-protocol-version": again["params"]["_meta"][VERSION], **HEADS})
        )
        number = (await stage.server.hear())["id"]
        stage.server.answer(number, resultType="complete", mark="the answer", text=LONG)
        await (await within(said)).body()
    assert counts == {
        "decoded the request": 1,
        "outlined the request": 1,
        "decoded the answer": 0,
        "outlined the answer": 1,
    }


VERSION = "io.modelcontextprotocol/protocolVersion"
HEADS = {"mcp-method": "prompts/get", "mcp-name": "a"}


def listed(*tools: dict[str, Any], spelled: str = "x-mcp-header") -> str:
    """A long list of tools."""
    text = json.dumps([PLAIN, *tools]).replace("x-mcp-header", spelled)
    return f'{{"jsonrpc":"2.0","id":%d,"result":{{{COMPLETE},"tools":{text},"ttlMs":0,"cacheScope":"private"}}}}'


@pytest.mark.parametrize("spelled", ["x-mcp-header", "x\\u002dmcp\\u002dheader", "\\u0078-mcp-header"])
@on_loop
async def test_a_long_list_says_which_arguments_are_repeated_however_it_is_spelled(spelled: str) -> None:
    async with serving(QUICK) as stage:
        await opened(stage)
        told = json.loads(await answered(stage, listed(*TOOLS, spelled=spelled), asks(2, "tools/list")))
        assert [tool["name"] for tool in told["result"]["tools"]] == ["plain", "echo", "bad"]
        assert "x-mcp-header" not in told["result"]["tools"][2]["inputSchema"]["properties"]["zone"]
        reply = await within(posts(stage, call(3, arguments={"zone": "north"})))
        assert (reply.status, (await reply.frame())["error"]["code"]) == (400, -32020)


@on_loop
async def test_a_call_after_a_long_list_that_says_nothing_of_headers_needs_no_other_list() -> None:
    async with serving(QUICK) as stage:
        await opened(stage)
        for number in (2, 3):
            await answered(stage, listed(), asks(number, "tools/list"))
        calling = posts(stage, asks(4, "tools/call", name="plain"))
        heard = await stage.server.hear()
        assert heard["method"] == "tools/call"
        stage.server.answer(heard["id"], resultType="complete", content=[])
        await within(calling)
        posts(stage, call(5))
        assert (await stage.server.hear())["method"] == "tools/list"  # `echo` is not known


@pytest.mark.parametrize("has_call", [False, True])
@on_loop
async def test_of_several_long_lists_the_last_one_counts(has_call: bool) -> None:
    bare = {"name": "echo", "inputSchema": {"type": "object"}}
    async with serving(QUICK) as stage:
        await opened(stage)
        for number, tool in enumerate((bare, TOOLS[0], bare, TOOLS[0], bare), 2):
            await answered(stage, listed(tool), asks(number, "tools/list"))
            if has_call or number in (5, 6):
                calling = posts(stage, call(10 + number, arguments={"zone": "north"}))
                if tool is bare:
                    stage.server.answer((await stage.server.hear())["id"], resultType="complete", content=[])
                assert (await within(calling)).status == (200 if tool is bare else 400)
