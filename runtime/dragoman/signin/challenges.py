"""What a server says in `WWW-Authenticate`.

Source: RFC 9110, 11.6.1; RFC 6750, 3; RFC 9728, 5.1.
"""

from __future__ import annotations

import re
from typing import Final

_PART: Final = re.compile(
    r"""(?P<name>[!#$%&'*+.^_`|~0-9A-Za-z-]+)(?:\s*=\s*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[^\s,"]*)))?"""
)  # what stands between parts is not in it: a search for where it ends would begin anew at each comma


def read_bearer(header: str) -> dict[str, str] | None:
    """Return the parameters of the challenge that asks for a bearer token; None where there is no such challenge.

    A header that is not there asks for a token, too: it "MAY" say where one is got.
    """
    if not header.strip():
        return {}
    found: dict[str, str] | None = None
    is_ours = False
    for part in _PART.finditer(header):
        name, value = part["name"].lower(), part["quoted"] if part["quoted"] is not None else part["plain"]
        if value is None:
            is_ours = name == "bearer" and found is None
            found = {} if is_ours else found
        elif is_ours and found is not None:
            found.setdefault(name, re.sub(r"\\(.)", r"\1", value))
    return found
