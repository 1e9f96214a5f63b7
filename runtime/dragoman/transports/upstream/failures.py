"""Errors made from what a server answers when it refuses a request.

Lives here: reading refusals. Must not: decide what follows from one. Called by `streamable` and `legacy`.
"""

from __future__ import annotations

import math
import re
import time
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

from dragoman.core.calls import UNANSWERED
from dragoman.core.codes import CONNECTION_CLOSED
from dragoman.core.exact_json import decode
from dragoman.errors import TransportError
from dragoman.transports.secrecy import Secrets
from dragoman.transports.upstream.answers import HttpResponse
from dragoman.transports.upstream.bodies import read_body
from dragoman.transports.upstream.config import UpstreamConfig, describe_url

_BODY_BYTES: Final = 64 * 1024

WEB_PAGE: Final = "text/html"
WEB_PAGE_HINT: Final = " (a web page: is the path of the URL right?)"
_USUAL_PATH: Final = "/mcp"

_HINTS: Final = {
    HTTPStatus.UNAUTHORIZED: "it wants credentials, or others than it got (--header sends them, or `headers` of its "
    "entry in a configuration file)",
    HTTPStatus.FORBIDDEN: "it does not let us in: the credentials that it got are not enough, or it serves clients "
    "under another name or address only",
    HTTPStatus.PROXY_AUTHENTICATION_REQUIRED: "a proxy on the way wants credentials, or others than it got "
    "(its URL has them: http://USER:PASSWORD@HOST:PORT)",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "the message is too large for it",
    HTTPStatus.TOO_MANY_REQUESTS: "it wants fewer requests",
}


def hint_at_path(config: UpstreamConfig) -> str:
    """Say where most servers are, for a URL that names a host alone; else nothing."""
    parts = urlsplit(config.url)
    if parts.path not in ("", "/") or parts.query:
        return ""
    usual = _USUAL_PATH if config.name else describe_url(parts._replace(path=_USUAL_PATH).geturl())
    return f"; most servers have a path: is it {usual}?"


_LATER: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})

_OFFERS_SIGN_IN: Final = "resource_metadata"
_HOW_TO_SIGN_IN: Final = "without an Authorization header, and without --no-sign-in, you are asked to"


FORGETTING: Final = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.GONE})
"""With what servers answer, beside 404, what names a session that they do not know."""

_SESSION = re.compile(r"\bsession", re.IGNORECASE)
_LOST = re.compile(
    r"\b(no|not|invalid|unknown|unrecogni[sz]ed|expired|missing|terminated|closed|gone|lost|doesn't)\b", re.IGNORECASE
)
_NOT_OPEN = re.compile(r"\bnot initialized\b", re.IGNORECASE)


def tells_of_session(words: str) -> bool:
    """Whether a server says with these words that it does not know a session."""
    speaks_of_it = _SESSION.search(words) is not None and _LOST.search(words) is not None
    return speaks_of_it or _NOT_OPEN.search(words) is not None


class StatusRefused(TransportError):
    """The server answered a request with a status that is no success.

    Args:
        peer: The server.
        reason: What it said, in words.
        status: Of HTTP.
        error: The JSON-RPC error in its body, if there was one.
        retry_after_s: After how many seconds it is worth another try; None where it does not say.
    """

    def __init__(
        self, peer: str, reason: str, status: int, error: dict[str, Any] | None, retry_after_s: int | None = None
    ) -> None:
        super().__init__(peer, reason)
        self.status = status
        self.error = error
        self._retry = {} if retry_after_s is None else {"retryAfterSeconds": retry_after_s}

    @property
    def code(self) -> int:
        """The JSON-RPC error code to pass on."""
        return self.error["code"] if self.error else CONNECTION_CLOSED

    @property
    def message(self) -> str:
        """The JSON-RPC error message to pass on: the server's own, where it gave one."""
        return self.error["message"] if self.error else str(self)

    @property
    def data(self) -> Any:
        """The JSON-RPC error data to pass on."""
        if self.error and (told := self.error.get("data")) is not None:
            return {**self._retry, **told} if isinstance(told, dict) else told
        # A gateway gives up a request that the server may go on with.
        is_unanswered = self.status >= HTTPStatus.INTERNAL_SERVER_ERROR or self.status == HTTPStatus.REQUEST_TIMEOUT
        return {"httpStatus": self.status} | ({UNANSWERED: True} if is_unanswered else {}) | self._retry


async def read_refusal(answer: HttpResponse) -> StatusRefused:
    """Read why a request was refused; the answer is closed afterwards."""
    try:
        body = await read_body(answer, _BODY_BYTES)
    except TransportError:
        body = b""
    finally:
        answer.close()
    secrets = answer.secrets or Secrets()
    error = _read_error(body)
    if error is not None:
        error = dict(secrets.take_out_of(error))
    hint = _HINTS.get(HTTPStatus(answer.status)) if answer.status in set(HTTPStatus) else None
    words = "" if answer.media_type == WEB_PAGE else _shorten(body, secrets)
    said = error["message"] if error else f"{hint}; it says {words!r}" if hint and words else hint or words
    if error is None and hint is None and answer.media_type == WEB_PAGE:
        said = f"{WEB_PAGE}{WEB_PAGE_HINT}"
    reason = f"it answered {answer.named_status}" + (f": {said}" if said else "")
    retry_after_s = _read_retry_after(answer) if answer.status in _LATER else None
    if retry_after_s is not None:
        reason += f"; try again in {retry_after_s} s"
    if answer.status == HTTPStatus.UNAUTHORIZED and (challenge := answer.header("WWW-Authenticate")):
        reason += f" ({_shorten(challenge.encode(), secrets)})"  # which credentials, and who gives them
        if _OFFERS_SIGN_IN in challenge.lower():
            reason += f"; people can sign in to it: {_HOW_TO_SIGN_IN}"
    return StatusRefused(answer.peer, reason, answer.status, error, retry_after_s)


def _read_retry_after(answer: HttpResponse) -> int | None:
    """Read after how many seconds the server wants to be asked again: it gives them, or a date (RFC 9110, 10.2.3)."""
    wait = answer.header("Retry-After")
    if wait.isascii() and wait.isdecimal():
        return int(wait[:9])
    try:
        return max(0, math.ceil(parsedate_to_datetime(wait).timestamp() - time.time()))
    except (ValueError, OverflowError):
        return None


def _read_error(body: bytes) -> dict[str, Any] | None:
    try:
        value = decode(body)
    except ValueError:
        return None
    error = value.get("error") if isinstance(value, dict) else None
    if isinstance(error, dict) and isinstance(error.get("code"), int) and isinstance(error.get("message"), str):
        return error
    return None


def _shorten(body: bytes, secrets: Secrets) -> str:
    text = " ".join(secrets.take_out(body[:400].decode(errors="replace")).split())
    return "".join(char for char in text if char.isprintable())[:160]
