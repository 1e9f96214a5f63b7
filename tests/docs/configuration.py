"""Write `docs/configuration.md` from what `dragoman.config` has: `python -m tests.docs.configuration`."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path

from dragoman.config import own_keys
from dragoman.config.keys import OURS, SERVER_KEYS, SERVERS, WRAPPERS
from dragoman.config.model import RouterOptions, ServerOptions
from dragoman.options import Option

PAGE = Path(__file__).resolve().parents[2] / "docs" / "configuration.md"

HEAD = """\
# Configuration files

<!-- Written by `python -m tests.docs.configuration` from `dragoman.config`: do not edit. -->

A configuration file is the file in which a client names its MCP servers: JSON for most of them, TOML for Codex, YAML
for Continue. A file that such a client has written works unchanged. In JSON, comments and a comma after the last member
are allowed. `dragoman config check FILE` says what is wrong with a file, with line, column and remedy, and tries its
servers.

An entry that cannot be used disables only itself: a variable that is not set, an `envFile` that is not there, a
misspelt key, a server that only the client itself can start (`"source": "extension"` of Zed). The other servers are
used; `config check`, `dragoman status` and the log say which one is left out, with its line and the reason. A file that
is not JSON, TOML or YAML, or in which no entry can be used, is an error.

```json
{
  "mcpServers": {
    "files": {"command": "npx", "args": ["-y", "some-server", "/srv"]},
    "tracker": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}
  }
}
```

```pycon
>>> from dragoman.config import CommandTarget, parse_config
>>> config = parse_config('{"mcpServers": {"files": {"command": "npx", "args": ["-y", "some-server"]}}}')
>>> files = config.choose("files").target
>>> isinstance(files, CommandTarget) and files.command
('npx', '-y', 'some-server')

```
"""

VARIABLES = """\
## Variables

Every string of a server may have variables in it. Their values come from the environment of `dragoman`.

| written | becomes |
|---|---|
| `${NAME}`, `${env:NAME}` | the variable; an error if it is not set |
| `${NAME:-default}` | the variable, or the default if it is not set or empty |
| `${{ secrets.NAME }}` | the variable `NAME`, as Continue writes it |
| `${input:id}` | the variable `DRAGOMAN_INPUT_ID`, in the place of VS Code's question |
| `${workspaceFolder}`, `${workspaceFolderBasename}` | where the file is, or above `.vscode`; its last name |
| `${userHome}`, `${cwd}` | the home directory; the directory we run in |
| `${pathSeparator}`, `${/}` | `/` |
| `$${` | `${` |
"""


def text() -> str:
    """Give the whole page."""
    return "\n".join([HEAD, _wrappers(), _server_keys(), VARIABLES, _own()])


def _wrappers() -> str:
    rows = [f"| `{'` in `'.join(reversed(one.path))}` | {one.clients} |" for one in WRAPPERS]
    head = ["## Where the servers stand", "", "| the object | is written by |", "|---|---|"]
    return "\n".join(
        [
            *head,
            *rows,
            "",
            "A file has one of them. Whatever else is in it is ignored, but for the lists `allowed` and",
            "`excluded` that Gemini CLI keeps in `mcp`, beside `mcpServers`.",
            "",
        ]
    )


def _server_keys() -> str:
    rows = []
    for key in SERVER_KEYS:
        also = f" Also written {', '.join(f'`{name}`' for name in key.also)}." if key.also else ""
        rows.append(f"| `{key.name}` | {key.kind} | {key.about}{also} |")
    head = ["## One server", "", "It has a `command` or a `url`.", "", "| key | value | says |", "|---|---|---|"]
    tail = [
        "",
        "Keys by which a client decides what it does itself, such as `autoApprove`, are ignored. Of a key that",
        "[belongs to our own object](#our-own-keys), such as `revision`, a warning says where to write it.",
        "",
    ]
    return "\n".join([*head, *rows, *tail])


def _own() -> str:
    example = f'{{"mcpServers": {{"files": {{…}}}}, "{OURS}": {{"prefix": "always", "{SERVERS}": {{"files": {{…}}}}}}}}'
    lines = [
        "## Our own keys",
        "",
        f"They stand in one object, `{OURS}`, beside the servers. Its member `{SERVERS}` has those of single",
        "servers, by their names. An unknown key in there is an error.",
        "",
        "```json",
        example,
        "```",
        "",
        "| key | value | default | says |",
        "|---|---|---|---|",
        *(_row(key, RouterOptions) for key in own_keys.ROUTER_KEYS),
        "",
        f"In `{SERVERS}`, for one server:",
        "",
        "| key | value | default | says |",
        "|---|---|---|---|",
        *(_row(key, ServerOptions) for key in own_keys.SERVER_KEYS),
    ]
    return "\n".join(lines) + "\n"


def _row(key: Option, owner: type[RouterOptions] | type[ServerOptions]) -> str:
    defaults = {field.name: field.default for field in dataclasses.fields(owner)}
    default = defaults[key.setting]
    kinds = {
        "text": "string",
        "count": "whole number",
        "switch": "true or false",
        "file": "path",
        "certificates": "path",
        "proxy": "URL or `none`",
        "revision": "string",
        "headers": "object of strings",
        "sign-in": "object, or false",
        "rules": "array of objects",
    }
    kind = kinds.get(key.kind, key.kind) if isinstance(key.kind, str) else ", ".join(f"`{one}`" for one in key.kind)
    shown = (
        ""
        if default is None or key.kind == "sign-in"
        else f"`{str(default).lower() if isinstance(default, bool) else default}`"
    )
    about = f"{key.about[0].upper()}{key.about[1:]}." if not key.about.startswith("`") else f"{key.about}."
    return f"| `{key.key}` | {kind} | {shown} | {about} |"


def documented_fields(owner: type) -> set[str]:
    """Give the fields that a class's docstring describes."""
    lines = inspect.getdoc(owner) or ""
    return {field.name for field in dataclasses.fields(owner) if f"\n    {field.name}: " in lines}


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
