"""`python -m tests.soak.watched FILE dragoman-arguments…`: dragoman, which on SIGUSR1 notes in a file what it holds."""

from __future__ import annotations

import asyncio
import gc
import json
import signal
import sys
from pathlib import Path
from typing import Any

from dragoman.cli import main
from dragoman.core.switch.shared.switch import Shared


def note(*_: Any) -> None:
    """Append a line with the number of tasks, and of what shared servers have under way."""
    gc.collect()
    tasks = asyncio.all_tasks(asyncio.get_running_loop())
    held = sum(found.held for found in gc.get_objects() if isinstance(found, Shared))
    names = sorted(getattr(task.get_coro(), "__qualname__", "?") for task in tasks)
    with Path(sys.argv[1]).open("a", encoding="utf-8") as file:
        file.write(json.dumps({"tasks": len(tasks), "held": held, "names": names}) + "\n")


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, note)
    sys.exit(main(sys.argv[2:]))
