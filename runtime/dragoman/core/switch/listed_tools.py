"""What is known of the tools of one server: from its lists, asked for where a call needs to know.

Lives here: what the lists said, asking for them before a call whose tool is not known, and the check of the headers
that repeat arguments. Must not: judge annotations, or read and write headers (`core.rules`).

A server with a handshake knows nothing of such headers. But whoever stands between a client and us may rely on them,
so they have to say what the arguments say, by the annotations that the client has seen in the list.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from dragoman.core.edges.per_request import PerRequestLoan
from dragoman.core.edges.per_request_front import PerRequestCall
from dragoman.core.exact_json import decode
from dragoman.core.methods import CALL_TOOL, LIST_TOOLS, TOOLS_CHANGED
from dragoman.core.paging import AskPage, Listing, Remind, TakePage
from dragoman.core.rules.annotations import Mirrored, find_mirrored, leave_out_invalid, may_mention, strip_invalid
from dragoman.core.rules.headers import check_arguments
from dragoman.core.unchecked import find, find_list, find_object

logger = logging.getLogger("dragoman.session")

_MOST_TOOLS: Final = 10_000
_PAGES_BYTES: Final = 256 * 1024
"""How much of the lists that were passed on is kept, to be read when that is needed, and to know them again."""

_RESULT: Final = b'"result"'


class _Tool(NamedTuple):
    mirrored: tuple[Mirrored, ...]
    listed: Mapping[str, Any] | None


class ListedTools:
    """What the lists of one server said.

    Args:
        sends: Whether the server is of the per-request era and reached with headers.
        hears: Whether its clients are, and come with headers.
        remind: Reads the clock.
        keeps: Whether more than headers matters, so that tools are kept as they were listed.

    Attributes:
        hears: Whether clients come with headers: then those of each request are held against its arguments.
        has_headers: Whether either comes with headers, so that calls may have to be looked at.
    """

    __slots__ = ("_are_read", "_keeps", "_listing", "_pages", "_sends", "_tools", "has_headers", "hears")

    def __init__(self, *, sends: bool, hears: bool, remind: Remind, keeps: bool = False) -> None:
        self._sends = sends
        self.hears = hears
        self.has_headers = sends or hears
        self._keeps = keeps
        self._tools: dict[str, _Tool] = {}
        self._pages: list[bytes] = []
        self._are_read = True
        self._listing = Listing(remind)

    def find(self, name: object) -> Mapping[str, Any] | None:
        """Return a tool as the server listed it; None where it did not, or where tools are not kept."""
        tool = self._tools.get(name) if isinstance(name, str) else None
        return None if tool is None else tool.listed

    def is_known(self, name: object) -> bool:
        """Whether everything is known of a tool that the server has said."""
        if not self._are_read:
            self._read_pages()
        return self._listing.is_done or name in self._tools

    @property
    def is_awaited(self) -> bool:
        """Whether calls wait for the list."""
        return self._listing.is_awaited

    def needs_list(self, method: str, params: Mapping[str, Any]) -> bool:
        """Whether the headers of a request cannot be judged or written before the tools are listed."""
        return method == CALL_TOOL and self.has_headers and not self.is_known(str(params.get("name")))

    def note(self, result: Mapping[str, Any], line: bytes = b"") -> Mapping[str, Any]:
        """Record what a list of tools says; give it as a client may see it.

        Args:
            result: The list.
            line: What it came as, if that is known: most say nothing of headers, and one look at it shows that.
        """
        if not (self.has_headers or self._keeps):
            return result
        may_mirror = self.has_headers and may_mention(line)
        page = b"" if may_mirror else line[line.find(_RESULT) :]
        if page and page in self._pages:  # clients list again and again what has not changed
            return result
        if self._pages:  # which came before this list
            self._read_pages()
            self._pages.clear()
        if may_mirror:
            result = _offer_valid(result, strips=not self._sends)
        for tool in find_list(result, "tools"):
            self._note(tool, may_mirror)
        if 0 < len(page) <= _PAGES_BYTES:
            self._pages.append(page)
        return result

    def _note(self, tool: Any, may_mirror: bool) -> None:
        name = find(tool, "name")
        if isinstance(name, str) and (name in self._tools or len(self._tools) < _MOST_TOOLS):
            mirrored = find_mirrored(tool.get("inputSchema")) if may_mirror else ()
            self._tools[name] = _Tool(mirrored, tool if self._keeps else None)

    def put_off(self, line: bytes) -> None:
        """Record a list that says nothing of headers: it is read once a call is to name a tool, if it is another one.

        Args:
            line: The response, which is not decoded.
        """
        page = line[line.find(_RESULT) :]
        if self.has_headers and page not in self._pages:
            self._pages.append(page)
            self._are_read = False
            if sum(map(len, self._pages)) > _PAGES_BYTES:
                self._read_pages()
                self._pages.clear()

    def _read_pages(self) -> None:
        """Read what was put off, if anything was; of what is not JSON nothing is known."""
        pages, self._are_read = () if self._are_read else self._pages, True
        for page in pages:
            with contextlib.suppress(ValueError):
                result = find_object(decode(b"{" + page), "result")
                for tool in find_list(result, "tools"):
                    self._note(tool, may_mirror=False)

    def mirrored(self, method: str, params: Mapping[str, Any]) -> tuple[Mirrored, ...]:
        """Return the arguments of a call that are repeated in headers."""
        tool = self._tools.get(str(params.get("name"))) if self._tools and method == CALL_TOOL else None
        return () if tool is None else tool.mirrored

    def check(self, request: PerRequestCall) -> None:
        """Hold the headers that a request came with against its arguments, not against what middleware made of them.

        Raises:
            RemoteProtocolError: One is missing, malformed, or says something else (-32020).
        """
        mirrored = self.mirrored(request.method, request.params)
        if mirrored:
            frame, arguments = request.frame, request.params.get("arguments")
            came = arguments if frame.origin is None or frame.origin.came is None else frame.origin.came
            check_arguments(frame.headers, came, mirrored)

    def hear(self, method: str | None) -> None:
        """Record a notification: what is known of tools that have changed is outdated."""
        if method == TOOLS_CHANGED:
            self._tools.clear()
            self._pages.clear()
            self._listing.is_done = False

    def list(self, ask: AskPage, then: Callable[[], None]) -> None:
        """List the tools, and go on; also where they cannot be listed: then the server says what it lacks."""
        self._listing.read(lambda params, take: ask(params, lambda page, size: take(self.note(page), size)), then)


def _offer_valid(result: Mapping[str, Any], *, strips: bool) -> Mapping[str, Any]:
    """Return a list of tools as a client may see it whose annotations would else be invalid.

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


def ask_for_page(take: TakePage) -> PerRequestLoan:
    """Return the request for a page of the list, at a per-request server; an error is an empty page."""
    return PerRequestLoan(LIST_TOOLS, answer=lambda frame: take(frame.body.get("result") or {}, len(frame.raw) or None))
