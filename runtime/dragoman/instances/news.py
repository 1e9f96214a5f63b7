"""What a server tells one instance, for those who listen at another.

Lives here: which notices go to others, how often, and to whom they are given here. Must not: carry them (`directory`,
`store`), know who listens, or be on the way of a call. Called by `host`, for servers that one session of theirs serves
several requests or clients of the same principal with.

Theory of operation. Requests without a session come to any instance, and each has a session of its own with the server.
A server tells of a change in the session in which it was made, which may be at another instance than who listens. So
each instance says what it was told, no oftener than twice a second and each thing once, and the others take it as if
their own session had been told. The name of the principal is not said, but what is made of it and of the server's name:
who has another one does not hear it. Of a notice only the method goes there, and the resource that it is about. What
somebody may have missed, since the way was gone, is told to those who listen as if everything had changed.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from dragoman.core.envelope import Frame, Malformed, notification_frame, read_params
from dragoman.core.methods import UPDATED
from dragoman.core.streams import ANNOUNCED

if TYPE_CHECKING:
    from dragoman.host.settings import NewsReader
    from dragoman.instances.directory import Directory

_PAUSE_S: Final = 0.5
_MOST: Final = 64
"""How many different things of one principal's server are said at once; of more, that everything may have changed."""

_EVERYTHING: Final = ("", "")
"""What stands in place of a method and a URI where everything may have changed."""

_AT_ONCE: Final = 16
_LONGEST: Final = 1024
"""How long the URI of a resource may be, in characters, of which others hear."""


class News:
    """What servers tell here and elsewhere."""

    def __init__(self) -> None:
        self._hosts: dict[str, dict[NewsReader, None]] = {}
        self._waiting: dict[str, dict[tuple[str, str], None]] = {}  # by whose it is
        self._directory: Directory | None = None
        self._saying: asyncio.Task[None] | None = None

    def begin(self, directory: Directory) -> None:
        """Say and hear from now on."""
        self._directory = directory
        directory.on_news, directory.on_missed = self.hear, self.catch_up

    async def end(self) -> None:
        """Say nothing more."""
        self._directory = None
        if self._saying is not None:
            self._saying.cancel()

    def join(self, host: NewsReader) -> None:
        """Let a host hear what is told to those of its principal and server."""
        self._hosts.setdefault(_digest(host), {})[host] = None

    def leave(self, host: NewsReader) -> None:
        """Let it hear nothing more."""
        key = _digest(host)
        self._hosts.get(key, {}).pop(host, None)
        if not self._hosts.get(key):
            self._hosts.pop(key, None)

    def tell(self, host: NewsReader, frames: Sequence[Frame | Malformed]) -> None:
        """Take what a server of a host has said; what others may listen to goes to them."""
        for frame in frames:
            if isinstance(frame, Frame) and frame.method in ANNOUNCED and frame.kind == "notification":
                uri = read_params(frame).get("uri") if frame.method == UPDATED else ""
                if isinstance(uri, str) and len(uri) <= _LONGEST:
                    self._note(_digest(host), frame.method, uri)
        if self._waiting and self._saying is None and self._directory is not None:
            self._saying = asyncio.create_task(self._say())
            self._saying.add_done_callback(self._said)

    def hear(self, text: bytes | str) -> None:
        """Take what another instance has said."""
        for key, method, uri in _read(text):
            params: dict[str, Any] | None = {"uri": uri} if method == UPDATED else None
            for host in list(self._hosts.get(key, ())):
                host.hear(notification_frame(method, params) if method else None)

    def catch_up(self) -> None:
        """Take note that nobody knows what others have said for a while."""
        for host in [host for hosts in self._hosts.values() for host in hosts]:
            host.hear(None)

    def _note(self, whose: str, method: str, uri: str) -> None:
        waiting = self._waiting.setdefault(whose, {})
        if _EVERYTHING not in waiting:
            waiting[method, uri] = None
        if len(waiting) > _MOST:
            self._waiting[whose] = {_EVERYTHING: None}

    async def _say(self) -> None:
        while self._waiting and self._directory is not None:
            waiting, self._waiting = self._waiting, {}
            said = [(whose, *what) for whose, things in waiting.items() for what in things]
            for start in range(0, len(said), _AT_ONCE):
                await self._directory.tell(json.dumps(said[start : start + _AT_ONCE]))
            await asyncio.sleep(_PAUSE_S)

    def _said(self, task: asyncio.Task[None]) -> None:
        self._saying = None
        if not task.cancelled():
            task.exception()


def _digest(host: NewsReader) -> str:
    """Return whose news a host has: that of a server, by a principal; the same at each instance."""
    return hashlib.sha256(f"dragoman news {host.server_name}\n{host.whose}".encode()).hexdigest()


def _read(text: bytes | str) -> list[tuple[str, str, str]]:
    """Read what was said; what is not of this form, of another release, say, is nothing."""
    try:
        said = json.loads(text)
        entries = [(key, method, uri) for key, method, uri in said]
    except (ValueError, TypeError, RecursionError):
        return []
    texts = [one for one in entries[:_AT_ONCE] if all(isinstance(part, str) for part in one)]
    return [one for one in texts if one[1] in ANNOUNCED or one[1:] == _EVERYTHING]
