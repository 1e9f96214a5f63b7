"""The examples for running it as a service: what checks them says nothing, and their options are ours."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest
import yaml

from dragoman.cli.parsing import CommandParser
from dragoman.cli.proxy import add_arguments
from tests.cli.test_listen import INITIALIZE, PROXY, ROOT, SERVER, listening
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE_S

EXAMPLES = ROOT / "examples" / "service"


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")


def read_options(words: list[str]) -> Namespace:
    """Read what follows `dragoman proxy`; files that it names are there."""
    parser = CommandParser()
    add_arguments(parser)
    return parser.parse_args(words)


def unit_words() -> list[str]:
    text = (EXAMPLES / "dragoman.service").read_text().replace("\\\n", " ")
    command = re.search(r"^ExecStart=(.*)$", text, re.MULTILINE)
    assert command is not None
    return command[1].split()


def container_words() -> list[str]:
    deployment = next(yaml.safe_load_all((EXAMPLES / "kubernetes.yaml").read_text()))
    found: list[str] = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    return ["dragoman", *found]


@pytest.mark.parametrize("words", [unit_words(), container_words()], ids=["systemd", "kubernetes"])
def test_the_options_of_the_examples_are_ours(words: list[str], tmp_path: Path) -> None:
    assert words[0].endswith("dragoman")
    assert words[1] == "proxy"
    key = tmp_path / "key"
    key.write_text("0" * 64 + "\n")
    key.chmod(0o600)
    given = [re.sub(r"/\S*/(state-keys|tokens.txt)", str(key), word) for word in words[2:]]
    read = read_options(given)
    assert read.config.endswith("servers.json")
    assert read.shutdown_delay > 0


def test_a_pod_has_time_to_end_in() -> None:
    deployment, service = yaml.safe_load_all((EXAMPLES / "kubernetes.yaml").read_text())
    pod = deployment["spec"]["template"]["spec"]
    delay = next(word for word in container_words() if word.startswith("--shutdown-delay="))
    default = read_options([]).drain_timeout
    assert pod["terminationGracePeriodSeconds"] > float(delay.partition("=")[2]) + default
    named = {port["name"] for port in pod["containers"][0]["ports"]}
    assert {port["targetPort"] for port in service["spec"]["ports"]} <= named


@needs("systemd-analyze")
def test_the_unit_is_one_that_systemd_understands(tmp_path: Path) -> None:
    program = tmp_path / "dragoman"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for name in ("dragoman.service", "dragoman.socket"):
        text = (EXAMPLES / name).read_text()
        (tmp_path / name).write_text(text.replace("/opt/dragoman/bin/dragoman", str(program)))
    said = subprocess.run(
        [
            "systemd-analyze",
            "verify",
            "--man=no",
            str(tmp_path / "dragoman.service"),
            str(tmp_path / "dragoman.socket"),
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    ours = [line for line in (said.stdout + said.stderr).splitlines() if "dragoman" in line]
    assert (said.returncode, ours) == (0, [])


def test_a_mistake_in_a_file_is_waited_out() -> None:
    """In a real systemd, the socket failed with `service-start-limit-hit`, and clients were refused ever after."""
    text = (EXAMPLES / "dragoman.service").read_text()
    unit, _, service = text.partition("[Service]")
    assert re.search(r"^StartLimitIntervalSec=0$", unit, re.MULTILINE)
    assert re.search(r"^Restart=on-failure\nRestartSec=2$", service, re.MULTILINE)


@needs("systemd-socket-activate")
def test_it_serves_at_a_socket_of_systemd() -> None:
    port = free_port()
    command = ["systemd-socket-activate", "--listen", f"127.0.0.1:{port}", *PROXY]
    with subprocess.Popen(
        [*command, "--listen", f"http://127.0.0.1:{port}", "--", *SERVER], stderr=subprocess.PIPE, text=True
    ) as started:
        try:
            assert started.stderr is not None
            assert "Listening on" in started.stderr.readline()
            with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as client:  # this one starts the proxy
                client.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
                client.settimeout(PATIENCE_S)
                assert client.recv(4096).startswith(b"HTTP/1.1 200")
            started.terminate()
            assert started.wait(PATIENCE_S) == 143
        finally:
            started.kill()


def check_health(where: str) -> tuple[int, str]:
    said = subprocess.run(
        [sys.executable, str(EXAMPLES / "healthy.py")],
        env={**os.environ, "DRAGOMAN_HEALTH": where},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    return said.returncode, said.stderr


def test_a_container_is_well_while_its_proxy_answers_or_listens_nowhere() -> None:
    with listening() as proxy:
        assert proxy.post(INITIALIZE)[0] == 200
        assert check_health(proxy.url.removesuffix("/mcp") + "/healthz") == (0, "")
    assert check_health(f"http://127.0.0.1:{free_port()}/healthz") == (0, "")


def test_a_container_is_not_well_whose_proxy_hangs() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        where = f"http://127.0.0.1:{silent.getsockname()[1]}/healthz"
        status, said = check_health(where)
    assert status == 1
    assert where in said


def test_the_image_asks_by_that_script() -> None:
    text = (ROOT / "Dockerfile").read_text()
    assert "COPY examples/service/healthy.py /usr/local/lib/healthy.py" in text
    assert 'CMD ["python", "/usr/local/lib/healthy.py"]' in text
