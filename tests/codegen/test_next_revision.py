"""A made-up next revision goes through pull, regen and convert, and nothing but `schema/` and one overlay is touched.

Twice: as a person does it, who is asked and decides, and with the safe defaults taken. The generated package is used in
a process of its own, from the temporary directory, and the laws are tried on it there.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from codegen.__main__ import main
from codegen.errors import UndecidedChange, UnusedDecision
from codegen.maintain.pull import pull
from codegen.maintain.regen import compare_output, render
from dragoman_spec import LATEST
from tests.support.next_revision import NEXT, write_mirror
from tests.support.profile import takes_long

ROOT = Path(__file__).resolve().parents[2]
OVERLAY = f"codegen/overlays/{NEXT}.toml"
UNDECIDED = [
    "up narrowed LoggingLevel",
    "up required Prompt.category",
    "up renamed completion/complete",
    "up renamed PromptArgument",
    "down narrowed LoggingLevel",
    "down arm-removed ContentBlock VideoContent",
]
DECIDED = """\
# The step 2026-07-28 <-> 2027-01-01, decided.

[[decision]]
name = "say-information-for-notices"
direction = "up"
change = "narrowed"
at = "LoggingLevel"
do = "map-value"
with = { to = { notice = "info" } }
reason = "A notice is information."

[[decision]]
name = "say-debug-for-traces"
direction = "down"
change = "narrowed"
at = "LoggingLevel"
do = "map-value"
with = { to = { trace = "debug" } }
reason = "A trace is for debugging."

[[decision]]
name = "put-prompts-in-a-general-category"
direction = "up"
change = "required"
at = "Prompt.category"
do = "default"
with = { value = "general" }
reason = "Older servers have no categories."

[[rename]]
name = "so"
what = "definition"
old = "PromptArgument"
new = "PromptParameter"
reason = "The same fields under a new name."

[[decision]]
name = "replace-video-by-text"
direction = "down"
change = "arm-removed"
arm = "VideoContent"
at = "ContentBlock"
do = "text-block"
with = { template = "[Video content: {mimeType}]", keep = ["annotations"] }
reason = "2026-07-28 has no video."
"""
APART = """
[[decision]]
name = "tell-results-apart"
direction = "up"
change = "renamed"
at = "completion/complete"
do = "apart"
reason = "Completion went and skills came; that both are requests of a client is chance."
"""


@pytest.fixture(scope="module")
def pulled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree with what regen reads, the new revision pulled into it from a mirror on disk."""
    tree = tmp_path_factory.mktemp("tree")
    shutil.copytree(ROOT / "schema", tree / "schema")
    shutil.copytree(ROOT / "codegen" / "overlays", tree / "codegen" / "overlays")
    mirror = write_mirror(tmp_path_factory.mktemp("mirror"))
    pin = pull(NEXT, origin=str(mirror), schema_dir=tree / "schema", progress=io.StringIO())
    assert pin.era == "per_request"
    return tree


