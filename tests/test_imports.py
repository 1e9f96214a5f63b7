"""Pay for what you use: which heavy modules an import or a first use brings in, each seen in a fresh interpreter."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTED = Path(__file__).parent / "proxy" / "servers" / "scripted.py"
RUNTIME = Path(__file__).parents[1] / "runtime"
MOST_MODULES = 295
"""How many modules a proxy of one command loads, with those of the interpreter; some 275, by the Python."""

HEAVY = ("pydantic", "orjson", "asyncio", "websockets", "dragoman")
REPORT = "import sys; print(*[name for name in {heavy!r} if name in sys.modules])"
FRAME = '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a"}}'


def heavy_modules_after(code: str) -> list[str]:
    program = f"{code}\n{REPORT.format(heavy=HEAVY)}"
    return subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60
    ).stdout.split()


@pytest.mark.parametrize(
    ("code", "brings"),
    [
        ("import dragoman_spec", []),
        ("import dragoman_spec; dragoman_spec.load('2025-11-25').METHODS", []),
        ("import dragoman_spec; dragoman_spec.facts('2025-11-25').headers", []),
        (f"import dragoman_spec; dragoman_spec.translate({FRAME}, source='2024-11-05', target='2026-07-28')", []),
        (f"import dragoman_spec; dragoman_spec.validate({FRAME}, '2025-11-25')", ["pydantic"]),
        ("from dragoman_spec.v2025_06_18 import TextContent; TextContent(text='a')", ["pydantic"]),
        ("import dragoman", ["dragoman"]),
        ("import dragoman; dragoman.connect", ["orjson", "asyncio", "dragoman"]),
        ("import dragoman.proxy", ["orjson", "asyncio", "dragoman"]),
        ("import dragoman.transports.http.serve", ["orjson", "asyncio", "dragoman"]),
        ("import dragoman.transports.http.websocket_asgi", ["orjson", "asyncio", "websockets", "dragoman"]),
        ("import dragoman.transports.upstream.connect", ["dragoman"]),
        ("import dragoman.transports.upstream.websocket", ["orjson", "asyncio", "websockets", "dragoman"]),
        ("import dragoman.config, dragoman.config.opening", ["dragoman"]),
        ("import dragoman.cli.proxy", ["dragoman"]),
        ("import dragoman.cli.config", ["dragoman"]),
        ("import dragoman.cli.convert", ["orjson", "dragoman"]),
        ("import dragoman.cli.call, dragoman.cli.read, dragoman.cli.list", ["dragoman"]),
        ("import dragoman.cli.check", ["dragoman"]),
        ("import dragoman.cli.revisions", ["dragoman"]),
        ("import dragoman.cli.diff", ["dragoman"]),
    ],
)
def test_code_brings_no_more_than_it_needs(code: str, brings: list[str]) -> None:
    assert heavy_modules_after(code) == brings


@pytest.mark.parametrize("command", ["convert", "diff", "explain", "revisions"])
def test_commands_that_only_look_things_up_load_nothing_that_runs(command: str) -> None:
    code = f"import sys, dragoman.cli, dragoman.cli.{command}; print(*(m for m in sys.modules if 'dragoman.' in m))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    loaded = {module.removeprefix("dragoman.") for module in done.stdout.split()} - {"transports", "transports.early"}
    parts = {module.split(".")[0] for module in loaded}
    assert parts <= {"cli", "core", "errors", "options", "system", "values"}
    assert not [m for m in loaded if m.startswith(("core.edges", "core.serving", "core.switch", "cli.session"))]


def test_a_proxy_of_one_server_loads_nothing_for_several() -> None:
    code = (
        "import dragoman.proxy, sys; print([m for m in sys.modules if 'switch.router' in m or 'dragoman.config' in m])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_a_session_over_standard_streams_loads_nothing_that_it_does_not_use() -> None:
    opening = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "quiet"}}
    said = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        call,
    ]
    command = [sys.executable, "-X", "importtime", "-m", "dragoman", "proxy", "--", sys.executable, str(SCRIPTED)]
    lines = "".join(f"{json.dumps(frame)}\n" for frame in said)
    done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=60, check=True)
    assert '"id":1,"result"' in done.stdout.replace(" ", "")
    loaded = set(re.findall(r"import time:[^|\n]*\|[^|\n]*\| *(\S+)", done.stderr))  # the server says something, too
    assert "dragoman.proxy" in loaded
    parts = {module.split(".")[1] for module in loaded if module.startswith("dragoman.")}
    lowest = {"errors", "options", "start", "system", "values"}
    assert parts <= {"cli", "core", "host", "proxy", "signin", "transports"} | lowest
    assert {module for module in loaded if module.startswith("dragoman.signin.")} == {"dragoman.signin.settings"}
    words = ("core.rules", ".to_session", ".to_stateless", "per_request", "switch.router", "http", "upstream.", "board")
    there = [".".join(path.relative_to(RUNTIME).with_suffix("").parts) for path in RUNTIME.rglob("*.py")]
    assert [word for word in words if not any(word in module for module in there)] == []
    assert not [module for module in loaded for word in words if module.startswith("dragoman.") and word in module]
    assert loaded.isdisjoint({"pydantic", "websockets", "uvicorn", "uvloop", "cryptography"})
    assert loaded & {"_ssl", "ipaddress", "urllib.parse", "difflib", "secrets", "pathlib"} == set()
    assert len(loaded) <= MOST_MODULES, (
        "a person waits for each start, and each module takes a quarter of a millisecond"
    )


def test_a_command_that_is_served_over_http_loads_nothing_for_signing_in() -> None:
    server = [sys.executable, str(SCRIPTED)]
    listen = ["proxy", "--listen", "http://127.0.0.1:0", "--", *server]
    command = [sys.executable, "-X", "importtime", "-m", "dragoman", *listen]
    null = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=null, stdout=null, stderr=subprocess.PIPE, text=True) as proxy:
        assert proxy.stderr is not None
        said: list[str] = []
        try:
            for line in proxy.stderr:
                said.append(line)
                if "listening on" in line:
                    break
        finally:
            proxy.terminate()
    loaded = set(re.findall(r"import time:[^|\n]*\|[^|\n]*\| *(\S+)", "".join(said)))
    assert "listening on" in said[-1]
    assert "dragoman.transports.http.serve" in loaded
    assert loaded & {"email", "html", "random", "secrets", "pathlib", "stringprep"} == set()
    assert {module for module in loaded if module.startswith("dragoman.signin.")} == {"dragoman.signin.settings"}


def test_a_router_loads_nothing_of_the_other_era_before_it_is_needed() -> None:
    words = ("core.rules", ".to_session", ".to_stateless", "per_request")
    code = f"import dragoman.router, sys; print([m for m in sys.modules if any(word in m for word in {words})])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_a_proxy_between_two_handshakes_loads_nothing_of_the_other_era() -> None:
    words = ("core.rules", ".to_session", ".to_stateless", "per_request")
    code = f"import dragoman.proxy, sys; print([m for m in sys.modules if any(word in m for word in {words})])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_a_pool_whose_clients_share_no_server_loads_nothing_of_sharing() -> None:
    code = "import dragoman.pool, sys; dragoman.pool.UpstreamPool(dragoman.pool.Scope.CLIENT, print)"
    code += "; print([m for m in sys.modules if 'shared' in m or 'per_request' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
