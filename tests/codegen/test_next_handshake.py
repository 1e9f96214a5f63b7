"""A handshake that comes back, after revisions without one: all pairs with it are served, `runtime/` is not touched.

The generated package is used in a process of its own, from a temporary directory.
"""

from __future__ import annotations

import copy
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codegen.__main__ import main
from codegen.maintain.pull import pull
from dragoman_spec import PER_REQUEST_REVISIONS
from tests.support.judge import canonical
from tests.support.next_handshake import BACK, NEWEST, write_mirror

ROOT = Path(__file__).resolve().parents[2]
LATEST = PER_REQUEST_REVISIONS[-1]


def made(place: Path, mirror: Path) -> Path:
    """A tree into which the revision of a mirror was pulled."""
    shutil.copytree(ROOT / "schema", place / "schema")
    shutil.copytree(ROOT / "codegen" / "overlays", place / "codegen" / "overlays")
    pull(BACK, origin=str(mirror), schema_dir=place / "schema", progress=io.StringIO())
    return place


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree with the generated package of all revisions and one more, of the safe defaults."""
    tree = made(tmp_path_factory.mktemp("made") / "tree", write_mirror(tmp_path_factory.mktemp("mirror"), BACK))
    assert main(["regen", "--root", str(tree), "--accept-defaults"]) == 0
    return tree


def run_there(tree: Path, code: str, *arguments: str) -> Any:
    """Run code with the tree's own `dragoman_spec`; return the JSON that it prints last."""
    environment = {**os.environ, "PYTHONPATH": f"{tree / 'generated'}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-c", f"import json\nimport dragoman_spec as spec\n{code}", *arguments]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_its_step_leads_from_the_newest_revision_with_a_handshake(tree: Path) -> None:
    code = """
import sys
from dragoman_spec.revisions import steps_between
print(json.dumps([spec.era(sys.argv[2]), steps_between(*sys.argv[1:])]))
"""
    said = run_there(tree, code, LATEST, BACK)
    assert said == ["handshake", [[LATEST, NEWEST], [NEWEST, BACK]]]


def test_nothing_is_asked_that_the_era_between_took_away(tree: Path) -> None:
    overlay = tree / "codegen" / "overlays" / f"{BACK}.toml"
    assert not overlay.exists() or "[[decision]]" not in overlay.read_text("utf-8")


def test_it_inherits_the_facts_of_its_own_era(tree: Path) -> None:
    code = """
import sys
both = [spec.facts(revision) for revision in sys.argv[1:]]
print(json.dumps([[*facts.headers, facts.polls, *facts.lifecycle.items(), *facts.http_methods] for facts in both]))
"""
    new, old = run_there(tree, code, BACK, NEWEST)
    assert new == old


SERVER = """
import sys
from dragoman.server import Server

FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}

def server_of(revision):
    server = Server("s", "1", revision=revision, plain=True)

    @server.on("tools/list")
    def list_tools(params, context):
        return {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}

    @server.on("tools/call")
    async def call(params, context):
        said = "hello"
        if params["name"] == "ask":
            said = (await context.ask({"method": "elicitation/create", "params": FORM}))["content"]["name"]
        return {"content": [{"type": "text", "text": said}]}

    return server
"""
PAIRS = """
import asyncio
import dragoman

BACK = sys.argv[1]

async def answer(*asked):
    return {"action": "accept", "content": {"name": "ann"}}

def can_ask(revision):
    return "elicitation" in spec.facts(revision).asked.values()

async def visit(client, server):
    handlers = {"elicitation": answer} if can_ask(client) else {}
    tools = ["echo", "ask"] if can_ask(client) and can_ask(server) else ["echo"]
    async with dragoman.connect(
        server_of(server).connect, revision=client, policy="translate", **handlers
    ) as connection:
        return [(await connection.call(tool, {})).content[0].text for tool in tools]

async def main():
    pairs = [pair for one in spec.REVISIONS for pair in ((one, BACK), (BACK, one))]
    said = [await visit(*pair) for pair in pairs]
    print(json.dumps([[*pair, *each] for pair, each in zip(pairs, said)]))

asyncio.run(main())
"""


