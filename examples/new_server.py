"""A server on a current SDK, as one writes them: its tool answers with a text, a recording and a link.

    python -m venv new && new/bin/pip install mcp==1.30.0

It accepts whatever revision a client asks for, and then answers as in 2025-11-25 all the same.
"""

from mcp.server.fastmcp import FastMCP
from mcp.types import AudioContent, ResourceLink, TextContent

server = FastMCP("studio", log_level="ERROR")


@server.tool()
def record(seconds: int) -> list[TextContent | AudioContent | ResourceLink]:
    """Record a meeting."""
    return [
        TextContent(type="text", text=f"{seconds} seconds recorded"),
        AudioContent(type="audio", data="UklGRg==", mimeType="audio/wav"),
        ResourceLink(type="resource_link", uri="file:///studio/minutes.txt", name="minutes"),
    ]


server.run()
