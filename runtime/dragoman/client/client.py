"""The calls of a client: one method for each thing that a program can ask of a server.

Lives here: params, capability checks, and results as models. Must not: wait (`session`), or say which models: those of
the revision that the client was opened with. Type checkers see `dragoman_spec.clients` in the place of this class,
which has the same methods with the models of each revision.
"""

from __future__ import annotations

import inspect
import logging
from asyncio import Task, create_task
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final

import dragoman_spec
from dragoman.client.handlers import Handlers
from dragoman.client.notices import Notices
from dragoman.client.session import Session
from dragoman.errors import CapabilityNotSupported, LocalProtocolError, ValidationFailed

logger = logging.getLogger("dragoman.client")

METHOD_NOT_FOUND: Final = -32601


class Client:
    """A session with one server.

    Args:
        revision: Whose models go in and come out.
        handlers: What the server may ask.
        timeout_s: How long a request may go without an answer or progress, where its call does not say.
        on_notification: Called with each notification, as a model; what it returns is awaited if it can be.

    Attributes:
        revision: Whose models go in and come out.
        server_revision: What the server speaks.
        initialized: What the server answered to `initialize`.
        discarded: How many notifications were discarded: unknown, not valid, or not read in time.
    """

    def __init__(
        self,
        revision: str,
        handlers: Handlers,
        timeout_s: float | None = None,
        on_notification: Callable[[Any], Any] | None = None,
    ) -> None:
        self.revision = revision
        self.server_revision = revision
        self.initialized: Any = None
        self.discarded = 0
        self.session = Session(self)
        self._methods = dragoman_spec.load(revision).METHODS
        self._handlers = handlers
        self._timeout_s = timeout_s
        self._on_notification = on_notification
        self._readers: list[Notices] = []
        self._running: set[Task[Any]] = set()
        self._capabilities: dict[str, Any] = {}

    async def open(self, params: dict[str, Any]) -> None:
        """Shake hands.

        Args:
            params: Of `initialize`.
        """
        frame = await self.session.ask("initialize", params, can_cancel=False)
        self.initialized = self._read("initialize", frame)
        self._capabilities = frame["result"]["capabilities"]

    def start(self, server_revision: str) -> None:
        """Say that the session is open."""
        self.server_revision = server_revision
        self.session.notify("notifications/initialized", {})

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

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        progress: Callable[[Any], Any] | None = None,
        timeout_s: float | None = None,
    ) -> Any:
        """Call a tool. An error of the tool itself is a result whose `is_error` is true."""
        params = {"name": tool} if arguments is None else {"name": tool, "arguments": dict(arguments)}
        return await self._ask("tools/call", params, timeout_s, progress)

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
        params = {"name": name} if arguments is None else {"name": name, "arguments": dict(arguments)}
        return await self._ask("prompts/get", params, timeout_s, progress)

    async def complete_prompt(self, prompt: str, argument: str, value: str, *, timeout_s: float | None = None) -> Any:
        """Ask how an argument of a prompt could go on."""
        return await self._complete({"type": "ref/prompt", "name": prompt}, argument, value, timeout_s)

    async def complete_template(self, uri: str, argument: str, value: str, *, timeout_s: float | None = None) -> Any:
        """Ask how an argument of a template of resources could go on."""
        return await self._complete({"type": "ref/resource", "uri": uri}, argument, value, timeout_s)

    async def set_log_level(self, level: str, *, timeout_s: float | None = None) -> None:
        """Say from which level on log messages are wanted."""
        await self._ask("logging/setLevel", {"level": level}, timeout_s)

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
        self.session.notify("notifications/roots/list_changed", {})

    def notifications(self) -> AsyncIterator[Any]:
        """Go through the notifications that come from now on, to the end of the session."""
        reader = Notices(self.discard)
        if self.session.is_over():
            reader.end()
        self._readers.append(reader)
        return reader

    # How a request is made

    def check(self, method: str) -> None:
        """Make sure that the server declared what a request needs.

        Raises:
            CapabilityNotSupported: It did not.
            LocalProtocolError: The revision has no such request.
        """
        if method not in self._methods:
            raise LocalProtocolError(METHOD_NOT_FOUND, f"revision {self.revision} has no {method}")
        needed = self._methods[method].capability
        if needed is None:
            return
        found: Any = self._capabilities
        for part in needed.split("."):
            found = found.get(part) if isinstance(found, dict) else None
            if found is None or found is False:
                raise CapabilityNotSupported(method, needed)

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
        self.check(method)
        tell = None if progress is None else lambda body: self._tell(progress, body, "params")
        patience_s = self._timeout_s if timeout_s is None else timeout_s
        frame = await self.session.ask(method, params, timeout_s=patience_s, progress=tell)
        return self._read(method, frame)

    async def _pages(self, method: str, member: str, timeout_s: float | None) -> AsyncIterator[Any]:
        params: dict[str, Any] = {}
        seen: set[str] = set()
        while True:
            page = await self._ask(method, params, timeout_s)
            for one in getattr(page, member):
                yield one
            cursor = page.next_cursor
            if cursor is None:
                return
            if cursor in seen:
                raise ValidationFailed(self.revision, "/result/nextCursor", "a new cursor", "one that was used already")
            seen.add(cursor)
            params = {"cursor": cursor}

    def _read(self, method: str, frame: dict[str, Any]) -> Any:
        definition = self._methods[method].result
        try:
            return dragoman_spec.adapter(self.revision, definition).validate_python(frame["result"])
        except ValueError:
            dragoman_spec.validate(frame, self.revision, method)
            raise ValidationFailed(self.revision, "/result", f"a {definition}", "another result") from None

    # What the server says of itself

    async def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Let a handler answer a request of the server."""
        return await self._handlers.answer(method, params)

    def take_notice(self, body: dict[str, Any]) -> None:
        """Hand a notification to those who want it."""
        notice = self._model(body, "frame")
        if notice is None:
            return
        if self._on_notification is not None:
            self._run(self._on_notification, notice)
        for reader in self._readers:
            reader.put(notice)

    def take_end(self) -> None:
        """End what goes on as long as the session."""
        for reader in self._readers:
            reader.end()
        for task in self._running:
            task.cancel()

    def discard(self, what: str, reason: str) -> None:
        """Throw something away that cannot be used: said, and counted."""
        self.discarded += 1
        logger.warning("discarded %s from the server: %s", what, reason)

    def _tell(self, callback: Callable[[Any], Any], body: dict[str, Any], part: str) -> None:
        model = self._model(body, part)
        if model is not None:
            self._run(callback, model)

    def _model(self, body: dict[str, Any], part: str) -> Any:
        """Read a notification, or its params; None where it was discarded."""
        try:
            dragoman_spec.validate(body, self.revision)
        except ValidationFailed as error:
            self.discard(str(body["method"]), str(error))
            return None
        entry = self._methods[body["method"]]
        definition, value = (entry.frame, body) if part == "frame" else (entry.params, body["params"])
        return dragoman_spec.adapter(self.revision, definition).validate_python(value)

    def _run(self, callback: Callable[[Any], Any], model: Any) -> None:
        try:
            returned = callback(model)
        except Exception:
            logger.exception("a callback of the program failed")
            return
        if inspect.iscoroutine(returned):
            task = create_task(returned)
            self._running.add(task)
            task.add_done_callback(self._ran)

    def _ran(self, task: Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.error("a callback of the program failed", exc_info=task.exception())
