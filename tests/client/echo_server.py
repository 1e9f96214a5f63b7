"""A server over stdio or HTTP for the tests of the shell commands; no dependencies.

    echo_server.py [--revision REV] [--few] [--http]

With `--few` it lists only the tools that answer at once. Over HTTP it prints its port.
"""

from __future__ import annotations

import json
import sys
from typing import Any

REVISION = sys.argv[sys.argv.index("--revision") + 1] if "--revision" in sys.argv else None
SCHEMA = {
    "type": "object",
    "properties": {"count": {"type": "integer"}, "text": {"type": "string"}, "any": {}},
}
TOOLS = [
    {"name": "echo", "description": "Gives its arguments back", "inputSchema": SCHEMA},
    {"name": "fail", "inputSchema": {"type": "object"}},
    {"name": "ask", "inputSchema": {"type": "object"}},
    {"name": "hang", "inputSchema": {"type": "object"}},
    {"name": "exit", "inputSchema": {"type": "object"}},
    {"name": "odd", "inputSchema": {"type": "object"}},
]
FORM = {
    "message": "Who is there?",
    "requestedSchema": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name"],
    },
}


def say(frame: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **frame}), flush=True)


def text(value: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": json.dumps(value)}]}


def call(name: str, arguments: Any) -> dict[str, Any] | None:
    match name:
        case "echo":
            return text(arguments)
        case "fail":
            return {**text("it failed"), "isError": True}
        case "odd":
            return {"content": [{"type": "text", "text": 5}]}
        case "ask":
            say({"id": "q", "method": "elicitation/create", "params": FORM})
            answer = json.loads(sys.stdin.readline())
            return text(answer.get("result", answer.get("error")))
        case "exit":
            sys.exit(0)
        case _:
            return None


def answer(frame: dict[str, Any]) -> dict[str, Any] | None:
    """Give the response to a frame, if it has one."""
    params: dict[str, Any] = frame.get("params", {})
    result: dict[str, Any] | None
    match frame.get("method"):
        case "initialize":
            revision = REVISION or params["protocolVersion"]
            info = {"name": "echo", "version": "1"}
            capabilities = {"tools": {}, "resources": {}}
            result = {"protocolVersion": revision, "capabilities": capabilities, "serverInfo": info}
        case "tools/list":
            result = {"tools": TOOLS[:2] if "--few" in sys.argv else TOOLS}
        case "resources/list":
            result = {"resources": [{"uri": "x:text", "name": "text"}, {"uri": "x:blob", "name": "blob"}]}
        case "resources/read" if params["uri"] == "x:text":
            result = {"contents": [{"uri": "x:text", "text": "hello\n"}]}
        case "resources/read" if params["uri"] == "x:lines":
            result = {"contents": [{"uri": "x:lines", "text": "one"}, {"uri": "x:lines", "blob": "dHdv"}]}
        case "resources/read" if params["uri"] == "x:blob":
            result = {"contents": [{"uri": "x:blob", "blob": "AAEC"}]}
        case "tools/call":
            result = call(params["name"], params.get("arguments"))
            if result is None:
                return None
        case _:
            error = {"code": -32601, "message": f"there is no {frame.get('method')}"}
            return {"jsonrpc": "2.0", "id": frame.get("id"), "error": error} if "id" in frame else None
    return {"jsonrpc": "2.0", "id": frame["id"], "result": result}


def serve() -> None:
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer  # as slow to import as all else together

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            frame = json.loads(self.rfile.read(int(self.headers["content-length"])))
            response = answer(frame)
            body = b"" if response is None else json.dumps(response).encode()
            self.send_response(202 if response is None else 200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            self.send_error(405)

        def log_message(self, format: str, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


def main() -> None:
    if "--http" in sys.argv:
        serve()
    while line := sys.stdin.readline():
        response = answer(json.loads(line))
        if response is not None:
            say({name: value for name, value in response.items() if name != "jsonrpc"})


if __name__ == "__main__":
    main()
