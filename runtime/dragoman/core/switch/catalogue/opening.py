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
from dragoman.core.envelope import Frame, error_frame, result_frame
from dragoman.core.methods import SET_LEVEL
from dragoman.core.peek import with_id
from dragoman.core.switch.catalogue.common import Common
from dragoman.core.switch.catalogue.member import Member, MemberState
from dragoman.core.switch.catalogue.own import OwnRequests, read_error, read_result
from dragoman.core.unchecked import find_object

_LISTED: Final = ("prompts", "resources", "tools")


class Openings:
    """How far the opening of one client's session is, and what servers that come later are told of it.

    Args:
        common: What all parts know.
        own: Asks servers.
        give_up: Has lists wait no more for a server.
        joined: Told of a server that is open; late, if the client has been answered without it.
    """

    def __init__(
        self,
        common: Common,
        own: OwnRequests,
        give_up: Callable[[Member], None],
        joined: Callable[[Member, bool], None],
    ) -> None:
        self.own = own
        self.give_up = give_up
        self._common = common
        self._joined = joined
        self._under_way: list[MemberOpening] = []
        self._asked: tuple[str, Mapping[str, Any]] | None = None
        self._level: Mapping[str, Any] | None = None

    def initialize(self, frame: Frame, params: dict[str, Any]) -> None:
        """Answer `initialize`."""
        key = frame.key or b"null"

        def reply() -> None:
            result = {
                "protocolVersion": params.get("protocolVersion"),
                "capabilities": merge_capabilities(self._common.members.values()),
                "serverInfo": self._common.identity,
            }
            self._common.reply(result_frame(key, self._with_instructions(result)))

        self._begin("initialize", params, reply)

    def discover(self, frame: Frame, params: dict[str, Any]) -> None:
        """Answer `server/discover`."""
        key = frame.key or b"null"

        def reply() -> None:
            from dragoman.core.bridge.discovery import served_versions

            result: dict[str, Any] = {
                "supportedVersions": list(served_versions()),
                "capabilities": merge_capabilities(self._common.members.values()),
            }
            self._common.reply(
                result_frame(key, self._common.complete(self._with_instructions(result), is_partial=True))
            )

        self._begin(frame.method or "", {"_meta": self._common.meta_of(params)}, reply)

    def _with_instructions(self, result: dict[str, Any]) -> dict[str, Any]:
        instructions = merge_instructions(self._common.members.values())
        return {**result, "instructions": instructions} if instructions else result

    def _begin(self, method: str, params: Mapping[str, Any], then: Callable[[], None]) -> None:
        self._asked = (method, params)
        opening = MemberOpening(self, self._common, method, params, then)
        self._under_way = [one for one in self._under_way if not one.is_over]
        members = list(self._common.members.values())
        if not self._under_way:  # one that is opening all the same has been waited for already
            members = [member for member in members if member.state is not MemberState.OPENING]
        self._under_way.append(opening)
        opening.begin(members)

    def join(self, member: Member) -> None:
        """Open a server that comes later."""
        if self._asked is not None:
            MemberOpening(self, self._common, *self._asked, None).open_member(member)
        elif self._common.is_per_request:
            self._joined(member, True)

    def forget(self, member: Member) -> None:
        """Record that a server is not there any more."""
        for opening in self._under_way:
            opening.forget(member)

    def opened(self, member: Member, result: Mapping[str, Any], is_late: bool) -> None:
        """Record what a server says of itself."""
        member.capabilities = find_object(result, "capabilities")
        member.told = result
        member.is_late = False
        is_late = is_late and member.state is not MemberState.OPEN
        self._common.set_state(member, MemberState.OPEN)
        if is_late and self._common.initialized is not None:
            self._common.outside.tell_member(member, self._common.initialized)
            if self._level is not None and "logging" in member.capabilities:
                self.own.send(member, SET_LEVEL, self._level, lambda _: None)
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
            self.own.send(member, SET_LEVEL, params, take_answer)


class MemberOpening:
    """One round of asking every server what it is.

    Args:
        openings: Told what servers answer.
        common: What all parts know.
        method: Of the requests.
        params: Of the requests.
        then: Called once all have answered, or are late; None where nobody waits.
    """

    def __init__(
        self,
        openings: Openings,
        common: Common,
        method: str,
        params: Mapping[str, Any],
        then: Callable[[], None] | None,
    ) -> None:
        self._openings = openings
        self._common = common
        self._method = method
        self._params = params
        self._then: Callable[[], None] | None = then
        self._pending: set[Member] = set()

    @property
    def is_over(self) -> bool:
        """Whether nobody waits for it any more."""
        return self._then is None

    def begin(self, members: Iterable[Member]) -> None:
        """Ask."""
        asked = [member for member in members if member.state is not MemberState.FAILED]
        self._pending.update(asked)
        for member in asked:
            self.open_member(member)
        if self._pending:
            longest_s = max(member.open_timeout_s for member in asked)
            self._common.outside.remind(longest_s, self.finish)
        else:
            self.finish()

    def open_member(self, member: Member) -> None:
        """Ask one of them."""
        if member.state is MemberState.WAITING:
            self._common.set_state(member, MemberState.OPENING)
            self._common.outside.remind(member.list_timeout_s, partial(self._give_up, member))
        self._openings.own.send(member, self._method, self._params, lambda frame: self._take(member, frame), None)

    def _give_up(self, member: Member) -> None:
        if member.state is MemberState.OPENING:
            self._openings.give_up(member)

    def forget(self, member: Member) -> None:
        """Record that a server is not there any more."""
        self._pending.discard(member)
        if not self._pending:
            self.finish()

    def finish(self) -> None:
        """Go on, once, with what is known."""
        then, self._then = self._then, None
        if then is not None:
            then()

    def _take(self, member: Member, frame: Frame) -> None:
        is_late = self._then is None
        try:
            failure = str(read_error(frame).get("message"))[:300] if frame.kind == "error" else ""
            result = read_result(frame) if not failure else {}
        except ValueError as error:
            failure = f"its answer cannot be read: {error}"
        if failure:
            self._common.fail(member, f"it could not be opened: {failure}")
        else:
            self._openings.opened(member, result, is_late)
        self.forget(member)


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
