"""Pages for people in browsers, beside what is served to clients.

Lives here: one visit, as whoever has the page sees it. They come from other sites, and without a secret in a header, so
neither is checked here: what a page shows or does is its own affair. Called by `app`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from dragoman.transports.base import Headers
from dragoman.transports.http.exchange import HttpRequest, RequestRefused, Routine
from dragoman.transports.http.security import Doorkeeper

_FORM_BYTES: Final = 16 * 1024
_FORM_S: Final = 10.0

PageAnswer = tuple[int, Headers, bytes]
"""Status, headers and body."""


class PageVisit(NamedTuple):
    """A request for a page.

    Attributes:
        method: GET or POST.
        query: Of the URL.
        form: The body of a POST.
        origin: Of the page that sends it; empty if it does not say.
        cookie: What the browser has of ours.
        identify: Gives the principal with this secret; empty where nobody needs one, None where it is nobody's.
    """

    method: str
    query: str
    form: str
    origin: str
    cookie: str
    identify: Callable[[str], str | None]


class Pages(Protocol):
    """Has pages.

    Attributes:
        paths: Where they are; where something else is, too, that is served.
    """

    paths: set[str]

    async def answer(self, visit: PageVisit) -> PageAnswer:
        """Show a page."""

    def address(self, data: bytes, principal: str) -> bytes:
        """Return what a client is told with links of its own to these pages, whoever else was told the same."""


def serve_page(request: HttpRequest, pages: Pages, gate: Doorkeeper) -> Routine:
    """Serve a visit.

    Raises:
        RequestRefused: It is neither GET nor POST, or too large.
    """
    if request.method not in ("GET", "POST"):
        raise RequestRefused(405, "expected GET or POST", (b"allow", b"GET, POST"))
    body = b""
    if request.method == "POST":
        body = yield request.read_body(_FORM_BYTES, _FORM_S)

    query, form = request.scope.get("query_string", b"").decode("latin-1"), body.decode("latin-1")
    origin, cookie = request.header(b"origin") or "", request.header(b"cookie") or ""
    status, headers, page = yield pages.answer(PageVisit(request.method, query, form, origin, cookie, gate.recognise))
    yield request.reply(status, page, *headers)
