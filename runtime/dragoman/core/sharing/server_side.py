"""What a shared server says to its members.

Lives here: the way of each kind of frame from the server. Must not: know transports. Called by `hub`.

Answers are not decoded: the id of ours in them is cut out and the member's put in its place.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from dragoman.core.envelope import PARSE_ERROR, Frame, Malformed, classify, encode_error, encode_result, key_of
from dragoman.core.exact_json import decode, encode_line
from dragoman.core.lines import Overlong, show
from dragoman.core.peek import read_line, with_id
from dragoman.core.sharing.allowed import find_fault
from dragoman.core.sharing.attribution import elicitation_ids
from dragoman.core.sharing.calls import Call, Member
from dragoman.core.sharing.desk import Desk, object_in, params_of
from dragoman.core.sharing.opening import Answered
from dragoman.core.sharing.questions import INTERNAL_ERROR
from dragoman.core.wholeness import read_last_line
from dragoman_spec import HANDSHAKE_REVISIONS, facts

logger = logging.getLogger("dragoman.sharing")

_UPDATED: Final = "notifications/resources/updated"
_INTERACTIVE: Final = frozenset(name for revision in HANDSHAKE_REVISIONS for name in facts(revision).interactive)
"""Requests that must reach the right person: a server that makes them has its calls taken in turns."""


class ServerSide:
    """Takes what the server says.

    Args:
        desk: The tables.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._news: Mapping[str, Callable[[Frame, dict[str, Any], bytes | None], Member | None]] = {
            "notifications/progress": self._find_progress,
            "notifications/cancelled": lambda _, params, __: desk.questions.withdraw(key_of(params.get("requestId"))),
            "notifications/message": self._find_log_reader,
            "notifications/tasks/status": lambda _, params, __: desk.attribution.task_owner(params.get("taskId")),
            "notifications/elicitation/complete": lambda _, params, __: desk.attribution.elicitation_owner(
                params.get("elicitationId")
            ),
        }

    def take(self, line: bytes | Overlong, related: bytes | None, is_cut: bool = False) -> None:
        """Take a line; `related` is the id of the request on whose stream it came.

        Args:
            line: With its line feed, unless it is the last one and has none: then it is cut.
            related: None where there is one stream for everything.
            is_cut: Whether nobody said that it ends there.
        """
        frame = read_last_line(line) if is_cut else read_line(line)
        if isinstance(frame, Frame) and frame.kind == "batch":
            for one in frame.body:
                self._take(classify(encode_line(one), one), related)
        elif frame is not None:
            self._take(frame, related, line)

    def _take(self, frame: Frame | Malformed, related: bytes | None, line: bytes | Overlong = b"") -> None:
        if isinstance(frame, Malformed):
            self._take_malformed(frame, line)
        elif frame.kind == "batch":
            self._desk.counters.malformed += 1
        elif self._desk.opening.is_answer(frame):
            self._open(self._desk.opening.take_answer(frame))
        elif frame.kind == "request":
            self._take_question(frame, related)
        elif frame.kind == "notification":
            self._take_news(frame, related)
        else:
            self._take_answer(frame)

    def _open(self, answered: Answered) -> None:
        for member, line in answered.answers:
            self._desk.post(member, line)
        if answered.next is not None:
            self._desk.post(None, self._desk.opening.offer(answered.next))

    def _take_malformed(self, malformed: Malformed, line: bytes | Overlong = b"") -> None:
        desk = self._desk
        desk.counters.malformed += 1
        logger.warning("malformed line from the shared server: %s: %s", malformed.reason, show(line))
        call = desk.calls.find(malformed.key) if malformed.is_response else None
        if call is None:
            if malformed.is_response and malformed.key is not None:
                desk.calls.suspects.clear(malformed.key)
            return
        message = f"the server answered with something that is not a response: {malformed.reason}"
        if desk.opening.is_answer(Frame(b"", "error", call.key, None)):
            self._open(desk.opening.fail(INTERNAL_ERROR, message))
            return
        desk.calls.forget(call)
        if call.member is not None and call.member.present:
            desk.post(call.member, encode_error(call.own_key, INTERNAL_ERROR, message, {"method": call.method}))
        desk.let_in()

    def _take_answer(self, frame: Frame) -> None:
        desk = self._desk
        call = desk.calls.find(frame.key)
        if call is None:
            is_late = frame.key is not None and desk.calls.suspects.clear(frame.key)
            desk.counters.unmatched += 1
            logger.debug("the shared server answered what %s", "nobody waits for" if is_late else "nobody asked")
            return
        desk.calls.forget(call)
        if call.member is not None and call.member.present:
            desk.post(call.member, self._write_answer(call, call.member, frame))
        desk.let_in()

    def _write_answer(self, call: Call, member: Member, frame: Frame) -> bytes:
        try:
            if call.hook is not None:
                frame = call.hook(call, frame)
            if frame.kind == "error" and b"elicitationId" in frame.raw:
                for name in elicitation_ids(object_in(_decode(frame), "error")):
                    self._desk.attribution.add_elicitation(name, member)
            return with_id(frame, call.own_key)
        except ValueError as error:
            message = f"the server's answer cannot be read: {error}"
            return encode_error(call.own_key, INTERNAL_ERROR, message, {"method": call.method})

    def _take_question(self, frame: Frame, related: bytes | None) -> None:
        desk = self._desk
        assert frame.key is not None
        if frame.method == "ping":
            desk.post(None, encode_result(frame.key, {}))
            return
        fault = find_fault(frame, "server", desk.methods)
        if fault is not None:
            desk.refuse_server(frame, encode_error(frame.key, fault.code, fault.reason, {"method": frame.method}))
            return
        try:
            params = params_of(_decode(frame))
        except ValueError as error:
            desk.counters.malformed += 1
            desk.post(None, encode_error(frame.key, PARSE_ERROR, str(error)))
            return
        if frame.method in _INTERACTIVE and not desk.attribution.named_owners(params, related):
            self._take_turns()
        chosen = desk.questions.pose(frame, params, desk.reasons(params, related))
        if isinstance(chosen, Member):
            desk.post(chosen, frame.raw)
        elif b'"error":' in chosen:
            desk.refuse_server(frame, chosen)
        else:
            logger.debug("%s request of the shared server answered by the proxy", frame.method)
            desk.post(None, chosen)

    def _take_turns(self) -> None:
        if not self._desk.lane.asks:
            self._desk.lane.asks = True
            logger.info(
                "the shared server asks its clients: calls of different sessions go to it in turns from here on"
            )

    def _take_news(self, frame: Frame, related: bytes | None) -> None:
        desk, method = self._desk, frame.method or ""
        if method in _NEWS_FOR_ALL:
            for member in desk.members:
                if member.ready:
                    desk.post(member, frame.raw)
            return
        fault = find_fault(frame, "server", desk.methods)
        if fault is not None:
            desk.drop("the shared server", frame, fault.reason)
            return
        try:
            body = _decode(frame)
        except ValueError as error:
            self._take_malformed(Malformed(INTERNAL_ERROR, str(error)))
            return
        params = params_of(body)
        if method == _UPDATED:
            self._spread_update(frame, params)
            return
        owner = self._news.get(method, self._find_reason)(frame, params, related)
        if owner is None or not owner.present:
            desk.counters.dropped += 1  # happens to every server that logs, so it is no warning
            logger.debug("%s of the shared server dropped: it belongs to no session", method)
        else:
            desk.post(owner, encode_line(body) if method == "notifications/progress" else frame.raw)

    def _spread_update(self, frame: Frame, params: dict[str, Any]) -> None:
        uri = params.get("uri")
        listeners = self._desk.subscriptions.listeners(uri) if isinstance(uri, str) else []
        for member in listeners:
            self._desk.post(member, frame.raw)
        self._desk.counters.dropped += not listeners

    def _find_progress(self, frame: Frame, params: dict[str, Any], _: bytes | None) -> Member | None:
        """Find whose progress this is, and put the member's own token in."""
        key = key_of(params.get("progressToken")) or b""
        call = self._desk.calls.find(key)
        known = call if call is not None else self._desk.attribution.token_owner(key)
        if known is None or known.token is None:
            return None
        params["progressToken"] = known.token[0]
        return known.member

    def _find_log_reader(self, frame: Frame, params: dict[str, Any], related: bytes | None) -> Member | None:
        member = self._find_reason(frame, params, related)
        wanted = member is not None and self._desk.levels.wants(member, params.get("level"))
        return member if wanted else None

    def _find_reason(self, _: Frame, params: dict[str, Any], related: bytes | None) -> Member | None:
        reasons = self._desk.reasons(params, related)
        return next(iter(reasons)) if len(reasons) == 1 else None


_NEWS_FOR_ALL: Final = frozenset(
    name for revision in HANDSHAKE_REVISIONS for name in facts(revision).announced if name != _UPDATED
)


def _decode(frame: Frame) -> Any:
    return decode(frame.raw) if frame.body is None else frame.body
