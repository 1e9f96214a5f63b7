"""The arguments of tools that are repeated in HTTP headers: known from the lists of the server.

Lives here: what the lists said, and asking for them before a call whose tool is not known. Must not: judge annotations
or write headers (`core.bridge`). Made by `switch`; nothing here matters to a server that is not reached over HTTP.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from dragoman.core.bridge.annotations import Mirrored, find_mirrored, leave_out_invalid
from dragoman.core.edges.per_request import Lent
from dragoman.core.envelope import Frame

if TYPE_CHECKING:
    from dragoman.core.switch.per_request.switch import PerRequest

logger = logging.getLogger("dragoman.session")

LIST: Final = "tools/list"
CALL: Final = "tools/call"
_MOST_TOOLS: Final = 10_000
_MOST_PAGES: Final = 100


class Tools:
    """What the lists of one server said.

    Args:
        switch: Who made it.
    """

    def __init__(self, switch: PerRequest) -> None:
        self._switch = switch
        self._mirrored: dict[str, tuple[Mirrored, ...]] = {}
        self._is_listed = False

    def needs_list(self, method: str, params: Mapping[str, Any]) -> bool:
        """Whether a request cannot be sent before the tools are listed."""
        known = self._is_listed or params.get("name") in self._mirrored
        return method == CALL and self._switch.edge.upstream.takes_headers and not known

    def note(self, method: str, result: Mapping[str, Any]) -> Mapping[str, Any]:
        """Take note of what a result says about tools; give it without those that may not be offered over HTTP.

        "Clients MUST exclude the invalid tool from the result of `tools/list`" (2026-07-28/basic/transports/
        streamable-http, Schema Extension).
        """
        if method != LIST or not self._switch.edge.upstream.takes_headers:
            return result
        result, invalid = leave_out_invalid(result)
        for tool, reason in invalid:
            logger.warning("tool %s of the server is not offered: %s", tool, reason)
        tools = result.get("tools")
        for tool in tools if isinstance(tools, list) else ():
            name = tool.get("name")
            if isinstance(name, str) and len(self._mirrored) < _MOST_TOOLS:
                self._mirrored[name] = find_mirrored(tool.get("inputSchema"))
        return result

    def mirrored(self, method: str, params: Mapping[str, Any]) -> tuple[Mirrored, ...]:
        """Give the arguments of a call that are repeated in headers."""
        return self._mirrored.get(str(params.get("name")), ()) if method == CALL else ()

    def list(self, then: Callable[[], None]) -> None:
        """List the tools, and go on."""
        _Listing(self._switch, self, then).ask(None)

    def note_listed(self) -> None:
        """Every page has been seen, or will not be."""
        self._is_listed = True


class _Listing:
    """The pages of one list."""

    hears_logs = False

    def __init__(self, switch: PerRequest, tools: Tools, then: Callable[[], None]) -> None:
        self._switch = switch
        self._tools = tools
        self._then = then
        self._pages = 0
        self._lent: Lent | None = None

    @property
    def owner(self) -> object:
        """Whose it is."""
        return self._switch

    def ask(self, cursor: str | None) -> None:
        """Ask for a page."""
        self._pages += 1
        self._lent = self._switch.send(self, LIST, {} if cursor is None else {"cursor": cursor})

    def take_answer(self, frame: Frame) -> None:
        """A page came."""
        result = frame.body.get("result", {})
        self._tools.note(LIST, result)
        cursor = result.get("nextCursor")
        if isinstance(cursor, str) and self._pages < _MOST_PAGES:
            self.ask(cursor)
        else:
            self._end()

    def take_garbled(self, reason: str) -> None:
        """What came is not a page: the call goes without, and the server says what it lacks."""
        self._end()

    def take_notice(self, frame: Frame) -> None:
        """Nothing of it concerns the client."""

    def _end(self) -> None:
        self._tools.note_listed()
        self._then()
