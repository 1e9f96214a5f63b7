"""A conversation across the eras as text: what each of the two sent and got, in its own form, in order.

Lives here: words and layout. Frames are not paired: a question that is a request for one is a part of a result for the
other. Must not: decide what is shown of a frame (`demo.shorten`) or how it is coloured (`demo.ink`). Called by
`dragoman.cli.demo`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from dragoman.core.commands import Side
from dragoman.demo.crossings import Record
from dragoman.demo.ink import LABEL_COLUMNS, Ink
from dragoman.demo.narrate import lay_out, suggest
from dragoman.demo.shorten import Span, Tone, shorten
from dragoman_spec import HANDSHAKE_REVISIONS

TITLES: Final = {
    "initialize": "the client opens a session",
    "server/discover": "the client looks at what there is",
    "tools/list": "what the server offers",
    "tools/call": "a tool that wants to ask the user first",
}
AGAIN: Final = "the client calls again, with the answer"


def narrate_across(record: Record, directly: str, ink: Ink) -> str:
    """Tell a whole conversation.

    Args:
        record: What happened.
        directly: What happened without the proxy; empty if they understood each other.
        ink: What may be written.

    Returns:
        Lines, the last one ended too.
    """
    return "\n".join([*_open(record, directly, ink), *_tell(record, ink), *_close(record)]) + "\n"


def _open(record: Record, directly: str, ink: Ink) -> Iterator[str]:
    client, server = record.client_revision, record.server_revision
    yield ink.paint(f"A client of {client} and a server of {server}, joined by the proxy.", "heading")
    if client != server:
        older, newer = ("client", "server") if client in HANDSHAKE_REVISIONS else ("server", "client")
        yield f"The {older} needs a session that is opened with initialize; the {newer} has none."
    if directly:
        yield f"Without the proxy: {directly}."
    yield 'Both talk to the proxy. "…" stands for what is cut, and "jsonrpc" is left out.'


def _tell(record: Record, ink: Ink) -> Iterator[str]:
    number = 0
    for line in record.lines:
        frame = json.loads(line.data)
        if line.side is Side.CLIENT and line.sent and "id" in frame and "method" in frame:
            number += 1
            yield ""
            yield ink.paint(f"{number}. {frame['method']}", "heading") + f": {_title(frame)}"
        label = f"{line.side.value} {'sent' if line.sent else 'got'}"
        text = shorten(frame, 2 * (ink.width - LABEL_COLUMNS))
        yield from lay_out(label, [Span(text, Tone.SAME if line.sent else Tone.NEW)], ink)


def _title(frame: dict[str, Any]) -> str:
    return AGAIN if "inputResponses" in frame.get("params", {}) else TITLES.get(frame["method"], "")


def _close(record: Record) -> Iterator[str]:
    yield ""
    yield "Try next:"
    yield from suggest(record.server_revision, record.client_revision)
