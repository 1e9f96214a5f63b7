"""The way between two revisions for requests that each find their own: of one era, where a peer speaks a later one.

Lives here: both directions of it, decoded, for whoever changes ids and tokens afterwards. Must not: know who asks, or
who is asked. In a session, `core.edges.exchange` translates.
"""

from __future__ import annotations

from dragoman.core.codes import METHOD_NOT_FOUND
from dragoman.core.commands import Side
from dragoman.core.edges.wiring import Wiring
from dragoman.core.envelope import Frame, Refusal, decoded, key_of
from dragoman.core.translate import Adaptor, Counters


class Way:
    """Where requests come from, and where they go.

    Args:
        wiring: Gives the steps.
        ours: The revision of who asks.
        theirs: That of who is asked.
        counters: What counts losses.
    """

    __slots__ = ("_down", "_up")

    def __init__(self, wiring: Wiring, ours: str, theirs: str, counters: Counters) -> None:
        self._up = wiring.make_adaptor(Side.CLIENT, ours, theirs, counters)
        self._down = wiring.make_adaptor(Side.SERVER, theirs, ours, counters)
        self._up.writes = self._down.writes = False

    def ask(self, frame: Frame) -> Frame:
        """Return a request as it is asked; the error for who asks, where it cannot be."""
        return _cross(self._up, frame, frame.method)

    def answer(self, frame: Frame, method: str) -> Frame:
        """Return the response to a request of this method, by the name that it was asked under."""
        return _cross(self._down, frame, method)

    def tell(self, frame: Frame) -> Frame | None:
        """Return a notification for who asks; None where there is no such thing."""
        told = self._down.adapt(frame, frame.method)
        return decoded(told) if isinstance(told, Frame) else None


def _cross(adaptor: Adaptor, frame: Frame, method: str | None) -> Frame:
    crossed = adaptor.adapt(frame, method)
    if not isinstance(crossed, Frame):
        failure = crossed or Refusal(METHOD_NOT_FOUND, f"the other side's revision has no {method}", {})
        crossed = failure.answer(key_of(decoded(frame).body["id"]))  # over HTTP, the key is another one
    return decoded(crossed)
