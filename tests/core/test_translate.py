"""One direction of a session: what it sends on for what it is given, and what it says about it."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any
from unittest.mock import ANY

import pytest

import dragoman_spec
from dragoman.core import translate
from dragoman.core.codes import PARSE_ERROR
from dragoman.core.envelope import Frame, Refusal
from dragoman.core.peek import read_line
from dragoman.core.translate import Adaptor, Counters, OnLoss, describe_losses
from dragoman_spec.losses import LossGroup

LONG = 10**25


def adaptor(on_loss: OnLoss = OnLoss.WARN) -> Adaptor:
    return Adaptor(dragoman_spec.translator("2025-11-25", "2024-11-05"), on_loss, Counters())


def result(value: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": value}).encode() + b"\n"


def adapt(adapting: Adaptor, line: bytes, method: str) -> bytes | Refusal | None:
    adapted = adapting.adapt(read_line(line), method)  # type: ignore[arg-type]
    return adapted.raw if isinstance(adapted, Frame) else adapted


def tool(**fields: Any) -> dict[str, Any]:
    return {"name": "a", "inputSchema": {"type": "object", "maximum": LONG}, **fields}


def test_bytes_that_no_step_changes_pass_as_they_came() -> None:
    line = result({"tools": [tool()]})
    assert adapt(adaptor(), line, "tools/list") is line


def test_a_long_integer_survives_where_something_else_changes() -> None:
    line = adapt(adaptor(), result({"tools": [tool(title="A")]}), "tools/list")
    assert isinstance(line, bytes)
    assert json.loads(line)["result"]["tools"] == [tool()]


def test_a_long_integer_where_a_list_is_needed_is_named_as_it_came() -> None:
    refusal = adapt(adaptor(), result({"tools": LONG}), "tools/list")
    assert isinstance(refusal, Refusal)
    assert str(LONG) in refusal.message


def test_a_long_integer_that_may_stay_does_not_change_a_frame() -> None:
    up = Adaptor(dragoman_spec.translator("2025-06-18", "2025-11-25"), OnLoss.WARN, Counters())
    task = json.dumps({"name": "a", "task": {"ttl": LONG}})
    line = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": ' + task.encode() + b"}\n"
    assert adapt(up, line, "tools/call") is line
    assert up.counters.losses == 0


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="the standard library reads what is nested as deep as this")
def test_what_can_only_be_skimmed_is_refused() -> None:
    schema = b"[" * 1010 + b"%d" % LONG + b"]" * 1010
    line = b'{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","title":"A","inputSchema":%b}]}}' % schema
    refusal = adapt(adaptor(), line + b"\n", "tools/list")
    assert refusal == Refusal(PARSE_ERROR, "cannot translate frame: nested too deep", ANY)


@pytest.mark.parametrize(
    ("on_loss", "more", "refused"),
    [
        (OnLoss.WARN, {"outputSchema": {"type": "object"}}, False),
        (OnLoss.SILENT, {"outputSchema": {"type": "object"}}, False),
        (OnLoss.REFUSE, {"outputSchema": {"type": "object"}}, True),
        (OnLoss.REFUSE, {}, False),
        (OnLoss.REFUSE_ALL, {}, True),
    ],
)
def test_a_frame_is_refused_for_the_losses_that_the_user_minds(
    on_loss: OnLoss, more: dict[str, Any], refused: bool
) -> None:
    done = adapt(adaptor(on_loss), result({"tools": [tool(title="A", **more)]}), "tools/list")
    assert isinstance(done, Refusal) is refused


def test_losses_are_not_spelled_where_nobody_looks(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    adapting = adaptor()
    adapt(adapting, result({"tools": [tool(title="A", icons=[])]}), "tools/list")
    assert not caplog.records
    assert (adapting.counters.lossy, adapting.counters.losses) == (1, 1)


def test_what_its_absence_says_too_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    adapting = adaptor(on_loss=OnLoss.REFUSE)
    line = result({"tools": [tool(execution={"taskSupport": "forbidden"})]})
    assert adapt(adapting, line, "tools/list") == result({"tools": [tool()]}).replace(b" ", b"")
    assert [record.levelname for record in caplog.records] == ["INFO"]


def test_a_loss_of_a_shape_that_was_said_is_only_counted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    adapting = adaptor()
    for tools in ([tool(title="A")], [tool(title="A"), tool(title="B")], [tool(), tool(title="B")]):
        adapt(adapting, result({"tools": tools}), "tools/list")
    adapt(adapting, result({"tools": [tool(title="A", icons=[{"src": "x:y"}])]}), "tools/list")
    assert [record.getMessage().partition(": ")[2] for record in caplog.records] == [
        "dropped /result/tools/0/title (3 B)",
        "dropped /result/tools/0/icons (15 B)",
    ]
    assert adapting.counters.describe() == "4 translated, 4 lossy, 6 losses, 2 lossy as before"


def test_shapes_that_a_peer_makes_up_are_not_kept_without_end(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(translate, "_SHAPES_KEPT", 2)
    adapting = adaptor()
    for field in ("title", "icons", "annotations"):
        adapt(adapting, result({"tools": [tool(**{field: {"title": "A"}})]}), "tools/list")
    assert (len(caplog.records), adapting.counters.lossy_as_before) == (2, 1)


def test_of_many_kinds_of_losses_the_first_few_are_said() -> None:
    words = describe_losses([LossGroup(f"/{number}", "dropped", [number, number]) for number in range(10)])
    assert words.startswith("dropped /0 x 2 (2 B), dropped /1 x 2 (2 B), ")
    assert words.endswith("dropped /7 x 2 (2 B) and 4 more")


def test_what_is_hidden_is_named() -> None:
    hidden = [{"name": "render"}, {"name": 5}, {"name": "n" * 200}, "x"]
    assert describe_losses([LossGroup("/tools/*", "hidden", hidden)]) == (
        f"hidden /tools/* x 4 (render, {'n' * 80}, {LossGroup('', 'hidden', hidden).bytes} B)"
    )
    assert "render" not in describe_losses([LossGroup("/tools/0", "dropped", hidden[:1])])


def test_a_frame_that_is_refused_for_its_losses_is_said_to_be_refused_once(caplog: pytest.LogCaptureFixture) -> None:
    adapt(adaptor(OnLoss.REFUSE_ALL), result({"tools": [tool(title="A")]}), "tools/list")
    (record,) = caplog.records
    assert record.getMessage().startswith("tools/list result refused: translating this result from 2025-11-25 to ")
