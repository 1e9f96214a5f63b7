"""The log of a command that must never wait for its reader.

Lives here: how a line looks, and the handler that `dragoman proxy` logs through. A client may never read the stderr of
the server that it started; were a log line to block then, the session would stand still with it. So a line goes out
only if there is room for it right now (`cli.stderr`); lines that are left out are counted, and the next one that goes
out says how many there were. Peers choose how often most things happen that are warned of: of lines that say the same
about different peers, `Flood` lets some through in a while.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from dragoman.cli.ink import Style, dye
from dragoman.cli.stderr import PatientWriter

LOSSES: Final = "dragoman.translate"
"""Who logs what is lost."""

LINE_BYTES: Final = 2048
"""The longest line written: a pipe that has room at all has room for this much."""

ALIKE: Final = 50
"""How many warnings of one kind are written within `WHILE_S`."""

THE_SAME: Final = 3
"""How many are, of those that say themselves that they are the same but for whose they are."""

WHILE_S: Final = 10.0

_KINDS: Final = 1000

_CUT: Final = LINE_BYTES // 16
"""How many characters of each value an object keeps that is too long: one may take six bytes."""

_STYLES: Final = {"WARNING": Style.LOSS, "ERROR": Style.ERROR, "CRITICAL": Style.ERROR}

LINE: Final = "%(levelname)s %(name)s: %(message)s"
LINE_OF_MANY: Final = "%(asctime)s %(levelname)s %(name)s%(whose)s: %(message)s"
"""How a line looks where there are many sessions: with the time, and whose it is."""


class OneLine(logging.Formatter):
    """Writes a record on one line, whatever peers put into paths, names and messages: none can forge a line of ours, or
    steer a terminal. A trace, which has no words of theirs but an error's, keeps its lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 -- the name is theirs
        """Write level, place and text."""
        line = super().formatMessage(record).rstrip("\n")
        if not line.isprintable():
            line = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in line)
        style = _STYLES.get(record.levelname)
        return line.replace(record.levelname, dye(record.levelname, style, sys.stderr), 1) if style else line


class JsonLine(logging.Formatter):
    """Writes a record as one JSON object, of ASCII alone."""

    def format(self, record: logging.LogRecord) -> str:
        """Write time, level, place, whose it is and the text; less of it where that is very long."""
        from dragoman.core.label import LABEL

        said = {
            "time": datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "event": "log",
            "level": record.levelname.lower(),
            "logger": record.name,
            "session": LABEL.get(),
            "message": record.getMessage(),
            "where": self.formatException(record.exc_info) if record.exc_info else "",
        }
        line = _encode(said)
        return line if len(line) < LINE_BYTES else _encode({name: text[-_CUT:] for name, text in said.items()})


def _encode(said: dict[str, str]) -> str:
    return json.dumps({name: value for name, value in said.items() if value})


class Whose(logging.Filter):
    """Says of every record which session it belongs to, as ` [session 3 of ada]`."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add `whose`."""
        from dragoman.core.label import LABEL

        label = LABEL.get()
        record.whose = f" [{label}]" if label else ""
        return True


class Flood(logging.Filter):
    """Lets through so many warnings of one kind in a while; the last one says so, the next one how many were left out.

    A kind is what we wrote down, before names and reasons are put in. Where a record has `same`, its reason, that is a
    kind of its own: in an outage each request fails for the same one.

    Args:
        clock: Gives seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        # since when it is counted, and how many there were
        self._kinds: dict[tuple[str, str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Count a record; whether it is written."""
        if record.levelno < logging.WARNING:
            return True
        same = getattr(record, "same", "")
        now, kind, most = self._clock(), (record.name, str(record.msg), same), THE_SAME if same else ALIKE
        if len(self._kinds) >= _KINDS and kind not in self._kinds:
            self._kinds.clear()  # somebody else's words are no kinds
        since, count = self._kinds.get(kind, (now, 0))
        if now - since >= WHILE_S:
            _add(record, f"{count - most} more like this left out before" if count > most else "")
            since, count = now, 0
        self._kinds[kind] = since, count + 1
        if count == most - 1:
            _add(record, f"more like this is left out for {WHILE_S:g} s")
        return count < most


def _add(record: logging.LogRecord, words: str) -> None:
    if words:
        record.msg, record.args = f"{record.getMessage()} ({words})", ()


def demote(name: str, to: str = "INFO") -> None:
    """Let a logger say at this level, at most, whatever it says."""
    logger, level = logging.getLogger(name), logging.getLevelNamesMapping()[to]

    def lower(record: logging.LogRecord) -> bool:
        if record.levelno > level:
            record.levelno, record.levelname = level, to
        return logger.isEnabledFor(record.levelno)

    logger.addFilter(lower)


class PatientHandler(logging.Handler):
    """Writes a line at a time, each whole or not at all.

    Args:
        write: Never blocks, and counts what there is no room for.
        formatter: Makes a line of a record.
    """

    def __init__(self, write: Callable[[bytes], object], formatter: logging.Formatter) -> None:
        super().__init__()
        self.setFormatter(formatter)
        self._write = write

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line, or count it."""
        text = self.format(record).encode(errors="backslashreplace")
        if len(text) >= LINE_BYTES:  # what a trace ends with says most
            end = text[-LINE_BYTES // 2 :] if record.exc_info else b""
            text = text[: LINE_BYTES - 4 - len(end)] + b"..." + end
        self._write(text + b"\n")


def set_up_logging(
    level: str, line: str = LINE, form: str = "text", write: Callable[[bytes], object] | None = None
) -> None:
    """Send what Dragoman logs, from this level up, to stderr; what libraries and Python itself have to say, too.

    Args:
        level: Of `logging`, in small letters.
        line: How a line is laid out.
        form: `json`, where it is an object instead.
        write: Gets each line, in place of stderr.
    """
    shape = JsonLine() if form == "json" else OneLine(line, "%Y-%m-%dT%H:%M:%S%z")
    handler = PatientHandler(write or PatientWriter().write, shape)
    handler.addFilter(Flood())
    if line is LINE_OF_MANY:
        handler.addFilter(Whose())
    logging.getLogger("dragoman.child").setLevel("INFO")
    for name, lowest in (("dragoman", level.upper()), ("asyncio", "WARNING"), ("opentelemetry", "WARNING")):
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.setLevel(lowest)
        logger.propagate = False
