"""What a browser gets of a viewer: the page, the lines as they come, and facts about a pair of revisions.

Lives here: an ASGI application, and who may have anything of it. Must not: read feeds or files (`viewer`).

Theory of operation. What crosses a proxy is as secret as what people and tools exchange. So everything needs the key
that stands in the address which the proxy prints; the first visit turns it into a cookie that no script can read and
that no other site's page can send along (`SameSite=Strict`). `Host` and `Origin` are checked as they are for clients of
the proxy: a page elsewhere that has our name resolve to this machine gets nothing. The page itself may load what comes
from here and nothing else, and runs no script that stands in it: what peers say is text wherever it is shown.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Callable, Iterator, Mapping
from http.cookies import CookieError, SimpleCookie
from importlib import import_module
from importlib.metadata import metadata
from importlib.resources import files
from typing import Any, Final
from urllib.parse import parse_qs, urlencode

from dragoman.core.exact_json import encode
from dragoman.core.rules.explain import explain
from dragoman.inspect.bundle import PAGE_FILES, bundle
from dragoman.inspect.recording import Recording
from dragoman.transports.base import Headers
from dragoman.transports.http.app import own_address
from dragoman.transports.http.config import FrontConfig
from dragoman.transports.http.exchange import (
    JSON,
    Disconnected,
    HttpRequest,
    Receive,
    RequestRefused,
    Scope,
    Send,
    Wire,
    read_headers,
)
from dragoman.transports.http.pump import pump
from dragoman.transports.http.security import Doorkeeper
from dragoman.transports.http.site import Budget, Hold
from dragoman_spec import REVISIONS, load
from dragoman_spec.revisions import steps_between

COOKIE: Final = "dragoman_inspect"

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_GUARDED: Final[Headers] = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
_TYPES: Final = {
    "html": b"text/html; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "css": b"text/css; charset=utf-8",
    "svg": b"image/svg+xml",
}
_BY_PERSON: Final = b"navigate"
"""How a browser fetches what a person follows a link to, which may stand anywhere: that page sees nothing of it."""

_TEXT: Final = (b"content-type", b"text/plain; charset=utf-8")


class InspectSite:
    """Serves the page.

    Args:
        recording: What it shows.
        key: What a browser needs.
        config: Which hosts may be named, and how long anything may take.
        about: What the page says of itself: what is watched, since when.
    """

    def __init__(
        self, recording: Recording, key: str, config: FrontConfig, about: Mapping[str, Any] | None = None
    ) -> None:
        self.recording = recording
        self.config = config
        self._key = key.encode()
        self._gate = Doorkeeper(config.admission)
        self._budget = Budget(config.limits.memory_bytes, config.limits.body_bytes)
        self._about = {"revisions": REVISIONS, "docs": _find_docs(), **(about or {})}
        over = self._about.get("transports", {})
        self._transports: dict[str, Any] = {
            f"{side}_transport": "http" for side in ("client", "server") if str(over.get(side)).startswith("http")
        }
        page = files("dragoman.inspect") / "page"
        self._files = {name: (page / name).read_bytes() for name in PAGE_FILES}
        self._served: Mapping[str, Callable[[HttpRequest, str], tuple[int, Headers, bytes]]] = {
            "line": self._give_line,
            "page": self._give_file,
            "about": self._give_about,
            "explain": self._give_explanation,
            "why": self._give_reasons,
            "trace": self._give_trace,
            "bundle": self._give_bundle,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve, as ASGI 3 has it."""
        if scope["type"] != "http":
            return
        client = scope.get("client")
        hold = Hold(self._budget, client[0] if client else "")
        request = HttpRequest(Wire(scope, receive, send), hold)
        request.extra = _GUARDED
        try:
            await self._serve(request)
        except RequestRefused as refused:
            said = request.reply(refused.status, f"{refused.reason}\n".encode(), _TEXT, *refused.headers)
            if said is not None:
                await said
        except (Disconnected, OSError):
            pass
        finally:
            request.wire.leave()
            hold.release()

    async def _serve(self, request: HttpRequest) -> None:
        """Serve a request.

        Raises:
            RequestRefused: It is for another host, from another page, without the key, or for what is not here.
        """
        scope = request.scope
        headers = request.headers = read_headers(scope, self.config.limits)
        host = self._gate.check_host(headers, own_address(scope))
        if headers.get(b"origin") is not None or headers.get(b"sec-fetch-mode", _BY_PERSON) != _BY_PERSON:
            self._gate.check_origin(headers, scope["scheme"], host)
        if request.method not in ("GET", "HEAD"):
            raise RequestRefused(405, "expected GET", (b"allow", b"GET, HEAD"))
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        if "key" in query:
            await self._welcome(request, query)
            return
        self._check_key(headers)
        first, _, rest = scope["path"].strip("/").partition("/")
        if first == "events":
            await self._stream(request, query)
            return
        serve = self._served.get(first or "page")
        if serve is None:
            raise RequestRefused(404, "there is nothing at this path; the page is at /")
        status, said, body = serve(request, rest)
        await _wait(request.reply(status, body, *said))

    async def _welcome(self, request: HttpRequest, query: dict[str, list[str]]) -> None:
        """Take the key from the address, and give the cookie."""
        if not hmac.compare_digest(query.pop("key")[0].encode(), self._key):
            raise RequestRefused(403, _LOCKED)
        secure = b"; Secure" if request.scope["scheme"] == "https" else b""
        cookie = b"%b=%b; HttpOnly; SameSite=Strict; Path=/%b" % (self._cookie(request), self._key, secure)
        where = urlencode(query, doseq=True)
        location = (b"location", b"/" + (b"?" + where.encode() if where else b""))
        await _wait(request.reply(303, b"", (b"set-cookie", cookie), location))

    def _check_key(self, headers: Mapping[bytes, bytes]) -> None:
        """Check that the browser has the key.

        Raises:
            RequestRefused: It has not.
        """
        try:
            cookies = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1"))
        except CookieError:
            cookies = SimpleCookie()
        given = [cookie.value.encode() for name, cookie in cookies.items() if name.startswith(COOKIE)]
        if not any(hmac.compare_digest(value, self._key) for value in given):
            raise RequestRefused(403, _LOCKED)

    def _cookie(self, request: HttpRequest) -> bytes:
        """Name the cookie: browsers keep one jar for all ports of a host."""
        server = request.scope.get("server")
        return f"{COOKIE}_{server[1] if server else 0}".encode()

    async def _stream(self, request: HttpRequest, query: dict[str, list[str]]) -> None:
        """Send lines as they come: from the number that the query or `Last-Event-ID` names."""
        given = request.header(b"last-event-id") or query.get("from", ["1"])[0]
        source = LineSource(self.recording, int(given) if given.isdecimal() and len(given) < 16 else 1)
        await request.start_stream()
        try:
            await pump(request, source, lambda _: None, self.config.patience)
        finally:
            source.close()

    def _give_file(self, request: HttpRequest, name: str) -> tuple[int, Headers, bytes]:
        name = name or "index.html"
        if name not in self._files:
            raise RequestRefused(404, "there is no such file")
        kind = (b"content-type", _TYPES[name.rpartition(".")[2]])
        return 200, (kind,), self._files[name]

    def _give_line(self, request: HttpRequest, number: str) -> tuple[int, Headers, bytes]:
        line = self.recording.find(int(number)) if number.isdecimal() and len(number) < 16 else None
        if line is None:
            raise RequestRefused(404, "this line is not kept any more")
        return 200, (JSON,), line

    def _give_about(self, request: HttpRequest, _: str) -> tuple[int, Headers, bytes]:
        return 200, (JSON,), encode(dict(self._about))

    def _give_explanation(self, request: HttpRequest, pair: str) -> tuple[int, Headers, bytes]:
        """Say what `dragoman explain` says of a pair."""
        client, _, server = pair.partition("/")
        if client not in REVISIONS or server not in REVISIONS:
            raise RequestRefused(404, "expected /explain/REVISION/REVISION, of the client and of the server")
        rows = [
            {"feature": row.feature, "status": row.status.value, "why": row.why}
            for row in explain(client, server, **self._transports).rows
        ]
        return 200, (JSON,), json.dumps(rows).encode()

    def _give_reasons(self, request: HttpRequest, pair: str) -> tuple[int, Headers, bytes]:
        """Give what the steps from one revision to another decide, and why."""
        source, _, target = pair.partition("/")
        if source not in REVISIONS or target not in REVISIONS:
            raise RequestRefused(404, "expected /why/REVISION/REVISION, from one to the other")
        return 200, (JSON,), json.dumps(list(read_reasons(source, target))).encode()

    def _give_trace(self, request: HttpRequest, _: str) -> tuple[int, Headers, bytes]:
        """Give everything that is kept, as `--trace` writes it."""
        attachment = (b"content-disposition", b'attachment; filename="trace.ndjson"')
        kind = (b"content-type", b"application/x-ndjson")
        return 200, (kind, attachment), b"".join(line + b"\n" for line in self.recording.lines())

    def _give_bundle(self, request: HttpRequest, _: str) -> tuple[int, Headers, bytes]:
        """Give the page as one file, with a place for what it is to show."""
        return 200, ((b"content-type", _TYPES["html"]),), bundle(self._files)


