"""Whose a request is that names a tool, a prompt, a resource, a template or a task.

Lives here: finding the owner, and writing the name that it uses. Must not: hold on to calls (`catalogue`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from dragoman.core.codes import INVALID_PARAMS, METHOD_NOT_FOUND
from dragoman.core.envelope import Frame, decoded, error_frame, result_frame, rewrite
from dragoman.core.methods import COMPLETE
from dragoman.core.peek import with_id
from dragoman.core.places import keep_latest
from dragoman.core.repeats import may_disguise
from dragoman.core.switch.router.asking import name_askers, name_elicitations
from dragoman.core.switch.router.common import Common
from dragoman.core.switch.router.lists import Lists
from dragoman.core.switch.router.member import Member, MemberState
from dragoman.core.switch.router.names import LONGEST_NAME, MOST_SHOWN, NameKind, NameOwner
from dragoman.core.switch.router.pages import LISTS
from dragoman.core.switch.router.search import Search
from dragoman.core.switch.router.tasks import name_in, name_related, name_task, own_prefix, read_task
from dragoman.core.switch.router.uris import at_most, may_name_pages, show_uris
from dragoman.core.unchecked import find

logger = logging.getLogger("dragoman.router")

Place = tuple[NameKind, tuple[str, ...]]
"""What is named, and where in the params of a request."""

_RESOURCE: Final[Place] = (NameKind.RESOURCE, ("uri",))
_NAMED: Final[Mapping[str, Place]] = {
    "tools/call": (NameKind.TOOL, ("name",)),
    "prompts/get": (NameKind.PROMPT, ("name",)),
    "resources/read": _RESOURCE,
    "resources/subscribe": _RESOURCE,
    "resources/unsubscribe": _RESOURCE,
}
"""Requests that name something."""

_REFERRED: Final[Mapping[object, Place]] = {
    "ref/prompt": (NameKind.PROMPT, ("ref", "name")),
    "ref/resource": (NameKind.TEMPLATE, ("ref", "uri")),
}
"""The same for what is completed, by the type of the reference."""

_LISTED_WITH: Final[Mapping[NameKind, tuple[NameKind, ...]]] = {
    NameKind.TOOL: (NameKind.TOOL,),
    NameKind.PROMPT: (NameKind.PROMPT,),
    NameKind.RESOURCE: (NameKind.RESOURCE, NameKind.TEMPLATE),
    NameKind.TEMPLATE: (NameKind.RESOURCE, NameKind.TEMPLATE),
}
"""What is listed to find something: a URI may be that of a resource, or made of a template."""

_MOST_REMEMBERED: Final = 10_000
_MOST_WAYS: Final = 8
"""By how many URIs clients may watch one resource: its own, and with the prefixes that it has had."""

_MOST_COMPARED: Final = 100_000
"""How often a URI in one result is compared with a template: what a server says holds nobody else up for longer."""

K = TypeVar("K")
V = TypeVar("V")


class Routes:
    """Finds owners for one client's session.

    Args:
        common: What all parts know.
        lists: What there is, where nobody is known to own something.
    """

    def __init__(self, common: Common, lists: Lists) -> None:
        self._common = common
        self._lists = lists
        self._found: dict[str, Member] = {}
        self._watched: dict[NameOwner, dict[str, None]] = {}  # by whatever clients know them
        self._sought: dict[bytes, Search | Frame] = {}  # whose owner is sought, and the search for it at each server

    def cancel(self, key: bytes) -> bool:
        """Record that the client does not wait any more; False where nobody is sought for this request."""
        sought = self._sought.pop(key, None)
        if isinstance(sought, Search):
            sought.stop("the client has cancelled the request")
        return sought is not None

    def forget(self, member: Member) -> None:
        """Record that a server is not there any more, nor is what it had."""
        for name in [name for name, owner in self._found.items() if owner is member]:
            del self._found[name]
        for owner in [owner for owner in self._watched if owner.server == member.name]:
            del self._watched[owner]

    def forward(self, frame: Frame, params: dict[str, Any]) -> None:
        """Hand a request to its owner, or refuse it."""
        method = frame.method or ""
        task = params.get("taskId")
        if method in _NAMED:
            self._take_named(frame, params, _NAMED[method])
        elif method == COMPLETE:
            self._take_referred(frame, params)
        elif isinstance(task, str) and method.startswith("tasks/"):
            self._take_task(frame, params, task)
        elif len(self._common.members) == 1:
            self._common.forward(next(iter(self._common.members.values())), frame)
        else:
            self._refuse(
                frame, METHOD_NOT_FOUND, f"no server is known to have {method[:200]}", {"method": method[:200]}
            )

    # By name

    def _take_referred(self, frame: Frame, params: dict[str, Any]) -> None:
        """Hand on what is to be completed, without what its type does not need: a server may go by that.

        Whose that is, nobody asks, nor whether it may be used.
        """
        kind, path = _REFERRED[find(params, "ref", "type")]
        others = {place[1][-1] for place in _REFERRED.values()} - {path[-1]}
        if not others.isdisjoint(params["ref"]):
            params = {**params, "ref": {name: value for name, value in params["ref"].items() if name not in others}}
            frame = rewrite(frame, {**frame.body, "params": params})
        self._take_named(frame, params, (kind, path))

    def _take_named(self, frame: Frame, params: dict[str, Any], place: Place) -> None:
        """Hand a request on to the owner of what it names; where nobody is known to be, list what there is first."""
        kind, path = place
        name: str = find(params, *path)
        key = frame.key or b"null"

        def send(is_known: bool) -> bool:
            owner = self.find_owner(kind, name)
            if owner is not None and not self._may(frame, kind, owner, is_known):
                self._refuse(frame, INVALID_PARAMS, f"unknown {kind.value}: {name[:500]}")
                return True
            return owner is not None and self._send(frame, owner, name, _replace(params, path, owner.name))

        def go_on(_: object) -> None:
            if self._sought.get(key) is frame:  # else the client has cancelled it
                del self._sought[key]
                if not send(is_known=False):
                    self._seek(frame, params, kind, name)

        if not send(is_known=True):
            self._sought[key] = frame
            listed = [listing for listing in LISTS.values() if listing.names in _LISTED_WITH[kind]]
            self._lists.gather(listed, self._common.meta_of(params), frame.sender, go_on)

    def _may(self, frame: Frame, kind: NameKind, owner: NameOwner, is_known: bool = False) -> bool:
        """Whether whoever sends a request may use something; what has passed no rules is what was known before."""
        origin = frame.origin
        if origin is None or origin.may is None:
            return is_known or not self._common.names.is_guarded
        return origin.judged == owner or origin.may(kind.value, owner.server, owner.name)

    def find_owner(self, kind: NameKind, name: str) -> NameOwner | None:
        """Return whose something is, as far as lists, templates and searches say."""
        owner = self._common.names.find(kind, name)  # as rules ask, which know nothing of what was found for others
        if owner is None and kind.is_uri and name in self._found:
            return NameOwner(self._found[name].name, name)
        return owner

    def _send(self, frame: Frame, owner: NameOwner, used: str, params: dict[str, Any]) -> bool:
        """Hand a request to its owner, under the name that it uses."""
        member = self._common.members.get(owner.server)
        if member is None:
            return False
        if frame.method == "resources/subscribe":
            self.note_watched(owner, used)
        elif frame.method == "resources/unsubscribe" and self._is_watched_otherwise(owner, used):
            self._common.reply(result_frame(frame.key or b"null", self._common.complete({}, is_partial=False)))
            return True
        if owner.name != used or member.has_filter:  # where some are hidden, what was read is what is sent
            frame = rewrite(frame, {**frame.body, "params": params})
        self._common.forward(member, frame)
        return True

    def _seek(self, frame: Frame, params: Mapping[str, Any], kind: NameKind, name: str) -> None:
        """Go on with what is on no list: of a resource, that means little."""
        if kind is not NameKind.RESOURCE:
            self._refuse(frame, INVALID_PARAMS, f"unknown {kind.value}: {name[:500]}{self._explain_absent()}")
            return
        able = [one for one in self._able(frame.method or "") if self._may(frame, kind, NameOwner(one.name, name))]
        refusal = f"no server is known to have this resource: {name[:500]}"
        if len(able) == 1:
            self._common.forward(able[0], frame)
        elif able and frame.method == "resources/read":
            self._search(frame, params, able, name, refusal)
        else:
            self._refuse(frame, INVALID_PARAMS, refusal)

    def _able(self, method: str) -> list[Member]:
        able = []
        for member in self._common.members.values():
            declared = find(member.capabilities, "resources")
            can = isinstance(declared, dict) and (method == "resources/read" or bool(declared.get("subscribe")))
            if member.state is not MemberState.FAILED and (member.capabilities is None or can):
                able.append(member)
        return able

    def _search(self, frame: Frame, params: Mapping[str, Any], able: Sequence[Member], uri: str, refusal: str) -> None:
        key = frame.key or b"null"

        def take_found(member: Member | None, answer: Frame) -> None:
            del self._sought[key]
            if member is not None:
                self._remember(self._found, uri, member, len(uri))
            self._common.reply(answer._replace(raw=with_id(answer, key), key=key, body=None))

        asked = {name: value for name, value in params.items() if name != "_meta"}
        search = Search(self._common, able, asked, self._common.meta_of(params), frame.sender, take_found)
        self._sought[key] = search
        search.go_on(error_frame(key, INVALID_PARAMS, refusal))

    # URIs

    def note_watched(self, owner: NameOwner, uri: str) -> None:
        """Record the URI under which the client wants to hear of a resource."""
        known = self._watched.get(owner, {})
        keep_latest(known, uri, None, _MOST_WAYS)
        self._remember(self._watched, owner, known, len(uri))

    def _is_watched_otherwise(self, owner: NameOwner, uri: str) -> bool:
        """Record that a URI is not watched any more; whether somebody who knows another one watches the resource."""
        known = self._watched.get(owner, {})
        known.pop(uri, None)
        if not known:
            self._watched.pop(owner, None)
        return bool(known)

    def show_uri(self, member: Member, uri: str) -> str:
        """Return what the client knows a resource of a server as."""
        known = self._watched.get(NameOwner(member.name, uri))
        return next(reversed(known)) if known else self._common.names.show_uri(member.name, uri)

    def show_updated(self, member: Member, frame: Frame) -> Iterable[Frame]:
        """Give the notices that a resource has changed, under each URI by which clients watch it."""
        if not (self._watched or self._common.names.has_shown_uris(member.name) or may_name_pages(frame.raw)):
            return (frame,)
        body = decoded(frame).body
        uri = find(body, "params", "uri")
        if not isinstance(uri, str):
            return (frame,)
        known = self._watched.get(NameOwner(member.name, uri)) or (self._common.names.show_uri(member.name, uri),)
        return [
            frame if one == uri else rewrite(frame, {**body, "params": {**body["params"], "uri": one}}) for one in known
        ]

    # Tasks

    def _take_task(self, frame: Frame, params: dict[str, Any], task: str) -> None:
        """Hand a request to the server that the id names; one that names none is of the only server with tasks."""
        able = [one for one in self._common.members.values() if not one.lacks("tasks")]
        found = read_task(self._common.members.values(), task) or ((able[0], task) if len(able) == 1 else None)
        if found is None:
            self._refuse(frame, INVALID_PARAMS, "this task is not known here")
            return
        member, own = found
        said = name_related({**params, "taskId": own}, lambda named: named.removeprefix(own_prefix(member.name)))
        self._common.forward(member, rewrite(frame, {**frame.body, "params": said}))

    def _remember(self, table: dict[K, V], name: K, value: V, size: int) -> None:
        if size <= LONGEST_NAME:
            keep_latest(table, name, value, _MOST_REMEMBERED)

    # Answers

    def inspect(self, member: Member, frame: Frame) -> Frame:
        """Look into an answer that may ask for input, name a task or have a URI: nobody else says whose they are."""
        raw = frame.raw
        hides = may_disguise(raw)
        if frame.kind == "error":
            return name_elicitations(member.name, frame) if hides or b'"elicitations"' in raw else frame
        has_uris = may_name_pages(raw) or (b'"uri"' in raw and self._common.names.has_shown_uris(member.name)) or hides
        if frame.kind != "result" or not (has_uris or b'"input_required"' in raw or b'"taskId"' in raw):
            return frame
        try:
            body = decoded(frame).body
        except ValueError:
            return frame
        result = body["result"]
        if not isinstance(result, dict):
            return frame
        told = name_askers(member.name, name_in(result, partial(name_task, member)))
        if has_uris:
            templates = len(self._common.names.show(member.name, NameKind.TEMPLATE))
            times = _MOST_COMPARED // (1 + min(templates, MOST_SHOWN))
            told = show_uris(told, at_most(times, partial(self.show_uri, member)))
        return frame if told is result else rewrite(frame, {**body, "result": told})

    # Refusing

    def _explain_absent(self) -> str:
        said = [
            f"{one.name} cannot be used ({one.reason})" if one.state is MemberState.FAILED else f"{one.name} is late"
            for one in self._common.members.values()
            if one.state is MemberState.FAILED or one.is_late
        ]
        return f"; not all servers are there: {'; '.join(said)}" if said else ""

    def _refuse(self, frame: Frame, code: int, message: str, data: Any = None) -> None:
        self._common.reply(error_frame(frame.key, code, message, data))


def _replace(params: dict[str, Any], path: Sequence[str], name: str) -> dict[str, Any]:
    """Return params with another name in this place."""
    first, *rest = path
    return {**params, first: _replace(params[first], rest, name) if rest else name}
