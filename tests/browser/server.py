"""A stdio server for pages to talk to: `python server.py LOG` notes each method it is asked in a file."""

import json
import sys
from typing import Any

RESULTS: dict[str, Any] = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "browsed", "version": "1"},
    },
    "tools/call": {"content": [{"type": "text", "text": "hello, page"}]},
}

with open(sys.argv[1], "a", encoding="utf-8", buffering=1) as log:
    for line in sys.stdin:
        frame = json.loads(line)
        log.write(frame["method"] + "\n")
        if "id" in frame:
            answer = {"jsonrpc": "2.0", "id": frame["id"], "result": RESULTS.get(frame["method"], {})}
            print(json.dumps(answer), flush=True)
