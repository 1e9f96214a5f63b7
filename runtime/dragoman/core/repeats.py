"""Members that an object has twice: two readers may see two different frames.

Lives here: finding them, which decoding hides. Must not: tell kinds of frames (`envelope`). Called by `core.peek` and
by the front over HTTP, for lines that a peek does not read.
"""

from __future__ import annotations

import json
from typing import Final

TWO_FRAMES: Final = "expected one kind of frame, and id and method no more than once"


def repeats_name(line: bytes) -> bool:
    """Whether a frame, or one in an array, has its id or its method twice: two frames in one, for two readers.

    Only for lines that a peek does not read, and that were decoded: those that it reads have them once.
    """
    once = line.count(b'"id"') < 2 and line.count(b'"method"') < 2
    if once and b"\\u006" not in line and b"\\u007" not in line:  # letters that are escaped, in a name perhaps
        return False
    try:  # objects become tuples of their members, arrays lists; what numbers say does not matter
        value = json.loads(line, object_pairs_hook=tuple, parse_int=bool, parse_float=bool)
    except (ValueError, RecursionError):
        return True
    for frame in value if isinstance(value, list) else [value]:
        names = [name for name, _ in frame] if isinstance(frame, tuple) else []
        if names.count("id") > 1 or names.count("method") > 1:
            return True
    return False
