"""Where URIs stand in what servers say: in members that are called so, and in metadata if their scheme says it."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.core.switch.router.uris import at_most, show_pages, show_uris

PAGE = "ui://weather/dash"


def show(uri: str) -> str:
    return f"shown:{uri}"


@pytest.mark.parametrize(
    "result",
    [
        {"content": [{"type": "text", "text": PAGE}]},
        {"contents": [{"uri": 5, "text": PAGE, "mimeType": PAGE}]},
        {"messages": [{"role": "user", "content": {"type": "text", "text": PAGE}}]},
        {"structuredContent": {"uri": PAGE}},
        {"_meta": {"see": "https://example.com/"}},
    ],
)
def test_what_only_looks_like_a_page_stays(result: dict[str, Any]) -> None:
    assert show_uris(result, show) is result


def test_a_page_is_shown_where_it_is_one() -> None:
    link = {"type": "resource_link", "uri": "file:///a", "name": PAGE}
    shown = show_uris({"content": [link], "_meta": {"ui": [PAGE]}}, show)
    assert shown == {"content": [{**link, "uri": "shown:file:///a"}], "_meta": {"ui": [f"shown:{PAGE}"]}}


def test_only_metadata_of_what_is_listed_names_pages() -> None:
    tool = {"name": PAGE, "_meta": {"ui": {"resourceUri": PAGE}}}
    assert show_pages(tool, show) == {**tool, "_meta": {"ui": {"resourceUri": f"shown:{PAGE}"}}}


def test_only_so_many_uris_of_a_result_are_looked_up() -> None:
    result = {"content": [{"uri": "x:1"}, {"uri": "x:2"}, {"uri": "x:3"}]}
    assert show_uris(result, at_most(2, show))["content"] == [
        {"uri": "shown:x:1"},
        {"uri": "shown:x:2"},
        {"uri": "x:3"},
    ]