def test_clients_and_servers_of_every_revision_talk_with_it(tree: Path) -> None:
    """A client of our own goes through the proxy, and is asked in the middle of a call where its revision has that."""
    said = run_there(tree, SERVER + PAIRS, BACK)
    assert len(said) == 12
    assert {answers[0] for _, _, *answers in said} == {"hello"}
    asked = {(client, server) for client, server, *answers in said if answers[1:] == ["ann"]}
    assert {(LATEST, BACK), (BACK, LATEST), (NEWEST, BACK), (BACK, NEWEST), (BACK, BACK)} <= asked


@pytest.mark.parametrize("client", ["any", LATEST, NEWEST])
def test_a_router_has_servers_of_it_beside_others(tree: Path, tmp_path: Path, client: str) -> None:
    (tmp_path / "server.py").write_text(SERVER + "server_of(sys.argv[1]).run()\n", encoding="utf-8")
    environment = {"PYTHONPATH": f"{tree / 'generated'}{os.pathsep}{ROOT}"}
    servers = {
        name: {"command": sys.executable, "args": [str(tmp_path / "server.py"), revision], "env": environment}
        for name, revision in {"old": NEWEST, "between": LATEST, "back": BACK}.items()
    }
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    code = """
import contextlib, io, sys
from dragoman.cli import main
with contextlib.redirect_stdout(io.StringIO()) as said:
    main(["list", "tools", "--json", "--config", *sys.argv[1:]])
print(json.dumps(json.loads(said.getvalue())))
"""
    listed = run_there(tree, code, str(file), "--revision", client)
    assert sorted(tool["name"] for tool in listed["tools"]) == ["back_echo", "between_echo", "old_echo"]


def test_explain_says_of_it_what_it_says_of_its_neighbour(tree: Path) -> None:
    code = """
import sys
from dragoman.core.rules.explain import explain
LATEST, *known = sys.argv[1:]
ways = [[(LATEST, one), (one, LATEST)] for one in known]
print(json.dumps([[[row.feature, row.status.value] for pair in way for row in explain(*pair).rows] for way in ways]))
"""
    new, old = run_there(tree, code, LATEST, BACK, NEWEST)
    assert [row for row in old if row not in new] == []


def test_a_server_is_offered_it_and_falls_back_to_the_nearest(tree: Path) -> None:
    code = """
import sys
from dragoman.core.negotiation import Rejection, choose_offer, choose_retry
BACK, NEWEST, LATEST = sys.argv[1:]
offer = choose_offer(NEWEST, NEWEST, "auto", expect_echo=True)
print(json.dumps([offer, choose_retry(Rejection((BACK, NEWEST), ""), LATEST)]))
"""
    assert run_there(tree, code, BACK, NEWEST, LATEST) == [BACK, NEWEST]


def both_kinds(directory: Path) -> Path:
    """A mirror with a revision that opens with a handshake, and asks inside of results."""
    schema, older = copy.deepcopy(canonical(LATEST)), canonical(NEWEST)["$defs"]
    definitions = schema["$defs"]
    for name in ("InitializeRequest", "InitializeRequestParams", "InitializeResult", "InitializedNotification"):
        definitions[name] = copy.deepcopy(older[name])
    definitions["ClientRequest"]["anyOf"].append({"$ref": "#/$defs/InitializeRequest"})
    definitions["ServerResult"]["anyOf"].append({"$ref": "#/$defs/InitializeResult"})
    place = directory / "schema" / BACK
    place.mkdir(parents=True)
    (place / "schema.json").write_text(json.dumps(schema), encoding="utf-8")
    return directory


def test_regen_says_that_a_session_of_both_kinds_cannot_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = made(tmp_path / "tree", both_kinds(tmp_path / "mirror"))
    assert main(["regen", "--root", str(tree), "--accept-defaults"]) == 1
    assert f"{BACK} opens with a handshake, and its servers ask inside of results" in capsys.readouterr().err
    pull(BACK, origin=str(tmp_path / "mirror"), schema_dir=tree / "schema", era="per_request", progress=io.StringIO())
    assert main(["regen", "--root", str(tree), "--accept-defaults"]) == 0
