"""The page about middleware: its examples do what it says."""

from __future__ import annotations

import re
from typing import Any

from dragoman import middlewares
from dragoman.proxy import ProxyConfig
from tests.docs.test_docs import ROOT
from tests.proxy.conversation import (
    an_error,
    client,
    expect_to_client,
    expect_to_server,
    hold,
    notification,
    opening,
    request,
    server,
)

BLOCKS = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / "middleware.md").read_text("utf-8"), re.DOTALL | re.M)


def config_of(block: str) -> ProxyConfig:
    names: dict[str, Any] = {}
    exec(compile(block, "docs/middleware.md", "exec"), names)
    config = names["config"]
    assert isinstance(config, ProxyConfig)
    return config


def test_the_page_says_what_each_class_does() -> None:
    page = (ROOT / "docs" / "middleware.md").read_text("utf-8")
    rows = re.findall(r"^\| `([A-Z]\w+)\(", page, re.MULTILINE)
    assert sorted(rows) == sorted(middlewares.__all__), "its table has a row for each class of dragoman.middlewares"


def test_the_first_example_keeps_files() -> None:
    other = request(2, "tools/call", name="read")
    steps = [
        client(request(1, "tools/call", name="remove")),
        expect_to_client(an_error(1, -32001, "nothing is removed here")),
        client(other),
        expect_to_server(other),
    ]
    hold([*opening("2025-11-25", "2025-11-25"), *steps], middleware=config_of(BLOCKS[0]).middleware)


def test_the_second_example_drops_what_is_for_debugging() -> None:
    news = [notification("notifications/message", level=level, data=level) for level in ("debug", "info")]
    steps = [*map(server, news), expect_to_client(news[1])]
    notices = config_of(BLOCKS[1]).notice_middleware
    hold([*opening("2025-11-25", "2025-11-25"), *steps], notice_middleware=notices)


def test_the_example_with_headers_gives_one() -> None:
    (signed,) = config_of(BLOCKS[3]).header_middleware
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:]{8}Z", signed()["X-Signed-At"])