@pytest.fixture(scope="module")
def decided(pulled: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree after a person has decided and regen has run."""
    tree = tmp_path_factory.mktemp("decided") / "tree"
    shutil.copytree(pulled, tree)
    (tree / OVERLAY).write_text(DECIDED + APART, encoding="utf-8")
    assert main(["regen", "--root", str(tree)]) == 0
    return tree


@pytest.fixture(scope="module")
def defaulted(pulled: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree after the safe defaults were taken."""
    tree = tmp_path_factory.mktemp("defaulted") / "tree"
    shutil.copytree(pulled, tree)
    (tree / OVERLAY).unlink(missing_ok=True)
    assert main(["regen", "--root", str(tree), "--accept-defaults"]) == 0
    return tree


def run_there(tree: Path, code: str) -> Any:
    """Run code with the tree's own `dragoman_spec`; return the JSON that it prints."""
    environment = {**os.environ, "PYTHONPATH": f"{tree / 'generated'}{os.pathsep}{ROOT}", "DRAGOMAN_TREE": str(tree)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def convert_there(tree: Path, frame: dict[str, Any], source: str, target: str, method: str | None = None) -> Any:
    """Translate a frame there: the frame that comes out, the losses, or the refusal."""
    return run_there(
        tree,
        f"""
import json, dragoman_spec as spec
try:
    done = spec.translate({frame!r}, source={source!r}, target={target!r}, method={method!r})
    print(json.dumps([done.frame, [[loss.pointer, loss.kind] for loss in done.losses]]))
except spec.Untranslatable as error:
    print(json.dumps([error.code, error.reason]))
""",
    )


# --- asked, as a person is -------------------------------------------------------------------------------------------


def test_regen_stops_with_every_undecided_change_and_its_pointers(pulled: Path) -> None:
    with pytest.raises(UndecidedChange) as caught:
        render(pulled)
    assert [change.partition(":")[0] for change in caught.value.changes] == UNDECIDED
    assert all("(/$defs/" in change and " -> /$defs/" in change for change in caught.value.changes)


def test_regen_that_stops_leaves_a_skeleton_and_nothing_else(pulled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = listing(pulled) - {OVERLAY}
    assert main(["regen", "--root", str(pulled)]) == 1
    assert listing(pulled) == before | {OVERLAY}
    assert OVERLAY in capsys.readouterr().err
    entries = tomllib.loads((pulled / OVERLAY).read_text("utf-8"))["decision"]
    blank = [
        f"{entry['direction']} {entry['change']} {entry['at']} {entry.get('arm', '')}".strip() for entry in entries
    ]
    assert blank == UNDECIDED
    assert {entry["do"] for entry in entries} == {""}


def test_skeleton_is_not_written_twice(pulled: Path) -> None:
    main(["regen", "--root", str(pulled)])
    before = (pulled / OVERLAY).read_text("utf-8")
    assert main(["regen", "--root", str(pulled)]) == 1
    assert (pulled / OVERLAY).read_text("utf-8") == before


def test_decided_tree_is_complete(decided: Path) -> None:
    assert f"generated/dragoman_spec/v{NEXT.replace('-', '_')}/steps.py" in listing(decided)
    assert f"docs/steps/{NEXT}.md" in listing(decided)


@takes_long
def test_a_log_level_that_no_entry_places_is_named(decided: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["regen", "--check", "--root", str(decided)]) == 0
    assert f"{OVERLAY} does not place [[log_levels]] order: 'trace', so" in capsys.readouterr().out


def test_it_stays_so_and_words_and_places_are_asked_for_in_the_overlay(
    decided: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = tomllib.loads((decided / OVERLAY).read_text("utf-8"))
    assert said["words"]["method"] == {"skills/list": ""}
    assert said["words"]["definition"]["Prompt"] == {"category": ""}
    assert said["order"]["Prompt"] == ["name", "title", "icons", "description", "arguments", "category"]
    assert main(["regen", "--check", "--root", str(decided)]) == 0
    said = capsys.readouterr().out
    assert f"{OVERLAY} has no words yet for " in said
    assert " 0 definitions" not in said


def test_facts_that_no_schema_shows_are_inherited(decided: Path) -> None:
    code = """
import json, dragoman_spec as spec
new, old = spec.facts(spec.LATEST), spec.facts(spec.REVISIONS[-2])
same = [new.headers == old.headers, new.http_status == old.http_status, new.lifecycle == old.lifecycle]
print(json.dumps([same, "skills/list" in new.relayed, "skills/list" in new.cacheable, list(new.log_levels)]))
"""
    levels = ["debug", "info", "warning", "error", "critical", "alert", "emergency"]
    assert run_there(decided, code) == [[True, True, True], True, True, levels]


def test_only_generated_files_came(decided: Path, pulled: Path) -> None:
    came = listing(decided) - listing(pulled) - {OVERLAY}
    assert {path.split("/")[0] for path in came} <= {"generated", "docs"}
    assert {path for path in came if not path.startswith(("generated/dragoman_spec/", "docs/steps/"))} == set()


def test_older_revisions_are_generated_as_before(decided: Path) -> None:
    """What a revision's own folder says does not depend on what comes after it, `steps.py` least of all."""
    for folder in ("v2024_11_05", "v2025_03_26", "v2025_06_18", "v2025_11_25", "v2026_07_28"):
        for file in ("steps.py", "methods.py"):
            here, there = (root / "generated" / "dragoman_spec" / folder / file for root in (ROOT, decided))
            assert here.exists() == there.exists()
            assert not here.exists() or here.read_text("utf-8") == there.read_text("utf-8"), there


def test_decision_on_what_is_no_change_stops_regen(decided: Path, tmp_path: Path) -> None:
    shutil.copytree(decided / "schema", tmp_path / "schema")
    shutil.copytree(decided / "codegen", tmp_path / "codegen")
    text = (tmp_path / OVERLAY).read_text("utf-8")
    (tmp_path / OVERLAY).write_text(text.replace('at = "Prompt.category"', 'at = ["Prompt.category", "Tool.category"]'))
    with pytest.raises(UnusedDecision, match=r"Tool\.category"):
        render(tmp_path)


def test_the_new_package_knows_the_new_revision(decided: Path) -> None:
    known = run_there(
        decided,
        "import json, dragoman_spec as spec; new = spec.load(spec.LATEST);"
        "print(json.dumps([spec.LATEST, spec.era(spec.LATEST), 'skills/list' in new.METHODS, "
        "'completion/complete' in new.METHODS, new.VideoContent(data='AA==', mime_type='video/mp4').model_dump()]))",
    )
    video = {"type": "video", "data": "AA==", "mimeType": "video/mp4"}
    assert known == [NEXT, "per_request", True, False, video]


def result(value: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", **value}}


CACHED = {"ttlMs": 0, "cacheScope": "private"}
VIDEO = {"type": "video", "data": "AA==", "mimeType": "video/mp4"}
SAID = {"type": "text", "text": "[Video content: video/mp4]"}
SAID_SO = [["/params/level", "replaced"]]
TOOL = {"name": "add", "inputSchema": {"type": "object"}}


def log(level: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": level, "data": 1}}


@pytest.mark.parametrize(
    ("frame", "method", "source", "target", "expected"),
    [
        pytest.param(
            result({"tools": [{**TOOL, "costHint": 0.5}], **CACHED}),
            "tools/list", NEXT, LATEST,
            [result({"tools": [TOOL], **CACHED}), [["/result/tools/0/costHint", "dropped"]]],
            id="an added optional field is dropped",
        ),
        pytest.param(
            result({"content": [VIDEO]}),
            "tools/call", NEXT, LATEST,
            [result({"content": [SAID]}), [["/result/content/0", "replaced"]]],
            id="a new content type is replaced",
        ),
        pytest.param(
            result({"content": [VIDEO]}),
            "tools/call", NEXT, "2024-11-05",
            [{"jsonrpc": "2.0", "id": 1, "result": {"content": [SAID]}}, [["/result/content/0", "replaced"]]],
            id="a new content type is replaced all the way down",
        ),
        pytest.param(
            {"jsonrpc": "2.0", "id": 1, "method": "skills/list", "params": {}},
            None, NEXT, LATEST,
            [-32601, f"skills/list does not exist before {NEXT}"],
            id="a new method is refused",
        ),
        pytest.param(
            {"jsonrpc": "2.0", "id": 1, "method": "completion/complete", "params": {}},
            None, LATEST, NEXT,
            [-32601, f"completion/complete does not exist since {NEXT}"],
            id="a removed method is refused",
        ),
        pytest.param(
            result({"prompts": [{"name": "p", "arguments": [{"name": "a"}]}], **CACHED}),
            "prompts/list", LATEST, NEXT,
            [result({"prompts": [{"name": "p", "arguments": [{"name": "a"}], "category": "general"}], **CACHED}), []],
            id="a new required field is filled in, a renamed definition is as before",
        ),
        pytest.param(log("notice"), None, LATEST, NEXT, [log("info"), SAID_SO], id="a value that went"),
        pytest.param(log("trace"), None, NEXT, LATEST, [log("debug"), SAID_SO], id="a value that came"),
        pytest.param(log("error"), None, NEXT, LATEST, [log("error"), []], id="a value that both have"),
    ],
)  # fmt: skip
def test_decided_conversions(
    decided: Path, frame: dict[str, Any], method: str | None, source: str, target: str, expected: Any
) -> None:
    assert convert_there(decided, frame, source, target, method) == expected


def test_typed_models_find_the_new_name(decided: Path) -> None:
    code = (
        "import json, dragoman_spec as spec; old = spec.v2026_07_28.PromptArgument(name='a', required=True);"
        f"new = spec.convert(old, to={NEXT!r}); print(json.dumps([type(new).__name__, new.model_dump()]))"
    )
    assert run_there(decided, code) == ["PromptParameter", {"name": "a", "required": True}]


CROSSING = """
from tests.proxy.conversation import an_error, client, expect_to_client, expect_to_server, hold, notification, request
from tests.proxy.conversation import result, server
from tests.proxy.test_per_request import CAPABILITIES, VERSION

OLD, NEW = "{LATEST}", "{NEXT}"
CACHED = dict(resultType="complete", ttlMs=0, cacheScope="private")
KNOWN = dict(supportedVersions=[NEW], capabilities=dict(tools=dict()), **CACHED)
NOT_THIS = dict(code=-32022, message="not this one", data=dict(supported=[NEW], requested=OLD))

def asks(key, method, revision, token=None, **params):
    meta = {{VERSION: revision, CAPABILITIES: dict(), **({{}} if token is None else dict(progressToken=token))}}
    return request(key, method, **params, _meta=meta)

def tool(**members):
    return dict(name="add", inputSchema=dict(type="object"), **members)

def says(block):
    return dict(content=[block], resultType="complete")

hold([
    client(asks("a", "tools/list", OLD)),
    expect_to_server(lambda frame: frame["method"] == "server/discover"),
    server(dict(jsonrpc="2.0", id="dragoman-discover-1", error=NOT_THIS)),
    expect_to_server(lambda frame: frame["params"]["_meta"][VERSION] == NEW),
    server(result("dragoman-discover-2", KNOWN)),
    expect_to_server(asks(1, "tools/list", NEW)),
    server(result(1, dict(tools=[tool(costHint=0.5)], **CACHED))),
    expect_to_client(result("a", dict(tools=[tool()], **CACHED))),
    client(asks("b", "tools/call", OLD, token="t", name="add")),
    expect_to_server(asks(2, "tools/call", NEW, token=2, name="add")),
    server(notification("notifications/progress", progress=1, progressToken=2)),
    expect_to_client(notification("notifications/progress", progress=1, progressToken="t")),
    server(result(2, says(dict(type="video", data="AA==", mimeType="video/mp4")))),
    expect_to_client(result("b", says(dict(type="text", text="[Video content: video/mp4]")))),
    client(asks("c", "completion/complete", OLD)),
    expect_to_client(an_error("c", -32601, "does not exist since")),
    client(asks("d", "tools/list", NEW)),
    expect_to_server(asks(4, "tools/list", NEW)),
    server(result(4, dict(tools=[tool(costHint=0.5)], **CACHED))),
    expect_to_client(result("d", dict(tools=[tool(costHint=0.5)], **CACHED))),
])
print("true")
"""


def test_the_proxy_joins_two_revisions_without_a_handshake(decided: Path) -> None:
    assert run_there(decided, CROSSING.format(LATEST=LATEST, NEXT=NEXT)) is True


# --- with the safe defaults ------------------------------------------------------------------------------------------


def test_defaults_are_written_down_as_not_reviewed(defaulted: Path) -> None:
    entries = tomllib.loads((defaulted / OVERLAY).read_text("utf-8"))["decision"]
    taken = {f"{entry['direction']} {entry['change']} {entry['at']}": entry["do"] for entry in entries}
    assert {entry["reviewed"] for entry in entries} == {False}
    assert taken == {
        "up narrowed LoggingLevel": "drop-invalid",
        "up required Prompt.category": "refuse",
        "up renamed completion/complete": "apart",
        "up renamed PromptArgument": "apart",
        "down narrowed LoggingLevel": "drop-invalid",
        "down arm-removed ContentBlock": "text-block",
    }


@takes_long
def test_defaults_suffice_from_then_on(defaulted: Path) -> None:
    assert not compare_output(defaulted, render(defaulted))


def test_documentation_says_what_nobody_reviewed(defaulted: Path) -> None:
    assert "(not reviewed)" in (defaulted / "docs" / "steps" / f"{NEXT}.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("frame", "method", "source", "target", "expected"),
    [
        pytest.param(
            result({"content": [VIDEO]}),
            "tools/call", NEXT, LATEST,
            [result({"content": [{"type": "text", "text": "[VideoContent]"}]}), [["/result/content/0", "replaced"]]],
            id="content becomes a placeholder",
        ),
        pytest.param(
            result({"prompts": [{"name": "p"}], **CACHED}),
            "prompts/list", LATEST, NEXT,
            [-32602, "it has no 'category', which the other side requires"],
            id="what is required and cannot be made up is refused",
        ),
        pytest.param(
            log("trace"), None, NEXT, LATEST,
            [-32602, "/params/level is required, and string 'trace' has no counterpart"],
            id="a value that is required and invalid is refused",
        ),
    ],
)  # fmt: skip
def test_default_conversions(
    defaulted: Path, frame: dict[str, Any], method: str | None, source: str, target: str, expected: Any
) -> None:
    assert convert_there(defaulted, frame, source, target, method) == expected


# --- the laws, over the new pairs ------------------------------------------------------------------------------------

LAWS_THERE = """
import json, os, random
from pathlib import Path
from tests.support import instances, judge
judge.ROOT = instances.ROOT = Path(os.environ["DRAGOMAN_TREE"])
from dragoman_spec import LATEST, REVISIONS, TranslationError
from tests.support.laws import LAWS, Case
from tests.support.subjects import random_frame, subjects

broken = []
for source, target in [pair for old in REVISIONS[:-1] for pair in ((old, LATEST), (LATEST, old))]:
    for subject in subjects(source):
        for seed in range(2):
            frame = random_frame(random.Random(f"{subject}{seed}"), subject)
            for law in ("validity", "truth", "purity", "path"):
                try:
                    said = LAWS[law](frame, Case(subject, target, ("strict", "minimal")[seed]))
                except TranslationError as error:
                    said = repr(error)
                broken += [f"{law}: {subject} to {target}: {said}"] if said else []
print(json.dumps(broken))
"""


@pytest.fixture(params=["decided", pytest.param("defaulted", marks=takes_long)])
def tree(request: pytest.FixtureRequest) -> Path:
    found: Path = request.getfixturevalue(request.param)
    return found


def test_laws_hold_over_the_new_pairs(tree: Path) -> None:
    assert run_there(tree, LAWS_THERE) == []


def listing(tree: Path) -> set[str]:
    """The files of a tree, byte code apart."""
    paths = (path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file())
    return {path for path in paths if "__pycache__" not in path}
