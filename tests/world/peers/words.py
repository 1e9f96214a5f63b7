"""What peers say: frames of every revision, and the marks in them by which rules know whose they are.

Each call of a client has a secret of its own: `secret-c0-7` is that of the seventh call of client `c0`. All that is
said about the call has it in its text, and nobody but that client and the server may hear it. Each question of a server
has a number of its own beside: `nonce-s0.1-3`, the third question of the first run of server `s0`.
"""

from __future__ import annotations

import json
import random
import re
from typing import Any, Final

from dragoman_spec import HANDSHAKE_REVISIONS, REVISIONS, facts
from tests.world.record import Body

PER_REQUEST: Final = REVISIONS[-1]
KNOW: Final = tuple(revision for revision in HANDSHAKE_REVISIONS if facts(revision).batches)
"""The revisions with arrays."""
META: Final = "io.modelcontextprotocol/"
TASKS: Final = f"{META}tasks"
"""The extension of the newest revision."""
RELATED: Final = f"{META}related-task"
"""Where 2025-11-25 says which task a frame is about."""
KEPT: Final[Body] = {"ttlMs": 0, "cacheScope": "private"}
KEEPING: Final = frozenset({"server/discover", "resources/read"})
"""Methods whose results say in the newest revision how long they may be kept; lists, too."""

_SECRET: Final = re.compile(r"secret-(c\d+)-(\d+)")
_NONCE: Final = re.compile(r"nonce-(s\d+\.\d+)-(\d+)")


def secret(client: str, number: int) -> str:
    return f"secret-{client}-{number}"


def nonce(server: str, number: int) -> str:
    return f"nonce-{server}-{number}"


def secrets_in(frame: Any) -> list[tuple[str, str]]:
    """Give the secrets in a frame: whose, and of which call."""
    return list(dict.fromkeys(_SECRET.findall(frame if isinstance(frame, str) else json.dumps(frame))))


def nonces_in(frame: Any) -> list[tuple[str, str]]:
    """Give the numbers of questions in a frame: whose, and which."""
    return list(dict.fromkeys(_NONCE.findall(frame if isinstance(frame, str) else json.dumps(frame))))


def request(key: Any, method: str, params: Body | None = None) -> Body:
    return {"jsonrpc": "2.0", "id": key, "method": method, **({"params": params} if params else {})}


def notification(method: str, params: Body | None = None) -> Body:
    return {"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})}


def result(key: Any, value: Body) -> Body:
    return {"jsonrpc": "2.0", "id": key, "result": value}


def error(key: Any, code: int, message: str) -> Body:
    return {"jsonrpc": "2.0", "id": key, "error": {"code": code, "message": message}}


def key_of(key: Any) -> tuple[str, Any]:
    """Tell ids apart as JSON does: 3 is not "3"."""
    return type(key).__name__, key


def question(kind: str, text: str) -> tuple[str, Body]:
    """Give the method and params of a question to a client."""
    match kind:
        case "sampling":
            said = {"role": "user", "content": {"type": "text", "text": text}}
            return "sampling/createMessage", {"maxTokens": 10, "messages": [said]}
        case "elicitation":
            fields = {"type": "object", "properties": {"answer": {"type": "string"}}}
            return "elicitation/create", {"message": text, "requestedSchema": fields}
        case "roots":
            return "roots/list", {}
    return "ping", {}


def answer(method: str, text: str, who: str) -> Body:
    """Give a client's result to a question with a text."""
    match method:
        case "sampling/createMessage":
            return {"role": "assistant", "model": who, "content": {"type": "text", "text": f"{who} to {text}"}}
        case "elicitation/create":
            return {"action": "accept", "content": {"answer": f"{who} to {text}"}}
        case "roots/list":
            return {"roots": [{"uri": f"file:///{who}"}]}
    return {}


def text_of(method: str, params: Body) -> str:
    """Give the text of a question; questions about roots have none."""
    match method:
        case "sampling/createMessage":
            return str(params["messages"][0]["content"]["text"])
        case "elicitation/create":
            return str(params["message"])
    return ""


def chance_of(*what: object) -> random.Random:
    """Give random numbers that depend on this alone, so that they stay what they are when a plan is made smaller."""
    return random.Random(" ".join(map(str, what)))
