"""The access log: a line for each call, and for each session that begins and ends.

Lives here: what a line says. Must not: see calls (`calls`), or wait for whoever reads (`writer`). To wake the thread
that writes costs more than to make a line, so lines of a moment are written together.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from dragoman.core.exact_json import encode
from dragoman.trace.calls import SeenCall, SeenSession
from dragoman.trace.writer import LineWriter, open_target
from dragoman_spec.losses import LossGroup

STDOUT: Final = "-"

FLUSH_S: Final = 0.05
"""How long a line waits for others."""

_SHOWN: Final = 200
"""How much of a name is written that a peer chose."""

_PLAIN: Final = re.compile(r"[\w.:/@+-]+", re.ASCII)


class AccessLog:
    """Writes calls and sessions down.

    Args:
        path: A file, which is appended to, or a pipe that somebody reads; `-` is stdout.
        is_json: Whether a line is a JSON object; else names and values.

    Raises:
        OSError: It cannot be written to.
    """

    def __init__(self, path: str, is_json: bool = False) -> None:
        is_stdout = path == STDOUT
        fd = os.dup(1) if is_stdout else open_target(path)
        self._writer = LineWriter(
            fd, "/dev/stdout" if is_stdout else path, what="the access log", drop=self._write_dropped
        )
        self._is_json = is_json
        self._lines: list[bytes] = []

    def take_call(self, call: SeenCall, is_front: bool, is_back: bool) -> None:
        """Write down a call; behind a router, one that a server of its had, for the router's call has none."""
        ours, theirs = call.revisions
        about: dict[str, Any] = {"session": call.session, "principal": call.principal}
        if is_front:
            about |= {"client": call.client, "client_revision": ours}
        about |= {
            "server": call.server,
            "server_revision": theirs,
            "method": call.method,
            "tool": call.tool,
            "outcome": call.outcome,
            "server_ms": None if call.server_s is None else round(call.server_s * 1000, 3),
            "our_ms": round(call.ours_s * 1000, 3),
            "request_bytes": call.request_bytes,
            "answer_bytes": call.answer_bytes,
        }
        self._put("call" if is_front else "server call", about)

    def take_session(self, session: SeenSession) -> None:
        """Write down that a session of a client has begun, or is over."""
        if session.client is None:
            return
        about: dict[str, Any] = {"session": session.session, "principal": session.principal, "client": session.client}
        about["client_revision"] = session.revision
        if session.outcome:
            about |= {"outcome": session.outcome, "lasted_s": round(session.lasted_s, 3)}
        self._put("session ended" if session.outcome else "session began", about)

    def take_losses(self, source: str, target: str, losses: Sequence[LossGroup]) -> None:
        """Nothing to do: the log has them."""

    def take_question(self, method: str) -> None:
        """Nothing to do: a question is no call of a client."""

    def take_restart(self) -> None:
        """Nothing to do: the log has it."""

    def take_tools(self, server: str, names: Sequence[str]) -> None:
        """Nothing to do: a tool has its name here, whatever it is."""

    def reopen(self) -> None:
        """Open the file anew, if it is not the same any more; else that is noticed in a second."""
        self._writer.reopen()

    def close(self) -> None:
        """Write what waits, and close the file."""
        self._flush()
        self._writer.close()

    def _put(self, event: str, about: dict[str, Any]) -> None:
        about = {name: value for name, value in about.items() if value not in ("", None)}
        self._lines.append(write_line(event, about, self._is_json))
        if len(self._lines) == 1:
            asyncio.get_running_loop().call_later(FLUSH_S, self._flush)

    def _write_dropped(self, time_s: float, count: int) -> bytes:
        return write_line("lines missing", {"lines": count}, self._is_json)

    def _flush(self) -> None:
        if self._lines:
            self._writer.put(b"".join(self._lines))
            self._lines.clear()


def write_line(event: str, about: dict[str, Any], is_json: bool) -> bytes:
    """Write what happened: its time in UTC, what it was, and what is known of it."""
    second, rest = divmod(int(time.time() * 1_000_000), 1_000_000)
    now = f"{_write_second(second)}.{rest:06}Z"
    if is_json:
        shown = {name: value[:_SHOWN] if type(value) is str else value for name, value in about.items()}
        return encode({"time": now, "event": event, **shown}) + b"\n"
    said = " ".join([f"{name}={_show(value) if type(value) is str else value}" for name, value in about.items()])
    return f"{now} {event}: {said}\n".encode()


@lru_cache(maxsize=2)
def _write_second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")


@lru_cache(maxsize=1024)
def _show(text: str) -> str:
    """Return a text so that no name can end a line, look like another value, or steer a terminal; most come often."""
    text = text[:_SHOWN]
    return text if _PLAIN.fullmatch(text) else ascii(text)
