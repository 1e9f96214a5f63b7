"""How several servers introduce themselves as one.

Lives here: the answer to `initialize` and to `server/discover`, made of theirs. Must not: list anything (`lists`).

A server that does not answer in time is left out: it joins later, and then the client is told that lists have changed.
As long as a server is not known, the lists that it may have are declared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from dragoman.core.codes import METHOD_NOT_FOUND
from dragoman.core.edges.greeting import DISCOVER
from dragoman.core.envelope import Frame, decoded, error_frame, result_frame
from dragoman.core.methods import SET_LEVEL
from dragoman.core.peek import with_id
from dragoman.core.switch.router.common import Common, read_error
from dragoman.core.switch.router.gathering import Gathering
from dragoman.core.switch.router.member import Member, MemberState
from dragoman.core.unchecked import find_object

_LISTED: Final = ("prompts", "resources", "tools")


class Openings:
    """How far the opening of one client's session is, and what servers that come later are told of it.

    Args:
        common: What all parts know.
        give_up: Has lists wait no more for a server.
        joined: Told of a server that is open; late, if the client has been answered without it.
    """

    def __init__(
        self, common: Common, give_up: Callable[[Member], None], joined: Callable[[Member, bool], None]
    ) -> None:
        self._common = common
        self._give_up = give_up
        self._joined = joined
        self._opening: Gathering[Member] | None = None
        self._asked: tuple[str, Mapping[str, Any]] | None = None
        self._level: Mapping[str, Any] | None = None

    def introduce(self, frame: Frame, params: dict[str, Any]) -> None:
        """Answer `initialize` or `server/discover`."""
        key = frame.key or b"null"
        method = frame.method or ""

        def reply(_: object) -> None:
            members = self._common.members.values()
            told: dict[str, Any] = {"capabilities": merge_capabilities(members)}
            instructions = merge_instructions(members)
            if instructions:
                told["instructions"] = instructions
            if method == DISCOVER:
                from dragoman.core.rules.discovery import served_versions

                versions = list(served_versions())
                told = self._common.complete({"supportedVersions": versions, **told}, is_partial=True)
            else:
                told = {"protocolVersion": params.get("protocolVersion"), **told, "serverInfo": self._common.identity}
            self._common.reply(result_frame(key, told))

        self._begin(method, {"_meta": self._common.meta_of(params)} if method == DISCOVER else params, reply)

    def _begin(self, method: str, params: Mapping[str, Any], then: Callable[[Gathering[Member]], None]) -> None:
        """Ask every server what it is, and go on once all have answered, or are late."""
        self._asked = (method, params)
        asked = [member for member in self._common.members.values() if not self._common.has_failed(member)]
        if self._opening is None or self._opening.is_over:
            # One that is opening all the same has been waited for already.
            asked = [member for member in asked if member.state is not MemberState.OPENING]
        self._opening = opening = Gathering(then)
        opening.pending.update(asked)
        for member in asked:
            self._ask(member, opening)
        if opening.pending:
            self._common.outside.remind(max(member.open_timeout_s for member in asked), opening.finish)
        else:
            opening.finish()

    def join(self, member: Member) -> None:
        """Open a server that comes later."""
        if self._asked is not None:
            self._ask(member, None)
        elif self._common.is_per_request:
            self._joined(member, True)

    def _ask(self, member: Member, opening: Gathering[Member] | None) -> None:
        assert self._asked is not None
        if member.state is MemberState.WAITING:
            self._common.set_state(member, MemberState.OPENING)
            self._common.outside.remind(member.list_timeout_s, partial(self._expire, member))
        self._common.ask(member, *self._asked, partial(self._take, member, opening))

    def _expire(self, member: Member) -> None:
        if member.state is MemberState.OPENING:
            self._give_up(member)

    def _take(self, member: Member, opening: Gathering[Member] | None, frame: Frame) -> None:
        try:
            failure = str(read_error(frame).get("message"))[:300] if frame.kind == "error" else ""
            result = read_result(frame) if not failure else {}
        except ValueError as error:
            failure = f"its answer cannot be read: {error}"
        if failure:
            self._common.fail(member, f"it could not be opened: {failure}")
        else:
            self._note_opened(member, result, opening is None or opening.is_over)
        if opening is not None:
            opening.settle(member)

    def _note_opened(self, member: Member, result: Mapping[str, Any], is_late: bool) -> None:
        """Record what a server says of itself."""
        member.capabilities = find_object(result, "capabilities")
        member.told = result
        member.is_late = False
        is_late = is_late and member.state is not MemberState.OPEN
        self._common.set_state(member, MemberState.OPEN)
        if is_late and self._common.initialized is not None:
            self._common.outside.tell_member(member, self._common.initialized)
            if self._level is not None and "logging" in member.capabilities:
                self._common.ask(member, SET_LEVEL, self._level, lambda _: None)
        self._joined(member, is_late)

    def set_level(self, frame: Frame, params: Mapping[str, Any]) -> None:
        """Tell every server which log messages the client wants; the first that agrees answers for all."""
        heard = [one for one in self._common.opened_members() if "logging" in (one.capabilities or {})]
        key = frame.key or b"null"
        if not heard:
            self._common.reply(error_frame(key, METHOD_NOT_FOUND, "no server has log messages"))
            return
        left = len(heard)
        is_answered = False

        def take_answer(answer: Frame) -> None:
            nonlocal left, is_answered
            left -= 1
            if answer.kind == "result":
                self._level = params
            if not is_answered and (answer.kind == "result" or left == 0):
                is_answered = True
                self._common.reply(answer._replace(raw=with_id(answer, key), key=key, body=None))

        for member in heard:
            self._common.ask(member, SET_LEVEL, params, take_answer)


def merge_capabilities(members: Iterable[Member]) -> dict[str, Any]:
    """Return what servers can do together; of a server that is not known yet, whatever it may list."""
    merged: dict[str, Any] = {}
    is_known = True
    for member in members:
        if member.capabilities is not None:
            merged = _merge(merged, member.capabilities)
        elif member.state is not MemberState.FAILED:
            is_known = False
    listed = _LISTED if not is_known else ("tools", *(name for name in _LISTED if name in merged))
    for name in listed:
        merged[name] = {**find_object(merged, name), "listChanged": True}
    return merged


def merge_instructions(members: Iterable[Member]) -> str | None:
    """Return what servers say about their use, each under its name."""
    said = [(member.name, member.told.get("instructions")) for member in members]
    texts = [f"{name}:\n{text.strip()}" for name, text in said if isinstance(text, str) and text.strip()]
    return "\n\n".join(texts) or None


def _merge(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(one)
    for name, value in other.items():
        before = merged.get(name)
        if isinstance(before, dict) and isinstance(value, dict):
            merged[name] = _merge(before, value)
        elif isinstance(before, bool) and isinstance(value, bool):
            merged[name] = before or value
        else:
            merged.setdefault(name, value)
    return merged


def read_result(frame: Frame) -> dict[str, Any]:
    """Return the result of an answer.

    Raises:
        ValueError: It cannot be read, or is not an object.
    """
    result = decoded(frame).body["result"]
    if not isinstance(result, dict):
        raise ValueError("expected result to be an object")
    return result
