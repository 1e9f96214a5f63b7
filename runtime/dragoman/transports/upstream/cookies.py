"""Cookies of one server: load balancers use them to keep a session on one machine.

Lives here: what is taken from `Set-Cookie` and given back. Must not: know requests. Imported by `connection_pool` when
a server sets the first one.

Source: RFC 6265, 5.2 to 5.4, for one host: a cookie for another one is not kept.
"""

from __future__ import annotations

import re
import time
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import urlsplit

from dragoman.transports.upstream.config import UpstreamConfig, origin_of
from dragoman_spec.record import record

_MOST: Final = 50
_MOST_BYTES: Final = 4096
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


@record
class _Cookie:
    value: str
    path: str
    expires_at: float | None


class Cookies:
    """The cookies of one server.

    Args:
        config: The server; a `Cookie` among its headers is sent along.
    """

    def __init__(self, config: UpstreamConfig) -> None:
        scheme, self._host, _ = origin_of(config.url)
        self._secure = scheme == "https"
        self._given = "; ".join(value for name, value in config.headers if name.lower() == "cookie")
        self._kept: dict[tuple[str, str], _Cookie] = {}

    def take(self, lines: str, url: str) -> None:
        """Take what an answer sets.

        Args:
            lines: The values of `Set-Cookie`, one a line.
            url: What was asked for.
        """
        for line in lines.split("\n"):
            if len(line) <= _MOST_BYTES and not _CONTROL.search(line):
                self._take_one(line, urlsplit(url).path)

    def give(self, url: str) -> str:
        """Return the value of `Cookie` for a request; empty if there is none."""
        path, now = urlsplit(url).path or "/", time.time()
        kept = [
            f"{name}={cookie.value}"
            for (name, _), cookie in self._kept.items()
            if _covers(cookie.path, path) and (cookie.expires_at is None or cookie.expires_at > now)
        ]
        return "; ".join([*([self._given] if self._given else []), *kept])

    def _take_one(self, line: str, asked: str) -> None:
        pair, *attributes = line.split(";")
        name, equals, value = (part.strip() for part in pair.partition("="))
        given = {key.strip().lower(): text.strip() for key, _, text in (item.partition("=") for item in attributes)}
        domain = given.get("domain", "").lower().lstrip(".")
        elsewhere = domain and self._host != domain and not self._host.endswith(f".{domain}")
        if not name or not equals or elsewhere or ("secure" in given and not self._secure):
            return
        path = given.get("path", "")
        key = (name, path if path.startswith("/") else asked.rpartition("/")[0] or "/")
        expires_at = _expiry(given)
        self._kept.pop(key, None)
        if (expires_at is None or expires_at > time.time()) and len(self._kept) < _MOST:
            self._kept[key] = _Cookie(value, key[1], expires_at)


def _expiry(given: dict[str, str]) -> float | None:
    """Return when a cookie ends, in seconds since the epoch; None: with the session."""
    if re.fullmatch(r"-?[0-9]{1,12}", given.get("max-age", "")):
        return time.time() + int(given["max-age"])
    try:
        return parsedate_to_datetime(given["expires"]).timestamp()
    except (KeyError, ValueError, OverflowError):
        return None


def _covers(path: str, asked: str) -> bool:
    """RFC 6265, 5.1.4: a path covers itself and what lies below it."""
    return asked == path or asked.startswith(path if path.endswith("/") else f"{path}/")