class LineSource:
    """What one browser is sent.

    Args:
        recording: Where lines come from.
        number: Of the first line that it has not got.
    """

    def __init__(self, recording: Recording, number: int) -> None:
        self._recording = recording
        self._number = number
        self._status: object = None
        self._has_ended = False
        self.wake = asyncio.Event()
        recording.wake_with(self.wake)

    @property
    def is_over(self) -> bool:
        """Whether nothing comes but what can be taken now."""
        return self._has_ended

    def take_part(self) -> tuple[bytes, int]:
        """Take the next events to send."""
        recording, parts = self._recording, []
        missing = max(0, recording.first - self._number)
        lines, number = recording.read(self._number)
        if missing:
            parts.append(_event(b"missing", b"%d" % missing))
        if lines:
            self._number = number
            parts.append(_event(b"lines", b"\ndata: ".join(lines), number))
        if recording.status is not self._status:
            self._status = recording.status
            parts.append(_event(b"status", encode(recording.status)))
        if recording.is_over and not lines and not self._has_ended:
            self._has_ended = True
            parts.append(_event(b"over", b"{}"))
        if lines and not self._has_ended:
            self.wake.set()  # there may be more than went in one part
        part = b"".join(parts)
        return part, len(part)

    def close(self) -> None:
        """Be told of nothing more."""
        self._recording.forget(self.wake)


