"""The errors of Dragoman: those of `dragoman_spec`, re-exported, and those only a running session can meet.

Nothing is raised here and nothing is formatted elsewhere: fields come first, the text is built from them.

    Error
    ├─ ProtocolError            .code .data (the JSON-RPC error to answer with)
    │  ├─ LocalProtocolError    our caller asked for what revision or state forbids
    │  │  └─ CapabilityNotSupported  .method .capability
    │  └─ RemoteProtocolError   the peer sent it
    ├─ McpError                 .code .message .data (the error that a peer answered, or is to be answered)
    ├─ RequestTimeout           .method .timeout_s .servers
    ├─ ConnectionClosed         .reason .data
    ├─ ConfigError              .path .problems
    ├─ UnsupportedRevision      .requested .supported
    ├─ InitializationTimeout    .waiting_for .timeout_s
    ├─ TranslationError         .method .source .target .pointer
    │  ├─ MissingRequiredField  .field
    │  └─ Untranslatable        .reason .code .data
    ├─ ValidationFailed         .revision .pointer
    ├─ MethodNeeded             .revision
    └─ TransportError           .peer .reason
       ├─ TransportClosed
       ├─ SignInFailed
       └─ FrameTooLarge         .limit_bytes
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from dragoman_spec.errors import (
    Error,
    MethodNeeded,
    MissingRequiredField,
    TranslationError,
    UnsupportedRevision,
    Untranslatable,
    ValidationFailed,
)
from dragoman_spec.record import record

__all__ = [
    "CapabilityNotSupported",
    "ConfigError",
    "ConfigProblem",
    "ConnectionClosed",
    "Error",
    "FrameTooLarge",
    "InitializationTimeout",
    "LocalProtocolError",
    "McpError",
    "MethodNeeded",
    "MissingRequiredField",
    "ProtocolError",
    "RemoteProtocolError",
    "RequestTimeout",
    "SignInFailed",
    "TranslationError",
    "TransportClosed",
    "TransportError",
    "UnsupportedRevision",
    "Untranslatable",
    "ValidationFailed",
]


class ProtocolError(Error):
    """Something the protocol forbids, with the JSON-RPC error that says so.

    Args:
        code: The JSON-RPC error code to answer with.
        message: What was expected and what came, for a person.
        data: The `data` member of the answer, if it has one.
    """

    def __init__(self, code: int, message: str, data: dict[str, Any] | None = None) -> None:
        super().__init__(code, message, data)
        self.code = code
        self.message = message
        self.data = data

    def __str__(self) -> str:
        return f"{self.message} ({self.code})"


class LocalProtocolError(ProtocolError):
    """Our own caller asked for what the revision or the state of the session forbids."""


class CapabilityNotSupported(LocalProtocolError):
    """The server did not declare what a request needs, so the request was not sent.

    Args:
        method: The request.
        capability: What it needs, `resources.subscribe`.
    """

    def __init__(self, method: str, capability: str) -> None:
        super().__init__(-32601, f"{method} needs the capability {capability}, which the server did not declare")
        self.args = (method, capability)
        self.method = method
        self.capability = capability


class RemoteProtocolError(ProtocolError):
    """A peer sent what the protocol forbids."""


class McpError(Error):
    """An error that a peer answered; a handler raises it to answer with one.

    Args:
        code: The JSON-RPC error code.
        message: What went wrong, for a person.
        data: The `data` member, if there is one.

    Raises:
        TypeError: The data cannot be JSON.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        json.dumps(data)
        super().__init__(code, message, data)
        self.code = code
        self.message = message
        self.data = data

    def __str__(self) -> str:
        return f"{self.message} ({self.code})"

    @property
    def name(self) -> str:
        """What the code is called in any revision, such as `METHOD_NOT_FOUND`; `SERVER_ERROR` for those that each
        implementation defines (-32099 to -32000), and empty for others."""
        import dragoman_spec

        for revision in reversed(dragoman_spec.REVISIONS):
            found = dragoman_spec.load(revision).ERROR_CODES.get(self.code)
            if found is not None:
                return str(found)
        return "SERVER_ERROR" if -32099 <= self.code <= -32000 else ""


