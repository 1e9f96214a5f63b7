"""A stdio server that opens a session and then never reads again, `python -m tests.soak.deaf`; it ends by a signal."""

from __future__ import annotations

import json
import sys
import time


def main() -> None:
    """Answer `initialize`, and go deaf."""
    frame = json.loads(sys.stdin.readline())
    server = {"name": "deaf", "version": "1"}
    result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": server}
    print(json.dumps({"jsonrpc": "2.0", "id": frame["id"], "result": result}), flush=True)
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    main()
