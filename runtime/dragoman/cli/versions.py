"""`dragoman --version --verbose`: what is installed, what it supports, and where to read what is known to be wrong.

Lives here: the lines. Must not: import what it only names. Called by `dragoman.cli`.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata, version
from typing import Final

from dragoman_spec import HANDSHAKE_REVISIONS, REVISIONS
from dragoman_spec.version import VERSION

_OPTIONAL: Final = ("uvloop", "keyring", "redis", "opentelemetry-sdk")
"""What is used if it is there."""

_NEEDED: Final = ("pydantic", "orjson", "httptools", "websockets", "cryptography")


def show_version(is_verbose: bool) -> str:
    """Return the version, alone or with everything that a report of a defect should say."""
    return "\n".join(_say_all() if is_verbose else [f"dragoman {version('dragoman')}"])


def _say_all() -> Iterator[str]:
    """Say it, a subject a line."""
    yield f"dragoman {version('dragoman')}, dragoman_spec {VERSION}"
    yield f"Python {platform.python_version()} ({platform.python_implementation()}), {platform.platform()}"
    yield f"revisions with a handshake: {', '.join(HANDSHAKE_REVISIONS)}"
    yield f"revisions without: {', '.join(one for one in REVISIONS if one not in HANDSHAKE_REVISIONS)}"
    yield f"needs: {', '.join(f'{name} {_find(name)}' for name in _NEEDED)}"
    yield f"optional: {', '.join(f'{name} {_find(name)}' for name in _OPTIONAL)}"
    yield f"supported: until the next minor version is out ({_page('support.md')})"
    yield f"known defects: {_page('known-defects.md')}"


def _find(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


def _page(name: str) -> str:
    """Return where a page of the documentation is: at the address that the release names, else in the source."""
    said = metadata("dragoman").get_all("Project-URL") or ()
    urls = dict(one.split(", ", 1) for one in said)
    index: str = urls.get("Documentation", "docs/index.md")
    return index.removesuffix("index.md") + name
