"""Somebody who takes what is exported over OTLP/HTTP."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from typing import Any

from tests.support.waiting import PATIENCE_S


@contextlib.contextmanager
def collector() -> Iterator[tuple[str, Queue[tuple[str, bytes]]]]:
    """Take what is exported; give where, and what has come: paths and bodies."""
    came: Queue[tuple[str, bytes]] = Queue()

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            came.put((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", came
    finally:
        server.shutdown()
        server.server_close()
        serving.join(PATIENCE_S)
