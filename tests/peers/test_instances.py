"""Real SDK clients before three instances, behind a balancer that gives each request to the next one.

Each makes the whole tour, with questions, progress, subscriptions and changed lists, and reports what it does with one
proxy: clients of Python's SDK and of TypeScript's, before servers of both and of both eras. A client or server is named
as in `test_npm` and `modern_visits`; one from npm begins with a T. Needs `nox -s peers`, and HAProxy or nginx.
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
from tests.peers.ahead import ahead, visits
from tests.peers.modern_visits import NPM, REVISION, needs_both, node, server_of
from tests.peers.test_npm import EVERYTHING, RELEASES, TOUR, everything_listening
from tests.peers.test_tasks import newer, older, run
from tests.peers.visits import (
    HERE,
    LIMIT_S,
    SELECTION,
    check,
    client_command,
    listening_proxy,
    listening_server,
    needs_peers,
    python_in,
    python_of,
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
def behind(server: str | list[str], upstream: str, log: Path) -> Iterator[list[str]]:
    """Give the arguments that put a proxy before a server, which listens if it is reached over HTTP."""
    command = server_of(server) if isinstance(server, str) else server
    if upstream == "stdio":
        yield ["--", *command]
        return
    is_official = EVERYTHING in " ".join(command)
    with everything_listening("http", log) if is_official else listening_server(command, "http", log) as url:
        yield ["--url", url]


@contextlib.contextmanager
def three(program: str, server: str | list[str], upstream: str) -> Iterator[str]:
    """Start three instances before a server, and a balancer before them."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        log = folder / "log-of-all"
        arguments = stack.enter_context(behind(server, upstream, log))
        url = stack.enter_context(redis(folder))
        options = ("--store", url, "--instance-listen", "http://127.0.0.1:0")
        urls = [stack.enter_context(listening_proxy("http", arguments, log, *options)) for _ in range(3)]
        yield stack.enter_context(balanced(program, folder, [one.rpartition(":")[2].partition("/")[0] for one in urls]))


@contextlib.contextmanager
def alone(server: str | list[str], upstream: str) -> Iterator[str]:
    """Start one proxy before a server."""
    with contextlib.ExitStack() as stack:
        log = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "log"
        arguments = stack.enter_context(behind(server, upstream, log))
        yield stack.enter_context(listening_proxy("http", arguments, log))


def report_at(client: str, url: str) -> dict[str, Any]:
    """Let a client make its tour, and give its report."""
    if client == "TE":
        command = [node(), str(HERE / "npm" / "modern.mjs"), str(NPM), REVISION, "--url", url]
    elif client == "E":
        command = [python_in("current"), "-W", "ignore", str(HERE / "modern.py"), "--mode", REVISION, "--url", url]
    else:
        from_npm = [node(), str(HERE / "npm" / "client.mjs"), str(NPM), RELEASES.get(client[1:], "")]
        tour = from_npm if client[0] == "T" else client_command(client)
        return visit(tour, [url], "--over", "http", "--settle", "2")
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


UNHEARD: Final = {"D": ("ResourceUpdated",), "T": ("ResourceUpdated", "ToolsListChanged")}
"""What a server that is a command, and so another one at each instance, tells only those who listen to itself."""


@ahead
def report_of_one(client: str, server: str, upstream: str) -> dict[str, Any]:
    """Let a client make its tour of one proxy before a server."""
    with alone(server, upstream) as url:
        return report_at(client, url)


@ahead
def report_of_three(program: str, client: str, server: str, upstream: str) -> dict[str, Any]:
    """Let a client make its tour of three instances before a server."""
    with three(program, server, upstream) as url:
        return report_at(client, url)


def compare(program: str, client: str, server: str, upstream: str) -> None:
    """See that a client reports of three instances what it does of one."""
    expected = report_of_one(client, server, upstream)
    found = report_of_three(program, client, server, upstream)
    assert "crashed" not in expected
    if client.endswith("E"):  # without a session of its own: each instance has one with the server, or a server
        unheard = UNHEARD[server] if upstream == "stdio" else ()
        expected, found = (what_all_hear(report, unheard) for report in (expected, found))
    assert found == expected


