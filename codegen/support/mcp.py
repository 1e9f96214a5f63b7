"""Actions that know MCP by name: what a content block, a message or a capability is, and what can stand in its place.

As in `actions`, nothing is changed in place, and the constant arguments come from overlay entries; each of these is
behind such an entry, and nothing else of the generator knows what they know. Nothing here imports pydantic.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from .actions import action, wrong
from .errors import MissingRequiredField, Untranslatable
from .losses import At, Losses, pointer

_FIELD = re.compile(r"\{([A-Za-z|]+)\}")
_PATH = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*(/[^?#]*)")

# --- content blocks and messages -------------------------------------------------------------------------------------


@action("value", changes=["arm-removed"], losses=["replaced"])
def text_block(
    value: dict[str, Any], at: At, out: Losses, *, template: str, lines: Sequence[str] = (), keep: Sequence[str] = ()
) -> dict[str, Any]:
    """Put a text block in the place of a content block.

    `{a}` in *template* is the block's required field *a*; `{a|b}` its *a*, or its *b* where *a* is absent. Each of
    *lines* that the block has follows on a line of its own; *keep* names fields to carry over.
    """

    def fill(match: re.Match[str]) -> str:
        for name in match[1].split("|"):
            if isinstance(value.get(name), str):
                return str(value[name])
        raise MissingRequiredField(pointer(at), match[1].rpartition("|")[2])

    text = "\n".join([_FIELD.sub(fill, template), *(value[name] for name in lines if isinstance(value.get(name), str))])
    out.add(at, "replaced", value)
    return {"type": "text", "text": text, **{name: value[name] for name in keep if name in value}}


@action("value", losses=["added"], fresh=True)
def json_as_text(value: dict[str, Any], at: At, out: Losses, *, field: str, into: str) -> dict[str, Any]:
    """Keep a value that will be dropped as compact JSON in a text block, the last one, where no text says the same."""
    blocks = value.get(into)
    if value.get(field) is None or not isinstance(blocks, list) or _is_said(_texts(blocks), value[field]):
        return value
    block = {"type": "text", "text": _compact(value[field])}
    out.add(((at, into), len(blocks)), "added", block)
    return {**value, into: [*blocks, block]}


def _texts(blocks: Sequence[Any]) -> list[str]:
    return [block["text"] for block in blocks if isinstance(block, dict) and isinstance(block.get("text"), str)]


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _is_said(texts: Sequence[str], value: Any) -> bool:
    """Whether texts say a value: one of them, or one for each item; or its only member, in which SDKs wrap a result."""
    if any(_says(text, value) for text in texts):
        return True
    match value:
        case list() if value and len(value) == len(texts):
            return all(map(_says, texts, value))
        case {"result": inner} if len(value) == 1:
            return _is_said(texts, inner)
        case _:
            return False


def _says(text: str, value: Any) -> bool:
    """Whether a text is a value: the string itself, or its JSON in any layout."""
    if text == value:
        return True
    try:
        return bool(json.loads(text) == value)
    except (ValueError, RecursionError):
        return False


@action("value", changes=["arm-removed"], losses=["rewritten"])
def join_blocks(value: Any, at: At, out: Losses, *, reason: str) -> Any:
    """One content block of a list of them: the only one, or the text of all where all are text; else refused."""
    if not isinstance(value, list) or not all(isinstance(block, dict) for block in value):
        raise wrong(at, "a list of content blocks", value)
    if len(value) == 1:
        out.add(at, "rewritten", value, cosmetic=True)
        out.move(at, {at: (at, 0)})
        return value[0]
    if not all(block.get("type") == "text" and isinstance(block.get("text"), str) for block in value):
        raise Untranslatable(reason, pointer=pointer(at), code=-32602)
    out.add(at, "rewritten", value)
    return {"type": "text", "text": "\n".join(block["text"] for block in value)}


@action("value", losses=["rewritten"], fresh=True)
def split_messages(value: dict[str, Any], at: At, out: Losses, *, field: str, cosmetic: bool = False) -> dict[str, Any]:
    """Make one message of each block where a message holds a list of blocks, in order and with the same role."""
    messages = value.get(field)
    if not isinstance(messages, list) or not any(
        isinstance(m, dict) and isinstance(m.get("content"), list) for m in messages
    ):
        return value
    split: list[Any] = []
    place: At = (at, field)
    origins: dict[At, At] = {}
    for index, message in enumerate(messages):
        blocks = message.get("content") if isinstance(message, dict) else None
        if not isinstance(blocks, list):
            origins[place, len(split)] = (place, index)
            split.append(message)
            continue
        for block in blocks:  # before there is a message for each: a server may say very many
            if not isinstance(block, dict) or not isinstance(block.get("type"), str):
                raise wrong(((place, index), "content"), "an object with 'type'", block)
        for number, block in enumerate(blocks):
            origins[place, len(split)] = (place, index)
            origins[(place, len(split)), "content"] = (((place, index), "content"), number)
            split.append({**message, "content": block})
    out.add(place, "rewritten", messages, cosmetic)
    out.move(place, origins)
    return {**value, field: split}


@action("frame", losses=["dropped", "replaced"])
def flatten_tool_blocks(frame: dict[str, Any], at: At, out: Losses) -> dict[str, Any]:
    """Turn tool uses and tool results in a sampling request into text, and take `tools` and `toolChoice` out."""
    params = frame.get("params")
    if not isinstance(params, dict) or not isinstance(params.get("messages"), list):
        return frame
    place: At = (at, "params")
    messages = [_flat_message(item, ((place, "messages"), i), out) for i, item in enumerate(params["messages"])]
    kept = {key: value for key, value in params.items() if key not in ("tools", "toolChoice")}
    for key in params.keys() - kept.keys():
        out.add((place, key), "dropped", params[key])
    same = len(kept) == len(params) and all(new is old for new, old in zip(messages, params["messages"], strict=True))
    return frame if same else {**frame, "params": {**kept, "messages": messages}}


def _flat_message(message: Any, at: At, out: Losses) -> Any:
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        flat: Any = [_flat_block(block, ((at, "content"), i), out) for i, block in enumerate(content)]
        changed = any(new is not old for new, old in zip(flat, content, strict=True))
    else:
        flat = _flat_block(content, (at, "content"), out)
        changed = flat is not content
    return {**message, "content": flat} if changed else message


def _flat_block(block: Any, at: At, out: Losses) -> Any:
    match block:
        case {"type": "tool_use", "name": str(name)}:
            text = f"[Tool use: {name}]"
        case {"type": "tool_result", "content": list(parts)}:
            texts, structured = _texts(parts), block.get("structuredContent")
            is_said = structured is None or _is_said(texts, structured)
            text = "\n".join(["[Tool result]", *texts, *([] if is_said else [_compact(structured)])])
        case _:
            return block
    out.add(at, "replaced", block)
    return {"type": "text", "text": text}


@action("value", changes=["arm-removed"], direction="down", losses=["rewritten", "added"])
def titled_enum(value: dict[str, Any], at: At, out: Losses, *, cosmetic: bool = False) -> dict[str, Any]:
    """A choice among titled constants (`oneOf`) as the older `enum` with `enumNames`."""
    options = value.get("oneOf")
    if not isinstance(options, list) or not all(isinstance(option, dict) and "const" in option for option in options):
        raise wrong((at, "oneOf"), "a list of objects with 'const' and 'title'", options)
    names = [option.get("title", option["const"]) for option in options]
    out.add((at, "oneOf"), "rewritten", options, cosmetic)
    out.add((at, "enum"), "added", [option["const"] for option in options], cosmetic)
    out.add((at, "enumNames"), "added", names, cosmetic)
    rest = {key: item for key, item in value.items() if key != "oneOf"}
    return {**rest, "enum": [option["const"] for option in options], "enumNames": names}


# --- resources, capabilities, errors ---------------------------------------------------------------------------------


def name_from_uri(uri: str) -> str:
    """The last segment of a URI's path where it has one, else the whole URI.

    `file:///a/b.txt` is `b.txt`, `custom://x` itself.
    """
    match = _PATH.match(uri)
    return (match[1].rstrip("/").rpartition("/")[2] if match else "") or uri


@action("frame")
def name_contents(frame: dict[str, Any], at: At, out: Losses) -> dict[str, Any]:
    """Give each of a result's `contents` a `name` from its `uri`, unless it has one."""

    def name(item: Any) -> Any:
        if not isinstance(item, dict) or "name" in item or not isinstance(item.get("uri"), str):
            return item
        return {**item, "name": name_from_uri(item["uri"])}

    return _with_contents(frame, [name(item) for item in _contents(frame)])


