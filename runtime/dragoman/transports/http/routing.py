"""Which stream a frame to the client goes onto.

Lives here: the tables of one session, and the rules. Must not: send, or look into more of a frame than it must.
Called by `session` for every frame that is sent to the client.

Theory of operation. An answer goes to the POST that asked. What comes with the id of the request on whose stream it
belongs, for that is known where the server has a stream for each, goes there, and onto a GET stream if the request does
not take one or is over. Otherwise it has to be found out: what the server says of its own accord "SHOULD relate to
the originating client request" on a POST's stream and "SHOULD be unrelated" on a GET stream (basic/transports), but
does not say to which request it relates. Progress names the token of its request. News about lists and resources
relate to no request. Anything else belongs to the only call in flight; where there are several, or none, the GET
stream is right, and where there is none either, the newest call that takes a stream: a request must reach the client
or its server waits for ever. What has nowhere to go waits, within bounds, for the next GET stream.
"""

from __future__ import annotations

from typing import Any, Final

from dragoman.core.envelope import Frame, decoded, key_of
from dragoman.core.exact_json import encode_line
from dragoman.transports.http.posts import PostedCall
from dragoman_spec import HANDSHAKE_REVISIONS, facts

UNRELATED: Final = frozenset(name for revision in HANDSHAKE_REVISIONS for name in facts(revision).announced)
"""News about lists and resources, whoever asks for something meanwhile."""


class Routing:
    """The calls of one session, and the requests of its server that are with the client."""

    def __init__(self) -> None:
        self._calls: dict[bytes, PostedCall] = {}
        self._tokens: dict[bytes, PostedCall] = {}
        self._asked: dict[bytes, PostedCall | None] = {}  # the server's requests, by id, and where they went

    def add(self, call: PostedCall) -> None:
        """Remember a call; none of its ids may be in use."""
        for key in call.keys:
            self._calls[key] = call
        for token in call.tokens:
            self._tokens[token] = call

    def count(self) -> int:
        """Give how many requests wait for their answers."""
        return len(self._calls)

    def is_waiting(self, keys: frozenset[bytes]) -> bool:
        """Whether a request with one of these ids waits for its answer."""
        return not self._calls.keys().isdisjoint(keys)

    def answer(self, frame: Frame) -> bool:
        """Give an answer to the call that waits for it; False when none does."""
        if frame.kind == "batch":
            return self._answer_batch(frame)
        call = None if frame.key is None else self._calls.pop(frame.key, None)
        if call is None or frame.key is None:
            return False
        call.answer(frozenset((frame.key,)), frame.raw)
        self._forget_tokens(call)
        return True

    def _answer_batch(self, frame: Frame) -> bool:
        frame = decoded(frame)
        ids = (key_of(member.get("id")) for member in frame.body if _is_response(member))
        keys = frozenset(key for key in ids if key is not None)
        calls = {id(call): call for key in keys if (call := self._calls.pop(key, None)) is not None}
        for call in calls.values():
            call.answer(keys, _for_call(frame, call, len(calls)))
            self._forget_tokens(call)
        return bool(calls)

    def forgo(self, key: bytes) -> None:
        """Expect no answer to a request that the client has cancelled."""
        call = self._calls.pop(key, None)
        if call is not None:
            call.forgo(key)
            self._forget_tokens(call)

    def choose(self, frame: Frame, has_standing: bool) -> PostedCall | None:
        """Choose the call on whose stream the server's request or notification goes; None for a GET stream.

        Args:
            frame: What the server says.
            has_standing: Whether a GET stream is there to take it.
        """
        call = self._choose(frame, has_standing)
        if frame.kind == "request" and frame.key is not None:
            self._asked[frame.key] = call
        return call

    def forget_asked(self, key: bytes) -> None:
        """Take note that the client answered a request of the server."""
        self._asked.pop(key, None)

    def take_all(self) -> list[PostedCall]:
        """Give every call that waits, and forget them."""
        calls = {id(call): call for call in self._calls.values()}
        self._calls.clear()
        self._tokens.clear()
        return list(calls.values())

    def _choose(self, frame: Frame, has_standing: bool) -> PostedCall | None:
        if frame.stream is not None:
            call = self._calls.get(frame.stream)
            return call if call is not None and call.takes_stream else None
        if frame.method == "notifications/progress" and self._tokens:
            call = self._tokens.get(_param_key(frame, "progressToken") or b"")
            if call is not None and call.takes_stream:
                return call
        if frame.method == "notifications/cancelled":
            call = self._asked.pop(_param_key(frame, "requestId") or b"", None)
            if call is not None and call.keys:
                return call
        if frame.method in UNRELATED and has_standing:
            return None
        open_calls = [call for call in dict.fromkeys(self._calls.values()) if call.takes_stream]
        if len(open_calls) == 1 or (open_calls and not has_standing):
            return open_calls[-1]
        return None

    def _forget_tokens(self, call: PostedCall) -> None:
        if not call.keys:
            for token in call.tokens:
                self._tokens.pop(token, None)


def _is_response(member: Any) -> bool:
    return isinstance(member, dict) and "method" not in member


def _for_call(frame: Frame, call: PostedCall, calls: int) -> bytes:
    """Give what of an array is for this call: a server may join answers to several arrays."""
    if calls == 1 and call.is_batch:
        return frame.raw
    members = [member for member in frame.body if isinstance(member, dict) and key_of(member.get("id")) in call.keys]
    return encode_line(members if call.is_batch else members[0])


def _param_key(frame: Frame, name: str) -> bytes | None:
    body: Any = decoded(frame).body
    params = body.get("params") if isinstance(body, dict) else None
    return key_of(params.get(name)) if isinstance(params, dict) else None
