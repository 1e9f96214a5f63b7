"""The entries for the table of facts: what may stand in each, and what is refused, with file, entry and reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codegen.errors import UnusedDecision
from codegen.fact_entries import chosen, entries_of, read_entries

HEADER = {"name": "Mcp-Mood", "carries": "method", "reason": "because"}


def test_every_entry_of_the_table_has_a_reason() -> None:
    assert all(entry.says["reason"].strip() for entry in read_entries())


@pytest.mark.parametrize(
    ("table", "says", "reason"),
    [
        ("header", {"name": "Mcp-Mood", "reason": "because"}, "it has no 'carries'"),
        ("header", {**HEADER, "colour": "red"}, "'colour' is no key of it; there are annotation, carries, era"),
        ("header", {**HEADER, "carries": "mood"}, "'carries' is 'mood'; there are session, revision, event"),
        ("header", {**HEADER, "is_encoded": "yes"}, "'is_encoded' is 'yes', which is not of the type bool"),
        ("header", {**HEADER, "since": "later"}, "'since' is 'later', which is not the name of a revision"),
        ("header", {**HEADER, "era": "bronze"}, "'era' is 'bronze'; there are handshake, per_request"),
        ("header", {**HEADER, "reason": " "}, "an entry needs a reason"),
        ("meta", {"key": "k", "on": ["answer"], "reason": "because"}, "'on' is 'answer'; there are request, result"),
        ("http_status", {"code": True, "status": 400, "reason": "because"}, "not of the type int"),
    ],
)
def test_nonsense_is_refused(table: str, says: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnusedDecision, match=reason) as caught:
        entries_of({table: [says]})
    assert str(caught.value).startswith(f"codegen/data/protocol.toml: [{table}")
    assert str(caught.value).endswith("then run `nox -s regen`.")


def test_a_table_that_is_nobodys_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "protocol.toml"
    file.write_text("[[trailer]]\n", "utf-8")
    with pytest.raises(UnusedDecision, match=r"\[trailer\]: no such table; there are capability, error_code"):
        read_entries(file)


@pytest.mark.parametrize(
    ("bounds", "applies"),
    [
        ({}, True),
        ({"since": "2025-06-18"}, True),
        ({"since": "2025-06-19"}, False),
        ({"until": "2025-06-18"}, True),
        ({"until": "2025-06-17"}, False),
        ({"era": "handshake"}, True),
        ({"era": "per_request"}, False),
    ],
)
def test_an_entry_is_for_some_revisions(bounds: dict[str, str], applies: bool) -> None:
    entries = entries_of({"header": [{**HEADER, **bounds}]})
    assert bool(chosen(entries, "header", "2025-06-18", "handshake")) is applies


def test_two_entries_for_one_thing_are_refused() -> None:
    entries = entries_of({"header": [HEADER, {**HEADER, "name": "Mcp-Temper", "since": "2025-06-18"}]})
    assert chosen(entries, "header", "2025-03-26", "handshake") == [entries[0]]
    with pytest.raises(UnusedDecision, match="number 1 of the table is for 2025-06-18 too; bound one of them"):
        chosen(entries, "header", "2025-06-18", "handshake")


def test_two_entries_of_a_table_with_one_for_a_revision_are_refused() -> None:
    levels = {"order": ["low"], "reason": "because"}
    with pytest.raises(UnusedDecision, match=r"\[log_levels high\]: number 1"):
        chosen(entries_of({"log_levels": [levels, {**levels, "order": ["high"]}]}), "log_levels", "2025-03-26", "")


def test_what_a_revision_may_have_many_of_may_be_said_twice() -> None:
    quiet = {"methods": ["ping"], "reason": "because"}
    assert len(chosen(entries_of({"quiet": [quiet, quiet]}), "quiet", "2025-03-26", "handshake")) == 2
