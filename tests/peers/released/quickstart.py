"""The server that everybody writes first, under any release that has it: `python quickstart.py [--listen PORT]`.

It is FastMCP's where that is installed, or else the one that comes with `mcp`, whose name is another from 2.x on.
"""

import importlib
import sys
from typing import Any


def find_class() -> Any:
    """Return the class of this environment."""
    for module, name in (
        ("fastmcp", "FastMCP"),
        ("mcp.server.mcpserver", "MCPServer"),
        ("mcp.server.fastmcp", "FastMCP"),
    ):
        try:
            return getattr(importlib.import_module(module), name)
        except ImportError:
            continue
    raise SystemExit("no server class here")


server = find_class()("quickstart")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def weather(city: str) -> dict[str, Any]:
    """Tell the weather."""
    return {"city": city, "degrees": 21.5, "sky": ["clear", "blue"]}


@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("on purpose")


@server.resource("config://app")
def config() -> str:
    """Give the configuration."""
    return "debug = false"


@server.resource("greeting://{name}")
def greeting(name: str) -> str:
    """Greet someone."""
    return f"Hello, {name}!"


@server.prompt()
def review(code: str) -> str:
    """Ask for a review."""
    return f"Please review this code:\n\n{code}"


def listen(port: int) -> None:
    """Listen; releases differ in where the port is said."""
    try:
        server.run(transport="streamable-http", port=port)
    except TypeError:
        server.settings.port = port
        server.run(transport="streamable-http")


if __name__ == "__main__":
    if "--listen" in sys.argv:
        listen(int(sys.argv[-1]))
    else:
        server.run()
