"""Where desktop clients and editors keep the list of their servers: data, and a look at the disk."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dragoman.config.document import Node, look


@dataclass(frozen=True, slots=True)
class KnownClient:
    """A client and its file.

    Attributes:
        name: What it is called on our command line.
        title: What its makers call it.
        linux: Where its file is below the home directory; `$CONFIG` is the user's configuration directory. So it is on
            Windows, where that directory is `%APPDATA%`.
        mac: The same on macOS.
        project: Where it looks for servers of a project, below the project's folder; empty if it does not.
        variable: What names the directory of its file, wherever that is; empty if nothing does.
    """

    name: str
    title: str
    linux: str
    mac: str
    project: str = ""
    variable: str = ""


_SUPPORT: Final = "Library/Application Support"

CLIENTS: Final = (
    KnownClient(
        "claude-desktop",
        "Claude Desktop",
        "$CONFIG/Claude/claude_desktop_config.json",
        f"{_SUPPORT}/Claude/claude_desktop_config.json",
    ),
    KnownClient("claude-code", "Claude Code", ".claude.json", ".claude.json", ".mcp.json", "CLAUDE_CONFIG_DIR"),
    KnownClient("cursor", "Cursor", ".cursor/mcp.json", ".cursor/mcp.json", ".cursor/mcp.json"),
    KnownClient(
        "vscode", "VS Code", "$CONFIG/Code/User/mcp.json", f"{_SUPPORT}/Code/User/mcp.json", ".vscode/mcp.json"
    ),
    KnownClient("windsurf", "Windsurf", ".codeium/windsurf/mcp_config.json", ".codeium/windsurf/mcp_config.json"),
    KnownClient("zed", "Zed", "$CONFIG/zed/settings.json", ".config/zed/settings.json", ".zed/settings.json"),
    KnownClient("gemini", "Gemini CLI", ".gemini/settings.json", ".gemini/settings.json", ".gemini/settings.json"),
    KnownClient("lmstudio", "LM Studio", ".lmstudio/mcp.json", ".lmstudio/mcp.json"),
    KnownClient("codex", "Codex", ".codex/config.toml", ".codex/config.toml", variable="CODEX_HOME"),
    KnownClient("continue", "Continue", ".continue/config.yaml", ".continue/config.yaml"),
)


def find_file(client: KnownClient, environment: Mapping[str, str], folder: Path | None = None) -> Path:
    """Say where the file of a client is, whether it exists or not.

    Args:
        client: Whose.
        environment: Says where the user's home and configuration are.
        folder: Of a project, for the project's own file; None for the user's.

    Raises:
        LookupError: The client has no files of projects.
    """
    if folder is not None:
        if not client.project:
            raise LookupError(f"{client.title} has one file for all projects; leave out --project")
        return folder / client.project
    home = Path(environment.get("USERPROFILE" if sys.platform == "win32" else "HOME") or Path.home())
    place = client.mac if sys.platform == "darwin" else client.linux
    if environment.get(client.variable):
        return Path(environment[client.variable]) / Path(place).name
    if place.startswith("$CONFIG/"):
        is_windows = sys.platform == "win32"
        name, usual = ("APPDATA", home / "AppData" / "Roaming") if is_windows else ("XDG_CONFIG_HOME", home / ".config")
        place = place.removeprefix("$CONFIG/")
        return Path(environment.get(name) or usual) / (place[0].upper() + place[1:] if is_windows else place)
    return home / place


def find_client(name: str) -> KnownClient | None:
    """Return the client of this name."""
    return next((one for one in CLIENTS if one.name == name), None)


def local_servers(document: Node) -> dict[str, Node]:
    """Return the objects of servers that Claude Code has for single folders, its scope `local`, by the folder."""
    folders = (look(document, ("projects",)) or Node({}, 0)).names
    tables = {folder: look(document, ("projects", folder, "mcpServers")) for folder in folders}
    return {folder: one for folder, one in tables.items() if one and one.value and isinstance(one.value, dict)}


def find_folder(folders: Collection[str]) -> str | None:
    """Return which of these the current folder is in: itself, or the nearest around it in the same Git repository."""
    here = Path.cwd()
    around = (here, *here.parents)
    top = next((number for number, folder in enumerate(around, 1) if (folder / ".git").exists()), 1)
    return next((folder.as_posix() for folder in around[:top] if folder.as_posix() in folders), None)


def with_local_servers(document: Node) -> Node:
    """Return what Claude Code makes of its file in the current folder, whose servers count before the user's."""
    local = local_servers(document)
    folder, user = find_folder(local) if local else None, look(document, ("mcpServers",)) or Node({}, 0)
    if folder is None or not isinstance(user.value, dict):
        return document
    value, names = local[folder].value, local[folder].names
    merged = Node({**user.value, **value}, user.offset, {**user.names, **names})
    return Node({**document.value, "mcpServers": merged}, document.offset, document.names)


def is_there(path: Path) -> bool:
    """Whether a file is there and can be read."""
    return path.is_file() and os.access(path, os.R_OK)
