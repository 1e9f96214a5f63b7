"""Actions on single values that the target spells in another way: numbers as text, dates as seconds, and back.

As in `actions`, what the target accepts already stays as it is. Nothing here knows MCP, and nothing imports pydantic.
"""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta, timezone
from typing import Any, Final

from .actions import GONE, Check, action, wrong
from .losses import At, Losses

_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]{0,99})(\.[0-9]{1,99})?([eE][+-]?[0-9]{1,2})?")
_DATE: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICRO: Final = 10**6


@action("value")
def negate(value: Any, at: At, out: Losses) -> bool:
    """The opposite of a boolean, for a field whose new name says the opposite."""
    if type(value) is not bool:
        raise wrong(at, "true or false", value)
    return not value


@action("value", changes=["arm-removed", "narrowed"], losses=["rewritten", "dropped"], gone=True, checked=True)
def to_text(value: Any, at: At, out: Losses, *, check: Check) -> Any:
    """A number as text, as JSON spells it."""
    if check(value):
        return value
    if type(value) not in (int, float):
        return _instead(value, GONE, at, out, check)
    whole = type(value) is float and value.is_integer() and abs(value) < 2**53
    return _instead(value, json.dumps(int(value) if whole else value), at, out, check)


@action("value", changes=["arm-removed", "narrowed"], losses=["rewritten", "dropped"], gone=True, checked=True)
def to_number(value: Any, at: At, out: Losses, *, check: Check) -> Any:
    """Text that is a number in JSON as that number; other text is left out."""
    if check(value):
        return value
    spelled = isinstance(value, str) and _NUMBER.fullmatch(value)
    return _instead(value, json.loads(value) if spelled else GONE, at, out, check)


@action("value", changes=["arm-removed", "narrowed"], losses=["rewritten", "dropped"], gone=True, checked=True)
def to_seconds(value: Any, at: At, out: Losses, *, check: Check, per_second: int = 1) -> Any:
    """A date with a time and a zone (RFC 3339) as seconds since 1970, or in a unit with *per_second*; other text is
    left out. A fraction that the target does not take is cut off.
    """
    if check(value):
        return value
    moment = _moment(value)
    if moment is None:
        return _instead(value, GONE, at, out, check)
    whole, rest = divmod((moment - _EPOCH) // timedelta(microseconds=1) * per_second, _MICRO)
    exact = whole + rest / _MICRO if rest else whole
    return _instead(value, exact if check(exact) else whole, at, out, check)


@action("value", changes=["arm-removed", "narrowed"], losses=["rewritten", "dropped"], gone=True, checked=True)
def to_date(value: Any, at: At, out: Losses, *, check: Check, per_second: int = 1) -> Any:
    """Seconds since 1970, or a unit with *per_second*, as a date in UTC (RFC 3339), for the years 1 to 9999."""
    if check(value):
        return value
    if type(value) not in (int, float):
        return _instead(value, GONE, at, out, check)
    try:
        moment = _EPOCH + timedelta(microseconds=round(value * _MICRO / per_second))
    except (OverflowError, ValueError):
        return _instead(value, GONE, at, out, check)
    return _instead(value, f"{moment.replace(tzinfo=None).isoformat()}Z", at, out, check)


def _moment(value: Any) -> datetime | None:
    if not isinstance(value, str) or not _DATE.fullmatch(value):
        return None
    try:
        return datetime.fromisoformat(value.upper())
    except ValueError:
        return None


def _instead(value: Any, new: Any, at: At, out: Losses, check: Check) -> Any:
    """The new value and the loss of the old, or `GONE` where the target does not take the new one either."""
    if new is GONE or not check(new):
        out.add(at, "dropped", value)
        return GONE
    out.add(at, "rewritten", value)
    return new
