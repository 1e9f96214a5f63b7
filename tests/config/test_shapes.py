"""Configuration files as desktop clients write them: each works as it is."""

import os
from pathlib import Path

import pytest

from dragoman.config import CommandTarget, Configuration, ServerConfig, UrlTarget, parse_config, read_config
from dragoman.transports.upstream.config import Kind

ENVIRONMENT = {"TOKEN": "t0p", "HOME": "/home/me", "EMPTY": "", "DRAGOMAN_INPUT_API_KEY": "asked"}

CLAUDE_DESKTOP = """
{
  "globalShortcut": "Ctrl+Space",
  "mcpServers": {
    "files": {"command": "npx", "args": ["-y", "some-server", "/srv"], "env": {"DEBUG": "1"}}
  },
  "preferences": {"menuBarEnabled": false}
}"""

CLAUDE_CODE = """
{"mcpServers": {
  "tracker": {"type": "http", "url": "${BASE:-https://example.com}/mcp",
    "headers": {"Authorization": "Bearer ${TOKEN}"}},
  "old": {"type": "sse", "url": "https://example.com/events"},
  "local": {"type": "stdio", "command": "${HOME}/bin/server", "args": [], "env": {}}
}}"""

VSCODE = """
{
  // the key is asked for
  "inputs": [{"type": "promptString", "id": "api-key", "description": "API key", "password": true}],
  "servers": {
    "remote": {"type": "http", "url": "http://localhost:3000/mcp", "headers": {"X-Key": "${input:api-key}"}},
    "mine": {
      "type": "stdio",
      "command": "node",
      "args": ["${workspaceFolder}/server.js"], /* built before */
      "env": {"TOKEN": "${env:TOKEN}"},
      "dev": {"watch": "src/**/*.ts"},
    },
  },
}"""

VSCODE_SETTINGS = """
{"editor.fontSize": 14, "mcp": {"inputs": [], "servers": {"one": {"command": "one"}}}}
"""

CURSOR = """
{"mcpServers": {
  "one": {"command": "${userHome}/one", "envFile": "${workspaceFolder}/.env", "env": {"B": "${env:TOKEN}"}},
  "two": {"url": "https://example.com/sse"}
}}"""

WINDSURF = """
{"mcpServers": {
  "far": {"serverUrl": "https://example.com/mcp", "disabledTools": ["rm"]},
  "off": {"command": "x", "disabled": true}
}}"""

CLINE = """
{"mcpServers": {
  "a": {"command": "a", "timeout": 60, "autoApprove": ["x"], "disabled": false},
  "b": {"type": "streamableHttp", "url": "https://example.com/b", "alwaysAllow": []}
}}"""

GEMINI = """
{"theme": "Default", "mcpServers": {
  "a": {"httpUrl": "https://example.com/a", "timeout": 5000, "trust": false, "includeTools": ["one", "two"]},
  "b": {"command": "python", "args": ["b.py"], "cwd": ".", "excludeTools": ["three"]}
}}"""

ZED = """
{
  // Zed's settings
  "context_servers": {
    "new": {"source": "custom", "command": "npx", "args": ["-y", "new"], "env": null, "enabled": true},
    "old": {"command": {"path": "old-server", "args": ["--stdio"], "env": {"A": "b"}}, "settings": {}},
  },
}"""

OPENCODE = """
{"$schema": "https://opencode.ai/config.json", "mcp": {
  "local": {"type": "local", "command": ["bun", "x", "server"], "environment": {"A": "b"}, "enabled": false},
  "far": {"type": "remote", "url": "https://example.com/mcp"}
}}"""


def read(text: str, tmp_path: Path | None = None) -> Configuration:
    path = "" if tmp_path is None else str(tmp_path / "mcp.json")
    return parse_config(text, ENVIRONMENT, path=path)


def server(config: Configuration, name: str) -> ServerConfig:
    return config.choose(name)


def command(config: Configuration, name: str) -> CommandTarget:
    target = server(config, name).target
    assert isinstance(target, CommandTarget)
    return target


def url(config: Configuration, name: str) -> UrlTarget:
    target = server(config, name).target
    assert isinstance(target, UrlTarget)
    return target


def test_claude_desktop() -> None:
    config = read(CLAUDE_DESKTOP)
    assert command(config, "files") == CommandTarget(("npx", "-y", "some-server", "/srv"), (("DEBUG", "1"),))
    assert config.warnings == ()


def test_claude_code() -> None:
    config = read(CLAUDE_CODE)
    assert url(config, "tracker") == UrlTarget("https://example.com/mcp", (("Authorization", "Bearer t0p"),))
    assert url(config, "old").kind is Kind.SSE
    assert command(config, "local").command == ("/home/me/bin/server",)


