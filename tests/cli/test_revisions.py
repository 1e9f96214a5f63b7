"""`dragoman revisions`: one row each, as text and as JSON."""

import argparse
import json
from pathlib import Path

import pytest

from dragoman.cli.revisions import add_arguments, describe, run, table
from dragoman_spec import HANDSHAKE_REVISIONS, REVISIONS

SCHEMAS = Path(__file__).resolve().parents[2] / "schema"


def run_with(*argv: str) -> int:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return run(parser.parse_args(argv))


@pytest.mark.parametrize("revision", REVISIONS)
def test_describe_counts_the_definitions_of_the_schema(revision: str) -> None:
    schema = json.loads((SCHEMAS / revision / "schema.json").read_text())
    assert describe(revision)["definitions"] == len(schema["$defs"])


@pytest.mark.parametrize("revision", REVISIONS)
def test_describe_says_whether_the_proxy_speaks_it(revision: str) -> None:
    expected = ["stdio", "http", *(["websocket"] if revision in HANDSHAKE_REVISIONS else [])]
    assert describe(revision)["proxy"] == expected


def test_table_aligns_its_columns() -> None:
    rows = [
        {"revision": "a", "era": "handshake", "methods": 1, "definitions": 22, "proxy": ["stdio", "sse"]},
        {"revision": "bb", "era": "x", "methods": 10, "definitions": 2, "proxy": []},
    ]
    assert table(rows).splitlines() == [
        "REVISION  ERA        METHODS  DEFINITIONS  PROXY",
        "a         handshake  1        22           stdio, sse",
        "bb        x          10       2            not yet",
    ]


def test_run_prints_a_row_for_each_revision(capsys: pytest.CaptureFixture[str]) -> None:
    code = run_with()
    lines = capsys.readouterr().out.splitlines()
    assert (code, [line.split()[0] for line in lines[1:]]) == (0, list(REVISIONS))


def test_run_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    run_with("--json")
    assert json.loads(capsys.readouterr().out) == [describe(revision) for revision in REVISIONS]
