"""The error codes of JSON-RPC itself, which mean the same in every revision, and the one that SDKs have agreed on.

Codes that MCP adds are in the tables of `dragoman_spec`.
"""

from __future__ import annotations

from typing import Final

PARSE_ERROR: Final = -32700
"""The line is not JSON."""

INVALID_REQUEST: Final = -32600
"""It is JSON, but not a request."""

METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603

ASKED_IN_VAIN: Final = "askedInVain"
"""In the data of an error: a person was asked to sign in because of the request, and nobody has."""

CONNECTION_CLOSED: Final = -32000
"""The implementation-defined code that MCP's SDKs use for a connection that went away."""
