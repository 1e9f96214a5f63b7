"""Real SDK clients before three instances, behind a balancer that gives each request to the next one.

Each makes the whole tour, with questions, progress, subscriptions and changed lists, and reports what it does with one
proxy. Needs `nox -s peers`, and HAProxy or nginx.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.instances.test_several import is_open, redis
from tests.peers.modern_visits import REVISION
from tests.peers.visits import (
    ENVIRONMENTS,
    HERE,
    LIMIT_S,
    client_command,
    listening_proxy,
    listening_server,
    needs_peers,
    server_command,
    visit,
)
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE_S, wait_until

HAPROXY: Final = """
defaults
    mode http
    timeout connect 2s
    timeout client 1h
    timeout server 1h
frontend clients
    bind 127.0.0.1:{port}
    default_backend instances
backend instances
    balance roundrobin
    {servers}
"""
NGINX: Final = """
daemon off; pid {folder}/pid; error_log {folder}/log;
events {{ }}
http {{
    access_log off;
    client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
    uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
    upstream instances {{ {servers} }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://instances; proxy_http_version 1.1; proxy_set_header Connection "";
            proxy_set_header Host $http_host; proxy_buffering off; proxy_read_timeout 1h; proxy_next_upstream off;
        }}
    }}
}}
"""


@contextlib.contextmanager
def balanced(program: str, folder: Path, ports: list[str]) -> Iterator[str]:
    """Put a balancer before these; give where it listens."""
    port, file = free_port(), folder / "balancer"
    if program == "haproxy":
        servers = "\n    ".join(f"server s{number} 127.0.0.1:{one}" for number, one in enumerate(ports))
        command, text = [program, "-f", str(file)], HAPROXY
    else:
        servers = " ".join(f"server 127.0.0.1:{one} max_fails=0;" for one in ports)
        command, text = [program, "-e", str(folder / "log"), "-c", str(file)], NGINX
    file.write_text(text.format(port=port, servers=servers, folder=folder))
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: is_open(port))
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


@contextlib.contextmanager
def three(program: str, letter: str, upstream: str) -> Iterator[str]:
    """Start three instances before a server, and a balancer before them."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        log, behind = folder / "log-of-all", ["--", *server_command(letter)]
        if upstream == "http":
            behind = ["--url", stack.enter_context(listening_server(server_command(letter), "http", log))]
        url = stack.enter_context(redis(folder))
        options = ("--store", url, "--instance-listen", "http://127.0.0.1:0")
        urls = [stack.enter_context(listening_proxy("http", behind, log, *options)) for _ in range(3)]
        yield stack.enter_context(balanced(program, folder, [one.rpartition(":")[2].partition("/")[0] for one in urls]))


@contextlib.contextmanager
def alone(letter: str, upstream: str) -> Iterator[str]:
    """Start one proxy before a server."""
    with contextlib.ExitStack() as stack:
        log, behind = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "log", ["--", *server_command(letter)]
        if upstream == "http":
            behind = ["--url", stack.enter_context(listening_server(server_command(letter), "http", log))]
        yield stack.enter_context(listening_proxy("http", behind, log))


def report_at(client: str, url: str) -> dict[str, Any]:
    if client != "E":
        return visit(client_command(client), [url], "--over", "http", "--settle", "2")
    python = str(Path(str(ENVIRONMENTS)) / "current" / "bin" / "python")
    command = [python, "-W", "ignore", str(HERE / "modern.py"), "--mode", REVISION, "--url", url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False, env={**os.environ})
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@needs_peers
@pytest.mark.parametrize("program", ["haproxy", "nginx"])
@pytest.mark.parametrize(
    ("client", "upstream"),
    [("C", "stdio"), ("C", "http"), ("D", "stdio"), ("D", "http"), ("E", "stdio"), ("E", "http")],
)
def test_a_client_reports_of_three_instances_what_it_does_of_one(program: str, client: str, upstream: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    with alone("D", upstream) as url:
        expected = report_at(client, url)
    with three(program, "D", upstream) as url:
        found = report_at(client, url)
    assert "crashed" not in expected
    if client == "E":  # without a session of its own: each instance has one with the server, or a server
        for report in (expected, found):
            del report["saw"]  # what one of these sessions has seen
            report["heard"] = [kind for kind in report["heard"] if (upstream, kind) != ("stdio", "ResourceUpdated")]
    assert found == expected
