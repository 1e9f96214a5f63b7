"""What each side is told of the other across the eras: no more than the path between them can deliver.

Lives here: which capabilities are told, computed from the tables of the revisions. Must not: know where capabilities
stand in a frame (`discovery`, `metadata`), or what the steps do to them within an era. Called by `discovery` and by
whoever stamps requests.

Between equal eras nothing is decided here: steps leave out what the target does not name, and a request of the
per-request era goes on with exactly the capabilities that it came with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

from dragoman.core.exact_json import escape
from dragoman.core.rules.names import NEWER, OLDER, TASKS_EXTENSION
from dragoman.core.unchecked import find, find_object
from dragoman_spec import era, facts
from dragoman_spec.losses import Loss
from dragoman_spec.protocol import Facts
from dragoman_spec.record import record

Scope = Literal["shared", "principal", "client"]

_TASKS_OF_TOOLS: Final[dict[str, Any]] = {"cancel": {}, "requests": {"tools": {"call": {}}}}
"""What a bridged server of the tasks extension can do in terms of 2025-11-25: `tasks/list` has no counterpart."""


@record
class Path:
    """The way between one client and one server, as far as it decides what can be told.

    Attributes:
        client: Revision of the client.
        server: Revision of the server.
        scope: Who shares a session of the server; means nothing where the server has none.
        tasks: Whether tasks are bridged.
        promotes: Whether a call that asks something may become a task where the server has a handshake.
    """

    client: str
    server: str
    scope: Scope = "client"
    tasks: bool = False
    promotes: bool = False

    @property
    def bridge(self) -> Literal["to_session", "to_stateless"] | None:
        """The switch that joins their eras, by the server that it leads to; None where both are of one era."""
        if era(self.client) == era(self.server):
            return None
        return "to_session" if era(self.server) == "handshake" else "to_stateless"


class Told(NamedTuple):
    """What one side is told, and what of the truth is left out; pointers begin at `/capabilities`."""

    capabilities: dict[str, Any]
    losses: tuple[Loss, ...]


def declare_up(capabilities: Mapping[str, Any], path: Path, *, wants_task: bool = False) -> Told:
    """Return the capabilities of the client that the server is told.

    Args:
        capabilities: Of the client, as it declared them: in `initialize`, in its own revision, or in this request.
        path: The way between them.
        wants_task: Whether the client asked for a task with this request.

    Returns:
        Those that this client can be asked for; in the form of the server's era, for one with a handshake that of the
        newest such revision.
    """
    if path.bridge is None:
        return Told(dict(capabilities), ())
    source = facts(path.client)
    target = facts(NEWER if path.bridge == "to_stateless" else OLDER)
    told: dict[str, Any] = {}
    lost: list[Loss] = []
    for name, value in capabilities.items():
        if name == "extensions":
            told |= _keep_extensions(value, lost)
        elif _is_named_by_one(name, source, target):
            lost.append(_lose(name, value))
        else:
            told[name] = _keep_parts(name, value, source, target, lost)
    if path.bridge == "to_stateless" and path.tasks and wants_task:
        told["extensions"] = {**told.get("extensions", {}), TASKS_EXTENSION: {}}
    return Told(_fill_in(told), tuple(lost))


def declare_down(capabilities: Mapping[str, Any], path: Path) -> Told:
    """Return the capabilities of the server that the client is told.

    Args:
        capabilities: Of the server: in the form of 2026-07-28, or of the newest revision with a handshake.
        path: The way between them.

    Returns:
        The same in the form of the client's era; for a client with a handshake that of the newest such revision, which
        the steps take on from there.
    """
    if path.bridge is None:
        return Told(dict(capabilities), ())
    one_sided = facts(NEWER).server_capabilities ^ facts(OLDER).server_capabilities
    tasks = _tell_tasks(capabilities, path)
    told: dict[str, Any] = {}
    lost: list[Loss] = []
    for name, value in capabilities.items():
        if name == "extensions":
            told |= _keep_extensions(value, [] if tasks else lost)
        elif name not in one_sided:
            told[name] = value
        elif name != "tasks" or not tasks:
            lost.append(_lose(name, value))
    if "extensions" in tasks:
        tasks = {"extensions": {**told.get("extensions", {}), **tasks["extensions"]}}
    return Told({**told, **tasks}, tuple(lost))


def declares_tasks(capabilities: Mapping[str, Any]) -> bool:
    """Whether capabilities, of either side, have the tasks extension in them."""
    return TASKS_EXTENSION in find_object(capabilities, "extensions")


def bridges_tasks(path: Path, capabilities: Mapping[str, Any]) -> bool:
    """Whether a client with a handshake is told that tools run as tasks at a server with these capabilities."""
    return path.tasks and path.bridge == "to_stateless" and path.client == OLDER and declares_tasks(capabilities)


def spell_required(path: str) -> dict[str, Any]:
    """Return a capability, such as `elicitation.url`, as the object in which a client declares it."""
    spelled: dict[str, Any] = {}
    for name in reversed(path.split(".")):
        spelled = {name: spelled}
    return spelled


def _is_named_by_one(name: str, source: Facts, target: Facts) -> bool:
    """Whether it means something to one of two revisions only; what neither names is for the peers to judge."""
    return (name in source.client_capabilities) != (name in target.client_capabilities)


def _keep_parts(name: str, value: Any, source: Facts, target: Facts, lost: list[Loss]) -> Any:
    if not isinstance(value, dict):
        return value
    kept = {part: each for part, each in value.items() if not _is_named_by_one(f"{name}.{part}", source, target)}
    lost += [_lose(f"{name}/{escape(part)}", each) for part, each in value.items() if part not in kept]
    return kept


def _fill_in(capabilities: dict[str, Any]) -> dict[str, Any]:
    """Spell out what an empty capability stands for: `elicitation` alone means forms."""
    for part in facts(NEWER).parts:
        name, _, member = part.capability.partition(".")
        if part.is_default and capabilities.get(name) == {}:
            capabilities[name] = {member: {}}
    return capabilities


def _keep_extensions(value: Any, lost: list[Loss]) -> dict[str, Any]:
    """Return the extensions that the other side is told: all but that of tasks, which is bridged or not there."""
    if not isinstance(value, dict):
        return {}
    if TASKS_EXTENSION in value:
        lost.append(_lose(f"extensions/{escape(TASKS_EXTENSION)}", value[TASKS_EXTENSION]))
    kept = {name: settings for name, settings in value.items() if name != TASKS_EXTENSION}
    return {"extensions": kept} if kept else {}


def _tell_tasks(capabilities: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Tell of tasks in the client's terms, where they are bridged."""
    if (
        path.tasks
        and path.bridge == "to_session"
        and (runs_tools_as_tasks(capabilities) or (path.promotes and "tools" in capabilities))
    ):
        return {"extensions": {TASKS_EXTENSION: {}}}
    if bridges_tasks(path, capabilities):
        return {"tasks": _TASKS_OF_TOOLS}
    return {}


def runs_tools_as_tasks(capabilities: Mapping[str, Any]) -> bool:
    """Whether a server of 2025-11-25 says that its tools may run as tasks."""
    return find(capabilities, "tasks", "requests", "tools", "call") is not None


def _lose(pointer: str, value: Any) -> Loss:
    return Loss(f"/capabilities/{pointer}", "dropped", value)
