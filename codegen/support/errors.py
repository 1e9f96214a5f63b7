"""The errors of `dragoman_spec`. `dragoman.errors` re-exports them and adds the runtime's; the tree has one root.

    Error
    ├─ UnsupportedRevision      .requested .supported
    ├─ ValidationFailed         .revision .pointer .expected .found
    ├─ MethodNeeded             .revision
    └─ TranslationError         .method .source .target .pointer .expected .found
       ├─ MissingRequiredField  .field
       └─ Untranslatable        .reason .code .data

Fields come first; the text is built from them. Nothing here imports pydantic.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ._json import NOT_JSON, not_json, pointer_to


class Error(Exception):
    """Root of everything that Dragoman raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        # As exceptions do it, but not through constructors, which take other arguments than `args`.
        return _restored, (type(self), self.args), vars(self)


def _restored(kind: type[Error], args: tuple[Any, ...]) -> Error:
    return kind.__new__(kind, *args)


class UnsupportedRevision(Error):
    """A revision was asked for that is not among those at hand.

    Args:
        requested: The revision asked for, as it was given.
        supported: Those at hand, oldest first.
    """

    def __init__(self, requested: object, supported: Iterable[str]) -> None:
        super().__init__(requested, supported)
        self.requested = requested
        self.supported = tuple(supported)

    def __str__(self) -> str:
        return f"revision {self.requested!r} is not supported; supported: {', '.join(self.supported)}"


class ValidationFailed(Error):
    """A frame is not valid in a revision.

    Args:
        revision: The revision it was held against.
        pointer: JSON pointer (RFC 6901) into the frame, where it went wrong.
        expected: What the schema asks for there.
        found: What stood there, in words.
    """

    def __init__(self, revision: str, pointer: str, expected: str, found: str) -> None:
        super().__init__(revision, pointer, expected, found)
        self.revision = revision
        self.pointer = pointer
        self.expected = expected
        self.found = found

    def __str__(self) -> str:
        return f"not valid in {self.revision} at {self.pointer or '/'}: expected {self.expected}, found {self.found}"


class MethodNeeded(Error):
    """A result was to be held against a revision, or converted to it, and nobody said which method it answers.

    Its envelope is right; what is inside depends on the method, for every result is an open object.

    Args:
        revision: The revision it was to be held against, or converted to.
    """

    def __init__(self, revision: str) -> None:
        super().__init__(revision)
        self.revision = revision

    def __str__(self) -> str:
        return (
            f"what a result has to be in {self.revision} depends on the request that it answers: pass its method, "
            'as in validate(frame, revision, method="tools/call"), and likewise to convert'
        )


class TranslationError(Error):
    """A frame could not be translated, because something in it is not what its revision says.

    Args:
        method: The method of the frame, or the one its response answers.
        source: Revision of the frame.
        target: Revision asked for.
        pointer: JSON pointer (RFC 6901) into the frame.
        expected: What should stand there.
        found: What stands there, in words.
    """

    code = -32602
    """The JSON-RPC code to answer with."""

    def __init__(
        self,
        pointer: str = "",
        expected: str = "",
        found: str = "",
        *,
        method: str | None = None,
        source: str | None = None,
        target: str | None = None,
    ) -> None:
        super().__init__(pointer, expected, found)
        self.pointer = pointer
        self.expected = expected
        self.found = found
        self.method = method
        self.source = source
        self.target = target

    def _what(self) -> str:
        return f"at {self.pointer or '/'}: expected {self.expected}, found {self.found}"

    def __str__(self) -> str:
        frame = self.method or "frame"
        way = f" from {self.source} to {self.target}" if self.source else ""
        return f"cannot translate {frame}{way} {self._what()}"

    @property
    def data(self) -> dict[str, Any]:
        """The `data` member of the JSON-RPC error to answer with."""
        data = {
            "method": self.method,
            "source": self.source,
            "target": self.target,
            "pointer": self.pointer,
            "expected": self.expected,
            "found": self.found,
        }
        return {key: value for key, value in data.items() if value is not None}


class MissingRequiredField(TranslationError):
    """A field is absent that the source revision requires and the translation needs."""

    def __init__(self, pointer: str, field: str, **where: str | None) -> None:
        super().__init__(pointer, f"an object with {field!r}", f"no {field!r}", **where)
        self.field = field

    def _what(self) -> str:
        return f"at {self.pointer or '/'}: the required field {self.field!r} is missing"


class Untranslatable(TranslationError):
    """The frame has no counterpart in the target revision, and the ruling is to refuse.

    Args:
        reason: Why, in a sentence that can be shown to a person.
        code: The JSON-RPC error code to answer the sender with.
        extra: More members for the `data` of that answer.
    """

    def __init__(
        self,
        reason: str,
        *,
        pointer: str = "",
        code: int = -32601,
        extra: dict[str, Any] | None = None,
        method: str | None = None,
        source: str | None = None,
        target: str | None = None,
    ) -> None:
        super().__init__(pointer, method=method, source=source, target=target)
        self.reason = reason
        self.code = code
        self.extra = extra or {}

    def _what(self) -> str:
        return f"at {self.pointer}: {self.reason}" if self.pointer else f": {self.reason}"

    def __str__(self) -> str:
        frame = self.method or "frame"
        way = f" from {self.source} to {self.target}" if self.source else ""
        return f"cannot translate {frame}{way}{self._what() if not self.pointer else ' ' + self._what()}"

    @property
    def data(self) -> dict[str, Any]:
        """The `data` member of the JSON-RPC error to answer with."""
        data: dict[str, Any] = {
            "method": self.method,
            "source": self.source,
            "target": self.target,
            "pointer": self.pointer or None,
            "reason": self.reason,
            **self.extra,
        }
        return {key: value for key, value in data.items() if value is not None}


def blamed(error: Exception, value: Any, method: str | None, source: str, target: str) -> Exception:
    """What to raise when a step has failed with an error of Python's: that the value is not JSON, if it is to blame."""
    where = {"method": method, "source": source, "target": target}
    if (wrong := not_json(value)) is not None:
        path, kind = wrong
        expected, found = NOT_JSON[kind]
        return TranslationError(pointer_to(path), expected, found, **where)
    if isinstance(error, RecursionError):
        return TranslationError("", "values nested less deeply", "too many levels", **where)
    return error
