"""What we say of ourselves where tokens of an authorization server count: the challenge, and our metadata.

Lives here: the words of a guard over HTTP. Must not: look into a token (`dragoman.guard`).

Sources: RFC 9728, RFC 6750, 3; basic/authorization of each revision. 2025-03-26 knows no metadata: to it they are
parameters that mean nothing. "MCP Servers SHOULD NOT include `offline_access` in `WWW-Authenticate` scope or Protected
Resource Metadata" (2026-07-28/basic/authorization, Refresh Tokens).
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from typing import Any, Final
from urllib.parse import quote, urlsplit

from dragoman.core.exact_json import encode
from dragoman.core.origin import INSUFFICIENT
from dragoman.transports.http.bearer import Guard
from dragoman.transports.http.exchange import JSON, HttpRequest, RequestRefused, Routine, Scope

METADATA: Final = "/.well-known/oauth-protected-resource"
OFFLINE: Final = "offline_access"
_HTTP_OF: Final = {"ws": "http", "wss": "https"}


class Resource:
    """What is guarded, as clients know it.

    Args:
        guard: Who wants tokens.
        home: The path at which it is served first of all.
    """

    def __init__(self, guard: Guard, home: str) -> None:
        self.guard = guard
        self._home = home

    def refuse(self, request: HttpRequest, reason: str, status: int = 401, error: str = "") -> RequestRefused:
        """Make the refusal of a request that says which token is wanted.

        Args:
            request: It.
            reason: For a person.
            status: 401 or 403.
            error: As RFC 6750 names it; empty where there was no token at all.
        """
        advice = f"clients get tokens from {self.guard.issuer}" if status == 401 else ""
        return RequestRefused(status, reason, self.write_challenge(request, error), advice=advice)

    def write_challenge(self, request: HttpRequest, error: str = "", scopes: Iterable[str] = ()) -> tuple[bytes, bytes]:
        """Return the header that says which token is wanted.

        Args:
            request: What came without.
            error: As for `refuse`.
            scopes: What the token has to be good for, beside what each has to be.
        """
        parts = urlsplit(self._find_url(request, find_path(request.scope)))
        metadata = f"{parts.scheme}://{parts.netloc}{METADATA}{parts.path.rstrip('/')}"
        wanted = _without_offline((*self.guard.scopes, *scopes))
        said = {"error": error, "scope": " ".join(wanted), "resource_metadata": metadata}
        listed = "".join(f', {name}="{value}"' for name, value in said.items() if value)
        return b"www-authenticate", f'Bearer realm="mcp"{listed}'.encode("latin-1", "replace")

    def serve_metadata(self, request: HttpRequest, path: str) -> Routine:
        """Say what we are, and whose tokens we want.

        Args:
            request: It.
            path: Of what is described; empty at the root.

        Raises:
            RequestRefused: It is neither GET nor HEAD.
        """
        if request.method not in ("GET", "HEAD"):
            raise RequestRefused(405, "expected GET", (b"allow", b"GET, HEAD"))
        told: dict[str, Any] = {
            "resource": self._find_url(request, path or self._home),
            "authorization_servers": [self.guard.issuer],
            "bearer_methods_supported": ["header"],
        }
        if scopes := _without_offline(self.guard.scopes):
            told["scopes_supported"] = scopes
        body = b"" if request.method == "HEAD" else encode(told)
        yield request.reply(200, body, JSON, (b"cache-control", b"max-age=300"))

    def _find_url(self, request: HttpRequest, path: str) -> str:
        """Return the URL of what is served at a path; what the given one has before our own path is before all."""
        given, home = self.guard.url, quote(self._home)
        if given:
            return given.removesuffix(home) + quote(path) if given.endswith(home) else given
        scheme = _HTTP_OF.get(request.scope["scheme"], request.scope["scheme"])
        return f"{scheme}://{request.header(b'host')}{quote(request.scope.get('root_path', '') + path)}"


def reply_refused(
    request: HttpRequest, body: bytes, said: Iterable[tuple[str, str]], *headers: tuple[bytes, bytes]
) -> Awaitable[None] | None:
    """Answer with an error of middleware: 403 where it takes other scopes, 429 where it is worth another try.

    Args:
        request: What is answered.
        body: The error.
        said: The headers that go with it; `INSUFFICIENT` names scopes.
        headers: What the answer carries besides.
    """
    scopes = dict(said).get(INSUFFICIENT)
    if scopes is None:
        more = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in said]
        return request.reply(429, body, JSON, *headers, *more)
    resource: Resource | None = getattr(request.gate, "resource", None)
    if resource is None:
        return request.reply(403, body, JSON, *headers)
    return request.reply(403, body, JSON, *headers, resource.write_challenge(request, INSUFFICIENT, scopes.split()))


def find_path(scope: Scope) -> str:
    """Return the path within this application, wherever it is mounted."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    return path[len(root) :] if root and path.startswith(root + "/") else path


def _without_offline(scopes: Iterable[str]) -> list[str]:
    return [one for one in dict.fromkeys(scopes) if one != OFFLINE]
