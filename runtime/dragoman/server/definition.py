"""What a server is, whoever asks: its name, its revision, its handlers, and what follows from them.

Lives here: capabilities, derived from handlers and notifications. Must not: know sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import dragoman_spec
from dragoman_spec import HANDSHAKE_REVISIONS
from dragoman_spec.method import Method
from dragoman_spec.protocol import Facts

if TYPE_CHECKING:
    from dragoman.server.context import Context

RequestHandler = Callable[[Any, "Context"], Any]
"""Takes params and context; gives a result, a model or a dict, at once or as a coroutine."""


@dataclass(slots=True)
class ServerDefinition:
    """A server.

    Attributes:
        name: Of it.
        version: Of it.
        revision: That it speaks.
        about: What else it says of itself.
        instructions: For whoever uses it.
        notifies: The notifications that it sends on its own account.
        declares: Capabilities beside those that follow from handlers.
        parked_s: How long a question waits for its answer in a revision without server requests, in seconds.
        is_plain: Whether handlers take and give JSON as it is, so that no model is loaded.
        handlers: By method.
    """

    name: str
    version: str
    revision: str
    about: Mapping[str, Any]
    instructions: str | None
    notifies: Collection[str]
    declares: Mapping[str, Any]
    parked_s: float
    is_plain: bool
    handlers: dict[str, RequestHandler] = field(default_factory=dict)

    @property
    def facts(self) -> Facts:
        """What the revision has."""
        return dragoman_spec.facts(self.revision)

    @property
    def methods(self) -> Mapping[str, Method]:
        """The methods of the revision."""
        found: Mapping[str, Method] = dragoman_spec.load(self.revision).METHODS
        return found

    @property
    def info(self) -> dict[str, Any]:
        """How it names itself."""
        return {"name": self.name, "version": self.version, **self.about}

    @property
    def capabilities(self) -> dict[str, Any]:
        """What it declares."""
        found: dict[str, Any] = {}
        for method in (*self.handlers, *self.notifies):
            needed = self.methods[method].capability
            if needed is not None and needed in self.facts.server_capabilities:
                self._declare(found, needed)
        for name, value in self.declares.items():
            derived = found.get(name)
            found[name] = {**derived, **value} if isinstance(derived, dict) and isinstance(value, Mapping) else value
        return found

    def _declare(self, capabilities: dict[str, Any], path: str) -> None:
        first, *rest = path.split(".")
        inner = capabilities.setdefault(first, {})
        if rest:
            inner[rest[0]] = True if path in self.facts.server_flags else {}

    def add(self, method: str, handler: RequestHandler) -> None:
        """Let a function answer a request, or take a notification.

        Raises:
            ValueError: The revision has no such method that a client sends, or it has a handler already.
        """
        entry = self.methods.get(method)
        if entry is None or "client" not in entry.sender or method in self.facts.lifecycle.values():
            raise ValueError(f"{self.revision} has no method {method!r} that a server handles")
        if method in self.handlers:
            raise ValueError(f"{method} has a handler already")
        self.handlers[method] = handler

    def check(self, body: dict[str, Any], method: str | None = None) -> None:
        """Make sure that a message of a client is valid, or what answers a request of this method.

        Raises:
            ValidationFailed: It is not.
        """
        if not self.is_plain:
            dragoman_spec.validate(body, self.revision, method)

    def read_params(self, method: str, body: Mapping[str, Any]) -> Any:
        """Return params as a handler takes them: as a model, None where there are none; in plain JSON as an object."""
        if self.is_plain:
            return body.get("params") or {}
        params = self.methods[method].params
        if params is None or "params" not in body:
            return None
        return dragoman_spec.adapter(self.revision, params).validate_python(body["params"])

    def read_asked(self, method: str, result: dict[str, Any]) -> Any:
        """Return what answers a question of the server as a handler takes it."""
        if self.is_plain:
            return result
        entry = self.methods.get(method) or dragoman_spec.load(HANDSHAKE_REVISIONS[-1]).METHODS[method]
        assert entry.result is not None, "requests have results"
        return dragoman_spec.adapter(self.revision, entry.result).validate_python(result)

    def has_member(self, method: str, member: str) -> bool:
        """Whether the params of a method name this member in the revision; it is taken for granted in plain JSON."""
        if self.is_plain:
            return True
        params = self.methods[method].params
        assert params is not None, "it has a member of them"
        fields = getattr(dragoman_spec.load(self.revision), params).model_fields
        return any(member in (name, field.alias) for name, field in fields.items())

    def check_notice(self, method: str) -> None:
        """Make sure that a notification was announced.

        Raises:
            ValueError: It is not a notification of servers, or the server does not say that it sends it.
        """
        if method not in self.notifies:
            raise ValueError(f"the server does not say that it sends {method}: name it in `notifies`")
