"""The requests of one POST that wait for their answers.

Lives here: collecting answers until none is missing, and turning into a stream when something else is to be sent first
or when it takes long. Must not: decide which frame belongs to which call (`routing`). `streamable` answers the POST.
"""

from __future__ import annotations

import asyncio

from dragoman.transports.http.streams import Stream, StreamConnection


class PostedCall:
    """What one POST asked.

    Args:
        keys: The ids of its requests, as JSON.
        tokens: Their progress tokens, as JSON.
        takes_stream: Whether it may be answered with a stream.
        is_batch: Whether an array was posted.
        decided: Done as soon as it is clear how to answer.

    Attributes:
        connection: That of the POST, once it is answered with a stream: it is there to read from the first event on.
    """

    __slots__ = ("answers", "connection", "decided", "is_batch", "keys", "opened", "stream", "takes_stream", "tokens")

    def __init__(
        self,
        keys: frozenset[bytes],
        tokens: frozenset[bytes],
        takes_stream: bool,
        is_batch: bool,
        decided: asyncio.Future[None],
    ) -> None:
        self.keys = set(keys)
        self.tokens = tokens
        self.takes_stream = takes_stream
        self.is_batch = is_batch
        self.opened = False  # whether the session is open by this
        self.stream: Stream | None = None
        self.connection: StreamConnection | None = None
        self.answers: list[bytes] = []
        self.decided = decided

    def answer(self, keys: frozenset[bytes], line: bytes) -> None:
        """Take an answer to some of the requests; the last one completes the call."""
        self.keys -= keys
        if self.stream is not None:
            self.stream.append(line)
        else:
            self.answers.append(line)
        self._check_complete()

    def forgo(self, key: bytes) -> None:
        """Expect no answer to this request any more: it was cancelled."""
        self.keys.discard(key)
        self._check_complete()

    def become_stream(self, stream: Stream) -> None:
        """Answer with a stream from here on, what was answered already first; it ends with that if that is all."""
        self.stream, self.connection = stream, StreamConnection()
        stream.attach(self.connection)
        for line in self.answers:
            stream.append(line)
        self.answers.clear()
        if self.decided.done():
            stream.finish()  # the last answer, or the end, came first
        self.decide()

    def give_up(self) -> None:
        """End: nothing more will come."""
        if self.stream is not None:
            self.stream.finish()
        self.decide()

    def decide(self) -> None:
        """Let the POST be answered."""
        if not self.decided.done():
            self.decided.set_result(None)

    def body(self) -> bytes:
        """Give the answers as the body of a JSON response."""
        if not self.is_batch:
            return self.answers[0] if self.answers else b""
        members = [line.strip() for line in self.answers]
        bare = [line[1:-1] if line.startswith(b"[") else line for line in members]
        return b"[" + b",".join(bare) + b"]"

    def _check_complete(self) -> None:
        if not self.keys:
            self.give_up()
