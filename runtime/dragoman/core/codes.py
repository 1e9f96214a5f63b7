"""The error codes of JSON-RPC itself, which mean the same in every revision.

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
