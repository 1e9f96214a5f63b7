"""What a server that is our child finds in its environment.

Lives here: which of our variables are handed on. Must not: start anything (`spawn`). Called by `dragoman.cli` and by
whoever embeds the proxy. Why it is so: docs/decisions/0017.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

OURS: Final = "DRAGOMAN_"
"""What the names of variables begin with that are meant for us: a server has no business with our secrets."""

_OF_SDKS: Final = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
"""What the official SDKs hand on by default."""

_OF_PLACES: Final = ("LANG", "LANGUAGE", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR")
"""What says in which language, when and where; none of it is ever a secret, nor of what follows."""

_OF_PROGRAMS: Final = ("LD_LIBRARY_PATH", "NODE_PATH", "PYTHONPATH", "VIRTUAL_ENV")
"""What says where a program has its parts."""

_OF_DESKTOPS: Final = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME")

SAFE: Final = frozenset((*_OF_SDKS, *_OF_PLACES, *_OF_PROGRAMS, *_OF_DESKTOPS))

_SAFE_BEGINNING: Final = "LC_"
_SECRETIVE: Final = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIALS", "PAT")
_A_FUNCTION: Final = "()"
"""How shells begin the value of an exported function: code, which no server asks for."""

MODES: Final = ("all", "safe", "none")


def make_environment(mode: str, ours: Mapping[str, str], given: Mapping[str, str] | None = None) -> dict[str, str]:
    """Put together what a child finds.

    Args:
        mode: `all` hands on everything that is not meant for us, `safe` what is no secret and programs need to run,
            `none` nothing.
        ours: Our own environment.
        given: What the child gets in any case.
    """
    chosen: dict[str, str] = {}
    if mode == "all":
        chosen = without_ours(ours)
    elif mode == "safe":
        chosen = {name: value for name, value in ours.items() if _is_safe(name, value)}
    return {**chosen, **(given or {})}


def without_ours(environment: Mapping[str, str]) -> dict[str, str]:
    """Leave out what is meant for us alone."""
    return {name: value for name, value in environment.items() if not name.startswith(OURS)}


def secretive_names(names: Iterable[str]) -> list[str]:
    """Give those names of variables that look as if they named a secret that a server may be in need of, sorted."""
    return sorted(name for name in names if not name.startswith(OURS) and name.upper().split("_")[-1] in _SECRETIVE)


def _is_safe(name: str, value: str) -> bool:
    return (name in SAFE or name.startswith(_SAFE_BEGINNING)) and not value.startswith(_A_FUNCTION)
