"""Frames that two readers may take for two different ones.

Lives here: finding them, which decoding hides. Must not: tell kinds of frames (`envelope`). Called by `core.peek` and
by the front over HTTP, for lines that a peek does not read, and for what clients say, wherever a rule could be passed.

Of a member that is there twice, some readers take the first one, some the last. Readers in Go do not tell `Method` from
`method`. Some look for a method first, some for a result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

TWO_FRAMES: Final = "expected one kind of frame, and id and method no more than once"

_OWN: Final = frozenset(("id", "method", "params", "result", "error"))
_FOUND: Final = re.compile(rb'"((?i:id|method|params|result|error))"')
_DISGUISED: Final = re.compile(rb"\\u0(?:00|0[4-7]|17[fF])|\xc5\xbf")
"""Letters that are escaped, in a name perhaps; the long s, which is an s where cases are not told apart; and what may
be the end of a text."""


def repeats_name(line: bytes) -> bool:
    """Whether a frame, or one in an array, is two frames in one, for two readers.

    Only for lines that a peek does not read, or of whose middle somebody has to be sure.
    """
    if _DISGUISED.search(line) is None and not _is_mixed([name.decode() for name in _FOUND.findall(line)]):
        return False
    try:  # objects become tuples of their members, arrays lists; what numbers say does not matter
        value = json.loads(line, object_pairs_hook=tuple, parse_int=bool, parse_float=bool)
    except (ValueError, RecursionError):
        return True
    return any(_is_mixed(_names_of(frame)) for frame in (value if isinstance(value, list) else [value]))


def may_disguise(text: bytes) -> bool:
    """Whether names in a text may be written otherwise than they are read: with escaped letters."""
    return text.find(b"\\") >= 0 and b"\\u0" in text and _DISGUISED.search(text) is not None


def may_spell(text: bytes) -> bool:
    """Whether anything in a text that is ASCII may be written otherwise than it is read."""
    return text.find(b"\\") >= 0 and text.rfind(b"\\u00") >= 0


def may_call(text: bytes) -> bool:
    """Whether a part of a result may hold a method, in some spelling: some readers then take it for a request."""
    may_name = text.find(b'"m') >= 0 or text.find(b'"M') >= 0  # to make all letters small takes longer
    if may_name and text.lower().rfind(b'"method"') >= 0:
        return True
    return text.find(b"\\") >= 0 and may_disguise(text)


def names_method(text: bytes) -> bool:
    """Whether a text has the name of a method, not looking at what only readers in Go take for one."""
    return text.rfind(b'"method"') >= 0 or may_disguise(text)


def read_widely(text: str) -> str:
    """Return what some readers take a text for: to those in Go cases are one, those in C end it at a NUL."""
    return text.partition("\0")[0].casefold()


def _names_of(frame: Any) -> list[str]:
    """Return the names of members; a result or an error that is null says nothing: some libraries write all of them."""
    members = frame if isinstance(frame, tuple) else ()
    return [name for name, value in members if value is not None or name not in ("result", "error")]


def _is_mixed(names: Sequence[str]) -> bool:
    own = [name for name in names if read_widely(name) in _OWN]
    is_plain = len(set(own)) == len(own) and _OWN.issuperset(own)
    return not is_plain or ("method" in own and ("result" in own or "error" in own))
