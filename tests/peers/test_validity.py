"""The judge of recorded frames must be able to find fault."""

from __future__ import annotations

from typing import Any

import pytest

from tests.peers.validity import complaints

ASKED: dict[str, Any] = {"sent": {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t"}}}


def answered(content: dict[str, Any], request_id: Any = 1) -> list[dict[str, Any]]:
    """Return the record of a tool call with one content block in its answer."""
    return [ASKED, {"got": {"jsonrpc": "2.0", "id": request_id, "result": {"content": [content]}}}]


def test_valid_answer_has_no_complaints() -> None:
    assert list(complaints(answered({"type": "text", "text": "x"}), "2024-11-05")) == []


@pytest.mark.parametrize(
    ("record", "revision", "complaint"),
    [
        (
            answered({"type": "audio", "data": "", "mimeType": "audio/wav"}),
            "2024-11-05",
            "result of tools/call at /content/0",
        ),
        (answered({"type": "text", "text": "x"}, "1"), "2024-11-05", "answer to nothing asked"),
        ([{"got": {"jsonrpc": "2.0", "id": 1, "method": "elicitation/create"}}], "2025-03-26", "has no such method"),
        (
            [{"got": {"jsonrpc": "2.0", "method": "notifications/progress"}}],
            "2025-11-25",
            "notifications/progress at /",
        ),
        ([ASKED, {"got": {"jsonrpc": "2.0", "id": 1, "error": {"code": 1}}}], "2025-11-25", "error of tools/call"),
        ([{"got": {"unreadable": "not JSON"}}], "2025-11-25", "not a frame"),
    ],
)
def test_invalid_frames_have(record: list[dict[str, Any]], revision: str, complaint: str) -> None:
    (found,) = list(complaints(record, revision))
    assert complaint in found
