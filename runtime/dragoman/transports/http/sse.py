"""Server-sent events: how they are written.

Lives here: the text of one event. Must not: know what an event carries, or who reads it. Called by `streams`.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
"""

from __future__ import annotations

from typing import Final

COMMENT: Final = b":\n\n"
"""An event that no client sees; it keeps a quiet connection open."""


def encode_message(line: bytes, event_id: str | None = None) -> bytes:
    """Write one JSON-RPC frame as an event.

    Args:
        line: The frame, with or without line feed at its end.
        event_id: What a client says to go on after this event.
    """
    data = line.rstrip()
    if b"\n" in data or b"\r" in data:  # both are only white space in JSON, and would end the field here
        data = data.replace(b"\r", b" ").replace(b"\n", b" ")
    if event_id is None:
        return b"event: message\ndata: " + data + b"\n\n"
    return b"event: message\nid: " + event_id.encode() + b"\ndata: " + data + b"\n\n"


def encode_event(name: str, data: str) -> bytes:
    """Write an event of another kind; neither argument has line ends."""
    return f"event: {name}\ndata: {data}\n\n".encode()


def encode_primer(event_id: str, retry_s: float) -> bytes:
    """Write the event without data that gives a client an id to resume from before there is anything to send."""
    return f"id: {event_id}\nretry: {round(retry_s * 1000)}\ndata: \n\n".encode()


def encode_retry(retry_s: float) -> bytes:
    """Write how long a client should wait before it comes back."""
    return f"retry: {round(retry_s * 1000)}\n\n".encode()
