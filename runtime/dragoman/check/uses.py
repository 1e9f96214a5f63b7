"""Using what a server offers, as far as that is safe: reading, prompts that need nothing, tools that only read.

Lives here: what is asked for, and judging what comes by what no schema of the protocol says. Must not: call a tool that
does not say that it only reads, nor one that needs arguments.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Mapping
from typing import Any, Final

from dragoman.check.json_schemas import find_misfits
from dragoman.check.lists import ListedItem
from dragoman.check.talk import Talk
from dragoman.core.codes import INVALID_PARAMS
from dragoman.core.unchecked import find

MOST: Final = 20
"""How many of each kind are used."""

COMPLETION_MOST: Final = 100
MISSING: Final = "dragoman-check-no-such-thing"
MISSING_URI: Final = "dragoman-check://no-such-resource"


class Usables:
    """Those of the things that are listed that are going to be used.

    Args:
        calls_tools: Whether tools are called that say that they only read.
    """

    def __init__(self, calls_tools: bool) -> None:
        self._calls_tools = calls_tools
        self._items: dict[str, list[ListedItem]] = {}

    def take(self, member: str, item: ListedItem) -> None:
        """Keep something, if it is to be used: it is listed as this member of a result."""
        found = self._items.setdefault(member, [])
        if len(found) < MOST and self._is_usable(member, item.value):
            found.append(item)

    def of(self, member: str) -> list[ListedItem]:
        """Return those of one kind."""
        return self._items.get(member, [])

    def _is_usable(self, member: str, value: Mapping[str, Any]) -> bool:
        if member == "tools":
            return self._calls_tools and _only_reads(value)
        return member != "resourceTemplates" or "{" not in str(value.get("uriTemplate"))


async def use_offer(talk: Talk, usables: Usables) -> None:
    """Use what is offered."""
    for item in usables.of("resources"):
        await _read(talk, item.value.get("uri"))
    for item in usables.of("resourceTemplates"):
        await _read(talk, item.value.get("uriTemplate"))
    for item in usables.of("prompts"):
        await _get_prompt(talk, item)
    for item in usables.of("tools"):
        await _call(talk, item.value)


async def use_missing(talk: Talk, listed: Collection[str]) -> None:
    """Ask for a tool, a prompt and a resource that do not exist, as far as such things are listed."""
    if "tools" in listed:
        reply = await talk.request("tools/call", {"name": MISSING, "arguments": {}}, about="tools/call of no tool")
        talk.expect_error("tool-missing", reply, INVALID_PARAMS)
    if "prompts" in listed:
        reply = await talk.request("prompts/get", {"name": MISSING}, about="prompts/get of no prompt")
        talk.expect_error("prompt-missing", reply, INVALID_PARAMS)
    if "resources" in listed:
        reply = await talk.request("resources/read", {"uri": MISSING_URI}, about="resources/read of no resource")
        talk.expect_error("resource-missing", reply, talk.codes.get("RESOURCE_NOT_FOUND", INVALID_PARAMS))


async def _read(talk: Talk, uri: Any) -> None:
    if not isinstance(uri, str):
        return
    reply = await talk.request("resources/read", {"uri": uri}, about=f"resources/read of {uri[:80]}")
    about = f"the answer to {reply.about}"
    if reply.error is not None:
        talk.note("resource-read", reply, "its contents, because it is listed")
    contents = (reply.result or {}).get("contents")
    for index, one in enumerate(contents if isinstance(contents, list) else []):
        if isinstance(one, dict):
            _judge_binary(talk, about, f"/result/contents/{index}/blob", one.get("blob"))


async def _get_prompt(talk: Talk, item: ListedItem) -> None:
    name, arguments = item.value.get("name"), item.value.get("arguments")
    if not isinstance(name, str):
        return
    needs = [one for one in arguments if isinstance(one, dict)] if isinstance(arguments, list) else []
    required = [one for one in needs if one.get("required") is True]
    reply = await talk.request("prompts/get", {"name": name}, about=f"prompts/get of {name[:80]}")
    if required:
        talk.expect_error("prompt-arguments", reply, INVALID_PARAMS)
    elif reply.error is not None:
        talk.note("prompt-get", reply, "its messages, because it needs no arguments")
    messages = (reply.result or {}).get("messages")
    for index, one in enumerate(messages if isinstance(messages, list) else []):
        if isinstance(one, dict):
            _judge_content(
                talk, f"the answer to {reply.about}", f"/result/messages/{index}/content", one.get("content")
            )
    if needs and "completions" in talk.capabilities:
        await _complete(talk, name, needs[0].get("name"))


async def _complete(talk: Talk, prompt: str, argument: Any) -> None:
    if not isinstance(argument, str):
        return
    params = {"ref": {"type": "ref/prompt", "name": prompt}, "argument": {"name": argument, "value": ""}}
    about = f"completion/complete of {argument[:40]} of {prompt[:80]}"
    reply = await talk.request("completion/complete", params, about=about)
    values = find(reply.result, "completion", "values")
    if isinstance(values, list) and len(values) > COMPLETION_MOST:
        found = f"{len(values)} values"
        pointer = "/result/completion/values"
        talk.findings.note(
            "completion-limit", f"the answer to {about}", f"at most {COMPLETION_MOST}", found, pointer=pointer
        )


def _only_reads(tool: Mapping[str, Any]) -> bool:
    """Whether a tool says that it changes nothing, and needs no arguments."""
    hints, schema = tool.get("annotations"), tool.get("inputSchema")
    if not isinstance(tool.get("name"), str) or not isinstance(hints, dict) or not isinstance(schema, dict):
        return False
    return hints.get("readOnlyHint") is True and not schema.get("required")


async def _call(talk: Talk, tool: Mapping[str, Any]) -> None:
    name = tool["name"]
    token = f"token-{name[:40]}"
    about = f"tools/call of {name[:80]}"
    reply = await talk.request("tools/call", {"name": name, "arguments": {}}, about=about, token=token)
    result = reply.result
    if result is None:
        return
    content = result.get("content")
    blocks = content if isinstance(content, list) else []
    for index, block in enumerate(blocks):
        _judge_content(talk, f"the answer to {about}", f"/result/content/{index}", block)
    if (
        result.get("isError") is not True
        and result.get("resultType", "complete") == "complete"
        and "task" not in result
    ):
        _judge_structured(talk, about, result, tool.get("outputSchema"), blocks)


def _judge_structured(talk: Talk, about: str, result: Mapping[str, Any], schema: Any, blocks: list[Any]) -> None:
    structured = result.get("structuredContent")
    about, pointer = f"the answer to {about}", "/result/structuredContent"
    if isinstance(schema, dict):
        if "structuredContent" not in result:
            talk.findings.note("structured-output", about, "what its output schema says", "nothing", pointer=pointer)
            return
        for misfit in find_misfits(structured, schema):
            place = pointer + misfit.pointer
            talk.findings.note("structured-output", about, misfit.expected, misfit.found, pointer=place)
    if structured is not None and not any(isinstance(one, dict) and one.get("type") == "text" for one in blocks):
        talk.findings.note("structured-text", about, "its JSON in a text block", "no text", pointer="/result/content")


def _judge_content(talk: Talk, about: str, pointer: str, block: Any) -> None:
    if not isinstance(block, dict):
        return
    if block.get("type") in ("image", "audio"):
        _judge_binary(talk, about, f"{pointer}/data", block.get("data"))
    inner = block.get("resource")
    if isinstance(inner, dict):
        _judge_binary(talk, about, f"{pointer}/resource/blob", inner.get("blob"))


def _judge_binary(talk: Talk, about: str, pointer: str, data: Any) -> None:
    if not isinstance(data, str):
        return
    try:
        base64.b64decode(data, validate=True)
    except (ValueError, binascii.Error):
        talk.findings.note("base64", about, "base64", repr(data[:60]), pointer=pointer)
