"""Actions on whole frames: results as the client will see them, and error responses.

As in `actions`, nothing is changed in place, and the constant arguments come from overlay entries. Error actions also
take the method that the response answers, where it is known. Nothing here imports pydantic.
"""

from __future__ import annotations

import re
from typing import Any

from .errors import Untranslatable
from .losses import At, Losses, Swallowed

_PATH = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*(/[^?#]*)")

# --- results ---------------------------------------------------------------------------------------------------------


def name_from_uri(uri: str) -> str:
    """The last segment of a URI's path where it has one, else the whole URI.

    `file:///a/b.txt` is `b.txt`, `custom://x` itself.
    """
    match = _PATH.match(uri)
    return (match[1].rstrip("/").rpartition("/")[2] if match else "") or uri


def name_contents(frame: dict[str, Any], at: At, out: Losses) -> dict[str, Any]:
    """Give each of a result's `contents` a `name` from its `uri`, unless it has one."""

    def name(item: Any) -> Any:
        if not isinstance(item, dict) or "name" in item or not isinstance(item.get("uri"), str):
            return item
        return {**item, "name": name_from_uri(item["uri"])}

    return _with_contents(frame, [name(item) for item in _contents(frame)])


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


def refuse_result(
    frame: dict[str, Any], at: At, out: Losses, *, reason: str, has: str, lacks: str = "", other_than: Any = None
) -> dict[str, Any]:
    """Refuse a result that has the field *has* but not *lacks*.

    With *other_than*, only if the field's value is another.
    """
    result = frame.get("result")
    if not isinstance(result, dict) or has not in result or (lacks and lacks in result):
        return frame
    if other_than is not None and result[has] == other_than:
        return frame
    raise Untranslatable(reason.format(value=result[has]), pointer=f"/result/{has}", code=-32603)


def drop_result_field(frame: dict[str, Any], at: At, out: Losses, *, field: str, unless: Any = None) -> dict[str, Any]:
    """Take out a field that the source revision gives no meaning and the target would misread."""
    result = frame.get("result")
    if not isinstance(result, dict) or field not in result or result[field] == unless:
        return frame
    out.add(((at, "result"), field), "dropped", result[field])
    return {**frame, "result": {key: value for key, value in result.items() if key != field}}


def declare_capability(frame: dict[str, Any], at: At, out: Losses, *, name: str) -> dict[str, Any]:
    """Declare a server capability in an `initialize` result where it is not declared."""
    result = frame.get("result")
    capabilities = result.get("capabilities") if isinstance(result, dict) else None
    if not isinstance(capabilities, dict) or name in capabilities:
        return frame
    return {**frame, "result": {**frame["result"], "capabilities": {**capabilities, name: {}}}}


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
            texts = [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
            text = "\n".join(["[Tool result]", *texts])
        case _:
            return block
    out.add(at, "replaced", block)
    return {"type": "text", "text": text}


# --- error responses -------------------------------------------------------------------------------------------------


def swallow_without_id(frame: dict[str, Any], at: At, out: Losses) -> dict[str, Any]:
    """An error response that answers nothing in particular reaches no side that requires an id."""
    if "id" not in frame:
        error = frame.get("error")
        message = error.get("message") if isinstance(error, dict) else None
        raise Swallowed(f"an error response without an id: {message}")
    return frame


def replace_code(
    frame: dict[str, Any], method: str | None, out: Losses, *, code: int, only: str = ""
) -> dict[str, Any]:
    """Answer with another code and keep the original in `data`.

    With *only*, for responses to that method or an unknown one.
    """
    if only and method not in (None, only):
        return frame
    error = frame["error"]
    original = {key: error[key] for key in ("code", "data") if key in error}
    data = {**error["data"], "original": original} if isinstance(error.get("data"), dict) else {"original": original}
    return {**frame, "error": {**error, "code": code, "data": data}}


def restore_code(frame: dict[str, Any], method: str | None, out: Losses, *, codes: list[int]) -> dict[str, Any]:
    """Undo `replace_code` where `data` has the original and its code lies between the two of *codes*."""
    error = frame["error"]
    data = error.get("data")
    original = data.get("original") if isinstance(data, dict) else None
    if not isinstance(original, dict) or type(original.get("code")) is not int:
        return frame
    if not codes[0] <= original["code"] <= codes[1] or not original.keys() <= {"code", "data"}:
        return frame
    rest = {key: value for key, value in error.items() if key != "data"}
    return {**frame, "error": {**rest, **original}}


def restore_missing_resource(
    frame: dict[str, Any], method: str | None, out: Losses, *, code: int, only: str, field: str, cosmetic: bool = False
) -> dict[str, Any]:
    """Give an absent resource its own code again where `data` names the resource."""
    data = frame["error"].get("data")
    if method != only or not isinstance(data, dict) or not isinstance(data.get(field), str) or "original" in data:
        return frame
    out.add((None, "error"), "rewritten", frame["error"], cosmetic)
    return {**frame, "error": {**frame["error"], "code": code}}


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