@action("frame", losses=["dropped"])
def strip_contents(
    frame: dict[str, Any], at: At, out: Losses, *, fields: list[str], cosmetic: bool = False
) -> dict[str, Any]:
    """Take *fields* out of each of a result's `contents`; a name that the URI gives back is no loss."""
    stripped = []
    for index, item in enumerate(_contents(frame)):
        if isinstance(item, dict) and not item.keys().isdisjoint(fields):
            place: At = (((at, "result"), "contents"), index)
            for key in fields:
                value = item.get(key)
                if value and not (
                    key == "name" and isinstance(item.get("uri"), str) and value == name_from_uri(item["uri"])
                ):
                    out.add((place, key), "dropped", value, cosmetic)
            item = {key: value for key, value in item.items() if key not in fields}
        stripped.append(item)
    return _with_contents(frame, stripped)


def _contents(frame: dict[str, Any]) -> list[Any]:
    result = frame.get("result")
    contents = result.get("contents") if isinstance(result, dict) else None
    return contents if isinstance(contents, list) else []


def _with_contents(frame: dict[str, Any], contents: list[Any]) -> dict[str, Any]:
    if all(new is old for new, old in zip(contents, _contents(frame), strict=True)):
        return frame
    return {**frame, "result": {**frame["result"], "contents": contents}}


