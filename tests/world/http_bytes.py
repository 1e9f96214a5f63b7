"""HTTP as peers of a world write and read it: requests, answers, and events of a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import httptools

Headers = dict[str, str]


@dataclass
class Message:
    """A request or an answer, as far as it has come.

    Attributes:
        headers: With small names.
        status: Of an answer.
        method: Of a request.
        path: Of a request.
        body: What has come of it and was not taken.
        resumes: Whether it answers who takes up a stream again.
    """

    headers: Headers = field(default_factory=dict)
    status: int = 0
    method: str = ""
    path: str = ""
    body: bytes = b""
    resumes: bool = False


class Reader:
    """Reads one side of a connection.

    Args:
        is_request: Whether what comes are requests.
        on_head: Told of the head of each message.
        on_body: Told of each part of a body, which it may take.
        on_end: Told of the end of each message.
    """

    def __init__(
        self,
        is_request: bool,
        on_head: Callable[[Message], None],
        on_body: Callable[[Message], None],
        on_end: Callable[[Message], None],
    ) -> None:
        make = httptools.HttpRequestParser if is_request else httptools.HttpResponseParser
        self._parser: Any = make(self)
        self._is_request = is_request
        self._tell = on_head, on_body, on_end
        self.message = Message()

    def feed(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_begin(self) -> None:
        self.message = Message()

    def on_url(self, url: bytes) -> None:
        self.message.path += url.decode()

    def on_header(self, name: bytes, value: bytes) -> None:
        self.message.headers[name.decode().lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if self._is_request:
            self.message.method = self._parser.get_method().decode()
        else:
            self.message.status = self._parser.get_status_code()
        self._tell[0](self.message)

    def on_body(self, body: bytes) -> None:
        self.message.body += body
        self._tell[1](self.message)

    def on_message_complete(self) -> None:
        if self._is_request or self.message.status >= 200:
            self._tell[2](self.message)


def write_request(method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> bytes:
    """Give the bytes of a request."""
    more = {"host": "127.0.0.1", **headers, **({"content-length": str(len(body))} if body else {})}
    lines = "".join(f"{name}: {value}\r\n" for name, value in more.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1") + body


def write_answer(status: int, headers: Mapping[str, str], body: bytes | None = b"") -> bytes:
    """Give the bytes of an answer; without a body those of its head, and chunks follow."""
    length = {"transfer-encoding": "chunked"} if body is None else {"content-length": str(len(body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in {**headers, **length}.items())
    return f"HTTP/1.1 {status} -\r\n{lines}\r\n".encode("latin-1") + (body or b"")


def chunk(data: bytes) -> bytes:
    """Give the bytes of a part of a body; of the end of it, if there is nothing in it."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def event(data: bytes, key: str = "", name: str = "") -> bytes:
    """Give an event of a stream."""
    head = (f"event: {name}\n" if name else "") + (f"id: {key}\n" if key else "")
    return head.encode() + b"data: " + data + b"\n\n"


class Events:
    """Reads a stream of events.

    Attributes:
        last: The id of the last one that has one.
        returns: How often its reader has come back to it though nothing was to come.
        retry_s: How long its sender wants to be left alone, if it said so.
    """

    def __init__(self) -> None:
        self.last = ""
        self.returns = 0
        self.retry_s: float | None = None
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[tuple[str, bytes]]:
        """Take bytes; give the name and the data of each event that is whole."""
        *blocks, self._rest = (self._rest + data).replace(b"\r\n", b"\n").split(b"\n\n")
        for block in blocks:
            name, lines = "message", []
            for line in block.split(b"\n"):
                kind, _, value = line.partition(b":")
                value = value.removeprefix(b" ")
                if kind == b"data":
                    lines.append(value)
                elif kind == b"event":
                    name = value.decode()
                elif kind == b"id":
                    self.last = value.decode()
                elif kind == b"retry":
                    self.retry_s = int(value) / 1000
            data = b"\n".join(lines)
            if data:  # without data it has but an id, to come back with
                yield name, data
