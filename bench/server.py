"""A stdio server that costs as little as Python allows, so that what stands before it is what is measured.

Run as `python bench/server.py REVISION`. Speaks that revision, has 100 tools, and echoes what it is called with.
"""

import json
import os
import re
import sys

ID = re.compile(rb'"id"\s*:\s*(-?[0-9]+|"[^"]*")')
METHOD = re.compile(rb'"method"\s*:\s*"([^"]*)"')


def results(revision: str) -> dict[bytes, bytes]:
    """Give the result of each method as JSON."""
    tools = [
        {
            "name": f"tool_{number}",
            "title": f"Tool number {number}",
            "description": "Does one thing and says so in a sentence that is about as long as such sentences are. " * 4,
            "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        }
        for number in range(100)
    ]
    if revision < "2025-06-18":
        for tool in tools:
            del tool["title"]
    server = {"name": "bench", "version": "1"}
    return {
        method: json.dumps(result).encode()
        for method, result in {
            b"initialize": {"protocolVersion": revision, "capabilities": {"tools": {}}, "serverInfo": server},
            b"tools/list": {"tools": tools},
            b"tools/call": {"content": [{"type": "text", "text": "x" * 200}]},
        }.items()
    }


def serve(revision: str) -> None:
    """Answer requests until stdin ends."""
    answers = results(revision)
    pending = b""
    while data := os.read(0, 1 << 20):
        *lines, pending = (pending + data).split(b"\n")
        for line in lines:
            method, request_id = METHOD.search(line), ID.search(line)
            if method and request_id:
                _write(b'{"jsonrpc":"2.0","id":' + request_id[1] + b',"result":' + answers[method[1]] + b"}\n")


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    serve(sys.argv[1])
