"""Every way in which servers may read one URI, so that no other spelling of it gets around a list.

The URL standard takes `FILE:`, `file:/etc`, `file://localhost/etc`, backslashes and encoded letters for the same; other
servers cut `file://` off and open the rest. pydantic reads URLs by the standard, with the parser that servers of the
official Python SDK have.
"""

from __future__ import annotations

import posixpath
import re
from typing import Final
from urllib.parse import unquote, urlsplit

from dragoman.core.spelling import compose

_MOST_LAYERS: Final = 4
"""How often a URI may be percent-encoded: each server decodes once, some twice."""

_LONGEST: Final = 64 * 1024
"""How long a URI may be: all the spellings of one of 16 MB take eight seconds, and everybody waits meanwhile."""

_PREFIXED: Final = re.compile(r"([A-Za-z][A-Za-z0-9.-]*\+)([A-Za-z][A-Za-z0-9+.-]*:.*)", re.DOTALL)
"""A URI behind the prefix that a router gives it."""

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_EXPRESSION: Final = re.compile(r"\{[^{}]*\}")


def settle(uri: str) -> set[str]:
    """Return a URI as it is, by the URL standard, and with its path taken literally: `a?/../b` is `b` to some."""
    from pydantic import AnyUrl  # it takes long to load, and lists of tools do not need it

    try:
        standard = {unquote(str(AnyUrl(uri)))}
    except ValueError:
        standard = set()
    return {uri, *standard, *(_resolve(one) for one in (uri, *standard))}


def read_strictly(uri: str) -> set[str]:
    """Return the URI, decoded and settled; nothing where servers may see in it what we do not.

    That is a very long one, or one with blanks or control characters, which the URL standard removes, or encoded over
    and over, or one with a scheme that a parser refuses: a server whose parser does not may read anything in it.
    """
    if len(uri) > _LONGEST or not uri.isprintable() or " " in uri or not _parses(uri):
        return set()
    prefixed = _PREFIXED.fullmatch(uri)
    prefix, rest = prefixed.groups() if prefixed else ("", uri)
    found: set[str] = set()
    for _ in range(_MOST_LAYERS):
        found |= settle(rest)
        plain = unquote(rest)
        if _CONTROLS.search(plain):
            return set()
        if plain == rest:
            return {prefix + one for one in found}
        rest = plain
    return set()


def read_loosely(uri: str) -> set[str]:
    """Return the same, and what servers read that look at a part of a URI only: no scheme, host, query or fragment."""
    found = {fold(one) for one in read_strictly(uri)}
    found |= {re.split("[?#>]", one, maxsplit=1)[0] for one in found}
    for one in list(found):
        file = _find_file(one)
        if file is not None:
            before, path = file
            for start in (before, ""):
                found |= {_resolve(f"{start}file:///{path}"), f"{start}file:///{path.partition('/')[2]}"}
        elif not _SCHEME.match(one):
            found.add(_resolve(f"file:///{one}"))
    return found


def fold(text: str) -> str:
    """Return a text without what some file systems do not tell apart: in the form NFKC, and without regard to case."""
    return compose(text).casefold()


def _find_file(folded: str) -> tuple[str, str] | None:
    """Return what stands before, and behind, what some server takes for the beginning of the URI of a file."""
    begin = 0
    for part in folded.split(":")[:-1]:
        at = part.find("file", part.rfind("/") + 1)
        begin += len(part) + 1
        if at >= 0:
            return folded[: begin - 1 - len(part) + at], folded[begin:].removeprefix("//")
    return None


def _parses(uri: str) -> bool:
    """Whether a URI can be read as one, a template with something in place of its expressions; names always can."""
    from pydantic import AnyUrl

    if not _SCHEME.match(uri):
        return True
    try:
        plain = _EXPRESSION.sub("0", uri)
        return bool(AnyUrl(plain) and urlsplit(plain).port != -1)
    except ValueError:
        return False


def _resolve(uri: str) -> str:
    """Return a URI without dot segments, doubled slashes and backslashes in what follows its scheme."""
    scheme, colon, rest = uri.replace("\\", "/").partition("://")
    if not colon:
        scheme, colon, rest = "", "", scheme
    settled = posixpath.normpath(rest).replace("//", "/") if rest else ""
    return scheme + colon + settled + "/" * (rest.endswith("/") and not settled.endswith("/"))
