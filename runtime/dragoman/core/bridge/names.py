"""Names of 2026-07-28 that no table of `dragoman_spec` has: `_meta` keys, headers, fields, codes.

Lives here: constants. Must not: hold anything else. Called by the modules of the bridge.
"""

from __future__ import annotations

from typing import Final

META_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
META_CLIENT_INFO: Final = "io.modelcontextprotocol/clientInfo"
META_CLIENT_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
META_LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
META_SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
META_SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"
META_RELATED_TASK: Final = "io.modelcontextprotocol/related-task"

TASKS_EXTENSION: Final = "io.modelcontextprotocol/tasks"

LOG_LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""The levels of log messages, the most verbose one first."""

HEADER_MISMATCH: Final = -32020
MISSING_CLIENT_CAPABILITY: Final = -32021
UNSUPPORTED_VERSION: Final = -32022
URL_ELICITATION_REQUIRED: Final = -32042
RESOURCE_NOT_FOUND: Final = -32002
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
