"""The calls of a client: one method for each thing that a program can ask of a server.

Lives here: params, capability checks, and results as models. Must not: wait (`session`), or say which models: those of
the revision that the client was opened with. Type checkers see `dragoman_spec.clients` in the place of this class,
which has the same methods with the models of each revision.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import dragoman_spec
from dragoman.client.eras import ByHandshake, ByRequests
from dragoman.client.handlers import Handlers
from dragoman.client.notifications import Announcements
from dragoman.client.session import Session
from dragoman.client.subscriptions import listen
from dragoman.client.tasks import CREATION, ToolTask, check_extension
from dragoman.core.codes import METHOD_NOT_FOUND
from dragoman.core.declared import declares
from dragoman.core.methods import first_name
from dragoman.core.paging import Paging
from dragoman.errors import CapabilityNotSupported, LocalProtocolError, ValidationFailed


class Client:
    """A session with one server.

    Args:
        revision: Whose models go in and come out.
        handlers: What the server may ask.
        identity: Name and version of the client.
        capabilities: What it declares.
        timeout_s: How long a request may go without an answer or progress, where its call does not say.
        on_notification: Called with each notification, as a model; what it returns is awaited if it can be.

    Attributes:
        revision: Whose models go in and come out.
        server_revision: What the server speaks.
        initialized: What the server answered to `initialize`; None without a handshake.
        discovered: What the server answered to `server/discover`; None with a handshake.
        capabilities: What the server can do.
        server_info: Name and version of the server; None if it does not say them.
        instructions: How the server wants to be used; None if it does not say it.
        timeout_s: How long a request may go without an answer or progress, where its call does not say.
    """

    def __init__(
        self,
        revision: str,
        handlers: Handlers,
        identity: Mapping[str, Any],
        capabilities: Mapping[str, Any],
        timeout_s: float | None = None,
        on_notification: Callable[[Any], Any] | None = None,
    ) -> None:
        self.revision = revision
        self.server_revision = revision
        self.initialized: Any = None
        self.discovered: Any = None
        self.capabilities: Any = None
        self.server_info: Any = None
        self.instructions: str | None = None
        self.announcements = Announcements(revision, on_notification)
        self.session = Session(self.announcements, handlers.answer)
        self.by_requests: ByRequests | None = None
        self._era: ByHandshake | ByRequests
        if revision in dragoman_spec.HANDSHAKE_REVISIONS:
            params = {"protocolVersion": revision, "capabilities": capabilities, "clientInfo": identity}
            self._era = ByHandshake(self.session, params)
        else:
            self._era = self.by_requests = ByRequests(self.session, handlers, revision, identity, capabilities)
        self._methods = {first_name(revision, name): one for name, one in dragoman_spec.load(revision).METHODS.items()}
        self.timeout_s = timeout_s
        self._capabilities: dict[str, Any] = {}

    async def open(self) -> None:
        """Open the session, or find out what the server is."""
        frame = await self._era.open()
        opened, result = self.read_result(self._era.opening, frame), frame["result"]
        if self.by_requests is None:
            self.initialized = opened
        else:
            self.discovered = opened
        self.capabilities, self._capabilities = opened.capabilities, result["capabilities"]
        self.instructions = opened.instructions
        identity = self._era.read_identity(result)
        if identity is not None:
            self.server_info = dragoman_spec.adapter(self.revision, "Implementation").validate_python(identity)

    def begin(self, server_revision: str) -> None:
        """Say that the session is open."""
        self.server_revision = server_revision
        self._era.begin()

    # What a server offers

    def tools(self, *, timeout_s: float | None = None) -> AsyncIterator[Any]:
        """Go through the tools, page by page."""
        return self._pages("tools/list", "tools", timeout_s)

    def resources(self, *, timeout_s: float | None = None) -> AsyncIterator[Any]:
        """Go through the resources, page by page."""
        return self._pages("resources/list", "resources", timeout_s)

    def templates(self, *, timeout_s: float | None = None) -> AsyncIterator[Any]:
        """Go through the templates of resources, page by page."""
        return self._pages("resources/templates/list", "resource_templates", timeout_s)

    def prompts(self, *, timeout_s: float | None = None) -> AsyncIterator[Any]:
        """Go through the prompts, page by page."""
        return self._pages("prompts/list", "prompts", timeout_s)

    def tasks(self, *, timeout_s: float | None = None) -> AsyncIterator[Any]:
        """Go through the tasks, page by page."""
        return self._pages("tasks/list", "tasks", timeout_s)

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        progress: Callable[[Any], Any] | None = None,
        timeout_s: float | None = None,
    ) -> Any:
        """Call a tool. An error of the tool itself is a result whose `is_error` is true."""
        frame = await self._frame("tools/call", _named(tool, arguments), timeout_s, progress)
        if frame["result"].get("resultType") == "task":
            return await ToolTask(self, frame["result"]).result()
        return self.read_result("tools/call", frame)

    async def start(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        ttl_ms: int | None = None,
        timeout_s: float | None = None,
    ) -> ToolTask:
        """Call a tool as a task, and give the task: to ask where it stands, wait for its result, or cancel it.

        Args:
            tool: Which.
            arguments: For it.
            ttl_ms: For how long the server should keep the task; without a handshake it decides alone.
            timeout_s: How long the server may take to begin.
        """
        params = _named(tool, arguments)
        if self.by_requests is not None:
            frame = await self._frame("tools/call", params, timeout_s)
            result = frame["result"]
            return ToolTask(self, result, None if result.get("resultType") == "task" else result)
        if "tasks/get" not in self._methods:
            raise LocalProtocolError(METHOD_NOT_FOUND, f"revision {self.revision} has no tasks")
        if not self.declares("tasks.requests.tools.call"):
            raise CapabilityNotSupported("tools/call", "tasks.requests.tools.call")
        params["task"] = {} if ttl_ms is None else {"ttl": ttl_ms}
        frame = await self._frame("tools/call", params, timeout_s)
        self.validate(CREATION, frame)
        return ToolTask(self, frame["result"]["task"])

    async def read(
        self, uri: str, *, progress: Callable[[Any], Any] | None = None, timeout_s: float | None = None
    ) -> Any:
        """Read a resource."""
        return await self._ask("resources/read", {"uri": uri}, timeout_s, progress)

    async def prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        progress: Callable[[Any], Any] | None = None,
        timeout_s: float | None = None,
    ) -> Any:
        """Get a prompt."""
        return await self._ask("prompts/get", _named(name, arguments), timeout_s, progress)

    async def complete_prompt(self, prompt: str, argument: str, value: str, *, timeout_s: float | None = None) -> Any:
        """Ask how an argument of a prompt could go on."""
        return await self._complete({"type": "ref/prompt", "name": prompt}, argument, value, timeout_s)

    async def complete_template(self, uri: str, argument: str, value: str, *, timeout_s: float | None = None) -> Any:
        """Ask how an argument of a template of resources could go on."""
        return await self._complete({"type": "ref/resource", "uri": uri}, argument, value, timeout_s)

    async def set_log_level(self, level: str, *, timeout_s: float | None = None) -> None:
        """Say from which level on log messages are wanted."""
        if not self.declares("logging"):
            raise CapabilityNotSupported("logging/setLevel", "logging")
        await self._era.set_log_level(level, self.timeout_s if timeout_s is None else timeout_s)

    async def subscribe(self, uri: str, *, timeout_s: float | None = None) -> None:
        """Ask to be told when a resource changes."""
        await self._ask("resources/subscribe", {"uri": uri}, timeout_s)

    async def unsubscribe(self, uri: str, *, timeout_s: float | None = None) -> None:
        """Ask not to be told any more."""
        await self._ask("resources/unsubscribe", {"uri": uri}, timeout_s)

    async def ping(self, *, timeout_s: float | None = None) -> None:
        """Ask for a sign of life."""
        await self._ask("ping", {}, timeout_s)

    async def roots_changed(self) -> None:
        """Tell the server that the roots are not what they were."""
        self.check("notifications/roots/list_changed")
        self.session.notify("notifications/roots/list_changed", {})

    def listen(
        self, *uris: str, tools: bool = False, prompts: bool = False, resources: bool = False
    ) -> AbstractAsyncContextManager[AsyncIterator[Any], bool | None]:
        """Listen to what changes, as a context that gives an asynchronous iterator over the notifications.

        Args:
            uris: Resources whose contents are of interest.
            tools: Whether the list of tools is.
            prompts: Whether the list of prompts is.
            resources: Whether the list of resources is.

        Raises:
            CapabilityNotSupported: The server did not declare that it tells of such changes.
        """
        wanted = {"tools": tools, "prompts": prompts, "resources": resources}
        return listen(self, uris, [kind for kind, is_wanted in wanted.items() if is_wanted])

    def notifications(self) -> AsyncIterator[Any]:
        """Go through the notifications that come from now on, to the end of the session."""
        return self.announcements.read()

    # How a request is made

    def check(self, method: str) -> None:
        """Make sure that the server declared what a request needs.

        Raises:
            CapabilityNotSupported: It did not.
            LocalProtocolError: The revision has no such request.
        """
        if method.startswith("tasks/") and self.by_requests is not None:
            check_extension(method, self._capabilities)
            return
        if method not in self._methods:
            raise LocalProtocolError(METHOD_NOT_FOUND, f"revision {self.revision} has no {method}")
        needed = self._methods[method].capability
        if needed is not None and not self.declares(needed):
            raise CapabilityNotSupported(method, needed)

    def called(self, method: str) -> str:
        """Return the name that the revision has for a method; extensions have no other."""
        return self._methods[method].name if method in self._methods else method

    def declares(self, capability: str) -> bool:
        """Whether the server declared something, such as `resources.subscribe`."""
        return declares(self._capabilities, capability)

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Make a request; give the frame of its result."""
        return await self._frame(method, params, None)

    async def _complete(self, ref: dict[str, Any], argument: str, value: str, timeout_s: float | None) -> Any:
        params = {"ref": ref, "argument": {"name": argument, "value": value}}
        return await self._ask("completion/complete", params, timeout_s)

    async def _ask(
        self,
        method: str,
        params: dict[str, Any],
        timeout_s: float | None,
        progress: Callable[[Any], Any] | None = None,
    ) -> Any:
        return self.read_result(method, await self._frame(method, params, timeout_s, progress))

    async def _frame(
        self,
        method: str,
        params: dict[str, Any],
        timeout_s: float | None,
        progress: Callable[[Any], Any] | None = None,
    ) -> dict[str, Any]:
        self.check(method)
        tell = None if progress is None else lambda body: self.announcements.tell(progress, body, "params")
        return await self._era.ask(
            self.called(method), params, self.timeout_s if timeout_s is None else timeout_s, tell
        )

    async def _pages(self, method: str, member: str, timeout_s: float | None) -> AsyncIterator[Any]:
        params: dict[str, Any] = {}
        paging = Paging()
        left_s = self.timeout_s if timeout_s is None else timeout_s
        while True:
            began_s = time.monotonic()
            frame = await self._frame(method, params, left_s)
            if left_s is not None:  # for all pages together, without what the program does between them
                left_s = max(0.0, round(left_s + began_s - time.monotonic(), 3))
            for one in getattr(self.read_result(method, frame), member):
                yield one
            cursor = paging.follow(frame["result"])
            if cursor is None:
                break
            params = {"cursor": cursor}
        if paging.cut:
            raise ValidationFailed(self.revision, "/result/nextCursor", "a list that ends", paging.cut)

    def read_result(self, method: str, frame: dict[str, Any]) -> Any:
        """Return the result of a request as a model.

        Raises:
            ValidationFailed: It is not valid; the error says where.
        """
        try:
            return self.validate(str(self._methods[method].result), frame)
        except ValidationFailed as error:
            found = dragoman_spec.violations(frame, self.revision, self.called(method), as_usual=True)
            raise next(iter(found), error) from None

    def validate(self, definition: str, frame: dict[str, Any]) -> Any:
        """Return a result as the model of a definition.

        Raises:
            ValidationFailed: It is not valid.
        """
        try:
            return dragoman_spec.adapter(self.revision, definition).validate_python(frame["result"])
        except ValueError:
            raise ValidationFailed(self.revision, "/result", f"a {definition}", "another result") from None

    @property
    def discarded(self) -> int:
        """How many notifications were discarded: unknown, not valid, or not read in time."""
        return self.announcements.discarded


def _named(name: str, arguments: Mapping[str, Any] | None) -> dict[str, Any]:
    return {"name": name} if arguments is None else {"name": name, "arguments": dict(arguments)}
