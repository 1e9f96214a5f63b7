"""The arguments of tools that are repeated in HTTP headers, at one server: known from its lists.

Lives here: what the lists said, asking for them before a call whose tool is not known, and the check of what a client
sends. Must not: judge annotations, or read and write headers (`core.bridge`). Made by each switch that has per-request
peers; nothing here matters where neither of them is reached over HTTP.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from dragoman.core.bridge.annotations import Mirrored, find_mirrored, leave_out_invalid, strip_invalid
from dragoman.core.bridge.headers import check_arguments
from dragoman.core.edges.per_request_front import Request
from dragoman.core.envelope import Frame
from dragoman.core.methods import CALL_TOOL, TOOLS_CHANGED
from dragoman.core.paging import Listing, Remind
from dragoman.core.unchecked import find, find_list

logger = logging.getLogger("dragoman.session")

_MOST_TOOLS: Final = 10_000

TakePage = Callable[[Mapping[str, Any] | None], None]
"""Takes the result of `tools/list`; None where there is none."""

AskPage = Callable[[dict[str, Any], TakePage], None]
"""Sends `tools/list` with these params."""


class ToolHeaders:
    """What the lists of one server said.

    Args:
        sends: Whether the server is of the per-request era and reached with headers.
        hears: Whether its clients are, and come with headers.
        remind: Reads the clock.
    """

    __slots__ = ("_hears", "_listing", "_mirrored", "_sends")

    def __init__(self, *, sends: bool, hears: bool, remind: Remind) -> None:
        self._sends = sends
        self._hears = hears
        self._mirrored: dict[str, tuple[Mirrored, ...]] = {}
        self._listing = Listing(remind)

    def needs_list(self, method: str, params: Mapping[str, Any]) -> bool:
        """Whether a request cannot be judged or sent before the tools are listed."""
        if method != CALL_TOOL or self._listing.is_done or not (self._sends or self._hears):
            return False
        return str(params.get("name")) not in self._mirrored

    def note(self, result: Mapping[str, Any]) -> Mapping[str, Any]:
        """Take note of what a list of tools says; give it as a client may see it."""
        if not (self._sends or self._hears):
            return result
        result = offer_valid(result, strips=not self._sends)
        for tool in find_list(result, "tools"):
            name = find(tool, "name")
            if isinstance(name, str) and (name in self._mirrored or len(self._mirrored) < _MOST_TOOLS):
                self._mirrored[name] = find_mirrored(tool.get("inputSchema"))
        return result

    def mirrored(self, method: str, params: Mapping[str, Any]) -> tuple[Mirrored, ...]:
        """Give the arguments of a call that are repeated in headers."""
        if method != CALL_TOOL or not self._mirrored:
            return ()
        return self._mirrored.get(str(params.get("name")), ())

    def check(self, request: Request) -> None:
        """Hold the headers that a request came with against its arguments.

        Raises:
            RemoteProtocolError: One is missing, malformed, or says something else (-32020).
        """
        if self._hears and request.method == CALL_TOOL:
            check_arguments(request.headers, request.params, self.mirrored(CALL_TOOL, request.params))

    def hear(self, method: str | None) -> None:
        """Take note of a notification: what is known of tools that have changed is outdated."""
        if method == TOOLS_CHANGED:
            self._mirrored.clear()
            self._listing.is_done = False

    def list(self, ask: AskPage, then: Callable[[], None]) -> None:
        """List the tools, and go on; also where they cannot be listed: then the server says what it lacks."""
        self._listing.read(lambda params, take: ask(params, lambda page: take(self.note(page or {}), None)), then)


def offer_valid(result: Mapping[str, Any], *, strips: bool) -> Mapping[str, Any]:
    """Give a list of tools as a client may see it whose annotations would else be invalid.

    "Clients MUST exclude the invalid tool from the result of `tools/list`" (2026-07-28/basic/transports/
    streamable-http, Schema Extension). Where the server is not reached over HTTP, the tool itself is good.

    Args:
        result: Of `tools/list`.
        strips: Whether the tools only lose their annotations.
    """
    result, invalid = strip_invalid(result) if strips else leave_out_invalid(result)
    done = "is offered without its annotations" if strips else "is not offered"
    for tool, reason in invalid:
        logger.warning("tool %s of the server %s: %s", tool, done, reason)
    return result


class PageAsker:
    """A request for a page of the list, at a per-request server.

    Args:
        owner: For whom it is asked.
        take: Takes the page.
    """

    __slots__ = ("_take", "owner")

    hears_logs = False

    def __init__(self, owner: object, take: TakePage) -> None:
        self.owner = owner
        self._take = take

    def take_answer(self, frame: Frame) -> None:
        """A page came, or an error."""
        self._take(frame.body.get("result"))

    def take_garbled(self, reason: str) -> None:
        """What came is not a page."""
        self._take(None)

    def take_notice(self, frame: Frame) -> None:
        """Nothing of it concerns a client."""
