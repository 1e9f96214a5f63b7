"""From what a server sends to lines: what is not JSON is left out, and shown in the log."""

from __future__ import annotations

import pytest

from dragoman.transports.upstream.link import Link
from tests.support.waiting import run
from tests.transports.recorder import Recorder
from tests.transports.upstream.stage import Reply, Request, call, on_loop


@pytest.mark.parametrize(
    ("message", "shown"),
    [(b"<html>\n<body>\x1b[2J", r"'<html>\n<body>\x1b[2J'"), (b'[{"jsonrpc": ' + b"x" * 200, '\'[{"jsonrpc": xxx')],
)
def test_a_message_that_is_not_json_is_shown_in_the_log(
    message: bytes, shown: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        recorder = Recorder()
        assert not await Link(recorder, "http://host/mcp").take(message)
        assert not recorder.data

    run(main())
    (record,) = caplog.records
    assert record.getMessage().startswith("http://host/mcp sent ")
    assert shown in record.getMessage()
    assert len(record.getMessage()) < 250


async def _answer_as_text(request: Request, reply: Reply) -> None:
    await reply.json({"jsonrpc": "2.0", "id": str(request.frame["id"]), "result": {"content": []}})


@on_loop
async def test_an_answer_whose_id_came_back_as_text_counts_only_by_the_rule() -> None:
    error = await call(_answer_as_text, restore_ids=False)
    assert "no response to the request" in error["message"]
