"""A server on an SDK that speaks 2024-11-05, with one tool.

python -m venv old && old/bin/pip install mcp==1.6.0 'pydantic<2.13'
"""

from mcp.server.fastmcp import FastMCP

server = FastMCP("studio", log_level="ERROR")


@server.tool()
def record(seconds: int) -> str:
    """Record a meeting."""
    return f"{seconds} seconds recorded"


server.run()
