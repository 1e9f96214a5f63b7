"""What overlays decide, at the ends of what they decide it for."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman_spec import UnsupportedRevision, Untranslatable, facts, translate, translator

OLD, MIDDLE, NEW = "2025-06-18", "2025-11-25", "2026-07-28"


def answer(result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": result}


def code_after(code: int, *ways: tuple[str, str]) -> int:
    """The code of an error response after some translations."""
    frame: Any = {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": ""}}
    for source, target in ways:
        frame = translate(frame, source=source, target=target, method="tools/call").frame
    found: int = frame["error"]["code"]
    return found


@pytest.mark.parametrize("code", [-32099, -32050, -32020])
def test_codes_that_the_next_revision_reserves_are_internal_there_and_come_back(code: int) -> None:
    assert code_after(code, (MIDDLE, NEW)) == -32603
    assert code_after(code, (MIDDLE, NEW), (NEW, MIDDLE)) == code


@pytest.mark.parametrize("code", [-32100, -32019])
def test_codes_beside_those_that_are_reserved_stay(code: int) -> None:
    assert code_after(code, (MIDDLE, NEW)) == code


@pytest.mark.parametrize(("code", "older"), [(-32022, -32602), (-32021, -32602), (-32020, -32600)])
def test_codes_that_older_revisions_lack_come_back(code: int, older: int) -> None:
    assert code_after(code, (NEW, MIDDLE)) == older
    assert code_after(code, (NEW, MIDDLE), (MIDDLE, NEW)) == code


@pytest.mark.parametrize("method", ["tools/call", "sampling/createMessage", "elicitation/create"])
def test_a_task_is_no_empty_success(method: str) -> None:
    task = {"taskId": "1", "status": "working", "createdAt": "", "lastUpdatedAt": "", "ttl": None}
    with pytest.raises(Untranslatable, match="task"):
        translate(answer({"task": task}), source=MIDDLE, target=OLD, method=method)


def test_the_same_page_has_the_same_id_whatever_is_said_about_it() -> None:
    ids = []
    for message, url in (
        ("Sign in.", "https://a.example"),
        ("Again.", "https://a.example"),
        ("Again.", "https://b.example"),
    ):
        params = {"mode": "url", "message": message, "url": url}
        _, made, _ = translator(NEW, MIDDLE).definition("ElicitRequestURLParams", params)
        ids.append(made["elicitationId"])
    assert ids[0] == ids[1] != ids[2]


@pytest.mark.parametrize(("changes", "cosmetic"), [(False, True), (True, False)])
def test_that_roots_change_is_more_than_that_they_do_not(changes: bool, cosmetic: bool) -> None:
    _, _, losses = translator(MIDDLE, NEW).definition("ClientCapabilities", {"roots": {"listChanged": changes}})
    assert [loss.cosmetic for loss in losses] == [cosmetic]


def test_log_levels_are_those_of_syslog_in_its_order() -> None:
    wanted = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
    assert facts(MIDDLE).log_levels == wanted


@pytest.mark.parametrize("way", [("2020-01-01", NEW), (NEW, "2020-01-01")])
def test_a_revision_that_is_not_there_is_said_on_either_side(way: tuple[str, str]) -> None:
    with pytest.raises(UnsupportedRevision) as caught:
        translator(*way)
    assert caught.value.requested == "2020-01-01"