def test_vscode(tmp_path: Path) -> None:
    (tmp_path / ".vscode").mkdir()
    config = parse_config(VSCODE, ENVIRONMENT, path=str(tmp_path / ".vscode" / "mcp.json"))
    assert url(config, "remote").headers == (("X-Key", "asked"),)
    assert command(config, "mine") == CommandTarget(("node", f"{tmp_path}/server.js"), (("TOKEN", "t0p"),))


def test_vscode_settings() -> None:
    assert [one.name for one in read(VSCODE_SETTINGS).enabled] == ["one"]


def test_cursor(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("# secrets\nexport A='a a'\nB=from the file\nC=c # why\n", encoding="utf-8")
    config = read(CURSOR, tmp_path)
    assert command(config, "one").command == ("/home/me/one",)
    assert dict(command(config, "one").env) == {"A": "a a", "B": "t0p", "C": "c"}
    assert url(config, "two").kind is Kind.SSE


def test_windsurf() -> None:
    config = read(WINDSURF)
    assert url(config, "far").url == "https://example.com/mcp"
    assert server(config, "far").without_tools == {"rm"}
    assert [one.name for one in config.enabled] == ["far"]


def test_cline() -> None:
    config = read(CLINE)
    assert url(config, "b").kind is Kind.STREAMABLE_HTTP
    assert config.warnings == ()


def test_gemini(tmp_path: Path) -> None:
    config = read(GEMINI, tmp_path)
    assert server(config, "a").only_tools == {"one", "two"}
    assert command(config, "b").cwd == str(tmp_path)


def test_zed() -> None:
    config = read(ZED)
    assert command(config, "new").command == ("npx", "-y", "new")
    assert command(config, "old") == CommandTarget(("old-server", "--stdio"), (("A", "b"),))


def test_opencode() -> None:
    config = read(OPENCODE)
    assert command(config, "local") == CommandTarget(("bun", "x", "server"), (("A", "b"),))
    assert [one.name for one in config.enabled] == ["far"]


def test_our_own_keys_stand_in_one_object() -> None:
    config = read(
        '{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}, "dragoman": {"prefix": "always", '
        '"listTimeout": 2, "servers": {"b": {"prefix": "bee", "revision": "2025-06-18"}}}}'
    )
    assert (config.options.prefix, config.options.list_timeout_s) == ("always", 2.0)
    assert (server(config, "b").options.prefix, server(config, "b").options.revision) == ("bee", "2025-06-18")
    assert server(config, "a").options.prefix is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${TOKEN}", "t0p"),
        ("${NOBODY:-else}", "else"),
        ("${NOBODY:-}", ""),
        ("${EMPTY:-else}", "else"),
        ("${EMPTY}", ""),
        ("a${TOKEN}b${TOKEN}c", "at0pbt0pc"),
        ("${env:TOKEN}", "t0p"),
        ("${pathSeparator}${/}", os.sep * 2),
        ("$${TOKEN}", "${TOKEN}"),
        ("$TOKEN", "$TOKEN"),
        ("${1} ${#a} ${", "${1} ${#a} ${"),
    ],
)
def test_variables_are_filled_in(text: str, value: str) -> None:
    config = read('{"mcpServers": {"a": {"command": "a", "args": ["' + text + '"]}}}')
    assert command(config, "a").command[1] == value


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_bytes(b"\xef\xbb\xbf" + CLAUDE_DESKTOP.encode())
    assert [one.name for one in read_config(path).servers] == ["files"]


def test_a_value_of_an_environment_is_not_shown() -> None:
    assert "t0p" not in repr(read(CLAUDE_CODE))


def test_equal_files_give_equal_servers() -> None:
    assert read(CLAUDE_CODE) == read(CLAUDE_CODE.replace("\n", "\n\n"))


def test_a_server_that_is_off_stops_nobody() -> None:
    config = read('{"mcpServers": {"a": {"disabled": true, "url": "${NOBODY}"}, "b": {"command": "b"}}}')
    assert [one.name for one in config.enabled] == ["b"]


def test_a_key_of_our_own_in_an_entry_is_said_where_it_belongs() -> None:
    (warning,) = read('{"mcpServers": {"a": {"command": "a", "revision": "2024-11-05", "oauth": {}}}}').warnings
    assert str(warning) == (
        "line 1, column 39: server 'a' has the key 'revision', which means nothing there; "
        'write "dragoman": {"servers": {"a": {"revision": …}}} beside the servers'
    )


def test_a_slip_in_the_name_of_a_key_is_said() -> None:
    (warning,) = read('{"mcpServers": {"a": {"command": "a", "arg": ["b"]}}}').warnings
    assert str(warning) == "line 1, column 39: server 'a' has the key 'arg', which means nothing; write 'args'?"
