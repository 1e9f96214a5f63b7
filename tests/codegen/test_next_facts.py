"""A made-up revision of the handshake era is generated, and the proxy's tables know it: `runtime/` is not touched.

The proxy runs in a process of its own, with the generated package of a temporary directory and the runtime as it is.
"""

from __future__ import annotations

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
from tests.support.next_handshake import NEWEST, NEXT, write_mirror

ROOT = Path(__file__).resolve().parents[2]
TALK = f"""
import json
import dragoman_spec as spec
from tests.core.switch.talk import Talk
from tests.proxy.conversation import READY, initialize, initialized, notification, request, result
talk, NEXT = Talk(), {NEXT!r}

def opens(name, **capabilities):
    heard = talk.says(name, initialize(NEXT, key="open", **capabilities))
    if heard[0][0] == "server":
        talk.says("server", initialized(NEXT, heard[0][1]["id"], skills={{}}))
    talk.says(name, READY)
    return heard
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree with the generated package of all revisions and one more."""
    tree = tmp_path_factory.mktemp("tree")
    shutil.copytree(ROOT / "schema", tree / "schema")
    shutil.copytree(ROOT / "codegen" / "overlays", tree / "codegen" / "overlays")
    leave_out(tree / "codegen" / "overlays" / "2026-07-28.toml", "acknowledge-what-is-new")
    mirror = write_mirror(tmp_path_factory.mktemp("mirror"))
    pull(NEXT, origin=str(mirror), schema_dir=tree / "schema", progress=io.StringIO())
    assert main(["regen", "--root", str(tree), "--accept-defaults"]) == 0
    return tree


def leave_out(overlay: Path, name: str) -> None:
    """Take a decision out that is not asked for any more: with the made-up revision before it, more than one goes."""
    entries = overlay.read_text("utf-8").split("\n\n")
    kept = [entry for entry in entries if f'name = "{name}"' not in entry]
    assert len(kept) == len(entries) - 1
    overlay.write_text("\n\n".join(kept), "utf-8")


def run_there(tree: Path, code: str) -> Any:
    """Run code with the tree's own `dragoman_spec`; return the JSON that it prints."""
    environment = {**os.environ, "PYTHONPATH": f"{tree / 'generated'}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-c", TALK + code]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_what_no_schema_shows_is_inherited(tree: Path) -> None:
    code = """
both = [spec.facts(revision) for revision in (NEXT, NEWEST)]
print(json.dumps([[*facts.headers, facts.polls, *facts.log_levels, *facts.lifecycle.items()] for facts in both]))
"""
    new, old = run_there(tree, f"NEWEST = {NEWEST!r}{code}")
    assert new == old


def test_the_newest_is_what_a_server_is_offered(tree: Path) -> None:
    code = "from dragoman.core.negotiation import choose_offer\n"
    assert (
        run_there(tree, code + 'print(json.dumps(choose_offer("2024-11-05", "2024-11-05", "auto", expect_echo=True)))')
        == NEXT
    )


def test_a_new_capability_is_declared_in_the_name_of_all(tree: Path) -> None:
    [[to, frame]] = run_there(tree, "print(json.dumps(opens('a')))")
    assert (to, frame["params"]["capabilities"]["location"]) == ("server", {"exact": {}})


def test_new_news_reach_every_session(tree: Path) -> None:
    code = "opens('a'), opens('b')\n"
    heard = run_there(
        tree, code + "print(json.dumps(talk.says('server', notification('notifications/skills/list_changed'))))"
    )
    assert [to for to, _ in heard] == ["a", "b"]


def test_a_new_question_reaches_the_session_it_is_about(tree: Path) -> None:
    code = """
opens("a", location={}), opens("b", location={})
talk.says("a", request(1, "tools/call", name="t"))
print(json.dumps(talk.says("server", request(7, "location/get"))))
"""
    assert [to for to, _ in run_there(tree, code)] == ["a"]


def test_a_client_that_cannot_answer_a_new_question_is_not_asked(tree: Path) -> None:
    code = """
opens("a"), opens("b", location={})
talk.says("a", request(1, "tools/call", name="t"))
print(json.dumps(talk.says("server", request(7, "location/get"))))
"""
    [[to, frame]] = run_there(tree, code)
    assert to == "server"
    assert "location" in frame["error"]["message"]


def test_news_of_a_new_kind_go_onto_the_stream_for_news(tree: Path) -> None:
    code = "from dragoman.core.streams import ANNOUNCED\nprint(json.dumps(sorted(ANNOUNCED)))"
    assert "notifications/skills/list_changed" in run_there(tree, code)
