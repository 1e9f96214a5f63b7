"""Several servers behind one client: whom each frame is for.

Lives here: the entry points, the table of what goes where, and requests of our own. Must not: translate, or know
sockets, processes and clocks: `dragoman.router` has these. Every member speaks the client's revision, because an
ordinary proxy stands before each server.

Theory of operation. A request that names a tool, a prompt or a resource goes to its owner, as the bytes that came
unless its name is another one there; ids of the client stay as they are, since each is with one server alone. Requests
that are about all servers are answered here, from what they answer. What a server says goes to the client; its
questions under ids of ours, since two servers may use one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from dragoman.core.calls import OPEN_REQUESTS, cancelled_key, is_unanswered
from dragoman.core.codes import CONNECTION_CLOSED, INVALID_PARAMS, PARSE_ERROR
from dragoman.core.edges.greeting import DISCOVER, PROTOCOL_VERSION_KEY
from dragoman.core.envelope import Frame, Refusal, classify, decoded, error_frame, result_frame, show_key
from dragoman.core.exact_json import encode_line
from dragoman.core.methods import CANCELLED, ELICITED, INITIALIZED, LISTEN, PROGRESS, SET_LEVEL, UPDATED
from dragoman.core.naming import read_named
from dragoman.core.switch.router.asking import MemberQuestions
from dragoman.core.switch.router.changes import Changes
from dragoman.core.switch.router.common import Common
from dragoman.core.switch.router.lists import Lists
from dragoman.core.switch.router.member import Member, MemberState, Outside
from dragoman.core.switch.router.names import Names
from dragoman.core.switch.router.opening import Openings
from dragoman.core.switch.router.pages import LISTS
from dragoman.core.switch.router.quick import QuickCalls
from dragoman.core.switch.router.routes import Routes
from dragoman.core.switch.router.tasks import show_notice
from dragoman.core.switch.router.uris import may_name_pages
from dragoman.core.unchecked import find_object

if TYPE_CHECKING:
    from dragoman.core.switch.router.subscriptions import MemberStreams

logger = logging.getLogger("dragoman.router")

_CHANGES: Final = {kind.changed: kind.capability for kind in LISTS.values() if kind.changed is not None}


class Catalogue:
    """The servers of one client's session.

    Args:
        outside: What carries frames.
        names: What everything is called.
        members: The servers, in their order.
        identity: Name and version that the client is told.
        page_size: How many entries a page of a merged list has.
        most_questions: How many requests of servers to the client may be unanswered.
        mark: Is in the ids of our own requests; nobody else may know it.

    Attributes:
        common: What all parts know.
    """

    def __init__(
        self,
        outside: Outside,
        names: Names,
        members: Iterable[Member],
        identity: Mapping[str, Any],
        page_size: int = 5000,
        most_questions: int = OPEN_REQUESTS,
        mark: str = "",
    ) -> None:
        self.common = common = Common(outside, names, members, identity, mark)
        self.asking = MemberQuestions(common, most_questions)
        self.changes = Changes(common)
        self.lists = Lists(common, self.tell_changed, page_size)
        self.openings = Openings(common, self.lists.give_up, self.joined)
        self.routes = Routes(common, self.lists)
        self.listens: MemberStreams | None = None
        self._quick = QuickCalls(common)
        common.try_again = self._try_again

    @property
    def members(self) -> dict[str, Member]:
        """The servers by name."""
        return self.common.members

    @property
    def waited_for(self) -> list[str]:
        """The servers that have not answered what all of them were asked."""
        is_coming = (MemberState.WAITING, MemberState.OPENING)
        return [one.name for one in self.members.values() if one.state in is_coming or self.lists.owes(one)]

    # What the client says

    def take_from_client(self, frame: Frame) -> None:
        """Take a frame of the client."""
        if frame.method == "tools/call" and frame.body is None and self._quick.forward(frame):
            return
        try:
            self._take_slowly(frame)
        except ValueError as error:
            logger.warning("a %s of the client dropped, which cannot be read: %s", frame.kind, error)
            if frame.kind == "request":
                self.common.reply(error_frame(frame.key, INVALID_PARAMS, str(error)))

    def _take_slowly(self, frame: Frame) -> None:
        match frame.kind:
            case "request":
                self._take_request(frame)
            case "notification":
                self._take_notification(frame)
            case "batch":
                for body in frame.body:
                    one = classify(encode_line(body), body, frame.stream)
                    if isinstance(one, Frame):
                        self.take_from_client(one)
            case _:
                self.asking.take_answer(frame)

    def _take_request(self, frame: Frame) -> None:
        read = read_named(frame)
        if isinstance(read, Refusal):
            self.common.reply(read.answer(frame.key))
            return
        frame = decoded(read)
        assert frame.key is not None
        params = find_object(frame.body, "params")
        meta = params.get("_meta")
        if isinstance(meta, dict) and PROTOCOL_VERSION_KEY in meta:
            self.begin_per_request()
        kind = LISTS.get(frame.method or "")
        if kind is not None:
            self.lists.answer_list(frame, kind, params, self.common.meta_of(params))
        elif frame.method == DISCOVER:
            self.begin_per_request()
            self.openings.introduce(frame, params)
        elif frame.method == "initialize":
            self.openings.introduce(frame, params)
        elif frame.method == "ping":
            self.common.reply(result_frame(frame.key, {}))
        elif frame.method == SET_LEVEL:
            self.openings.set_level(frame, params)
        elif frame.method == LISTEN and self.listens is not None:
            self.listens.open(frame, params)
        else:
            self.routes.forward(frame, params)

    def _take_notification(self, frame: Frame) -> None:
        if frame.method == INITIALIZED:
            self.common.initialized = frame
            self._tell_all(frame)
        elif frame.method == CANCELLED:
            self._cancel(frame)
        elif frame.method == "notifications/progress":
            self.asking.take_progress(frame)
        else:
            self._tell_all(frame)

    def _tell_all(self, frame: Frame) -> None:
        for member in self.common.opened_members():
            self.common.outside.tell_member(member, frame)

    def _cancel(self, frame: Frame) -> None:
        key = cancelled_key(frame)
        if key is None:
            if frame.sender:  # a principal may not come in any more, and each proxy has calls of its own
                self._tell_all(frame)
        elif not (self.routes.cancel(key) or (self.listens is not None and self.listens.cancel(key))):
            for member in self.members.values():
                if member.state is not MemberState.FAILED and member.owed.get(key, _drop) is None:
                    del member.owed[key]
                    member.suspect(key)
                    self.common.outside.tell_member(member, frame)

    def begin_per_request(self) -> None:
        """Record that each request of the client speaks for itself."""
        if not self.common.is_per_request:
            from dragoman.core.switch.router.subscriptions import MemberStreams

            self.common.is_per_request = self.common.inspects = True
            self.listens = MemberStreams(self.common, self.routes)

    def joined(self, member: Member, is_late: bool) -> None:
        """Record that a server is open; late, if the client has been answered without it."""
        member.is_known = True
        self.common.inspects = self.common.inspects or "tasks" in (member.capabilities or {})
        if is_late:
            if self.listens is not None:
                self.listens.join(member)
            self.lists.find_news(member)

    # What servers say

    def take_from_server(self, member: Member, frame: Frame) -> None:
        """Take a frame of a server."""
        key = frame.key
        if frame.method is None and key is not None:
            take = member.owed.pop(key, _drop)
            if take is None:
                if is_unanswered(frame):
                    member.suspect(key)
                if self.common.inspects or frame.kind == "error" or may_name_pages(frame.raw):
                    frame = self.routes.inspect(member, frame)
                self.common.outside.tell_client(frame)
            else:
                if not is_unanswered(frame):
                    member.suspects.clear(key)
                take(frame)
        else:
            try:
                self._take_unasked(member, self._place(member, frame))
            except ValueError as error:
                logger.warning("a %s of %s dropped, which cannot be read: %s", frame.kind, member.name, error)
                if frame.kind == "request":
                    self.common.outside.tell_member(member, error_frame(key, PARSE_ERROR, str(error)))

    def _take_unasked(self, member: Member, frame: Frame) -> None:
        if frame.kind == "request":
            self.asking.put(member, frame)
        elif frame.kind == "notification":
            self._take_notice(member, frame)
        elif frame.kind == "batch":
            for body in frame.body:
                one = classify(encode_line(body), body, frame.stream)
                if isinstance(one, Frame):
                    self.take_from_server(member, one)

    def _place(self, member: Member, frame: Frame) -> Frame:
        """Say which requests it may be about, where nothing says which one it is."""
        calls = member.at_work if frame.stream is None and frame.method != PROGRESS else None
        return frame if calls is None else frame._replace(source=(member.name, *calls))

    def _take_notice(self, member: Member, frame: Frame) -> None:
        frame = show_notice(member, frame)
        if frame.stream is not None and member.owed.get(frame.stream) is not None and self.listens is not None:
            self.listens.hear(member, frame)
        elif self.listens is not None and frame.stream is None and self.listens.hear(member, frame):
            pass
        elif frame.method in _CHANGES:
            self.tell_changed(frame.method)
        elif frame.method == CANCELLED:
            self.asking.cancel(member, frame, cancelled_key(frame))
        elif frame.method == UPDATED:
            for notice in self.routes.show_updated(member, frame):
                self.common.outside.tell_client(notice)
        elif frame.method == ELICITED:
            self.asking.complete(member, frame)
        elif frame.method != PROGRESS or self.common.tokens.allows(member, frame):
            self.common.outside.tell_client(frame)

    def tell_lists_changed(self, member: Member) -> None:
        """Tell the client that the lists have changed that a server has a part in."""
        for method, capability in _CHANGES.items():
            if not member.lacks(capability):
                self.tell_changed(method)

    def tell_changed(self, method: str) -> None:
        """Tell the client with this notification that a list has changed."""
        if self.listens is None:
            self.changes.tell(method)
        else:
            self.listens.tell_changed(method)

    def _tell_gone(self, member: Member) -> None:
        if member.is_known:
            member.is_known = False
            self.tell_lists_changed(member)
            member.listed.clear()

    # Servers that come and go

    def lost(self, member: Member, reason: str) -> None:
        """Record that a server is gone; the others go on."""
        self.common.fail(member, reason)
        self._clear(member, reason)
        self._tell_gone(member)

    def _try_again(self, member: Member) -> None:
        """Open a server once more, at which somebody may have signed in since it failed."""
        member.wants_person = False
        self._clear(member, member.reason)
        self.common.outside.let_go(member)
        self.join(member)

    def _clear(self, member: Member, reason: str) -> None:
        owed, member.owed = member.owed, {}
        member.suspects.forget_all()
        for key, take in owed.items():
            (take or self.common.reply)(error_frame(key, CONNECTION_CLOSED, f"{member.name} is gone: {reason}"))
        self.asking.forget(member)
        self._quick.clear()

    def remove(self, name: str) -> None:
        """Take a server away."""
        member = self.members.pop(name, None)
        if member is not None:
            self.common.set_state(member, MemberState.FAILED, "it was removed from the configuration")
            self._clear(member, member.reason)
            self.routes.forget(member)
            self._tell_gone(member)

    def add(self, members: Mapping[str, Member]) -> None:
        """Take servers in, or servers again that were lost.

        Args:
            members: All that there are from here on, in their order.
        """
        new = [member for name, member in members.items() if self.members.get(name) is not member]
        self.common.members = dict(members)
        self._quick.clear()
        for member in new:
            self.join(member)

    def join(self, member: Member) -> None:
        """Open a server that was not there, or is there again; then the client is told that lists have changed."""
        self.common.set_state(member, MemberState.WAITING)
        self.openings.join(member)


def _drop(frame: Frame) -> None:
    logger.debug("an answer that nobody waits for: %s", show_key(frame.key))
