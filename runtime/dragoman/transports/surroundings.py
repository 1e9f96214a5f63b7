"""The environment: what a server that is our child process has of it, and what a value takes out of it.

Lives here: which of our variables are handed on, and `$NAME`. Must not: start anything (`spawn`). Called by
`dragoman.cli`, `dragoman.config` and whoever embeds the proxy. The reasons: docs/decisions/0017.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from dragoman.transports.early import OURS, without_ours

_OF_SDKS: Final = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
"""What the official SDKs hand on by default."""

_OF_PLACES: Final = ("LANG", "LANGUAGE", "TZ", "TMPDIR")
"""What says in which language, when and where; none of it is ever a secret, nor of what follows."""

_OF_CERTIFICATES: Final = (
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "NIX_SSL_CERT_FILE"),
    *("NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"),
)
"""What says whom to trust: without it nothing can be fetched where a company looks into its TLS connections."""

_OF_PROGRAMS: Final = (
    *("LD_LIBRARY_PATH", "NODE_OPTIONS", "NODE_PATH", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX", "JAVA_HOME"),
    *("ASDF_DATA_DIR", "MISE_DATA_DIR", "NVM_DIR", "PYENV_ROOT", "RBENV_ROOT", "VOLTA_HOME"),
    *("NPM_CONFIG_CACHE", "npm_config_cache", "PIP_CACHE_DIR", "UV_CACHE_DIR", "UV_PYTHON_INSTALL_DIR"),
)
"""What says where a program has its parts, and where those who install programs (`npx`, `uvx`) keep them."""

PROXIES: Final = frozenset(
    f(name) for name in ("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY") for f in (str.upper, str.lower)
)
"""What says by which HTTP proxy to go; a secret where there is a user and a password in it."""

_OF_WINDOWS: Final = (
    *("APPDATA", "LOCALAPPDATA", "HOMEDRIVE", "HOMEPATH", "USERPROFILE", "USERNAME", "TEMP", "TMP", "SYSTEMDRIVE"),
    *("SYSTEMROOT", "WINDIR", "COMSPEC", "PATHEXT", "PROCESSOR_ARCHITECTURE", "NUMBER_OF_PROCESSORS", "OS"),
    *("PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMW6432", "COMMONPROGRAMFILES", "PSMODULEPATH"),
)
"""What Windows' own libraries look for, and says where programs are; without some of it hardly a program begins."""

_OF_DESKTOPS: Final = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME")

SAFE: Final = frozenset((*_OF_SDKS, *_OF_PLACES, *_OF_CERTIFICATES, *_OF_PROGRAMS, *_OF_WINDOWS, *_OF_DESKTOPS))

_SAFE_BEGINNING: Final = "LC_"
_SECRETIVE: Final = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIALS", "PAT")
_A_FUNCTION: Final = "()"
"""How shells begin the value of an exported function: code, which no server asks for."""

_VARIABLE: Final = re.compile(r"\$(?:(\$)|\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))", re.ASCII)


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


def expand(text: str, environment: Mapping[str, str]) -> str:
    """Fill in `$NAME` and `${NAME}`; `$$` is a dollar.

    A configuration file has other forms, those of desktop clients (`dragoman.config.expansion`).

    Raises:
        ValueError: The environment has no such variable.
    """

    def look_up(found: re.Match[str]) -> str:
        dollar, braced, plain = found.groups()
        if dollar:
            return "$"
        name = braced or plain
        if name not in environment:
            raise ValueError(f"the environment has no variable {name}")
        return environment[name]

    return _VARIABLE.sub(look_up, text)


def secretive_names(names: Iterable[str]) -> list[str]:
    """Return those names of variables that may be secrets of which a server is in need, sorted."""
    return sorted(name for name in names if not name.startswith(OURS) and _may_be_needed(name))


def _may_be_needed(name: str) -> bool:
    return name in PROXIES or name.upper().split("_")[-1] in _SECRETIVE


def _is_safe(name: str, value: str) -> bool:
    if name in PROXIES:
        return "@" not in value
    return (name in SAFE or name.startswith(_SAFE_BEGINNING)) and not value.startswith(_A_FUNCTION)