@action("frame", losses=["added"])
def declare_capability(frame: dict[str, Any], at: At, out: Losses, *, name: str) -> dict[str, Any]:
    """Declare a server capability in an `initialize` result where it is not declared."""
    result = frame.get("result")
    capabilities = result.get("capabilities") if isinstance(result, dict) else None
    if not isinstance(capabilities, dict) or name in capabilities:
        return frame
    out.add((((at, "result"), "capabilities"), name), "added", {})
    return {**frame, "result": {**frame["result"], "capabilities": {**capabilities, name: {}}}}


@action("error", losses=["rewritten"])
def restore_missing_resource(
    frame: dict[str, Any], method: str | None, out: Losses, *, code: int, only: str, field: str, cosmetic: bool = False
) -> dict[str, Any]:
    """Give an absent resource its own code again where `data` names the resource."""
    data = frame["error"].get("data")
    if method != only or not isinstance(data, dict) or not isinstance(data.get(field), str) or "original" in data:
        return frame
    out.add((None, "error"), "rewritten", frame["error"], cosmetic)
    return {**frame, "error": {**frame["error"], "code": code}}


@action("error", losses=["rewritten"])
def name_urls(frame: dict[str, Any], method: str | None, out: Losses, *, cosmetic: bool = False) -> dict[str, Any]:
    """Put the URLs that a person should open into the message, for a client that does not read `data.elicitations`."""
    error = frame["error"]
    data = error.get("data")
    asked = data.get("elicitations") if isinstance(data, dict) else None
    urls = (
        [item["url"] for item in asked if isinstance(item, dict) and isinstance(item.get("url"), str)]
        if isinstance(asked, list)
        else []
    )
    missing = [url for url in urls if url not in str(error.get("message"))]
    if not missing:
        return frame
    out.add(((None, "error"), "message"), "rewritten", error.get("message"), cosmetic)
    return {**frame, "error": {**error, "message": f"{error.get('message')} (open {', '.join(missing)})"}}
