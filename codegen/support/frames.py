"""Actions on whole frames: results as the client will see them, and error responses.

As in `actions`, nothing is changed in place, and the constant arguments come from overlay entries. Error actions also
take the method that the response answers, where it is known. Nothing here imports pydantic.
"""

from __future__ import annotations

from typing import Any

from .actions import action
from .errors import Untranslatable
from .losses import At, Losses

# --- results ---------------------------------------------------------------------------------------------------------


@action("frame", refuses=True)
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


@action("frame", losses=["dropped"])
def drop_result_field(frame: dict[str, Any], at: At, out: Losses, *, field: str, unless: Any = None) -> dict[str, Any]:
    """Take out a field that the source revision gives no meaning and the target would misread."""
    result = frame.get("result")
    if not isinstance(result, dict) or field not in result or result[field] == unless:
        return frame
    out.add(((at, "result"), field), "dropped", result[field])
    return {**frame, "result": {key: value for key, value in result.items() if key != field}}


@action("frame", losses=["added"])
def supply_result_field(frame: dict[str, Any], at: At, out: Losses, *, field: str, value: Any) -> dict[str, Any]:
    """Put a field into a result that the target requires there, where the source left it out."""
    result = frame.get("result")
    if not isinstance(result, dict) or field in result:
        return frame
    out.add(((at, "result"), field), "added", value)
    return {**frame, "result": {**result, field: value}}


# --- error responses -------------------------------------------------------------------------------------------------


@action("error")
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


@action("error")
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
