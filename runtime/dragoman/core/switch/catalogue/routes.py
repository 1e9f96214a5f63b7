"""Whose a request is that names a tool, a prompt, a resource, a template or a task.

Lives here: finding the owner, and writing the name that it uses. Must not: hold on to calls (`catalogue`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from dragoman.core.codes import INVALID_PARAMS, METHOD_NOT_FOUND
from dragoman.core.envelope import Frame, decoded, error_frame, rewrite
from dragoman.core.peek import with_id
from dragoman.core.switch.catalogue.asking import name_askers, name_elicitations
from dragoman.core.switch.catalogue.common import Common
from dragoman.core.switch.catalogue.lists import Lists
from dragoman.core.switch.catalogue.member import Member, MemberState
from dragoman.core.switch.catalogue.names import LONGEST_NAME, NameKind, NameOwner
from dragoman.core.switch.catalogue.own import OwnRequests
from dragoman.core.switch.catalogue.pages import LISTS
from dragoman.core.switch.catalogue.search import Search
from dragoman.core.switch.catalogue.uris import may_name_pages, show_uris
from dragoman.core.unchecked import find

logger = logging.getLogger("dragoman.router")

_NAMED: Final = {"tools/call": (NameKind.TOOL, "tools/list"), "prompts/get": (NameKind.PROMPT, "prompts/list")}
_BY_URI: Final = frozenset({"resources/read", "resources/subscribe", "resources/unsubscribe"})
_RESOURCE_LISTS: Final = ("resources/list", "resources/templates/list")
_MOST_REMEMBERED: Final = 10_000

K = TypeVar("K")
V = TypeVar("V")


class Routes:
    """Finds owners for one client's session.

    Args:
        common: What all parts know.
        lists: What there is, where nobody is known to own something.
        own: Asks servers.
    """

    def __init__(self, common: Common, lists: Lists, own: OwnRequests) -> None:
        self._common = common
        self._lists = lists
        self._own = own
        self._tasks: dict[str, Member] = {}
        self._found: dict[str, Member] = {}
        self._watched: dict[NameOwner, str] = {}
        self._sought: dict[bytes, Callable[[str], None]] = {}

    def cancel(self, key: bytes) -> bool:
        """Record that the client does not wait any more; False where nobody is sought for this request."""
        stop = self._sought.pop(key, None)
        if stop is not None:
            stop("the client has cancelled the request")
        return stop is not None

    def forget(self, member: Member) -> None:
        """Record that a server is not there any more, nor is what it had."""
        for table in (self._tasks, self._found):
            for name in [name for name, owner in table.items() if owner is member]:
                del table[name]
        for owner in [owner for owner in self._watched if owner.server == member.name]:
            del self._watched[owner]

    def forward(self, frame: Frame, params: dict[str, Any]) -> None:
        """Hand a request to its owner, or refuse it."""
        method = frame.method or ""
        task = params.get("taskId")
        if method in _NAMED:
            kind, listing = _NAMED[method]
            self._take_named(frame, params, kind, (listing,))
        elif method in _BY_URI:
            self._take_uri(frame, params)
        elif method == "completion/complete":
            self._complete(frame, params)
        elif isinstance(task, str) and method.startswith("tasks/"):
            self._take_task(frame, params, task)
        elif len(self._common.members) == 1:
            self._common.forward(next(iter(self._common.members.values())), frame)
        else:
            self._refuse(
                frame, METHOD_NOT_FOUND, f"no server is known to have {method[:200]}", {"method": method[:200]}
            )

    # By name

    def _take_named(self, frame: Frame, params: dict[str, Any], kind: NameKind, listings: Sequence[str]) -> None:
        name = params.get("name")
        if not isinstance(name, str):
            self._refuse(frame, INVALID_PARAMS, "expected params.name to be a string")
            return

        def send() -> bool:
            owner = self._common.names.find(kind, name)
            return owner is not None and self._send(frame, owner, {**params, "name": owner.name}, name)

        def refuse() -> None:
            self._refuse(frame, INVALID_PARAMS, f"unknown {kind.value}: {name[:200]}{self._explain_absent()}")

        self._send_or_list(frame, send, refuse, listings, params)

    def _send_or_list(
        self,
        frame: Frame,
        send: Callable[[], bool],
        refuse: Callable[[], None],
        listings: Sequence[str],
        params: Mapping[str, Any],
    ) -> None:
        """Hand a request on; where nobody is known to own it, list what there is first."""
        if send():
            return
        left = len(listings)
        key = frame.key or b"null"

        def stop(_: str) -> None:
            nonlocal left
            left = -1

        def go_on(_: object) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                del self._sought[key]
                if not send():
                    refuse()

        self._sought[key] = stop
        for listing in listings:
            self._lists.gather(LISTS[listing], self._common.meta_of(params), go_on)

    def _send(self, frame: Frame, owner: NameOwner, params: dict[str, Any], used: str) -> bool:
        """Hand a request to its owner, under the name that it uses."""
        member = self._common.members.get(owner.server)
        if member is None:
            return False
        if owner.name != used or member.has_filter:  # where some are hidden, what was read is what is sent
            frame = rewrite(frame, {**frame.body, "params": params})
        self._common.forward(member, frame)
        return True

    # By URI

    def _take_uri(self, frame: Frame, params: dict[str, Any]) -> None:
        uri = params.get("uri")
        if not isinstance(uri, str):
            self._refuse(frame, INVALID_PARAMS, "expected params.uri to be a string")
            return

        def send() -> bool:
            owner = self.find_resource(uri)
            if owner is not None and frame.method == "resources/subscribe":
                self.note_watched(owner, uri)
            return owner is not None and self._send(frame, owner, {**params, "uri": owner.name}, uri)

        def seek() -> None:
            able = self._able(frame.method or "")
            if len(able) == 1:
                self._common.forward(able[0], frame)
            elif frame.method == "resources/read" and able:
                self._seek_resource(frame, params, able, uri)
            else:
                self._refuse(frame, INVALID_PARAMS, f"no server is known to have this resource: {uri[:500]}")

        self._send_or_list(frame, send, seek, _RESOURCE_LISTS, params)

    def find_resource(self, uri: str) -> NameOwner | None:
        """Return whose a resource is, as far as lists and templates say."""
        names = self._common.names
        found = self._found.get(uri)
        if found is not None and found.name in self._common.members:
            return NameOwner(found.name, uri)
        owner = names.find(NameKind.RESOURCE, uri) or names.find_page(uri)
        if owner is not None:
            return owner
        owner = names.find_template(uri)
        return None if owner is None else NameOwner(owner.server, self._without_prefix(owner.server, uri))

    def _without_prefix(self, server: str, uri: str) -> str:
        """Return a URI as its server knows it, where its template has got a prefix."""
        for name, shown in self._common.names.show(server, NameKind.TEMPLATE).items():
            prefix = shown.removesuffix(name)
            if prefix and uri.startswith(prefix):
                return uri.removeprefix(prefix)
        return uri

    def _able(self, method: str) -> list[Member]:
        able = []
        for member in self._common.members.values():
            declared = (member.capabilities or {}).get("resources")
            can = isinstance(declared, dict) and (method == "resources/read" or bool(declared.get("subscribe")))
            if member.state is not MemberState.FAILED and (member.capabilities is None or can):
                able.append(member)
        return able

    def _seek_resource(self, frame: Frame, params: Mapping[str, Any], able: list[Member], uri: str) -> None:
        key = frame.key or b"null"

        def take_found(member: Member | None, answer: Frame) -> None:
            del self._sought[key]
            if member is not None:
                self._remember(self._found, uri, member, len(uri))
            self._common.reply(answer._replace(raw=with_id(answer, key), key=key, body=None))

        asked = {name: value for name, value in params.items() if name != "_meta"}
        search = Search(self._own, self._common.outside.remind, able, asked, self._common.meta_of(params), take_found)
        self._sought[key] = search.stop
        search.go_on(error_frame(key, INVALID_PARAMS, f"no server is known to have this resource: {uri[:500]}"))

    def note_watched(self, owner: NameOwner, uri: str) -> None:
        """Record the URI under which the client wants to hear of a resource."""
        self._remember(self._watched, owner, uri, len(uri))

    def show_uri(self, member: Member, uri: str) -> str:
        """Return what the client knows a resource of a server as."""
        return self._watched.get(NameOwner(member.name, uri)) or self._common.names.show_uri(member.name, uri)

    def show_updated(self, member: Member, frame: Frame) -> Frame:
        """Return a notice that a resource has changed, under the URI that the client knows."""
        if not (self._watched or self._common.names.has_shown_uris(member.name) or may_name_pages(frame.raw)):
            return frame
        body = decoded(frame).body
        uri = find(body, "params", "uri")
        known = self.show_uri(member, uri) if isinstance(uri, str) else uri
        return frame if known == uri else rewrite(frame, {**body, "params": {**body["params"], "uri": known}})

    # Completion

    def _complete(self, frame: Frame, params: dict[str, Any]) -> None:
        ref = params.get("ref")
        named, uri = find(ref, "name"), find(ref, "uri")
        used = named if isinstance(named, str) else uri
        if not isinstance(ref, dict) or not isinstance(used, str):
            self._refuse(frame, INVALID_PARAMS, "expected params.ref to name a prompt or a resource")
            return
        key = "name" if used is named else "uri"

        def send() -> bool:
            owner = self._find_ref(key, used)
            return owner is not None and self._send(frame, owner, {**params, "ref": {**ref, key: owner.name}}, used)

        def refuse() -> None:
            self._refuse(frame, INVALID_PARAMS, f"nothing to complete is known as {used[:500]}{self._explain_absent()}")

        listings = ("prompts/list",) if key == "name" else _RESOURCE_LISTS
        self._send_or_list(frame, send, refuse, listings, params)

    def _find_ref(self, key: str, used: str) -> NameOwner | None:
        names = self._common.names
        if key == "name":
            return names.find(NameKind.PROMPT, used)
        return names.find(NameKind.TEMPLATE, used) or self.find_resource(used)

    # Tasks

    def _take_task(self, frame: Frame, params: dict[str, Any], task: str) -> None:
        member = self._tasks.get(task)
        if member is None:
            able = [one for one in self._common.members.values() if not one.lacks("tasks")]
            member = able[0] if len(able) == 1 else None
        if member is None:
            self._refuse(frame, INVALID_PARAMS, "this task is not known here")
        else:
            self._common.forward(member, frame)

    def note_task(self, member: Member, result: Mapping[str, Any]) -> None:
        """Record whose task a result names."""
        task = result.get("task")
        named = task.get("taskId") if isinstance(task, dict) else result.get("taskId")
        if isinstance(named, str):
            self.note_tasks(member, (named,))

    def note_tasks(self, member: Member, ids: Iterable[str]) -> None:
        """Record whose tasks these are: the first who names one has it."""
        for task in ids:
            if self._tasks.get(task, member) is not member:
                logger.warning(
                    "%s and %s have a task of one id; it stays the first one's", self._tasks[task].name, member.name
                )
            else:
                self._remember(self._tasks, task, member, len(task))

    def _remember(self, table: dict[K, V], name: K, value: V, size: int) -> None:
        if size > LONGEST_NAME:
            return
        table[name] = value
        if len(table) > _MOST_REMEMBERED:
            del table[next(iter(table))]

    # Answers

    def inspect(self, member: Member, frame: Frame) -> Frame:
        """Look into an answer that may ask for input, name a task or have a URI: nobody else says whose they are."""
        raw = frame.raw
        if frame.kind == "error":
            return name_elicitations(member.name, frame) if b'"elicitations"' in raw else frame
        has_uris = may_name_pages(raw) or (b'"uri"' in raw and self._common.names.has_shown_uris(member.name))
        if frame.kind != "result" or not (has_uris or b'"input_required"' in raw or b'"taskId"' in raw):
            return frame
        try:
            body = decoded(frame).body
        except ValueError:
            return frame
        result = body["result"]
        if not isinstance(result, dict):
            return frame
        self.note_task(member, result)
        told = name_askers(member.name, result)
        if has_uris:
            told = show_uris(told, partial(self.show_uri, member))
        return frame if told is result else rewrite(frame, {**body, "result": told})

    # Refusing

    def _explain_absent(self) -> str:
        absent = [member for member in self._common.members.values() if member.state is MemberState.FAILED]
        said = "; ".join(f"{member.name} cannot be used ({member.reason})" for member in absent)
        return f"; not all servers are there: {said}" if absent else ""

    def _refuse(self, frame: Frame, code: int, message: str, data: Any = None) -> None:
        self._common.reply(error_frame(frame.key, code, message, data))
