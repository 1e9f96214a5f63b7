"""A client that says what the one in a trace said, and compares the answers with those of then.

Lives here: the conversation with a server's command. Must not: read the trace (`capture`).
"""

from __future__ import annotations

import contextlib
import queue
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

from dragoman import system
from dragoman.core.codes import METHOD_NOT_FOUND
from dragoman.core.exact_json import decode, encode
from dragoman.errors import TransportClosed
from dragoman.inspect.capture import Capture, RecordedCall
from dragoman.transports.spawn import spawn

ANSWER_S: Final = 60.0
"""How long one answer may take."""

_LEAVE_S: Final = 2.0
_SHOWN: Final = 3
_READ_BYTES: Final = 64 * 1024
_AHEAD: Final = 4


def play(capture: Capture, command: Sequence[str], answer_s: float = ANSWER_S) -> Iterator[tuple[str, bool]]:
    """Say what was said to a server; yield a line for each answer, and whether it differs.

    Args:
        capture: What was said.
        command: The server, with its arguments.
        answer_s: How long one answer may take, in seconds.
    """
    try:
        process = spawn(command)
    except TransportClosed as error:
        yield f"the server does not start: {error}", True
        return
    conversation = _Conversation(capture, process, answer_s)
    try:
        yield from conversation.run()
    finally:
        conversation.end()
        try:
            process.wait(_LEAVE_S)
        except subprocess.TimeoutExpired:
            system.tell_family(process, is_last_word=True)
            process.wait()


class _Conversation:
    def __init__(self, capture: Capture, process: subprocess.Popen[bytes], answer_s: float) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._capture = capture
        self._input, self._output = process.stdin, process.stdout
        self._answer_s = answer_s
        self._rest = b""
        self._heard: queue.Queue[bytes] = queue.Queue(_AHEAD)  # an event loop of Windows cannot wait for a pipe
        self._said: queue.Queue[bytes] = queue.Queue()  # a server may not read
        for work in (self._listen, self._speak):
            threading.Thread(target=work, name="dragoman-play", daemon=True).start()
        self._questions = list(capture.replies.values())

    def run(self) -> Iterator[tuple[str, bool]]:
        for number, call in enumerate(self._capture.calls):
            for before, notice in self._capture.notices:
                if before == number:
                    self._say(notice)
            if call.answer is None:  # nobody knows what would be the same
                continue
            self._say(call.request)
            try:
                answer = self._await(call.request["id"])
            except TimeoutError:
                yield f"{_title(call)}: no answer within {self._answer_s:g} s", True
                continue
            except EOFError:
                yield f"{_title(call)}: the server has ended", True
                return
            found = list(_differences(call.answer, answer))
            if not found:
                yield f"{_title(call)}: same", False
            else:
                more = f", and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
                yield f"{_title(call)}: differs at {', '.join(found[:_SHOWN])}{more}", True

    def end(self) -> None:
        """Say no more, once everything is said."""
        self._said.put(b"")

    def _say(self, frame: dict[str, Any]) -> None:
        self._said.put(encode(frame) + b"\n")

    def _speak(self) -> None:
        with contextlib.suppress(OSError), self._input:  # it has ended, which is seen when it is read
            while line := self._said.get():
                self._input.write(line)
                self._input.flush()

    def _await(self, id_: object) -> dict[str, Any]:
        """Read until the answer comes; answer questions meanwhile as they were answered then.

        Raises:
            TimeoutError: It does not come in time.
            EOFError: The server says no more.
        """
        deadline = time.monotonic() + self._answer_s
        while True:
            frame = self._read(deadline)
            if "method" in frame and "id" in frame:
                self._say(self._reply(frame))
            elif "method" not in frame and frame.get("id") == id_:
                return frame

    def _read(self, deadline: float) -> dict[str, Any]:
        while True:
            line, end, rest = self._rest.partition(b"\n")
            if end:
                self._rest = rest
                try:
                    frame = decode(line)
                except ValueError:
                    continue
                if isinstance(frame, dict):
                    return frame
                continue
            try:
                data = self._heard.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise TimeoutError from None
            if not data:
                raise EOFError
            self._rest += data

    def _listen(self) -> None:
        data = b"begin"
        with self._output:
            while data:
                try:
                    data = self._output.read(_READ_BYTES) or b""
                except OSError:
                    data = b""
                self._heard.put(data)

    def _reply(self, question: dict[str, Any]) -> dict[str, Any]:
        if question["method"] == "ping":
            return {"jsonrpc": "2.0", "id": question["id"], "result": {}}
        if self._questions:
            return self._questions.pop(0) | {"id": question["id"]}
        error = {"code": METHOD_NOT_FOUND, "message": "the trace has no answer to this question"}
        return {"jsonrpc": "2.0", "id": question["id"], "error": error}


def _title(call: RecordedCall) -> str:
    params = call.request.get("params")
    name = next((params[key] for key in ("name", "uri") if key in params), "") if isinstance(params, dict) else ""
    return f"{call.request['method']} {name}".strip()


def _differences(recorded: Any, given: Any, pointer: str = "") -> Iterator[str]:
    """Return where two answers differ, as JSON pointers."""
    if isinstance(recorded, dict) and isinstance(given, dict):
        for name in sorted(recorded.keys() | given.keys()):
            if name == "id" and not pointer:
                continue
            below = f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
            if name in recorded and name in given:
                yield from _differences(recorded[name], given[name], below)
            else:
                yield below
    elif isinstance(recorded, list) and isinstance(given, list) and len(recorded) == len(given):
        for index, (one, other) in enumerate(zip(recorded, given, strict=True)):
            yield from _differences(one, other, f"{pointer}/{index}")
    elif recorded != given and recorded != "[redacted]":
        yield pointer or "/"