def read_reasons(source: str, target: str) -> Iterator[dict[str, Any]]:
    """Yield each step on the way from one revision to another: what it decides, and where its source has what."""
    for one, other in steps_between(source, target):
        decided, here = (import_module(f"{load(revision).__name__}.decisions") for revision in (max(one, other), one))
        yield {
            "from": one,
            "to": other,
            "page": f"docs/steps/{max(one, other)}.md",
            "decisions": [row for row in decided.DECISIONS if row["direction"] == ("up" if one < other else "down")],
            "frames": here.FRAMES,
            "places": here.PLACES,
        }


def _find_docs() -> str:
    """Return where the folder `docs` of this release is, without a slash at the end; empty if nobody said."""
    for said in metadata("dragoman").get_all("Project-URL") or ():
        name, _, url = said.partition(", ")
        if name == "Documentation":
            return str(url).removesuffix("/index.md")
    return ""


_LOCKED: Final = "open the address that the proxy printed, with the key in it: other visitors are shown nothing"


def _event(name: bytes, data: bytes, number: int | None = None) -> bytes:
    named = b"" if number is None else b"id: %d\n" % number
    return b"event: %b\n%bdata: %b\n\n" % (name, named, data)


async def _wait(answer: Any) -> None:
    if answer is not None:
        await answer
