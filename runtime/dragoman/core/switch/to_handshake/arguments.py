"""The headers that repeat arguments, on calls of per-request clients at a server with a handshake.

Lives here: which calls have to wait for the list of tools, and the check. Must not: list (`listed`), or compare
(`core.bridge.headers`). Called by `open_session`.

The server knows nothing of such headers. But whoever stands between the client and us may rely on them, so they have to
say what the arguments say, by the annotations that the client has seen in the list.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.core.bridge.annotations import Mirrored, find_mirrored
from dragoman.core.bridge.headers import check_arguments
from dragoman.core.edges.per_request_front import Request
from dragoman.core.methods import CALL_TOOL
from dragoman.core.switch.to_handshake.listed import ListedTools


class ArgumentHeaders:
    """Checks the calls of tools that come with headers.

    Args:
        listed: What is known of the tools.
        is_checked: Whether clients come with headers, to a server that has tools.
    """

    __slots__ = ("_is_checked", "_listed", "_mirrored")

    def __init__(self, listed: ListedTools, is_checked: bool) -> None:
        self._listed = listed
        self._is_checked = is_checked
        self._mirrored: dict[str, tuple[Mapping[str, Any], tuple[Mirrored, ...]]] = {}

    def needs_list(self, request: Request) -> bool:
        """Whether a request cannot be judged before the tools are listed."""
        return (
            self._is_checked and request.method == CALL_TOOL and not self._listed.is_known(request.params.get("name"))
        )

    def check(self, request: Request) -> None:
        """Hold the headers of a request against its arguments.

        Raises:
            RemoteProtocolError: One is missing, malformed, or says something else (-32020).
        """
        if self._is_checked and request.method == CALL_TOOL:
            check_arguments(request.headers, request.params, self._find(request.params.get("name")))

    def _find(self, name: object) -> tuple[Mirrored, ...]:
        tool = self._listed.find(name)
        if tool is None:
            return ()
        known = self._mirrored.get(str(name))
        if known is None or known[0] is not tool:
            known = self._mirrored[str(name)] = tool, _read(tool)
        return known[1]


def _read(tool: Mapping[str, Any]) -> tuple[Mirrored, ...]:
    try:
        return find_mirrored(tool.get("inputSchema"))
    except ValueError:  # then the client has seen none
        return ()
