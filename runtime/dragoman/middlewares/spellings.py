"""Every way in which servers may read one URI, so that no other spelling of it gets around a list.

The URL standard takes `FILE:`, `file:/etc`, `file://localhost/etc`, backslashes and encoded letters for the same; other
servers cut `file://` off and open the rest. pydantic reads URLs by the standard, with the parser that servers of the
official Python SDK have.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from typing import Final
from urllib.parse import unquote

_MOST_LAYERS: Final = 4
"""How often a URI may be percent-encoded: each server decodes once, some twice."""

_PREFIXED: Final = re.compile(r"([A-Za-z][A-Za-z0-9.-]*\+)([A-Za-z][A-Za-z0-9+.-]*:.*)", re.DOTALL)
"""A URI behind the prefix that a router gives it."""

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


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

    That is a URI with blanks or control characters, which the URL standard removes, or encoded over and over.
    """
    if not uri.isprintable() or " " in uri:
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
    found = read_strictly(uri)
    found |= {re.split("[?#]", one, maxsplit=1)[0] for one in found}
    for one in list(found):
        before, file, path = one.partition("file://")
        if file:
            found |= {_resolve(f"{before}file:///{path}"), f"{before}file:///{path.partition('/')[2]}"}
        elif not _SCHEME.match(one):
            found.add(_resolve(f"file:///{one}"))
    return {fold(one) for one in found}


def fold(text: str) -> str:
    """Return a text without what some file systems do not tell apart."""
    return unicodedata.normalize("NFKC", text).casefold()


def _resolve(uri: str) -> str:
    """Return a URI without dot segments, doubled slashes and backslashes in what follows its scheme."""
    scheme, colon, rest = uri.replace("\\", "/").partition("://")
    if not colon:
        scheme, colon, rest = "", "", scheme
    settled = posixpath.normpath(rest).replace("//", "/") if rest else ""
    return scheme + colon + settled + "/" * (rest.endswith("/") and not settled.endswith("/"))
