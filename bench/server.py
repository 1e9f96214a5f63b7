"""A stdio server that costs as little as Python allows, so that what stands before it is what is measured.

Run as `python -m bench.server REVISION [COUNT [FIRST]]`. Speaks that revision, has 100 tools, or so many, numbered from
0 or that number on, and echoes what it is called with.
"""

import json
import os
import re
import sys
from typing import Any, Final

ID = re.compile(rb'"id"\s*:\s*(-?[0-9]+|"[^"]*")')
WITHOUT_A_HANDSHAKE = "2026-07-28"
LARGE = b"large"
LARGE_BYTES = 1_000_000
READ_BYTES = 1 << 20
HEAD_BYTES = 4096
"""How far into a request its id and method may stand."""

METHOD = re.compile(rb'"method"\s*:\s*"([^"]*)"')


def results(revision: str, count: int = 100, first: int = 0) -> dict[bytes, bytes]:
    """Give the result of each method as JSON."""
    tools = [
        {
            "name": f"tool_{number}",
            "title": f"Tool number {number}",
            "description": "Does one thing and says so in a sentence that is about as long as such sentences are. " * 4,
            "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        }
        for number in range(first, first + count)
    ]
    if revision < "2025-06-18":
        for tool in tools:
            del tool["title"]
    server = {"name": "bench", "version": "1"}
    found: dict[bytes, dict[str, Any]] = {
        b"initialize": {"protocolVersion": revision, "capabilities": {"tools": {}}, "serverInfo": server},
        b"tools/list": {"tools": tools},
        b"tools/call": {"content": [{"type": "text", "text": "x" * 200}]},
        LARGE: {"content": [{"type": "text", "text": "x" * LARGE_BYTES}]},
    }
    if revision >= WITHOUT_A_HANDSHAKE:
        del found[b"initialize"]
        kept = {"ttlMs": 0, "cacheScope": "private"}
        found[b"server/discover"] = {"supportedVersions": [revision], "capabilities": {"tools": {}}, **kept}
        found[b"tools/list"] |= kept
        found = {method: {"resultType": "complete", **result} for method, result in found.items()}
    return {method: json.dumps(result).encode() for method, result in found.items()}


UNKNOWN: Final = b'"error":{"code":-32601,"message":"there is no such method"}'
"""What clients of another era begin with is answered like this."""


def answer_for(answers: dict[bytes, bytes], method: bytes, request: bytes) -> bytes:
    """Give the result for a request, as a member of its response: large if the request is; or the error."""
    if method not in answers:
        return UNKNOWN
    return b'"result":' + answers[LARGE if len(request) > LARGE_BYTES else method]


class Reader:
    """Reads a descriptor into one buffer for all: a large one for each read would be mapped and unmapped each time."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._buffer = bytearray(READ_BYTES)
        self._view = memoryview(self._buffer)

    def read(self) -> bytes:
        """Give what is there, and wait until there is something; nothing at the end."""
        return bytes(self._view[: os.readv(self._fd, [self._buffer])])


def serve(revision: str, *tools: int) -> None:
    """Answer requests until stdin ends."""
    answers = results(revision, *tools)
    pending: list[bytes] = []
    reader = Reader(0)
    while data := reader.read():
        pending.append(data)
        if b"\n" not in data:
            continue
        *lines, rest = b"".join(pending).split(b"\n")
        pending = [rest]
        for line in lines:
            method, request_id = METHOD.search(line, 0, HEAD_BYTES), ID.search(line, 0, HEAD_BYTES)
            if method and request_id:
                answer = answer_for(answers, method[1], line)
                _write(b'{"jsonrpc":"2.0","id":' + request_id[1] + b"," + answer + b"}\n")


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    serve(sys.argv[1], *map(int, sys.argv[2:4]))
