"""Write the bundle for desktop clients, a file to be opened: `python -m bundle FOLDER`.

It has no code but a few lines that start the release of the same version, which `uv` of the client installs.
"""

from __future__ import annotations

import json
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
LONG_AGO: Final = (1980, 1, 1, 0, 0, 0)
"""The same bundle of the same sources."""

PROJECT: Final = """\
[project]
name = "dragoman-bundle"
version = "{version}"
requires-python = "{python}"
dependencies = ["dragoman=={version}"]
"""


def make_manifest(project: dict[str, Any]) -> dict[str, Any]:
    """Give what a client reads of the bundle. Source: MANIFEST.md of modelcontextprotocol/mcpb, 0.4."""
    secret = {"type": "string", "sensitive": True, "required": False}
    return {
        "manifest_version": "0.4",
        "name": project["name"],
        "display_name": "Dragoman",
        "version": project["version"],
        "description": "Reaches a remote MCP server of any revision.",
        "long_description": "Give the URL of a server, and what it wants to know who you are. Every revision of the "
        "Model Context Protocol is understood, over Streamable HTTP, HTTP+SSE and WebSocket.",
        "author": {"name": "Dragoman contributors"},
        "license": project["license"],
        "keywords": project["keywords"],
        "tools_generated": True,
        "prompts_generated": True,
        "server": {
            "type": "uv",
            "entry_point": "server.py",
            "mcp_config": {
                "command": "uv",
                "args": ["run", "--directory", "${__dirname}", "server.py"],
                "env": {
                    "BUNDLE_URL": "${user_config.url}",
                    "BUNDLE_AUTHORIZATION": "${user_config.authorization}",
                },
            },
        },
        "compatibility": {
            "platforms": ["darwin", "linux", "win32"],
            "runtimes": {"python": project["requires-python"]},
        },
        "user_config": {
            "url": {
                "type": "string",
                "title": "URL",
                "description": "Where the server is, such as https://example.com/mcp",
                "required": True,
            },
            "authorization": {
                **secret,
                "title": "Authorization",
                "description": "What the header of this name says, such as Bearer and a token; empty to sign in",
            },
        },
    }


def write_bundle(folder: Path) -> Path:
    """Write the bundle of this version into a folder; return where it is."""
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text("utf-8"))["project"]
    path = folder / f"{project['name']}-{project['version']}.mcpb"
    files = {
        "manifest.json": json.dumps(make_manifest(project), indent=2) + "\n",
        "pyproject.toml": PROJECT.format(version=project["version"], python=project["requires-python"]),
        "server.py": (HERE / "server.py").read_text("utf-8"),
        "LICENSE": (HERE.parent / "LICENSE").read_text("utf-8"),
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name, LONG_AGO), text)
    return path


if __name__ == "__main__":
    print(write_bundle(Path(sys.argv[1])))