def what_all_hear(report: dict[str, Any], unheard: tuple[str, ...]) -> dict[str, Any]:
    """Leave out of a report what only those see who have a session for themselves."""
    heard = [kind for kind in report["heard"] if kind not in unheard]
    return {**{name: said for name, said in report.items() if name != "saw"}, "heard": heard}


HERE_OR_NOT: Final = {
    program: pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")
    for program in ("haproxy", "nginx")
}


def balancers(*about: tuple[str, ...]) -> list[Any]:
    """Return a parameter set for each of these and its balancer: the one and the other in turn, or both in `full`."""
    return [
        pytest.param(program, *one, marks=mark)
        for place, one in enumerate(about)
        for turn, (program, mark) in enumerate(HERE_OR_NOT.items())
        if SELECTION == "full" or (place + place // 2) % 2 == turn
    ]


UPSTREAMS: Final = ("stdio", "http")
PYTHONS: Final = [(client, "D", upstream) for client in "CDE" for upstream in UPSTREAMS]
NPM_PAIRS: Final = (("TC", "D"), ("TD", "D"), ("TE", "D"), ("C", "T"), ("E", "T"), ("TD", "T"), ("TE", "T"))
FROM_NPM: Final = [(*pair, upstream) for pair in NPM_PAIRS for upstream in UPSTREAMS]


@needs_peers
@visits(report_of_one)
@visits(report_of_three)
@pytest.mark.parametrize(("program", "client", "server", "upstream"), balancers(*PYTHONS))
def test_a_client_reports_of_three_instances_what_it_does_of_one(
    program: str, client: str, server: str, upstream: str
) -> None:
    compare(program, client, server, upstream)


@needs_both
@visits(report_of_one)
@visits(report_of_three)
@pytest.mark.parametrize(("program", "client", "server", "upstream"), balancers(*FROM_NPM))
def test_so_do_clients_and_servers_from_npm(program: str, client: str, server: str, upstream: str) -> None:
    compare(program, client, server, upstream)


@ahead
def official_report(program: str, client: str, upstream: str) -> dict[str, Any]:
    """Let a client make its tour of three instances before the official server from npm."""
    command = [node(), f"{NPM}/node_modules/{EVERYTHING}/dist/index.js"]
    with three(program, command, upstream) as url:
        return visit([python_of(client), str(HERE / "tour.py")], [url], "--over", "http")


@needs_both
@visits(official_report)
@pytest.mark.parametrize(
    ("program", "client", "upstream"), balancers(*((client, upstream) for client in "CD" for upstream in UPSTREAMS))
)
def test_the_official_server_from_npm_serves_through_three_as_through_one(
    program: str, client: str, upstream: str
) -> None:
    check(official_report(program, client, upstream), [row for row in TOUR if client in row.clients])


@ahead
def extension_report(program: str, upstream: str) -> dict[str, Any]:
    """Let a client with the extension make, ask for, answer and read tasks of the older form."""
    with three(program, older("--serve"), upstream) as url:
        return run([*newer("--url"), url], Path(os.devnull))


@ahead
def tasks_report(program: str, upstream: str) -> dict[str, Any]:
    """Let a client with tasks of the older form make, ask for, answer and read those of the extension."""
    with three(program, newer("--serve"), upstream) as url:
        return run([*older("--over"), "http", url], Path(os.devnull))


@needs_peers
@visits(extension_report)
@visits(tasks_report)
@pytest.mark.parametrize(("program", "upstream"), balancers(*((upstream,) for upstream in UPSTREAMS)))
def test_tasks_of_both_forms_are_found_by_whichever_instance_is_asked(program: str, upstream: str) -> None:
    """Made, asked for, answered and read by requests that come to one instance after another."""
    report = extension_report(program, upstream)
    assert report["with"] == {"called": ["Hello Ada", "Hello Ada"], "seen": ["task", "Who?", "task", "Who?"]}
    assert report["without"]["called"] == ["Hello Eve", "Hello Eve"]
    report = tasks_report(program, upstream)
    assert (report["created"], report["ended"], report["at once"]) == ("working", "completed", "at once")
    assert report["result"]["content"][0]["text"] == "Hello Ada"
