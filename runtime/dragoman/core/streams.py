"""On which call's stream a server's request or notification goes out.

Lives here: the one place where that is decided, if the server's transport does not say it. Must not: know whether the
client has such streams open (its transport does), or keep anything. Called by `core.edges.front` for clients
whose transport has a stream for each call.

Theory of operation. A server over HTTP says it by the stream on which it speaks. One that has a single stream for
everything does not, although what it says of its own accord "SHOULD relate to the originating client request" if it
goes out on that request's stream (basic/transports, Streamable HTTP). What can be known: progress names the token of
its call. A cancellation goes where the request went that it names. News about lists and resources belong to no call.
Anything else belongs to the only call in flight, if there is only one. What belongs to no call, or to one of several,
goes out on a stream of the connection's own.

A client that is a proxy before several takes the stream for proof of whose call it is about. It knows more than is
known here, such as which calls were cancelled by somebody who has left, so for it nothing is guessed.
"""

from __future__ import annotations

from typing import Final

from dragoman.core.calls import Calls, cancelled_key
from dragoman.core.envelope import Frame
from dragoman_spec import HANDSHAKE_REVISIONS, facts

ANNOUNCED: Final = frozenset(name for revision in HANDSHAKE_REVISIONS for name in facts(revision).announced)
"""News about lists and resources, whoever asks for something meanwhile."""


NOBODY: Final = b""
"""The stream of what is not known to belong to a call, where the client must not think that it does: no call's."""


def place(frame: Frame, of_client: Calls, of_server: Calls, guesses: bool = True) -> Frame:
    """Give a request or notification for the client the stream that it goes out on.

    Args:
        frame: What the server says, with the stream on which it came, if that is known.
        of_client: The client's requests.
        of_server: The server's requests, this one included.
        guesses: Whether what nothing says belongs to the only call in flight; else to `NOBODY`.
    """
    if frame.stream is None:
        stream = _find_stream(frame, of_client, of_server, guesses)
        if stream is not None:
            frame = frame._replace(stream=stream)
    if frame.kind == "request" and frame.key is not None:
        call = of_server.waiting.get(frame.key)
        if call is not None:
            call.stream = frame.stream
    return frame


def _find_stream(frame: Frame, of_client: Calls, of_server: Calls, guesses: bool) -> bytes | None:
    if frame.method == "notifications/progress":
        call = of_client.find_progressing(frame)
    elif frame.method == "notifications/cancelled":
        key = cancelled_key(frame)
        asked = None if key is None else of_server.cancelled.get(key)
        return None if asked is None else asked.stream
    elif frame.method in ANNOUNCED:
        return None
    elif not guesses:
        return NOBODY
    else:
        may_be = frame.source[1:]
        call = of_client.waiting.get(may_be[0]) if len(may_be) == 1 else of_client.find_only()
    return None if call is None else call.key
