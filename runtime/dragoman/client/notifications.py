"""What a server tells of its own accord, as the program gets it.

Lives here: readers, callbacks, and throwing away what is not valid. Must not: make requests (`client`).
"""

from __future__ import annotations

import inspect
import logging
from asyncio import Task, create_task
from collections import Counter, deque
from collections.abc import Callable, Coroutine
from typing import Any, Final
from weakref import WeakSet

import dragoman_spec
from dragoman.client import notices
from dragoman.client.notices import Notices, Takes, take_all
from dragoman.errors import ValidationFailed

logger = logging.getLogger("dragoman.client")

_AT_ONCE: Final = 100
"""How many callbacks of the program run at once; those behind them wait."""


class Announcements:
    """The notifications of one client.

    Args:
        revision: Whose models the program gets.
        on_notification: Called with each; what it returns is awaited if it can be.

    Attributes:
        discarded: How many were thrown away.
        subscribed: By how many streams of the program each resource is listened to.
    """

    def __init__(self, revision: str, on_notification: Callable[[Any], Any] | None) -> None:
        self.discarded = 0
        self.subscribed: Counter[str] = Counter()
        self._is_over = False
        self._revision = revision
        self._methods = dragoman_spec.load(revision).METHODS
        self._on_notification = on_notification
        self._readers: WeakSet[Notices] = WeakSet()  # what nobody reads any more gets nothing
        self._running: set[Task[Any]] = set()
        self._waiting: deque[Coroutine[Any, Any, Any]] = deque()

    def read(self, takes: Takes = take_all) -> Notices:
        """Return what goes through the notifications from here on, or those of them that it takes."""
        reader = Notices(self.discard, takes)
        if self._is_over:
            reader.end()
        self._readers.add(reader)
        return reader

    def forget(self, reader: Notices) -> None:
        """End what goes through notifications."""
        self._readers.discard(reader)
        reader.end()

    def deliver(self, body: dict[str, Any]) -> None:
        """Hand a notification to those who want it."""
        notice = self._model(body, "frame")
        if notice is None:
            return
        if self._on_notification is not None:
            self._run(self._on_notification, notice)
        subscription = self._find_subscription(body)
        for reader in self._readers:
            if reader.takes(body, subscription):
                reader.put(notice)

    def end(self) -> None:
        """End what goes on as long as the session."""
        self._is_over = True
        for reader in self._readers:
            reader.end()
        for task in self._running:
            task.cancel()
        while self._waiting:
            self._waiting.popleft().close()

    def _find_subscription(self, body: dict[str, Any]) -> object:
        """Return the stream that a notification names."""
        meta = (body.get("params") or {}).get("_meta")
        name = dragoman_spec.facts(self._revision).notification_meta.get("subscriptionId")
        return meta.get(name) if name is not None and isinstance(meta, dict) else None

    def discard(self, what: str, reason: str) -> None:
        """Throw something away that cannot be used: said, and counted."""
        self.discarded += 1
        logger.warning("discarded %s from the server: %s", what, reason)

    def tell(self, callback: Callable[[Any], Any], body: dict[str, Any], part: str) -> None:
        """Call a function of the program with a notification, or with its params."""
        model = self._model(body, part)
        if model is not None:
            self._run(callback, model)

    def _model(self, body: dict[str, Any], part: str) -> Any:
        """Read a notification, or its params; None where it was discarded."""
        try:
            dragoman_spec.validate(body, self._revision)
        except ValidationFailed as error:
            self.discard(str(body["method"]), str(error))
            return None
        entry = self._methods[body["method"]]
        definition, value = (entry.frame, body) if part == "frame" else (entry.params, body["params"])
        return dragoman_spec.adapter(self._revision, definition).validate_python(value)

    def _run(self, callback: Callable[[Any], Any], model: Any) -> None:
        try:
            returned = callback(model)
        except Exception:
            logger.exception("a callback of the program failed")
            return
        if not inspect.iscoroutine(returned):
            return
        self._waiting.append(returned)
        if len(self._waiting) > notices.LIMIT:
            self._waiting.popleft().close()
            self.discard("a notification", f"{notices.LIMIT} wait already for callbacks of the program")
        self._begin()

    def _begin(self) -> None:
        """Run callbacks that wait, in the order in which they were called."""
        while self._waiting and len(self._running) < _AT_ONCE and not self._is_over:
            task = create_task(self._waiting.popleft())
            self._running.add(task)
            task.add_done_callback(self._ran)

    def _ran(self, task: Task[Any]) -> None:
        self._running.discard(task)
        self._begin()
        if not task.cancelled() and task.exception() is not None:
            logger.error("a callback of the program failed", exc_info=task.exception())
