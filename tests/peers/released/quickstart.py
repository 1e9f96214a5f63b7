"""The server that everybody writes first, under any release that has it: `python quickstart.py [--listen PORT]`.

It is FastMCP's where that is installed, or else the one that comes with `mcp`, whose name is another from 2.x on. Three
of its tools ask their client. `confirm` and `summarize` send a request in the middle of the call, as handlers written
for a session do; `choose` answers with its question, as those written for 2026-07-28 do. Each works in one era only.
"""

import importlib
import sys
from typing import Any

from pydantic import BaseModel


def find_module() -> Any:
    """Return the module of this environment that has the class of servers."""
    for module in ("fastmcp", "mcp.server.mcpserver", "mcp.server.fastmcp"):
        try:
            return importlib.import_module(module)
        except ImportError:
            continue
    raise SystemExit("no server class here")


module = find_module()
server: Any = (getattr(module, "MCPServer", None) or module.FastMCP)("quickstart")


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


class Color(BaseModel):
    """What a person is asked for."""

    color: str


def tool(function: Any) -> Any:
    """Add a tool whose only argument is the context of the call."""
    function.__annotations__["ctx"] = module.Context
    return server.tool()(function)


@tool
async def confirm(ctx: Any) -> str:
    """Ask the person."""
    answer = await ctx.elicit("Which color?", Color)
    return f"{answer.action}: {answer.data.color}"


@tool
async def summarize(ctx: Any) -> str:
    """Ask the model."""
    from mcp.types import SamplingMessage, TextContent

    said = SamplingMessage(role="user", content=TextContent(type="text", text="Say hello"))
    answer = await ctx.session.create_message(messages=[said], max_tokens=10)
    return str(answer.content.text)


try:
    from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

    async def choose(ctx: Any) -> str | InputRequiredResult:
        """Answer with the question."""
        answers = ctx.input_responses
        if answers:
            return f"{answers['color'].action}: {answers['color'].content['color']}"
        asked = ElicitRequestFormParams(message="Which color?", requested_schema=Color.model_json_schema())
        return InputRequiredResult(input_requests={"color": ElicitRequest(params=asked)})

    choose.__annotations__["return"] = str | InputRequiredResult
    tool(choose)
except ImportError:
    pass


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
