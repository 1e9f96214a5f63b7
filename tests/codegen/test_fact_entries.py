"""What overlays say that no schema shows: from which revision on it holds, and what is refused, with file and entry."""

from __future__ import annotations

from typing import Any

import pytest

from codegen.errors import UnusedDecision
from codegen.read.fact_entries import Said, capability_now, entries_of, first_name, said_of

OVERLAY = "codegen/overlays/2025-06-18.toml"
HEADER = {"name": "Mcp-Mood", "carries": "method", "reason": "because"}


def _said(revision: str, overlays: dict[str, Any], era: str = "handshake") -> Said:
    entries = [entry for date, tables in overlays.items() for entry in entries_of(OVERLAY, date, tables)]
    return said_of(entries, revision, era)


@pytest.mark.parametrize(
    ("table", "says", "reason"),
    [
        ("header", {"name": "Mcp-Mood", "reason": "because"}, "it has no 'carries'"),
        ("header", {**HEADER, "colour": "red"}, "'colour' is no key of it; there are annotation, carries, era"),
        ("header", {**HEADER, "carries": "mood"}, "'carries' is 'mood'; there are session, revision, event"),
        ("header", {**HEADER, "is_encoded": "yes"}, "'is_encoded' is 'yes', which is not of the type bool"),
        ("header", {**HEADER, "era": "bronze"}, "'era' is 'bronze'; there are handshake, per_request"),
        ("header", {**HEADER, "reason": " "}, "an entry needs a reason"),
        ("meta", {"key": "k", "on": ["answer"], "reason": "because"}, "'on' is 'answer'; there are request, result"),
        ("http_status", {"code": True, "status": 400, "reason": "because"}, "not of the type int"),
        ("gone", {"trailer": "Mcp-Mood", "reason": "because"}, "it says of a table what of it is gone"),
        ("gone", {"reason": "because"}, "it says of a table what of it is gone"),
        ("gone", {"header": "method"}, "an entry needs a reason"),
    ],
)
def test_nonsense_is_refused(table: str, says: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnusedDecision, match=reason) as caught:
        entries_of(OVERLAY, "2025-06-18", {table: [says]})
    assert str(caught.value).startswith(f"{OVERLAY}: [{table}")
    assert str(caught.value).endswith("then run `nox -s regen`.")


@pytest.mark.parametrize(("revision", "holds"), [("2025-03-26", False), ("2025-06-18", True), ("2025-11-25", True)])
def test_an_entry_holds_from_its_revision_on(revision: str, holds: bool) -> None:
    assert bool(_said(revision, {"2025-06-18": {"header": [HEADER]}})["header"]) is holds


@pytest.mark.parametrize(("era", "holds"), [("handshake", True), ("per_request", False)])
def test_an_entry_of_an_era_holds_in_that_era(era: str, holds: bool) -> None:
    overlays = {"2025-06-18": {"header": [{**HEADER, "era": "handshake"}]}}
    assert bool(_said("2025-06-18", overlays, era)["header"]) is holds


def test_a_newer_entry_about_the_same_takes_the_place_of_an_older_one() -> None:
    newer = {**HEADER, "name": "Mcp-Temper"}
    said = _said("2025-11-25", {"2025-06-18": {"header": [HEADER]}, "2025-11-25": {"header": [newer]}})
    assert said["header"] == {"method": newer}


@pytest.mark.parametrize(
    ("table", "entry", "gone"),
    [
        ("header", HEADER, "method"),
        ("quiet", {"methods": ["ping", "tools/list"], "reason": "because"}, ["ping", "tools/list"]),
        ("meta_refusal", {"code": -1, "status": 400, "reason": "because"}, ""),
    ],
)
def test_what_is_gone_holds_no_longer(table: str, entry: dict[str, Any], gone: Any) -> None:
    overlays = {"2025-06-18": {table: [entry]}, "2025-11-25": {"gone": [{table: gone, "reason": "because"}]}}
    assert _said("2025-06-18", overlays)[table]
    assert not _said("2025-11-25", overlays)[table]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"header": [HEADER, {**HEADER, "name": "Mcp-Temper", "era": "per_request"}]}, {}),
        ({"log_levels": [{"order": ["low"], "reason": "because"}, {"order": ["high"], "reason": "because"}]}, {}),
        ({"quiet": [{"methods": ["ping"], "reason": "because"}] * 2}, {}),
        ({"header": [HEADER]}, {"gone": [{"header": "method", "reason": "because"}]}),
    ],
)
def test_two_entries_of_an_overlay_about_the_same_are_refused(first: dict[str, Any], second: dict[str, Any]) -> None:
    with pytest.raises(UnusedDecision, match="another entry of this overlay is about"):
        entries_of(OVERLAY, "2025-06-18", first | second)


def test_two_entries_of_an_overlay_for_two_eras_are_both_kept() -> None:
    both = [{**HEADER, "era": "handshake"}, {**HEADER, "era": "per_request"}]
    assert len(entries_of(OVERLAY, "2025-06-18", {"header": both})) == 2


def test_what_was_said_of_a_method_is_said_of_its_new_name() -> None:
    rename = {"what": "method", "old": "prompts/get", "new": "prompts/render", "reason": "because"}
    header = {**HEADER, "carries": "name", "members": {"prompts/get": "name", "tools/call": "name"}}
    local = {"methods": ["prompts/get", "ping"], "reason": "because"}
    overlays = {"2025-06-18": {"header": [header], "local": [local]}, "2026-01-01": {"rename": [rename]}}
    said = _said("2026-01-01", overlays)
    assert said["header"]["name"]["members"] == {"prompts/render": "name", "tools/call": "name"}
    assert said["local"].keys() == {"prompts/render", "ping"}
    assert _said("2025-06-18", overlays)["local"].keys() == {"prompts/get", "ping"}


def test_a_method_that_was_renamed_twice_is_known_by_its_first_name() -> None:
    renames = [{"what": "method", "old": old, "new": new, "reason": "because"} for old, new in ("ab", "bc")]
    said = _said("2026-01-01", {"2025-06-18": {"rename": renames[:1]}, "2026-01-01": {"rename": renames[1:]}})
    assert (first_name(said, "c"), first_name(said, "b")) == ("a", "b")


def test_what_was_said_of_a_capability_is_said_of_its_parts_under_the_new_name() -> None:
    rename = {"what": "field", "at": "ClientCapabilities", "old": "elicitation", "new": "forms", "reason": "because"}
    part = {"capability": "elicitation.url", "method": "elicitation/create", "member": "mode", "reason": "because"}
    said = _said("2026-01-01", {"2025-06-18": {"part": [part]}, "2026-01-01": {"rename": [rename]}})
    assert [says["capability"] for says in said["part"].values()] == ["forms.url"]
    assert capability_now(said, "elicitation") == "forms"