class RequestTimeout(Error, TimeoutError):
    """A request was not answered in time, and nothing was heard of its progress.

    Args:
        method: The request.
        timeout_s: How long it was waited for, in seconds.
        servers: Those of a whole configuration that have not answered what all of them were asked.
    """

    def __init__(self, method: str, timeout_s: float, servers: Sequence[str] = ()) -> None:
        super().__init__(method, timeout_s, servers)
        self.method = method
        self.timeout_s = timeout_s
        self.servers = tuple(servers)

    def __str__(self) -> str:
        silent = f", because nothing came from {', '.join(self.servers)}" if self.servers else ""
        return f"{self.method} was not answered within {self.timeout_s:g} s{silent}"


class ConnectionClosed(Error):
    """The session with the server is over, or could not be opened.

    Args:
        reason: Why, in words.
        data: What else is known, as the `data` of the error that says so.
    """

    def __init__(self, reason: str, data: dict[str, Any] | None = None) -> None:
        super().__init__(reason, data)
        self.reason = reason
        self.data = data

    def __str__(self) -> str:
        return self.reason


@record
class ConfigProblem:
    """Something in a configuration file that cannot be right.

    Attributes:
        line: Where, counted from 1; 0 where it is about the file as a whole.
        column: The same within the line, in characters.
        problem: What was expected and what is there; never the value of a variable or header.
        remedy: What to do about it.
    """

    line: int
    column: int
    problem: str
    remedy: str

    def __str__(self) -> str:
        place = f"line {self.line}, column {self.column}: " if self.line else ""
        return f"{place}{self.problem}; {self.remedy}"


class ConfigError(Error):
    """A configuration file cannot be used.

    Args:
        path: The file.
        problems: What is wrong with it, in the order of the file.
    """

    def __init__(self, path: str, problems: Sequence[ConfigProblem]) -> None:
        super().__init__(path, tuple(problems))
        self.path = path
        self.problems = tuple(problems)

    def __str__(self) -> str:
        return "\n".join(f"{self.path}: {problem}" for problem in self.problems)


class InitializationTimeout(Error):
    """The handshake did not end in time.

    Args:
        waiting_for: What had not come, in words.
        timeout_s: How long it was waited for, in seconds.
    """

    def __init__(self, waiting_for: str, timeout_s: float) -> None:
        super().__init__(waiting_for, timeout_s)
        self.waiting_for = waiting_for
        self.timeout_s = timeout_s

    def __str__(self) -> str:
        return f"initialisation timed out after {self.timeout_s:g} s waiting for {self.waiting_for}"


class TransportError(Error):
    """Bytes could not be moved to or from a peer.

    Args:
        peer: Who is at the other end, as a person would name it.
        reason: What went wrong, in words.

    Attributes:
        was_asked: Whether a person was asked to sign in, in vain: nobody is to be asked again for the same request.
    """

    was_asked = False

    def __init__(self, peer: str, reason: str) -> None:
        super().__init__(peer, reason)
        self.peer = peer
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.peer}: {self.reason}"

    @property
    def unnamed(self) -> str:
        """The same for somebody who is not to know what the server's command is, or where it is."""
        return f"the server: {self.reason}"


class TransportClosed(TransportError):
    """The peer is gone, or could not be reached at all."""


class SignInFailed(TransportError):
    """A server wants a token, and there is none for it."""


class FrameTooLarge(TransportError):
    """A peer sent a line longer than the limit; it was read and dropped, never kept.

    Args:
        peer: Who sent it.
        limit_bytes: The longest line accepted.
    """

    def __init__(self, peer: str, limit_bytes: int) -> None:
        super().__init__(peer, f"a frame is larger than the limit of {limit_bytes} bytes")
        self.limit_bytes = limit_bytes
