"""The workflows: what they run is there, and none of them may do more than it says."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
BY_HAND = {"systems.yml": ("tests", "peers")}  # chosen by an expression


def name(path: Path) -> str:
    return path.name


def jobs_of(path: Path) -> Iterator[dict[str, Any]]:
    yield from yaml.safe_load(path.read_text("utf-8"))["jobs"].values()


def steps_of(path: Path) -> Iterator[dict[str, Any]]:
    for job in jobs_of(path):
        yield from job["steps"]


def sessions() -> set[str]:
    """Give the names of the sessions of nox, as they are said on its command line, without a Python."""
    found = set()
    for node in ast.parse((ROOT / "noxfile.py").read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef) and any("session" in ast.unparse(one) for one in node.decorator_list):
            said = re.search(r"name='([\w-]+)'", ast.unparse(node.decorator_list[0]))
            found.add(said[1] if said else node.name)
    return found


def run_by(path: Path) -> set[str]:
    """Give the sessions that a workflow runs."""
    found = set(BY_HAND.get(path.name, ()))
    for step in steps_of(path):
        for command in re.findall(r"^nox -s ([^|\n]*)", step.get("run", ""), re.MULTILINE):
            if "${{" not in command:
                found |= {re.sub(r"-3\.\d+$", "", word) for word in shlex.split(command.split(" -- ")[0])}
    return found


@pytest.mark.parametrize("path", WORKFLOWS, ids=name)
def test_a_workflow_runs_sessions_that_are_there(path: Path) -> None:
    assert run_by(path), "which session does it run?"
    assert run_by(path) - sessions() == set()


@pytest.mark.parametrize("path", WORKFLOWS, ids=name)
def test_what_others_wrote_has_a_version(path: Path) -> None:
    assert [step["uses"] for step in steps_of(path) if "@" not in step.get("uses", "@")] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=name)
def test_a_workflow_says_what_it_may_do(path: Path) -> None:
    whole = yaml.safe_load(path.read_text("utf-8"))
    assert "permissions" in whole
    assert "secrets." not in path.read_text("utf-8"), "whatever publishes is trusted by its name"


def test_the_systems_are_tried_by_the_sessions_that_are_chosen() -> None:
    (job,) = jobs_of(ROOT / ".github" / "workflows" / "systems.yml")
    assert tuple(job["strategy"]["matrix"]["session"]) == BY_HAND["systems.yml"]
