"""What nobody has caught: one line in the log, no trace, and the loop goes on."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from dragoman.transports.defects import log_defects
from tests.transports.http.stage import on_loop, serving


def fail() -> None:
    raise KeyError("a defect")


@on_loop
async def test_an_exception_in_a_callback_is_one_line(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    async with serving():
        asyncio.get_running_loop().call_soon(fail)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    (record,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert record.name == "dragoman"
    assert record.exc_info is None
    assert record.getMessage().startswith("internal error: Exception in callback ")
    assert record.getMessage().endswith("KeyError: 'a defect'")
    assert "\n" not in record.getMessage()
    assert "Traceback" not in capfd.readouterr().err


@on_loop
async def test_what_somebody_else_does_about_exceptions_stays() -> None:
    seen: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: seen.append(context))
    log_defects(loop)
    loop.call_soon(fail)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert len(seen) == 1
