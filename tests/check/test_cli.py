"""`dragoman check` with real processes: what it prints, writes and ends with."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.support.commands import dragoman

SERVER = str(Path(__file__).parents[1] / "client" / "echo_server.py")
LONGEST_S = 60


def check(*arguments: str) -> subprocess.CompletedProcess[str]:
    return dragoman("check", *arguments)


def check_echo(*arguments: str) -> subprocess.CompletedProcess[str]:
    options = ("--revision", "2025-06-18", "--timeout", "0.5")
    return check(*options, *arguments, "--", sys.executable, SERVER)


def test_a_person_reads_what_is_broken_where_and_on_which_page() -> None:
    done = check_echo()
    assert (done.returncode, done.stderr) == (1, "")
    assert "MUST   ping: `ping` is answered with an empty result." in done.stdout
    assert "the answer to ping: expected an empty result, found the error -32601: there is no ping" in done.stdout
    assert "https://modelcontextprotocol.io/specification/2025-06-18/basic/utilities/ping" in done.stdout


def test_what_is_broken_in_several_revisions_is_told_once() -> None:
    options = ("--revision", "2024-11-05", "--revision", "2025-03-26", "--timeout", "0.5")
    said = check(*options, "--", sys.executable, SERVER).stdout
    assert said.count("the answer to ping: expected an empty result") == 1
    assert said.endswith(", each counted once.\n")
    assert "  as in 2024-11-05: cursor-checked, answered, resource-missing, ping\n" in said


def test_json_has_every_finding() -> None:
    report = json.loads(check_echo("--json").stdout)
    (one,) = report["revisions"]
    assert (report["served"], report["whole"]) == (["2025-06-18"], True)
    assert (one["server"], one["outcome"]) == ("echo 1", "spoken")
    (ping,) = [finding for finding in one["findings"] if finding["rule"] == "ping"]
    assert {"level": "must", "revision": "2025-06-18", "about": "the answer to ping"}.items() <= ping.items()


def test_junit_has_a_case_for_each_rule(tmp_path: Path) -> None:
    file = tmp_path / "report.xml"
    check_echo("--junit", str(file))
    suites = ElementTree.parse(file).getroot()
    failed = {case.get("name") for case in suites.iter("testcase") if case.find("failure") is not None}
    assert failed == {"answered", "ping", "revision-answered"}
    assert suites.get("failures") == "3"
    assert suites.get("tests") == str(len(list(suites.iter("testcase"))))


def test_a_report_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    done = check_echo("--junit", str(tmp_path / "nowhere" / "report.xml"))
    assert done.returncode == 1
    assert done.stderr.endswith("report.xml cannot be written: No such file or directory\n")


def test_a_server_of_a_configuration_file_is_checked(tmp_path: Path) -> None:
    file = tmp_path / "servers.json"
    servers = {"echo": {"command": sys.executable, "args": [SERVER]}, "other": {"command": "no-such-command"}}
    file.write_text(json.dumps({"mcpServers": servers}), "utf-8")
    options = ("--revision", "2025-06-18", "--timeout", "0.5", "--json", "--config", str(file), "--server", "echo")
    assert json.loads(check(*options).stdout)["served"] == ["2025-06-18"]


def test_a_server_that_speaks_none_of_the_revisions_is_said_to() -> None:
    done = check("--revision", "2024-11-05", "--", sys.executable, SERVER, "--revision", "2025-06-18")
    assert done.returncode == 4
    assert "2024-11-05: not spoken (it answers with '2025-06-18')" in done.stdout


def test_a_server_that_cannot_be_started_is_an_error() -> None:
    done = check("--", "no-such-server-command")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "dragoman: no-such-server-command: command not found\n"


@pytest.mark.parametrize(("options", "code"), [((), 0), (("--strict",), 1)])
def test_recommendations_count_only_if_told_to(options: tuple[str, ...], code: int, tmp_path: Path) -> None:
    server = tmp_path / "server.py"
    server.write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    frame = json.loads(line)\n"
        "    method, answer = frame.get('method'), {'error': {'code': -32601, 'message': 'no'}}\n"
        "    if method == 'initialize':\n"
        "        version, info = frame['params']['protocolVersion'], {'name': 'a', 'version': '1'}\n"
        "        version = version if version.startswith('2025') else '2025-06-18'\n"
        "        answer = {'result': {'protocolVersion': version, 'capabilities': {'tools': {}}, 'serverInfo': info}}\n"
        "    elif method == 'tools/list':\n"
        "        answer = {'result': {'tools': []}}\n"
        "    elif method == 'ping':\n"
        "        answer = {'result': {}}\n"
        "    if 'id' in frame:\n"
        "        print(json.dumps({'jsonrpc': '2.0', 'id': frame['id'], **answer}), flush=True)\n",
        "utf-8",
    )
    done = check("--revision", "2025-06-18", *options, "--", sys.executable, str(server))
    assert "SHOULD cursor-checked" in done.stdout
    assert "1 of 1 revisions spoken; 0 violations, " in done.stdout
    assert done.returncode == code


def test_a_report_calls_a_server_of_a_file_by_its_name_there(tmp_path: Path) -> None:
    server = {"command": sys.executable, "args": [SERVER, "${A_SECRET:-t0p-secret}"]}
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"echo": server}}), encoding="utf-8")
    junit = tmp_path / "report.xml"
    done = check("--revision", "2025-06-18", "--timeout", "0.5", "--junit", str(junit), "--config", str(path))
    assert done.stdout.splitlines()[0] == "echo"
    assert "t0p-secret" not in done.stdout + done.stderr + junit.read_text("utf-8")
