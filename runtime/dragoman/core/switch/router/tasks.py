"""Ids of tasks, as the client knows them: each names its server, so that no other server can have a task of that id.

Lives here: where such ids stand, and the names that they get. Must not: hold on to tasks. Called by the other parts.

A server may give any id, in any result. One that guesses what another server's tasks are called would otherwise answer
the questions about them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from dragoman.core.envelope import Frame, decoded, rewrite
from dragoman.core.repeats import may_disguise
from dragoman.core.switch.router.member import Member
from dragoman.core.unchecked import find
from dragoman_spec import HANDSHAKE_REVISIONS, facts

_RELATED: Final = facts(HANDSHAKE_REVISIONS[-1]).request_meta["related-task"]
_MARKS: Final = (b'"taskId"', _RELATED.encode())


def name_task(member: Member, task: str) -> str:
    """Return what the client knows a task of a server as."""
    return own_prefix(member.name) + task


def own_prefix(server: str) -> str:
    """Return how the client's names for what is a server's begin; what begins so is no other server's."""
    return server.replace("%", "%25").replace(":", "%3A") + ":"


def read_task(members: Iterable[Member], named: str) -> tuple[Member, str] | None:
    """Return whose a task is that the client names, and what its server calls it; None for none of these servers."""
    owner, separator, task = named.partition(":")
    found = (member for member in members if separator and own_prefix(member.name) == f"{owner}:")
    return next(((member, task) for member in found), None)


def name_in(holder: dict[str, Any], rename: Callable[[str], str], levels: int = 4) -> dict[str, Any]:
    """Return a result or params in which tasks have other ids; the same object where there are none.

    The result of a task stands in the task, and that in a notice of it: nobody reads an id that stands deeper.
    """
    told = name_related(holder, rename)
    if isinstance(task := holder.get("taskId"), str):
        told = {**told, "taskId": rename(task)}
    for name in ("task", "result"):
        one = holder.get(name)
        if levels and isinstance(one, dict) and (within := name_in(one, rename, levels - 1)) is not one:
            told = {**told, name: within}
    return told


def name_related(holder: dict[str, Any], rename: Callable[[str], str]) -> dict[str, Any]:
    """Do it only where a message says which task it is about: other ids in it are those of who reads it."""
    task = find(holder, "_meta", _RELATED, "taskId")
    if not isinstance(task, str):
        return holder
    meta = holder["_meta"]
    return {**holder, "_meta": {**meta, _RELATED: {**meta[_RELATED], "taskId": rename(task)}}}


def show_notice(member: Member, frame: Frame) -> Frame:
    """Return a notification of a server that may be about a task as the client is told it."""
    if not any(mark in frame.raw for mark in _MARKS) and not may_disguise(frame.raw):
        return frame
    body = decoded(frame).body
    params = body.get("params")
    told = name_in(params, partial(name_task, member)) if isinstance(params, dict) else params
    return frame if told is params else rewrite(frame, {**body, "params": told})


def restore_related(member: Member, frame: Frame) -> Frame:
    """Return the client's answer to a question about a task as the server knows it."""
    if _MARKS[1] not in frame.raw and not may_disguise(frame.raw):
        return frame
    body = decoded(frame).body
    result = body.get("result")
    told = name_related(result, lambda named: named.removeprefix(own_prefix(member.name))) if result else result
    return frame if told is result else rewrite(frame, {**body, "result": told})
