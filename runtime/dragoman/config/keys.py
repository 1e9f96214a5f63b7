"""Which keys may stand in a configuration file: data only.

Lives here: tables that `reading` looks keys up in, and that `docs/configuration.md` is made from. Must not: read
anything. A key that no table names is ignored, with a warning if it looks like a slip; in our own object it is an
error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Wrapper:
    """Where in a file the servers stand.

    Attributes:
        path: The names on the way there.
        clients: Who writes it so.
    """

    path: tuple[str, ...]
    clients: str


WRAPPERS: Final = (
    Wrapper(
        ("mcpServers",),
        "Claude Desktop, Claude Code, Cursor, Windsurf, Cline, Roo Code, Gemini CLI, LM Studio, Continue "
        "(`config.yaml`, as a list) and most others",
    ),
    Wrapper(("servers",), "VS Code, `.vscode/mcp.json`"),
    Wrapper(("mcp", "servers"), "VS Code, `settings.json`"),
    Wrapper(("context_servers",), "Zed"),
    Wrapper(("amp.mcpServers",), "Amp"),
    Wrapper(("mcp_servers",), "Codex, `config.toml`"),
    Wrapper(("mcp",), "opencode"),
)
"""The first one that has something in it counts; `mcp` beside another one is something else (Gemini CLI, VS Code)."""


@dataclass(frozen=True, slots=True)
class ServerKey:
    """A key of one server, as clients write it.

    Attributes:
        name: The key.
        kind: What its value is.
        about: What it says.
        also: Other names for the same.
    """

    name: str
    kind: str
    about: str
    also: tuple[str, ...] = ()


SERVER_KEYS: Final = (
    ServerKey(
        "command", "string, or array with the arguments", "The program that is the server; it is started as a child."
    ),
    ServerKey("args", "array of strings", "Its arguments, each a string of its own."),
    ServerKey("env", "object of strings", "Variables that it finds in its environment.", ("environment",)),
    ServerKey("envFile", "string", "A file of lines `NAME=value` with more of them; `env` has precedence."),
    ServerKey("env_vars", "array of strings", "Variables of ours that it finds, too (Codex)."),
    ServerKey("cwd", "string", "The directory it runs in; relative to the file."),
    ServerKey("url", "string", "Where a server on the network is: http, https, ws or wss.", ("serverUrl", "httpUrl")),
    ServerKey("headers", "object of strings", "HTTP headers to send along with each request to it.", ("http_headers",)),
    ServerKey("env_http_headers", "object of strings", "The same, where each value is the name of a variable (Codex)."),
    ServerKey("bearer_token_env_var", "string", "The variable that holds its bearer token (Codex)."),
    ServerKey("requestOptions", "object", "Has `headers` in it, and nothing else that counts (Continue)."),
    ServerKey(
        "type",
        "`stdio`, `http`, `streamable-http`, `sse` or `ws`",
        "Which transport; found out if absent.",
        ("transport", "transportType"),
    ),
    ServerKey("disabled", "true or false", "Whether it is left out."),
    ServerKey("enabled", "true or false", "The same, the other way round."),
    ServerKey("includeTools", "array of strings", "The only tools of it that clients see.", ("enabled_tools",)),
    ServerKey(
        "excludeTools",
        "array of strings",
        "Tools of it that clients do not see.",
        ("disabledTools", "disabled_tools"),
    ),
)

LEFT_TO_CLIENTS: Final = frozenset(
    {
        *("alwaysAllow", "alwaysLoad", "auth", "authProviderType", "autoApprove", "autoStart", "auto_approve"),
        *(
            "description",
            "dev",
            "display_name",
            "displayName",
            "gallery",
            "headersHelper",
            "icon",
            "id",
            "name",
            "note",
        ),
        *("oauth", "oauthScopes", "sandbox", "sandboxEnabled", "settings", "source", "timeout", "title", "tools"),
        *("trust", "version", "watchPaths", "workspace", "inputs", "targetAudience", "targetServiceAccount"),
        *(
            "startup_timeout_sec",
            "startup_timeout_ms",
            "tool_timeout_sec",
            "connectionTimeout",
            "faviconUrl",
            "required",
        ),
        *("scopes", "oauth_resource", "supports_parallel_tool_calls", "default_tools_approval_mode"),
    }
)
"""Keys of servers by which a client decides what it does itself. They are ignored."""

KINDS: Final = {
    "stdio": "stdio",
    "local": "stdio",
    "command": "stdio",
    "http": "http",
    "https": "http",
    "remote": "http",
    "url": "http",
    "streamable-http": "streamable-http",
    "streamablehttp": "streamable-http",
    "streamable_http": "streamable-http",
    "sse": "sse",
    "ws": "ws",
    "websocket": "ws",
}
"""What `type` may say, in small letters, and what that is. `http` is `streamable-http`, or `sse` if it is that."""

OURS: Final = "dragoman"
"""The name of the object with our own keys, beside the servers."""


SERVERS: Final = "servers"
"""The member of our own object with options of single servers, by their names."""
